"""A delivery, from its first transfer until both ends forget it (2.6.12).

An adapter may subclass either class to add its own state: the connection makes deliveries of the classes that
it was given. Knows nothing of how a message is encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from trio_amqp10.amqp10.spec.messaging import ACCEPTED, RELEASED, Modified, Rejected
from trio_amqp10.amqp10.spec.transport import Error, ReceiverSettleMode
from trio_amqp10.core.errors import LocalProtocolError

from .connection_context import Touchable
from .outcomes import OUTCOMES, is_refusal, is_terminal
from .unsettled_map import MAX_TAG

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import Enum

    from trio_amqp10.amqp10.spec.transport import Attach
    from trio_amqp10.core.errors import RemoteProtocolError

    from .connection_context import Context
    from .session_core import SessionCore
    from .settlement import Settlement
    from .streamed_delivery import StreamedDelivery

__all__ = [
    "ACCEPTED",
    "MAX_TAG",
    "OUTCOMES",
    "RELEASED",
    "IncomingDelivery",
    "OutgoingDelivery",
    "ReceivingLink",
    "SendingLink",
    "Touchable",
    "is_refusal",
    "is_terminal",
]


class ReceivingLink(Protocol):
    """A receiver link, as its deliveries and the settlement see it."""

    name: str
    context: Context
    session: SessionCore
    remote: Attach | None
    terminus: Any
    tags: dict[bytes, IncomingDelivery]
    rcv_settle_mode: int
    sheds: bool
    owner: Touchable | None

    @property
    def state(self) -> Enum:
        """The state of the link, a ``LinkState``."""
        ...

    def permits(self, state: object) -> bool:
        """Whether the sender's source has the outcome ``state`` (3.5.3)."""
        ...

    def fail(self, fault: RemoteProtocolError) -> None:
        """Detach the link with ``fault``, because the peer broke a rule."""
        ...


class SendingLink(Protocol):
    """A sender link, as its deliveries and the settlement see it."""

    name: str
    session: SessionCore
    remote: Attach | None
    terminus: Any
    unsettled: int
    in_doubt: int
    watch_unsettled: bool
    accepted: list[OutgoingDelivery] | None
    outcomes: frozenset[str] | None
    confirms: bool
    owner: Touchable | None

    @property
    def state(self) -> Enum:
        """The state of the link, a ``LinkState``."""
        ...

    @property
    def default_outcome(self) -> Any:
        """The outcome of a delivery that is settled without one (3.5.3)."""
        ...

    @property
    def partial(self) -> Any:
        """The delivery in progress, an ``Outgoing``, or None."""
        ...

    def permitted(self, state: Any) -> Any:
        """Return ``state``, or the outcome that replaces a forbidden one (3.5.3)."""
        ...

    def record_outcome(self, delivery: OutgoingDelivery, then: Callable[[], object]) -> None:
        """Store the outcome of a delivery, or its effect, then call ``then``."""
        ...

    def fail(self, fault: RemoteProtocolError) -> None:
        """Detach the link with ``fault``, because the peer broke a rule."""
        ...


