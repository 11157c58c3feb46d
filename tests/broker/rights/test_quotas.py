"""Quotas: what one identity may have of a container over all its connections, and how many links one node."""

from __future__ import annotations

import gc
import logging
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, two
from trio_amqp10 import sasl
from trio_amqp10.broker.rights.quotas import Account
from trio_amqp10.container import Container, Quotas

if TYPE_CHECKING:
    from trio_amqp10.container.container import LocalConnection

USERS = sasl.Server(users={"ada": "enigma", "bob": "b"}, anonymous=True)
ADA = sasl.Plain("ada", "enigma")
BOB = sasl.Plain("bob", "b")
TOO_MUCH = "amqp:resource-limit-exceeded"


def dial(container: Container, who: Any = None, **options: Any) -> LocalConnection:
    return container.connect(users=USERS, sasl=who or sasl.Anonymous(), **options)


@pytest.mark.parametrize("name", ["connections", "links", "unsettled", "unsettled_octets", "node_senders"])
def test_quota_that_would_permit_nothing_is_an_error(name: str) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=f"{name}=0: expected at least 1"):
        Quotas(**{name: 0})


@pytest.mark.parametrize("own", [Quotas(node_receivers=1), Quotas(users={"bob": Quotas()})])
def test_quotas_of_a_user_are_about_that_user_alone(own: Quotas) -> None:
    why = "quotas of user 'ada': node_senders, node_receivers and users cannot be set for one user"
    with pytest.raises(amqp.LocalProtocolError, match=why):
        Quotas(users={"ada": own})


async def test_identity_has_only_so_many_connections_and_others_are_not_its() -> None:
    container = Container(quotas=Quotas(connections=2))
    async with dial(container, ADA), dial(container, ADA), dial(container, BOB):
        with pytest.raises(amqp.ConnectionClosedError) as caught:
            async with dial(container, ADA):
                pass
        assert caught.value.error is not None
        assert caught.value.error.condition == TOO_MUCH
        assert caught.value.error.description == "'ada' has connections=2 already, which is its quota"
        assert container.statistics()["refused_connections"] == 1
        assert container.statistics()["connections"] == 3
    async with dial(container, ADA), dial(container, ADA):
        pass


async def test_connection_of_a_listener_that_does_not_ask_first_is_refused_all_the_same() -> None:
    container = Container(quotas=Quotas(connections=1))
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(amqp.serve, container.handle, "amqp://127.0.0.1:0")
        async with amqp.open_connection(listeners[0].url):
            with pytest.raises(amqp.ConnectionClosedError, match=r"a peer at 127\.0\.0\.1 that is not"):
                async with amqp.open_connection(listeners[0].url) as second:
                    await second.wait_closed()
        nursery.cancel_scope.cancel()


async def test_peers_that_prove_nothing_are_one_identity_for_each_address() -> None:
    container = Container(quotas=Quotas(connections=1))
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, "amqp://127.0.0.1:0")
        listeners = await nursery.start(serve)
        async with amqp.open_connection(listeners[0].url, container_id="one"):
            with pytest.raises(amqp.ConnectionClosedError):
                async with amqp.open_connection(listeners[0].url, container_id="other"):
                    pass
            async with container.connect(sasl=sasl.Anonymous()):  # comes from this machine, by no address
                with pytest.raises(amqp.ConnectionClosedError, match="a peer at this machine"):
                    async with container.connect():
                        pass
        nursery.cancel_scope.cancel()


async def test_connection_that_takes_the_place_of_another_is_not_one_too_many() -> None:
    container = Container(quotas=Quotas(connections=1))
    async with (
        dial(container, ADA, container_id="c"),
        dial(container, ADA, container_id="c", sole_connection="close-existing") as second,
        second.open_sender("q"),
    ):
        assert container.statistics()["refused_connections"] == 0


async def test_connection_that_is_one_too_many_is_in_nobodys_way() -> None:
    container = Container(quotas=Quotas(connections=1))
    async with dial(container, ADA, container_id="a"):
        with pytest.raises(amqp.ConnectionClosedError, match="quota"):
            async with dial(container, ADA, container_id="c", sole_connection="refuse-connection"):
                pass
    async with dial(container, ADA, container_id="c", sole_connection="refuse-connection"):
        pass


