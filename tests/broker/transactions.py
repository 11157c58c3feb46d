"""Transactions without a protocol: what is posted in them, and the leases that they answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.broker.nodes import form_registry
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.broker.nodes.message_store import MESSAGES
from trio_amqp10.broker.nodes.watermark import Watermark
from trio_amqp10.broker.transactions import Transaction
from trio_amqp10.container import Lease, Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.broker.stores.base import Store
    from trio_amqp10.broker.stores.group_commit import Journal
    from trio_amqp10.container import Inlet


class Peer:
    """The other end of no connection; its tasks are remembered."""

    container_id = "peer"
    identity = None

    def __init__(self) -> None:
        self.started: list[Any] = []

    def start_soon(self, function: Any, *args: Any) -> None:
        self.started.append((function, args))


class Posted:
    """An arrival of no dialect."""

    tag = b""

    def __init__(self, body: Any, *, durable: bool = False, settled: bool = False) -> None:
        made = amqp.Message(body, durable=durable)
        self.content = form_registry.content_of(0, made.to_payload())
        self.size = len(made.to_payload())
        self.settled = settled
        self.state: Any = None

    @property
    def message(self) -> Any:
        return self.content.as_message()

    def record_acceptance(self) -> None: ...

    def accept(self) -> None:
        self.state = "accepted"

    def reject(self, *_: Any) -> None:
        self.state = "rejected"

    def release(self) -> None:
        self.state = "released"

    def keep(self) -> bool:
        return False


class HeldMessages(Lease):
    """A lease that remembers what was said to it, and that a store has the message of if it has a journal."""

    def __init__(self, journal: Journal | None = None) -> None:
        self.said: list[str] = []
        self.journal = journal

    def delete_in_commit(self) -> Callable[[], object] | None:
        if self.journal is None:
            return None
        self.said.append("deleted")
        self.journal.note(MESSAGES, 99, None)
        return lambda: self.said.append("undone")

    def accepted(self) -> None:
        self.said.append("accepted")

    def released(self) -> None:
        self.said.append("released")


class Timers:
    """Calls what is due when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[tuple[float, Any]] = []
        self.clock = Clock(now=lambda: self.now)
        self.clock.call_at = lambda when, call: self.due.append((when, call))  # type: ignore[assignment, return-value]

    def advance(self) -> float:
        """To the next that is due; returns the seconds until then."""
        self.due.sort(key=lambda each: each[0])
        when, call = self.due.pop(0)
        passed, self.now = when - self.now, when
        call()
        return passed


class Failing(Node):
    """Takes messages, and raises as often as it should."""

    accepts_senders = True

    def __init__(self, failures: float, *, after: int = 0, answers: bool = True) -> None:
        super().__init__("failing")
        self.failures, self.after, self.answers = failures, after, answers
        self.got: list[Any] = []

    def on_arrivals(self, inlet: Inlet) -> None:
        left = self.after
        while True:
            if not left and self.failures:
                self.failures -= 1
                if self.answers:
                    raise ZeroDivisionError("a node that fails")
                inlet.take()
                raise ZeroDivisionError("a node that fails, with a message in its hand")
            arrival = inlet.take()
            if arrival is None:
                return
            left -= 1
            self.got.append(arrival.message.body)
            arrival.accept()


class Room:
    """What transactions are made of here."""

    def __init__(self, store: Store | None = None) -> None:
        self.peer = Peer()
        self.timers = Timers()
        self.container = amqp.Container(store=store)
        self.watermark = Watermark(1_000_000)
        self.rolled_back = 0
        self.told: list[tuple[str, str] | None] = []
        if store is not None:
            self.container._recover()

    def queue(self, name: str, **rules: Any) -> Any:
        there = self.container.nodes.get(name)
        return self.container.add_queue(name, **rules) if there is None else there

    def begin(self, **more: Any) -> Transaction:
        def rolled_back() -> None:
            self.rolled_back += 1

        return Transaction(
            self.peer,
            self.timers.clock,
            self.watermark,
            journal=self.container.journal,
            on_rollback=rolled_back,
            **more,
        )

    def post(self, txn: Transaction, node: Node, *arrivals: Posted) -> None:
        for arrival in arrivals:
            txn.post(node, arrival, arrival.size)

    async def commit(self, txn: Transaction) -> tuple[str, str] | None:
        txn.commit(lambda: self.told.append(txn.failure))
        if self.container.journal is not None:
            await self.container.journal.flushed()
        await wait_all_tasks_blocked()
        return self.told.pop()


def length_of(room: Room, *names: str) -> list[int]:
    return [len(room.queue(name)) for name in names]
