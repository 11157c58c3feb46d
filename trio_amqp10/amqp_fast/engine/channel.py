"""A channel: a serial stream of commands and messages (RFC 006, 2.2.5, 3.3).

Commands and messages are written in order. On a restartable channel a message of several fragments is prepared first, and
anything written after it waits until the peer is ready (3.5.13). After our close, each command of the peer is answered with
another close, until the peer's close arrives (3.3.7). A channel writes by its engine.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError
from trio_amqp10.amqp_fast.wire.frames import frame_of
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011

from . import assembly, services
from .events import Arrival, ChannelFailed, HandleFailed
from .handle import Handle, OutgoingMessage
from .message import fragments_of, hash_of
from .message_numbers import SentNumbers
from .services import Service
from .states import CHANNEL, ChannelState, HandleState, Lifecycle, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp_fast.wire.commands import Command

    from .events import Event
    from .message import Message
    from .tuning import Tuning

_R = ReplyCodeRfc011
_WRITTEN = {
    EndpointRole.CLIENT: (spec.ChannelAck, spec.ChannelCommit, spec.ChannelRollback),
    EndpointRole.SERVER: (spec.ChannelReply,),
}
_TRANSACTION = (spec.ChannelCommit, spec.ChannelRollback)


def _nothing() -> None:
    """Do nothing."""


class Host(assembly.Host, Protocol):
    """The part of the engine that channels use."""

    role: EndpointRole
    held: int

    @property
    def frame_max(self) -> int: ...
    def enqueue(self, channel: Channel, octets: bytes, *, paced: bool = False) -> None: ...
    def emit(self, event: Event) -> None: ...
    def touch(self, channel: Channel) -> None: ...
    def forget(self, channel: Channel) -> None: ...
    def handle(self, number: int) -> Handle | None: ...
    def add_handle(self, handle: Handle) -> None: ...
    def remove_handle(self, handle: Handle) -> None: ...
    def check_handles(self) -> None: ...
    def free_handle(self) -> int: ...


class Channel:
    """One channel.

    Args:
        host: the engine.
        command: the command that opened the channel.

    Attributes:
        id: the number of the channel.
        transacted, restartable: as in ``command``.
        handles: handles that are open or closing.
        numbers: the numbers of messages sent by a server.
        assembly: collects the fragments of the message that is arriving.
        on_touch: called when something has changed.
    """

    def __init__(self, host: Host, command: spec.ChannelOpen) -> None:
        self._host = host
        self.id: int = command.channel_id
        self.role: EndpointRole = host.role
        self.transacted: Final = command.transacted
        self.restartable: Final = command.restartable
        self.handles: dict[int, Handle] = {}
        self.numbers: SentNumbers = SentNumbers(transacted=command.transacted)
        self.assembly: Final = assembly.Assembly(host)
        self.on_touch: Callable[[], object] = _nothing
        self._lifecycle = Lifecycle(CHANNEL, ChannelState.CLOSED, ChannelState.CLOSED)
        self._lifecycle.step(Step.OPEN)
        self._arrivals: deque[Arrival] = deque()
        self._held = 0
        self._tags: list[int] = [command.confirm_tag] if command.confirm_tag else []
        self._sent = 0  # messages of this transaction
        self._waiting: deque[tuple[Handle | None, bytes | OutgoingMessage]] = deque()
        self._preparing: OutgoingMessage | None = None
        self._streaming: Handle | None = None
        self._goodbye = b""

    @property
    def state(self) -> ChannelState:
        """CLOSED, OPEN, CLOSE_SENT or CLOSE_RECEIVED."""
        return self._lifecycle.state

    @property
    def partial(self) -> int:
        """Octets of incomplete messages on the channel, prepared messages included."""
        prepared = (each.prepared for each in self.handles.values())
        return self.assembly.counted + sum(len(each.body) for each in prepared if each is not None)

    @property
    def largest(self) -> int:
        """Octets of a command or a fragment that the peer accepts."""
        return self._host.frame_max

    @property
    def tuning(self) -> Tuning:
        """The header dictionaries that both ends have agreed on."""
        return self._host.tuning

    def wake(self) -> None:
        """Call ``on_touch``: a read by the pump has touched the channel."""
        self.on_touch()

    @property
    def has_arrivals(self) -> bool:
        """Whether ``next_arrival`` will return a command."""
        return bool(self._arrivals)

    def next_arrival(self) -> Arrival | None:
        """Return the oldest command that was not taken yet; None if there is none."""
        if not self._arrivals:
            return None
        arrival = self._arrivals.popleft()
        if self._held:
            self._held -= arrival.size
            self._host.held -= arrival.size
        return arrival

    # -- commands that we send --------------------------------------------------------------

    def write(self, command: Command) -> None:
        """Write a command of the channel; ``channel_id`` is filled in.

        Raises:
            LocalProtocolError: the command is not allowed for this role or state, or outside of a transaction; nothing was
                written.
        """
        if not isinstance(command, _WRITTEN[self.role]):
            raise LocalProtocolError(f"a {self.role.value} cannot write {command.plan.name}")
        self.check_writable()
        if isinstance(command, spec.ChannelReply) and command.confirm_tag not in self._tags:
            raise LocalProtocolError(f"no command waits for a reply with the tag {command.confirm_tag}")
        if isinstance(command, _TRANSACTION) and not self.transacted:
            raise LocalProtocolError(f"{command.plan.name} on a channel that is not transacted")
        made = replace(cast("Any", command), channel_id=self.id)
        self.put(made)
        if isinstance(command, spec.ChannelReply):
            self._tags.remove(command.confirm_tag)
        elif tag := made.confirm_tag:
            self._tags.append(tag)

    def open_handle(self, command: spec.HandleOpen) -> Handle:
        """Open a handle of a client.

        ``channel_id`` is filled in; a ``handle_id`` of 0 is replaced by a free number.

        Raises:
            LocalProtocolError: this is not an open channel of a client, the number is in use, or the service does not exist.
        """
        if self.role is not EndpointRole.CLIENT:
            raise LocalProtocolError("only a client opens handles")
        self.check_writable()
        number = command.handle_id or self._host.free_handle()
        if self._host.handle(number) is not None:
            raise LocalProtocolError(f"handle {number} is already open")
        command = replace(command, channel_id=self.id, handle_id=number)
        try:
            services.check_open(command)
        except ReplyError as fault:
            raise LocalProtocolError(fault.description) from None
        self.put(command)
        return self._add(command)

    def close(self, code: int = 200, text: str = "") -> None:
        """Write a close: of our own, or as the answer to the peer's close.

        Messages that wait for the peer's READY are not sent.

        Raises:
            LocalProtocolError: the text is not a valid short string.
        """
        if self._lifecycle.permits(Step.SEND_CLOSE):
            command = spec.ChannelClose(channel_id=self.id, reply_code=code, reply_text=text)
            self._goodbye = frame_of(command)
            self._host.enqueue(self, self._goodbye)
            self._lifecycle.step(Step.SEND_CLOSE)
            self._stop_sending()
            self.assembly.break_off()
            for handle in self.handles.values():
                handle.keep_prepared()
            if self.state is ChannelState.CLOSED:
                self._end()

    def lose(self) -> None:
        """End the channel, because its connection has ended."""
        self._lifecycle.step(Step.LOST)
        self._end()

    def check_writable(self) -> None:
        """Raise ``LocalProtocolError`` unless the channel is open."""
        if self.state is not ChannelState.OPEN:
            raise LocalProtocolError(f"channel {self.id} is {self.state.name.lower()}")

    def check_streaming(self) -> None:
        """Raise ``LocalProtocolError`` during a stream: it excludes messages (3.5.3.1)."""
        if self._streaming is not None:
            raise LocalProtocolError(f"channel {self.id} carries a stream")

    # -- for handles ------------------------------------------------------------------------

    def put(self, command: Command, handle: Handle | None = None) -> None:
        """Write a command after all earlier ones.

        Raises:
            LocalProtocolError: the command cannot be encoded, or is larger than the peer accepts.
        """
        self._put(handle, self._framed(command))

    def put_message(self, message: OutgoingMessage) -> None:
        """Write a message after all earlier commands and messages."""
        # The message may have to wait, so a command that cannot be encoded must fail here.
        frame_of(message.command)
        self._put(message.handle, message)

    def put_stream(self, handle: Handle, command: Command, block: bytes, *, first: bool) -> None:
        """Write one fragment of a stream.

        Raises:
            LocalProtocolError: another stream is active, or this stream has not begun.
        """
        if self._streaming is not (None if first else handle):
            raise LocalProtocolError(f"channel {self.id} carries another stream, or this one has not begun")
        self._streaming = handle
        self._put(handle, frame_of(command) + block)

    def write_ready(self, handle: Handle, size: int) -> None:
        """Write how much of a prepared message is here.

        This precedes all waiting output, because the peer continues only after it.
        """
        self._host.enqueue(self, frame_of(spec.HandleReady(handle_id=handle.id, message_size=size)))

    def end_handle(self, handle: Handle) -> None:
        """Stop the traffic of a handle, except its close.

        The handle failed, or the peer has closed it.
        """
        self.numbers.drop(handle.id)
        if self.assembly.handle is handle:
            self.assembly.break_off()
        if self._streaming is handle:
            self._streaming = None
        self._waiting = deque(each for each in self._waiting if each[0] is not handle)
        if self._preparing is not None and self._preparing.handle is handle:
            self._write_waiting()

    def remove_handle(self, handle: Handle) -> None:
        """Free the number of a handle that both ends have closed."""
        handle.lose()
        self.handles.pop(handle.id, None)
        self._host.remove_handle(handle)

    def _framed(self, command: Command) -> bytes:
        octets = frame_of(command)
        if len(octets) > self.largest:
            raise LocalProtocolError(
                f"a command of {len(octets)} octets exceeds the frame size of {self.largest}"
            )
        return octets

    def _put(self, handle: Handle | None, item: bytes | OutgoingMessage) -> None:
        if self._preparing is not None:
            self._waiting.append((handle, item))
        else:
            self._emit(item)

    def _emit(self, item: bytes | OutgoingMessage) -> None:
        if isinstance(item, bytes):
            self._host.enqueue(self, item)
            return
        block = item.head + item.body
        if self.restartable and len(block) > self.largest:
            self._preparing = item
            first = block[: self.largest]
            prepare = spec.HandlePrepare(
                handle_id=item.handle.id, fragment_size=len(first), content_hash=hash_of(item.body)
            )
            self._host.enqueue(self, frame_of(prepare) + first, paced=_is_paced(item.command))
        else:
            self._fragments(item.command, block, recovery=False)

    def _fragments(self, command: Any, block: bytes, *, recovery: bool) -> None:
        """Write a message, or the rest of it, in fragments.

        Only the last fragment contains the name of the destination and the tag (3.5.3).
        """
        pieces = list(fragments_of(block, self.largest))
        paced = _is_paced(command)
        for piece in pieces[:-1]:
            partial = replace(
                command,
                fragment_size=len(piece),
                partial=True,
                recovery=recovery,
                dest_name="",
                **({"confirm_tag": 0} if isinstance(command, spec.HandleSend) else {}),
            )
            self._host.enqueue(self, frame_of(partial) + piece, paced=paced)
        last = replace(command, fragment_size=len(pieces[-1]), recovery=recovery)
        self._host.enqueue(self, frame_of(last) + pieces[-1], paced=paced)

    def _write_waiting(self) -> None:
        """Write waiting output, up to the next message that must be prepared first."""
        self._preparing = None
        while self._waiting and self._preparing is None:
            self._emit(self._waiting.popleft()[1])

    def _stop_sending(self) -> None:
        self._waiting.clear()
        self._preparing = self._streaming = None

    # -- commands of the peer ---------------------------------------------------------------

    def receive(self, command: Any, fragment: bytes) -> None:
        """Process a command of the channel or of one of its handles.

        Raises:
            ReplyError: the peer broke a rule, which ends the connection.
        """
        if self.state is ChannelState.CLOSE_SENT:
            self._receive_closing(command)
            return
        if self.state is ChannelState.CLOSE_RECEIVED:
            raise ReplyError(
                _R.CHANNEL_NOT_READY, f"{command.plan.name} after the close of channel {self.id}"
            )
        handle: Handle | None = None
        try:
            if isinstance(command, spec.HandleOpen):
                self._receive_open(command)
            elif (number := getattr(command, "handle_id", None)) is not None:
                handle = self.handles[number]
                self._receive_on(handle, command, fragment)
            else:
                self._receive_own(command)
        except ReplyError as fault:
            if fault.level is Level.CONNECTION:
                raise
            if fault.level is Level.HANDLE and handle is not None:
                self.fail_handle(handle, fault)
            else:
                self.fail(fault)

    def fail(self, fault: ReplyError) -> None:
        """Close the channel because of an error of the peer."""
        self.close(fault.code, fault.reply_text)
        self._host.emit(ChannelFailed(self, fault.code, fault.reply_text))
        self._host.touch(self)

    def fail_handle(self, handle: Handle, fault: ReplyError) -> None:
        """Close a handle because of an error of the peer."""
        handle.close(fault.code, fault.reply_text)
        self._host.emit(HandleFailed(handle, fault.code, fault.reply_text))
        self._host.touch(self)

    def _receive_closing(self, command: Any) -> None:
        if isinstance(command, spec.ChannelClose):
            self._lifecycle.receive(Step.RECV_CLOSE)
            self._end()
            return
        if isinstance(command, spec.HandleOpen) and self._host.handle(command.handle_id) is None:
            # The handle is recorded, so that later commands for it are known to belong to this channel.
            self._add(command)
        self._host.enqueue(self, self._goodbye)

    def _receive_own(self, command: Any) -> None:
        numbers: tuple[int, ...] = ()
        tag = getattr(command, "confirm_tag", 0)
        if isinstance(command, spec.ChannelReply):
            if tag not in self._tags:
                raise ReplyError(
                    _R.COMMAND_NOT_VALID, f"channel reply with tag {tag}, but no command waits for it"
                )
            self._tags.remove(tag)
        elif tag:
            self._tags.append(tag)
        if isinstance(command, spec.ChannelAck):
            if self.handles and all(
                each.opened.service_type == Service.PEER for each in self.handles.values()
            ):
                raise ReplyError(_R.COMMAND_NOT_VALID, "channel ack with only peer services", Level.CHANNEL)
            numbers = self.numbers.ack(command.message_nbr)
        elif isinstance(command, _TRANSACTION):
            if not self.transacted:
                raise ReplyError(
                    _R.COMMAND_NOT_VALID,
                    f"{command.plan.name} on a channel that is not transacted",
                    Level.CHANNEL,
                )
            self._sent = 0
            numbers = self.numbers.end_transaction()
        elif isinstance(command, spec.ChannelClose):
            self._lifecycle.receive(Step.RECV_CLOSE)
            self.assembly.break_off()
            self._stop_sending()
        self._arrive(Arrival(command, None, None, numbers, _SIZE))

    def _receive_open(self, command: spec.HandleOpen) -> None:
        there = self._host.handle(command.handle_id)
        if there is not None:
            fault = ReplyError(
                _R.COMMAND_NOT_VALID, f"handle {command.handle_id} is already open", Level.HANDLE
            )
            there.channel.fail_handle(there, fault)
            return
        handle = self._add(command)
        try:
            services.check_open(command)
            self._host.check_handles()
        except ReplyError as fault:
            self.fail_handle(handle, fault)
        else:
            self._arrive(Arrival(command, handle, None, (), _SIZE))

    def _receive_on(self, handle: Handle, command: Any, fragment: bytes) -> None:
        if isinstance(command, spec.HandleClose):
            self._receive_close(handle, command)
            return
        if handle.state is HandleState.CLOSE_RECEIVED:
            raise ReplyError(
                _R.HANDLE_NOT_READY, f"{command.plan.name} after the close of handle {handle.id}"
            )
        if handle.failed:
            return
        handle.receive(command)
        numbers: tuple[int, ...] = ()
        message: Message | None = None
        if isinstance(command, spec.HandlePrepare):
            handle.receive_prepare(command, fragment)
            return
        if isinstance(command, spec.HandleReady):
            self._receive_ready(handle, command)
            return
        if isinstance(command, spec.HandleSend | spec.HandleNotify):
            message = self.assembly.take(handle, command, fragment)
            if message is None:
                return
            self._count_sent()
        elif isinstance(command, spec.HandleUnget):
            if not self.numbers.unget(command.message_nbr, handle.id):
                raise ReplyError(
                    _R.MESSAGE_NOT_FOUND,
                    f"message-nbr {command.message_nbr} is not an unsettled message of this handle",
                    Level.HANDLE,
                )
            numbers = (command.message_nbr,)
        size = _SIZE if message is None else _SIZE + len(message.body)
        self._arrive(Arrival(command, handle, message, numbers, size))

    def _count_sent(self) -> None:
        limit = self._host.limits.txn_limit
        if self.transacted and self.role is EndpointRole.SERVER and limit:
            self._sent += 1
            if self._sent > limit:
                raise ReplyError(
                    _R.INSUFFICIENT_RESOURCES, f"more than {limit} messages in a transaction", Level.CHANNEL
                )

    def _receive_ready(self, handle: Handle, command: spec.HandleReady) -> None:
        message = self._preparing
        if message is None or message.handle is not handle:
            raise ReplyError(_R.COMMAND_NOT_VALID, "handle ready without a prepared message", Level.HANDLE)
        if command.message_size > len(message.body):
            raise ReplyError(
                _R.SYNTAX_ERROR,
                f"message-size: {command.message_size} exceeds the body of {len(message.body)} octets",
                Level.HANDLE,
            )
        self._fragments(message.command, message.body[command.message_size :], recovery=True)
        self._write_waiting()

    def _receive_close(self, handle: Handle, command: spec.HandleClose) -> None:
        handle.life.receive(Step.RECV_CLOSE)
        self.end_handle(handle)
        if handle.state is HandleState.CLOSED:
            self.remove_handle(handle)
        self._arrive(Arrival(command, handle, None, (), _SIZE))

    def _arrive(self, arrival: Arrival) -> None:
        self._held += arrival.size
        self._host.held += arrival.size
        self._arrivals.append(arrival)
        self._host.touch(self)

    # -- close ------------------------------------------------------------------------------

    def _add(self, command: spec.HandleOpen) -> Handle:
        handle = self.handles[command.handle_id] = Handle(self, command)
        self._host.add_handle(handle)
        return handle

    def _end(self) -> None:
        """End the channel for good.

        Arrivals can still be taken, but they no longer count towards ``Limits.buffer``.
        """
        self._stop_sending()
        self.assembly.break_off()
        for handle in list(self.handles.values()):
            self.remove_handle(handle)
        self._host.held -= self._held
        self._held = 0
        self._host.forget(self)
        self._host.touch(self)


def _is_paced(command: Any) -> bool:
    """Whether the sender waits for room: true for all but answers to BROWSE."""
    return isinstance(command, spec.HandleSend) or bool(command.delivered)


_SIZE = 256
"""The minimum that a command counts towards ``Limits.buffer``, in octets."""
