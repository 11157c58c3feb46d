"""Bring back a lost connection with its sessions and links (2.4, 2.6.5).

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

What was in doubt is settled by the termini of the links (``engine.sender_resume``): at-least-once sends again,
exactly-once resumes with a peer that kept the link, and is in doubt with one that did not.

Errors that would only come again are final: those of security, and those that ``errors.is_final`` lists. After
``amqp:link:stolen`` above all: two programs would steal a link from each other for ever.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from trio_amqp10.errors import LocalProtocolError, SecurityError
from trio_amqp10.net.backoff import Attempts
from trio_amqp10.net.redial import AttemptsUsedUpError
from trio_amqp10.net.waiters import Waiter

from .errors import ConnectionClosedError, LinkDetachedError, is_final_loss
from .recovery_events import Change

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from trio_amqp10.net.backoff import Backoff
    from trio_amqp10.net.pump import Pump
    from trio_amqp10.net.redial import Redial

    from .link import Link
    from .link_carriers import LinkSession
    from .recovery_events import Changes, Watchers

__all__ = ["Recovery", "log"]

log: Final = logging.getLogger("trio_amqp10.recovery")


class RecoverableConnection(Protocol):
    """A connection, as its recovery uses it; see ``Connection``."""

    @property
    def pump(self) -> Pump:
        """What drives its present transport."""
        ...

    @property
    def closed_here(self) -> bool:
        """Whether this end has closed it."""
        ...

    @property
    def is_gone(self) -> bool:
        """Whether the transport, or the peer on it, is of no use any more."""
        ...

    async def hang_up(self) -> None:
        """As ``Connection.hang_up``."""
        ...

    def lost_to(self) -> Exception:
        """Why the last transport is gone."""
        ...

    def session_for(self, session: Any, *, own: bool) -> LinkSession:
        """The session for a new attachment of a link."""
        ...

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run a task beside the connection."""
        ...

    def wake_everybody(self) -> None:
        """Wake every task that waits for the connection, a session or a link."""
        ...


