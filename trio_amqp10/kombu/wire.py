"""A connection of kombu: its links in trio, and a queue to the program's thread.

Messages and failures go through one queue, which needs no further lock. An event loop that polls descriptors, such as that of Celery's
worker, gets a socket that is readable while the queue is not empty.
"""

from __future__ import annotations

import atexit
import logging
import queue
import socket
import threading
import weakref
from collections import OrderedDict
from contextlib import asynccontextmanager, suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from trio_amqp10.amqp10.peer.connection import Connection as AsyncConnection
from trio_amqp10.amqp10.peer.delivery import raise_unless_accepted
from trio_amqp10.amqp10.peer.dialling import Dialling
from trio_amqp10.amqp10.peer.errors import DeliveryReleasedError, LinkDetachedError
from trio_amqp10.amqp10.peer.link_options import ConnectionReceiverOptions, ConnectionSenderOptions
from trio_amqp10.amqp10.peer.receiver import Receiver as AsyncReceiver
from trio_amqp10.amqp10.peer.receiver import no_message, open_receiver
from trio_amqp10.amqp10.peer.sender import Sender as AsyncSender
from trio_amqp10.amqp10.peer.sender import not_sent, open_sender
from trio_amqp10.amqp10.spec.messaging import Source as SourceTerminus
from trio_amqp10.amqp10.spec.messaging import Target
from trio_amqp10.bridges.blocking_bridge import Opened, connected, inner_of, opened
from trio_amqp10.bridges.portal import Call, no_outcome, within
from trio_amqp10.bridges.sender_feed import PostedMessage, SenderFeed
from trio_amqp10.core.errors import AmqpError
from trio_amqp10.net.errors import ConnectionClosedError, TimedOutError, fresh_copy
from trio_amqp10.rabbitmq import Management, open_management

from .window import Source, Window

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from trio_amqp10.amqp10.message import Message
    from trio_amqp10.amqp10.peer.cbs import SasTokens
    from trio_amqp10.amqp10.peer.delivery import Delivery, Outcome
    from trio_amqp10.amqp10.peer.dial_options import WhereAndOptions
    from trio_amqp10.net.urls import Url

    Arrival = tuple[Source, Delivery]

T = TypeVar("T")
O = TypeVar("O", bound=Opened[Any])  # noqa: E741 - an object that is opened

_log = logging.getLogger(__name__)

_SENDERS: Final = 64
"""The most senders that a connection keeps open.

Each client that waits for results has an address of its own, so there may be many addresses.
"""

TOPIC: Final = "topic"
"""The capability of topics in Artemis, Qpid and containers of this library."""


def _no_answer(seconds: float) -> TimedOutError:
    return TimedOutError(f"no answer from the peer within {seconds:g} s")


@asynccontextmanager
async def _opened_within(seconds: float, opening: AbstractAsyncContextManager[T]) -> AsyncGenerator[T]:
    """Enter and leave ``opening``; enter it within ``seconds``."""
    with trio.move_on_after(seconds) as scope:
        async with opening as made:
            scope.deadline = inf
            yield made
    if scope.cancelled_caught:
        raise _no_answer(seconds)


class _Dialling(Dialling):
    """A connection to dial, with a limit for reaching the host."""

    __slots__ = ("_seconds",)

    def __init__(self, options: WhereAndOptions, seconds: float | None) -> None:
        super().__init__(options.where, options)
        self._seconds = inf if seconds is None else seconds

    async def _stream_to(self, url: Url | None) -> trio.abc.Stream:
        with trio.move_on_after(self._seconds):
            return await super()._stream_to(url)
        where = "the peer" if url is None else f"{url.host}:{url.port}"
        raise ConnectionClosedError(
            f"{where} cannot be reached within {self._seconds} s: check host and port of the URL, or raise the "
            "time-out of the connection"
        )


