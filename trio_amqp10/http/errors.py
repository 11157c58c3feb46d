"""The error of a request, and its answer in the form of RabbitMQ.

Each 401 has a challenge (RFC 9110, 15.5.2). A missing permission is 401 in RabbitMQ's API, even after a login, because its clients
know it so; elsewhere it is 403 after a login.

Knows status codes; knows no operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from trio_amqp10.container.management.errors import ManagementError
    from trio_amqp10.sasl import Identity

_ERRORS: Final = {
    "invalid": (400, "bad_request"),
    "exists": (400, "bad_request"),
    "precondition": (400, "bad_request"),
    "forbidden": (401, "not_authorised"),
    "not-found": (404, "not_found"),
    "refused": (422, "refused"),
    "too-many": (429, "too_many"),
    "store-failed": (500, "store_failed"),
    "not-implemented": (501, "not_implemented"),
    "other": (502, "bad_gateway"),
}
"""The status and the word of RabbitMQ for each reason of ``ManagementError``."""


_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="trio-amqp10", charset="UTF-8"'}


class RequestError(Exception):
    """A request is answered with an error, and has changed nothing.

    Args:
        status: the status code of HTTP.
        error: a word for programs, e.g. ``"bad_request"``.
        reason: what is wrong, with the value.
        headers: further headers of the answer; a challenge is added to a 401.
    """

    def __init__(self, status: int, error: str, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status: Final = status
        self.error: Final = error
        self.reason: Final = reason
        self.headers: Final = (_CHALLENGE if status == 401 else {}) | (headers or {})


def from_management(fault: ManagementError) -> RequestError:
    """Return the answer to an operation of management that failed."""
    status, error = _ERRORS[fault.reason]
    return RequestError(status, error, fault.description)


def refused(fault: ManagementError, who: Identity | None) -> RequestError:
    """Return the answer to a reader of figures that lacks the permission.

    Args:
        fault: the refusal of management.
        who: the reader; None if it has not logged in.
    """
    return RequestError(401 if who is None else 403, "forbidden", fault.description)
