"""Good octets of 0-9-1 to begin with, written by the second codec: what a polite peer sends to each target."""

from __future__ import annotations

from typing import Final

from tests.amqp091.naive import carry, say, written_frame, written_method, written_pairs

HEADER: Final = b"AMQP\0\0\x09\x01"
_TABLE: Final = [
    ("t", ("t", True)),
    ("b", ("b", -1)),
    ("B", ("B", 255)),
    ("s", ("s", -2)),
    ("u", ("u", 65_535)),
    ("I", ("I", -3)),
    ("i", ("i", 2**32 - 1)),
    ("l", ("l", 2**63 - 1)),
    ("L", ("L", -(2**63))),
    ("f", ("f", 1.5)),
    ("d", ("d", 2.5)),
    ("D", ("D", (2, 1234))),
    ("S", ("S", b"text")),
    ("odd", ("S", b"\xff\xfe")),
    ("x", ("x", b"\0\1\2")),
    ("A", ("A", [("I", 1), ("S", b"a"), ("F", [("k", ("V", None))])])),
    ("F", ("F", [("deep", ("F", [("er", ("A", []))]))])),
    ("T", ("T", 1_700_000_000)),
    ("V", ("V", None)),
]
_CAPABLE: Final = [
    (name, ("t", True))
    for name in ("connection.blocked", "authentication_failure_close", "consumer_cancel_notify")
]
_CLIENT: Final = [("product", ("S", b"seed")), ("capabilities", ("F", _CAPABLE))]
_ARGUMENTS: Final = [("x-max-length", ("I", 5)), ("x-dead-letter-exchange", ("S", b""))]
_PROPERTIES: Final = {
    0: "text/plain",
    2: [("a", ("I", 1)), ("CC", ("A", [("S", b"other")]))],
    3: 2,
    4: 5,
    5: "c",
    6: "replies",
    7: "60000",
    8: "m",
    9: 1_700_000_000,
    10: "kind",
    12: "app",
}

TABLES: Final = [written_pairs([row]) for row in _TABLE] + [written_pairs(_TABLE), written_pairs([])]
"""A table of each type of value, and one of all."""

_DECLARE = say("queue.declare", queue="q", arguments=_ARGUMENTS, durable=True)
_CONSUME = say("basic.consume", queue="q", consumer_tag="tag", arguments=[("x-priority", ("I", 1))])
_PUBLISH = carry("basic.publish", b"octets", _PROPERTIES, routing_key="q", mandatory=True)
_LONG = carry("basic.publish", b"o" * 300, {3: 1}, most=100, exchange="amq.topic", routing_key="a.b")
_EMPTY = carry("basic.publish", b"", {}, routing_key="q")

HANDSHAKE: Final = b"".join(
    (
        say("connection.start-ok", client_properties=_CLIENT, mechanism="PLAIN", response=b"\0guest\0guest"),
        say("connection.tune-ok", channel_max=63, frame_max=131_072, heartbeat=60),
        say("connection.open", virtual_host="/"),
    )
)
OPENED: Final = HEADER + HANDSHAKE + say("channel.open")
"""What a client says until it has channel 1."""

SERVER: Final = [
    b"".join((_DECLARE, _PUBLISH, _LONG, _EMPTY)),
    b"".join((_DECLARE, _CONSUME, _PUBLISH, say("basic.ack", delivery_tag=1, multiple=True))),
    b"".join((say("confirm.select"), _PUBLISH, _LONG, say("basic.get", queue="q"), say("basic.nack"))),
    b"".join((say("tx.select"), _PUBLISH, say("tx.commit"), say("tx.rollback"))),
    b"".join(
        (
            say("exchange.declare", exchange="e", type="topic", arguments=[]),
            say("queue.bind", queue="q", exchange="e", routing_key="a.#"),
            say("exchange.bind", destination="e", source="amq.fanout"),
            say("basic.qos", prefetch_count=3),
            say("channel.flow", active=False),
            say("basic.recover", requeue=True),
            say("channel.open", 2),
            say("channel.close", 2, reply_code=200),
            written_frame(8, 0, b""),
            say("connection.update-secret", new_secret=b"s"),
            say("connection.close", reply_code=200, reply_text="bye"),
        )
    ),
]
"""From a client to a server, on a connection with channel 1."""

_DELIVER = carry("basic.deliver", b"octets", _PROPERTIES, consumer_tag="tag", delivery_tag=1, routing_key="q")
CLIENT: Final = [
    b"".join(
        (
            say("queue.declare-ok", queue="q", message_count=1),
            say("basic.consume-ok", consumer_tag="tag"),
            _DELIVER,
            carry("basic.get-ok", b"o" * 300, {3: 2}, most=100, delivery_tag=2, routing_key="q"),
            say("basic.cancel", consumer_tag="tag", no_wait=True),
        )
    ),
    b"".join(
        (
            say("confirm.select-ok", 2),
            carry("basic.return", b"lost", {}, 2, reply_code=312, reply_text="NO_ROUTE", routing_key="q"),
            say("basic.ack", 2, delivery_tag=2, multiple=True),
            say("basic.nack", 2, delivery_tag=3),
            say("connection.blocked", reason="low on memory"),
            say("connection.unblocked"),
            say("channel.flow", 2, active=False),
            say("channel.close", 2, reply_code=404, reply_text="NOT_FOUND"),
            written_frame(8, 0, b""),
            say("connection.close", reply_code=320, reply_text="CONNECTION_FORCED"),
        )
    ),
]
"""From a server to a client that has declared, asked, consumed and published on channels 1 and 2."""

ANSWERED: Final = b"".join(
    (
        say(
            "connection.start",
            version_minor=9,
            server_properties=_CLIENT,
            mechanisms=b"PLAIN AMQPLAIN",
            locales=b"en_US",
        ),
        say("connection.tune", channel_max=2047, frame_max=131_072, heartbeat=60),
        say("connection.open-ok"),
        say("channel.open-ok"),
        say("channel.open-ok", 2),
    )
)
ACCEPTED: Final = [
    *(OPENED + rest for rest in SERVER),
    HEADER + say("connection.start-ok", mechanism="AMQPLAIN", response=written_pairs(_TABLE)[4:]),
    HEADER + say("connection.start-ok", mechanism="SCRAM-SHA-256", response=b"n,,n=guest,r=abc"),
]
"""To a listener, from the first octet on."""

DIALLED: Final = [ANSWERED + rest for rest in CLIENT]
"""To a client that has dialled, from the first octet on."""

METHODS: Final = [
    written_method("connection.start", {"server_properties": _TABLE, "mechanisms": b"PLAIN"}),
    written_method("connection.tune-ok", {"frame_max": 4096}),
    written_method("connection.close", {"reply_code": 501, "reply_text": "FRAME_ERROR"}),
    written_method("queue.declare", {"queue": "q", "durable": True, "arguments": _ARGUMENTS}),
    written_method("exchange.declare", {"exchange": "e", "type": "headers", "internal": True}),
    written_method("basic.consume", {"queue": "q", "consumer_tag": "tag", "no_ack": True}),
    written_method("basic.deliver", {"consumer_tag": "tag", "delivery_tag": 2**40, "redelivered": True}),
    written_method("basic.nack", {"delivery_tag": 7, "multiple": True, "requeue": True}),
]
HEADERS: Final = [
    carry("basic.publish", b"", found)[len(say("basic.publish")) + 7 : -1]
    for found in ({}, {2: _TABLE}, _PROPERTIES, {13: "cluster"})
]
"""Payloads of content headers."""
