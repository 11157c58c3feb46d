"""One connection for each container of a peer, if it asks for that.

See "AMQP Enforcing Connection Uniqueness 1.0".
"""

from __future__ import annotations

import gc
from typing import Any

import pytest
import trio
from trio.testing import memory_stream_pair

import trio_amqp10 as amqp
from tests.amqp10.peer.helpers import acceptor
from trio_amqp10.amqp10.server.sole_connection import SoleConnections

from .sole_connections import CLOSE, PLAIN, REFUSE, refused, scripted


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
        why = "this container-id has a connection already, and may have only one"
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
        why = "this container-id has opened another connection, and may have only one"
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


class Stranger:
    """A connected peer with only the attributes that ``SoleConnections`` uses."""

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
