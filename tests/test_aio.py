"""AMQP from asyncio: the calls, cancellation at every step, loops that come and go, and trio as a guest."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair

import trio_amqp10 as amqp
from trio_amqp10 import aio, blocking
from trio_amqp10.testing import running_container

from .test_blocking import running_service

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

SECONDS = 60


@pytest.fixture
def url() -> Iterator[str]:
    container = amqp.Container("peer")
    container.add_queue("orders")

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:
        return str(message.body).upper()

    @container.consumer("never")
    async def never(delivery: amqp.Delivery) -> None:
        await trio.sleep_forever()

    @container.consumer("refuses")
    async def refuses(delivery: amqp.Delivery) -> None:
        delivery.reject("amqp:not-allowed", "no")

    with running_container(container=container) as url:
        yield url


@pytest.fixture(params=["thread", "guest"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """``asyncio.run``, with trio in its thread or as a guest; nothing remains afterwards."""

    async def limited(main: Coroutine[Any, Any, Any]) -> Any:
        async with asyncio.timeout(SECONDS), nullcontext() if request.param == "thread" else aio.guest_mode():
            found = await main
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found

    def runs(main: Coroutine[Any, Any, Any]) -> Any:
        found = asyncio.run(limited(main))
        assert threads() == []
        return found

    return runs


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "amqp"]


def test_messages_are_sent_and_received(url: str, run: Any) -> None:
    async def main() -> None:
        async with aio.connect(url) as conn:
            async with conn.open_sender("orders") as sender:
                assert await sender.send("one") == amqp.Accepted()
                assert await sender.send("two", timeout=5, tag=b"mine") == amqp.Accepted()
                assert await sender.send("three") == amqp.Accepted()
                assert "aio" in repr(sender)
                assert sender.address == "orders"
            async with conn.open_receiver("orders", credit=1) as receiver:
                assert (await receiver.receive()).message.body == "one"  # and left unsettled: it comes again
            async with conn.open_receiver("orders") as receiver:
                first = await receiver.receive(timeout=5)
                await first.accept()
                with pytest.raises(amqp.LocalProtocolError):
                    await first.accept()
                async for second in receiver:
                    await second.modify(delivery_failed=True, annotations={"x-opt-why": "cold"})
                    break
                found: list[aio.Delivery] = []
                while len(found) < 2:
                    found += await receiver.receive_many(2, timeout=5)
                (again,) = [one for one in found if one.message.annotations == {"x-opt-why": "cold"}]
                assert again.message.delivery_count
                await again.release()
                await (await receiver.receive(timeout=5)).reject("amqp:not-allowed", "no")
                with pytest.raises(trio.TooSlowError):
                    await receiver.receive(timeout=0.05)
            async with conn.open_sender("orders", guarantee="at-most-once") as sender:
                assert await sender.send("four", settled=True) is None

    run(main())


def test_messages_are_transmitted_in_order_and_their_outcomes_awaited_later(url: str, run: Any) -> None:
    async def main() -> None:
        async with aio.connect(url) as conn, conn.open_sender("orders") as sender:
            deliveries = [await sender.transmit(number, timeout=5) for number in range(500)]
            assert {type(await one.outcome(timeout=5)) for one in deliveries} == {amqp.Accepted}
            assert await deliveries[0].outcome() == amqp.Accepted()
            assert repr(deliveries[0]).startswith("<aio <OutgoingDelivery ")
            await sender.flush()
            async with conn.open_sender("orders", guarantee="at-most-once") as hasty:
                assert await (await hasty.transmit(500)).outcome() is None
            async with conn.open_receiver("orders", prefetch=600) as receiver:
                found: list[aio.Delivery] = []
                while len(found) < 501:
                    found += await receiver.receive_many(100)
                assert [one.message.body for one in found] == list(range(501))

    run(main())


def test_message_that_changes_after_the_call_is_sent_as_it_was(url: str, run: Any) -> None:
    async def main() -> None:
        async with aio.connect(url) as conn, conn.open_sender("orders") as sender:
            message = amqp.Message("before")
            delivery = await sender.transmit(message)
            message.body = "after"
            await delivery.outcome()
            async with conn.open_receiver("orders") as receiver:
                assert (await receiver.receive()).message.body == "before"

    run(main())


@pytest.mark.parametrize("how", ["send", "transmit"])
def test_refusal_that_the_program_knows_does_not_undo_its_transaction(url: str, how: str) -> None:
    """The coordinator decides, as with trio (4.4.1). A message without an address is refused."""

    async def main() -> None:
        async with aio.connect(url) as conn, conn.open_sender(None) as sender:
            transaction = await conn.open_transaction()
            if how == "send":
                with pytest.raises(amqp.DeliveryRejectedError):
                    await sender.send("tea", transaction=transaction)
            else:
                sent = await sender.transmit("tea", transaction=transaction)
                assert isinstance(await sent.outcome(), amqp.Rejected)
            (delivery,) = transaction._inner._posted
            assert delivery.was_asked
            with pytest.raises(amqp.TransactionRolledBackError, match="amqp:transaction:rollback"):
                await transaction.commit()
            await transaction.close()

    asyncio.run(main())


def test_outcome_is_told_to_all_who_ask(url: str, run: Any) -> None:
    async def main() -> None:
        async with aio.connect(url) as conn, conn.open_sender("orders") as sender:
            sent = await sender.transmit("tea")
            assert await asyncio.gather(*(sent.outcome() for _ in range(3))) == [amqp.Accepted()] * 3

    run(main())


def test_copies_are_browsed_requests_answered_and_work_committed(url: str, run: Any) -> None:
    async def main() -> None:
        async with aio.open_connection(url) as conn:
            async with conn.open_requester("upper") as requester:
                assert (await requester.request("a", timeout=5)).body == "A"
            async with conn.open_sender("orders") as sender:
                async with conn.open_transaction() as transaction:
                    await sender.send("one", transaction=transaction)
                    await (await sender.transmit("two", transaction=transaction)).outcome()
                assert transaction.state == "committed"
                with pytest.raises(ZeroDivisionError):
                    async with conn.open_transaction() as transaction:
                        await sender.send("three", transaction=transaction)
                        raise ZeroDivisionError
                assert transaction.state == "rolled back"
            async with conn.browse("orders") as copies:
                assert [(await copies.receive(timeout=5)).message.body for _ in range(2)] == ["one", "two"]
            async with conn.open_receiver("orders") as receiver:
                transaction = await conn.open_transaction()
                await (await receiver.receive(timeout=5)).accept(transaction=transaction)
                await transaction.commit()
                await transaction.close()
                assert (await receiver.receive(timeout=5)).message.body == "two"

    run(main())


def test_thousand_tasks_share_a_connection(url: str, run: Any) -> None:
    async def main() -> None:
        async with aio.connect(url) as conn, conn.open_requester("upper") as requester:
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(requester.request(f"a{n}")) for n in range(1000)]
            assert [task.result().body for task in asked] == [f"A{n}" for n in range(1000)]
            async with conn.open_sender("orders") as sender, conn.open_receiver("orders") as receiver:
                async with asyncio.TaskGroup() as group:
                    for number in range(1000):
                        group.create_task(sender.send(number))
                    got = [group.create_task(receiver.receive()) for _ in range(1000)]
                assert sorted(task.result().message.body for task in got) == list(range(1000))
                for task in got:
                    await task.result().accept()

    run(main())


def test_exceptions_are_those_of_the_library(url: str, run: Any) -> None:
    async def main() -> None:
        with pytest.raises(OSError, match="127.0.0.1:1"):  # noqa: RUF043
            await aio.connect("amqp://127.0.0.1:1")
        with pytest.raises(amqp.LocalProtocolError, match="needs a URL"):
            aio.connect(memory_stream_pair()[0])
        with pytest.raises(TypeError, match="misspelt"):
            aio.connect(url, misspelt=1)  # type: ignore[call-arg]
        async with aio.connect(url) as conn:
            with pytest.raises(amqp.LinkRefusedError):
                async with conn.browse("upper"):
                    raise AssertionError
            async with conn.open_sender("refuses") as sender:
                with pytest.raises(amqp.DeliveryRejectedError) as caught:
                    await sender.send("tea")
                assert caught.value.outcome.error.description == "no"
                with pytest.raises(amqp.LocalProtocolError):
                    await sender.transmit(object())
        failure = ZeroDivisionError()
        with pytest.raises(ZeroDivisionError) as same:
            async with aio.connect(url) as conn, conn.open_sender("orders"):
                raise failure
        assert same.value is failure

    run(main())


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 6, 9, "thread"])
def test_receive_that_is_cancelled_at_any_step_loses_nothing(
    url: str, run: Any, turns: Any, many: bool
) -> None:
    async def take(receiver: aio.Receiver) -> list[Any]:
        found = await receiver.receive_many(3) if many else [await receiver.receive()]
        return [one.message.body for one in found]

    async def main() -> None:
        got: list[Any] = []
        async with (
            aio.connect(url) as conn,
            conn.open_sender("orders") as sender,
            conn.open_receiver("orders") as receiver,
        ):
            for number in range(100):
                await sender.transmit(number)
                task = asyncio.create_task(take(receiver))
                if turns == "thread":
                    await asyncio.sleep(number / 100_000)
                else:
                    for _ in range(turns):
                        await asyncio.sleep(0)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    got += await task
            while len(got) < 100:
                got += await take(receiver)
        assert got == list(range(100))

    run(main())


@pytest.mark.parametrize("wait", ["timeout", "wait_for"])
def test_receive_that_times_out_in_asyncio_loses_nothing(url: str, run: Any, wait: str) -> None:
    async def main() -> None:
        got: list[Any] = []
        async with (
            aio.connect(url) as conn,
            conn.open_sender("orders") as sender,
            conn.open_receiver("orders") as receiver,
        ):
            for number in range(50):
                await sender.transmit(number)
                with suppress(TimeoutError):
                    if wait == "timeout":
                        async with asyncio.timeout(number / 50_000):
                            got.append((await receiver.receive()).message.body)
                    else:
                        delivery = await asyncio.wait_for(receiver.receive(), number / 50_000)
                        got.append(delivery.message.body)
            while len(got) < 50:
                got.append((await receiver.receive()).message.body)
        assert sorted(got) == list(range(50))

    run(main())


@pytest.mark.parametrize("turns", range(12))
def test_transmit_that_is_cancelled_at_any_step_has_sent_nothing(url: str, run: Any, turns: int) -> None:
    async def main() -> None:
        sent: list[int] = []
        async with aio.connect(url) as conn:
            async with conn.open_sender("orders") as sender:
                for number in range(300):  # more than the credit, so that some have to wait
                    task = asyncio.create_task(sender.transmit(number))
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
                        sent.append(number)
            async with conn.open_receiver("orders", prefetch=400) as receiver:
                got = []
                with suppress(trio.TooSlowError):
                    while True:
                        got += [one.message.body for one in await receiver.receive_many(100, timeout=0.2)]
        assert got == sent

    run(main())


def test_transmit_waits_for_credit_and_is_cancelled_there(url: str, run: Any) -> None:
    async def main() -> None:
        async with aio.connect(url, close_timeout=0.1) as conn, conn.open_sender("never") as sender:
            sent = 0
            with pytest.raises(trio.TooSlowError):
                while True:
                    await sender.transmit("tea", timeout=0.3)
                    sent += 1
            assert sent == 100
            waiting = [asyncio.create_task(sender.transmit("tea")) for _ in range(5)]
            await asyncio.sleep(0.05)
            for task in waiting:
                task.cancel()
            assert {type(one) for one in await asyncio.gather(*waiting, return_exceptions=True)} == {
                asyncio.CancelledError
            }
            assert conn._inner.statistics()["messages_out"] == 100
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await sender.send("tea")

    run(main())


def test_block_of_a_cancelled_task_is_left(url: str, run: Any) -> None:
    async def work(entered: asyncio.Event) -> None:
        async with aio.connect(url) as conn, conn.open_receiver("orders") as receiver:
            entered.set()
            await receiver.receive()

    async def main() -> None:
        entered = asyncio.Event()
        task = asyncio.create_task(work(entered))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.TaskGroup() as group:
                entered = asyncio.Event()
                group.create_task(work(entered))
                await entered.wait()
                raise ZeroDivisionError
        assert [type(one) for one in caught.value.exceptions] == [ZeroDivisionError]

    run(main())


@pytest.mark.parametrize("turns", [*range(12), 20, 50, 200])
def test_connection_that_is_cancelled_while_it_opens_is_closed(url: str, run: Any, turns: int) -> None:
    async def opened() -> None:
        async with aio.connect(url) as conn, conn.open_sender("orders"), conn.open_transaction():
            await asyncio.sleep(SECONDS)

    async def main() -> None:
        task = asyncio.create_task(opened())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())


def test_transaction_whose_task_is_cancelled_is_rolled_back(url: str, run: Any) -> None:
    async def main() -> None:
        async with aio.connect(url) as conn, conn.open_sender("orders") as sender:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2), conn.open_transaction() as transaction:
                    await sender.send("tea", transaction=transaction)
                    await asyncio.sleep(SECONDS)
            async with conn.open_receiver("orders") as receiver:
                with pytest.raises(trio.TooSlowError):
                    await receiver.receive(timeout=0.2)

    run(main())


def test_what_is_closed_raises_at_once(url: str, run: Any) -> None:
    async def main() -> None:
        conn = await aio.connect(url)
        sender = await conn.open_sender("orders")
        await sender.close()
        await sender.close()
        for call in (sender.send, sender.transmit):
            with pytest.raises(trio.ClosedResourceError):
                await call("tea")
        receiver = await conn.open_receiver("orders")
        waiting = asyncio.create_task(receiver.receive())
        still = await conn.open_sender("orders")
        delivery = await still.transmit("tea")
        await delivery.outcome()
        received = await waiting
        waiting = asyncio.create_task(receiver.receive())
        await asyncio.sleep(0.05)
        await conn.close()
        await conn.close()
        await receiver.close()
        with pytest.raises(trio.ClosedResourceError):
            await waiting
        for again in (receiver.receive, lambda: still.transmit("tea"), received.accept, delivery.outcome):
            with pytest.raises(trio.ClosedResourceError):
                await again()
        with pytest.raises(trio.ClosedResourceError):
            await conn.open_sender("orders")

    run(main())


def test_connection_belongs_to_its_loop(url: str) -> None:
    async def use(conn: aio.Connection, sender: aio.Sender) -> None:
        for call in (lambda: sender.send("x"), lambda: sender.transmit("x"), conn.close):
            with pytest.raises(RuntimeError, match="another event loop"):
                await call()
        with pytest.raises(RuntimeError, match="another event loop"):
            await conn.open_sender("orders")

    async def main() -> None:
        async with aio.connect(url) as conn, conn.open_sender("orders") as sender:
            await asyncio.to_thread(asyncio.run, use(conn, sender))
            await sender.send("tea")

    asyncio.run(main())
    assert threads() == []


def test_connection_of_a_loop_that_was_closed_is_closed(url: str) -> None:
    async def main() -> aio.Connection:
        conn = await aio.connect(url)
        await conn.open_receiver("orders")
        return conn

    conn = asyncio.run(main())
    ended = time.monotonic() + 10
    while threads() and time.monotonic() < ended:
        time.sleep(0.01)
    assert threads() == []
    with pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(conn.close())


def test_loop_that_is_closed_under_a_call_ends_it(url: str) -> None:
    loop = asyncio.new_event_loop()
    conn = loop.run_until_complete(_opened(url))
    receiver = loop.run_until_complete(_receiver(conn))
    call = loop.create_task(receiver.receive())
    loop.run_until_complete(asyncio.sleep(0.05))
    loop.close()
    ended = time.monotonic() + 10
    while threads() and time.monotonic() < ended:
        time.sleep(0.01)
    assert threads() == []
    call._log_destroy_pending = False  # type: ignore[attr-defined]  # it was left alone on purpose
    call.get_coro().close()  # type: ignore[union-attr]


async def _opened(url: str) -> aio.Connection:
    return await aio.connect(url)


async def _receiver(conn: aio.Connection) -> aio.Receiver:
    return await conn.open_receiver("orders")


def test_loops_follow_each_other_and_run_side_by_side(url: str, run: Any) -> None:
    async def main() -> str:
        async with aio.connect(url) as conn, conn.open_requester("upper") as requester:
            return str((await requester.request("a", timeout=20)).body)

    assert [run(main()) for _ in range(5)] == ["A"] * 5  # as tests that have a loop each
    found: list[str] = []
    loops = [threading.Thread(target=lambda: found.append(asyncio.run(main()))) for _ in range(4)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join()
    assert found == ["A"] * 4
    assert threads() == []


def test_peer_that_goes_ends_the_calls(run: Any) -> None:
    async def main() -> None:
        peer = running_container(["orders"])
        url = await asyncio.to_thread(peer.__enter__)
        async with (
            aio.connect(url) as conn,
            conn.open_sender("orders") as sender,
            conn.open_receiver("orders") as receiver,
        ):
            waiting = asyncio.create_task(receiver.receive())
            await asyncio.sleep(0.05)
            await asyncio.to_thread(peer.__exit__, None, None, None)
            with pytest.raises(amqp.AmqpError):
                await waiting
            with pytest.raises(amqp.AmqpError):
                await sender.send("tea")
            with pytest.raises(amqp.AmqpError):
                await sender.transmit("tea")

    run(main())


def test_message_that_is_too_large_is_refused_by_the_call(run: Any) -> None:
    async def main(url: str) -> None:
        async with aio.connect(url) as conn, conn.open_sender("orders") as sender:
            for call in (sender.send, sender.transmit):
                with pytest.raises(amqp.MessageSizeError):
                    await call(bytes(200))

    async def serve(conn: amqp.Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept(max_message_size=100):
                await trio.sleep_forever()

    with running_service(serve) as url:
        run(main(url))


def test_two_guests_of_a_loop_are_refused(url: str) -> None:
    async def main() -> None:
        async with aio.guest_mode():
            with pytest.raises(RuntimeError, match="already"):
                async with aio.guest_mode():
                    raise AssertionError
            conn = await aio.connect(url)
            receiver = await conn.open_receiver("orders")
            waiting = asyncio.create_task(receiver.receive())
            await asyncio.sleep(0.05)
        with pytest.raises(trio.ClosedResourceError):  # the end of the block has closed it
            await waiting
        async with aio.connect(url) as conn, conn.open_sender("orders") as sender:
            await sender.send("tea")

    asyncio.run(main())
    assert threads() == []


INTERRUPTED = """
import asyncio, os, signal, sys, threading
from contextlib import nullcontext
from trio_amqp10 import aio

