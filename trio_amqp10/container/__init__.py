"""A named peer that holds nodes: queues, topics, functions, and the user's own."""

import typing as _typing

from . import content_forms as content_forms  # they register the forms of content

if _typing.TYPE_CHECKING:
    from trio_amqp10.amqp10.server.connection import Amqp10Connection as Amqp10Connection
    from trio_amqp10.broker.nodes.content import Content as Content
    from trio_amqp10.broker.nodes.node import Arrival as Arrival
    from trio_amqp10.broker.nodes.node import ContainerPeer as ContainerPeer
    from trio_amqp10.broker.nodes.node import Inlet as Inlet
    from trio_amqp10.broker.nodes.node import Lease as Lease
    from trio_amqp10.broker.nodes.node import Node as Node
    from trio_amqp10.broker.nodes.node import Outlet as Outlet
    from trio_amqp10.broker.nodes.node import Peer as Peer
    from trio_amqp10.broker.nodes.node import RefusedError as RefusedError
    from trio_amqp10.broker.nodes.node import SubscriptionTerms as SubscriptionTerms
    from trio_amqp10.broker.nodes.policy import Overflow as Overflow
    from trio_amqp10.broker.nodes.policy import QueuePolicy as QueuePolicy
    from trio_amqp10.broker.nodes.producer_node import ProducerNode as ProducerNode
    from trio_amqp10.broker.nodes.queue import Queue as Queue
    from trio_amqp10.broker.nodes.topic import Topic as Topic
    from trio_amqp10.broker.rights.access import Access as Access
    from trio_amqp10.broker.rights.access import Rules as Rules
    from trio_amqp10.broker.rights.claims import Claim as Claim
    from trio_amqp10.broker.rights.claims import SasKeys as SasKeys
    from trio_amqp10.broker.rights.claims import TokenOffer as TokenOffer
    from trio_amqp10.broker.rights.quotas import Quotas as Quotas

    from .container import Container as Container
    from .handlers import ConsumerNode as ConsumerNode
    from .handlers import FunctionNode as FunctionNode
else:
    from trio_amqp10.core.lazy_names import lazy_names as _lazy_names

    __getattr__, __dir__, __all__ = _lazy_names(
        __name__,
        {
            ".container": "Container",
            ".handlers": "ConsumerNode FunctionNode",
            "trio_amqp10.broker.nodes.content": "Content",
            "trio_amqp10.broker.nodes.node": (
                "Arrival ContainerPeer Inlet Lease Node Outlet Peer RefusedError SubscriptionTerms"
            ),
            "trio_amqp10.broker.nodes.policy": "Overflow QueuePolicy",
            "trio_amqp10.broker.nodes.producer_node": "ProducerNode",
            "trio_amqp10.broker.nodes.queue": "Queue",
            "trio_amqp10.broker.nodes.topic": "Topic",
            "trio_amqp10.amqp10.server.connection": "Amqp10Connection",
            "trio_amqp10.broker.rights.access": "Access Rules",
            "trio_amqp10.broker.rights.claims": "Claim SasKeys TokenOffer",
            "trio_amqp10.broker.rights.quotas": "Quotas",
        },
    )
