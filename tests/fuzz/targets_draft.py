"""Targets of the draft of 2010: its types, its frame bodies, and a connection."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from tests.amqp10.draft_2010.pairs import Script
from tests.amqp10.draft_2010.test_vectors import COMPOSITES, body_of, framed
from trio_amqp10.amqp10.draft_2010.encodings import from_draft, to_draft
from trio_amqp10.amqp10.draft_2010.registries import FRAME_BODIES, read, write
from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.message import Message
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .mutate import AMQP10
from .target import FuzzTarget

_VECTORS: Final = [bytes.fromhex(row["hex"]) for row in COMPOSITES]
_FRAMES: Final = [octets for octets in _VECTORS if framed(octets) and octets[5] == 0]
_MOST: Final = 100
"""How many times longer an answer may be than the octets that it answers."""


def encodings(octets: bytes) -> None:
    final = from_draft(octets)
    assert from_draft(final) == final
    with contextlib.suppress(RemoteProtocolError):
        strict = to_draft(final)
        assert to_draft(from_draft(strict, strict=True)) == strict


def frame_bodies(octets: bytes) -> None:
    body = read(octets, FRAME_BODIES)
    with contextlib.suppress(LocalProtocolError):  # A peer may send bodies that this library may not write.
        written = write(body)
        assert write(read(written, FRAME_BODIES, strict=True)) == written


def connection(octets: bytes) -> None:
    script = Script()
    receiver = script.attach(False, name="in", handle=0)
    receiver.set_credit(10)
    state = draft.FlowState(session_credit=10, link_credit=5)
    sender: Any = script.attach(True, name="out", handle=1, flow_state=state)
    for _ in range(3):
        sender.send(Message(b"x").to_payload())
    script.said()
    written = 0
    for start in range(0, len(octets), 64):
        script.octets(octets[start : start + 64])
        while receiver.queue:
            with contextlib.suppress(LocalProtocolError):
                receiver.queue.popleft().accept()
        written += len(script.connection.data_to_send() or b"")
    script.connection.receive_eof(1.0)
    assert written <= _MOST * len(octets) + 16_384, f"{written} octets written about {len(octets)}"


_DEAR: Final[Any] = {"steps": (200_000, 2_000), "memory": (1024 * 1024, 512)}
"""The limits of a connection, which are higher than the usual ones.

Its frames are rewritten, read, written and read again; its session and its links cost about as much.
"""

TARGETS: Final = {
    "draft-2010-encodings": FuzzTarget(
        encodings, [body_of(octets)[0] for octets in _VECTORS], steps=(20_000, 400)
    ),
    "draft-2010-frame-bodies": FuzzTarget(
        frame_bodies, [octets[8:] for octets in _FRAMES], steps=(40_000, 1_000)
    ),
    "draft-2010-connection": FuzzTarget(connection, _FRAMES, framing=AMQP10, share=3, **_DEAR),
}
