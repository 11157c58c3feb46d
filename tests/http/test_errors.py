"""Errors of management as answers in the form of RabbitMQ."""

from __future__ import annotations

from typing import get_args

import pytest

from trio_amqp10.container.management.errors import ManagementError, Reason
from trio_amqp10.http.errors import RequestError, from_management, refused
from trio_amqp10.sasl import Identity


@pytest.mark.parametrize("reason", get_args(Reason))
def test_each_reason_has_a_status_of_an_error(reason: Reason) -> None:
    fault = from_management(ManagementError(reason, "why"))
    assert 400 <= fault.status < 600
    assert fault.reason == "why"


def test_refusal_is_the_401_of_rabbitmq() -> None:
    fault = from_management(ManagementError("forbidden", "no"))
    assert (fault.status, fault.error) == (401, "not_authorised")


def test_each_401_has_a_challenge_and_no_other_answer_has() -> None:
    assert RequestError(401, "x", "y").headers["WWW-Authenticate"].startswith("Basic ")
    assert RequestError(401, "x", "y", {"X": "z"}).headers.keys() == {"WWW-Authenticate", "X"}
    assert RequestError(403, "x", "y", {"X": "z"}).headers == {"X": "z"}


def test_refused_reader_is_asked_to_log_in_if_it_has_not() -> None:
    fault = ManagementError("forbidden", "no")
    assert (refused(fault, None).status, refused(fault, Identity("ada", "PLAIN")).status) == (401, 403)
    assert refused(fault, None).reason == fault.description
