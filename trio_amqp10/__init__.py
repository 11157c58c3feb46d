"""AMQP 1.0 for trio: one library for clients, services and containers.

All public names are here, in groups by purpose.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from .core.version import __version__ as __version__

    # Dial and listen
    from .amqp10.peer.dial import open_connection as open_connection
    from .amqp10.peer.listen import Listener as Listener
    from .amqp10.peer.listen import serve as serve
    from .net.dialect import AcceptedConnection as AcceptedConnection
    from .net.dialect import Dialect as Dialect
    from .amqp10.engine.limits import Limits as Limits
    from .core.peer_rules import RULES as RULES
    from .core.peer_rules import ProtocolRule as ProtocolRule
    from .core.peer_rules import Strict as Strict
    from . import sasl as sasl
    from .net import tls as tls

    # Connections, sessions, links and deliveries
    from .amqp10.peer.connection import Connection as Connection
    from .amqp10.peer.connection import Remote as Remote
    from .amqp10.peer.session import Session as Session
    from .amqp10.peer.sender import Sender as Sender
    from .amqp10.peer.stream_sender import StreamSender as StreamSender
    from .amqp10.peer.receiver import Receiver as Receiver
    from .amqp10.peer.delivery import Delivery as Delivery
    from .amqp10.peer.body_chunks import Chunks as Chunks
    from .amqp10.peer.delivery import OutgoingDelivery as OutgoingDelivery

    # Accept or refuse links that the peer opens
    from .amqp10.peer.connection import IncomingLinks as IncomingLinks
    from .amqp10.peer.incoming_links import IncomingReceiver as IncomingReceiver
    from .amqp10.peer.incoming_links import IncomingSender as IncomingSender

    # Serve a container of named nodes
    from .container.container import Container as Container
    from .container.virtual_hosts import VirtualHosts as VirtualHosts
    from .broker.nodes.queue import Queue as Queue
    from .broker.nodes.policy import QueuePolicy as QueuePolicy
    from .broker.nodes.topic import Topic as Topic
    from .broker.nodes.content import Content as Content
    from .broker.nodes.node import Arrival as Arrival
    from .broker.nodes.node import ContainerPeer as ContainerPeer
    from .broker.nodes.node import Inlet as Inlet
    from .broker.nodes.node import SubscriptionTerms as SubscriptionTerms
    from .broker.nodes.node import Lease as Lease
    from .broker.nodes.node import Node as Node
    from .broker.nodes.node import Outlet as Outlet
    from .broker.nodes.node import Peer as Peer
    from .broker.nodes.node import RefusedError as RefusedError

    # Resume links, and restore connections
    from .net.backoff import Backoff as Backoff
    from .net.errors import TimedOutError as TimedOutError
    from .net.recovery_events import Change as Change
    from .amqp10.peer.terminus_store import LinkKey as LinkKey
    from .amqp10.peer.terminus_store import MemoryTerminusStore as MemoryTerminusStore
    from .amqp10.peer.terminus_store import TerminusStore as TerminusStore
    from .amqp10.peer.sqlite_terminus_store import SqliteTerminusStore as SqliteTerminusStore

    # Redirect a peer
    from .amqp10.peer.redirects import redirect as redirect

    # Statistics
    from .amqp10.peer.statistics import ConnectionStatistics as ConnectionStatistics
    from .amqp10.peer.statistics import ReceiverStatistics as ReceiverStatistics
    from .amqp10.peer.statistics import SenderStatistics as SenderStatistics
    from .amqp10.peer.statistics import SessionStatistics as SessionStatistics

    # Permissions and quotas
    from .broker.rights.access import Access as Access
    from .broker.rights.access import Rules as Rules
    from .broker.rights.claims import Claim as Claim
    from .broker.rights.claims import SasKeys as SasKeys
    from .broker.rights.claims import TokenOffer as TokenOffer
    from .broker.rights.quotas import Quotas as Quotas

    # Tokens for claims-based security
    from .amqp10.peer.cbs import SasTokens as SasTokens
    from .amqp10.peer.cbs import TokenRefusedError as TokenRefusedError
    from .core.tokens import SasToken as SasToken
    from .core.tokens import Token as Token
    from .core.tokens import sign_sas as sign_sas

    # Storage that outlives the process
    from .broker.stores import Journal as Journal
    from .broker.stores import MemoryStore as MemoryStore
    from .broker.stores import SqliteStore as SqliteStore
    from .broker.stores import Store as Store
    from .broker.stores import StoreError as StoreError
    from .broker.stores import StoreFullError as StoreFullError
    from .broker.stores import StoreTable as StoreTable

    # Requests and replies
    from .amqp10.peer.requester import Requester as Requester
    from .amqp10.peer.requester import open_requester as open_requester

    # Transactions
    from .amqp10.peer.transaction import Transaction as Transaction
    from .amqp10.peer.transaction import open_transaction as open_transaction
    from .amqp10.peer.move_messages import move_messages as move_messages

    # Messages and values
    from .amqp10.message import Data as Data
    from .amqp10.message import Message as Message
    from .amqp10.message import Sequence as Sequence
    from .amqp10.message import Value as Value
    from .amqp10.wire.pair_map import PairMap as PairMap
    from .amqp10.wire.values import Array as Array
    from .amqp10.wire.values import Byte as Byte
    from .amqp10.wire.values import Char as Char
    from .amqp10.wire.values import Decimal32 as Decimal32
    from .amqp10.wire.values import Decimal64 as Decimal64
    from .amqp10.wire.values import Decimal128 as Decimal128
    from .amqp10.wire.values import Described as Described
    from .amqp10.wire.values import Float as Float
    from .amqp10.wire.values import Int as Int
    from .amqp10.wire.values import Short as Short
    from .amqp10.wire.values import Symbol as Symbol
    from .amqp10.wire.values import Timestamp as Timestamp
    from .amqp10.wire.values import UByte as UByte
    from .amqp10.wire.values import UInt as UInt
    from .amqp10.wire.values import ULong as ULong
    from .amqp10.wire.values import UShort as UShort

    # Outcomes of deliveries
    from .amqp10.peer.delivery import Outcome as Outcome
    from .amqp10.spec.messaging import Accepted as Accepted
    from .amqp10.spec.messaging import Modified as Modified
    from .amqp10.spec.messaging import Received as Received
    from .amqp10.spec.messaging import Rejected as Rejected
    from .amqp10.spec.messaging import Released as Released

    # Termini and settle modes
    from .amqp10.spec.messaging import ExpiryPolicy as ExpiryPolicy
    from .amqp10.spec.messaging import Source as Source
    from .amqp10.spec.messaging import Target as Target
    from .amqp10.spec.messaging import TerminusDurability as TerminusDurability
    from .amqp10.spec.transport import ErrorInfo as ErrorInfo
    from .amqp10.spec.transport import ReceiverSettleMode as ReceiverSettleMode
    from .amqp10.spec.transport import SenderSettleMode as SenderSettleMode

    # Errors
    from .core.errors import AmqpError as AmqpError
    from .core.errors import Condition as Condition
    from .core.errors import LocalProtocolError as LocalProtocolError
    from .core.errors import MessageSizeError as MessageSizeError
    from .core.errors import RemoteProtocolError as RemoteProtocolError
    from .core.errors import SecurityError as SecurityError
    from .amqp10.peer.errors import ConnectionClosedError as ConnectionClosedError
    from .amqp10.peer.errors import ConnectionRedirectError as ConnectionRedirectError
    from .amqp10.peer.errors import DeliveryAbortedError as DeliveryAbortedError
    from .amqp10.peer.errors import DeliveryError as DeliveryError
    from .amqp10.peer.errors import DeliveryInDoubtError as DeliveryInDoubtError
    from .amqp10.peer.errors import DeliveryModifiedError as DeliveryModifiedError
    from .amqp10.peer.errors import DeliveryRejectedError as DeliveryRejectedError
    from .amqp10.peer.errors import DeliveryReleasedError as DeliveryReleasedError
    from .amqp10.peer.errors import FilterNotSupportedError as FilterNotSupportedError
    from .amqp10.peer.errors import GuaranteeNotSupportedError as GuaranteeNotSupportedError
    from .amqp10.peer.errors import LinkDetachedError as LinkDetachedError
    from .amqp10.peer.errors import LinkRedirectError as LinkRedirectError
    from .amqp10.peer.errors import LinkRefusedError as LinkRefusedError
    from .amqp10.peer.errors import LinkStolenError as LinkStolenError
    from .amqp10.peer.errors import SessionEndedError as SessionEndedError
    from .amqp10.peer.errors import TransactionError as TransactionError
    from .amqp10.peer.errors import TransactionInDoubtError as TransactionInDoubtError
    from .amqp10.peer.errors import TransactionRolledBackError as TransactionRolledBackError

    # Objects of your own classes as messages
    from .typed import REST as REST
    from .typed import Key as Key
    from .typed import Registry as Registry
    from .amqp10.wire.fields import Multiple as Multiple
    from .amqp10.wire.fields import binary as binary
    from .amqp10.wire.fields import boolean as boolean
    from .amqp10.wire.fields import byte as byte
    from .amqp10.wire.fields import char as char
    from .amqp10.wire.fields import double as double
    from .amqp10.wire.fields import float_ as float_
    from .amqp10.wire.fields import int_ as int_
    from .amqp10.wire.fields import long as long
    from .amqp10.wire.fields import short as short
    from .amqp10.wire.fields import string as string
    from .amqp10.wire.fields import symbol as symbol
    from .amqp10.wire.fields import timestamp as timestamp
    from .amqp10.wire.fields import ubyte as ubyte
    from .amqp10.wire.fields import uint as uint
    from .amqp10.wire.fields import ulong as ulong
    from .amqp10.wire.fields import ushort as ushort
else:
    from .core.lazy_names import lazy_names as _lazy_names

    __getattr__, __dir__, __all__ = _lazy_names(
        __name__,
        {
            ".core.version": "__version__",
            ".amqp10.peer.dial": "open_connection",
            ".amqp10.peer.listen": "Listener serve",
            ".net.dialect": "AcceptedConnection Dialect",
            ".amqp10.engine.limits": "Limits",
            ".core.peer_rules": "RULES ProtocolRule Strict",
            ".": "sasl",
            ".net": "tls",
            ".amqp10.peer.connection": "Connection Remote IncomingLinks",
            ".amqp10.peer.session": "Session",
            ".amqp10.peer.sender": "Sender",
            ".amqp10.peer.stream_sender": "StreamSender",
            ".amqp10.peer.receiver": "Receiver",
            ".amqp10.peer.delivery": "Delivery OutgoingDelivery Outcome",
            ".amqp10.peer.body_chunks": "Chunks",
            ".amqp10.peer.incoming_links": "IncomingReceiver IncomingSender",
            ".container.container": "Container",
            ".container.virtual_hosts": "VirtualHosts",
            ".broker.nodes.queue": "Queue",
            ".broker.nodes.policy": "QueuePolicy",
            ".broker.nodes.topic": "Topic",
            ".broker.nodes.content": "Content",
            ".broker.nodes.node": (
                "Arrival ContainerPeer Inlet SubscriptionTerms Lease Node Outlet Peer RefusedError"
            ),
            ".net.backoff": "Backoff",
            ".net.errors": "TimedOutError",
            ".net.recovery_events": "Change",
            ".amqp10.peer.terminus_store": "LinkKey MemoryTerminusStore TerminusStore",
            ".amqp10.peer.sqlite_terminus_store": "SqliteTerminusStore",
            ".amqp10.peer.redirects": "redirect",
            ".amqp10.peer.statistics": "ConnectionStatistics ReceiverStatistics SenderStatistics SessionStatistics",
            ".broker.rights.access": "Access Rules",
            ".broker.rights.claims": "Claim SasKeys TokenOffer",
            ".broker.rights.quotas": "Quotas",
            ".amqp10.peer.cbs": "SasTokens TokenRefusedError",
            ".core.tokens": "SasToken Token sign_sas",
            ".broker.stores": "Journal MemoryStore SqliteStore Store StoreError StoreFullError StoreTable",
            ".amqp10.peer.requester": "Requester open_requester",
            ".amqp10.peer.transaction": "Transaction open_transaction",
            ".amqp10.peer.move_messages": "move_messages",
            ".amqp10.message": "Data Message Sequence Value",
            ".amqp10.wire.pair_map": "PairMap",
            ".amqp10.wire.values": (
                "Array Byte Char Decimal32 Decimal64 Decimal128 Described Float Int Short "
                "Symbol Timestamp UByte UInt ULong UShort"
            ),
            ".amqp10.spec.messaging": (
                "Accepted Modified Received Rejected Released ExpiryPolicy Source Target TerminusDurability"
            ),
            ".amqp10.spec.transport": "ErrorInfo ReceiverSettleMode SenderSettleMode",
            ".core.errors": (
                "AmqpError Condition LocalProtocolError MessageSizeError RemoteProtocolError SecurityError"
            ),
            ".amqp10.peer.errors": (
                "ConnectionClosedError ConnectionRedirectError DeliveryAbortedError "
                "DeliveryError DeliveryInDoubtError DeliveryModifiedError DeliveryRejectedError "
                "DeliveryReleasedError FilterNotSupportedError GuaranteeNotSupportedError LinkDetachedError "
                "LinkRedirectError LinkRefusedError LinkStolenError SessionEndedError "
                "TransactionError TransactionInDoubtError TransactionRolledBackError"
            ),
            ".typed": "REST Key Registry",
            ".amqp10.wire.fields": (
                "Multiple binary boolean byte char double float_ int_ long short string symbol "
                "timestamp ubyte uint ulong ushort"
            ),
        },
        "amqp10 container net typed",
    )
