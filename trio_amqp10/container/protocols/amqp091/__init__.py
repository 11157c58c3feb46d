"""AMQP 0-9-1 in the container: its messages as content of nodes, and its connections and channels.

Importing this registers the form of its messages, which a store may have; ``dialect`` serves connections.
"""

from .content import Published

__all__ = ["Published"]
