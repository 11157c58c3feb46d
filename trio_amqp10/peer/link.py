"""What senders and receivers have in common: attach, find out why a link is gone, close.

Knows nothing of credit or messages; see ``sender`` and ``receiver``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import trio

from trio_amqp10.engine.events import LinkDetached
from trio_amqp10.engine.link import Link as EngineLink
from trio_amqp10.engine.states import LinkState
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.transport import Attach, Error, ReceiverSettleMode, Role, SenderSettleMode

from .errors import GuaranteeNotSupportedError, LinkDetachedError, LinkRefusedError, link_error
from .waiting import Waiter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from trio_amqp10.spec.messaging import Source

    from .connection import Connection
    from .session import Session

__all__ = ["Guarantee", "Link", "LinkOptions", "Opening", "settle_modes"]

Guarantee = Literal["at-most-once", "at-least-once", "exactly-once"]

_MODES: dict[str, tuple[SenderSettleMode, ReceiverSettleMode]] = {
    "at-most-once": (SenderSettleMode.SETTLED, ReceiverSettleMode.FIRST),
    "at-least-once": (SenderSettleMode.UNSETTLED, ReceiverSettleMode.FIRST),
    "exactly-once": (SenderSettleMode.UNSETTLED, ReceiverSettleMode.SECOND),
}


def settle_modes(guarantee: str) -> tuple[SenderSettleMode, ReceiverSettleMode]:
    """The settle modes that give a guarantee (2.8.2, 2.8.3)."""
    try:
        return _MODES[guarantee]
    except KeyError:
        raise LocalProtocolError(f"guarantee {guarantee!r}: one of {', '.join(_MODES)} is possible") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOptions:
    """What an attach may say beyond address and guarantee (2.7.3)."""

    name: str | None = None
    guarantee: Guarantee = "at-least-once"
    snd_settle_mode: SenderSettleMode | None = None
    rcv_settle_mode: ReceiverSettleMode | None = None
    own_session: bool = False
    source: Source | None = None
    target: Any = None
    properties: dict[Any, Any] | None = None
    desired_capabilities: tuple[str, ...] = ()
    offered_capabilities: tuple[str, ...] = ()
    max_message_size: int | None = None

    def __post_init__(self) -> None:
        self.modes()  # a wrong guarantee is refused before anything is done

    def modes(self) -> tuple[SenderSettleMode, ReceiverSettleMode]:
        """The settle modes to ask for."""
        sender, receiver = settle_modes(self.guarantee)
        return (
            sender if self.snd_settle_mode is None else self.snd_settle_mode,
            receiver if self.rcv_settle_mode is None else self.rcv_settle_mode,
        )


E = TypeVar("E", bound=EngineLink)


class Link(Waiter, trio.abc.AsyncResource, Generic[E]):
    """One end of a link, attached.

    Attributes:
        session: the session that it is on.
    """

    __slots__ = ("_closed", "_conn", "_detached", "_link", "_opening", "session")

    def __init__(self, session: Session, link: E) -> None:
        super().__init__()
        self._link = link
        link.owner = self
        self.session = session
        self._conn: Connection = session.connection
        self._closed = False
        self._opening = True
        self._detached: LinkDetached | None = None

    @property
    def name(self) -> str:
        """The link's name, unique between these two containers in this direction (2.6.1)."""
        return self._link.name

    @property
    def remote(self) -> Attach:
        """The peer's attach."""
        assert self._link.remote is not None
        return self._link.remote

    @property
    def credit(self) -> int:
        """Messages that may still be sent without more credit (2.6.7)."""
        return self._link.credit

    @property
    def closed(self) -> bool:
        """Whether this link is over, by either end."""
        return self._closed or self._link.state not in (LinkState.ATTACHED, LinkState.ATTACH_SENT)

    # -- why it is gone ---------------------------------------------------------------------

    def on_detached(self, event: LinkDetached) -> None:
        """The engine tells that the link is over."""
        self._detached = event
        self.wake()

    def missed(self) -> None:
        """The link was over before it had an owner."""
        link = self._link
        if link.told:
            self._detached = LinkDetached(link, True, link.error)

    def cause(self) -> Exception | None:
        """Why the peer, or what carried us, ended this link; None while it lives or was ended without an error."""
        if self._detached is not None:
            error = self._detached.error
            if self._opening:
                return self._gone(LinkRefusedError)
            return None if error is None else self._gone()
        return self.session.cause(opening=self._opening)

    def _gone(self, kind: type[LinkDetachedError] = LinkDetachedError) -> LinkDetachedError:
        link, event = self._link, self._detached
        terminus = link.target if link.role is Role.SENDER else link.source
        address = getattr(terminus, "address", None)
        if event is None:
            return link_error(self.name, None, True, kind, address)
        return link_error(self.name, event.error, event.closed, kind, address)

    def check_alive(self) -> None:
        """Raise what ended the link, if something did.

        Raises:
            trio.ClosedResourceError: we closed it.
            LinkDetachedError, SessionEndedError, ConnectionClosedError: somebody else ended it.
        """
        if self._closed:
            raise trio.ClosedResourceError(f"link {self.name!r} was closed here")
        if self._link.state is LinkState.GONE or self._detached is not None:
            if self._detached is None and self.session.closed_here:
                raise trio.ClosedResourceError(f"link {self.name!r} was closed here, with its session")
            raise self.cause() or self._gone()

    @property
    def _is_over(self) -> bool:
        return self._closed or self._detached is not None or self._link.state is LinkState.GONE

    def reading(self, delivery: Any) -> None:
        """The calling task reads ``delivery`` in chunks; None: it is done with it."""

    # -- attach and close -------------------------------------------------------------------

    def start(self, options: LinkOptions) -> None:
        """Write the attach."""
        snd, rcv = options.modes()
        self._link.attach(
            source=options.source,
            target=options.target,
            snd_settle_mode=snd,
            rcv_settle_mode=rcv,
            max_message_size=options.max_message_size,
            properties=options.properties,
            offered_capabilities=options.offered_capabilities,
            desired_capabilities=options.desired_capabilities,
        )

    def abandon(self) -> None:
        """The link did not come to be, or is not wanted: detach it, whatever the peer says."""
        self._closed = True
        link = self._link
        if link.state is LinkState.DETACHED:
            link.session.connection.names.release(link)
        link.detach()

    def opened(self) -> None:
        """Both ends are attached: from now on a detach is no refusal."""
        self._opening = False

    async def attached(self) -> None:
        """Wait until the peer has attached too.

        Raises:
            LinkRefusedError: it would not.
            SessionEndedError, ConnectionClosedError: what was to carry the link is gone.

        Cancelled: nothing has happened.
        """
        link = self._link
        while not (link.state is LinkState.ATTACHED and self._has_terminus()):
            self.check_alive()
            await self.wait()
        self.opened()

    def _has_terminus(self) -> bool:
        raise NotImplementedError

    def check_guarantee(self, options: LinkOptions) -> None:
        """Compare the negotiated settle modes with those that were asked for (2.7.3)."""
        sender, receiver = options.modes()
        weaker = (
            sender is SenderSettleMode.UNSETTLED and self._link.snd_settle_mode == SenderSettleMode.SETTLED
        )
        if receiver is ReceiverSettleMode.SECOND:
            modes = (self._link.rcv_settle_mode, self.remote.rcv_settle_mode)
            weaker = weaker or any(mode != ReceiverSettleMode.SECOND for mode in modes)
        if weaker:
            raise GuaranteeNotSupportedError(
                f"link {self.name!r} was to be {options.guarantee}, and the peer settles weaker: "
                f"snd-settle-mode {self._link.snd_settle_mode}, rcv-settle-mode {self.remote.rcv_settle_mode}"
            )

    async def aclose(self, error: Error | None = None) -> None:
        """Detach for good; waits for the peer's answer at most ``close_timeout`` seconds (2.6.6).

        Cancelled: the detach is on its way all the same, only the answer is not awaited.
        """
        if self._closed:
            await trio.lowlevel.checkpoint()
            return
        try:
            with trio.move_on_after(self._conn.close_timeout):
                await self._before_detach()
        finally:
            self._give_back()
            self._link.detach(closed=True, error=error)
            self._closed = True
            self.wake()
        with trio.move_on_after(self._conn.close_timeout):
            await trio.lowlevel.checkpoint()
            while self._link.state is not LinkState.GONE:
                await self.wait()

    async def settle_up(self) -> None:
        """Give the peer its time with what it has of ours, before a block is left without an exception.

        Cancelled: nothing has happened; the link can be used on.
        """

    async def _before_detach(self) -> None:
        await trio.lowlevel.checkpoint()

    def _give_back(self) -> None:
        """The last thing before the detach, whatever happens."""


