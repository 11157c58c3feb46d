"""Which lane a frame is in, what becomes of a delivery, and how credit and windows go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.performatives import empty_frame, frame, header, raw_frame
from trio_amqp10.tools.trace.frame_log import Record, entries_of
from trio_amqp10.tools.trace.lanes import Lanes
from trio_amqp10.tools.trace.session_tracking import ConversationTracker

if TYPE_CHECKING:
    from trio_amqp10.tools.trace.frame_log import Way
    from trio_amqp10.tools.trace.lanes import Delivery, Series

SENDER, RECEIVER = False, True
Said = tuple["Way", bytes]


class Talk:
    """A conversation: what was said, and where each frame of it was put."""

    def __init__(self, *said: Said) -> None:
        self.lanes = Lanes()
        tracker = ConversationTracker(1, self.lanes)
        entries = entries_of(Record(1, way, octets) for way, octets in said)
        placed = [tracker.place(row, entry.way, entry.piece) for row, entry in enumerate(entries)]
        self.names = [self.name(lane) for lane, _ in placed]
        self.broken = [row for row, (_, broken) in enumerate(placed) if broken]

    def name(self, index: int) -> str:
        """A lane with those above it."""
        lane = self.lanes.lanes[index]
        own = f"{lane.kind} {lane.name}"
        return own if lane.parent is None else f"{self.name(lane.parent)}/{own}"

    def series(self, kind: str, way: Way = ">") -> list[int]:
        """The figures that were there, one after another."""
        found: list[Series] = [each for each in self.lanes.series if (each.kind, each.way) == (kind, way)]
        return [value for each in found for _, value in each.points]

    @property
    def deliveries(self) -> list[Delivery]:
        return self.lanes.deliveries


def begin(way: Way, channel: int = 0, remote: int | None = None, **fields: Any) -> Said:
    said = {"next_outgoing_id": 0, "incoming_window": 100, "outgoing_window": 100, **fields}
    return way, frame("begin", channel=channel, remote_channel=remote, **said)


def attach(way: Way, role: bool, name: str = "l", handle: int = 0, channel: int = 0, **fields: Any) -> Said:
    if role is SENDER:
        fields = {"initial_delivery_count": 0, **fields}
    return way, frame("attach", channel=channel, name=name, handle=handle, role=role, **fields)


def flow(way: Way, channel: int = 0, **fields: Any) -> Said:
    said = {"incoming_window": 100, "next_outgoing_id": 0, "outgoing_window": 100, **fields}
    return way, frame("flow", channel=channel, **said)


def transfer(number: int | None, way: Way = ">", handle: int = 0, **fields: Any) -> Said:
    return way, frame("transfer", channel=0, handle=handle, delivery_id=number, delivery_tag=b"t", **fields)


def disposition(way: Way, role: bool, first: int, last: int | None = None, **fields: Any) -> Said:
    return way, frame("disposition", channel=0, role=role, first=first, last=last, **fields)


SESSION = (begin(">"), begin("<", remote=0))
LINK = (*SESSION, attach(">", SENDER, target=("target", {"address": "orders"})), attach("<", RECEIVER))
OPEN_LINK = (*LINK, flow("<", handle=0, delivery_count=0, link_credit=10, next_incoming_id=0))
BEFORE = len(OPEN_LINK)


def test_frames_are_in_the_lanes_of_connection_session_and_link() -> None:
    talk = Talk(
        (">", header()),
        (">", frame("open", container_id="a")),
        (">", frame("sasl-init", mechanism="ANONYMOUS")),
        begin(">", channel=3),
        begin("<", channel=5, remote=3),
        attach(">", SENDER, name="l", handle=1, channel=3),
        attach("<", RECEIVER, name="l", handle=7, channel=5),
        flow("<", channel=5),
        flow("<", channel=5, handle=7, delivery_count=0, link_credit=1),
        flow(">", channel=3, handle=9),
        ("<", frame("detach", channel=5, handle=7)),
        ("<", frame("detach", channel=5, handle=7)),
        ("<", frame("end", channel=5)),
        ("<", frame("end", channel=5)),
        (">", empty_frame()),
        (">", frame("close")),
    )
    connection, session = "connection 1", "connection 1/session 3"
    link = f"{session}/link l"
    assert talk.names == [
        *[connection] * 3,
        session,
        session,
        link,
        link,
        session,
        link,
        session,
        link,
        session,  # a handle that no link has any more
        session,
        f"{connection}/channel 5",  # a session that is over
        connection,
        connection,
    ]


def test_lane_of_an_unknown_channel_is_one_for_all_its_frames() -> None:
    talk = Talk(transfer(0), (">", raw_frame(b"\x40")), disposition("<", RECEIVER, 0))
    assert talk.names == ["connection 1/channel 0"] * 3
    assert talk.deliveries == []


def test_frame_that_cannot_be_read_is_in_the_lane_of_its_session() -> None:
    assert Talk(*SESSION, (">", raw_frame(b"\x40"))).names[-1] == "connection 1/session 0"


def test_second_begin_of_an_end_is_a_session_of_its_own() -> None:
    talk = Talk(
        begin(">"), begin("<", remote=0), begin("<", channel=1, remote=0), begin(">", channel=2, remote=9)
    )
    assert talk.names[1:] == [
        "connection 1/session 0",
        "connection 1/session 1",
        "connection 1/session 2",
    ]


@pytest.mark.parametrize(
    ("way", "role", "terminus", "address"),
    [
        (
            ">",
            SENDER,
            {"source": ("source", {"address": "mine"}), "target": ("target", {"address": "q"})},
            "q",
        ),
        (">", RECEIVER, {"source": ("source", {"address": "q"}), "target": ("target", {})}, "q"),
        ("<", SENDER, {"source": ("source", {"address": "made"})}, "made"),
        (">", SENDER, {}, None),
    ],
)
def test_address_of_a_link_is_that_of_the_node_that_was_dialled(
    way: Way, role: bool, terminus: dict[str, Any], address: str | None
) -> None:
    talk = Talk(*SESSION, attach(way, role, **terminus))
    assert talk.lanes.lanes[-1].address == address


def test_links_of_one_name_in_both_directions_are_two() -> None:
    talk = Talk(*SESSION, attach(">", SENDER, "l"), attach(">", RECEIVER, "l", 1), attach("<", SENDER, "l"))
    assert len([lane for lane in talk.lanes.lanes if lane.kind == "link"]) == 2


def test_link_that_is_attached_again_goes_on_in_its_lane() -> None:
    gone = (">", frame("detach", channel=0, handle=0)), ("<", frame("detach", channel=0, handle=0))
    talk = Talk(*OPEN_LINK, *gone, *LINK[2:], transfer(0))
    assert len([lane for lane in talk.lanes.lanes if lane.kind == "link"]) == 1
    assert talk.broken == [BEFORE + 4]  # its credit is new too


def test_delivery_is_a_thread_through_its_frames() -> None:
    talk = Talk(
        *OPEN_LINK,
        transfer(0, more=True),
        transfer(None, more=True),
        transfer(0),
        disposition("<", RECEIVER, 0, state=("accepted", {})),
        disposition(">", SENDER, 0, settled=True),
        disposition("<", RECEIVER, 0, settled=True),
    )
    [delivery] = talk.deliveries
    assert [(row - BEFORE, step) for row, step in delivery.steps] == [
        (0, "transfer"),
        (1, "transfer"),
        (2, "transfer"),
        (3, "disposition"),
        (4, "settled"),
    ]
    assert (delivery.number, delivery.tag, delivery.outcome, delivery.settled) == (0, b"t", "accepted", True)
    assert talk.names[BEFORE:] == [*["connection 1/session 0/link l"] * 5, "connection 1/session 0"]


def test_disposition_settles_a_range_of_deliveries() -> None:
    talk = Talk(
        *OPEN_LINK,
        *(transfer(number) for number in range(5)),
        disposition("<", RECEIVER, 1, 3, settled=True, state=("released", {})),
        disposition("<", SENDER, 0, settled=True),  # of what it sent itself: nothing
    )
    assert [each.settled for each in talk.deliveries] == [False, True, True, True, False]
    assert [each.outcome for each in talk.deliveries] == [None, "released", "released", "released", None]


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_range_is_the_same_by_its_numbers_and_by_the_deliveries(
    first: int, last: int, start: int, count: int
) -> None:
    """Whichever of the two is shorter is gone through; both hold serial numbers, which wrap."""
    numbers = [(start + n) % 2**32 for n in range(count)]
    size = (last - first + 2**31) % 2**32 - 2**31
    within = [n for n in numbers if 0 <= (n - first + 2**31) % 2**32 - 2**31 <= size]
    talk = Talk(*OPEN_LINK, *map(transfer, numbers), disposition("<", RECEIVER, first, last, settled=True))
    assert [each.number for each in talk.deliveries if each.settled] == within


def test_disposition_over_several_links_is_in_the_lane_of_the_session() -> None:
    talk = Talk(
        *OPEN_LINK,
        attach(">", SENDER, "m", 1),
        transfer(0),
        transfer(1, handle=1),
        disposition("<", RECEIVER, 0, 1, settled=True),
    )
    assert talk.names[-1] == "connection 1/session 0"
    assert all(each.settled for each in talk.deliveries)


def test_outcome_in_a_transaction_is_the_outcome() -> None:
    state = ("transactional-state", {"txn_id": b"1", "outcome": ("accepted", {})})
    talk = Talk(*OPEN_LINK, transfer(0), disposition("<", RECEIVER, 0, settled=True, state=state))
    assert talk.deliveries[0].outcome == "accepted"


def test_presettled_and_aborted_deliveries_are_settled() -> None:
    talk = Talk(
        *OPEN_LINK,
        transfer(0, settled=True, more=True),
        transfer(None),
        transfer(1, more=True),
        transfer(1, aborted=True, more=True),
        transfer(2),
    )
    assert [(each.settled, each.outcome) for each in talk.deliveries] == [
        (True, None),
        (True, "aborted"),
        (False, None),
    ]
    assert [step for _, step in talk.deliveries[0].steps] == ["settled", "transfer"]
    assert [step for _, step in talk.deliveries[1].steps] == ["transfer", "aborted"]


def test_transfer_that_belongs_to_nothing_is_no_delivery() -> None:
    talk = Talk(*OPEN_LINK, transfer(None), transfer(0, handle=9))
    assert talk.deliveries == []
    assert talk.names[-2:] == ["connection 1/session 0/link l", "connection 1/session 0"]


def test_credit_falls_with_deliveries_and_rises_with_flows() -> None:
    talk = Talk(
        *OPEN_LINK,
        transfer(0, more=True),
        transfer(None),
        transfer(1),
        flow("<", handle=0, delivery_count=1, link_credit=10),  # sent before it saw the second
        flow("<", handle=0),  # says nothing of credit
        flow(">", handle=0, delivery_count=11, link_credit=0),  # drained
        flow(">", handle=0),
    )
    assert talk.series("credit") == [10, 9, 8, 9, 0]
    assert talk.broken == []


def test_credit_may_come_before_the_attach_of_the_sender() -> None:
    talk = Talk(
        *SESSION,
        attach(">", RECEIVER),
        flow(">", handle=0, link_credit=2),
        attach("<", SENDER, initial_delivery_count=7),
        transfer(0, "<"),
        transfer(1, "<"),
        transfer(2, "<"),
    )
    assert talk.series("credit", "<") == [2, 1, 0]
    assert talk.broken == [7]


def test_delivery_beyond_all_credit_that_ever_was_is_a_mistake() -> None:
    taken_back = flow("<", handle=0, delivery_count=0, link_credit=0)
    talk = Talk(*OPEN_LINK, taken_back, *(transfer(number) for number in range(11)))
    assert talk.broken == [BEFORE + 1 + 10]  # ten may have been on their way when it was taken back


def test_credit_and_window_of_the_largest_size_do_not_wrap() -> None:
    most = 2**32 - 1
    talk = Talk(
        begin(">", incoming_window=most),
        begin("<", remote=0, incoming_window=most),
        attach(">", SENDER),
        attach("<", RECEIVER),
        flow("<", handle=0, delivery_count=0, link_credit=most, incoming_window=most, next_incoming_id=0),
        transfer(0),
    )
    assert talk.series("credit") == [most, most - 1]
    assert talk.series("window") == [most, most - 1]
    assert talk.broken == []


def test_window_falls_with_transfers_and_rises_with_flows() -> None:
    talk = Talk(
        begin(">", next_outgoing_id=2**32 - 1),
        begin("<", remote=0, incoming_window=3),
        attach(">", SENDER),
        attach("<", RECEIVER),
        flow("<", handle=0, delivery_count=0, link_credit=10, incoming_window=3),
        transfer(0),
        transfer(1),
        flow("<", incoming_window=3, next_incoming_id=0),  # has seen the first only
    )
    assert talk.series("window", ">") == [3, 2, 1, 2]
    assert talk.series("window", "<") == [100]


def test_transfers_before_the_other_begin_have_no_window_yet() -> None:
    talk = Talk(begin(">"), attach(">", SENDER), transfer(0), begin("<", remote=0, incoming_window=5))
    assert talk.series("window", ">") == [5]
    assert talk.broken == [2]
