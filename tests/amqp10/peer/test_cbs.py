"""Tokens from the side of a client: put once, kept fresh, and what happens where that fails."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.cbs import SasTokens, TokenRefusedError, keep_token, put_token
from trio_amqp10.amqp10.peer.errors import ConnectionClosedError, LinkDetachedError, LinkRefusedError
from trio_amqp10.container import Claim, Container, TokenOffer
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.tokens import JWT, SAS, SasToken, Token

if TYPE_CHECKING:
    from trio.testing import MockClock

NOW = 1_000_000.0
began = trio.lowlevel.RunVar("began", 0.0)


def wall() -> float:
    """A wall clock that goes with trio's, which begins anywhere."""
    return NOW + trio.current_time() - began.get()


class Service:
    """A container that takes every token but those that it is told not to, and remembers them."""

    def __init__(self) -> None:
        began.set(trio.current_time())
        self.offers: list[TokenOffer] = []
        self.down = False
        self.container = Container(wall_clock=wall)
        self.container.add_cbs(self.verify)

    def verify(self, offer: TokenOffer) -> Claim | None:
        self.offers.append(offer)
        return None if self.down else Claim(offer.audience, offer.token.expires)

    @property
    def seconds(self) -> list[float]:
        """When tokens were put, since the start."""
        return [round(offer.now - NOW) for offer in self.offers]


class Tokens:
    """A source whose tokens are good for a while."""

    def __init__(self, lifetime: float | None = 100.0) -> None:
        self.lifetime = lifetime
        self.failures: list[Exception] = []
        self.count = 0
        self.pause = 0.0

    async def __call__(self, audience: str) -> Token:
        await trio.sleep(self.pause)
        if self.failures:
            raise self.failures.pop(0)
        self.count += 1
        return Token(str(self.count), JWT, None if self.lifetime is None else wall() + self.lifetime)


keep = partial(keep_token, wall_clock=wall)


# -- once


async def test_put_token_says_what_the_token_is_for_and_when_it_ends() -> None:
    service = Service()
    async with service.container.connect() as conn:
        await conn.put_token("sb://ns/q", Token("secret", JWT, 2_000_000.25))
    (offer,) = service.offers
    assert (offer.audience, offer.token) == ("sb://ns/q", Token("secret", JWT, 2_000_000.25))


async def test_put_token_raises_when_the_token_is_refused() -> None:
    service = Service()
    service.down = True
    async with service.container.connect() as conn:
        with pytest.raises(
            TokenRefusedError, match="the token for 'q' was refused: 401 the token is not valid"
        ) as no:
            await conn.put_token("q", Token("secret", JWT))
        assert (no.value.status_code, no.value.status_description) == (401, "the token is not valid")


async def test_put_token_raises_when_the_peer_has_no_cbs() -> None:
    async with Container(strict=True).connect() as conn:
        with pytest.raises(LinkRefusedError, match="not-found"):
            await conn.put_token("q", Token("t", JWT))


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({}, "None"),
        ({"status-code": "200"}, "None"),
        ({"status-code": 500, "status-description": 7}, "500"),
        ({"status-code": 403, "status-description": "a\nb"}, "403 a\ufffdb"),
        ({"status-code": 302}, "302"),
    ],
)
async def test_put_token_raises_when_the_status_is_none_of_success(
    properties: dict[str, Any], said: str
) -> None:
    container = Container()

    @container.function("$cbs")
    async def cbs(message: amqp.Message) -> amqp.Message:
        return amqp.Message(None, application_properties=properties)

    async with container.connect() as conn:
        with pytest.raises(TokenRefusedError, match=f"refused: {said}$") as refused:
            await conn.put_token("q", Token("t", JWT))
        code = properties.get("status-code")
        assert refused.value.status_code == (code if isinstance(code, int) else None)


@pytest.mark.parametrize("limit", [5.0, None])
async def test_put_token_waits_so_long_for_an_answer(limit: float | None, autojump_clock: MockClock) -> None:
    container = Container()

    @container.function("$cbs")
    async def cbs(message: amqp.Message) -> amqp.Message:
        await trio.sleep(100)
        return amqp.Message(None, application_properties={"status-code": 200})

    async with container.connect(close_timeout=200) as conn:
        if limit is None:
            await put_token(conn, "q", Token("t", JWT), timeout=None)
        else:
            with pytest.raises(trio.TooSlowError):
                await put_token(conn, "q", Token("t", JWT), timeout=limit)


# -- kept fresh


async def test_keep_token_puts_another_when_nine_tenths_are_over_until_it_is_left(
    autojump_clock: MockClock,
) -> None:
    service, tokens = Service(), Tokens()
    async with service.container.connect() as conn:
        async with keep(conn, "q", tokens), conn.open_sender("q") as sender:
            for _ in range(40):
                await trio.sleep(10)
                await sender.send("x")
        await trio.sleep(1000)
    assert service.seconds == [0, 90, 180, 270, 360]
    assert [offer.token.value for offer in service.offers] == ["1", "2", "3", "4", "5"]


