"""The history of a dead message: the header ``x-death``, or ``x-opt-deaths``.

The first is a header of 0-9-1, the second an annotation of AMQP 1.0. A message has one entry for each queue and reason, the
newest first; another death of the same kind increments the count of its entry and moves it to the front. The names of the
first and the last death are beside the list. The oldest entries are left out if the list would take more than
``MOST_OCTETS``, so that a message cannot grow without limit.

Knows the history as plain values; the form of a message decides how it carries them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from trio_amqp10.core.short_strings import to_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trio_amqp10.broker.nodes.content import Death as Cause
    from trio_amqp10.broker.nodes.content import PastDeath

MOST_OCTETS: Final = 64 * 1024
"""The approximate limit of a history in octets; the last death is always in it."""

MOST_DEATHS: Final = 2**32 - 1
"""The largest count of an entry."""

_ENTRY: Final = 128
"""The approximate octets of an entry without its names."""

Reason = Literal["rejected", "expired", "maxlen", "delivery_limit", "deleted"]

REASONS: Final[Mapping[Cause, Reason]] = {
    "rejected": "rejected",
    "expired": "expired",
    "delivery-limit": "delivery_limit",
    "overflow": "maxlen",
    "deleted": "deleted",
}
"""The reasons of nodes, as the history names them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Death:
    """The deaths of a message in one queue for one reason.

    Attributes:
        queue: the name of the queue.
        reason: why it died.
        count: how often.
        time: of the first of these deaths, in seconds since 1970.
        last_time: of the last of them; None in a form without it.
        exchange: the exchange that the message was published to before the first of these deaths.
        routing_keys: the keys that it had then, those of the header ``CC`` included.
        original_expiration: the time-to-live that the message lost, as text in milliseconds; None if it had none.
    """

    queue: str
    reason: str
    count: int = 1
    time: float
    last_time: float | None = None
    exchange: str
    routing_keys: tuple[str, ...]
    original_expiration: str | None = None


def recorded(deaths: Iterable[Death], death: Death) -> list[Death]:
    """Return the history with one more death in front.

    A death of the same queue and reason only increments the count. The oldest entries are left out if the history would take more
    than ``MOST_OCTETS``.
    """
    rest: list[Death] = []
    newest = death
    for each in deaths:
        if (each.queue, each.reason) == (death.queue, death.reason):
            newest = replace(each, count=each.count + death.count, last_time=death.last_time)
        else:
            rest.append(each)
    history, octets = [newest], _octets_of(newest)
    for each in rest:
        octets += _octets_of(each)
        if octets > MOST_OCTETS:
            break
        history.append(each)
    return history


def _octets_of(death: Death) -> int:
    return _ENTRY + len(death.queue) + len(death.exchange) + sum(map(len, death.routing_keys))


def summary(before: Mapping[str, str], death: Death) -> dict[str, str]:
    """Return the names of the first and the last death, which are beside the list.

    Args:
        before: ``x-first-death-queue``, ``-reason`` and ``-exchange`` of the message, which stay; empty at its first death.
        death: the last death.
    """
    last = {"queue": death.queue, "reason": death.reason, "exchange": death.exchange}
    names = {f"x-last-death-{name}": value for name, value in last.items()}
    for name, value in last.items():
        first = f"x-first-death-{name}"
        names[first] = before.get(first, value)
    return names


def is_cycle(deaths: Sequence[PastDeath], queue: str, reason: str) -> bool:
    """Whether ``queue`` must not get a dead letter that has died there before.

    No consumer has rejected it since, so it would circulate for ever by itself.

    Args:
        deaths: its history, newest first, the present death included.
        queue: the name of the queue that the dead letter would reach.
        reason: why it dies now.
    """
    if reason == "rejected":
        return False
    for each in deaths:
        if each.reason == "rejected":
            return False
        if each.queue in (queue, to_text(queue)):
            return True
    return False


def checked(value: Any, most: int) -> int:
    """Return the whole number of a history that a peer may have written.

    Raises:
        TypeError, ValueError, OverflowError: it is no number from 0 to ``most``.
    """
    number = int(value)
    if not 0 <= number <= most:
        raise ValueError(f"{number} is not in 0 to {most}")
    return number
