"""Input read in slices gives what it gives when it is read at once, and each slice is short."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

import pytest

from tests.naive.performatives import frame
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.layer_stack import Stack
from trio_amqp10.amqp10.wire.frames import EMPTY_FRAME
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.protocol_headers import AMQP_HEADER

from .helpers import BEGIN, flow, opened, receiving, sending
from .links import disposition, transfer


def slices(connection: Connection | Stack, octets: bytes) -> list[int]:
    """How many frames each slice had."""
    inner = connection.connection if isinstance(connection, Stack) else connection
    counts, before = list[int](), inner.frames_in
    connection.receive_slice(octets, 0.0)
    while True:
        counts.append(inner.frames_in - before)
        before = inner.frames_in
        if not connection.has_input():
            return counts
        connection.receive_slice(b"", 0.0)


def test_slice_has_64_usual_frames() -> None:
    link, _script = receiving(credit=100)
    octets = b"".join(transfer(0, n, b"m") for n in range(100))
    assert slices(link.session.connection, octets) == [64, 36]
    assert [d.delivery_id for d in link.queue] == list(range(100))


def test_slice_has_8_frames_of_other_kinds() -> None:
    link, _script = receiving()
    assert slices(link.session.connection, flow() * 20) == [8, 8, 4]


def test_slice_has_any_number_of_octets() -> None:
    link, _script = receiving(credit=100)
    link.max_message_size = None
    octets = b"".join(transfer(0, n, bytes(30_000)) for n in range(7))
    assert slices(link.session.connection, octets + octets[:9]) == [7]


def test_slice_ends_with_a_disposition_that_changes_much() -> None:
    link, script = sending(credit=2_000, remote={"max_frame_size": 65_536})
    script << flow(handle=0, delivery_count=0, link_credit=2_000, incoming_window=2_000)
    for _each in range(1_200):
        link.send(b"m")
    script.collect()
    one = disposition(True, 0, 599)
    assert slices(link.session.connection, one + disposition(True, 600, 1_199) + one * 60) == [
        1,
        0,
        1,
        0,
        21,
        39,
    ]


def test_slice_ends_with_a_settlement_that_changes_much() -> None:
    link, script = receiving(credit=400)
    script << b"".join(transfer(0, n, b"m") for n in range(400))
    octets = disposition(False, 0, 399) + flow(next_outgoing_id=400) * 6
    assert slices(link.session.connection, octets) == [1, 6]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("more", [b"", disposition(True, 1_000, 1_199), disposition(True, 1_000, 1_199)[:5]])
def test_disposition_that_changes_very_many_goes_on_before_what_comes_behind(
    whole: bool, more: bytes
) -> None:
    link, script = sending(credit=2_000, remote={"max_frame_size": 65_536})
    script << flow(handle=0, delivery_count=0, link_credit=2_000, incoming_window=2_000)
    for _each in range(1_200):
        link.send(b"m")
    script.collect()
    connection = link.session.connection
    connection.receive_slice(disposition(True, 0, 999) + more[:3], 0.0, whole=whole)
    assert link.unsettled == (200 if whole else 1_200 - 256)
    connection.receive_slice(more[3:], 0.0, whole=whole)
    while connection.has_input():
        connection.receive_slice(b"", 0.0)
    assert link.unsettled == (0 if len(more) > 5 else 200)


@pytest.mark.parametrize("end", ["lost", "eof"])
def test_disposition_counts_as_a_whole_if_the_transport_ends_meanwhile(end: str) -> None:
    link, script = sending(credit=2_000, remote={"max_frame_size": 65_536})
    script << flow(handle=0, delivery_count=0, link_credit=2_000, incoming_window=2_000)
    deliveries = [link.send(b"m") for _each in range(1_000)]
    script.collect()
    connection = link.session.connection
    connection.receive_slice(disposition(True, 0, 999), 0.0)
    if end == "lost":
        connection.transport_lost()
    else:
        connection.receive_eof(0.0)
    assert all(each is not None and each.state is not None for each in deliveries)


def test_delivery_that_is_settled_here_while_a_settlement_goes_on_stays_as_it_is() -> None:
    link, script = receiving(credit=400)
    script << b"".join(transfer(0, n, b"m") for n in range(400))
    connection, last = link.session.connection, link.queue[-1]
    connection.receive_slice(disposition(False, 0, 399), 0.0)
    last.accept()
    while connection.has_input():
        connection.receive_slice(b"", 0.0)
    assert last.settled
    assert not link.session.settlement.incoming


def test_slices_go_on_with_what_came_meanwhile_and_behind_a_fault() -> None:
    connection, _script = opened()
    begin = frame("begin", **BEGIN)
    connection.receive_slice(begin + flow() * 12, 0.0)
    assert connection.has_input()
    connection.receive_slice(flow() * 4 + flow()[:5], 0.0)
    assert connection.has_input()
    connection.receive_data(flow()[5:], 0.0)
    assert not connection.has_input()
    assert connection.frames_in == 19
    connection.receive_slice(EMPTY_FRAME * 8 + frame("end", channel=9) + frame("close"), 0.0)
    with pytest.raises(RemoteProtocolError, match="not mapped"):
        connection.receive_slice(b"", 0.0)
    assert not connection.has_input()
    assert connection.data_to_send() is not None
    assert connection.data_to_send() is None


@pytest.mark.parametrize("cut", [1, 3, 4, 7, 8, 9, 500, 19_999, 20_010])
def test_frame_that_came_in_two_reads_is_read_with_all_behind_it(cut: int) -> None:
    link, _script = receiving(credit=100)
    octets = b"".join(transfer(0, n, bytes((n,)) * 20_000) for n in range(5))
    link.session.connection.receive_slice(octets[:cut], 0.0)
    assert sum(slices(link.session.connection, octets[cut:])) == 5
    assert [d.payload for d in link.queue] == [bytes((n,)) * 20_000 for n in range(5)]


def test_frame_that_came_in_two_reads_is_one_of_its_slice() -> None:
    link, _script = receiving(credit=100)
    octets = b"".join(transfer(0, n, bytes(200)) for n in range(100))
    link.session.connection.receive_slice(octets[:100], 0.0)
    assert slices(link.session.connection, octets[100:]) == [64, 36]


@pytest.mark.parametrize("deaf", [False, True])
def test_fault_in_a_frame_that_came_in_two_reads_is_told_before_what_is_behind_it(deaf: bool) -> None:
    connection, _script = opened()
    first = bytes.fromhex("00000010 01000000") + bytes(8) if deaf else frame("end", channel=9)
    connection.receive_slice(first[:6], 0.0)
    behind = EMPTY_FRAME * 2_000 + frame("end", channel=8) + frame("close")
    with pytest.raises(RemoteProtocolError, match="data offset" if deaf else "channel 9"):
        connection.receive_data(first[6:] + behind, 0.0)
    assert not connection.has_input()
    assert connection.data_to_send() is not None


def test_stack_reads_what_follows_its_layers_in_slices() -> None:
    octets = AMQP_HEADER + frame("open", container_id="peer") + EMPTY_FRAME * 20
    stack = Stack(Connection("engine"), 0.0, accepting=True)
    assert slices(stack, octets) == [8, 8, 5]
    stack = Stack(Connection("engine"), 0.0, accepting=True)
    stack.receive_data(octets, 0.0)
    assert not stack.has_input()
    assert stack.connection.frames_in == 21


def test_session_is_the_only_one_before_the_peers_open() -> None:
    connection = Connection("engine")
    connection.open()
    assert connection.session().channel == 0
    with pytest.raises(LocalProtocolError, match="channel-max"):
        connection.session()
    connection.receive_data(AMQP_HEADER + frame("open", container_id="peer"), 0.0)
    assert connection.session().channel == 1


@pytest.mark.parametrize("whole", [False, True])
def test_disposition_of_another_kind_goes_on_in_later_slices_too(whole: bool) -> None:
    link, script = sending(credit=2_000, remote={"max_frame_size": 65_536})
    script << flow(handle=0, delivery_count=0, link_credit=2_000, incoming_window=2_000)
    for _each in range(1_000):
        link.send(b"m")
    script.collect()
    connection = link.session.connection
    connection.receive_slice(disposition(True, 0, 999, state=("modified", {"delivery_failed": True})), 0.0)
    assert connection.has_input()
    connection.receive_slice(b"", 0.0, whole=whole)
    while connection.has_input():
        connection.receive_slice(b"", 0.0)
    assert link.unsettled == 0


# -- what is not read yet -------------------------------------------------------------------


def test_unread_octets_begin_with_a_frame() -> None:
    connection, _ = opened()
    reader = connection.frame_reader
    assert reader.unread() == b""
    octets = frame("begin", **BEGIN) + EMPTY_FRAME * 20
    connection.receive_slice(octets[:5], 0.0)
    assert reader.unread() == octets[:5]
    connection.receive_slice(octets[5:9], 0.0)
    assert reader.unread() == octets[:9]
    connection.receive_slice(octets[9:], 0.0)  # a slice ends before the octets do
    assert connection.has_input()
    assert reader.unread() == EMPTY_FRAME * (len(reader.unread()) // 8) != b""
    connection.receive_data(EMPTY_FRAME[:3], 0.0)
    assert reader.unread() == EMPTY_FRAME[:3]
