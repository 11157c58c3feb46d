"""The reply code that answers a refusal of the container, on a channel and on a connection."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp091.server.faults import connection_code, fault_of
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition


@pytest.mark.parametrize(
    ("condition", "code", "scope"),
    [
        (Condition.NOT_FOUND, 404, "session"),
        (Condition.UNAUTHORIZED_ACCESS, 403, "session"),
        (Condition.NOT_ALLOWED, 403, "session"),
        (Condition.RESOURCE_LOCKED, 405, "session"),
        (Condition.PRECONDITION_FAILED, 406, "session"),
        (Condition.NOT_IMPLEMENTED, 540, "connection"),
        (Condition.INTERNAL_ERROR, 541, "connection"),
        (Condition.FRAME_SIZE_TOO_SMALL, 406, "session"),
    ],
)
def test_refusal_of_a_method_has_the_code_of_its_condition(
    condition: Condition, code: int, scope: str
) -> None:
    fault = fault_of(RefusedError(condition, "queue 'q' is not there"))
    assert (fault.code, fault.scope) == (code, scope)
    assert fault.reply_text.endswith("queue 'q' is not there")


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        (Condition.CONNECTION_FORCED, 320),
        (Condition.INTERNAL_ERROR, 541),
        (Condition.RESOURCE_LIMIT_EXCEEDED, 506),
        (Condition.NOT_FOUND, 530),
    ],
)
def test_connection_is_closed_with_the_code_of_its_condition(condition: Condition, code: int) -> None:
    assert connection_code(condition.value) == code
