"""Two engines back to back, driven at random: nothing is lost, doubled or reordered, and no number goes astray.

Each side does what it likes when it likes: opens, begins, attaches either way, grants, sends,
settles, drains, detaches, ends, closes; and a wire between them carries as many octets at a time
as it likes. Both are sound, so neither may ever blame the other. All serial numbers begin just
before 2**32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.engine_pairs import octets_of
from tests.scaled import scaled
from trio_amqp10.amqp10.engine import session_core as session_module
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import LinkAttached, SessionBegun
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.receiver import ReceiverLink
from trio_amqp10.amqp10.engine.sender import SenderLink
from trio_amqp10.amqp10.engine.session_windows import SessionWindows
from trio_amqp10.amqp10.engine.states import ConnectionState, LinkState, SessionState
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode, SenderSettleMode
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.delivery import IncomingDelivery, OutgoingDelivery
    from trio_amqp10.amqp10.engine.link import Link
    from trio_amqp10.amqp10.engine.session import Session

START = 2**32 - 3
NAMES = ("x", "y", "z")
SIZES = (0, 10, 600, 3000)
LIMITS = Limits(max_frame_size=512, incoming_window=7, channel_max=5, churn=None)

ATTACHED, DETACHED = LinkState.ATTACHED, LinkState.DETACHED
MAPPED = SessionState.MAPPED


class Side:
    """One engine, and all that it has been given to hold."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.sessions: list[Session] = []
        self.links: list[Link] = []
        self.wire = bytearray()
        """Octets on their way to this side."""

    def collect(self) -> None:
        while (event := self.connection.next_event()) is not None:
            if isinstance(event, SessionBegun) and event.session not in self.sessions:
                self.sessions.append(event.session)
            elif isinstance(event, LinkAttached) and event.link not in self.links:
                self.links.append(event.link)
            blame = getattr(event, "error", None)
            # Both may attach one name at once in two sessions; nothing else is anybody's fault.
            assert blame is None or blame.condition == "amqp:link:stolen", event
        self.connection.take_touched()

    def senders(self) -> list[SenderLink]:
        return [link for link in self.links if isinstance(link, SenderLink)]

    def receivers(self) -> list[ReceiverLink]:
        return [link for link in self.links if isinstance(link, ReceiverLink)]


def pick(items: list[Any], index: int) -> Any:
    """One of these, or None of none."""
    return items[index % len(items)] if items else None


sides = st.integers(0, 1)
index = st.integers(0, 7)


