"""The readers and writers by hand equal the generic path, for every field and for broken octets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.naive.codec import Typed, encode
from tests.naive.performatives import composite, parse_frames, raw_frame
from tests.scaled import scaled
from trio_amqp10.amqp10.engine.codec_shortcut import (
    DISPOSITION,
    TRANSFER,
    WHOLE_OVERHEAD,
    TransferReader,
    read_disposition,
    read_transfer,
    transfer_head,
    transfer_tail,
    write_disposition,
    write_transfer,
)
from trio_amqp10.amqp10.engine.delivery import ACCEPTED, RELEASED
from trio_amqp10.amqp10.spec import PERFORMATIVES
from trio_amqp10.amqp10.spec.messaging import Accepted, Modified, Rejected, Released
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import Disposition, Transfer
from trio_amqp10.amqp10.wire.encode import encode as encode_generic
from trio_amqp10.core.errors import RemoteProtocolError

uints = st.sampled_from([0, 1, 127, 255, 256, 0xFFFFFFFF]) | st.integers(0, 0xFFFFFFFF)
flags = st.none() | st.booleans()


def fields_of(performative: Any, pos: int) -> tuple[Any, ...]:
    """What the reader by hand would say of what the generic path read."""
    if isinstance(performative, Transfer):
        assert performative.rcv_settle_mode is None
        assert not performative.resume
        assert not performative.aborted
        tag = performative.delivery_tag
        return (
            performative.handle,
            performative.delivery_id,
            tag,
            performative.message_format,
            performative.settled,
            performative.more,
            performative.state,
            pos,
        )
    last = performative.first if performative.last is None else performative.last
    return performative.role, performative.first, last, performative.settled, performative.state


def check(body: bytes, around: tuple[bytes, bytes] = (b"", b"")) -> bool:
    """The reader by hand says the same as the generic path, or nothing; True where it says it."""
    before, after = around
    buf = before + body + after
    read: Any = read_transfer if body[:3] == TRANSFER else read_disposition
    got = read(buf, len(before), len(before) + len(body))
    if got is None:
        return False
    performative, pos = PERFORMATIVES.decode(body)
    if isinstance(performative, Disposition):
        assert pos == len(body)
    assert got == fields_of(performative, len(before) + pos)
    for value, wanted in zip(got, fields_of(performative, len(before) + pos), strict=True):
        assert type(value) is type(wanted) or isinstance(wanted, type(value))
    return True


def encoded(number: int) -> st.SearchStrategy[Typed]:
    """A uint in any encoding that it fits."""
    codes = [0x70] + [0x52] * (number < 256) + [0x43] * (number == 0)
    return st.sampled_from([Typed("uint", number, code) for code in codes])


# -- reading ------------------------------------------------------------------------------------


IN_TXN: list[Any] = [
    ("transactional-state", {"txn_id": b"t"}),
    ("transactional-state", {"txn_id": bytes(32), "outcome": ("accepted", {})}),
    ("transactional-state", {"txn_id": b"", "outcome": ("released", {})}),
    ("transactional-state", {"txn_id": b"u", "outcome": ("rejected", {})}),
    ("transactional-state", {"txn_id": bytes(300)}),
    ("transactional-state", {}),
]
STATES: list[Any] = [None, None, ("accepted", {}), *IN_TXN]


@st.composite
def transfers(draw: st.DrawFn) -> bytes:
    """A transfer with any fields, in any encoding that they may have, and a payload."""
    uint = uints.flatmap(encoded)
    values: list[Any] = [
        draw(uint),
        draw(st.none() | uint),
        draw(st.none() | st.binary(max_size=40)),
        draw(st.none() | uint | encoded(0)),
        draw(flags),
        draw(flags),
        draw(st.none() | st.just(1)),
        draw(st.sampled_from(STATES)),
        draw(flags),
        draw(flags),
        draw(flags),
    ]
    names = "handle delivery_id delivery_tag message_format settled more rcv_settle_mode state resume aborted batchable"
    keep = draw(st.integers(1, 11))
    fields: dict[str, Any] = dict(zip(names.split()[:keep], values, strict=False))
    body = composite(
        "transfer",
        fields,
        symbolic=draw(st.sampled_from([False, False, True])),
        list_code=draw(st.sampled_from([None, None, 0xD0])),
        pad=draw(st.booleans()),
    )
    return encode(body) + draw(st.binary(max_size=20))


@st.composite
def dispositions(draw: st.DrawFn) -> bytes:
    states: list[Any] = [
        None,
        ("accepted", {}),
        ("released", {}),
        ("rejected", {}),
        ("modified", {"delivery_failed": True}),
        *IN_TXN,
    ]
    fields: dict[str, Any] = {
        "role": draw(st.booleans()),
        "first": draw(uints.flatmap(encoded)),
        "last": draw(st.none() | uints.flatmap(encoded)),
        "settled": draw(flags),
        "state": draw(st.sampled_from(states)),
        "batchable": draw(flags),
    }
    return encode(
        composite(
            "disposition",
            fields,
            symbolic=draw(st.sampled_from([False, False, True])),
            list_code=draw(st.sampled_from([None, None, 0xD0])),
            pad=draw(st.booleans()),
        )
    )


@given(transfers() | dispositions(), st.tuples(st.binary(max_size=9), st.binary(max_size=9)))
def test_reader_equals_the_generic_path_for_every_field(body: bytes, around: tuple[bytes, bytes]) -> None:
    check(body, around)


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A performative of a usual shape with some octets changed, cut out or put in."""
    body = bytearray(draw(st.sampled_from(USUAL)) + draw(st.binary(max_size=6)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(3, len(body) - 1))
        octet = draw(st.sampled_from(list(b"\x40\x41\x42\x43\x45\x52\x70\xa0\xb0\xc0\xd0\x00\x01\xff")))
        match draw(st.sampled_from(["change", "change", "add", "cut"])):
            case "change":
                body[place] = octet
            case "add":
                body.insert(place, octet)
                if draw(st.booleans()):
                    body[4] = (body[4] + 1) & 0xFF
            case _:
                del body[place:]
                break
        if draw(st.booleans()):
            body[5 if len(body) > 5 else -1] = draw(st.integers(0, 13))
        if len(body) <= 4:
            break
    return bytes(body)


USUAL = [
    encode(composite("transfer", {"handle": 0, "delivery_id": 0, "delivery_tag": b"t", "message_format": 0})),
    encode(
        composite("transfer", {"handle": 300, "delivery_id": 70_000, "delivery_tag": b"tag", "settled": True})
    ),
    encode(
        composite(
            "transfer",
            {
                "handle": 5,
                "delivery_id": 5,
                "delivery_tag": b"",
                "message_format": 0,
                "settled": False,
                "more": True,
                "batchable": False,
            },
        )
    ),
    encode(composite("transfer", {"handle": 1, "more": True})),
    encode(
        composite(
            "disposition", {"role": True, "first": 0, "last": 0, "settled": True, "state": ("accepted", {})}
        )
    ),
    encode(
        composite(
            "disposition",
            {
                "role": False,
                "first": 500,
                "last": 70_000,
                "settled": False,
                "state": ("released", {}),
                "batchable": False,
            },
        )
    ),
    *(
        encode(
            composite(
                "transfer",
                {
                    "handle": 1,
                    "delivery_id": 2,
                    "delivery_tag": b"t",
                    "message_format": 0,
                    "settled": False,
                    "state": state,
                },
            )
        )
        for state in IN_TXN[:3]
    ),
    *(
        encode(composite("disposition", {"role": True, "first": 1, "last": 9, "state": state}))
        for state in IN_TXN[:3]
    ),
]


WRONG = [
    bytes.fromhex("005314c009074343a0004342424 2".replace(" ", "")),  # false where a settle mode is due
    bytes.fromhex("005314c00a084343a000434242 4042".replace(" ", "")),  # false where a state is due
    bytes.fromhex("005314c00e054343a00043 005334c00301a000"),  # a state where settled is due
]


@settings(max_examples=scaled(500))
@given(broken(), st.tuples(st.binary(max_size=4), st.binary(max_size=30)))
@example(WRONG[0], (b"", b""))
@example(WRONG[1], (b"", b""))
@example(WRONG[2], (b"", b""))
def test_reader_reads_no_broken_octets_that_the_generic_path_refuses(
    body: bytes, around: tuple[bytes, bytes]
) -> None:
    check(body, around)


@settings(max_examples=scaled(300))
@given(
    st.lists(st.sampled_from([body for body in USUAL if body[:3] == TRANSFER]) | transfers(), max_size=3),
    st.data(),
)
def test_transfer_reader_reads_like_a_forgetful_one_whatever_it_has_seen(
    seen: list[bytes], data: st.DataObject
) -> None:
    reader = TransferReader()
    for body in seen:
        for _ in range(data.draw(st.integers(1, 3))):  # a shape is kept when it has come twice in a row
            assert reader.read(body, 0, len(body)) == read_transfer(body, 0, len(body))
    for body in [*seen, data.draw(transfers() | broken())]:
        before, end = data.draw(st.binary(max_size=4)), data.draw(st.integers(0, 30))
        buf, pos = before + body + bytes(end), len(before)
        assert reader.read(buf, pos, pos + len(body)) == read_transfer(buf, pos, pos + len(body))


@pytest.mark.parametrize("handle", [0, 7, 300])
@pytest.mark.parametrize("settled", [False, True])
def test_transfer_reader_keeps_a_shape_that_has_come_twice(handle: int, settled: bool) -> None:
    reader = TransferReader()
    head = transfer_head(0, handle)
    for number in range(5):
        frame = write_transfer(head, 100, number, 9 - number, settled) + bytes(8)
        wanted = (handle, number, (9 - number).to_bytes(4, "big"), 0, settled, False, None, WHOLE_OVERHEAD)
        assert reader.read(frame, 8, len(frame)) == wanted
    octets = bytearray(write_transfer(head, 100, 9, 9, settled))
    for place in range(11, len(octets)):
        for octet in range(256):
            changed = bytes(octets[:place]) + bytes([octet]) + bytes(octets[place + 1 :])
            assert reader.read(changed, 8, len(changed)) == read_transfer(changed, 8, len(changed))


@pytest.mark.parametrize(
    "octets",
    [
        "005314 c0 10 0b 5203 5204 a00174 43 42 42 40 40 40 40 40",
        "005314 c0 0a 06 43 43 a00174 5200 41 41",
        "005315 c0 0e 06 41 5203 5204 41 005324c00100 42",
        "005315 c0 09 05 42 43 40 42 00532645",
        "005315 c0 16 05 41 43 40 40 005334c00c02a003 000102 005324c00100",
        "005314 c0 18 0b 43 43 a00174 43 42 42 40 005334c00601a003 000102 404042",
    ],
)
def test_reader_reads_no_changed_octet_for_something_else(octets: str) -> None:
    """Every octet in every place, one at a time."""
    body = bytes.fromhex(octets.replace(" ", ""))
    assert check(body)
    for place in range(3, len(body)):
        for octet in range(256):
            check(body[:place] + bytes([octet]) + body[place + 1 :])


@pytest.mark.parametrize("end", range(3, 30))
@pytest.mark.parametrize("body", USUAL)
def test_reader_says_nothing_of_octets_that_end_too_early(body: bytes, end: int) -> None:
    cut = body[:end]
    if len(cut) < len(body):
        assert not check(cut)
        read: Any = read_transfer if body[:3] == TRANSFER else read_disposition
        assert read(body, 0, end) is None


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("005314c00b05435200a0010143 41", id="rhea"),
        pytest.param("005314c0160b52007000000001a00101434042 4040404042", id="proton, batchable false"),
        pytest.param("005314c007054343a0010143 42", id="settled false"),
        pytest.param("005314c01906 7000000001 7000000002 a0040102 0304 7000000000 42 41", id="wide"),
        pytest.param("005314c006065201404040 42 41", id="continuation"),
    ],
)
def test_reader_knows_the_shapes_of_the_steady_state(body: str) -> None:
    octets = bytearray.fromhex(body.replace(" ", ""))
    octets[4] = len(octets) - 5
    assert check(bytes(octets))