async def test_keep_token_puts_no_other_when_the_token_never_ends(autojump_clock: MockClock) -> None:
    service = Service()
    async with service.container.connect() as conn, conn.keep_token("q", Tokens(None)):
        await trio.sleep(1000)
    assert service.seconds == [0]


@pytest.mark.parametrize("failure", [OSError("no network"), ValueError("a fault")])
async def test_keep_token_tries_again_when_there_is_none(
    failure: Exception, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    service, tokens = Service(), Tokens()
    async with service.container.connect() as conn, keep(conn, "q", tokens), conn.open_sender("q") as sender:
        tokens.failures = [failure] * 3
        await trio.sleep(99)
        await sender.send("x")
    assert service.seconds == [0, 97]
    assert len([one for one in caplog.records if one.levelno == logging.WARNING]) == 3
    assert "no new token for 'q', next attempt in 4 s" in caplog.text
    assert all(
        bool(one.exc_info) == isinstance(failure, ValueError)
        for one in caplog.records
        if one.name.endswith("cbs")
    )


async def test_keep_token_goes_on_trying_when_the_last_has_ended(autojump_clock: MockClock) -> None:
    service = Service()
    async with service.container.connect() as conn, keep(conn, "q", Tokens()):
        async with conn.open_sender("q") as sender:
            service.down = True
            await trio.sleep(300)
            with pytest.raises(LinkDetachedError, match="unauthorized-access"):
                await sender.send("x")
        pauses = [
            after - before for before, after in zip(service.seconds[1:], service.seconds[2:], strict=False)
        ]
        assert pauses[:6] == [1, 2, 4, 8, 16, 30]
        assert set(pauses[6:]) == {30}
        service.down = False
        await trio.sleep(31)
        async with conn.open_sender("q") as sender:
            await sender.send("x")


async def test_keep_token_raises_on_entering_when_there_is_no_token(autojump_clock: MockClock) -> None:
    service, tokens = Service(), Tokens()
    async with service.container.connect() as conn:
        service.down = True
        with pytest.raises(TokenRefusedError):
            await keep(conn, "q", tokens).__aenter__()
        tokens.failures = [ValueError("mine")]
        with pytest.raises(ValueError, match="mine"):
            async with keep(conn, "q", tokens):
                pass
        tokens.lifetime = -5
        with pytest.raises(LocalProtocolError, match="expired 5 s ago"):
            async with keep(conn, "q", tokens):
                pass


async def test_keep_token_lets_out_what_its_block_raises_as_it_is() -> None:
    async with Service().container.connect() as conn:
        with pytest.raises(KeyError):
            async with keep(conn, "q", Tokens()):
                raise KeyError


async def test_keep_token_stops_when_the_connection_is_gone(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service()
    with pytest.raises(ConnectionClosedError):
        async with (
            service.container.connect() as conn,
            keep(conn, "q", Tokens()),
            conn.open_receiver("q") as receiver,
        ):
            conn.pump.cancel()
            await trio.sleep(1000)
            await receiver.receive()
    assert service.seconds == [0]
    assert not [one for one in caplog.records if one.name == "trio_amqp10.cbs"]


async def test_keep_token_stops_when_the_connection_goes_while_it_asks(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    service, tokens = Service(), Tokens()
    with pytest.raises(ConnectionClosedError):
        async with service.container.connect() as conn, keep(conn, "q", tokens):
            await trio.sleep(89.5)
            tokens.pause = 10
            await trio.sleep(5)
            conn.pump.cancel()
            await trio.sleep(1000)
            await conn.open_sender("q").__aenter__()
    assert service.seconds == [0]
    assert not [one for one in caplog.records if one.name == "trio_amqp10.cbs"]


async def test_cancelled_keep_token_leaves_nothing_behind(autojump_clock: MockClock) -> None:
    service = Service()
    async with service.container.connect() as conn:
        with trio.move_on_after(150):
            async with keep(conn, "q", Tokens()):
                await trio.sleep_forever()
        await trio.sleep(1000)
    assert service.seconds == [0, 90]


async def test_sas_tokens_signs_a_new_one_each_time() -> None:
    began.set(trio.current_time())
    source = SasTokens("root", "key", lifetime=60, wall_clock=wall)
    token = await source("sb://ns/q")
    read = SasToken.parse(token.value)
    assert token.type == SAS
    assert read.is_signed_by("key")
    assert (read.resource, read.key_name) == ("sb://ns/q", "root")
    assert token.expires == read.expires
    assert 59 <= read.expires - NOW <= 60
    assert repr(source) == "<SasTokens 'root' lifetime=60>"
    assert (await SasTokens("root", "key")("q")).expires == pytest.approx(time.time() + 3600, abs=10)


# -- the requester that it needs


async def test_requester_has_replies_come_from_the_node_itself_when_direct() -> None:
    container = Container(strict=True, authorise=lambda access: access.action != "create")

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:
        return str(message.body).upper()

    async with container.connect() as conn, conn.open_requester("upper", direct=True) as requester:
        assert (await requester.request("hi")).body == "HI"
    async with container.connect() as conn:
        with pytest.raises(LocalProtocolError, match="give only one of the two"):
            conn.open_requester("upper", direct=True, reply_to="q")
