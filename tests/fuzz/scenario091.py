"""Scripts of clients of 0-9-1 for a container: methods that make sense in their order, until some do not.

The author knows which channels, consumers and transactions each connection has. Then arguments get other values, frames go
missing, come twice, or on other channels, and a few octets are broken (``mutate``). Some scripts have a peer of AMQP 1.0 too.

Only the standard library and the second codec; the same random numbers give the same script.
"""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.amqp091.naive import NAMED, PROPERTIES, carry, say, written_frame

from . import mutate, scenario
from .script import CONNECTIONS, Act, Move, pack
from .seeds091 import HEADER

if TYPE_CHECKING:
    from random import Random

_QUEUES: Final = ("q", "q", "q", "limited", "single", "a", "a", "b", "b", "c", "f", "t", "")
_EXCHANGES: Final = ("", "", "", "e", "e", "d", "amq.direct", "amq.fanout", "amq.topic", "amq.headers", "x")
_KEYS: Final = (*_QUEUES, "a.b", "#", "*.b", "a.#", "..")
_TAGS: Final = ("", "one", "one", "two", "three")
_NUMBERS: Final = (0, 0, 1, 1, 1, 2, 3, 7)
_ODD_NUMBERS: Final = (0, 1, 2, 255, 65_535, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
_ODD_TEXTS: Final = (b"", b"\0", b"\xff", b"x" * 255, b"amq.x", b"amq.rabbitmq.reply-to", b"q\r\n", b"/")
_VALUES: Final = (
    ("V", None),
    ("t", True),
    ("I", -1),
    ("I", 0),
    ("I", 2),
    ("l", 2**63 - 1),
    ("l", -(2**63)),
    ("i", 2**32 - 1),
    ("d", float("inf")),
    ("d", float("nan")),
    ("D", (255, -1)),
    ("T", 2**64 - 1),
    ("S", b"q"),
    ("S", b"\xff"),
    ("S", b"drop-head"),
    ("S", b"quorum"),
    ("x", b"\0"),
    ("A", []),
    ("A", [("S", b"a"), ("S", b"b")]),
    ("A", [("F", []), ("I", 1)]),
    ("F", []),
    ("F", [("k", ("V", None))]),
)
_NAMES: Final = (
    *("x-max-length", "x-max-length-bytes", "x-message-ttl", "x-expires", "x-max-priority", "x-queue-type"),
    *("x-overflow", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-delivery-limit", "x-odd"),
    *("x-single-active-consumer", "alternate-exchange", "x-priority", "x-match", "CC", "BCC", "x-death", "a"),
)
_GOOD_ARGUMENTS: Final[tuple[list[Any], ...]] = (
    [],
    [],
    [],
    [("x-max-length", ("I", 1)), ("x-overflow", ("S", b"reject-publish"))],
    [("x-max-length", ("I", 2)), ("x-dead-letter-exchange", ("S", b"e"))],
    [("x-message-ttl", ("I", 500)), ("x-dead-letter-exchange", ("S", b""))],
    [("x-dead-letter-exchange", ("S", b"")), ("x-dead-letter-routing-key", ("S", b"a"))],
    [("x-expires", ("I", 1000))],
    [("x-max-priority", ("I", 5))],
    [("x-single-active-consumer", ("t", True))],
    [
        ("x-queue-type", ("S", b"quorum")),
        ("x-delivery-limit", ("I", 1)),
        ("x-dead-letter-exchange", ("S", b"e")),
    ],
)
_METHODS: Final = (
    *("queue.declare",) * 5,
    *("basic.consume",) * 5,
    *("publish",) * 12,
    *("settle",) * 10,
    *("basic.get",) * 4,
    *("queue.bind", "queue.bind", "queue.unbind", "queue.purge", "queue.delete", "basic.qos", "basic.qos"),
    *("exchange.declare", "exchange.declare", "exchange.bind", "exchange.unbind", "exchange.delete"),
    *("basic.cancel", "basic.cancel", "basic.recover", "basic.recover-async", "channel.flow"),
    *("confirm.select", "tx.select", "tx.commit", "tx.rollback", "channel.close", "channel.close"),
    *("channel.open", "connection.update-secret", "access.request", "channel.flow-ok", "heartbeat"),
    *("channel.close-ok", "reply", "reply", "any"),
)


@dataclass
class _Peer:
    """What the author believes of one connection."""

    opened: bool = False
    channels: list[int] = field(default_factory=list[int])


class _Author:
    """Writes a script.

    Args:
        random: what decides everything.
        wrong: how likely it is that something in a method is.
    """

    def __init__(self, random: Random, wrong: float) -> None:
        self.random = random
        self.wrong = wrong
        self.peers = [_Peer() for _ in range(CONNECTIONS)]
        self.moves: list[Move] = []
        self.queue = random.choice(_QUEUES)

    # -- octets -----------------------------------------------------------------------------

    def name(self) -> str:
        """Mostly one queue, so that messages meet those who take them."""
        return self.queue if self.random.random() < 0.6 else self.random.choice(_QUEUES)

    def odd(self, kind: str) -> Any:
        random = self.random
        if kind in "SL":
            return random.choice(_ODD_TEXTS)
        if kind == "T":
            return [(random.choice(_NAMES), random.choice(_VALUES)) for _ in range(random.choice((1, 2, 5)))]
        return random.choice(_ODD_NUMBERS) % 2 ** {"b": 1, "o": 8, "s": 16, "l": 32, "q": 64}[kind]

    def wrong_way(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments, perhaps with another value for one of them."""
        if self.random.random() < self.wrong and NAMED[name][1]:
            each, kind = self.random.choice(NAMED[name][1])
            arguments[each] = self.odd(kind)
        return arguments

    def channel_of(self, number: int) -> int:
        odd = self.random.random() < self.wrong / 4
        return self.random.choice((0, 1, 2, 3, 63, 65_535)) if odd else number

    def say(self, connection: int, name: str, number: int, **arguments: Any) -> None:
        made = self.wrong_way(name, arguments)
        self.put(connection, say(name, self.channel_of(number), **made))

    def put(self, connection: int, octets: bytes) -> None:
        random = self.random
        if random.random() < self.wrong / 3:
            octets = mutate.accident(random, octets)
        act = Act.WRITE if random.random() < 0.3 else Act.SAY
        for _ in range(2 if random.random() < self.wrong / 6 else 1):
            self.moves.append(Move(act, connection, octets))

    # -- a connection -----------------------------------------------------------------------

    def open(self, connection: int) -> None:
        random, peer = self.random, self.peers[connection]
        peer.opened = True
        names = ("connection.blocked", "authentication_failure_close", "consumer_cancel_notify")
        capabilities = [(name, ("t", random.random() < 0.8)) for name in names]
        properties = [("capabilities", ("F", capabilities))]
        if random.random() < 0.5:
            properties.append(("connection_name", ("S", random.choice((b"ada", b"bob", b"")))))
        mechanism = random.choice(("PLAIN",) * 9 + ("ANONYMOUS", "AMQPLAIN", "ODD"))
        self.put(connection, HEADER)
        self.say(
            connection,
            "connection.start-ok",
            0,
            client_properties=properties,
            mechanism=mechanism,
            response=b"\0guest\0guest" if mechanism == "PLAIN" else b"",
        )
        self.say(
            connection,
            "connection.tune-ok",
            0,
            channel_max=2047,
            frame_max=random.choice((131_072, 131_072, 4096)),
            heartbeat=random.choice((0, 0, 1, 60)),
        )
        self.say(connection, "connection.open", 0, virtual_host="/")
        self.open_channel(connection)

    def open_channel(self, connection: int) -> None:
        random, peer = self.random, self.peers[connection]
        number = random.choice((1, 1, 2, 3))
        if number not in peer.channels:
            peer.channels.append(number)
        self.say(connection, "channel.open", number)
        first = random.choice((None, None, "confirm.select", "tx.select"))
        if first is not None:
            self.say(connection, first, number)

    def step(self) -> None:
        """The next move of any client."""
        random = self.random
        connection = random.choice((0, 0, 0, 0, 0, 1, 1, 2))
        peer = self.peers[connection]
        if not peer.opened:
            self.open(connection)
            return
        chance = random.random()
        if chance < 0.04:
            self.leave(connection)
        elif chance < 0.07:
            millis = random.choice((1, 1, 500, 500, 3000, 20_000, 130_000))
            self.moves.append(Move(Act.CLOCK, 0, struct.pack(">I", millis)))
        elif not peer.channels or chance < 0.10:
            self.open_channel(connection)
        else:
            self.use(connection, random.choice(peer.channels), random.choice(_METHODS))

    def leave(self, connection: int) -> None:
        random = self.random
        way = random.randrange(4)
        if way == 0:
            self.say(connection, "connection.close", 0, reply_code=200)
        else:
            self.moves.append(Move((Act.CUT, Act.EOF, Act.DEAF)[way - 1], connection))
        if way != 3:
            self.peers[connection] = _Peer()
            if way in (0, 2):
                self.moves.append(Move(Act.CUT, connection))

    # -- methods ----------------------------------------------------------------------------

    def use(self, connection: int, number: int, what: str) -> None:
        random = self.random
        own = getattr(self, "_" + what.rpartition(".")[2].replace("-", "_"), None)
        if what == "heartbeat":
            self.put(connection, written_frame(8, self.channel_of(0), b""))
        elif what == "any":
            name = random.choice(list(NAMED))
            self.say(
                connection,
                name,
                number,
                **{each: self.odd(kind) for each, kind in NAMED[name][1]},
            )
        elif own is not None:
            own(connection, number, what)
        else:
            self.say(connection, what, number, **self.arguments(what))
            if what == "channel.close" and number in self.peers[connection].channels:
                self.peers[connection].channels.remove(number)

    def arguments(self, name: str) -> dict[str, Any]:
        """Sensible ones, by the names that arguments have in all methods."""
        random = self.random
        often: dict[str, Any] = {
            "queue": self.name(),
            "exchange": random.choice(_EXCHANGES),
            "source": random.choice(_EXCHANGES),
            "destination": random.choice(_EXCHANGES),
            "routing_key": random.choice(_KEYS),
            "type": random.choice(("direct", "fanout", "topic", "headers", "topic", "odd")),
            "consumer_tag": random.choice(_TAGS),
            "arguments": random.choice(_GOOD_ARGUMENTS) if "declare" in name else self.table(),
            "prefetch_count": random.choice(_NUMBERS),
            "requeue": random.random() < 0.9,
            "active": random.random() < 0.7,
            "reply_code": 200,
        }
        rare = {"passive": 0.15, "durable": 0.5, "exclusive": 0.1, "auto_delete": 0.2, "internal": 0.1}
        rare |= {"no_wait": 0.1, "no_ack": 0.3, "if_unused": 0.3, "if_empty": 0.3, "global_": 0.3}
        found = {}
        for each, kind in NAMED[name][1]:
            if each in often:
                found[each] = often[each]
            elif kind == "b":
                found[each] = random.random() < rare.get(each, 0)
        return found

    def table(self) -> list[Any]:
        random = self.random
        if random.random() < 0.6:
            return []
        return [(random.choice(_NAMES), random.choice(_VALUES)) for _ in range(random.choice((1, 2)))]

    def _publish(self, connection: int, number: int, _what: str) -> None:
        for _ in range(self.random.choice((1, 1, 1, 2, 5))):
            self.publish(connection, number)

    def publish(self, connection: int, number: int, **more: Any) -> None:
        random = self.random
        found: dict[int, Any] = {
            2: self.table() + ([("a", ("S", b"o" * 5000))] if random.random() < 0.02 else []),
            3: random.choice((1, 2)),
            4: random.randrange(12),
            5: "c",
            6: random.choice(("b", "amq.rabbitmq.reply-to", "nowhere")),
            7: random.choice(("0", "1", "500", "60000", "4294967295")),
            8: "m",
            9: 1_700_000_000,
            10: random.choice(("kind", "amqp-1.0")),
            11: "guest",
        }
        kept = {place: value for place, value in found.items() if random.random() < 0.25}
        if random.random() < self.wrong:
            place = random.randrange(len(PROPERTIES))
            kept[place] = self.odd(PROPERTIES[place])
        body = b"o" * random.choice((0, 1, 20, 100, 5000))
        arguments: dict[str, Any] = {
            "exchange": random.choice(_EXCHANGES),
            "routing_key": self.name() if random.random() < 0.7 else random.choice(_KEYS),
            "mandatory": random.random() < 0.3,
            **more,
        }
        made = self.wrong_way("basic.publish", arguments)
        octets = carry(
            "basic.publish",
            body,
            kept,
            self.channel_of(number),
            random.choice((4088, 4088, 1, 50)) if len(body) < 200 else 4088,
            **made,
        )
        if random.random() < self.wrong / 2:
            frames = mutate.AMQP091.split(octets)
            del frames[random.randrange(len(frames))]
            octets = b"".join(frames)
        self.put(connection, octets)

    def _settle(self, connection: int, number: int, _what: str) -> None:
        random = self.random
        name = random.choice(("basic.ack", "basic.ack", "basic.nack", "basic.reject"))
        wanted: dict[str, Any] = {
            "delivery_tag": random.choice((1, 1, 2, 3, 4, 5, 0 if random.random() < 0.2 else 1)),
            "multiple": random.random() < 0.6,
            "requeue": random.random() < 0.6,
        }
        names = {each for each, _ in NAMED[name][1]}
        self.say(connection, name, number, **{each: value for each, value in wanted.items() if each in names})

    def _reply(self, connection: int, number: int, _what: str) -> None:
        """Direct replies: a consumer of the pseudo-queue, a request, and an answer to its address."""
        random = self.random
        token = base64.urlsafe_b64encode(random.choice((1, 1, 2, 3)).to_bytes(16)).rstrip(b"=").decode()
        what = random.randrange(3)
        pseudo = "amq.rabbitmq.reply-to"
        if what == 0:
            no_ack = random.random() < 0.95
            self.say(
                connection,
                "basic.consume",
                number,
                queue=pseudo,
                no_ack=no_ack,
                consumer_tag=random.choice(_TAGS),
            )
        elif what == 1:
            found = {6: pseudo, 5: "c"}
            key = random.choice(("f", "f", self.queue))
            self.put(
                connection, carry("basic.publish", b"hello", found, self.channel_of(number), routing_key=key)
            )
        else:
            self.publish(connection, number, exchange="", routing_key=f"{pseudo}.{token}")


def against_container(random: Random) -> bytes:
    """A script of up to three clients of 0-9-1, and sometimes a peer of AMQP 1.0."""
    wrong = random.choice((0.0, 0.02, 0.05, 0.15))
    author = _Author(random, wrong)
    other = scenario.Author(random, wrong) if random.random() < 0.3 else None
    for _ in range(random.choice((5, 10, 20, 40))):
        author.step()
        if other is not None and random.random() < 0.4:
            other.step(CONNECTIONS - 1)
            author.moves += other.moves
            other.moves.clear()
    return pack(author.moves)
