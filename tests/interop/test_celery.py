"""Celery over the transport ``amqp10``, all scenarios.

Against a container, RabbitMQ 4, the emulator of Service Bus, and a broker that shares nothing with this project: Proton's engine
with queues and topics.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.kombu.celery_run import failures
from tests.kombu.peers import container_url, emulator_url, service_bus_url

if TYPE_CHECKING:
    from .peers import Client
    from .rabbitmq import Broker

POOLS = pytest.mark.parametrize(("pool", "backend"), [("solo", "rpc"), ("prefork", "files")])

SLOW = ("tasks_that_are_due_later_do_not_hold_up_others",)
"""Seen with the other brokers: it waits for twelve seconds."""
NEEDS_TOPICS = ("revoke", "inspect_ping", "events", "expired_task_is_not_run", "priorities")
"""Scenarios with remote control or events; for ``expired_task_is_not_run`` the worker is asked whether it is there."""


@POOLS
def test_celery_with_rabbitmq(pool: str, backend: str, rabbitmq4: Broker) -> None:
    assert failures(rabbitmq4.url.replace("amqp://", "amqp10://"), pool, backend) == {}


@POOLS
def test_celery_with_the_emulator_of_rabbitmq(pool: str, backend: str) -> None:
    with emulator_url() as url:
        assert failures(url, pool, backend) == {}


@POOLS
def test_celery_with_a_container(pool: str, backend: str) -> None:
    with container_url() as url:
        assert failures(url, pool, backend) == {}


@POOLS
def test_celery_with_a_broker_on_proton(pool: str, backend: str, proton: Client) -> None:
    program = proton.command[-1].replace("proton_peer.py", "proton_broker.py")
    broker = replace(proton, command=[*proton.command[:-1], program])
    with broker.listen("--deadline", "180") as listener:
        assert failures(listener.url.replace("amqp://", "amqp10://"), pool, backend, SLOW) == {}
    assert listener.result["lent"] == 0


@pytest.mark.parametrize("pool", ["solo", "prefork"])
def test_celery_with_service_bus(pool: str) -> None:
    with service_bus_url("celery", "ranked") as url:
        assert failures(url, pool, "files", NEEDS_TOPICS, {"service_bus": True}) == {}
