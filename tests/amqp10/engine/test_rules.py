"""The rule book: each rule is broken once, and what comes of it is what the table says, by name.

A case breaks one rule, and gives back what the engine told: the error of the frame that it wrote (the frame's
name tells the scope), or the exception, where there is no frame to write yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.naive.performatives import empty_frame, frame, header, raw_frame, sections
from tests.naive.script import Script
from tests.sasl.frames import CountClient
from trio_amqp10 import sasl
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.delivery import ACCEPTED
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.message.incremental_reader import BodyReader
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.spec.transport import End, Error
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.peer_rules import RULES, Strict

from .helpers import BEGIN, attach, begun, begun_by_peer, flow, opened, receiving, sending, transfer
from .links import disposition
from .stacks import dialling, init, listening, never

if TYPE_CHECKING:
    from collections.abc import Callable

NULL = b"\x40"
UNKNOWN = bytes.fromhex("00539945")  # described by what the standard leaves free


class Told(NamedTuple):
    """What came of a breach."""

    scope: str
    condition: str
    text: str


CASES: dict[str, Callable[[], Told]] = {}
ELSEWHERE = {
    "answer",
    "no-terminus",  # the time for them is over: see ``test_answer_deadlines``
    "unsettled-map-size",  # takes two maps that no answer makes shorter: the adapter sees it, not the engine
}


def case(name: str) -> Callable[[Callable[[], Told]], Callable[[], Told]]:
    def keep(breach: Callable[[], Told]) -> Callable[[], Told]:
        assert name not in CASES
        CASES[name] = breach
        return breach

    return keep


SCOPES = {"close": "connection", "end": "session", "detach": "link"}


def told(script: Script, *octets: bytes) -> Told:
    """The error of the first close, end or detach that these octets lead to."""
    script.collect().inbox.frames.clear()
    raised: RemoteProtocolError | None = None
    try:
        script.send(*octets)
    except RemoteProtocolError as fault:
        raised = fault
    script.collect()
    got = next(got for got in script.inbox.frames if got.name in SCOPES and got["error"] is not None)
    said = Told(SCOPES[got.name], got["error"][1]["condition"], got["error"][1]["description"])
    if raised is not None:
        assert said == (raised.scope, raised.condition, f"{raised.description} [{raised.rule}]")
    return said


def raised(script: Script, *octets: bytes) -> Told:
    """The exception that ends a conversation which has not come to frames of AMQP."""
    with pytest.raises(RemoteProtocolError) as caught:
        script.send(*octets)
    return exception(caught.value)


def exception(fault: RemoteProtocolError) -> Told:
    assert str(fault) == f"{fault.condition}: {fault.description} [{fault.rule}]"
    return Told(fault.scope, fault.condition, f"{fault.description} [{fault.rule}]")


def unopened(limits: Limits | None = None, **options: Any) -> Script:
    """An engine that has opened, and a peer that has not."""
    connection = Connection("engine", limits=limits, **options)
    connection.open()
    return Script(connection)


def read(payload: bytes) -> Told:
    with pytest.raises(RemoteProtocolError) as caught:
        _ = Message.from_payload(payload).subject
    return exception(caught.value)


def listed(code: int, *fields: bytes) -> bytes:
    """A frame with a performative whose fields are given as octets."""
    octets = b"".join(fields)
    return raw_frame(bytes((0, 0x53, code, 0xC0, len(octets) + 1, len(fields))) + octets)


def opening(properties: bytes) -> bytes:
    """An open with these octets for its properties."""
    return header() + listed(0x10, b"\xa1\x01x", *[NULL] * 8, properties)


# -- Part 1 -----------------------------------------------------------------------------------------


@case("encoding")
def _() -> Told:
    return told(opened()[1], raw_frame(bytes.fromhex("005318c0040155a1")))


@case("duplicate-map-keys")
def _() -> Told:
    return told(unopened(), opening(bytes.fromhex("c10904a3016b40a3016b40")))


@case("field-keys")
def _() -> Told:
    return told(unopened(strict=Strict(field_keys=True)), opening(bytes.fromhex("c10502a1016b40")))


@case("field")
def _() -> Told:
    return told(opened()[1], listed(0x18, b"\x41"))


@case("surplus-fields")
def _() -> Told:
    return told(opened()[1], listed(0x18, NULL, NULL))


@case("nesting")
def _() -> Told:
    described = bytes.fromhex("005399") * 40 + NULL
    return told(unopened(), opening(bytes((0xC1, len(described) + 4, 2)) + b"\xa3\x01k" + described))


@case("values")
def _() -> Told:
    many = frame("begin", properties={f"k{n}": None for n in range(600)}, **BEGIN)
    return told(opened(Limits(performative_nodes=1000))[1], many)


# -- Part 2: connections -----------------------------------------------------------------------------


@case("protocol-header")
def _() -> Told:
    return raised(unopened(), b"HTTP")


@case("frame-header")
def _() -> Told:
    return told(opened()[1], bytes.fromhex("00000007"))


@case("max-frame-size")
def _() -> Told:
    return told(opened(Limits(max_frame_size=1024))[1], bytes.fromhex("00000401"))


@case("open-frame-size")
def _() -> Told:
    script = Script(Connection("engine", strict=Strict(open_frame_size=True)))
    return told(script, header() + bytes.fromhex("00000201"))


@case("frame-type")
def _() -> Told:
    return told(opened()[1], raw_frame(b"", frame_type=1))


@case("performative")
def _() -> Told:
    return told(opened()[1], raw_frame(bytes.fromhex("00534145")))


@case("payload")
def _() -> Told:
    return told(opened()[1], raw_frame(frame("close")[8:] + b"x"))


@case("open-first")
def _() -> Told:
    return told(unopened(), header() + frame("begin", **BEGIN))


@case("open-once")
def _() -> Told:
    return told(opened()[1], frame("open", container_id="peer"))


@case("open-channel")
def _() -> Told:
    return told(unopened(), header() + frame("open", container_id="peer", channel=1))


@case("connection-state")
def _() -> Told:
    return told(unopened(), header() + frame("close"))


@case("min-max-frame-size")
def _() -> Told:
    return told(unopened(), header() + frame("open", container_id="peer", max_frame_size=511))


@case("idle-time-out")
def _() -> Told:
    return told(unopened(), header() + frame("open", container_id="peer", idle_time_out=999))


@case("idle")
def _() -> Told:
    connection, script = opened(idle_timeout=10)
    with pytest.raises(RemoteProtocolError) as caught:
        connection.handle_timer(100.0)
    said = script.expect("close")["error"][1]
    assert exception(caught.value) == ("connection", said["condition"], said["description"])
    return exception(caught.value)


@case("heartbeats")
def _() -> Told:
    return told(opened()[1], empty_frame() * 200)


@case("pipelined-frame-size")
def _() -> Told:
    connection = Connection("engine")
    connection.open()
    connection.session().begin(properties={"p": "x" * 2000})
    return told(Script(connection), header() + frame("open", container_id="peer", max_frame_size=512))


@case("answer-size")
def _() -> Told:
    _, script = begun(remote={"max_frame_size": 512})
    return told(script, attach(name="n" * 600) + frame("detach", handle=0))


@case("channel-max")
def _() -> Told:
    return told(opened(Limits(channel_max=3))[1], frame("begin", channel=4, **BEGIN))


@case("sessions")
def _() -> Told:
    begins = [frame("begin", channel=channel, **BEGIN) for channel in range(2)]
    return told(opened(remote={"channel_max": 0})[1], *begins)


@case("channel-in-use")
def _() -> Told:
    return told(begun()[1], frame("begin", **BEGIN))


@case("remote-channel")
def _() -> Told:
    return told(opened()[1], frame("begin", remote_channel=5, **BEGIN))


@case("mapped-channel")
def _() -> Told:
    return told(opened()[1], frame("end", channel=7))


@case("endpoint-state")
def _() -> Told:
    # Frames that are out of order meet other rules first: this is what stands behind those.
    session, _ = begun()
    session.end()
    with pytest.raises(RemoteProtocolError) as caught:
        for _ in range(2):
            session.on_end(End())
    fault = caught.value
    assert fault.scope == "session"
    fault.scope = "connection"  # where it is raised, the connection goes
    return exception(fault)


@case("churn")
def _() -> Told:
    both = frame("begin", **BEGIN) + frame("end")
    return told(opened(Limits(churn=3))[1], *[both] * 10)


# -- Part 2: sessions and links ------------------------------------------------------------------------


@case("attach-after-error")
def _() -> Told:
    link, script = receiving()
    link.context.strict = Strict(attach_after_error=True)
    link.detach(closed=False, error=Error(condition="amqp:internal-error"))
    return told(script, frame("detach", handle=0) + attach(name=link.name, handle=1))


@case("incoming-window")
def _() -> Told:
    _, script = receiving(Limits(incoming_window=2))
    return told(script, *[transfer(n) for n in range(3)])


@case("next-incoming-id")
def _() -> Told:
    return told(begun()[1], flow(next_incoming_id=5))


@case("handle-max")
def _() -> Told:
    return told(begun(Limits(handle_max=3))[1], attach(handle=4))


@case("handle-in-use")
def _() -> Told:
    return told(begun()[1], attach(handle=0) + attach(name="y", handle=0))


@case("handles")
def _() -> Told:
    return told(begun(handle_max=0)[1], attach(handle=0) + attach(name="y", handle=1))


@case("unattached-handle")
def _() -> Told:
    return told(begun()[1], flow(handle=5))


@case("errant-link")
def _() -> Told:
    link, script = receiving()
    link.detach()
    script << frame("detach", handle=0, closed=True)
    return told(script, transfer(0))


@case("links")
def _() -> Told:
    return told(begun_by_peer(Limits(max_links=1))[1], attach(handle=0) + attach(name="y", handle=1))


@case("one-attachment")
def _() -> Told:
    return told(receiving()[1], attach(handle=1))


@case("initial-delivery-count")
def _() -> Told:
    _, script = opened(strict=Strict(initial_delivery_count=True))
    source: Any = ("source", {})
    return told(script, frame("begin", **BEGIN), attach(handle=0, initial_delivery_count=None, source=source))


@case("incomplete-unsettled")
def _() -> Told:
    session, script = begun(remote={"max_frame_size": 512})
    link = session.receiver("x")
    link.terminus = ReceiverTerminus()
    link.terminus.known = True
    for number in range(100):
        link.terminus.restore(b"%d" % number, ACCEPTED)
    link.attach(source=Source(), target=Target())
    link.set_credit(1)
    return told(script, attach(handle=0, unsettled={}), transfer(0))


@case("link-credit")
def _() -> Told:
    return told(receiving(credit=1)[1], transfer(0) + transfer(1))


@case("link-direction")
def _() -> Told:
    return told(sending()[1], transfer(0))


@case("first-delivery-id")
def _() -> Told:
    return told(receiving()[1], frame("transfer", handle=0, delivery_tag=b"t"))


@case("delivery-id-order")
def _() -> Told:
    return told(receiving()[1], transfer(0) + transfer(2))


@case("delivery-tag")
def _() -> Told:
    return told(receiving()[1], transfer(0, delivery_tag=b"t" * 33))


@case("unique-tag")
def _() -> Told:
    return told(receiving()[1], transfer(0, delivery_tag=b"t") + transfer(1, delivery_tag=b"t"))


@case("continuation")
def _() -> Told:
    return told(receiving()[1], transfer(0, more=True) + transfer(0, delivery_tag=b"other"))


@case("settled-stays")
def _() -> Told:
    return told(receiving()[1], transfer(0, more=True, settled=True) + transfer(0, settled=False))


@case("transfer-settle-mode")
def _() -> Told:
    return told(receiving()[1], transfer(0, rcv_settle_mode=1))


@case("settle-mode")
def _() -> Told:
    link, script = receiving(snd_settle_mode=0)
    link.context.strict = Strict(settle_mode=True)
    return told(script, transfer(0, settled=True))


@case("max-message-size")
def _() -> Told:
    return told(receiving(Limits(max_message_size=3))[1], transfer(0, payload=b"1234"))


@case("empty-transfers")
def _() -> Told:
    more = frame("transfer", handle=0, more=True)
    _, script = receiving(Limits(empty_transfers=3))
    return told(script, transfer(0, more=True), *[more] * 5)


@case("partial-deliveries")
def _() -> Told:
    return told(receiving(Limits(partial_octets=10))[1], transfer(0, more=True, payload=b"x" * 11))


@case("disposition-range")
def _() -> Told:
    return told(begun()[1], disposition(True, 5, 4))


# -- Part 3 -----------------------------------------------------------------------------------------


@case("sections")
def _() -> Told:
    return read(bytes.fromhex("005399c0"))


@case("section-order")
def _() -> Told:
    return read(sections(("properties", {"subject": "s"}), ("properties", {"subject": "s"})))


@case("annotation-keys")
def _() -> Told:
    connection, script = opened(strict=Strict(annotation_keys=True))
    session = connection.session()
    session.begin()
    script << frame("begin", remote_channel=0, **BEGIN)
    link = session.receiver("x")
    link.attach(source=Source())
    script << attach(source=("source", {}))
    link.set_credit(1)
    return told(script, transfer(0, payload=sections(("message-annotations", {"x-y": 1}))))


@case("body-sections")
def _() -> Told:
    reader = BodyReader()
    with pytest.raises(RemoteProtocolError) as caught:
        reader.feed(bytes.fromhex("005378d1") + (2**21).to_bytes(4, "big") + bytes(4))
    return exception(caught.value)


@case("delivery-state")
def _() -> Told:
    link, script = sending()
    link.send(b"m")
    return told(script, listed(0x15, b"\x41", b"\x43", NULL, b"\x41", UNKNOWN))


@case("permitted-outcome")
def _() -> Told:
    connection, script = opened(strict=Strict(permitted_outcome=True))
    session = connection.session()
    session.begin()
    script << frame("begin", remote_channel=0, **BEGIN)
    link = session.sender("x")
    link.attach(source=Source(outcomes=("amqp:accepted:list",)))
    script << attach(role=True, initial_delivery_count=None) + flow(handle=0, link_credit=1)
    assert link.send(b"m") is not None
    return told(script, disposition(True, 0, state=("rejected", {})))


@case("terminus")
def _() -> Told:
    return told(begun()[1], listed(0x12, b"\xa1\x01x", b"\x43", b"\x42", NULL, NULL, UNKNOWN))


# -- Part 5 -----------------------------------------------------------------------------------------


@case("security-layer")
def _() -> Told:
    return raised(listening()[1], header())


@case("sasl-frame-size")
def _() -> Told:
    return raised(listening()[1], header("sasl") + bytes.fromhex("00002001"))


@case("sasl-frame")
def _() -> Told:
    return raised(listening()[1], header("sasl") + raw_frame(b"", frame_type=1))


@case("sasl-order")
def _() -> Told:
    _, script = dialling()
    return raised(script, header("sasl") + frame("sasl-challenge", challenge=b"x"))


@case("sasl-rounds")
def _() -> Told:
    _, script = dialling(CountClient())
    script << header("sasl") + frame("sasl-mechanisms", sasl_server_mechanisms=["X-COUNT"])
    return raised(script, frame("sasl-challenge", challenge=b"x") * 9)


@case("sasl-patience")
def _() -> Told:
    _, script = listening(verify=never)
    script << header("sasl") + init()
    return raised(script, bytes(40_000))


@case("sasl-challenge")
def _() -> Told:
    _, script = dialling(sasl.Scram("guest", "guest-secret", "SCRAM-SHA-256"))
    script << header("sasl") + frame("sasl-mechanisms", sasl_server_mechanisms=["SCRAM-SHA-256"])
    return raised(script, frame("sasl-challenge", challenge=b"nonsense"))


# -- the book ---------------------------------------------------------------------------------------


def test_every_rule_has_a_case() -> None:
    assert CASES.keys() | ELSEWHERE == RULES.keys()
    assert not CASES.keys() & ELSEWHERE


@pytest.mark.parametrize("name", CASES)
def test_rule_ends_what_it_says_by_its_name_when_it_is_broken(name: str) -> None:
    rule = RULES[name]
    said = CASES[name]()
    assert (said.scope, said.condition) == (rule.scope, rule.condition)
    assert said.text.endswith(f"({rule.section}) [{name}]")
