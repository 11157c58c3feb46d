"""Replies to requests: the body with 200, 204 where there is nothing more, and the status of each refusal."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.message import Message
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition, RemoteProtocolError
from trio_amqp10.testing.azure_emulator.constants import (
    ALREADY_EXISTS,
    ARGUMENT_ERROR,
    LOCK_LOST,
    NOT_FOUND,
    OUT_OF_RANGE,
    SESSION_LOCK_LOST,
)
from trio_amqp10.testing.azure_emulator.request_response import Fields, RequestResponseNode

PEER: Any = None


class Node(RequestResponseNode):
    """A node that answers with what it is given, or raises it."""

    def __init__(self, answer: Any) -> None:
        super().__init__("q/$management", PEER, Fields("status", "said", "condition"))
        self._made = answer

    async def _operate(self, request: Message, peer: Any) -> Any:
        if isinstance(self._made, Exception):
            raise self._made
        return self._made


async def reply_of(answer: Any) -> Message:
    return await Node(answer)._ask(PEER, Message("request"))


async def test_body_is_answered_with_200() -> None:
    reply = await reply_of({"n": 1})
    assert reply.body == {"n": 1}
    assert reply.application_properties == {"status": 200, "said": "OK"}


async def test_nothing_more_is_answered_with_204() -> None:
    reply = await reply_of(None)
    assert reply.body is None
    found = reply.application_properties
    assert (found["status"], found["condition"]) == (204, "com.microsoft:message-not-found")


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        (ARGUMENT_ERROR, 400),
        (OUT_OF_RANGE, 400),
        (Condition.UNAUTHORIZED_ACCESS, 401),
        (Condition.NOT_FOUND, 404),
        (NOT_FOUND, 404),
        (ALREADY_EXISTS, 409),
        (LOCK_LOST, 410),
        (SESSION_LOCK_LOST, 410),
        (Condition.NOT_IMPLEMENTED, 501),
        ("com.example:odd", 400),
    ],
)
async def test_refusal_is_answered_with_its_status_and_condition(condition: str, status: int) -> None:
    refusal = RefusedError(condition, "why not")
    reply = await reply_of(refusal)
    assert reply.body is None
    assert reply.application_properties == {
        "status": status,
        "said": "why not",
        "condition": refusal.condition,
    }


async def test_request_that_cannot_be_decoded_is_answered_too() -> None:
    reply = await reply_of(RemoteProtocolError("no map", Condition.DECODE_ERROR))
    assert reply.application_properties["status"] == 400
    assert reply.application_properties["condition"] == "amqp:decode-error"
