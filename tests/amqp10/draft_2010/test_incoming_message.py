"""A message is joined of its fragments, which have to fit and are bounded (D 1474-1502)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.message import Message
from trio_amqp10.core.partial_pool import Pool

from .links import data, receiving, transfer
from .pairs import Script


def test_message_is_joined_of_its_fragments() -> None:
    script, link = receiving()
    text = draft.Fragment(first=True, last=True, format_code=0, fragment_offset=0, payload=b"")
    script << transfer(0, text, data(b"ab", last=False), more=True)
    assert len(link.queue) == 0
    assert script.connection.partial_octets == 2
    script << transfer(0, data(b"cd", first=False, last=False, offset=2), more=True)
    script << transfer(0, data(b"", first=False, offset=4), more=True)
    script << transfer(0, data(b"e", offset=4))
    message = Message.from_payload(link.queue.popleft().payload)
    assert [section.chunks for section in message.sections] == [(b"abcd",), (b"e",)]
    assert script.connection.partial_octets == 0


@pytest.mark.parametrize(
    "fragments",
    [
        [data(b"x", offset=5)],
        [data(b"x", first=False)],
        [data(b"x", last=False), data(b"y", offset=1)],
        [draft.Fragment(first=True, last=True, payload=b"x")],
        [data(b"x", last=False), data(b"y", first=False, offset=1, code=4)],
        [data(b"x", code=9)],
    ],
)
def test_fragments_that_do_not_follow_each_other_are_an_invalid_field(fragments: Any) -> None:
    script, _ = receiving()
    script << transfer(0, *fragments)
    *_, said = script.said()
    assert said.error.condition == "amqp:invalid-field"


def test_message_whose_last_section_has_no_end_detaches() -> None:
    script, link = receiving()
    script << transfer(0, data(b"x", last=False))
    (detach,) = script.said()
    assert detach.error.condition == "amqp:invalid-field"
    assert link.delivery_count == 1


def test_message_that_is_none_detaches_and_counts() -> None:
    script, link = receiving()
    other = script.attach(False, name="other", handle=1)
    other.set_credit(5)
    script.said()
    script << transfer(0, data(b"\xff", code=4))
    (detach,) = script.said()
    assert detach.error.condition == "amqp:decode-error"
    script << transfer(1, data(b"x"), handle=1)
    assert len(other.queue) == 1
    assert link.state is LinkState.DETACH_SENT


@pytest.mark.parametrize("more", [False, True])
def test_message_that_is_too_large_detaches(more: bool) -> None:
    script, _ = receiving(limits=Limits(max_message_size=100))
    script << transfer(0, data(b"x" * 101, last=not more), more=more)
    (detach,) = script.said()
    assert detach.error.condition == "amqp:link:message-size-exceeded"


@pytest.mark.parametrize("pooled", [False, True])
def test_messages_in_progress_are_bounded_and_the_largest_goes(pooled: bool) -> None:
    script, link = receiving(limits=Limits(partial_octets=None if pooled else 1_000))
    pool = Pool(1_000)
    if pooled:
        pool.join(script.connection.context)
    other = script.attach(False, name="other", handle=1)
    other.set_credit(5)
    script.said()
    script << transfer(0, data(b"x" * 800, last=False), more=True)
    script << transfer(1, data(b"x" * 100, last=False), more=True, handle=1)
    assert script.said() == []
    script << transfer(1, data(b"x" * 200, first=False, last=False, offset=100), more=True, handle=1)
    (detach,) = script.said()
    assert detach.handle == link.handle
    assert detach.error.condition == "amqp:resource-limit-exceeded"
    assert script.connection.partial_octets == 300
    script << draft.End()
    assert script.connection.partial_octets == pool.octets == 0


def test_largest_of_this_connection_goes_where_another_has_more_that_cannot() -> None:
    script, link = receiving(limits=Limits(partial_octets=None))
    other = Script().connection
    pool = Pool(1_000)
    pool.join(script.connection.context)
    pool.join(other.context)
    script << transfer(0, data(b"x" * 10, last=False), more=True)
    other.context.partial_octets = 2_000
    script << transfer(0, data(b"x", first=False, last=False, offset=10), more=True)
    assert link.state is LinkState.DETACH_SENT


def test_transfers_with_nothing_in_them_are_bounded() -> None:
    script, _ = receiving(limits=Limits(empty_transfers=5))
    for _ in range(7):
        script << transfer(0, more=True)
    assert script.faults


def test_fragments_with_nothing_in_them_are_bounded() -> None:
    script, _ = receiving(limits=Limits(empty_transfers=5))
    script << transfer(0, data(b"x"), *(7 * (data(b"", offset=1),)), more=True)
    assert script.faults


def test_transfer_under_another_id_in_the_middle_of_a_message_detaches() -> None:
    script, _ = receiving()
    script << transfer(0, data(b"x", last=False), more=True)
    script << transfer(1, data(b"x"))
    (detach,) = script.said()
    assert isinstance(detach, draft.Detach)


@pytest.mark.parametrize("begun", [False, True])
def test_aborted_message_is_dropped_and_counts(begun: bool) -> None:
    script, link = receiving()
    if begun:
        script << transfer(0, data(b"x", last=False), more=True)
    script << transfer(0, aborted=True)
    script << transfer(1, data(b"y"))
    assert Message.from_payload(link.queue.popleft().payload).body == b"y"
    assert not link.queue
    assert script.connection.partial_octets == 0
