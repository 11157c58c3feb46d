"""Figures: a broker that does not show a figure has none."""

from __future__ import annotations

from trio_amqp10.tools.cli.migrate.figures import Figures


def test_only_ready_messages_are_needed() -> None:
    assert Figures(ready=3) == Figures(ready=3, busy=0, octets=0, consumers=0)
