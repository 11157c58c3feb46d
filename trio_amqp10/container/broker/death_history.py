"""The history of a dead message, as the header ``x-death`` of 0-9-1 and the annotation ``x-opt-deaths`` have it.

A message has one entry for each queue and reason that it died in and of, the newest first; a further death of the
same kind counts its entry up and moves it to the front. Names of the first and the last death stand beside the list. The oldest
entries are left out where the list would take more than ``MOST_OCTETS``, so that no path makes a message grow without end.

Knows the history as plain values; how a message carries it is its form's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trio_amqp10.container.nodes.content import Death as Cause
    from trio_amqp10.container.nodes.content import PastDeath

__all__ = ["MOST_OCTETS", "REASONS", "Death", "Reason", "is_cycle", "recorded", "summary"]

MOST_OCTETS: Final = 64 * 1024
"""Octets of a history, about; the last death is always in it."""

_ENTRY: Final = 128
"""Octets of an entry beside its names, about."""

Reason = Literal["rejected", "expired", "maxlen", "delivery_limit", "deleted"]

REASONS: Final[Mapping[Cause, Reason]] = {
    "rejected": "rejected",
    "expired": "expired",
    "delivery-limit": "delivery_limit",
    "overflow": "maxlen",
    "deleted": "deleted",
}
"""How the history names the reasons of nodes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Death:
    """How often a message died in one queue for one reason.

    Attributes:
        queue: the name of the queue.
        reason: why.
        count: how often.
        time: of the first of these deaths, in seconds since 1970.
        last_time: of the last of them; None in a form that does not keep it.
        exchange: the exchange that the message was published to before the first of these deaths.
        routing_keys: the keys that it had then, those of the header ``CC`` included.
        original_expiration: milliseconds as text: the time-to-live that the message lost; None if it had none.
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
    """The history with one more death in front; one of the same queue and reason is counted up and keeps its details.

    The oldest are left out where the history would take more than ``MOST_OCTETS``.
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
    """The names beside the list: those of the first death stay as they are in ``before``, those of the last change.

    Args:
        before: ``x-first-death-queue``, ``-reason`` and ``-exchange`` of the message; empty at its first death.
        death: the last one.
    """
    last = {"queue": death.queue, "reason": death.reason, "exchange": death.exchange}
    names = {f"x-last-death-{name}": value for name, value in last.items()}
    for name, value in last.items():
        first = f"x-first-death-{name}"
        names[first] = before.get(first, value)
    return names


def is_cycle(deaths: Sequence[PastDeath], queue: str, reason: str) -> bool:
    """Whether a message that dies for this reason must not be put into ``queue`` as a dead letter.

    That is so where it has been dead in this queue before and no consumer has rejected it since: it would go in
    circles without anybody's doing.

    Args:
        deaths: its history, newest first, the present death included.
        queue: the name of the queue that the dead letter would get to.
        reason: why it dies now.
    """
    if reason == "rejected":
        return False
    for each in deaths:
        if each.reason == "rejected":
            return False
        if each.queue == queue:
            return True
    return False
