"""The nodes of expressions, and their text (JMS 3.8.1.1, filtex 6).

Each class is one kind of node. ``written`` returns a text that the parser turns into the same nodes. Knows
neither the parser nor messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from .errors import FilterError

if TYPE_CHECKING:
    from collections.abc import Iterable

Dialect = Literal["jms", "sql"]
"""Selectors of JMS, or expressions of the ``amqp:sql-filter`` of filtex."""

Section = Literal[
    "header",
    "delivery_annotations",
    "message_annotations",
    "properties",
    "application_properties",
    "footer",
    "jms",
]
"""The place of an identifier; ``jms`` has JMS headers, and values like them."""

Operator = Literal["=", "<>", "<", "<=", ">", ">="]

MAX_DEPTH: Final = 64
"""The limit for nodes inside nodes. A long list of terms is not deep."""

KEYWORDS: Final = frozenset(
    {"AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE"}
)

FUNCTIONS: Final = frozenset({"DATE", "EXISTS", "LEFT", "LOWER", "RIGHT", "SUBSTRING", "UPPER", "UTC"})
"""The functions of filtex, none of which is supported here.

Identifiers of that dialect cannot have these names.
"""

_RESERVED: Final = KEYWORDS | FUNCTIONS
_REGULAR: Final = re.compile(r"(?:[^\W\d]|\$)[\w$]*")
_REGULAR_FIELD: Final = re.compile(r"[\w$]+(?:[.-][^\W\d][\w$]*)*")


@dataclass(slots=True)
class Expression:
    """A node; ``depth`` counts the levels from this node down.

    Raises:
        FilterError: there are more than ``MAX_DEPTH`` levels.
    """

    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.depth = 1 + max((part.depth for part in self.parts()), default=0)
        if self.depth > MAX_DEPTH:
            raise FilterError(f"an expression of more than {MAX_DEPTH} nested levels")

    def parts(self) -> Iterable[Expression]:
        """Return the nodes directly below this one."""
        return ()


@dataclass(slots=True)
class Constant(Expression):
    """A literal. Numbers are not negative, because a sign is a node of its own."""

    value: bool | float | str | bytes


@dataclass(slots=True)
class Identifier(Expression):
    """A field of a section, or a key of its map."""

    section: Section
    name: str


@dataclass(slots=True)
class Sign(Expression):
    """``-operand``, or ``+operand``."""

    sign: str
    operand: Expression

    def parts(self) -> Iterable[Expression]:
        return (self.operand,)


@dataclass(slots=True)
class Arithmetic(Expression):
    """Operands of one precedence, from left to right.

    The operators are ``+`` and ``-``, or ``*``, ``/`` and ``%``.
    """

    first: Expression
    rest: tuple[tuple[str, Expression], ...]

    def parts(self) -> Iterable[Expression]:
        return (self.first, *(operand for _, operand in self.rest))


@dataclass(slots=True)
class Comparison(Expression):
    """``left operator right``."""

    operator: Operator
    left: Expression
    right: Expression

    def parts(self) -> Iterable[Expression]:
        return (self.left, self.right)


@dataclass(slots=True)
class Between(Expression):
    """``value BETWEEN low AND high``, both included."""

    value: Expression
    low: Expression
    high: Expression

    def parts(self) -> Iterable[Expression]:
        return (self.value, self.low, self.high)


@dataclass(slots=True)
class In(Expression):
    """``value IN (choices)``."""

    value: Expression
    choices: tuple[Expression, ...]

    def parts(self) -> Iterable[Expression]:
        return (self.value, *self.choices)


@dataclass(slots=True)
class Like(Expression):
    """``value LIKE pattern``, with ``ESCAPE escape`` unless that is None."""

    value: Expression
    pattern: str
    escape: str | None

    def parts(self) -> Iterable[Expression]:
        return (self.value,)


@dataclass(slots=True)
class IsNull(Expression):
    """``value IS NULL``."""

    value: Expression

    def parts(self) -> Iterable[Expression]:
        return (self.value,)


@dataclass(slots=True)
class Not(Expression):
    """``NOT operand``."""

    operand: Expression

    def parts(self) -> Iterable[Expression]:
        return (self.operand,)


@dataclass(slots=True)
class And(Expression):
    """Two terms or more, joined by AND."""

    terms: tuple[Expression, ...]

    def parts(self) -> Iterable[Expression]:
        return self.terms


@dataclass(slots=True)
class Or(Expression):
    """Two terms or more, joined by OR."""

    terms: tuple[Expression, ...]

    def parts(self) -> Iterable[Expression]:
        return self.terms


# Nodes to text ---------------------------------------------------------------------------------------

# The binding strength of each kind of node: a node that binds weaker than its place requires gets parentheses.
_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _SIGN, _PRIMARY = range(8)


def written(expression: Expression) -> str:
    """Return the expression as text, which the parser turns into the same nodes."""
    return _written(expression)[0]


def _written(node: Expression) -> tuple[str, int]:
    """Return the text of a node, and its binding strength."""
    match node:
        case Constant():
            return _constant(node.value), _PRIMARY
        case Identifier():
            return _identifier(node), _PRIMARY
        case Sign():
            operand = _at_least(_SIGN, node.operand)
            return f"{node.sign}{' ' * operand.startswith(('-', '+'))}{operand}", _SIGN
        case Arithmetic():
            binding = _SUM if node.rest[0][0] in "+-" else _PRODUCT
            rest = (f" {operator} {_at_least(binding + 1, operand)}" for operator, operand in node.rest)
            return _at_least(binding + 1, node.first) + "".join(rest), binding
        case Not():
            return f"NOT {_at_least(_NOT, node.operand)}", _NOT
        case And():
            return " AND ".join(_at_least(_NOT, term) for term in node.terms), _AND
        case Or():
            return " OR ".join(_at_least(_AND, term) for term in node.terms), _OR
        case _:
            return _predicate(node), _PREDICATE


def _predicate(node: Expression) -> str:
    match node:
        case Comparison():
            return f"{_at_least(_SUM, node.left)} {node.operator} {_at_least(_SUM, node.right)}"
        case Between():
            low, high = _at_least(_SUM, node.low), _at_least(_SUM, node.high)
            return f"{_at_least(_SUM, node.value)} BETWEEN {low} AND {high}"
        case In():
            choices = ", ".join(_at_least(_SUM, choice) for choice in node.choices)
            return f"{_at_least(_SUM, node.value)} IN ({choices})"
        case Like():
            escape = "" if node.escape is None else f" ESCAPE {_quoted(node.escape)}"
            return f"{_at_least(_SUM, node.value)} LIKE {_quoted(node.pattern)}{escape}"
        case _:
            assert isinstance(node, IsNull)
            return f"{_at_least(_SUM, node.value)} IS NULL"


def _at_least(binding: int, node: Expression) -> str:
    text, own = _written(node)
    return text if own >= binding else f"({text})"


def _constant(value: bool | float | str | bytes) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bytes):
        return f"0x{value.hex().upper()}"
    return str(value).upper() if isinstance(value, bool) else repr(value)


def _quoted(text: str) -> str:
    return "'{}'".format(text.replace("'", "''"))


def _identifier(node: Identifier) -> str:
    name = node.name
    if node.section == "jms":
        return name
    if node.section == "application_properties":
        if _REGULAR.fullmatch(name) and name.upper() not in _RESERVED and not name.startswith("JMS"):
            return name
        return "[{}]".format(name.replace("[", "[[").replace("]", "]]"))
    text = f"{node.section}.{name}"
    return text if _REGULAR_FIELD.fullmatch(name) else '"{}"'.format(text.replace('"', '""'))
