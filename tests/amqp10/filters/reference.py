"""The meaning of expressions, once more and as plainly as it can be said: a tree walk over the nodes."""

from __future__ import annotations

import fractions
import math
import re
import uuid
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.filters.syntax import (
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
    Or,
    Sign,
)

if TYPE_CHECKING:
    from trio_amqp10.amqp10.message import Message


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    return "octets" if isinstance(value, bytes) else "other"


def lookup(node: Identifier, message: Message) -> Any:
    if node.section in ("header", "properties"):
        value = getattr(message, node.name)
    else:
        maps = {"application_properties": "application_properties", "message_annotations": "annotations"}
        value = getattr(message, maps[node.section]).get(node.name)
    return str(value) if isinstance(value, uuid.UUID) else value


def compare(operator: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if kind(left) != kind(right) or kind(left) == "other":
        return False
    if kind(left) == "boolean" and operator not in ("=", "<>"):
        return False
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


def conjunction(values: list[Any]) -> bool | None:
    if any(value is False for value in values):
        return False
    return True if all(value is True for value in values) else None


def negation(value: Any) -> bool | None:
    return not value if isinstance(value, bool) else None


def disjunction(values: list[Any]) -> bool | None:
    return negation(conjunction([negation(value) for value in values]))


def like(text: str, pattern: str, escape: str | None) -> bool:
    """By a regular expression, as it must not be done."""
    made, characters = "", iter(pattern)
    for character in characters:
        if character == escape:
            made += re.escape(next(characters))
        else:
            made += {"%": ".*", "_": "."}.get(character, re.escape(character))
    return re.fullmatch(made, text, re.DOTALL) is not None


def arithmetic(operator: str, left: Any, right: Any, dialect: Dialect) -> Any:
    if kind(left) != "number" or kind(right) != "number":
        return None
    whole = isinstance(left, int) and isinstance(right, int)
    if operator in "/%":
        if right == 0:
            return None
        if operator == "%" and math.isinf(left):
            return None
        if whole:
            quotient = int(fractions.Fraction(left, right))  # cut towards zero
            if operator == "%":
                return left - quotient * right
            return quotient if dialect == "jms" else left / right
        return left / right if operator == "/" else math.fmod(left, right)
    result = {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right}[operator]()
    return float(result) if abs(result) >= 2**64 else result


def evaluate(node: Expression, message: Message, dialect: Dialect) -> Any:
    def of(part: Expression) -> Any:
        return evaluate(part, message, dialect)

    match node:
        case Constant():
            return node.value
        case Identifier():
            return lookup(node, message)
        case And():
            return conjunction([of(term) for term in node.terms])
        case Or():
            return disjunction([of(term) for term in node.terms])
        case Not():
            return negation(of(node.operand))
        case Comparison():
            return compare_nodes(node, of(node.left), of(node.right), dialect)
        case Between():
            value = of(node.value)
            return conjunction([compare(">=", value, of(node.low)), compare("<=", value, of(node.high))])
        case In():
            value = of(node.value)
            return disjunction([compare("=", value, of(choice)) for choice in node.choices])
        case Like():
            value = of(node.value)
            return like(value, node.pattern, node.escape) if isinstance(value, str) else None
        case IsNull():
            return of(node.value) is None
        case Sign():
            return arithmetic("*", -1 if node.sign == "-" else 1, of(node.operand), dialect)
        case _:
            assert isinstance(node, Arithmetic)
            result = of(node.first) if kind(of(node.first)) == "number" else None
            for operator, operand in node.rest:
                result = arithmetic(operator, result, of(operand), dialect)
            return result


def compare_nodes(node: Comparison, left: Any, right: Any, dialect: Dialect) -> bool | None:
    """With the custom of Event Hubs: an annotation compared with digits in quotes is compared as a number."""
    if dialect == "jms":
        if custom(node.left, node.right):
            left, right = number_of(left), int(right)
            right = right if not isinstance(left, str) else str(node.right.value)  # type: ignore[attr-defined]
        elif custom(node.right, node.left):
            left, right = int(left), number_of(right)
            left = left if not isinstance(right, str) else str(node.left.value)  # type: ignore[attr-defined]
    return compare(node.operator, left, right)


def custom(annotation: Expression, text: Expression) -> bool:
    return (
        isinstance(annotation, Identifier)
        and annotation.section == "message_annotations"
        and isinstance(text, Constant)
        and isinstance(text.value, str)
        and re.fullmatch("[+-]?[0-9]+", text.value) is not None
    )


def number_of(value: Any) -> Any:
    return int(value) if isinstance(value, str) and re.fullmatch("[+-]?[0-9]+", value) else value
