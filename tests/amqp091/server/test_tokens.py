"""Logins by token, and the token that replaces another (connection.update-secret)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_amqp10 import sasl
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.wire.frames import PROTOCOL_HEADER
from trio_amqp10.container import Container

from .script import CAPABLE, Client, dialled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio.testing import MockClock

OWNERS = {"one": "ada", "two": "ada", "other": "eve"}


def wall() -> float:
    """Seconds since 1970, by trio's clock."""
    return 1_000_000.0 + trio.current_time()


def server(lives: float | None = None) -> sasl.Server:
    """Lets in who has a token, which ends so many seconds after it was verified."""

    async def verify(username: str, token: str) -> str | tuple[str, float] | None:
        assert username == ""
        await trio.lowlevel.checkpoint()
        owner = OWNERS.get(token)
        return owner if owner is None or lives is None else (owner, wall() + lives)

    return sasl.Server(mechanisms=[sasl.OAuthBearerServer(verify)])


@asynccontextmanager
async def logged_in(lives: float | None = None) -> AsyncGenerator[Client]:
    async with dialled(Container(wall_clock=wall), server(lives)) as client:
        await client.stream.send_all(PROTOCOL_HEADER)
        start = await client.hear()
        assert start is not None
        assert start["mechanisms"] == b"OAUTHBEARER"
        answer = spec.ConnectionStartOk(
            client_properties=CAPABLE, mechanism="OAUTHBEARER", response=b"n,,\1auth=Bearer one\1\1"
        )
        assert (await client.ask(answer, 0)).name == "connection.tune"
        await client.say(spec.ConnectionTuneOk(channel_max=9, frame_max=4096, heartbeat=0), channel=0)
        assert (await client.ask(spec.ConnectionOpen(), 0)).name == "connection.open-ok"
        yield client


async def test_token_of_the_same_user_replaces_the_one_of_the_login() -> None:
    async with logged_in() as client:
        for token in (b"two", b"one"):
            update = spec.ConnectionUpdateSecret(new_secret=token, reason="it ends")
            assert (await client.ask(update, 0)).name == "connection.update-secret-ok"


async def test_secrets_are_answered_in_order_when_several_come_at_once() -> None:
    async with logged_in() as client:
        await client.say(*(spec.ConnectionUpdateSecret(new_secret=b"two") for _ in range(3)), channel=0)
        heard = [await client.hear() for _ in range(3)]
        assert [each.name for each in heard if each is not None] == ["connection.update-secret-ok"] * 3


@pytest.mark.parametrize("token", [b"stolen", b"other", b"no token", b""])
async def test_token_that_is_not_the_users_ends_the_connection_with_530(token: bytes) -> None:
    async with logged_in() as client:
        close = await client.ask(spec.ConnectionUpdateSecret(new_secret=token), 0)
        assert (close.name, close["reply_code"]) == ("connection.close", 530)
        assert (close["class_id"], close["method_id"]) == (10, 70)
        assert close["reply_text"] == b"NOT_ALLOWED - the new token is not accepted"


async def test_token_that_ends_ends_the_connection_with_530(autojump_clock: MockClock) -> None:
    _ = autojump_clock
    async with logged_in(60) as client:
        began = trio.current_time()
        close = await client.hear()
        assert close is not None
        assert trio.current_time() - began == pytest.approx(60)
        assert (close["reply_code"], close["reply_text"]) == (530, b"NOT_ALLOWED - the token has expired")


async def test_connection_lives_as_long_as_the_token_that_came_last(autojump_clock: MockClock) -> None:
    _ = autojump_clock
    async with logged_in(60) as client:
        began = trio.current_time()
        for _ in range(3):
            await trio.sleep(50)
            update = spec.ConnectionUpdateSecret(new_secret=b"two")
            assert (await client.ask(update, 0)).name == "connection.update-secret-ok"
        close = await client.hear()
        assert close is not None
        assert close["reply_code"] == 530
        assert trio.current_time() - began == pytest.approx(210)


async def test_connection_is_forgotten_at_once_when_it_is_closed_before_its_token_ends() -> None:
    async with logged_in(3600) as client:
        await client.say(spec.ConnectionClose(), channel=0)
        assert (await client.hear()).name == "connection.close-ok"  # type: ignore[union-attr]
        await wait_all_tasks_blocked()
        assert await client.hear() is None


async def test_secret_is_not_answered_when_the_connection_is_closed_meanwhile() -> None:
    async with logged_in() as client:
        await client.say(spec.ConnectionUpdateSecret(new_secret=b"two"), spec.ConnectionClose(), channel=0)
        assert (await client.hear()).name == "connection.close-ok"  # type: ignore[union-attr]
        assert await client.hear() is None
