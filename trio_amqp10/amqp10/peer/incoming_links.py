"""Links that the peer opens: inspect each, then accept or refuse it (2.6.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import trio

from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.spec.transport import Attach, Error, ReceiverSettleMode, SenderSettleMode
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .link_opening import leave, recall
from .link_options import LinkOptions, check_made
from .receiver import Receiver, check_prefetch, default_credit

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from types import TracebackType

    from trio_amqp10.amqp10.engine.link import Link as EngineLink
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.amqp10.engine.sender import SenderLink

    from .connection import Connection
    from .link import Link
    from .sender import Sender
    from .session import Session
    from .terminus_store import ResumableLinkState, TerminusStore

L = TypeVar("L", bound="Link[Any]")


class IncomingLink:
    """A link that the peer has attached and this end has not.

    Attributes:
        connection: the connection of the link.
        engine: the engine's end of the link, for services that use it without a ``Sender`` or ``Receiver``;
            see ``answer``.
        session: the session on which the peer attached the link.
    """

    __slots__ = ("_answered", "connection", "engine", "session")

    def __init__(self, connection: Connection, link: EngineLink) -> None:
        self.connection: Connection = connection
        self._answered = False
        self.engine: EngineLink = link
        self.session: Session = cast("Session", link.session.owner)

    @property
    def name(self) -> str:
        """The link's name (2.6.1)."""
        return self.engine.name

    @property
    def role(self) -> bool:
        """The end of the link that is ours: ``Role.SENDER`` or ``Role.RECEIVER``."""
        return self.engine.role

    @property
    def remote(self) -> Attach:
        """The peer's attach, with its source, target and settle modes (2.7.3)."""
        assert self.engine.remote is not None
        return self.engine.remote

    @property
    def is_waiting(self) -> bool:
        """Whether the link still waits to be accepted or refused.

        False also if the peer has detached it meanwhile.
        """
        return self.engine.state is LinkState.ATTACH_RCVD

    def refuse_now(self, condition: str | Error, description: str | None = None) -> None:
        """Refuse the link without waiting; do nothing if the peer has detached it.

        Raises:
            LocalProtocolError: the error does not fit the peer's maximum frame size.
        """
        if self.is_waiting:
            error = condition
            if not isinstance(error, Error):
                error = Error(condition=str(condition), description=description)
            self.engine.refuse(error)
        self._answered = True

    def claim(self) -> None:
        """Note that the link is being accepted.

        Raises:
            LocalProtocolError: it was accepted or refused before.
        """
        if self._answered:
            raise LocalProtocolError(f"{self!r} was accepted or refused already")
        self._answered = True

    def answer(self, options: LinkOptions) -> None:
        """Attach ``engine``, whose ``owner`` must be set, as our end of the link.

        Nothing is written if the peer has detached meanwhile.

        Raises:
            LocalProtocolError: the link was accepted or refused before, or the attach fits no frame.
        """
        self.claim()
        if self.is_waiting:
            options.attach_to(self.engine)

    async def refuse(
        self, condition: str | Error = Condition.NOT_ALLOWED, description: str | None = None
    ) -> None:
        """Refuse the link (2.6.3).

        The peer receives an attach without a terminus, then a detach.

        Args:
            condition: a symbol, e.g. ``"amqp:not-found"``; or a complete error, e.g. ``redirect(url)``.
            description: a text for humans.

        Cancelled: the link is refused anyway, once the call has begun.
        """
        self.refuse_now(condition.value if isinstance(condition, Condition) else condition, description)
        await trio.lowlevel.checkpoint()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} address={getattr(self, 'address', None)!r}>"


class IncomingReceiver(IncomingLink):
    """A link on which the peer wants to send; accept it as a ``Receiver``."""

    __slots__ = ()

    @property
    def address(self) -> str | None:
        """The address of the node that the peer wants to send to."""
        return getattr(self.remote.target, "address", None)

    def accept(
        self,
        *,
        credit: int | None = None,
        prefetch: int | None = None,
        streaming: bool = False,
        source: Source | None = None,
        target: Any = None,
        properties: dict[Any, Any] | None = None,
        capabilities: tuple[str, ...] = (),
        max_message_size: int | None = None,
        store: TerminusStore | None = None,
    ) -> Accepting[Receiver]:
        """Accept the link, as ``async with link.accept() as receiver``.

        Args:
            credit: messages to keep granted; 0: only ``grant()`` grants credit.
            prefetch: instead of ``credit``: at most this many unsettled deliveries, buffered and in the
                program's hands together.
            streaming: return each delivery after its first transfer, for ``Delivery.chunks``. Unread octets
                stop all links of the session, which the peer has chosen.
            source, target: the termini of the answer, instead of those that the peer asked for. The answer to
                a dynamic target must name the node that was created (3.5.4).
            properties, capabilities: those of the answer.
            max_message_size: octets of the largest message; if None the connection's limit, or no limit when
                streaming.
            store: keeps the unsettled deliveries after a detach without close, or a loss, for the next link
                of this name that is accepted with the store (2.6.5).

        Raises:
            LocalProtocolError: the target of the answer is dynamic and has no address; or ``prefetch`` is
                below 1, or was given together with ``credit``.
        """
        check_prefetch(prefetch, credit)
        remote = self.remote
        target = remote.target if target is None else target
        check_made(target)
        options = LinkOptions(
            snd_settle_mode=SenderSettleMode(remote.snd_settle_mode),
            rcv_settle_mode=ReceiverSettleMode(remote.rcv_settle_mode),
            source=source or remote.source,
            target=target,
            properties=properties,
            offered_capabilities=capabilities,
            max_message_size=max_message_size,
            name=self.name,
            store=store,
        )
        engine = cast("ReceiverLink", self.engine)
        granted = default_credit(streaming) if credit is None else credit
        return Accepting(
            self,
            lambda: self.connection.kinds.receiver(
                self.session, engine, granted, streaming=streaming, prefetch=prefetch
            ),
            options,
        )


