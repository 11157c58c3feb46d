"""The three messages of the measurements, made and read as programs do it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10 import Message

if TYPE_CHECKING:
    from collections.abc import Callable


def maker(kind: str, size: int, *, durable: bool) -> Callable[[int], Any]:
    """Makes message number n, anew each time."""
    body = bytes(size)
    if kind == "bytes":
        return lambda _: body
    if kind == "id":
        return lambda number: Message(body, message_id=number)
    return lambda number: Message(
        body,
        durable=durable or None,
        message_id=number,
        to="orders",
        subject="order",
        reply_to="replies",
        correlation_id=f"c-{number}",
        content_type="application/octet-stream",
        application_properties={"number": number, "region": "north", "urgent": True},
    )


def reader(kind: str) -> Callable[[Any], Any]:
    """Reads what a program would of a message."""
    if kind == "bytes":
        return lambda message: message.body
    if kind == "id":
        return lambda message: (message.body, message.message_id)
    return lambda message: (message.body, message.message_id, message.application_properties["number"])
