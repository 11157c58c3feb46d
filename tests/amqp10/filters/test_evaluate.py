"""What expressions mean: examples of each operator, and the naive evaluator as the judge of all others."""

from __future__ import annotations

import math
import time
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scaled import scaled
from trio_amqp10.amqp10.filters import Dialect, Selector
from trio_amqp10.amqp10.filters.evaluate import compile_expression
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.values import Decimal64, Symbol, Timestamp, UInt, ULong

from .reference import evaluate
from .strategies import expressions, messages

if TYPE_CHECKING:
    from trio_amqp10.amqp10.filters.syntax import Expression

MESSAGE = Message(
    b"body",
    application_properties={
        "country": "UK",
        "city": "London",
        "weight": UInt(5),
        "price": 10.5,
        "cold": -5,
        "active": True,
        "premium": False,
        "missing": None,
        "zero": 0,
        "tag": Symbol("x"),
        "exact": Decimal64.from_decimal(Decimal("0.1")),
        "odd": Decimal64.from_decimal(Decimal("sNaN")),
        "octets": b"\xab\xcd",
        "huge": 2**62,
    },
    annotations={"list": [1], "number": 9, "digits": "10", "words": "ten"},
)


def same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return left == right and (isinstance(left, int) or type(left) is type(right))


@settings(deadline=None, max_examples=scaled(300))
@given(expressions("jms"), messages())
def test_evaluator_of_jms_equals_a_naive_one(expression: Expression, message: Message) -> None:
    check(expression, message, "jms")


@settings(deadline=None, max_examples=scaled(300))
@given(expressions("sql"), messages())
def test_evaluator_of_sql_equals_a_naive_one(expression: Expression, message: Message) -> None:
    check(expression, message, "sql")


def check(expression: Expression, message: Message, dialect: Dialect) -> None:
    result = compile_expression(expression, dialect)(message)
    naive = evaluate(expression, Message.from_payload(message.to_payload()), dialect)
    if isinstance(naive, (list, dict)):
        assert not isinstance(result, (bool, str, int, float, bytes, type(None)))
    else:
        assert same(result, naive)


@pytest.mark.parametrize(
    "text",
    [
        "country = 'UK' AND weight = 5",
        "'UK' = country AND 4 < weight AND 5.0 >= weight",
        "country = 'France' OR weight < 6",
        "NOT country = 'France'",
        "absent OR active",
        "percentage OR active",
        "NOT (absent IN ('v1', 'v2') AND premium)",
        "NOT (NOT (absent = 1 OR active))",
        "absent = 1 OR absent = 2 OR active",
        "weight + 5 = 10 AND 6 - -weight = 11",
        "weight * 2 - 1 > 8.5",
        "price BETWEEN 10 AND 11 AND country BETWEEN 'UA' AND 'UZ'",
        "country NOT BETWEEN 'A' AND 'B'",
        "country IN ('US', 'UK') AND city NOT IN ('Rome')",
        "'London' IN (city, country) AND 5.0 IN (TRUE, weight)",
        "NOT weight IN ('5')",
        "country LIKE 'U_' AND city NOT LIKE '%x%'",
        "missing IS NULL AND absent IS NULL AND country IS NOT NULL",
        "active AND active = TRUE AND premium <> TRUE",
        "tag = 'x' AND exact = 0.1",
        "7 % cold = 2 AND -7 % weight = -2 AND 7.5 % 2 = 1.5",
        "odd <> odd",
        "message_annotations.list IS NOT NULL",
        "country > 'U' AND country < city OR country > city",
        "octets = octets",
        "huge * huge * huge > 1e50 AND huge + 0 = 4611686018427387904",
    ],
)
def test_selector_matches(text: str) -> None:
    for dialect in ("jms", "sql"):
        assert Selector(text, dialect=dialect).matches(MESSAGE), dialect


