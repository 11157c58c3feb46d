"""The login of clients, and what becomes of one that fails."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
import trio

from trio_amqp10 import sasl
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.wire.frames import INITIATION
from trio_amqp10.container import Container

from .script import dialled, opened

USERS = sasl.Server({"ada": "secret"})


async def test_client_that_need_not_log_in_is_anonymous() -> None:
    container = Container()
    async with opened(container, client_name="ada") as client:
        assert await client.quiet()
        (peer,) = container.connected
        assert (peer.container_id, peer.identity.mechanism, peer.closed) == ("ada", "ANONYMOUS", False)
        assert peer.statistics()["protocol"] == "AMQP/Fast"


async def test_client_logs_in_by_plain() -> None:
    container = Container()
    async with opened(container, USERS, mechanism="PLAIN", LOGIN="ada", PASSWORD="secret") as client:
        assert await client.quiet()
        (peer,) = container.connected
        assert peer.identity == sasl.Identity("ada", "PLAIN")


async def test_client_logs_in_by_a_mechanism_of_several_messages() -> None:
    async with dialled(Container(), USERS) as client:
        await client.stream.send_all(INITIATION)
        challenge = await client.hear()
        assert challenge is not None
        assert "SCRAM-SHA-256" in challenge["mechanisms"].split()
        bare = "n=ada,r=abc"
        first = await client.ask(scram(f"n,,{bare}"))
        server_first = {name: value for name, _, value in first["challenges"]}["CHALLENGE"].decode()
        nonce, salt, rounds = (part[2:] for part in server_first.split(","))
        without_proof = f"c=biws,r={nonce}"
        salted = hashlib.pbkdf2_hmac("sha256", b"secret", base64.b64decode(salt), int(rounds))
        key = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(
            hashlib.sha256(key).digest(), f"{bare},{server_first},{without_proof}".encode(), "sha256"
        )
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        last = await client.ask(scram(f"{without_proof},p={proof}"))
        assert last["challenges"][0][2].startswith(b"v=")
        assert (await client.ask(scram(""))).name == "connection tune"


def scram(text: str) -> spec.ConnectionResponse:
    return spec.ConnectionResponse(mechanism="SCRAM-SHA-256", responses={"RESPONSE": text})


async def test_login_that_fails_is_the_end_after_a_pause_without_a_word(
    autojump_clock: trio.testing.MockClock,
) -> None:
    _ = autojump_clock
    async with dialled(Container(), USERS) as client:
        await client.stream.send_all(INITIATION)
        await client.hear()
        began = trio.current_time()
        responses = {"LOGIN": "ada", "PASSWORD": "wrong"}
        await client.say(spec.ConnectionResponse(mechanism="PLAIN", responses=responses))
        assert await client.hear() is None
        assert trio.current_time() - began >= 3


@pytest.mark.parametrize(
    "response",
    [
        spec.ConnectionResponse(mechanism="NONE"),
        spec.ConnectionResponse(mechanism="PLAIN", responses={"LOGIN": "ada"}),
        spec.ConnectionResponse(mechanism="SCRAM-SHA-256"),
    ],
)
async def test_response_that_is_not_understood_is_closed_after_a_pause(
    response: spec.ConnectionResponse, autojump_clock: trio.testing.MockClock
) -> None:
    _ = autojump_clock
    async with dialled(Container(), USERS) as client:
        await client.stream.send_all(INITIATION)
        await client.hear()
        began = trio.current_time()
        assert await client.code(response) == ("connection", 502)
        assert trio.current_time() - began >= 3
        assert await client.hear() is None
