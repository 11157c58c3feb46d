"""A channel of the server: opened, closed by its errors, and with its transactions."""

from __future__ import annotations

from trio_amqp10.amqp_fast import spec

from .script import length, opened, with_queues

# -- the dialogues of 2.2.8 -----------------------------------------------------------------


async def test_channel_and_handle_open_without_a_word_unless_confirmed() -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        assert await client.quiet()
        reply = await client.ask(spec.ChannelOpen(channel_id=2, confirm_tag=5))
        assert (reply.name, reply["confirm_tag"], reply["reply_code"]) == ("channel reply", 5, 200)
        reply = await client.ask(spec.HandleOpen(channel_id=2, handle_id=2, confirm_tag=6, dest_name="q"))
        assert (reply.name, reply["confirm_tag"]) == ("handle reply", 6)


async def test_error_closes_the_channel_which_may_be_opened_again() -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        assert await client.code(spec.ChannelCommit(channel_id=1)) == ("channel", 503)
        await client.say(spec.ChannelClose(channel_id=1), spec.ChannelOpen(channel_id=1))
        await client.handle("q")
        await client.send(b"one", confirm=1)
        heard = await client.hear()
        assert heard is not None
        assert heard.name == "handle reply"


# -- transactions ---------------------------------------------------------------------------


async def test_commit_places_what_was_sent_and_settles_what_was_received() -> None:
    container = with_queues("in", "out")
    async with opened(container) as client, opened(container) as other:
        await client.say(spec.ChannelOpen(channel_id=2, transacted=True))
        await client.handle("in", 2, 2)
        await client.handle("out", 3, 2)
        await other.handle("in")
        for number in range(3):
            await other.send(b"%d" % number)
        assert await other.quiet()
        await client.consume(2, handle_id=2)
        assert [await client.got(), await client.got()] == [(1, b"0"), (2, b"1")]
        await client.send(b"result", handle=3, confirm=1)
        assert (await client.heard())["confirm_tag"] == 1
        assert length(container, "out") == 0
        await client.say(spec.ChannelAck(channel_id=2, message_nbr=1))
        assert await client.got() == (3, b"2")  # the ACK makes room
        assert length(container, "in") == 3
        reply = await client.ask(spec.ChannelCommit(channel_id=2, confirm_tag=5))
        assert (reply.name, reply["confirm_tag"]) == ("channel reply", 5)
        assert [length(container, name) for name in ("in", "out")] == [0, 1]


async def test_rollback_drops_what_was_sent_and_gives_back_what_was_received() -> None:
    container = with_queues("in", "out")
    async with opened(container) as client:
        await client.say(spec.ChannelOpen(channel_id=2, transacted=True))
        await client.handle("in", 1)
        await client.send(b"one")
        await client.handle("in", 2, 2)
        await client.handle("out", 3, 2)
        await client.consume(handle_id=2)
        assert await client.got() == (1, b"one")
        await client.send(b"result", handle=3)
        await client.say(
            spec.ChannelAck(channel_id=2, message_nbr=1), spec.ChannelRollback(channel_id=2, confirm_tag=5)
        )
        heard = [await client.hear(), await client.hear()]
        assert sorted(each.name for each in heard if each is not None) == ["channel reply", "handle notify"]
        reply = await client.ask(spec.ChannelCommit(channel_id=2, confirm_tag=6))
        assert reply["confirm_tag"] == 6
        assert [length(container, name) for name in ("in", "out")] == [0, 0]


async def test_end_of_a_channel_rolls_its_transaction_back() -> None:
    container = with_queues("in", "out")
    async with opened(container) as client:
        await client.say(spec.ChannelOpen(channel_id=2, transacted=True))
        await client.handle("out", 3, 2)
        await client.send(b"result", handle=3)
        assert (await client.ask(spec.ChannelClose(channel_id=2))).name == "channel close"
        assert length(container, "out") == 0


# -- restart --------------------------------------------------------------------------------


async def test_message_acknowledged_in_a_transaction_stays_in_it_when_its_handle_is_closed() -> None:
    container = with_queues()
    async with opened(container) as client:
        await client.say(spec.ChannelOpen(channel_id=2, transacted=True))
        await client.handle("q", 1)
        for number in range(2):
            await client.send(b"%d" % number)
        await client.handle("q", 2, 2)
        await client.consume(handle_id=2)
        assert [await client.got(), await client.got()] == [(1, b"0"), (2, b"1")]
        await client.say(spec.ChannelAck(channel_id=2, message_nbr=1))
        assert (await client.ask(spec.HandleClose(handle_id=2))).name == "handle close"
        await client.ask(spec.ChannelCommit(channel_id=2, confirm_tag=1))
        assert length(container, "q") == 1
        await client.consume()
        assert (await client.got())[1] == b"1"


async def test_messages_of_all_handles_of_a_channel_are_numbered_together() -> None:
    container = with_queues("a", "b")
    async with opened(container) as client:
        await client.handle("a", 1)
        await client.handle("b", 2)
        await client.consume(handle_id=1)
        await client.consume(handle_id=2)
        for name, handle in (("one", 1), ("two", 2), ("three", 1)):
            await client.send(name.encode(), handle=handle)
        assert [await client.got() for _ in range(3)] == [(1, b"one"), (2, b"two"), (3, b"three")]
        await client.say(spec.ChannelOpen(channel_id=2))
        await client.handle("a", 3, 2)
        await client.say(
            spec.ChannelAck(channel_id=1, message_nbr=3), spec.HandleClose(handle_id=1, reply_code=200)
        )
        assert (await client.heard()).name == "handle close"
        await client.consume(handle_id=3)
        await client.send(b"four", handle=3)
        assert await client.got() == (1, b"four")
