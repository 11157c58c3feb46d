"""Numbers of messages: what an ack settles, and what commit and rollback settle."""

from __future__ import annotations

from typing import Any

from tests.amqp_fast.pairs import (
    HELLO,
    failure,
    octets_of,
    server_with,
    written,
)
from tests.engine_pairs import arrivals_of
from trio_amqp10.amqp_fast import spec


def consuming(**fields: Any) -> tuple[Any, Any, Any]:
    """A server that has sent messages 1 to 3 by handle 1."""
    server, channel = server_with(**fields)
    server.receive_data(written(spec.HandleConsume(handle_id=1, prefetch=9)), 0.0)
    handle = channel.handles[1]
    assert [handle.notify(HELLO) for _ in range(3)] == [1, 2, 3]
    octets_of(server)
    arrivals_of(channel)
    return server, channel, handle


def numbers_of(channel: Any) -> list[tuple[int, ...]]:
    return [each.numbers for each in arrivals_of(channel)]


def test_ack_settles_all_up_to_its_number_which_need_not_exist() -> None:
    server, channel, _ = consuming()
    acks = [spec.ChannelAck(channel_id=1, message_nbr=each) for each in (2, 1, 99)]
    server.receive_data(written(*acks), 0.0)
    assert numbers_of(channel) == [(1, 2), (), (3,)]
    assert channel.numbers.count(1) == 0


def test_unget_gives_one_message_back_before_the_ack() -> None:
    server, channel, _ = consuming()
    unget = spec.HandleUnget(handle_id=1, message_nbr=2)
    server.receive_data(written(unget, spec.ChannelAck(channel_id=1, message_nbr=3)), 0.0)
    assert numbers_of(channel) == [(2,), (1, 3)]
    server.receive_data(written(unget), 0.0)
    assert failure(server) == ("handle", 310)


def test_commit_and_rollback_settle_all_that_was_sent() -> None:
    server, channel, handle = consuming(transacted=True)
    server.receive_data(written(spec.ChannelAck(channel_id=1, message_nbr=2)), 0.0)
    assert channel.numbers.count(1) == 1
    server.receive_data(written(spec.ChannelCommit(channel_id=1)), 0.0)
    handle.notify(HELLO)
    server.receive_data(written(spec.ChannelRollback(channel_id=1)), 0.0)
    assert numbers_of(channel) == [(1, 2), (1, 2, 3), (4,)]


def test_numbers_of_a_closed_handle_are_not_settled_by_an_ack() -> None:
    server, channel, _ = consuming()
    close = spec.HandleClose(handle_id=1)
    server.receive_data(written(close, spec.ChannelAck(channel_id=1, message_nbr=3)), 0.0)
    assert numbers_of(channel) == [(), ()]


def test_unreliable_messages_wait_for_no_ack() -> None:
    server, channel = server_with()
    server.receive_data(written(spec.HandleConsume(handle_id=1, unreliable=True)), 0.0)
    channel.handles[1].notify(HELLO, unreliable=True)
    assert channel.numbers.count(1) == 0
