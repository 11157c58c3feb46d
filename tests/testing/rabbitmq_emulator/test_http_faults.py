"""The status and the description of each refusal, as HTTP of RabbitMQ has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trio_amqp10.broker.exchanges.faults import (
    AccessRefusedError,
    InequivalentError,
    LockedError,
    NotFoundError,
    UnsupportedError,
)
from trio_amqp10.testing.rabbitmq_emulator.http_faults import FaultError, status_of

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.node import RefusedError


@pytest.mark.parametrize(
    ("refusal", "answer"),
    [
        (AccessRefusedError("amq.x is reserved"), (403, "amq.x is reserved")),
        (UnsupportedError("no streams"), (501, "no streams")),
        (NotFoundError("no queue 'q'"), (400, "no queue 'q'")),
        (LockedError("it is another's"), (400, "it is another's")),
        (
            InequivalentError("queue", "q", "durable", True, False),
            (409, "there is a queue 'q' with other properties"),
        ),
        (
            InequivalentError("exchange", "e", "type", "topic", "direct"),
            (409, "there is an exchange 'e' with other properties"),
        ),
    ],
)
def test_refusal_of_the_broker_has_its_status(refusal: RefusedError, answer: tuple[int, str]) -> None:
    assert status_of(refusal) == answer


def test_fault_says_its_description() -> None:
    fault = FaultError(404, "no such path")
    assert (fault.status, fault.description, str(fault)) == (404, "no such path", "no such path")
