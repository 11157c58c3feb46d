"""The unsettled map of an attach: its keys, and as much of it as a frame holds (2.7.3)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import Any

import pytest

from tests.naive.script import expected
from trio_amqp10.amqp10.engine.events import LinkAttached
from trio_amqp10.amqp10.engine.states import SessionState
from trio_amqp10.amqp10.spec.messaging import Source, Target

from .helpers import begun
from .links import attach, error, remembered


@pytest.mark.parametrize("key", [None, "text", b"t" * 33, 7])
def test_row_31_unsettled_map_with_keys_that_are_no_tags_ends_the_session(key: Any) -> None:
    _, script = begun()
    script << attach("x", 0, role=False, unsettled={b"t": None, key: None})
    script >> expected("end", error=error("amqp:invalid-field"))


def test_row_55_attach_with_a_large_unsettled_map_is_taken() -> None:
    session, script = begun()
    unsettled: dict[bytes, Any] = {f"tag-{n}".encode(): ("accepted", {}) for n in range(2000)}
    script << attach("x", 0, role=False, unsettled=unsettled)
    link = script.expect_event(LinkAttached).link
    assert len(link.remote.unsettled) == 2000
    link.attach()
    script >> expected("attach", unsettled=None)
    assert session.state is SessionState.MAPPED


def test_attach_says_what_fits_and_that_it_is_not_all_when_the_frame_is_small() -> None:
    session, script = begun(remote={"max_frame_size": 512})
    link = session.sender("x")
    link.terminus = remembered(link, *[(b"tag-%03d" % n, None) for n in range(100)])
    link.attach(source=Source(), target=Target(address="q"))
    got = script.expect("attach", incomplete_unsettled=True)
    assert 20 < len(got["unsettled"]) < 100
    assert list(got["unsettled"]) == [b"tag-%03d" % n for n in range(len(got["unsettled"]))]
