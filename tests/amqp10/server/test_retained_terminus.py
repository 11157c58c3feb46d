"""A terminus that is kept without its link: whose it is, and what it begins with (2.6.1)."""

from __future__ import annotations

from math import inf

import pytest

from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus
from trio_amqp10.amqp10.server.retained_terminus import NOTHING, Key, RetainedTerminus
from trio_amqp10.amqp10.spec.transport import Role


def test_links_of_one_name_are_told_apart_by_container_direction_and_user() -> None:
    keys = {
        Key(container, name, role, user)
        for container in ("a", "b")
        for name in ("x", "y")
        for role in (True, False)
        for user in (None, "ada")
    }
    assert len(keys) == 16


def test_origin_is_the_user_whatever_the_container_is_called() -> None:
    origins = {
        Key(container, "x", True, "ada").origin(host) for container in "ab" for host in (None, "10.0.0.1")
    }
    assert origins == {"user 'ada'"}


def test_origin_of_a_peer_that_proves_nothing_is_its_network() -> None:
    key = Key("a", "x", True, None)
    assert "10.0.0.1" in key.origin("10.0.0.1")
    assert key.origin("10.0.0.1") == Key("b", "y", False, None).origin("10.0.0.1")
    assert key.origin("10.0.0.1") != key.origin("10.9.0.1")
    assert key.origin("2001:db8::1") == key.origin("2001:db8::2")


@pytest.mark.parametrize(
    ("role", "terminus"), [(Role.SENDER, SenderTerminus), (Role.RECEIVER, ReceiverTerminus)]
)
def test_terminus_is_of_its_direction_and_begins_empty(role: bool, terminus: type[object]) -> None:
    kept = RetainedTerminus(Key("a", "x", role, None), "somebody")
    assert type(kept.terminus) is terminus
    assert kept.terminus.unsettled == {}
    assert kept.new_terminus() is not kept.terminus
    assert (kept.retention, kept.deadline, kept.attached, kept.stored) == (NOTHING, inf, False, False)