@pytest.mark.parametrize("state", [ACCEPTED, RELEASED])
@pytest.mark.parametrize("role", [True, False])
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("batchable", [None, False, True])
@pytest.mark.parametrize("ids", [(0, 0), (1, 255), (256, 0xFFFFFFFF), (7, None)])
@pytest.mark.parametrize("empty", [0x45, 0xC0, 0xD0])
def test_reader_knows_the_dispositions_of_the_steady_state(
    state: Any, role: bool, settled: bool, batchable: bool | None, ids: tuple[int, int | None], empty: int
) -> None:
    code = 0x24 if state is ACCEPTED else 0x26
    inner = Typed("described", (Typed("ulong", code), Typed("list", (), empty)))
    fields = {"role": role, "first": ids[0], "last": ids[1], "settled": settled, "state": inner}
    body = encode(composite("disposition", {**fields, "batchable": batchable}))
    last = ids[0] if ids[1] is None else ids[1]
    assert read_disposition(body, 0, len(body)) == (role, ids[0], last, settled, state)
    assert check(body)


# -- writing ------------------------------------------------------------------------------------


@given(st.integers(0, 0xFFFF), uints, uints, uints, st.booleans(), st.binary(max_size=50))
def test_writer_of_transfers_equals_the_generic_path(
    channel: int, handle: int, delivery_id: int, tag: int, settled: bool, payload: bytes
) -> None:
    size = WHOLE_OVERHEAD + len(payload)
    octets = write_transfer(transfer_head(channel, handle), size, delivery_id, tag, settled) + payload
    (frame,) = parse_frames(octets)
    assert (frame.channel, frame.payload, len(frame.raw)) == (channel, payload, size)
    assert frame.fields == {
        "handle": handle,
        "delivery_id": delivery_id,
        "delivery_tag": tag.to_bytes(4, "big"),
        "message_format": 0,
        "settled": settled,
    }
    performative, _ = PERFORMATIVES.decode(octets[8:])
    assert performative == Transfer(
        handle=handle,
        delivery_id=delivery_id,
        delivery_tag=tag.to_bytes(4, "big"),
        message_format=0,
        settled=settled,
    )


