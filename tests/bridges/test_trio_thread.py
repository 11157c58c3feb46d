"""The thread of trio: what is passed to it runs there, in order, also at its end and from a signal handler."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trio

from trio_amqp10.bridges.trio_thread import TrioThread, shared_thread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

SECONDS = 60


@pytest.fixture
def host() -> Iterator[TrioThread]:
    host = shared_thread()
    yield host
    if not host.is_ending:
        host.run_soon(host.release)
        wait_for_end()


def wait_for_end() -> None:
    for thread in threading.enumerate():
        if thread.name == "amqp":
            thread.join(SECONDS)
            assert not thread.is_alive()


def test_calls_run_in_the_thread_in_the_order_of_their_callers(host: TrioThread) -> None:
    done: list[tuple[int, int, str]] = []

    def call(caller: int) -> None:
        for number in range(500):
            host.run_soon(lambda n=number: done.append((caller, n, threading.current_thread().name)))  # type: ignore[misc]

    callers = [threading.Thread(target=call, args=(caller,)) for caller in range(3)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(SECONDS)
    all_done = threading.Event()
    host.run_soon(all_done.set)
    assert all_done.wait(SECONDS)
    assert {name for _, _, name in done} == {"amqp"}
    for caller in range(3):
        assert [number for who, number, _ in done if who == caller] == list(range(500))


def test_call_that_is_passed_while_the_thread_ends_is_run(host: TrioThread) -> None:
    done: list[str] = []

    async def child() -> None:
        try:
            await trio.sleep_forever()
        finally:
            host.run_soon(lambda: done.append("late"))

    def begin() -> None:
        host.nursery.start_soon(child)
        host.run_soon(host.release)

    host.run_soon(begin)
    wait_for_end()
    assert done == ["late"]
    with pytest.raises(trio.RunFinishedError):
        host.run_soon(lambda: done.append("too late"))
    assert done == ["late"]


def test_call_out_of_a_signal_handler_interrupts_another_at_any_line(host: TrioThread) -> None:
    """A handler runs between any two lines of the thread that it interrupts."""
    code = TrioThread.run_soon.__code__
    done: list[str] = []
    lines: list[int] = []

    def handle(frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            lines.append(frame.f_lineno)
            sys.settrace(None)
            host.run_soon(lambda: done.append("handler"))
            sys.settrace(enter)
        return handle

    def enter(frame: FrameType, _event: str, _argument: Any) -> Any:
        return handle if frame.f_code is code else None

    def interrupted() -> None:
        sys.settrace(enter)
        host.run_soon(lambda: done.append("call"))
        sys.settrace(None)
        host.run_soon(all_done.set)

    all_done = threading.Event()
    caller = threading.Thread(target=interrupted, daemon=True)
    caller.start()
    assert all_done.wait(SECONDS)
    caller.join(SECONDS)
    assert done.count("call") == 1
    assert done.count("handler") == len(lines) >= 4
