"""Leases of nodes that were written when a lease was five methods.

Knows leases; knows no node.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from .node import Lease

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["completed"]


def completed(lease: Lease) -> Lease:
    """A lease around one without ``delete_in_commit``, that has all of ``Lease``."""
    warnings.warn(
        f"{type(lease).__name__} has only the five answers of a lease: subclass trio_amqp10.Lease",
        DeprecationWarning,
        stacklevel=2,
    )
    return _Completed(lease)


class _Completed(Lease):
    """A lease on a message that is not stored, as far as the container knows."""

    __slots__ = ("_lease",)

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def accepted(self) -> None:
        self._lease.accepted()

    def rejected(
        self, condition: str | None, description: str | None, info: Mapping[Any, Any] | None = None
    ) -> None:
        self._lease.rejected(condition, description, info)

    def released(self) -> None:
        self._lease.released()

    def modified(
        self, *, failed: bool, undeliverable_here: bool, annotations: Mapping[Any, Any] | None
    ) -> None:
        self._lease.modified(failed=failed, undeliverable_here=undeliverable_here, annotations=annotations)

    def lost(self) -> None:
        self._lease.lost()
