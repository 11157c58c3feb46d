"""A handle: access to a destination, within a channel (RFC 006, 3.5).

``services`` has the rules for the commands that a client may write to a handle. A client that breaks them locally gets an error;
a server closes the handle of a peer that breaks them. A handle writes by its channel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011

from . import services
from .message import head_octets
from .services import Service
from .states import EXPECTED, HANDLE, HandleState, Lifecycle, Step, When

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.wire.commands import Command

    from .channel import Channel
    from .message import Message
    from .partial_messages import PartialMessage

_R = ReplyCodeRfc011


class OutgoingMessage:
    """A message that waits to be written.

    Attributes:
        handle: the handle to send it on.
        head: the encoded head.
        body: the body.
        command: the command of the last fragment.
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
        channel: the channel that the handle belongs to.
        command: the command that opened the handle.

    Attributes:
        channel, opened: as given.
        id: the number of the handle.
        prepared: the message that the peer has prepared but not yet sent.
        failed: whether the handle was closed because of an error; later commands for it are discarded (3.5.16).
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
        """The service that the handle was opened for."""
        return Service(self.opened.service_type)

    # -- commands that we send --------------------------------------------------------------

    def write(self, command: Command) -> None:
        """Write a command without a message; ``handle_id`` is filled in.

        Raises:
            LocalProtocolError: the command is not allowed for this role, this state or this service; nothing was written.
        """
        role = self.channel.role
        rule = EXPECTED[_OTHER[role]].get(type(command))
        if rule is None or rule.when is not When.HANDLE_OPEN or type(command) in _OWN:
            raise LocalProtocolError(f"a {role.value} cannot write {command.plan.name} to a handle")
        self._check_writable(answers=role is EndpointRole.SERVER)
        self._check_rules(command)
        made = replace(cast("Any", command), handle_id=self.id)
        self.channel.put(made, self)
        self._note(made)

    def send(self, message: Message, dest_name: str = "", confirm_tag: int = 0) -> None:
        """Write a client's message (3.5.3).

        The server's reply will have ``confirm_tag``, if that is not 0.

        Raises:
            LocalProtocolError: this is not an open handle of a client, or the message cannot be encoded; nothing was written.
        """
        command = spec.HandleSend(handle_id=self.id, dest_name=dest_name, confirm_tag=confirm_tag)
        self._send(EndpointRole.CLIENT, message, command)
        self._note(command)

    def notify(
        self, message: Message, dest_name: str = "", *, redelivered: bool = False, unreliable: bool = False
    ) -> int:
        """Write a server's message for the client to process (3.5.11).

        The client does not acknowledge ``unreliable`` messages.

        Returns:
            The number of the message, which the client's ACK will contain.

        Raises:
            LocalProtocolError: this is not an open handle of a server, the client does not consume, or the message cannot be
                encoded.
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
        """Write a server's answer to a BROWSE, which the client does not process (3.5.9).

        Raises:
            LocalProtocolError: this is not an open handle of a server, no BROWSE is open, or the message cannot be encoded.
        """
        command = spec.HandleNotify(handle_id=self.id, message_nbr=number, dest_name=dest_name)
        self._send(EndpointRole.SERVER, message, command)
        self._note(command)

    def stream(self, octets: bytes, head: spec.MessageHead | None = None) -> None:
        """Write one fragment of a stream (3.5.3.1).

        The first fragment has a head. From then on the channel carries no other message.

        Raises:
            LocalProtocolError: this is not an open handle of a peer service, or the fragment is too large.
        """
        channel = self.channel
        block = octets if head is None else head_octets(head, 0, channel.largest) + octets
        if len(block) > channel.largest:
            raise LocalProtocolError(f"{len(block)} octets exceed the fragment size of {channel.largest}")
        make = spec.HandleSend if channel.role is EndpointRole.CLIENT else spec.HandleNotify
        command = make(handle_id=self.id, fragment_size=len(block), partial=True, streaming=True)
        self._check_writable()
        if self.service is not Service.PEER:
            raise LocalProtocolError("streams are only possible on peer services")
        channel.put_stream(self, command, block, first=head is not None)

    def close(self, code: int = 200, text: str = "") -> None:
        """Write a close: of our own, or as the answer to the peer's close.

        With a code of 2xx, commands that the peer sent before are still reported.

        Raises:
            LocalProtocolError: the text is not a valid short string.
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
        """End the handle, because its channel or its connection has ended."""
        self.life.step(Step.LOST)
        self.keep_prepared()

    def keep_prepared(self) -> None:
        """Keep a message that was prepared here, until its sender continues."""
        if self.prepared is not None:
            self.channel.assembly.keep(self.prepared)
            self.prepared = None

    def _send(self, role: EndpointRole, message: Message, command: Any) -> None:
        channel = self.channel
        if channel.role is not role:
            raise LocalProtocolError(f"only a {role.value} sends {command.plan.name}")
        self._check_writable()
        self._check_rules(command)
        channel.check_streaming()
        head = head_octets(channel.tuning.short(message.head), len(message.body), channel.largest)
        channel.put_message(OutgoingMessage(self, head, message.body, command))

    def _check_writable(self, *, answers: bool = False) -> None:
        """Raise ``LocalProtocolError`` unless the handle is open.

        ``answers``: a server may still answer commands that the peer sent before its close (3.5.16).
        """
        self.channel.check_writable()
        if self.state is not HandleState.OPEN and not (answers and self.state is HandleState.CLOSE_RECEIVED):
            raise LocalProtocolError(f"handle {self.id} is {self.state.name.lower()}")

    def _check_rules(self, command: Command) -> None:
        """Raise ``LocalProtocolError`` for a command that the peer would refuse."""
        try:
            if self.channel.role is EndpointRole.CLIENT:
                services.check(self.opened, command)
            else:
                self._check_answer(command)
        except ReplyError as fault:
            raise LocalProtocolError(fault.description) from None

    # -- open questions: which answers are still due ----------------------------------------

    def _note(self, command: Any) -> None:
        """Record a sent or received command, to know which answers are due."""
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
        """Record the answer that a client's command requires."""
        if tag:
            self._tags.append(tag)
        if isinstance(command, spec.HandleQuery):
            self._queries += 1
        elif isinstance(command, spec.HandleBrowse):
            self._browses.append(tag)
        elif isinstance(command, spec.HandleConsume):
            self._consumes = True

    # -- commands of the peer ---------------------------------------------------------------

    def receive(self, command: Any) -> None:
        """Check a command of the peer; its message, if any, is processed by the channel.

        Raises:
            ReplyError: the command closes the handle, or the connection if it is never expected now.
        """
        if self.channel.role is EndpointRole.SERVER:
            services.check(self.opened, command)
        else:
            self._check_answer(command)
        if not getattr(command, "partial", False):
            self._note(command)

    def _check_answer(self, command: Any) -> None:
        """Check a server's command: each must answer a client's command (3.5.17)."""
        expected = True
        # A peer service delivers without a subscription, so only its fragments are checked (3.5.11).
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
            raise ReplyError(
                _R.COMMAND_NOT_VALID, f"{command.plan.name} on handle {self.id} answers no command"
            )

    def receive_prepare(self, command: spec.HandlePrepare, fragment: bytes) -> None:
        """Answer the peer's PREPARE with the size that is here (3.5.13, 3.5.14).

        Raises:
            ReplyError: the peer broke a rule, which closes the handle or the channel.
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
"""Commands that have methods of their own, so that ``write`` refuses them."""

_OTHER = {EndpointRole.CLIENT: EndpointRole.SERVER, EndpointRole.SERVER: EndpointRole.CLIENT}