class Link(Opened[AsyncReceiver]):
    """A receiver of a channel, with its source in trio."""

    source: Source

    @property
    def offers_topic(self) -> bool:
        """Whether the node is a topic."""
        return _is_topic(self._inner.remote.source)

    def start(self, window: Window | None, wire: Wire) -> None:
        """Begin to pass messages to ``wire``."""
        self.source = Source(self._inner, window, wire.deliver, wire.lost)
        self._bridge.portal.post(Call(self._bridge.portal, self.source.run, _ignore).start)

    def open(self, is_open: bool) -> None:
        """Begin or end to want messages."""
        self._bridge.portal.post(lambda: self.source.open(is_open))

    def take(self) -> None:
        """Note that the program has a message."""
        if self.source.take():
            with suppress(trio.ClosedResourceError):  # another thread has closed the connection
                self._bridge.portal.post(self.source.adjust)

    def pull(self, seconds: float) -> Delivery | None:
        """Return a message of the node, or None if it has none now."""
        return self._bridge.run(lambda: within(seconds, self._pull, partial(no_message, self._inner)))

    async def _pull(self) -> Delivery | None:
        self._inner.grant(1)
        found = await self._inner.drain()
        return found[0] if found else None


class _Sender(Opened[AsyncSender]):
    """A sender; one thread at a time uses it."""

    def __init__(self, bridge: Any, block: Any, inner: AsyncSender) -> None:
        super().__init__(bridge, block, inner)
        self._feed = SenderFeed(bridge.portal, inner)

    @property
    def offers_topic(self) -> bool:
        """Whether the node is a topic."""
        return _is_topic(self._inner.remote.target)

    def send(self, message: Message, seconds: float, *, confirmed: bool) -> None:
        """Send a message, and wait until the peer has accepted it, if ``confirmed``.

        Raises: as ``trio_amqp10.Sender.send``, and ``TimedOutError``.
        """
        posted = PostedMessage(message, False)
        self._inner.check_size(posted.payload)
        if not confirmed:
            posted.ask(partial(self._check, posted))
            self._post(posted, seconds)
            return
        done = threading.Lock()
        done.acquire()
        ended: list[Any] = []

        def report(outcome: Outcome | None, failure: Exception | None) -> None:
            ended.append((outcome, failure))
            done.release()

        posted.ask(report)
        self._post(posted, seconds)
        if not done.acquire(timeout=seconds):
            raise no_outcome(seconds, sent=None)
        outcome, failure = ended[0]
        if failure is not None:
            raise failure
        assert posted.delivery is not None
        raise_unless_accepted(outcome, posted.delivery)

    def _post(self, posted: PostedMessage, seconds: float) -> None:
        while not self._feed.post(posted):
            self._bridge.run(
                lambda: within(seconds, self._inner.wait_sendable, partial(not_sent, self._inner)),
                lambda _: self._inner.give_back(),
            )

    def _check(self, posted: PostedMessage, outcome: Outcome | None, failure: Exception | None) -> None:
        """Log in trio's thread that a message was not accepted."""
        try:
            if failure is not None:
                raise failure
            assert posted.delivery is not None
            raise_unless_accepted(outcome, posted.delivery)
        except DeliveryReleasedError:
            _log.debug("no queue takes a message for %r: dropped", self._inner.address)
        except Exception as refused:
            _log.error("a message for %r was not accepted, and may be lost: %s", self._inner.address, refused)

    def close(self) -> None:
        """Close the sender, after the messages that were posted."""
        if not self._feed.is_empty:
            with suppress(trio.ClosedResourceError):
                self._bridge.run(self._feed.emptied)
        super().close()


