"""One handle: access to a destination, within a channel (RFC 006, 3.5).

What a client may write to a handle is in ``services``; the same rules close a handle of a peer that breaks them. Knows its
channel, by which it writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.reply_codes import ReplyCodeRfc011

from . import services, spec
from .faults import Level, ReplyError
from .message import head_octets
from .services import Service
from .states import EXPECTED, HANDLE, HandleState, Lifecycle, Step, When

if TYPE_CHECKING:
    from .channel import Channel
    from .commands import Command
    from .message import Message
    from .resumable_messages import PartialMessage

__all__ = ["Handle", "OutgoingMessage"]

_R = ReplyCodeRfc011


class OutgoingMessage:
    """A message that waits to be written.

    Attributes:
        handle: by which it goes.
        head: its head, in octets.
        body: its body.
        command: the command of its last fragment.
    """

    __slots__ = ("body", "command", "handle", "head")

    def __init__(self, handle: Handle, head: bytes, body: bytes, command: Command) -> None:
        self.handle: Handle = handle
        self.head: Final = head
        self.body: bytes = body
        self.command: Final = command


class Handle:
    """One handle.

    Args:
        channel: whose it is.
        command: that opened it.

    Attributes:
        channel, opened: as given.
        id: its number.
        prepared: the message that the peer has prepared and not yet sent.
        failed: whether it was closed for an error; what comes then is discarded (3.5.16).
    """

    def __init__(self, channel: Channel, command: spec.HandleOpen) -> None:
        self.channel = channel
        self.opened = command
        self.id: Final = command.handle_id
        self.prepared: PartialMessage | None = None
        self.failed: bool = False
        self.life: Final = Lifecycle(HANDLE, HandleState.CLOSED, HandleState.CLOSED)
        self.life.step(Step.OPEN)
        self._tags: list[int] = [command.confirm_tag] if command.confirm_tag else []
        self._queries = 0
        self._browses: list[int] = []
        self._consumes = False

    @property
    def state(self) -> HandleState:
        """CLOSED, OPEN, CLOSE_SENT or CLOSE_RECEIVED."""
        return self.life.state

    @property
    def service(self) -> Service:
        """Which service it is for."""
        return Service(self.opened.service_type)

    # -- what we do -------------------------------------------------------------------------

    def write(self, command: Command) -> None:
        """Write a command that carries no message; its ``handle_id`` is set.

        Raises:
            LocalProtocolError: not this role's, not now, or not of this service; nothing was written.
        """
        role = self.channel.role
        rule = EXPECTED[_OTHER[role]].get(type(command))
        if rule is None or rule.when is not When.HANDLE_OPEN or type(command) in _OWN:
            raise LocalProtocolError(f"{command.plan.name} is not for a {role.value} to write to a handle")
        self._check_writable(answers=role is EndpointRole.SERVER)
        self._check_rules(command)
        made = replace(cast("Any", command), handle_id=self.id)
        self.channel.put(made, self)
        self._note(made)

    def send(self, message: Message, dest_name: str = "", confirm_tag: int = 0) -> None:
        """A client's message (3.5.3); the reply names ``confirm_tag``, if that is not 0.

        Raises:
            LocalProtocolError: not a client's open handle, or not to be encoded; nothing was written.
        """
        command = spec.HandleSend(handle_id=self.id, dest_name=dest_name, confirm_tag=confirm_tag)
        self._send(EndpointRole.CLIENT, message, command)
        self._note(command)

    def notify(
        self, message: Message, dest_name: str = "", *, redelivered: bool = False, unreliable: bool = False
    ) -> int:
        """A server's message for the client to process (3.5.11), which it does not acknowledge if it is ``unreliable``.

        Returns:
            Its number, which the client's ACK will name.

        Raises:
            LocalProtocolError: not a server's open handle, the client does not consume, or not to be encoded.
        """
        stored = self.service is not Service.PEER
        numbers = self.channel.numbers
        command = spec.HandleNotify(
            handle_id=self.id,
            message_nbr=numbers.last + 1,
            delivered=True,
            redelivered=redelivered,
            dest_name=dest_name,
        )
        self._send(EndpointRole.SERVER, message, command)
        return numbers.next(self.id, unreliable=unreliable or not stored)

    def show(self, number: int, message: Message, dest_name: str = "") -> None:
        """A server's answer to a BROWSE, which the client does not process (3.5.9).

        Raises:
            LocalProtocolError: not a server's open handle, nothing was browsed, or not to be encoded.
        """
        command = spec.HandleNotify(handle_id=self.id, message_nbr=number, dest_name=dest_name)
        self._send(EndpointRole.SERVER, message, command)
        self._note(command)

    def stream(self, octets: bytes, head: spec.MessageHead | None = None) -> None:
        """A piece of a stream; the first has a head, and then the channel carries no other message (3.5.3.1).

        Raises:
            LocalProtocolError: not an open handle of a peer service, or the piece is larger than a fragment.
        """
        channel = self.channel
        block = octets if head is None else head_octets(head, 0, channel.largest) + octets
        if len(block) > channel.largest:
            raise LocalProtocolError(f"{len(block)} octets, where a fragment has {channel.largest}")
        make = spec.HandleSend if channel.role is EndpointRole.CLIENT else spec.HandleNotify
        command = make(handle_id=self.id, fragment_size=len(block), partial=True, streaming=True)
        self._check_writable()
        if self.service is not Service.PEER:
            raise LocalProtocolError("only peer services have streams")
        channel.put_stream(self, command, block, first=head is not None)

    def close(self, code: int = 200, text: str = "") -> None:
        """Write a close: ours, or the answer to the peer's. What the peer said before still arrives, if the code is 2xx.

        Raises:
            LocalProtocolError: the text is no short string.
        """
        failed = code // 100 != 2
        if self.life.permits(Step.SEND_CLOSE):
            command = spec.HandleClose(handle_id=self.id, reply_code=code, reply_text=text)
            if failed:
                self.channel.end_handle(self)
            self.channel.put(command)
            self.life.step(Step.SEND_CLOSE)
            if self.state is HandleState.CLOSED:
                self.channel.remove_handle(self)
        self.failed = self.failed or failed

    def lose(self) -> None:
        """What is around the handle is gone."""
        self.life.step(Step.LOST)
        if self.prepared is not None:
            self.channel.assembly.keep(self.prepared)
            self.prepared = None

    def _send(self, role: EndpointRole, message: Message, command: Any) -> None:
        channel = self.channel
        if channel.role is not role:
            raise LocalProtocolError(f"{command.plan.name} is a {role.value}'s")
        self._check_writable()
        self._check_rules(command)
        channel.check_streaming()
        head = head_octets(channel.tuning.short(message.head), len(message.body), channel.largest)
        channel.put_message(OutgoingMessage(self, head, message.body, command))

    def _check_writable(self, *, answers: bool = False) -> None:
        """Raise ``LocalProtocolError`` unless it is open; what the peer said before its close may be answered (3.5.16)."""
        self.channel.check_writable()
        if self.state is not HandleState.OPEN and not (answers and self.state is HandleState.CLOSE_RECEIVED):
            raise LocalProtocolError(f"handle {self.id} is {self.state.name.lower()}")

    def _check_rules(self, command: Command) -> None:
        """What the peer would find wrong is found here."""
        try:
            if self.channel.role is EndpointRole.CLIENT:
                services.check(self.opened, command)
            else:
                self._check_answer(command)
        except ReplyError as fault:
            raise LocalProtocolError(fault.description) from None

    # -- what both ends remember ------------------------------------------------------------

    def _note(self, command: Any) -> None:
        """A command that goes or comes: what may follow it."""
        tag = getattr(command, "confirm_tag", 0)
        if isinstance(command, spec.HandleReply):
            if tag:
                self._tags.remove(tag)
            if tag in self._browses:
                self._browses.remove(tag)
        elif isinstance(command, spec.HandleNotify):
            if not command.delivered:
                del self._browses[:1]
        elif isinstance(command, spec.HandleIndex):
            self._queries -= 1
        else:
            self._ask(command, tag)

    def _ask(self, command: Any, tag: int) -> None:
        """A client's command: what will answer it."""
        if tag:
            self._tags.append(tag)
        if isinstance(command, spec.HandleQuery):
            self._queries += 1
        elif isinstance(command, spec.HandleBrowse):
            self._browses.append(tag)
        elif isinstance(command, spec.HandleConsume):
            self._consumes = True

    # -- what the peer does -----------------------------------------------------------------

    def receive(self, command: Any) -> None:
        """Check a command of the peer's, without its message.

        Raises:
            ReplyError: it closes the handle, or the connection if it is never expected now.
        """
        if self.channel.role is EndpointRole.SERVER:
            services.check(self.opened, command)
        else:
            self._check_answer(command)
        if not getattr(command, "partial", False):
            self._note(command)

    def _check_answer(self, command: Any) -> None:
        """A server's command: each answers something (3.5.17)."""
        expected = True
        if isinstance(command, spec.HandleNotify):
            services.check_fragment(self.opened, command)
            if self.service is not Service.PEER:
                expected = self._consumes if command.delivered else bool(self._browses)
        elif isinstance(command, spec.HandleCreated):
            expected = self.opened.temporary
        elif isinstance(command, spec.HandleIndex):
            expected = self._queries > 0
        elif isinstance(command, spec.HandleReply):
            tag = command.confirm_tag
            expected = tag in (self._tags if tag else self._browses)
        if not expected:
            raise ReplyError(_R.COMMAND_NOT_VALID, f"{command.plan.name} answers nothing on handle {self.id}")

    def receive_prepare(self, command: spec.HandlePrepare, fragment: bytes) -> None:
        """The peer prepares a message: write how much of it is there (3.5.13, 3.5.14).

        Raises:
            ReplyError: it closes the handle or the channel.
        """
        if not self.channel.restartable or self.prepared is not None:
            raise ReplyError(
                _R.COMMAND_NOT_VALID,
                "handle prepare on a channel that is not restartable, or before the last one was sent",
                Level.HANDLE,
            )
        self.prepared = self.channel.assembly.prepare(command, fragment)
        self.channel.write_ready(self, len(self.prepared.body))


_OWN = frozenset({spec.HandleSend, spec.HandleNotify, spec.HandlePrepare, spec.HandleReady, spec.HandleClose})
"""Commands that methods of their own write."""

_OTHER = {EndpointRole.CLIENT: EndpointRole.SERVER, EndpointRole.SERVER: EndpointRole.CLIENT}
