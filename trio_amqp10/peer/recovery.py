"""A connection that comes back by itself, with its sessions and links (2.4, 2.6.5).

What is covered
---------------

A ``Recovery`` belongs to a connection that was dialled with ``reconnect``. While it has not given up,
nothing that the loss of a transport ended is over: whoever waits, waits on; whoever begins something,
waits until there is a peer again. What the user closed stays closed, and a link that the peer detached
without an error has ended.

* The transport is lost, or the peer closes: dial again, the next URL of the list each time, with
  pauses that grow (``Backoff``); then begin every session, and attach every link, under its old name.
* The peer detaches one link, or ends one session, with an error that may pass: the same for these alone.

What was in doubt is settled by the termini of the links (``engine.resending``): at-least-once sends again,
exactly-once resumes with a peer that kept the link, and is in doubt with one that did not.

Errors that would only come again are final: those of security, and what ``_FINAL`` lists. After
``amqp:link:stolen`` above all: two programs would steal a link from each other for ever.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import trio

from trio_amqp10.errors import Condition, LocalProtocolError, SecurityError

from .errors import ConnectionClosedError, describe
from .sole import is_superseded
from .waiting import Waiter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from trio_amqp10.spec.transport import Error

    from .connection import Connection
    from .link import Link
    from .session import Session

__all__ = ["Backoff", "Change", "Changes", "Recovery", "is_final"]

_log = logging.getLogger("trio_amqp10.recovery")

_FINAL: Final = frozenset(
    str(condition.value)
    for condition in (
        Condition.STOLEN,
        Condition.UNAUTHORIZED_ACCESS,
        Condition.NOT_ALLOWED,
        Condition.NOT_IMPLEMENTED,
        Condition.INVALID_FIELD,
        Condition.CONNECTION_REDIRECT,
        Condition.LINK_REDIRECT,
        Condition.MESSAGE_SIZE_EXCEEDED,
        Condition.PRECONDITION_FAILED,
        Condition.RESOURCE_DELETED,
    )
)

_CHANGES: Final = 100
"""Changes that wait for who iterates over them; the oldest are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses between attempts, in seconds: ``initial``, then each ``factor`` times the one before, up to ``maximum``.

    Attributes:
        jitter: take a random part of each, between half of it and all, so that many clients do not come at once.
        attempts: in a row, before it is given up; None for any number.

    Raises:
        LocalProtocolError: pauses that are none.
    """

    initial: float = 0.1
    factor: float = 2.0
    maximum: float = 30.0
    jitter: bool = True
    attempts: int | None = None

    def __post_init__(self) -> None:
        if self.initial < 0 or self.factor < 1 or self.maximum < self.initial:
            raise LocalProtocolError(
                f"{self!r}: initial >= 0, factor >= 1 and maximum >= initial are possible"
            )

    def pauses(self) -> Iterator[float]:
        """Before each attempt of a row, the first included."""
        pause = self.initial
        made = 0
        while self.attempts is None or made < self.attempts:
            yield pause * random.uniform(0.5, 1) if self.jitter else pause
            pause = min(pause * self.factor, self.maximum)
            made += 1


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a connection that comes back.

    Attributes:
        kind: ``"lost"``, ``"restored"``, or ``"stopped"`` for good.
        reason: why it was lost or stopped; None where it was restored or closed here.
        url: where it leads now, once restored.
    """

    kind: Literal["lost", "restored", "stopped"]
    reason: Exception | None = None
    url: str | None = None


def is_final(error: Error | None) -> bool:
    """Whether trying again would only bring the same error again."""
    return error is not None and (str(error.condition) in _FINAL or is_superseded(error))


