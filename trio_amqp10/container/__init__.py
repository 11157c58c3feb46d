"""A named peer that holds nodes: queues, topics, functions, consumers, producers, and the user's own."""

from .access import Access as Access
from .access import Rules as Rules
from .claims import Claim as Claim
from .claims import SasKeys as SasKeys
from .claims import TokenOffer as TokenOffer
from .conversation import Conversation as Conversation
from .handlers import Consumer as Consumer
from .handlers import Function as Function
from .handlers import Producer as Producer
from .node import Arrival as Arrival
from .node import House as House
from .node import Inlet as Inlet
from .node import Interest as Interest
from .node import Lease as Lease
from .node import Node as Node
from .node import Outlet as Outlet
from .node import Peer as Peer
from .node import RefusedError as RefusedError
from .policy import Overflow as Overflow
from .policy import QueuePolicy as QueuePolicy
from .queue import Queue as Queue
from .quotas import Quotas as Quotas
from .service import Container as Container
from .topic import Topic as Topic