class Recovery:
    """Brings a connection back for as long as that makes sense.

    Args:
        connection: which.
        dial: makes it anew, and returns where it leads; raises what kept it from that.
        redial: makes the attempts.
        backoff: how often to try to attach a link.
        goes_on: whether the peer's reason to close was that it wants to be dialled elsewhere, which ``dial`` then does.
        watchers: what happens is reported to them.

    Attributes:
        stopped: whether it has given up, or has been told to.
        failure: why it has given up, or None.
        loss: why the connection was lost last, or None.
        links: those to attach again.
        sessions: those to begin again.
    """

    def __init__(
        self,
        connection: RecoverableConnection,
        dial: Callable[[], Awaitable[str]],
        redial: Redial,
        backoff: Backoff,
        goes_on: Callable[[Exception], bool],
        watchers: Watchers,
    ) -> None:
        assert redial.attempts is not None
        self._connection = connection
        self._dial = dial
        self._redial = redial
        self._attempts = redial.attempts
        self._goes_on = goes_on
        self._backoff = backoff
        self._mending: dict[Link[Any], Attempts] = {}
        self._scopes: set[trio.CancelScope] = set()
        self._scope = trio.CancelScope(shield=True)
        self._bell = Waiter()
        self._watchers = watchers
        self._preparations: list[Callable[[], Awaitable[object]]] = []
        self._preparing: trio.lowlevel.Task | None = None
        self._up = True
        self.stopped: bool = False
        self.failure: Exception | None = None
        self.loss: Exception | None = None
        self.links: dict[Link[Any], None] = {}
        self.sessions: dict[LinkSession, None] = {}

    # -- told by the connection -------------------------------------------------------------

    def answered(self, link: Link[Any]) -> None:
        """An attach was answered: the peer is well, and the next pause is a short one again."""
        self._attempts.end()
        mending = self._mending.get(link)
        if mending is not None:
            mending.reached(trio.current_time())

    def damaged(self, link: Link[Any]) -> None:
        """The peer ended this link, and it is to be attached again.

        A peer that takes each attach and ends the link at once is no better than one that refuses:
        the pauses grow on, until the link has lasted longer than the pause before it.
        """
        mending = self._mending.get(link)
        if mending is None or mending.lasted(trio.current_time()):
            mending = self._mending[link] = Attempts(self._backoff)
        self._connection.start_soon(self._mend, link, mending)

    def forget_link(self, link: Link[Any]) -> None:
        """It is over, and not to be attached again."""
        self.links.pop(link, None)
        self._mending.pop(link, None)

    def forget_session(self, session: LinkSession) -> None:
        """It is over, and not to be begun again."""
        self.sessions.pop(session, None)

    def stop(self) -> None:
        """The connection is closed here: nothing is brought back any more."""
        if not self.stopped:
            self.stopped = True
            for scope in (self._scope, *self._scopes):
                scope.cancel()
            self._watchers.tell(Change("stopped", self.failure))
            self._bell.wake()

    @property
    def down(self) -> bool:
        """Whether there is no peer at present, or its links are not due to be attached yet."""
        return not self._up or self._connection.is_gone

    async def wait_recovered(self) -> None:
        """Wait until there is a peer, or there will not be one any more. Cancelled: nothing has happened."""
        await trio.lowlevel.checkpoint()
        while self.down and not self.stopped:
            if self._preparing is trio.lowlevel.current_task() and not self._connection.is_gone:
                return
            await self._bell.wait()

    def changes(self, *, attempts: bool = False) -> Changes:
        """What happens from now on."""
        return self._watchers.changes(attempts=attempts)

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
                if not self.links and self._attempts.lasted(trio.current_time()):
                    self._attempts.end()  # with no attach to be answered, to have lasted is as good
                log.warning("%r was lost, and will be dialled again: %s", connection, self.loss)
                for link in list(self.links):
                    link.on_lost()
                self._watchers.tell(Change("lost", self.loss))
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
        self._stop(failure)
        return False

    async def _come_back(self) -> None:
        try:
            url = await self._redial.again(self._dial_and_prepare, self.loss or Exception(), self._clean_up)
        except AttemptsUsedUpError as used_up:
            self._stop(self._exhausted(used_up.__cause__))
        except Exception as failure:
            self._stop(failure)
        else:
            self._restore(url)

    async def _dial_and_prepare(self) -> str:
        """One attempt; where it leads."""
        url = await self._dial()
        self._begin_sessions()
        await self._prepare()
        return url

    async def _clean_up(self, failure: Exception) -> None:
        """An attempt has failed."""
        if not is_final_loss(failure):
            self.loss = failure
        await self._hang_up()

    async def _hang_up(self) -> None:
        """What was dialled is of no use after all, or did not come to be."""
        await self._connection.hang_up()

    def _begin_sessions(self) -> None:
        for session in list(self.sessions):
            session.begin_anew()

    async def _prepare(self) -> None:
        """Have done what is to be done before links are attached; stops where the peer is lost again."""
        connection = self._connection
        if not self._preparations:
            return
        failure: Exception | None = None

        async def stop_when_the_peer_is_lost() -> None:
            await connection.pump.finished.wait()
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop_when_the_peer_is_lost)
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
        self._attempts.reached(trio.current_time())
        for link in list(self.links):
            self._attach(link)
        log.info("%r is back, at %s", self._connection, url)
        self._watchers.tell(Change("restored", url=url))
        self._bell.wake()
        self._connection.wake_everybody()

    def _attach(self, link: Link[Any]) -> None:
        try:
            session = link.session
            if session.is_over:
                session = self._connection.session_for(None, own=link.own_session)
            link.attach_to(session)
        except Exception as failure:
            log.warning("%r could not be attached again: %s", link, failure)
            gone = LinkDetachedError(f"link {link.name!r} could not be attached again: {failure}")
            gone.__cause__ = failure
            link.stop_recovery(gone)

    def _exhausted(self, last: BaseException | None) -> ConnectionClosedError:
        """Why no more is tried; what was tried last may be an error of the system, which is none of ours."""
        gone = ConnectionClosedError(
            f"the connection was lost, and {self._attempts} to bring it back have failed: {last}",
            getattr(last, "error", None),
        )
        gone.__cause__ = last
        return gone

    def _stop(self, failure: Exception) -> None:
        log.warning("%r is given up: %s", self._connection, failure)
        self.failure = failure
        self.stopped = True
        self._watchers.tell(Change("stopped", failure))
        self._bell.wake()

    # -- one link ---------------------------------------------------------------------------

    async def _mend(self, link: Link[Any], mending: Attempts) -> None:
        """Attach again what the peer detached, unless all of the connection comes back meanwhile."""
        pause = mending.next_pause(trio.current_time())
        if pause is None:
            link.stop_recovery(None)
            return
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
