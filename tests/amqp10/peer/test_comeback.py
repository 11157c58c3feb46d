"""Requests, transactions and tokens on connections that come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.cbs import keep_token
from trio_amqp10.container import Claim, Container
from trio_amqp10.core.tokens import JWT, Token

from .town import EVEN, URL, Town

if TYPE_CHECKING:
    from trio_amqp10.container import TokenOffer

NOW = 1_000_000.0


def service() -> tuple[Container, list[Any]]:
    """A container with a function that is slow to answer ``slow``; and what it was asked."""
    container = Container("town")
    asked: list[Any] = []

    @container.function("upper")
    async def upper(message: amqp.Message) -> Any:
        asked.append(message.body)
        if message.body == "slow":
            await trio.sleep(5)
        return message.body.upper()

    return container, asked


# -- requests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"reply_to": "answers"}, {"direct": True}])
async def test_request_under_way_raises_and_the_next_is_answered(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, options: dict[str, Any]
) -> None:
    container, asked = service()
    async with (
        Town(monkeypatch, container.handle).open() as town,
        amqp.open_connection(URL, reconnect=EVEN) as conn,
        conn.open_requester("upper", **options) as requester,
    ):
        first = requester.reply_to
        assert (await requester.request("a")).body == "A"
        lost: list[float] = []

        async def ask() -> None:
            with pytest.raises(
                amqp.ConnectionClosedError,
                match=r"^the request to 'upper' was sent, and its reply is lost: .*the connection was lost",
            ) as failed:
                await requester.request("slow")
            assert failed.value.sent is True
            lost.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            await town.go_down()
            assert len(lost) == 1  # at once
            why = "the link was lost, and is not restored yet .the connection was lost: "
            with pytest.raises(amqp.TimedOutError, match=f"^not sent within 2 s: {why}") as late:
                await requester.request("never sent", timeout=2)
            assert late.value.sent is False
            town.up = True
            reply = await requester.request("b")  # waits
        assert reply.body == "B"
        assert (requester.reply_to != first) == (not options)
        await trio.sleep(10)
    assert asked == ["a", "slow", "b"]  # nothing was asked again


async def test_request_whose_link_is_detached_raises_and_the_next_is_answered(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    container, _ = service()
    forced = amqp.ErrorInfo(condition="amqp:link:detach-forced")

    async def detach(role: bool) -> None:
        await trio.sleep(1)
        names = town.conns[-1].engine.names
        [link] = [one for one in names if one.role is role]
        link.detach(error=forced)
        town.conns[-1].pump.wake_writer()

    async with (
        Town(monkeypatch, container.handle).open() as town,
        amqp.open_connection(URL, reconnect=EVEN) as conn,
        conn.open_requester("upper") as requester,
    ):
        for sender in (False, True):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(detach, sender)
                with pytest.raises(amqp.ConnectionClosedError):
                    await requester.request("slow")
            assert (await requester.request("b")).body == "B"
    assert len(town.dialled) == 1


async def test_requests_hear_that_the_connection_was_given_up(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    container, _ = service()
    few = amqp.Backoff(initial=1, jitter=False, attempts=2)
    async with (
        Town(monkeypatch, container.handle).open() as town,
        amqp.open_connection(URL, reconnect=few) as conn,
        conn.open_requester("upper") as requester,
    ):
        await town.go_down()
        for _ in range(2):
            with pytest.raises(amqp.ConnectionClosedError, match="2 attempts"):
                await requester.request("a")


async def test_request_that_waits_for_the_peer_ends_with_its_requester(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    container, _ = service()
    async with (
        Town(monkeypatch, container.handle).open() as town,
        amqp.open_connection(URL, reconnect=EVEN) as conn,
        trio.open_nursery() as nursery,
        conn.open_requester("upper") as requester,
    ):
        await town.go_down()

        async def ask() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await requester.request("a")

        nursery.start_soon(ask)
        with pytest.raises(trio.TooSlowError):
            await requester.request("b", timeout=2)


# -- transactions -------------------------------------------------------------------------------


async def test_transaction_is_rolled_back_when_it_is_lost_and_never_tried_again(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    container = Container("town")
    async with (
        Town(monkeypatch, container.handle).open() as town,
        amqp.open_connection(URL, reconnect=EVEN) as conn,
        conn.open_sender("q") as sender,
    ):
        with pytest.raises(amqp.TransactionRolledBackError):
            async with conn.open_transaction() as txn:
                await sender.send("lost", transaction=txn)
                await town.lose()
                await trio.sleep(3)
        await sender.send("kept")
        async with conn.open_transaction() as txn:
            await sender.send("later", transaction=txn)
        async with conn.open_receiver("q") as receiver:
            got = [await receiver.receive(), await receiver.receive()]
            assert [delivery.message.body for delivery in got] == ["kept", "later"]
            assert not receiver.buffered


async def test_work_in_a_transaction_that_is_lost_raises(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    container = Container("town")
    async with (
        Town(monkeypatch, container.handle).open() as town,
        amqp.open_connection(URL, reconnect=EVEN) as conn,
        conn.open_sender("q") as sender,
    ):
        with pytest.raises(amqp.TransactionRolledBackError, match="was lost"):
            async with conn.open_transaction() as txn:
                await town.lose()
                await trio.sleep(3)
                await sender.send("x", transaction=txn)


async def test_commit_that_is_not_answered_is_in_doubt(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    container = Container("town")
    async with (
        Town(monkeypatch, container.handle).open(),
        amqp.open_connection(URL, reconnect=EVEN) as conn,
        conn.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        with pytest.raises(amqp.TransactionInDoubtError, match="is not known"):
            async with conn.open_transaction() as txn:
                await sender.send("x", transaction=txn)
                nursery.start_soon(_cut_when_it_commits, conn, txn)
        assert txn.state == "in doubt"
        await sender.send("y")


async def _cut_when_it_commits(conn: amqp.Connection, txn: amqp.Transaction) -> None:
    while not txn._control.unsettled:
        await trio.lowlevel.checkpoint()
    conn.pump.cancel()


# -- tokens -------------------------------------------------------------------------------------


async def test_token_is_put_again_before_the_links_that_need_it(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    began = trio.current_time()
    offers: list[TokenOffer] = []
    taken = True

    def wall() -> float:
        return NOW + trio.current_time() - began

    def verify(offer: TokenOffer) -> Claim | None:
        offers.append(offer)
        return Claim(offer.audience, offer.token.expires) if taken else None

    async def tokens(audience: str) -> Token:
        await trio.sleep(0.5)
        return Token("secret", JWT, wall() + 100)

    container = Container("town", wall_clock=wall)
    container.add_cbs(verify)
    async with (
        Town(monkeypatch, container.handle).open() as town,
        amqp.open_connection(URL, reconnect=EVEN) as conn,
        keep_token(conn, "q", tokens, wall_clock=wall),
        conn.open_sender("q") as sender,
    ):
        await sender.send("one")
        await trio.sleep(50)
        await town.lose()
        await sender.send("two")
        assert len(offers) == 2
        await trio.sleep(85)  # 135 s: the first token would have been renewed after 90 s
        assert len(offers) == 2
        await trio.sleep(20)
        assert len(offers) == 3
        taken = False
        await town.lose()
        with pytest.raises(amqp.LinkDetachedError, match="unauthorized-access"):
            await sender.send("three")
        taken = True
        await trio.sleep(5)  # and it goes on trying
        async with conn.open_sender("q") as again:
            await again.send("four")


async def test_token_source_that_fails_makes_the_connection_try_again(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    failures: list[Exception] = []

    async def tokens(audience: str) -> Token:
        await trio.lowlevel.checkpoint()
        if failures:
            raise failures.pop()
        return Token("secret", JWT)

    container = Container("town")
    container.add_cbs(lambda offer: Claim(offer.audience, None))
    async with (
        Town(monkeypatch, container.handle).open() as town,
        amqp.open_connection(URL, reconnect=EVEN) as conn,
        conn.keep_token("q", tokens),
        conn.open_sender("q") as sender,
    ):
        failures += [OSError("no tokens today")] * 2
        await town.lose()
        await sender.send("one")
        assert len(town.dialled) == 4
