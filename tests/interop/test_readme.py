"""The README's program for RabbitMQ 4, as typed, beside a RabbitMQ 4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.test_readme import PAGES, type_beside

if TYPE_CHECKING:
    from pathlib import Path

    from .rabbitmq import Broker


def test_readme_works_beside_rabbitmq_4(rabbitmq4: Broker, tmp_path: Path) -> None:
    assert type_beside(PAGES[0], tmp_path, rabbitmq4.port) == 1
