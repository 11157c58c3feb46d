"""The pool of incomplete deliveries: which one is refused when it is full."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.core.partial_pool import Pool

from .helpers import begun
from .links import attached, transfer

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink

REFUSED = expected("detach", handle=0, error=("error", {"condition": "amqp:resource-limit-exceeded"}))


def pooled(pool: Pool, limits: Limits | None = None) -> tuple[ReceiverLink, Script]:
    """Return a receiver on a connection that has joined the pool."""
    session, script = begun(limits)
    link = session.receiver("x")
    pool.join(session.connection.context)
    attached(script, session, link, 0, credit=20)
    return link, script


def test_row_48_largest_delivery_of_the_largest_connection_is_refused_when_the_pool_is_full() -> None:
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


def test_row_48_own_delivery_is_refused_when_its_connection_is_the_largest() -> None:
    pool = Pool(100)
    _, script = pooled(pool)
    pooled(pool)
    script << transfer(0, 0, b"a" * 101, more=True)
    script >> REFUSED
    assert pool.octets == 0


def test_row_48_unread_streams_count_and_a_delivery_of_another_connection_is_refused() -> None:
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


def test_row_48_closing_connection_is_spared_when_the_pool_is_full() -> None:
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
def test_window_is_limited_by_the_free_memory_of_connection_and_pool(
    own: int | None, shared: int | None, room: int | None
) -> None:
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
