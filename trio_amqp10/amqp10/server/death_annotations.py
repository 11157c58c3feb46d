"""The history of a dead message in AMQP 1.0: annotations (3.2.3) as in RabbitMQ 4.

=========================  ========================================================================================
x-opt-deaths               array of maps, the last death first: ``queue``, ``reason`` (``rejected``, ``expired``, ``maxlen``,
                           ``delivery_limit``), ``count``, ``first-time``, ``last-time``, ``exchange``, ``routing-keys``, and
                           ``ttl`` in milliseconds, if the message lost one
x-first-death-queue        with ``-reason`` and ``-exchange``: the same of its first death
x-last-death-queue         with ``-reason`` and ``-exchange``: the same of its last death
=========================  ========================================================================================

Knows annotations; knows no message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp10.wire.values import Array, Symbol, Timestamp, UInt, ULong
from trio_amqp10.broker.exchanges.death_history import MOST_DEATHS, REASONS, Death, checked, recorded, summary
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.short_strings import to_text

from .message_terms import DEATHS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_amqp10.broker.nodes.content import Death as Cause
    from trio_amqp10.broker.nodes.content import Publication

_MOST_TTL: Final = 0xFFFFFFFF
"""The most milliseconds of a ttl."""
_LATEST: Final = 1 << 52
"""The latest time, in milliseconds since 1970, that a float holds exactly."""


def to_annotations(
    notes: Mapping[Any, Any],
    queue: str,
    reason: Cause,
    publication: Publication,
    now: float,
    ttl: int | None,
) -> dict[str, Any]:
    """Return the annotations of a message that died once more.

    Args:
        notes: its annotations before.
        queue: the name of the queue that it died in.
        reason: why it died.
        publication: the exchange and routing keys that it was published with.
        now: seconds since 1970.
        ttl: milliseconds; None if it had none.
    """
    death = Death(
        queue=to_text(queue),
        reason=REASONS[reason],
        time=now,
        last_time=now,
        exchange=to_text(publication.exchange),
        routing_keys=tuple(map(to_text, publication.routing_keys)),
        original_expiration=None if ttl is None else str(ttl),
    )
    before = deaths_of(notes)
    first = {str(key): value for key, value in notes.items() if isinstance(value, str)} if before else {}
    deaths = [_to_map(each) for each in recorded(before, death)]
    return {DEATHS: Array(deaths, "map"), **summary(first, death)}


def _to_map(death: Death) -> dict[Symbol, Any]:
    last = death.time if death.last_time is None else death.last_time
    entry: dict[Symbol, Any] = {
        Symbol("queue"): death.queue,
        Symbol("reason"): Symbol(death.reason),
        Symbol("count"): ULong(death.count),
        Symbol("first-time"): Timestamp(round(death.time * 1000)),
        Symbol("last-time"): Timestamp(round(last * 1000)),
        Symbol("exchange"): death.exchange,
        Symbol("routing-keys"): Array(death.routing_keys, "string"),
    }
    if death.original_expiration is not None:
        entry[Symbol("ttl")] = UInt(int(death.original_expiration))
    return entry


def deaths_of(notes: Mapping[Any, Any]) -> list[Death]:
    """Return the deaths in these annotations, the last one first.

    Impossible entries are left out.
    """
    value: Any = notes.get(DEATHS)
    entries = cast("Sequence[Any]", value) if isinstance(value, list) else ()
    found: list[Death] = []
    for entry in entries:
        try:
            ttl = entry.get("ttl")
            found.append(
                Death(
                    queue=str(entry["queue"]),
                    reason=str(Symbol(entry["reason"])),
                    count=checked(entry["count"], MOST_DEATHS),
                    time=checked(entry["first-time"], _LATEST) / 1000,
                    last_time=checked(entry["last-time"], _LATEST) / 1000,
                    exchange=str(entry["exchange"]),
                    routing_keys=tuple(map(str, entry["routing-keys"])),
                    original_expiration=None if ttl is None else str(checked(ttl, _MOST_TTL)),
                )
            )
        except (LocalProtocolError, KeyError, TypeError, ValueError, OverflowError, AttributeError):
            continue
    return found