class Machine(RuleBasedStateMachine):
    """The model is a bag of messages: who sent them, who has them, what was said of them."""

    message_format = 0
    scale = 1
    """How much larger messages are than ``SIZES``."""

    def make(self, name: str) -> Connection:
        """An engine that is to be driven."""
        return Connection(name, limits=LIMITS, idle_timeout=None)

    def __init__(self) -> None:
        super().__init__()
        self.patches: list[Any] = [
            patch.object(session_module, "INITIAL_ID", START),
            patch.object(SessionWindows.__init__, "__defaults__", (START,)),
        ]
        for each in self.patches:
            each.start()
        self.sides = [Side(self.make("a")), Side(self.make("b"))]
        self.sent: dict[SenderLink, list[OutgoingDelivery]] = {}
        self.numbers: list[SenderLink] = []
        self.got: dict[int, list[IncomingDelivery]] = {}
        self.settled_here: set[OutgoingDelivery] = set()
        self.steps = 0
        self.closed = False

    # -- the wire ---------------------------------------------------------------------------

    def write(self, side: Side) -> None:
        octets = octets_of(side.connection)
        if octets:
            self.other(side).wire += octets

    def other(self, side: Side) -> Side:
        return self.sides[side is self.sides[0]]

    def read(self, side: Side, many: int | None = None) -> None:
        octets = bytes(side.wire[:many])
        del side.wire[:many]
        if octets:
            side.connection.receive_data(octets, 0.0)
        side.collect()
        self.take(side)

    def take(self, side: Side) -> None:
        """Look at what has come: whole, in order, once, and on the link that it was sent on."""
        for link in side.receivers():
            while link.queue:
                delivery = link.queue.popleft()
                number, count, size = (int(part) for part in delivery.payload[:24].split())
                assert len(delivery.payload) == size
                sender = self.numbers[number]
                assert (sender.name, sender.session.connection) == (link.name, self.other(side).connection)
                got = self.got.setdefault(number, [])
                assert count == len(got)
                assert all(each.link is link for each in got)
                assert delivery.tag == self.sent[sender][count].tag
                got.append(delivery)

    @rule(which=sides)
    def flush(self, which: int) -> None:
        self.write(self.sides[which])

    @rule(which=sides, many=st.integers(1, 700))
    def deliver(self, which: int, many: int) -> None:
        self.read(self.sides[which], many)

    @rule(answered=st.booleans())
    def exchange(self, answered: bool) -> None:
        for side in self.sides:
            self.write(side)
        for which, side in enumerate(self.sides):
            self.read(side)
            if answered:
                self.answer(which)

    @rule()
    def come_to_rest(self) -> None:
        """Until all is said: then both ends must agree."""
        for _ in range(1000):
            for side in self.sides:
                self.write(side)
            if not any(side.wire for side in self.sides):
                break
            for side in self.sides:
                self.read(side)
        else:
            raise AssertionError("they talk without end")
        for side in self.sides:
            if side.connection.state is ConnectionState.OPENED:
                for session in side.sessions:
                    self.agree(side, session)

    def agree(self, side: Side, session: Session) -> None:
        if session.state is not MAPPED:
            assert session.state not in (SessionState.END_SENT, SessionState.DISCARDING)
            return
        (peer,) = (
            s for s in self.other(side).sessions if s.channel == session.remote_channel and s.state is MAPPED
        )
        assert session.next_delivery_id == (peer.next_incoming_delivery_id or session.next_delivery_id)
        self.agree_on_windows(session, peer)
        live = [link for link in session.links if link.state is ATTACHED]
        assert {i for i, d in session.settlement.outgoing.items() if d.link in live} == {
            i for i, d in peer.settlement.incoming.items() if d.link.state is ATTACHED
        }
        for link in live:
            (theirs,) = (k for k in peer.links if (k.name, k.role) == (link.name, not link.role))
            if isinstance(link, SenderLink) and theirs.state is ATTACHED:
                assert link.credit == theirs.credit
                assert link.delivery_count == theirs.delivery_count
                number = self.numbers.index(link)
                assert len(self.got.get(number, [])) == len(self.sent[link])

    def agree_on_windows(self, session: Session, peer: Session) -> None:
        """What one end may send is what the other has room for."""
        assert session.windows.next_outgoing_id == peer.windows.next_incoming_id
        assert session.windows.remote_incoming_window == peer.windows.incoming_window
        assert not session.partials or not session.windows.remote_incoming_window

    # -- what either does -------------------------------------------------------------------

    @initialize(head_start=st.sampled_from([False, True, True, True]))
    def talk(self, head_start: bool) -> None:
        """Most of the time, begin where links can be attached."""
        if head_start:
            for which in (0, 1):
                self.open(which)
                self.begin(which)
                self.attach(which, 0, "x", True, 0, 2)
            for _ in range(4):
                self.exchange(True)
            for which in (0, 1):
                self.grant(which, 0, 9, False)
            self.exchange(True)

    @rule(which=sides)
    def open(self, which: int) -> None:
        connection = self.sides[which].connection
        if connection.state in (ConnectionState.START, ConnectionState.HDR_EXCH, ConnectionState.OPEN_RCVD):
            connection.open()

    @rule(which=sides)
    def begin(self, which: int) -> None:
        side = self.sides[which]
        # Where two begins cross, each needs a channel of the other's: no more than fit both ways.
        live = [s for each in self.sides for s in each.sessions if s.state is not SessionState.ENDED]
        if len(live) > LIMITS.channel_max or self.closed:
            return
        try:
            session = side.connection.session()
        except LocalProtocolError:
            return
        side.sessions.append(session)
        session.begin()

    @rule(which=sides)
    def answer(self, which: int) -> None:
        """As an adapter does: open, begin, attach where the peer was first."""
        side = self.sides[which]
        if side.connection.state is ConnectionState.OPEN_RCVD:
            side.connection.open()
        for session in side.sessions:
            if session.state is SessionState.BEGIN_RCVD:
                session.begin()
        for link in side.links:
            if link.state is LinkState.ATTACH_RCVD:
                self.start(link)

    def start(self, link: Link, rcv: int = 0, snd: int = 2) -> None:
        if isinstance(link, SenderLink):
            link.delivery_count = START
            self.numbers.append(link)
            self.sent[link] = []
        link.attach(
            source=Source(address="s"), target=Target(address="t"), rcv_settle_mode=rcv, snd_settle_mode=snd
        )

    @rule(
        which=sides,
        at=index,
        name=st.sampled_from(NAMES),
        sends=st.booleans(),
        rcv=st.sampled_from(ReceiverSettleMode),
        snd=st.sampled_from(SenderSettleMode),
    )
    def attach(self, which: int, at: int, name: str, sends: bool, rcv: int, snd: int) -> None:
        side = self.sides[which]
        session = pick([s for s in side.sessions if s.state in (MAPPED, SessionState.BEGIN_SENT)], at)
        if session is None:
            return
        try:
            session.free_handle()
            link = session.sender(name) if sends else session.receiver(name)
        except LocalProtocolError:
            return
        side.links.append(link)
        self.start(link, rcv, snd)

    @rule(which=sides, at=index, credit=st.integers(0, 9), drain=st.booleans())
    def grant(self, which: int, at: int, credit: int, drain: bool) -> None:
        link = pick([k for k in self.sides[which].receivers() if k.state is ATTACHED], at)
        if link is not None:
            link.set_credit(credit, drain=drain)

    @rule(which=sides, at=index, size=st.sampled_from(SIZES), settled=st.booleans(), times=st.integers(1, 5))
    def send(self, which: int, at: int, size: int, settled: bool, times: int) -> None:
        link = pick([k for k in self.sides[which].senders() if k.sendable()], at)
        while link is not None and link.sendable() and times:
            times -= 1
            sent = self.sent[link]
            length = 24 + size * self.scale
            head = b"%d %d %d " % (self.numbers.index(link), len(sent), length)
            octets = head.ljust(24) + b"x" * (length - 24)
            sent.append(link.send(octets, settled, message_format=self.message_format))

    @rule(which=sides, at=index, outcome=st.sampled_from(["accept", "release", "reject", "modify"]))
    def dispose(self, which: int, at: int, outcome: str) -> None:
        side = self.sides[which]
        waiting = [
            delivery
            for got in self.got.values()
            for delivery in got
            if delivery.link in side.links and delivery.state is None and delivery.link.state is ATTACHED
        ]
        delivery = pick(waiting, at)
        if delivery is not None:
            getattr(delivery, outcome)()

    @rule(which=sides, at=index)
    def settle(self, which: int, at: int) -> None:
        delivery = pick(
            [
                d
                for k in self.sides[which].senders()
                if k.state is ATTACHED
                for d in self.sent[k]
                if not d.settled
            ],
            at,
        )
        if delivery is not None:
            self.settled_here.add(delivery)
            delivery.settle()

    @rule(which=sides)
    def give_credit_back(self, which: int) -> None:
        for link in self.sides[which].senders():
            if link.state is ATTACHED and link.drain and not link.in_progress:
                link.drained()

    @rule(which=sides, at=index, closed=st.booleans())
    @precondition(lambda self: self.is_late(4))
    def detach(self, which: int, at: int, closed: bool) -> None:
        link = pick([k for k in self.sides[which].links if k.state is not LinkState.GONE], at)
        if link is not None:
            link.detach(closed=closed)

    @rule(which=sides, at=index)
    @precondition(lambda self: self.is_late(9))
    def end(self, which: int, at: int) -> None:
        session = pick([s for s in self.sides[which].sessions if s.state is not SessionState.ENDED], at)
        if session is not None:
            session.end()

    def is_late(self, every: int) -> bool:
        """Now and then: what ends things would otherwise leave nothing to look at."""
        self.steps += 1
        return self.steps % every == 0

    @rule(which=sides)
    @precondition(lambda self: self.is_late(40))
    def close(self, which: int) -> None:
        self.closed = True
        self.sides[which].connection.close()

    # -- what always holds ------------------------------------------------------------------

    @invariant()
    def numbers_are_never_negative(self) -> None:
        for side in self.sides:
            for session in side.sessions:
                assert session.windows.remote_incoming_window >= 0
                assert 0 <= session.windows.incoming_window <= LIMITS.incoming_window
            for link in side.links:
                assert link.credit >= 0
            assert side.connection.partial_octets >= 0

    @invariant()
    def nothing_is_kept_that_is_over(self) -> None:
        for side in self.sides:
            connection = side.connection
            if connection.state is not ConnectionState.OPENED:
                continue
            live = [s for s in side.sessions if s.state is not SessionState.ENDED]
            assert set(connection.channels.ours.values()) == set(live)
            assert set(connection.channels.theirs.values()) == {s for s in live if s.remote is not None}
            for session in live:
                attached = {k for k in side.links if k.session is session and k.state is not LinkState.GONE}
                if session.state in (MAPPED, SessionState.BEGIN_SENT):
                    # A link that was closed while we only detached is attached once more, to be closed.
                    again = set(session.links) - attached
                    assert attached <= set(session.links)
                    assert all(k.state is LinkState.DETACH_SENT and k.reported for k in again)
            assert {k for k in connection.names if k.handle >= 0} <= {k for s in live for k in s.links}

    @invariant()
    def outcomes_are_the_receivers(self) -> None:
        for number, got in self.got.items():
            for delivery, sent in zip(got, self.sent[self.numbers[number]], strict=False):
                if sent.settled and sent.state is not None:
                    assert sent.state == delivery.state
                elif sent.settled:
                    assert sent.sent_settled or sent in self.settled_here

    def teardown(self) -> None:
        try:
            self.come_to_rest()
            for side in self.sides:
                for link in side.links:
                    if link.state is LinkState.GONE and (link.closed or link.error is not None):
                        assert not any(d.link is link for d in link.session.settlement.outgoing.values())
        finally:
            for each in self.patches:
                each.stop()


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=scaled(60),
    phases=[Phase.generate],
    stateful_step_count=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
