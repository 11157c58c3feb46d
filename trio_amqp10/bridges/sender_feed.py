"""Messages that a program posts to a sender without waiting for trio.

The program posts a message only if it sees credit and room for it, and goes on at once. So there is no moment at which a
cancelled call could have sent it. If the credit is gone when the message comes to trio's thread, the message waits there, in order.

Each counter is written by one thread, and read by both.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.amqp10.message import Message, encode_message

from .portal import Call

if TYPE_CHECKING:
    from trio_amqp10.amqp10.peer.delivery import Outcome, OutgoingDelivery
    from trio_amqp10.amqp10.peer.sender import Sender

    from .portal import Portal, Report


class PostedMessage:
    """A message on its way to a sender, or sent, as it was when this was made.

    Args:
        message: bytes, str, any AMQP value, or a ``Message``.
        settled: whether it is sent settled.
        report: as that of ``ask``.

    Raises:
        LocalProtocolError: the message cannot be encoded.

    Attributes:
        payload: the message, encoded.
        settled: whether it is sent settled.
        message_format: as in its first transfer (2.8.11).
        delivery: the delivery, when it is sent.
    """

    __slots__ = ("_failure", "_reports", "delivery", "message_format", "payload", "settled")

    def __init__(self, message: Any, settled: bool, report: Report[Outcome] | None = None) -> None:
        self.payload: bytes = encode_message(message)
        self.settled: bool = settled
        self.message_format: int = message.message_format if isinstance(message, Message) else 0
        self.delivery: OutgoingDelivery | None = None
        self._failure: Exception | None = None
        self._reports: list[Report[Outcome]] | None = None if report is None else [report]

    def ask(self, report: Report[Outcome]) -> None:
        """Call ``report(outcome, failure)`` when the outcome is known.

        All in trio's thread, except for a message that is not posted yet.
        """
        if self._reports is None:
            self._reports = [report]
        else:
            self._reports.append(report)
        if self.delivery is not None or self._failure is not None:
            self.look()

    def forget(self, report: Report[Outcome]) -> None:
        """Do not call ``report`` any more, which was given to ``ask``."""
        if self._reports is not None and report in self._reports:
            self._reports.remove(report)

    def sent(self, delivery: OutgoingDelivery) -> None:
        """Note that it was sent just now."""
        self.delivery = delivery
        if self._reports is not None:
            if delivery.sent_settled:
                self.look()
            else:
                delivery.watch(self.look)

    def fail(self, failure: Exception) -> None:
        """Note that it could not be sent."""
        self._failure = failure
        self.look()

    def look(self) -> None:
        """Report the outcome, if it is known and was asked for."""
        delivery = self.delivery
        if not self._reports or (delivery is None and self._failure is None):
            return
        outcome, failure = None, self._failure
        if delivery is not None:
            try:
                if not delivery.is_decided():
                    delivery.watch(self.look)
                    return
                outcome = delivery.decision()
            except Exception as raised:
                failure = raised
            if not delivery.sent_settled:
                delivery.disregard()  # The program learns it now, as from ``outcome``.
        reports, self._reports = self._reports, None
        for report in reports:
            report(outcome, failure)

    def __repr__(self) -> str:
        return "<OutgoingDelivery on its way>" if self.delivery is None else repr(self.delivery)


class SenderFeed:
    """The messages that were posted to ``sender``, and are not sent yet."""

    def __init__(self, portal: Portal, sender: Sender) -> None:
        self._portal = portal
        self._sender = sender
        self._queue: deque[PostedMessage] = deque()
        self._is_scheduled = False
        self._posted = 0  # written by the program's thread
        self._taken = 0  # written by trio's thread
        self._emptied: trio.Event | None = None  # while messages wait for credit

    @property
    def is_empty(self) -> bool:
        """Whether all messages were sent, or have failed."""
        return self._posted == self._taken

    def post(self, posted: PostedMessage) -> bool:
        """Send a message soon, after those that were posted before.

        Return False if it has no credit or room, as the program's thread sees it; then it is not posted.

        Raises: as ``Portal.post``; then nothing was sent.
        """
        if not self._sender.has_room_for(self._posted - self._taken + 1):
            return False
        self._queue.append(posted)
        self._posted += 1
        if not self._is_scheduled:
            self._is_scheduled = True
            self._portal.post(self._take)
        return True

    def _take(self) -> None:
        """Send what was posted, in trio's thread."""
        self._is_scheduled = False
        if self._emptied is None:
            self._send_all()
            if self._queue:
                self._emptied = trio.Event()
                Call(self._portal, self._wait, _forget).start()
        if self._sender.draining:
            self._sender.give_back()

    def _send_all(self) -> None:
        queue, sender = self._queue, self._sender
        while queue:
            posted = queue[0]
            try:
                delivery = sender.send_payload(posted.payload, posted.settled, posted.message_format)
            except Exception as failure:
                posted.fail(failure)
            else:
                if delivery is None:
                    return
                posted.sent(delivery)
            queue.popleft()
            self._taken += 1

    async def _wait(self) -> None:
        """Send the messages that have lost their credit, when there is credit again."""
        assert self._emptied is not None
        try:
            while self._queue:
                await self._sender.wait_sendable()
                self._send_all()
        except Exception as failure:
            self._fail(failure)
        except trio.Cancelled:
            self._fail(
                trio.ClosedResourceError(
                    "this connection was closed before the message was sent: it is not sent"
                )
            )
            raise
        finally:
            self._emptied.set()
            self._emptied = None

    def _fail(self, failure: Exception) -> None:
        while self._queue:
            self._queue.popleft().fail(failure)
            self._taken += 1

    async def emptied(self) -> None:
        """Wait until the messages that were posted are sent, or have failed.

        Cancelled: nothing is lost.
        """
        if self._emptied is not None:
            await self._emptied.wait()


def _forget(_value: None, _failure: Exception | None) -> None:
    """Do nothing: each message knows what became of it."""
