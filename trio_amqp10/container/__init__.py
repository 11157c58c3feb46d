"""A named peer that holds nodes: queues, topics, functions, and the user's own."""

import typing as _typing

from . import protocols as protocols  # they register the forms of content

if _typing.TYPE_CHECKING:
    from .container import Container as Container
    from .handlers import ConsumerNode as ConsumerNode
    from .handlers import FunctionNode as FunctionNode
    from .nodes.content import Content as Content
    from .nodes.node import Arrival as Arrival
    from .nodes.node import ContainerPeer as ContainerPeer
    from .nodes.node import Inlet as Inlet
    from .nodes.node import Lease as Lease
    from .nodes.node import Node as Node
    from .nodes.node import Outlet as Outlet
    from .nodes.node import Peer as Peer
    from .nodes.node import RefusedError as RefusedError
    from .nodes.node import SubscriptionTerms as SubscriptionTerms
    from .nodes.policy import Overflow as Overflow
    from .nodes.policy import QueuePolicy as QueuePolicy
    from .nodes.producer import ProducerNode as ProducerNode
    from .nodes.queue import Queue as Queue
    from .nodes.topic import Topic as Topic
    from .protocols.amqp10.connection import Amqp10Connection as Amqp10Connection
    from .rights.access import Access as Access
    from .rights.access import Rules as Rules
    from .rights.claims import Claim as Claim
    from .rights.claims import SasKeys as SasKeys
    from .rights.claims import TokenOffer as TokenOffer
    from .rights.quotas import Quotas as Quotas
else:
    from trio_amqp10.lazy_names import lazy_names as _lazy_names

    __getattr__, __dir__, __all__ = _lazy_names(
        __name__,
        {
            ".container": "Container",
            ".handlers": "ConsumerNode FunctionNode",
            ".nodes.content": "Content",
            ".nodes.node": (
                "Arrival ContainerPeer Inlet Lease Node Outlet Peer RefusedError SubscriptionTerms"
            ),
            ".nodes.policy": "Overflow QueuePolicy",
            ".nodes.producer": "ProducerNode",
            ".nodes.queue": "Queue",
            ".nodes.topic": "Topic",
            ".protocols.amqp10.connection": "Amqp10Connection",
            ".rights.access": "Access Rules",
            ".rights.claims": "Claim SasKeys TokenOffer",
            ".rights.quotas": "Quotas",
        },
    )
