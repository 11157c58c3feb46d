"""Selectors match headers that have all their terms."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp_fast.engine.headers_selector import HeadersSelector
from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError


@pytest.mark.parametrize(
    ("selector", "headers", "matches"),
    [
        (b"", {}, True),
        (b"a", {"a": 1}, True),
        (b"a", {"b": 1}, False),
        (b"a=1", {"a": 1}, True),
        (b"a=1", {"a": 2}, False),
        (b"a=", {"a": ""}, True),
        (b"a=", {"a": "x"}, False),
        (b"a=1 b", {"a": "1", "b": "x"}, True),
        (b" a=1  b=y ", {"a": "1", "b": "x"}, False),
        (b"a=x=y", {"a": "x=y"}, True),
    ],
)
def test_selector_matches_headers_that_have_all_its_terms(
    selector: bytes, headers: dict[str, Any], matches: bool
) -> None:
    assert HeadersSelector(selector).matches(headers) is matches


@pytest.mark.parametrize("selector", [b"=1", b"\xff", b"a =b"])
def test_selector_is_refused_when_it_is_none(selector: bytes) -> None:
    with pytest.raises(ReplyError) as caught:
        HeadersSelector(selector)
    assert (caught.value.code, caught.value.level) == (502, Level.HANDLE)
