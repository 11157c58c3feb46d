"""What came in: one message, or several in a batch; taken whole, or refused.

Knows messages and arrivals; does not know where they go.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.message import Data, Message
from trio_amqp10.message.sections import ANNOTATIONS, DELIVERY_ANNOTATIONS, HEADER, scan

from .constants import BATCH_FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.container.nodes.node import Arrival

__all__ = ["content", "take_in", "unpack"]

_HEAD: Final = frozenset({HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS})


def take_in(arrival: Arrival, take: Callable[[Message], object]) -> None:
    """Accept a message that is taken; reject one that is not, with what ``take`` raised before it did anything."""
    try:
        take(arrival.message)
    except (RefusedError, RemoteProtocolError) as refusal:
        with suppress(LocalProtocolError):  # nobody waits for an answer
            arrival.reject(refusal.condition, refusal.description)
        return
    with suppress(LocalProtocolError):
        arrival.accept()


def unpack(message: Message) -> list[Message]:
    """The messages that came as one: several in a batch, whose data sections they are.

    Raises:
        RemoteProtocolError: it is a batch of none, or of something else.
    """
    if message.message_format != BATCH_FORMAT:
        return [message]
    packed: list[Message] = []
    for section in Message.from_payload(message.to_payload()).sections:
        if not isinstance(section, Data):
            raise RemoteProtocolError("a batch whose body is no data", scope="link")
        packed += [Message.from_payload(chunk) for chunk in section.chunks]
    return packed


def content(payload: bytes) -> bytes:
    """The octets of a message from its properties on, which stay as they came whoever receives it.

    Raises:
        RemoteProtocolError: they are no message.
    """
    head = [span for place, span in enumerate(scan(payload)) if place in _HEAD and span is not None]
    return payload[head[-1][1] :] if head else payload
