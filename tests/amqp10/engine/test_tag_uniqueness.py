"""Tags that a program chose are unique among what is unsettled (2.6.12, 2.8.7)."""

# pyright: reportUnusedExpression=false, reportPrivateUsage=false

from __future__ import annotations

import pytest

from trio_amqp10.core.errors import LocalProtocolError

from .helpers import flow, sending
from .links import attached, disposition, session_of, snapshot
from .steps import steps


@pytest.mark.parametrize("tag", [b"mine", b"longer than ours", b""])
def test_send_refuses_a_tag_that_an_unsettled_delivery_has(tag: bytes) -> None:
    link, script = sending(credit=5)
    first = link.send(b"one", tag=tag)
    assert first is not None
    before = snapshot(link)
    for again in (link.send, link.begin):
        with pytest.raises(LocalProtocolError, match=r"an unsettled delivery has .*choose another"):
            again(b"two", tag=tag)
    assert snapshot(link) == before
    link.send(b"two", tag=b"another")
    script << disposition(True, 0)
    assert first.settled
    out = link.begin(b"three", tag=tag)
    assert out is not None
    with pytest.raises(LocalProtocolError, match="unsettled"):
        link._check(b"", tag)
    out.abort()
    link._check(b"", tag)


def test_send_takes_a_tag_twice_that_is_settled_when_it_goes_out() -> None:
    link, _script = sending(credit=5)
    for _ in range(2):
        assert link.send(b"x", settled=True, tag=b"mine") is not None


def test_send_refuses_a_tag_that_it_has_made_itself() -> None:
    link, _script = sending(credit=5)
    made = link.send(b"one")
    assert made is not None
    with pytest.raises(LocalProtocolError, match="unsettled delivery"):
        link.send(b"two", tag=made.tag)
    assert link.send(b"two", tag=b"\0\0\0\7") is not None


def test_send_makes_no_tag_that_was_chosen() -> None:
    link, script = sending(credit=5)
    chosen = link.send(b"one", tag=b"\0\0\0\1")
    assert chosen is not None
    tags = [delivery.tag for _ in range(2) if (delivery := link.send(b"x")) is not None]
    assert tags == [b"\0\0\0\0", b"\0\0\0\2"]
    script << disposition(True, 0)
    out = link.begin(b"x")
    assert out is not None
    assert out.delivery.tag == b"\0\0\0\3"


def test_chosen_tags_are_let_go_when_their_deliveries_are_settled() -> None:
    link, script = sending(credit=1000)
    script << flow(incoming_window=1000)
    for number in range(1000):
        assert link.send(b"x", tag=b"tag %d" % number) is not None
        if number % 100:
            script << disposition(True, number)
    assert link._chosen is not None
    assert len(link._chosen) <= 80
    assert all(b"tag %d" % number in link._chosen for number in range(0, 1000, 100))


def test_tag_as_long_as_those_that_are_made_costs_no_more_where_more_is_unsettled() -> None:
    counts = []
    for size in (10, 90):
        link, _script = sending(credit=3 * size)
        for _ in range(size):
            link.send(b"m")
        link.send(b"m", tag=b"\xff\0\0\0")
        counts.append(steps(lambda link=link: link.send(b"m", tag=b"\xff\0\0\1")))  # type: ignore[misc]
        link.send(b"m")
        for taken in (0, size - 1, size):
            with pytest.raises(LocalProtocolError, match="an unsettled delivery has the delivery-tag"):
                link.send(b"m", tag=taken.to_bytes(4, "big"))
        assert link.send(b"m", tag=(size + 1).to_bytes(4, "big")) is not None
        made = link.send(b"m")
        assert made is not None
        assert made.tag == (size + 2).to_bytes(4, "big")
    assert counts[0] == counts[1]


def test_tag_that_another_link_of_the_session_has_is_free() -> None:
    link, script = sending()
    other = session_of(link).sender("other")
    attached(script, link.session, other, 1)
    script << flow(handle=1, delivery_count=0, link_credit=10)
    assert other.send(b"m") is not None
    assert link.send(b"m", tag=bytes(4)) is not None
