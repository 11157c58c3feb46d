"""Send a message that is larger than memory, block by block (2.6.14, 3.2.6).

Blocks are not collected: ``send_all`` waits until all of its block is in frames that the peer has room for.
``body_chunks`` receives such a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self, cast

import trio

from trio_amqp10.amqp10.engine.delivery import is_refusal
from trio_amqp10.amqp10.message import Message, encode_around
from trio_amqp10.amqp10.spec.messaging import DATA
from trio_amqp10.amqp10.wire import codes
from trio_amqp10.core.arguments import check_count, check_type
from trio_amqp10.core.errors import LocalProtocolError

from .delivery import OutgoingDelivery, raise_unless_accepted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from trio_amqp10.amqp10.engine.outgoing_transfers import Outgoing

    from .sender import Sender


_MAX_SECTION: Final = 0xFFFFFFFF
"""Octets of the largest data section: its size has four octets."""

_WITH_HEAD: Final = 32 * 1024
"""Octets of a block that are copied, to be sent after the head of their section.

The rest of the block is not copied.
"""


def _data_head(size: int) -> bytes:
    return DATA.prefix + bytes((codes.BINARY32,)) + size.to_bytes(4, "big")


class StreamSender(trio.abc.SendStream):
    """Sends one message block by block: ``async with sender.stream() as body``.

    Entering waits for credit, and begins the delivery. Leaving ends it and waits until the peer has accepted
    it, raising as ``Sender.send`` does; call ``aclose()`` before that to end it without waiting for the
    outcome. An exception or a cancellation in the block aborts the delivery: then the receiver drops the part
    that it has.

    The link sends nothing else meanwhile; other links of the session take turns with it.

    Attributes:
        message: the sections around the body; its ``footer`` may be set until the end.
    """

    def __init__(
        self,
        sender: Sender,
        begin: Callable[[bytes, int, int], Awaitable[Outgoing]],
        length: int | None,
        message: Message | None,
    ) -> None:
        """``begin`` begins the delivery, given the first octets, a size, and the format.

        The size is the number of octets that the message will have at least.
        """
        if length is not None:
            check_count("length", length, 0)
        check_type("message", message, (Message, type(None)), "a Message without a body, or None")
        self.message: Message = Message() if message is None else message
        self._sender = sender
        self._begin = begin
        self._left = length
        self._section_left = 0
        self._has_body = False
        self._out: Outgoing | None = None
        self._closed = False
        self._busy = False

    @property
    def delivery(self) -> OutgoingDelivery:
        """The delivery that was begun; await its ``outcome()``.

        Raises:
            LocalProtocolError: the stream was not entered.
        """
        return cast("OutgoingDelivery", self._begun().delivery)

    def _begun(self) -> Outgoing:
        if self._out is None:
            raise LocalProtocolError("this stream was not entered: use async with sender.stream() as body")
        return self._out

    async def __aenter__(self) -> Self:
        if self._out is not None:
            raise LocalProtocolError("a stream can be entered only once: call sender.stream() again")
        octets, _ = encode_around(self.message)
        if self._left is not None:
            octets += self._new_section(self._left)
        size = len(octets) + (self._left or 0)
        self._out = await self._begin(octets, size, self.message.message_format)
        self._out.delivery.watcher = self._sender  # a refusal before the end wakes the sending task
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if exc is not None:
            self.abort()
        elif self._closed:
            await trio.lowlevel.checkpoint()
        else:
            await self.aclose()
            delivery = self.delivery
            raise_unless_accepted(await delivery.outcome(), delivery)

    # -- the body ---------------------------------------------------------------------------

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send a block of the body.

        Returns when all of the block is in frames that the peer has room for.

        Args:
            data: any number of octets. Without a length given for the stream, each block is a data section of
                its own. It is not copied: do not change it until this returns.

        Raises:
            LocalProtocolError: more octets than the length of the stream, or than the peer accepts of one
                message.
            DeliveryRejectedError, DeliveryReleasedError, DeliveryModifiedError: the receiver refused the
                message.
            LinkDetachedError, SessionEndedError, ConnectionClosedError: the link ended.
            trio.ClosedResourceError: the stream has ended.
            trio.BusyResourceError: another task is in this call.

        Cancelled: it is not known how much was sent, so the delivery is aborted.
        """
        out = self._usable()
        view = memoryview(data).cast("B")
        if self._left is not None and len(view) > self._left:
            raise LocalProtocolError(
                f"a block of {len(view)} octets: only {self._left} are left of the length of this stream"
            )
        self._busy = True
        try:
            await self._sender.session.connection.pace.checkpoint()
            while view:
                view = await self._send_some(out, view)
        except LocalProtocolError:
            raise  # nothing of the block was sent, so the stream can go on
        except BaseException:
            self.abort()
            raise
        finally:
            self._busy = False

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the last block is written.

        ``send_all`` has waited for it already.

        Raises: as ``send_all``. Cancelled: nothing has happened.
        """
        out = self._usable()
        await trio.lowlevel.checkpoint()
        await self._gone_out(out)

    def _usable(self) -> Outgoing:
        out = self._begun()
        if self._closed:
            raise trio.ClosedResourceError("this stream has ended")
        if self._busy:
            raise trio.BusyResourceError("another task is sending on this stream")
        return out

    def _new_section(self, size: int) -> bytes:
        self._has_body = True
        self._section_left = min(size, _MAX_SECTION)
        return _data_head(self._section_left)

    async def _send_some(self, out: Outgoing, view: memoryview) -> memoryview:
        """Send a piece of the block; return the rest of it."""
        await self._gone_out(out)
        if self._section_left:
            size = min(len(view), self._section_left)
            out.append(view[:size])
        else:
            head = self._new_section(len(view) if self._left is None else self._left)
            size = min(len(view), _WITH_HEAD, self._section_left)
            out.append(head + view[:size])
        self._section_left -= size
        if self._left is not None:
            self._left -= size
        await self._gone_out(out)
        return view[size:]

    async def _gone_out(self, out: Outgoing) -> None:
        """Wait until all pending octets are in frames."""
        while True:
            self._check(out)
            if not out.pending:
                return
            await self._sender.wait()

    def _check(self, out: Outgoing) -> None:
        """Raise if the link has ended, or the receiver has refused the message."""
        delivery = cast("OutgoingDelivery", out.delivery)
        if not out.in_progress and not out.complete:
            delivery.raise_if_lost()
        if is_refusal(delivery.state):
            raise_unless_accepted(delivery.state, delivery)

    # -- the end ----------------------------------------------------------------------------

    async def aclose(self) -> None:
        """End the message, and wait until it is written, but not for its outcome.

        Raises:
            LocalProtocolError: fewer octets were sent than the given length; the delivery is aborted. Others
                as ``send_all``.

        Cancelled: the delivery is aborted.
        """
        if self._closed or self._out is None:
            self._closed = True
            await trio.lowlevel.checkpoint()
            return
        out = self._usable()
        self._closed = True
        try:
            if self._left:
                raise LocalProtocolError(f"{self._left} octets are missing of the length of this stream")
            await trio.lowlevel.checkpoint_if_cancelled()
            await self._gone_out(out)
            _, footer = encode_around(self.message)
            out.append(footer if self._has_body else self._new_section(0) + footer)
            out.finish()
            await trio.lowlevel.cancel_shielded_checkpoint()  # only now, so that one write has the end, too
            while not out.complete:
                self._check(out)
                await self._sender.wait()
        except BaseException:
            self._take_back(out)
            raise

    def abort(self) -> None:
        """Abort the message: the receiver drops the part that it has (2.7.5).

        Does nothing if the message is complete, or was never begun.
        """
        self._closed = True
        if self._out is not None:
            self._take_back(self._out)

    @staticmethod
    def _take_back(out: Outgoing) -> None:
        out.abort()
        delivery = cast("OutgoingDelivery", out.delivery)
        if delivery.settled:
            delivery.disregard()

    def __repr__(self) -> str:
        sent = 0 if self._out is None else self._out.size
        return (
            f"<StreamSender on {self._sender.address!r}, {sent} octets, {'over' if self._closed else 'open'}>"
        )
