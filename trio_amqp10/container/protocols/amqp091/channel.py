"""One channel of a client of 0-9-1: takes its methods one after the other, and answers each (0-9-1, 2.2.5).

A method is done when it is taken, unless it has to wait: for an answer about permission, or for the store. Then those
behind it wait too, so that answers go out in the order of what was asked. Long work, as a publish to many queues, is done in
pieces, and the methods behind it wait; if a turn is over, the methods that are left wait for the next. A method that is refused closes the channel, or
the connection, with its reply code; what came behind it is dropped.

Methods also wait while the answers that the client has not read take more than their bound (``has_room_for_answers``), so what
is written for a client that does not read grows by one answer at most; then the connection is not read either.

Knows methods by their tables: ``declaring``, ``publishing`` and ``consuming``.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, TypeVarTuple

from trio_amqp10.amqp091.engine import Engine
from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.amqp091.states import ChannelState
from trio_amqp10.container.broker.faults import NotFoundError
from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.container.nodes.turns import guarded, take_steps
from trio_amqp10.container.protocols.channel_peer import ChannelPeer
from trio_amqp10.container.stores.base import StoreFullError
from trio_amqp10.errors import AmqpError
from trio_amqp10.reply_codes import ReplyCode091

from .consuming import Consuming
from .declaring import DECLARING
from .faults import fault_of
from .publishing import Publishing

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from trio_amqp10.amqp091.channel import Channel
    from trio_amqp10.amqp091.content import Content
    from trio_amqp10.amqp091.events import Arrival
    from trio_amqp10.amqp091.methods import Method
    from trio_amqp10.container.broker.topology import Topology
    from trio_amqp10.container.nodes.turns import Resumer, Steps, Turns
    from trio_amqp10.container.rights.guard import Need
    from trio_amqp10.container.stores.base import StoreError
    from trio_amqp10.container.transactions import Transaction

    from .rabbitmq_compatibility import Habits

__all__ = ["TRANSACT", "ChannelOwner", "ServerChannel"]

_log = logging.getLogger("trio_amqp10.container")

TRANSACT: Final[Sequence[Need]] = ((("transact", None),),)
"""What is needed to begin a transaction."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class ChannelOwner(ChannelPeer[Engine, "ServerChannel"]):
    """One client, as its channels know it.

    Attributes:
        broker: its exchanges and queues.
        habits: what differs from one server to the next.
        origin: of what it publishes.
    """

    __slots__ = ("broker", "habits", "origin")

    broker: Topology
    habits: Habits
    origin: str

    def fail(self, fault: ReplyError) -> None:
        """A method broke a rule that ends the connection."""
        raise NotImplementedError


