"""Nodes of an expression are written as text that is parsed to the same nodes."""

from __future__ import annotations

from hypothesis import given, settings

from trio_amqp10.amqp10.filters.grammar import parse
from trio_amqp10.amqp10.filters.syntax import Expression, written

from .strategies import expressions


@settings(deadline=None)
@given(expressions("jms"))
def test_jms_expression_is_the_same_when_it_is_written_and_parsed(expression: Expression) -> None:
    text = written(expression)
    assert parse(text, "jms") == expression
    assert written(parse(text, "jms")) == text


@settings(deadline=None)
@given(expressions("sql"))
def test_sql_expression_is_the_same_when_it_is_written_and_parsed(expression: Expression) -> None:
    text = written(expression)
    assert parse(text, "sql") == expression
    assert written(parse(text, "sql")) == text
