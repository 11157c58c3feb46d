"""AMQP 0-9-1 in the container: message format, connections and channels.

Importing this package registers the form of its messages, which a store may contain; ``protocol`` serves
connections.
"""

from .native_message import Published

__all__ = ["Published"]
