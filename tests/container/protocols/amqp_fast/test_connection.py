"""Login, virtual paths, client names, rights, and the end of a connection."""

from __future__ import annotations

import base64
import hashlib
import hmac
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.amqp_fast.pairs import block_of
from trio_amqp10 import sasl
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.frames import INITIATION
from trio_amqp10.amqp_fast.limits import Limits
from trio_amqp10.amqp_fast.message import Message, fragments_of
from trio_amqp10.container import Container, Quotas, Rules
from trio_amqp10.container.protocols.amqp_fast.protocol import AmqpFast

from .script import Client, dialled, opened

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


async def negotiated(client: Client) -> None:
    await client.stream.send_all(INITIATION)
    await client.hear()
    await client.ask(spec.ConnectionResponse(mechanism="NONE"))


async def test_virtual_path_that_there_is_not_is_refused() -> None:
    async with dialled(Container()) as client:
        await negotiated(client)
        assert await client.code(spec.ConnectionOpen(virtual_path="/other")) == ("connection", 402)


async def test_client_name_is_active_once_at_a_time() -> None:
    container = Container()
    dialect = AmqpFast(container)
    async with opened(container, dialect=dialect, client_name="ada"):
        async with dialled(container, dialect=dialect) as second:
            await negotiated(second)
            opening = spec.ConnectionOpen(virtual_path="/", client_name="ada")
            assert await second.code(opening) == ("connection", 320)
        async with opened(container, dialect=dialect), opened(container, dialect=dialect) as nameless:
            assert await nameless.quiet()
    async with opened(container, dialect=dialect, client_name="ada") as again:
        assert await again.quiet()


async def test_connection_that_is_not_permitted_is_refused() -> None:
    async with dialled(Container(authorise=lambda access: access.action != "open")) as client:
        await negotiated(client)
        assert await client.code(spec.ConnectionOpen()) == ("connection", 403)


async def test_connection_ends_quietly_when_its_permission_comes_too_late(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    _ = autojump_clock

    async def authorise(_access: object) -> bool:
        await trio.sleep(100)
        return True

    container = Container(authorise=authorise)
    async with dialled(container) as client:
        await negotiated(client)
        await client.say(spec.ConnectionOpen(client_name="ada"))
        await client.say(spec.ConnectionClose(reply_code=200))
        heard = await client.hear()
        assert heard is None or heard.name == "connection close"
        await client.stream.aclose()
        await trio.sleep(200)
        assert not container.connected
    assert not [record for record in caplog.records if record.exc_info]


async def test_quota_of_connections_is_held() -> None:
    container = Container(quotas=Quotas(connections=1))
    async with opened(container), dialled(container) as client:
        await negotiated(client)
        assert (await client.code(spec.ConnectionOpen()))[0] == "connection"


async def test_handle_is_closed_when_its_client_may_not() -> None:
    container = Container(authorise=Rules(("*", "open"), ("*", "send", "a"), ("*", "receive", "b")))
    for name in "ab":
        container.add_queue(name)
    async with opened(container) as client:
        await client.handle("")
        await client.send(b"1", name="a", confirm=1)
        heard = await client.hear()
        assert heard is not None
        assert heard.name == "handle reply"
        await client.send(b"2", name="b")
        assert await client.code() == ("handle", 403)
        await client.handle("b", 2)
        await client.consume(handle_id=2)
        await client.handle("a", 3)
        assert await client.code(spec.HandleConsume(handle_id=3)) == ("handle", 403)


async def test_end_of_the_service_closes_the_connection() -> None:
    container = Container()
    dialect = AmqpFast(container, close_timeout=1)
    async with opened(container, dialect=dialect) as client:
        assert await client.quiet()
        (peer,) = container.connected
        peer.close("amqp:connection:forced", "enough")
        assert await client.code() == ("connection", 320)
        await client.say(spec.ConnectionClose())
        assert await client.hear() is None


async def test_close_of_the_client_is_answered() -> None:
    container = Container()
    async with opened(container) as client:
        assert await client.code(spec.ConnectionClose()) == ("connection", 200)
        assert await client.hear() is None
        await wait_all_tasks_blocked()
        assert container.connected == ()


async def test_container_serves_the_dialect_by_name_beside_amqp_1_0() -> None:
    container = Container()
    container.add_queue("q")
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, "amqp://127.0.0.1:0", dialects=["amqp-fast"])
        (listener,) = await nursery.start(serve)
        async with amqp.open_connection(listener.url) as connection:
            async with connection.open_sender("q") as sender:
                await sender.send("from 1.0")
            stream = await trio.open_tcp_stream("127.0.0.1", listener.port)
            client = Client(stream)
            await client.open()
            await client.handle("q")
            await client.consume()
            assert (await client.got())[1] == b"from 1.0"
            await stream.aclose()
        nursery.cancel_scope.cancel()


async def test_connection_is_not_read_while_a_queue_of_the_program_is_full() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=1)
    async with opened(container) as client:
        await client.handle("q")
        for number in range(3):
            await client.send(b"%d" % number, confirm=number + 1)
        heard = await client.hear()
        assert heard is not None
        assert heard["confirm_tag"] == 1
        await client.say(spec.ConnectionPing(respond=True))
        await wait_all_tasks_blocked()
        assert len(queue) == 1
        queue.purge()
        both = [await client.heard(), await client.heard()]
        assert sorted(each.name for each in both) == ["connection ping", "handle reply"]
        assert len(queue) == 1


async def test_large_message_of_one_channel_holds_up_no_other() -> None:
    container = Container()
    container.add_queue("q")
    dialect = AmqpFast(container, limits=Limits(frame_max=4096))
    async with opened(container, dialect=dialect) as client:
        await client.handle("q")
        body = b"x" * 100_000
        pieces = list(fragments_of(block_of(Message(spec.MessageHead(), body)), 4096))
        for piece in pieces[:-1]:
            await client.say(
                spec.HandleSend(handle_id=1, fragment_size=len(piece), partial=True), fragment=piece
            )
            assert await client.quiet()
        last = spec.HandleSend(handle_id=1, fragment_size=len(pieces[-1]), confirm_tag=1)
        await client.say(last, fragment=pieces[-1])
        heard = await client.hear()
        assert heard is not None
        assert heard.name == "handle reply"
