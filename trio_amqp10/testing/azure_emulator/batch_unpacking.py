"""Accept or refuse an arrival: one message, or all messages of a batch.

Knows messages and arrivals; does not know the nodes that store them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10.message import Data, Message
from trio_amqp10.amqp10.message.sections import ANNOTATIONS, DELIVERY_ANNOTATIONS, HEADER, scan
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .constants import BATCH_FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.broker.nodes.node import Arrival

_HEAD: Final = frozenset({HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS})


def take_in(arrival: Arrival, take: Callable[[Message], object]) -> None:
    """Call ``take`` with an arriving message, then accept it, or reject a fault.

    ``take`` must raise before it has any effect.
    """
    try:
        take(arrival.message)
    except (RefusedError, RemoteProtocolError) as refusal:
        with suppress(LocalProtocolError):  # the delivery is already settled or its link has ended
            arrival.reject(refusal.condition, refusal.description)
        return
    with suppress(LocalProtocolError):
        arrival.accept()


def unpack(message: Message) -> list[Message]:
    """Return the messages of an arrival: itself, or the messages of a batch.

    The data sections of a batch are messages.

    Raises:
        RemoteProtocolError: the batch has no data sections, or one of them is not a message.
    """
    if message.message_format != BATCH_FORMAT:
        return [message]
    packed: list[Message] = []
    for section in Message.from_payload(message.to_payload()).sections:
        if not isinstance(section, Data):
            raise RemoteProtocolError(
                f"a section of type {type(section).__name__} in a batch: expected data sections", scope="link"
            )
        packed += [Message.from_payload(chunk) for chunk in section.chunks]
    return packed


def content(payload: bytes) -> bytes:
    """Return the octets of a message from its properties on, which never change.

    Raises:
        RemoteProtocolError: the octets are not a message.
    """
    head = [span for place, span in enumerate(scan(payload)) if place in _HEAD and span is not None]
    return payload[head[-1][1] :] if head else payload
