"""One channel of a client of AMQP/Fast: takes its commands one after the other, and answers each (RFC 006, 3.3).

A command is done when it is taken, unless it has to wait for an answer about permission, or for a commit. Then those behind it
wait too. A message that waits for the store or for room holds up nothing but what confirms it: confirmations go out in the
order of the commands, behind what the commands had for effects. All commands wait while the client does not read what they made us
write (``has_room_for_answers``).

Knows the nodes by its handles.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.faults import Level, ReplyError
from trio_amqp10.amqp_fast.states import ChannelState, HandleState
from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.container.nodes.turns import each_in_turns, guarded, take_steps
from trio_amqp10.container.transactions import LeaseAnswer
from trio_amqp10.errors import AmqpError
from trio_amqp10.reply_codes import ReplyCodeRfc011, reply_text

from .faults import code_of, fault_of
from .handle import ServerHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from trio_amqp10.amqp_fast.channel import Channel
    from trio_amqp10.amqp_fast.commands import Command
    from trio_amqp10.amqp_fast.events import Arrival
    from trio_amqp10.amqp_fast.handle import Handle
    from trio_amqp10.container.endpoints import GivenLease
    from trio_amqp10.container.nodes.turns import Steps, Turns
    from trio_amqp10.container.rights.guard import Wish
    from trio_amqp10.container.transactions import Transaction

    from .connection import ServedConnection
    from .outlets import HandleOutlet

__all__ = ["ServerChannel"]

_log = logging.getLogger("trio_amqp10.container")

_R = ReplyCodeRfc011


class _Slot:
    """The place of one answer among those of a channel."""

    __slots__ = ("done", "handle", "write")

    def __init__(self, handle: ServerHandle | None, write: Callable[[], object]) -> None:
        self.handle = handle
        self.write = write
        self.done = False


class ServerChannel:
    """One channel.

    Args:
        peer: whose it is.
        engine: the channel of the engine.

    Attributes:
        peer, engine: as given.
        handles: those that are open.
        leases: messages that the client has, by number.
        acked: numbers of those that it has acknowledged in this transaction.
        stalled: outlets that wait for something to change.
        settling: whether several messages are settled at once: outlets are woken behind that.
        over: whether it is closed, and nothing more is done on it.
    """

    def __init__(self, peer: ServedConnection, engine: Channel) -> None:
        self.peer = peer
        self.engine = engine
        self.handles: dict[Handle, ServerHandle] = {}
        self.leases: dict[int, GivenLease] = {}
        self.acked: set[int] = set()
        self.stalled: dict[HandleOutlet, None] = {}
        self.settling: bool = False
        self.over: bool = False
        self._slots: deque[_Slot] = deque()
        self._flushing = False
        self._transaction: Transaction | None = None
        self._running = False
        self._put_off = False  # until another turn
        self._waits = 0
        self._delayed: deque[Callable[[], object]] = deque()
        engine.on_touch = self.run

    @property
    def transaction(self) -> Transaction:
        """The transaction that is under way; begun when it is first asked for."""
        if self._transaction is None:
            self._transaction = self.peer.begin_transaction()
        return self._transaction

    # -- commands ---------------------------------------------------------------------------

    def run(self) -> None:
        """Do what came, as far as nothing has to wait, and send what there is room for."""
        if self._running:
            return
        self._running = True
        turns, obeyed = self.peer.turns, False
        try:
            while self._delayed and self._may_answer():
                self._delayed.popleft()()
            while not self._waits and self._may_answer():
                if obeyed and turns.is_over() and self.engine.has_arrivals:
                    self._wait_for_turn(turns)
                    break
                if (arrival := self.engine.next_arrival()) is None:
                    break
                obeyed = True
                if not self.over:
                    self._obey(arrival)
        finally:
            self._running = False
        self.peer.pump.wake_writer()  # what was taken may have been why nothing more was read
        if self.engine.state is ChannelState.CLOSED and not self._waits and not self._put_off:
            self.end()
        if not self.over and not self.settling:
            stalled, self.stalled = self.stalled, {}
            take_steps(turns, each_in_turns(turns, iter(stalled), _wake))

    def _may_answer(self) -> bool:
        """Whether the client may make us write more; always when nothing more can be written to the channel."""
        over = self.over or self.engine.state is not ChannelState.OPEN
        return over or self.peer.engine.has_room_for_answers

    def _resume(self, go_on: Callable[[], object]) -> None:
        """Go on with a command that had to wait; later, if there is no room for what it writes."""
        if self._may_answer():
            go_on()
            self.run()
        else:
            self._delayed.append(go_on)

    def _wait_for_turn(self, turns: Turns) -> None:
        if not self._put_off:
            self._put_off = True
            self.peer.postponed += 1
            turns.later(self._on_turn)

    def _on_turn(self) -> None:
        self._put_off = False
        self.peer.postponed -= 1
        self.run()

    def _obey(self, arrival: Arrival) -> None:
        if arrival.handle is None:
            self.attempt(None, partial(_REACTIONS[type(arrival.command)], self, arrival))
            return
        handle = self.handles.get(arrival.handle)
        if isinstance(arrival.command, spec.HandleOpen):
            handle = self.handles[arrival.handle] = ServerHandle(self, arrival.handle)
        if handle is None or handle.over:
            return
        if isinstance(arrival.command, spec.HandleClose):
            self.answer(handle, partial(self._close_handle, handle))
        else:
            self.attempt(handle, partial(handle.obey, arrival))

    def attempt(self, handle: ServerHandle | None, call: Callable[[], object]) -> None:
        """Do a part of a command; what it is refused with closes its handle, or the channel."""
        level = Level.CHANNEL if handle is None else Level.HANDLE
        try:
            call()
        except ReplyError as fault:
            self.fail(handle, fault)
        except RefusedError as refusal:
            self.fail(handle, fault_of(refusal, level))
        except AmqpError as failure:
            _log.debug("channel %d: %s", self.engine.id, failure)
            self.fail(handle, ReplyError(_R.INTERNAL_ERROR, str(failure), level))
        except Exception:
            _log.exception("a command of channel %d failed", self.engine.id)
            self.fail(handle, ReplyError(_R.INTERNAL_ERROR, "the service failed", level))

    def fail(self, handle: ServerHandle | None, fault: ReplyError) -> None:
        """Close the handle, or the channel, and give back what the client has."""
        if handle is not None and fault.level is Level.HANDLE:
            if not handle.over:
                handle.engine.close(fault.code, fault.reply_text)
                self.end_handle(handle)
        elif not self.over:
            self.engine.close(fault.code, fault.reply_text)
            self.end()

    # -- answers ----------------------------------------------------------------------------

    def is_open(self, handle: ServerHandle) -> bool:
        """Whether something may be written to the handle."""
        return self.engine.state is ChannelState.OPEN and handle.engine.state is HandleState.OPEN

    def write(self, handle: ServerHandle, command: Command) -> None:
        """Write an answer to the handle, unless we have closed that."""
        answered = (HandleState.OPEN, HandleState.CLOSE_RECEIVED)
        if self.engine.state is ChannelState.OPEN and handle.engine.state in answered:
            handle.engine.write(command)

    def reserve(self, handle: ServerHandle | None, write: Callable[[], object]) -> Callable[[], object]:
        """Keep a place among the answers; call what this returns when ``write`` may be called."""
        slot = _Slot(handle, write)
        self._slots.append(slot)
        return partial(self._fill, slot)

    def answer(self, handle: ServerHandle | None, write: Callable[[], object]) -> None:
        """Call ``write`` behind all answers that are due before."""
        self.reserve(handle, write)()

    def _fill(self, slot: _Slot) -> None:
        slot.done = True
        self._flush()

    def _flush(self) -> None:
        if self._flushing:
            return
        self._flushing = True
        try:
            while self._slots and self._slots[0].done:
                slot = self._slots.popleft()
                self.attempt(slot.handle, slot.write)
        finally:
            self._flushing = False

    # -- what a command may wait for --------------------------------------------------------

    def ask(self, handle: ServerHandle | None, wish: Wish, then: Callable[[], object]) -> None:
        """Do ``then`` if the client may do this; otherwise the handle is closed with 403."""
        if self.peer.is_granted(wish):
            then()
            return

        def grant_or_raise(refusal: RefusedError | None) -> None:
            with self.sending() if wish[0] == "send" else nullcontext():
                if refusal is not None:
                    raise refusal
                self.peer.grant(wish)
                then()

        self._ask(handle, wish, grant_or_raise)

    @contextmanager
    def sending(self) -> Generator[None]:
        """If the body refuses a message of a transacted channel, the transaction that it was part of is rolled back."""
        try:
            yield
        except (RefusedError, ReplyError) as refusal:
            if self.engine.transacted:
                self.transaction.refuse(refusal)
            raise

    def ask_whether(
        self, handle: ServerHandle, wish: Wish, then: Callable[[RefusedError | None], object]
    ) -> None:
        """Do ``then`` with None if the client may do this, otherwise with the refusal."""
        if self.peer.is_granted(wish):
            then(None)
        else:
            self._ask(handle, wish, then)

    def _ask(
        self, handle: ServerHandle | None, wish: Wish, then: Callable[[RefusedError | None], object]
    ) -> None:
        self._waits += 1

        def go_on(refusal: RefusedError | None) -> None:
            self._waits -= 1
            if not self.over and (handle is None or not handle.over):
                self.attempt(handle, partial(then, refusal))

        self.peer.guard.ask(wish, lambda refusal: self._resume(partial(go_on, refusal)))

    # -- the channel ------------------------------------------------------------------------

    def reply(self, command: Any) -> None:
        """Confirm a command of the channel, if the client asked for that."""
        if command.confirm_tag and self.engine.state is ChannelState.OPEN:
            self.engine.write(
                spec.ChannelReply(confirm_tag=command.confirm_tag, reply_text=reply_text(_R.SUCCESS))
            )

    def on_ack(self, arrival: Arrival) -> None:
        """CHANNEL ACK: these are processed; in a transaction, once it is committed."""
        if self.engine.transacted:
            self.acked.update(arrival.numbers)
            for number in arrival.numbers:
                lease = self.leases.get(number)
                if lease is not None:
                    lease.outlet.wake()
            self.answer(None, partial(self.reply, arrival.command))
        else:
            self._settle(arrival, lambda lease: lease.accepted())

    def _settle(self, arrival: Arrival, settle: Callable[[GivenLease], object]) -> None:
        """Settle messages, in pieces if they are many, and answer; what comes behind on the channel waits for it."""
        at_once = True

        def fail(failure: Exception) -> None:
            def again() -> None:
                raise failure

            self.attempt(None, again)

        def done() -> None:
            if not self.over:
                self.answer(None, partial(self.reply, arrival.command))
            if not at_once:
                self._waits -= 1
                self.run()

        steps = guarded(self._settling(arrival.numbers, settle), fail)
        finished = take_steps(self.peer.turns, steps, done)
        at_once = False
        if not finished:
            self._waits += 1

    def _settling(self, numbers: tuple[int, ...], settle: Callable[[GivenLease], object]) -> Steps:
        is_over = self.peer.turns.is_over
        self.settling = True
        try:
            for number in numbers:
                lease = self.leases.pop(number, None)
                if lease is not None:
                    settle(lease)
                if is_over():
                    yield None
        finally:
            self.settling = False

    def on_commit(self, arrival: Arrival) -> None:
        """CHANNEL COMMIT: what was sent is placed, and what was received is processed; or nothing of it."""
        for number in arrival.numbers:
            lease = self.leases.pop(number, None)
            if (
                lease is not None
            ):  # it is the transaction's until that is decided, whatever becomes of the channel
                undo = partial(self._keep, number, lease)
                self.transaction.add(LeaseAnswer(lease, lease.accepted, removes=True, undo=undo))
        self.acked.clear()
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            self.answer(None, partial(self.reply, arrival.command))
            return
        self._waits += 1

        def reply_committed() -> None:
            if transaction.failure is not None:
                why = f"nothing of the transaction is done: {transaction.failure[1]}"
                raise ReplyError(code_of(transaction.cause), why, Level.CHANNEL)
            self.reply(arrival.command)

        def go_on() -> None:
            self._waits -= 1
            if not self.over:
                self.answer(None, reply_committed)

        transaction.commit(lambda: self._resume(go_on))

    def _keep(self, number: int, lease: GivenLease) -> None:
        """A commit has failed: the message is the client's, or goes back if the channel is over."""
        if self.over:
            lease.lost()
        else:
            self.leases[number] = lease

    def on_rollback(self, arrival: Arrival) -> None:
        """CHANNEL ROLLBACK: what was sent is dropped, and what was received goes back."""
        self._roll_back()
        self.acked.clear()
        self._settle(arrival, lambda lease: lease.released())

    def _roll_back(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.rollback()

    def on_close(self, _arrival: Arrival) -> None:
        """CHANNEL CLOSE: answered behind all that came before."""
        self.answer(None, self._close)

    # -- the end ----------------------------------------------------------------------------

    def _close_handle(self, handle: ServerHandle) -> None:
        self.end_handle(handle)
        handle.engine.close(_R.SUCCESS, reply_text(_R.SUCCESS))

    def end_handle(self, handle: ServerHandle) -> None:
        """Nothing more is done on the handle; answers that it waits for are not written."""
        self.handles.pop(handle.engine, None)
        handle.end()
        for slot in self._slots:
            slot.done = slot.done or slot.handle is handle
        self._flush()

    def _close(self) -> None:
        self.end()
        self.engine.close(_R.SUCCESS, reply_text(_R.SUCCESS))

    def end(self) -> None:
        """Nothing more is done here: the transaction is rolled back, what was not acknowledged goes back."""
        if self.over:
            return
        self.over = True
        self._slots.clear()
        self._roll_back()
        self.acked.clear()
        for handle in list(self.handles.values()):
            self.handles.pop(handle.engine, None)
            handle.end()
        leases, self.leases = self.leases, {}
        turns = self.peer.turns
        take_steps(turns, each_in_turns(turns, iter(leases.values()), _lose))
        self.stalled.clear()
        self.peer.destinations.drop_temporaries(self)
        self.run()  # what still waits is dropped
        self.peer.forget(self)


def _wake(outlet: HandleOutlet) -> None:
    outlet.wake()


def _lose(lease: GivenLease) -> None:
    lease.lost()


_REACTIONS: dict[type[Command], Callable[[ServerChannel, Arrival], object]] = {
    spec.ChannelAck: ServerChannel.on_ack,
    spec.ChannelCommit: ServerChannel.on_commit,
    spec.ChannelRollback: ServerChannel.on_rollback,
    spec.ChannelClose: ServerChannel.on_close,
}
