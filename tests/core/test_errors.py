"""What errors say, and what they are caught as."""

from __future__ import annotations

import pytest

from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import (
    AmqpError,
    Condition,
    LocalProtocolError,
    MessageSizeError,
    RemoteProtocolError,
    SecurityDowngradeError,
    SecurityError,
)


def test_message_that_is_too_large_is_refused_with_both_sizes() -> None:
    error = MessageSizeError(2_000, 1_000)
    assert (error.size, error.limit) == (2_000, 1_000)
    assert str(error) == (
        "amqp:link:message-size-exceeded: a message of 2000 octets, where the peer takes 1000 on this link (2.7.3)"
    )


def test_fault_of_the_peer_says_condition_and_rule() -> None:
    error = RemoteProtocolError(
        "one field too many", Condition.INVALID_FIELD, "link", {"a": 1}, rule="surplus"
    )
    assert str(error) == "amqp:invalid-field: one field too many [surplus]"
    assert (error.description, error.scope, error.info, error.rule) == (
        "one field too many",
        "link",
        {"a": 1},
        "surplus",
    )
    assert error.condition == "amqp:invalid-field"
    assert type(error.condition) is str


def test_fault_of_the_peer_is_a_decode_error_of_the_connection_unless_it_says_more() -> None:
    error = RemoteProtocolError("no value")
    assert (error.condition, error.scope, error.info, error.rule) == (
        "amqp:decode-error",
        "connection",
        None,
        None,
    )
    assert str(error) == "amqp:decode-error: no value"


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (LocalProtocolError, AmqpError),
        (MessageSizeError, LocalProtocolError),
        (RemoteProtocolError, AmqpError),
        (SecurityError, AmqpError),
        (SecurityDowngradeError, SecurityError),
    ],
)
def test_error_is_caught_as_its_kind(error: type[AmqpError], base: type[AmqpError]) -> None:
    assert issubclass(error, base)
    assert not issubclass(base, error)


LONG = f"no node {'x' * 5000!r}"


@pytest.mark.parametrize("error", [RemoteProtocolError(LONG), RefusedError("amqp:not-found", LONG)])
def test_text_with_a_value_of_the_peer_is_cut(error: RemoteProtocolError | RefusedError) -> None:
    assert len(error.description) == 1024
    assert len(str(error)) < 1100
