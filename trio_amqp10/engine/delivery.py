"""A delivery, from its first transfer until both ends forget it (2.6.12).

An adapter may subclass either class to hang what its users need on it: the connection builds
deliveries through the classes it was given. Knows nothing of how a message is encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.mypyc_attributes import mypyc_attr
from trio_amqp10.spec.messaging import Modified, Rejected
from trio_amqp10.spec.transport import Error, ReceiverSettleMode

from .connection_context import Touchable
from .outcomes import ACCEPTED, OUTCOMES, RELEASED, is_refusal, is_terminal
from .unsettled_map import MAX_TAG

if TYPE_CHECKING:
    from enum import Enum

    from trio_amqp10.errors import RemoteProtocolError
    from trio_amqp10.spec.transport import Attach

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
    """The link that a delivery came on, as far as the delivery and its settlement need it."""

    name: str
    session: SessionCore
    remote: Attach | None
    terminus: Any
    tags: dict[bytes, IncomingDelivery]
    rcv_settle_mode: int
    sheds: bool
    owner: Touchable | None

    @property
    def state(self) -> Enum:
        """Where the link stands in its life."""
        ...

    def permits(self, state: object) -> bool:
        """Whether the source, as the sender says it, has this outcome (3.5.3)."""
        ...

    def fail(self, fault: RemoteProtocolError) -> None:
        """The peer broke a rule on this link."""
        ...


class SendingLink(Protocol):
    """The link that a delivery went out on, likewise."""

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
        """Where the link stands in its life."""
        ...

    @property
    def default_outcome(self) -> Any:
        """What counts for a delivery that is settled without an outcome (3.5.3)."""
        ...

    @property
    def partial(self) -> Any:
        """The delivery that has begun to go out and is not complete, an ``Outgoing``; or None."""
        ...

    def permitted(self, state: Any) -> Any:
        """``state``, or what stands in for an outcome that the source does not permit (3.5.3)."""
        ...

    def fail(self, fault: RemoteProtocolError) -> None:
        """The peer broke a rule on this link."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class IncomingDelivery:
    """A message that the peer sends us.

    Attributes:
        link: the receiver that it came on.
        delivery_id: its number on the session.
        tag: the sender's name for it, unique among the link's unsettled ones; at most 32 octets.
        message_format: 0 for the sections of Part 3.
        payload: the octets of its sections, whole; none where they come as a stream.
        inflow: those that have come in and were not read, of a delivery that is handed out at its first
            transfer (``ReceiverLink.stream``); None of any other.
        settled: whether this end may forget it.
        state: what we last said of it, or None.
        watcher: woken when the sender settles it.
        word: what the sender said of it with a transfer (2.7.5).
        memo: what the adapter makes of the payload, to make it once.
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
        """What the sender last said of it, or None: with a transfer, or later with a disposition.

        An outcome that came with a transfer stays: the sender cannot change it (2.7.5).
        """
        link: Any = self.link  # None of one that was restored, and is on no link yet
        if link is not None and link.session.settlement.received.words is not None:
            word = link.session.settlement.received.word(self.delivery_id, self)
            return self.word if word is None or isinstance(self.word, OUTCOMES) else word
        return self.word

    @remote_state.setter
    def remote_state(self, state: Any) -> None:
        self.word = state

    def record_acceptance(self) -> None:
        """It will be accepted: the store of our unsettled state writes that in the commit that is being made.

        Only if we settle second: otherwise our state is gone as soon as we settle (2.6.12).
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
        """Note what the sender says of it; the outcome that it has named, it cannot change (2.7.5)."""
        if state is not None and not isinstance(self.remote_state, OUTCOMES):
            self.remote_state = state

    def accept(self) -> None:
        """Say that the message was processed (3.4.2)."""
        self.link.session.settlement.accept(self)

    def reject(self, condition: str = "amqp:internal-error", description: str | None = None) -> None:
        """Say that the message is invalid, and why (3.4.3)."""
        error = Error(condition=condition, description=description)
        self.link.session.settlement.dispose(self, Rejected(error=error))

    def release(self) -> None:
        """Give the message back, as if it had never been delivered (3.4.4)."""
        self.link.session.settlement.dispose(self, RELEASED)

    def modify(
        self,
        *,
        delivery_failed: bool = False,
        undeliverable_here: bool = False,
        annotations: dict[Any, Any] | None = None,
    ) -> None:
        """Give the message back changed (3.4.5).

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


@mypyc_attr(allow_interpreted_subclasses=True)
class OutgoingDelivery:
    """A message that we send.

    Attributes:
        link: the sender that it went out on.
        delivery_id: its number on the session.
        tag: our name for it, unique among the link's unsettled ones.
        settled: whether this end may forget it.
        sent_settled: whether it went out settled, so that no outcome will ever come.
        watcher: woken when the receiver settles it or gives it an outcome.
        word: its outcome, as far as there is one.
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
        """What the receiver last said of it, or None. An outcome is followed by no other (3.4).

        Set it to None when an outcome did not come to count (4.4): then another may follow.
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
    """Where ranges are noted that may name this delivery; None for one that was restored, and is on no link yet."""
    link = cast("ReceivingLink | SendingLink | None", delivery.link)
    return None if link is None else link.session.settlement
