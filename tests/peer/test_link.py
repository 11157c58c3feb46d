"""What senders and receivers have in common: attach, refusal, guarantees, names, detach."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.performatives import frame
from trio_amqp10.peer.link_options import settle_modes

from .helpers import Node, detached, dialled, served


async def answer_attach(peer: Any, *more: bytes, **fields: Any) -> None:
    """Answer an attach with these fields, and send more in the same write."""
    await answer(peer, await peer.expect("attach"), *more, **fields)


async def answer(peer: Any, attach: Any, *more: bytes, **fields: Any) -> None:
    """Answer this attach, likewise."""
    answered: dict[str, Any] = {k: attach[k] for k in ("name", "handle", "source", "target")}
    answered["role"] = not attach["role"]
    if attach["role"]:
        answered["initial_delivery_count"] = 0
    await peer.send(frame("attach", **(answered | fields)), *more)


def opening(conn: amqp.Connection, kind: str, **options: Any) -> Any:
    return conn.open_sender("q", **options) if kind == "sender" else conn.open_receiver("q", **options)


both = pytest.mark.parametrize("kind", ["sender", "receiver"])


@both
@pytest.mark.parametrize(
    ("condition", "raised"),
    [
        ("amqp:not-found", amqp.LinkRefusedError),
        ("amqp:unauthorized-access", amqp.LinkRefusedError),
        ("com.example:whatever", amqp.LinkRefusedError),
        ("amqp:link:redirect", amqp.LinkRedirectError),
        ("amqp:link:stolen", amqp.LinkStolenError),
        (None, amqp.LinkRefusedError),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
async def test_refused_link_raises_on_entering(
    kind: str, condition: str | None, raised: Any, at_once: bool, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):
        null = {"target" if kind == "sender" else "source": None}

        async def refuse() -> None:
            goodbye = detached(0, condition, "because")
            await answer_attach(peer, *([goodbye] if at_once else []), **null)
            if not at_once:
                await wait_all_tasks_blocked()
                await peer.send(goodbye)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(refuse)
            with pytest.raises(raised) as caught:
                await opening(conn, kind).__aenter__()
        assert type(caught.value) is raised
        assert caught.value.condition == condition
        assert caught.value.closed
        if condition is not None:
            assert f"{condition}: because" in str(caught.value)
            assert str(caught.value.error.condition) == condition
        await peer.skip_to("detach")
        assert not conn.closed


async def test_redirect_tells_where_to(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        error = (
            "error",
            {
                "condition": "amqp:link:redirect",
                "info": {"hostname": "h", "network-host": "other", "port": 7, "address": "p"},
            },
        )

        async def refuse() -> None:
            await answer_attach(peer, frame("detach", handle=0, closed=True, error=error), target=None)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(refuse)
            with pytest.raises(amqp.LinkRedirectError) as caught:
                await conn.open_sender("q").__aenter__()
        assert caught.value.error is not None
        assert caught.value.error.info is not None
        assert caught.value.error.info["network-host"] == "other"


@both
async def test_link_that_the_peer_steals_later_raises_that(kind: str, autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_attach)
            link = await opening(conn, kind).__aenter__()
        await peer.send(detached(0, "amqp:link:stolen"))
        with pytest.raises(amqp.LinkStolenError):
            await (link.send("x") if kind == "sender" else link.receive())


@both
async def test_link_is_attached_again_when_the_peers_unsettled_map_is_incomplete(
    kind: str, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):

        async def remember_too_much() -> None:
            first = await peer.expect("attach", unsettled=None)
            await answer(peer, first, unsettled={b"t": None}, incomplete_unsettled=True)
            first_detach = await peer.skip_to("detach")
            assert not first_detach["closed"]
            second = await peer.expect("attach", name=first["name"], handle=1, unsettled=None)
            await peer.send(detached(0, closed=False))
            await answer(peer, second)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(remember_too_much)
            link = await opening(conn, kind).__aenter__()
        assert not link.closed
        assert link.remote.unsettled is None


@both
async def test_link_is_given_up_when_the_peers_unsettled_map_is_incomplete_again(
    kind: str, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):

        async def remember_too_much() -> None:
            first = await peer.expect("attach")
            await answer(peer, first, unsettled={b"t": None}, incomplete_unsettled=True)
            await peer.skip_to("detach")
            second = await peer.expect("attach")
            await peer.send(detached(0, closed=False))
            await answer(peer, second, unsettled={b"t": None}, incomplete_unsettled=True)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(remember_too_much)
            with pytest.raises(amqp.LinkDetachedError, match="unsettled-map-size"):
                await opening(conn, kind).__aenter__()
        assert (await peer.skip_to("detach"))["closed"]
        assert not conn.closed


@both
async def test_link_that_ends_with_the_answer_was_open(kind: str, autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer), trio.open_nursery() as nursery:
        nursery.start_soon(answer_attach, peer, detached(0))
        async with opening(conn, kind) as link:
            if kind == "receiver":
                assert [delivery async for delivery in link] == []
            else:
                with pytest.raises(amqp.LinkDetachedError, match="was detached, without an error") as ended:
                    await link.send("x")
                assert not isinstance(ended.value, amqp.LinkRefusedError)


@both
async def test_link_that_ends_with_the_answer_by_an_error_was_refused(
    kind: str, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer), trio.open_nursery() as nursery:
        nursery.start_soon(answer_attach, peer, detached(0, "x:y"))
        with pytest.raises(amqp.LinkRefusedError, match="x:y"):
            await opening(conn, kind).__aenter__()


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
        with pytest.raises(amqp.LocalProtocolError, match="outcome 'rejected': the descriptor"):
            opening(conn, kind, source=source)
        await wait_all_tasks_blocked()
        await conn.aclose()
        await peer.expect("close")


@both
async def test_own_end_has_no_fields_when_the_program_names_none(
    kind: str, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):
        with trio.move_on_after(1):
            await opening(conn, kind, name="mine").__aenter__()
        attach = await peer.expect("attach", name="mine")
        terminus = "source" if kind == "sender" else "target"
        assert attach[terminus] == (terminus, {})


@both
async def test_cancelled_opening_is_detached_again(kind: str, autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        with trio.move_on_after(1) as scope:
            await opening(conn, kind, name="mine").__aenter__()
        assert scope.cancelled_caught
        attach = await peer.expect("attach", name="mine")
        if kind == "receiver":
            await peer.expect("flow")
        await peer.expect("detach", closed=True)
        await peer.send(
            frame(
                "attach",
                name="mine",
                handle=0,
                role=kind == "sender",
                source=attach["source"],
                target=attach["target"],
                initial_delivery_count=0,
            ),
            detached(0),
        )
        await wait_all_tasks_blocked()
        assert not conn.closed
        assert len(conn.engine.names) == 0


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
            with pytest.raises(amqp.GuaranteeNotSupportedError, match=f"was to be {guarantee}"):
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
                target=amqp.Target(address="there", timeout=7),
            ).__aenter__()
        # What the scripted peer answered is in its transcript: it echoed what it was sent.
        said = "\n".join(peer.inbox.transcript)
        for part in ("snd_settle_mode=1", "rcv_settle_mode=1", "there", "here", "queue", "'p': 1"):
            assert part in said


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
        with pytest.raises(amqp.LocalProtocolError, match="an address is a str, not 7"):
            conn.open_sender(7)  # type: ignore[arg-type]


async def test_name_is_unique_while_the_link_lives_and_free_afterwards() -> None:
    node = Node()
    async with served(node.handle) as conn:
        for number in range(5):
            async with conn.open_sender("q", name="n") as sender:
                with pytest.raises(amqp.LocalProtocolError, match="exists on this connection already"):
                    await conn.open_sender("q", name="n").__aenter__()
                async with conn.open_receiver("q", name="n"):
                    pass
                await sender.send(number)
        assert len(conn.engine.names) == 0
    assert node.got == list(range(5))


async def test_name_is_free_again_when_the_link_was_refused_or_cancelled() -> None:
    node = Node()
    async with served(node.handle) as conn:
        for _ in range(3):
            with pytest.raises(amqp.LinkRefusedError):
                await conn.open_sender("none", name="n").__aenter__()
            with trio.CancelScope() as scope:
                async with conn.open_sender("q", name="n"):
                    scope.cancel()
                    await trio.sleep_forever()
            async with conn.open_sender("q", name="n") as sender:
                await sender.send("x")


@both
async def test_link_closes_with_the_error_that_it_is_given(kind: str, autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_attach)
            link = await opening(conn, kind).__aenter__()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.aclose, amqp.ErrorInfo(condition="x:y", description="z"))
            got = await peer.skip_to("detach")
            assert got["error"] == ("error", {"condition": "x:y", "description": "z"})
            await peer.send(detached(0))
        assert link.closed


@both
async def test_closing_and_closing_at_the_other_end_may_cross(kind: str, autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_attach)
            link = await opening(conn, kind).__aenter__()
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send, detached(0))
            nursery.start_soon(link.aclose)
            nursery.start_soon(link.aclose)
        assert trio.current_time() == began
        assert not conn.closed


async def test_links_name_themselves_and_their_address() -> None:
    node = Node(bodies=("x",))
    async with served(node.handle) as conn:
        async with conn.open_sender("q", name="mine") as sender:
            await sender.wait_sendable()
            assert sender.name == "mine"
            assert sender.address == "q"
            assert sender.credit == 100
            assert sender.unsettled == 0
            assert not sender.draining
            assert not sender.closed
            assert "'q'" in repr(sender)
            assert "ATTACHED" in repr(sender)
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            assert receiver.address == "q"
            assert "credit=" in repr(receiver)
            assert "'x'" in repr(delivery) or "Message" in repr(delivery)
            assert receiver.available == 0


async def test_address_of_a_dynamic_node_is_that_of_the_peer(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):

        async def answer() -> None:
            attach = await peer.expect("attach")
            await peer.send(
                frame(
                    "attach",
                    name=attach["name"],
                    handle=0,
                    role=False,
                    source=("source", {"address": "made-1", "dynamic": True}),
                    target=attach["target"],
                    initial_delivery_count=0,
                )
            )

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            receiver = await conn.open_receiver(None, source=amqp.Source(dynamic=True)).__aenter__()
        assert receiver.address == "made-1"


async def test_handles_beyond_handle_max_of_the_peer_are_refused_here(autojump_clock: MockClock) -> None:
    async with dialled(begin=False) as (conn, peer):

        async def answer() -> None:
            await peer.accept_begin(handle_max=0)
            await peer.accept_attach()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            await conn.open_sender("q").__aenter__()
        with pytest.raises(amqp.LocalProtocolError, match="handle-max"):
            await conn.open_sender("q").__aenter__()
        assert not conn.closed
