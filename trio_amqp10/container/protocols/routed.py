"""What a message of any protocol says of its way through an exchange, and which of its headers an exchange compares.

Knows the forms of AMQP 1.0 and 0-9-1; knows no exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .amqp091.content import Published
from .amqp10 import routed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.container.nodes.content import Content

__all__ = ["annotated", "headers_of"]


def headers_of(content: Content) -> Mapping[str, Any]:
    """The headers of a message, for exchanges of type headers."""
    return content.headers if isinstance(content, Published) else routed.headers_of(content)


def annotated(content: Content, exchange: str, key: str) -> Content:
    """The message that says where it was published to."""
    if not isinstance(content, Published):
        return routed.annotated(content, exchange, key)
    if content.exchange == exchange and content.routing_key == key:
        return content
    return Published(
        exchange,
        key,
        content.raw,
        content.body,
        content.properties,
        redelivered=content.redelivered,
        failures=content.failures,
    )