async def test_identity_has_only_so_many_links_on_all_its_connections(
    caplog: pytest.LogCaptureFixture,
) -> None:
    container = Container(quotas=Quotas(links=2))
    caplog.set_level(logging.INFO, "trio_amqp10.container")
    async with dial(container, ADA) as one, dial(container, ADA) as other, dial(container, BOB) as bob:
        async with one.open_sender("q"), other.open_receiver("q"), bob.open_sender("q"):
            for attempt in (one.open_sender("q"), other.open_receiver("q"), one.open_transaction()):
                with pytest.raises(amqp.LinkRefusedError, match="'ada' has links=2 already") as caught:
                    async with attempt:
                        pass
                assert caught.value.condition == TOO_MUCH
            assert container.statistics()["refused_links"] == 3
            assert caplog.messages.count("'ada' has links=2 already, which is its quota") == 3
        async with one.open_sender("q"), one.open_receiver("q"):
            pass


async def test_user_with_quotas_of_its_own_goes_by_these() -> None:
    quotas = Quotas(links=1, users={"ada": Quotas(links=2), "bob": Quotas(connections=1)})
    container = Container(quotas=quotas)
    for who, most in ((ADA, 2), (BOB, 20), (None, 1)):
        async with dial(container, who) as conn, AsyncExitStack() as stack:
            for _ in range(most):
                await stack.enter_async_context(conn.open_sender("q"))
            if most < 20:
                with pytest.raises(amqp.LinkRefusedError, match=f"links={most}"):
                    await stack.enter_async_context(conn.open_sender("q"))


@pytest.mark.parametrize("quotas", [Quotas(unsettled=3), Quotas(unsettled_octets=1000)])
async def test_identity_that_has_all_that_may_be_unsettled_gets_no_more_until_it_settles(
    quotas: Quotas,
) -> None:
    container = Container(quotas=quotas)
    queue = container.add_queue("q", delivery_limit=1)
    await container.send("q", bytes(50))
    for _ in range(4):
        await container.send("q", bytes(50))
    async with (
        dial(container, ADA) as one,
        dial(container, ADA) as other,
        one.open_receiver("q", credit=0) as first,
    ):
        held = [await first.receive() for _ in range(2)]
        async with other.open_receiver("q", credit=4) as second:
            more = [await second.receive()]
            await wait_all_tasks_blocked()
            while second.buffered:
                more.append(second.receive_nowait())
            assert queue.available == 3 - len(more)
            assert queue.available
            assert container.statistics()["withheld_deliveries"] == 1
            async with dial(container, BOB) as bob, bob.open_receiver("q", credit=0) as third:
                assert await bodies(third, 1) == [bytes(50)]  # the quota is that of another
            held[0].accept()
            while len(more) < 2:
                more.append(await second.receive())
            for delivery in (held[1], *more):
                delivery.accept()
            await wait_all_tasks_blocked()
    assert len(queue) == 0
    assert queue.statistics()["failed"] == 0


async def test_identity_that_waits_for_room_is_forgotten_with_its_connection() -> None:
    container = Container(quotas=Quotas(unsettled=1))
    await container.send("q", "x")
    await container.send("q", "y")
    async with dial(container, ADA) as one, one.open_receiver("q", credit=0) as first:
        held = await first.receive()
        async with dial(container, ADA) as other, other.open_receiver("q", credit=1) as second:
            await wait_all_tasks_blocked()
            assert not second.buffered
        await wait_all_tasks_blocked()
        held.accept()
        assert await bodies(first, 1) == ["y"]


