"""Tuning: what a client may lower, and what it may not ask for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.amqp_fast.pairs import (
    connected,
    names,
    octets_of,
    open_client,
    said,
    tuning_server,
    written,
)
from tests.engine_pairs import refusal
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.engine import Engine
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.core.endpoint_role import EndpointRole


def test_tune_lowers_what_the_client_writes_and_reads() -> None:
    pair = connected(client=Limits(frame_max=2048, heartbeat=7), server=Limits(frame_max=9000, heartbeat=5))
    assert pair.client.frame_max == pair.server.frame_max == 2048
    assert pair.server.next_deadline() == 7.0
    assert pair.client.next_deadline() == 5.0


@pytest.mark.parametrize(
    "options",
    [
        {"FRAME_MAX": 1023},
        {"FRAME_MAX": 65_536},
        {"FRAME_MAX": "big"},
        {"CHANNEL_MAX": 1025},
        {"CHANNEL_MAX": 0},
        {"HANDLE_MAX": 5000},
        {"HEARTBEAT": -1},
    ],
)
def test_server_refuses_a_tune_that_raises_a_value_and_names_it(options: dict[str, Any]) -> None:
    server = tuning_server(Limits(penalty=1.0))
    fault = refusal(server.receive_data, written(spec.ConnectionTune(options=options)), 0.0)
    assert fault is not None
    assert fault.code == 502
    server.handle_timer(1.0)
    assert said(server) == [("connection close", 502, fault.reply_text)]
    assert next(iter(options)) in fault.reply_text
    assert server.data_to_send() is None


def test_server_without_a_limit_takes_any_value() -> None:
    server = tuning_server(Limits(txn_limit=0))
    assert refusal(server.receive_data, written(spec.ConnectionTune(options={"TXN_LIMIT": 5})), 0.0) is None


def test_server_refuses_a_dictionary_that_names_no_field() -> None:
    fault = refusal(tuning_server().receive_data, written(spec.ConnectionTune(dictionary={"A": 1})), 0.0)
    assert fault is not None
    assert fault.code == 502


@pytest.mark.parametrize("tune", [{}, {"FRAME_MAX": 1024}])
def test_client_takes_the_least_frame_when_none_is_named(tune: dict[str, Any]) -> None:
    assert open_client(tune=tune).frame_max == 1024


def test_client_refuses_a_frame_max_below_the_least() -> None:
    client = Engine(EndpointRole.CLIENT, 0.0)
    client.receive_data(written(spec.ConnectionChallenge()), 0.0)
    client.respond("NONE", {}, 0.0)
    octets_of(client)
    assert refusal(client.receive_data, written(spec.ConnectionTune(options={"FRAME_MAX": 512})), 0.0)
    assert names(client) == ["connection close"]
