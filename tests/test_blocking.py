"""AMQP without async: calls from threads, what interrupts them, what is left behind, and the way from asyncio."""

from __future__ import annotations

import ast
import asyncio
import inspect
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import memory_stream_pair

import trio_amqp10 as amqp
from trio_amqp10 import blocking
from trio_amqp10.testing import running_container

from .blocking_source import MODULE, source

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def url() -> Iterator[str]:
    container = amqp.Container("peer")
    container.add_queue("orders")

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:
        return str(message.body).upper()

    @container.producer("three")
    async def three(link: amqp.Sender) -> None:
        for number in range(3):
            await link.send(number)

    @container.consumer("never")
    async def never(delivery: amqp.Delivery) -> None:
        await trio.sleep_forever()

    with running_container(container=container) as url:
        yield url


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "amqp"]


def test_messages_are_sent_and_received(url: str) -> None:
    with blocking.connect(url) as conn:
        with conn.open_sender("orders") as sender:
            for body in ("one", "two", "three"):
                assert sender.send(body) == amqp.Accepted()
        with conn.open_receiver("orders", credit=1) as receiver:
            assert receiver.receive().message.body == "one"  # and left unsettled: it comes again
        with conn.open_receiver("orders") as receiver:
            first = receiver.receive(timeout=5)
            assert first.message.body == "one"
            first.accept()
            second = next(receiver)
            second.release()
            again = receiver.receive()
            assert {second.message.body, again.message.body} <= {"two", "three"}
            again.reject("amqp:not-allowed", "no")
            with pytest.raises(amqp.LocalProtocolError):
                again.accept()
    assert threads() == []


def test_receiver_that_is_iterated_ends_with_its_link(url: str) -> None:
    async def serve(conn: amqp.Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingSender)
            async with link.accept() as sender:
                for number in range(3):
                    await sender.send(number)

    with running_service(serve) as own, blocking.connect(own) as conn:
        seen = []
        with conn.open_receiver("q") as receiver:
            for delivery in receiver:
                seen.append(delivery.message.body)
                delivery.accept()
        assert seen == [0, 1, 2]


class running_service:  # noqa: N801 - used as a function
    """``amqp.serve`` in a thread."""

    def __init__(self, handler: object) -> None:
        self._handler = handler
        self._started = threading.Event()

    def __enter__(self) -> str:
        self._thread = threading.Thread(target=trio.run, args=(self._main,))
        self._thread.start()
        self._started.wait()
        return self.url

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as self._scope:
            async with trio.open_nursery() as nursery:
                [listener] = await nursery.start(amqp.serve, self._handler, "amqp://127.0.0.1:0")
                self.url = listener.url
                self._started.set()

    def __exit__(self, *_: object) -> None:
        self._token.run_sync_soon(self._scope.cancel)
        self._thread.join()


def test_requests_are_answered_from_many_threads(url: str) -> None:
    with blocking.connect(url) as conn, conn.open_requester("upper") as requester:
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda n: requester.request(f"a{n}", timeout=10).body, range(50)))
        assert replies == [f"A{n}" for n in range(50)]


def test_time_out_is_too_slow_and_loses_nothing(url: str) -> None:
    with blocking.connect(url) as conn:
        with conn.open_receiver("orders") as receiver:
            for wait in (receiver.receive, partial(receiver.receive_many, 2)):
                with pytest.raises(trio.TooSlowError, match=r"^no message from 'orders' within 0\.05 s$"):
                    wait(timeout=0.05)
            with conn.open_sender("orders") as sender:
                sender.send("tea", timeout=5)
            assert receiver.receive(timeout=5).message.body == "tea"
        with conn.open_sender("never") as sender, pytest.raises(TimeoutError, match=r"whether it was sent$"):
            with pytest.raises(TimeoutError, match=r"whether it was accepted$"):
                sender.transmit("tea").outcome(timeout=0.05)
            with pytest.raises(amqp.TimedOutError, match=r"not sent within .* s: no credit from 'never'$"):
                while True:
                    sender.transmit("tea", timeout=0.05)
            try:
                sender.send("tea", timeout=0.05)
            finally:
                conn.close()  # which does not wait for the outcome for ever


