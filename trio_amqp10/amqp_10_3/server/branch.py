"""Branches of distributed transactions, which the program ends (C 1503-1560).

The class dtx begins branches but does not end them: the server should have its own way to a coordinator (C 1508-1509). Here the
program of the container is the coordinator: it gets a ``Branch`` for each dtx.start, and ends it. Messages that are published
and acknowledged on the channel meanwhile take effect together at the commit, or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable


class Branch:
    """A branch of a distributed transaction, from dtx.start to its end.

    Args:
        identifier: the client's name for the branch.
        end: commits the branch (True) or rolls it back.

    Attributes:
        identifier: as given.
        over: whether the branch has ended, by its coordinator or with its channel.
        failure: the reason why ``commit`` failed; None before, and after success. The channel is closed after a failure.
    """

    __slots__ = ("_end", "failure", "identifier", "over")

    def __init__(self, identifier: str, end: Callable[[bool], object]) -> None:
        self.identifier: Final = identifier
        self.over: bool = False
        self.failure: str | None = None
        self._end = end

    def commit(self) -> None:
        """Commit the work of the channel: all of it, or nothing (see ``failure``).

        Raises:
            LocalProtocolError: the branch is over.
        """
        self._finish(True)

    def rollback(self) -> None:
        """Roll back the work of the channel; raises as ``commit``."""
        self._finish(False)

    def _finish(self, commits: bool) -> None:
        if self.over:
            raise LocalProtocolError(f"the branch {self.identifier!r} is over")
        self.over = True
        self._end(commits)
