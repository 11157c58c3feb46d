"""The rules of a queue: its limits, dead letters, redelivery, and consumers.

Knows names and numbers; does not know how a queue follows them (``queue``, ``groups``, ``deadletters``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, NamedTuple, get_args

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.number_fields import check_numbers

Overflow = Literal["wait", "reject", "reject-dead-letter", "drop-oldest"]
Bound = Literal["held", "ready"]

LONGEST_DELAY: Final = 10 * 366 * 24 * 3600
"""The longest wait for a redelivery, in seconds, for all peers and policies."""

_OVERFLOWS: Final = get_args(Overflow)
_BOUNDS: Final = get_args(Bound)

RuleKind = Literal["count", "octets", "milliseconds", "seconds", "factor", "address", "choice", "flag"]
"""The type of the value of a rule.

A whole number (also of octets or milliseconds), a number, a text, or true or false.
"""


class Rule(NamedTuple):
    """A rule of a queue, from which the command line and ``$management`` make theirs.

    Attributes:
        name: the argument of ``Container.add_queue``.
        kind: the type of its value.
        default: the value if none is given.
        help: its effect, in a few words.
        choices: the possible values, for the kind ``choice``.
    """

    name: str
    kind: RuleKind
    default: Any
    help: str
    choices: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        """The name on a command line and in ``$management``."""
        return self.name.replace("_", "-")


def _rule(kind: RuleKind, meaning: str, default: Any = None, choices: tuple[str, ...] = ()) -> Any:
    """Return a field of ``QueuePolicy`` that is a rule."""
    return field(default=default, metadata={"kind": kind, "help": meaning, "choices": choices})


@dataclass(frozen=True, kw_only=True, slots=True)
class QueuePolicy:
    """The rules of a queue; by default, no bounds and competing consumers.

    Args:
        max_length: messages held, above which it is full; None for any number. 0 is possible unless ``overflow`` is
            ``"wait"``: with ``"drop-oldest"`` a message goes to a receiver that waits for it, or dies.
        max_octets: octets of messages held, above which it is full; None for any number. A queue below it takes one more
            message whatever its size, so that no message is too large for ever. 0 as with ``max_length``.
        overflow: what happens to a message that arrives when the queue is full. ``"wait"``: it stays with its sender, who
            gets no more credit (2.6.7), also if it comes through an exchange. ``"reject"``: it is rejected with
            ``amqp:resource-limit-exceeded``; a message that was sent settled is lost, and a transaction that holds too
            much is rolled back. ``"reject-dead-letter"``: the same, and it also goes to the dead-letter address, except for a
            transaction that is rolled back. ``"drop-oldest"``: of the messages that are not leased, the oldest of the lowest
            priority dies to make room. If all are leased, a new message is rejected, and a transaction is rolled back.
        ttl: milliseconds that any message stays here at most; None for no limit. It belongs to the queue alone: a message
            that leaves in time does not carry it. With 0 a message goes at once to a receiver that waits, or dies.
        max_priority: the highest priority that counts; higher ones are treated as this one. None: 0 to 9 count. With 0 all
            messages keep the order of arrival.
        bound: which messages ``max_length`` and ``max_octets`` count. ``"held"``: all messages, leased ones included.
            ``"ready"``: messages that no receiver has; then a message that is returned to a full queue with ``"drop-oldest"``
            makes the oldest die, perhaps itself.
        expires: seconds without any receiver, pull or ``touch`` after which the queue is deleted, with all its messages; None
            for never. It is counted from the first use of a queue that was made before trio ran.
        dead_letter: the address for messages that die: rejected, expired, dropped because the queue was full, or failed too
            often. None: they are lost.
        delivery_limit: failed attempts, by ``modified`` with ``delivery-failed`` or by the loss of the link (3.4.5), after
            which a message dies; None for any number. ``released`` is no attempt (3.4.4).
        redelivery_delay: seconds that a message waits here after a failed attempt before a consumer gets it again; None for
            none. A consumer that answers ``modified`` with the annotation ``x-opt-delivery-time`` (``Delivery.modify(delay=)``)
            chooses another time, on any queue. The message keeps its place, and others overtake it, except those of its group.
        redelivery_delay_multiplier: the factor by which the delay grows with each further failed attempt; None for a constant
            delay.
        max_redelivery_delay: the longest delay that results, in seconds; None for ten years.
        exclusive: whether only one peer at a time may consume; others are refused with ``amqp:resource-locked``. Browsers are
            always permitted.
        single_active: whether only one consumer gets messages, the first to attach; the next takes over when that has detached
            and all its leases have ended.
        grouped: whether the messages with one ``group-id`` (3.2.4) go to one consumer at a time, in order.

    Raises:
        LocalProtocolError: a limit is below 1 (or 0, see above) or outside its range, or ``overflow`` or ``bound`` is unknown.
    """

    max_length: int | None = _rule("count", "messages held, above which the queue is full")
    max_octets: int | None = _rule("octets", "octets of messages held, above which the queue is full")
    overflow: Overflow = _rule(  # noqa: RUF009 - it makes a field
        "choice", "what happens to a message if the queue is full", "wait", _OVERFLOWS
    )
    ttl: int | None = _rule("milliseconds", "how long any message is kept at most")
    max_priority: int | None = _rule("count", "the highest priority that counts, 0 to 255")
    bound: Bound = _rule(  # noqa: RUF009 - it makes a field
        "choice",
        "which messages max-length and max-octets count: all, or those without a receiver",
        "held",
        _BOUNDS,
    )
    expires: float | None = _rule("seconds", "time without a receiver, after which the queue is deleted")
    dead_letter: str | None = _rule(
        "address", "where messages go that were rejected, expired, dropped or failed"
    )
    delivery_limit: int | None = _rule("count", "failed attempts, after which a message is a dead letter")
    redelivery_delay: float | None = _rule("seconds", "how long a message waits after a failed attempt")
    redelivery_delay_multiplier: float | None = _rule(
        "factor", "growth of this delay with each further attempt"
    )
    max_redelivery_delay: float | None = _rule("seconds", "how long this delay becomes at most")
    exclusive: bool = _rule("flag", "one consumer at most", False)
    single_active: bool = _rule("flag", "one consumer gets all messages, until it goes", False)
    grouped: bool = _rule("flag", "messages with one group-id go to one consumer at a time", False)

    def __post_init__(self) -> None:
        check_numbers(self)
        for name in ("max_length", "max_octets", "delivery_limit"):
            limit = getattr(self, name)
            least = 1 if name == "delivery_limit" or self.overflow == "wait" else 0
            if limit is not None and limit < least:
                raise LocalProtocolError(f"{name}={limit}: expected at least {least}, or None for any number")
        if self.ttl is not None and self.ttl < 0:
            raise LocalProtocolError(f"ttl={self.ttl}: expected at least 0, or None for no limit")
        if self.max_priority is not None and not 0 <= self.max_priority <= 255:
            raise LocalProtocolError(f"max_priority={self.max_priority}: expected 0 to 255, or None")
        for name in ("redelivery_delay", "max_redelivery_delay"):
            delay = getattr(self, name)
            if delay is not None and not 0 < delay < math.inf:
                raise LocalProtocolError(f"{name}={delay}: expected more than 0 seconds, or None")
        multiplier = self.redelivery_delay_multiplier
        if multiplier is not None and not 1 <= multiplier < math.inf:
            raise LocalProtocolError(
                f"redelivery_delay_multiplier={multiplier}: expected at least 1, or None"
            )
        if self.expires is not None and not self.expires > 0:
            raise LocalProtocolError(
                f"expires={self.expires}: expected more than 0 seconds, or None for never"
            )
        if self.bound not in _BOUNDS:
            raise LocalProtocolError(f"bound={self.bound!r}: expected one of {', '.join(map(repr, _BOUNDS))}")
        if self.overflow not in _OVERFLOWS:
            raise LocalProtocolError(
                f"overflow={self.overflow!r}: expected one of {', '.join(map(repr, _OVERFLOWS))}"
            )
        if self.dead_letter == "":
            raise LocalProtocolError("dead_letter='': expected an address, or None for none")

    @property
    def is_bounded(self) -> bool:
        """Whether a queue can be full."""
        return self.max_length is not None or self.max_octets is not None

    @property
    def holds_nothing(self) -> bool:
        """Whether a message that no receiver takes at once dies, or is rejected."""
        return self.max_length == 0 or self.max_octets == 0

    @property
    def rejects(self) -> bool:
        """Whether a full queue rejects new messages."""
        return self.overflow in ("reject", "reject-dead-letter")

    def delay_after(self, failures: int) -> float:
        """Return the seconds that a message waits after its last failed attempt.

        ``failures`` counts all its failed attempts.
        """
        if self.redelivery_delay is None:
            return 0
        longest = LONGEST_DELAY if self.max_redelivery_delay is None else self.max_redelivery_delay
        try:
            delay = self.redelivery_delay * (self.redelivery_delay_multiplier or 1) ** (failures - 1)
        except OverflowError:
            return longest
        return min(delay, longest)

    def is_full(self, length: int, octets: int) -> bool:
        """Whether a queue that holds so much takes no more."""
        return (self.max_length is not None and length >= self.max_length) or (
            self.max_octets is not None and octets >= self.max_octets
        )


QUEUE_RULES: Final[tuple[Rule, ...]] = (
    *(Rule(each.name, default=each.default, **each.metadata) for each in fields(QueuePolicy)),
    Rule("durable", "flag", None, "with a store: keep all messages; false keeps only durable ones"),
)
"""The rules of a queue, in the order of the arguments of ``Container.add_queue``."""
