"""Files and streams of 10.3: staged, resumed, published, delivered; paced, and dropped by priority (C 1098-1424)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.properties import FileProperties, StreamProperties
from trio_amqp10.container import Container
from trio_amqp10.container.protocols.amqp_10_3.protocol import Amqp103
from trio_amqp10.container.protocols.amqp_10_3.staged_files import StagedFiles

from .script import Client, opened

FILE = FileProperties(filename="f.txt", message_id="m", headers={"a": 1})


async def stage(client: Client, body: bytes, identifier: str = "i", cut: int | None = None) -> int:
    """Stage a file from where it broke off: how many octets were there."""
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
async def test_what_cannot_be_staged_is_refused(case: str, refused: tuple[str, int]) -> None:
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


async def test_file_without_acknowledgement_is_the_clients_when_it_is_delivered() -> None:
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


def test_staged_files_are_forgotten_when_they_are_old_or_too_many() -> None:
    files = StagedFiles(kept=10, max_files=2, max_octets=10)
    first = files.open(("o", "1"), 5, "c", 0.0)
    files.release(first, 0.0)
    assert files.open(("o", "1"), 5, "c", 5.0) is first
    assert files.open(("o", "1"), 6, "c", 5.0) is not first
    files.finish(first)
    assert len(files) == 1
    files.release(files.open(("o", "1"), 6, "c", 5.0), 5.0)
    for name in "23":
        file = files.open(("o", name), 20, "c", 6.0)
        file.body += b"x" * 6
        files.release(file, 6.0)
    assert len(files) < 3
    files.open(("o", "4"), 1, "c", 20.0)
    assert len(files) == 1


def test_files_that_one_client_stages_are_bounded_in_number() -> None:
    files = StagedFiles(max_active=2)
    first = files.open(("o", "1"), 5, "c", 0.0)
    files.open(("o", "2"), 5, "c", 0.0)
    assert files.open(("o", "1"), 5, "c", 0.0) is first
    first = files.open(("o", "1"), 6, "c", 0.0)
    with pytest.raises(ReplyError, match="2 files") as caught:
        files.open(("o", "3"), 5, "c", 0.0)
    assert (caught.value.code, caught.value.scope) == (506, "connection")
    files.open(("other", "3"), 5, "d", 0.0)
    files.finish(first)
    third = files.open(("o", "3"), 5, "c", 0.0)
    files.release(third, 0.0)
    files.finish(third)
    files.open(("o", "4"), 5, "c", 0.0)
    with pytest.raises(ReplyError):
        files.open(("o", "3"), 5, "c", 0.0)
    assert len(files) == 4


def test_files_that_one_client_stages_are_bounded_in_octets_unless_it_is_one() -> None:
    files = StagedFiles(max_active_octets=10)
    large = files.open(("o", "1"), 11, "c", 0.0)
    with pytest.raises(ReplyError, match="10 octets") as caught:
        files.open(("o", "2"), 0, "c", 0.0)
    assert caught.value.code == 506
    files.finish(large)
    files.open(("o", "1"), 4, "c", 0.0)
    files.open(("o", "2"), 6, "c", 0.0)
    files.open(("o", "2"), 5, "c", 0.0)
    with pytest.raises(ReplyError):
        files.open(("o", "3"), 2, "c", 0.0)
    files.open(("o", "3"), 1, "c", 0.0)


async def test_client_that_opens_too_many_files_is_closed_with_506() -> None:
    async with opened() as client:
        for number in range(StagedFiles().max_active):
            await client.ask(spec.FileOpen(identifier=str(number), content_size=5))
        assert await client.refused(spec.FileOpen(identifier="x", content_size=5)) == ("connection", 506)


# -- streams --------------------------------------------------------------------------------


async def send(client: Client, body: bytes, priority: int | None = None, **place: Any) -> None:
    method = spec.StreamPublish(**{"routing_key": "q", **place})
    await client.carry(method, body, StreamProperties(priority=priority, content_type="a/b"))


async def test_stream_is_delivered_without_acknowledgements() -> None:
    async with opened() as client:
        await client.declare()
        await client.consume(spec.StreamConsume)
        for body in (b"1", b"2"):
            await send(client, body, 3)
            heard = await client.heard("stream.deliver")
            assert (heard.body, heard["queue"]) == (body, b"q")
            assert heard.properties == [b"a/b", None, None, 3, None]
        assert (await client.ask(spec.QueueDeclare(queue="q", passive=True)))["message_count"] == 0
        await client.ask(spec.StreamCancel(consumer_tag="c"))
        await send(client, b"3")
        assert await client.quiet()


async def test_stream_returns_what_is_mandatory() -> None:
    async with opened() as client:
        await send(client, b"x", routing_key="nowhere", mandatory=True)
        assert (await client.heard("stream.return")).properties[0] == b"a/b"


async def test_stream_keeps_to_its_rate(autojump_clock: Any) -> None:
    async with opened() as client:
        await client.declare()
        for _ in range(3):
            await send(client, b"x" * 100)
        await client.consume(spec.StreamConsume, consume_rate=50)
        times = []
        for _ in range(3):
            await client.heard("stream.deliver")
            times.append(trio.current_time())
        assert [round(each - times[0], 3) for each in times] == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("window", [{"prefetch_count": 2}, {"prefetch_size": 200}], ids=str)
async def test_stream_drops_the_least_urgent_above_its_window(window: Any, autojump_clock: Any) -> None:
    async with opened() as client:
        await client.declare()
        await client.consume(spec.StreamConsume, consume_rate=10, **window)
        for number, priority in enumerate((5, 1, 7, 1, 9)):
            await send(client, bytes([48 + number]) * 100, priority)
        heard = [(await client.heard("stream.deliver")).body[:1] for _ in range(3)]
        assert heard == [b"0", b"2", b"4"]
        assert await client.quiet()


async def test_stream_stops_with_the_flow() -> None:
    async with opened() as client:
        await client.declare()
        await client.consume(spec.StreamConsume)
        assert (await client.ask(spec.ChannelFlow(active=False))).name == "channel.flow-ok"
        await send(client, b"x")
        assert await client.quiet()
        assert (await client.ask(spec.ChannelFlow(active=True))).name == "channel.flow-ok"
        assert (await client.heard("stream.deliver")).body == b"x"