def test_account_counts_what_is_unsettled_up_to_its_quota(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    figures = {"withheld_deliveries": 0}
    called: list[str] = []
    one = Account("'ada'", Quotas(unsettled=3), figures)
    for _ in range(3):
        assert not one.is_full
        one.add_unsettled(10)
    assert one.is_full
    one.when_room(lambda: called.append("one"))
    assert "'ada' has 3 unsettled deliveries of 30 octets, which is its quota" in caplog.text
    one.remove_unsettled(10)
    assert (one.unsettled, one.octets, one.is_full, called) == (2, 20, False, ["one"])
    other = Account("'bob'", Quotas(unsettled_octets=100), figures)
    other.add_unsettled(99)
    assert not other.is_full
    other.add_unsettled(1)
    assert other.is_full
    other.when_room(lambda: called.append("other"))
    other.remove_unsettled(0)
    assert called == ["one"]
    other.remove_unsettled(1)
    assert called == ["one", "other"]
    assert figures == {"withheld_deliveries": 2}


def test_account_does_not_call_back_who_waits_no_more() -> None:
    called: list[str] = []

    def one() -> None:
        called.append("one")

    def other() -> None:
        called.append("other")

    account = Account("'ada'", Quotas(unsettled=1), {"withheld_deliveries": 0})
    account.add_unsettled(10)
    account.when_room(one)
    account.when_room(other)
    account.forget(one)
    account.forget(one)
    account.remove_unsettled(10)
    assert called == ["other"]


@pytest.mark.parametrize(("length", "shown"), [(64, f"'{'a' * 64}' has"), (65, f"'{'a' * 64}'... has")])
async def test_long_address_is_shortened_in_what_is_said_of_its_quota(
    length: int, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trio_amqp10.container")
    address = "a" * length
    async with Container(quotas=Quotas(node_senders=1)).connect() as conn, conn.open_sender(address):
        with pytest.raises(amqp.LinkRefusedError):
            async with conn.open_sender(address):
                pass
    assert f"{shown} node_senders=1 already, which is its quota" in caplog.messages


async def test_node_has_only_so_many_senders_and_receivers() -> None:
    container = Container(quotas=Quotas(node_senders=2, node_receivers=1))
    container.add_management()
    async with two(container) as (one, other):
        async with one.open_sender("q"), other.open_sender("q"), one.open_receiver("q"):
            with pytest.raises(amqp.LinkRefusedError, match="'q' has node_senders=2 already") as caught:
                async with other.open_sender("q"):
                    pass
            assert caught.value.condition == TOO_MUCH
            with pytest.raises(amqp.LinkRefusedError, match="'q' has node_receivers=1 already"):
                async with other.open_receiver("q"):
                    pass
            async with other.open_sender("other"), other.open_receiver("other"):
                pass
            async with AsyncExitStack() as stack:
                for conn in (one, other, one):
                    await stack.enter_async_context(conn.open_sender(None))
                    await stack.enter_async_context(conn.open_requester("$management"))
            assert container.statistics()["refused_links"] == 2
        assert "fresh" not in container.nodes


async def test_node_that_was_made_for_a_refused_link_is_forgotten() -> None:
    container = Container(quotas=Quotas(links=1))
    async with container.connect() as conn, conn.open_sender("q"):
        with pytest.raises(amqp.LinkRefusedError):
            async with conn.open_sender("fresh"):
                pass
        assert list(container.nodes) == ["q"]


async def test_management_shows_what_each_identity_has() -> None:
    container = Container(quotas=Quotas(links=9))
    container.add_management()
    await container.send("q", "x")
    await container.send("q", "y")
    async with dial(container, ADA) as ada, dial(container) as conn, ada.open_receiver("q", credit=2) as own:
        await own.receive()
        await own.receive()
        async with conn.open_requester("$management") as requester:
            asked = {"operation": "QUERY", "entityType": "account"}
            reply = await requester.request(amqp.Message(application_properties=asked))
            rows = [
                dict(zip(reply.body["attributeNames"], row, strict=True)) for row in reply.body["results"]
            ]
    assert rows[0].pop("unsettled-octets") > 400
    assert rows[0] == {
        "name": "'ada'",
        "identity": "'ada'",
        "type": "account",
        "connections": 1,
        "links": 1,
        "unsettled": 2,
    }
    assert (rows[1]["name"], rows[1]["links"]) == ("a peer at this machine that is not authenticated", 2)


async def test_accounts_of_those_who_are_gone_are_forgotten() -> None:
    container = Container(quotas=Quotas(links=9))
    accounts = container.accounts
    assert accounts is not None
    accounts._most = 2
    for number in range(20):
        users = sasl.Server(users={f"u{number}": "p"})
        async with container.connect(users=users, sasl=sasl.Plain(f"u{number}", "p")) as conn:
            await fill(conn, "q", "x")
            accounts._most = min(accounts._most, 3)
    gc.collect()
    assert len(accounts) <= 4


async def test_deliveries_that_outlive_their_connection_still_count(
    autojump_clock: trio.testing.MockClock,
) -> None:
    container = Container(quotas=Quotas(unsettled=2))
    await container.send("q", "x")
    keep = amqp.Source(address="q", expiry_policy="never", timeout=30, durable=2)
    async with dial(container, ADA, container_id="c") as conn:
        receiver = await conn.open_receiver("q", source=keep, name="l", credit=1).__aenter__()
        await receiver.receive()
        await receiver.detach()
    accounts = container.accounts
    assert accounts is not None
    [account] = accounts._accounts.values()
    assert (account.unsettled, account.open, account.idle) == (1, [], False)
