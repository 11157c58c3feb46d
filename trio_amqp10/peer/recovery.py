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
  A session that was ended while a link was being attached on it was ended over that link, as far as
  anybody can tell (RabbitMQ 4.0 does so for an address that it does not have): the others come back,
  and that one is tried again on a session apart, so that it does not take them with it again and again.

What was in doubt is settled by the termini of the links (``engine.resending``): at-least-once sends again,
exactly-once resumes with a peer that kept the link, and is in doubt with one that did not.

Errors that would only come again are final: those of security, and what ``_FINAL`` lists. After
``amqp:link:stolen`` above all: two programs would steal a link from each other for ever.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import trio

from trio_amqp10.errors import Condition, LocalProtocolError, SecurityError
from trio_amqp10.net.waiting import Waiter

from .changes import Change, Changes
from .errors import ConnectionClosedError, LinkDetachedError, describe
from .sole import is_superseded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator

    from trio_amqp10.net.backoff import Backoff
    from trio_amqp10.spec.transport import Error

    from .connection import Connection
    from .link import Link
    from .session import Session

__all__ = ["Recovery", "is_final", "is_final_loss", "lost_with"]

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


def is_final(error: Error | None) -> bool:
    """Whether trying again would only bring the same error again."""
    return error is not None and (str(error.condition) in _FINAL or is_superseded(error))


class _Mending:
    """Attempts in a row to attach one link.

    Attributes:
        row: the pauses before them.
        pause: the last one, in seconds.
        since: when the last of them was answered; None if it was not.
    """

    __slots__ = ("pause", "row", "since")

    def __init__(self, row: Iterator[float]) -> None:
        self.row = row
        self.pause = 0.0
        self.since: float | None = None


