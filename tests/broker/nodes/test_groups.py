"""Groups: what belongs together goes to one consumer at a time, in order."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, two
from tests.scaled import scaled
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.container import Container, Queue, QueuePolicy

from .test_queue_model import In, Out


def grouped(**policy: Any) -> Container:
    container = Container()
    container.add_queue("q", grouped=True, **policy)
    return container


def of(*messages: str) -> list[amqp.Message]:
    """``a1`` is the message ``a1`` of the group ``a``; without a letter, of none."""
    return [amqp.Message(each, group_id=each[0] if each[0].isalpha() else None) for each in messages]


async def held(receiver: amqp.Receiver, count: int) -> list[amqp.Delivery]:
    return [await receiver.receive() for _ in range(count)]


def names(deliveries: list[amqp.Delivery]) -> list[Any]:
    return [each.message.body for each in deliveries]


async def test_group_belongs_to_who_has_one_of_its_messages_until_all_are_settled() -> None:
    async with (
        two(grouped()) as (one, other),
        one.open_receiver("q", credit=0) as first,
        other.open_receiver("q", credit=0) as second,
    ):
        await fill(one, "q", *of("a1", "a2", "b1", "a3", "b2", "1", "2"))
        mine = await held(first, 2)
        assert names(mine) == ["a1", "a2"]
        yours = await held(second, 3)
        assert names(yours) == ["b1", "b2", "1"]
        mine[0].accept()
        mine += await held(first, 1)
        assert names(mine[2:]) == ["a3"]
        for each in (*mine[1:], *yours):
            each.accept()
        assert await bodies(second, 1) == ["2"]


async def test_group_goes_on_when_one_of_its_messages_is_rejected() -> None:
    async with grouped().connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        await fill(conn, "q", *of("a1", "a2"))
        (delivery,) = await held(receiver, 1)
        delivery.reject()
        async with conn.open_receiver("q", credit=0) as other:
            assert names(await held(other, 1)) == ["a2"]


async def test_group_is_free_again_when_its_messages_were_purged() -> None:
    container = grouped(redelivery_delay=100)
    queue = container.nodes["q"]
    assert isinstance(queue, Queue)
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        await fill(conn, "q", *of("a1", "a2", "b1", "b2", "1"))
        (delayed,) = await held(receiver, 1)
        delayed.modify(delivery_failed=True)
        await wait_all_tasks_blocked()
        assert queue.purge() == 5
        await fill(conn, "q", *of("b3", "a3"))
        assert names(await held(receiver, 2)) == ["b3", "a3"]


async def test_group_whose_message_waits_after_a_failure_is_free_for_others(
    autojump_clock: MockClock,
) -> None:
    async with (
        two(grouped(redelivery_delay=10)) as (one, other),
        one.open_receiver("q", credit=0) as first,
        other.open_receiver("q", credit=0) as second,
    ):
        await fill(one, "q", *of("a1", "a2"))
        (mine,) = await held(first, 1)
        mine.modify(delivery_failed=True)
        with trio.fail_after(60):
            assert names(await held(second, 2)) == ["a1", "a2"]


async def test_group_is_free_for_others_between_its_messages() -> None:
    async with (
        two(grouped()) as (one, other),
        one.open_receiver("q", credit=0) as first,
        other.open_receiver("q", credit=0) as second,
    ):
        await fill(one, "q", *of("a1", "a2"))
        delivery = await first.receive()
        second.grant(1)
        await wait_all_tasks_blocked()
        assert second.buffered == 0
        delivery.accept()
        assert await bodies(second, 1) == ["a2"]


async def test_group_keeps_its_order_when_messages_come_back() -> None:
    async with two(grouped()) as (one, other):
        await fill(one, "q", *of("a1", "a2", "a3", "a4"))
        async with one.open_receiver("q", credit=0) as first:
            assert names(await held(first, 2)) == ["a1", "a2"]
            async with other.open_receiver("q", credit=4) as second:
                await wait_all_tasks_blocked()
                assert second.buffered == 0
                await first.aclose()
                again = await held(second, 4)
                assert names(again) == ["a1", "a2", "a3", "a4"]
                assert [each.message.delivery_count for each in again] == [1, 1, 0, 0]


async def test_group_waits_for_somebody_who_may_have_its_first_message() -> None:
    async with two(grouped()) as (one, other), one.open_receiver("q", credit=0) as picky:
        await fill(one, "q", *of("a1", "a2", "b1"))
        mine = await held(picky, 2)
        mine[0].modify(undeliverable_here=True)
        mine[1].release()
        picky.grant(2)
        await wait_all_tasks_blocked()
        assert await bodies(picky, 1) == ["b1"], "a2 waits for a1"
        assert picky.buffered == 0
        async with other.open_receiver("q", credit=0) as easy:
            assert await bodies(easy, 1) == ["a1"]
        assert await bodies(picky, 1) == ["a2"]


async def test_group_in_which_the_first_is_not_selected_stands_still_and_others_move() -> None:
    described = amqp.Described(amqp.Symbol("amqp:properties-filter"), {"subject": "x"})
    source = Source(address="q", filter={"f": described})
    async with two(grouped()) as (one, other):
        for name, subject in [("a1", "y"), ("a2", "x"), ("b1", "x")]:
            await fill(one, "q", amqp.Message(name, subject=subject, group_id=name[0]))
        async with one.open_receiver("q", source=source, credit=9) as choosy:
            assert await bodies(choosy, 1) == ["b1"]
            await wait_all_tasks_blocked()
            assert choosy.buffered == 0
            async with other.open_receiver("q", credit=0) as easy:
                assert await bodies(easy, 1) == ["a1"]
            assert await bodies(choosy, 1) == ["a2"]


async def test_group_goes_on_when_its_first_message_expires(autojump_clock: MockClock) -> None:
    container = grouped(dead_letter="dead")
    async with two(container) as (one, other):
        await fill(one, "q", amqp.Message("a1", group_id="a", ttl=1000), *of("a2"))
        await trio.sleep(2)
        async with other.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == ["a2"]
        async with other.open_receiver("dead") as receiver:
            assert await bodies(receiver, 1) == ["a1"]


async def test_group_is_seen_whole_by_those_who_only_look() -> None:
    async with two(grouped()) as (one, other):
        await fill(one, "q", *of("a1", "a2", "b1", "1"))
        async with other.open_receiver("q", source=Source(address="q", distribution_mode="copy")) as browser:
            assert await bodies(browser, 4, accept=False) == ["a1", "a2", "b1", "1"]
            await fill(one, "q", *of("a3"))
            assert await bodies(browser, 1, accept=False) == ["a3"]


@pytest.mark.parametrize("guarantee", ["at-most-once", "at-least-once"])
async def test_group_of_many_goes_to_a_consumer_in_one_sweep(guarantee: Any) -> None:
    async with two(grouped()) as (one, other):
        await fill(one, "q", *of(*[f"a{number}" for number in range(600)]))
        async with other.open_receiver("q", guarantee=guarantee, credit=0) as receiver:
            receiver.grant(600)
            assert await bodies(receiver, 600) == [f"a{number}" for number in range(600)]


async def test_group_freed_goes_to_who_waits_message_by_message_without_depth() -> None:
    """Who waits takes a group of hundreds at once, when its first becomes free."""
    async with two(grouped()) as (one, other), one.open_receiver("q", credit=0) as first:
        await fill(one, "q", *of(*[f"a{number}" for number in range(600)]))
        mine = await held(first, 1)
        async with other.open_receiver("q", credit=0, guarantee="at-most-once") as second:
            second.grant(600)
            await wait_all_tasks_blocked()
            assert second.buffered == 0
            mine[0].modify(undeliverable_here=True)
            assert await bodies(second, 600) == [f"a{number}" for number in range(600)]


# -- against a model -----------------------------------------------------------------------------


class Arrived:
    settled = False
    state: Any = None

    def __init__(self, number: int, group: str | None) -> None:
        self.message = amqp.Message(number, group_id=group)

    @property
    def content(self) -> Any:
        return content_of_message(self.message)

    def accept(self) -> None: ...


steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["put", "put", "put", "credit", "credit", "accept", "release", "refuse", "lose", "leave"]
        ),
        st.integers(0, 2),
        st.sampled_from([1, 1, 2, 4]),
        st.sampled_from(["a", "a", "b", None]),
    ),
    max_size=50,
)


class Script:
    """Outlets of a queue of groups, and what holds of them."""

    def __init__(self, *, selective: bool, max_length: int | None) -> None:
        self.queue = Queue("q", policy=QueuePolicy(grouped=True, max_length=max_length))
        self.source = In()
        self.queue.add_inlet(self.source)
        self.groups: dict[int, str | None] = {}
        self.outlets: dict[int, Out] = {}
        self.selective = selective
        self.accepted: list[int] = []

    def outlet(self, who: int) -> Out:
        if who not in self.outlets:
            out = self.outlets[who] = Out(who, selective=self.selective and who == 2)
            self.queue.add_outlet(out)
            self.queue.on_demand(out)
        return self.outlets[who]

    def do(self, action: str, who: int, amount: int, group: str | None) -> None:
        if action == "put":
            for _ in range(amount):
                number = len(self.groups)
                self.groups[number] = group
                self.source.arrivals.append(Arrived(number, group))
            self.queue.on_arrivals(self.source)
            return
        out = self.outlet(who)
        if action == "credit":
            out.credit += amount
            self.queue.on_demand(out)
        elif action == "leave":
            del self.outlets[who]
            self.queue.remove_outlet(out)
            while out.held:
                out.held.pop(0)[1].lost()
        else:
            for _ in range(min(amount, len(out.held))):
                self.answer(action, *out.held.pop(0))

    def answer(self, action: str, number: int, lease: Any) -> None:
        if action == "accept":
            self.accepted.append(number)
            lease.accepted()
        elif action == "release":
            lease.released()
        elif action == "lose":
            lease.lost()
        else:
            lease.modified(failed=False, undeliverable_here=True, annotations=None)

    def check(self) -> None:
        owners: dict[str, set[int]] = {}
        for who, out in self.outlets.items():
            for number, _ in out.held:
                group = self.groups[number]
                if group is not None:
                    owners.setdefault(group, set()).add(who)
        assert all(len(each) == 1 for each in owners.values()), owners
        given = sum(len(out.held) for out in self.outlets.values())
        assert self.queue.leased == given
        assert self.queue.available == len(self.queue) - given


@settings(max_examples=scaled(300), deadline=None)
@given(steps, st.booleans(), st.sampled_from([None, 3]))
def test_group_is_with_one_consumer_at_a_time_and_nothing_is_lost(
    script: list[tuple[str, int, int, str | None]], selective: bool, max_length: int | None
) -> None:
    model = Script(selective=selective, max_length=max_length)
    for step in script:
        model.do(*step)
        model.check()
    for who in list(model.outlets):
        model.do("leave", who, 1, None)
        model.check()
    fresh = Out(99)
    model.queue.add_outlet(fresh)
    start = len(fresh.seen)
    fresh.credit = 10_000
    model.queue.on_demand(fresh)
    while fresh.held:
        model.answer("accept", *fresh.held.pop(0))
    assert sorted(model.accepted) == sorted(model.groups)
    for group in ("a", "b"):
        of_group = [number for number in fresh.seen[start:] if model.groups[number] == group]
        assert of_group == sorted(of_group)
    assert (len(model.queue), len(model.queue._groups)) == (0, 0)


@settings(max_examples=scaled(200), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["accept", "credit"])), max_size=80))
def test_group_is_processed_in_order_where_nothing_comes_back(script: list[tuple[int, str]]) -> None:
    model = Script(selective=False, max_length=None)
    for group in ("a", "b", "a", "b"):
        model.do("put", 0, 5, group)
    for who, action in script:
        model.do(action, who, 2, None)
        model.check()
    for group in ("a", "b"):
        done = [number for number in model.accepted if model.groups[number] == group]
        assert done == sorted(done)
