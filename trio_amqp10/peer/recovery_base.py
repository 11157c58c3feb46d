"""RecoveryBase: dials a connection again whenever it is lost, for as long as that makes sense.

What of a connection comes back, and how, each client says: AMQP/Fast, and 0-9-1 with 10.3. That of AMQP 1.0, whose links come
back singly, has a watch of its own (``recovery``).

Knows attempts and what is reported of them; knows no channel and no link.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import trio

from trio_amqp10.errors import LocalProtocolError, SecurityError
from trio_amqp10.net.redial import AttemptsUsedUpError

from .recovery_events import Change

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from logging import Logger

    from trio_amqp10.net.pump import Pump
    from trio_amqp10.net.redial import Redial

    from .recovery_events import Changes, Watchers

__all__ = ["RecoveryBase", "RedialledConnection"]


class RedialledConnection(Protocol):
    """What is asked of a connection."""

    pump: Pump
    engine: Any
    loss: Any

    def on_ready(self) -> None:
        """What was there is there again: calls go on."""
        ...

    def fail(self, failure: Exception) -> None:
        """It will not come back."""
        ...


C = TypeVar("C", bound=RedialledConnection)


class RecoveryBase(ABC, Generic[C]):
    """Brings one connection back. Subclass it, with ``lost`` and ``restore``.

    Args:
        connection: which.
        dial: makes a transport, and has the server open the connection; returns where it leads.
        redial: makes the attempts.
        watchers: what happens is reported to them.

    Attributes:
        log: where losses are told.
        closed_error: the client's error for a connection that is closed; its ``may_retry`` says whether dialling again may help.
        stopped: whether it has given up, or was stopped.
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

    @classmethod
    def is_final(cls, failure: Exception) -> bool:
        """Whether dialling again would only bring the same failure again."""
        if isinstance(failure, SecurityError | LocalProtocolError):
            return True
        closed: Any = failure
        return isinstance(closed, cls.closed_error) and not closed.may_retry

    @abstractmethod
    def lost(self, reason: str, cause: BaseException | None = None) -> Exception:
        """The client's error for a connection that ended without a close."""

    @abstractmethod
    async def restore(self) -> None:
        """Have everything as it was, on the transport that there is now. Raises what keeps it from that."""

    def covers(self, loss: Exception) -> bool:
        """Whether a loss is not the end."""
        return not self.stopped and not self.is_final(loss)

    def sits_out(self, refusal: Exception) -> bool:  # noqa: ARG002
        """Whether everything is being brought back, and a part that is refused so is tried again for a while."""
        return False

    def stop(self) -> None:
        """The connection is closed here."""
        self._end(None)
        self._scope.cancel()

    def changes(self, *, attempts: bool = False) -> Changes:
        """What happens from now on."""
        return self._watchers.changes(attempts=attempts)

    async def run(self) -> None:
        """Watch over the connection until it is stopped."""
        connection = self._connection
        with self._scope:
            while not self.stopped:
                await connection.pump.finished.wait()
                loss = connection.loss or self.lost("the transport ended")
                if not self.covers(loss):
                    self._stop(loss)
                    break
                self.log.warning("the connection was lost, and will be dialled again: %s", loss)
                self._watchers.tell(Change("lost", loss))
                await self._come_back(loss)

    async def _come_back(self, loss: Exception) -> None:
        if self._attempts.lasted(trio.current_time()):
            self._attempts.end()
        try:
            url = await self._redial.again(self._dial_and_restore, loss, self._clean_up)
        except AttemptsUsedUpError as used_up:
            last = used_up.__cause__
            self._stop(
                self.lost(f"{self._attempts} to bring it back have failed, the last with: {last}", last)
            )
        except Exception as failure:
            self._stop(failure)
        else:
            self._attempts.reached(trio.current_time())
            self._connection.on_ready()
            self.log.info("the connection is back, at %s", url)
            self._watchers.tell(Change("restored", url=url))

    async def _dial_and_restore(self) -> str:
        """One attempt; where it leads."""
        url = await self._dial()
        await self.restore()
        return url

    async def _clean_up(self, failure: Exception) -> None:
        """An attempt has failed."""
        connection = self._connection
        await connection.pump.part(partial(connection.engine.close, trio.current_time()))
        if isinstance(failure, self.closed_error) and not self.is_final(failure):
            self._connection.loss = failure

    # -- the end ----------------------------------------------------------------------------

    def _stop(self, failure: Exception) -> None:
        self.log.warning("the connection is given up: %s", failure)
        self._end(failure)
        self._connection.fail(failure)

    def _end(self, failure: Exception | None) -> None:
        if not self.stopped:
            self.stopped = True
            self._watchers.tell(Change("stopped", failure))
