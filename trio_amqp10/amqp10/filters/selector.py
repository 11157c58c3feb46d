"""Selector: one expression that selects messages (JMS 3.8.1.1, filtex 6).

The parser needs the extra ``selector``. Knows nothing of the filter-set with the expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .errors import FilterError
from .evaluate import compile_expression
from .syntax import Constant, Dialect, Expression, written

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.message import Message

__all__ = ["MAX_LENGTH", "Dialect", "Selector", "is_available"]

MAX_LENGTH: Final = 4096
"""The default limit for the characters of an expression."""


def is_available() -> bool:
    """Whether expressions can be parsed: the extra ``selector`` is installed."""
    return _parser() is not None


class Selector:
    """A condition on messages, in the language of JMS selectors or of filtex.

    Args:
        text: the expression, such as ``colour = 'red' AND weight > 10``. An empty text matches all messages
            (JMS 3.8.1.1).
        dialect: ``jms`` for ``apache.org:selector-filter:string``, or ``sql`` for ``amqp:sql-filter``.
        max_length: the limit for the characters of the text; None for no limit.

    Raises:
        FilterError: the text is not an expression, or is too long, or nested too deeply.
        LocalProtocolError: the extra ``selector`` is not installed.
    """

    __slots__ = ("dialect", "evaluate", "expression")

    def __init__(self, text: str, *, dialect: Dialect = "jms", max_length: int | None = MAX_LENGTH) -> None:
        if max_length is not None and len(text) > max_length:
            raise FilterError(
                f"an expression of {len(text)} characters: expected at most {max_length}", max_length
            )
        self.dialect: Final[Dialect] = dialect
        self.expression: Final = _parsed(text, dialect)
        self.evaluate: Final[Callable[[Message], object]] = compile_expression(self.expression, dialect)
        """Evaluate a message: True, False, or None for unknown.

        Raises ``RemoteProtocolError`` for a message that cannot be decoded.
        """

    def matches(self, message: Message) -> bool:
        """Whether the expression is true for a message.

        False if the result is unknown, or the message cannot be decoded.
        """
        try:
            return self.evaluate(message) is True
        except RemoteProtocolError:
            return False

    def __str__(self) -> str:
        return written(self.expression)

    def __repr__(self) -> str:
        return f"Selector({str(self)!r}, dialect={self.dialect!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self.dialect == other.dialect and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((self.dialect, str(self)))


def _parsed(text: str, dialect: Dialect) -> Expression:
    if not text.strip(" \t\f\r\n"):
        return Constant(True)
    parse = _parser()
    if parse is None:
        raise LocalProtocolError("selectors need lark: pip install 'trio-amqp10[selector]'")
    return parse(text, dialect)


def _parser() -> Callable[[str, Dialect], Expression] | None:
    """Import the parser at its first use, because that takes long; None without lark."""
    try:
        from .grammar import parse
    except ImportError:
        return None
    return parse
