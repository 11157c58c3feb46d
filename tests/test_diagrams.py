"""The diagrams of the manual say what the engine does: its tables, and what two engines send each other."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from docs.diagrams import states
from docs.diagrams.files import IMAGES, drawn
from docs.diagrams.sequences import SEQUENCES, Note, Sent
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.delivery import ACCEPTED
from trio_amqp10.amqp10.engine.events import LinkAttached
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.receiver import ReceiverLink
from trio_amqp10.amqp10.engine.states import CONNECTION, LINK, SESSION
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.spec.transport import Attach, Flow, ReceiverSettleMode, SenderSettleMode, Transfer
from trio_amqp10.tools.trace.frame_splitter import FrameSplitter

from .amqp10.engine.helpers import Pair

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.sender import SenderLink

PAYLOAD = b"\x00\x53\x75\xa0\x01x"
MADE = "run `python -m docs.diagrams`"
TABLES = {"connection-states": CONNECTION, "session-states": SESSION, "link-states": LINK}


def test_files_are_what_is_drawn() -> None:
    files = {path.name: path.read_text() for path in IMAGES.glob("*.svg")}
    assert files == drawn(), MADE


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", TABLES)
def test_state_diagram_shows_each_step_of_the_table_and_no_other(name: str, theme: str) -> None:
    text = (IMAGES / f"{name}-{theme}.svg").read_text()
    shown = set()
    for start, end, steps in re.findall(r"<title>(\w+) -&gt; (\w+): ([\w, ]+)</title>", text):
        shown |= {(start, step, end) for step in steps.split(", ")}
    assert shown == {
        (state.name, step.name, after.name)
        for state, row in TABLES[name].items()
        for step, after in row.items()
    }
    assert set(re.findall(r'font-weight="600"[^>]*>(\w+)</text>', text)) == {
        each.name for each in TABLES[name]
    }


class Conversation:
    """Two engines with a session and a link, and the frames that each has sent since they were open.

    Args:
        modes: the settle modes of the link.
        limits: of both.
        termini: what the two ends remember of the link, if anything.
    """

    def __init__(
        self,
        modes: tuple[SenderSettleMode, ReceiverSettleMode],
        *,
        limits: Limits | None = None,
        termini: tuple[SenderTerminus, ReceiverTerminus] | None = None,
    ) -> None:
        self.pair = Pair(Connection("a", limits=limits), Connection("b", limits=limits)).open()
        self.frames: list[tuple[str, bool]] = []
        self.performatives: list[tuple[Any, bool]] = []
        session = self.pair.a.session()
        session.begin()
        self.run()
        self.pair.answer = False
        fields: dict[str, Any] = {"source": Source(), "target": Target(address="q")}
        fields |= {"snd_settle_mode": modes[0], "rcv_settle_mode": modes[1]}
        self.sender: SenderLink = session.sender("x")
        if termini is not None:
            self.sender.terminus = termini[0]
        self.sender.attach(**fields)
        self.run()
        attached = next(e for e in self.pair.events[self.pair.b] if isinstance(e, LinkAttached))
        assert isinstance(attached.link, ReceiverLink)
        self.receiver = attached.link
        if termini is not None:
            self.receiver.terminus = termini[1]
        self.receiver.attach(**fields)
        self.run()

    def run(self) -> None:
        """Carry octets until there are no more, and note what they are."""
        while self._carry(back=False) | self._carry(back=True):
            pass

    def _carry(self, *, back: bool) -> bool:
        source, drain = (self.pair.b, self.pair.a) if back else (self.pair.a, self.pair.b)
        octets = source.data_to_send()
        if octets:
            performatives = [piece.performative for piece in FrameSplitter().feed(octets)]
            self.frames += [(type(each).__name__.lower(), back) for each in performatives]
            self.performatives += [(each, back) for each in performatives]
            drain.receive_data(octets, 0.0)
        for connection in (source, drain):
            self.pair.collect(connection)
        return bool(octets)

    def forget(self) -> None:
        """Begin to note anew."""
        self.frames.clear()
        self.performatives.clear()

    def give_credit(self, credit: int) -> None:
        self.receiver.set_credit(credit)
        self.run()


def frames_of(name: str) -> list[tuple[str, bool]]:
    """What a diagram shows: the name of each frame, and whether it goes back; the last connection, if it shows two."""
    rows = SEQUENCES[name].rows
    losses = [index for index, row in enumerate(rows) if isinstance(row, Note) and row.between]
    rows = [row for row in rows[losses[-1] if losses else 0 :] if isinstance(row, Sent)]
    return [(re.split("[:,]", row.words)[0], row.back) for row in rows]


MODES: dict[str, tuple[SenderSettleMode, ReceiverSettleMode]] = {
    "at-most-once": (SenderSettleMode.SETTLED, ReceiverSettleMode.FIRST),
    "at-least-once": (SenderSettleMode.UNSETTLED, ReceiverSettleMode.FIRST),
    "exactly-once": (SenderSettleMode.UNSETTLED, ReceiverSettleMode.SECOND),
}
PATHS = {
    "at-most-once": ["NEW", "SETTLED"],
    "at-least-once": ["NEW", "UNSETTLED", "SETTLED"],
    "exactly-once": ["NEW", "UNSETTLED", "OUTCOME", "SETTLED"],
}


def deliver(name: str) -> Conversation:
    """One delivery in the settle modes of a guarantee, accepted unless it is settled."""
    conversation = Conversation(MODES[name])
    conversation.give_credit(1)
    conversation.forget()
    delivery: Any = conversation.sender.send(PAYLOAD)
    conversation.run()
    incoming: Any = conversation.receiver.queue.popleft()
    if not delivery.settled:
        incoming.accept()
        conversation.run()
        assert delivery.state == ACCEPTED
    assert delivery.settled
    assert incoming.settled
    return conversation


def path_of(conversation: Conversation) -> list[str]:
    """The states that the sender saw, by what both sent and the steps of the diagram."""
    state, path = "NEW", ["NEW"]
    for performative, back in conversation.performatives:
        what = "TRANSFER" if isinstance(performative, Transfer) else "OUTCOME" if back else ""
        step = "_".join(
            filter(None, ["RECV" if back else "SEND", what, "SETTLED" if performative.settled else ""])
        )
        [state] = [
            after for (before, after), names in states.DELIVERY.items() if before == state and step in names
        ]
        path.append(state)
    return path


@pytest.mark.parametrize("name", MODES)
def test_engines_send_what_the_diagram_of_a_guarantee_shows(name: str) -> None:
    conversation = deliver(name)
    assert conversation.frames == frames_of(name)
    assert path_of(conversation) == PATHS[name]


def test_delivery_diagram_has_the_steps_of_all_guarantees_and_no_other() -> None:
    taken = {pair for path in PATHS.values() for pair in pairwise(path)}
    assert taken == set(states.DELIVERY)


def test_engines_send_what_the_diagram_of_credit_shows() -> None:
    conversation = Conversation(MODES["at-most-once"])
    conversation.forget()
    conversation.give_credit(4)
    assert conversation.sender.credit == 4
    for _ in range(2):
        conversation.sender.send(PAYLOAD)
    conversation.run()
    assert conversation.sender.credit == 2
    conversation.give_credit(4)
    assert conversation.sender.credit == 4
    assert conversation.frames == frames_of("credit")


def test_engines_send_what_the_diagram_of_windows_shows() -> None:
    limits = Limits(incoming_window=4, max_frame_size=512)
    conversation = Conversation(MODES["at-most-once"], limits=limits)
    conversation.give_credit(1)
    conversation.sender.send(b"\x00\x53\x75\xb0\x00\x00\x02\x58" + bytes(600))
    conversation.run()
    of_the_session = [
        (type(each).__name__.lower(), back)
        for each, back in conversation.performatives
        if not isinstance(each, Attach) and not (isinstance(each, Flow) and each.handle is not None)
    ]
    assert of_the_session == frames_of("windows")
    flow, _ = conversation.performatives[-1]
    assert (flow.next_incoming_id, flow.incoming_window) == (2, 4)


def test_engines_send_what_the_diagram_of_a_resumed_link_shows() -> None:
    termini = SenderTerminus(), ReceiverTerminus()
    first = Conversation(MODES["exactly-once"], termini=termini)
    first.give_credit(2)
    first.sender.send(PAYLOAD, tag=b"a")
    first.run()
    first.receiver.queue.popleft().accept()  # and what says so is lost
    first.sender.send(PAYLOAD, tag=b"b")  # and does not arrive
    for connection in (first.pair.a, first.pair.b):
        connection.transport_lost()
        first.pair.collect(connection)
    second = Conversation(MODES["exactly-once"], termini=termini)
    second.give_credit(2)
    attaches = [each for each, _ in second.performatives if isinstance(each, Attach)]
    assert [set(each.unsettled) for each in attaches] == [{b"a", b"b"}, {b"a"}]
    resumed = [name for name in second.frames if name[0] in ("attach", "transfer", "disposition")]
    assert resumed == frames_of("resume")
    assert [each.payload for each in second.receiver.queue] == [PAYLOAD]
