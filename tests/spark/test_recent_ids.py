"""The keys of messages, and how long they are remembered."""

from __future__ import annotations

import uuid

import pytest

import trio_amqp10 as amqp
from trio_amqp10.spark.recent_ids import RecentIds


def test_key_of_a_message_is_its_id_with_its_type() -> None:
    ids = RecentIds(10)
    given = ["7", 7, b"7", uuid.UUID(int=7), None]
    found = [ids.key(amqp.Message(b"", message_id=each).to_payload()) for each in given]
    assert len(set(found)) == 5
    assert found[-1] is None


@pytest.mark.parametrize("payload", [b"\xff", b"\x00\x53\x73\xc0\x01\x05", b""])
def test_message_that_cannot_be_read_has_no_key(payload: bytes) -> None:
    assert RecentIds(10).key(payload) is None


def test_properties_that_were_met_before_give_the_same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.spark.recent_ids._MOST_TAILS", 2)
    ids = RecentIds(10)
    messages = [amqp.Message(b"", message_id=f"{n}", subject=f"{n % 5}").to_payload() for n in range(20)]
    assert [ids.key(each) for each in messages] == [f"string:{n}" for n in range(20)]


def test_only_the_last_keys_are_remembered() -> None:
    ids = RecentIds(2)
    ids.add(["a", "b", None, "c"])
    assert ids.fresh(["a", "b", "c", None, None, "d", "d"]) == [0, 3, 4, 5]