L = TypeVar("L", bound=Link[Any])


class Opening(Generic[L]):
    """A link that is yet to be attached: enter it with ``async with``.

    Entering raises ``LinkRefusedError`` where the peer refuses, and ``GuaranteeNotSupportedError``
    where it settles weaker than asked for; cancelled, the link is detached again.
    """

    __slots__ = ("_connection", "_link", "_options", "_session")

    def __init__(self, connection: Connection, session: Session | None, options: LinkOptions) -> None:
        self._connection = connection
        self._session = session
        self._options = options

    def _make(self, session: Session, name: str) -> L:
        raise NotImplementedError

    async def __aenter__(self) -> L:
        await trio.lowlevel.checkpoint()
        options = self._options
        session = self._connection.session_for(self._session, own=options.own_session)
        try:
            self._link = link = self._make(session, options.name or self._connection.new_name())
            try:
                link.start(options)
                await link.attached()
                link.check_guarantee(options)
            except BaseException:
                link.abandon()
                raise
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
            if self._options.own_session:
                await self._link.session.aclose()


def check_address(address: object) -> None:
    """Refuse an address that no terminus can have."""
    if address is not None and not isinstance(address, str):
        raise LocalProtocolError(f"an address is a str, not {address!r}")


def symbols(given: str | Iterable[str]) -> tuple[str, ...]:
    """Capabilities as a tuple; a single str is one of them."""
    return (given,) if isinstance(given, str) else tuple(given)