class IncomingDelivery:
    """A message that the peer sends to us.

    Attributes:
        link: the receiver link that it arrived on.
        delivery_id: its number in the session.
        tag: the sender's name for it, unique among the unsettled deliveries of the link; at most 32 octets.
        message_format: 0 for the sections of Part 3.
        payload: the octets of its sections, complete; empty if they arrive as a stream.
        inflow: the octets that have arrived and were not read, if the delivery is handed out at its first
            transfer (``ReceiverLink.stream``); otherwise None.
        settled: whether this end may forget it.
        state: the last state that we sent for it, or None.
        watcher: woken when the sender settles it.
        word: the state that the sender's transfers gave it (2.7.5).
        memo: a place for the adapter to keep the decoded message.
    """

    __slots__ = (
        "delivery_id",
        "inflow",
        "link",
        "memo",
        "message_format",
        "payload",
        "settled",
        "state",
        "tag",
        "watcher",
        "word",
    )

    def __init__(
        self,
        link: ReceivingLink,
        delivery_id: int,
        tag: bytes,
        message_format: int,
        settled: bool,
        payload: bytes,
    ) -> None:
        self.link: ReceivingLink = link
        self.delivery_id: int = delivery_id
        self.tag: bytes = tag
        self.message_format: int = message_format
        self.settled: bool = settled
        self.payload: bytes = payload
        self.state: Any = None
        self.word: Any = None
        self.memo: Any = None
        self.inflow: StreamedDelivery | None = None
        self.watcher: Touchable | None = None

    @property
    def remote_state(self) -> Any:
        """The last state that the sender gave it, by transfer or disposition, or None.

        An outcome in a transfer is final: the sender cannot change it (2.7.5).
        """
        link: Any = self.link  # None after a restart, until its terminus has a link again
        if link is not None and link.session.settlement.received.words is not None:
            word = link.session.settlement.received.word(self.delivery_id, self)
            return self.word if word is None or isinstance(self.word, OUTCOMES) else word
        return self.word

    @remote_state.setter
    def remote_state(self, state: Any) -> None:
        self.word = state

    def record_acceptance(self) -> None:
        """Let the store write that the delivery will be accepted, in the next commit.

        Nothing is written if we settle first, because our state is then gone as soon as we settle (2.6.12).
        """
        link = self.link
        terminus = link.terminus
        if (
            terminus is not None
            and terminus.unsettled_store is not None
            and link.rcv_settle_mode == ReceiverSettleMode.SECOND
            and terminus.unsettled.get(self.tag) is self
        ):
            terminus.unsettled_store.record_acceptance(self.tag)

    def on_remote_state(self, state: Any) -> None:
        """Note a state that the sender gave, unless it gave an outcome before (2.7.5)."""
        if state is not None and not isinstance(self.remote_state, OUTCOMES):
            self.remote_state = state

    def accept(self) -> None:
        """Give it the outcome accepted: the message was processed (3.4.2)."""
        self.link.session.settlement.accept(self)

    def reject(self, condition: str = "amqp:internal-error", description: str | None = None) -> None:
        """Give it the outcome rejected: the message is invalid (3.4.3).

        Args:
            condition: the error condition.
            description: a text for people, or None.
        """
        error = Error(condition=condition, description=description)
        self.link.session.settlement.dispose(self, Rejected(error=error))

    def release(self) -> None:
        """Give it the outcome released: it counts as never delivered (3.4.4)."""
        self.link.session.settlement.dispose(self, RELEASED)

    def modify(
        self,
        *,
        delivery_failed: bool = False,
        undeliverable_here: bool = False,
        annotations: dict[Any, Any] | None = None,
    ) -> None:
        """Give it the outcome modified: the message goes back, changed (3.4.5).

        Args:
            delivery_failed: count this as a failed attempt.
            undeliverable_here: do not send it to this link again.
            annotations: merged into its message-annotations.
        """
        state = Modified(
            delivery_failed=delivery_failed or None,
            undeliverable_here=undeliverable_here or None,
            message_annotations=annotations,
        )
        self.link.session.settlement.dispose(self, state)


class OutgoingDelivery:
    """A message that we send.

    Attributes:
        link: the sender link that it was sent on.
        delivery_id: its number in the session.
        tag: our name for it, unique among the unsettled deliveries of the link.
        settled: whether this end may forget it.
        sent_settled: whether it was sent settled, so that it never gets an outcome.
        watcher: woken when the receiver settles it or gives it an outcome.
        word: its outcome, or None.
    """

    __slots__ = ("delivery_id", "link", "sent_settled", "settled", "tag", "watcher", "word")

    def __init__(self, link: SendingLink, delivery_id: int, tag: bytes, settled: bool) -> None:
        self.link: SendingLink = link
        self.delivery_id: int = delivery_id
        self.tag: bytes = tag
        self.settled: bool = settled
        self.sent_settled: Final = settled
        self.word: Any = None
        self.watcher: Touchable | None = None

    @property
    def state(self) -> Any:
        """The last state that the receiver gave it, or None; an outcome is final (3.4).

        Set it to None if the outcome was part of a transaction that was not committed (4.4): then another may
        follow.
        """
        if self.word is None:
            settlement = _settlement(self)
            if settlement is not None and settlement.sent.words is not None:
                return settlement.sent.word(self.delivery_id, self)
        return self.word

    @state.setter
    def state(self, state: Any) -> None:
        self.word = state
        if state is None and (settlement := _settlement(self)) is not None:
            settlement.reopen(self)

    def settle(self) -> None:
        """Forget the delivery without waiting for the receiver.

        Raises:
            LocalProtocolError: it is settled already, or its link is gone.
        """
        if self.settled:
            raise LocalProtocolError(f"delivery {self.tag!r} is settled already")
        self.link.session.settlement.settle_outgoing(self)


def _settlement(delivery: IncomingDelivery | OutgoingDelivery) -> Settlement | None:
    """Return the settlement of the delivery's session, or None if it has no link yet."""
    link = cast("ReceivingLink | SendingLink | None", delivery.link)
    return None if link is None else link.session.settlement
