"""Read a message from chunks of its payload, section by section (3.2).

The sections before the body are buffered until the body begins, the octets of data sections are returned as
they arrive, and the footer is buffered again. Knows nothing of deliveries or frames, and never waits.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10.wire import codes
from trio_amqp10.core.peer_rules import BODY_SECTIONS, SECTION_ORDER

from .message import Message
from .sections import BODY, CODES, NAMES, PLACES, malformed, section_code, skip_value

if TYPE_CHECKING:
    from trio_amqp10.core.tolerances import Tolerances

_DATA: Final = CODES["amqp:data:binary"]
_LIMIT: Final = 1024 * 1024
"""Octets of all sections except the body, which are buffered."""


class BodyReader:
    """A reader of one message in parts.

    Attributes:
        in_body: whether the sections before the body are complete.
        other: the name of the body's section if it is not data; then no part of it is returned.
        started: whether a part of the body was returned.
        finished: whether the message has ended.
    """

    __slots__ = (
        "_class",
        "_code",
        "_format",
        "_have",
        "_held",
        "_kept",
        "_left",
        "_need",
        "_parts",
        "_place",
        "_raw",
        "_tolerances",
        "finished",
        "in_body",
        "other",
        "started",
    )

    def __init__(
        self,
        message_format: int = 0,
        message_class: type[Message] = Message,
        tolerances: Tolerances | None = None,
    ) -> None:
        self._class = message_class
        self._tolerances = tolerances
        self._format = message_format
        self._raw: list[bytes] = []  # all octets so far, until a part of the body is returned
        self._held: list[bytes] = []  # octets of an incomplete section
        self._have = 0
        self._need = 0
        self._kept = bytearray()  # complete sections
        self._left = 0  # octets that are left of the current data section
        self._place = self._code = -1
        self._parts: deque[bytes] = deque()
        self.in_body: bool = bool(message_format)  # another format need not have sections at all (2.7.5)
        self.other: str | None = None
        self.started: bool = False
        self.finished: bool = False

    @property
    def raw(self) -> bytes:
        """All octets so far, until a part of the body was returned."""
        return b"".join(self._raw)

    def message(self) -> Message:
        """Return the sections that have arrived, without the body."""
        return self._class.from_payload(bytes(self._kept), self._format, self._tolerances)

    def pop_chunk(self) -> bytes | None:
        """Return the next octets of the body, or None if none have arrived."""
        if not self._parts:
            return None
        self.started = True
        self._raw.clear()
        return self._parts.popleft()

    def feed(self, octets: bytes) -> None:
        """Process the next octets, which must not be empty.

        Raises:
            RemoteProtocolError: a section is unknown, misplaced or malformed, or the sections outside the
                body are too large; with scope ``link``.
        """
        if not self.started:
            self._raw.append(octets)
        if self._format:
            self._parts.append(octets)
        elif self.other is None:
            self._have += len(octets)
            if self._held:
                self._held.append(octets)
                if self._have < self._need:
                    return
                octets = b"".join(self._held)
                self._held.clear()
            self._read(octets)

    def end(self) -> None:
        """Note that no more octets follow.

        Raises:
            RemoteProtocolError: the octets end inside a section.
        """
        if self._held or self._left:
            raise malformed("the octets end inside a section")
        self.in_body = self.finished = True

    def _read(self, octets: bytes) -> None:
        pos, end = 0, len(octets)
        while pos < end:
            if self._left:
                part = octets[pos : pos + self._left]
                self._left -= len(part)
                self._parts.append(part)
                pos += len(part)
            else:
                after = self._read_section(octets, pos, end)
                if after is None:
                    break
                pos = after
        if self.other is None:
            self._hold(octets[pos:])

    def _hold(self, octets: bytes) -> None:
        self._have = len(octets)
        if octets:
            self._held.append(octets)

    def _read_section(self, octets: bytes, pos: int, end: int) -> int | None:
        """Return the end of a section, or of the head of a data section.

        None means that the section is incomplete.
        """
        self._need = 0
        try:
            if octets[pos] == codes.DESCRIBED:
                value = skip_value(octets, pos + 1)
                if value > end:
                    self._wait_for(value - pos)
                    return None
            code, value = section_code(octets, pos)
            place = PLACES[code]
            self._check_order(code, place)
            if place == BODY:
                self.in_body = True
                if code != _DATA:
                    self.other = NAMES[code]
                    return None
                after = self._begin_data(octets, value)
            else:
                after = skip_value(octets, value)
        except (IndexError, struct.error):
            self._wait_for(end - pos)
            return None
        if place != BODY:
            if after > end:
                self._wait_for(after - pos)
                return None
            self._kept += octets[pos:after]
        self._place, self._code = place, code
        return after

    def _begin_data(self, octets: bytes, pos: int) -> int:
        kind = octets[pos]
        if kind == codes.BINARY8:
            self._left = octets[pos + 1]
            return pos + 2
        if kind == codes.BINARY32:
            self._left = struct.unpack_from(">I", octets, pos + 1)[0]
            return pos + 5
        raise malformed(f"a data section of type {kind:#04x}")

    def _check_order(self, code: int, place: int) -> None:
        if place <= self._place and not code == self._code == _DATA:
            raise malformed(f"section {NAMES[code]} after {NAMES[self._code]}", SECTION_ORDER)

    def _wait_for(self, size: int) -> None:
        """Note that the section has at least ``size`` octets: do not parse before."""
        self._need = size
        if len(self._kept) + size > _LIMIT:
            raise BODY_SECTIONS.broken(f"more than {_LIMIT} octets of a streamed message are not its body")
