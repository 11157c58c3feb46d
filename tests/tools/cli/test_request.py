"""amqp10 request fails when nobody answers."""

from __future__ import annotations

from .conftest import (
    failed,
)


def test_request_fails_when_nobody_answers(queue: str) -> None:
    assert "no reply arrived within 0.2 s" in failed("request", queue, "--body", "x", "--timeout", "0.2")
