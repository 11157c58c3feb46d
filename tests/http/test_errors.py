"""Errors of management as answers in the form of RabbitMQ."""

from __future__ import annotations

from typing import get_args

import pytest

from trio_amqp10.container.management.errors import ManagementError, Reason
from trio_amqp10.http.errors import from_management


@pytest.mark.parametrize("reason", get_args(Reason))
def test_each_reason_has_a_status_of_an_error(reason: Reason) -> None:
    fault = from_management(ManagementError(reason, "why"))
    assert 400 <= fault.status < 600
    assert fault.reason == "why"


def test_refusal_is_the_401_of_rabbitmq() -> None:
    fault = from_management(ManagementError("forbidden", "no"))
    assert (fault.status, fault.error) == (401, "not_authorised")
