"""One connection for each container of a peer, where it asks for that ("AMQP Enforcing Connection Uniqueness 1.0")."""

from __future__ import annotations

import gc
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

import trio_amqp10 as amqp
from tests.naive.peer import ScriptedPeer
from tests.peer.helpers import acceptor
from trio_amqp10.container.rights.sole_connection import SoleConnections

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

REFUSE: dict[str, Any] = {"container_id": "me", "sole_connection": "refuse-connection"}
CLOSE: dict[str, Any] = {"container_id": "me", "sole_connection": "close-existing"}
PLAIN: dict[str, Any] = {"container_id": "me"}


@asynccontextmanager
async def scripted(container: amqp.Container) -> AsyncGenerator[ScriptedPeer]:
    """A scripted client of the container."""
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    async with trio.open_nursery() as nursery:
        accepting = acceptor(
            container_id=container.name,
            offered_capabilities=container.offered_capabilities(),
            vet=container.vet,
        )
        nursery.start_soon(accepting.run, ours, container.handle)
        yield peer
        nursery.cancel_scope.cancel()


async def refused(container: amqp.Container, **options: Any) -> amqp.ConnectionClosedError:
    with pytest.raises(amqp.ConnectionClosedError) as caught:
        async with container.connect(**options):
            raise AssertionError("a connection that should not come to be")
    return caught.value


@pytest.mark.parametrize(
    ("first", "second"), [(REFUSE, REFUSE), (REFUSE, PLAIN), (PLAIN, REFUSE), (CLOSE, REFUSE)]
)
async def test_newcomer_is_refused_when_one_of_them_says_so_and_the_newcomer_nothing_else(
    first: Any, second: Any
) -> None:
    container = amqp.Container()
    async with container.connect(**first) as conn:
        failure = await refused(container, **second)
        assert failure.condition == "amqp:invalid-field"
        assert failure.error is not None
        assert failure.error.info == {"invalid-field": "container-id"}
        why = "there is a connection of this container, which is to be the only one"
        assert failure.error.description == why
        assert not conn.closed
    async with container.connect(**second):
        pass


@pytest.mark.parametrize(
    ("first", "second"), [(CLOSE, CLOSE), (CLOSE, PLAIN), (PLAIN, CLOSE), (REFUSE, CLOSE)]
)
async def test_connection_that_there_was_is_closed_when_they_say_so(first: Any, second: Any) -> None:
    container = amqp.Container()
    async with container.connect(**first) as old, container.connect(**second) as new:
        with pytest.raises(amqp.ConnectionClosedError) as caught:
            await old.wait_closed()
        assert caught.value.condition == "amqp:resource-locked"
        assert caught.value.error is not None
        assert caught.value.error.info == {"sole-connection-enforcement": True}
        why = "the container has opened another connection, which is to be the only one"
        assert caught.value.error.description == why
        async with new.open_sender("q") as sender:
            await sender.send("hello")


async def test_connections_are_as_many_as_they_like_when_nobody_asks() -> None:
    container = amqp.Container()
    async with container.connect(**PLAIN), container.connect(**PLAIN) as conn:
        assert conn.sole_connection is None or not conn.closed


async def test_connection_of_another_container_is_not_in_the_way() -> None:
    container = amqp.Container()
    async with container.connect(**REFUSE) as conn, container.connect(container_id="you"):
        assert conn.sole_connection == "strong"
        assert not conn.closed


async def test_connection_is_not_closed_for_another_user() -> None:
    users = amqp.sasl.Server(users={"ada": "secret", "bob": "secret"})
    container = amqp.Container()
    ada, bob = (amqp.sasl.Plain(name, "secret") for name in ("ada", "bob"))
    async with container.connect(users=users, sasl=ada, **CLOSE) as conn:
        async with container.connect(
            users=users, sasl=bob, **REFUSE
        ):  # the container of another user is another
            assert not conn.closed
        async with container.connect(users=users, sasl=ada, **CLOSE):
            with pytest.raises(amqp.ConnectionClosedError):
                await conn.wait_closed()


async def test_name_of_a_container_is_not_held_against_a_user_by_a_peer_that_proves_nothing() -> None:
    users = amqp.sasl.Server(users={"ada": "secret"}, anonymous=True)
    container = amqp.Container()
    ada, nobody = amqp.sasl.Plain("ada", "secret"), amqp.sasl.Anonymous()
    async with (
        container.connect(users=users, sasl=nobody, **REFUSE) as first,
        container.connect(users=users, sasl=ada, **REFUSE) as conn,
    ):
        async with container.connect(users=users, sasl=ada, container_id="you"):
            pass
        failure = await refused(container, users=users, sasl=nobody, **CLOSE | {"sole_connection": None})
        assert failure.condition == "amqp:invalid-field"
        assert not first.closed
        assert not conn.closed


async def test_refusal_is_told_in_the_open_before_the_close() -> None:
    container = amqp.Container()
    async with container.connect(**REFUSE), scripted(container) as peer:
        answer = await peer.dial_open(
            container_id="me", desired_capabilities=["sole-connection-for-container"]
        )
        assert answer["properties"] == {"amqp:connection-establishment-failed": True}
        close = await peer.expect("close")
        assert close["error"][1]["condition"] == "amqp:invalid-field"


