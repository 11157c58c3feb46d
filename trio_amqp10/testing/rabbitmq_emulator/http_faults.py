"""FaultError: the HTTP status and the description of a refused request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.broker.exchanges.faults import AccessRefusedError, InequivalentError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.broker.nodes.node import RefusedError

_STATUSES: Final[Mapping[type[RefusedError], int]] = {
    InequivalentError: 409,
    AccessRefusedError: 403,
    UnsupportedError: 501,
}


class FaultError(Exception):
    """A refused request, with the status and the description of its answer."""

    def __init__(self, status: int, description: str) -> None:
        self.status = status
        self.description = description
        super().__init__(description)


def status_of(refusal: RefusedError) -> tuple[int, str]:
    """Return the status and the description of a refusal by the broker."""
    status = _STATUSES.get(type(refusal), 400)
    if isinstance(refusal, InequivalentError):
        return status, other_properties(refusal.kind, refusal.name)
    return status, refusal.description


def other_properties(kind: str, name: str) -> str:
    """Return the description of a conflict between two declarations."""
    return f"there is {'an' if kind == 'exchange' else 'a'} {kind} {name!r} with other properties"
