"""A channel of a client: carries out its commands in order (RFC 006, 3.3).

A command is finished immediately, unless it must wait for a decision about permission, or for a commit; then the commands after
it wait too. A message that waits for the store or for room delays only confirmations: they are sent in the order of the
commands, after the effects of the commands. All commands wait while the client does not read the output that they cause
(``has_room_for_answers``).
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.states import ChannelState, HandleState
from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.broker.nodes.turns import each_in_turns, guarded, take_steps
from trio_amqp10.broker.transactions import LeaseAnswer
from trio_amqp10.core.errors import AmqpError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011, reply_text

from .faults import code_of, fault_of
from .handle import ServerHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from trio_amqp10.amqp_fast.engine.channel import Channel
    from trio_amqp10.amqp_fast.engine.events import Arrival
    from trio_amqp10.amqp_fast.engine.handle import Handle
    from trio_amqp10.amqp_fast.wire.commands import Command
    from trio_amqp10.broker.endpoints import GivenLease
    from trio_amqp10.broker.nodes.turns import Steps, Turns
    from trio_amqp10.broker.rights.guard import Wish
    from trio_amqp10.broker.transactions import Transaction

    from .connection import ServedConnection
    from .outlets import HandleOutlet

_log = logging.getLogger("trio_amqp10.container")

_R = ReplyCodeRfc011


class _Slot:
    """The place of one answer among the answers of a channel."""

    __slots__ = ("done", "handle", "write")

    def __init__(self, handle: ServerHandle | None, write: Callable[[], object]) -> None:
        self.handle = handle
        self.write = write
        self.done = False


class ServerChannel:
    """One channel.

    Args:
        peer: the client that the channel belongs to.
        engine: the channel of the engine.

    Attributes:
        peer, engine: as given.
        handles: the open handles.
        leases: leases of the messages that the client holds, by message number.
        acked: numbers that the client has acknowledged in this transaction.
        stalled: outlets that wait for a change of the channel, such as room or a resumed handle.
        settling: whether several messages are being settled; outlets are woken after that.
        over: whether the channel is closed, and further commands are dropped.
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
        self._put_off = False  # until the next turn
        self._waits = 0
        self._delayed: deque[Callable[[], object]] = deque()
        engine.on_touch = self.run

    @property
    def number(self) -> int:
        """The channel's number (CHANNEL_ID)."""
        return self.engine.id

    def statistics(self) -> dict[str, Any]:
        """Return the current figures by name."""
        return {
            "state": self.engine.state.name,
            "consumers": sum(len(handle.outlets) for handle in self.handles.values()),
            "unsettled_out": len(self.leases),
            "transactional": self._transaction is not None,
        }

    @property
    def transaction(self) -> Transaction:
        """The current transaction, which begins with the first access."""
        if self._transaction is None:
            self._transaction = self.peer.begin_transaction()
        return self._transaction

    # -- commands ---------------------------------------------------------------------------

    def run(self) -> None:
        """Carry out commands until one must wait, then deliver messages if there is room."""
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
        self.peer.pump.wake_writer()  # The reader may have waited for these commands to be taken.
        if self.engine.state is ChannelState.CLOSED and not self._waits and not self._put_off:
            self.end()
        if not self.over and not self.settling:
            stalled, self.stalled = self.stalled, {}
            take_steps(turns, each_in_turns(turns, iter(stalled), _wake))

    def _may_answer(self) -> bool:
        """Whether the client may cause more output; always True if none can be written."""
        over = self.over or self.engine.state is not ChannelState.OPEN
        return over or self.peer.engine.has_room_for_answers

    def _resume(self, go_on: Callable[[], object]) -> None:
        """Continue a command that had to wait, now or when there is room for its output."""
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
        """Carry out a part of a command; a refusal closes the handle or the channel."""
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
            self.fail(
                handle, ReplyError(_R.INTERNAL_ERROR, "the server failed to carry out the command", level)
            )

    def fail(self, handle: ServerHandle | None, fault: ReplyError) -> None:
        """Close the handle or the channel, and return the client's messages."""
        if handle is not None and fault.level is Level.HANDLE:
            if not handle.over:
                handle.engine.close(fault.code, fault.reply_text)
                self.end_handle(handle)
        elif not self.over:
            self.engine.close(fault.code, fault.reply_text)
            self.end()

    # -- answers ----------------------------------------------------------------------------

    def is_open(self, handle: ServerHandle) -> bool:
        """Whether a message may be written to the handle."""
        return self.engine.state is ChannelState.OPEN and handle.engine.state is HandleState.OPEN

    def write(self, handle: ServerHandle, command: Command) -> None:
        """Write an answer to the handle, unless we have closed it."""
        answered = (HandleState.OPEN, HandleState.CLOSE_RECEIVED)
        if self.engine.state is ChannelState.OPEN and handle.engine.state in answered:
            handle.engine.write(command)

    def reserve(self, handle: ServerHandle | None, write: Callable[[], object]) -> Callable[[], object]:
        """Reserve the next place among the answers.

        Return a function to call when ``write`` may be called.
        """
        slot = _Slot(handle, write)
        self._slots.append(slot)
        return partial(self._fill, slot)

    def answer(self, handle: ServerHandle | None, write: Callable[[], object]) -> None:
        """Call ``write`` after all answers that are due before it."""
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

    # -- permission -------------------------------------------------------------------------

    def ask(self, handle: ServerHandle | None, wish: Wish, then: Callable[[], object]) -> None:
        """Call ``then`` if the client has the permission, or close the handle with 403."""
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
        """Roll back the transaction if the body refuses a message of a transacted channel."""
        try:
            yield
        except (RefusedError, ReplyError) as refusal:
            if self.engine.transacted:
                self.transaction.refuse(refusal)
            raise

    def ask_whether(
        self, handle: ServerHandle, wish: Wish, then: Callable[[RefusedError | None], object]
    ) -> None:
        """Call ``then`` with None if the client has the permission, else with the refusal."""
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

    # -- commands of the channel ------------------------------------------------------------

    def reply(self, command: Any) -> None:
        """Confirm a command of the channel, if the client asked for that."""
        if command.confirm_tag and self.engine.state is ChannelState.OPEN:
            self.engine.write(
                spec.ChannelReply(confirm_tag=command.confirm_tag, reply_text=reply_text(_R.SUCCESS))
            )

    def on_ack(self, arrival: Arrival) -> None:
        """Process CHANNEL ACK: settle the messages, in a transaction at its commit."""
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
        """Settle messages and then answer the command.

        Many messages are settled in several turns; later commands of the channel wait until then.
        """
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
        """Process CHANNEL COMMIT: settle and place all messages, or none."""
        for number in arrival.numbers:
            lease = self.leases.pop(number, None)
            # From here on the transaction decides about the lease, even if the channel ends.
            if lease is not None:
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
                why = f"the commit failed, nothing of the transaction was done: {transaction.failure[1]}"
                raise ReplyError(code_of(transaction.cause), why, Level.CHANNEL)
            self.reply(arrival.command)

        def go_on() -> None:
            self._waits -= 1
            if not self.over:
                self.answer(None, reply_committed)

        transaction.commit(lambda: self._resume(go_on))

    def _keep(self, number: int, lease: GivenLease) -> None:
        """Restore the lease after a failed commit, or return it if the channel ended."""
        if self.over:
            lease.lost()
        else:
            self.leases[number] = lease

    def on_rollback(self, arrival: Arrival) -> None:
        """Process CHANNEL ROLLBACK: drop sent messages, and return received ones."""
        self._roll_back()
        self.acked.clear()
        self._settle(arrival, lambda lease: lease.released())

    def _roll_back(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.rollback()

    def on_close(self, _arrival: Arrival) -> None:
        """Process CHANNEL CLOSE: answer it after all earlier commands."""
        self.answer(None, self._close)

    # -- close ------------------------------------------------------------------------------

    def _close_handle(self, handle: ServerHandle) -> None:
        self.end_handle(handle)
        handle.engine.close(_R.SUCCESS, reply_text(_R.SUCCESS))

    def end_handle(self, handle: ServerHandle) -> None:
        """End a handle; its pending answers are dropped."""
        self.handles.pop(handle.engine, None)
        handle.end()
        for slot in self._slots:
            slot.done = slot.done or slot.handle is handle
        self._flush()

    def _close(self) -> None:
        self.end()
        self.engine.close(_R.SUCCESS, reply_text(_R.SUCCESS))

    def end(self) -> None:
        """End the channel: roll back, and return unacknowledged messages."""
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
        take_steps(turns, each_in_turns(turns, iter(leases.values()), lambda lease: lease.lost()))
        self.stalled.clear()
        self.peer.destinations.drop_temporaries(self)
        self.run()  # This drops the commands that still wait.
        self.peer.forget(self)


def _wake(outlet: HandleOutlet) -> None:
    outlet.wake()


_REACTIONS: dict[type[Command], Callable[[ServerChannel, Arrival], object]] = {
    spec.ChannelAck: ServerChannel.on_ack,
    spec.ChannelCommit: ServerChannel.on_commit,
    spec.ChannelRollback: ServerChannel.on_rollback,
    spec.ChannelClose: ServerChannel.on_close,
}
