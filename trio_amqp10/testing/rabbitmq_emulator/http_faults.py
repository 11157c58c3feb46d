"""FaultError: why a request cannot be done, in the manner of HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.container.broker.faults import AccessRefusedError, InequivalentError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.container.nodes.node import RefusedError

__all__ = ["FaultError", "status_of"]

_STATUSES: Final[Mapping[type[RefusedError], int]] = {
    InequivalentError: 409,
    AccessRefusedError: 403,
    UnsupportedError: 501,
}


class FaultError(Exception):
    """The answer to a request is this status, with this description."""

    def __init__(self, status: int, description: str) -> None:
        self.status = status
        self.description = description
        super().__init__(description)


def status_of(refusal: RefusedError) -> tuple[int, str]:
    """The status that the broker's refusal has, and how it is described."""
    status = _STATUSES.get(type(refusal), 400)
    if isinstance(refusal, InequivalentError):
        return status, other_properties(refusal.kind, refusal.name)
    return status, refusal.description


def other_properties(kind: str, name: str) -> str:
    """How the clash of two declarations is described."""
    return f"there is {'an' if kind == 'exchange' else 'a'} {kind} {name!r} with other properties"
