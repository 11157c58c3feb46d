"""What octets are thrown at, and what may come of it: all targets, those of AMQP 1.0 among them.

A target takes octets and returns. ``RemoteProtocolError`` and ``SecurityError`` are what broken octets
are answered with; anything else that is raised is a bug, and so are an output out of proportion and a value
that reads back as another.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

from tests.naive.performatives import frame, header
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import ConnectionOpened, LinkAttached, SessionBegun
from trio_amqp10.amqp10.engine.layer_stack import Stack
from trio_amqp10.amqp10.engine.states import ConnectionState, LinkState, SessionState
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.message.tolerant import message_class
from trio_amqp10.amqp10.spec import PERFORMATIVES
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import parse_frame
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.peer_rules import Strict
from trio_amqp10.core.protocol_headers import header_id
from trio_amqp10.sasl import Anonymous, Plain, SaslClient, SaslServer, Server

from . import container, program, scenario, seeds, targets091, targets103, targets_draft, targets_fast
from .mutate import AMQP10
from .target import WHOLE, FuzzTarget

_STRICT = message_class(Strict(section_order=True))

_OPEN = frame("open", container_id="peer", max_frame_size=65_536, channel_max=63)


def framer(octets: bytes) -> None:
    if octets.startswith(b"A"):
        header_id(octets)
        return
    pos = 0
    while (found := parse_frame(octets, pos, 65_536)) is not None:
        _, _, start, end = found
        assert pos + 8 <= start <= end <= len(octets)
        pos = end


def values(octets: bytes) -> None:
    value, end = decode(octets)
    assert 0 < end <= len(octets)
    try:
        written = encode(value)
    except LocalProtocolError:
        return  # what the peer may have sent, and we may not
    again, _ = decode(written)
    assert encode(again) == written


def performatives(octets: bytes) -> None:
    performative, end = PERFORMATIVES.decode(octets)
    assert 0 < end <= len(octets)
    try:
        written = encode(performative)
    except LocalProtocolError:
        return
    again, _ = PERFORMATIVES.decode(written)
    assert encode(again) == written


def out_of_order(payload: bytes) -> bool:
    """Whether only its order is wrong: what is written anew is put right, since sections are ordered (3.2)."""
    try:
        _STRICT.from_payload(payload).sections  # noqa: B018 - it is read for the error
    except RemoteProtocolError as error:
        return " after " in error.description
    return False


def message(octets: bytes) -> None:
    received = Message.from_payload(octets)
    assert len(repr(received)) < 20_000
    assert received.to_payload() == octets or out_of_order(octets)
    for name in ("body", "sections", "subject", "ttl", "application_properties", "annotations", "footer"):
        with contextlib.suppress(RemoteProtocolError):
            getattr(received, name)
    received.delivery_annotations = {"x-seen": 1}
    with contextlib.suppress(LocalProtocolError):
        Message.from_payload(received.to_payload()).body  # noqa: B018 - to be read is all that it is for


def sasl_server(octets: bytes) -> None:
    server = SaslServer(Server(users={"ada": "enigma"}, anonymous=True).offer(secure=True))
    _feed_sasl(server, octets)


def sasl_client(octets: bytes) -> None:
    _feed_sasl(SaslClient([Plain("ada", "enigma"), Anonymous()]), octets)


def _feed_sasl(layer: SaslClient | SaslServer, octets: bytes) -> None:
    written = 0
    try:
        for chunk in _chunks(octets):
            layer.receive_data(chunk)
            written += len(layer.data_to_send())
    finally:
        written += len(layer.data_to_send())
        assert written <= 16 * len(octets) + 4096, f"{written} octets written about {len(octets)}"
    if layer.done:
        layer.take_rest()


def listening(octets: bytes) -> None:
    connection = Connection("us")
    stack = Stack(connection, 0.0, accepting=True)
    adapter = _Adapter(connection, stack)
    adapter.read(header() + _OPEN)
    assert connection.state is ConnectionState.OPENED
    _feed(adapter, octets)


def dialled(octets: bytes) -> None:
    adapter = _dialling()
    adapter.read(header() + _OPEN)
    assert adapter.connection.state is ConnectionState.OPENED
    _feed(adapter, octets)


def stream_accepted(octets: bytes) -> None:
    """All that a stranger may send, from the first octet on."""
    connection = Connection("us")
    offer = Server(users={"ada": "enigma"}, anonymous=True).offer(secure=True)
    stack = Stack(connection, 0.0, accept_sasl=lambda: SaslServer(offer), accepting=True)
    _feed(_Adapter(connection, stack), octets)


def stream_dialled(octets: bytes) -> None:
    """All that whoever was dialled may answer, from the first octet on."""
    _feed(_dialling(), octets)


def _dialling() -> _Adapter:
    """An engine that has said open, begin, and attach for a sender and a receiver, and has no answer yet."""
    connection = Connection("us")
    adapter = _Adapter(connection, Stack(connection, 0.0))
    connection.open()
    session = connection.session()
    session.begin()
    sender, receiver = session.sender("to-peer"), session.receiver("from-peer")
    sender.attach(source=Source(), target=Target(address="q"))
    receiver.attach(source=Source(address="q"), target=Target())
    receiver.set_credit(10)
    sender.owner = receiver.owner = adapter
    adapter.links += [sender, receiver]
    return adapter


def _feed(adapter: _Adapter, octets: bytes) -> None:
    try:
        for chunk in _chunks(octets):
            adapter.read(chunk)
        adapter.stack.receive_eof(2.0)
    finally:
        adapter.settle()
        for now in (3.0, 30.0, 300.0):
            with contextlib.suppress(RemoteProtocolError):
                adapter.stack.handle_timer(now)
            adapter.settle()
        adapter.stack.transport_lost()
        adapter.settle()
        # What we send of ourselves, apart from any answer, is bounded by the credit that the peer gave.
        assert adapter.written <= 16 * len(octets) + 16_384, f"{adapter.written} written about {len(octets)}"


class _Adapter:
    """Does at once what an accepting adapter would: opens, begins, attaches, sends a little, accepts all."""

    def __init__(self, connection: Connection, stack: Stack) -> None:
        self.connection = connection
        self.stack = stack
        self.links: list[Any] = []
        self.written = 0
        self.sent = 0
        self.touched = False

    def read(self, octets: bytes) -> None:
        try:
            self.stack.receive_data(octets, 1.0)
        finally:
            self.settle()

    def settle(self) -> None:
        while (event := self.stack.next_event()) is not None:
            with contextlib.suppress(LocalProtocolError):  # the peer has said more meanwhile
                self.answer(event)
        for item in self.stack.take_touched():
            item.wake()
        self.written += len(self.stack.data_to_send() or b"")

    def answer(self, event: Any) -> None:
        match event:
            case ConnectionOpened() if self.connection.state is ConnectionState.OPEN_RCVD:
                self.connection.open()
            case SessionBegun(session) if session.state is SessionState.BEGIN_RCVD:
                session.begin()
            case LinkAttached(link) if link.state is LinkState.ATTACH_RCVD:
                link.owner = self
                self.links.append(link)
                remote = link.remote
                assert remote is not None
                link.attach(source=remote.source, target=remote.target)
                if not link.role:
                    return
                link.set_credit(10)
            case _:
                pass

    def wake(self) -> None:
        for link in self.links:
            with contextlib.suppress(LocalProtocolError):
                self.serve(link)

    def serve(self, link: Any) -> None:
        if not link.role:
            while self.sent < 50 and link.sendable():
                self.sent += 1
                link.send(b"\x00\x53\x75\xa0\x01x", False, None, 0)
            return
        while link.queue:
            delivery = link.queue.popleft()
            with contextlib.suppress(RemoteProtocolError):
                Message.from_payload(delivery.payload).body  # noqa: B018 - to be read is all that it is for
            if not delivery.settled:
                delivery.accept()


def _chunks(octets: bytes) -> list[bytes]:
    """In pieces whose size follows from the octets, so that a file says it all."""
    size = (len(octets), 1, 7, 64)[len(octets) % 4] or 1
    return [octets[at : at + size] for at in range(0, len(octets), size)]


_FED: Final[Any] = {"steps": (20_000, 100)}
"""A read costs an engine 40 steps and more by itself, and a fourth of all that come is read by single octets."""
TARGETS = {
    "framer": FuzzTarget(framer, [*seeds.LISTENING, header()], framing=AMQP10),
    "values": FuzzTarget(values, seeds.VALUES),
    "performatives": FuzzTarget(performatives, seeds.PERFORMATIVES),
    "messages": FuzzTarget(message, seeds.MESSAGES, share=2),
    "sasl-server": FuzzTarget(sasl_server, seeds.SASL_SERVER, framing=AMQP10),
    "sasl-client": FuzzTarget(sasl_client, seeds.SASL_CLIENT, framing=AMQP10),
    "engine-listening": FuzzTarget(listening, seeds.LISTENING, framing=AMQP10, share=5, **_FED),
    "engine-dialled": FuzzTarget(dialled, seeds.DIALLED, framing=AMQP10, share=5, **_FED),
    "stream-accepted": FuzzTarget(stream_accepted, seeds.ACCEPTED, framing=AMQP10, share=2, **_FED),
    "stream-dialled": FuzzTarget(
        stream_dialled, [header() + _OPEN + each for each in seeds.DIALLED], share=2, **_FED
    ),
    "container": FuzzTarget(container.play, make=scenario.against_container, share=10, **WHOLE),
    "container-stored": FuzzTarget(container.play_stored, make=scenario.against_container, share=5, **WHOLE),
    "program": FuzzTarget(
        program.play, make=scenario.against_program, share=5, whole=True, steps=(20_000, 60)
    ),
    **targets091.TARGETS,
    **targets103.TARGETS,
    **targets_draft.TARGETS,
    **targets_fast.TARGETS,
}
