"""What clients of 10.3 publish and receive: windows, rejects, five failures, returns, alerts, transactions, branches."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.container import Container
from trio_amqp10.container.protocols.amqp_10_3.protocol import Amqp103
from trio_amqp10.errors import LocalProtocolError

from .script import opened


async def bodies(client: Any, number: int, name: str = "basic.deliver") -> list[bytes]:
    """The bodies of so many deliveries, which are the next things heard."""
    return [(await client.heard(name)).body for _ in range(number)]


@pytest.mark.parametrize(
    ("window", "channel", "first"),
    [
        ({}, 0, 4),
        ({"prefetch_count": 2}, 0, 2),
        ({"prefetch_size": 250}, 0, 2),
        ({"prefetch_size": 1}, 0, 1),
        ({}, 250, 2),
        ({"prefetch_size": 250, "no_ack": True}, 250, 4),
        ({"prefetch_count": 3, "prefetch_size": 250}, 0, 2),
    ],
    ids=str,
)
async def test_window_holds_back_what_does_not_fit(window: Any, channel: int, first: int) -> None:
    async with opened(prefetch_max=channel) as client:
        await client.declare()
        for each in b"1234":
            await client.publish("", "q", bytes([each]) * 100)
        await client.consume(**window)
        heard = await bodies(client, first)
        assert heard == [bytes([each]) * 100 for each in b"1234"[:first]]
        assert await client.quiet()
        if first < 4:
            await client.say(spec.BasicAck(delivery_tag=0, multiple=True))
            rest = await bodies(client, min(first, 4 - first))
            assert rest == [bytes([each]) * 100 for each in b"1234"[first : first + len(rest)]]


async def test_message_that_waits_for_a_window_is_not_lost_when_its_consumer_is_cancelled() -> None:
    container = Container()
    async with opened(container) as client:
        await client.declare()
        for body in (b"a" * 100, b"b" * 100):
            await client.publish("", "q", body)
        await client.consume(prefetch_size=1)
        await bodies(client, 1)
        await client.ask(spec.BasicCancel(consumer_tag="c"))
        assert (await client.ask(spec.BasicGet(queue="q"))).body == b"b" * 100


async def test_window_of_the_channel_is_that_of_all_its_consumers() -> None:
    async with opened(prefetch_max=250) as client:
        await client.declare("q")
        await client.declare("r")
        await client.consume(consumer_tag="1")
        await client.consume(consumer_tag="2", queue="r")
        await client.publish("", "q", b"a" * 150)
        await client.publish("", "r", b"b" * 150)
        assert await bodies(client, 1) == [b"a" * 150]
        assert await client.quiet()
        await client.say(spec.BasicAck(delivery_tag=1))
        assert await bodies(client, 1) == [b"b" * 150]


@pytest.mark.parametrize(
    ("consume", "code"), [(spec.BasicConsume, 403), (spec.FileConsume, 405), (spec.StreamConsume, 405)]
)
async def test_exclusive_consumer_that_cannot_be_is_refused(consume: Any, code: int) -> None:
    container = Container()
    async with opened(container) as one, opened(container) as two:
        await one.declare()
        await one.consume()
        assert await two.refused(consume(queue="q", exclusive=True)) == ("channel", code)
        await one.ask(spec.BasicCancel(consumer_tag="c"))
        await one.consume(exclusive=True)
        assert await two.refused(consume(queue="q")) == ("channel", code)


async def test_tag_that_is_used_ends_the_connection_with_530() -> None:
    async with opened() as client:
        await client.declare()
        await client.consume()
        assert await client.refused(spec.StreamConsume(queue="q", consumer_tag="c")) == ("connection", 530)


async def test_consumer_without_a_tag_gets_one_and_no_local_hears_others_alone() -> None:
    container = Container()
    async with opened(container, name="one") as one, opened(container, name="two") as two:
        await one.declare()
        heard = await one.ask(spec.BasicConsume(queue="q", no_local=True))
        assert heard["consumer_tag"].startswith(b"amq.ctag-")
        await one.publish("", "q", b"mine")
        assert await one.quiet()
        await two.publish("", "q", b"yours")
        assert await bodies(one, 1) == [b"yours"]


async def test_message_that_is_rejected_comes_to_another_channel_and_dies_at_the_fifth_failure() -> None:
    container = Container()
    arguments = {"x-dead-letter-exchange": "amq.fanout"}
    dialect = Amqp103(container, tickets=False, queue_arguments=arguments)
    async with opened(container, dialect=dialect) as client:
        await client.declare("dead")
        await client.ask(spec.QueueBind(queue="dead", exchange="amq.fanout"))
        await client.declare()
        await client.publish("", "q", b"x")
        for number in range(2, 7):
            await client.ask(spec.ChannelOpen(), number)
            heard = await client.ask(spec.BasicGet(queue="q"), number)
            assert (heard.body, heard["redelivered"]) == (b"x", number > 2)
            await client.say(spec.BasicReject(delivery_tag=1), channel=number)
            assert (await client.ask(spec.BasicGet(queue="q"), number)).name == "basic.get-empty"
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"
        assert (await client.ask(spec.BasicGet(queue="dead"))).body == b"x"


async def test_message_that_is_rejected_for_good_is_gone() -> None:
    async with opened() as client:
        await client.declare()
        await client.publish("", "q", b"x")
        await client.ask(spec.BasicGet(queue="q"))
        await client.say(spec.BasicReject(delivery_tag=1, requeue=False))
        assert (await client.ask(spec.QueueDeclare(queue="q", passive=True)))["message_count"] == 0


async def test_what_is_not_acknowledged_comes_again_when_its_channel_ends() -> None:
    async with opened() as client:
        await client.declare()
        await client.publish("", "q", b"x")
        await client.consume()
        await bodies(client, 1)
        assert (await client.ask(spec.ChannelClose())).name == "channel.close-ok"
        await client.ask(spec.ChannelOpen())
        heard = await client.ask(spec.BasicGet(queue="q"))
        assert (heard.body, heard["redelivered"]) == (b"x", True)


async def test_unroutable_message_is_returned_if_it_is_mandatory() -> None:
    async with opened() as client:
        await client.publish("", "nowhere", b"gone")
        await client.publish("", "nowhere", b"back", mandatory=True, content_type="a/b")
        heard = await client.heard("basic.return")
        assert (heard["reply_code"], heard["routing_key"], heard.body) == (312, b"nowhere", b"back")
        assert heard.properties[0] == b"a/b"
        await client.publish("nope", "", b"")
        assert await client.closed(await client.hear()) == ("channel", 404)


async def test_immediate_message_needs_a_consumer_that_is_ready() -> None:
    container = Container()
    async with opened(container) as client:
        await client.declare()
        await client.publish("", "q", b"1", immediate=True)
        assert (await client.heard("basic.return"))["reply_code"] == 313
        await client.consume(prefetch_count=1)
        await client.publish("", "q", b"2", immediate=True)
        assert await bodies(client, 1) == [b"2"]
        await client.publish("", "q", b"3", immediate=True)
        heard = await client.heard("basic.return")
        assert (heard["reply_code"], heard.body) == (313, b"3")
        await client.publish("", "nowhere", b"4", immediate=True)
        assert (await client.heard("basic.return"))["reply_code"] == 313
        assert (await client.ask(spec.QueueDeclare(queue="q", passive=True)))["message_count"] == 0


async def test_message_goes_to_a_function_also_if_it_is_immediate() -> None:
    container = Container()
    found: list[bytes] = []

    @container.function("f")
    async def f(message: Any) -> None:
        found.append(bytes(message.body))

    async with opened(container) as client:
        await client.publish("", "f", b"x", immediate=True)
        assert await client.quiet()
        assert await client.quiet()
    assert found == [b"x"]


async def test_publish_that_a_full_queue_refuses_is_told_by_an_alert() -> None:
    async with opened() as client:
        await client.declare("q", arguments={"x_max_length": 1, "x_overflow": "reject-publish"})
        await client.publish("", "q", b"1")
        await client.publish("", "q", b"2")
        alert = await client.heard("channel.alert")
        assert dict(alert["details"])[b"routing_key"] == ("S", b"q")
        assert await client.quiet()


async def test_consumer_whose_queue_is_deleted_is_told_by_an_alert() -> None:
    container = Container()
    async with opened(container) as one, opened(container) as two:
        await one.declare()
        await one.consume()
        await two.ask(spec.QueueDelete(queue="q"))
        alert = await one.heard("channel.alert")
        assert (alert["reply_code"], alert["details"]) == (404, [(b"consumer_tag", ("S", b"c"))])


async def test_headers_of_other_protocols_are_narrowed() -> None:
    from tests.container.protocols.amqp091.script import opened as opened091

    container = Container()
    async with opened091(container) as old, opened(container) as client:
        await client.declare()
        headers = {
            "t": True,
            "l": 1 << 40,
            "d": 1.5,
            "x": b"\xff",
            "V": None,
            "A": [1],
            "F": {"t": True, "s": "s"},
            "9": 1,
            "a-b": 2,
            "s": "text",
        }
        await old.publish("", "q", b"x", headers=headers, message_id="m")
        heard = await client.ask(spec.BasicGet(queue="q"))
        while heard.name == "basic.get-empty":
            heard = await client.ask(spec.BasicGet(queue="q"))
        assert dict(heard.properties[2]) == {
            b"t": ("I", 1),
            b"l": ("S", str(1 << 40).encode()),
            b"d": ("S", b"1.5"),
            b"x": ("S", b"\xff"),
            b"F": ("F", [(b"t", ("I", 1)), (b"s", ("S", b"s"))]),
            b"a_b": ("I", 2),
            b"s": ("S", b"text"),
        }
        assert heard.properties[8] == b"m"


# -- transactions ---------------------------------------------------------------------------


async def test_transaction_counts_at_its_commit_and_not_after_a_rollback() -> None:
    async with opened() as client:
        await client.declare()
        assert (await client.ask(spec.TxSelect())).name == "tx.select-ok"
        await client.publish("", "q", b"1")
        assert (await client.ask(spec.QueueDeclare(queue="q", passive=True)))["message_count"] == 0
        assert (await client.ask(spec.TxCommit())).name == "tx.commit-ok"
        assert (await client.ask(spec.BasicGet(queue="q"))).body == b"1"
        await client.say(spec.BasicAck(delivery_tag=1))
        await client.publish("", "q", b"2")
        assert (await client.ask(spec.TxRollback())).name == "tx.rollback-ok"
        await client.say(spec.BasicAck(delivery_tag=1))
        assert (await client.ask(spec.TxCommit())).name == "tx.commit-ok"
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"


async def test_commit_without_select_is_refused() -> None:
    async with opened() as client:
        assert await client.refused(spec.TxCommit()) == ("channel", 406)


async def test_distributed_transaction_without_a_coordinator_is_not_implemented() -> None:
    async with opened() as client:
        assert await client.refused(spec.DtxSelect()) == ("connection", 540)


def with_coordinator() -> tuple[Amqp103, list[Any]]:
    branches: list[Any] = []
    return Amqp103(Container(), tickets=False, on_branch=branches.append), branches


@pytest.mark.parametrize("commits", [True, False])
async def test_coordinator_ends_a_branch(commits: bool) -> None:
    dialect, branches = with_coordinator()
    async with opened(dialect=dialect) as client:
        await client.declare()
        assert (await client.ask(spec.DtxSelect())).name == "dtx.select-ok"
        assert (await client.ask(spec.DtxStart(dtx_identifier="b"))).name == "dtx.start-ok"
        await client.publish("", "q", b"1")
        assert (await client.ask(spec.QueueDeclare(queue="q", passive=True)))["message_count"] == 0
        (branch,) = branches
        assert branch.identifier == "b"
        (branch.commit if commits else branch.rollback)()
        with pytest.raises(LocalProtocolError):
            branch.commit()
        heard = await client.ask(spec.QueueDeclare(queue="q", passive=True))
        assert heard["message_count"] == commits


async def test_branch_that_a_queue_refuses_does_nothing_and_ends_its_channel() -> None:
    container, branches = Container(), list[Any]()
    broker = container.add_broker()
    dialect = Amqp103(container, tickets=False, on_branch=branches.append)
    async with opened(dialect=dialect) as client:
        await client.declare()
        broker.declare_queue("full", {"x-max-length": 0, "x-overflow": "reject-publish"})
        await client.ask(spec.DtxSelect())
        await client.ask(spec.DtxStart(dtx_identifier="b"))
        await client.publish("", "q", b"1")
        await client.publish("", "full", b"1")
        await client.ask(spec.QueueDeclare(queue="q", passive=True))
        (branch,) = branches
        branch.commit()
        assert await client.closed(await client.hear()) == ("channel", 406)
        assert "has no room" in branch.failure
        assert not len(broker.get_queue("q"))


async def test_branch_is_rolled_back_when_its_channel_ends() -> None:
    dialect, branches = with_coordinator()
    async with opened(dialect=dialect) as client:
        await client.declare()
        await client.ask(spec.DtxSelect())
        await client.ask(spec.DtxStart(dtx_identifier="b"))
        await client.publish("", "q", b"1")
        await client.ask(spec.ChannelClose())
        (branch,) = branches
        assert branch.over
        await client.ask(spec.ChannelOpen())
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"


@pytest.mark.parametrize("before", ["nothing", "publish", "tx"])
async def test_start_has_its_time(before: str) -> None:
    dialect, _ = with_coordinator()
    async with opened(dialect=dialect) as client:
        await client.declare()
        if before == "publish":
            await client.publish("", "q", b"1")
            await client.ask(spec.DtxSelect())
        elif before == "tx":
            await client.ask(spec.DtxSelect())
            await client.ask(spec.TxSelect())
        assert await client.refused(spec.DtxStart(dtx_identifier="b")) == ("connection", 503)