@pytest.mark.parametrize(
    "text",
    [
        "country",
        "weight",
        "absent",
        "NOT absent",
        "absent = absent",
        "missing <> 0 OR missing = 0",
        "absent + 4 = 5 OR absent + 4 <> 5",
        "weight = '5' OR weight <> '5' OR weight < '5'",
        "country = 5 OR country <> 5 OR active = 1 OR active = 'TRUE'",
        "premium >= FALSE OR premium < TRUE OR active > premium",
        "country + weight = 'UK5' OR +country = 'UK' OR -active = -1",
        "weight / 0 > 0 OR weight % 0 = 0 OR 0 / 0.0 = 0",
        "absent LIKE '%' OR absent NOT LIKE '%' OR weight LIKE '%' OR weight NOT LIKE '%'",
        "absent IN ('a') OR absent NOT IN ('a') OR 'a' NOT IN ('b', absent)",
        "absent BETWEEN 1 AND 2 OR weight BETWEEN absent AND 9 OR weight NOT BETWEEN absent AND 9",
        "weight IN ('5') OR weight IN (TRUE, '5')",
        "message_annotations.list = message_annotations.list OR message_annotations.list <> 'x'",
        "huge * 1e300 * huge * 1e300 % 5 = 0",
        "octets = country OR octets < 1",
    ],
)
def test_selector_does_not_match(text: str) -> None:
    for dialect in ("jms", "sql"):
        assert not Selector(text, dialect=dialect).matches(MESSAGE), dialect


def test_integers_divide_as_in_java_only_for_jms() -> None:
    for text in ("weight / 2 = 2", "cold / 2 = -2", "cold / -2 = 2", "price / 2 = 5.25"):
        assert Selector(text).matches(MESSAGE)
    for text in ("weight / 2 = 2.5", "cold / 2 = -2.5", "price / 2 = 5.25"):
        assert Selector(text, dialect="sql").matches(MESSAGE)


def test_integers_compare_exactly_when_no_float_has_their_value() -> None:
    message = Message(application_properties={"n": ULong(2**64 - 1), "i": 2**53 + 1})
    for dialect in ("jms", "sql"):
        assert Selector("n = 18446744073709551615 AND i = 9007199254740993", dialect=dialect).matches(message)
        assert not Selector("n < 18446744073709551615 OR i = 9007199254740992", dialect=dialect).matches(
            message
        )


def test_timestamps_compare_with_integers() -> None:
    message = Message(creation_time=1_700_000_000_000, application_properties={"t": Timestamp(5)})
    text = "p.creation-time > 1699999999999 AND p.creation_time = 1700000000000 AND a.t < 6"
    assert Selector(text, dialect="sql").matches(message)


def test_octets_compare_with_octets_only_for_sql() -> None:
    for text in ("octets = 0xABCD", "octets > 0xAB", "NOT weight = 0x05", "octets IN (0x00, 0xABCD)"):
        assert Selector(text, dialect="sql").matches(MESSAGE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amqp.annotation.number > '8'", True),
        ("'8' < amqp.annotation.number", True),
        ("amqp.annotation.number > '10'", False),
        ("amqp.annotation.digits > '9'", True),
        ("amqp.annotation.digits >= '-1'", True),
        ("amqp.annotation.words > '9'", True),
        ("amqp.annotation.number = 'nine'", False),
        ("amqp.annotation.absent > '9' OR amqp.annotation.list > '9'", False),
        ("country > '9' AND weight > '4'", False),
    ],
)
def test_annotation_compares_as_a_number_when_digits_are_quoted(text: str, expected: bool) -> None:
    assert Selector(text).matches(MESSAGE) is expected


def test_evaluation_takes_bounded_time_when_numbers_are_multiplied_on_and_on() -> None:
    selector = Selector("*".join(["huge"] * 800) + " = 1")
    start = time.process_time()
    assert not selector.matches(MESSAGE)
    assert time.process_time() - start < 0.5


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_selector_raises_nothing_when_the_message_cannot_be_decoded(payload: bytes) -> None:
    selector = Selector("a = 1 OR a IS NULL OR p.subject LIKE '%' OR h.priority = 4", dialect="sql")
    assert selector.matches(Message.from_payload(payload)) in (True, False)


def test_selector_does_not_match_when_the_section_it_reads_cannot_be_decoded() -> None:
    payload = b"\x00\x53\x74\x40"  # application-properties that are no map
    assert not Selector("a IS NULL").matches(Message.from_payload(payload))
    assert Selector("amqp.subject IS NULL").matches(Message.from_payload(payload))
