"""The figures for collectors: their names, and their values in a survey."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

import trio_amqp10 as amqp
from trio_amqp10.amqp091.server.connection import ServedConnection
from trio_amqp10.amqp_10_3.server.connection import ServedConnection103
from trio_amqp10.amqp_fast.server.connection import ServedConnection as ServedFast
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.container import Container
from trio_amqp10.container.management.figures import FIGURES, PROTOCOLS, Figure

PROMETHEUS = [figure for figure in FIGURES if figure.prometheus is not None]
OPENTELEMETRY = [figure for figure in FIGURES if figure.opentelemetry is not None]
SUFFIXES = {"By": "bytes", "s": "seconds"}


def test_names_are_unique_and_every_figure_has_one() -> None:
    for named in (
        [figure.prometheus for figure in PROMETHEUS],
        [figure.opentelemetry for figure in OPENTELEMETRY],
    ):
        assert len(named) == len(set(named))
    assert {*PROMETHEUS, *OPENTELEMETRY} == set(FIGURES)


@pytest.mark.parametrize("figure", PROMETHEUS, ids=lambda figure: figure.prometheus)
def test_name_for_prometheus_follows_its_rules(figure: Figure) -> None:
    assert figure.prometheus is not None
    assert re.fullmatch(r"(rabbitmq|amqp10)_[a-z0-9_]+", figure.prometheus)
    assert not figure.prometheus.endswith("_total")  # the library adds it
    suffix = SUFFIXES.get(figure.unit)
    assert suffix is None or figure.prometheus.endswith(suffix)
    assert figure.description.endswith(".")


@pytest.mark.parametrize("figure", OPENTELEMETRY, ids=lambda figure: figure.opentelemetry)
def test_name_for_opentelemetry_follows_its_rules(figure: Figure) -> None:
    assert figure.opentelemetry is not None
    assert re.fullmatch(r"amqp10(\.[a-z_]+)+", figure.opentelemetry)


async def test_every_figure_has_a_value_in_a_busy_container() -> None:
    container = Container(store=MemoryStore(), memory_limit=10**6)
    container.add_queue("q", dead_letter="dead")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await sender.send("tea")
        await container.management.check_store()
        await container.management.get("q", outcome="reject")
        found = await container.management.survey(lambda name: name == "q")
    for figure in FIGURES:
        values = list(figure.read(found))
        if figure.opentelemetry == "amqp10.quota.refusals":
            assert values == []  # it has no quotas
            continue
        if figure.prometheus == "amqp10_store_bytes":
            assert values == []  # a store in memory does not report its size
            continue
        assert values, figure
        for labels, value in values:
            assert set(labels) <= set(figure.labels)
            assert isinstance(value, int | float)
    read = {figure.prometheus: list(figure.read(found)) for figure in FIGURES}
    assert read["amqp10_queue_dead_letters"] == [({"queue": "q", "reason": "rejected"}, 1)]
    assert read["rabbitmq_queue_messages"][0] == ({"queue": "q"}, 0)
    assert read["rabbitmq_global_messages_dead_lettered_rejected"] == [({}, 1)]
    assert read["rabbitmq_connections"] == [({"protocol": "amqp10"}, 1)]


async def test_sum_over_queues_is_right_because_the_rest_has_no_label() -> None:
    container = Container()
    for number in range(4):
        await container.send(f"q-{number}", "tea")
    found = await container.management.survey(lambda name: name < "q-2")
    [depth] = [figure for figure in FIGURES if figure.prometheus == "rabbitmq_queue_messages"]
    assert list(depth.read(found)) == [({"queue": "q-0"}, 1), ({"queue": "q-1"}, 1), ({}, 2)]


def test_every_protocol_has_a_label() -> None:
    served = (ServedConnection, ServedConnection103, ServedFast)
    assert set(PROTOCOLS) == {"AMQP 1.0", *(each.protocol for each in served)}


async def test_breaches_that_are_tolerated_are_counted_by_rule_of_open_and_ended_connections() -> None:
    [breaches] = [figure for figure in FIGURES if figure.prometheus == "amqp10_tolerated_breaches"]
    container = Container()
    async with container.connect() as conn, conn.open_sender("q") as sender:
        for expected in (1, 2):
            await sender.send(amqp.Message("x", annotations={"strange": 1}, priority=7))
            found = dict(await _by_rule(container, breaches))
            assert found.pop("annotation_keys") == expected
            assert set(found.values()) == {0}
    found = dict(await _by_rule(container, breaches))
    assert (found["annotation_keys"], set(found)) == (2, {each.name for each in fields(amqp.Strict)})


async def _by_rule(container: Container, figure: Figure) -> list[tuple[str, float]]:
    return [(labels["rule"], count) for labels, count in figure.read(await container.management.survey())]
