"""A connection as a program sees it, the same whether it dialled or was dialled.

Turns events of the engine into objects and wake-ups, and knows who owns what. Octets are the
pump's business, transports that of ``dial`` and ``listen``.
"""

from __future__ import annotations

import logging
import uuid
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import trio

from trio_amqp10.engine.events import (
    Authenticated,
    ConnectionClosed,
    ConnectionLost,
    ConnectionOpened,
    LinkAttached,
    LinkDetached,
    QuestionAsked,
    SessionBegun,
    SessionEnded,
)
from trio_amqp10.engine.states import ConnectionState, SessionState
from trio_amqp10.errors import AmqpError, Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.net.pump import READ_SIZE, Pump
from trio_amqp10.net.waiters import CheckpointThrottle, Waiter
from trio_amqp10.protocol_rules import ANSWER, IDLE, PROTOCOL_HEADER
from trio_amqp10.spec.transport import Error, Role
from trio_amqp10.wire.values import Symbol

from .class_overrides import LinkClasses
from .errors import ConnectionClosedError, anew, connection_error
from .incoming_links import IncomingLinks, IncomingReceiver, IncomingSender
from .link_options import ConnectionReceiverOptions, ConnectionSenderOptions, RequesterOptions
from .option_signatures import takes_on
from .receiver import Receiver, open_receiver
from .remote_open import Remote, choose_locale
from .sender import Sender, open_sender
from .session import Session, SessionOpening
from .sole_connection_request import detection_of
from .statistics import ConnectionCounters, connection_statistics

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextlib import AbstractContextManager

    from trio_amqp10.engine.connection import Connection as EngineConnection
    from trio_amqp10.engine.layer_stack import Stack
    from trio_amqp10.engine.session import Session as EngineSession
    from trio_amqp10.patterns.cbs import TokenKeeping, TokenSource
    from trio_amqp10.patterns.requester import RequesterOpening
    from trio_amqp10.patterns.transaction import TransactionOpening
    from trio_amqp10.tokens import Token

    Vet = Callable[["Connection"], "Error | None"]

    from .delivery import Delivery
    from .dialling import Dialling
    from .errors import ConnectionRedirectError, LinkRedirectError
    from .link_opening import LinkOpening
    from .link_owner import LinkOwner
    from .recovery import Recovery
    from .recovery_events import Changes
    from .statistics import ConnectionStatistics
    from .terminus_store import TerminusStore

__all__ = ["Connection", "IncomingLinks", "Remote"]

_log = logging.getLogger("trio_amqp10.connection")

_PATIENCE = 1.0
"""Seconds that an incoming link waits for somebody to iterate over ``incoming_links``."""


_GIVEN_UP = frozenset({IDLE.name, ANSWER.name})
"""Rules whose breach says that the peer is broken, not that it is wrong: as a loss of the transport."""


