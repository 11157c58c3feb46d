"""AMQP 1.0 for structured concurrency: one library for both ends of the wire, on trio.

Everything public is here, grouped by what a reader wants to do.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from .version import __version__ as __version__

    # Dial, or be dialled
    from .peer.dial import open_connection as open_connection
    from .peer.listen import Listener as Listener
    from .peer.listen import serve as serve
    from .net.dialect import AcceptedConnection as AcceptedConnection
    from .net.dialect import Dialect as Dialect
    from .engine.limits import Limits as Limits
    from .protocol_rules import RULES as RULES
    from .protocol_rules import ProtocolRule as ProtocolRule
    from .protocol_rules import Strict as Strict
    from . import sasl as sasl
    from .net import tls as tls

    # Talk
    from .peer.connection import Connection as Connection
    from .peer.connection import Remote as Remote
    from .peer.session import Session as Session
    from .peer.sender import Sender as Sender
    from .peer.stream_sender import StreamSender as StreamSender
    from .peer.receiver import Receiver as Receiver
    from .peer.delivery import Delivery as Delivery
    from .peer.body_chunks import Chunks as Chunks
    from .peer.delivery import OutgoingDelivery as OutgoingDelivery

    # Accept or refuse what the peer opens
    from .peer.connection import IncomingLinks as IncomingLinks
    from .peer.incoming_links import IncomingReceiver as IncomingReceiver
    from .peer.incoming_links import IncomingSender as IncomingSender

    # Serve a container of named nodes
    from .container.container import Container as Container
    from .container.virtual_hosts import VirtualHosts as VirtualHosts
    from trio_amqp10.container.nodes.queue import Queue as Queue
    from trio_amqp10.container.nodes.policy import QueuePolicy as QueuePolicy
    from trio_amqp10.container.nodes.topic import Topic as Topic
    from trio_amqp10.container.nodes.content import Content as Content
    from trio_amqp10.container.nodes.node import Arrival as Arrival
    from trio_amqp10.container.nodes.node import ContainerPeer as ContainerPeer
    from trio_amqp10.container.nodes.node import Inlet as Inlet
    from trio_amqp10.container.nodes.node import SubscriptionTerms as SubscriptionTerms
    from trio_amqp10.container.nodes.node import Lease as Lease
    from trio_amqp10.container.nodes.node import Node as Node
    from trio_amqp10.container.nodes.node import Outlet as Outlet
    from trio_amqp10.container.nodes.node import Peer as Peer
    from trio_amqp10.container.nodes.node import RefusedError as RefusedError

    # Come back: to a link, to a peer
    from .net.backoff import Backoff as Backoff
    from .peer.recovery_events import Change as Change
    from .peer.terminus_store import LinkKey as LinkKey
    from .peer.terminus_store import MemoryTerminusStore as MemoryTerminusStore
    from .peer.terminus_store import TerminusStore as TerminusStore
    from .container.sqlite_terminus_store import SqliteTerminusStore as SqliteTerminusStore

    # Send a peer elsewhere
    from .peer.redirects import redirect as redirect

    # See what goes on
    from .peer.statistics import ConnectionStatistics as ConnectionStatistics
    from .peer.statistics import ReceiverStatistics as ReceiverStatistics
    from .peer.statistics import SenderStatistics as SenderStatistics
    from .peer.statistics import SessionStatistics as SessionStatistics

    # Say who may do what, and how much
    from trio_amqp10.container.rights.access import Access as Access
    from trio_amqp10.container.rights.access import Rules as Rules
    from trio_amqp10.container.rights.claims import Claim as Claim
    from trio_amqp10.container.rights.claims import SasKeys as SasKeys
    from trio_amqp10.container.rights.claims import TokenOffer as TokenOffer
    from trio_amqp10.container.rights.quotas import Quotas as Quotas

    # Put tokens where claims are asked for
    from .patterns.cbs import SasTokens as SasTokens
    from .patterns.cbs import TokenRefusedError as TokenRefusedError
    from .tokens import SasToken as SasToken
    from .tokens import Token as Token
    from .tokens import sign_sas as sign_sas

    # Keep what must outlive the process
    from .container.stores import Journal as Journal
    from .container.stores import MemoryStore as MemoryStore
    from .container.stores import SqliteStore as SqliteStore
    from .container.stores import Store as Store
    from .container.stores import StoreError as StoreError
    from .container.stores import StoreFullError as StoreFullError
    from .container.stores import StoreTable as StoreTable

    # Ask, and be answered
    from .patterns.requester import Requester as Requester
    from .patterns.requester import open_requester as open_requester

    # All together, or not at all
    from .patterns.transaction import Transaction as Transaction
    from .patterns.transaction import open_transaction as open_transaction
    from .patterns.move import move_messages as move_messages

    # Say it: messages and values
    from .message import Data as Data
    from .message import Message as Message
    from .message import Sequence as Sequence
    from .message import Value as Value
    from .wire.pair_map import PairMap as PairMap
    from .wire.values import Array as Array
    from .wire.values import Byte as Byte
    from .wire.values import Char as Char
    from .wire.values import Decimal32 as Decimal32
    from .wire.values import Decimal64 as Decimal64
    from .wire.values import Decimal128 as Decimal128
    from .wire.values import Described as Described
    from .wire.values import Float as Float
    from .wire.values import Int as Int
    from .wire.values import Short as Short
    from .wire.values import Symbol as Symbol
    from .wire.values import Timestamp as Timestamp
    from .wire.values import UByte as UByte
    from .wire.values import UInt as UInt
    from .wire.values import ULong as ULong
    from .wire.values import UShort as UShort

    # Settle: what a receiver makes of a message
    from .peer.delivery import Outcome as Outcome
    from .spec.messaging import Accepted as Accepted
    from .spec.messaging import Modified as Modified
    from .spec.messaging import Received as Received
    from .spec.messaging import Rejected as Rejected
    from .spec.messaging import Released as Released

    # Say exactly which terminus, and how it settles
    from .spec.messaging import ExpiryPolicy as ExpiryPolicy
    from .spec.messaging import Source as Source
    from .spec.messaging import Target as Target
    from .spec.messaging import TerminusDurability as TerminusDurability
    from .spec.transport import ErrorInfo as ErrorInfo
    from .spec.transport import ReceiverSettleMode as ReceiverSettleMode
    from .spec.transport import SenderSettleMode as SenderSettleMode

    # What can go wrong
    from .errors import AmqpError as AmqpError
    from .errors import Condition as Condition
    from .errors import LocalProtocolError as LocalProtocolError
    from .errors import MessageSizeError as MessageSizeError
    from .errors import RemoteProtocolError as RemoteProtocolError
    from .errors import SecurityError as SecurityError
    from .peer.errors import ConnectionClosedError as ConnectionClosedError
    from .peer.errors import ConnectionRedirectError as ConnectionRedirectError
    from .peer.errors import DeliveryAbortedError as DeliveryAbortedError
    from .peer.errors import DeliveryError as DeliveryError
    from .peer.errors import DeliveryInDoubtError as DeliveryInDoubtError
    from .peer.errors import DeliveryModifiedError as DeliveryModifiedError
    from .peer.errors import DeliveryRejectedError as DeliveryRejectedError
    from .peer.errors import DeliveryReleasedError as DeliveryReleasedError
    from .peer.errors import FilterNotSupportedError as FilterNotSupportedError
    from .peer.errors import GuaranteeNotSupportedError as GuaranteeNotSupportedError
    from .peer.errors import LinkDetachedError as LinkDetachedError
    from .peer.errors import LinkRedirectError as LinkRedirectError
    from .peer.errors import LinkRefusedError as LinkRefusedError
    from .peer.errors import LinkStolenError as LinkStolenError
    from .peer.errors import SessionEndedError as SessionEndedError
    from .peer.errors import TransactionError as TransactionError
    from .peer.errors import TransactionInDoubtError as TransactionInDoubtError
    from .peer.errors import TransactionRolledBackError as TransactionRolledBackError

    # Send and receive classes of your own
    from .typed import REST as REST
    from .typed import Key as Key
    from .typed import Registry as Registry
    from .wire.fields import Multiple as Multiple
    from .wire.fields import binary as binary
    from .wire.fields import boolean as boolean
    from .wire.fields import byte as byte
    from .wire.fields import char as char
    from .wire.fields import double as double
    from .wire.fields import float_ as float_
    from .wire.fields import int_ as int_
    from .wire.fields import long as long
    from .wire.fields import short as short
    from .wire.fields import string as string
    from .wire.fields import symbol as symbol
    from .wire.fields import timestamp as timestamp
    from .wire.fields import ubyte as ubyte
    from .wire.fields import uint as uint
    from .wire.fields import ulong as ulong
    from .wire.fields import ushort as ushort
else:
    from .lazy_names import lazy_names as _lazy_names

    __getattr__, __dir__, __all__ = _lazy_names(
        __name__,
        {
            ".version": "__version__",
            ".peer.dial": "open_connection",
            ".peer.listen": "Listener serve",
            ".net.dialect": "AcceptedConnection Dialect",
            ".engine.limits": "Limits",
            ".protocol_rules": "RULES ProtocolRule Strict",
            ".": "sasl",
            ".net": "tls",
            ".peer.connection": "Connection Remote IncomingLinks",
            ".peer.session": "Session",
            ".peer.sender": "Sender",
            ".peer.stream_sender": "StreamSender",
            ".peer.receiver": "Receiver",
            ".peer.delivery": "Delivery OutgoingDelivery Outcome",
            ".peer.body_chunks": "Chunks",
            ".peer.incoming_links": "IncomingReceiver IncomingSender",
            ".container.container": "Container",
            ".container.virtual_hosts": "VirtualHosts",
            ".container.nodes.queue": "Queue",
            ".container.nodes.policy": "QueuePolicy",
            ".container.nodes.topic": "Topic",
            ".container.nodes.content": "Content",
            ".container.nodes.node": (
                "Arrival ContainerPeer Inlet SubscriptionTerms Lease Node Outlet Peer RefusedError"
            ),
            ".net.backoff": "Backoff",
            ".peer.recovery_events": "Change",
            ".peer.terminus_store": "LinkKey MemoryTerminusStore TerminusStore",
            ".container.sqlite_terminus_store": "SqliteTerminusStore",
            ".peer.redirects": "redirect",
            ".peer.statistics": "ConnectionStatistics ReceiverStatistics SenderStatistics SessionStatistics",
            ".container.rights.access": "Access Rules",
            ".container.rights.claims": "Claim SasKeys TokenOffer",
            ".container.rights.quotas": "Quotas",
            ".patterns.cbs": "SasTokens TokenRefusedError",
            ".tokens": "SasToken Token sign_sas",
            ".container.stores": "Journal MemoryStore SqliteStore Store StoreError StoreFullError StoreTable",
            ".patterns.requester": "Requester open_requester",
            ".patterns.transaction": "Transaction open_transaction",
            ".patterns.move": "move_messages",
            ".message": "Data Message Sequence Value",
            ".wire.pair_map": "PairMap",
            ".wire.values": (
                "Array Byte Char Decimal32 Decimal64 Decimal128 Described Float Int Short "
                "Symbol Timestamp UByte UInt ULong UShort"
            ),
            ".spec.messaging": (
                "Accepted Modified Received Rejected Released ExpiryPolicy Source Target TerminusDurability"
            ),
            ".spec.transport": "ErrorInfo ReceiverSettleMode SenderSettleMode",
            ".errors": (
                "AmqpError Condition LocalProtocolError MessageSizeError RemoteProtocolError SecurityError"
            ),
            ".peer.errors": (
                "ConnectionClosedError ConnectionRedirectError DeliveryAbortedError "
                "DeliveryError DeliveryInDoubtError DeliveryModifiedError DeliveryRejectedError "
                "DeliveryReleasedError FilterNotSupportedError GuaranteeNotSupportedError LinkDetachedError "
                "LinkRedirectError LinkRefusedError LinkStolenError SessionEndedError "
                "TransactionError TransactionInDoubtError TransactionRolledBackError"
            ),
            ".typed": "REST Key Registry",
            ".wire.fields": (
                "Multiple binary boolean byte char double float_ int_ long short string symbol "
                "timestamp ubyte uint ulong ushort"
            ),
        },
        "container engine errors filters frames message net patterns peer protocol_headers protocol_rules spec tokens typed wire",
    )
