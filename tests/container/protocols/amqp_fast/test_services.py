"""Queues, topics and functions: the dialogues of the document, end to end (RFC 006, 2.2.8, 3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.amqp_fast.pairs import block_of, written
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.message import Message, hash_of, head_octets
from trio_amqp10.amqp_fast.message_list import read_list
from trio_amqp10.container import Container
from trio_amqp10.container.nodes.queue import Queue
from trio_amqp10.container.protocols.amqp_fast.protocol import AmqpFast
from trio_amqp10.container.stores import MemoryStore

from .script import opened

if TYPE_CHECKING:
    import trio_amqp10 as amqp

TOPIC = {"service_type": 2}
PEER = {"service_type": 3}


def with_queues(*names: str) -> Container:
    container = Container(strict=True)
    for name in names or ("q",):
        container.add_queue(name)
    return container


def length(container: Container, name: str) -> int:
    """Messages of a queue."""
    queue = container.nodes[name]
    assert isinstance(queue, Queue)
    return len(queue)


# -- the dialogues of 2.2.8 -----------------------------------------------------------------


async def test_channel_and_handle_open_without_a_word_unless_confirmed() -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        assert await client.quiet()
        reply = await client.ask(spec.ChannelOpen(channel_id=2, confirm_tag=5))
        assert (reply.name, reply["confirm_tag"], reply["reply_code"]) == ("channel reply", 5, 200)
        reply = await client.ask(spec.HandleOpen(channel_id=2, handle_id=2, confirm_tag=6, dest_name="q"))
        assert (reply.name, reply["confirm_tag"]) == ("handle reply", 6)


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


async def test_messages_come_up_to_the_prefetch_and_go_on_with_an_ack() -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        for number in range(5):
            await client.send(b"%d" % number)
        await client.consume(2)
        assert [await client.got() for _ in range(2)] == [(1, b"0"), (2, b"1")]
        assert await client.quiet()
        await client.say(spec.ChannelAck(channel_id=1, message_nbr=1))
        assert await client.got() == (3, b"2")
        reply = await client.ask(spec.ChannelAck(channel_id=1, message_nbr=99, confirm_tag=4))
        heard = [reply, await client.hear(), await client.hear()]
        assert sorted(each.name for each in heard if each is not None) == [
            "channel reply",
            "handle notify",
            "handle notify",
        ]


async def test_flow_stops_and_restarts_messages() -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        await client.consume()
        await client.say(spec.HandleFlow(handle_id=1, flow_pause=True))
        await client.send(b"one")
        assert await client.quiet()
        await client.say(spec.HandleFlow(handle_id=1))
        assert await client.got() == (1, b"one")


async def test_message_that_is_not_acknowledged_comes_back_redelivered() -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        await client.send(b"one")
        await client.consume()
        await client.got()
        assert (await client.ask(spec.HandleClose(handle_id=1))).name == "handle close"
        await client.handle("q", 2)
        await client.consume(handle_id=2)
        heard = await client.hear()
        assert heard is not None
        assert (heard["redelivered"], heard["delivered"], heard["dest_name"]) == (True, True, "q")


async def test_unreliable_messages_are_gone_once_they_are_sent() -> None:
    container = with_queues()
    async with opened(container) as client:
        await client.handle("q")
        await client.consume(1, unreliable=True)
        for number in range(3):
            await client.send(b"%d" % number)
        assert [(await client.got())[1] for _ in range(3)] == [b"0", b"1", b"2"]
        assert length(container, "q") == 0


async def test_unget_gives_a_message_to_another_client() -> None:
    container = with_queues()
    async with opened(container) as client, opened(container) as other:
        await client.handle("q")
        await client.consume(1)
        await client.send(b"one")
        assert await client.got() == (1, b"one")
        await other.handle("q")
        await other.consume()
        await client.say(spec.HandleFlow(handle_id=1, flow_pause=True))
        reply = await client.ask(spec.HandleUnget(handle_id=1, message_nbr=1, confirm_tag=2))
        assert reply["confirm_tag"] == 2
        assert await other.got() == (1, b"one")
        assert await client.code(spec.HandleUnget(handle_id=1, message_nbr=1)) == ("handle", 310)


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


# -- names ----------------------------------------------------------------------------------


async def test_name_of_a_destination_is_that_of_open_and_that_of_send() -> None:
    container = with_queues("alt.pets", "alt.pets.cats")
    async with opened(container) as client:
        await client.handle("alt.")
        await client.send(b"1", name="pets")
        await client.send(b"2", name="pets.cats")
        assert await client.quiet()
        assert [length(container, name) for name in ("alt.pets", "alt.pets.cats")] == [
            1,
            1,
        ]
        await client.send(b"3", name="dogs")
        assert await client.code() == ("handle", 404)


async def test_empty_name_sends_to_every_queue_and_no_topic() -> None:
    container = with_queues("a", "b")
    container.add_topic("t")
    async with opened(container) as client:
        await client.handle("t", 2, **TOPIC)
        await client.consume(handle_id=2)
        await client.handle("")
        await client.send(b"1", confirm=1)
        assert (await client.heard())["reply_code"] == 200
        assert [length(container, name) for name in "ab"] == [1, 1]
        assert await client.quiet(), "nothing came from the topic"


async def test_prefix_consumes_from_every_queue_below_it() -> None:
    container = with_queues("x.a", "x.b", "y")
    async with opened(container) as client:
        await client.handle("")
        for name in ("x.a", "x.b", "y"):
            await client.send(name.encode(), name=name)
        await client.handle("x.", 2)
        await client.consume(handle_id=2)
        assert sorted([(await client.got())[1] for _ in range(2)]) == [b"x.a", b"x.b"]
        assert await client.quiet()
        await client.handle("z", 3)
        assert await client.code(spec.HandleConsume(handle_id=3)) == ("handle", 404)


async def test_prefix_consumes_from_what_is_added_and_goes_on_without_what_is_deleted() -> None:
    container = with_queues("x.a", "x.b")
    async with opened(container) as client:
        await client.handle("")
        await client.handle("x.", 2)
        await client.consume(handle_id=2)
        container.remove_node("x.a")
        container.add_queue("x.c")
        container.add_queue("z")
        container.add_topic("x.t")
        for name in ("x.b", "x.c", "z"):
            await client.send(name.encode(), name=name)
        assert [(await client.got())[1] for _ in range(2)] == [b"x.b", b"x.c"]
        assert await client.quiet()
        await client.say(spec.HandleClose(handle_id=2, reply_code=200))
        assert (await client.heard()).name == "handle close"
        container.add_queue("x.d")
        assert not container.nodes["x.d"].outlets


async def test_temporary_destination_of_another_is_none_of_a_prefix() -> None:
    container = with_queues("x.a")
    async with opened(container) as client:
        await client.handle("x.")
        await client.consume()
        temporary = spec.HandleOpen(
            channel_id=1, handle_id=2, service_type=1, temporary=True, consumer=True, dest_name="x.mine"
        )
        await client.say(temporary)
        assert (await client.heard()).name == "handle created"
        assert not container.nodes["x.mine"].outlets


async def test_prefix_leaves_out_what_refuses_a_consumer() -> None:
    container = with_queues("x.a")
    container.add_queue("x.b", exclusive=True)
    async with opened(container) as one, opened(container, client_name="other") as two:
        await one.handle("x.b")
        await one.consume()
        await two.handle("x.")
        await two.consume()
        await two.send(b"1", name="a")
        assert (await two.got())[1] == b"1"
        assert len(container.nodes["x.b"].outlets) == 1


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_prefix_is_what_the_client_may_receive_from(asynchronous: bool) -> None:
    def permit(access: Any) -> bool:
        return access.action != "receive" or access.address in ("x.a", "x.d")

    async def permit_later(access: Any) -> bool:
        await trio.lowlevel.checkpoint()
        return permit(access)

    container = Container(strict=True, authorise=permit_later if asynchronous else permit)
    for name in ("x.a", "x.b", "y.b"):
        container.add_queue(name)
    async with opened(container) as client:
        await client.handle("")
        for name in ("x.a", "x.b"):
            await client.send(name.encode(), name=name)
        await client.handle("x.", 2)
        index = await client.ask(spec.HandleQuery(handle_id=2))
        assert (index.name, read_list(index["message_list"])) == ("handle index", [range(1, 2)])
        await client.consume(handle_id=2)
        assert (await client.got())[1] == b"x.a"
        for name in ("x.c", "x.d"):
            container.add_queue(name)
            await client.send(name.encode(), name=name)
        assert (await client.got())[1] == b"x.d"
        assert await client.quiet()
        await client.handle("y.", 3)
        assert await client.code(spec.HandleConsume(handle_id=3)) == ("handle", 403)


async def test_durable_subscription_of_a_prefix_is_cancelled_as_one() -> None:
    container = Container(strict=True)
    container.add_topic("x.a")
    async with opened(container) as client:
        await client.handle("x.", **TOPIC)
        await client.consume(identifier="mine")
        container.add_topic("x.b")
        assert [len(container.nodes[name].outlets) for name in ("x.a", "x.b")] == [1, 1]
        await client.say(spec.HandleCancel(handle_id=1, identifier="mine", confirm_tag=9))
        assert (await client.heard())["reply_code"] == 200
        container.add_topic("x.c")
        assert [len(container.nodes[name].outlets) for name in ("x.a", "x.b", "x.c")] == [0, 0, 0]
        assert await client.code(spec.HandleCancel(handle_id=1, identifier="mine")) == ("handle", 404)


async def test_destination_of_another_service_is_not_found() -> None:
    async with opened(with_queues()) as client:
        await client.handle("q", **TOPIC)
        await client.send(b"1")
        assert await client.code() == ("handle", 404)


async def test_handle_is_closed_when_its_queue_is_deleted() -> None:
    container = with_queues()
    async with opened(container) as client:
        await client.handle("q")
        await client.consume()
        container.remove_node("q")
        assert await client.code() == ("handle", 404)


# -- temporary destinations -----------------------------------------------------------------


@pytest.mark.parametrize("service", [1, 2])
@pytest.mark.parametrize("name", ["", "mine"])
async def test_temporary_destination_goes_with_its_channel(service: int, name: str) -> None:
    container = Container(strict=True)
    async with opened(container) as client:
        command = spec.HandleOpen(
            channel_id=1,
            handle_id=1,
            service_type=service,
            temporary=True,
            consumer=True,
            producer=True,
            dest_name=name,
            confirm_tag=1,
        )
        created = await client.ask(command)
        assert created.name == "handle created"
        assert created["dest_name"] == name or not name
        reply = await client.hear()
        assert reply is not None
        assert reply.name == "handle reply"
        await client.consume()
        await client.send(b"one")
        assert (await client.got())[1] == b"one"
        assert created["dest_name"] in container.nodes
        assert (await client.ask(spec.ChannelClose(channel_id=1))).name == "channel close"
        assert created["dest_name"] not in container.nodes


async def test_temporary_queue_is_its_clients_alone() -> None:
    container = with_queues()
    dialect = AmqpFast(container)
    ada = opened(container, dialect=dialect, client_name="ada")
    eve = opened(container, dialect=dialect, client_name="eve")
    async with ada as client, eve as other:
        await client.handle("mine", temporary=True)
        assert (await client.heard())["dest_name"] == "mine"
        await other.handle("mine")
        await other.send(b"one", confirm=1)
        assert (await other.heard())["reply_code"] == 200
        assert await other.code(spec.HandleConsume(handle_id=1)) == ("handle", 403)
        await other.handle("mine", 2, temporary=True)
        assert await other.code() == ("handle", 403)
        await other.handle("q", 3, temporary=True)
        assert await other.code() == ("handle", 403)
        await client.handle("mine", 2, temporary=True)  # purged
        assert (await client.heard())["dest_name"] == "mine"
        await client.consume(handle_id=2)
        assert await client.quiet()


# -- topics ---------------------------------------------------------------------------------


def with_topic(**options: Any) -> Container:
    container = Container(strict=True, **options)
    container.add_topic("t")
    return container


async def test_topic_gives_each_message_to_every_subscription() -> None:
    container = with_topic()
    async with opened(container) as client, opened(container) as other:
        for each in (client, other):
            await each.handle("t", **TOPIC)
            await each.consume()
        await client.send(b"one")
        assert await client.got() == (1, b"one")
        assert await other.got() == (1, b"one")


async def test_no_local_leaves_out_what_the_connection_sent_itself() -> None:
    container = with_topic()
    async with opened(container) as client, opened(container) as other:
        await client.handle("t", **TOPIC)
        await client.consume(no_local=True)
        await other.handle("t", **TOPIC)
        await client.send(b"mine")
        await other.send(b"theirs")
        assert await client.got() == (1, b"theirs")


async def test_durable_subscription_gathers_while_its_client_is_away_until_it_is_cancelled() -> None:
    container = with_topic()
    async with opened(container) as sender:
        await sender.handle("t", **TOPIC)
        async with opened(container, client_name="ada") as client:
            await client.handle("t", **TOPIC)
            await client.consume(identifier="mine")
        await wait_all_tasks_blocked()
        await sender.send(b"one", confirm=1)
        await sender.hear()
        async with opened(container, client_name="ada") as client:
            await client.handle("t", **TOPIC)
            await client.consume(identifier="mine")
            assert await client.got() == (1, b"one")
            cancel = spec.HandleCancel(handle_id=1, identifier="mine", confirm_tag=2)
            assert (await client.ask(cancel))["confirm_tag"] == 2
            assert container.nodes["t"].subscriptions == {}  # type: ignore[attr-defined]
            assert await client.code(cancel) == ("handle", 404)


async def test_durable_subscription_keeps_its_selector_across_a_restart() -> None:
    store = MemoryStore()
    selector: dict[str, Any] = {"selector": b"colour=red", "mime_type": "text/x-amq-headers"}
    async with opened(with_topic(store=store), client_name="ada") as client:
        await client.handle("t", **TOPIC)
        await client.consume(identifier="mine", **selector)
        await wait_all_tasks_blocked()
    container = with_topic(store=store)
    async with opened(container) as sender:
        await sender.handle("t", **TOPIC)
        for colour in ("blue", "red"):
            await sender.send(colour.encode(), persistent=True, headers={"colour": colour}, confirm=1)
            await sender.hear()
        async with opened(container, client_name="ada") as client:
            await client.handle("t", **TOPIC)
            await client.consume(identifier="mine", **selector)
            assert (await client.got())[1] == b"red"
            assert await client.quiet()


@pytest.mark.parametrize(
    ("selector", "mime_type"),
    [(b"colour=red", "text/x-amq-headers"), (b"colour = 'red'", "text/x-amq-sql")],
)
async def test_selector_passes_what_it_names(selector: bytes, mime_type: str) -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        await client.consume(selector=selector, mime_type=mime_type)
        await client.send(b"blue", headers={"colour": "blue"})
        await client.send(b"red", headers={"colour": "red"})
        assert await client.got() == (1, b"red")


@pytest.mark.parametrize(
    ("selector", "mime_type", "code"),
    [(b"=", "text/x-amq-headers", 502), (b"a b c", "text/x-amq-sql", 502), (b"x", "text/other", 540)],
)
async def test_selector_that_there_is_not_closes_the_handle(
    selector: bytes, mime_type: str, code: int
) -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        command = spec.HandleConsume(handle_id=1, selector=selector, mime_type=mime_type)
        assert await client.code(command) == ("handle", code)


# -- peers ----------------------------------------------------------------------------------


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


# -- restart --------------------------------------------------------------------------------


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
