"""Restore a lost connection with its sessions and links (2.4, 2.6.5).

What is restored
----------------

A ``Recovery`` belongs to a connection that was dialled with ``reconnect``. Until it gives up, the loss of a
transport ends nothing: waiting tasks go on waiting, and new calls wait until there is a peer again. Objects
that the user closed stay closed, and a link that the peer detached without an error has ended.

* If the transport is lost, or the peer closes the connection: dial again, the next URL of the list at each
  attempt, with growing pauses (``Backoff``). Then begin every session, and attach every link under its old
  name.
* If the peer detaches a link, or ends a session, with an error that may pass: the same for these alone. If a
  link was being attached when its session was ended, that link is probably the reason (RabbitMQ 4.0 ends the
  session for an unknown address). The other links are attached again; that link is tried again on a session
  of its own, so that it does not end the others each time.

Deliveries in doubt are resolved by the termini of the links (``engine.sender_resume``): at-least-once sends
them again, exactly-once resumes with a peer that kept the link, and is in doubt with a peer that did not.

Errors that another attempt would only repeat are final: errors of security, and those of ``errors.is_final``.
The most important is ``amqp:link:stolen``: two programs would steal a link from each other without end.
"""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import trio

from trio_amqp10.core.errors import LocalProtocolError, SecurityError
from trio_amqp10.net.backoff import Attempts
from trio_amqp10.net.recovery_base import RecoveryBase, RedialledConnection
from trio_amqp10.net.waiters import Waiter

from .errors import ConnectionClosedError, LinkDetachedError, SessionEndedError, is_final_loss

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from trio_amqp10.net.backoff import Backoff
    from trio_amqp10.net.recovery_events import Watchers
    from trio_amqp10.net.redial import Redial

    from .link import Link
    from .link_carriers import LinkSession


