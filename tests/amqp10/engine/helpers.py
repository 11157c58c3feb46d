"""What the engine's tests begin with: a script against an opened connection, two engines back to back.

``opened()`` and what builds on it speak to one engine through the second codec, octet for octet.
``Pair`` runs two engines against each other, by the events that an adapter would act on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.engine_pairs import octets_of
from tests.naive.performatives import frame
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import ConnectionOpened, LinkAttached, SessionBegun
from trio_amqp10.amqp10.engine.receiver import ReceiverLink
from trio_amqp10.amqp10.engine.states import ConnectionState, LinkState, SessionState
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.core.errors import RemoteProtocolError

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.limits import Limits
    from trio_amqp10.amqp10.engine.sender import SenderLink
    from trio_amqp10.amqp10.engine.session import Session

BEGIN: dict[str, Any] = {"next_outgoing_id": 0, "incoming_window": 100, "outgoing_window": 100}


def opened(
    limits: Limits | None = None, *, remote: dict[str, Any] | None = None, **options: Any
) -> tuple[Connection, Script]:
    """A connection in OPENED, and the script that plays its peer; nothing is left to read."""
    connection = Connection("engine", limits=limits, **options)
    connection.open()
    script = Script(connection)
    script.exchange_open(**(remote or {}))
    script.expect_event(ConnectionOpened)
    assert connection.state is ConnectionState.OPENED
    return connection, script


def begun(
    limits: Limits | None = None, *, remote: dict[str, Any] | None = None, **fields: Any
) -> tuple[Session, Script]:
    """A session in MAPPED that we began, on channel 0 both ways."""
    connection, script = opened(limits, remote=remote)
    session = connection.session()
    session.begin()
    script >> expected("begin", channel=0, remote_channel=None)
    script << frame("begin", **{**BEGIN, "remote_channel": 0, **fields})
    script.expect_event(SessionBegun, session=session)
    assert session.state is SessionState.MAPPED
    return session, script


def begun_by_peer(limits: Limits | None = None, **fields: Any) -> tuple[Session, Script]:
    """A session in MAPPED that the peer began, on channel 0 both ways."""
    _, script = opened(limits)
    script << frame("begin", **{**BEGIN, **fields})
    session = script.expect_event(SessionBegun).session
    session.begin()
    script >> expected("begin", channel=0, remote_channel=0)
    assert session.state is SessionState.MAPPED
    return session, script


def sending(
    limits: Limits | None = None, *, credit: int = 10, remote: dict[str, Any] | None = None, **fields: Any
) -> tuple[SenderLink, Script]:
    """Our sender "x" on handle 0 both ways, attached, with credit."""
    session, script = begun(limits, remote=remote)
    link = session.sender("x")
    link.attach(source=Source(), target=Target(address="q"))
    script >> expected("attach", name="x", handle=0, role=False, initial_delivery_count=0)
    answer = {"name": "x", "handle": 0, "role": True, "source": ("source", {}), "target": ("target", {})}
    script << frame("attach", **{**answer, **fields})
    script.expect_event(LinkAttached, link=link)
    if credit:
        script << flow(handle=0, delivery_count=0, link_credit=credit)
    assert link.state is LinkState.ATTACHED
    return link, script


def receiving(
    limits: Limits | None = None, *, credit: int = 10, remote: dict[str, Any] | None = None, **fields: Any
) -> tuple[ReceiverLink, Script]:
    """Our receiver "x" on handle 0 both ways, attached, with credit that the peer knows of."""
    session, script = begun(limits, remote=remote)
    link = session.receiver("x")
    link.attach(source=Source(address="q"), target=Target())
    script >> expected("attach", name="x", handle=0, role=True)
    answer = {"name": "x", "handle": 0, "role": False, "initial_delivery_count": 0}
    answer |= {"source": ("source", {}), "target": ("target", {})}
    script << frame("attach", **{**answer, **fields})
    script.expect_event(LinkAttached, link=link)
    if credit:
        link.set_credit(credit)
        script >> expected("flow", handle=0, link_credit=credit)
    assert link.state is LinkState.ATTACHED
    return link, script


def flow(**fields: Any) -> bytes:
    """A flow of a peer that has seen nothing of ours yet."""
    usual = {"next_incoming_id": 0, "incoming_window": 100, "next_outgoing_id": 0, "outgoing_window": 100}
    return frame("flow", **{**usual, **fields})


class Pair:
    """Two connections back to back; ``a`` opens first and ``b`` answers whatever comes, unless told not to."""

    def __init__(
        self, a: Connection | None = None, b: Connection | None = None, *, answer: bool = True
    ) -> None:
        self.a = a or Connection("a")
        self.b = b or Connection("b")
        self.answer = answer
        self.now = 0.0
        self.events: dict[Connection, list[Any]] = {self.a: [], self.b: []}

    def open(self) -> Pair:
        """Both in OPENED."""
        self.a.open()
        self.run()
        assert self.a.state is self.b.state is ConnectionState.OPENED
        return self

    def move(self, source: Connection, drain: Connection, chunk: int | None = None) -> bool:
        """What ``source`` has to say, read by ``drain``; whether there was anything."""
        octets = octets_of(source)
        if octets:
            step = chunk or len(octets)
            for start in range(0, len(octets), step):
                drain.receive_data(octets[start : start + step], self.now)
        for each in (source, drain):
            self.collect(each)
        return bool(octets)

    def collect(self, connection: Connection) -> None:
        while (event := connection.next_event()) is not None:
            self.events[connection].append(event)
            if self.answer:
                answer(connection, event)
        connection.take_touched()

    def run(self, rounds: int = 1000) -> Pair:
        """Until neither has anything more to say."""
        for _ in range(rounds):
            if not self.move(self.a, self.b) | self.move(self.b, self.a):
                return self
        raise AssertionError(f"still talking after {rounds} rounds")

    def link(self, name: str = "x", credit: int = 100) -> tuple[SenderLink, ReceiverLink]:
        """A sender of ``a`` and the receiver of ``b``, attached."""
        session = self.a.session()
        session.begin()
        sender = session.sender(name)
        sender.attach(source=Source(), target=Target(address="q"))
        self.run()
        receiver = next(
            e.link
            for e in reversed(self.events[self.b])
            if isinstance(e, LinkAttached) and e.link.name == name
        )
        assert isinstance(receiver, ReceiverLink)
        if credit:
            receiver.set_credit(credit)
            self.run()
        return sender, receiver


def answer(connection: Connection, event: Any) -> None:
    """What an accepting adapter does at once: open, begin and attach where the peer was first."""
    if isinstance(event, ConnectionOpened) and connection.state is ConnectionState.OPEN_RCVD:
        connection.open()
    elif isinstance(event, SessionBegun) and event.session.state is SessionState.BEGIN_RCVD:
        event.session.begin()
    elif isinstance(event, LinkAttached) and event.link.state is LinkState.ATTACH_RCVD:
        remote = event.link.remote
        assert remote is not None
        event.link.attach(source=remote.source, target=remote.target)


def refused(script: Script, *octets: bytes) -> RemoteProtocolError:
    """What the engine raises on these octets; what it wrote about them is there to be read."""
    with pytest.raises(RemoteProtocolError) as caught:
        script.send(*octets)
    script.collect()
    return caught.value


def error(condition: str) -> tuple[str, dict[str, object]]:
    """An error of this condition, as a composite that a transcript expects."""
    return ("error", {"condition": condition})


def attach(**fields: Any) -> bytes:
    """A sender's attach, unless the fields say otherwise."""
    usual = {"name": "x", "handle": 0, "role": False, "initial_delivery_count": 0}
    return frame("attach", **{**usual, **fields})


def transfer(number: int, **fields: Any) -> bytes:
    """A whole delivery of this id, on handle 0 unless the fields say otherwise."""
    payload = fields.pop("payload", b"x")
    usual = {"handle": 0, "delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0}
    return frame("transfer", payload=payload, **{**usual, **fields})


class Owner:
    """Something that waits."""

    touched = False

    def wake(self) -> None: ...
