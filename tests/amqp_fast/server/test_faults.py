"""The reply code that answers a refusal of a node or of the container, and what it closes."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp_fast.server.faults import code_of, fault_of
from trio_amqp10.amqp_fast.wire.faults import Level
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition
from trio_amqp10.core.reply_codes import ReplyCodeRfc011 as Code


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        (Condition.UNAUTHORIZED_ACCESS, Code.ACCESS_REFUSED),
        (Condition.RESOURCE_LOCKED, Code.ACCESS_REFUSED),
        (Condition.NOT_FOUND, Code.DESTINATION_NOT_FOUND),
        (Condition.RESOURCE_DELETED, Code.DESTINATION_NOT_FOUND),
        (Condition.RESOURCE_LIMIT_EXCEEDED, Code.INSUFFICIENT_RESOURCES),
        (Condition.MESSAGE_SIZE_EXCEEDED, Code.MESSAGE_TOO_LARGE),
        (Condition.NOT_IMPLEMENTED, Code.NOT_IMPLEMENTED),
        (Condition.PRECONDITION_FAILED, Code.COMMAND_NOT_VALID),
        (Condition.DECODE_ERROR, Code.CONTENT_INVALID),
    ],
)
def test_refusal_has_the_code_of_its_condition(condition: Condition, code: Code) -> None:
    assert code_of(condition.value) is code
    fault = fault_of(RefusedError(condition, "why"))
    assert (fault.code, fault.description) == (code, "why")


@pytest.mark.parametrize("condition", [None, "", "com.example:odd"])
def test_condition_that_is_not_known_is_an_internal_error(condition: str | None) -> None:
    assert code_of(condition) is Code.INTERNAL_ERROR


@pytest.mark.parametrize("level", Level)
def test_refusal_closes_what_it_is_told_to(level: Level) -> None:
    assert fault_of(RefusedError(Condition.NOT_FOUND, "why"), level).level is level
