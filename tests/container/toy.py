"""A dialect of lines over a container, without AMQP.

Its imports show which interfaces a dialect needs.

A connection begins with ``TOY name`` or ``TOY name user``, and is answered ``HELLO``. Then each line is ``PUT queue text``,
``GET queue``, ``SUB queue n``, ``ACK n``, ``NACK n``, ``BEGIN``, ``COMMIT`` or ``ROLLBACK``. It answers ``OK``, ``NO reason``,
``MSG n queue text`` (``AGAIN n queue text`` for one that was given out before), ``EMPTY`` and ``BYE reason``.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import count
from math import inf
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.broker.connected_peer_base import ConnectedPeerBase
from trio_amqp10.broker.endpoints import GivenLease, PublishedArrival, Publisher, WindowOutlet
from trio_amqp10.broker.nodes.content import Content
from trio_amqp10.broker.nodes.form_registry import Form, register
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.broker.peer_interfaces import LinkView
from trio_amqp10.broker.transactions import LeaseAnswer, Transaction
from trio_amqp10.net.pump import Pump, Traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trio_amqp10.broker.peer_interfaces import ServingContainer
    from trio_amqp10.net.dialect import AcceptedConnection

FORM = -7_000


class Line(Content):
    """A line of text; every line is durable."""

    def translated(self) -> bytes:
        return b"\x00Su\xb0" + len(self.octets).to_bytes(4, "big") + self.octets


line_of = partial(Line, FORM, durable=True)
register(FORM, Form(line_of))


class Lines:
    """The engine: octets to lines and back."""

    def __init__(self, wants_data: Callable[[], bool]) -> None:
        self.wants_data, self.closing = wants_data, False
        self._begun = self._out = b""
        self._lines: deque[bytes] = deque()

    def say(self, *words: object) -> None:
        self._out += " ".join(map(str, words)).encode() + b"\n"

    def receive_slice(self, data: bytes, now: float) -> None:
        *lines, self._begun = (self._begun + data).split(b"\n")
        self._lines.extend(lines)

    def next_event(self) -> str | None:
        return self._lines.popleft().decode() if self._lines else None

    def has_output(self) -> bool:
        return bool(self._out) or self.closing

    def data_to_send(self) -> bytes | None:
        out, self._out = self._out, b""
        return out if out or not self.closing else None

    def receive_eof(self, now: float = 0.0) -> None:
        self.closing = True

    def handle_timer(self, now: float = 0.0) -> None:
        """Nothing is ever due, and nothing is left to be read."""

    transport_lost, has_input, next_deadline = receive_eof, handle_timer, handle_timer

    def take_touched(self) -> tuple[()]:
        return ()


class Toy:
    """A dialect whose connections begin with ``TOY name`` or ``TOY name user``."""

    name = "toy"

    def __init__(self, container: ServingContainer) -> None:
        self._container = container

    def claims(self, head: bytes) -> bool | None:
        return b"TOY ".startswith(head[:4]) and (len(head) > 3 or None)

    async def serve(self, accepted: AcceptedConnection) -> None:
        await ToyPeer(self._container, accepted).serve()


class ToyPeer(ConnectedPeerBase):
    """One connection."""

    container_id, identity, host, closed = "", None, None, False

    def __init__(self, container: ServingContainer, accepted: AcceptedConnection) -> None:
        super().__init__(container)
        self.accepted, self.host = accepted, accepted.host
        self.lines, self._receive = trio.open_memory_channel[str](inf)
        self.engine, self.traffic = Lines(self.wants_data), Traffic()
        stream = accepted.transport.stream
        self.pump = Pump(self.engine, stream, self._on_line, self._on_over, totals=self.traffic)
        self.waiting = 0  # lines that were read and not obeyed
        self.publisher = Publisher(self, container.find, self.pump.wake_writer)
        self.windows: dict[str, WindowOutlet] = {}
        self.given: dict[int, GivenLease] = {}
        self.numbers = count(1)
        self.transaction: Transaction | None = None

    async def serve(self) -> None:
        """Until the connection is over."""
        async with trio.open_nursery() as nursery:
            self.pump.start(nursery)
            self.pump.feed(self.engine.receive_slice, self.accepted.transport.head, 0.0)
            try:
                _, self.container_id, *user = (await self._receive.receive()).split(" ")
                self.identity = SimpleNamespace(name=user[0], mechanism="TOY") if user else None
                self._container.enter(self, nursery)
                await self.guard.check("open", None)
                self.accepted.opened()
                self._on_obeyed("HELLO")
                async for line in self._receive:
                    await self.obey(line)
            except RefusedError as refusal:
                self.close(refusal.condition, refusal.description)
            except trio.EndOfChannel:
                """The peer has gone before its first line."""
            finally:
                self._container.leave(self)
                with trio.CancelScope(shield=True):
                    await self.pump.finished.wait()

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        self.engine.closing = True
        self.say("BYE", condition)
        self.lines.close()

    def _on_line(self, line: str) -> None:
        self.waiting += 1
        self.lines.send_nowait(line)

    def _on_obeyed(self, *answer: object) -> None:
        self.waiting -= 1
        self.say(*answer) if answer else self.pump.wake_writer()

    def _on_over(self) -> None:
        self.closed = True
        self.lines.close()

    def ended(self) -> None:
        super().ended()
        if self.transaction is not None:
            self.transaction.rollback()
        self.publisher.close()
        for outlet in {*self.windows.values(), *(lease.outlet for lease in self.given.values())}:
            outlet.end()  # a window, or what it has got by GET

    def say(self, *words: object) -> None:
        self.engine.say(*words)
        self.pump.wake_writer()

    def wants_data(self) -> bool:
        """A line at a time, and none while a queue or the container takes no more."""
        if self.watermark.high:
            self.watermark.when_low(self.pump.wake_writer)
        return self.engine.closing or not (self.watermark.high or self.waiting or self.publisher.waiting)

    def statistics(self) -> Mapping[str, Any]:
        return {"state": "open", "octets_in": self.traffic.octets_in, "octets_out": self.traffic.octets_out}

    def links(self) -> Iterator[LinkView]:
        for role, names in (("receiver", self.publisher.inlets), ("sender", self.windows)):
            for name in names:
                yield LinkView(role, name, partial(dict, state="open", address=name), self.close)

    # -- lines ------------------------------------------------------------------------------

    async def obey(self, line: str) -> None:
        verb, *words = line.split(" ", 2)
        try:
            await getattr(self, f"on_{verb.lower()}")(*words)
        except RefusedError as refusal:
            self.say("NO", refusal.condition)
        self._on_obeyed()

    async def on_put(self, address: str, text: str) -> None:
        await self.guard.check("send", address)
        arrival = PublishedArrival(line_of(text.encode()), self.answer)
        if self.transaction is None:
            self.publisher.publish(address, arrival)
        else:
            self.transaction.post(self._container.find(address), arrival, arrival.content.size)

    def answer(self, refusal: RefusedError | None) -> None:
        self.say("OK") if refusal is None else self.say("NO", refusal.condition)

    async def on_get(self, address: str) -> None:
        await self.guard.check("receive", address)
        if not self.window(address, 1).pull():
            self.say("EMPTY")

    async def on_sub(self, address: str, size: str) -> None:
        await self.guard.check("receive", address)
        window, node = self.window(address, int(size)), self._container.find(address)
        self.check_link()
        self.check_outlet(node, copying=False, target=None, subscription_terms=window.subscription_terms)
        self.windows[address] = window
        self.say("OK")
        window.begin()

    def window(self, address: str, size: int) -> WindowOutlet:
        def send(content: Content, lease: GivenLease) -> None:
            number = next(self.numbers)
            self.given[number] = lease
            text = content.octets.decode() if content.number == FORM else content.as_message().body
            self.say("AGAIN" if lease.redelivered else "MSG", number, address, text)

        def closed(condition: str | None, description: str | None) -> None:
            del self.windows[address]
            self.say("END", address, condition)

        return WindowOutlet(self, self._container.find(address), send, closed, window=size)

    async def on_ack(self, number: str) -> None:
        lease = self.given.pop(int(number))
        if self.transaction is None:
            lease.accepted()
        else:
            undo = partial(self.given.__setitem__, int(number), lease)
            self.transaction.add(LeaseAnswer(lease, lease.accepted, removes=True, undo=undo))

    async def on_nack(self, number: str) -> None:
        self.given.pop(int(number)).released()

    async def on_begin(self) -> None:
        await self.guard.check("transact", None)
        self.transaction = self.begin_transaction()
        self.say("OK")

    async def on_commit(self) -> None:
        transaction, self.transaction = self.transaction, None
        assert transaction is not None
        transaction.commit(
            lambda: self.say("OK" if transaction.failure is None else "NO", *transaction.failure or ())
        )

    async def on_rollback(self) -> None:
        assert self.transaction is not None
        self.transaction.rollback()
        self.transaction = None
        self.say("OK")
