"""The types of Book III of the draft of 2010: frame bodies, definitions (7, 8).

Declarations only. The available text of the draft lacks the lists of fields of nearly all types; their order, types and
codes are those of the working group's own definitions of the same revision. A descriptor's upper half is its domain,
which is 1 (D 310-318).
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeAlias

from trio_amqp10.amqp10.draft_2010.field_types import Options, several
from trio_amqp10.amqp10.wire.composite import composite
from trio_amqp10.amqp10.wire.fields import (
    Named,
    OwnBudget,
    archetype,
    binary,
    boolean,
    plain_map,
    string,
    symbol,
    symbol_map,
    uint,
    ulong,
    ushort,
)
from trio_amqp10.amqp10.wire.values import Symbol

DOMAIN: Final = 1 << 32
MIN_MAX_FRAME_SIZE: Final = 4096
"""Octets of a frame that every peer must accept (D 649-651, 1628-1636)."""

RoleFlag: TypeAlias = Annotated[boolean, Named("role")]
Handle: TypeAlias = Annotated[uint, Named("handle")]
Seconds: TypeAlias = Annotated[uint, Named("seconds")]
DeliveryTag: TypeAlias = Annotated[binary, Named("delivery-tag")]
TransferNumber: TypeAlias = Annotated[uint, Named("transfer-number")]
SequenceNo: TypeAlias = Annotated[uint, Named("sequence-no")]
Fields: TypeAlias = Annotated[symbol_map, Named("fields")]
Symbols: TypeAlias = Annotated[Sequence[str], several(symbol)]
Strings: TypeAlias = Annotated[Sequence[str], several(string)]
SourceType: TypeAlias = Annotated[Any, archetype("source")]
TargetType: TypeAlias = Annotated[Any, archetype("target")]
TransferStateType: TypeAlias = Annotated[Any, archetype("transfer-state")]
Unsettled: TypeAlias = Annotated[plain_map, OwnBudget(65_536)]


class LinkExpiryPolicy:
    """The events at which the expiry timer of a link endpoint starts (8.4)."""

    SESSION: Final = Symbol("session")
    CONNECTION: Final = Symbol("connection")
    NEVER: Final = Symbol("never")


class ErrorMode:
    """The parts that an error of a link ends (8.14)."""

    DETACH: Final = Symbol("detach")
    END: Final = Symbol("end")


# 8 definitions, which the frame bodies are written in --------------------------------------------


@composite("amqp:linkage:list", DOMAIN | 0x109)
class Linkage:
    """The source and target of a link, as one peer sees them (8.3)."""

    source: SourceType | None = None
    target: TargetType | None = None


@composite("amqp:flow-state:list", DOMAIN | 0x10A)
class FlowState:
    """The counts and credits of a session and a link (8.6)."""

    unsettled_lwm: TransferNumber | None = None
    session_credit: uint
    transfer_count: SequenceNo | None = None
    link_credit: uint | None = None
    available: uint | None = None
    drain: boolean | None = None


@composite("amqp:extent:list", DOMAIN | 0x10B)
class Extent:
    """A range of transfers, and their state (8.10)."""

    first: TransferNumber
    last: TransferNumber | None = None
    handle: Handle | None = None
    settled: boolean | None = None
    state: TransferStateType | None = None


@composite("amqp:fragment:list", DOMAIN | 0x10C)
class Fragment:
    """A part of a section of a message (8.11)."""

    first: boolean | None = None
    last: boolean | None = None
    format_code: uint | None = None
    fragment_offset: ulong | None = None
    payload: binary | None = None


@composite("amqp:error:list", DOMAIN | 0x10D)
class Error:
    """The reason for an abnormal end (8.15)."""

    condition: symbol
    description: string | None = None
    info: Fields | None = None


Extents: TypeAlias = Annotated[Sequence[Extent], several(Extent), OwnBudget(65_536)]
Fragments: TypeAlias = Annotated[Sequence[Fragment], several(Fragment), OwnBudget(65_536)]
"""The fragments of a transfer.

A frame may have as many as it has room for (D 1126), so they have their own budget.
"""

# 7 frame bodies ----------------------------------------------------------------------------------


@composite("amqp:open:list", DOMAIN | 0x100, provides=["frame"])
class Open:
    """Negotiates the parameters of a connection (7.1)."""

    options: Options | None = None
    container_id: string  # of the peer that sends the open
    hostname: string | None = None
    max_frame_size: uint | None = None
    channel_max: ushort
    heartbeat_interval: Seconds | None = None
    outgoing_locales: Strings = ()
    incoming_locales: Strings = ()
    offered_capabilities: Symbols = ()
    desired_capabilities: Symbols = ()
    properties: Fields | None = None


@composite("amqp:begin:list", DOMAIN | 0x101, provides=["frame"], scope="session")
class Begin:
    """Begins a session on a channel (7.2)."""

    options: Options | None = None
    remote_channel: ushort | None = None
    offered_capabilities: Symbols = ()
    desired_capabilities: Symbols = ()
    properties: Fields | None = None


@composite("amqp:attach:list", DOMAIN | 0x102, provides=["frame"], scope="session")
class Attach:
    """Attaches a link to a session (7.3)."""

    options: Options | None = None
    name: string
    handle: Handle
    flow_state: FlowState
    role: RoleFlag
    local: Linkage | None = None
    remote: Linkage | None = None
    durable: boolean | None = None
    expiry_policy: symbol | None = None
    timeout: Seconds | None = None
    unsettled: Unsettled | None = None
    transfer_unit: ulong | None = None
    max_message_size: ulong | None = None
    error_mode: symbol | None = None
    properties: Fields | None = None


@composite("amqp:flow:list", DOMAIN | 0x103, provides=["frame"], scope="session")
class Flow:
    """Updates the state of a link (7.4)."""

    options: Options | None = None
    handle: Handle
    flow_state: FlowState
    echo: boolean | None = None


@composite("amqp:transfer:list", DOMAIN | 0x104, provides=["frame"], scope="session")
class Transfer:
    """Carries a message, or a part of one (7.5)."""

    options: Options | None = None
    handle: Handle
    flow_state: FlowState
    delivery_tag: DeliveryTag
    transfer_id: TransferNumber
    settled: boolean | None = None
    state: TransferStateType | None = None
    resume: boolean | None = None
    more: boolean | None = None
    aborted: boolean | None = None
    batchable: boolean | None = None
    fragments: Fragments = ()


@composite("amqp:disposition:list", DOMAIN | 0x105, provides=["frame"], scope="session")
class Disposition:
    """Informs the peer of changed states of transfers (7.6)."""

    options: Options | None = None
    role: RoleFlag
    batchable: boolean | None = None
    extents: Extents = ()


@composite("amqp:detach:list", DOMAIN | 0x106, provides=["frame"], scope="session")
class Detach:
    """Detaches a link; without a local linkage, closes it (7.7; 6.5)."""

    options: Options | None = None
    handle: Handle
    local: Linkage | None = None
    remote: Linkage | None = None
    error: Error | None = None


@composite("amqp:end:list", DOMAIN | 0x107, provides=["frame"], scope="session")
class End:
    """Ends a session (7.8)."""

    options: Options | None = None
    error: Error | None = None


@composite("amqp:close:list", DOMAIN | 0x108, provides=["frame"])
class Close:
    """Closes a connection (7.9)."""

    options: Options | None = None
    error: Error | None = None