class IncomingSender(IncomingLink):
    """A link on which the peer wants to receive; accept it as a ``Sender``."""

    __slots__ = ()

    @property
    def address(self) -> str | None:
        """The address of the node that the peer wants to receive from.

        None if the peer asks for a dynamic node.
        """
        return getattr(self.remote.source, "address", None)

    @property
    def dynamic(self) -> bool:
        """Whether the peer asks for a dynamic node, created for the link (3.5.3)."""
        return bool(getattr(self.remote.source, "dynamic", False))

    def accept(
        self,
        *,
        address: str | None = None,
        source: Source | None = None,
        target: Target | None = None,
        properties: dict[Any, Any] | None = None,
        capabilities: tuple[str, ...] = (),
        store: TerminusStore | None = None,
    ) -> Accepting[Sender]:
        """Accept the link, as ``async with link.accept() as sender``.

        Args:
            address: the address of the node that was created for a dynamic source.
            source, target: the termini of the answer, instead of those that the peer asked for. Filters are
                echoed only if ``source`` has them, because an echoed filter is a promise to apply it (3.5.3).
            properties, capabilities: those of the answer.
            store: as for a receiver. A delivery that the peer has forgotten is then in doubt, and is not sent
                again automatically.

        Raises:
            LocalProtocolError: the source of the answer is dynamic and has no address.
        """
        remote = self.remote
        asked = remote.source
        if source is None and asked is not None:
            source = Source(
                address=address or asked.address,
                durable=asked.durable,
                expiry_policy=asked.expiry_policy,
                timeout=asked.timeout,
                dynamic=asked.dynamic,
                dynamic_node_properties=asked.dynamic_node_properties if asked.dynamic else None,
                distribution_mode=asked.distribution_mode,
                default_outcome=asked.default_outcome,
                outcomes=asked.outcomes,
            )
        check_made(source)
        options = LinkOptions(
            snd_settle_mode=SenderSettleMode(remote.snd_settle_mode),
            rcv_settle_mode=ReceiverSettleMode(remote.rcv_settle_mode),
            source=source,
            target=remote.target if target is None else target,
            properties=properties,
            offered_capabilities=capabilities,
            guarantee="exactly-once",
            name=self.name,
            store=store,
        )
        engine = cast("SenderLink", self.engine)
        return Accepting(self, lambda: self.connection.kinds.sender(self.session, engine), options)


_ENTERED: Final = LinkOptions()


class Accepting(Generic[L]):
    """A link that is about to be accepted: enter it with ``async with``."""

    __slots__ = ("_incoming", "_link", "_make", "_options")

    def __init__(self, incoming: IncomingLink, make: Any, options: LinkOptions) -> None:
        self._incoming = incoming
        self._make: Any = make
        self._options = options

    def enter_now(self, resumable: ResumableLinkState | None = None) -> L:
        """Accept without waiting; the caller must close the link.

        If the peer has detached meanwhile, the link is over, as if the peer had detached it a moment later.

        Raises:
            LocalProtocolError: the link was accepted or refused before.
        """
        self._incoming.claim()
        link: L = self._make()
        # This object lives as long as the block of the link, so let go of the options.
        options, self._options = self._options, _ENTERED
        self._make = None
        if resumable is not None:
            link.bind_state(resumable)
        link.opened()
        if self._incoming.is_waiting:
            link.start(options)
        else:
            link.missed()
        if resumable is not None:
            link.on_attached()
        self._link = link
        return link

    async def __aenter__(self) -> L:
        options, incoming = self._options, self._incoming
        if options.store is None:
            await trio.lowlevel.checkpoint()
            return self.enter_now()
        role, connection = incoming.role, incoming.connection
        resumable = await recall(connection, options, incoming.name, role)
        return self.enter_now(resumable)

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await leave(self._link, failed=kind is not None)


class IncomingLinks:
    """An iterator over the links that the peer opens.

    It ends when the connection ends.
    """

    __slots__ = ("_conn",)

    def __init__(self, connection: Connection) -> None:
        self._conn = connection

    def __aiter__(self) -> IncomingLinks:
        return self

    def __anext__(self) -> Awaitable[IncomingSender | IncomingReceiver]:
        """Return the next link. Raise the error that ended the connection, if any.

        Cancelled: no link is lost.
        """
        return self._conn.next_incoming_link()
