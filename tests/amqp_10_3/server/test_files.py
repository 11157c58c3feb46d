"""Files of 10.3: staged, resumed, published and delivered (C 1098-1424)."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.amqp_10_3.server.staged_files import StagedFiles
from trio_amqp10.amqp_10_3.wire.properties import FileProperties
from trio_amqp10.container import Container

from .script import Client, opened

FILE = FileProperties(filename="f.txt", message_id="m", headers={"a": 1})


async def stage(client: Client, body: bytes, identifier: str = "i", cut: int | None = None) -> int:
    """Stage the rest of a file; return the number of octets that were staged before."""
    answer = await client.ask(spec.FileOpen(identifier=identifier, content_size=len(body)))
    assert answer.name == "file.open-ok", answer
    there = int(answer["staged_size"])
    await client.carry(spec.FileStage(), body[there:], FILE, cut=cut)
    return there


async def publish(client: Client, body: bytes = b"hello", **place: Any) -> None:
    assert await stage(client, body) == 0
    await client.say(spec.FilePublish(**{"identifier": "i", "routing_key": "q", **place}))


async def test_file_is_staged_published_and_delivered() -> None:
    async with opened() as client:
        await client.declare()
        await publish(client)
        await client.consume(spec.FileConsume)
        asked = await client.heard("file.open")
        assert asked["content_size"] == 5
        await client.say(spec.FileOpenOk(staged_size=2))
        staged = await client.heard("file.stage")
        assert staged.body == b"llo"
        assert staged.properties[5:7] == [b"m", b"f.txt"]
        assert staged.properties[2] == [(b"a", ("I", 1))]
        delivered = await client.heard("file.deliver")
        assert delivered["identifier"] == asked["identifier"]
        await client.say(spec.FileAck(delivery_tag=delivered["delivery_tag"]))
        assert (await client.ask(spec.QueueDeclare(queue="q", passive=True)))["message_count"] == 0


async def test_file_is_resumed_by_the_client_of_the_same_name() -> None:
    container = Container()
    dialect = Amqp103(container, tickets=False)
    async with opened(dialect=dialect, name="shop") as one:
        assert await stage(one, b"hello", cut=3) == 0
    async with opened(dialect=dialect, name="other") as other:
        assert await stage(other, b"hello") == 0
    async with opened(dialect=dialect, name="shop") as two:
        await two.declare()
        assert await stage(two, b"hello") == 3
        await two.say(spec.FilePublish(identifier="i", routing_key="q"))
        assert (await two.ask(spec.BasicGet(queue="q"))).body == b"hello"


async def test_identifier_of_a_delivery_is_the_same_after_a_loss() -> None:
    container = Container()
    dialect = Amqp103(container, tickets=False)
    identifiers = []
    async with opened(dialect=dialect) as one:
        await one.declare()
        await publish(one)
        await one.consume(spec.FileConsume)
        identifiers.append((await one.heard("file.open"))["identifier"])
    async with opened(dialect=dialect) as two:
        await two.consume(spec.FileConsume)
        identifiers.append((await two.heard("file.open"))["identifier"])
        await two.say(spec.FileOpenOk(staged_size=5))
        assert (await two.heard("file.stage")).body == b""
        await two.heard("file.deliver")
    assert identifiers[0] == identifiers[1]


async def test_file_that_another_channel_stages_is_refused_with_405() -> None:
    async with opened() as client:
        await client.ask(spec.ChannelOpen(), 2)
        method = spec.FileOpen(identifier="i", content_size=5)
        assert (await client.ask(method)).name == "file.open-ok"
        assert await client.refused(method, 2) == ("channel", 405)


@pytest.mark.parametrize(
    ("case", "refused"),
    [
        ("unopened", ("connection", 503)),
        ("size", ("channel", 406)),
        ("unknown", ("channel", 404)),
        ("partial", ("channel", 406)),
        ("large", ("channel", 311)),
        ("more", ("channel", 406)),
    ],
)
async def test_file_that_cannot_be_staged_is_refused(case: str, refused: tuple[str, int]) -> None:
    async with opened() as client:
        await client.declare()
        method: Any = None
        if case == "unopened":
            await client.carry(spec.FileStage(), b"hello", FILE)
        elif case == "size":
            await client.ask(spec.FileOpen(identifier="i", content_size=4))
            await client.carry(spec.FileStage(), b"hello", FILE)
        elif case == "unknown":
            method = spec.FilePublish(identifier="i")
        elif case == "partial":
            await client.ask(spec.FileOpen(identifier="i", content_size=4))
            method = spec.FilePublish(identifier="i")
        elif case == "large":
            method = spec.FileOpen(identifier="i", content_size=1 << 40)
        else:
            await publish(client)
            await client.consume(spec.FileConsume)
            await client.heard("file.open")
            method = spec.FileOpenOk(staged_size=6)
        if method is not None:
            await client.say(method)
        assert await client.closed(await client.hear(), 1 if refused[0] == "channel" else 0) == refused


async def test_files_come_one_at_a_time_and_wait_for_their_window() -> None:
    async with opened() as client:
        await client.declare()
        for body in (b"1" * 100, b"2" * 100):
            await client.publish("", "q", body)
        await client.consume(spec.FileConsume, prefetch_count=1)
        await client.heard("file.open")
        assert await client.quiet()
        await client.say(spec.FileOpenOk())
        assert (await client.heard("file.stage")).body == b"1" * 100
        await client.heard("file.deliver")
        assert await client.quiet()
        await client.say(spec.FileAck(delivery_tag=1))
        await client.heard("file.open")
        await client.ask(spec.FileCancel(consumer_tag="c"))
        await client.say(spec.FileOpenOk())
        assert (await client.ask(spec.BasicGet(queue="q"))).body == b"2" * 100


async def test_file_is_settled_by_its_delivery_when_the_consumer_does_not_acknowledge() -> None:
    async with opened() as client:
        await client.declare()
        await client.publish("", "q", b"1")
        await client.publish("", "q", b"2")
        await client.consume(spec.FileConsume, no_ack=True)
        for body in (b"1", b"2"):
            await client.heard("file.open")
            await client.say(spec.FileOpenOk())
            assert (await client.heard("file.stage")).body == body
            await client.heard("file.deliver")
        assert await client.quiet()


async def test_mandatory_file_is_returned() -> None:
    async with opened() as client:
        await publish(client, routing_key="nowhere", mandatory=True)
        heard = await client.heard("file.return")
        assert (heard["reply_code"], heard.body, heard.properties[6]) == (312, b"hello", b"f.txt")


async def test_client_that_opens_too_many_files_is_closed_with_506() -> None:
    async with opened() as client:
        for number in range(StagedFiles().max_active):
            await client.ask(spec.FileOpen(identifier=str(number), content_size=5))
        assert await client.refused(spec.FileOpen(identifier="x", content_size=5)) == ("connection", 506)
