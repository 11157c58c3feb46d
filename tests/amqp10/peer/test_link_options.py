"""Options of links: guarantees as settle modes, and options that contradict each other."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.link_options import OpeningOptions, settle_modes

from .helpers import answer_attach, both, dialled, opening, served


@both
@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"dynamic": True, "address": "mine"}, "chooses the address"),
        ({"dynamic_node_properties": {"lifetime-policy": None}}, "dynamic=True only"),
    ],
)
async def test_opening_refuses_a_dynamic_node_that_is_half_one(
    kind: str, fields: dict[str, Any], wrong: str, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):
        with pytest.raises(amqp.LocalProtocolError, match=wrong):
            if kind == "sender":
                conn.open_sender(None, target=amqp.Target(**fields))
            else:
                conn.open_receiver(None, source=amqp.Source(**fields))
        await wait_all_tasks_blocked()
        await conn.aclose()
        await peer.expect("close")


@both
async def test_opening_refuses_outcomes_that_are_no_descriptors(kind: str, autojump_clock: MockClock) -> None:
    source = amqp.Source(outcomes=("amqp:accepted:list", "rejected"))
    async with dialled() as (conn, peer):
        with pytest.raises(amqp.LocalProtocolError, match="outcome 'rejected': expected the descriptor"):
            opening(conn, kind, source=source)
        await wait_all_tasks_blocked()
        await conn.aclose()
        await peer.expect("close")


@pytest.mark.parametrize(
    ("guarantee", "modes"),
    [("at-most-once", (1, 0)), ("at-least-once", (0, 0)), ("exactly-once", (0, 1))],
)
@both
async def test_guarantee_is_asked_for_by_settle_modes(
    kind: str, guarantee: Any, modes: tuple[int, int], autojump_clock: MockClock
) -> None:
    assert settle_modes(guarantee) == modes
    async with dialled() as (conn, peer):
        async with trio.open_nursery() as nursery:
            snd, rcv = modes

            async def answer() -> None:
                await answer_attach(peer, snd_settle_mode=snd, rcv_settle_mode=rcv)

            nursery.start_soon(answer)
            link = await opening(conn, kind, guarantee=guarantee).__aenter__()
        assert link.remote.snd_settle_mode == snd


@pytest.mark.parametrize(
    ("kind", "guarantee", "answer"),
    [
        ("sender", "exactly-once", {"snd_settle_mode": 0, "rcv_settle_mode": 0}),
        ("receiver", "at-least-once", {"snd_settle_mode": 1, "rcv_settle_mode": 0}),
        ("receiver", "exactly-once", {"snd_settle_mode": 1, "rcv_settle_mode": 1}),
        ("receiver", "exactly-once", {"snd_settle_mode": 0, "rcv_settle_mode": 0}),
    ],
)
async def test_weaker_settle_modes_are_not_taken(
    kind: str, guarantee: Any, answer: dict[str, Any], autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):

        async def weaken() -> None:
            await answer_attach(peer, **answer)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(weaken)
            with pytest.raises(
                amqp.GuaranteeNotSupportedError, match=f"weaker than guarantee='{guarantee}' needs"
            ):
                await opening(conn, kind, guarantee=guarantee).__aenter__()
        await peer.skip_to("detach")


@both
async def test_stronger_settle_modes_are_taken(kind: str, autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):

        async def answer() -> None:
            await answer_attach(peer, snd_settle_mode=0, rcv_settle_mode=1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            await opening(conn, kind, guarantee="at-most-once").__aenter__()


async def test_settle_modes_of_the_standard_may_be_given(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):

        async def answer() -> None:
            await answer_attach(peer, snd_settle_mode=1, rcv_settle_mode=1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            await conn.open_sender(
                "q",
                snd_settle_mode=amqp.SenderSettleMode.SETTLED,
                rcv_settle_mode=amqp.ReceiverSettleMode.SECOND,
                guarantee="at-least-once",
                properties={"p": 1},
                capabilities="queue",
                source=amqp.Source(address="here"),
                target=amqp.Target(timeout=7),
            ).__aenter__()
        # What the scripted peer answered is in its transcript: it echoed what it was sent.
        said = "\n".join(peer.inbox.transcript)
        for part in (
            "snd_settle_mode=1",
            "rcv_settle_mode=1",
            "'address': 'q', 'timeout': 7",
            "here",
            "queue",
            "'p': 1",
        ):
            assert part in said


FILTER = {"f": amqp.Described(amqp.Symbol("apache.org:selector-filter:string"), "n > 0")}
NEVER = {"durable": True, "expiry_policy": "never", "expiry_timeout": 6.5}
KEPT = {"durable": amqp.TerminusDurability.UNSETTLED_STATE, "expiry_policy": "never", "timeout": 7}


@pytest.mark.parametrize(
    ("given", "options", "expected"),
    [
        ({"filter": FILTER}, NEVER, {"address": "q", "filter": FILTER, **KEPT}),
        (
            {"address": "q", "capabilities": ("topic",)},
            NEVER,
            {"address": "q", "capabilities": ("topic",), **KEPT},
        ),
        ({"filter": FILTER}, {}, {"address": "q", "filter": FILTER}),
        (KEPT, {}, {"address": "q", **KEPT}),
        (KEPT, NEVER, {"address": "q", **KEPT}),
        ({"timeout": 7}, {"durable": False}, {"address": "q", "timeout": 7}),
        ({"timeout": 7}, {"durable": True, "expiry_policy": "never"}, {"address": "q", **KEPT}),
    ],
)
@both
def test_terminus_that_is_given_gets_what_it_lacks_from_the_options(
    kind: str, given: dict[str, Any], options: dict[str, Any], expected: dict[str, Any]
) -> None:
    name, made = ("source", amqp.Source) if kind == "receiver" else ("target", amqp.Target)
    if kind == "sender":  # only a source has a filter
        given, expected = ({k: v for k, v in each.items() if k != "filter"} for each in (given, expected))
    addresses = ("q", None) if kind == "receiver" else (None, "q")
    options = {**options, name: made(**given)}
    link = OpeningOptions(address="q", **options).for_link(False, *addresses)
    assert getattr(link, name) == made(**expected)


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ({"address": "other"}, {}, "address='q' and .* with the address 'other': expected one of them"),
        (
            {"timeout": 7},
            {"expiry_timeout": 8},
            "expiry_timeout=8 and .* with timeout=7: expected one of them",
        ),
        (
            KEPT,
            {"expiry_policy": "link-detach"},
            "expiry_policy='link-detach' and .* with expiry_policy=never:",
        ),
        (KEPT, {"durable": amqp.TerminusDurability.CONFIGURATION}, "durable=.* and .* with durable=2:"),
        ({"dynamic": True}, {}, "chooses the address"),
    ],
)
@both
async def test_terminus_and_options_that_contradict_each_other_are_refused(
    kind: str, given: dict[str, Any], options: dict[str, Any], said: str, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):
        with pytest.raises(amqp.LocalProtocolError, match=said):
            if kind == "sender":
                conn.open_sender("q", target=amqp.Target(**given), **options)
            else:
                conn.open_receiver("q", source=amqp.Source(**given), **options)
        await wait_all_tasks_blocked()
        await conn.aclose()
        await peer.expect("close")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"guarantee": "twice"}, "one of at-most-once, at-least-once, exactly-once"),
        ({"credit": -1}, "expected a number of messages"),
    ],
)
async def test_wrong_options_are_refused_before_anything_is_done(options: Any, said: str) -> None:
    async with served() as conn:
        with pytest.raises(amqp.LocalProtocolError, match=said):
            conn.open_receiver("q", **options)
        with pytest.raises(amqp.LocalProtocolError, match="address=7: expected a str or None"):
            conn.open_sender(7)  # type: ignore[arg-type]