def test_what_async_raises_is_raised_here(url: str) -> None:
    with pytest.raises(OSError, match="127.0.0.1:1"):  # noqa: RUF043
        blocking.connect("amqp://127.0.0.1:1")
    with pytest.raises(amqp.LocalProtocolError, match="needs a URL"):
        blocking.connect(memory_stream_pair()[0])
    with pytest.raises(TypeError, match="misspelt"):
        blocking.connect(url, misspelt=1)  # type: ignore[call-arg]
    with blocking.connect(url) as conn, pytest.raises(amqp.LinkRefusedError):
        conn.open_receiver(
            "upper",
            source=amqp.Source(
                address="upper", filter={"x": amqp.Described("x", 1)}, distribution_mode="copy"
            ),
        )
    assert threads() == []


def test_what_is_closed_says_so(url: str) -> None:
    conn = blocking.connect(url)
    sender = conn.open_sender("orders")
    sender.close()
    sender.close()
    with pytest.raises(trio.ClosedResourceError):
        sender.send("tea")
    open_still = conn.open_receiver("orders")
    conn.close()
    conn.close()
    open_still.close()
    for call in (open_still.receive, lambda: conn.open_sender("orders")):
        with pytest.raises(trio.ClosedResourceError):
            call()
    assert threads() == []
    assert "blocking" in repr(conn)


def test_block_that_an_exception_leaves_does_not_wait(url: str) -> None:
    with pytest.raises(ZeroDivisionError), blocking.connect(url) as conn, conn.open_sender("orders"):
        raise ZeroDivisionError
    assert threads() == []


INTERRUPTED = """
import os, signal, sys, threading, time
from trio_amqp10 import blocking

def interrupt(waiter):  # once it has stayed at one instruction for a while
    places = []
    while len(places) < 5 or len(set(places[-5:])) > 1:
        frame = sys._current_frames()[waiter]
        places.append((frame.f_code, frame.f_lasti))
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has it ignored by what runs behind it
with blocking.connect(sys.argv[1]) as conn, conn.open_receiver("orders") as receiver:
    try:
        threading.Thread(target=interrupt, args=[threading.get_ident()], daemon=True).start()
        receiver.receive()
    except KeyboardInterrupt:
        with conn.open_sender("orders") as sender:
            sender.send("tea")
        print(receiver.receive(timeout=5).message.body)
"""


def test_call_that_is_interrupted_is_cancelled_and_the_connection_goes_on(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, url], stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    assert done.stdout == "tea\n"


def test_program_that_does_not_close_ends(url: str) -> None:
    code = (
        "import sys; from trio_amqp10 import blocking; blocking.connect(sys.argv[1]).open_receiver('orders')"
    )
    assert subprocess.run([sys.executable, "-c", code, url], timeout=20, check=False).returncode == 0


def test_asyncio_goes_by_threads(url: str) -> None:
    async def main() -> list[str]:
        conn = await asyncio.to_thread(blocking.connect, url)
        try:
            requester = await asyncio.to_thread(conn.open_requester, "upper")
            replies = await asyncio.gather(
                *(asyncio.to_thread(requester.request, f"a{n}") for n in range(10))
            )
            return [str(reply.body) for reply in replies]
        finally:
            await asyncio.to_thread(conn.close)

    assert asyncio.run(main()) == [f"A{n}" for n in range(10)]


@pytest.mark.parametrize(
    ("call", "namesake"),
    [
        (blocking.connect, amqp.open_connection),
        (blocking.Connection.open_sender, amqp.Connection.open_sender),
        (blocking.Connection.open_receiver, amqp.Connection.open_receiver),
        (blocking.Connection.open_requester, amqp.Connection.open_requester),
    ],
)
def test_options_are_those_of_the_async_call(call: object, namesake: object) -> None:
    ours, theirs = inspect.signature(call), inspect.signature(namesake)  # type: ignore[arg-type]
    assert list(ours.parameters) == list(theirs.parameters)


