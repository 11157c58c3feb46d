"""Services: which commands each takes without more."""

from __future__ import annotations

from tests.amqp_fast.pairs import (
    HELLO,
    PEER,
    client_with,
    failure,
    octets_of,
    server_with,
    written,
)
from tests.engine_pairs import arrivals_of
from trio_amqp10.amqp_fast import spec


def test_ack_with_peer_services_alone_closes_the_channel() -> None:
    server, _ = server_with(**PEER)
    server.receive_data(written(spec.ChannelAck(channel_id=1)), 0.0)
    assert failure(server) == ("channel", 503)


def test_peer_service_answers_without_being_consumed() -> None:
    server, channel = server_with(**PEER)
    channel.handles[1].notify(HELLO)
    assert channel.numbers.count(1) == 0
    client, client_channel, _ = client_with(**PEER)
    client.receive_data(octets_of(server), 0.0)
    (arrival,) = arrivals_of(client_channel)
    assert arrival.message == HELLO._replace(head=arrival.message.head)  # type: ignore[union-attr]
