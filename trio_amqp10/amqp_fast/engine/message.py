"""A message: its head, its body, and their division into fragments (RFC 006, 3.4).

Head and body form one block of octets, which is divided into fragments; the first fragment contains the whole head. This module
does not know commands or handles.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from trio_amqp10.amqp_fast.spec import MessageHead
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BODY_MAX = 0xFFFFFFFF


class Message(NamedTuple):
    """A message.

    Attributes:
        head: the fields of the head; ``body_size`` is set from ``body`` when the message is written.
        body: the octets of the body.
    """

    head: MessageHead
    body: bytes = b""


def head_octets(head: MessageHead, body_size: int, largest: int) -> bytes:
    """Encode the head of a message.

    Args:
        head: the fields of the head; its ``body_size`` is ignored.
        body_size: octets of the body; 0 for a stream.
        largest: octets of one fragment, which must hold the whole head.

    Raises:
        LocalProtocolError: a value is invalid for its field, the body exceeds 4 GiB, or the head exceeds a fragment.
    """
    if body_size > _BODY_MAX:
        raise LocalProtocolError(f"a body of {body_size} octets exceeds the maximum of {_BODY_MAX}")
    if head.priority not in range(10):
        raise LocalProtocolError(f"priority of message must be 0 to 9, not {head.priority!r}")
    out = bytearray()
    head.plan.write(out, replace(head, body_size=body_size))
    if len(out) > largest:
        raise LocalProtocolError(f"a head of {len(out)} octets exceeds the fragment size of {largest}")
    return bytes(out)


def read_head(fragment: bytes) -> tuple[MessageHead, int]:
    """Decode the head in a first fragment; return it and the offset of the body.

    Raises:
        ReplyError: 502: the head is incomplete, or a field is invalid.
    """
    return MessageHead.plan.read(fragment, 0, len(fragment))


def fragments_of(block: bytes, largest: int) -> Iterator[bytes]:
    """Divide the block into pieces of at most ``largest`` octets; yield at least one."""
    yield block[:largest]
    for start in range(largest, len(block), largest):
        yield block[start : start + largest]


def hash_of(body: bytes | bytearray) -> str:
    """Return the content hash of a body: SHA-1 as 40 hexadecimal digits (3.5.13)."""
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()
