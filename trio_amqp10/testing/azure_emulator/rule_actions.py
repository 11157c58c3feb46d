"""Actions of subscription rules: SQL that changes the copy of a message.

``SET sys.Label = 'oil'; SET price = price * 2; REMOVE colour``: the statements are applied in order. ``newid()`` is a new UUID, as a
string; there are no other functions. Knows messages; knows no entities.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.filters.errors import FilterError
from trio_amqp10.amqp10.filters.selector import Selector
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .constants import ARGUMENT_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trio_amqp10.amqp10.message import Message

    Action = Callable[[Message], None]

_STATEMENT: Final = re.compile(
    r"""\s*(?:(?P<set>SET)|REMOVE)\s+
    (?:(?P<scope>[^\W\d]\w*)\s*\.\s*)? (?:\[(?P<bracketed>[^\]]+)\] | "(?P<quoted>[^"]+)" | (?P<word>[^\W\d][\w$]*))
    \s*(?(set)=\s*(?P<expression>.+))$""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_PIECE: Final = re.compile(r"""'[^']*(?:''[^']*)*'|\[[^\]]*\]|"[^"]*"|[^'\["(),;]+|.""", re.DOTALL)
_NEW_ID: Final = re.compile(r"\s*newid\s*\(\s*\)\s*", re.IGNORECASE)
_MOST: Final = 32
"""The most statements of an action."""


def parse_action(
    text: object, fields: Mapping[str, str], rewritten: Callable[[str], str]
) -> Callable[[Message], None]:
    """Return the function that applies the statements to a message.

    Args:
        text: the statements, separated by semicolons or commas.
        fields: the fields of a message by the lower-case names of ``sys.``.
        rewritten: translates an expression to a selector.

    Raises:
        RefusedError: the text is not an action.
    """
    if not isinstance(text, str):
        raise RefusedError(ARGUMENT_ERROR, f"expression={text!r}: expected a string of SQL")
    steps = [_step(statement, fields, rewritten) for statement in _statements(text)]
    if not 1 <= len(steps) <= _MOST:
        raise RefusedError(ARGUMENT_ERROR, f"{text!r}: an action has 1 to {_MOST} statements, SET or REMOVE")

    def change(message: Message) -> None:
        for step in steps:
            step(message)

    return change


def _statements(text: str) -> Iterator[str]:
    """Split at semicolons and commas that are not in quotes, brackets or parentheses."""
    depth, start = 0, 0
    for piece in _PIECE.finditer(text):
        mark = piece[0]
        depth += (mark == "(") - (mark == ")")
        if mark in {";", ","} and depth == 0:
            yield from filter(str.strip, (text[start : piece.start()],))
            start = piece.end()
    yield from filter(str.strip, (text[start:],))


def _step(statement: str, fields: Mapping[str, str], rewritten: Callable[[str], str]) -> Action:
    found = _STATEMENT.match(statement)
    if found is None:
        raise RefusedError(
            ARGUMENT_ERROR,
            f"{statement.strip()!r} is not a statement: expected SET NAME = VALUE or REMOVE NAME",
        )
    scope = (found["scope"] or "user").lower()
    name = next(each for each in (found["bracketed"], found["quoted"], found["word"]) if each is not None)
    if scope not in ("sys", "user"):
        raise RefusedError(ARGUMENT_ERROR, f"{statement.strip()!r}: the scope of a name must be sys or user")
    value = _value(found["expression"], rewritten) if found["set"] else None
    if scope == "user":
        return _property(name, value)
    field = fields.get(name.lower())
    if field is None:
        raise RefusedError(
            ARGUMENT_ERROR, f"sys.{name} cannot be changed: expected one of {', '.join(sorted(fields))}"
        )
    return _field(field, value)


def _value(expression: str, rewritten: Callable[[str], str]) -> Callable[[Message], Any]:
    if _NEW_ID.fullmatch(expression):
        return lambda _: str(uuid.uuid4())
    try:
        return Selector(rewritten(expression)).evaluate
    except FilterError as fault:
        raise RefusedError(ARGUMENT_ERROR, f"{expression.strip()!r}: {fault}") from fault
    except LocalProtocolError as missing:
        raise RefusedError(Condition.NOT_IMPLEMENTED, str(missing)) from missing


def _property(name: str, value: Callable[[Message], Any] | None) -> Action:
    """Return a function that sets or removes an application-property."""

    def change(message: Message) -> None:
        found = None if value is None else value(message)
        properties = {key: each for key, each in message.application_properties.items() if key != name}
        message.application_properties = properties if found is None else {**properties, name: found}

    return change


def _field(field: str, value: Callable[[Message], Any] | None) -> Action:
    """Return a function that sets a field of the properties to a text, or removes it."""

    def change(message: Message) -> None:
        found = None if value is None else value(message)
        setattr(message, field, found if found is None or isinstance(found, str) else _text(found))

    return change


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
