"""Receivers that select: which messages they get, what the answer to their attach says, who waits for whom."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of, two
from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source
from trio_amqp10.amqp10.wire.values import Described, Symbol, ULong
from trio_amqp10.net import read_turns
from trio_amqp10.testing import open_container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

SELECTOR = Symbol("apache.org:selector-filter:string")
NO_LOCAL = {"no-local": Described(Symbol("apache.org:no-local-filter:list"), [])}


def selecting(text: str, mode: str | None = None) -> Source:
    return Source(address="q", distribution_mode=mode, filter={"selector": Described(SELECTOR, text)})


def by_subject(subject: str) -> Source:
    return Source(
        address="q", filter={"s": Described(Symbol("amqp:properties-filter"), {"subject": subject})}
    )


def numbered(count: int, start: int = 0) -> list[amqp.Message]:
    """Messages that are even and odd by turns, and say so."""
    return [
        amqp.Message(n, subject="odd" if n % 2 else "even", application_properties={"n": n})
        for n in range(start, start + count)
    ]


@asynccontextmanager
async def given_back() -> AsyncGenerator[tuple[amqp.Receiver, amqp.Receiver]]:
    """A consumer of all six messages, who had the first four and gave them back, and one of the even ones, who had 4."""
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", *numbered(6))
        async with (
            one.open_receiver("q", credit=0) as all_of_it,
            other.open_receiver("q", source=by_subject("even"), credit=0) as even,
        ):
            all_of_it.grant(4)
            held = [await all_of_it.receive() for _ in range(4)]
            assert await bodies(even, 1) == [4]
            for delivery in held:
                delivery.release()
            await wait_all_tasks_blocked()
            yield all_of_it, even


async def test_consumer_with_a_selector_gets_what_matches_and_leaves_the_rest_in_order() -> None:
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", *numbered(10))
        async with one.open_receiver("q", source=selecting("n > 3 AND n <= 7")) as receiver:
            assert await bodies(receiver, 4) == [4, 5, 6, 7]
            await fill(other, "q", *numbered(10))
            assert await bodies(receiver, 4) == [4, 5, 6, 7]
        async with other.open_receiver("q") as receiver:
            assert await bodies(receiver, 12) == [0, 1, 2, 3, 8, 9] * 2
        assert len(queue_of(container)) == 0


async def test_consumer_that_waits_for_what_never_comes_does_not_hold_up_others() -> None:
    async with (
        open_container(["q"]) as container,
        two(container) as (one, other),
        one.open_receiver("q", source=by_subject("never")) as picky,
        one.open_receiver("q", source=by_subject("odd")) as odd,
        other.open_receiver("q", source=by_subject("even")) as even,
    ):
        await fill(one, "q", *numbered(20))
        assert await bodies(even, 10) == list(range(0, 20, 2))
        assert await bodies(odd, 10) == list(range(1, 20, 2))
        assert picky.buffered == 0


async def test_consumer_with_a_filter_gets_what_another_gives_back() -> None:
    async with given_back() as (all_of_it, even):
        even.grant(3)
        assert await bodies(even, 2) == [0, 2]
        all_of_it.grant(5)
        assert await bodies(all_of_it, 3) == [1, 3, 5]


async def test_consumer_with_a_filter_does_not_get_what_came_back_and_was_taken_again() -> None:
    async with given_back() as (all_of_it, even):
        all_of_it.grant(3)
        held = [await all_of_it.receive() for _ in range(3)]
        even.grant(5)
        await wait_all_tasks_blocked()
        assert even.buffered == 0
        held[2].release()
        assert await bodies(even, 1) == [2]


async def test_consumer_with_a_filter_does_not_get_what_it_found_undeliverable() -> None:
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", *numbered(4))
        async with one.open_receiver("q", source=by_subject("even")) as even:
            (await even.receive()).modify(undeliverable_here=True)
            assert await bodies(even, 1) == [2]
            await wait_all_tasks_blocked()
            assert even.buffered == 0
        async with other.open_receiver("q", source=by_subject("even")) as heir:
            assert await bodies(heir, 1) == [0]


async def test_filter_sees_what_the_last_outcome_changed() -> None:
    source = selecting("amqp.annotation.x-seen IS NULL")
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", "x")
        async with conn.open_receiver("q", source=source) as receiver:
            (await receiver.receive()).modify(annotations={"x-seen": "yes"})
            await wait_all_tasks_blocked()
            assert receiver.buffered == 0
        assert queue_of(container).available == 1


async def test_drain_of_a_consumer_with_a_filter_is_answered_when_nothing_more_matches() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", *numbered(6))
        async with conn.open_receiver("q", source=by_subject("odd"), credit=0) as receiver:
            receiver.grant(10)
            assert [each.message.body for each in await receiver.drain()] == [1, 3, 5]
            assert receiver.credit == 0


async def test_browser_with_a_filter_sees_what_matches_and_takes_nothing() -> None:
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", *numbered(6))
        async with other.open_receiver(
            "q", source=selecting("properties.subject = 'odd'", "copy")
        ) as browser:
            assert browser.remote.source.distribution_mode == "copy"
            assert await bodies(browser, 3) == [1, 3, 5]
            await fill(one, "q", *numbered(2, 6))
            assert await bodies(browser, 1) == [7]
        assert queue_of(container).available == 8


async def test_answer_echoes_the_filters_that_are_applied_and_drops_those_that_are_not_known() -> None:
    asked = {**NO_LOCAL, "s": Described(ULong(0x468C00000004), "n = 1"), "x": Described(Symbol("x:y"), "z")}
    source = Source(address="q", filter=asked, capabilities=("APACHE.ORG:SELECTOR", "queue", "x:z"))
    async with open_container(["q"]) as container, container.connect() as conn:
        assert "APACHE.ORG:SELECTOR" in conn.remote.offered_capabilities
        async with conn.open_receiver("q", source=source, filters="optional") as receiver:
            answer = receiver.remote.source
            assert dict(answer.filter) == {key: asked[key] for key in ("no-local", "s")}
            assert list(answer.capabilities) == ["APACHE.ORG:SELECTOR", "queue"]
        unknown = Source(address="q", filter={"x": asked["x"]})
        async with conn.open_receiver("q", source=unknown, filters="optional") as receiver:
            assert receiver.remote.source.filter is None
            await fill(conn, "q", "passes")
            assert await bodies(receiver, 1) == ["passes"]


async def test_answer_echoes_no_filter_where_the_node_applies_none() -> None:
    malformed = {"selector": Described(SELECTOR, "((")}
    async with open_container() as container, container.connect() as conn:

        @container.producer("ticks")
        async def ticks(link: amqp.Sender) -> None:
            await link.send("x")

        source = Source(address="ticks", filter=malformed)
        async with conn.open_receiver("ticks", source=source, filters="optional") as receiver:
            assert receiver.remote.source.filter is None
            assert await bodies(receiver, 1) == ["x"]


async def test_receiver_is_refused_when_a_filter_that_it_asked_for_is_not_in_place() -> None:
    asked = {**NO_LOCAL, "x": Described(Symbol("x:y"), "z"), "nothing": None}
    source = Source(address="q", filter=asked)
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", "stays")
        with pytest.raises(amqp.FilterNotSupportedError, match=r"does not apply 'x' of the filters"):
            async with conn.open_receiver("q", source=source):
                pass
        await wait_all_tasks_blocked()
        assert not queue_of(container).outlets
        async with conn.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == ["stays"]


async def test_receiver_that_is_attached_again_looks_for_its_filters_once_more() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        source = Source(address="q", filter=NO_LOCAL, expiry_policy=ExpiryPolicy.NEVER)
        async with conn.open_receiver("q", source=source, expiry_policy=ExpiryPolicy.NEVER) as receiver:
            await receiver.detach()
            container.nodes["q"].applies_filters = False
            with pytest.raises(amqp.FilterNotSupportedError, match="'no-local'"):
                await receiver.resume()


async def test_receiver_with_another_need_of_filters_is_refused_at_once() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        with pytest.raises(amqp.LocalProtocolError, match="filters='maybe'"):
            conn.open_receiver("q", filters="maybe")  # type: ignore[arg-type]


async def test_attach_with_a_malformed_filter_is_answered_and_detached_with_invalid_field() -> None:
    async with open_container() as container, container.connect() as conn:
        with pytest.raises(LinkRefusedError) as refused:
            async with conn.open_receiver("q", source=selecting("colour = ")):
                pass
        assert refused.value.condition == "amqp:invalid-field"
        assert "selector" in str(refused.value)
        assert not container.nodes


async def test_filter_passes_no_message_of_another_format() -> None:
    octets = amqp.Message("x", subject="odd").to_payload()
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", amqp.Message.from_payload(octets, 0x80013700), amqp.Message("y", subject="odd"))
        async with conn.open_receiver("q", source=by_subject("odd")) as receiver:
            assert await bodies(receiver, 1) == ["y"]


@pytest.mark.parametrize("mode", ["move", "copy"])
async def test_filter_over_a_long_queue_lets_others_have_their_turn(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_turns, "_LENGTH", 0.0)  # a turn is over after each message
    asked: Any = {"s": Described(Symbol("amqp:properties-filter"), {"subject": "rare"})}
    source = Source(address="q", distribution_mode=mode, filter=asked)
    async with open_container(["q"]) as container, two(container) as (one, other):
        messages = [amqp.Message(n, subject="rare" if n in (50, 51, 99) else "common") for n in range(100)]
        await fill(one, "q", *messages)
        async with one.open_receiver("q", source=source, credit=0) as receiver:
            receiver.grant(10)
            drained = await receiver.drain()
            assert [each.message.body for each in drained] == [50, 51, 99]
        brief = await other.open_receiver("q", source=source, credit=0).__aenter__()
        brief.grant(1)
        await brief.aclose()  # while it is being looked for
        await wait_all_tasks_blocked()
        assert queue_of(container).available == 100


async def test_selector_looks_again_in_slices_at_what_came_back_before_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(read_turns, "_LENGTH", 0.0)
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", *numbered(40))
        async with (
            one.open_receiver("q", credit=0) as all_of_it,
            other.open_receiver("q", source=by_subject("even"), credit=0) as even,
        ):
            all_of_it.grant(20)
            held = [await all_of_it.receive() for _ in range(20)]
            assert await bodies(even, 1) == [20]
            for delivery in held[1:18:2]:
                delivery.release()
            held[18].release()
            await wait_all_tasks_blocked()
            even.grant(2)
            assert await bodies(even, 2) == [18, 22]