OUTCOMES = [None, ACCEPTED, RELEASED, Accepted(), Released(), Rejected(), Modified(delivery_failed=True)]


@st.composite
def transactional(draw: st.DrawFn) -> TransactionalState:
    return TransactionalState(
        txn_id=draw(st.binary(max_size=40) | st.just(bytearray(b"t"))),
        outcome=draw(st.sampled_from(OUTCOMES)),
    )


@given(uints, uints, uints, st.booleans(), transactional())
def test_writer_of_transfers_in_a_transaction_writes_the_octets_of_the_generic_codec(
    handle: int, delivery_id: int, tag: int, settled: bool, state: TransactionalState
) -> None:
    tail = transfer_tail(state)
    usual = type(state.txn_id) is bytes and len(state.txn_id) <= 32
    assert (tail is not None) is (usual and not isinstance(state.outcome, (Rejected, Modified)))
    if tail is not None:
        body = (write_transfer(transfer_head(0, handle, tail), 0, delivery_id, tag, settled) + tail)[8:]
        wanted = Transfer(
            handle=handle,
            delivery_id=delivery_id,
            delivery_tag=tag.to_bytes(4, "big"),
            message_format=0,
            settled=settled,
            state=state,
        )
        assert PERFORMATIVES.decode(body) == (wanted, len(body))
        assert body.endswith(encode_generic(state))
        assert read_transfer(body, 0, len(body)) == fields_of(wanted, len(body))


@given(st.booleans(), uints, uints, st.booleans(), st.sampled_from(OUTCOMES) | transactional())
def test_writer_of_dispositions_equals_the_generic_path(
    role: bool, first: int, last: int, settled: bool, state: Any
) -> None:
    body = write_disposition(role, first, last, settled, state)
    assert body[:3] == DISPOSITION
    (frame,) = parse_frames(raw_frame(body))
    performative, pos = PERFORMATIVES.decode(body)
    assert pos == len(body)
    assert performative.last in (last, None)
    if performative.last is None:
        performative = Disposition(
            role=role, first=first, last=last, settled=settled, state=performative.state
        )
    assert performative == Disposition(role=role, first=first, last=last, settled=settled, state=state)
    assert frame["first"] == first


@given(uints, uints)
def test_writer_and_reader_of_dispositions_understand_each_other(first: int, last: int) -> None:
    body = write_disposition(True, first, last, True, ACCEPTED)
    assert read_disposition(body, 0, len(body)) == (True, first, last, True, ACCEPTED)


@pytest.mark.parametrize("octets", WRONG)
def test_generic_path_refuses_what_the_examples_above_hold(octets: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        PERFORMATIVES.decode(octets)