async def test_detection_is_told_to_who_asks() -> None:
    container = amqp.Container()
    async with scripted(container) as peer:
        answer = await peer.dial_open(
            container_id="me", desired_capabilities=["sole-connection-for-container"]
        )
        assert "sole-connection-for-container" in answer["offered_capabilities"]
        assert answer["properties"] == {"sole-connection-detection-policy": 0}


async def test_policy_that_is_none_is_refused() -> None:
    container = amqp.Container()
    failure = await refused(
        container,
        container_id="me",
        desired_capabilities="sole-connection-for-container",
        properties={"sole-connection-enforcement-policy": amqp.UInt(7)},
    )
    assert failure.condition == "amqp:invalid-field"
    assert failure.error is not None
    assert failure.error.description == "sole-connection-enforcement-policy is 0 or 1"
    assert failure.error.info == {"invalid-field": "properties"}


async def test_handle_refuses_when_the_listener_did_not_ask_before() -> None:
    container = amqp.Container()
    async with container.connect(**REFUSE):
        ours, theirs = memory_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(acceptor().run, theirs, container.handle)
            with pytest.raises(amqp.ConnectionClosedError) as caught:
                async with amqp.open_connection(ours, container_id="me") as conn:
                    await conn.wait_closed()
            assert caught.value.condition == "amqp:invalid-field"


async def test_client_raises_when_the_peer_does_not_see_to_it() -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:

        async def handle(connection: amqp.Connection) -> None:
            await connection.wait_closed()

        nursery.start_soon(acceptor().run, theirs, handle)
        with pytest.raises(amqp.GuaranteeNotSupportedError, match="one connection only"):
            async with amqp.open_connection(ours, **REFUSE):
                raise AssertionError("a connection that should not come to be")
        nursery.cancel_scope.cancel()


async def test_client_closes_when_the_peer_does_not_offer_to_see_to_it(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    async with trio.open_nursery() as nursery:

        async def answer() -> None:
            await peer.accept_open(offered_capabilities=["other"])
            await peer.accept_begin()
            closed = await peer.accept_close()
            assert closed["error"][1]["condition"] == "amqp:not-implemented"
            assert "sole-connection-for-container" in closed["error"][1]["description"]
            await peer.expect_eof()

        nursery.start_soon(answer)
        with pytest.raises(amqp.GuaranteeNotSupportedError):
            async with amqp.open_connection(ours, **REFUSE):
                raise AssertionError("a connection that should not come to be")


async def test_client_goes_when_its_close_for_a_capability_is_not_answered(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.accept_open)
        began = trio.current_time()
        with pytest.raises(amqp.GuaranteeNotSupportedError):
            async with amqp.open_connection(ours, close_timeout=2.0, **REFUSE):
                raise AssertionError("a connection that should not come to be")
    assert trio.current_time() - began == pytest.approx(2.0)
    await peer.skip_to("close")


@pytest.mark.parametrize(
    "options", [{"sole_connection": "refuse-connection"}, PLAIN | {"sole_connection": "both"}]
)
def test_client_refuses_what_makes_no_sense(options: Any) -> None:
    with pytest.raises(amqp.LocalProtocolError, match="sole_connection"):
        amqp.open_connection("amqp://localhost", **options)


async def test_client_that_was_superseded_does_not_come_back() -> None:
    container = amqp.Container()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        url = listeners[0].url
        async with (
            amqp.open_connection(url, reconnect=True, **CLOSE) as old,
            amqp.open_connection(url, reconnect=True, **CLOSE) as new,
        ):
            with pytest.raises(amqp.ConnectionClosedError) as caught:
                await old.wait_closed()
            assert caught.value.condition == "amqp:resource-locked"
            async with new.open_sender("q") as sender:
                await sender.send("hello")
        nursery.cancel_scope.cancel()


class Stranger:
    """As much of a connection as is asked."""

    closed = False
    identity = None

    def __init__(self, name: str, *, asks: bool = False) -> None:
        self.container_id = name
        self.sole = "refuse" if asks else None


def test_connections_that_were_never_served_are_forgotten() -> None:
    sole = SoleConnections()
    first, second = Stranger("me"), Stranger("me")
    for each in (first, second):
        assert sole.admit(each) is None  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    sole.discard(first)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert len(sole) == 1
    del first, second, each
    gc.collect()
    assert len(sole) == 0


def test_connection_that_is_discarded_is_forgotten_at_once_and_one_that_was_never_admitted_makes_no_fuss() -> (
    None
):
    sole = SoleConnections()
    first: Any = Stranger("me")
    second: Any = Stranger("you")
    for each in (first, second):
        assert sole.admit(each) is None
    sole.discard(first)
    assert len(sole) == 1
    third: Any = Stranger("other")
    for each in (first, third, second):
        sole.discard(each)
    assert len(sole) == 0


def test_connection_that_is_closed_is_not_in_the_way() -> None:
    sole = SoleConnections()
    first: Any = Stranger("me", asks=True)
    second: Any = Stranger("me", asks=True)
    assert sole.admit(first) is None
    assert sole.admit(second) is not None
    first.closed = True
    assert sole.admit(second) is None
