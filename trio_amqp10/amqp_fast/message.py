"""A message: its head, its body, and how both are cut into fragments (RFC 006, 3.4).

Head and body are one block of octets, which is cut where fragments end; the head is whole in the first of them. Knows no
command and no handle.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from trio_amqp10.errors import LocalProtocolError

from .spec import MessageHead

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Message", "fragments_of", "hash_of", "head_octets", "read_head"]

_BODY_MAX = 0xFFFFFFFF


class Message(NamedTuple):
    """A message.

    Attributes:
        head: its fields; ``body_size`` is that of ``body`` when it is written.
        body: its octets.
    """

    head: MessageHead
    body: bytes = b""


def head_octets(head: MessageHead, body_size: int, largest: int) -> bytes:
    """The octets of the head of a message with so many octets of body.

    Args:
        head: its fields but ``body_size``.
        body_size: octets; 0 for a stream.
        largest: octets of one fragment, which holds all of the head.

    Raises:
        LocalProtocolError: a value that its field does not take, more than 4 GiB, or a head larger than a fragment.
    """
    if body_size > _BODY_MAX:
        raise LocalProtocolError(f"a body of {body_size} octets, where {_BODY_MAX} are the most")
    if not 0 <= head.priority <= 9:
        raise LocalProtocolError(f"priority of message: 0 to 9, not {head.priority}")
    out = bytearray()
    head.plan.write(out, replace(head, body_size=body_size))
    if len(out) > largest:
        raise LocalProtocolError(f"a head of {len(out)} octets, where a fragment has {largest}")
    return bytes(out)


def read_head(fragment: bytes) -> tuple[MessageHead, int]:
    """The head that a first fragment begins with, and where the body begins.

    Raises:
        ReplyError: 502; it is not whole, or a field is wrong.
    """
    return MessageHead.plan.read(fragment, 0, len(fragment))


def fragments_of(block: bytes, largest: int) -> Iterator[bytes]:
    """The block in pieces of at most so many octets; at least one."""
    yield block[:largest]
    for start in range(largest, len(block), largest):
        yield block[start : start + largest]


def hash_of(body: bytes | bytearray) -> str:
    """The content hash of a body: SHA-1 as 40 hexadecimal digits (3.5.13)."""
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()
