"""amqp10 request fails when nobody answers."""

from __future__ import annotations

import pytest
import trio

import trio_amqp10 as amqp

from .conftest import amqp10, failed


def test_request_fails_when_nobody_answers(queue: str) -> None:
    assert "no reply arrived within 0.2 s" in failed("request", queue, "--body", "x", "--timeout", "0.2")


@pytest.mark.parametrize("dialect", ["1.0", "0-9-1"])
async def test_request_takes_its_body_from_stdin(dialect: str) -> None:
    container = amqp.Container("shop")

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:
        body = message.body
        return (body.decode() if isinstance(body, bytes) else body).upper()

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        target = (
            (f"{listener.url}/upper",) if dialect == "1.0" else (listener.url, "upper", "--dialect", dialect)
        )
        result = await trio.to_thread.run_sync(lambda: amqp10("request", *target, stdin=b"two\nlines\n"))
        wrong = await trio.to_thread.run_sync(lambda: amqp10("request", *target, stdin=b"\xff"))
        nursery.cancel_scope.cancel()
    assert (result.stdout, result.stderr, result.returncode) == (b"TWO\nLINES\n", b"", 0)
    assert b"stdin is not UTF-8" in wrong.stderr
