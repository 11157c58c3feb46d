"""What a message says of its way through an exchange, and which of its headers an exchange compares.

Knows messages of AMQP 1.0 as RabbitMQ 4 reads and writes them; knows no exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["annotated", "headers_of"]

_EXCHANGE: Final = "x-exchange"
_KEY: Final = "x-routing-key"


def annotated(message: Message, exchange: str, key: str) -> Message:
    """The message with annotations that say how it came; the bare message as it is."""
    payload = message.to_payload()
    marked = Message.from_payload(payload, message.message_format)
    try:
        marked.annotations = {**marked.annotations, _EXCHANGE: exchange, _KEY: key}
        return Message.from_payload(marked.to_payload())
    except (RemoteProtocolError, LocalProtocolError):
        return Message.from_payload(payload, message.message_format)


def headers_of(message: Message) -> Mapping[str, Any]:
    """Its application-properties, and annotations whose names begin with ``x-``; nothing where it cannot be decoded."""
    if message.message_format != 0:
        return {}
    copy = Message.from_payload(message.to_payload())
    try:
        notes = {str(name): value for name, value in copy.annotations.items() if str(name).startswith("x-")}
        return {**copy.application_properties, **notes}
    except RemoteProtocolError:
        return {}
