"""From text to nodes and back, and what is said of text that is no expression."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scaled import scaled
from trio_amqp10.amqp10.filters import Dialect, FilterError, Selector
from trio_amqp10.amqp10.filters.syntax import MAX_DEPTH

DIALECTS: list[Dialect] = ["jms", "sql"]
WORDS = (
    "a b.c p.subject amqp.subject JMSPriority JMSx 1 017 09 0x1F 1.5 .5e3 1e999 'x' 'it''s' ' \" [k] [ \"q\" ( ) , = <> "
    "!= < >= + - * / % and OR Not between in like escape is null TRUE utc ~ \x00 é 🥕 \ud800"
)
words = st.sampled_from(WORDS.split(" "))


@settings(deadline=None, max_examples=scaled(300))
@given(st.lists(words | st.text(max_size=3), max_size=12).map(" ".join), st.sampled_from(DIALECTS))
def test_parser_raises_only_filter_errors_when_the_text_is_garbage(text: str, dialect: Dialect) -> None:
    try:
        selector = Selector(text, dialect=dialect)
    except FilterError as error:
        position = error.position or 0
    else:
        position = 0
        assert Selector(str(selector), dialect=dialect) == selector
    assert 0 <= position <= len(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a=1", "a = 1"),
        ("a != 1", "a <> 1"),
        ("a not in ('x','y')", "NOT a IN ('x', 'y')"),
        ("a Not Between 1 And 2 aNd b", "NOT a BETWEEN 1 AND 2 AND b"),
        ("a not like 'it''s' escape '!'", "NOT a LIKE 'it''s' ESCAPE '!'"),
        ("a is not null", "NOT a IS NULL"),
        ("not a = 1 or b and c", "NOT a = 1 OR b AND c"),
        ("(a or b) and c", "(a OR b) AND c"),
        ("((a or b) or c)", "(a OR b) OR c"),
        ("a - (b - c) - d", "a - (b - c) - d"),
        ("(a + b) * -c", "(a + b) * -c"),
        ("- -5 + +a", "- -5 + +a"),
        ("a-1 = b", "a - 1 = b"),
        ("017 + 0x1f + 5L + 7. + .5 + 1e3 + 2.5f", "15 + 31 + 5 + 7.0 + 0.5 + 1000.0 + 2.5"),
        ("true <> False", "TRUE <> FALSE"),
        ("amqp.group-id = 'g'", "properties.group_id = 'g'"),
        ("amqp.priority > 4", "header.priority > 4"),
        ("amqp.delivery_mode = JMSDeliveryMode", "JMSDeliveryMode = JMSDeliveryMode"),
        ("amqp.annotation.x-opt-a.b = 1", "message_annotations.x-opt-a.b = 1"),
        ('"amqp.annotation.x 1" = 1', '"message_annotations.x 1" = 1'),
        ("properties.group-sequence-1 = 1", "properties.group_sequence - 1 = 1"),
        ("application-properties.and = 1", "[and] = 1"),
        ('"quoted ""name""" = 1', '[quoted "name"] = 1'),
        ("[a]]b] = [[[]", "[a]]b] = [[[]"),
        ("p.subject = JMS_x", "[p.subject] = [JMS_x]"),
        ("$é_1 = 1", "$é_1 = 1"),
        ("\t \r\n\f", "TRUE"),
        ("", "TRUE"),
    ],
)
def test_jms_text_becomes_one_canonical_form(text: str, canonical: str) -> None:
    assert str(Selector(text)) == canonical


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('p.subject = "it\'s"', "properties.subject = 'it''s'"),
        ("h.priority = 017", "header.priority = 17"),
        (
            "m.x-opt-a = d.b and f.c = a.d",
            "message_annotations.x-opt-a = delivery_annotations.b AND footer.c = d",
        ),
        ("0xDEADbeef = b", "0xDEADBEEF = b"),
        ("JMSPriority = 1", "[JMSPriority] = 1"),
        ("[upper] = 1", "[upper] = 1"),
    ],
)
def test_sql_text_becomes_one_canonical_form(text: str, canonical: str) -> None:
    assert str(Selector(text, dialect="sql")) == canonical


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("a =", 3, "unexpected end: expected a value"),
        ("a = 'x", 4, "a string without its closing quote"),
        ("a = ~", 4, "unexpected '~'"),
        ("(a", 2, "unexpected end: expected )"),
        ("a b", 2, "unexpected 'b'"),
        ("a LIKE 5", 7, "expected a string"),
        ("a LIKE 'x!' ESCAPE '!'", 19, "ends with its escape character"),
        ("a LIKE 'x' ESCAPE 'ab'", 18, "a single character"),
        ("a IN ()", 6, "a value"),
        ("a = b = c", 6, "unexpected '='"),
        ("1 + 09 = 1", 4, "not an octal number"),
        ("1 = 18446744073709551616", 4, "too large an integer"),
        ("1 = 0x10000000000000000", 4, "too large an integer"),
        ("1 = 1e999", 4, "too large a number"),
        ("x = JMSFoo", 4, "no header 'JMSFoo'"),
        ("x = amqp.foo", 4, "no field 'foo'"),
        ("x = header.foo", 4, "header has no field 'foo'"),
        ('x = "properties."', 4, "no field ''"),
        ("x = " + "y" * 5000, 4096, "5004 characters: expected at most 4096"),
        ("x = ? " + "y" * 4000, 4, "unexpected '?'"),
    ],
)
def test_parser_says_what_is_wrong_and_where(text: str, position: int, words: str) -> None:
    with pytest.raises(FilterError, match=f"at position {position}$") as caught:
        Selector(text)
    assert caught.value.position == position
    assert words in caught.value.description
    assert str(caught.value.condition) == "amqp:invalid-field"


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("UTC() > 1", 0, "the function UTC is not supported"),
        ("b = my.key", 4, "no section 'my'"),
        ("b = amqp.subject", 4, "no section 'amqp'"),
        ("b = p.foo", 4, "properties has no field 'foo'"),
        ("b = header.foo", 4, "header has no field 'foo'"),
        ("b IN ()", 6, "a value"),
        ("b = 0xABC", 4, "an even number"),
        ("b = 0xABl", 4, "an even number"),
        ('b = "x', 4, "a string without its closing quote"),
    ],
)
def test_parser_of_sql_says_what_is_wrong_and_where(text: str, position: int, words: str) -> None:
    with pytest.raises(FilterError) as caught:
        Selector(text, dialect="sql")
    assert caught.value.position == position
    assert words in caught.value.description


@pytest.mark.parametrize(
    "text", ["NOT " * MAX_DEPTH + "a", "-" * MAX_DEPTH + "a", "1+(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH]
)
def test_parser_refuses_what_is_nested_too_deeply(text: str) -> None:
    with pytest.raises(FilterError, match="more than 64 nested levels"):
        Selector(text)


def test_parser_takes_long_lists_and_many_parentheses() -> None:
    assert str(Selector("(" * 2000 + "a" + ")" * 2000)) == "a"
    terms = " OR ".join(f"a{index} = 1 + 1" for index in range(200))
    assert str(Selector(terms)) == terms


def test_parser_takes_time_in_proportion_to_the_text() -> None:
    spent: list[float] = []
    for count in (200, 1600):
        text = " OR ".join(["a = 'x'"] * count)
        start = time.process_time()
        Selector(text, max_length=None)
        spent.append(time.process_time() - start)
    assert spent[1] < 40 * spent[0] + 0.05
