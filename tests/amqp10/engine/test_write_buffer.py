"""Frames on their way out: laid out, held until the peer's open, taken, counted."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

import pytest

from tests.naive.performatives import frame, header
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import ConnectionOpened
from trio_amqp10.amqp10.engine.write_buffer import PEER_FRAME_CAP, SIZE_BEFORE_OPEN, WriteBuffer
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.wire.frames import EMPTY_FRAME, encode_frame
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .helpers import refused


class Bell:
    def __init__(self) -> None:
        self.rings = 0

    def __call__(self) -> None:
        self.rings += 1


def new_buffer(*, peer_takes: int | None = None) -> tuple[WriteBuffer, Bell]:
    made, bell = WriteBuffer(soft=1000), Bell()
    made.on_output = bell
    if peer_takes is not None:
        assert made.peer_opened(peer_takes) is None
    return made, bell


def test_write_body_lays_out_a_frame() -> None:
    box, bell = new_buffer()
    box.write_body(7, b"body", b"payload")
    assert box
    assert box.size == 19
    assert box.take() == b"\x00\x00\x00\x13\x02\x00\x00\x07bodypayload"
    assert not box
    assert (box.size, box.wrote, bell.rings) == (0, True, 1)
    assert box.take() == b""


def test_write_rings_when_the_first_octets_wait_and_not_again() -> None:
    box, bell = new_buffer()
    box.write_frame(b"a")
    box.write_frame(b"b")
    box.write_frame(b"c", b"d")
    assert bell.rings == 1
    assert box.take() == b"abcd"
    box.write_frame(b"e", b"f")
    assert bell.rings == 2


def test_write_works_when_nobody_listens() -> None:
    box = WriteBuffer(soft=1)
    box.write_frame(b"a")
    box.take()
    box.write_frame(b"b", b"c")
    assert box.take() == b"bc"


def test_has_room_up_to_the_soft_mark() -> None:
    box, _ = new_buffer()
    box.write_frame(bytes(999))
    assert box.has_room()
    box.write_frame(b"x")
    assert not box.has_room()
    box.take()
    assert box.has_room()


def test_keep_alive_writes_an_empty_frame_only_when_nothing_waits() -> None:
    box, _ = new_buffer()
    box.keep_alive()
    assert box.take() == EMPTY_FRAME
    box.write_frame(b"frame")
    box.keep_alive()
    assert box.take() == b"frame"


def test_frame_over_512_octets_is_held_with_all_that_follows_when_no_open_was_read() -> None:
    box, bell = new_buffer()
    box.write_body(0, bytes(504))
    assert len(box.take()) == 512
    box.write_body(0, bytes(505))
    box.write_body(0, b"small")
    assert box.take() == b""
    assert (box.size, bell.rings) == (513 + 13, 1)
    assert box.peer_opened(4096) is None
    assert bell.rings == 2
    assert sizes(box.take()) == [513, 13]


def test_peer_opened_rings_only_once_when_other_octets_wait() -> None:
    box, bell = new_buffer()
    box.write_frame(b"\x00\x00\x00\x08\x02\x00\x00\x00")
    box.hold_until_open()
    box.write_body(0, b"")
    assert box.peer_opened(512) is None
    assert bell.rings == 1
    assert len(box.take()) == 16


def test_peer_opened_lets_nothing_leave_that_is_larger_than_the_peer_takes() -> None:
    box, _ = new_buffer()
    box.write_body(0, b"x", bytes(1500))
    box.write_body(0, b"y")
    assert box.peer_opened(1024) == 1509
    assert box.take() == b""
    box.drop_held()
    assert box.size == 0


def test_hold_holds_nothing_when_the_peer_has_opened() -> None:
    box, _ = new_buffer(peer_takes=512)
    box.hold_until_open()
    box.write_body(0, b"x")
    assert len(box.take()) == 9


def test_hold_works_when_nobody_listens_and_nothing_is_written() -> None:
    box = WriteBuffer(soft=1)
    box.hold_until_open()
    box.hold_until_open()
    assert box.peer_opened(512) is None
    box = WriteBuffer(soft=1)
    box.hold_until_open()
    box.write_body(0, b"x")
    assert box.peer_opened(512) is None
    assert len(box.take()) == 9


def test_drop_held_forgets_what_was_held_and_nothing_else() -> None:
    box, _ = new_buffer()
    box.write_frame(b"header")
    box.hold_until_open()
    box.write_body(0, b"x")
    box.drop_held()
    box.drop_held()
    assert box.take() == b"header"
    assert box.size == 0


def test_clear_forgets_everything() -> None:
    box, _ = new_buffer()
    box.write_frame(b"header")
    box.hold_until_open()
    box.write_body(0, b"x")
    box.clear()
    assert (box.size, box.take()) == (0, b"")


@pytest.mark.parametrize("before", [True, False])
def test_write_body_raises_and_writes_nothing_when_the_frame_is_too_large(before: bool) -> None:
    box, bell = new_buffer(peer_takes=None if before else 600)
    limit = SIZE_BEFORE_OPEN if before else 600
    for payload in (b"", b"x"):
        with pytest.raises(LocalProtocolError, match=f"frame-size-too-small.* peer takes {limit}"):
            box.write_body(0, bytes(limit - 7 - len(payload)), payload)
    assert (box.size, bell.rings) == (0, 0)
    box.check(limit - 8)


def test_frame_size_is_what_the_peer_takes_and_never_so_large_that_links_cannot_interleave() -> None:
    assert new_buffer(peer_takes=0xFFFFFFFF)[0].frame_size == PEER_FRAME_CAP
    assert new_buffer(peer_takes=4096)[0].frame_size == 4096


def test_connection_closes_when_a_held_attach_is_larger_than_the_peer_takes() -> None:
    connection = Connection("us")
    connection.open()
    session = connection.session()
    session.begin()
    session.sender("x").attach(source=Source(), target=Target(address="q" * 2000))
    script = Script(connection)
    script.expect_header("amqp")
    script >> expected("open") >> expected("begin")
    fault = refused(script, header("amqp"), frame("open", container_id="peer", max_frame_size=1024))
    assert fault.condition == Condition.FRAME_SIZE_TOO_SMALL.value
    script >> expected("close", error=("error", {"condition": "amqp:frame-size-too-small"}))
    script.expect_nothing()


def test_connection_that_does_not_pipeline_writes_on_when_the_peer_opened_first() -> None:
    connection = Connection("us", pipelined=False)
    script = Script(connection)
    script << header("amqp") + frame("open", container_id="peer")
    script.expect_header("amqp")
    script.expect_event(ConnectionOpened)
    connection.open()
    connection.session().begin()
    script >> expected("open") >> expected("begin")


def sizes(octets: bytes) -> list[int]:
    """Of the frames in these octets, whatever is in them."""
    found: list[int] = []
    while octets:
        found.append(int.from_bytes(octets[:4], "big"))
        octets = octets[found[-1] :]
    return found


def test_header_rings_the_bell() -> None:
    box, bell = new_buffer()
    box.write_header(header())
    assert (box.size, bell.rings) == (8, 1)


def test_octets_that_leave_are_finished_where_somebody_is_to_see_to_it() -> None:
    made, _ = new_buffer(peer_takes=512)
    made.finish = lambda octets: octets.upper()
    made.write_header(b"amqp")
    made.write_body(1, b"body", b"payload")
    assert made.take() == b"AMQP" + encode_frame(1, b"BODYPAYLOAD")
    assert (made.size, made.take()) == (0, b"")
