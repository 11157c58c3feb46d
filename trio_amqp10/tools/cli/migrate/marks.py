"""Marks in messages: what the target has already of an interrupted run.

A mark is the message annotation ``x-opt-migrated`` with the text ``BATCH/DIGEST``. The digest is of the sections that no broker
changes, and not the place in the batch: a message of the batch may expire before the command runs again, and then all places after it
would be others. Messages with equal digests are equal, so they are counted.

Knows messages; knows no broker.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.values import Symbol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MARK: Final = Symbol("x-opt-migrated")
_DIGITS: Final = 32


def digest_of(message: Message) -> str:
    """Return a digest of what brokers do not change in a message."""
    found = sha256(message.bare)
    found.update(f"{message.durable} {message.priority} {message.message_format}".encode())
    return found.hexdigest()[:_DIGITS]


def marked(message: Message, batch: str) -> Message:
    """Return a message with the mark of this batch.

    Its attempts at the source do not count at the target.
    """
    found = copy(message)
    found.annotations = {**message.annotations, _MARK: f"{batch}/{digest_of(message)}"}
    if found.delivery_count:
        found.delivery_count = 0
    return found


def marks_of(annotations: Iterable[Mapping[Any, Any]], batch: str) -> Counter[str]:
    """Return the digests in the marks of this batch, and how often each is there.

    Args:
        annotations: those of each message, or its headers in AMQP 0-9-1.
        batch: the name of the batch.
    """
    found = Counter[str]()
    for each in annotations:
        name, _, digest = str(each.get(_MARK, "")).partition("/")
        if name == batch:
            found[digest] += 1
    return found


def unsent(messages: Iterable[Message], sent: Counter[str]) -> list[Message]:
    """Return the messages of a batch that are not among those that were sent."""
    left, found = sent.copy(), list[Message]()
    for message in messages:
        digest = digest_of(message)
        if left[digest]:
            left[digest] -= 1
        else:
            found.append(message)
    return found