class RecoverableConnection(RedialledConnection, Protocol):
    """The part of a connection that its recovery uses; see ``Connection``."""

    @property
    def is_gone(self) -> bool:
        """Whether the transport, or the peer on it, cannot be used any more."""
        ...

    async def session_to_attach(self, session: Any, *, own: bool) -> LinkSession:
        """Return the session to attach a link to; see ``Connection``."""
        ...

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run a task for as long as the connection lasts."""
        ...

    def wake_everybody(self) -> None:
        """Wake every task that waits for the connection, a session or a link."""
        ...


class Recovery(RecoveryBase[RecoverableConnection]):
    """Restores a connection after each loss, until it gives up.

    Args:
        connection: the connection.
        dial: dials the peer and binds the connection; returns the place, or raises the reason of a failure.
        redial: makes the attempts.
        watchers: the observers of all changes.
        backoff: the pauses between attempts to attach a link.
        goes_on: whether the peer's close redirects the connection to a place that ``dial`` then uses.

    Attributes:
        loss: the reason of the last loss, or None.
        links: the links to attach again.
        sessions: the sessions to begin again.
    """

    log: ClassVar[logging.Logger] = logging.getLogger("trio_amqp10.recovery")

    def __init__(
        self,
        connection: RecoverableConnection,
        dial: Callable[[], Awaitable[str]],
        redial: Redial,
        watchers: Watchers,
        *,
        backoff: Backoff,
        goes_on: Callable[[Exception], bool],
    ) -> None:
        super().__init__(connection, dial, redial, watchers)
        self._goes_on = goes_on
        self._backoff = backoff
        self._mending: dict[Link[Any], Attempts] = {}
        self._scopes: set[trio.CancelScope] = set()
        self._bell = Waiter()
        self._preparations: list[Callable[[], Awaitable[object]]] = []
        self._preparing: trio.lowlevel.Task | None = None
        self._up = True
        self.loss: Exception | None = None
        self.links: dict[Link[Any], None] = {}
        self.sessions: dict[LinkSession, None] = {}

    # -- from the connection ----------------------------------------------------------------

    def answered(self, link: Link[Any]) -> None:
        """Note that an attach was answered.

        The peer works again, so the next pause is a short one.
        """
        self._attempts.end()
        mending = self._mending.get(link)
        if mending is not None:
            mending.reached(trio.current_time())

    def damaged(self, link: Link[Any]) -> None:
        """Attach a link again that the peer has ended.

        If a peer accepts each attach and ends the link at once, it is treated like a peer that refuses it:
        the pauses grow until the link has lasted longer than the last pause.
        """
        mending = self._mending.get(link)
        if mending is None or mending.lasted(trio.current_time()):
            mending = self._mending[link] = Attempts(self._backoff)
        self._connection.start_soon(self._mend, link, mending)

    def forget_link(self, link: Link[Any]) -> None:
        """Do not attach this link again: it is over."""
        self.links.pop(link, None)
        self._mending.pop(link, None)

    def forget_session(self, session: LinkSession) -> None:
        """Do not begin this session again: it is over."""
        self.sessions.pop(session, None)

    def stop(self) -> None:
        """Stop restoring: the connection is closed by this end."""
        super().stop()
        for scope in self._scopes:
            scope.cancel()
        self._connection.wake_everybody()

    @property
    def down(self) -> bool:
        """Whether there is no peer at present, or its links may not be attached yet."""
        return not self._up or self._connection.is_gone

    async def wait_recovered(self) -> None:
        """Wait until the connection is restored, or has failed for good.

        Cancelled: nothing has happened.
        """
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

    @classmethod
    def is_final(cls, failure: Exception) -> bool:
        return is_final_loss(failure)

    def end_for(self, loss: Exception) -> Exception | None:
        """Return the error that ends the connection after ``loss``; None to go on.

        A final loss does not end the connection if it is a redirect that can be followed.
        """
        self.loss = loss
        try:
            return None if self.covers(loss) or self._goes_on(loss) else loss
        except (SecurityError, LocalProtocolError) as refusal:
            return refusal

    def on_lost(self, loss: Exception) -> None:
        self._up = False
        if not self.links:
            # Without links no attach is answered, so the time that the connection lasted decides about the next pause.
            super().on_lost(loss)
        for link in list(self.links):
            link.on_lost()

    def passed(self, loss: Exception) -> None:
        self.loss = loss

    async def restore(self) -> None:
        for session in list(self.sessions):
            session.begin_again()
        await self._prepare()

    async def _prepare(self) -> None:
        """Await all that must happen before links are attached.

        These are the peer's begins of sessions with several links, and the calls of ``restore_with``.

        Stop if the peer is lost again meanwhile.
        """
        connection = self._connection
        # Only the first link of a session may attach before the peer's begin, which has the highest handle (2.7.2).
        attached = Counter(link.session for link in self.links)
        begins: list[Callable[[], Awaitable[object]]] = [
            partial(_begun, session) for session in self.sessions if attached[session] > 1
        ]
        if not (begins or self._preparations):
            return
        failure: Exception | None = None

        async def stop_when_the_peer_is_lost() -> None:
            await connection.pump.finished.wait()
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop_when_the_peer_is_lost)
            self._preparing = trio.lowlevel.current_task()
            try:
                for call in (*begins, *self._preparations):
                    await call()
            except Exception as raised:  # raised after the nursery, which would wrap it in a group
                failure = raised
            finally:
                self._preparing = None
            nursery.cancel_scope.cancel()
        if connection.is_gone:
            raise connection.lost_to()
        if failure is not None:
            raise failure

    def on_restored(self) -> None:
        """Attach all links: there is a peer again, and the sessions are begun."""
        self._up = True
        for link in list(self.links):
            self._attach(link)
        self._bell.wake()
        super().on_restored()

    def _attach(self, link: Link[Any]) -> None:
        session = link.session
        if session.is_over or not session.engine.has_free_handle:
            self._connection.start_soon(self._attach_elsewhere, link)
        else:
            self._attach_to(link, session)

    async def _attach_elsewhere(self, link: Link[Any]) -> None:
        """Attach a link that its session has no place for any more."""
        try:
            session = await self._connection.session_to_attach(None, own=link.own_session)
        except Exception as failure:
            if not (
                self.down or self.stopped
            ):  # otherwise the next restore attaches it, or recovery has ended
                self._give_up(link, failure)
            return
        if link.is_suspended and not self.down:
            self._attach_to(link, session)

    def _attach_to(self, link: Link[Any], session: LinkSession) -> None:
        try:
            link.attach_to(session)
        except Exception as failure:
            self._give_up(link, failure)

    def _give_up(self, link: Link[Any], failure: Exception) -> None:
        self.log.warning("%r could not be attached again: %s", link, failure)
        gone = LinkDetachedError(f"the link {link.title} could not be attached again: {failure}")
        gone.__cause__ = failure
        link.stop_recovery(gone)

    def exhausted(self, last: BaseException | None) -> ConnectionClosedError:
        """Return the error after the last attempt has failed.

        ``last`` may be an error of the operating system.
        """
        gone = ConnectionClosedError(
            f"the connection was lost, and {self._attempts} to bring it back have failed: {last}",
            getattr(last, "error", None),
        )
        gone.__cause__ = last
        return gone

    def _end(self, failure: Exception | None) -> None:
        super()._end(failure)
        self._bell.wake()

    # -- one link ---------------------------------------------------------------------------

    async def _mend(self, link: Link[Any], mending: Attempts) -> None:
        """Attach one link again, unless all of the connection is restored meanwhile."""
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


async def _begun(session: LinkSession) -> None:
    with suppress(SessionEndedError):  # Its links are attached on other sessions.
        await session.begun()