async def main():
    async with nullcontext() if sys.argv[2] == "thread" else aio.guest_mode():
        async with aio.connect(sys.argv[1]) as conn, conn.open_receiver("orders") as receiver:
            threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
            try:
                await receiver.receive()
            except asyncio.CancelledError:
                print("cancelled")
                raise

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", [one.name for one in threading.enumerate() if one.name == "amqp"])
"""


@pytest.mark.parametrize("where", ["thread", "guest"])
def test_interrupt_cancels_the_main_task(url: str, where: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, url, where]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["cancelled", "interrupted []"]


FORKED = """
import asyncio, os, sys
from trio_amqp10 import aio

async def child():
    async with aio.connect(sys.argv[1]) as own, own.open_sender("orders") as sender:
        await sender.send("child")

async def refused(sender):
    try:
        await sender.send("child")
    except RuntimeError as error:
        assert "parent process" in str(error), error
        return
    raise AssertionError

async def main():
    async with aio.connect(sys.argv[1]) as conn, conn.open_sender("orders") as sender:
        await sender.send("parent")
        pid = os.fork()
        if not pid:
            try:
                asyncio._set_running_loop(None)
                asyncio.run(refused(sender))
                asyncio.run(child())
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(await asyncio.to_thread(lambda: os.waitpid(pid, 0)[1])) == 0
        await sender.send("parent")
    print("good")

