"""A dialect of lines over a container: what a dialect needs is what this imports, and it knows nothing of AMQP.

``PUT queue text``, ``GET queue``, ``SUB queue n``, ``ACK n``, ``NACK n``, ``BEGIN``, ``COMMIT`` and ``ROLLBACK``, each a line. It answers ``OK``, ``NO reason``,
``MSG n queue text`` (``AGAIN n queue text`` for one that was given out before), ``EMPTY`` and ``BYE reason``.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.container.connected import LinkView, ServedPeer
from trio_amqp10.container.endpoints import GivenLease, PublishedArrival, Publisher, WindowOutlet
from trio_amqp10.container.nodes.content import Content
from trio_amqp10.container.nodes.forms import Form, register
from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.container.transactions import LeaseAnswer, Transaction
from trio_amqp10.net.pump import Pump, Traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trio_amqp10.container import Container

FORM = -7_000


class Line(Content):
    """A line of text; all of them are to survive."""

    __slots__ = ()

    def translated(self) -> bytes:
        return b"\x00Su\xb0" + len(self.octets).to_bytes(4, "big") + self.octets


def line_of(octets: bytes) -> Line:
    return Line(FORM, octets, durable=True)


register(FORM, Form(line_of))


class Lines:
    """The engine: octets to lines and back."""

    def __init__(self, wants_data: Callable[[], bool]) -> None:
        self.wants_data = wants_data
        self.closing = False
        self._begun = b""
        self._out: list[str] = []
        self._lines: deque[str] = deque()

    def say(self, *words: object) -> None:
        self._out.append(" ".join(map(str, words)))

    def receive_slice(self, data: bytes, now: float) -> None:
        *lines, self._begun = (self._begun + data).split(b"\n")
        self._lines.extend(line.decode() for line in lines)

    def has_input(self) -> bool:
        return False

    def receive_eof(self, now: float) -> None:
        self.closing = True

    def transport_lost(self) -> None:
        self.closing = True

    def next_event(self) -> str | None:
        return self._lines.popleft() if self._lines else None

    def data_to_send(self) -> bytes | None:
        out, self._out = self._out, []
        return "".join(f"{line}\n" for line in out).encode() if out or not self.closing else None

    def next_deadline(self) -> float | None:
        return None

    def handle_timer(self, now: float) -> None: ...

    def take_touched(self) -> tuple[()]:
        return ()


class ToyPeer(ServedPeer):
    """One connection."""

    container_id, identity, closed = "", None, False

    def __init__(
        self, container: Container, stream: trio.abc.Stream, name: str, identity: Any = None
    ) -> None:
        self.container_id, self.identity = name, identity
        super().__init__(container)
        self.lines, self._receive = trio.open_memory_channel[str](inf)
        self.engine, self.traffic = Lines(self.wants_data), Traffic()
        self.pump = Pump(self.engine, stream, self._on_line, self._on_over, totals=self.traffic)
        self.waiting = 0  # lines that were read and not obeyed
        self.publisher = Publisher(self, container.find, self.pump.ring)
        self.windows: dict[str, WindowOutlet] = {}
        self.given: dict[int, GivenLease] = {}
        self.numbers = count(1)
        self.transaction: Transaction | None = None

    async def serve(self) -> None:
        """Until the connection is over."""
        async with trio.open_nursery() as nursery:
            self.pump.start(nursery)
            try:
                self._container.enter(self, nursery)
                await self.guard.check("open", None)
                async for line in self._receive:
                    await self.obey(line)
            except RefusedError as refusal:
                self.close(refusal.condition, refusal.description)
            finally:
                self._container.leave(self)

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        self.engine.closing = True
        self.say("BYE", condition)
        self.lines.close()

    def _on_line(self, line: str) -> None:
        self.waiting += 1
        self.lines.send_nowait(line)

    def _on_over(self) -> None:
        self.closed = True
        self.lines.close()

    def ended(self) -> None:
        super().ended()
        if self.transaction is not None:
            self.transaction.rollback()
        self.publisher.close()
        for window in self.windows.values():
            window.end()
        for lease in list(self.given.values()):
            lease.outlet.end()  # what it has got by GET

    def say(self, *words: object) -> None:
        self.engine.say(*words)
        self.pump.ring()

    def wants_data(self) -> bool:
        """A line at a time, and none while a queue or the container takes no more."""
        if self.watermark.high:
            self.watermark.when_low(self.pump.ring)
        return self.engine.closing or not (self.watermark.high or self.waiting or self.publisher.waiting)

    def statistics(self) -> Mapping[str, Any]:
        return {"state": "open", "octets_in": self.traffic.octets_in, "octets_out": self.traffic.octets_out}

    def links(self) -> Iterator[LinkView]:
        for role, names in (("receiver", self.publisher.inlets), ("sender", self.windows)):
            for name in names:
                yield LinkView(role, name, partial(dict, state="open", address=name))

    # -- lines ------------------------------------------------------------------------------

    async def obey(self, line: str) -> None:
        verb, *words = line.split(" ", 2)
        try:
            await getattr(self, f"on_{verb.lower()}")(*words)
        except RefusedError as refusal:
            self.say("NO", refusal.condition)
        self.waiting -= 1
        self.pump.ring()

    async def on_put(self, address: str, text: str) -> None:
        await self.guard.check("send", address)
        arrival = PublishedArrival(line_of(text.encode()), self.answer)
        if self.transaction is not None:
            self.transaction.post(self._container.find(address), arrival, arrival.content.size)
            return
        self.publisher.publish(address, arrival)

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
        self.check_outlet(node, copying=False, target=None, interest=window.interest)
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
            lambda: self.say("OK" if transaction.fate is None else "NO", *transaction.fate or ())
        )

    async def on_rollback(self) -> None:
        assert self.transaction is not None
        self.transaction.rollback()
        self.transaction = None
        self.say("OK")
