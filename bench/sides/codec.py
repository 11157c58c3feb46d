"""Our codec alone: ``python -m bench.sides.codec JOB``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trio_amqp10 import Message
from trio_amqp10.amqp091.conversion.translate import to_publication, to_sections
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp10.message import encode_message

from .lines import Span, read_job, tell
from .messages import maker

if TYPE_CHECKING:
    from types import SimpleNamespace

PROPERTIES = BasicProperties(
    content_type="application/json",
    delivery_mode=2,
    priority=5,
    correlation_id="c-1",
    message_id="m-1",
    timestamp=datetime.fromtimestamp(1_700_000_000, UTC),
    headers={"a": "one", "b": 2, "c": True, "x-d": "four", "e": 5.5},
)


def codec(job: SimpleNamespace) -> dict[str, float]:
    """Microseconds to make and encode a message, and to decode all of one, each with its own ids."""
    make = maker(job.message, job.size, durable=True)
    made = Span()
    for number in range(job.count):
        encode_message(make(number))
    encoded = made.end(job.count)["us"]
    payloads = [encode_message(make(number)) for number in range(job.count)]
    read = Span()
    for payload in payloads:
        message = Message.from_payload(payload)
        _ = (message.durable, message.message_id, message.to, message.subject, message.reply_to)
        _ = (
            message.correlation_id,
            message.content_type,
            message.application_properties,
            message.body,
        )
    return {"make and encode us": encoded, "decode us": read.end(job.count)["us"]}


def translate(job: SimpleNamespace) -> dict[str, float]:
    """Microseconds of a translation, each way."""
    body = bytes(job.size)
    there = Span()
    for _ in range(job.count):
        payload = to_sections(PROPERTIES, body, exchange="e", routing_key="k")
    to_1_0 = there.end(job.count)["us"]
    back = Span()
    for _ in range(job.count):
        to_publication(Message.from_payload(payload))
    return {"0-9-1 to 1.0": to_1_0, "1.0 to 0-9-1": back.end(job.count)["us"]}


ROLES = {each.__name__: each for each in (codec, translate)}

if __name__ == "__main__":
    given = read_job()
    tell(result=ROLES[given.role](given))
