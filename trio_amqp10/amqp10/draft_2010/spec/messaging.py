"""The types of Book IV of the draft of 2010 (2, 3, 5). Declarations only.

They are messages, transfer states, sources and targets.
"""

from enum import IntEnum
from typing import Annotated, Any, Final, TypeAlias

from trio_amqp10.amqp10.draft_2010.field_types import Options
from trio_amqp10.amqp10.wire.composite import composite
from trio_amqp10.amqp10.wire.fields import (
    Named,
    annotation_map,
    archetype,
    binary,
    boolean,
    string,
    symbol,
    symbol_map,
    timestamp,
    ubyte,
    uint,
    ulong,
)

from .transport import DOMAIN, Error, Symbols

MessageAttributes: TypeAlias = Annotated[annotation_map, Named("message-attributes")]
AnyType: TypeAlias = Annotated[Any, archetype("*", "*")]
OutcomeType: TypeAlias = Annotated[Any, archetype(name="outcome")]
LifetimeType: TypeAlias = Annotated[Any, archetype("lifetime-policy")]
FilterSet: TypeAlias = Annotated[symbol_map, Named(name="filter-set")]


class SectionCode(IntEnum):
    """The kinds of sections of a message (2.1)."""

    HEADER = 0
    PROPERTIES = 1
    FOOTER = 2
    DATA = 3
    AMQP_DATA = 4
    AMQP_MAP = 5
    AMQP_LIST = 6


# 2 message format --------------------------------------------------------------------------------


@composite("amqp:header:list", DOMAIN | 0x200, provides=["section"])
class Header:
    """The terms of delivery of the message (2.2)."""

    durable: boolean | None = None
    priority: ubyte | None = None
    transmit_time: timestamp | None = None
    ttl: ulong | None = None
    former_acquirers: uint | None = None
    delivery_failures: uint | None = None
    format_code: uint | None = None
    message_attrs: MessageAttributes | None = None
    delivery_attrs: MessageAttributes | None = None


@composite("amqp:properties:list", DOMAIN | 0x201, provides=["section"])
class MessageProperties:
    """The immutable properties of a message (2.3)."""

    message_id: binary | None = None
    user_id: binary | None = None
    to: AnyType | None = None
    subject: string | None = None
    reply_to: AnyType | None = None
    correlation_id: binary | None = None
    content_length: ulong | None = None
    content_type: symbol | None = None


@composite("amqp:footer:list", DOMAIN | 0x202, provides=["section"])
class Footer:
    """The attributes at the end of a message (2.4)."""

    message_attrs: MessageAttributes | None = None
    delivery_attrs: MessageAttributes | None = None


# 3 transfer state --------------------------------------------------------------------------------


@composite("amqp:accepted:map", DOMAIN | 0x204, provides=["outcome"], encoding="map")
class Accepted:
    """The message was processed (3.2)."""


@composite("amqp:rejected:map", DOMAIN | 0x205, provides=["outcome"], encoding="map")
class Rejected:
    """The message is invalid and cannot be processed (3.3)."""

    error: Error | None = None


@composite("amqp:released:map", DOMAIN | 0x206, provides=["outcome"], encoding="map")
class Released:
    """The message was not and will not be processed (3.4)."""


@composite("amqp:modified:map", DOMAIN | 0x207, provides=["outcome"], encoding="map")
class Modified:
    """The message was modified, but not processed (3.5)."""

    delivery_failed: boolean | None = None
    deliver_elsewhere: boolean | None = None
    message_attrs: MessageAttributes | None = None
    delivery_attrs: MessageAttributes | None = None


@composite("amqp:transfer-state:map", DOMAIN | 0x203, provides=["transfer-state"], encoding="map")
class TransferState:
    """The progress of a transfer, its outcome and its transaction (3.1)."""

    bytes_transferred: ulong | None = None
    outcome: OutcomeType | None = None
    txn_id: AnyType | None = None


# 5 sources and targets ---------------------------------------------------------------------------


@composite("amqp:filter:list", DOMAIN | 0x20A)
class Filter:
    """A predicate that chooses the messages of a link (5.6)."""

    filter_type: symbol
    filter: AnyType


@composite("amqp:source:map", DOMAIN | 0x208, provides=["source"], encoding="map")
class Source:
    """The terminus that the messages of a link come from (5.3)."""

    address: AnyType | None = None
    dynamic: LifetimeType | None = None
    distribution_mode: symbol | None = None
    filter: FilterSet | None = None
    default_outcome: OutcomeType | None = None
    outcomes: Symbols = ()
    capabilities: Symbols = ()


@composite("amqp:target:map", DOMAIN | 0x209, provides=["target"], encoding="map")
class Target:
    """The terminus that the messages of a link go to (5.4)."""

    address: AnyType | None = None
    dynamic: LifetimeType | None = None
    capabilities: Symbols = ()


@composite("amqp:delete-on-close:map", DOMAIN | 0x20B, provides=["lifetime-policy"], encoding="map")
class DeleteOnClose:
    """The node exists as long as the link that created it (5.8)."""

    options: Options | None = None


@composite("amqp:delete-on-no-links:map", DOMAIN | 0x20C, provides=["lifetime-policy"], encoding="map")
class DeleteOnNoLinks:
    """The node exists as long as links to it (5.9)."""

    options: Options | None = None


@composite("amqp:delete-on-no-messages:map", DOMAIN | 0x20D, provides=["lifetime-policy"], encoding="map")
class DeleteOnNoMessages:
    """The node exists as long as it has messages (5.10)."""

    options: Options | None = None


@composite(
    "amqp:delete-on-no-links-or-messages:map",
    DOMAIN | 0x20E,
    provides=["lifetime-policy"],
    encoding="map",
)
class DeleteOnNoLinksOrMessages:
    """The node exists as long as it has links or messages (5.11)."""

    options: Options | None = None


LIFETIMES: Final = (DeleteOnClose, DeleteOnNoLinks, DeleteOnNoMessages, DeleteOnNoLinksOrMessages)