@pytest.mark.parametrize("library", ["trio", "asyncio"])
def test_call_in_a_task_of_a_loop_is_refused_with_the_way_out(url: str, library: str) -> None:
    async def work(conn: blocking.Connection) -> None:
        with pytest.raises(RuntimeError, match=f"would stop the {library} loop that runs in this thread: "):
            blocking.connect(url)
        with pytest.raises(RuntimeError, match=library):
            conn.open_sender("orders")

    with blocking.connect(url) as conn:
        if library == "trio":
            trio.run(work, conn)
        else:
            asyncio.run(work(conn))


def test_message_is_transmitted_and_its_outcome_awaited_later(url: str) -> None:
    with blocking.connect(url) as conn, conn.open_sender("orders") as sender:
        deliveries = [sender.transmit(number, timeout=5) for number in range(10)]
        assert [delivery.outcome(timeout=5) for delivery in deliveries] == [amqp.Accepted()] * 10
        assert repr(deliveries[0]).startswith("<blocking ")


def test_message_is_given_back_with_changes(url: str) -> None:
    with blocking.connect(url) as conn:
        with conn.open_sender("orders") as sender:
            sender.send("tea")
        with conn.open_receiver("orders", credit=1) as receiver:
            receiver.receive(timeout=5).modify(delivery_failed=True, annotations={"x-opt-why": "cold"})
            again = receiver.receive(timeout=5)
            assert again.message.delivery_count == 1
            assert again.message.annotations == {"x-opt-why": "cold"}
            again.accept()


def test_module_shows_its_public_names_only() -> None:
    assert dir(blocking) == sorted(blocking.__all__)
    assert blocking.connect is blocking.open_connection


def test_module_is_what_its_source_makes() -> None:
    assert ast.dump(ast.parse(MODULE.read_text())) == ast.dump(ast.parse(source())), (
        "run python -m tests.blocking_source"
    )


def test_copies_are_browsed_and_stay(url: str) -> None:
    with blocking.connect(url) as conn, conn.open_sender("orders") as sender:
        for number in range(3):
            sender.send(number)
        for prefetch in (None, 2):
            with conn.browse("orders", prefetch=prefetch) as copies:
                assert [copies.receive(timeout=5).message.body for _ in range(2)] == [0, 1]
        with conn.open_receiver("orders") as receiver:
            found = receiver.receive_many(3, timeout=5)
            while len(found) < 3:
                found += receiver.receive_many(3, timeout=5)
            assert [one.message.body for one in found] == [0, 1, 2]
        with pytest.raises(amqp.LinkRefusedError):
            conn.browse("upper")


def test_transaction_is_committed_or_rolled_back(url: str) -> None:
    with blocking.connect(url) as conn, conn.open_sender("orders") as sender:
        with conn.open_transaction() as transaction:
            sender.send("one", transaction=transaction)
            sender.transmit("two", transaction=transaction)
        assert transaction.state == "committed"
        with pytest.raises(ZeroDivisionError), conn.open_transaction() as transaction:
            sender.send("three", transaction=transaction)
            raise ZeroDivisionError
        assert transaction.state == "rolled back"
        with conn.open_receiver("orders") as receiver:
            with conn.open_transaction() as transaction:
                receiver.receive(timeout=5).accept(transaction=transaction)
                transaction.rollback()
            assert sorted(receiver.receive(timeout=5).message.body for _ in range(2)) == ["one", "two"]
            with pytest.raises(trio.TooSlowError):
                receiver.receive(timeout=0.1)


def test_connections_share_a_thread_that_ends_with_the_last(url: str) -> None:
    with blocking.connect(url) as first:
        with blocking.connect(url):
            assert threads() == ["amqp"]
        assert threads() == ["amqp"]
        first.open_sender("orders").close()
    assert threads() == []


FORKED = """
import os, sys
from trio_amqp10 import blocking

with blocking.connect(sys.argv[1]) as conn, conn.open_sender("orders") as sender:
    sender.send("parent")
    child = os.fork()
    if not child:
        try:
            sender.send("child")
        except RuntimeError as refused:
            assert "parent process" in str(refused)
            with blocking.connect(sys.argv[1]) as own, own.open_sender("orders") as sender:
                sender.send("child")
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    sender.send("parent")
print("good")
"""


def test_child_process_has_no_part_in_the_connections_of_its_parent(url: str) -> None:
    command = [sys.executable, "-c", FORKED, url]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert done.stdout == "good\n"
