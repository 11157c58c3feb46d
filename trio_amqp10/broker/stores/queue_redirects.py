"""The places that queues have moved to, where their links are sent.

A redirect belongs to an address, and not to a queue: a queue that is made again at this address has moved too. Each has one
row in a store: the address, and the URL of the other place.

Knows addresses and URLs; does not know how links are sent away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from .base import StoreTable
from .column_kinds import NAME, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .base import Done, StoreError
    from .group_commit import Journal

REDIRECTS: Final = StoreTable("redirects", ("address", "url"), str, (NAME, TEXT))


class QueueRedirects:
    """The redirects of a container.

    Args:
        journal: writes the changes to the store; None to keep them in memory alone.

    Raises:
        StoreError: the store cannot be read.
    """

    def __init__(self, journal: Journal | None) -> None:
        self._journal = journal
        self._urls: dict[str, str] = {}
        if journal is not None:
            self._urls.update(cast("Iterator[tuple[str, str]]", journal.rows(REDIRECTS)))

    def get(self, address: str) -> str | None:
        """Return the URL of the place that a queue has moved to, or None."""
        return self._urls.get(address)

    def set(self, address: str, url: str | None, done: Done) -> None:
        """Keep a redirect, or forget it.

        Args:
            address: the address of a queue.
            url: the URL of the other place; None to forget the redirect.
            done: called with None once that is safe, and ``get`` returns it; or with the error, and nothing has changed.
        """
        if self._journal is None:
            self._put(address, url)
            done(None)
            return

        def after(failure: StoreError | None) -> None:
            if failure is None:
                self._put(address, url)
            done(failure)

        self._journal.note(REDIRECTS, address, None if url is None else (address, url))
        self._journal.after(after)

    def _put(self, address: str, url: str | None) -> None:
        if url is None:
            self._urls.pop(address, None)
        else:
            self._urls[address] = url

    def drop(self, address: str) -> None:
        """Forget a redirect, if there is one, without waiting for the store."""
        if self._urls.pop(address, None) is not None and self._journal is not None:
            self._journal.drop(REDIRECTS, address)
