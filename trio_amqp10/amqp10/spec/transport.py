"""Declarations of Part 2: performatives and their definitions (2.7, 2.8).

The order is that of the standard, except that definitions precede the performatives that use them.
"""

from enum import IntEnum
from typing import Annotated, Any, Final, TypeAlias

from trio_amqp10.amqp10.wire.composite import composite
from trio_amqp10.amqp10.wire.fields import (
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

# 2.8 definitions, which the performatives of 2.7 use ----------------------------------------------

RoleFlag: TypeAlias = Annotated[boolean, Named("role")]


class Role:
    """The end of a link that sent a frame (2.8.1); a plain bool, also in Python."""

    SENDER: Final = False
    RECEIVER: Final = True


@restricted("sender-settle-mode", "ubyte")
class SenderSettleMode(IntEnum):
    """The way in which a sender settles (2.8.2)."""

    UNSETTLED = 0
    SETTLED = 1
    MIXED = 2


@restricted("receiver-settle-mode", "ubyte")
class ReceiverSettleMode(IntEnum):
    """The way in which a receiver settles (2.8.3)."""

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
    """The description of an error for the peer (2.8.14); not an exception."""

    condition: ErrorCondition
    description: string | None = None
    info: Fields | None = None


ErrorInfo: TypeAlias = Error
"""The public name of ``Error``, which could be taken for an exception."""

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
"""Delivery tags and their states, with a budget of their own for long lists."""


@composite("amqp:open:list", 0x10, provides=["frame"])
class Open:
    """The frame that opens a connection (2.7.1)."""

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
    """The frame that begins a session on a channel (2.7.2)."""

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
    """The frame that attaches a link to a session (2.7.3)."""

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
    """The frame that updates the flow state of a session or link (2.7.4)."""

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
    """The frame that contains a message, or a part of one (2.7.5)."""

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
    """The frame that changes the state of deliveries (2.7.6)."""

    role: RoleFlag
    first: DeliveryNumber
    last: DeliveryNumber | None = None
    settled: boolean = False
    state: DeliveryState | None = None
    batchable: boolean = False


@composite("amqp:detach:list", 0x16, provides=["frame"], scope="link")
class Detach:
    """The frame that detaches or closes a link (2.7.7)."""

    handle: Handle
    closed: boolean = False
    error: Error | None = None


@composite("amqp:end:list", 0x17, provides=["frame"], scope="session")
class End:
    """The frame that ends a session (2.7.8)."""

    error: Error | None = None


@composite("amqp:close:list", 0x18, provides=["frame"])
class Close:
    """The frame that closes a connection (2.7.9)."""

    error: Error | None = None
