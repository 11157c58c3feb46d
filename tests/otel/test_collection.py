"""A reading is shared by the instruments of one collection, and by no other."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from trio_amqp10.otel import collection
from trio_amqp10.otel.collection import Collection

if TYPE_CHECKING:
    import pytest


def test_each_reader_has_a_reading_once() -> None:
    numbers = count()
    shared = Collection(lambda: next(numbers))
    assert [shared.reading_for(reader) for reader in "abc"] == [0, 0, 0]
    assert [shared.reading_for(reader) for reader in "cab"] == [1, 1, 1]
    assert [shared.reading_for(reader) for reader in "aab"] == [2, 3, 3]


def test_reading_of_a_collection_that_was_given_up_is_not_used_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(collection, "monotonic", lambda: now)
    numbers = count()
    shared = Collection(lambda: next(numbers))
    assert shared.reading_for("a") == 0
    now = 5.0
    assert shared.reading_for("b") == 0
    now = 5.1
    assert shared.reading_for("c") == 1
