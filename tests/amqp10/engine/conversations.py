"""Conversations to be replayed: what a peer sends, and what we do in between.

A conversation is a function that makes an engine, and steps: octets of the peer's, or something
that we do to the ``App`` that holds the engine. However the octets of a step are cut, what the
engine tells and writes is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.engine_pairs import octets_of
from tests.naive.codec import Typed
from tests.naive.performatives import empty_frame, frame, header, raw_frame
from tests.sasl.frames import CountServer
from trio_amqp10 import sasl
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.layer_stack import Stack
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import ConnectionState, LinkState, SessionState
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.core.errors import AmqpError

from .helpers import BEGIN, flow

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.session import Session

Step = bytes | Callable[["App"], Any]
Conversation = tuple[Callable[[], Stack], list[Step]]


class App:
    """An engine, and all that came of it: events, octets, errors, deliveries."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.connection = stack.connection
        self.told: list[Any] = []
        self.failures: list[tuple[str, str]] = []
        self.octets = b""
        self.links: dict[str, Any] = {}
        self.sessions: list[Session] = []

    def feed(self, octets: bytes) -> None:
        """One read."""
        try:
            self.stack.receive_data(octets, 1.0)
        except AmqpError as failure:
            # Not its text: what a stranger is quoted with is as long as it was read.
            self.failures.append((type(failure).__name__, getattr(failure, "condition", "")))
        while (event := self.stack.next_event()) is not None:
            self.told.append(event_shape(event))
            link, session = getattr(event, "link", None), getattr(event, "session", None)
            if link is not None:
                self.links[link.name] = link
            if session is not None and session not in self.sessions:
                self.sessions.append(session)

    def settle(self) -> None:
        """The end of a step: what waits is written, what came is looked at."""
        self.octets += octets_of(self.stack) or b"."
        for name, link in sorted(self.links.items()):
            queue = [(d.delivery_id, d.tag, d.payload, d.settled) for d in getattr(link, "queue", ())]
            self.told.append((name, link.state.name, link.credit, link.delivery_count, queue))
        self.told.append((self.connection.state.name, [s.state.name for s in self.sessions]))
        self.told += self.failures
        self.failures.clear()


def event_shape(event: Any) -> tuple[Any, ...]:
    """An event without the identity of its objects, nor what they become later, nor the text for a human."""
    parts: list[Any] = [type(event).__name__]
    for name in type(event).__slots__:
        value = getattr(event, name)
        if name == "session":
            value = (value.channel, value.remote_channel)
        elif name == "link":
            value = (value.name, value.role, value.session.channel)
        elif name == "reason":
            continue
        parts.append((name, repr(value)))
    return tuple(parts)


def replay(
    conversation: Conversation, cut: Callable[[int, bytes], list[bytes]] | None = None
) -> tuple[list[Any], bytes]:
    """What is told and written, each step's octets cut by ``cut(number of the step, octets)``."""
    make, steps = conversation
    app = App(make())
    for number, step in enumerate(steps):
        if isinstance(step, bytes):
            for piece in cut(number, step) if cut else [step]:
                app.feed(piece)
        else:
            step(app)
        app.settle()
    return app.told, app.octets


# -- the beginnings -----------------------------------------------------------------------------------

OPEN = frame("open", container_id="peer", max_frame_size=1024)
AMQP = header() + OPEN
CLOSE = frame("close")
USERS = {"guest": "guest-secret"}
INIT = frame("sasl-init", mechanism="PLAIN", initial_response=b"\0guest\0guest-secret")


async def _never(user: str, password: str) -> bool:
    raise AssertionError


def accepting(limits: Limits | None = None) -> Callable[[], Stack]:
    return lambda: Stack(Connection("engine", limits=limits), 0.0, accepting=True)


def secured(*, verify: bool = False, count: bool = False) -> Callable[[], Stack]:
    if count:
        server = sasl.Server(mechanisms=[CountServer(2)])
    else:
        server = sasl.Server(None, verify=_never) if verify else sasl.Server(USERS)

    def make() -> Stack:
        return Stack(
            Connection("engine"),
            0.0,
            accept_sasl=lambda: sasl.SaslServer(server.offer(secure=True)),
            accept_plain=False,
            accepting=True,
        )

    return make


