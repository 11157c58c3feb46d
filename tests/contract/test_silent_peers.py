"""A call that awaits an answer of the peer ends with the named error if the peer does not answer in ``answer_timeout``.

The peer has answered all before, and is not dead: it sends heartbeats.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest
import trio

from .protocols import PROTOCOLS
from .silence_scripts import ANSWER_TIMEOUT

if TYPE_CHECKING:
    from trio.testing import MockClock

    from .silence_scripts import Silence

CLOSE_TIMEOUT = 5.0
SLACK = 2.0

CALLS = [(name, call) for name, protocol in PROTOCOLS.items() for call in protocol.silence.calls]
BRIEF = [(name, call) for name, protocol in PROTOCOLS.items() for call in protocol.silence.brief]


def waiting(kind: type) -> set[str]:
    """The public calls of a class that are awaited or entered, but for those that it inherits from another listed one."""
    return {
        name
        for name, member in inspect.getmembers(kind)
        if not name.startswith("_")
        and (inspect.iscoroutinefunction(member) or name.startswith(("open_", "consum")))
        and callable(member)
    }


def listed(silence: Silence) -> set[str]:
    """All calls of the client, each under the first of its classes that has it."""
    found: set[str] = set()
    for kind in silence.classes:
        inherited = {
            name
            for other in silence.classes
            if other is not kind and issubclass(kind, other)
            for name in waiting(other)
        }
        own = {name for name in waiting(kind) if name not in inherited or name in vars(kind)}
        found |= {f"{kind.__name__}.{name}" for name in own}
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_every_call_that_waits_is_listed(protocol: Any) -> None:
    silence = protocol.silence
    named = {*silence.calls, *silence.brief, *silence.unbounded}
    inherited = {
        name
        for name in listed(silence)
        if name.rpartition(".")[2] in ("aclose", "finish", "leave", "publish")
    }
    assert listed(silence) - inherited <= named
    assert named <= listed(silence) | named & {"Transaction.commit", "Transaction.rollback"}


@pytest.mark.parametrize(("name", "call"), CALLS)
async def test_call_ends_with_the_named_error_when_its_peer_does_not_answer(
    name: str, call: str, autojump_clock: MockClock
) -> None:
    _ = autojump_clock
    silence = PROTOCOLS[name].silence
    with trio.fail_after(120):
        async with silence.connected() as (connection, fall_silent):
            began: float | None = None

            def fall_silent_now() -> None:
                nonlocal began
                began = trio.current_time()
                fall_silent()

            with pytest.raises(silence.errors, match=r"did not answer .* within 7 s"):
                await silence.calls[call](connection, fall_silent_now)
            assert began is not None
            assert ANSWER_TIMEOUT <= trio.current_time() - began <= ANSWER_TIMEOUT + CLOSE_TIMEOUT + SLACK


@pytest.mark.parametrize(("name", "call"), BRIEF)
async def test_call_whose_answer_nobody_needs_ends_after_close_timeout(
    name: str, call: str, autojump_clock: MockClock
) -> None:
    _ = autojump_clock
    silence = PROTOCOLS[name].silence
    with trio.fail_after(120):
        async with silence.connected() as (connection, fall_silent):
            before = trio.current_time()
            await silence.brief[call](connection, fall_silent)
            assert trio.current_time() - before <= 3 * CLOSE_TIMEOUT + SLACK


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
async def test_silence_is_no_fault_while_no_answer_is_due(protocol: Any, autojump_clock: MockClock) -> None:
    _ = autojump_clock
    with trio.fail_after(1000):
        async with protocol.silence.connected() as (connection, fall_silent):
            fall_silent()
            await trio.sleep(10 * ANSWER_TIMEOUT)
            connection.statistics() if hasattr(connection, "statistics") else connection.check()
