"""Peers of another dialect join a container by ``enter`` and ``leave``, and count in all that counts connections."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from tests.container.management.managed import managed
from trio_amqp10.broker.connected_peer_base import ConnectedPeerBase
from trio_amqp10.container import Container, Quotas, RefusedError, Rules

from .peers import Guest

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio.testing import MockClock

    from trio_amqp10.broker.rights.rights_holder import SolePolicy


async def test_quotas_count_connections_of_all_dialects_together() -> None:
    container = Container(quotas=Quotas(connections=1))
    guest = Guest(container)
    async with trio.open_nursery() as nursery:
        container.enter(guest, nursery)
        with pytest.raises(RefusedError, match="connections=1"):
            container.enter(other := Guest(container, "other"), nursery)
        container.leave(other)  # it has not entered
        assert container.connected == (guest,)
        with pytest.raises(amqp.ConnectionClosedError, match="connections=1"):
            async with container.connect():
                raise AssertionError("a connection that should not come to be")
        container.leave(guest)
        async with container.connect():
            with pytest.raises(RefusedError, match="connections=1"):
                container.enter(Guest(container), nursery)


async def test_quotas_count_links_and_octets_of_all_dialects_together() -> None:
    container = Container(quotas=Quotas(links=3, unsettled_octets=1000))
    guest = Guest(container, user="ada")
    woken: list[str] = []

    class Waiting:
        def wake(self) -> None:
            woken.append("now")

    users = amqp.sasl.Server(users={"ada": "p"})
    async with trio.open_nursery() as nursery:
        container.enter(guest, nursery)
        guest.names = ["one", "two"]
        async with container.connect(users=users, sasl=amqp.sasl.Plain("ada", "p")) as conn:
            async with conn.open_sender("q") as sender:
                with pytest.raises(amqp.LinkRefusedError, match="links=3"):
                    async with conn.open_receiver("q"):
                        pass
                await sender.send("x" * 600)
                await sender.send("y" * 600)
            guest.names = []
            waiting = Waiting()
            async with conn.open_receiver("q") as receiver:
                first, second = await receiver.receive(), await receiver.receive()
                assert guest.is_full(waiting)
                first.accept()
                second.accept()
                with trio.fail_after(60):
                    while not woken:
                        await trio.lowlevel.checkpoint()
            guest.add_unsettled(1200)
            guest.remove_unsettled(1200)
        container.leave(guest)


async def test_outlet_that_is_over_is_not_woken() -> None:
    container = Container(max_unsettled_octets=10)
    guest = Guest(container)

    class Waiting:
        def wake(self) -> None:
            raise AssertionError("it is over")

    async with trio.open_nursery() as nursery:
        container.enter(guest, nursery)
        guest.add_unsettled(10)
        waiting = Waiting()
        assert guest.is_full(waiting)
        guest.stop_waiting(waiting)
        guest.remove_unsettled(10)
        container.leave(guest)


@pytest.mark.parametrize("first", ["refuse", "close-existing"])
async def test_sole_connection_holds_across_dialects(first: SolePolicy) -> None:
    container = Container()
    guest = Guest(container, "me", sole=first)
    async with trio.open_nursery() as nursery:
        container.enter(guest, nursery)
        if first == "refuse":
            with pytest.raises(amqp.ConnectionClosedError, match="may have only one"):
                async with container.connect(container_id="me"):
                    raise AssertionError("a connection that should not come to be")
            assert guest.said is None
        else:
            async with container.connect(container_id="me"):
                assert guest.said is not None
                assert guest.said[0] == "amqp:resource-locked"
        container.leave(guest)


async def test_connection_of_amqp_10_is_closed_for_a_sole_one_of_another_dialect() -> None:
    container = Container()
    async with container.connect(container_id="me") as conn, trio.open_nursery() as nursery:
        guest = Guest(container, "me", sole="close-existing")
        container.enter(guest, nursery)
        with pytest.raises(amqp.ConnectionClosedError, match="may have only one"):
            await conn.wait_closed()
        container.leave(guest)


async def test_guard_asks_authorise_and_review_closes_what_is_refused_now() -> None:
    allowed = {"ada"}
    container = Container(authorise=lambda access: access.user in allowed)
    guest = Guest(container, user="ada")
    closed: list[str] = []

    class Link:
        def close(self, condition: str, description: str) -> None:
            closed.append(condition)

    async with trio.open_nursery() as nursery:
        container.enter(guest, nursery)
        await guest.guard.check("open", None)
        await guest.guard.check("send", "q")
        guest.guard.remember(Link(), ("send", "q"))
        container.review()
        assert closed == []
        allowed.clear()
        container.review()
        assert closed == ["amqp:unauthorized-access"]
        with pytest.raises(RefusedError, match="'ada' may not send to 'q'"):
            await guest.guard.check("send", "q")
        container.leave(guest)


async def test_rules_name_the_user_of_any_dialect() -> None:
    container = Container(authorise=Rules(("ada", "send", "q")))
    async with trio.open_nursery() as nursery:
        for user, fits in (("ada", True), ("bob", False)):
            guest = Guest(container, user=user)
            container.enter(guest, nursery)
            if fits:
                await guest.guard.check("send", "q")
            else:
                with pytest.raises(RefusedError):
                    await guest.guard.check("open", None)
            container.leave(guest)


async def test_management_lists_connections_links_and_accounts_of_any_dialect() -> None:
    container = Container(quotas=Quotas(links=9))
    guest = Guest(container, "visitor", user="ada")
    async with managed(container) as (_, ask), trio.open_nursery() as nursery:
        container.enter(guest, nursery)
        guest.add_unsettled(7)
        status, found = await ask("READ", type="connection", identity=f"{guest.number}")
        assert status == 200
        assert (found["name"], found["user"], found["leases"]) == ("visitor", "ada", 1)
        assert (found["state"], found["octets-in"]) == ("open", 5)
        status, found = await ask("READ", type="link", identity=f"{guest.number}/sender/one")
        assert (status, found["role"], found["address"], found["peer"]) == (200, "sender", "q", "visitor")
        status, found = await ask("READ", type="account", identity="'ada'")
        assert (found["connections"], found["links"], found["unsettled"], found["unsettled-octets"]) == (
            1,
            1,
            1,
            7,
        )
        guest.remove_unsettled(7)
        container.leave(guest)
        status, _found = await ask("READ", type="connection", identity=f"{guest.number}")
        assert status == 404


async def test_node_starts_tasks_beside_a_peer_of_any_dialect(autojump_clock: MockClock) -> None:
    container = Container()
    guest = Guest(container)
    called: list[float] = []
    async with trio.open_nursery() as nursery:
        container.enter(guest, nursery)
        container._timers.call_at(trio.current_time() + 5, lambda: called.append(trio.current_time()))
        await trio.sleep(6)
        assert len(called) == 1
        container.leave(guest)


async def test_reply_for_a_peer_of_any_dialect_goes_where_that_peer_may_send(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    container = Container(authorise=lambda access: access.address != "secret")
    container.add_queue("secret")
    guest = Guest(container)
    async with trio.open_nursery() as nursery:
        container.enter(guest, nursery)
        with pytest.raises(RefusedError, match="may not send"):
            await container._post("secret", amqp.Message("x"), guest)
        await container._post("q", amqp.Message("x"), guest)
        container.leave(guest)


@pytest.mark.parametrize(
    "call",
    [
        lambda peer: peer.container_id,
        lambda peer: peer.closed,
        lambda peer: peer.links(),
        lambda peer: peer.statistics(),
        lambda peer: peer.close("amqp:internal-error", "x"),
    ],
)
def test_what_only_a_dialect_can_tell_is_left_to_it(call: Callable[[ConnectedPeerBase], object]) -> None:
    peer = ConnectedPeerBase(Container())
    assert (peer.identity, peer.host, peer.sole) == (None, None, None)
    with pytest.raises(NotImplementedError):
        call(peer)
