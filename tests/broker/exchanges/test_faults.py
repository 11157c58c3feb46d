"""Errors of the broker have the conditions of AMQP."""

from __future__ import annotations

from trio_amqp10.broker.exchanges.faults import BrokerError


def test_broker_fault_has_its_condition() -> None:
    assert {fault("x").condition for fault in BrokerError.__subclasses__()} == {
        "amqp:not-found",
        "amqp:unauthorized-access",
        "amqp:resource-locked",
        "amqp:precondition-failed",
        "amqp:not-implemented",
    }
