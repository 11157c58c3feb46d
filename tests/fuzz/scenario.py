"""Scripts for a container and for a program: frames that make sense in their order, until some do not.

The author of a script knows which sessions and links each connection has, what they are called, and what ids the
container will give: so most frames get far in. Then fields get other values, frames go missing, come twice, or on other
channels, and a few octets are broken (``mutate``).

Only the standard library and the second codec; the same random numbers give the same script.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.naive.codec import NaiveError, Typed
from tests.naive.performatives import COMPOSITES, frame, header, raw_frame, sections

from . import mutate
from .script import CONNECTIONS, Act, Move, pack

if TYPE_CHECKING:
    from random import Random

ADDRESSES: Final = (
    "q",
    "q",
    "q",
    "t",
    "f",
    "limited",
    "group",
    "single",
    "only",
    "$management",
    "new",
    "answers",
)
PROGRAM_NAMES: Final = ("sender", "receiver")
_NAMES: Final = ("one", "two", "three")
_PEERS: Final = ("ada", "ada", "bob", "")
_SOURCES: Final = ("node",) * 8 + ("dynamic", "null")
_TARGETS: Final = ("node",) * 5 + ("dynamic", "null", "control")
_SIZES: Final = (None,) * 8 + (0, 20, 1000)
_POLICIES: Final = (None, None, None, "link-detach", "session-end", "connection-close", "never", "x")
_NUMBERS: Final = (0, 0, 1, 1, 2, 3, 7, 100, 2**31 - 1, 2**31, 2**32 - 1)
_ODD: Final = (
    Typed("null"),
    Typed("uint", 0),
    Typed("uint", 2**32 - 1),
    Typed("ushort", 4),
    Typed("ubyte", 9),
    Typed("ulong", 2**64 - 1),
    Typed("boolean", True),
    Typed("boolean", False),
    Typed("string", ""),
    Typed("string", "q"),
    Typed("symbol", "amqp:accepted:list"),
    Typed("symbol", "never"),
    Typed("binary", b""),
    Typed("binary", b"0" * 33),
    Typed("list", ()),
    Typed("map", ()),
    Typed("map", ((Typed("symbol", "k"), Typed("null")), (Typed("string", "k"), Typed("null")))),
    Typed("described", (Typed("ulong", 0x24), Typed("list", ()))),
    Typed("described", (Typed("ulong", 0x34), Typed("list", (Typed("binary", b"?"),)))),
    Typed("described", (Typed("symbol", "x:y"), Typed("list", ()))),
)
_OUTCOMES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("accepted", {}),
    ("accepted", {}),
    ("released", {}),
    ("rejected", {}),
    ("rejected", {"error": ("error", {"condition": "x:bad", "description": "d"})}),
    ("modified", {"delivery_failed": True}),
    ("modified", {"undeliverable_here": True}),
    ("modified", {"delivery_failed": True, "undeliverable_here": True, "message_annotations": {"x-a": 1}}),
    ("received", {"section_number": 0, "section_offset": 3}),
)
_ERROR: Final = ("error", {"condition": "amqp:internal-error", "description": "why"})


@dataclass
class _Link:
    channel: int
    handle: int
    role: bool
    address: str | None
    kind: str
    open_delivery: bool = False


@dataclass
class _Peer:
    """What the author believes of one connection."""

    opened: bool = False
    sessions: dict[int, int] = field(default_factory=dict[int, int])  # channel: next delivery-id
    links: list[_Link] = field(default_factory=list[_Link])


class Author:
    """Writes a script.

    Args:
        random: what decides everything.
        wrong: how likely it is that something in a frame is.
    """

    def __init__(self, random: Random, wrong: float) -> None:
        self.random = random
        self.wrong = wrong
        self.peers = [_Peer() for _ in range(CONNECTIONS)]
        self.moves: list[Move] = []
        self.tags = 0
        self.favourite = random.choice(ADDRESSES)

    def address(self) -> str:
        """Mostly one, so that messages meet those who take them."""
        return self.favourite if self.random.random() < 0.7 else self.random.choice(ADDRESSES)

    # -- frames -----------------------------------------------------------------------------

    def frame(self, kind: str, /, *, channel: int, payload: bytes = b"", **fields: Any) -> bytes:
        """A frame, perhaps with another value in one of its fields, or on another channel."""
        random = self.random
        if random.random() < self.wrong:
            known = [each for each, _, _ in COMPOSITES[kind].fields]
            fields[random.choice(known)] = random.choice(_ODD)
        if random.random() < self.wrong / 4:
            channel = random.choice((0, 1, 2, 63, 64, 65_535))
        try:
            return frame(kind, channel=channel, payload=payload, **fields)
        except (NaiveError, struct.error, OverflowError):
            return frame("flow", channel=channel)

    def put(self, connection: int, octets: bytes) -> None:
        random = self.random
        if random.random() < self.wrong / 3:
            octets = mutate.accident(random, octets)
        act = Act.WRITE if random.random() < 0.3 else Act.SAY
        for _ in range(2 if random.random() < self.wrong / 6 else 1):
            self.moves.append(Move(act, connection, octets))

    def message(self) -> bytes:
        random = self.random
        parts: list[tuple[str, Any]] = []
        if random.random() < 0.4:
            parts.append(
                (
                    "header",
                    {
                        "durable": random.random() < 0.5,
                        "priority": Typed("ubyte", random.randrange(10)),
                        "ttl": random.choice((None, None, 1, 60_000)),
                        "delivery_count": random.choice((None, 1, 2**32 - 1)),
                    },
                )
            )
        if random.random() < 0.6:
            parts.append(
                (
                    "properties",
                    {
                        "message_id": random.choice((None, "m", 7)),
                        "to": random.choice((None, *ADDRESSES)),
                        "reply_to": random.choice((None, *ADDRESSES, "nowhere", "$me")),
                        "correlation_id": random.choice((None, "c")),
                        "group_id": random.choice((None, "a", "b")),
                        "absolute_expiry_time": random.choice((None, None, None, 1)),
                    },
                )
            )
        if random.random() < 0.4:
            parts.append(("application-properties", self.request()))
        parts.append(
            random.choice(
                (
                    ("data", b"octets"),
                    ("data", b"o" * random.choice((0, 100, 3000))),
                    (
                        "amqp-value",
                        random.choice((None, "text", {"max-length": 1}, {"attributeNames": ["name"]})),
                    ),
                    ("amqp-value", {"overflow": "reject", "max-length": 2, "dead-letter": "q"}),
                    ("amqp-sequence", [1, "two"]),
                )
            )
        )
        return sections(*parts)

    def request(self) -> dict[str, Any]:
        random = self.random
        return {
            "operation": random.choice(("CREATE", "READ", "UPDATE", "DELETE", "QUERY", "GET-TYPES", "x")),
            "type": random.choice(("queue", "topic", "connection", "link", "x")),
            "name": random.choice(("managed", "managed", "limited", "x")),
        }

    def state(self) -> Any:
        """What becomes of a delivery, perhaps in a transaction."""
        random = self.random
        outcome = random.choice(_OUTCOMES)
        if random.random() < 0.25:
            inner = outcome if random.random() < 0.8 else None
            return ("transactional-state", {"txn_id": self.txn_id(), "outcome": inner})
        return outcome

    def txn_id(self) -> bytes:
        """One that the container may have given: see ``peaceful.numbered``."""
        return uuid.UUID(int=self.random.choice((1, 1, 1, 2, 2, 3, 4))).bytes

    # -- moves of a peer --------------------------------------------------------------------

    def open(self, connection: int) -> None:
        random, peer = self.random, self.peers[connection]
        peer.opened = True
        octets = header("sasl") + frame("sasl-init", mechanism="ANONYMOUS") if random.random() < 0.2 else b""
        octets += header() + self.frame(
            "open",
            channel=0,
            container_id=random.choice(_PEERS),
            max_frame_size=random.choice((None, 512, 65_536)),
            channel_max=random.choice((None, 0, 63)),
            idle_time_out=random.choice((None, None, 5000)),
            desired_capabilities=["sole-connection-for-container"] if random.random() < 0.02 else None,
        )
        self.put(connection, octets)
        if random.random() < 0.95:
            self.begin(connection)

    def begin(self, connection: int) -> None:
        random = self.random
        peer = self.peers[connection]
        free = [each for each in (0, 1, 2) if each not in peer.sessions]
        channel = free[0] if free and random.random() < 0.97 else random.choice((0, 1, 2))
        peer.sessions[channel] = first = random.choice((0, 0, 0, 2**32 - 2))
        window = random.choice((1, 5, 100, 100, 100, 2**31 - 1))
        octets = self.frame(
            "begin", channel=channel, next_outgoing_id=first, incoming_window=window, outgoing_window=100
        )
        self.put(connection, octets)
        for _ in range(random.choice((1, 1, 2))):
            self.attach(connection)

    def attach(self, connection: int) -> None:
        random, peer = self.random, self.peers[connection]
        channel = self.channel(peer)
        role = random.random() < 0.5
        kind = random.choice(_SOURCES if role else _TARGETS)
        address = self.address() if kind == "node" else None
        taken = {each.handle for each in peer.links if each.channel == channel}
        handle = (
            min({0, 1, 2, 3, 4} - taken, default=0) if random.random() < 0.97 else random.choice((0, 1, 256))
        )
        link = _Link(channel, handle, role, address, kind)
        peer.links.append(link)
        fields: dict[str, Any] = {
            "source": ("source", self.source(link)),
            "target": self.target(link),
            "initial_delivery_count": None if role else random.choice(_NUMBERS),
            "snd_settle_mode": random.choice((None, 0, 1, 2)),
            "rcv_settle_mode": random.choice((None, None, 0, 1)),
            "max_message_size": random.choice(_SIZES),
            "unsettled": random.choice((None, None, None, {}, self.unsettled())),
            "incomplete_unsettled": random.choice((None,) * 15 + (True,)),
            "desired_capabilities": random.choice((None, None, ["shared"], ["shared", "global"])),
            "properties": random.choice((None, None, {"paired": True})),
        }
        name = random.choice(_NAMES)
        self.put(
            connection,
            self.frame("attach", channel=channel, name=name, handle=link.handle, role=role, **fields),
        )
        if role:
            self.flow(connection, link)
        elif kind == "control":
            self.control(connection, link)

    def unsettled(self) -> dict[Any, Any]:
        random = self.random
        tags = [struct.pack(">I", random.randrange(4)) for _ in range(random.choice((1, 2)))]
        return {tag: random.choice((None, *_OUTCOMES)) for tag in tags}

    def terminus(self, address: str | None, *, dynamic: bool) -> dict[str, Any]:
        random = self.random
        policy = random.choice(_POLICIES)
        lifetime = random.choice(
            (
                "delete-on-close",
                "delete-on-no-links",
                "delete-on-no-messages",
                "delete-on-no-links-or-messages",
            )
        )
        return {
            "address": address,
            "durable": random.choice((None, None, 0, 1, 2)),
            "expiry_policy": None if policy is None else Typed("symbol", policy),
            "timeout": random.choice((None, None, 0, 1, 60)),
            "dynamic": dynamic or None,
            "dynamic_node_properties": {"lifetime-policy": (lifetime, {})}
            if dynamic and random.random() < 0.6
            else None,
            "capabilities": random.choice((None, None, ["queue"], ["topic", "shared"])),
        }

    def source(self, link: _Link) -> dict[str, Any]:
        random = self.random
        if not link.role:
            return {"address": random.choice((None, "here"))}
        fields = self.terminus(link.address, dynamic=link.kind == "dynamic")
        if random.random() < 0.2:
            fields["filter"] = random.choice(
                (
                    {"s": ("apache.org:selector-filter:string", "n > 1 AND x LIKE 'a%'")},
                    {"l": ("apache.org:no-local-filter:list", [])},
                    {"j": ("x:unknown", 1)},
                    {"s": ("apache.org:selector-filter:string", random.choice(("broken (", "n")))},
                )
            )
        fields["distribution_mode"] = random.choice((None,) * 20 + ("copy", "copy", "move", "x"))
        fields["default_outcome"] = random.choice((None, None, *_OUTCOMES[:7]))
        fields["outcomes"] = random.choice((None, ["amqp:accepted:list"]))
        return fields

    def target(self, link: _Link) -> Any:
        if link.kind == "control":
            return ("coordinator", {"capabilities": ["amqp:local-transactions"]})
        if link.role:
            return ("target", {"address": self.random.choice((None, "answers", "answers"))})
        return ("target", self.terminus(link.address, dynamic=link.kind == "dynamic"))

    def flow(self, connection: int, link: _Link) -> None:
        random, peer = self.random, self.peers[connection]
        fields = {
            "next_incoming_id": 0 if random.random() < 0.97 else random.choice((1, None)),
            "incoming_window": random.choice((100, 100, 100, 1, 0, 2**31 - 1)),
            "next_outgoing_id": peer.sessions.get(link.channel, 0),
            "outgoing_window": 100,
            "handle": random.choice((link.handle, link.handle, link.handle, None)),
            "delivery_count": random.choice((None, 0, 0, 1, 2**32 - 1)),
            "link_credit": random.choice((1, 2, 10, 100, 0, 2**32 - 1)),
            "drain": random.choice((None, None, True)),
            "echo": random.choice((None, None, True)),
        }
        self.put(connection, self.frame("flow", channel=link.channel, **fields))

    def transfer(self, connection: int, link: _Link, payload: bytes | None = None, **fields: Any) -> None:
        random, peer = self.random, self.peers[connection]
        payload = self.message() if payload is None else payload
        pieces = [payload]
        if random.random() < 0.15 and len(payload) > 2:
            half = len(payload) // 2
            pieces = [payload[:half], payload[half:]]
        number = peer.sessions.get(link.channel, 0)
        for place, piece in enumerate(pieces):
            fields["more"] = place < len(pieces) - 1 or random.random() < 0.03 or None
            if place == 0 and not link.open_delivery:
                self.tags += 1
                fields |= {
                    "delivery_id": number,
                    "delivery_tag": struct.pack(
                        ">I", self.tags if random.random() < 0.9 else random.randrange(3)
                    ),
                    "message_format": random.choice((0, 0, None)),
                    "resume": random.choice((None,) * 9 + (True,)),
                }
                fields.setdefault("settled", random.choice((None, None, True)))
                fields.setdefault("rcv_settle_mode", random.choice((None, None, None, 1)))
                if random.random() < 0.15:
                    fields["state"] = ("transactional-state", {"txn_id": self.txn_id()})
            if random.random() < 0.03:
                fields["aborted"] = True
            link.open_delivery = bool(fields["more"])
            self.put(
                connection,
                self.frame("transfer", channel=link.channel, handle=link.handle, payload=piece, **fields),
            )
            fields = {}
        peer.sessions[link.channel] = (number + 1) % 2**32

    def control(self, connection: int, link: _Link) -> None:
        random = self.random
        what: Any = random.choice(
            (
                ("declare", {}),
                ("declare", {}),
                ("discharge", {"txn_id": self.txn_id(), "fail": False}),
                ("discharge", {"txn_id": self.txn_id(), "fail": True}),
            )
        )
        settled = random.random() < 0.04 or None
        self.transfer(connection, link, sections(("amqp-value", what)), settled=settled)

    def dispose(self, connection: int, channel: int) -> None:
        random = self.random
        first = random.choice((0, 0, 0, 1, 2, 5, 2**32 - 2))
        last = random.choice((None, first, (first + 1) % 2**32, (first + 3) % 2**32, 2**31 - 1))
        fields = {"role": random.random() < 0.8, "first": first, "last": last}
        state = random.choice((None, self.state(), self.state(), self.state()))
        settled = random.choice((None, True, True))
        self.put(
            connection, self.frame("disposition", channel=channel, **fields, state=state, settled=settled)
        )

    def channel(self, peer: _Peer) -> int:
        return self.random.choice(list(peer.sessions) or [0])

    def step(self, connection: int | None = None) -> None:
        """The next move of a peer, of any if none is given."""
        random = self.random
        if connection is None:
            connection = random.choice((0, 0, 0, 0, 0, 0, 1, 1, 2, 3))
        peer = self.peers[connection]
        if not peer.opened or (not peer.sessions and random.random() < 0.9):
            (self.begin if peer.opened else self.open)(connection)
            return
        chance = random.random()
        link = random.choice(peer.links) if peer.links else None
        if chance < 0.12 or link is None:
            self.attach(connection)
        elif chance < 0.50:
            if link.role:
                self.flow(connection, link)
            elif link.kind == "control" and random.random() < 0.9:
                self.control(connection, link)
            else:
                self.transfer(connection, link)
        elif chance < 0.72:
            self.dispose(connection, link.channel)
        elif chance < 0.80:
            error = random.choice((None, None, _ERROR))
            closed = random.choice((None, True, True))
            self.put(
                connection,
                self.frame("detach", channel=link.channel, handle=link.handle, closed=closed, error=error),
            )
            if link in peer.links and random.random() < 0.9:
                peer.links.remove(link)
        elif chance < 0.82:
            self.begin(connection)
        elif chance < 0.84:
            channel = self.channel(peer)
            self.put(connection, self.frame("end", channel=channel, error=random.choice((None, _ERROR))))
            peer.sessions.pop(channel, None)
            peer.links = [each for each in peer.links if each.channel != channel]
        elif chance < 0.88:
            self.leave(connection)
        elif chance < 0.91:
            self.moves.append(
                Move(Act.CLOCK, 0, struct.pack(">I", random.choice((1, 1, 500, 500, 3000, 20_000, 130_000))))
            )
        elif chance < 0.97:
            self.use(connection, link)
        else:
            self.put(connection, raw_frame(b"", channel=random.choice((0, 0, 5))))

    def use(self, connection: int, link: _Link) -> None:
        """What a good peer does most: several messages, or credit, and what was got is settled."""
        if link.role:
            fields = {
                "next_incoming_id": 0,
                "incoming_window": 1000,
                "next_outgoing_id": 0,
                "outgoing_window": 100,
            }
            self.put(
                connection,
                self.frame(
                    "flow",
                    channel=link.channel,
                    **fields,
                    handle=link.handle,
                    delivery_count=0,
                    link_credit=20,
                ),
            )
            self.dispose(connection, link.channel)
            return
        for _ in range(self.random.choice((2, 5))):
            if link.kind == "control":
                self.control(connection, link)
            else:
                self.transfer(connection, link)

    def leave(self, connection: int) -> None:
        random = self.random
        way = random.randrange(4)
        if way == 0:
            self.put(connection, self.frame("close", channel=0, error=random.choice((None, _ERROR))))
        else:
            self.moves.append(Move((Act.CUT, Act.EOF, Act.DEAF)[way - 1], connection))
        if way != 3:
            self.peers[connection] = _Peer()
            if way in (0, 2):
                self.moves.append(Move(Act.CUT, connection))


def against_container(random: Random) -> bytes:
    """A script of up to four peers."""
    author = Author(random, random.choice((0.0, 0.02, 0.05, 0.15)))
    for _ in range(random.choice((5, 10, 20, 40))):
        author.step()
    return pack(author.moves)


def against_program(random: Random) -> bytes:
    """A script of one peer, that a program has dialled: see ``program`` for what that does."""
    author = Author(random, random.choice((0.0, 0.03, 0.1)))
    author.moves.append(Move(Act.SAY, 0, header() + author.frame("open", channel=0, container_id="peer")))
    peer = author.peers[0]
    peer.opened = True
    peer.sessions[0] = 0
    author.put(
        0,
        author.frame(
            "begin", channel=0, remote_channel=0, next_outgoing_id=0, incoming_window=100, outgoing_window=100
        ),
    )
    for _ in range(random.choice((3, 8, 20))):
        _answer(author, peer)
    return pack([move._replace(connection=0) for move in author.moves])


def _answer(author: Author, peer: _Peer) -> None:
    random = author.random
    if random.random() < 0.5 and len(peer.links) < 8:
        handle = len(peer.links)
        # Links without a name of their own are named by a fresh UUID: see ``stage.numbered``.
        unnamed = tuple(str(uuid.UUID(int=number)) for number in range(1, 9))
        name = random.choice((*PROGRAM_NAMES, *PROGRAM_NAMES, *unnamed))
        role = random.random() < 0.5 if name in unnamed else name != "receiver"
        link = _Link(
            0, handle, role, "q", "control" if name in unnamed and role and random.random() < 0.5 else "node"
        )
        peer.links.append(link)
        target: Any = ("coordinator", {}) if link.kind == "control" else ("target", {"address": "q"})
        author.put(
            0,
            author.frame(
                "attach",
                channel=0,
                name=name,
                handle=handle,
                role=role,
                initial_delivery_count=None if role else 0,
                source=random.choice((("source", {"address": "q"}),) * 9 + (None,)),
                target=random.choice((target,) * 9 + (None,)),
                rcv_settle_mode=random.choice((None, None, 1)),
                unsettled=random.choice((None, None, author.unsettled())),
            ),
        )
        if role:
            author.flow(0, link)
        return
    link = random.choice(peer.links) if peer.links else _Link(0, 0, True, "q", "node")
    chance = random.random()
    if chance < 0.35:
        state = ("declared", {"txn_id": author.txn_id()}) if random.random() < 0.2 else author.state()
        first = random.choice((0, 0, 1, 2))
        fields = {"first": first, "last": random.choice((None, first + 2))}
        author.put(0, author.frame("disposition", channel=0, role=True, settled=True, state=state, **fields))
    elif chance < 0.6:
        (author.flow if link.role else author.transfer)(0, link)
    elif chance < 0.7:
        author.put(
            0,
            author.frame("detach", channel=0, handle=link.handle, closed=random.random() < 0.7, error=_ERROR),
        )
    elif chance < 0.75:
        author.put(0, author.frame("end", channel=0, error=random.choice((None, _ERROR))))
    elif chance < 0.8:
        author.put(0, author.frame("close", channel=0, error=random.choice((None, _ERROR))))
    elif chance < 0.9:
        author.moves.append(Move(Act.CLOCK, 0, struct.pack(">I", random.choice((1, 3000, 61_000)))))
    else:
        author.moves.append(Move(random.choice((Act.CUT, Act.EOF, Act.DEAF)), 0))
