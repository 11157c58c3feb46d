"""Errors of the peer: their scope, the text of their close, and the method that caused them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.core.reply_codes import ReplyCode091


@pytest.mark.parametrize(
    ("code", "hard", "scope"),
    [
        (ReplyCode091.NOT_FOUND, None, "session"),
        (ReplyCode091.NOT_FOUND, True, "connection"),
        (ReplyCode091.FRAME_ERROR, None, "connection"),
        (ReplyCode091.FRAME_ERROR, False, "session"),
    ],
)
def test_error_ends_what_its_code_or_the_specification_says(
    code: ReplyCode091, hard: bool | None, scope: str
) -> None:
    assert ReplyError(code, "why", hard=hard).scope == scope


@given(st.sampled_from(ReplyCode091), st.text(max_size=400))
def test_text_of_a_close_is_a_short_string_that_begins_with_the_name(code: ReplyCode091, why: str) -> None:
    text = ReplyError(code, why).reply_text
    assert text.startswith(code.name)
    assert len(text.encode()) <= 255
    assert "\0" not in text


def test_error_names_the_method_that_caused_it() -> None:
    fault = ReplyError(ReplyCode091.NOT_FOUND, "no queue 'q'")
    assert (fault.class_id, fault.method_id) == (0, 0)
    assert fault.about(60, 20) is fault
    assert (fault.class_id, fault.method_id) == (60, 20)
