"""The figures of containers as instruments: the same as those for Prometheus."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import trio

from trio_amqp10 import otel
from trio_amqp10.container import Container
from trio_amqp10.container.management.figures import FIGURES
from trio_amqp10.otel import container_figures

if TYPE_CHECKING:
    import pytest

    from .conftest import Collected


async def test_named_queues_have_values_of_their_own_and_the_rest_is_added_up(collected: Collected) -> None:
    container = Container("shop")
    metrics = otel.Metrics(meter_provider=collected.provider, queues=["orders*"])
    metrics.watch(container)
    for number in range(1, 4):
        for _ in range(number):
            await container.send(f"orders-{number}", "tea")
    await container.send("other", "tea")
    orders = {"messaging_destination_name": "orders-2"}
    assert collected.value("amqp10.queue.ready", **orders) == 2
    assert collected.value("amqp10.queue.arrived", **orders) == 2
    points = collected.metrics()["amqp10.queue.ready"].data.data_points
    assert sorted(point.value for point in points) == [1, 1, 2, 3]
    [rest] = [point for point in points if "messaging.destination.name" not in point.attributes]
    assert rest.value == 1
    assert rest.attributes["amqp10.container.id"] == "shop"
    assert collected.value("amqp10.messages.arrived") == 7
    assert collected.value("amqp10.queues") == 4


async def test_each_collection_reads_anew_and_once(
    collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    surveys = 0
    plain = container_figures.survey

    def counted(*args: object) -> object:
        nonlocal surveys
        surveys += 1
        return plain(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(container_figures, "survey", counted)
    container = Container()
    otel_metrics = otel.Metrics(meter_provider=collected.provider)
    otel_metrics.watch(container)
    for number in range(1, 4):
        await container.send("q", "tea")
        assert collected.value("amqp10.queue.messages") == number
        assert surveys == number


async def test_all_figures_are_there_with_their_units(collected: Collected) -> None:
    container = Container()
    otel.Metrics(meter_provider=collected.provider, queues=["*"]).watch(container)
    await container.send("q", "tea")
    async with container.connect():
        found = collected.metrics()
    for figure in FIGURES:
        if figure.opentelemetry in found:
            assert found[figure.opentelemetry].unit == figure.unit
            assert found[figure.opentelemetry].description == figure.description
    missing = {figure.opentelemetry for figure in FIGURES if figure.opentelemetry is not None} - found.keys()
    without_a_store = {name for name in missing if name.startswith("amqp10.store.")}
    assert missing - without_a_store == {"amqp10.quota.refusals", "amqp10.queue.dead_letters"}


async def test_container_that_is_forgotten_is_not_read_any_more(collected: Collected) -> None:
    one, two = Container("one"), Container("two")
    metrics = otel.Metrics(meter_provider=collected.provider)
    metrics.watch(one)
    metrics.watch(two)
    assert collected.value("amqp10.queues", amqp10_container_id="two") == 0
    metrics.forget(two)
    assert collected.value("amqp10.queues") == 0
    metrics.forget(two)


async def test_figures_are_collected_by_another_thread_while_queues_come_and_go(collected: Collected) -> None:
    container = Container()
    otel.Metrics(meter_provider=collected.provider, queues=["*"]).watch(container)
    done = threading.Event()

    def collect() -> int:
        count = 0
        while not done.is_set() or count < 10:
            assert "amqp10.queues" in collected.metrics()
            count += 1
        return count

    async def change() -> None:
        for number in range(300):
            await container.send(f"q-{number % 11}", "tea")
            if number % 5 == 0:
                container.remove_node(f"q-{number % 11}")
            await trio.lowlevel.checkpoint()
        done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(change)
        assert await trio.to_thread.run_sync(collect) >= 10
    assert collected.value("amqp10.messages.arrived") == 300


def test_survey_is_tried_again_where_a_thread_has_changed_the_container(
    collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, failures = container_figures.survey, iter([True] * 3)

    def changing(*args: object) -> object:
        if next(failures, False):
            raise RuntimeError("dictionary changed size during iteration")
        return plain(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(container_figures, "survey", changing)
    otel.Metrics(meter_provider=collected.provider).watch(Container())
    assert collected.value("amqp10.queues") == 0
    assert next(failures, None) is None
