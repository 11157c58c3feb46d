"""One channel of a 0-9-1 client: process its methods in order, and answer them.

See 0-9-1, 2.2.5. A method is complete at once, unless it must wait for an answer about permission, or for the
store. Then the methods after it wait too, so that answers keep the order of the requests. Long work, for
example a publish to many queues, is done in steps, and the methods after it wait; when a turn ends, the
remaining methods wait for the next turn. A refused method closes the channel or the connection with its reply
code; the methods after it are dropped.

Methods also wait while the answers that the client has not read exceed their limit (``has_room_for_answers``).
So what is written for a client that does not read grows by at most one answer; then the connection is not read
any more.

The handlers of the methods are in ``declaring``, ``publishing`` and ``consuming``.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, TypeVarTuple

from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.broker.channel_peer import ChannelPeer
from trio_amqp10.broker.exchanges.faults import NotFoundError
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.broker.nodes.turns import guarded, take_steps
from trio_amqp10.broker.stores.base import StoreFullError
from trio_amqp10.core.errors import AmqpError
from trio_amqp10.core.reply_codes import ReplyCode091

from .consuming import Consuming
from .declaring import DECLARING
from .faults import fault_of
from .publishing import Publishing

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from trio_amqp10.amqp091.engine.channel import Channel
    from trio_amqp10.amqp091.engine.events import Arrival
    from trio_amqp10.amqp091.wire.content import Content
    from trio_amqp10.amqp091.wire.methods import Method
    from trio_amqp10.broker.exchanges.topology import Topology
    from trio_amqp10.broker.nodes.turns import Resumer, Steps, Turns
    from trio_amqp10.broker.rights.guard import Need
    from trio_amqp10.broker.stores.base import StoreError
    from trio_amqp10.broker.transactions import Transaction

    from .server_habits import Habits

_log = logging.getLogger("trio_amqp10.container")

TRANSACT: Final[Sequence[Need]] = ((("transact", None),),)
"""The permission to begin a transaction."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class ChannelOwner(ChannelPeer[Engine, "ServerChannel"]):
    """The connection of a client, as its channels use it.

    Attributes:
        broker: its exchanges and queues.
        habits: options for compatibility with other servers.
        origin: identifies the client as the publisher of messages.
    """

    __slots__ = ("broker", "habits", "origin")

    broker: Topology
    habits: Habits
    origin: str

    def fail(self, fault: ReplyError) -> None:
        """Close the connection, because a method violated a rule."""
        raise NotImplementedError