class Connection(Waiter, trio.abc.AsyncResource):
    """One connection; either side may open links to the other.

    Attributes:
        identity: the authenticated identity of the peer, on the accepting side; or None.
        server_name, sasl_hostname: the host that the peer named in TLS (SNI) and SASL, on the accepting side; or None.
        host: the IP address of the peer, on the accepting side; None in memory or on a Unix socket.
        vet: called before we open too; if it returns an error, the connection is closed with it.
        turned_away: whether it returned one.
        close_timeout: seconds to wait for the peer's answer when something is closed.
        kinds: what its links and deliveries are made of; see ``use``.
        stores: those of its links.
        pace: checkpoints for calls that are cheaper than one.
        totals: what has passed through it.
        owner: what serves it, on the accepting side; None while nothing does.
    """

    __slots__ = (
        "__weakref__",
        "_asking",
        "_closed",
        "_default_session",
        "_delivery_class",
        "_derive",
        "_ended",
        "_incoming",
        "_incoming_waiter",
        "_iterated",
        "_lost",
        "_nursery",
        "_opened",
        "_peer_closed",
        "_refusing",
        "_remote",
        "_stack",
        "close_timeout",
        "dialling",
        "engine",
        "host",
        "identity",
        "kinds",
        "owner",
        "pace",
        "pump",
        "recovery",
        "sasl_hostname",
        "server_name",
        "stores",
        "totals",
        "turned_away",
        "vet",
    )

    def __init__(
        self,
        engine: EngineConnection,
        stack: Stack,
        stream: trio.abc.Stream,
        nursery: trio.Nursery,
        *,
        close_timeout: float = 5.0,
    ) -> None:
        super().__init__()
        self.identity: Any = None
        self.server_name: str | None = None
        self.sasl_hostname: str | None = None
        self.host: str | None = None
        self.vet: Vet | None = None
        self.turned_away: bool = False
        self.owner: object = None
        self.close_timeout: float = close_timeout
        self.pace: CheckpointThrottle = CheckpointThrottle()
        self.kinds: LinkClasses = LinkClasses()
        self.stores: frozenset[TerminusStore] = frozenset()
        self.totals: ConnectionCounters = ConnectionCounters()
        self.engine: EngineConnection = engine
        self.recovery: Recovery | None = None
        self.dialling: Dialling | None = None
        self._nursery = nursery
        self._closed = False
        self._default_session: Session | None = None
        self._ended: dict[EngineSession, None] = {}
        self._incoming: list[IncomingSender | IncomingReceiver] = []
        self._incoming_waiter = Waiter()
        self._iterated = False
        self._refusing: trio.CancelScope | None = None
        self._asking: trio.CancelScope | None = None
        self._remote: Remote | None = None
        self._derive: Callable[[type[Delivery]], type[Delivery]] | None = None
        self.bind(engine, stack, stream)

    def bind(self, engine: EngineConnection, stack: Stack, stream: trio.abc.Stream) -> None:
        """From now on this is the connection on ``stream``, which is yet to be opened."""
        if self.totals.transports:
            self.totals.leave(self.engine)
        self.totals.transports += 1
        self.engine = engine
        plain = cast("type[Delivery]", engine.context.incoming_class)
        self._delivery_class = plain if self._derive is None else self._derive(plain)
        self.use(self.kinds)
        self._stack = stack
        self._opened = False
        self._peer_closed: ConnectionClosed | None = None
        self._lost: str | None = None
        stall = engine.limits.write_stall
        self.pump: Pump = Pump(stack, stream, self._on_event, self._on_over, stall, self.totals)
        self.pump.start(self._nursery)

    def derive_deliveries(self, derive: Callable[[type[Delivery]], type[Delivery]]) -> None:
        """Make deliveries of a subclass of their class from now on, which ``derive`` returns."""
        self._derive = derive
        self._delivery_class = derive(self._delivery_class)
        self.use(self.kinds)

    def use(self, kinds: LinkClasses) -> None:
        """Make links and deliveries of these classes from now on; those that there are stay what they are."""
        self.kinds = kinds
        make, plain = kinds.delivery, self._delivery_class
        self.engine.context.incoming_class = plain if make is None else make(plain)

    # -- what the peer is -------------------------------------------------------------------

    @property
    def container_id(self) -> str:
        """Who we are to the peer (2.4.1)."""
        return self.engine.container_id

    @property
    def remote(self) -> Remote:
        """What the peer said of itself; while a connection that comes back is down, what it said last."""
        if self._remote is None:
            raise LocalProtocolError("the peer has not opened this connection yet")
        return self._remote

    @property
    def sole_connection(self) -> Literal["strong", "weak"] | None:
        """How sure the peer is that there is no other connection of our container; None if it does not see to that."""
        return detection_of(self.remote)

    @property
    def isolates_links(self) -> bool:
        """Whether a link is to have a session of its own where nothing is said of it.

        RabbitMQ answers a link that it does not want by ending the session, with all other links of it.
        """
        product = None if self._remote is None else self._remote.properties.get("product")
        return product == "RabbitMQ" and self.engine.channels.has_room

    @property
    def outgoing_locale(self) -> str:
        """The language that the peer wants to be told of errors in, as far as our ``outgoing_locales`` go (2.7.1)."""
        return choose_locale(self.remote.incoming_locales, self.engine.local.outgoing_locales)

    @property
    def incoming_locale(self) -> str:
        """The language of what the peer tells of errors: the first of our ``incoming_locales`` that it can (2.7.1)."""
        return choose_locale(self.engine.local.incoming_locales, self.remote.outgoing_locales)

    @property
    def closed(self) -> bool:
        """Whether the connection is over, by either end; one that comes back is not, while it may."""
        return self._closed or (self.is_gone if self.recovery is None else self.recovery.stopped)

    @property
    def recovering(self) -> bool:
        """Whether what the loss of the transport ended comes back."""
        return self.recovery is not None and not self.recovery.stopped

    @property
    def closed_here(self) -> bool:
        """Whether it was we who closed it."""
        return self._closed

    @property
    def is_gone(self) -> bool:
        """Whether the transport, or the peer on it, is of no use any more; one that comes back may have another soon."""
        pump = self.pump
        return (
            self._lost is not None
            or self._peer_closed is not None
            or self.engine.state is ConnectionState.END
            or pump.failure is not None
            or pump.finished.is_set()
        )

    def cause(self) -> Exception | None:
        """Why the connection ended, as an exception of the caller's own.

        None while it lives, or may come back, or where it was closed without an error.
        """
        if self.recovery is None:
            return self.loss()
        failure = self.recovery.failure
        return anew(failure) if isinstance(failure, AmqpError) else failure

    def loss(self) -> Exception | None:
        """Why the transport that there was last is gone; None as for ``cause``."""
        if self._peer_closed is not None:
            error = self._peer_closed.error
            if error is None:
                return None
            return connection_error(error)
        failure = self.pump.failure
        silent = isinstance(failure, RemoteProtocolError) and failure.rule in _GIVEN_UP
        if isinstance(failure, AmqpError) and not silent:
            return anew(failure)
        if self._closed or (failure is None and self._lost is None):
            return None
        reason = self._lost if failure is None else str(failure) or str(failure.__cause__ or self._lost)
        if isinstance(failure, RemoteProtocolError):
            reason = failure.description  # a peer that is silent for too long counts as dead (2.4.5)
        gone = ConnectionClosedError(f"the connection was lost: {reason}")
        gone.__cause__ = failure
        return gone

    def lost_to(self) -> Exception:
        """As ``loss``, also where the peer closed without an error."""
        return self.loss() or _closed_by_peer()

    def check_alive(self) -> None:
        """Raise what ended the connection, if something did.

        Raises:
            trio.ClosedResourceError: we closed it.
            ConnectionClosedError: the peer did, or the transport died, or nothing came for ``idle_timeout``.
            RemoteProtocolError: the peer broke a rule.
            SecurityError: it could not be agreed who is who.
        """
        if self._closed:
            raise trio.ClosedResourceError("this connection was closed here")
        if self.closed:
            raise self.reason()

    def reason(self) -> Exception:
        """What to raise where the connection is over and should not be."""
        return self.cause() or _closed_by_peer()

    async def wait_recovered(self) -> None:
        """Wait, where the connection comes back, until it has; or until it will not. Cancelled: nothing has happened."""
        if self.recovery is not None:
            await self.recovery.wait_recovered()

    async def opened(self) -> None:
        """Wait until the peer has opened the connection too.

        Raises: as ``check_alive``. Cancelled: nothing has happened.
        """
        while not (self._opened or self.is_gone or self._closed):
            await self.wait()
        if self._opened and not self.is_gone:
            return
        if self._closed:
            self.check_alive()
        if not self._opened or self.recovery is not None or self.loss() is not None:
            raise self.lost_to()  # opened and closed in one go is a peer's way to refuse (2.4.3)

    async def wait_closed(self) -> None:
        """Wait until the connection is over.

        Raises:
            ConnectionClosedError, RemoteProtocolError: it ended with an error.

        Cancelled: nothing has happened.
        """
        while self.recovery is not None and not self.closed:
            await self.wait()
        await self.pump.finished.wait()
        if not self._closed and self.cause() is not None:
            raise self.reason()

    @property
    def sessions(self) -> list[Session]:
        """The sessions that there are now, by either end."""
        return [session.owner for session in self.engine.sessions if session.owner is not None]

    @property
    def links(self) -> list[LinkOwner]:
        """The senders and receivers that there are now, opened by either end; not those that wait to be accepted.

        Of a connection of a container they are its inlets and outlets.
        """
        return [cast("LinkOwner", link.owner) for link in self.engine.names if link.owner is not None]

    def statistics(self) -> ConnectionStatistics:
        """What it has done since it was opened, and where it stands: live figures by name."""
        return connection_statistics(self.engine, self.totals)

    # -- sessions and links -----------------------------------------------------------------

    def open_session(self) -> SessionOpening:
        """A session of your own: ``async with conn.open_session() as session``."""
        return SessionOpening(self)

    @takes_on(ConnectionSenderOptions)
    def open_sender(self, options: ConnectionSenderOptions) -> LinkOpening[Sender]:
        """A sender to a node of the peer: ``async with conn.open_sender("orders") as sender`` (2.6.3).

        Entering waits until the peer has attached the link. Leaving waits until all that was sent is settled, and closes the link.

        Args:
            address: of the node. None: messages go where their ``to`` says (Anonymous Terminus 1.0).
            name: of the link; a fresh UUID if None. A link that is taken up again needs the name that it had.
            guarantee: ``"at-most-once"``, ``"at-least-once"`` or ``"exactly-once"``.
            snd_settle_mode, rcv_settle_mode: in place of those that the guarantee means (2.8.2, 2.8.3).
            source, target: termini in place of those that are made of the address (3.5.3, 3.5.4).
            properties: of the link, for the peer; str keys travel as symbols.
            capabilities: extensions to ask for.
            store: where the unsettled state of the link is kept, so that it can be taken up later (2.6.5); it needs ``name``.
            durable: whether the peer is to keep the terminus over a restart, or which part of it (3.5.5). If None: with a store,
                and for exactly once on a connection that comes back.
            expiry_policy: when the peer's timer for the terminus starts (3.5.6): ``ExpiryPolicy``.
            expiry_timeout: seconds that the timer runs.
            own_session: begin a session for this link alone. If None: where the peer is RabbitMQ, which ends the session of a link
                that it does not want, as long as it takes more sessions; but not for a link with the property ``paired``, because
                it is of one session with the other of its pair.
            session: the session of the link; the connection's first if None.

        Raises:
            LocalProtocolError: options that no attach can carry.

        Raises (on entering):
            LinkRefusedError: the peer refuses the link.
            GuaranteeNotSupportedError: the peer settles weaker than asked for; or there is no address, and the peer does not
                offer ``ANONYMOUS-RELAY`` (2.7.1): ``target=Target()`` attaches all the same.
            SessionEndedError, ConnectionClosedError: they ended.

        Cancelled while entering: the link is detached again.
        """
        return open_sender(self, options, options.session)

    @takes_on(ConnectionReceiverOptions)
    def open_receiver(self, options: ConnectionReceiverOptions) -> LinkOpening[Receiver]:
        """A receiver from a node of the peer: ``async with conn.open_receiver("orders") as receiver`` (2.6.3).

        Args:
            address: of the node.
            own_session: begin a session for this link alone. If None: as for ``open_sender``, and if ``streaming`` without ``session``.
                What is left unread of a streamed delivery holds up all links of its session.
            streaming: hand out each delivery at its first transfer, to be read by ``Delivery.chunks``. Then the size of a
                message has no limit but ``max_message_size``.
            credit: how many messages the peer may send ahead; the receiver grants it anew as they are taken. 0: none but by
                ``grant()``. If None: 0 for at most once, because what was sent ahead is lost with the link.
            credit_octets: have no more octets of messages wait here than that, and one message. Credit, ``credit`` (1000) at
                most, goes by the usual size of messages, and the window of the session, which is the link's own, by the room left.
            prefetch: in place of credit: at most so many unsettled deliveries, waiting here and in the program's hands together. An
                outcome makes room for the next. What is sent settled counts while it waits here.
            filters: ``"required"``: entering raises where the peer's answer lacks a filter of ``source``, by its name;
                ``"optional"``: what is in place is in ``remote.source.filter``, and the program looks (3.5.3).
            max_message_size: octets of a message that we take (2.7.3); that of ``limits`` if None.
            session: as for ``open_sender``, and so are all others.

        Raises: as ``open_sender``; ``LocalProtocolError`` also for credit that makes no sense, and on entering
            ``FilterNotSupportedError``.

        Cancelled while entering: the link is detached again.
        """
        return open_receiver(self, options, options.session)

    @takes_on(RequesterOptions)
    def open_requester(self, options: RequesterOptions) -> RequesterOpening:
        """Ask a service: ``async with conn.open_requester("upper") as r: reply = await r.request("hi")``; as ``trio_amqp10.open_requester``."""
        from trio_amqp10.patterns.requester import RequesterOpening

        return RequesterOpening(self, options)

    def open_transaction(self, *, keep: bool = False) -> TransactionOpening:
        """Send and settle all or nothing: ``async with conn.open_transaction() as txn`` (4.1).

        Leaving commits, and an exception rolls back; see ``Transaction``. Never tried again by itself.

        Args:
            keep: after a rollback, leave deliveries that were settled in it to be settled anew by you
                (4.4.2); otherwise they are released.
        """
        from trio_amqp10.patterns.transaction import open_transaction

        return open_transaction(self, keep=keep)

    async def put_token(self, audience: str, token: Token) -> None:
        """Put one token to the peer's ``$cbs``, and wait until it is taken; see ``keep_token`` for one that lasts.

        Args:
            audience: what it is for, e.g. ``sb://NAMESPACE.servicebus.windows.net/orders``.
            token: which.

        Raises:
            TokenRefusedError: the peer did not take it.
            LinkRefusedError: the peer has no ``$cbs``.
            trio.TooSlowError: it did not answer within 30 seconds.
            LinkDetachedError, SessionEndedError, ConnectionClosedError, ...: a link is gone.

        Cancelled: the peer may have the token or not.
        """
        from trio_amqp10.patterns.cbs import put_token

        await put_token(self, audience, token)

    def keep_token(self, audience: str, source: TokenSource) -> TokenKeeping:
        """Put a token, and another whenever nine tenths of its life are over: ``async with conn.keep_token(...)``.

        Where that fails it is logged, and tried again after 1 to 30 seconds; links end with
        ``amqp:unauthorized-access`` if no token came in time.

        Args:
            audience: what they are for, e.g. ``sb://NAMESPACE.servicebus.windows.net/orders``.
            source: an async function of the audience that returns a ``Token``, e.g. ``SasTokens(name, key)``.

        Raises (on entering): as ``put_token``, and whatever the source raises.
        """
        from trio_amqp10.patterns.cbs import keep_token

        return keep_token(self, audience, source)

    def open_redirected(self, error: ConnectionRedirectError | LinkRedirectError) -> Dialling:
        """A connection to where ``error`` says, with all the options of this one: ``async with`` enters it.

        For a link: ``async with conn.open_redirected(error) as there, there.open_sender(error.address)``.
        Whether ``open_connection`` was told to follow redirects does not matter.

        Raises:
            LocalProtocolError: this connection was accepted, or dialled on a stream; or the error names no host.
            SecurityError: this connection has credentials, and the host is none of ``trusted_hosts``.
        """
        if self.dialling is None:
            raise LocalProtocolError("this connection was accepted: dial the host that the error names")
        return self.dialling.redirected(error)

    def new_session(self) -> Session:
        """Begin a session, without waiting for the peer."""
        self.check_alive()
        session = Session(self, self.engine.session())
        session.engine.begin()
        if self.recovery is not None:
            self.recovery.sessions[session] = None
        return session

    def session_for(self, session: Session | None, *, own: bool) -> Session:
        """The session that a new link goes on: the given one, one of its own, or the default."""
        if session is not None:
            session.check_alive()
            return session
        if own:
            return self.new_session()
        if self._default_session is None or self._default_session.is_over:
            self._default_session = self.new_session()
        return self._default_session

    def new_name(self) -> str:
        """A new, unique link name."""
        return str(uuid.uuid4())

    def forget_sessions(self) -> None:
        """Nothing was answered before the transport went: begin anew."""
        self._default_session = None

    async def next_incoming_link(self) -> IncomingSender | IncomingReceiver:
        """What ``incoming_links`` yields next. Cancelled: no link is lost."""
        while True:
            while self._incoming:
                link = self._incoming.pop(0)
                if link.is_waiting:
                    return link
            if self.closed:
                if self._closed or self.cause() is None:
                    raise StopAsyncIteration
                raise self.reason()
            await self._incoming_waiter.wait()

    def incoming_links(self) -> IncomingLinks:
        """The links that the peer opens to us, to be accepted or refused one by one.

        If the program does not iterate, links are refused with ``amqp:not-allowed``.
        """
        self._iterated = True
        return IncomingLinks(self)

    # -- events -----------------------------------------------------------------------------

    def _on_event(self, event: Any) -> None:
        match event:
            case LinkAttached(link):
                self._on_attached(link)
            case LinkDetached(link):
                if link.owner is not None:
                    cast("LinkOwner", link.owner).on_detached(event)
                else:
                    self._incoming = [one for one in self._incoming if one.is_waiting]
            case SessionBegun(session):
                if session.state is SessionState.BEGIN_RCVD:
                    session.begin()
                if session.owner is None:
                    Session(self, session)
                self._session_of(session).wake()
            case SessionEnded(session):
                if session.owner is not None:
                    self._session_of(session).on_ended(event)
            case ConnectionOpened(performative):
                self._remote = Remote.of(performative)
                self._opened = True
                self.pump.read_size = READ_SIZE
                if self.engine.state is ConnectionState.OPEN_RCVD:
                    self._answer_open()
                self.wake()
            case ConnectionClosed():
                self._peer_closed = event
                self._wake_all()
            case ConnectionLost(reason):
                self._lost = self._lost or reason  # of two, the first is why
                self._wake_all()
            case Authenticated(identity, hostname):
                self.identity = identity
                self.sasl_hostname = hostname
            case QuestionAsked(question):
                self._asking = trio.CancelScope(shield=True)
                self._nursery.start_soon(self._answer, question, self._asking)
            case _:  # pragma: no cover - the engine has no other events
                raise AssertionError(event)

    def _answer_open(self) -> None:
        error = None
        if self.vet is not None:
            try:
                error = self.vet(self)
            except Exception:
                _log.exception("whether %r may come in could not be told", self)
                error = Error(condition=Condition.INTERNAL_ERROR.value, description="the service failed")
        if error is None:
            self.engine.open()
            return
        # So that a peer knows before it has done anything, if it looks (it is told of in the standards
        # that build on this one).
        self.engine.introduce(properties={Symbol("amqp:connection-establishment-failed"): True})
        self.turned_away = True
        self.engine.open()
        self.engine.close(error)

    @staticmethod
    def _session_of(session: EngineSession) -> Session:
        return cast("Session", session.owner)

    def _wake_all(self) -> None:
        self.wake()
        self._incoming_waiter.wake()

    def _on_over(self) -> None:
        """The pump has failed, or is finished."""
        self._wake_all()
        if self.pump.finished.is_set():
            for session in self._ended:
                session.owner = None
            self._ended.clear()

    def note_ended(self, session: EngineSession) -> None:
        """A session is over: if that is since the connection is, no cycle is left of it once the transport is closed."""
        if self.recovery is None and (self._closed or self.is_gone):
            self._ended[session] = None

    def wake_everybody(self) -> None:
        """The connection came back, or will not: let all that waits for it, and for its links, look again."""
        self._wake_all()
        if self.recovery is not None:
            for session in self.recovery.sessions:
                session.wake()
            for link in list(self.recovery.links):
                link.wake_all()

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run a task for as long as the connection lasts."""
        self._nursery.start_soon(function, *args)

    def changes(self, *, attempts: bool = False) -> Changes:
        """What happens to a connection that was opened with ``reconnect``: ``async for change in conn.changes()``.

        Args:
            attempts: report each attempt to dial that fails, too; those in a row that were not read yet are one change.

        Raises:
            LocalProtocolError: it was opened without.
        """
        if self.recovery is None:
            raise LocalProtocolError("this connection does not come back: open it with reconnect=True")
        return self.recovery.changes(attempts=attempts)

    def restore_with(self, call: Callable[[], Awaitable[object]]) -> AbstractContextManager[None]:
        """While the block lasts, await ``call()`` each time that the connection is back, before its links are.

        For what the peer needs before it takes them: a token, a queue that has to be declared. ``call`` may
        open links of its own; all others wait. Nothing is called on a connection without ``reconnect``.

        Where ``call`` raises, the attempt has failed, and the next one is made; a ``SecurityError`` or
        ``LocalProtocolError`` ends the connection for good.
        """
        return nullcontext() if self.recovery is None else self.recovery.restore_with(call)

    @contextmanager
    def expecting(self, what: str) -> Generator[None]:
        """Give up the connection if the block takes longer than ``Limits.answer_timeout``; ``what`` names the request."""
        answers, key = self.engine.context.answers, object()
        answers.expect(key, what)
        self.pump.wake_writer()
        try:
            yield
        finally:
            answers.answered(key)

    def _on_attached(self, link: Any) -> None:
        if link.owner is not None:
            link.owner.on_attached()
            return
        incoming = IncomingReceiver(self, link) if link.role is Role.RECEIVER else IncomingSender(self, link)
        self._incoming.append(incoming)
        self._incoming_waiter.wake()
        if not self._iterated and self._refusing is None:
            self._refusing = trio.CancelScope(shield=True)
            self._nursery.start_soon(self._refuse_unclaimed, self._refusing)

    async def _refuse_unclaimed(self, scope: trio.CancelScope) -> None:
        with scope:
            await trio.sleep(_PATIENCE)
            while self._incoming and not self._iterated:
                self._incoming.pop(0).refuse_now(Condition.NOT_ALLOWED, "no links are accepted here")
            self._refusing = None

    async def _answer(self, question: Any, scope: trio.CancelScope) -> None:
        """Ask the application what a SASL mechanism wants to know."""
        with scope:
            try:
                if question.work is None:
                    value = await question.ask()
                else:  # a key derivation, which would hold up the loop
                    value = await trio.to_thread.run_sync(question.work, abandon_on_cancel=True)
            except Exception as failure:
                _log.exception("no answer to %s", question)
                self.pump.feed(partial(self._stack.abandon_question, failure, trio.current_time()))
            else:
                self.pump.feed(partial(self._stack.answer, value, trio.current_time()))

    # -- the end ----------------------------------------------------------------------------

    async def aclose(self, error: Error | None = None) -> None:
        """Close the connection with all its sessions and links (2.4.3).

        Writes what is queued, then waits for the peer's close at most ``close_timeout`` seconds, and as long at most
        for the stores of its links to have kept what became of these.

        Cancelled: what is queued and the close are still written, for at most a second; the
        answer is not awaited, the stores are.
        """
        self.close_now(error)
        try:
            with trio.move_on_after(self.close_timeout):
                await self.pump.finished.wait()
        finally:
            try:
                if not self.pump.finished.is_set():
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + 1.0):
                        await self.pump.flushed()
                    await self.pump.abort()
            finally:
                with trio.move_on_after(self.close_timeout, shield=True):
                    for store in self.stores:
                        await store.flushed()

    async def hang_up(self) -> None:
        """Give up the transport that there is, with a close if the peer has not had one; the connection may come back.

        Cancelled: the close is written all the same, for at most a second.
        """
        failure = self.pump.failure
        if isinstance(failure, RemoteProtocolError) and failure.rule == PROTOCOL_HEADER.name:
            await self.pump.abort()  # what speaks there is not AMQP, and takes no close
        else:
            await self.pump.part(partial(self._stack.close, None, trio.current_time()))

    def close_now(self, error: Error | None = None) -> None:
        """Begin to close, without waiting for anything; ``aclose`` waits. Nothing happens if we have closed."""
        if self._closed:
            return
        self._closed = True
        if self.recovery is not None:
            self.recovery.stop()
        self._stack.close(error, trio.current_time())
        self._refuse_to_wait()
        self._wake_all()

    def _refuse_to_wait(self) -> None:
        for scope in (self._refusing, self._asking):
            if scope is not None:
                scope.cancel()

    def __repr__(self) -> str:
        peer = "?" if self._remote is None else self._remote.container_id
        return f"<Connection to {peer!r} {self.engine.state.name}>"


def _closed_by_peer() -> ConnectionClosedError:
    return ConnectionClosedError("the peer closed the connection")