def pipelined(*, secure: bool = False, limits: Limits | None = None) -> Callable[[], Stack]:
    """A dialler that has opened, begun, and attached a sender "out" and a receiver "in"."""

    def make() -> Stack:
        connection = Connection("engine", limits=limits)
        client = sasl.SaslClient([sasl.Plain("guest", "guest-secret")]) if secure else None
        stack = Stack(connection, 0.0, sasl=client)
        connection.open()
        session = connection.session()
        session.begin()
        session.sender("out").attach(source=Source(), target=Target(address="q"))
        receiver = session.receiver("in")
        receiver.attach(source=Source(address="q"), target=Target())
        receiver.set_credit(10)
        return stack

    return make


def error(condition: str) -> tuple[str, dict[str, Any]]:
    return ("error", {"condition": condition, "description": "so it is"})


def transfer(number: int, **fields: Any) -> bytes:
    payload = fields.pop("payload", b"payload")
    usual = {"handle": 1, "delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0}
    return frame("transfer", payload=payload, **{**usual, **fields})


def end(app: App) -> None:
    app.sessions[0].end()


def reopen(app: App) -> None:
    app.connection.open()


def send(app: App) -> None:
    app.links["out"].send(b"x" * 1500)
    app.links["out"].send(b"y", settled=True)


def accept(app: App) -> None:
    queue = app.links["in"].queue
    while queue:
        queue.popleft().accept()


BOTH = (
    AMQP
    + frame("begin", remote_channel=0, **BEGIN)
    + frame("attach", name="out", handle=0, role=True, target=("target", {"address": "q"}))
    + frame("attach", name="in", handle=1, role=False, initial_delivery_count=0, source=("source", {}))
    + flow(handle=0, delivery_count=0, link_credit=5)
)
PEERS = AMQP + frame("begin", channel=4, **BEGIN)
OUT = frame("attach", channel=4, name="x", handle=2, role=True, source=("source", {"address": "q"}))
IN = frame("attach", channel=4, name="y", handle=3, role=False, initial_delivery_count=0)


def answer(app: App) -> None:
    if app.connection.state is ConnectionState.OPEN_RCVD:
        app.connection.open()
    for session in app.sessions:
        if session.state is SessionState.BEGIN_RCVD:
            session.begin()
    for link in app.links.values():
        if link.state is LinkState.ATTACH_RCVD:
            link.attach(source=link.remote.source, target=link.remote.target)
        if hasattr(link, "queue"):
            link.set_credit(3)


CONVERSATIONS: dict[str, Conversation] = {
    "open and close": (accepting(), [AMQP, reopen, CLOSE]),
    "open and close in one read": (accepting(), [AMQP + CLOSE + b"garbage"]),
    "all of a session in one read": (accepting(), [PEERS + OUT + IN + frame("end", channel=4) + CLOSE]),
    "detached before it was answered": (
        accepting(),
        [PEERS + IN + frame("detach", channel=4, handle=3, closed=True) + IN, answer],
    ),
    "answered, with credit, a link stolen": (
        accepting(),
        [
            PEERS + OUT + IN + flow(channel=4, handle=2, link_credit=2, next_incoming_id=None),
            answer,
            frame("attach", channel=4, name="y", handle=9, role=False, initial_delivery_count=0)
            + transfer(0, channel=4, handle=3),
            CLOSE,
        ],
    ),
    "sending": (
        pipelined(),
        [
            BOTH,
            send,
            frame("disposition", role=True, first=0, last=0, settled=True, state=("accepted", {}))
            + empty_frame(),
            flow(next_incoming_id=3, handle=0, delivery_count=2, link_credit=1, drain=True, echo=True),
            frame("detach", handle=0, closed=True, error=error("amqp:not-found")) + frame("end"),
            CLOSE,
        ],
    ),
    "receiving": (
        pipelined(),
        [
            BOTH + transfer(0, settled=True) + transfer(1, payload=b"\x00\x53\x77\x40"),
            accept,
            transfer(2, more=True) + frame("transfer", handle=1, more=True, payload=b"and") + empty_frame(),
            frame("transfer", handle=1, payload=b"end") + transfer(3, symbolic=True, pad=True, doff=4),
            accept,
            frame("disposition", role=False, first=1, last=3, settled=True) + frame("end"),
        ],
    ),
    "receiver settles second": (
        pipelined(),
        [
            BOTH + transfer(0, rcv_settle_mode=1) + transfer(1, list_code=0xD0),
            accept,
            frame("disposition", role=False, first=0, settled=True, state=("accepted", {})),
        ],
    ),
    "aborted": (
        pipelined(),
        [BOTH + transfer(0, more=True), frame("transfer", handle=1, aborted=True) + transfer(1), accept],
    ),
    "detached and ended with errors": (
        pipelined(),
        [
            BOTH + frame("detach", handle=0, closed=True, error=error("amqp:link:redirect")),
            frame("end", error=error("amqp:internal-error")),
            frame("close", error=error("amqp:connection:forced")),
        ],
    ),
    "ended from both ends": (pipelined(), [BOTH, end, transfer(0) + transfer(1) + frame("end") + CLOSE]),
    "windows used up": (
        pipelined(limits=Limits(incoming_window=2)),
        [BOTH + transfer(0) + transfer(1) + transfer(2) + transfer(3) + frame("end") + CLOSE],
    ),
    "credit used up": (pipelined(), [BOTH + b"".join(transfer(n, payload=b"") for n in range(12)), CLOSE]),
    "delivery-id out of order": (pipelined(), [BOTH + transfer(0) + transfer(7) + frame("end") + CLOSE]),
    "a field of a wrong type": (
        pipelined(),
        [BOTH + transfer(0, settled=Typed("string", "?")) + transfer(1) + frame("end") + CLOSE],
    ),
    "octets that are no value": (pipelined(), [BOTH + raw_frame(b"\x00\x53\x13\xc0\x02\x01\xff") + CLOSE]),
    "a second open": (pipelined(), [BOTH + OPEN + transfer(0) + CLOSE]),
    "an unmapped channel": (pipelined(), [BOTH + frame("end", channel=5) + frame("end", channel=6) + CLOSE]),
    "a frame that is too large": (pipelined(), [BOTH + b"\x7f\xff\xff\xff" + CLOSE]),
    "a frame type of another layer": (pipelined(), [BOTH + INIT + CLOSE]),
    "an open that will not do": (
        pipelined(),
        [header() + frame("open", container_id="p", max_frame_size=9) + CLOSE],
    ),
    "a stranger": (accepting(), [b"GET / HTTP/1.1\r\n\r\n"]),
    "a stranger who answers": (pipelined(), [b"AMQP\x00\x00\x09\x01" + OPEN]),
    "SASL, accepted": (secured(), [header("sasl") + INIT + PEERS, reopen, CLOSE]),
    "SASL, in rounds": (
        secured(count=True),
        [
            header("sasl") + frame("sasl-init", mechanism="X-COUNT"),
            frame("sasl-response", response=b"1") + frame("sasl-response", response=b"2") + AMQP,
        ],
    ),
    "SASL, refused": (
        secured(),
        [
            header("sasl") + frame("sasl-init", mechanism="PLAIN", initial_response=b"\0a\0b") + AMQP,
            lambda app: app.stack.handle_timer(2.0),
        ],
    ),
    "SASL, asked": (
        secured(verify=True),
        [header("sasl") + INIT + AMQP, lambda app: app.stack.answer(True, 1.0), b"", CLOSE],
    ),
    "SASL, skipped": (secured(), [AMQP]),
    "SASL, irrecoverable": (secured(), [header("sasl") + empty_frame() + INIT]),
    "SASL, dialling": (
        pipelined(secure=True),
        [
            header("sasl")
            + frame("sasl-mechanisms", sasl_server_mechanisms=["SCRAM-SHA-256", "PLAIN"])
            + frame("sasl-outcome", code=0)
            + BOTH
            + transfer(0),
            accept,
            CLOSE,
        ],
    ),
    "SASL, downgraded": (pipelined(secure=True), [AMQP]),
    "SASL, refused by the server": (
        pipelined(secure=True),
        [
            header("sasl")
            + frame("sasl-mechanisms", sasl_server_mechanisms=["PLAIN"])
            + frame("sasl-outcome", code=1)
            + AMQP,
        ],
    ),
}
