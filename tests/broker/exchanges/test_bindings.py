"""Bindings: both ends, duplicates, and arguments that tell them apart."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp10.wire.values import UInt
from trio_amqp10.broker.exchanges.faults import NotFoundError

from .helpers import broker, names


def test_binding_needs_both_ends_and_unbinding_none() -> None:
    them = broker()
    them.declare_queue("q")
    for source, kind, name in (
        ("e", "queue", "q"),
        ("amq.direct", "queue", "other"),
        ("amq.direct", "exchange", "e"),
    ):
        with pytest.raises(NotFoundError):
            them.bind(source, kind, name)  # type: ignore[arg-type]
        them.unbind(source, kind, name)  # type: ignore[arg-type]


def test_duplicate_bindings_are_one_and_arguments_tell_them_apart() -> None:
    them = broker()
    them.declare_queue("q")
    for arguments in ({}, {}, {"a": 1}, {"a": UInt(1)}, {"a": 2}):
        them.bind("amq.direct", "queue", "q", "k", arguments)
    assert [each.arguments for each in them.bindings] == [{}, {"a": 1}, {"a": 2}]
    assert names(them, "amq.direct", "k") == ["q"]
    them.unbind("amq.direct", "queue", "q", "k")
    assert names(them, "amq.direct", "k") == ["q"]
    for number in (1, 2):
        them.unbind("amq.direct", "queue", "q", "k", {"a": number})
    assert names(them, "amq.direct", "k") == []
