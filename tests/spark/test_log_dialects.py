"""Kinds of logs: their addresses, the numbers of their messages, and answers that are none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.spark.log_dialects import LogError, _answer, dialect_of, hub_of, number_of
from trio_amqp10.spark.options import LogOptions

PEER = {"url": "amqp://h", "address": "a", "mode": "log"}
RABBITMQ = dialect_of(LogOptions.parse(PEER | {"dialect": "rabbitmq"}))
HUBS = dialect_of(LogOptions.parse(PEER | {"dialect": "event-hubs"}))


class Came:
    """A delivery of a log."""

    def __init__(self, *, settled: bool = False, **annotations: Any) -> None:
        said = {Symbol(key.replace("_", "-")): value for key, value in annotations.items()}
        self.message = amqp.Message(b"", annotations=said)
        self.settled = settled
        self.accepted = False

    def accept(self) -> None:
        self.accepted = True


@pytest.mark.parametrize(
    ("log", "hub"), [("clicks/Partitions/0", "clicks"), ("a/b/Partitions/17", "a/b"), ("stream", None)]
)
def test_partition_is_of_a_hub_and_a_stream_is_of_none(log: str, hub: str | None) -> None:
    assert hub_of(log) == hub


def test_number_of_a_message_is_in_the_annotation_of_its_dialect() -> None:
    came: Any = Came(x_stream_offset=7, x_opt_sequence_number=8)
    assert (number_of(RABBITMQ, came), number_of(HUBS, came)) == (7, 8)
    assert came.accepted
    settled: Any = Came(x_stream_offset=7, settled=True)
    assert number_of(RABBITMQ, settled) == 7
    assert not settled.accepted


@pytest.mark.parametrize("came", [Came(), Came(x_stream_offset="seven")], ids=["none", "text"])
def test_message_without_a_number_is_of_no_log(came: Any) -> None:
    with pytest.raises(LocalProtocolError, match="this is no log"):
        number_of(RABBITMQ, came)


def test_peer_that_ignores_where_to_begin_is_no_log() -> None:
    def granted(**source: Any) -> Any:
        return SimpleNamespace(remote=SimpleNamespace(source=Source(**source)))

    RABBITMQ.check(granted(filter={Symbol("rabbitmq:stream-offset-spec"): "first"}), "q")
    with pytest.raises(LocalProtocolError, match="'q' is no log"):
        RABBITMQ.check(granted(), "q")
    HUBS.check(granted(), "q")  # each event has its number


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (200, None),
        (204, None),
        (404, LogError),
        (501, LogError),
        (500, OSError),
        (503, OSError),
        (None, LogError),
    ],
)
def test_answer_of_a_failing_server_may_be_asked_for_again(status: Any, failure: Any) -> None:
    said = {} if status is None else {"status-code": status, "status-description": "why"}
    reply = amqp.Message({"begin": 1}, application_properties=said)
    if failure is None:
        assert _answer(reply, {"name": "hub"}) == {"begin": 1}
        return
    with pytest.raises(failure, match="hub"):
        _answer(reply, {"name": "hub"})
