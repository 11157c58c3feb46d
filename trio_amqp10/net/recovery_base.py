"""RecoveryBase: dials a lost connection again, while that can succeed.

Each client defines which parts of a connection are restored, how, and which losses are final.

Knows attempts and how to report them; knows no channel and no link.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import trio

from trio_amqp10.core.errors import LocalProtocolError, SecurityError

from .recovery_events import Change
from .redial import AttemptsUsedUpError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from logging import Logger

    from .pump import Pump
    from .recovery_events import Changes, Watchers
    from .redial import Redial


class RedialledConnection(Protocol):
    """The methods that ``RecoveryBase`` calls on a connection."""

    @property
    def pump(self) -> Pump:
        """The pump of the present transport, or of the last one."""
        ...

    def lost_to(self) -> Exception:
        """Return why the last transport was lost."""
        ...

    async def hang_up(self) -> None:
        """Give up the present transport.

        Cancelled: the last octets are written anyway, for at most a second.
        """
        ...

    def on_ready(self) -> None:
        """Note that everything is restored, so that calls can continue."""
        ...

    def fail(self, failure: Exception) -> None:
        """Note that the connection will not be restored."""
        ...


C = TypeVar("C", bound=RedialledConnection)


class RecoveryBase(ABC, Generic[C]):
    """Restores one connection after losses. Subclass it with the abstract methods.

    Args:
        connection: the connection to restore.
        dial: makes a transport, waits until the server has opened the connection, and returns its URL.
        redial: makes the attempts.
        watchers: get each change.

    Attributes:
        log: the logger for losses.
        closed_error: the client's error for a closed connection; its ``may_retry`` is True if dialling again may help.
        stopped: whether recovery has given up, or was stopped.
        failure: why it has given up, or None.
    """

    log: ClassVar[Logger]
    closed_error: ClassVar[type[Any]]

    def __init__(
        self,
        connection: C,
        dial: Callable[[], Awaitable[str]],
        redial: Redial,
        watchers: Watchers,
    ) -> None:
        assert redial.attempts is not None
        self._connection = connection
        self._dial = dial
        self._redial = redial
        self._attempts = redial.attempts
        self._watchers = watchers
        self._scope = trio.CancelScope(shield=True)
        self.stopped: bool = False
        self.failure: Exception | None = None

    @classmethod
    def is_final(cls, failure: Exception) -> bool:
        """Whether dialling again would only lead to the same failure."""
        if isinstance(failure, SecurityError | LocalProtocolError):
            return True
        closed: Any = failure
        return isinstance(closed, cls.closed_error) and not closed.may_retry

    @abstractmethod
    def exhausted(self, last: BaseException | None) -> Exception:
        """Return the client's error for a connection whose attempts are used up.

        Args:
            last: the failure of the last attempt.
        """

    @abstractmethod
    async def restore(self) -> None:
        """Restore everything on the present transport.

        Raises the reason if that is impossible.
        """

    @abstractmethod
    def passed(self, loss: Exception) -> None:
        """Note that an attempt has failed, and another one may help."""

    def covers(self, loss: Exception) -> bool:
        """Whether a loss is not the end."""
        return not self.stopped and not self.is_final(loss)

    def sits_out(self, refusal: Exception) -> bool:  # noqa: ARG002
        """Whether a part that is refused during recovery is tried again for a while."""
        return False

    def end_for(self, loss: Exception) -> Exception | None:
        """Return the error to give up with after a loss; None to dial again."""
        return None if self.covers(loss) else loss

    def on_lost(self, loss: Exception) -> None:  # noqa: ARG002
        """Note that the connection was lost, and will be dialled again."""
        if self._attempts.lasted(trio.current_time()):
            self._attempts.end()

    def on_restored(self) -> None:
        """Note that the connection is restored."""
        self._connection.on_ready()

    def stop(self) -> None:
        """End recovery because the connection is closed locally."""
        self._end(None)
        self._scope.cancel()

    def changes(self, *, attempts: bool = False) -> Changes:
        """Return an iterator over the changes from now on."""
        return self._watchers.changes(attempts=attempts)

    async def run(self) -> None:
        """Restore the connection after each loss, until it is stopped."""
        connection = self._connection
        with self._scope:
            while not self.stopped:
                await connection.pump.finished.wait()
                loss = connection.lost_to()
                end = self.end_for(loss)
                if end is not None:
                    self._stop(end)
                    break
                self.log.warning("%s was lost, and will be dialled again: %s", connection, loss)
                self.on_lost(loss)
                self._watchers.tell(Change("lost", loss))
                await self._come_back(loss)

    async def _come_back(self, loss: Exception) -> None:
        try:
            url = await self._redial.again(self._dial_and_restore, loss, self._clean_up)
        except AttemptsUsedUpError as used_up:
            self._stop(self.exhausted(used_up.__cause__))
        except Exception as failure:
            self._stop(failure)
        else:
            self._attempts.reached(trio.current_time())
            self.on_restored()
            self.log.info("%s is back, at %s", self._connection, url)
            self._watchers.tell(Change("restored", url=url))

    async def _dial_and_restore(self) -> str:
        """Make one attempt; return the URL."""
        url = await self._dial()
        await self.restore()
        return url

    async def _clean_up(self, failure: Exception) -> None:
        """Give up the transport of a failed attempt."""
        await self._connection.hang_up()
        if not self.is_final(failure):
            self.passed(failure)

    # -- the end ----------------------------------------------------------------------------

    def _stop(self, failure: Exception) -> None:
        self.log.warning("%s is given up: %s", self._connection, failure)
        self._end(failure)
        self._connection.fail(failure)

    def _end(self, failure: Exception | None) -> None:
        if not self.stopped:
            self.stopped = True
            self.failure = failure
            self._watchers.tell(Change("stopped", failure))
