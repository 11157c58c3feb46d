"""The error of a request, and its answer in the form of RabbitMQ.

Knows status codes; knows no operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from trio_amqp10.container.management.errors import ManagementError

_ERRORS: Final = {
    "invalid": (400, "bad_request"),
    "exists": (400, "bad_request"),
    "precondition": (400, "bad_request"),
    "forbidden": (401, "not_authorised"),
    "not-found": (404, "not_found"),
    "refused": (422, "refused"),
    "store-failed": (500, "store_failed"),
}
"""The status and the word of RabbitMQ for each reason of ``ManagementError``."""


class RequestError(Exception):
    """A request is answered with an error, and has changed nothing.

    Args:
        status: the status code of HTTP.
        error: a word for programs, e.g. ``"bad_request"``.
        reason: what is wrong, with the value.
        headers: further headers of the answer.
    """

    def __init__(self, status: int, error: str, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status: Final = status
        self.error: Final = error
        self.reason: Final = reason
        self.headers: Final = headers or {}


def from_management(fault: ManagementError) -> RequestError:
    """Return the answer to an operation of management that failed."""
    status, error = _ERRORS[fault.reason]
    return RequestError(status, error, fault.description)