class Recovery:
    """Brings a connection back for as long as that makes sense.

    Args:
        connection: which.
        dial: makes it anew, and returns where it leads; raises what kept it from that.
        backoff: how often to try.
        goes_on: whether the peer's reason to close was that it wants to be dialled elsewhere, which ``dial`` then does.

    Attributes:
        stopped: whether it has given up, or has been told to.
        down: whether there is no peer at present.
        failure: why it has given up, or None.
        loss: why the connection was lost last, or None.
        links: those to attach again.
        sessions: those to begin again.
    """

    def __init__(
        self,
        connection: Connection,
        dial: Callable[[], Awaitable[str]],
        backoff: Backoff,
        goes_on: Callable[[Exception], bool],
    ) -> None:
        self._connection = connection
        self._dial = dial
        self._goes_on = goes_on
        self._backoff = backoff
        self._pauses: Iterator[float] | None = None
        self._mending: dict[Link[Any], Iterator[float]] = {}
        self._scopes: set[trio.CancelScope] = set()
        self._scope = trio.CancelScope(shield=True)
        self._bell = Waiter()
        self._watchers: list[Changes] = []
        self.stopped = False
        self.down = False
        self.failure: Exception | None = None
        self.loss: Exception | None = None
        self.links: dict[Link[Any], None] = {}
        self.sessions: dict[Session, None] = {}

    # -- told by the connection -------------------------------------------------------------

    def answered(self, link: Link[Any]) -> None:
        """An attach was answered: the peer is well, and the next pause is a short one again."""
        self._pauses = None
        self._mending.pop(link, None)

    def damaged(self, link: Link[Any]) -> None:
        """The peer ended this link, and it is to be attached again."""
        pauses = self._mending.setdefault(link, self._backoff.pauses())
        self._connection.start_soon(self._mend, link, pauses)

    def stop(self) -> None:
        """The connection is closed here: nothing is brought back any more."""
        if not self.stopped:
            self.stopped = True
            for scope in (self._scope, *self._scopes):
                scope.cancel()
            self._tell(Change("stopped", self.failure))

    async def until_up(self) -> None:
        """Wait until there is a peer, or there will not be one any more. Cancelled: nothing has happened."""
        while (self.down or self._connection.is_gone) and not self.stopped:
            await self._bell.wait()

    # -- the connection ---------------------------------------------------------------------

    async def run(self) -> None:
        """Watch over the connection until it is stopped."""
        connection = self._connection
        with self._scope:
            while not self.stopped:
                await connection.pump.finished.wait()
                if connection.closed_here:
                    break
                self.loss = connection.loss() or ConnectionClosedError("the peer closed the connection")
                if _is_final_loss(self.loss) and not self._follows(self.loss):
                    break
                self.down = True
                self._tell(Change("lost", self.loss))
                _log.info("%r was lost, and will be dialled again: %s", connection, self.loss)
                await self._come_back()
        connection.wake_everybody()

    def _follows(self, loss: Exception) -> bool:
        """Whether there is somewhere to go on, in spite of a loss that is final here; gives up if not."""
        failure = loss
        try:
            if self._goes_on(loss):
                return True
        except (SecurityError, LocalProtocolError) as refusal:
            failure = refusal
        self._give_up(failure)
        return False

    async def _come_back(self) -> None:
        while not self.stopped:
            if self._pauses is None:
                self._pauses = self._backoff.pauses()
            pause = next(self._pauses, None)
            if pause is None:
                self._give_up(self.loss)
                return
            await trio.sleep(pause)
            try:
                url = await self._dial()
            except Exception as failure:
                if _is_final_loss(failure):
                    self._give_up(failure)
                    return
                _log.debug("%r could not be dialled: %s", self._connection, failure)
                self.loss = failure
            else:
                self._restore(url)
                return

    def _restore(self, url: str) -> None:
        """There is a peer again: begin and attach all that there was."""
        self.down = False
        for session in list(self.sessions):
            if session.is_over:
                del self.sessions[session]
            else:
                session.begin_anew()
        for link in list(self.links):
            self._attach(link)
        if not self.links:
            self._pauses = None
        _log.info("%r is back, at %s", self._connection, url)
        self._tell(Change("restored", url=url))
        self._bell.wake()
        self._connection.wake_everybody()

    def _attach(self, link: Link[Any]) -> None:
        if link.closed_here:
            self.links.pop(link, None)
            return
        session = link.session
        if session.is_over:
            session = self._connection.session_for(None, own=link.own_session)
        try:
            link.attach_to(session)
        except Exception as failure:
            _log.warning("%r could not be attached again: %s", link, failure)
            link.give_up(failure)

    def _give_up(self, failure: Exception | None) -> None:
        _log.info("%r is given up: %s", self._connection, failure)
        self.failure = failure
        self.stopped = True
        self.down = False
        self._tell(Change("stopped", failure))
        self._bell.wake()

    # -- one link ---------------------------------------------------------------------------

    async def _mend(self, link: Link[Any], pauses: Iterator[float]) -> None:
        """Attach again what the peer detached, unless all of the connection comes back meanwhile."""
        pause = next(pauses, None)
        if pause is None:
            link.give_up(None)
            return
        with trio.CancelScope(shield=True) as scope:
            self._scopes.add(scope)
            await trio.sleep(pause)
        self._scopes.discard(scope)
        if link.is_suspended and not self.down:
            self._attach(link)

    # -- who wants to know ------------------------------------------------------------------

    def changes(self) -> Changes:
        """What happens from now on."""
        watcher = Changes(self)
        self._watchers.append(watcher)
        return watcher

    def forget(self, watcher: Changes) -> None:
        """It is not read any more."""
        self._watchers.remove(watcher)

    def _tell(self, change: Change) -> None:
        for watcher in self._watchers:
            watcher.add(change)


class Changes:
    """Iterates over what happens to a connection; ends with the connection."""

    def __init__(self, recovery: Recovery) -> None:
        self._recovery = recovery
        self._changes: deque[Change] = deque(maxlen=_CHANGES)
        self._waiter = Waiter()
        self._ended = recovery.stopped

    def add(self, change: Change) -> None:
        """One more."""
        self._changes.append(change)
        self._waiter.wake()

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Change:
        """The next change. Cancelled: none is lost."""
        await trio.lowlevel.checkpoint()
        while not self._changes:
            if self._ended:
                raise StopAsyncIteration
            await self._waiter.wait()
        change = self._changes.popleft()
        self._ended = change.kind == "stopped"
        return change


def _is_final_loss(failure: Exception) -> bool:
    if isinstance(failure, SecurityError | LocalProtocolError):
        return True
    return isinstance(failure, ConnectionClosedError) and is_final(failure.error)


def lost_with(loss: Exception | None, what: str) -> ConnectionClosedError:
    """The exception for something that the loss of a connection ended, though the connection came back."""
    error = getattr(loss, "error", None)
    why = describe(error) if error is not None else str(loss or "the connection was lost")
    gone = ConnectionClosedError(f"{what}: {why}", error)
    gone.__cause__ = loss
    return gone
