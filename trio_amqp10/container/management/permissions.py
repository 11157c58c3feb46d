"""Permissions of one who manages.

A permission to ``manage`` an address includes every other one that an operation of management needs there.

Knows guards and needs; knows no operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.broker.nodes.node import RefusedError

from .errors import ManagementError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trio_amqp10.broker.rights.guard import Guard, Need

    from .unconnected_user import UnconnectedUser


class Permissions:
    """The permissions of the one who manages.

    Args:
        guard: the guard of a peer; None for the program itself, which may do everything.
        user: the one whose guard it is, if nothing else refers to it: a guard does so weakly.
    """

    __slots__ = ("_guard", "_user")

    def __init__(self, guard: Guard | None, user: UnconnectedUser | None = None) -> None:
        self._user = user
        self._guard = None if guard is None or not guard.asks else guard

    @property
    def limited(self) -> bool:
        """Whether anything can be refused."""
        return self._guard is not None

    async def check(self, needs: Iterable[Need]) -> None:
        """Check that one permission of each need is given.

        Raises:
            ManagementError: ``"forbidden"``; the same whether or not anything exists.

        Cancelled: the answer is not known.
        """
        if self._guard is not None:
            try:
                await self._guard.check_all(*needs)
            except RefusedError as refusal:
                raise ManagementError("forbidden", refusal.description) from None

    async def may_see(self, address: str) -> bool:
        """Whether it may learn that a node exists. Cancelled: the answer is not known."""
        if self._guard is None:
            return True
        try:
            await self._guard.check_all(to_see(address))
        except RefusedError:
            return False
        return True


def to_see(address: str) -> Need:
    """Return the permissions, any of which shows a node in lists."""
    return (
        ("receive", address),
        ("send", address),
        ("create", address),
        ("delete", address),
        ("monitor", address),
        ("manage", address),
    )


def or_manage(needs: Iterable[Need]) -> list[Need]:
    """Return these needs, each with ``manage`` as an alternative."""
    return [
        (*need, *dict.fromkeys(("manage", address) for _, address in need if address is not None))
        for need in needs
    ]
