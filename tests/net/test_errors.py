"""Errors of connections that are gone."""

from __future__ import annotations

import trio

import trio_amqp10 as amqp


def test_gone_errors_are_broken_resources_too() -> None:
    for kind in (amqp.ConnectionClosedError, amqp.SessionEndedError, amqp.LinkDetachedError):
        error = amqp.ErrorInfo(condition="x:y")
        raised = kind("text", error)
        assert isinstance(raised, trio.BrokenResourceError)
        assert isinstance(raised, amqp.AmqpError)
        assert raised.condition == "x:y"
        assert raised.error is error
        assert kind("text").condition is None
