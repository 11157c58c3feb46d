"""The codec of Azure's clients alone, as they use it themselves. Runs in the peers' own environment.

Sections are written by ``encode_payload`` and read by ``decode_payload``, as their links do; a program has nothing below a client for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from azure.servicebus._pyamqp._decode import decode_payload
from azure.servicebus._pyamqp._encode import encode_payload
from azure.servicebus._pyamqp.message import Header, Message, Properties
from lines import Span, read_job, tell

if TYPE_CHECKING:
    from types import SimpleNamespace


def make(body: bytes, number: int) -> Message:
    """A full message, anew."""
    return Message(
        header=Header(durable=True),
        properties=Properties(
            message_id=number,
            to="orders",
            subject="order",
            reply_to="replies",
            correlation_id=f"c-{number}",
            content_type="application/octet-stream",
        ),
        application_properties={"number": number, "region": "north", "urgent": True},
        data=[body],
    )


def codec(job: SimpleNamespace) -> dict[str, float]:
    """Microseconds to make and encode a message, and to decode all of one, each with its own ids."""
    body = bytes(job.size)
    made = Span()
    for number in range(job.count):
        encode_payload(bytearray(), make(body, number))
    encoded = made.end(job.count)["us"]
    views = [memoryview(bytes(encode_payload(bytearray(), make(body, n)))) for n in range(job.count)]
    read = Span()
    for view in views:
        decode_payload(view)
    return {"make and encode us": encoded, "decode us": read.end(job.count)["us"]}


if __name__ == "__main__":
    tell(result=codec(read_job()))
