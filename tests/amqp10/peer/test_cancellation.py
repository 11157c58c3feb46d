"""Every public call, cancelled at every one of its checkpoints: nothing is left behind, lost or handed out twice."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair, memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.testing import open_container

from .helpers import Node, acceptor, idle, served

if TYPE_CHECKING:
    from collections.abc import Generator

    from trio_amqp10.amqp10.peer.connection import Connection


class CancelAtStep(trio.abc.Instrument):
    """Cancels a scope when one task has come to its n-th checkpoint, and waits there."""

    def __init__(self, step: int, scope: trio.CancelScope) -> None:
        self.left = step
        self._scope = scope
        self._task = trio.lowlevel.current_task()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            self.left -= 1
            if self.left == 0:
                self._scope.cancel()


@contextmanager
def cancelled_at(step: int) -> Generator[CancelAtStep]:
    """Cancel the block when this task has come to its n-th checkpoint there."""
    scope = trio.CancelScope()
    instrument = CancelAtStep(step, scope)
    trio.lowlevel.add_instrument(instrument)
    try:
        with scope:
            yield instrument
    finally:
        trio.lowlevel.remove_instrument(instrument)


class Service:
    """Accepts whatever comes; counts what it got, and what of its own was taken."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.sent: list[amqp.OutgoingDelivery] = []
        self.failures: list[BaseException] = []
        self.total = 0

    async def handle(self, conn: Connection) -> None:
        try:
            async with trio.open_nursery() as nursery:
                async for link in conn.incoming_links():
                    if isinstance(link, amqp.IncomingReceiver):
                        nursery.start_soon(self.receive, link)
                    else:
                        nursery.start_soon(self.send, link)
        except Exception as failure:
            self.failures.append(failure)
            raise

    async def receive(self, link: amqp.IncomingReceiver) -> None:
        async with link.accept(credit=2) as receiver:
            async for delivery in receiver:
                self.got.append(delivery.message.body)
                delivery.accept()

    async def send(self, link: amqp.IncomingSender) -> None:
        async with link.accept() as sender:
            try:
                while True:
                    self.sent.append(await sender.transmit(self.total))
                    self.total += 1
            except amqp.LinkDetachedError:
                pass


Scenario = "Callable[[Connection, dict[str, Any]], Awaitable[object]]"


