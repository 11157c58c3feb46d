"""A handle of the server: messages sent, browsed, confirmed, streamed and transferred."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio
from trio.testing import wait_all_tasks_blocked

from tests.amqp_fast.pairs import block_of, written
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.message import Message, hash_of, head_octets
from trio_amqp10.amqp_fast.server.protocol import AmqpFast
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.container import Container

from .script import length, opened, with_queues

if TYPE_CHECKING:
    import trio_amqp10 as amqp

PEER = {"service_type": 3}


async def test_message_that_is_sent_reaches_the_queue_and_is_confirmed_when_asked() -> None:
    container = with_queues()
    async with opened(container) as client:
        await client.handle("q")
        await client.send(b"one")
        assert await client.quiet()
        await client.send(b"two", confirm=3)
        reply = await client.hear()
        assert reply is not None
        assert (reply.name, reply["confirm_tag"], reply["reply_code"]) == ("handle reply", 3, 200)
        assert length(container, "q") == 2


async def test_browse_shows_what_the_index_names_and_takes_nothing() -> None:
    container = with_queues()
    async with opened(container) as client:
        await client.handle("q")
        for number in range(3):
            await client.send(b"%d" % number, headers={"n": number})
        index = await client.ask(spec.HandleQuery(handle_id=1))
        assert (index.name, index["message_list"], index["message_nbr"]) == ("handle index", b"1-3", 0)
        shown = await client.ask(spec.HandleBrowse(handle_id=1, message_nbr=2))
        assert (shown.name, shown["delivered"], shown["message_nbr"], shown.body) == (
            "handle notify",
            False,
            2,
            b"1",
        )
        await client.say(spec.HandleBrowse(handle_id=1, message_nbr=3, confirm_tag=8))
        both = [await client.hear(), await client.hear()]
        assert [each.name for each in both if each is not None] == ["handle notify", "handle reply"]
        assert length(container, "q") == 3
        await client.send(b"3")
        index = await client.ask(spec.HandleQuery(handle_id=1, message_nbr=2))
        assert index["message_list"] == b"3-4"
        selected = spec.HandleQuery(handle_id=1, selector=b"n=1", mime_type="text/x-amq-headers")
        assert (await client.ask(selected))["message_list"] == b"2"


async def test_browse_of_a_message_that_is_gone_is_answered_with_310() -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        await client.send(b"one")
        await client.ask(spec.HandleQuery(handle_id=1))
        await client.consume()
        await client.got()
        await client.say(spec.ChannelAck(channel_id=1, message_nbr=1))
        for number in (1, 77):
            reply = await client.ask(spec.HandleBrowse(handle_id=1, message_nbr=number, confirm_tag=number))
            assert (reply.name, reply["reply_code"], reply["confirm_tag"]) == ("handle reply", 310, number)
        reply = await client.ask(spec.HandleBrowse(handle_id=1, message_nbr=1))
        assert (reply.name, reply["confirm_tag"]) == ("handle reply", 0)


async def test_handle_is_closed_when_its_queue_is_deleted() -> None:
    container = with_queues()
    async with opened(container) as client:
        await client.handle("q")
        await client.consume()
        container.remove_node("q")
        assert await client.code() == ("handle", 404)


async def test_function_answers_on_the_same_handle() -> None:
    container = Container(strict=True)

    @container.function("upper")
    async def upper(message: amqp.Message) -> Any:
        return bytes(message.body).upper()

    async with opened(container) as client:
        await client.handle("upper", **PEER)
        for number in range(3):
            await client.send(b"one", identifier=f"r{number}")
        heard = [await client.hear() for _ in range(3)]
        assert [(each.name, each.head["identifier"], each.body) for each in heard if each is not None] == [
            ("handle notify", f"r{number}", b"ONE") for number in range(3)
        ]


async def test_stream_to_a_function_is_refused() -> None:
    container = Container(strict=True)
    container.function("f")(upper_of)
    async with opened(container) as client:
        await client.handle("f", **PEER)
        block = head_octets(spec.MessageHead(), 0, 1024)
        command = spec.HandleSend(handle_id=1, fragment_size=len(block), partial=True, streaming=True)
        await client.say(command, fragment=block)
        assert await client.code() == ("handle", 540)


async def upper_of(message: amqp.Message) -> Any:
    return bytes(message.body).upper()


async def test_confirmation_of_a_durable_message_waits_for_the_store_and_others_behind_it() -> None:
    container = Container(strict=True, store=MemoryStore())
    container.add_queue("q", durable=True)
    async with opened(container) as client:
        await client.handle("q")
        await client.send(b"one", persistent=True, confirm=1)
        await client.say(
            spec.HandleFlow(handle_id=1, confirm_tag=2), spec.HandleClose(handle_id=1, reply_code=200)
        )
        heard = [await client.hear() for _ in range(3)]
        assert [(each.name, each.get("confirm_tag")) for each in heard if each is not None] == [
            ("handle reply", 1),
            ("handle reply", 2),
            ("handle close", None),
        ]


async def test_transfer_that_broke_off_goes_on_over_another_connection() -> None:
    container = with_queues()
    dialect = AmqpFast(container)
    message = Message(spec.MessageHead(identifier="big"), b"x" * 5000)
    block = block_of(message)
    prepare = spec.HandlePrepare(handle_id=1, fragment_size=3000, content_hash=hash_of(message.body))
    for attempt in range(2):
        async with opened(container, dialect=dialect, client_name="ada", channel=False) as client:
            await client.say(spec.ChannelOpen(channel_id=1, restartable=True))
            await client.handle("q")
            await client.say(prepare, fragment=block[:3000])
            ready = await client.hear()
            assert ready is not None
            there = ready["message_size"]
            assert there == (3000 - (len(block) - 5000) if not attempt else 4000)
            piece = message.body[there : 4000 if not attempt else 5000]
            command = spec.HandleSend(
                handle_id=1, fragment_size=len(piece), recovery=True, partial=not attempt, confirm_tag=1
            )
            await client.say(command, fragment=piece)
            if attempt:
                assert (await client.heard())["reply_code"] == 200
            else:
                assert await client.quiet()
        with trio.move_on_after(1):
            await wait_all_tasks_blocked()
    assert length(container, "q") == 1


async def test_confirmation_of_a_message_that_waits_for_room_holds_up_those_behind_it() -> None:
    container = Container(strict=True)
    queue = container.add_queue("q", max_length=1)
    async with opened(container) as client:
        await client.handle("q")
        await client.send(b"one", confirm=1)
        assert (await client.heard())["confirm_tag"] == 1
        block = block_of(Message(spec.MessageHead(), b"two"))
        send = spec.HandleSend(handle_id=1, confirm_tag=2, fragment_size=len(block))
        await client.stream.send_all(
            written(send, fragment=block) + written(spec.HandleFlow(handle_id=1, confirm_tag=3))
        )
        tags: list[int] = []

        async def listen() -> None:
            for _ in range(2):
                tags.append((await client.heard())["confirm_tag"])  # noqa: PERF401  # each as it comes

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await wait_all_tasks_blocked()
            assert len(queue) == 1
            assert tags == []
            queue.purge()
        assert tags == [2, 3]
