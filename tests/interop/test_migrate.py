"""``amqp10 migrate`` to RabbitMQ 4 and back, killed at random moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.soak.migrate import ends_of, kill_and_count

if TYPE_CHECKING:
    from .rabbitmq import Broker


@pytest.mark.whole
@pytest.mark.parametrize("quorum", [False, True], ids=["classic", "quorum"])
@pytest.mark.parametrize("way", ["out", "back"])
def test_kills_lose_and_double_nothing(rabbitmq4: Broker, way: str, quorum: bool) -> None:
    with ends_of(way, rabbitmq4.url, quorum=quorum) as ends:
        counts = kill_and_count(ends, 6, 12_000, 1, longest=1.8)
    assert (counts.moved, *counts[3:]) == (12_000, 0, 0, 0)
    assert counts.killed
