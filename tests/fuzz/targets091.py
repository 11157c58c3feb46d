"""What octets of 0-9-1 are thrown at: the codec, both roles of the engine, and a container behind its listener.

A ``ReplyError`` is what broken octets are answered with; anything else that is raised is a bug, and so are octets of ours that the
second reader does not take, a reply code that no breach of the peer's has, and a value that reads back as another.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.events import (
    ChallengeAnswered,
    Challenged,
    ChannelOpened,
    OpenRequested,
    StartAnswered,
    Started,
)
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, read_header, write_header
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import STRICT, USUAL, Letters, Scan, read_table, write_table
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from . import container091, scenario091, seeds091
from .mutate import AMQP091
from .reactions import check_reactions
from .target import WHOLE, FuzzTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio_amqp10.amqp091.engine.channel import Channel

_LIMITS: Final = Limits(channel_max=63, max_message_size=4096, max_partial=8192)


def tables(octets: bytes) -> None:
    for letters in (USUAL, STRICT):
        with contextlib.suppress(RemoteProtocolError):
            _table(octets, letters)


def _table(octets: bytes, letters: Letters) -> None:
    table, end = read_table(octets, 0, len(octets), Scan(letters))
    assert 4 <= end <= len(octets)
    out = bytearray()
    try:
        write_table(out, table, letters)
    except LocalProtocolError:
        return  # what the peer may have sent, and we may not
    again, _ = read_table(bytes(out), 0, len(out), Scan(letters))
    twice = bytearray()
    write_table(twice, again, letters)
    assert twice == out


def methods(octets: bytes) -> None:
    method = spec.METHODS.read(octets, USUAL)
    try:
        written = method.plan.write(method, USUAL)
    except LocalProtocolError:
        return
    again = spec.METHODS.read(written, USUAL)
    assert again.plan.write(again, USUAL) == written


def headers(octets: bytes) -> None:
    header = read_header(octets, USUAL)
    if header.size <= len(octets):
        as_it_came = write_header(Content(header.properties, bytes(header.size), header.octets), USUAL)
        assert as_it_came == octets
    with contextlib.suppress(LocalProtocolError):
        written = header.properties.encode(USUAL)
        assert BasicProperties.decode(written, 0, USUAL).encode(USUAL) == written


def served(octets: bytes) -> None:
    """What a client may send on a connection with channel 1."""
    adapter = _Adapter(Engine(EndpointRole.SERVER, 0.0, _LIMITS))
    adapter.read(seeds091.OPENED)
    assert adapter.engine.is_open
    adapter.feed(octets)


def dialled(octets: bytes) -> None:
    """What a server may send to a client that has asked for all sorts of things on two channels."""
    adapter = _Adapter(Engine(EndpointRole.CLIENT, 0.0, _LIMITS))
    for octets_of_frame in AMQP091.split(seeds091.ANSWERED):
        adapter.read(octets_of_frame)
    assert len(adapter.channels) == 2
    adapter.feed(octets)


def stream_accepted(octets: bytes) -> None:
    """All that a stranger may send, from the first octet on."""
    _Adapter(Engine(EndpointRole.SERVER, 0.0, _LIMITS)).feed(octets)


def stream_dialled(octets: bytes) -> None:
    """All that a server may answer, from the first octet on."""
    # Small pieces, so that channels are open before the answers to their first methods come.
    _Adapter(Engine(EndpointRole.CLIENT, 0.0, _LIMITS)).feed(octets, (16, 1, 7, 5))


class _Adapter:
    """Does at once what an application would: logs in, answers each request, delivers a little, and settles all."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.server = engine.role is EndpointRole.SERVER
        self.channels: dict[int, Channel] = {}
        self.output = bytearray()
        self.sent = 0
        self.ended = False
        self.settle()

    def feed(self, octets: bytes, sizes: Sequence[int] = (1 << 20, 1, 7, 64)) -> None:
        """In pieces whose size follows from the octets, until the transport ends."""
        size = sizes[len(octets) % len(sizes)]
        before = len(self.output)
        try:
            for at in range(0, len(octets), size):
                self.read(octets[at : at + size])
            self.engine.receive_eof(2.0)
        finally:
            self.settle()
            for now in (3.0, 40.0, 300.0):
                self.engine.handle_timer(now)
                self.settle()
            self.engine.transport_lost()
            self.settle()
            assert self.engine.data_to_send() is None
            assert self.engine.next_deadline() is None
            assert self.engine.partial == self.engine.held == 0, "something is still counted"
            check_reactions(bytes(self.output), "s" if self.server else "c", normal=not self.server)
            written = len(self.output) - before
            assert written <= 16 * len(octets) + 16_384, f"{written} written about {len(octets)}"

    def read(self, octets: bytes) -> None:
        try:
            self.engine.receive_slice(octets, 1.0)
            self.settle()
            while self.engine.has_input():
                self.engine.receive_slice(b"", 1.0)
                self.settle()
        finally:
            self.settle()

    def settle(self) -> None:
        """Answer what came, and take what is to be sent."""
        while (event := self.engine.next_event()) is not None:
            with contextlib.suppress(LocalProtocolError):  # the peer has said more meanwhile
                self.decide(event)
        for channel in self.engine.take_touched():
            try:
                while (arrival := channel.next_arrival()) is not None:
                    with contextlib.suppress(LocalProtocolError):
                        self.answer(channel, arrival)
            except ReplyError as fault:  # a rule was broken after these: the server closes the channel
                channel.close(fault.code, fault.reply_text, fault.class_id, fault.method_id)
        self.output += self.engine.data_to_send() or b""

    def decide(self, event: Any) -> None:
        engine = self.engine
        match event:
            case Started():
                engine.answer_start(spec.ConnectionStartOk(response=b"\0guest\0guest"), 1.0)
            case Challenged():
                engine.answer_challenge(b"more", 1.0)
            case StartAnswered(answer) if answer.mechanism.startswith("SCRAM"):
                engine.challenge(b"r=abc", 1.0)
            case StartAnswered(answer) if answer.mechanism == "ODD":
                engine.refuse_login("no such mechanism")
            case StartAnswered() | ChallengeAnswered():
                engine.accept_login("guest", 1.0)
            case OpenRequested():
                engine.accept_open(1.0)
            case ChannelOpened(channel=channel):
                self.channels[channel.number] = channel
                if not self.server:
                    self.use(channel)
            case _:
                pass
        if not self.server and engine.is_open and not self.channels and not self.sent:
            self.sent = 1
            engine.open_channel(1)
            engine.open_channel(2)

    def use(self, channel: Channel) -> None:
        """What a client asks for, before any answer."""
        if channel.number == 1:
            channel.send(spec.QueueDeclare(queue="q"))
            channel.send(spec.BasicConsume(queue="q", consumer_tag="tag"))
            channel.send(spec.BasicGet(queue="q"))
        else:
            channel.send(spec.ConfirmSelect())
            for _ in range(3):
                channel.send(spec.BasicPublish(routing_key="q"), Content(BasicProperties(), b"octets"))

    def answer(self, channel: Channel, arrival: Any) -> None:
        method = arrival.method
        if channel.state is not ChannelState.OPEN:
            return
        if not self.server:
            if isinstance(method, spec.BasicDeliver):
                channel.send(spec.BasicAck(delivery_tag=method.delivery_tag))
            return
        if isinstance(method, spec.BasicConsume):
            tag = method.consumer_tag or f"made-{self.sent}"
            if not method.no_wait:
                channel.send(spec.BasicConsumeOk(consumer_tag=tag))
            self.deliver(channel, spec.BasicDeliver(consumer_tag=tag))
        elif isinstance(method, spec.BasicGet):
            self.deliver(channel, spec.BasicGetOk())
        elif arrival.number:
            channel.send(spec.BasicAck(delivery_tag=arrival.number))
        elif method.plan.waits(method):
            (made,) = [plan.made for plan in spec.METHODS if type(method) in plan.answers]
            channel.send(made())

    def deliver(self, channel: Channel, method: Any) -> None:
        self.sent += 1
        if self.sent < 50:
            method.delivery_tag = channel.numbers.deliveries.last + 1
            channel.send(method, Content(BasicProperties(priority=1), b"octets"))


_FED: Final[Any] = {"steps": (30_000, 100), "memory": (512 * 1024, 64), "framing": AMQP091}

TARGETS: Final = {
    "091-tables": FuzzTarget(tables, seeds091.TABLES),
    "091-methods": FuzzTarget(methods, seeds091.METHODS),
    "091-headers": FuzzTarget(headers, seeds091.HEADERS),
    "091-served": FuzzTarget(served, seeds091.SERVER, share=5, **_FED),
    "091-dialled": FuzzTarget(dialled, seeds091.CLIENT, share=3, **_FED),
    "091-stream-accepted": FuzzTarget(stream_accepted, seeds091.ACCEPTED, share=3, **_FED),
    "091-stream-dialled": FuzzTarget(stream_dialled, seeds091.DIALLED, share=2, **_FED),
    "091-container": FuzzTarget(container091.play, make=scenario091.against_container, share=10, **WHOLE),
    "091-container-stored": FuzzTarget(
        container091.play_stored, make=scenario091.against_container, share=5, **WHOLE
    ),
}
"""By name; names of corpus files begin so."""
