"""The login of clients: mechanisms, refusals, limits and virtual hosts."""

from __future__ import annotations

from functools import partial

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, sasl
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.amqp091.wire.fields import USUAL, write_table
from trio_amqp10.container import Container

from .script import CAPABLE, dialled, opened, started

USERS = sasl.Server({"ada": "secret"})


def amqplain(user: str, password: str) -> bytes:
    out = bytearray()
    write_table(out, {"LOGIN": user, "PASSWORD": password}, USUAL)
    return bytes(out[4:])


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", b"\0ada\0secret"),
        ("AMQPLAIN", amqplain("ada", "secret")),
    ],
)
async def test_client_logs_in_by_each_mechanism_of_one_message(mechanism: str, response: bytes) -> None:
    container = Container()
    async with dialled(container, USERS) as client:
        assert mechanism in await started(client)
        answer = spec.ConnectionStartOk(mechanism=mechanism, response=response)
        tune = await client.ask(answer, 0)
        assert tune == {"channel_max": 2047, "frame_max": 131_072, "heartbeat": 60}
        await client.say(spec.ConnectionTuneOk(channel_max=1, frame_max=4096), channel=0)
        assert (await client.ask(spec.ConnectionOpen(), 0)).name == "connection.open-ok"
        (peer,) = container.connected
        assert peer.identity == sasl.Identity("ada", mechanism)


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", b"\0ada\0wrong"),
        ("PLAIN", b"nonsense"),
        ("AMQPLAIN", amqplain("ada", "wrong")),
        ("AMQPLAIN", b"nonsense"),
        ("ANONYMOUS", b""),
        ("ODD", b""),
    ],
)
async def test_login_is_refused_with_403_after_a_while(
    mechanism: str, response: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    _ = autojump_clock
    async with dialled(Container(), USERS) as client:
        await started(client)
        began = trio.current_time()
        answer = spec.ConnectionStartOk(client_properties=CAPABLE, mechanism=mechanism, response=response)
        close = await client.ask(answer, 0)
        assert trio.current_time() - began >= 1
        assert (close.name, close["reply_code"]) == ("connection.close", 403)
        assert (close["class_id"], close["method_id"]) == (0, 0)
        assert await client.hear() is None


async def test_login_is_refused_in_silence_when_the_client_knows_no_close_of_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    _ = autojump_clock
    async with dialled(Container(), USERS) as client:
        await started(client)
        await client.say(spec.ConnectionStartOk(response=b"\0ada\0wrong"), channel=0)
        assert await client.hear() is None


async def test_guest_is_nobody_when_there_are_no_users() -> None:
    container = Container()
    async with opened(container):
        (peer,) = container.connected
        assert peer.identity.mechanism == "ANONYMOUS"


async def test_scram_proves_both_ends(autojump_clock: trio.testing.MockClock) -> None:
    _ = autojump_clock
    container = Container()
    dialect = Amqp091(container)
    async with trio.open_nursery() as nursery:
        listen = partial(amqp.serve, _unused, "amqp://127.0.0.1:0", sasl=USERS, dialects=(dialect,))
        listeners = await nursery.start(listen)
        url = f"amqp://ada:secret@127.0.0.1:{listeners[0].port}"
        async with amqp091.open_connection(url) as connection:
            (peer,) = container.connected
            assert peer.identity.mechanism.startswith("SCRAM-SHA-")
            async with connection.open_channel() as channel:
                queue = await channel.declare_queue("q")
                await channel.publish("", "q", b"1")
                got = await queue.get()
                assert got is not None
                assert got.body == b"1"
                got.ack()
        nursery.cancel_scope.cancel()


async def _unused(connection: amqp.Connection) -> None:
    raise AssertionError(connection)


async def test_unknown_virtual_host_is_refused_with_530() -> None:
    async with dialled(Container()) as client:
        await started(client)
        await client.ask(spec.ConnectionStartOk(response=b"\0guest\0guest"), 0)
        await client.say(spec.ConnectionTuneOk(channel_max=1, frame_max=4096), channel=0)
        close = await client.ask(spec.ConnectionOpen(virtual_host="odd"), 0)
        assert (close["reply_code"], close["reply_text"]) == (530, b"NOT_ALLOWED - vhost odd not found")
        assert (close["class_id"], close["method_id"]) == (10, 40)


@pytest.mark.parametrize(
    "tune",
    [
        spec.ConnectionTuneOk(channel_max=2048, frame_max=4096),
        spec.ConnectionTuneOk(channel_max=0, frame_max=4096),
        spec.ConnectionTuneOk(channel_max=1, frame_max=131_073),
        spec.ConnectionTuneOk(channel_max=1, frame_max=4095),
    ],
    ids=repr,
)
async def test_limits_out_of_bounds_are_refused_with_530(tune: spec.ConnectionTuneOk) -> None:
    async with dialled(Container()) as client:
        await started(client)
        await client.ask(spec.ConnectionStartOk(response=b"\0guest\0guest"), 0)
        assert (await client.ask(tune, 0))["reply_code"] == 530


async def test_secret_of_another_login_is_accepted() -> None:
    async with opened() as client:
        answer = await client.ask(spec.ConnectionUpdateSecret(new_secret=b"x", reason="y"), 0)
        assert answer.name == "connection.update-secret-ok"
