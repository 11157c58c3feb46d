"""Attempts to dial until one succeeds, with growing pauses, first or after a loss.

The first, second, fourth, eighth failure in a row and so on are logged as warnings, the others as debug messages. Knows no
dialect: the caller defines an attempt, and which failures are final.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import trio

from trio_amqp10.core.errors import RemoteProtocolError

from .backoff import Attempts
from .errors import ConnectionClosedError

if TYPE_CHECKING:
    import logging
    from collections.abc import Awaitable, Callable

    from .backoff import Backoff

T = TypeVar("T")


class AttemptsUsedUpError(Exception):
    """No further attempt is made; ``__cause__`` is the last failure.

    Never leaves the package.
    """


class Redial:
    """The attempts to dial one connection.

    Args:
        backoff: when to try again; None for never.
        is_final: whether a failure would only be repeated.
        log: the logger for failures.
        failed: called with each failure that is not final.

    Attributes:
        attempts: the attempts after a pause; None without a ``backoff``.
    """

    def __init__(
        self,
        backoff: Backoff | None,
        *,
        is_final: Callable[[Exception], bool],
        log: logging.Logger,
        failed: Callable[[Exception], object],
    ) -> None:
        self._is_final = is_final
        self._log = log
        self._failed = failed
        self._rounds = 0
        self.attempts: Final = None if backoff is None else Attempts(backoff)

    async def first(self, dial: Callable[[], Awaitable[T]], places: int) -> T:
        """Make the first connection.

        Dial each of ``places`` without a pause, and all of them again after each pause.

        Args:
            dial: makes one attempt, at the next place.
            places: the number of places.

        Raises:
            OSError, ConnectionClosedError, RemoteProtocolError: the failure of the last attempt.
            Exception: a failure that is final.

        Cancelled: as one attempt.
        """
        self._rounds = 0
        failures: list[Exception] = []
        while True:
            try:
                made = await dial()
            except (OSError, ConnectionClosedError, RemoteProtocolError) as failure:
                # Without a backoff an error of the protocol is raised at once: the other places are tried only
                # if a peer cannot be reached or closes the connection.
                if self._is_final(failure) or (
                    self.attempts is None and isinstance(failure, RemoteProtocolError)
                ):
                    raise
                failures.append(failure)
                self._failed(failure)
                if len(failures) < places:
                    continue
                pause = self._next_pause()
                if pause is None:
                    raise
                self._report(failures, pause)
                failures.clear()
                await trio.sleep(pause)
            else:
                if self.attempts is not None:
                    self.attempts.end()
                return made

    async def again(
        self,
        dial: Callable[[], Awaitable[T]],
        loss: Exception,
        clean_up: Callable[[Exception], Awaitable[object]],
    ) -> T:
        """Make the connection again after a loss, with a pause before each attempt.

        Args:
            dial: makes one attempt, at the next place.
            loss: why the connection was lost.
            clean_up: awaited with each failure.

        Raises:
            AttemptsUsedUpError: no attempt is left.
            Exception: a failure that is final.

        Cancelled: as one attempt.
        """
        self._rounds = 0
        failure: Exception | None = None
        while True:
            pause = self._next_pause()
            if pause is None:
                raise AttemptsUsedUpError from failure or loss
            if failure is not None:
                self._report([failure], pause)
            await trio.sleep(pause)
            try:
                return await dial()
            except Exception as raised:  # of any class, because the program's own code may fail too
                failure = raised
                await clean_up(failure)
                if self._is_final(failure):
                    raise
                self._failed(failure)

    def _next_pause(self) -> float | None:
        return None if self.attempts is None else self.attempts.next_pause(trio.current_time())

    def _report(self, failures: list[Exception], pause: float) -> None:
        self._rounds += 1
        log = self._log.debug if self._rounds & (self._rounds - 1) else self._log.warning
        reasons = "; ".join(str(each) or repr(each) for each in failures)
        log(
            "dialling has failed %d time%s, and is tried again in %.3g s: %s",
            self._rounds,
            "" if self._rounds == 1 else "s",
            pause,
            reasons,
        )