class Wire(Opened[AsyncConnection]):
    """A connection; made by ``dial``.

    Attributes:
        seconds: for a message to be accepted, and for answers.
        confirms: whether ``send`` waits until the peer has accepted a message.
        is_loss_known: whether a call has raised what ended the connection.
        marks_first: whether the peer keeps ``first-acquirer`` of the header (3.2.1).
        tokens: makes tokens for the addresses, for Azure; None if the peer needs none.
        namespace: the URL that the audiences of tokens begin with.
    """

    tokens: SasTokens | None = None
    namespace: str = ""

    seconds: float = 30.0
    confirms: bool = True
    is_loss_known: bool = False
    marks_first: bool = True

    def __init__(self, bridge: Any, block: Any, inner: AsyncConnection) -> None:
        super().__init__(bridge, block, inner)
        self._arrivals: queue.SimpleQueue[Arrival | None] = queue.SimpleQueue()
        self._failure: Exception | None = None
        self._senders: OrderedDict[tuple[str, bool], _Sender] = OrderedDict()
        self._lock = threading.RLock()  # of senders
        self._authorised: dict[str, Opened[None]] = {}
        self._management: Opened[Management] | None = None
        self._signals: tuple[socket.socket, socket.socket] | None = None
        self._is_readable = False
        self.post(Call(bridge.portal, self._watch, _ignore).start)

    # -- in the program's thread --------------------------------------------------------------

    @classmethod
    def dial(cls, options: WhereAndOptions, seconds: float | None) -> Wire:
        """Open a connection; reach its host within ``seconds``."""
        made = connected(cls, _Dialling(options, seconds), in_loops=True)
        _open.add(made)
        return made

    @property
    def properties(self) -> dict[Any, Any]:
        """The properties of the peer's open (2.7.1)."""
        return dict(self._inner.remote.properties)

    @property
    def is_alive(self) -> bool:
        """Whether the connection is open, as far as is known."""
        return self._failure is None

    @property
    def is_inherited(self) -> bool:
        """Whether this is a child process, to which the connection does not belong."""
        try:
            self._bridge.portal.check_process()
        except RuntimeError:
            return True
        return False

    @property
    def is_usable(self) -> bool:
        """Whether the connection is open, and belongs to this process."""
        return self.is_alive and not self.is_inherited

    def check(self) -> None:
        """Raise the exception that ended the connection, or a link to consume from."""
        if self._failure is not None:
            self.is_loss_known = True
        self.check_outcome()

    def check_outcome(self) -> None:
        """Raise as ``check``, for an outcome: programs only log this one, and consume on."""
        if self._failure is not None:
            raise fresh_copy(self._failure)

    def post(self, work: Callable[[], None]) -> None:
        """Call ``work()`` in trio's thread soon."""
        self._bridge.portal.post(work)

    def ask(self, call: Callable[[AsyncConnection], Awaitable[Any]]) -> Any:
        """Await ``call(connection)`` in trio, for at most ``seconds``."""
        self.check()
        return self._bridge.run(lambda: within(self.seconds, lambda: call(self._inner), _no_answer))

    def manage(self, call: Callable[[Management], Awaitable[Any]]) -> Any:
        """Await ``call(management)`` of a RabbitMQ, for at most ``seconds``."""
        self.check()
        with self._lock:
            if self._management is None:
                self._management = self._opened(
                    Opened, lambda: open_management(self._inner, timeout=self.seconds)
                )
            management: Any = inner_of(self._management)
        return self._bridge.run(lambda: within(self.seconds, lambda: call(management), _no_answer))

    def receiver(self, address: str, *, settled: bool = False, topic: bool = False) -> Link:
        """Open a receiver without credit."""
        self._authorise(address)
        source = SourceTerminus(address=address, capabilities=(TOPIC,)) if topic else None
        options = ConnectionReceiverOptions(
            address=address,
            credit=0,
            source=source,
            guarantee="at-most-once" if settled else "at-least-once",
        )
        return self._opened(Link, lambda: open_receiver(self._inner, options))

    def _opened(self, made: type[O], opening: Callable[[], AbstractAsyncContextManager[Any]]) -> O:
        """Open something on this connection within ``seconds``."""
        self.check()
        return opened(made, lambda: _opened_within(self.seconds, opening()), self._bridge)

    def _authorise(self, address: str) -> None:
        """Keep a token for an address at the peer."""
        tokens = self.tokens
        if tokens is None:
            return
        with self._lock:
            if address not in self._authorised:
                audience = f"{self.namespace}/{address}"
                self._authorised[address] = self._opened(
                    Opened, lambda: self._inner.keep_token(audience, tokens)
                )

    def sender(self, address: str, *, topic: bool = False) -> _Sender:
        """Return a sender, which stays open until it has not been used for long."""
        with self._lock:
            found = self._senders.pop((address, topic), None)
            if found is None:
                self._authorise(address)
                target = Target(address=address, capabilities=(TOPIC,)) if topic else None
                options = ConnectionSenderOptions(address=address, target=target)
                found = self._opened(_Sender, lambda: open_sender(self._inner, options))
            self._senders[address, topic] = found
            while len(self._senders) > _SENDERS:
                self._senders.popitem(last=False)[1].close()
            return found

    def send(self, address: str, message: Message, *, topic: bool = False) -> None:
        """Send a message, and wait until the peer has accepted it, if ``confirms``.

        Raises: as ``trio_amqp10.Sender.send``, ``LinkRefusedError`` if there is no such node, and
        ``TimedOutError`` after ``seconds``.
        """
        with self._lock:
            self.check()
            try:
                self.sender(address, topic=topic).send(message, self.seconds, confirmed=self.confirms)
            except LinkDetachedError:
                self.forget(address, topic=topic)
                raise

    def forget(self, address: str, *, topic: bool = False) -> None:
        """Close a sender: the next message opens another."""
        with self._lock:
            found = self._senders.pop((address, topic), None)
            if found is not None:
                with suppress(AmqpError, trio.ClosedResourceError):
                    found.close()

    def next_arrival(self, seconds: float | None) -> Arrival | None:
        """Wait for a message of any link; None if none came in time.

        Raises: the exception that ended the connection, or a link.
        """
        try:
            found = self._arrivals.get(seconds != 0 and self._failure is None, seconds or None)
        except queue.Empty:
            found = None
        if found is None:
            self.check()
        return found

    def waiting(self) -> int:
        """The messages that wait for the program."""
        return self._arrivals.qsize()

    def put_back(self, source: Source, delivery: Delivery) -> None:
        """Put a message back, last."""
        self._arrivals.put((source, delivery))

    # -- a descriptor for event loops -----------------------------------------------------------

    def fileno(self) -> int:
        """Return a descriptor that is readable while messages wait."""
        if self._signals is None:
            self._signals = socket.socketpair()
            for end in self._signals:
                end.setblocking(False)
            if not self._arrivals.empty() or self._failure is not None:
                self._signal()
        return self._signals[0].fileno()

    def quiet(self) -> None:
        """Make the descriptor unreadable until the next message."""
        # The flag is lowered last: what is signalled before belongs to messages that the program takes next.
        if self._signals is not None:
            with suppress(BlockingIOError):
                self._signals[0].recv(4096)
            self._is_readable = False

    def _signal(self) -> None:
        signals = self._signals  # the program's thread may take it away
        if signals is not None and not self._is_readable:
            self._is_readable = True
            with suppress(OSError):  # it is full, or was closed meanwhile
                signals[1].send(b"\0")

    def signal_if_waiting(self) -> None:
        """Make the descriptor readable if messages wait."""
        if not self._arrivals.empty() or self._failure is not None:
            self._signal()

    def close(self) -> None:
        """Close the connection and its links, after what was posted before."""
        self._failure = self._failure or trio.ClosedResourceError("this connection was closed here")
        signals, self._signals = self._signals, None
        try:
            if not self.is_inherited:
                self._close_senders()
                super().close()
        finally:
            for end in signals or ():
                end.close()

    def _close_senders(self) -> None:
        with self._lock, suppress(AmqpError, trio.ClosedResourceError):
            while self._senders:
                self._senders.popitem()[1].close()

    # -- in trio's thread -----------------------------------------------------------------------

    def deliver(self, source: Source, delivery: Delivery) -> None:
        """Pass a message to the program."""
        self._arrivals.put((source, delivery))
        self._signal()

    def lost(self, _source: Source, failure: Exception) -> None:
        """Report the end of a link that messages were wanted from."""
        if _source.is_open:
            self._fail(failure)

    async def _watch(self) -> None:
        try:
            await self._inner.wait_closed()
        except Exception as failure:
            self._fail(failure)
        else:
            self._fail(ConnectionClosedError("the connection is closed"))

    def _fail(self, failure: Exception) -> None:
        if self._failure is None:
            self._failure = failure
        self._arrivals.put(None)
        self._signal()


_open: weakref.WeakSet[Wire] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Send what is left when the program ends without closing its connections."""
    for one in tuple(_open):
        with suppress(AmqpError, trio.ClosedResourceError):
            one.close()


def _is_topic(terminus: Any) -> bool:
    return TOPIC in {str(one) for one in getattr(terminus, "capabilities", ())}


def _ignore(_value: None, _failure: Exception | None) -> None:
    """Do nothing at the end of a call: it has reported what there was."""
