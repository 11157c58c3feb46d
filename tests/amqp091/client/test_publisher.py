"""Publishers: how each publish ends."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from tests.amqp091.pairs import written
from trio_amqp10 import amqp091
from trio_amqp10.amqp091 import spec
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net import dialling_base

from .broker import Broker

URL = "amqp091://guest:secret@broker"


async def test_publisher_waits_for_each_confirm(connected: Any, autojump_clock: MockClock) -> None:
    async with connected() as (broker, connection), connection.open_publisher() as out:
        await out.declare_queue("q")
        broker.hold = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(out.publish, "", "q", b"1")
            await trio.sleep(10)
            assert out.unconfirmed == 1
            [server] = broker.peers[0].channels
            server.confirm()
        assert out.unconfirmed == 0


async def test_publisher_reports_what_is_refused(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_publisher() as out:
        await out.declare_queue("q")
        broker.refuse.add(b"bad")
        await out.publish("", "q", b"good")
        with pytest.raises(amqp091.NackedError, match="exchange '' with routing key 'q'") as caught:
            await out.publish("", "q", b"bad")
        assert caught.value.ticket.body == b"bad"
        assert caught.value.ticket.state == "refused"


async def test_publisher_reports_what_comes_back(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_publisher() as out:
        await out.declare_queue("q")
        await out.publish("", "q", b"1", mandatory=True)
        with pytest.raises(amqp091.ReturnedError, match="312 NO_ROUTE") as caught:
            await out.publish("", "nowhere", b"2", mandatory=True, message_id="m")
        assert caught.value.code == 312
        assert caught.value.message.properties.message_id == "m"
        assert caught.value.ticket.properties.message_id == "m"
        await out.publish("", "nowhere", b"3")


async def test_publisher_writes_no_further_than_its_window(connected: Any, autojump_clock: MockClock) -> None:
    async with connected() as (broker, connection), connection.open_publisher(window=3) as out:
        await out.declare_queue("q")
        broker.hold = True
        tickets = [await out.transmit("", "q", b"%d" % n) for n in range(3)]
        with trio.move_on_after(5) as scope:
            await out.transmit("", "q", b"3")
        assert scope.cancelled_caught
        assert len(broker.received) == 3
        [server] = broker.peers[0].channels
        server.confirm(multiple=True)
        broker.hold = False
        await tickets[0].outcome()
        await out.transmit("", "q", b"3")
        assert [ticket.state for ticket in tickets] == ["confirmed"] * 3
        assert "confirmed" in repr(tickets[0])


async def test_publisher_raises_on_leaving_what_no_program_asked_for(connected: Any) -> None:
    async with connected() as (broker, connection):
        broker.refuse |= {b"1", b"2"}
        with pytest.raises(amqp091.NackedError) as caught:
            async with connection.open_publisher() as out:
                for body in (b"0", b"1", b"2"):
                    await out.transmit("", "q", body)
        assert caught.value.ticket.body == b"1"
        assert caught.value.__notes__ == [
            "2 publishes failed whose outcome was not awaited; this is the first"
        ]


async def test_publisher_closed_for_the_only_publish_says_that_it_was_refused(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_publisher() as out:
        with pytest.raises(amqp091.NotFoundError, match="no exchange 'nope'"):
            await out.publish("nope", "", b"")
        with pytest.raises(amqp091.NotFoundError):
            await out.publish("nope", "", b"")


async def test_publisher_closed_for_one_of_several_leaves_all_in_doubt(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_publisher() as out:
        broker.hold = True
        first = await out.transmit("", "q", b"1")
        await wait_all_tasks_blocked()
        second = await out.transmit("nope", "", b"2")
        for ticket in (first, second):
            with pytest.raises(amqp091.PublishInDoubtError, match="404 NOT_FOUND") as caught:
                await ticket.outcome()
            assert isinstance(caught.value.__cause__, amqp091.NotFoundError)


@pytest.mark.parametrize("ends", ["channel", "connection"])
async def test_confirm_that_came_right_before_the_end_counts(connected: Any, ends: str) -> None:
    async with connected() as (broker, connection), connection.open_publisher() as out:
        broker.hold = True
        tickets = [await out.transmit("", "q", b"%d" % n) for n in range(2)]
        await wait_all_tasks_blocked()
        [channel] = broker.peers[0].channels
        channel.send(spec.BasicAck(delivery_tag=1))  # in one write with what follows
        if ends == "channel":
            channel.refuse(541, "INTERNAL_ERROR", spec.BasicPublish())
        else:
            broker.peers[0].close(320, "CONNECTION_FORCED")
        await tickets[0].outcome()
        with pytest.raises(
            amqp091.PublishInDoubtError if ends == "connection" else amqp091.ChannelClosedError
        ):
            await tickets[1].outcome()


async def test_publisher_takes_properties_as_one_object_or_singly(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_publisher() as out:
        queue = await out.declare_queue("q")
        properties = amqp091.BasicProperties(priority=3)
        await out.publish("", "q", b"", properties=properties)
        got = await queue.get(no_ack=True)
        assert got is not None
        assert got.properties == properties
        with pytest.raises(LocalProtocolError, match="not both"):
            await out.publish("", "q", b"", properties=properties, priority=4)
        with pytest.raises(LocalProtocolError, match="unknown property"):
            await out.publish("", "q", b"", color="red")  # type: ignore[call-arg]
        with pytest.raises(LocalProtocolError):
            await out.publish("", "q" * 300, b"")
        with pytest.raises(LocalProtocolError):
            await out.publish("", "q", b"", priority=300)
        await out.publish("", "q", b"")
        assert out.unconfirmed == 0


def test_publisher_refuses_a_window_that_is_none() -> None:
    with pytest.raises(LocalProtocolError, match="at least 1"):
        amqp091.Publisher(None, None, window=0)  # type: ignore[arg-type]


# -- cut at every octet ---------------------------------------------------------------------

ACK = written(spec.BasicAck(delivery_tag=1), 1)


@pytest.mark.parametrize("cut", range(len(ACK) + 1))
async def test_publish_is_in_doubt_until_the_last_octet_of_its_confirm(cut: int) -> None:
    ours, theirs = memory_stream_pair()
    hello = (
        written(spec.ConnectionStart())
        + written(spec.ConnectionTune(heartbeat=60))
        + written(spec.ConnectionOpenOk())
        + written(spec.ChannelOpenOk(), 1)
    )

    async def serve() -> None:
        await expect(theirs, b"AMQP\0\0\x09\x01")
        await theirs.send_all(hello[:0] + written(spec.ConnectionStart()))
        await expect(theirs, b"PLAIN")
        await theirs.send_all(written(spec.ConnectionTune(heartbeat=60)))
        await expect(theirs, written(spec.ConnectionOpen()))
        await theirs.send_all(written(spec.ConnectionOpenOk()))
        await expect(theirs, written(spec.ConfirmSelect(), 1))
        await theirs.send_all(written(spec.ChannelOpenOk(), 1) + written(spec.ConfirmSelectOk(), 1))
        await expect(theirs, b"tea")
        for octet in ACK[:cut]:
            await theirs.send_all(bytes([octet]))
        await wait_all_tasks_blocked()
        await theirs.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        async with amqp091.open_connection(ours, login=("guest", "guest")) as connection:
            try:
                async with connection.open_publisher() as out:
                    ticket = await out.transmit("", "q", b"tea")
                    with trio.CancelScope(shield=True):
                        try:
                            await ticket.outcome()
                        except amqp091.PublishInDoubtError as error:
                            assert isinstance(error.__cause__, amqp091.ConnectionClosedError)  # noqa: PT017
            except amqp091.ConnectionClosedError:
                pass
            assert ticket.state == ("confirmed" if cut == len(ACK) else "in doubt")


async def expect(stream: trio.abc.Stream, wanted: bytes) -> None:
    """Read until these octets have come."""
    found = b""
    while wanted not in found:
        data = bytes(await stream.receive_some())
        assert data, found
        found += data


# -- the law --------------------------------------------------------------------------------

_STEPS = st.lists(
    st.sampled_from(
        ["good", "bad", "nowhere", "confirm", "confirm all", "sever", "refuse exchange", "settle"]
    ),
    max_size=25,
)


@given(_STEPS, st.booleans(), st.booleans())
def test_every_publish_ends_in_exactly_one_way(steps: list[str], reconnect: bool, republish: bool) -> None:
    trio.run(_law, steps, reconnect, republish, clock=MockClock(autojump_threshold=0))


async def _law(steps: list[str], reconnect: bool, republish: bool) -> None:
    ended: list[tuple[amqp091.Ticket, str]] = []
    connect, private = dialling_base.connect, dialling_base.is_private
    try:
        async with trio.open_nursery() as nursery:
            broker = Broker(nursery)
            broker.hold = True
            broker.refuse.add(b"bad")
            dialling_base.connect, dialling_base.is_private = broker.dial, lambda _: True  # type: ignore[assignment]
            async with amqp091.open_connection(URL, reconnect=reconnect) as connection:
                try:
                    async with connection.open_publisher(republish=republish) as out:
                        await out.declare_queue("q")
                        await _publish(steps, broker, out, ended)
                        broker.hold = False
                        for peer in broker.peers:
                            for channel in peer.channels:
                                channel.confirm()
                        await wait_all_tasks_blocked()
                        for ticket, _ in ended:
                            try:
                                await ticket.outcome()
                            except (amqp091.PublishError, amqp091.ChannelClosedError) as error:
                                assert ticket.failure is not None
                                assert type(error) is type(ticket.failure)  # noqa: PT017
                except (amqp091.ConnectionClosedError, amqp091.ChannelClosedError, trio.ClosedResourceError):
                    pass
            assert all(ticket.state != "waiting" for ticket, _ in ended)
            for ticket, kind in ended:
                allowed = {
                    "good": {"confirmed", "in doubt"},
                    "bad": {"refused", "in doubt"},
                    "nowhere": {"returned", "in doubt"},
                    "refuse exchange": {"refused", "in doubt"},
                }[kind]
                assert ticket.state in allowed
                if ticket.state == "confirmed":
                    assert ticket.body in broker.received
                assert (ticket.failure is None) == (ticket.state == "confirmed")
            broker.sever()
            nursery.cancel_scope.cancel()
    finally:
        dialling_base.connect, dialling_base.is_private = connect, private


async def _publish(
    steps: list[str], broker: Broker, out: amqp091.Publisher, ended: list[tuple[amqp091.Ticket, str]]
) -> None:
    for number, step in enumerate(steps):
        try:
            if step == "good":
                ended.append((await out.transmit("", "q", b"%d" % number), step))
            elif step == "bad":
                ended.append((await out.transmit("", "q", b"bad"), step))
            elif step == "nowhere":
                ended.append((await out.transmit("", "nowhere", b"%d" % number, mandatory=True), step))
            elif step == "refuse exchange":
                ended.append((await out.transmit("nope", "", b"%d" % number), step))
            elif step == "sever":
                broker.sever()
            elif step == "settle":
                await wait_all_tasks_blocked()
            else:
                for peer in broker.peers:
                    for channel in peer.channels:
                        channel.confirm(multiple=step == "confirm all")
        except (amqp091.ConnectionClosedError, amqp091.ChannelClosedError):
            return
