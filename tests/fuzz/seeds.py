"""Good octets to begin with, written by the second codec: what a polite peer sends to each target."""

from __future__ import annotations

from typing import Any

from tests.naive.performatives import frame, header, sections

_WINDOWS = {"next_outgoing_id": 0, "incoming_window": 100, "outgoing_window": 100}
_FLOW = {"next_incoming_id": 0, **_WINDOWS}
_TERMINI: dict[str, Any] = {
    "source": ("source", {"address": "q", "outcomes": ["amqp:accepted:list"]}),
    "target": ("target", {"address": "q"}),
}
_MESSAGE = sections(
    ("header", {"durable": True, "ttl": 5000, "delivery_count": 1}),
    ("delivery-annotations", {"x-a": 1}),
    ("message-annotations", {"x-b": "two"}),
    ("properties", {"message_id": "m1", "to": "q", "subject": "s", "creation_time": 1}),
    ("application-properties", {"a": "b", "n": 7}),
    ("data", b"octets"),
    ("footer", {"x-c": b"hash"}),
)

_BEGIN = frame("begin", **_WINDOWS)
_ATTACH_SENDER = frame(
    "attach", name="to-us", handle=0, role=False, initial_delivery_count=0, snd_settle_mode=2, **_TERMINI
)
_ATTACH_RECEIVER = frame("attach", name="from-us", handle=1, role=True, **_TERMINI)
_TRANSFER = frame("transfer", handle=0, delivery_id=0, delivery_tag=b"t", message_format=0, payload=_MESSAGE)
_PARTS = (
    frame("transfer", handle=0, delivery_id=1, delivery_tag=b"u", more=True, payload=_MESSAGE[:20]),
    frame("transfer", handle=0, more=True, payload=_MESSAGE[20:40]),
    frame("transfer", handle=0, payload=_MESSAGE[40:]),
)
_CREDIT = frame("flow", **_FLOW, handle=1, delivery_count=0, link_credit=10)
_DRAIN = frame("flow", **_FLOW, handle=1, delivery_count=1, link_credit=5, drain=True, echo=True)
_SETTLED = frame("disposition", role=True, first=0, last=2, settled=True, state=("accepted", {}))
_REJECTED = frame(
    "disposition",
    role=True,
    first=0,
    state=("rejected", {"error": ("error", {"condition": "amqp:not-found", "description": "no"})}),
)
_OVER = (
    frame("detach", handle=0, closed=True),
    frame("end", error=("error", {"condition": "amqp:internal-error"})),
    frame("close"),
)

LISTENING = [
    b"".join((_BEGIN, _ATTACH_SENDER, _TRANSFER, *_PARTS)),
    b"".join((_BEGIN, _ATTACH_RECEIVER, _CREDIT, _SETTLED, _REJECTED, _DRAIN)),
    b"".join((_BEGIN, _ATTACH_SENDER, _ATTACH_RECEIVER, _TRANSFER, _CREDIT, *_OVER)),
]
"""To an engine that has accepted: begin, attach, transfer, flow, disposition, detach, end, close."""

_ANSWERED = (
    frame("begin", remote_channel=0, **_WINDOWS),
    frame("attach", name="to-peer", handle=0, role=True, **_TERMINI),
    frame("attach", name="from-peer", handle=1, role=False, initial_delivery_count=0, **_TERMINI),
)
DIALLED = [
    b"".join(
        (
            *_ANSWERED,
            frame("flow", **_FLOW, handle=0, delivery_count=0, link_credit=10),
            frame("transfer", handle=1, delivery_id=0, delivery_tag=b"t", payload=_MESSAGE),
            frame("disposition", role=True, first=0, last=1, settled=True, state=("accepted", {})),
        )
    ),
    b"".join((*_ANSWERED, *_OVER)),
]
"""To an engine that has dialled, begun and attached a sender and a receiver."""

PERFORMATIVES = [one[8:] for one in (_BEGIN, _ATTACH_SENDER, _TRANSFER, _CREDIT, _SETTLED, _REJECTED, *_OVER)]
PERFORMATIVES.append(
    frame(
        "open",
        container_id="c",
        hostname="h",
        max_frame_size=512,
        channel_max=7,
        idle_time_out=1000,
        offered_capabilities=["a", "b"],
        properties={"product": "p"},
    )[8:]
)

SASL_SERVER = [
    frame("sasl-init", mechanism="PLAIN", initial_response=b"\x00ada\x00enigma", hostname="h"),
    frame("sasl-init", mechanism="ANONYMOUS") + header(),
    frame("sasl-init", mechanism="PLAIN") + frame("sasl-response", response=b"\x00ada\x00enigma"),
]
SASL_CLIENT = [
    frame("sasl-mechanisms", sasl_server_mechanisms=["PLAIN", "ANONYMOUS"]) + frame("sasl-outcome", code=0),
    frame("sasl-mechanisms", sasl_server_mechanisms=["PLAIN"])
    + frame("sasl-challenge", challenge=b"more")
    + frame("sasl-outcome", code=1, additional_data=b"x"),
]

_OPEN = frame("open", container_id="peer", max_frame_size=65_536, channel_max=63)
_ANONYMOUS = header("sasl") + frame("sasl-init", mechanism="ANONYMOUS")
_PLAIN = header("sasl") + frame("sasl-init", mechanism="PLAIN", initial_response=b"\x00ada\x00enigma")
ACCEPTED = [
    layers + header() + _OPEN + rest
    for layers in (b"", _ANONYMOUS, _PLAIN)
    for rest in (*LISTENING, frame("close"))
]
"""To a listener, from the first octet on."""

MESSAGES = [
    _MESSAGE,
    sections(("amqp-value", {"k": [1, None, True, 2.5, b"b", {"deep": ["er"]}]})),
    sections(("data", b"a"), ("data", b"b")),
    sections(("amqp-sequence", [1, "two"]), ("amqp-sequence", [3])),
]

VALUES = [one[3:] for one in MESSAGES] + [
    bytes.fromhex(octets)
    for octets in (
        "45",
        "c1010001",
        "e00402540102",
        "f0000000050000000445",
        "c0080354ff5401a10161",
        "d10000000900000002a101615401",
        "a3036d6178",
        "980102030405060708090a0b0c0d0e0f10",
        "8300000000000003e8",
        "74c0ffee00",
        "00537045",
    )
]
