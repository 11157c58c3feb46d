"""A connection as a program uses it, whether it dialled or was accepted.

Turns events of the engine into objects and wake-ups, and owns the sessions and links. Reading and writing
octets is the task of the pump; making transports is the task of ``dial`` and ``listen``.
"""

from __future__ import annotations

import logging
import uuid
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import trio

from trio_amqp10.amqp10.engine.events import (
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
from trio_amqp10.amqp10.engine.states import ConnectionState, SessionState
from trio_amqp10.amqp10.spec.transport import Error, Role
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.arguments import check_callable, check_text, check_type
from trio_amqp10.core.errors import AmqpError, Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.peer_rules import ANSWER, IDLE
from trio_amqp10.net.errors import fresh_copy
from trio_amqp10.net.option_signatures import takes_on
from trio_amqp10.net.pump import READ_SIZE, Pump
from trio_amqp10.net.waiters import CheckpointThrottle, Waiter

from .class_overrides import DEFAULT_CLASSES, LinkClasses
from .errors import ConnectionClosedError, SessionEndedError, connection_error
from .incoming_links import IncomingLinks, IncomingReceiver, IncomingSender
from .link_options import ConnectionReceiverOptions, ConnectionSenderOptions, RequesterOptions
from .receiver import Receiver, open_receiver
from .remote_open import Remote, choose_locale
from .sender import Sender, open_sender
from .session import Session, SessionOpening
from .sole_connection_request import detection_of
from .statistics import ConnectionCounters, connection_statistics

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextlib import AbstractContextManager

    from trio_amqp10.amqp10.engine.connection import Connection as EngineConnection
    from trio_amqp10.amqp10.engine.layer_stack import Stack
    from trio_amqp10.amqp10.engine.session import Session as EngineSession
    from trio_amqp10.amqp10.spec.transport import Open
    from trio_amqp10.container.management.remote_management import RemoteManagementOpening
    from trio_amqp10.core.tokens import Token

    from .cbs import TokenKeeping, TokenSource
    from .requester import RequesterOpening
    from .transaction import TransactionOpening

    Vet = Callable[["Connection"], "Error | None"]

    from trio_amqp10.net.recovery_events import Changes

    from .delivery import Delivery
    from .dialling import Dialling
    from .errors import ConnectionRedirectError, LinkRedirectError
    from .link_callbacks import LinkOwner
    from .link_opening import LinkOpening
    from .recovery import Recovery
    from .statistics import ConnectionStatistics
    from .terminus_store import TerminusStore

__all__ = ["Connection", "IncomingLinks", "Remote"]

_log = logging.getLogger("trio_amqp10.connection")

_PATIENCE = 1.0
"""Seconds that an incoming link waits for an iteration of ``incoming_links``."""


_NO_STORES: Final[frozenset[TerminusStore]] = frozenset()

_GIVEN_UP = frozenset({IDLE.name, ANSWER.name})
"""Rules whose breach counts as a loss of the transport.

A peer that breaks one has not answered in time: it may be dead (2.4.5), and is not wrong.
"""


class Connection(Waiter, trio.abc.AsyncResource):
    """One connection; either end may open links to the other.

    Attributes:
        identity: the authenticated identity of the peer, on the accepting side; or None.
        server_name, sasl_hostname: the host that the peer named in TLS (SNI) and SASL, on the accepting side;
            or None.
        host: the IP address of the peer, on the accepting side; None in memory or on a Unix socket.
        vet: called before this end opens too; if it returns an error, the connection is closed with that
            error.
        turned_away: whether ``vet`` returned an error.
        close_timeout: seconds to wait for the peer's answer when a connection, session or link is closed.
        kinds: the classes of its links and deliveries; see ``use``.
        stores: the terminus stores of its links.
        pace: checkpoints for calls that cost less than a checkpoint.
        totals: counts of the octets, frames and messages that have passed.
        owner: the object that serves the connection, on the accepting side; or None.
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
        self.kinds: LinkClasses = DEFAULT_CLASSES
        self.stores: frozenset[TerminusStore] = _NO_STORES
        self.totals: ConnectionCounters = ConnectionCounters()
        self.engine: EngineConnection = engine
        self.recovery: Recovery | None = None
        self.dialling: Dialling | None = None
        self._nursery = nursery
        self._closed = False
        self._default_session: Session | None = None
        self._ended: dict[EngineSession, None] | None = None
        self._incoming: list[IncomingSender | IncomingReceiver] = []
        self._incoming_waiter = Waiter()
        self._iterated = False
        self._refusing: trio.CancelScope | None = None
        self._asking: trio.CancelScope | None = None
        self._remote: Open | None = None
        self._derive: Callable[[type[Delivery]], type[Delivery]] | None = None
        self.bind(engine, stack, stream)

    def bind(self, engine: EngineConnection, stack: Stack, stream: trio.abc.Stream) -> None:
        """Use ``stream`` as the transport, before the AMQP open.

        A connection that is restored is bound again, with a new engine.
        """
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
        """Make deliveries of the subclass that ``derive`` returns, from now on."""
        self._derive = derive
        self._delivery_class = derive(self._delivery_class)
        self.use(self.kinds)

    def use(self, kinds: LinkClasses) -> None:
        """Make new links and deliveries of these classes.

        Existing links and deliveries keep their classes.
        """
        self.kinds = kinds
        make, plain = kinds.delivery, self._delivery_class
        self.engine.context.incoming_class = plain if make is None else make(plain)

    # -- what the peer is -------------------------------------------------------------------

    @property
    def container_id(self) -> str:
        """The container id of this end (2.4.1)."""
        return self.engine.container_id

    @property
    def remote(self) -> Remote:
        """The fields of the peer's last open.

        While a connection with ``reconnect`` is down, the open of the previous transport.
        """
        if self._remote is None:
            raise LocalProtocolError("the peer has not opened this connection yet")
        return Remote.of(self._remote)

    @property
    def sole_connection(self) -> Literal["strong", "weak"] | None:
        """Whether the peer enforces one connection for our container, and how surely.

        ``"strong"`` or ``"weak"`` is its detection policy; None if the peer does not enforce it.
        """
        return detection_of(self.remote)

    @property
    def isolates_links(self) -> bool:
        """Whether links get sessions of their own by default.

        True for RabbitMQ as long as it takes more sessions: it refuses a link by ending the session, with all
        other links of it.
        """
        product = None if self._remote is None else self.remote.properties.get("product")
        return product == "RabbitMQ" and self.engine.channels.has_room

    @property
    def outgoing_locale(self) -> str:
        """The language for error descriptions to the peer (2.7.1).

        The first of the peer's ``incoming_locales`` that is also in our ``outgoing_locales``.
        """
        return choose_locale(self.remote.incoming_locales, self.engine.local.outgoing_locales)

    @property
    def incoming_locale(self) -> str:
        """The language of the peer's error descriptions (2.7.1).

        The first of our ``incoming_locales`` that is also in the peer's ``outgoing_locales``.
        """
        return choose_locale(self.engine.local.incoming_locales, self.remote.outgoing_locales)

    @property
    def closed(self) -> bool:
        """Whether the connection is over, by either end.

        A connection that was lost is not over while it may still be restored.
        """
        return self._closed or (self.is_gone if self.recovery is None else self.recovery.stopped)

    @property
    def recovering(self) -> bool:
        """Whether a loss of the transport is, or would be, repaired."""
        return self.recovery is not None and not self.recovery.stopped

    @property
    def closed_here(self) -> bool:
        """Whether this end closed the connection."""
        return self._closed

    @property
    def is_gone(self) -> bool:
        """Whether the transport, or the peer on it, cannot be used any more.

        A connection with ``reconnect`` may have another transport soon.
        """
        pump = self.pump
        return (
            self._lost is not None
            or self._peer_closed is not None
            or self.engine.state is ConnectionState.END
            or pump.failure is not None
            or pump.finished.is_set()
        )

    def cause(self) -> Exception | None:
        """Return the reason why the connection ended, as a new exception.

        None while the connection lives or may be restored. Also None if the peer closed it without an error.
        """
        if self.recovery is None:
            return self.loss()
        failure = self.recovery.failure
        return fresh_copy(failure) if isinstance(failure, AmqpError) else failure

    def loss(self) -> Exception | None:
        """Return the reason why the last transport ended.

        None while it lives, and if it was closed without an error. Unlike ``cause``, also while the connection may be restored.
        """
        if self._peer_closed is not None:
            # The peer's close comes first: the transport ends after it in any case.
            error = self._peer_closed.error
            if error is None:
                return None
            return connection_error(error)
        failure = self.pump.failure
        silent = isinstance(failure, RemoteProtocolError) and failure.rule in _GIVEN_UP
        if isinstance(failure, AmqpError) and not silent:
            # A broken rule, or a failure of TLS or SASL, is its own reason.
            return fresh_copy(failure)
        if self._closed or (failure is None and self._lost is None):
            return None
        reason = self._lost if failure is None else str(failure) or str(failure.__cause__ or self._lost)
        if isinstance(failure, RemoteProtocolError):
            reason = failure.description  # a peer that is silent for too long counts as dead (2.4.5)
        gone = ConnectionClosedError(f"the connection was lost: {reason}")
        gone.__cause__ = failure
        return gone

    def lost_to(self) -> Exception:
        """Return the reason why the last transport ended; an error in any case."""
        return self.loss() or _closed_by_peer()

    def check_alive(self) -> None:
        """Raise the error that ended the connection, if it has ended.

        Raises:
            trio.ClosedResourceError: this end closed the connection.
            ConnectionClosedError: the peer closed the connection, its transport ended, or nothing came for
                ``idle_timeout``.
            RemoteProtocolError: the peer broke a rule of the protocol.
            SecurityError: authentication or TLS failed.
        """
        if self._closed:
            raise trio.ClosedResourceError("this connection was closed here")
        if self.closed:
            raise self.reason()

    def reason(self) -> Exception:
        """Return the exception for a use of the connection after it ended."""
        return self.cause() or _closed_by_peer()

    async def wait_recovered(self) -> None:
        """Wait until a lost connection is restored, or has failed for good.

        Returns at once if the connection is up, or is without ``reconnect``. Cancelled: nothing has happened.
        """
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
            raise self.lost_to()  # a peer refuses a connection by an open with a close right after it (2.4.3)

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
        """The open sessions, begun by either end."""
        return [session.owner for session in self.engine.sessions if session.owner is not None]

    @property
    def links(self) -> list[LinkOwner]:
        """The open senders and receivers, opened by either end.

        Links that wait to be accepted are not included. On a connection of a container they are its inlets
        and outlets.
        """
        return [cast("LinkOwner", link.owner) for link in self.engine.names if link.owner is not None]

    def statistics(self) -> ConnectionStatistics:
        """Return figures of the connection: its state, and totals since it was opened."""
        return connection_statistics(self.engine, self.totals)

    # -- sessions and links -----------------------------------------------------------------

    def open_session(self) -> SessionOpening:
        """Begin a session: ``async with conn.open_session() as session`` (2.5)."""
        return SessionOpening(self)

    @takes_on(ConnectionSenderOptions)
    def open_sender(self, options: ConnectionSenderOptions) -> LinkOpening[Sender]:
        """Open a link to send to a node of the peer (2.6.3).

        Use it as ``async with conn.open_sender("orders") as sender``. Entering waits until the peer has
        attached the link. Leaving waits until all messages are settled, and closes the link.

        Args:
            address: the address of the node. None: each message goes to the address in its ``to`` (Anonymous
                Terminus 1.0).
            name: the name of the link; a fresh UUID if None. To resume a link, give the name that it had.
            guarantee: ``"at-most-once"``, ``"at-least-once"`` or ``"exactly-once"``.
            snd_settle_mode, rcv_settle_mode: replace the settle modes that the guarantee implies (2.8.2,
                2.8.3).
            source, target: termini with more fields, such as ``filter`` or ``capabilities`` (3.5.3, 3.5.4); the
                address, ``durable``, ``expiry_policy`` and ``expiry_timeout`` are added to them.
            properties: properties of the link, for the peer; str keys are sent as symbols.
            capabilities: extensions of the link to ask for (``desired-capabilities``); those of a terminus, such
                as ``shared``, belong in ``source`` or ``target``.
            store: keeps the unsettled state of the link, so that it can be resumed later (2.6.5); needs
                ``name``.
            durable: whether the peer should keep the terminus over a restart, or which part of it (3.5.5), until
                it expires: with ``expiry_policy="never"``, or some ``expiry_timeout``, it outlives the link. If
                None: with a store, and for exactly once on a connection with ``reconnect``.
            expiry_policy: the event that starts the peer's expiry timer of the terminus (3.5.6):
                ``ExpiryPolicy``.
            expiry_timeout: seconds until the terminus expires after that event.
            own_session: begin a session for this link alone. If None: if the peer is RabbitMQ, which ends the
                session of a link that it refuses, as long as it takes more sessions; but not for a link with
                the property ``paired``, because both links of a pair must be on one session.
            session: the session of the link; the connection's first if None.

        Raises:
            LocalProtocolError: options that no attach can carry, or that contradict ``source`` or ``target``.

        Raises (on entering):
            LinkRefusedError: the peer refuses the link.
            GuaranteeNotSupportedError: the peer's settle modes are weaker than the guarantee; or ``address``
                is None, and the peer does not offer ``ANONYMOUS-RELAY`` (2.7.1): ``target=Target()`` attaches
                anyway.
            SessionEndedError, ConnectionClosedError: the session or connection ended.

        Cancelled while entering: the link is detached again.
        """
        return open_sender(self, options, options.session)

    @takes_on(ConnectionReceiverOptions)
    def open_receiver(self, options: ConnectionReceiverOptions) -> LinkOpening[Receiver]:
        """Open a link to receive from a node of the peer (2.6.3).

        Use it as ``async with conn.open_receiver("orders") as receiver``.

        Args:
            address: the address of the node.
            own_session: begin a session for this link alone. If None: as for ``open_sender``, and if
                ``streaming`` without ``session``. Unread octets of a streamed delivery stop all links of its
                session.
            streaming: return each delivery after its first transfer, to be read with ``Delivery.chunks``.
                Then the size of a message has no limit but ``max_message_size``.
            credit: how many messages the peer may send ahead; credit is granted again as messages are
                received. 0: only ``grant()`` grants credit. If None: 0 for at most once, because messages
                that were sent ahead are lost with the link.
            credit_octets: buffer at most this many octets of messages, and one more message. The credit
                follows the usual size of messages, up to ``credit`` (1000), and the window of the session,
                which is the link's own, follows the free room.
            prefetch: instead of ``credit``: at most this many unsettled deliveries, buffered and in the
                program's hands together. An outcome makes room for the next delivery. A delivery that was
                sent settled counts while it is buffered; one of a connection that was lost counts no more,
                though the program may still work on it (``Connection.changes`` reports the loss).
            filters: ``"required"``: entering raises if the peer's answer lacks a filter of ``source``, by its
                name; ``"optional"``: the program must look in ``remote.source.filter`` which filters apply
                (3.5.3).
            max_message_size: octets of the largest message to accept (2.7.3); that of ``limits`` if None.
            session: as for ``open_sender``, and so are all others.

        Raises: as ``open_sender``; ``LocalProtocolError`` also if the credit options contradict each other,
        and on entering ``FilterNotSupportedError``.

        Cancelled while entering: the link is detached again.
        """
        return open_receiver(self, options, options.session)

    @takes_on(RequesterOptions)
    def open_requester(self, options: RequesterOptions) -> RequesterOpening:
        """Open links to send requests to a service, and receive its replies.

        ``async with conn.open_requester("upper") as requester: reply = await requester.request("hi")``; for
        its arguments see ``trio_amqp10.open_requester``.
        """
        from .requester import RequesterOpening

        return RequesterOpening(self, options)

    def open_management(
        self, address: str = "$management", *, timeout: float | None = 60.0
    ) -> RemoteManagementOpening:
        """Open management of the container of the peer.

        Use it as ``async with conn.open_management() as management``. The calls are those of ``Container.management``, see ``RemoteManagement``. The peer must be a container with a management node
        (``Container.add_management``); for RabbitMQ there is ``trio_amqp10.rabbitmq.open_management``.

        Args:
            address: the address of the management node.
            timeout: seconds to wait for each reply; None for any time.

        Raises (on entering):
            LinkRefusedError: the peer has no management node, or does not permit the user to send to it.
            SessionEndedError, ConnectionClosedError: the session or connection ended.

        Cancelled while entering: the links are detached again.
        """
        # A room above this one: it is loaded when it is used.
        check_text("address", address)
        remote = import_module("trio_amqp10.container.management.remote_management")
        opening: RemoteManagementOpening = remote.RemoteManagementOpening(self, address, timeout)
        return opening

    def open_transaction(self, *, keep: bool = False) -> TransactionOpening:
        """Begin a transaction: ``async with conn.open_transaction() as txn`` (4.1).

        Leaving the block commits, and an exception rolls back; see ``Transaction``. A transaction is never
        tried again automatically.

        Args:
            keep: after a rollback, leave the deliveries that were settled in it unsettled, so that you can
                settle them again (4.4.2); otherwise they are released.
        """
        from .transaction import open_transaction

        return open_transaction(self, keep=keep)

    async def put_token(self, audience: str, token: Token) -> None:
        """Put one token to the peer's ``$cbs``, and wait until it is accepted.

        ``keep_token`` also renews the token.

        Args:
            audience: the resource that the token is for, e.g.
                ``sb://NAMESPACE.servicebus.windows.net/orders``.
            token: the token.

        Raises:
            TokenRefusedError: the peer refused the token.
            LinkRefusedError: the peer has no ``$cbs``.
            TimedOutError: the peer did not answer within 30 seconds.
            LinkDetachedError, SessionEndedError, ConnectionClosedError, ...: a link ended.

        Cancelled: the peer may have accepted the token or not.
        """
        from .cbs import put_token

        await put_token(self, audience, token)

    def keep_token(self, audience: str, source: TokenSource) -> TokenKeeping:
        """Put a token, and renew it: ``async with conn.keep_token(...)``.

        A new token is put after nine tenths of the lifetime of the last one. A failure is logged, and the
        next attempt follows after 1 to 30 seconds; if no token came in time, the peer ends links with
        ``amqp:unauthorized-access``.

        Args:
            audience: the resource that the tokens are for, e.g.
                ``sb://NAMESPACE.servicebus.windows.net/orders``.
            source: an async function of the audience that returns a ``Token``, e.g. ``SasTokens(name, key)``.

        Raises (on entering): as ``put_token``, and any exception of the source.
        """
        from .cbs import keep_token

        check_text("audience", audience)
        check_callable("source", source)
        return keep_token(self, audience, source)

    def open_redirected(self, error: ConnectionRedirectError | LinkRedirectError) -> Dialling:
        """Open a connection to the place that ``error`` redirects to.

        The new connection has all the options of this one; enter it with ``async with``. For a link: ``async
        with conn.open_redirected(error) as there, there.open_sender(error.address)``. The option
        ``follow_redirects`` does not matter here.

        Raises:
            LocalProtocolError: this connection was accepted, or dialled on a stream; or the error names no
                host.
            SecurityError: this connection has credentials, and the host is not in ``trusted_hosts``.
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
        """Return ``session``, a new session if ``own``, or the default session.

        A default session that has no handle for another link is followed by a new one.
        """
        if session is not None:
            check_type("session", session, Session, "a session of this connection, or None")
            session.check_alive()
            return session
        if own:
            return self.new_session()
        default = self._default_session
        if default is None or default.is_over or not default.engine.has_free_handle:
            default = self._default_session = self.new_session()
        return default

    async def session_to_attach(self, session: Session | None, *, own: bool) -> Session:
        """Return the session for a link, once the peer is known to permit it there.

        The peer's begin has its handle-max (2.7.2), so only the first link of a session may attach before that begin.
        Arguments as for ``session_for``.

        Cancelled: nothing has happened.
        """
        while not (found := self.session_for(session, own=own)).engine.is_handle_certain:
            with suppress(SessionEndedError):  # It was ended for another link: look for a session again.
                await found.begun()
        return found

    def new_name(self) -> str:
        """Return a new, unique link name."""
        return str(uuid.uuid4())

    def forget_sessions(self) -> None:
        """Drop the default session: the transport ended before the peer's answer."""
        self._default_session = None

    async def next_incoming_link(self) -> IncomingSender | IncomingReceiver:
        """Return the next link for ``incoming_links``. Cancelled: no link is lost."""
        await trio.lowlevel.checkpoint()
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
        """Iterate over the links that the peer opens, to accept or refuse each.

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
                self._remote = performative
                self._opened = True
                self.pump.read_size = READ_SIZE
                if self.engine.state is ConnectionState.OPEN_RCVD:
                    self._answer_open()
                self.wake()
            case ConnectionClosed():
                self._peer_closed = event
                self._wake_all()
            case ConnectionLost(reason):
                self._lost = self._lost or reason  # the first of several reasons is the cause
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
                _log.exception("vet failed for %r: the connection is refused", self)
                error = Error(condition=Condition.INTERNAL_ERROR.value, description="the service failed")
        if error is None:
            self.engine.open()
            return
        # The property lets the peer notice the refusal at once, before it uses the connection. The standards that
        # build on AMQP 1.0 define it.
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
        """Wake all waiting tasks after the pump has failed or finished."""
        self._wake_all()
        if self.pump.finished.is_set():
            for session in self._ended or ():
                session.owner = None
            self._ended = None

    def note_ended(self, session: EngineSession) -> None:
        """Note a session that ended together with the connection.

        It keeps its owner until the transport is closed, and then the reference cycle between the two is
        broken.
        """
        if self.recovery is None and (self._closed or self.is_gone):
            if self._ended is None:
                self._ended = {}
            self._ended[session] = None

    def wake_everybody(self) -> None:
        """Wake every task that waits for the connection, a session or a link."""
        self._wake_all()
        if self.recovery is not None:
            for session in self.recovery.sessions:
                session.wake()
            for link in list(self.recovery.links):
                link.wake_all()

    def on_ready(self) -> None:
        """Wake all waiting tasks: the connection is open, for the first time or again."""
        self.wake_everybody()

    def fail(self, failure: Exception) -> None:  # noqa: ARG002 - the recovery has it
        """Wake all waiting tasks: the connection cannot be restored."""
        self.wake_everybody()

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run a task for as long as the connection lasts."""
        self._nursery.start_soon(function, *args)

    def changes(self, *, attempts: bool = False) -> Changes:
        """Iterate over the losses and restores of a connection with ``reconnect``.

        Use it as ``async for change in conn.changes()``.

        Args:
            attempts: report each failed attempt to dial, too; failed attempts that follow each other before
                the program reads them are one change.

        Raises:
            LocalProtocolError: the connection was opened without ``reconnect``.
        """
        if self.recovery is None:
            raise LocalProtocolError(
                "this connection is not restored after a loss: open it with reconnect=True"
            )
        return self.recovery.changes(attempts=attempts)

    def restore_with(self, call: Callable[[], Awaitable[object]]) -> AbstractContextManager[None]:
        """Await ``call()`` after each restore of the connection, while the block lasts.

        ``call`` runs before the links are attached again, to give the peer something that the links need: a
        token, or the declaration of a queue. It may open links of its own; all other links wait. It is never
        called on a connection without ``reconnect``.

        If ``call`` raises, the attempt has failed and the next one is made; a ``SecurityError`` or
        ``LocalProtocolError`` ends the connection for good.
        """
        check_callable("call", call)
        return nullcontext() if self.recovery is None else self.recovery.restore_with(call)

    @contextmanager
    def expecting(self, what: str) -> Generator[None]:
        """Close the connection if the block takes longer than ``Limits.answer_timeout``.

        ``what`` names the request in the error.
        """
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
        """Ask the application for the answer to a question of a SASL mechanism."""
        with scope:
            try:
                if question.work is None:
                    value = await question.ask()
                else:  # a key derivation, which would block the event loop
                    value = await trio.to_thread.run_sync(question.work, abandon_on_cancel=True)
            except Exception as failure:
                _log.exception("no answer to %s", question)
                self.pump.feed(partial(self._stack.abandon_question, failure, trio.current_time()))
            else:
                self.pump.feed(partial(self._stack.answer, value, trio.current_time()))

    # -- the end ----------------------------------------------------------------------------

    async def aclose(self, error: Error | None = None) -> None:
        """Close the connection with all its sessions and links (2.4.3).

        Writes the queued octets, then waits for the peer's close at most ``close_timeout`` seconds, and at
        most as long for the stores of its links to write all outcomes.

        Cancelled: the queued octets and the close are still written, for at most a second; the peer's close
        is not awaited, the stores are.
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
        """Close the transport; a connection with ``reconnect`` may be restored.

        The peer gets a close frame first, if it has not had one.

        Cancelled: the close frame is written anyway, for at most a second.
        """
        await self.pump.part(partial(self._stack.close, None, trio.current_time()))

    def close_now(self, error: Error | None = None) -> None:
        """Begin to close, without waiting; ``aclose`` waits.

        Does nothing if this end has closed already.
        """
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
