"""Whether what a peer of 0-9-1 wrote makes sense: frames that the second reader takes, in an order that the rules permit.

A close has one of the codes with which broken octets are answered; 541 (internal-error) is none of them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Final

from tests.amqp091 import naive

HARD: Final = frozenset((320, 403, 501, 502, 503, 504, 505, 506, 530, 540))
"""Codes that close a connection."""
SOFT: Final = frozenset((311, 403, 404, 405, 406))
"""Codes that close a channel."""


@dataclass
class _Channel:
    closed: bool = False
    missing: int | None = None
    header_due: bool = False
    last_tag: int = 0


@dataclass
class _Reader:
    sender: str
    normal: bool
    closed: bool = False
    channels: dict[int, _Channel] = field(default_factory=dict[int, _Channel])

    def take(self, kind: int, number: int, payload: bytes) -> None:
        channel = self.channels.setdefault(number, _Channel())
        if kind == 8:
            assert not number, "a heartbeat on a channel"
            assert not payload, "a heartbeat with a payload"
        elif kind == 2:
            assert channel.header_due, "a content header without its method"
            assert struct.unpack_from(">HH", payload) == (60, 0)
            naive.properties(payload[12:])
            channel.header_due, channel.missing = False, int.from_bytes(payload[4:12], "big") or None
        elif kind == 3:
            assert channel.missing is not None, "a body without its header"
            assert 0 < len(payload) <= channel.missing, "a body that is too long, or empty"
            channel.missing = channel.missing - len(payload) or None
        else:
            assert kind == 1, f"a frame of type {kind}"
            assert not channel.header_due, "a method where a content header is due"
            assert channel.missing is None, "a method amid a content"
            self.take_method(channel, number, *naive.method(payload))

    def take_method(self, channel: _Channel, number: int, name: str, arguments: dict[str, Any]) -> None:
        (how,) = (row[1] for row in naive.METHODS.values() if row[0] == name)
        assert how[0] in (self.sender, "b"), f"{name}, from the wrong end"
        assert (number == 0) == name.startswith("connection."), f"{name} on channel {number}"
        assert not self.closed or name == "connection.close-ok", f"{name} behind a connection.close"
        if channel.closed:
            assert name in ("channel.close-ok", "channel.open-ok", "channel.open"), (
                f"{name} behind a channel.close"
            )
        if name in ("channel.open-ok", "channel.open"):
            self.channels[number] = _Channel()
        codes = {"connection.close": HARD, "channel.close": SOFT}.get(name)
        if codes is not None:
            code, said = arguments["reply_code"], arguments["reply_text"]
            assert code in codes or (self.normal and code == 200), f"{name} with {code}: {said!r}"
            if number:
                channel.closed = True
            else:
                self.closed = True
        channel.header_due = "C" in how
        if name in ("basic.deliver", "basic.get-ok"):
            assert arguments["delivery_tag"] == channel.last_tag + 1, f"tags skip {channel.last_tag + 1}"
            channel.last_tag += 1


def check_reactions(octets: bytes, sender: str, *, whole: bool = True, normal: bool = False) -> None:
    """Check all that one end wrote.

    Args:
        octets: what it wrote.
        sender: which end it is: ``s`` or ``c``.
        whole: whether the octets are all that there is; otherwise they may end within a frame.
        normal: whether it may have closed of its own accord.

    Raises:
        AssertionError: something that the peer must not write; the message says what.
    """
    reader = _Reader(sender, normal)
    if octets.startswith(b"AMQP"):
        octets = octets[8:]
    at = 0
    while at + 8 <= len(octets):
        kind, number, size = struct.unpack_from(">BHI", octets, at)
        end = at + 8 + size
        if end > len(octets):
            break
        assert octets[end - 1] == 0xCE, "a frame without its end"
        reader.take(kind, number, octets[at + 7 : end - 1])
        at = end
    assert not whole or at == len(octets), "the octets end within a frame"
