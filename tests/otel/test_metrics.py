"""Metrics of connections and containers: sums of their statistics."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
import trio
from opentelemetry.sdk.metrics.export import Sum

import trio_amqp10 as amqp
from trio_amqp10 import otel

if TYPE_CHECKING:
    from .conftest import Collected


async def test_metrics_tell_what_a_connection_does(collected: Collected) -> None:
    metrics = otel.Metrics(meter_provider=collected.provider, attributes={"server.address": "here"})
    container = amqp.Container()
    async with container.connect() as conn, conn.open_receiver("q", credit=10) as receiver:
        metrics.watch(conn)
        async with conn.open_sender("q") as sender:
            for _ in range(3):
                await sender.send("tea")
            delivery = await receiver.receive()
            statistics = conn.statistics()
            assert collected.value("amqp10.link.unsettled", amqp10_link_role="receiver") == 3
            assert collected.value("amqp10.link.unsettled", amqp10_link_role="sender") == 0
            assert collected.value("amqp10.link.buffered") == 2
            assert collected.value("amqp10.link.credit", amqp10_link_role="receiver") == receiver.credit
            assert collected.value("amqp10.link.credit", amqp10_link_role="sender") == sender.credit
            assert collected.value("amqp10.links", amqp10_link_role="sender") == 1
            assert collected.value("amqp10.sessions") == 1
            assert collected.value("amqp10.connections") == 1
            assert collected.value("amqp10.transports") == 1
            assert collected.value("amqp10.io", network_io_direction="transmit") == statistics["octets_out"]
            assert collected.value("amqp10.frames", network_io_direction="receive") == statistics["frames_in"]
            delivery.accept()
        assert collected.value("messaging.client.sent.messages", messaging_operation_name="send") == 3
        consumed = collected.metrics()["messaging.client.consumed.messages"]
        assert consumed.unit == "{message}"
        assert isinstance(consumed.data, Sum)
        assert consumed.data.is_monotonic
        [point] = consumed.data.data_points
        assert (point.value, dict(point.attributes)) == (
            3,
            {"messaging.system": "amqp", "server.address": "here", "messaging.operation.name": "receive"},
        )


async def test_metrics_keep_the_totals_of_what_is_over(collected: Collected) -> None:
    metrics = otel.Metrics(meter_provider=collected.provider)
    container = amqp.Container()
    for number in range(1, 4):
        async with container.connect() as conn, conn.open_sender("q") as sender:
            metrics.watch(conn)
            await sender.send("tea")
            assert collected.value("messaging.client.sent.messages") == number
        assert collected.value("amqp10.connections") == 0
        assert collected.value("amqp10.transports") == number
    assert collected.value("messaging.client.sent.messages") == 3
    assert not metrics._watched


async def test_metrics_are_sums_over_all_that_a_container_accepts(collected: Collected) -> None:
    metrics = otel.Metrics(meter_provider=collected.provider)
    container = amqp.Container()
    metrics.watch(container)
    async with container.connect() as one, one.open_sender("q") as sender:
        await sender.send("tea")
        async with container.connect() as two, two.open_receiver("q") as receiver:
            (await receiver.receive()).accept()
            assert collected.value("amqp10.connections") == 2
        with trio.fail_after(60):
            while collected.value("amqp10.connections") != 1:
                await trio.lowlevel.checkpoint()
        assert collected.value("messaging.client.sent.messages") == 1
        assert collected.value("messaging.client.consumed.messages") == 1
        assert collected.value("amqp10.transports") == 2
        metrics.forget(container)
        metrics.forget(container)
        await sender.send("nobody counts this")
        assert collected.value("messaging.client.consumed.messages") == 1
        assert collected.value("amqp10.connections") == 0


async def test_metrics_tell_how_much_containers_hold_and_what_they_refused(collected: Collected) -> None:
    metrics = otel.Metrics(meter_provider=collected.provider)
    container = amqp.Container(memory_limit=1000)
    queue = container.add_queue("q")
    metrics.watch(container)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await sender.send(b"x" * 1000)
        assert collected.value("amqp10.container.held") == container.watermark.octets > 1000
        assert collected.value("amqp10.container.throttled") == 1
        with pytest.raises(amqp.DeliveryRejectedError):
            await sender.send(b"x")
        assert collected.value("amqp10.container.refused") == 1
    queue.purge()
    assert collected.value("amqp10.container.held") == collected.value("amqp10.container.throttled") == 0
    metrics.forget(container)
    assert collected.value("amqp10.container.refused") == 1


async def test_collection_adds_up_each_connection_once(
    collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    plain = amqp.Connection.statistics

    def counted(connection: amqp.Connection) -> Any:
        read.append(connection)
        return plain(connection)

    metrics = otel.Metrics(meter_provider=collected.provider)
    container = amqp.Container()
    async with container.connect() as one, container.connect() as two:
        metrics.watch(one)
        metrics.watch(two)
        monkeypatch.setattr(amqp.Connection, "statistics", counted)
        for number in (1, 2):
            assert collected.value("amqp10.connections") == 2
            assert (read.count(one), read.count(two)) == (number, number)


async def test_metrics_are_collected_by_another_thread_while_links_come_and_go(collected: Collected) -> None:
    metrics = otel.Metrics(meter_provider=collected.provider)
    container = amqp.Container()
    done = threading.Event()

    def collect() -> int:
        count = 0
        while not done.is_set() or count < 20:
            assert len(collected.metrics()) >= 12
            count += 1
        return count

    counts: list[int] = []

    async def collect_in_a_thread() -> None:
        counts.append(await trio.to_thread.run_sync(collect))

    async with container.connect() as conn:
        metrics.watch(conn)
        metrics.watch(container)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collect_in_a_thread)
            for number in range(100):
                async with conn.open_sender(f"node-{number % 7}") as sender:
                    await sender.send("tea")
            done.set()
        assert counts[0] >= 20
        assert collected.value("messaging.client.sent.messages") == 100
        assert collected.value("messaging.client.consumed.messages") == 100


async def test_metrics_look_again_where_something_changed_while_they_looked(
    collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = otel.Metrics(meter_provider=collected.provider)
    container = amqp.Container()
    async with container.connect() as conn:
        metrics.watch(conn)
        plain, failures = amqp.Connection.statistics, iter([True, True])

        def changing(self: amqp.Connection) -> Any:
            if next(failures, False):
                raise RuntimeError("dictionary changed size during iteration")
            return plain(self)

        monkeypatch.setattr(amqp.Connection, "statistics", changing)
        assert collected.value("amqp10.connections") == 1
        assert next(failures, None) is None
