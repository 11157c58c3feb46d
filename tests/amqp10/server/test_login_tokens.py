"""A connection of AMQP 1.0 ends when the token does by which its peer logged in."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp10.peer.helpers import served
from trio_amqp10 import sasl

if TYPE_CHECKING:
    from trio.testing import MockClock

LIVES = 60.0


def wall() -> float:
    """Seconds since 1970, by trio's clock."""
    return 1_000_000.0 + trio.current_time()


def jwt(expires: float) -> str:
    parts = ({"alg": "none"}, {"exp": int(expires)})
    return ".".join(
        [*(base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts), "x"]
    )


def server(lives: float | None) -> sasl.Server:
    """Return a server that accepts every token.

    A token ends so many seconds after the login, or at the time in the token.
    """

    async def verify(_username: str, _token: str) -> str | tuple[str, float]:
        await trio.lowlevel.checkpoint()
        return "ada" if lives is None else ("ada", wall() + lives)

    return sasl.Server(mechanisms=[sasl.OAuthBearerServer(verify), sasl.XOAuth2Server(verify)])


def client(token: str = "one", mechanism: type[sasl.OAuthBearer] = sasl.OAuthBearer) -> sasl.OAuthBearer:
    async def fetch() -> str:
        await trio.lowlevel.checkpoint()
        return token

    return mechanism(fetch)


@pytest.mark.parametrize("mechanism", [sasl.OAuthBearer, sasl.XOAuth2])
async def test_token_that_ends_ends_the_connection(autojump_clock: MockClock, mechanism: type) -> None:
    container = amqp.Container(wall_clock=wall)
    container.add_queue("q")
    options = {"users": server(LIVES), "sasl": client(mechanism=mechanism), "idle_timeout": None}
    async with container.connect(**options) as conn:
        began, sent = trio.current_time(), 0
        with pytest.raises(amqp.ConnectionClosedError, match="the token has expired") as closed:
            async with conn.open_sender("q") as sender:
                while True:  # however busy it is
                    await sender.send(b"tea")
                    sent += 1
                    await trio.sleep(1)
        assert trio.current_time() - began == pytest.approx(LIVES, abs=1)
        assert closed.value.condition == "amqp:unauthorized-access"
        assert sent >= LIVES - 1
        assert len(container.nodes["q"]) == sent  # type: ignore[arg-type]


async def test_connections_of_one_container_end_with_their_own_tokens(autojump_clock: MockClock) -> None:
    container = amqp.Container(wall_clock=wall)
    ends: dict[float, float] = {}

    async def stay(lives: float) -> None:
        async with container.connect(users=server(lives), sasl=client(), idle_timeout=None) as conn:
            with pytest.raises(amqp.ConnectionClosedError):
                await conn.wait_closed()
            ends[lives] = trio.current_time()

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for lives in (30.0, 10.0):
            nursery.start_soon(stay, lives)
    assert ends == {lives: pytest.approx(began + lives, abs=1) for lives in (30.0, 10.0)}
    assert not container.connected


async def test_token_that_does_not_end_ends_no_connection(autojump_clock: MockClock) -> None:
    container = amqp.Container(wall_clock=wall)
    async with container.connect(users=server(None), sasl=client(), idle_timeout=None) as conn:
        with trio.move_on_after(10 * LIVES):
            await conn.wait_closed()
        assert not conn.closed


async def test_jwt_says_itself_when_it_ends(autojump_clock: MockClock) -> None:
    container = amqp.Container(wall_clock=wall)
    began = trio.current_time()
    token = jwt(wall() + LIVES)
    async with container.connect(users=server(None), sasl=client(token), idle_timeout=None) as conn:
        with pytest.raises(amqp.ConnectionClosedError, match="the token has expired"):
            await conn.wait_closed()
    assert trio.current_time() - began == pytest.approx(LIVES, abs=2)


async def test_token_that_has_ended_already_is_of_no_use(autojump_clock: MockClock) -> None:
    container = amqp.Container(wall_clock=wall)
    with pytest.raises(amqp.ConnectionClosedError, match="the token has expired"):
        async with container.connect(users=server(-1), sasl=client(), idle_timeout=None) as conn:
            began = trio.current_time()
            await conn.wait_closed()
    assert trio.current_time() - began < 1


async def test_handler_of_a_service_sees_its_connection_end(autojump_clock: MockClock) -> None:
    """Without a container; and one that does not look at its connection does not keep it."""
    over: list[float] = []

    async def handle(connection: amqp.Connection) -> None:
        assert connection.identity == sasl.Identity("ada", "OAUTHBEARER")
        async for _ in connection.incoming_links():
            raise AssertionError("nobody opens a link")
        over.append(trio.current_time())

    began = trio.current_time()
    accept = {"sasl": server(LIVES), "wall_clock": wall}
    async with served(handle, accept=accept, sasl=client(), idle_timeout=None) as conn:
        with pytest.raises(amqp.ConnectionClosedError, match="the token has expired"):
            await conn.wait_closed()
    assert over == [pytest.approx(began + LIVES, abs=1)]


async def test_connection_that_is_closed_before_leaves_nothing_that_waits(autojump_clock: MockClock) -> None:
    container = amqp.Container(wall_clock=wall)
    began = trio.current_time()
    async with container.connect(users=server(3600), sasl=client()):
        pass
    assert trio.current_time() - began < 10


def test_when_a_token_ends_is_no_part_of_whose_it_is() -> None:
    assert sasl.Identity("ada", "OAUTHBEARER", 7.0) == sasl.Identity("ada", "OAUTHBEARER")
    assert len({sasl.Identity("ada", "OAUTHBEARER", 7.0), sasl.Identity("ada", "OAUTHBEARER")}) == 1
