"""The error of a filter that is malformed, or that cannot be applied (3.5.8).

Knows nothing of the link with the filter.
"""

from __future__ import annotations

from typing import Final

from trio_amqp10.core.errors import AmqpError, Condition

SHOWN: Final = 60
"""Characters of the peer's text that an error repeats at most."""


class FilterError(AmqpError):
    """A filter is malformed.

    An attach with the filter is answered with ``condition`` (2.7.3, 3.5.3).

    Args:
        description: the fault, for the author of the filter.
        position: the index of the wrong character in the expression, from 0; None if the fault has no place.
    """

    condition: Final = Condition.INVALID_FIELD

    def __init__(self, description: str, position: int | None = None) -> None:
        super().__init__(description if position is None else f"{description}, at position {position}")
        self.description = description
        self.position = position


def excerpt(value: object) -> str:
    """Return a value as an error shows it: only its beginning, if it is long."""
    text = repr(value[: SHOWN + 1]) if isinstance(value, (str, bytes)) else repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
