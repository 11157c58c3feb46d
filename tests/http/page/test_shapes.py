"""Values of messages as JSON, and messages that cannot be read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.http.page.shapes import plain

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.uuids()
    | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_every_value_becomes_json(value: Any) -> None:
    text = json.dumps(plain(value), allow_nan=False)
    text.encode()
    assert isinstance(text, str)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2**53, "9007199254740992"),
        (2**53 - 1, 2**53 - 1),
        (float("nan"), "nan"),
        (b"\x00\xff", "0x00ff"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        ({1: (True, None)}, {"1": [True, None]}),
        ("a\udcff", "a\ufffd"),
    ],
)
def test_value_without_a_place_in_json_is_text(value: object, shown: object) -> None:
    assert plain(value) == shown


def test_deep_value_ends() -> None:
    value: Any = "end"
    for _ in range(100):
        value = [value]
    assert "end" not in json.dumps(plain(value))
