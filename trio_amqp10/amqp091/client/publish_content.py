"""Build the content to publish from arguments (0-9-1, basic.publish, 4.2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict

from trio_amqp10.amqp091.engine.contents_shortcut import NO_PROPERTIES
from trio_amqp10.amqp091.wire.content import BasicProperties, Content
from trio_amqp10.core.arguments import check_type, shown
from trio_amqp10.core.body_octets import body_octets
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from datetime import datetime


_DELIVERY_MODES: Final = (None, 1, 2)


class PublishProperties(TypedDict, total=False):
    """The message properties that a publish accepts as keywords (0-9-1, basic)."""

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
    """Return the content to publish.

    Raises:
        LocalProtocolError: the body has no octets; both ``properties`` and single properties are given; a property is
            unknown, or ``delivery_mode`` is neither 1 nor 2.
    """
    octets = body if body.__class__ is bytes else body_octets(body)  # the usual case first
    if fields:
        if properties is not None:
            raise LocalProtocolError(
                f"pass properties=..., or single properties ({', '.join(fields)}), not both"
            )
        try:
            properties = BasicProperties(**fields)
        except TypeError as error:
            raise LocalProtocolError(f"unknown property: {error}") from None
    if properties is None:
        return Content(BasicProperties(), octets, NO_PROPERTIES)
    check_type("properties", properties, BasicProperties, "a BasicProperties, or None")
    if properties.delivery_mode not in _DELIVERY_MODES:
        raise LocalProtocolError(
            f"delivery_mode={shown(properties.delivery_mode)}: expected 1 (transient) or 2 (persistent), or None"
        )
    return Content(properties, octets)
