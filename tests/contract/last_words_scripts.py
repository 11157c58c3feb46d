"""Servers that answer a client's wish to open with octets that break a rule, and the close that the client owes for it.

What a server writes is given as octets; the client has to write a close behind the octets that it wrote before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10 import amqp_fast, open_connection
from trio_amqp10.amqp_fast import spec as fast_spec
from trio_amqp10.amqp_fast.frames import frame_of
from trio_amqp10.frames import encode_frame
from trio_amqp10.protocol_headers import AMQP_HEADER
from trio_amqp10.spec.transport import Open
from trio_amqp10.wire.encode import encode

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LAST_WORDS", "LastWords"]

_DRAFT_HEADER: Final = b"AMQP\x00\x01\x00\x00"


@dataclass(frozen=True, kw_only=True)
class LastWords:
    """A server that breaks a rule while the connection is opened.

    Attributes:
        connect: dials on a stream.
        answers: what the server writes, at once.
        close: octets that are in the client's close, and in nothing that it writes before.
    """

    connect: Callable[[Any], Any]
    answers: bytes
    close: bytes


def _amqp10(dialect: str) -> Callable[[Any], Any]:
    return lambda stream: open_connection(stream, dialect=dialect)


LAST_WORDS: Final[dict[str, LastWords | None]] = {
    "1.0": LastWords(
        connect=_amqp10("1.0"),
        answers=AMQP_HEADER + encode_frame(0, encode(Open(container_id="x", max_frame_size=100))),
        close=b"amqp:invalid-field",
    ),
    # The transport ends in silence if a rule is broken before the connection is open (0-9-1, 2.2.4).
    "0-9-1": None,
    "10.3": None,
    "amqp-fast": LastWords(
        connect=amqp_fast.open_connection,
        answers=frame_of(fast_spec.ConnectionChallenge(version=9)),
        close=b"the server speaks 9",
    ),
    "1.0-draft-2010": LastWords(
        connect=_amqp10("1.0-draft-2010"),
        answers=_DRAFT_HEADER + encode_frame(0, b"\x00\xff"),
        close=b"amqp:",
    ),
}
"""By the names of ``PROTOCOLS``; None for a protocol in which a client says nothing before the connection is open."""
