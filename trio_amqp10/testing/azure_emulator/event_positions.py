"""Position: the start of a receiver in a partition, from its filter.

The filter ``apache.org:selector-filter:string`` has one comparison, with ``>`` or ``>=``::

    amqp.annotation.x-opt-sequence-number > '41'
    amqp.annotation.x-opt-offset >= '1024'
    amqp.annotation.x-opt-enqueued-time > '1800000000000'      milliseconds since 1970
    amqp.annotation.x-opt-offset > '-1'                        the first event, as for sequence numbers
    amqp.annotation.x-opt-offset > '@latest'                   events from now on

Knows strings; knows no events.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from trio_amqp10.amqp10.wire.values import Described
from trio_amqp10.broker.nodes.node import RefusedError

from .constants import ARGUMENT_ERROR, ENQUEUED, OFFSET, SEQUENCE_NUMBER

_COMPARISON: Final = re.compile(r"\s*amqp\.annotation\.([a-z-]+)\s*(>=?)\s*'([^']*)'\s*", re.ASCII)
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)


class Position(NamedTuple):
    """A position after an event, or at it.

    Attributes:
        what: the annotation to compare: ``x-opt-sequence-number``, ``x-opt-offset`` or ``x-opt-enqueued-time``.
        value: its value; None for the end of the partition.
        inclusive: whether an event with exactly this value is included.
    """

    what: str
    value: int | None
    inclusive: bool


BEGINNING: Final = Position(OFFSET, -1, False)
LATEST: Final = Position(OFFSET, None, False)


def parse_position(selector: object) -> Position:
    """Return the position of a filter.

    Args:
        selector: the filter, described or not; None means the beginning.

    Raises:
        RefusedError: ``com.microsoft:argument-error``, the filter is none of those above.
    """
    text: Any = selector.value if isinstance(selector, Described) else selector
    if text is None:
        return BEGINNING
    found = _COMPARISON.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[1] not in (SEQUENCE_NUMBER, OFFSET, ENQUEUED):
        raise RefusedError(
            ARGUMENT_ERROR,
            f"filter {text!r}: expected amqp.annotation. with one of {SEQUENCE_NUMBER}, {OFFSET} and {ENQUEUED}, then > or >=, "
            "then a value in apostrophes",
        )
    what, operator, value = found.groups()
    if value == "@latest" and what == OFFSET:
        return LATEST
    if not _NUMBER.fullmatch(value):
        raise RefusedError(ARGUMENT_ERROR, f"filter {text!r}: the value must be a number")
    return Position(what, int(value), operator == ">=")
