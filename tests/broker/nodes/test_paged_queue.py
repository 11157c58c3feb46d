"""A queue that is read page by page does what one with all messages in memory does, under each rule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.container.helpers import queue_of
from tests.scaled import scaled
from trio_amqp10 import Message
from trio_amqp10.broker.nodes.message_store import MESSAGES

from .test_queue_model import Out
from .test_stored_rest import House, Sent, give_back, pages_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import trio_amqp10 as amqp

NODE_RULES: Sequence[dict[str, Any]] = (
    {},
    {"max_length": 5, "overflow": "drop-oldest"},
    {"max_length": 5, "overflow": "drop-oldest", "bound": "ready"},
    {"max_length": 5, "overflow": "drop-oldest", "dead_letter": "dead"},
    {"max_length": 6, "overflow": "reject"},
    {"max_octets": 400, "overflow": "drop-oldest"},
    {"delivery_limit": 2, "dead_letter": "dead"},
    {"single_active": True},
)
BROKER_ARGUMENTS: Sequence[dict[str, Any]] = (
    {},
    {"x-max-length": 5},
    {"x-max-length": 5, "x-max-priority": 5},
    {"x-max-length": 4, "x-overflow": "reject-publish"},
    {"x-max-length-bytes": 8},
)


class Offered(Sent):
    """A message that the queue accepts or refuses."""

    def accept(self) -> None: ...

    def reject(self, *_given: Any, **_more: Any) -> None: ...

    refuse = reject


class RuledHouse(House):
    """A queue with the rules of a node, or with the arguments of RabbitMQ's."""

    def __init__(self, rules: dict[str, Any], arguments: dict[str, Any] | None, *, hasty: bool) -> None:
        self.arguments = arguments
        super().__init__(hasty=hasty, **rules)

    def add_queue(self) -> amqp.Queue:
        self.container.add_queue("dead")
        if self.arguments is None:
            return super().add_queue()
        self.container.add_broker(like_rabbitmq=True).declare_queue("q", arguments=self.arguments)
        return queue_of(self.container)

    def make(self, rank: int, ttl: int | None, *, durable: bool) -> Sent:
        return Offered(self, rank, ttl, durable)


class Consumer(Out):
    """A consumer or browser, with what it was given."""

    def __init__(self, key: int) -> None:
        super().__init__(key, selective=key in (2, 3), copying=key == 4)


def state_of(house: RuledHouse, outs: dict[int, Consumer]) -> dict[str, Any]:
    queue = house.queue
    rows: list[Any] = house.disk.rows(MESSAGES)
    return {
        "counts": (len(queue), queue.available, queue.leased),
        "consumers": {
            # How far a browser has come depends on the pages.
            key: (list(out.seen), [number for number, _ in out.held], out.credit)
            for key, out in outs.items()
            if not out.copying
        },
        "rows": sorted(Message.from_payload(row[4]).body for row in rows if row[1] == "q"),
        "figures": dict(queue.figures),
    }


async def do(house: RuledHouse, outs: dict[int, Consumer], what: str, *values: Any) -> None:
    if what == "put":
        count, rank, durable = values
        house.put(count, rank, None, durable=durable)
    elif what == "credit":
        key, credit = values
        if key not in outs:
            outs[key] = Consumer(key)
            house.queue.add_outlet(outs[key])  # type: ignore[arg-type]
        outs[key].credit += credit
        house.queue.on_demand(outs[key])  # type: ignore[arg-type]
    elif what == "leave":
        out = outs.pop(values[0], None)
        if out is not None:
            house.queue.remove_outlet(out)  # type: ignore[arg-type]
            for _, lease in out.held:
                lease.lost()
    elif what == "purge":
        house.queue.purge()
    elif what == "bound":
        if house.arguments is None:
            max_length, overflow = values
            house.queue.update(replace(house.queue.policy, max_length=max_length, overflow=overflow))
    elif what == "restart":
        await house.restart()
        outs.clear()
    else:
        key, place = values
        if key in outs and outs[key].held:
            _, lease = outs[key].held.pop(place % len(outs[key].held))
            if what == "accept":
                lease.accepted()
            else:
                give_back(lease, what)


def played(script: list[Any], house_of: Any, size: int, heads: int, deep: int) -> list[Any]:
    """Return what is seen after each operation, and what is left at the end, in its order."""
    seen: list[Any] = []

    async def main() -> None:
        house = house_of()
        outs: dict[int, Consumer] = {}
        for what, *values in script:
            await do(house, outs, what, *values)
            await wait_all_tasks_blocked()
            await house.container.journal.until_safe()
            await wait_all_tasks_blocked()
            seen.append(((what, *values), state_of(house, outs)))
        last = Consumer(0)
        last.credit = 1000
        house.queue.add_outlet(last)
        house.queue.on_demand(last)
        await wait_all_tasks_blocked()
        seen.append(last.seen)

    with pages_of(size, heads, deep):
        trio.run(main, clock=MockClock())
    return seen


consumers = st.integers(0, 4)
ops = st.one_of(
    st.tuples(
        st.just("put"), st.integers(1, 4), st.sampled_from([4, 4, 4, 7, 0]), st.booleans() | st.just(True)
    ),
    st.tuples(st.just("credit"), consumers, st.integers(1, 3)),
    st.tuples(
        st.sampled_from(["accept", "accept", "release", "fail", "refuse", "lose"]),
        consumers,
        st.integers(0, 3),
    ),
    st.tuples(st.just("leave"), consumers),
    st.tuples(st.sampled_from(["restart", "restart", "purge"])),
    st.tuples(
        st.just("bound"),
        st.sampled_from([3, 5, 8, None]),
        st.sampled_from(["wait", "reject", "drop-oldest", "drop-oldest"]),
    ),
)
EVERYTHING = 10**6


@settings(max_examples=scaled(150), deadline=None)
@given(
    st.lists(ops, max_size=40),
    st.sampled_from([(rules, None) for rules in NODE_RULES] + [({}, each) for each in BROKER_ARGUMENTS]),
    st.integers(1, 3),
    st.integers(0, 5),
    st.sampled_from([1, 3, 1000]),
    st.booleans(),
)
def test_pages_change_nothing(
    script: list[Any], rules: tuple[Any, Any], size: int, heads: int, deep: int, hasty: bool
) -> None:
    def house() -> RuledHouse:
        return RuledHouse(*rules, hasty=hasty)

    whole = played(script, house, EVERYTHING, EVERYTHING, EVERYTHING)
    assert played(script, house, size, heads, deep) == whole
