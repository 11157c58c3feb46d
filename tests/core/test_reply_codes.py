"""Reply codes: digits, retries, the scope of an error, and error conditions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.core.errors import Condition
from trio_amqp10.core.reply_codes import (
    CONDITIONS_091,
    CONDITIONS_RFC011,
    Category,
    Completion,
    ReplyCode091,
    ReplyCodeRfc011,
    category_of,
    closes_connection,
    completion_of,
    condition_of,
    may_retry,
    reply_text,
    to_091,
)


@given(st.integers(100, 999))
def test_digits_decide_for_every_code_known_or_not(code: int) -> None:
    first, second = str(code)[0], str(code)[1]
    assert completion_of(code).value == min(int(first), 6)
    assert category_of(code).value == min(int(second), 5)
    assert may_retry(code) == (first == "4" or code in (311, 320))


@pytest.mark.parametrize("code", [-1, 0, 99, 1000, 65535])
@pytest.mark.parametrize("judge", [completion_of, category_of, may_retry])
def test_number_without_three_digits_is_a_value_error(judge: object, code: int) -> None:
    assert callable(judge)
    with pytest.raises(ValueError, match=str(code)):
        judge(code)


def test_digits_have_names() -> None:
    assert completion_of(299) is Completion.SUCCESSFUL
    assert completion_of(900) is Completion.RESERVED
    assert category_of(530) is Category.SECURITY
    assert category_of(192) is Category.RESERVED


def test_soft_errors_close_the_channel_alone() -> None:
    soft = {code for code in ReplyCode091 if not closes_connection(code)}
    assert soft == {311, 312, 313, 403, 404, 405, 406}
    assert closes_connection(599)


def test_every_code_has_a_condition() -> None:
    assert CONDITIONS_091.keys() == set(ReplyCode091)
    assert CONDITIONS_RFC011.keys() == set(ReplyCodeRfc011)
    assert [code for code in ReplyCode091 if condition_of(code) is None] == [200]
    assert [code for code in ReplyCodeRfc011 if CONDITIONS_RFC011[code] is None] == [200]
    assert condition_of(403) is Condition.UNAUTHORIZED_ACCESS


@pytest.mark.parametrize(
    ("code", "condition"),
    [
        (100, None),
        (299, None),
        (99, Condition.INTERNAL_ERROR),
        (300, Condition.INTERNAL_ERROR),
        (65535, Condition.INTERNAL_ERROR),
    ],
)
def test_unknown_code_is_judged_by_its_first_digit(code: int, condition: Condition | None) -> None:
    assert condition_of(code) is condition


def test_codes_of_rfc_011_become_codes_of_0_9_1() -> None:
    changed = {int(code): int(to_091(code)) for code in ReplyCodeRfc011 if to_091(code) != code}
    assert changed == {310: 404, 320: 530, 401: 540, 505: 503, 542: 501}
    assert to_091(250) == 200
    assert to_091(777) == 541


def test_reply_text_begins_with_the_name() -> None:
    assert reply_text(ReplyCode091.NOT_FOUND, "no queue 'q'") == "NOT_FOUND - no queue 'q'"
    assert reply_text(ReplyCode091.NO_ROUTE) == "NO_ROUTE"


@given(st.text(max_size=400))
def test_reply_text_is_a_short_string_whatever_it_explains(explanation: str) -> None:
    text = reply_text(ReplyCode091.NOT_FOUND, explanation)
    assert len(text.encode()) <= 255
    assert "\0" not in text
    assert text.startswith("NOT_FOUND")


def test_reply_text_is_cut_between_characters() -> None:
    text = reply_text(ReplyCode091.NOT_FOUND, "é" * 200)
    assert len(text.encode()) == 255
    assert text.endswith("éé...")


def test_reply_text_shows_octets_that_are_no_text() -> None:
    assert reply_text(ReplyCode091.NOT_FOUND, "a\udcff") == "NOT_FOUND - a\\udcff"
