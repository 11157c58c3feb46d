"""AMQP 1.0 for structured concurrency: one library for both ends of the wire, on trio."""

from . import sasl as sasl

# Dial or listen
from .peer.dial import open_connection as open_connection
from .peer.listen import Listener as Listener
from .peer.listen import serve as serve

# What a conversation is made of
from .peer.connection import Connection as Connection
from .peer.connection import IncomingLinks as IncomingLinks
from .peer.connection import Remote as Remote
from .peer.session import Session as Session
from .peer.sender import Sender as Sender
from .peer.receiver import Receiver as Receiver
from .peer.incoming import IncomingReceiver as IncomingReceiver
from .peer.incoming import IncomingSender as IncomingSender
from .peer.delivery import Delivery as Delivery
from .peer.delivery import Outcome as Outcome
from .peer.delivery import OutgoingDelivery as OutgoingDelivery

# Messages and values
from .message import Data as Data
from .message import Message as Message
from .message import Sequence as Sequence
from .message import Value as Value
