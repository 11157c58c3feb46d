"""Requests to an entity: peek, and what makes no sense."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.values import Array
from trio_amqp10.testing.azure_emulator import EntityOptions

from .helpers import ask, bus_of, later, open_client, put, wish

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_peek_goes_on_from_a_number_and_ends(autojump_clock: MockClock) -> None:
    async with open_client(bus_of(q=EntityOptions(max_message_size_in_kilobytes=1024))) as conn:
        await put(conn, "q", *range(5), *(bytes(600_000) for _ in range(3)))

        async def peek(number: int, count: int) -> Any:
            status, body = await ask(
                conn, "q", "peek-message", {"from-sequence-number": number, "message-count": count}
            )
            return (status, len(body["messages"])) if status == 200 else status

        assert await peek(0, 3) == (200, 3)
        assert await peek(4, 100) == (200, 3)  # no more than a reply can take
        assert await peek(8, 100) == (200, 1)
        assert await peek(9, 100) == 204


WRONG: list[tuple[str, Any]] = [
    ("nonsense", {}),
    ("peek-message", None),
    ("peek-message", [1]),
    ("peek-message", {"from-sequence-number": 1, "message-count": -1}),
    ("peek-message", {"from-sequence-number": "1", "message-count": True}),
    ("renew-lock", {"lock-tokens": []}),
    ("renew-lock", {"lock-tokens": Array(["x"], "string")}),
    ("renew-lock", {"lock-tokens": [uuid.uuid4()]}),
    ("renew-lock", {"lock-tokens": uuid.uuid4()}),
    ("receive-by-sequence-number", {"sequence-numbers": [1]}),
    ("receive-by-sequence-number", {"sequence-numbers": [1] * 1001}),
    ("update-disposition", {"disposition-status": "completed"}),
    ("update-disposition", {"disposition-status": "defered", "lock-tokens": [uuid.uuid4()]}),
    ("schedule-message", {"messages": [{}]}),
    ("schedule-message", {"messages": [{"message": b"nonsense"}]}),
    ("schedule-message", {"messages": [{"message": amqp.Message("now").to_payload()}]}),
    ("cancel-scheduled-message", {"sequence-numbers": [1]}),
    ("renew-session-lock", {"session-id": "x"}),
    ("renew-session-lock", {}),
    ("get-session-state", {"session-id": 1}),
    ("set-session-state", {"session-id": "x", "session-state": "text"}),
    ("get-message-sessions", {}),
]


@pytest.mark.parametrize(("operation", "body"), WRONG, ids=lambda value: str(value)[:40])
async def test_request_that_makes_no_sense_gets_a_status(
    autojump_clock: MockClock, operation: str, body: Any
) -> None:
    bus = bus_of(q=EntityOptions(requires_session="session" in operation))
    async with open_client(bus) as conn:
        status, condition = await ask(conn, "q", operation, body)
        assert 400 <= status < 600 or (body is None and status == 400)
        assert re.match("com.microsoft:|amqp:", condition)
        if operation == "nonsense":
            assert (status, condition) == (501, "amqp:not-implemented")


async def test_message_is_not_scheduled_where_none_can_be_sent(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None)
    bus.add_topic("news")
    bus.add_subscription("news", "all")
    async with open_client(bus) as conn:
        for entity in ("q/$DeadLetterQueue", "news/Subscriptions/all"):
            for operation in ("schedule-message", "cancel-scheduled-message"):
                answer = await ask(conn, entity, operation, wish(later("tea", 5)))
                assert answer == (501, "amqp:not-implemented")
