"""Exchanges of one mechanism, step by step."""

from __future__ import annotations

from trio_amqp10 import sasl

CONTEXT = sasl.ClientContext("example.com", ("PLAIN",))


def respond(mechanism: sasl.ClientMechanism) -> bytes | None:
    step = mechanism.begin(CONTEXT).start()
    assert isinstance(step, sasl.Respond)
    return step.data


async def verify(username: str, password: str) -> bool:
    return (username, password) == ("guest", "guest-secret")


def ask(message: bytes) -> tuple[sasl.ServerExchange, sasl.Question]:
    exchange = sasl.PlainServer(verify=verify, permitted=True).begin(sasl.ServerContext())
    question = exchange.start(message)
    assert isinstance(question, sasl.Question)
    return exchange, question
