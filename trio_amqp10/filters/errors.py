"""What is wrong with a filter that we know by its descriptor and cannot apply (3.5.8).

Knows nothing of what is around the filter.
"""

from __future__ import annotations

from typing import Final

from trio_amqp10.errors import AmqpError, Condition

__all__ = ["FilterError", "excerpt"]

SHOWN: Final = 60
"""Characters of a peer's own text that an error repeats."""


class FilterError(AmqpError):
    """A filter is malformed: an attach with it is answered by ``condition`` (2.7.3, 3.5.3).

    Args:
        description: what is wrong, in words for the one who wrote the filter.
        position: the character of the expression where it was found, counted from 0; None where the
            fault has no place.
    """

    condition: Final = Condition.INVALID_FIELD

    def __init__(self, description: str, position: int | None = None) -> None:
        super().__init__(description if position is None else f"{description}, at position {position}")
        self.description = description
        self.position = position


def excerpt(value: object) -> str:
    """A value as an error shows it: its beginning, if it is long."""
    text = repr(value[: SHOWN + 1]) if isinstance(value, (str, bytes)) else repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
