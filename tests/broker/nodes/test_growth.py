"""A message that outcomes or deaths make larger is counted with its size, and has a bound."""

from __future__ import annotations

from trio_amqp10 import Message
from trio_amqp10.broker.exchanges.death_history import MOST_OCTETS, Death, recorded
from trio_amqp10.broker.nodes.entry import MOST_GROWTH
from trio_amqp10.broker.nodes.watermark import OVERHEAD
from trio_amqp10.container import Container

NOTES = "x-opt-notes-{}"


async def _modified(container: Container, times: int, octets: int, **options: object) -> None:
    """Send a message to ``q``, and take it so many times, each with an annotation of so many octets."""
    async with (
        container.connect() as connection,
        connection.open_sender("q") as sender,
        connection.open_receiver("q", credit=1, **options) as receiver,  # type: ignore[arg-type]
    ):
        await sender.send(Message(b"hello"))
        for number in range(times):
            delivery = await receiver.receive()
            delivery.modify(delivery_failed=True, annotations={NOTES.format(number): "x" * octets})
        await receiver.receive()


async def test_annotations_of_outcomes_count_where_they_grow() -> None:
    container = Container("c")
    queue = container.add_queue("q")
    await _modified(container, 3, 1_000)
    assert 3_000 < queue.octets < 3_300
    assert container.watermark.octets == queue.octets + OVERHEAD


async def test_annotations_of_outcomes_have_a_bound() -> None:
    container = Container("c")
    queue = container.add_queue("q")
    await _modified(container, 40, 10_000)
    assert MOST_GROWTH - 11_000 < queue.octets < MOST_GROWTH + 100
    async with container.connect() as connection, connection.open_receiver("q") as receiver:
        message = (await receiver.receive()).message
    assert message.body == b"hello"
    assert message.delivery_count >= 40
    assert len(message.annotations) == 6


async def test_message_does_not_outgrow_its_consumer() -> None:
    container = Container("c")
    queue = container.add_queue("q")
    await _modified(container, 5, 1_000, max_message_size=2_500)
    assert 2_000 < queue.octets <= 2_500


async def test_annotations_count_in_a_subscription_of_a_topic_and_are_gone_with_it() -> None:
    container = Container("c")
    container.add_topic("t")
    async with (
        container.connect() as connection,
        connection.open_receiver("t", credit=1) as one,
        connection.open_receiver("t", credit=1) as other,
        connection.open_sender("t") as sender,
    ):
        await sender.send(Message(b"hello"))
        (await one.receive()).modify(annotations={NOTES.format(0): "x" * 1_000})
        await other.receive()
        delivery = await one.receive()
        assert 1_000 < container.watermark.octets - 2 * OVERHEAD < 1_200
        delivery.accept()
    assert container.watermark.octets == 0


def test_history_of_deaths_has_a_bound_and_keeps_the_newest() -> None:
    deaths: list[Death] = []
    for number in range(2_000):
        death = Death(queue=f"q{number}", reason="expired", time=0.0, exchange="", routing_keys=("k" * 200,))
        deaths = recorded(deaths, death)
    assert deaths[0].queue == "q1999"
    assert 100 < len(deaths) < MOST_OCTETS // 200
    large = Death(queue="q", reason="expired", time=0.0, exchange="", routing_keys=("k" * 2 * MOST_OCTETS,))
    assert recorded(deaths, large) == [large]