async def opens_a_session(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_session():
        pass


async def opens_a_sender(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_sender("q", name="fixed"):
        pass


async def opens_a_receiver(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_receiver("q", name="fixed"):
        pass


async def opens_a_link_with_a_session_of_its_own(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_receiver("q", own_session=True, name="fixed"):
        pass


async def sends(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_sender("q") as sender:
        for number in range(4):
            await sender.send(number)
            seen["returned"] = number + 1


async def transmits(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_sender("q", guarantee="at-most-once") as sender:
        for number in range(6):
            await sender.transmit(number)
            seen["returned"] = number + 1


async def transmits_a_large_message(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_sender("q", guarantee="at-most-once") as sender:
        await sender.transmit("x" * 150_000)
        seen["returned"] = 1
        await sender.transmit("small")
        seen["returned"] = 2


async def waits_and_flushes(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_sender("q") as sender:
        await sender.wait_sendable()
        delivery = sender.send_nowait(0)
        await delivery.outcome()
        await delivery.wait_settled()
        await sender.flush()


async def receives(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_receiver("q", credit=3) as receiver:
        for _ in range(5):
            delivery = await receiver.receive()
            seen.setdefault("taken", []).append(delivery.message.body)
            delivery.accept()


async def receives_one_by_one(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_receiver("q", credit=0) as receiver:
        for _ in range(4):
            delivery = await receiver.receive()
            seen.setdefault("taken", []).append(delivery.message.body)
            delivery.accept()


async def iterates(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_receiver("q", credit=3) as receiver:
        async for delivery in receiver:
            seen.setdefault("taken", []).append(delivery.message.body)
            delivery.accept()
            if len(seen["taken"]) == 5:
                break


async def receives_many_and_drains(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_receiver("q", credit=4) as receiver:
        for delivery in await receiver.receive_many(2):
            seen.setdefault("taken", []).append(delivery.message.body)
            delivery.accept()
        for delivery in await receiver.drain():
            seen.setdefault("taken", []).append(delivery.message.body)
            delivery.accept()


async def settles_twice(conn: Connection, seen: dict[str, Any]) -> None:
    async with conn.open_receiver("q", credit=3, guarantee="exactly-once") as receiver:
        delivery = await receiver.receive()
        delivery.accept()
        await delivery.wait_settled()


async def iterates_over_links(conn: Connection, seen: dict[str, Any]) -> None:
    with trio.move_on_after(1):
        async for link in conn.incoming_links():
            await link.refuse()


SCENARIOS = [
    opens_a_session,
    opens_a_sender,
    opens_a_receiver,
    opens_a_link_with_a_session_of_its_own,
    sends,
    transmits,
    transmits_a_large_message,
    waits_and_flushes,
    receives,
    receives_one_by_one,
    iterates,
    receives_many_and_drains,
    settles_twice,
    iterates_over_links,
]


async def settled_down(rounds: int = 30) -> None:
    for _ in range(rounds):
        await trio.lowlevel.checkpoint()


async def run_cancelled_at(scenario: Any, step: int, streams: Any) -> bool:
    """One run; whether the scenario was cancelled at all, or was through before."""
    service = Service()
    seen: dict[str, Any] = {}
    before = set(_tasks())
    async with trio.open_nursery() as nursery:
        ours, theirs = streams()
        nursery.start_soon(acceptor().run, theirs, service.handle)
        async with amqp.open_connection(ours) as conn:
            with cancelled_at(step) as instrument:
                await scenario(conn, seen)
            await settled_down()
            check(conn, service, seen)
            # It goes on as if nothing had been.
            async with conn.open_sender("q", name="fixed") as sender:
                await sender.send("afterwards")
            async with conn.open_receiver("q", name="fixed") as receiver:
                (await receiver.receive()).accept()
        assert service.got[-1] == "afterwards"
    assert not service.failures
    assert set(_tasks()) == before
    return instrument.left <= 0


def check(conn: Connection, service: Service, seen: dict[str, Any]) -> None:
    """Both ends agree, and nothing was lost."""
    assert not conn.closed
    assert len(conn.engine.names) == 0
    assert sum(len(session.links) for session in conn.engine.channels.ours.values()) == 0
    assert len(conn.engine.channels.ours) == 1
    if "returned" in seen:
        numbers = [body for body in service.got if isinstance(body, int)]
        assert numbers == list(range(len(numbers)))
        assert len(service.got) >= seen["returned"]
    if "taken" in seen:
        assert seen["taken"] == list(range(len(seen["taken"])))
        accepted = [n for n, d in enumerate(service.sent) if isinstance(d.state, amqp.Accepted)]
        assert accepted == seen["taken"]
    for delivery in service.sent:
        # What was not taken was given back, or went with its link: never accepted by itself.
        assert delivery.state is None or isinstance(delivery.state, (amqp.Accepted, amqp.Released))


def _tasks() -> list[trio.lowlevel.Task]:
    root = trio.lowlevel.current_root_task()
    assert root is not None
    found: list[trio.lowlevel.Task] = []
    todo = [root]
    while todo:
        task = todo.pop()
        found.append(task)
        for nursery in task.child_nurseries:
            todo.extend(nursery.child_tasks)
    return found


@pytest.mark.parametrize("streams", [memory_stream_pair, lockstep_stream_pair], ids=["memory", "lockstep"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
async def test_call_leaves_both_ends_consistent_when_it_is_cancelled_at_any_checkpoint(
    scenario: Any, streams: Any, autojump_clock: MockClock
) -> None:
    for step in range(1, 300):
        if not await run_cancelled_at(scenario, step, streams):
            assert step > 2
            return
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("streams", [memory_stream_pair, lockstep_stream_pair], ids=["memory", "lockstep"])
@pytest.mark.parametrize("sasl", [False, True])
async def test_dialling_and_leaving_end_at_once_when_they_are_cancelled_at_any_checkpoint(
    streams: Any, sasl: bool, autojump_clock: MockClock
) -> None:
    for step in range(1, 300):
        began = trio.current_time()
        before = set(_tasks())
        async with trio.open_nursery() as nursery:
            ours, theirs = streams()
            nursery.start_soon(acceptor().run, theirs, idle)
            with cancelled_at(step) as instrument:
                mechanism = amqp.sasl.Anonymous() if sasl else None
                async with amqp.open_connection(ours, sasl=mechanism) as conn:
                    pass
                assert conn.pump.finished.is_set()
        assert trio.current_time() - began <= 1
        assert set(_tasks()) == before
        with pytest.raises(trio.ClosedResourceError):
            await ours.send_all(b"x")
        if instrument.left > 0:
            return
    raise AssertionError("it never came to its end")


async def test_dialling_over_tcp_leaves_no_descriptor_open_when_it_is_cancelled_at_any_checkpoint() -> None:
    from .helpers import listening

    node = Service()
    async with listening(node.handle) as [listener]:
        async with amqp.open_connection(listener.url):
            pass
        await settled_down(100)
        before = len(os.listdir("/proc/self/fd"))
        for step in range(1, 100):
            with cancelled_at(step) as instrument:
                async with amqp.open_connection(listener.url) as conn, conn.open_sender("q") as sender:
                    await sender.send("x")
            if instrument.left > 0:
                break
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("streams", [memory_stream_pair, lockstep_stream_pair], ids=["memory", "lockstep"])
async def test_service_is_gone_within_a_second_when_it_is_cancelled_at_any_checkpoint(
    streams: Any, autojump_clock: MockClock
) -> None:
    for step in range(1, 120):
        service = Service()
        began = trio.current_time()
        ours, theirs = streams()
        instrument: CancelAtStep | None = None

        async def serve(step: int = step, service: Service = service, theirs: Any = theirs) -> None:
            nonlocal instrument
            with trio.CancelScope() as scope:
                instrument = CancelAtStep(step, scope)
                trio.lowlevel.add_instrument(instrument)
                try:
                    await acceptor().run(theirs, service.handle)
                finally:
                    trio.lowlevel.remove_instrument(instrument)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            try:
                async with amqp.open_connection(ours) as conn, conn.open_sender("q") as sender:
                    await sender.send("x")
                    await conn.aclose()
            except (amqp.ConnectionClosedError, amqp.LinkDetachedError):
                pass
        assert trio.current_time() - began <= 1
        assert instrument is not None
        if instrument.left > 0:
            return
    raise AssertionError("it never came to its end")


async def leave_and_be_cancelled(link: Any) -> None:
    """Leave a block whose message gets no outcome, which is waited for, and be cancelled there."""
    with trio.move_on_after(1) as scope:
        async with link as sender:
            await sender.transmit("ignore")
    assert scope.cancelled_caught


async def test_link_is_closed_when_leaving_its_block_is_cancelled(autojump_clock: MockClock) -> None:
    async with served(Node().handle) as conn:
        await leave_and_be_cancelled(conn.open_sender("q"))
        await wait_all_tasks_blocked()
        assert not len(conn.engine.names)


async def test_link_of_the_peer_is_closed_when_leaving_its_block_is_cancelled(
    autojump_clock: MockClock,
) -> None:
    async def handle(conn: Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingSender)
            await leave_and_be_cancelled(link.accept())

    async with served(handle) as conn, conn.open_receiver("q") as receiver:
        await receiver.receive()
        with pytest.raises(amqp.LinkDetachedError):
            await receiver.receive()


async def test_transaction_leaves_no_link_when_it_is_cancelled_at_any_checkpoint(
    autojump_clock: MockClock,
) -> None:
    async with open_container() as container, container.connect() as conn:
        for step in range(1, 50):
            with cancelled_at(step) as instrument:
                async with conn.open_transaction():
                    pass
            await wait_all_tasks_blocked()
            assert not len(conn.engine.names), step
            if instrument.left > 0:
                return
    raise AssertionError("it never came to its end")
