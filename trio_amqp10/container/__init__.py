"""A named peer that holds nodes: queues, topics, functions, consumers, producers, and the user's own."""

from .handlers import Consumer as Consumer
from .handlers import Function as Function
from .nodes.content import Content as Content
from .nodes.node import Arrival as Arrival
from .nodes.node import House as House
from .nodes.node import Inlet as Inlet
from .nodes.node import Interest as Interest
from .nodes.node import Lease as Lease
from .nodes.node import Node as Node
from .nodes.node import Outlet as Outlet
from .nodes.node import Peer as Peer
from .nodes.node import RefusedError as RefusedError
from .nodes.policy import Overflow as Overflow
from .nodes.policy import QueuePolicy as QueuePolicy
from .nodes.producer import Producer as Producer
from .nodes.queue import Queue as Queue
from .nodes.topic import Topic as Topic
from .protocols.amqp10.conversation import Conversation as Conversation
from .rights.access import Access as Access
from .rights.access import Rules as Rules
from .rights.claims import Claim as Claim
from .rights.claims import SasKeys as SasKeys
from .rights.claims import TokenOffer as TokenOffer
from .rights.quotas import Quotas as Quotas
from .service import Container as Container
