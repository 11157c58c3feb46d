"""Servers that answer a client's wish to open with octets that break a rule, and the close that the client owes for it.

What a server writes is given as octets; the client has to write a close behind the octets that it wrote before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10 import amqp091, amqp_10_3, amqp_fast, open_connection
from trio_amqp10.amqp10.spec.transport import Open
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import encode_frame
from trio_amqp10.amqp_fast import spec as fast_spec
from trio_amqp10.amqp_fast.wire.frames import frame_of
from trio_amqp10.core.protocol_headers import AMQP_HEADER

if TYPE_CHECKING:
    from collections.abc import Callable

_DRAFT_HEADER: Final = b"AMQP\x00\x01\x00\x00"


@dataclass(frozen=True, kw_only=True)
class LastWords:
    """A server that breaks a rule while the connection is opened.

    Attributes:
        connect: dials on a stream.
        answers: what the server writes, at once.
        close: octets that are in the client's close, and in nothing that it writes before; empty for a protocol in which a client
            says nothing before the connection is open.
    """

    connect: Callable[[Any], Any]
    answers: bytes = b""
    close: bytes = b""


def _amqp10(dialect: str) -> Callable[[Any], Any]:
    return lambda stream: open_connection(stream, dialect=dialect)


LAST_WORDS: Final[dict[str, LastWords]] = {
    "1.0": LastWords(
        connect=_amqp10("1.0"),
        answers=AMQP_HEADER + encode_frame(0, encode(Open(container_id="x", max_frame_size=100))),
        close=b"amqp:invalid-field",
    ),
    # The transport ends in silence if a rule is broken before the connection is open (0-9-1, 2.2.4).
    "0-9-1": LastWords(connect=amqp091.open_connection),
    "10.3": LastWords(connect=amqp_10_3.open_connection),
    "amqp-fast": LastWords(
        connect=amqp_fast.open_connection,
        answers=frame_of(fast_spec.ConnectionChallenge(version=9)),
        close=b"9 is not supported",
    ),
    "1.0-draft-2010": LastWords(
        connect=_amqp10("1.0-draft-2010"),
        answers=_DRAFT_HEADER + encode_frame(0, b"\x00\xff"),
        close=b"amqp:",
    ),
}
"""By the names of ``PROTOCOLS``."""
