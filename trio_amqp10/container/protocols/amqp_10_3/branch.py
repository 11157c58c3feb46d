"""A branch of a distributed transaction of 10.3, for the coordinator of the program (C 1503-1560).

The class dtx begins a branch and does not end it: the server is to have a channel of its own to a coordinator (C 1508-1509).
That coordinator is the program of the container: it is given a ``Branch`` for each dtx.start, and ends it. What is published and
acknowledged on the channel meanwhile counts at the commit, together, or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Branch"]


class Branch:
    """One branch, from dtx.start to its end.

    Args:
        identifier: that the client gave it.
        end: commits it (True) or rolls it back.

    Attributes:
        identifier: as given.
        over: whether it has ended: by its coordinator, or by a rollback because its channel is over.
        failure: why ``commit`` did nothing, once that is known; None otherwise. Its channel is closed then.
    """

    __slots__ = ("_end", "failure", "identifier", "over")

    def __init__(self, identifier: str, end: Callable[[bool], object]) -> None:
        self.identifier: Final = identifier
        self.over: bool = False
        self.failure: str | None = None
        self._end = end

    def commit(self) -> None:
        """What was done on the channel counts; or nothing of it: see ``failure``.

        Raises:
            LocalProtocolError: the branch is over.
        """
        self._finish(True)

    def rollback(self) -> None:
        """It is as if nothing had been done; errors as ``commit``."""
        self._finish(False)

    def _finish(self, commits: bool) -> None:
        if self.over:
            raise LocalProtocolError(f"the branch {self.identifier!r} is over")
        self.over = True
        self._end(commits)
