"""What a container remembers under a name that a peer chose ends with the peer's link, channel or connection.

Each protocol has receivers that refuse one message for themselves: many of them, each under a name of its own, leave nothing
behind, and a receiver that comes back under the same name gets the message. Ten thousand of them at the queue itself are in
``tests/broker/nodes/test_refusals``.
"""

from __future__ import annotations

from collections import Counter, deque
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from tests.living_objects import living_objects
from trio_amqp10.broker.nodes.entry import ANYONE, Entry
from trio_amqp10.core.timer_heap import Timer

from .protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from .protocols import ProtocolUnderTest

ATTEMPTS = 100
CONNECTIONS = 40
SEVERAL = 20
COLLECTIONS = (dict, set, frozenset, list, tuple, deque)
FRESH = "fresh-"
FEW = 20
"""Objects of one class that may be there more than before: those of what is being done, and of caches of the interpreter."""

pytestmark = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)


@asynccontextmanager
async def serving(protocol: ProtocolUnderTest) -> AsyncGenerator[tuple[amqp.Queue, int]]:
    """A container that serves the protocol, with one message in its queue; that queue and the port."""
    container = amqp.Container("hub")
    queue = container.add_queue("q")
    async with container.connect() as connection, connection.open_sender("q") as sender:
        await sender.send(amqp.Message(b"x"))
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(
            partial(
                container.serve,
                "amqp://127.0.0.1:0",
                dialects=() if protocol.name == "1.0" else [protocol.name],
            )
        )
        yield queue, listener.port
        nursery.cancel_scope.cancel()


def census() -> Counter[str]:
    """The objects of the package that there are now, by class, and the names of peers in all collections.

    Without timers that were cancelled: a heap removes some of them together.
    """
    found = [each for each in living_objects() if not (isinstance(each, Timer) and each.item is None)]
    counted = Counter(
        type(each).__name__ for each in found if type(each).__module__.startswith("trio_amqp10")
    )
    named = [item for each in found if type(each) in COLLECTIONS for item in each]
    counted["names"] = sum(1 for item in named if isinstance(item, str) and item.startswith(FRESH))
    return counted


def check_nothing_is_left(queue: amqp.Queue, before: Counter[str], after: Counter[str]) -> None:
    more = {name: count - before[name] for name, count in after.items() if count > before[name] + FEW}
    assert not more
    entries = [each for each in living_objects() if isinstance(each, Entry) and each._queue is queue]
    assert [each.eligibility for each in entries if not each.ended] == [ANYONE]
    assert queue.statistics()["available"] == 1


async def until_all_ended(queue: amqp.Queue) -> None:
    """Wait until the last receiver is gone at the server too."""
    while queue.outlets or not queue.statistics()["available"]:
        await trio.lowlevel.checkpoint()


async def test_receivers_under_fresh_names_leave_nothing_behind(protocol: ProtocolUnderTest) -> None:
    async with serving(protocol) as (queue, port), protocol.refusing(port, "client") as attempt:
        for number in range(SEVERAL):
            await attempt(f"{FRESH}{number}")
        await until_all_ended(queue)
        before = census()
        for number in range(ATTEMPTS):
            assert await attempt(f"{FRESH}{number}") == b"x"
        await until_all_ended(queue)
        check_nothing_is_left(queue, before, census())


async def test_clients_under_fresh_names_leave_nothing_behind(protocol: ProtocolUnderTest) -> None:
    async with serving(protocol) as (queue, port):
        for number in range(SEVERAL + CONNECTIONS):
            if number == SEVERAL:
                await until_all_ended(queue)
                before = census()
            async with protocol.refusing(port, f"{FRESH}{number}") as attempt:
                assert await attempt("sub") == b"x"
        await until_all_ended(queue)
        check_nothing_is_left(queue, before, census())


async def test_receiver_that_comes_back_under_its_name_gets_what_it_refused(
    protocol: ProtocolUnderTest,
) -> None:
    async with serving(protocol) as (_, port):
        for _ in range(3):
            with trio.fail_after(10):
                async with protocol.refusing(port, "me") as attempt:
                    assert await attempt("sub") == b"x"
                    assert await attempt("sub") == b"x"
