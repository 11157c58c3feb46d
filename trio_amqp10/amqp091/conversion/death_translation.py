"""Translation between ``x-death`` (0-9-1) and ``x-opt-deaths`` (1.0).

The header and the annotation have the history of a dead-lettered message. The rules are those of RabbitMQ 4:

====================  ============  ==========================  ===========
0-9-1                 letter        1.0                         type
====================  ============  ==========================  ===========
count                 ``l``         count                       ulong
reason                ``S``         reason                      symbol
queue, exchange       ``S``         queue, exchange             string
time                  ``T``         first-time; last-time too   timestamp
routing-keys          ``A``, ``S``  routing-keys                array of string
original-expiration   ``S``         ttl, if there was one       uint
====================  ============  ==========================  ===========

An entry that is not such a table is omitted. The translation to 0-9-1 loses the time of the last death.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp091.wire.fields import from_seconds, to_seconds
from trio_amqp10.amqp091.wire.typed_values import Int64, LongString
from trio_amqp10.amqp10.wire.values import Array, Symbol, Timestamp, UInt, ULong
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.short_strings import to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_MOST: Final = 2**32 - 1
"""The largest count, and the largest ttl in milliseconds."""
_LATEST: Final = 2**52
"""The latest time, in seconds or milliseconds since 1970."""


def deaths_to_standard(value: Any) -> Array[Any] | None:
    """Translate ``x-death`` to ``x-opt-deaths``; None if no entry is a death."""
    found = _translated(value, _to_standard)
    return Array(found, "map") if found else None


def deaths_from_standard(value: Any) -> list[dict[str, Any]] | None:
    """Translate ``x-opt-deaths`` to ``x-death``; None if no entry is a death."""
    return _translated(value, _from_standard) or None


def _translated(value: Any, translate: Callable[[Mapping[Any, Any]], dict[Any, Any]]) -> list[dict[Any, Any]]:
    found: list[dict[Any, Any]] = []
    for entry in cast("Sequence[Any]", value) if isinstance(value, list) else ():
        try:
            found.append(translate(entry))
        except (LocalProtocolError, KeyError, TypeError, ValueError, OverflowError, AttributeError):
            continue
    return found


def _to_standard(entry: Mapping[Any, Any]) -> dict[Any, Any]:
    time = Timestamp(_checked(to_seconds(entry["time"]), _LATEST // 1000) * 1000)
    made: dict[Any, Any] = {
        Symbol("queue"): _text(entry["queue"]),
        Symbol("reason"): Symbol(_ascii(entry["reason"])),
        Symbol("count"): ULong(_checked(entry["count"], _MOST)),
        Symbol("first-time"): time,
        Symbol("last-time"): time,
        Symbol("exchange"): _text(entry["exchange"]),
        Symbol("routing-keys"): Array([_text(key) for key in entry["routing-keys"]], "string"),
    }
    if "original-expiration" in entry:
        made[Symbol("ttl")] = UInt(_checked(entry["original-expiration"], _MOST))
    return made


def _from_standard(entry: Mapping[Any, Any]) -> dict[Any, Any]:
    made: dict[Any, Any] = {
        "count": Int64(_checked(entry["count"], _MOST)),
        "reason": _text(entry["reason"]),
        "queue": _text(entry["queue"]),
        "time": from_seconds(_checked(entry["first-time"], _LATEST) // 1000),
        "exchange": _text(entry["exchange"]),
        "routing-keys": [_text(key) for key in entry["routing-keys"]],
    }
    if entry.get("ttl") is not None:
        made["original-expiration"] = str(_checked(entry["ttl"], _MOST))
    return made


def _text(value: Any) -> str:
    if isinstance(value, LongString):
        return value.decode(errors="replace")
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return to_text(str(value))


def _ascii(value: Any) -> str:
    text = _text(value)
    if not text.isascii():
        raise ValueError(f"{text!r} is not a symbol")
    return text


def _checked(value: Any, most: int) -> int:
    number = int(value)
    if not 0 <= number <= most:
        raise ValueError(f"{number} is not in 0 to {most}")
    return number
