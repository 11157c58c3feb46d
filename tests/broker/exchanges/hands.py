"""Connections and consumers that use a broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.server.native_message import content_of_message

from .helpers import Connection

ONE: Any = Connection()

OTHER: Any = Connection()


def hold(queue: Any, count: int = 1) -> None:
    for _ in range(count):
        queue.put(content_of_message(Message("x")), None)


class Consumer(SimpleNamespace):
    """As much of an outlet as a queue asks for when it comes and goes."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def outlet() -> Any:
    return Consumer(
        copying=False,
        wants=None,
        key=object(),
        peer=ONE,
        subscription_terms=SimpleNamespace(priority=0),
        max_message_size=None,
    )
