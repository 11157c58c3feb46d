"""What a message says of its way through an exchange, and which of its headers an exchange compares.

Knows messages of AMQP 1.0 as RabbitMQ 4 reads and writes them; knows no exchange.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.protocols.amqp10.content import content_of_message
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.container.nodes.content import Content

__all__ = ["annotated", "headers_of"]

_EXCHANGE: Final = "x-exchange"
_KEY: Final = "x-routing-key"


def annotated(content: Content, exchange: str, key: str) -> Content:
    """The message with annotations that say how it came; as it is where it cannot be annotated."""
    marked = copy(content.as_message())
    try:
        marked.annotations = {**marked.annotations, _EXCHANGE: exchange, _KEY: key}
        marked.message_format = 0
        return content_of_message(marked)
    except (RemoteProtocolError, LocalProtocolError):
        return content


def headers_of(content: Content) -> Mapping[str, Any]:
    """Its application-properties, and annotations whose names begin with ``x-``; nothing where it cannot be decoded."""
    message = copy(content.as_message())
    try:
        notes = {
            str(name): value for name, value in message.annotations.items() if str(name).startswith("x-")
        }
        return {**message.application_properties, **notes}
    except RemoteProtocolError:
        return {}