asyncio.run(main())
"""


def test_child_process_has_no_part_in_the_connections_of_its_parent(url: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKED, url]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert done.stdout == "good\n"


def test_program_that_does_not_close_ends(url: str) -> None:
    code = (
        "import asyncio, sys; from trio_amqp10 import aio\n"
        "async def main():\n    await (await aio.connect(sys.argv[1])).open_receiver('orders')\n"
        "asyncio.run(main())"
    )
    assert subprocess.run([sys.executable, "-c", code, url], timeout=20, check=False).returncode == 0


def test_calls_are_those_of_blocking() -> None:
    extra = {"Opening", "guest_mode"}
    assert set(aio.__all__) == set(blocking.__all__) | extra
    assert dir(aio) == sorted(aio.__all__)
    twins = {"__aiter__": "__iter__", "__anext__": "__next__"}
    for name in set(aio.__all__) - extra:
        ours, theirs = getattr(aio, name), getattr(blocking, name)
        pairs = [(ours, theirs)]
        if inspect.isclass(ours):
            public = [key for key in vars(ours) if not key.startswith("_") or key in twins]
            pairs = [(getattr(ours, key), getattr(theirs, twins.get(key, key))) for key in public]
        for call, twin in pairs:
            if callable(call):
                assert list(inspect.signature(call).parameters) == list(inspect.signature(twin).parameters)


def test_options_are_those_of_trio() -> None:
    for call, namesake in (
        (aio.connect, amqp.open_connection),
        (aio.Connection.open_sender, amqp.Connection.open_sender),
        (aio.Connection.open_receiver, amqp.Connection.open_receiver),
        (aio.Connection.open_requester, amqp.Connection.open_requester),
    ):
        assert list(inspect.signature(call).parameters) == list(inspect.signature(namesake).parameters)


def test_waits_on_many_threads_and_loops_come_to_their_own_tasks(url: str) -> None:
    """Replies go to the loop that asked, while others ask too."""

    async def main(name: str) -> Counter[str]:
        found: Counter[str] = Counter()
        async with aio.connect(url) as conn, conn.open_requester("upper") as requester:
            for number in range(50):
                found[str((await requester.request(f"{name}{number}")).body)[0]] += 1
        return found

    results: dict[str, Counter[str]] = {}
    loops = [
        threading.Thread(target=lambda name=name: results.update({name: asyncio.run(main(name))}))
        for name in "abcd"
    ]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join()
    assert results == {name: Counter({name.upper(): 50}) for name in "abcd"}


def test_outcome_that_is_asked_for_again_and_again_keeps_nothing(url: str, run: Any) -> None:
    async def main() -> None:
        async with aio.connect(url) as conn, conn.open_sender("never") as sender:
            delivery = await sender.transmit("x")
            await asyncio.sleep(0)
            for _ in range(20):
                with pytest.raises(trio.TooSlowError):
                    await delivery.outcome(timeout=0)
            waiting = asyncio.create_task(delivery.outcome())
            await asyncio.sleep(0)
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
            inner: Any = delivery._inner
            await delivery._bridge.run_sync(lambda: None)
            assert not inner._reports

    run(main())
