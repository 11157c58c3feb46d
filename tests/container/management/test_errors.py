"""The error of an operation: its reason, and the status of HTTP."""

from __future__ import annotations

from typing import get_args

import pytest

from trio_amqp10.container.management.errors import ManagementError, Reason


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("invalid", 400),
        ("forbidden", 403),
        ("not-found", 404),
        ("exists", 409),
        ("precondition", 412),
        ("refused", 422),
        ("store-failed", 500),
    ],
)
def test_reason_has_a_status(reason: Reason, status: int) -> None:
    error = ManagementError(reason, "queue 'a' is not empty")
    assert (error.reason, error.status, str(error)) == (reason, status, "queue 'a' is not empty")


def test_every_reason_has_a_status_of_its_own() -> None:
    reasons = get_args(Reason)
    assert len({ManagementError(reason, "").status for reason in reasons}) == len(reasons)
