"""Compile expressions to functions of a message (JMS 3.8.1.1, filtex 6).

A function returns a value as ``fields.plain`` does, with None for unknown. Logic has three values, as in SQL:
unknown AND false is false, unknown OR true is true, and every other operation on unknown is unknown. A
comparison of values of different types is false, also for ``<>`` (JMS 3.8.1.1). Integers and floats compare
as numbers, texts by code points, octets by octets. Text is never converted to a number, with one exception
(see ``_numeric_text``).

The functions raise only ``RemoteProtocolError``, for a message that cannot be decoded. A result above 64 bits
becomes a float, so that no expression makes arithmetic slow. Knows no text of expressions.
"""

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from .fields import reader
from .like import compile_like
from .syntax import (
    And,
    Arithmetic,
    Between,
    Comparison,
    Constant,
    Dialect,
    Expression,
    Identifier,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Sign,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.message import Message

    Evaluator = Callable[[Message], object]
    Compare = Callable[[Any, Any], bool]

_LIMIT: Final = 2**64
"""The absolute value from which an integer becomes a float."""

_COMPARISONS: Final[dict[Operator, Compare]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MIRRORED: Final[dict[Operator, Operator]] = {
    "=": "=",
    "<>": "<>",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
_EQUALITY: Final = (operator.eq, operator.ne)


def compile_expression(expression: Expression, dialect: Dialect) -> Evaluator:
    """Return a function that evaluates the expression for a message.

    The dialects differ in the division of integers: the quotient is an integer in JMS, as in Java, and not in
    filtex.
    """
    match expression:
        case Constant():
            return _constant(expression.value)
        case Identifier():
            return reader(expression)
        case Sign():
            return _sign(expression, dialect)
        case Arithmetic():
            return _arithmetic(expression, dialect)
        case Comparison():
            return _comparison(expression, dialect)
        case Not():
            return _not(compile_expression(expression.operand, dialect))
        case And():
            return _junction(expression.terms, dialect, decisive=False)
        case Or():
            return _junction(expression.terms, dialect, decisive=True)
        case _:
            return _predicate(expression, dialect)


def _predicate(expression: Expression, dialect: Dialect) -> Evaluator:
    match expression:
        case Between():
            return _between(expression, dialect)
        case In():
            return _in(expression, dialect)
        case Like():
            return _like(expression, dialect)
        case _:
            assert isinstance(expression, IsNull)
            value = compile_expression(expression.value, dialect)
            return lambda message: value(message) is None


def _constant(value: Any) -> Evaluator:
    return lambda _: value


# Logic ------------------------------------------------------------------------------------------------


def _not(operand: Evaluator) -> Evaluator:
    def negated(message: Message) -> bool | None:
        value = operand(message)
        return not value if value.__class__ is bool else None

    return negated


def _junction(operands: tuple[Expression, ...], dialect: Dialect, *, decisive: bool) -> Evaluator:
    """Compile AND, which one false term decides, or OR, which one true term decides."""
    terms = [compile_expression(operand, dialect) for operand in operands]
    first, second = terms[:2]
    otherwise = not decisive

    def of_two(message: Message) -> bool | None:
        left = first(message)
        if left is decisive:
            return decisive
        right = second(message)
        if right is decisive:
            return decisive
        return otherwise if left is otherwise and right is otherwise else None

    def of_many(message: Message) -> bool | None:
        result: bool | None = otherwise
        for term in terms:
            value = term(message)
            if value is decisive:
                return decisive
            if value is not otherwise:
                result = None
        return result

    return of_two if len(terms) == 2 else of_many


# Comparisons ------------------------------------------------------------------------------------------


def _comparison(node: Comparison, dialect: Dialect) -> Evaluator:
    name, left, right = node.operator, node.left, node.right
    if isinstance(left, Constant) and not isinstance(right, Constant):
        name, left, right = _MIRRORED[name], right, left
    compare = _COMPARISONS[name]
    value = compile_expression(left, dialect)
    if isinstance(right, Constant):
        if isinstance(right.value, str):
            if dialect == "jms" and _is_annotation(left) and _INTEGER.fullmatch(right.value):
                return _numeric_text(compare, value, right.value)
            return _with_text(compare, value, right.value)
        if not isinstance(right.value, (bool, bytes)):
            return _with_number(compare, value, right.value)
    other = compile_expression(right, dialect)
    return lambda message: _compared(compare, value(message), other(message))


def _compared(compare: Compare, left: Any, right: Any) -> bool | None:
    """Compare two values by the general rule.

    The functions below do the same if one side is a constant.
    """
    if left is None or right is None:
        return None
    if isinstance(left, str):
        alike = isinstance(right, str)
    elif isinstance(left, bool):
        alike = isinstance(right, bool) and compare in _EQUALITY
    elif isinstance(left, bytes):
        alike = isinstance(right, bytes)
    else:
        alike = _is_number(left) and _is_number(right)
    return alike and compare(left, right)


def _with_text(compare: Compare, value: Evaluator, text: str) -> Evaluator:
    def compared(message: Message) -> bool | None:
        left = value(message)
        if left.__class__ is str or isinstance(left, str):
            return compare(left, text)
        return None if left is None else False

    return compared


def _with_number(compare: Compare, value: Evaluator, number: float) -> Evaluator:
    def compared(message: Message) -> bool | None:
        left = value(message)
        if left.__class__ is int or _is_number(left):
            return compare(left, number)
        return None if left is None else False

    return compared


_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")


def _is_annotation(node: Expression) -> bool:
    return isinstance(node, Identifier) and node.section == "message_annotations"


def _numeric_text(compare: Compare, value: Evaluator, text: str) -> Evaluator:
    """Compare with the number in a text, as Event Hubs does.

    Clients of Event Hubs select the first event by ``amqp.annotation.x-opt-sequence-number > '42'``, and mean
    the number 42. The annotation may be a long or, as the offset, a string of digits. JMS does not define
    annotations, so this breaks none of its rules.
    """
    number = int(text)

    def compared(message: Message) -> bool | None:
        left = value(message)
        if isinstance(left, str):
            return compare(int(left), number) if _INTEGER.fullmatch(left) else compare(left, text)
        return _compared(compare, left, number)

    return compared


def _between(node: Between, dialect: Dialect) -> Evaluator:
    value, low, high = (compile_expression(part, dialect) for part in node.parts())

    def is_between(message: Message) -> bool | None:
        middle = value(message)
        above = _compared(operator.ge, middle, low(message))
        below = _compared(operator.le, middle, high(message))
        if above is False or below is False:
            return False
        return None if above is None or below is None else True

    return is_between


def _in(node: In, dialect: Dialect) -> Evaluator:
    value = compile_expression(node.value, dialect)
    texts = {choice.value for choice in node.choices if isinstance(choice, Constant)}
    if len(texts) == len(node.choices) and all(isinstance(text, str) for text in texts):
        return _in_texts(value, frozenset(texts))
    choices = [compile_expression(choice, dialect) for choice in node.choices]

    def is_in(message: Message) -> bool | None:
        left = value(message)
        result: bool | None = False
        for choice in choices:
            equal = _compared(operator.eq, left, choice(message))
            if equal:
                return True
            if equal is None:
                result = None
        return result

    return is_in


def _in_texts(value: Evaluator, texts: frozenset[object]) -> Evaluator:
    def is_in(message: Message) -> bool | None:
        left = value(message)
        return None if left is None else isinstance(left, str) and left in texts

    return is_in


def _like(node: Like, dialect: Dialect) -> Evaluator:
    """Compile LIKE: unknown for a value that is not a text."""
    value = compile_expression(node.value, dialect)
    matches = compile_like(node.pattern, node.escape)

    def is_like(message: Message) -> bool | None:
        text = value(message)
        return matches(text) if isinstance(text, str) else None

    return is_like


# Arithmetic -------------------------------------------------------------------------------------------


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and value.__class__ is not bool


def _java_divided(left: float, right: float) -> float:
    """Divide as Java does: round towards zero if both are integers."""
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def _remainder(left: float, right: float) -> float:
    """Return the remainder with the sign of the dividend, as Java does."""
    if isinstance(left, int) and isinstance(right, int):
        remainder = abs(left) % abs(right)
        return -remainder if left < 0 else remainder
    return math.fmod(left, right)


_OPERATIONS: Final[dict[str, Callable[[Any, Any], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right,
    "%": _remainder,
}


def _arithmetic(node: Arithmetic, dialect: Dialect) -> Evaluator:
    operations = {**_OPERATIONS, "/": _java_divided} if dialect == "jms" else _OPERATIONS
    first = compile_expression(node.first, dialect)
    rest = [(operations[name], compile_expression(operand, dialect)) for name, operand in node.rest]

    def computed(message: Message) -> float | None:
        result = first(message)
        if not _is_number(result):
            return None
        for operate, operand in rest:
            value = operand(message)
            if not _is_number(value):
                return None
            try:
                result = operate(result, value)
            except (ZeroDivisionError, ValueError):  # x / 0; the remainder of an infinity
                return None
            if isinstance(result, int) and not -_LIMIT < result < _LIMIT:
                result = float(result)
        return result

    return computed


def _sign(node: Sign, dialect: Dialect) -> Evaluator:
    operand = compile_expression(node.operand, dialect)
    negative = node.sign == "-"

    def signed(message: Message) -> float | None:
        value = operand(message)
        if not _is_number(value):
            return None
        return -value if negative else value

    return signed
