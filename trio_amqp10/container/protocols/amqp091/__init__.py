"""AMQP 0-9-1 in the container: its messages as content of nodes, and its connections and channels.

Importing this registers the form of its messages, which a store may have; ``protocol`` serves connections.
"""

from .native_message import Published

__all__ = ["Published"]
