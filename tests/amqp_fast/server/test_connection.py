"""Rights, the brake, and the end of a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from trio.testing import wait_all_tasks_blocked

from tests.amqp_fast.pairs import block_of
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.message import Message, fragments_of
from trio_amqp10.amqp_fast.server.protocol import AmqpFast
from trio_amqp10.container import Container, Rules

from .script import dialled, negotiated, opened

if TYPE_CHECKING:
    import pytest


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
