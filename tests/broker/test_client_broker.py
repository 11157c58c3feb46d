"""The broker that a dialect finds: what clients may declare in it."""

from __future__ import annotations

import pytest

from trio_amqp10.broker.client_broker import broker_for_clients
from trio_amqp10.container import Container


@pytest.mark.parametrize(
    ("strict", "asked_for", "declares"),
    [
        (False, (False,), True),
        (True, (False,), False),
        (True, (False, False), False),
        (True, (True,), True),
        (True, (False, True), True),
        (True, (True, False), True),
    ],
)
async def test_strict_container_makes_nothing_for_clients_until_a_dialect_is_asked_for(
    strict: bool, asked_for: tuple[bool, ...], declares: bool
) -> None:
    container = Container(strict=strict)
    for each in asked_for:
        broker = broker_for_clients(container, by_default=not each)
    assert broker is container.broker
    assert broker.declares_for_clients is declares


async def test_broker_of_the_program_serves_clients() -> None:
    container = Container(strict=True)
    own = container.add_broker()
    assert broker_for_clients(container, by_default=True) is own
    assert own.declares_for_clients
