"""What an attach says of the subscription that it is for (3.5.3, 3.5.6)."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.filters import parse_filters
from trio_amqp10.amqp10.server.subscription_terms import subscription_terms_of
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Symbol


def prior(priority: Any, name: str = "rabbitmq:priority") -> dict[Any, Any]:
    return {Symbol(name): priority}


@pytest.mark.parametrize(
    ("properties", "priority"),
    [
        ({}, 0),
        (None, 0),
        (prior(7), 7),
        (prior(-7, "priority"), -7),
        ({**prior(1), **prior(2, "priority")}, 1),
        (prior("9"), 0),
        (prior(True), 0),
        (prior(2**31), 0),
    ],
)
def test_priority_of_a_link_is_an_integer_among_its_properties(properties: Any, priority: int) -> None:
    subscription_terms = subscription_terms_of(
        ("ada", None), "mine", Source(address="q"), parse_filters(None), properties
    )
    assert subscription_terms.priority == priority
