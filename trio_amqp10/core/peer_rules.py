"""The rules for a peer, by name, with section and error condition.

The code that finds a rule broken takes the error from this table, so that the name of the rule appears in
the exception, in the error sent to the peer, and in the manual. Some of our own limits are among them: the
standard lets each end limit its resources (2.8.15, ``amqp:resource-limit-exceeded``).

``Strict`` selects which of some rules are enforced. Knows no frame, and no endpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from .errors import Condition, RemoteProtocolError, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

_C = Condition


@dataclass(frozen=True, slots=True)
class ProtocolRule:
    """A rule that a peer must keep.

    Attributes:
        name: its name in errors.
        section: of the standard; more than one if several define it.
        condition: the error condition of a violation.
        summary: the rule itself.
        scope: the part of the conversation that a violation ends.
    """

    name: str
    section: str
    condition: Condition
    summary: str
    scope: Scope

    @property
    def optional(self) -> bool:
        """Whether ``Strict`` can switch the rule off."""
        return self.name.replace("-", "_") in _SETTINGS

    def describe(self, what: str) -> str:
        """Return the description of a violation, with the section."""
        return f"{what} ({self.section})"

    def broken(
        self, what: str, *, scope: Scope | None = None, info: dict[str, Any] | None = None
    ) -> RemoteProtocolError:
        """Return the exception for a violation.

        Args:
            what: the fault, with the value if there is one.
            scope: a smaller scope than the rule's own; None for its own.
            info: the ``info`` map of the error, if any.
        """
        return RemoteProtocolError(
            self.describe(what), self.condition, self.scope if scope is None else scope, info, rule=self.name
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Strict:
    """The rules that are enforced strictly, among those that peers often break.

    The defaults accept what existing peers really send, if that does no harm, and are strict
    otherwise. ``Strict.all(True)`` and ``Strict.all(False)`` are the extremes. A breach that is accepted is counted,
    under the name of the rule here, in ``tolerated`` of the statistics of the connection.

    Attributes:
        sasl_frame_size: frames of the SASL layer have at most 512 octets (5.3.1); otherwise 8,192, because tokens
            are longer.
        open_frame_size: an open that arrives before ours was sent has at most 512 octets (2.4.1); otherwise 8,192, because
            property maps are longer.
        permitted_outcome: an outcome that the source does not permit ends the link (3.5.3); otherwise the
            default outcome replaces it.
        initial_delivery_count: a sender's attach must contain it (2.7.3); otherwise a missing one means 0.
        duplicate_map_keys: a map with a duplicate key is invalid (1.6.23); otherwise the last value counts. This applies to
            performatives and messages.
        field_keys: the keys of properties, of ``info`` and of filter sets are symbols (2.8.13, 3.5.8); otherwise a key
            of any type is accepted.
        annotation_keys: an unknown annotation, that is each whose key does not begin with
            ``x-opt-``, ends the link (3.2.10); otherwise it is kept and passed on. Not checked if a message is
            read while it arrives.
        section_order: the sections of a message are in the standard's order (3.2); otherwise in any order, each once. Not
            checked if a message is read while it arrives.
        incoming_window: a transfer beyond our window ends the session (2.5.6); otherwise as many transfers again are
            accepted.
        link_credit: a delivery beyond its credit ends the link (2.6.7); otherwise it is accepted while at most
            ``Limits.incoming_window`` deliveries wait.
        settle_mode: a delivery that is sent settled on a link of snd-settle-mode unsettled, or unsettled on one of mode
            settled, ends the link (2.7.5); otherwise it is accepted, and counted.
        handle_max: a handle above our handle-max closes the connection (2.7.2); otherwise it is accepted, while
            we have free handles for the answers.
        attach_after_error: after we detached a link with an error without closing it, an attach of the same name must have
            an unsettled map (2.6.5); otherwise an attach without one begins a new link.
    """

    sasl_frame_size: bool = False
    open_frame_size: bool = False
    permitted_outcome: bool = False
    initial_delivery_count: bool = False
    field_keys: bool = False
    annotation_keys: bool = False
    duplicate_map_keys: bool = True
    section_order: bool = False
    incoming_window: bool = True
    link_credit: bool = True
    settle_mode: bool = False
    handle_max: bool = True
    attach_after_error: bool = False

    @classmethod
    def all(cls, strict: bool) -> Strict:
        """Return settings with every rule strict, or none."""
        return cls(**dict.fromkeys(_SETTINGS, strict))


DEFAULT_STRICT: Final = Strict()
"""The default settings, which all connections share."""

_SETTINGS: Final = frozenset(setting.name for setting in fields(Strict))

_connection: Final = partial(ProtocolRule, scope="connection")
_session: Final = partial(ProtocolRule, scope="session")
_link: Final = partial(ProtocolRule, scope="link")

# Part 1: types -------------------------------------------------------------------------------------

ENCODING: Final = _connection(
    "encoding",
    "1.2",
    _C.DECODE_ERROR,
    "octets are complete values in the standard's encodings, and fit their sizes and counts",
)
DUPLICATE_MAP_KEYS: Final = _connection(
    "duplicate-map-keys", "1.6.23", _C.DECODE_ERROR, "a map has each key once"
)
FIELD: Final = _connection(
    "field",
    "1.4",
    _C.INVALID_FIELD,
    "a field has the declared type, and a value if it is mandatory; "
    "otherwise the subject of its frame ends: a link, a session, or the connection",
)
FIELD_KEYS: Final = _connection(
    "field-keys",
    "2.8.13",
    _C.INVALID_FIELD,
    "the keys of a map of ``fields``, such as properties and a filter set, are symbols; "
    "otherwise the subject of its frame ends, as for ``field``",
)
SURPLUS_FIELDS: Final = _connection(
    "surplus-fields", "1.4", _C.DECODE_ERROR, "a composite has no more fields than are declared"
)
NESTING: Final = _connection("nesting", "2.8.15", _C.DECODE_ERROR, "values are nested at most 32 deep")
VALUES: Final = _connection(
    "values",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "a performative holds at most ``Limits.performative_nodes`` values, a section of a message 65,536",
)

# Part 2: transport ---------------------------------------------------------------------------------

PROTOCOL_HEADER: Final = _connection(
    "protocol-header",
    "2.2",
    _C.FRAMING_ERROR,
    "a connection begins with the protocol header of a layer that is accepted here",
)
FRAME_HEADER: Final = _connection(
    "frame-header",
    "2.3.1",
    _C.FRAMING_ERROR,
    "the size of a frame includes its header, and its data offset lies within it and after eight octets",
)
MAX_FRAME_SIZE: Final = _connection(
    "max-frame-size", "2.7.1", _C.FRAMING_ERROR, "a frame is no larger than we announced"
)
OPEN_FRAME_SIZE: Final = _connection(
    "open-frame-size", "2.4.1", _C.FRAMING_ERROR, "an open has at most 512 octets"
)
FRAME_TYPE: Final = _connection(
    "frame-type", "2.3.1", _C.FRAMING_ERROR, "frames are of the type of their layer"
)
PERFORMATIVE: Final = _connection(
    "performative", "2.3.2", _C.FRAMING_ERROR, "a frame's body begins with a performative of its layer"
)
PAYLOAD: Final = _connection(
    "payload", "2.3.2", _C.DECODE_ERROR, "no octets follow a performative, except a transfer"
)
OPEN_FIRST: Final = _connection("open-first", "2.4.1", _C.FRAMING_ERROR, "the first frame is an open")
OPEN_ONCE: Final = _connection("open-once", "2.4.1", _C.ILLEGAL_STATE, "there is one open")
OPEN_CHANNEL: Final = _connection("open-channel", "2.4.1", _C.FRAMING_ERROR, "an open is on channel 0")
CONNECTION_STATE: Final = _connection(
    "connection-state",
    "2.4.6",
    _C.FRAMING_ERROR,
    "headers, open and close come in the order of the connection's states",
)
MIN_MAX_FRAME_SIZE: Final = _connection(
    "min-max-frame-size", "2.7.1", _C.INVALID_FIELD, "every end takes frames of 512 octets"
)
IDLE_TIME_OUT: Final = _connection(
    "idle-time-out",
    "2.4.5",
    _C.NOT_ALLOWED,
    "no end asks for frames more often than ``Limits.min_idle_timeout`` allows",
)
IDLE: Final = _connection(
    "idle",
    "2.4.5",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "no end is silent for longer than the time-out that was announced",
)
ANSWER: Final = _connection(
    "answer",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "a begin, an attach, a declare and a discharge are answered within ``Limits.answer_timeout``",
)
NO_TERMINUS: Final = _link(
    "no-terminus",
    "2.6.3",
    _C.NOT_ALLOWED,
    "a peer that answers an attach without a terminus detaches the link, within ``Limits.close_timeout``",
)
HEARTBEATS: Final = _connection(
    "heartbeats",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "empty frames come no faster than ``Limits.heartbeat_rate``",
)
PIPELINED_FRAME_SIZE: Final = _connection(
    "pipelined-frame-size",
    "2.8.15",
    _C.FRAME_SIZE_TOO_SMALL,
    "the peer's frames have room for what was written before its open was read",
)
ANSWER_SIZE: Final = _session(
    "answer-size",
    "2.8.15",
    _C.FRAME_SIZE_TOO_SMALL,
    "the peer's frames have room for the answers that it asks for",
)
CHANNEL_MAX: Final = _connection(
    "channel-max", "2.7.1", _C.FRAMING_ERROR, "no channel is above the one that we announced"
)
SESSIONS: Final = _connection(
    "sessions", "2.7.1", _C.NOT_ALLOWED, "there are no more sessions than both ends have channels for"
)
CHANNEL_IN_USE: Final = _connection(
    "channel-in-use", "2.5.1", _C.FRAMING_ERROR, "a begin is on a channel that is free"
)
REMOTE_CHANNEL: Final = _connection(
    "remote-channel",
    "2.7.2",
    _C.NOT_ALLOWED,
    "a begin that names a remote-channel answers a begin of ours, once",
)
MAPPED_CHANNEL: Final = _connection(
    "mapped-channel", "2.5.1", _C.NOT_ALLOWED, "frames are on channels that a begin has mapped"
)
ENDPOINT_STATE: Final = _connection(
    "endpoint-state",
    "2.5.5",
    _C.ILLEGAL_STATE,
    "begin and end, attach and detach come in the order of the states of sessions and links",
)
CHURN: Final = _connection(
    "churn",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "sessions and links that were not answered yet are ended no faster than ``Limits.churn_rate``",
)
INCOMING_WINDOW: Final = _session(
    "incoming-window", "2.5.6", _C.WINDOW_VIOLATION, "transfers stay within our incoming window"
)
NEXT_INCOMING_ID: Final = _session(
    "next-incoming-id", "2.5.6", _C.WINDOW_VIOLATION, "a flow acknowledges no transfer that was never sent"
)
HANDLE_MAX: Final = _connection(
    "handle-max", "2.7.2", _C.FRAMING_ERROR, "no handle is above the one that we announced"
)
HANDLE_IN_USE: Final = _session(
    "handle-in-use", "2.7.3", _C.HANDLE_IN_USE, "an attach takes a handle that is free"
)
HANDLES: Final = _session(
    "handles",
    "2.7.2",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "there are no more links in a session than both ends have handles for",
)
UNATTACHED_HANDLE: Final = _session(
    "unattached-handle",
    "2.7.4",
    _C.UNATTACHED_HANDLE,
    "flow, transfer and detach name a handle that an attach has taken",
)
ERRANT_LINK: Final = _session(
    "errant-link",
    "2.6.5",
    _C.ERRANT_LINK,
    "nothing is sent on a handle after the detach that answered ours, nor after the peer has shown that it read our"
    " detach with an error; frames that it wrote before are dropped",
)
ATTACH_AFTER_ERROR: Final = _session(
    "attach-after-error",
    "2.6.5",
    _C.ERRANT_LINK,
    "an attach of a link that we detached with an error, and did not close, resumes it: its unsettled map is not null",
)
LINKS: Final = _link(
    "links",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "there are at most ``Limits.max_links`` links on a connection",
)
ONE_ATTACHMENT: Final = _link(
    "one-attachment",
    "2.6.1",
    _C.STOLEN,
    "a link is attached once: if it is attached again, the first attachment ends",
)
INITIAL_DELIVERY_COUNT: Final = _link(
    "initial-delivery-count",
    "2.7.3",
    _C.INVALID_FIELD,
    "the attach of a sender has an initial-delivery-count",
)
INCOMPLETE_UNSETTLED: Final = _link(
    "incomplete-unsettled",
    "2.7.3",
    _C.ILLEGAL_STATE,
    "no new delivery is sent to a receiver whose unsettled map was incomplete",
)
UNSETTLED_MAP_SIZE: Final = _link(
    "unsettled-map-size",
    "2.7.3",
    _C.FRAME_SIZE_TOO_SMALL,
    "unsettled maps that fit no frame become shorter from one attach to the next",
)
LINK_CREDIT: Final = _link(
    "link-credit", "2.6.7", _C.TRANSFER_LIMIT_EXCEEDED, "deliveries stay within the credit of their link"
)
LINK_DIRECTION: Final = _link(
    "link-direction", "2.6.7", _C.NOT_ALLOWED, "transfers go from the sender to the receiver"
)
FIRST_DELIVERY_ID: Final = _link(
    "first-delivery-id", "2.7.5", _C.INVALID_FIELD, "the first transfer of a delivery has a delivery-id"
)
DELIVERY_ID_ORDER: Final = _session(
    "delivery-id-order", "2.7.5", _C.INVALID_FIELD, "delivery-ids of a session count up one by one"
)
DELIVERY_TAG: Final = _link(
    "delivery-tag",
    "2.7.5, 2.8.7",
    _C.INVALID_FIELD,
    "the first transfer of a delivery has a delivery-tag of at most 32 octets",
)
UNIQUE_TAG: Final = _link(
    "unique-tag", "2.7.5", _C.INVALID_FIELD, "no two unsettled deliveries of a link have the same tag"
)
CONTINUATION: Final = _link(
    "continuation",
    "2.7.5",
    _C.INVALID_FIELD,
    "the transfers of a delivery have the same delivery-id, delivery-tag and message-format",
)
SETTLED_STAYS: Final = _link(
    "settled-stays", "2.7.5", _C.INVALID_FIELD, "a delivery that was settled stays so"
)
TRANSFER_SETTLE_MODE: Final = _link(
    "transfer-settle-mode",
    "2.7.5",
    _C.INVALID_FIELD,
    "a transfer does not ask for rcv-settle-mode second on a link that settles first",
)
SETTLE_MODE: Final = _link(
    "settle-mode",
    "2.7.5",
    _C.INVALID_FIELD,
    "deliveries are never sent settled on a link of snd-settle-mode unsettled, and always on one of mode settled",
)
MAX_MESSAGE_SIZE: Final = _link(
    "max-message-size", "2.7.3", _C.MESSAGE_SIZE_EXCEEDED, "a message is no larger than we announced"
)
EMPTY_TRANSFERS: Final = _connection(
    "empty-transfers",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "one delivery has at most ``Limits.empty_transfers`` transfers without payload",
)
PARTIAL_DELIVERIES: Final = _link(
    "partial-deliveries",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "deliveries in progress hold at most ``Limits.partial_octets`` on a connection, and at most the listener's limit on all; the largest is dropped",
)
DISPOSITION_RANGE: Final = _session(
    "disposition-range", "2.7.6", _C.INVALID_FIELD, "the last of a disposition is not before its first"
)

# Part 3: messaging ---------------------------------------------------------------------------------

SECTIONS: Final = _link(
    "sections", "3.2", _C.DECODE_ERROR, "a message consists of the standard's sections, each well formed"
)
SECTION_ORDER: Final = _link(
    "section-order", "3.2", _C.DECODE_ERROR, "the sections of a message come in their order, each once"
)
ANNOTATION_KEYS: Final = _link(
    "annotation-keys",
    "3.2.10",
    _C.NOT_IMPLEMENTED,
    "keys of annotations begin with x-opt-, because no others are known here",
)
BODY_SECTIONS: Final = _link(
    "body-sections",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "a message has at most 65,536 body sections, and at most 1 MiB besides a streamed body",
)
DELIVERY_STATE: Final = _link(
    "delivery-state", "3.4", _C.NOT_IMPLEMENTED, "delivery states are those of the standard"
)
PERMITTED_OUTCOME: Final = _link(
    "permitted-outcome", "3.5.3", _C.INVALID_FIELD, "outcomes are among those that the source permits"
)
TERMINUS: Final = _link(
    "terminus",
    "3.5",
    _C.NOT_IMPLEMENTED,
    "sources and targets are those of the standard, and coordinators (4.5.1)",
)

# Part 5: security ----------------------------------------------------------------------------------

SECURITY_LAYER: Final = _connection(
    "security-layer",
    "2.2, 5.3",
    _C.FRAMING_ERROR,
    "no peer begins with a layer less secure than is required here",
)
SASL_FRAME_SIZE: Final = _connection(
    "sasl-frame-size", "5.3.1", _C.FRAMING_ERROR, "a SASL frame has at most 512 octets"
)
SASL_FRAME: Final = _connection(
    "sasl-frame",
    "5.3.1",
    _C.FRAMING_ERROR,
    "a SASL frame is of the SASL type, and holds one performative and nothing else",
)
SASL_ORDER: Final = _connection(
    "sasl-order",
    "5.3.2",
    _C.ILLEGAL_STATE,
    "SASL performatives come from the end that may send them, in their order",
)
SASL_ROUNDS: Final = _connection(
    "sasl-rounds", "2.8.15", _C.RESOURCE_LIMIT_EXCEEDED, "an exchange has at most 8 challenges"
)
SASL_PATIENCE: Final = _connection(
    "sasl-patience",
    "2.8.15",
    _C.RESOURCE_LIMIT_EXCEEDED,
    "at most 32,768 octets follow a SASL frame before the outcome",
)
SASL_CHALLENGE: Final = _connection(
    "sasl-challenge", "5.3.3.3", _C.DECODE_ERROR, "a challenge keeps to the rules of its mechanism"
)

RULES: Final[Mapping[str, ProtocolRule]] = {
    rule.name: rule for rule in list(globals().values()) if isinstance(rule, ProtocolRule)
}
"""Every rule by its name, in the order of the standard's parts."""
