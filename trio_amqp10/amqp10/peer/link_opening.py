"""Open a link, or resume one with its terminus from a store (2.6.3, 2.6.5).

Knows how the block of a link is entered and left; ``sender`` and ``receiver`` describe the links.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from trio_amqp10.amqp10.engine.unsettled_state import SenderTerminus
from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode, Role
from trio_amqp10.core.errors import Condition, LocalProtocolError
from trio_amqp10.net.waiters import EnteredWithAsync

from .errors import GuaranteeNotSupportedError, LinkRefusedError
from .link import Link
from .link_options import ANONYMOUS_RELAY
from .terminus_store import LinkKey, MemoryTerminusStore, ResumableLinkState, new_terminus

if TYPE_CHECKING:
    from types import TracebackType

    from .link_carriers import LinkConnection, LinkSession
    from .link_options import LinkOptions

L = TypeVar("L", bound=Link[Any])


def check_relay(connection: LinkConnection) -> None:
    """Raise unless both ends agree on the anonymous terminus (2.7.1).

    Raises:
        LocalProtocolError: our open does not desire the capability, so it may not be used.
        GuaranteeNotSupportedError: the peer's open does not offer it.
    """
    if ANONYMOUS_RELAY not in connection.engine.local.desired_capabilities:
        raise LocalProtocolError(
            f"a sender without an address needs a connection with desired_capabilities={ANONYMOUS_RELAY!r} (2.7.1)"
        )
    if ANONYMOUS_RELAY not in connection.remote.offered_capabilities:
        raise GuaranteeNotSupportedError(
            f"{connection.remote.container_id!r} does not offer {ANONYMOUS_RELAY}: open a sender for each address, "
            "or give target=Target() to try anyway"
        )


async def recall(
    connection: LinkConnection, options: LinkOptions, name: str, role: bool
) -> ResumableLinkState:
    """Return the stored state of the link, or a new one that is stored from now on.

    Cancelled: nothing has happened.
    """
    key = LinkKey(connection.container_id, connection.remote.container_id, name, role)
    store = options.store
    if store is None:
        store = MemoryTerminusStore()
    else:
        connection.stores |= {store}
    resend = options.guarantee != "exactly-once"
    terminus = await store.open(key, lambda: new_terminus(role, resend=resend))
    return ResumableLinkState(terminus, options, store, key)


async def leave(link: Link[Any], *, failed: bool) -> None:
    """Wait for outcomes, unless the block of the link has failed; close the link.

    Cancelled: the link is closed all the same.
    """
    try:
        if not failed:
            await link.settle_up()
    finally:
        await link.aclose()


class LinkOpening(EnteredWithAsync, Generic[L]):
    """A link that is not attached yet: enter it with ``async with``.

    Entering raises ``LinkRefusedError`` if the peer refuses the link, ``GuaranteeNotSupportedError`` if its
    settle modes are weaker than the guarantee, and ``FilterNotSupportedError`` if it lacks a filter. If
    entering is cancelled, the link is detached again.
    """

    __slots__ = ("_connection", "_link", "_options", "_session")

    _role: bool

    def __init__(self, connection: LinkConnection, session: LinkSession | None, options: LinkOptions) -> None:
        self._connection = connection
        self._session = session
        self._options = options

    def _make(self, session: LinkSession, name: str) -> L:
        raise NotImplementedError

    def _check(self) -> None:
        """Raise if the peer, whose open is known, lacks a capability of the link."""

    def _covering(self, name: str) -> ResumableLinkState | None:
        """Return the state for attaching the link again after a loss, or None.

        For a link whose terminus the peer is not asked to keep.
        """
        options, connection = self._options, self._connection
        if not options.restorable:
            return None
        terminus = None
        if self._role is Role.SENDER and options.guarantee == "at-least-once":
            terminus = SenderTerminus(resend=True, offered=False)
        key = LinkKey(connection.container_id, connection.remote.container_id, name, self._role)
        return ResumableLinkState(terminus, options, MemoryTerminusStore(), key)

    async def __aenter__(self) -> L:
        await trio.lowlevel.checkpoint()
        connection = self._connection
        options = self._options
        if options.own_session is None:
            own = self._session is None and connection.isolates_links and not options.is_paired
            self._options = options = replace(options, own_session=own)
        name = options.name or connection.new_name()
        resumable = None
        if options.remembers:
            resumable = await recall(connection, options, name, self._role)
        elif connection.recovery is not None:
            resumable = self._covering(name)
        await connection.wait_recovered()
        self._check()
        session = await connection.session_to_attach(self._session, own=bool(options.own_session))
        try:
            self._link = link = self._make(session, name)
            session.opening += 1
            try:
                if resumable is not None:
                    link.bind_state(resumable)
                    if options.restorable:
                        link.cover()
                link.start(options)
                await link.attached()
                if link.needs_new_attach:
                    link.attach_again(options)
                    await link.attached()
                    link.check_complete()
                link.check_answer(options)
            except LinkRefusedError as refusal:
                link.abandon()
                if (
                    refusal.condition == Condition.NOT_IMPLEMENTED
                    and options.modes()[1] is ReceiverSettleMode.SECOND
                ):
                    # RabbitMQ refuses this settle mode with amqp:not-implemented. Other missing features have
                    # conditions of their own, so the mode must be the reason.
                    raise GuaranteeNotSupportedError(
                        f"the link {link.title}: the peer does not support guarantee={options.guarantee!r}: {refusal}"
                    ) from refusal
                raise
            except BaseException:
                link.abandon()
                raise
            finally:
                session.opening -= 1
        except BaseException:
            if options.own_session:
                session.abandon()
            raise
        return link

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        try:
            await leave(self._link, failed=kind is not None)
        finally:
            if self._options.own_session or self._link.own_session:
                await self._link.session.aclose()