class Recovery:
    """Brings a connection back for as long as that makes sense.

    Args:
        connection: which.
        dial: makes it anew, and returns where it leads; raises what kept it from that.
        backoff: how often to try.
        goes_on: whether the peer's reason to close was that it wants to be dialled elsewhere, which ``dial`` then does.

    Attributes:
        stopped: whether it has given up, or has been told to.
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
        self._row: Iterator[float] | None = None
        self._pause = 0.0
        self._since = trio.current_time()
        self._mending: dict[Link[Any], _Mending] = {}
        self._scopes: set[trio.CancelScope] = set()
        self._scope = trio.CancelScope(shield=True)
        self._bell = Waiter()
        self._watchers: WeakSet[Changes] = WeakSet()
        self._preparations: list[Callable[[], Awaitable[object]]] = []
        self._preparing: trio.lowlevel.Task | None = None
        self._up = True
        self.stopped = False
        self.failure: Exception | None = None
        self.loss: Exception | None = None
        self.links: dict[Link[Any], None] = {}
        self.sessions: dict[Session, None] = {}

    # -- told by the connection -------------------------------------------------------------

    def answered(self, link: Link[Any]) -> None:
        """An attach was answered: the peer is well, and the next pause is a short one again."""
        self._row = None
        mending = self._mending.get(link)
        if mending is not None:
            mending.since = trio.current_time()

    def damaged(self, link: Link[Any]) -> None:
        """The peer ended this link, and it is to be attached again.

        A peer that takes each attach and ends the link at once is no better than one that refuses:
        the pauses grow on, until the link has lasted longer than the pause before it.
        """
        mending = self._mending.get(link)
        if mending is None or (
            mending.since is not None and trio.current_time() - mending.since > mending.pause
        ):
            mending = self._mending[link] = _Mending(self._backoff.pauses())
        mending.since = None
        self._connection.start_soon(self._mend, link, mending)

    def forget_link(self, link: Link[Any]) -> None:
        """It is over, and not to be attached again."""
        self.links.pop(link, None)
        self._mending.pop(link, None)

    def forget_session(self, session: Session) -> None:
        """It is over, and not to be begun again."""
        self.sessions.pop(session, None)

    def stop(self) -> None:
        """The connection is closed here: nothing is brought back any more."""
        if not self.stopped:
            self.stopped = True
            for scope in (self._scope, *self._scopes):
                scope.cancel()
            self._tell(Change("stopped", self.failure))
            self._bell.wake()

    @property
    def down(self) -> bool:
        """Whether there is no peer at present, or its links are not due to be attached yet."""
        return not self._up or self._connection.is_gone

    async def until_up(self) -> None:
        """Wait until there is a peer, or there will not be one any more. Cancelled: nothing has happened."""
        await trio.lowlevel.checkpoint()
        while self.down and not self.stopped:
            if self._preparing is trio.lowlevel.current_task() and not self._connection.is_gone:
                return
            await self._bell.wait()

    @contextmanager
    def restore_with(self, call: Callable[[], Awaitable[object]]) -> Generator[None]:
        """See ``Connection.restore_with``."""
        self._preparations.append(call)
        try:
            yield
        finally:
            self._preparations.remove(call)

    # -- the connection ---------------------------------------------------------------------

    async def run(self) -> None:
        """Watch over the connection until it is stopped."""
        connection = self._connection
        with self._scope:
            while not self.stopped:
                await connection.pump.finished.wait()
                if connection.closed_here:
                    break
                self.loss = connection.lost_to()
                if is_final_loss(self.loss) and not self._follows(self.loss):
                    break
                self._up = False
                if not self.links and trio.current_time() - self._since > self._pause:
                    self._row = None  # with no attach to be answered, to have lasted is as good
                _log.info("%r was lost, and will be dialled again: %s", connection, self.loss)
                for link in list(self.links):
                    link.on_lost()
                self._tell(Change("lost", self.loss))
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
            if self._row is None:
                self._row = self._backoff.pauses()
            pause = next(self._row, None)
            if pause is None:
                self._give_up(self._exhausted())
                return
            self._pause = pause
            await trio.sleep(pause)
            try:
                url = await self._dial()
                self._begin_sessions()
                await self._prepare()
            except Exception as failure:
                if is_final_loss(failure):
                    await self._hang_up()
                    self._give_up(failure)
                    return
                _log.info("%r could not be brought back: %s", self._connection, failure)
                self.loss = failure
                await self._hang_up()
            else:
                self._restore(url)
                return

    async def _hang_up(self) -> None:
        """What was dialled is of no use after all, or did not come to be."""
        pump = self._connection.pump
        pump.cancel()
        await pump.finished.wait()

    def _begin_sessions(self) -> None:
        for session in list(self.sessions):
            session.begin_anew()

    async def _prepare(self) -> None:
        """Have done what is to be done before links are attached; stops where the peer is lost again."""
        connection = self._connection
        if not self._preparations:
            return
        failure: Exception | None = None

        async def give_up_with_the_peer() -> None:
            await connection.pump.finished.wait()
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(give_up_with_the_peer)
            self._preparing = trio.lowlevel.current_task()
            try:
                for call in list(self._preparations):
                    await call()
            except Exception as raised:  # kept, or it would come out of the nursery in a group
                failure = raised
            finally:
                self._preparing = None
            nursery.cancel_scope.cancel()
        if connection.is_gone:
            raise connection.lost_to()
        if failure is not None:
            raise failure

    def _restore(self, url: str) -> None:
        """There is a peer again, with the sessions that there were: attach all links."""
        self._up = True
        self._since = trio.current_time()
        for link in list(self.links):
            self._attach(link)
        _log.info("%r is back, at %s", self._connection, url)
        self._tell(Change("restored", url=url))
        self._bell.wake()
        self._connection.wake_everybody()

    def _attach(self, link: Link[Any]) -> None:
        try:
            session = link.session
            if session.is_over:
                session = self._connection.session_for(None, own=link.own_session)
            link.attach_to(session)
        except Exception as failure:
            _log.warning("%r could not be attached again: %s", link, failure)
            gone = LinkDetachedError(f"link {link.name!r} could not be attached again: {failure}")
            gone.__cause__ = failure
            link.give_up(gone)

    def _exhausted(self) -> ConnectionClosedError:
        """Why no more is tried; what was tried last may be an error of the system, which is none of ours."""
        gone = ConnectionClosedError(
            f"the connection was lost, and {self._backoff.attempts} attempts to bring it back have failed: {self.loss}",
            getattr(self.loss, "error", None),
        )
        gone.__cause__ = self.loss
        return gone

    def _give_up(self, failure: Exception) -> None:
        _log.info("%r is given up: %s", self._connection, failure)
        self.failure = failure
        self.stopped = True
        self._tell(Change("stopped", failure))
        self._bell.wake()

    # -- one link ---------------------------------------------------------------------------

    async def _mend(self, link: Link[Any], mending: _Mending) -> None:
        """Attach again what the peer detached, unless all of the connection comes back meanwhile."""
        pause = next(mending.row, None)
        if pause is None:
            link.give_up(None)
            return
        mending.pause = pause
        with trio.CancelScope(shield=True) as scope:
            if self.stopped:
                return
            self._scopes.add(scope)
            try:
                await trio.sleep(pause)
            finally:
                self._scopes.discard(scope)
        if link.is_suspended and not self.down:
            self._attach(link)

    # -- who wants to know ------------------------------------------------------------------

    def changes(self) -> Changes:
        """What happens from now on."""
        watcher = Changes(ended=self.stopped)
        self._watchers.add(watcher)
        return watcher

    def _tell(self, change: Change) -> None:
        for watcher in list(self._watchers):
            watcher.add(change)


def is_final_loss(failure: Exception) -> bool:
    """Whether dialling again would only bring the same failure again."""
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
