"""Random expressions, and messages with properties that such expressions ask about."""

from __future__ import annotations

import uuid
from typing import Any

from hypothesis import strategies as st

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
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.values import Byte, Float, Symbol, Timestamp, UInt, ULong

NAMES = ("a", "b", "c")

texts = st.text("ab%_'é", max_size=4)
numbers = st.integers(0, 20) | st.sampled_from([0.5, 2.0, 7.25, 1e300])


def constants(dialect: Dialect) -> st.SearchStrategy[Expression]:
    values: st.SearchStrategy[Any] = st.booleans() | numbers | texts
    if dialect == "sql":
        values |= st.binary(max_size=2).filter(bool)
    return values.map(Constant)


identifiers: st.SearchStrategy[Expression] = st.sampled_from(
    [
        *(Identifier("application_properties", name) for name in NAMES),
        *(Identifier("application_properties", name) for name in ("and", "upper", "a b", "]", "1")),
        Identifier("header", "priority"),
        Identifier("properties", "subject"),
        Identifier("properties", "correlation_id"),
        Identifier("message_annotations", "x-opt-y"),
    ]
)


def _likes(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    pattern = st.text("ab%_", max_size=4)
    escaped = st.lists(st.sampled_from(["a", "%", "_", "!%", "!_", "!!"]), max_size=4).map("".join)
    return st.builds(Like, inner, pattern, st.none()) | st.builds(Like, inner, escaped, st.just("!"))


def _compound(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def chain(operators: str) -> st.SearchStrategy[Expression]:
        rest = st.lists(st.tuples(st.sampled_from(operators), inner), min_size=1, max_size=3)
        return st.builds(Arithmetic, inner, rest.map(tuple))

    several = st.lists(inner, min_size=2, max_size=4).map(tuple)
    operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    return st.one_of(
        several.map(And),
        several.map(Or),
        inner.map(Not),
        st.builds(Comparison, operators, inner, inner),
        st.builds(Between, inner, inner, inner),
        st.builds(In, inner, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(In, inner, st.lists(texts.map(Constant), min_size=1, max_size=3).map(tuple)),
        _likes(inner),
        inner.map(IsNull),
        chain("+-"),
        chain("*/%"),
        st.builds(Sign, st.sampled_from("+-"), inner),
    )


def expressions(dialect: Dialect) -> st.SearchStrategy[Expression]:
    """Of all kinds, and of no types: most of them compare what cannot be compared."""
    return st.recursive(constants(dialect) | identifiers, _compound, max_leaves=12)


values: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    texts,
    st.integers(-20, 20),
    st.sampled_from([UInt(7), ULong(2**64 - 1), Byte(-3), Timestamp(10), Float(0.5), -7.25, float("inf")]),
    st.sampled_from([float("nan"), Symbol("ab"), uuid.UUID(int=1), [1], {"a": 1}]),
    st.binary(max_size=2),
)
plain_values = values.filter(lambda value: not isinstance(value, (list, dict)))


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """As they are received: nothing of them is decoded."""
    message = Message(
        b"body",
        priority=draw(st.none() | st.integers(0, 9)),
        subject=draw(st.none() | texts),
        correlation_id=draw(st.none() | texts | st.integers(0, 20) | st.binary(max_size=2)),
        application_properties=draw(st.dictionaries(st.sampled_from([*NAMES, "and"]), plain_values)),
        annotations=draw(st.dictionaries(st.just("x-opt-y"), values)),
    )
    return Message.from_payload(message.to_payload())