class ServerChannel:
    """One channel.

    Args:
        peer: whose it is.
        engine: the channel of the engine.

    Attributes:
        peer, engine: as given.
        queue: the queue that was declared last; None before.
        consuming: what it receives.
        publishing: what it publishes.
        transactional: whether publishes and acknowledgements wait for a commit.
        over: whether it is closed, and nothing more is done on it.
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
        self._put_off = False  # until another turn
        self._waits = 0
        self._method: Method | None = None
        self._delayed: tuple[Callable[[], object], ...] = ()
        self._notices: tuple[Method, ...] = ()
        engine.on_touch = self.run

    @property
    def habits(self) -> Habits:
        """What differs from one server to the next."""
        return self.peer.habits

    def queue_named(self, name: str) -> str:
        """The name, or that of the queue that was declared last if it is empty.

        Raises:
            NotFoundError: there is none.
        """
        if name:
            return name
        if self.queue is None:
            raise NotFoundError("no previously declared queue")
        return self.queue

    def make_publishing(self) -> Publishing:
        """What it publishes."""
        return Publishing(self)

    def make_consuming(self) -> Consuming:
        """What it receives."""
        return Consuming(self)

    @property
    def number(self) -> int:
        """Its number."""
        return self.engine.number

    @property
    def broker(self) -> Topology:
        """The exchanges and queues of the container."""
        return self.peer.broker

    @property
    def transaction(self) -> Transaction:
        """The transaction that is under way; begun when it is first asked for."""
        if self._transaction is None:
            self._transaction = self.peer.begin_transaction()
        return self._transaction

    # -- methods ----------------------------------------------------------------------------

    def run(self, *, waited: bool = False) -> None:
        """Do what came, as far as nothing has to wait, and what room there is now permits; ``waited``: after another turn."""
        if self._running:
            return
        self._running = True
        turns, obeyed = self.peer.turns, False
        try:
            while self._delayed and self._may_answer():
                go_on, *rest = self._delayed
                self._delayed = tuple(rest)
                go_on()
            while not self._waits and self._may_answer():
                if self._notices:
                    self._send_notices()
                if obeyed and turns.is_over() and self.engine.has_arrivals:
                    self._wait_for_turn(turns)
                    break
                if (arrival := self.engine.next_arrival()) is None:
                    break
                obeyed = True
                if not self.over:
                    self._method = arrival.method
                    try:
                        self._obey(arrival)
                    except Exception as failure:
                        self._refuse(failure)
        finally:
            self._running = False
        self.peer.pump.wake_writer()  # what was taken may have been why nothing more was read
        if self.over:
            return
        if self._put_off and not waited:
            return  # confirms of one read are merged; a read that takes many turns has some for each turn
        self.publishing.send_returns()
        self.publishing.confirm()
        self.consuming.resume()
        if (
            self.engine.state is ChannelState.CLOSED
        ):  # the connection is over too, or the client has closed the channel
            self._closing = True
        if self._closing and not self._waits and not self._put_off:
            self.end()

    def _may_answer(self) -> bool:
        """Whether the client may make us write more; always when nothing more can be written to the channel."""
        over = self.over or self._closing or self.engine.state is not ChannelState.OPEN
        return over or self.peer.engine.has_room_for_answers

    def _obey(self, arrival: Arrival) -> None:
        react = self.REACTIONS.get(arrival.method.plan.name)
        if react is None:
            raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, arrival.method.plan.name)
        react(self, arrival)

    def attempt(self, call: Callable[[*Ts], object], *args: *Ts) -> None:
        """Do a part of a method; what it is refused with closes the channel or the connection."""
        try:
            call(*args)
        except Exception as failure:
            self._refuse(failure)

    def _refuse(self, failure: Exception) -> None:
        """Answer a method that raised; called while it is handled."""
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
        self.peer.pump.wake_writer()  # the answer to a commit may come at any time

    def make(self, name: str, **arguments: Any) -> Any:
        """A method of the version that the client speaks, by its name."""
        return self.peer.engine.methods.make(name, **arguments)

    def reply(self, method: Method, content: Content | None = None) -> None:
        """Send a method, unless the client has closed the channel meanwhile."""
        if self.engine.state is ChannelState.OPEN:
            self.engine.send(method, content)

    def notify(self, notice: Method) -> None:
        """Send a method that answers none: behind the answer to the one that is under way, as clients wait for that first."""
        if self._running or self._waits:
            self._notices += (notice,)
        else:
            self.reply(notice)

    def _send_notices(self) -> None:
        notices, self._notices = self._notices, ()
        for notice in notices:
            self.reply(notice)

    # -- what a method may wait for ---------------------------------------------------------

    def _wait_for_turn(self, turns: Turns) -> None:
        if not self._put_off:
            self._put_off = True
            self.peer.postponed += 1
            turns.later(self._on_turn)

    def _on_turn(self) -> None:
        self._put_off = False
        self.peer.postponed -= 1
        self.run(waited=True)

    def hold_on(self) -> None:
        """Do nothing of what comes behind, until ``go_on``."""
        self._waits += 1

    def go_on(self) -> None:
        """What ``hold_on`` was called for is done."""
        self._waits -= 1
        self.run()

    def go_through(self, steps: Generator[Resumer | None, None, T], then: Callable[[T], object]) -> None:
        """Do long work, and then ``then`` with what it returns, as a part of the method; what comes behind waits for it."""
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
            for result in results:  # none if the work failed
                then(result)

        def done() -> None:
            if at_once:
                finish()
            else:
                self._resume(finish, method)

        finished = take_steps(self.peer.turns, guarded(gathering(), refuse), done)
        at_once = False
        if not finished:
            self.hold_on()

    def ask(self, needs: Iterable[Need], then: Callable[[], object]) -> None:
        """Do ``then`` if the client has one permission of each need; the channel is refused with 403 otherwise.

        Ask before looking at what is there: a client without permission must not be able to tell that.
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
        """Do ``then`` once all that was declared, bound and deleted is safe; 541 if it could not be stored."""
        self._waits += 1
        self.broker.when_stored(partial(self._on_stored, then, self._method))

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
        """Go on with a method that had to wait; later, if there is no room for what it writes."""
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
        """tx.select."""
        self.ask(TRANSACT, self._select_tx)

    def _select_tx(self) -> None:
        self.transactional = True
        self.reply(self.make("tx.select-ok"))

    def on_tx_commit(self, _arrival: Arrival) -> None:
        """tx.commit: publishes and acknowledgements count now, or not at all; the answer comes when they are stored."""
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
        """Raise ``ReplyError`` if a transaction was rolled back, which it was to commit."""
        if transaction.failure is not None:
            ours = transaction.cause is None
            code = ReplyCode091.INTERNAL_ERROR if ours else ReplyCode091.PRECONDITION_FAILED
            raise ReplyError(code, f"nothing of the transaction is done: {transaction.failure[1]}")

    def on_tx_rollback(self, _arrival: Arrival) -> None:
        """tx.rollback."""
        self._roll_back()
        self.reply(self.make("tx.rollback-ok"))

    def _roll_back(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.rollback()

    # -- other methods ----------------------------------------------------------------------

    def on_access_request(self, _arrival: Arrival) -> None:
        """access.request, which clients of 0-8 send: everybody gets the ticket 1."""
        self.reply(self.make("access.request-ok"))

    def on_flow_ok(self, _arrival: Arrival) -> None:
        """channel.flow-ok: the client obeys."""

    # -- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """The client has closed it, or the connection is over; what came before that is still done."""
        self._closing = True
        self.run()

    def end(self) -> None:
        """Nothing more is done here: what was not acknowledged goes back."""
        if self.over:
            return
        self.over = True
        self._roll_back()
        self.consuming.end()
        self.publishing.end()
        self.run()  # what still waits is dropped
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
    """What is done with each method; any other is answered with 540."""
