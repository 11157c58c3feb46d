"""A probe of a store: whether a row can be written to it now.

The last commit does not answer that: a container without traffic commits nothing. So the probe writes a row of its own, in
the same commit as other rows that wait.

Knows one row; knows no message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .base import StoreTable, until_done
from .column_kinds import NUMBER, whole

if TYPE_CHECKING:
    from .group_commit import Journal

_KEY: Final = 1
PROBES: Final = StoreTable("probes", ("number", "time"), int, (whole(_KEY, _KEY), NUMBER))


class WriteProbe:
    """Writes a row to a store.

    Args:
        journal: writes to the store.

    Raises:
        StoreError: the store cannot be read.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        for _ in journal.rows(PROBES):  # This makes the table; the row is of no interest.
            pass

    async def write(self, time: float) -> None:
        """Write the row, and wait until it is safe.

        Args:
            time: seconds since 1970, for people who look at the row.

        Raises:
            StoreError: it could not be written.

        Cancelled: it is written all the same, unless the store fails.
        """
        self._journal.note(PROBES, _KEY, (_KEY, time))
        await until_done(self._journal.after)
