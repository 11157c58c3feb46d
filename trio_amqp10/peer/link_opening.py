"""Open a link, or resume one with its terminus from a store (2.6.3, 2.6.5).

Knows how a block is entered and left; what a link can do is told in ``sender`` and ``receiver``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from trio_amqp10.engine.unsettled_state import SenderTerminus
from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.net.waiters import EnteredWithAsync
from trio_amqp10.spec.transport import ReceiverSettleMode, Role

from .errors import GuaranteeNotSupportedError, LinkRefusedError
from .link import Link
from .link_options import ANONYMOUS_RELAY
from .terminus_store import LinkKey, MemoryTerminusStore, ResumableLinkState, new_terminus

if TYPE_CHECKING:
    from types import TracebackType

    from .link_carriers import LinkConnection, LinkSession
    from .link_options import LinkOptions

__all__ = ["LinkOpening", "check_relay", "recall"]

L = TypeVar("L", bound=Link[Any])


def check_relay(connection: LinkConnection) -> None:
    """Refuse to open a link without an address where the two ends have not agreed on the anonymous terminus.

    Raises:
        LocalProtocolError: our open did not desire the capability, and who has not may not use it (2.7.1).
        GuaranteeNotSupportedError: the peer's open does not offer it.
    """
    if ANONYMOUS_RELAY not in connection.engine.local.desired_capabilities:
        raise LocalProtocolError(
            f"a sender without an address needs desired_capabilities={ANONYMOUS_RELAY!r} in our open (2.7.1)"
        )
    if ANONYMOUS_RELAY not in connection.remote.offered_capabilities:
        raise GuaranteeNotSupportedError(
            f"{connection.remote.container_id!r} does not offer {ANONYMOUS_RELAY}: open a sender for each address, "
            "or give target=Target() to try all the same"
        )


async def recall(
    connection: LinkConnection, options: LinkOptions, name: str, role: bool
) -> ResumableLinkState:
    """What is known of the link from before, or an empty state for what is to come. Cancelled: nothing has happened."""
    key = LinkKey(connection.container_id, connection.remote.container_id, name, role)
    store = options.store
    if store is None:
        store = MemoryTerminusStore()
    else:
        connection.stores |= {store}
    resend = options.guarantee != "exactly-once"
    terminus = await store.open(key, lambda: new_terminus(role, resend=resend))
    return ResumableLinkState(terminus, options, store, key)


class LinkOpening(EnteredWithAsync, Generic[L]):
    """A link that is yet to be attached: enter it with ``async with``.

    Entering raises ``LinkRefusedError`` where the peer refuses, ``GuaranteeNotSupportedError`` where it settles weaker
    than asked for, and ``FilterNotSupportedError`` where it lacks a filter; cancelled, the link is detached again.
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
        """Raise where the peer, whose open is known by now, does not do what the link needs."""

    def _covering(self, name: str) -> ResumableLinkState | None:
        """What a link is attached again with by itself, where the peer is not asked to remember it."""
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
        session = connection.session_for(self._session, own=bool(options.own_session))
        try:
            self._link = link = self._make(session, name)
            try:
                if resumable is not None:
                    link.bind_state(resumable)
                    if options.restorable:
                        link.cover()
                session.opening[link] = None
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
                    # What else a peer may lack has names of its own; RabbitMQ says so of this mode.
                    raise GuaranteeNotSupportedError(
                        f"link {name!r} was to be {options.guarantee}, and the peer refuses it: {refusal}"
                    ) from refusal
                raise
            except BaseException:
                link.abandon()
                raise
            finally:
                session.opening.pop(link, None)
        except BaseException:
            if options.own_session:
                session.abandon()
            raise
        return link

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self._link.settle_up()
            await self._link.aclose()
        finally:
            if self._options.own_session or self._link.own_session:
                await self._link.session.aclose()