class ServerChannel:
    """One channel.

    Args:
        peer: the connection of the channel.
        engine: the channel of the engine.

    Attributes:
        peer, engine: as given.
        queue: the name of the last declared queue; None before.
        consuming: the consumers and deliveries.
        publishing: the publishes.
        transactional: whether publishes and acknowledgements wait for a commit.
        over: whether the channel has ended.
    """

    __slots__ = (
        "_closing",
        "_delayed",
        "_method",
        "_notices",
        "_put_off",
        "_running",
        "_transaction",
        "_waits",
        "consuming",
        "engine",
        "over",
        "peer",
        "publishing",
        "queue",
        "transactional",
    )

    def __init__(self, peer: ChannelOwner, engine: Channel) -> None:
        self.peer: ChannelOwner = peer
        self.engine: Channel = engine
        self.queue: str | None = None
        self.transactional: bool = False
        self.over: bool = False
        self.publishing: Final = self.make_publishing()
        self.consuming: Final = self.make_consuming()
        self._transaction: Transaction | None = None
        self._closing = False
        self._running = False
        self._put_off = False  # whether methods wait for another turn
        self._waits = 0
        self._method: Method | None = None
        self._delayed: tuple[Callable[[], object], ...] = ()
        self._notices: tuple[Method, ...] = ()
        engine.on_touch = self.run

    @property
    def habits(self) -> Habits:
        """Options for compatibility with other servers."""
        return self.peer.habits

    def queue_named(self, name: str) -> str:
        """Return ``name``, or the last declared queue if it is empty.

        Raises:
            NotFoundError: it is empty, and no queue was declared on this channel.
        """
        if name:
            return name
        if self.queue is None:
            raise NotFoundError("no previously declared queue")
        return self.queue

    def make_publishing(self) -> Publishing:
        """Return the publishing half of the channel."""
        return Publishing(self)

    def make_consuming(self) -> Consuming:
        """Return the consuming half of the channel."""
        return Consuming(self)

    @property
    def number(self) -> int:
        """The channel number."""
        return self.engine.number

    def statistics(self) -> dict[str, Any]:
        """Return the current figures by name.

        ``prefetch`` is the most unsettled deliveries of all its consumers together; None for no limit.
        """
        numbers = self.engine.numbers
        return {
            "state": self.engine.state.name,
            "consumers": len(self.consuming.outlets),
            "unsettled_out": len(self.consuming.unacked),
            "unsettled_in": len(numbers.publishes) if numbers.confirming else 0,
            "prefetch": self.consuming.prefetch,
            "confirms": numbers.confirming,
            "transactional": self.transactional,
        }

    @property
    def broker(self) -> Topology:
        """The exchanges and queues of the container."""
        return self.peer.broker

    @property
    def transaction(self) -> Transaction:
        """The current transaction, which begins on first use."""
        if self._transaction is None:
            self._transaction = self.peer.begin_transaction()
        return self._transaction

    # -- methods ----------------------------------------------------------------------------

    def run(self, *, waited: bool = False) -> None:
        """Process methods until one must wait, no answer fits, or the turn is over.

        Args:
            waited: whether the channel has waited for this turn.
        """
        if self._running:
            return
        self._running = True
        turns, obeyed = self.peer.turns, False
        try:
            # Methods that had to wait come first, because they are older than all arrivals.
            while self._delayed and self._may_answer():
                go_on, *rest = self._delayed
                self._delayed = tuple(rest)
                go_on()
            while not self._waits and self._may_answer():
                if self._notices:
                    self._send_notices()
                if obeyed and turns.is_over() and self.engine.has_arrivals:
                    # Other connections get their turn; each turn does at least one method.
                    self._wait_for_turn(turns)
                    break
                try:
                    arrival = self.engine.next_arrival()
                except ReplyError as fault:
                    self._method = None
                    self._fail(fault)
                    break
                if arrival is None:
                    break
                obeyed = True
                if not self.over:  # after a refusal the remaining methods are dropped
                    self._method = arrival.method
                    try:
                        self._obey(arrival)
                    except Exception as failure:
                        self._refuse(failure)
        finally:
            self._running = False
        self.peer.pump.wake_writer()  # there may be room for arrivals now, so reading may go on
        if self.over:
            return
        if self._put_off and not waited:
            return  # later, because confirms are merged: those of one read, or of one turn of a long read
        self.publishing.send_returns()
        self.publishing.confirm()
        self.consuming.resume()
        if self.engine.state is ChannelState.CLOSED:
            # The client has closed the channel, or the connection has ended.
            self._closing = True
        if self._closing and not self._waits and not self._put_off:
            self.end()

    def _may_answer(self) -> bool:
        """Whether another answer fits; True if the channel can write nothing any more."""
        over = self.over or self._closing or self.engine.state is not ChannelState.OPEN
        return over or self.peer.engine.has_room_for_answers

    def _obey(self, arrival: Arrival) -> None:
        react = self.REACTIONS.get(arrival.method.plan.name)
        if react is None:
            raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, arrival.method.plan.name)
        react(self, arrival)

    def attempt(self, call: Callable[[*Ts], object], *args: *Ts) -> None:
        """Do a part of a method; an exception closes the channel or the connection."""
        try:
            call(*args)
        except Exception as failure:
            self._refuse(failure)

    def _refuse(self, failure: Exception) -> None:
        """Answer a method that raised; call it in the ``except`` block."""
        if isinstance(failure, ReplyError):
            self._fail(failure)
        elif isinstance(failure, RefusedError):
            self._fail(fault_of(failure))
        elif isinstance(failure, AmqpError):
            _log.debug("channel %d: %s", self.number, failure)
            self._fail(ReplyError(ReplyCode091.INTERNAL_ERROR, str(failure)))
        else:
            _log.exception("a method of channel %d failed", self.number)
            self._fail(ReplyError(ReplyCode091.INTERNAL_ERROR, "the service failed"))

    def _fail(self, fault: ReplyError) -> None:
        if not fault.class_id and self._method is not None:
            fault.about(self._method.plan.class_id, self._method.plan.method_id)
        if fault.scope == "connection":
            self.peer.fail(fault)
            return
        self.publishing.confirm()
        self.engine.close(fault.code, fault.reply_text, fault.class_id, fault.method_id)
        self.end()
        self.peer.pump.wake_writer()  # a failure may come at any time, for example of a commit

    def make(self, name: str, **arguments: Any) -> Any:
        """Create a method by its name, in the version that the client uses."""
        return self.peer.engine.methods.make(name, **arguments)

    def reply(self, method: Method, content: Content | None = None) -> None:
        """Send a method, unless the client has closed the channel meanwhile."""
        if self.engine.state is ChannelState.OPEN:
            self.engine.send(method, content)

    def notify(self, notice: Method) -> None:
        """Send a method that is no answer, after the answer to the current method.

        Clients expect the answer first.
        """
        if self._running or self._waits:
            self._notices += (notice,)
        else:
            self.reply(notice)

    def _send_notices(self) -> None:
        notices, self._notices = self._notices, ()
        for notice in notices:
            self.reply(notice)

    # -- waiting ----------------------------------------------------------------------------

    def _wait_for_turn(self, turns: Turns) -> None:
        if not self._put_off:
            self._put_off = True
            self.peer.postponed += 1
            turns.later(self._on_turn)

    def _on_turn(self) -> None:
        self._put_off = False
        self.peer.postponed -= 1
        self.run(waited=True)

    def pause(self) -> None:
        """Process no more methods until ``unpause``; calls nest."""
        self._waits += 1

    def unpause(self) -> None:
        """End a ``pause``."""
        self._waits -= 1
        self.run()

    def go_through(self, steps: Generator[Resumer | None, None, T], then: Callable[[T], object]) -> None:
        """Do long work in steps, as a part of the current method; then call ``then``.

        ``then`` receives the result of the work. The methods after the current one wait.
        """
        results: list[T] = []

        def gathering() -> Steps:
            results.append((yield from steps))

        at_once, method = True, self._method

        def refuse(failure: Exception) -> None:
            if at_once:
                raise failure
            self._method = method
            self._refuse(failure)

        def finish() -> None:
            for result in results:  # empty if the work failed
                then(result)

        def done() -> None:
            if at_once:
                finish()
            else:
                self._resume(finish, method)

        finished = take_steps(self.peer.turns, guarded(gathering(), refuse), done)
        at_once = False
        if not finished:
            self.pause()

    def ask(self, needs: Iterable[Need], then: Callable[[], object]) -> None:
        """Call ``then`` if the client has one permission of each need.

        Otherwise the channel is refused with 403. Ask before looking at objects: a client without permission
        must not learn whether they exist.
        """
        self._waits += 1
        if self.peer.ask(needs, partial(self._on_permission, then, self._method)):
            self._waits -= 1
            then()

    def _on_permission(
        self, then: Callable[[], object], method: Method | None, refusal: RefusedError | None
    ) -> None:
        def do_or_raise() -> None:
            if refusal is not None:
                raise refusal
            then()

        self._resume(do_or_raise, method)

    def when_stored(self, then: Callable[[], object]) -> None:
        """Call ``then`` when all changes to exchanges, queues and bindings are stored.

        If they could not be stored, the connection is closed with 541, or with 506 if the store is full.
        """
        self._waits += 1
        self.broker.when_stored(partial(self._on_stored, then, self._method))

    def when_deleted(self, then: Callable[[], object]) -> None:
        """Call ``then`` when all messages that were removed are deleted from the store.

        If they cannot be deleted, the connection is closed as by ``when_stored``.
        """
        self._waits += 1
        self.broker.when_deleted(partial(self._on_stored, then, self._method))

    def _on_stored(
        self, then: Callable[[], object], method: Method | None, failure: StoreError | None
    ) -> None:
        def do_or_raise() -> None:
            if isinstance(failure, StoreFullError):
                raise ReplyError(ReplyCode091.RESOURCE_ERROR, "the store is full")
            if failure is not None:
                raise ReplyError(ReplyCode091.INTERNAL_ERROR, "the store failed")
            then()

        self._resume(do_or_raise, method)

    def _resume(self, call: Callable[[], object], method: Method | None) -> None:
        """Continue a method that had to wait; later, if no answer fits now."""
        if self._may_answer():
            self._go_on(call, method)
            self.run()
        else:
            self._delayed += (partial(self._go_on, call, method),)

    def _go_on(self, call: Callable[[], object], method: Method | None) -> None:
        if not self.over:
            self._method = method
            self.attempt(call)
        self._waits -= 1

    # -- transactions -----------------------------------------------------------------------

    def on_tx_select(self, _arrival: Arrival) -> None:
        """Handle tx.select."""
        self.ask(TRANSACT, self._select_tx)

    def _select_tx(self) -> None:
        self.transactional = True
        self.reply(self.make("tx.select-ok"))

    def on_tx_commit(self, _arrival: Arrival) -> None:
        """Handle tx.commit: all or nothing takes effect; answer when it is stored."""
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            self.reply(self.make("tx.commit-ok"))
            return
        self._waits += 1
        transaction.commit(partial(self._on_committed, transaction, self._method))

    def _on_committed(self, transaction: Transaction, method: Method | None) -> None:
        def reply_committed() -> None:
            self.check_committed(transaction)
            self.reply(self.make("tx.commit-ok"))

        self._resume(reply_committed, method)

    @staticmethod
    def check_committed(transaction: Transaction) -> None:
        """Raise ``ReplyError`` if ``transaction`` was rolled back instead of committed."""
        if transaction.failure is not None:
            ours = transaction.cause is None
            code = ReplyCode091.INTERNAL_ERROR if ours else ReplyCode091.PRECONDITION_FAILED
            raise ReplyError(code, f"the transaction was rolled back: {transaction.failure[1]}")

    def on_tx_rollback(self, _arrival: Arrival) -> None:
        """Handle tx.rollback."""
        self._roll_back()
        self.reply(self.make("tx.rollback-ok"))

    def _roll_back(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.rollback()

    # -- other methods ----------------------------------------------------------------------

    def on_access_request(self, _arrival: Arrival) -> None:
        """Handle access.request of 0-8 clients: every client gets the ticket 1."""
        self.reply(self.make("access.request-ok"))

    def on_flow_ok(self, _arrival: Arrival) -> None:
        """Handle channel.flow-ok, which needs no action."""

    # -- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """Process the remaining methods, then end.

        The client has closed the channel, or the connection has ended.
        """
        self._closing = True
        self.run()

    def end(self) -> None:
        """End the channel; messages that were not acknowledged are requeued."""
        if self.over:
            return
        self.over = True
        self._roll_back()
        self.consuming.end()
        self.publishing.end()
        self.run()  # drops the methods that still wait
        self.peer.forget(self)

    REACTIONS: ClassVar[Mapping[str, Callable[[Any, Arrival], object]]] = {
        **DECLARING,
        "basic.publish": lambda channel, arrival: channel.publishing.publish(arrival),
        "confirm.select": lambda channel, arrival: channel.publishing.select(arrival),
        "basic.consume": lambda channel, arrival: channel.consuming.consume(arrival),
        "basic.cancel": lambda channel, arrival: channel.consuming.cancel(arrival),
        "basic.get": lambda channel, arrival: channel.consuming.get(arrival),
        "basic.ack": lambda channel, arrival: channel.consuming.acknowledge(arrival),
        "basic.nack": lambda channel, arrival: channel.consuming.reject(arrival),
        "basic.reject": lambda channel, arrival: channel.consuming.reject(arrival),
        "basic.recover": lambda channel, arrival: channel.consuming.recover(arrival),
        "basic.recover-async": lambda channel, arrival: channel.consuming.recover(arrival),
        "basic.qos": lambda channel, arrival: channel.consuming.qos(arrival),
        "basic.cancel-ok": lambda channel, arrival: None,  # noqa: ARG005
        "tx.select": on_tx_select,
        "tx.commit": on_tx_commit,
        "tx.rollback": on_tx_rollback,
        "access.request": on_access_request,
        "channel.flow-ok": on_flow_ok,
    }
    """The handler of each method; any other method is answered with 540."""
