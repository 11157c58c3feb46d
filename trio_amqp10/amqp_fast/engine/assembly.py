"""Assembly of messages from fragments (RFC 006, 3.4.2, 3.4.4, 3.5.3, 3.5.13).

The messages of one channel arrive one after the other. An invalid message closes its handle with 542; a message that is too large
closes its channel with 311; a message within another closes the channel with 503. This module knows one part of a handle:
its prepared message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011

from .message import Message, hash_of, read_head

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.spec import HandleNotify, HandlePrepare, HandleSend, MessageHead

    from .handle import Handle
    from .limits import Limits
    from .partial_messages import PartialMessage, PartialMessages
    from .tuning import Tuning

_R = ReplyCodeRfc011


def _invalid(explanation: str) -> ReplyError:
    return ReplyError(_R.CONTENT_INVALID, explanation, Level.HANDLE)


def _refused(explanation: str) -> ReplyError:
    return ReplyError(_R.COMMAND_NOT_VALID, explanation, Level.HANDLE)


class Host(Protocol):
    """The part of the engine that assemblies use."""

    limits: Limits
    now: float
    owner: str
    partials: PartialMessages

    @property
    def tuning(self) -> Tuning: ...
    def count_partial(self, octets: int) -> None: ...


class Assembly:
    """The message that is arriving on one channel.

    Args:
        host: the engine, which counts the octets of all incomplete messages.

    Attributes:
        handle: the handle that the message is for; None between messages.
        counted: octets of this message that are counted as incomplete.
    """

    __slots__ = ("_body", "_head", "_host", "_prepared", "_streaming", "counted", "handle")

    def __init__(self, host: Host) -> None:
        self._host = host
        self.handle: Handle | None = None
        self._head: MessageHead | None = None
        self._body = bytearray()
        self._prepared: PartialMessage | None = None
        self._streaming = False
        self.counted: int = 0

    def take(self, handle: Handle, command: HandleSend | HandleNotify, fragment: bytes) -> Message | None:
        """Process the next fragment.

        Returns:
            The message, if this was its last fragment; for a stream, the octets of each fragment; otherwise None.

        Raises:
            ReplyError: the message is invalid, which closes the handle or the channel; it is dropped.
        """
        try:
            return self._take(handle, command, fragment)
        except ReplyError:
            self.drop()
            raise

    def _take(self, handle: Handle, command: HandleSend | HandleNotify, fragment: bytes) -> Message | None:
        if self.handle is None:
            fragment = self._begin(handle, command, fragment)
        elif self.handle is not handle:
            raise ReplyError(
                _R.COMMAND_NOT_VALID, "a fragment of a message within another message", Level.CHANNEL
            )
        elif command.streaming != self._streaming or command.recovery != (self._prepared is not None):
            raise _refused("streaming or recovery differs from that of the first fragment of the message")
        assert self._head is not None
        if self._streaming:
            return Message(self._head, fragment)
        self._add(fragment)
        if command.partial:
            return None
        return self._finish()

    def _begin(self, handle: Handle, command: HandleSend | HandleNotify, fragment: bytes) -> bytes:
        """Process a first fragment; return the octets of the body in it."""
        self.handle = handle
        self._streaming = command.streaming
        if command.recovery:
            self._prepared, handle.prepared = handle.prepared, None
            if self._prepared is None:
                raise _refused("recovery of a message that was not prepared")
            self._head, self._body = self._prepared.head, self._prepared.body
            self.counted = len(self._body)
            return fragment
        self._head, start = read_message_head(fragment)
        self.check(self._head)
        if self._streaming and self._head.body_size:
            raise _invalid(f"a stream must have body-size 0, not {self._head.body_size}")
        self._body = bytearray()
        return fragment[start:]

    def check(self, head: MessageHead) -> None:
        """Raise ``ReplyError``, 311 for the channel, if the body is too large (3.5.14)."""
        limit = self._host.limits.max_message_size
        if head.body_size > limit:
            raise ReplyError(
                _R.MESSAGE_TOO_LARGE,
                f"a body of {head.body_size} octets exceeds the maximum of {limit}",
                Level.CHANNEL,
            )

    def _add(self, octets: bytes) -> None:
        assert self._head is not None
        self._body += octets
        if len(self._body) > self._head.body_size:
            raise _invalid(f"the body exceeds its body-size of {self._head.body_size} octets")
        self.counted += len(octets)
        self._host.count_partial(len(octets))

    def _finish(self) -> Message:
        head, body, prepared = self._head, self._body, self._prepared
        assert head is not None
        if len(body) != head.body_size:
            raise _invalid(f"the body has {len(body)} octets, but body-size is {head.body_size}")
        if prepared is not None and prepared.content_hash.lower() not in ("", hash_of(body)):
            raise _invalid("the content hash does not match the body")
        self.drop()
        return Message(self._host.tuning.full(head), bytes(body))

    def drop(self) -> None:
        """Forget the message, which is complete or invalid."""
        if self._prepared is not None:
            self._host.partials.finish(self._prepared)
        self._reset()

    def break_off(self) -> None:
        """End the transfer; keep a prepared message, so that its sender can continue."""
        if self._prepared is not None:
            self._host.partials.release(self._prepared, self._host.now)
        self._reset()

    def _reset(self) -> None:
        counted, self.counted = self.counted, 0
        self._host.count_partial(-counted)
        self.handle = self._head = self._prepared = None
        self._body = bytearray()

    def prepare(self, command: HandlePrepare, fragment: bytes) -> PartialMessage:
        """Return the stored part of a message that the peer will send.

        Its octets count as incomplete until the whole message has arrived, or until ``keep`` is called.

        Raises:
            ReplyError: as ``take``.
        """
        head, start = read_message_head(fragment)
        self.check(head)
        body = fragment[start:]
        if len(body) > head.body_size:
            raise _invalid(f"the body exceeds its body-size of {head.body_size} octets")
        host = self._host
        message = host.partials.prepare(
            host.owner, fragment[:start], head, body, command.content_hash, host.now
        )
        try:
            host.count_partial(len(message.body))
        except ReplyError:
            self.keep(message)
            raise
        return message

    def keep(self, message: PartialMessage) -> None:
        """Keep a message that was prepared but not sent."""
        self._host.count_partial(-len(message.body))
        self._host.partials.release(message, self._host.now)


def read_message_head(fragment: bytes) -> tuple[MessageHead, int]:
    """Decode the head in a first fragment; return it and the offset of the body.

    Raises:
        ReplyError: 542 for the handle: the head is incomplete or invalid.
    """
    try:
        return read_head(fragment)
    except ReplyError as fault:
        raise _invalid(fault.description) from None
