"""The types of Part 2: performatives and their definitions (2.7, 2.8). Declarations only.

The standard's order, but that definitions come before the performatives that are written in them.
"""

from enum import IntEnum
from typing import Annotated, Any, Final, TypeAlias

from trio_amqp10.wire.composite import composite
from trio_amqp10.wire.fields import (
    Multiple,
    Named,
    OwnBudget,
    Requires,
    archetype,
    binary,
    boolean,
    plain_map,
    restricted,
    string,
    symbol,
    symbol_map,
    uint,
    ulong,
    ushort,
)

__all__ = [
    "MAJOR",
    "MINOR",
    "MIN_MAX_FRAME_SIZE",
    "PORT",
    "REVISION",
    "SECURE_PORT",
    "Attach",
    "Begin",
    "Close",
    "DeliveryNumber",
    "DeliveryTag",
    "Detach",
    "Disposition",
    "End",
    "Error",
    "ErrorCondition",
    "ErrorInfo",
    "Fields",
    "Flow",
    "Handle",
    "IetfLanguageTag",
    "MessageFormat",
    "Milliseconds",
    "Open",
    "ReceiverSettleMode",
    "Role",
    "Seconds",
    "SenderSettleMode",
    "SequenceNo",
    "Transfer",
    "TransferNumber",
]

# 2.8 definitions, which the performatives of 2.7 are written in -----------------------------------

RoleFlag: TypeAlias = Annotated[boolean, Named("role")]


class Role:
    """Which end of a link speaks (2.8.1): a plain bool on the wire and here."""

    SENDER: Final = False
    RECEIVER: Final = True


@restricted("sender-settle-mode", "ubyte")
class SenderSettleMode(IntEnum):
    """How a sender settles (2.8.2)."""

    UNSETTLED = 0
    SETTLED = 1
    MIXED = 2


@restricted("receiver-settle-mode", "ubyte")
class ReceiverSettleMode(IntEnum):
    """How a receiver settles (2.8.3)."""

    FIRST = 0
    SECOND = 1


Handle: TypeAlias = Annotated[uint, Named("handle")]
Seconds: TypeAlias = Annotated[uint, Named("seconds")]
Milliseconds: TypeAlias = Annotated[uint, Named("milliseconds")]
DeliveryTag: TypeAlias = Annotated[binary, Named("delivery-tag")]
SequenceNo: TypeAlias = Annotated[uint, Named("sequence-no")]
DeliveryNumber: TypeAlias = Annotated[uint, Named("delivery-number")]
TransferNumber: TypeAlias = Annotated[uint, Named("transfer-number")]
MessageFormat: TypeAlias = Annotated[uint, Named("message-format")]
IetfLanguageTag: TypeAlias = Annotated[symbol, Named("ietf-language-tag")]
Fields: TypeAlias = Annotated[symbol_map, Named("fields")]
ErrorCondition: TypeAlias = Annotated[symbol, Requires("error-condition")]


@composite("amqp:error:list", 0x1D)
class Error:
    """What went wrong, as a peer is told of it (2.8.14): a value, and no exception."""

    condition: ErrorCondition
    description: string | None = None
    info: Fields | None = None


ErrorInfo: TypeAlias = Error
"""The name by which programs know it: in Python, what ends in ``Error`` can be raised and caught."""

PORT: Final = 5672
SECURE_PORT: Final = 5671
MAJOR: Final = 1
MINOR: Final = 0
REVISION: Final = 0
MIN_MAX_FRAME_SIZE: Final = 512

# 2.7 performatives -------------------------------------------------------------------------------

SourceType: TypeAlias = Annotated[Any, archetype("source")]
TargetType: TypeAlias = Annotated[Any, archetype("target")]
DeliveryState: TypeAlias = Annotated[Any, archetype("delivery-state")]
Unsettled: TypeAlias = Annotated[plain_map, OwnBudget(65_536)]
"""Delivery tags and their states; as long as the link has deliveries, so counted apart."""


@composite("amqp:open:list", 0x10, provides=["frame"])
class Open:
    """Opens a connection (2.7.1)."""

    container_id: string
    hostname: string | None = None
    max_frame_size: uint = 4_294_967_295
    channel_max: ushort = 65_535
    idle_time_out: Milliseconds | None = None
    outgoing_locales: Multiple[IetfLanguageTag] = ()
    incoming_locales: Multiple[IetfLanguageTag] = ()
    offered_capabilities: Multiple[symbol] = ()
    desired_capabilities: Multiple[symbol] = ()
    properties: Fields | None = None


@composite("amqp:begin:list", 0x11, provides=["frame"])
class Begin:
    """Begins a session on a channel (2.7.2)."""

    remote_channel: ushort | None = None
    next_outgoing_id: TransferNumber
    incoming_window: uint
    outgoing_window: uint
    handle_max: Handle = 4_294_967_295
    offered_capabilities: Multiple[symbol] = ()
    desired_capabilities: Multiple[symbol] = ()
    properties: Fields | None = None


@composite("amqp:attach:list", 0x12, provides=["frame"], scope="link")
class Attach:
    """Attaches a link to a session (2.7.3)."""

    name: string
    handle: Handle
    role: RoleFlag
    snd_settle_mode: SenderSettleMode = SenderSettleMode.MIXED
    rcv_settle_mode: ReceiverSettleMode = ReceiverSettleMode.FIRST
    source: SourceType | None = None
    target: TargetType | None = None
    unsettled: Unsettled | None = None
    incomplete_unsettled: boolean = False
    initial_delivery_count: SequenceNo | None = None
    max_message_size: ulong | None = None
    offered_capabilities: Multiple[symbol] = ()
    desired_capabilities: Multiple[symbol] = ()
    properties: Fields | None = None


@composite("amqp:flow:list", 0x13, provides=["frame"], scope="session")
class Flow:
    """Updates the state of a session, or of a link (2.7.4)."""

    next_incoming_id: TransferNumber | None = None
    incoming_window: uint
    next_outgoing_id: TransferNumber
    outgoing_window: uint
    handle: Handle | None = None
    delivery_count: SequenceNo | None = None
    link_credit: uint | None = None
    available: uint | None = None
    drain: boolean = False
    echo: boolean = False
    properties: Fields | None = None


@composite("amqp:transfer:list", 0x14, provides=["frame"], scope="link")
class Transfer:
    """Carries a message, or a part of one (2.7.5)."""

    handle: Handle
    delivery_id: DeliveryNumber | None = None
    delivery_tag: DeliveryTag | None = None
    message_format: MessageFormat | None = None
    settled: boolean | None = None
    more: boolean = False
    rcv_settle_mode: ReceiverSettleMode | None = None
    state: DeliveryState | None = None
    resume: boolean = False
    aborted: boolean = False
    batchable: boolean = False


@composite("amqp:disposition:list", 0x15, provides=["frame"], scope="session")
class Disposition:
    """Tells the peer how deliveries changed (2.7.6)."""

    role: RoleFlag
    first: DeliveryNumber
    last: DeliveryNumber | None = None
    settled: boolean = False
    state: DeliveryState | None = None
    batchable: boolean = False


@composite("amqp:detach:list", 0x16, provides=["frame"], scope="link")
class Detach:
    """Detaches a link, or closes it (2.7.7)."""

    handle: Handle
    closed: boolean = False
    error: Error | None = None


@composite("amqp:end:list", 0x17, provides=["frame"], scope="session")
class End:
    """Ends a session (2.7.8)."""

    error: Error | None = None


@composite("amqp:close:list", 0x18, provides=["frame"])
class Close:
    """Closes a connection (2.7.9)."""

    error: Error | None = None
