"""The interface for counting failed attempts, and the delay after a failure.

Knows no mechanism and no clock.
"""

from __future__ import annotations

from typing import Final, Protocol

FAILURE_PENALTY: Final = 1.0
"""Seconds between a failed attempt and its outcome.

That is slow for guessing, and acceptable after a typing error.
"""


class Tally(Protocol):
    """A count of attempts across connections, e.g. of those from one host.

    It has a clock, unlike the SASL layer.
    """

    def permits(self, username: str | None) -> bool:
        """Whether credentials of this user are checked now; None: of any user.

        False: right and wrong credentials both end in ``sys-temp``, so that parallel attempts reveal no more than sequential ones.
        """
        ...

    def failed(self, username: str | None) -> None:
        """Count an outcome ``auth``.

        Args:
            username: the user that the client claimed to be; None if it sent no name.
        """
        ...
