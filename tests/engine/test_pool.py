"""Deliveries in progress on several connections together: whose goes when they are too much."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.script import Script, expected
from trio_amqp10.engine.limits import Limits
from trio_amqp10.partial_pool import Pool

from .helpers import begun
from .links import attached, transfer

if TYPE_CHECKING:
    from trio_amqp10.engine.receiver import ReceiverLink

REFUSED = expected("detach", handle=0, error=("error", {"condition": "amqp:resource-limit-exceeded"}))


def pooled(pool: Pool, limits: Limits | None = None) -> tuple[ReceiverLink, Script]:
    """A receiver on a connection that counts there."""
    session, script = begun(limits)
    link = session.receiver("x")
    pool.join(session.connection.context)
    attached(script, session, link, 0, credit=20)
    return link, script


def test_row_48_largest_delivery_of_the_connection_that_has_most_goes_when_the_pool_is_full() -> None:
    pool = Pool(100)
    one, greedy = pooled(pool)
    other, modest = pooled(pool)
    greedy << transfer(0, 0, b"a" * 60, more=True)
    modest << transfer(0, 0, b"b" * 30, more=True)
    modest.expect_nothing()
    assert pool.octets == 90
    modest << transfer(0, None, b"b" * 20, more=True)
    modest.expect_nothing()
    greedy >> REFUSED
    assert (pool.octets, one.session.connection.partial_octets) == (50, 0)
    modest << transfer(0, None, b"b")
    assert [each.payload for each in other.queue] == [b"b" * 51]
    assert pool.octets == 0


def test_row_48_connection_that_is_the_greediest_itself_gives() -> None:
    pool = Pool(100)
    _, script = pooled(pool)
    pooled(pool)
    script << transfer(0, 0, b"a" * 101, more=True)
    script >> REFUSED
    assert pool.octets == 0


def test_row_48_streams_that_are_not_read_count_and_another_gives_for_them() -> None:
    pool = Pool(100)
    session, streaming = begun()
    link = session.receiver("x")
    link.stream()
    pool.join(session.connection.context)
    attached(streaming, session, link, 0, credit=20)
    streaming << transfer(0, 0, b"a" * 60, more=True) << transfer(0, None, b"a" * 10)
    _, script = pooled(pool)
    script << transfer(0, 0, b"b" * 40, more=True)
    script >> REFUSED
    assert pool.octets == 70


def test_row_48_connection_that_is_closing_is_not_asked_for_more() -> None:
    pool = Pool(100)
    one, closing = pooled(pool)
    _, script = pooled(pool)
    closing << transfer(0, 0, b"a" * 60, more=True)
    one.session.connection.close()
    script << transfer(0, 0, b"b" * 50, more=True)
    closing.expect("close")
    closing.expect_nothing()


def test_pool_forgets_a_connection_that_is_over() -> None:
    pool = Pool(100)
    link, script = pooled(pool)
    script << transfer(0, 0, b"a" * 60, more=True)
    connection = link.session.connection
    for _ in range(2):
        pool.leave(connection.context)
        assert (pool.octets, connection.pool) == (0, None)
    script << transfer(0, None, b"a" * 60, more=True)
    assert pool.octets == 0


@pytest.mark.parametrize(
    ("own", "shared", "room"),
    [(None, None, None), (3000, None, 4), (None, 3000, 4), (9000, 3000, 4), (3000, 1000, 1)],
)
def test_windows_are_as_wide_as_there_is_room(own: int | None, shared: int | None, room: int | None) -> None:
    limits: Any = Limits(max_frame_size=512, partial_octets=own)
    session, script = begun(limits)
    connection = session.connection
    if shared is not None:
        Pool(shared).join(connection.context)
    link = session.receiver("x")
    attached(script, session, link, 0, credit=20)
    assert connection.context.window_room() is None
    script << transfer(0, 0, b"a" * 400, more=True) << transfer(0, None, b"a" * 400, more=True)
    assert connection.context.window_room() == room
