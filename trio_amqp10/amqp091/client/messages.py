"""What a program publishes: a content out of the arguments of a call (0-9-1, basic.publish, 4.2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from trio_amqp10.amqp091.content import BasicProperties, Content
from trio_amqp10.amqp091.fast import NO_PROPERTIES
from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["PublishProperties", "content_of"]


class PublishProperties(TypedDict, total=False):
    """The properties of a message that a publish may name (0-9-1, basic)."""

    content_type: str
    content_encoding: str
    headers: dict[str, Any]
    delivery_mode: int
    priority: int
    correlation_id: str
    reply_to: str
    expiration: str
    message_id: str
    timestamp: datetime | int
    type: str
    user_id: str
    app_id: str


def content_of(body: bytes, properties: BasicProperties | None, fields: PublishProperties) -> Content:
    """What is published.

    Raises:
        LocalProtocolError: there are properties as one object and single ones too.
    """
    if fields:
        if properties is not None:
            raise LocalProtocolError(f"give properties=..., or single ones as {sorted(fields)}, not both")
        try:
            properties = BasicProperties(**fields)
        except TypeError as error:
            raise LocalProtocolError(f"no such property: {error}") from None
    if properties is None:
        return Content(BasicProperties(), body, NO_PROPERTIES)
    return Content(properties, body)
