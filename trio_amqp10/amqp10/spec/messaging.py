"""Declarations of Part 3: message sections, states and termini (3.2, 3.4, 3.5).

The order is that of the standard, except that enumerations precede their use.
"""

from enum import IntEnum
from typing import Annotated, Any, Final, TypeAlias

from trio_amqp10.amqp10.wire.composite import Section, composite
from trio_amqp10.amqp10.wire.fields import (
    Multiple,
    Named,
    Requires,
    annotation_map,
    archetype,
    binary,
    boolean,
    restricted,
    string,
    symbol,
    symbol_map,
    timestamp,
    ubyte,
    uint,
    ulong,
)
from trio_amqp10.amqp10.wire.values import Symbol

from .transport import Error, Milliseconds, Seconds, SequenceNo

# 3.2 message format ------------------------------------------------------------------------------

MessageId: TypeAlias = Annotated[Any, archetype("message-id", "ulong", "uuid", "binary", "string")]
Address: TypeAlias = Annotated[Any, archetype("address", "string")]


@composite("amqp:header:list", 0x70, provides=["section"])
class Header:
    """The transport headers of a message (3.2.1)."""

    durable: boolean = False
    priority: ubyte = 4
    ttl: Milliseconds | None = None
    first_acquirer: boolean = False
    delivery_count: uint = 0


DELIVERY_ANNOTATIONS: Final[Section] = Section("amqp:delivery-annotations:map", 0x71)
MESSAGE_ANNOTATIONS: Final[Section] = Section("amqp:message-annotations:map", 0x72)


@composite("amqp:properties:list", 0x73, provides=["section"])
class Properties:
    """The immutable properties of the message (3.2.4)."""

    message_id: MessageId | None = None
    user_id: binary | None = None
    to: Address | None = None
    subject: string | None = None
    reply_to: Address | None = None
    correlation_id: MessageId | None = None
    content_type: symbol | None = None
    content_encoding: symbol | None = None
    absolute_expiry_time: timestamp | None = None
    creation_time: timestamp | None = None
    group_id: string | None = None
    group_sequence: SequenceNo | None = None
    reply_to_group_id: string | None = None


APPLICATION_PROPERTIES: Final[Section] = Section("amqp:application-properties:map", 0x74)
DATA: Final[Section] = Section("amqp:data:binary", 0x75)
AMQP_SEQUENCE: Final[Section] = Section("amqp:amqp-sequence:list", 0x76)
AMQP_VALUE: Final[Section] = Section("amqp:amqp-value:*", 0x77)
FOOTER: Final[Section] = Section("amqp:footer:map", 0x78)

MESSAGE_FORMAT: Final = 0

FieldsOfAnnotations: TypeAlias = Annotated[annotation_map, Named("fields")]
"""Fields that are merged into annotations; keys may be ulongs (3.4.5, 3.2.10)."""

# 3.4 delivery state ------------------------------------------------------------------------------


@composite("amqp:received:list", 0x23, provides=["delivery-state"])
class Received:
    """The progress of a delivery (3.4.1)."""

    section_number: uint
    section_offset: ulong


@composite("amqp:accepted:list", 0x24, provides=["delivery-state", "outcome"])
class Accepted:
    """The outcome of a message that was processed (3.4.2)."""


@composite("amqp:rejected:list", 0x25, provides=["delivery-state", "outcome"])
class Rejected:
    """The outcome of a message that is invalid and cannot be processed (3.4.3)."""

    error: Error | None = None


@composite("amqp:released:list", 0x26, provides=["delivery-state", "outcome"])
class Released:
    """The outcome of a message that was not processed and will not be (3.4.4)."""


@composite("amqp:modified:list", 0x27, provides=["delivery-state", "outcome"])
class Modified:
    """The outcome of a message that was modified, but not processed (3.4.5)."""

    delivery_failed: boolean | None = None
    undeliverable_here: boolean | None = None
    message_annotations: FieldsOfAnnotations | None = None


Outcome: TypeAlias = Accepted | Rejected | Released | Modified
ACCEPTED: Final = Accepted()
RELEASED: Final = Released()

# 3.5 sources and targets -------------------------------------------------------------------------


@restricted("terminus-durability", "uint")
class TerminusDurability(IntEnum):
    """The parts of a terminus that survive (3.5.5)."""

    NONE = 0
    CONFIGURATION = 1
    UNSETTLED_STATE = 2


class ExpiryPolicy:
    """The moment when the expiry timer of a terminus starts (3.5.6); an open set."""

    LINK_DETACH: Final = Symbol("link-detach")
    SESSION_END: Final = Symbol("session-end")
    CONNECTION_CLOSE: Final = Symbol("connection-close")
    NEVER: Final = Symbol("never")


class DistributionMode:
    """Whether messages move to a link or are copied to it (3.5.7); an open set."""

    MOVE: Final = Symbol("move")
    COPY: Final = Symbol("copy")


TerminusExpiryPolicy: TypeAlias = Annotated[symbol, Named("terminus-expiry-policy")]
DistributionModeSymbol: TypeAlias = Annotated[symbol, Requires("distribution-mode")]
FilterSet: TypeAlias = Annotated[symbol_map, Named("filter-set")]
NodeProperties: TypeAlias = Annotated[symbol_map, Named("node-properties")]
OutcomeType: TypeAlias = Annotated[Any, archetype("outcome")]


@composite("amqp:source:list", 0x28, provides=["source"])
class Source:
    """The terminus that messages of a link come from (3.5.3)."""

    address: Address | None = None
    durable: TerminusDurability = TerminusDurability.NONE
    expiry_policy: TerminusExpiryPolicy = ExpiryPolicy.SESSION_END
    timeout: Seconds = 0
    dynamic: boolean = False
    dynamic_node_properties: NodeProperties | None = None
    distribution_mode: DistributionModeSymbol | None = None
    filter: FilterSet | None = None
    default_outcome: OutcomeType | None = None
    outcomes: Multiple[symbol] = ()
    capabilities: Multiple[symbol] = ()


@composite("amqp:target:list", 0x29, provides=["target"])
class Target:
    """The terminus that messages of a link go to (3.5.4)."""

    address: Address | None = None
    durable: TerminusDurability = TerminusDurability.NONE
    expiry_policy: TerminusExpiryPolicy = ExpiryPolicy.SESSION_END
    timeout: Seconds = 0
    dynamic: boolean = False
    dynamic_node_properties: NodeProperties | None = None
    capabilities: Multiple[symbol] = ()


@composite("amqp:delete-on-close:list", 0x2B, provides=["lifetime-policy"])
class DeleteOnClose:
    """The lifetime of a node that ends with the link that created it (3.5.10)."""


@composite("amqp:delete-on-no-links:list", 0x2C, provides=["lifetime-policy"])
class DeleteOnNoLinks:
    """The lifetime of a node that ends when it has no links (3.5.11)."""


@composite("amqp:delete-on-no-messages:list", 0x2D, provides=["lifetime-policy"])
class DeleteOnNoMessages:
    """The lifetime of a node until its creator's link and messages are gone (3.5.12)."""


@composite("amqp:delete-on-no-links-or-messages:list", 0x2E, provides=["lifetime-policy"])
class DeleteOnNoLinksOrMessages:
    """The lifetime of a node that ends when it has no links and no messages (3.5.13)."""
