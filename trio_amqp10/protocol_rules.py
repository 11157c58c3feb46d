"""The rules that hold for what a peer sends, by name: where the standard has each, and what breaking it ends.

One table, and nothing else: whoever finds a rule broken takes the words from here, so that the name stands in
the exception, in the error that the peer is sent, and in the manual. Some limits of ours are among them: the
standard leaves how much an end can take to that end (2.8.15, ``amqp:resource-limit-exceeded``).

Twelve rules can be held strictly or not: ``Strict`` says which. Knows no frame, and no endpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from .errors import Condition, RemoteProtocolError, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RULES", "ProtocolRule", "Strict"]

_C = Condition


@dataclass(frozen=True, slots=True)
class ProtocolRule:
    """Something that a peer may not do.

    Attributes:
        name: what errors call it.
        section: of the standard; more than one where it takes them together.
        condition: the error condition of a breach.
        scope: how much of the conversation it ends.
        summary: what is due.
    """

    name: str
    section: str
    condition: Condition
    scope: Scope
    summary: str

    @property
    def optional(self) -> bool:
        """Whether it is one of those that ``Strict`` is about."""
        return self.name.replace("-", "_") in _SETTINGS

    def says(self, what: str) -> str:
        """What was wrong, with the place in the standard."""
        return f"{what} ({self.section})"

    def broken(
        self, what: str, *, scope: Scope | None = None, info: dict[str, Any] | None = None
    ) -> RemoteProtocolError:
        """The exception for a breach.

        Args:
            what: what was wrong, with the value where there is one.
            scope: where the same rule ends less than it does otherwise.
            info: the ``info`` map that goes with the error, if any.
        """
        return RemoteProtocolError(
            self.says(what), self.condition, self.scope if scope is None else scope, info, rule=self.name
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Strict:
    """Which rules to hold strictly, of those where peers that break them can be lived with.

    The defaults take what peers in the field really send, where that costs nothing, and are strict
    elsewhere. ``Strict.all(True)`` and ``Strict.all(False)`` are the two ends.

    Attributes:
        sasl_frame_size: frames of the SASL layer have 512 octets at most (5.3.1); otherwise 8,192, for tokens
            are longer.
        open_frame_size: an open that comes before ours is out has 512 octets at most (2.4.1); otherwise 8,192, for
            property maps are longer.
        permitted_outcome: an outcome that the source does not permit ends the link (3.5.3); otherwise the
            default outcome takes its place.
        initial_delivery_count: a sender's attach has to name it (2.7.3); otherwise nothing means 0.
        duplicate_map_keys: a map with the same key twice is none (1.6.23); otherwise the last one counts. In
            performatives and in messages.
        field_keys: the keys of properties, of ``info`` and of filter sets are symbols (2.8.13, 3.5.8); otherwise a key
            of any type is taken.
        annotation_keys: an annotation that is not known here, which is every one whose key does not begin with
            ``x-opt-``, ends the link (3.2.10); otherwise they are kept and passed on. Not where a message is
            read while it comes in.
        section_order: the sections of a message come in their order (3.2); otherwise in any, each once. Not
            where a message is read while it comes in.
        incoming_window: a transfer beyond our window ends the session (2.5.6); otherwise as many again are
            taken.
        link_credit: a delivery beyond its credit ends the link (2.6.7); otherwise it is taken while no more than
            ``Limits.incoming_window`` deliveries wait.
        settle_mode: a delivery that is sent settled on a link of snd-settle-mode unsettled, or unsettled on one of mode
            settled, ends the link (2.7.5); otherwise it is taken as it comes, and counted.
        handle_max: a handle above what we announced closes the connection (2.7.2); otherwise it is taken, while
            there are handles of ours for the answers.
        attach_after_error: after a detach of ours with an error that did not close the link, its name comes back
            with an unsettled map only (2.6.5); otherwise an attach without one is that of a new link.
    """

    sasl_frame_size: bool = False
    open_frame_size: bool = False
    permitted_outcome: bool = False
    initial_delivery_count: bool = False
    field_keys: bool = False
    annotation_keys: bool = False
    duplicate_map_keys: bool = True
    section_order: bool = True
    incoming_window: bool = True
    link_credit: bool = True
    settle_mode: bool = False
    handle_max: bool = True
    attach_after_error: bool = False

    @classmethod
    def all(cls, strict: bool) -> Strict:
        """Every rule strictly, or none."""
        return cls(**dict.fromkeys(_SETTINGS, strict))


_SETTINGS: Final = frozenset(setting.name for setting in fields(Strict))

# Part 1: types -------------------------------------------------------------------------------------

ENCODING: Final = ProtocolRule(
    "encoding",
    "1.2",
    _C.DECODE_ERROR,
    "connection",
    "octets are values in one of the standard's encodings, whole, and as long as their sizes and counts say",
)
DUPLICATE_MAP_KEYS: Final = ProtocolRule(
    "duplicate-map-keys", "1.6.23", _C.DECODE_ERROR, "connection", "a map has each key once"
)
FIELD: Final = ProtocolRule(
    "field",
    "1.4",
    _C.INVALID_FIELD,
    "connection",
    "a field has the type that is declared, and a value where it is mandatory; "
    "one that has not ends what its frame was about: a link, a session, or the connection",
)
FIELD_KEYS: Final = ProtocolRule(
    "field-keys",
    "2.8.13",
    _C.INVALID_FIELD,
    "connection",
    "the keys of a map of ``fields``, such as properties and a filter set, are symbols; "
    "one that is not ends what its frame was about, as of ``field``",
)
SURPLUS_FIELDS: Final = ProtocolRule(
    "surplus-fields", "1.4", _C.DECODE_ERROR, "connection", "a composite has no more fields than are declared"
)
NESTING: Final = ProtocolRule(
    "nesting", "2.8.15", _C.DECODE_ERROR, "connection", "values are nested at most 32 deep"
)
VALUES: Final = ProtocolRule(
    "values",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "connection",
    "a performative holds at most ``Limits.performative_nodes`` values, a section of a message 65,536",
)

# Part 2: transport ---------------------------------------------------------------------------------

PROTOCOL_HEADER: Final = ProtocolRule(
    "protocol-header",
    "2.2",
    _C.FRAMING_ERROR,
    "connection",
    "a connection begins with the protocol header of a layer that is taken here",
)
FRAME_HEADER: Final = ProtocolRule(
    "frame-header",
    "2.3.1",
    _C.FRAMING_ERROR,
    "connection",
    "the size of a frame covers its header, and its data offset lies within it and behind eight octets",
)
MAX_FRAME_SIZE: Final = ProtocolRule(
    "max-frame-size", "2.7.1", _C.FRAMING_ERROR, "connection", "a frame is no larger than we announced"
)
OPEN_FRAME_SIZE: Final = ProtocolRule(
    "open-frame-size", "2.4.1", _C.FRAMING_ERROR, "connection", "an open has at most 512 octets"
)
FRAME_TYPE: Final = ProtocolRule(
    "frame-type", "2.3.1", _C.FRAMING_ERROR, "connection", "frames are of the type of their layer"
)
PERFORMATIVE: Final = ProtocolRule(
    "performative",
    "2.3.2",
    _C.FRAMING_ERROR,
    "connection",
    "a frame's body begins with a performative of its layer",
)
PAYLOAD: Final = ProtocolRule(
    "payload", "2.3.2", _C.DECODE_ERROR, "connection", "nothing follows a performative but that of a transfer"
)
OPEN_FIRST: Final = ProtocolRule(
    "open-first", "2.4.1", _C.FRAMING_ERROR, "connection", "the first frame is an open"
)
OPEN_ONCE: Final = ProtocolRule("open-once", "2.4.1", _C.ILLEGAL_STATE, "connection", "there is one open")
OPEN_CHANNEL: Final = ProtocolRule(
    "open-channel", "2.4.1", _C.FRAMING_ERROR, "connection", "an open is on channel 0"
)
CONNECTION_STATE: Final = ProtocolRule(
    "connection-state",
    "2.4.6",
    _C.FRAMING_ERROR,
    "connection",
    "headers, open and close come in the order of the connection's states",
)
MIN_MAX_FRAME_SIZE: Final = ProtocolRule(
    "min-max-frame-size", "2.7.1", _C.INVALID_FIELD, "connection", "every end takes frames of 512 octets"
)
IDLE_TIME_OUT: Final = ProtocolRule(
    "idle-time-out",
    "2.4.5",
    _C.NOT_ALLOWED,
    "connection",
    "no end asks to be spoken to more often than ``Limits.min_idle_timeout`` allows",
)
IDLE: Final = ProtocolRule(
    "idle",
    "2.4.5",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "connection",
    "no end is silent for longer than the time-out that was announced",
)
ANSWER: Final = ProtocolRule(
    "answer",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "connection",
    "a begin, an attach, a declare and a discharge are answered within ``Limits.answer_timeout``",
)
NO_TERMINUS: Final = ProtocolRule(
    "no-terminus",
    "2.6.3",
    _C.NOT_ALLOWED,
    "link",
    "who answers an attach without a terminus of its own detaches the link, within ``Limits.close_timeout``",
)
HEARTBEATS: Final = ProtocolRule(
    "heartbeats",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "connection",
    "empty frames come no faster than ``Limits.heartbeat_rate``",
)
PIPELINED_FRAME_SIZE: Final = ProtocolRule(
    "pipelined-frame-size",
    "2.8.15",
    _C.FRAME_SIZE_TOO_SMALL,
    "connection",
    "the peer's frames have room for what was written before its open was read",
)
ANSWER_SIZE: Final = ProtocolRule(
    "answer-size",
    "2.8.15",
    _C.FRAME_SIZE_TOO_SMALL,
    "session",
    "the peer's frames have room for the answers that it asks for",
)
CHANNEL_MAX: Final = ProtocolRule(
    "channel-max", "2.7.1", _C.FRAMING_ERROR, "connection", "no channel is above the one that we announced"
)
SESSIONS: Final = ProtocolRule(
    "sessions",
    "2.7.1",
    _C.NOT_ALLOWED,
    "connection",
    "there are no more sessions than both ends have channels for",
)
CHANNEL_IN_USE: Final = ProtocolRule(
    "channel-in-use", "2.5.1", _C.FRAMING_ERROR, "connection", "a begin is on a channel that is free"
)
REMOTE_CHANNEL: Final = ProtocolRule(
    "remote-channel",
    "2.7.2",
    _C.NOT_ALLOWED,
    "connection",
    "a begin that names a remote-channel answers a begin of ours, once",
)
MAPPED_CHANNEL: Final = ProtocolRule(
    "mapped-channel", "2.5.1", _C.NOT_ALLOWED, "connection", "frames are on channels that a begin has mapped"
)
ENDPOINT_STATE: Final = ProtocolRule(
    "endpoint-state",
    "2.5.5",
    _C.ILLEGAL_STATE,
    "connection",
    "begin and end, attach and detach come in the order of the states of sessions and links",
)
CHURN: Final = ProtocolRule(
    "churn",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "connection",
    "sessions and links that were not answered yet are ended no faster than ``Limits.churn_rate``",
)
INCOMING_WINDOW: Final = ProtocolRule(
    "incoming-window", "2.5.6", _C.WINDOW_VIOLATION, "session", "transfers stay within our incoming window"
)
NEXT_INCOMING_ID: Final = ProtocolRule(
    "next-incoming-id",
    "2.5.6",
    _C.WINDOW_VIOLATION,
    "session",
    "a flow acknowledges no transfer that was never sent",
)
HANDLE_MAX: Final = ProtocolRule(
    "handle-max", "2.7.2", _C.FRAMING_ERROR, "connection", "no handle is above the one that we announced"
)
HANDLE_IN_USE: Final = ProtocolRule(
    "handle-in-use", "2.7.3", _C.HANDLE_IN_USE, "session", "an attach takes a handle that is free"
)
HANDLES: Final = ProtocolRule(
    "handles",
    "2.7.2",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "session",
    "there are no more links in a session than both ends have handles for",
)
UNATTACHED_HANDLE: Final = ProtocolRule(
    "unattached-handle",
    "2.7.4",
    _C.UNATTACHED_HANDLE,
    "session",
    "flow, transfer and detach name a handle that an attach has taken",
)
ERRANT_LINK: Final = ProtocolRule(
    "errant-link",
    "2.6.5",
    _C.ERRANT_LINK,
    "session",
    "nothing comes on a handle behind the detach that answered ours, nor once the peer has shown that it read a"
    " detach of ours with an error; what it wrote before is dropped",
)
ATTACH_AFTER_ERROR: Final = ProtocolRule(
    "attach-after-error",
    "2.6.5",
    _C.ERRANT_LINK,
    "session",
    "an attach of a link that we detached with an error, and did not close, resumes it: its unsettled map is not null",
)
LINKS: Final = ProtocolRule(
    "links",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "link",
    "there are at most ``Limits.max_links`` links on a connection",
)
ONE_ATTACHMENT: Final = ProtocolRule(
    "one-attachment",
    "2.6.1",
    _C.STOLEN,
    "link",
    "a link is attached once: where it is attached anew, the attachment before is over",
)
INITIAL_DELIVERY_COUNT: Final = ProtocolRule(
    "initial-delivery-count",
    "2.7.3",
    _C.INVALID_FIELD,
    "link",
    "the attach of a sender names its first count",
)
INCOMPLETE_UNSETTLED: Final = ProtocolRule(
    "incomplete-unsettled",
    "2.7.3",
    _C.ILLEGAL_STATE,
    "link",
    "no new delivery is sent to a receiver whose unsettled map was incomplete",
)
UNSETTLED_MAP_SIZE: Final = ProtocolRule(
    "unsettled-map-size",
    "2.7.3",
    _C.FRAME_SIZE_TOO_SMALL,
    "link",
    "unsettled maps that fit no frame become shorter from one attach to the next",
)
LINK_CREDIT: Final = ProtocolRule(
    "link-credit",
    "2.6.7",
    _C.TRANSFER_LIMIT_EXCEEDED,
    "link",
    "deliveries stay within the credit of their link",
)
LINK_DIRECTION: Final = ProtocolRule(
    "link-direction", "2.6.7", _C.NOT_ALLOWED, "link", "transfers go from the sender to the receiver"
)
FIRST_DELIVERY_ID: Final = ProtocolRule(
    "first-delivery-id",
    "2.7.5",
    _C.INVALID_FIELD,
    "link",
    "the first transfer of a delivery has a delivery-id",
)
DELIVERY_ID_ORDER: Final = ProtocolRule(
    "delivery-id-order", "2.7.5", _C.INVALID_FIELD, "session", "delivery-ids of a session count up one by one"
)
DELIVERY_TAG: Final = ProtocolRule(
    "delivery-tag",
    "2.7.5, 2.8.7",
    _C.INVALID_FIELD,
    "link",
    "the first transfer of a delivery has a delivery-tag of at most 32 octets",
)
UNIQUE_TAG: Final = ProtocolRule(
    "unique-tag", "2.7.5", _C.INVALID_FIELD, "link", "no two unsettled deliveries of a link have one tag"
)
CONTINUATION: Final = ProtocolRule(
    "continuation",
    "2.7.5",
    _C.INVALID_FIELD,
    "link",
    "the transfers of a delivery agree in delivery-id, delivery-tag and message-format",
)
SETTLED_STAYS: Final = ProtocolRule(
    "settled-stays", "2.7.5", _C.INVALID_FIELD, "link", "a delivery that was settled stays so"
)
TRANSFER_SETTLE_MODE: Final = ProtocolRule(
    "transfer-settle-mode",
    "2.7.5",
    _C.INVALID_FIELD,
    "link",
    "a transfer does not ask for rcv-settle-mode second on a link that settles first",
)
SETTLE_MODE: Final = ProtocolRule(
    "settle-mode",
    "2.7.5",
    _C.INVALID_FIELD,
    "link",
    "deliveries are never sent settled on a link of snd-settle-mode unsettled, and always on one of mode settled",
)
MAX_MESSAGE_SIZE: Final = ProtocolRule(
    "max-message-size", "2.7.3", _C.MESSAGE_SIZE_EXCEEDED, "link", "a message is no larger than we announced"
)
EMPTY_TRANSFERS: Final = ProtocolRule(
    "empty-transfers",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "connection",
    "one delivery has at most ``Limits.empty_transfers`` transfers without payload",
)
PARTIAL_DELIVERIES: Final = ProtocolRule(
    "partial-deliveries",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "link",
    "deliveries in progress hold at most ``Limits.partial_octets`` on a connection, and what a listener says on all; the largest goes",
)
DISPOSITION_RANGE: Final = ProtocolRule(
    "disposition-range",
    "2.7.6",
    _C.INVALID_FIELD,
    "session",
    "the last of a disposition is not before its first",
)

# Part 3: messaging ---------------------------------------------------------------------------------

SECTIONS: Final = ProtocolRule(
    "sections",
    "3.2",
    _C.DECODE_ERROR,
    "link",
    "a message is made of the standard's sections, each well formed",
)
SECTION_ORDER: Final = ProtocolRule(
    "section-order",
    "3.2",
    _C.DECODE_ERROR,
    "link",
    "the sections of a message come in their order, each once",
)
ANNOTATION_KEYS: Final = ProtocolRule(
    "annotation-keys",
    "3.2.10",
    _C.NOT_IMPLEMENTED,
    "link",
    "keys of annotations begin with x-opt-, for no others are known here",
)
BODY_SECTIONS: Final = ProtocolRule(
    "body-sections",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "link",
    "a message has at most 65,536 body sections, and at most 1 MiB beside the body where that is streamed",
)
DELIVERY_STATE: Final = ProtocolRule(
    "delivery-state", "3.4", _C.NOT_IMPLEMENTED, "link", "delivery states are those of the standard"
)
PERMITTED_OUTCOME: Final = ProtocolRule(
    "permitted-outcome", "3.5.3", _C.INVALID_FIELD, "link", "outcomes are among those that the source permits"
)
TERMINUS: Final = ProtocolRule(
    "terminus",
    "3.5",
    _C.NOT_IMPLEMENTED,
    "link",
    "sources and targets are those of the standard, and coordinators (4.5.1)",
)

# Part 5: security ----------------------------------------------------------------------------------

SECURITY_LAYER: Final = ProtocolRule(
    "security-layer",
    "2.2, 5.3",
    _C.FRAMING_ERROR,
    "connection",
    "nobody begins with a layer less secure than is asked for here",
)
SASL_FRAME_SIZE: Final = ProtocolRule(
    "sasl-frame-size", "5.3.1", _C.FRAMING_ERROR, "connection", "a SASL frame has at most 512 octets"
)
SASL_FRAME: Final = ProtocolRule(
    "sasl-frame",
    "5.3.1",
    _C.FRAMING_ERROR,
    "connection",
    "a SASL frame is of the SASL type, and holds one performative and nothing else",
)
SASL_ORDER: Final = ProtocolRule(
    "sasl-order",
    "5.3.2",
    _C.ILLEGAL_STATE,
    "connection",
    "SASL performatives come from the end that may send them, in their order",
)
SASL_ROUNDS: Final = ProtocolRule(
    "sasl-rounds", "2.8.15", _C.RESOURCE_LIMIT_EXCEEDED, "connection", "an exchange has at most 8 challenges"
)
SASL_PATIENCE: Final = ProtocolRule(
    "sasl-patience",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "connection",
    "at most 32,768 octets follow a SASL frame before the outcome",
)
SASL_CHALLENGE: Final = ProtocolRule(
    "sasl-challenge",
    "5.3.3.3",
    _C.DECODE_ERROR,
    "connection",
    "a challenge is what the mechanism says that it is",
)

RULES: Final[Mapping[str, ProtocolRule]] = {
    rule.name: rule for rule in list(globals().values()) if isinstance(rule, ProtocolRule)
}
"""Every rule, by its name, in the order of the standard's parts."""
