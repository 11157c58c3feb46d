"""What one version of the protocol has of its own: octets, methods, tables of states and of numbers.

The engine, its channels and its handshake know the family; a ``Profile`` says which member of it a connection speaks.
``V091`` is 0-9-1. What versions have in common is looked up by the name of a method.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from . import spec
from .bookkeeping import RECEIVED, SENT, check_properties
from .content import BASIC, CODES, BasicProperties
from .fields import USUAL
from .frames import FRAMES, PROTOCOL_HEADER, PROTOCOL_HEADER_09
from .states import CHANNEL, CONNECTION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.endpoint_role import EndpointRole

    from .bookkeeping import MethodEffect, Numbers
    from .content import Content, ContentCodes, Properties
    from .fields import Letters
    from .frames import FrameFormat
    from .methods import Method, MethodTable
    from .states import ChannelState, ConnectionState, Step

    Answer = Callable[[Any, Content | None], tuple[Method, Content | None]]

__all__ = ["V091", "Profile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One version of the protocol.

    Attributes:
        name: what errors call it.
        header: the protocol header with which a client begins, and which answers any other.
        headers: those that a server takes.
        version: major and minor, as connection.start has them.
        frames: how frames look.
        methods: those that are known.
        letters: the types that field tables have.
        properties: of the contents of each class.
        connection: the states of a connection, and the steps between them.
        channel: those of a channel.
        sent: what methods that are sent do to the numbers of a channel, by role and name.
        received: the same for those that are received.
        check: what a server refuses in properties, before the body comes.
        codes: with which contents out of place are answered.
        paused: the methods that ``channel.flow`` stops.
        channel_0: the classes of methods on channel 0.
        fast: whether publishes and deliveries have the octets that ``fast`` writes and reads.
        aborts_content: whether a body frame without payload ends a content that is not complete.
        answers: requests that an engine answers by itself, by name.
        heard_codes: reply codes that are read as others.
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
    check: Callable[[Numbers, Any], None]
    codes: ContentCodes
    paused: frozenset[str]
    channel_0: frozenset[int]
    fast: bool = False
    aborts_content: bool = False
    answers: Mapping[str, Answer] = field(default_factory=dict[str, "Answer"])
    heard_codes: Mapping[int, int] = field(default_factory=dict[int, int])


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
    fast=True,
)
"""AMQP 0-9-1."""
