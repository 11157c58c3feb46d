"""The parts in which versions of the protocol differ: octets, methods, states.

The engine, its channels and its handshake implement the whole family; a ``Profile`` selects the version of a
connection. ``V091`` is 0-9-1. Methods that versions share are looked up by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.wire.content import BASIC, CODES, BasicProperties
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp091.wire.frames import FRAMES, PROTOCOL_HEADER, PROTOCOL_HEADER_09

from .bookkeeping import RECEIVED, SENT, check_properties
from .states import CHANNEL, CONNECTION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.wire.content import Content, ContentCodes, Properties
    from trio_amqp10.amqp091.wire.fields import Letters
    from trio_amqp10.amqp091.wire.frames import FrameFormat
    from trio_amqp10.amqp091.wire.methods import Method, MethodTable
    from trio_amqp10.core.endpoint_role import EndpointRole

    from .bookkeeping import ChannelNumbers, MethodEffect
    from .states import ChannelState, ConnectionState, Step

    Answer = Callable[[Any, Content | None], tuple[Method, Content | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One version of the protocol.

    Attributes:
        name: its name in errors.
        header: the protocol header that a client sends first, and that a server sends to refuse another.
        headers: the protocol headers that a server accepts.
        version: major and minor, as in connection.start.
        frames: the format of frames.
        methods: the known methods.
        letters: the types of field tables.
        properties: the properties of contents, by class.
        connection: the states of a connection, and the steps between them.
        channel: the same for a channel.
        sent: the effects of sent methods on the numbers of a channel, by role and name.
        received: the same for received methods.
        check: checks the properties of a publish at a server, before the body comes.
        codes: the reply codes for contents out of order.
        paused: the methods that ``channel.flow`` stops.
        channel_0: the classes of methods on channel 0.
        has_shortcuts: whether publishes and deliveries have the format that ``contents_shortcut`` reads and
            writes.
        aborts_content: whether an empty body frame aborts an incomplete content.
        answers: requests that an engine answers by itself, by name.
        close_codes: reply codes of received closes that are replaced by others.
    """

    name: str
    header: bytes
    headers: frozenset[bytes]
    version: tuple[int, int]
    frames: FrameFormat
    methods: MethodTable
    letters: Letters
    properties: Mapping[int, type[Properties]]
    connection: Mapping[ConnectionState, Mapping[Step, ConnectionState]]
    channel: Mapping[ChannelState, Mapping[Step, ChannelState]]
    sent: Mapping[EndpointRole, Mapping[str, MethodEffect]]
    received: Mapping[EndpointRole, Mapping[str, MethodEffect]]
    check: Callable[[ChannelNumbers, Any], None]
    codes: ContentCodes
    paused: frozenset[str]
    channel_0: frozenset[int]
    has_shortcuts: bool = False
    aborts_content: bool = False
    answers: Mapping[str, Answer] = field(default_factory=dict[str, "Answer"])
    close_codes: Mapping[int, int] = field(default_factory=dict[int, int])


V091: Final = Profile(
    name="0-9-1",
    header=PROTOCOL_HEADER,
    headers=frozenset({PROTOCOL_HEADER, PROTOCOL_HEADER_09}),
    version=(0, 9),
    frames=FRAMES,
    methods=spec.METHODS,
    letters=USUAL,
    properties={BASIC: BasicProperties},
    connection=CONNECTION,
    channel=CHANNEL,
    sent=SENT,
    received=RECEIVED,
    check=check_properties,
    codes=CODES,
    paused=frozenset({"basic.publish", "basic.deliver"}),
    channel_0=frozenset({spec.ConnectionClose.plan.class_id}),
    has_shortcuts=True,
)
"""AMQP 0-9-1."""
