"""What is declared wrongly is refused."""

from __future__ import annotations

import pytest

import trio_amqp10 as amqp
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ


def test_what_a_program_declares_wrongly_is_an_error_of_its_own() -> None:
    broker = RabbitMQ()
    for call, why in (
        (lambda: broker.declare_queue("q", {"x-queue-type": "stream"}), "streams"),
        (lambda: broker.declare_exchange("e", "x-odd"), "x-odd"),
        (lambda: broker.bind("amq.headers", "q", arguments={"x-match": "some"}), "no queue 'q'"),
        (lambda: broker.bind("e", "q"), "no exchange 'e'"),
    ):
        with pytest.raises(amqp.LocalProtocolError, match=why):
            call()
    broker.declare_exchange("e", "topic")
    assert repr(broker) == "<RabbitMQ 'rabbit@localhost' queues=0>"
