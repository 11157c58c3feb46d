"""From annotation to codec, and registries (1.3, 1.4)."""

from __future__ import annotations

import uuid
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import performatives as naive
from tests.scaled import scaled
from trio_amqp10.amqp10.spec import PERFORMATIVES, SASL_PERFORMATIVES, TYPES
from trio_amqp10.amqp10.spec.messaging import (
    ACCEPTED,
    DATA,
    RELEASED,
    Accepted,
    DeleteOnClose,
    ExpiryPolicy,
    Header,
    Modified,
    Properties,
    Rejected,
    Released,
    Source,
    Target,
    TerminusDurability,
)
from trio_amqp10.amqp10.spec.security import SaslCode, SaslMechanisms, SaslOutcome
from trio_amqp10.amqp10.spec.transactions import Coordinator, Declare, Declared, Discharge, TransactionalState
from trio_amqp10.amqp10.spec.transport import (
    Attach,
    Begin,
    Close,
    Detach,
    Error,
    Flow,
    Open,
    ReceiverSettleMode,
    SenderSettleMode,
    Transfer,
)
from trio_amqp10.amqp10.wire.composite import Registry, Section
from trio_amqp10.amqp10.wire.decode import Budget, decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.fields import InvalidFieldError
from trio_amqp10.amqp10.wire.values import Described, Symbol, Timestamp, ULong
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .composites import ATTACH, Brush, Colour, Paint, names, octets

MESSAGING = Registry(Header, Properties, nested=TYPES)
OURS = Registry(*TYPES, Paint, Brush)


# Encoding ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capabilities", "wire"),
    [
        ("a", "a30161"),  # one str is one symbol
        (["a"], "a30161"),
        (("a", "bb"), "e00702a3" + "0161" + "026262"),
        ({"a": 1}, "a30161"),
    ],
)
def test_multiple_field_takes_one_or_any_iterable(capabilities: Any, wire: str) -> None:
    coordinator = Coordinator(capabilities=capabilities)
    assert isinstance(coordinator.capabilities, tuple)
    assert octets(coordinator).endswith(wire)


def test_multiple_field_takes_an_iterator() -> None:
    coordinator = Coordinator(capabilities=(each for each in "a"))
    assert isinstance(coordinator.capabilities, tuple)
    assert octets(coordinator).endswith("a30161")


@pytest.mark.parametrize("nothing", [None, (), []])
def test_multiple_field_is_null_when_it_is_empty(nothing: Any) -> None:
    assert octets(Coordinator(capabilities=nothing)) == "005330c00100"


def test_multiple_field_is_an_array_when_it_is_mandatory() -> None:
    assert octets(SaslMechanisms(sasl_server_mechanisms="PLAIN")) == "005340c00b01e00801a305" + b"PLAIN".hex()
    with pytest.raises(LocalProtocolError, match="sasl-server-mechanisms is mandatory"):
        encode(SaslMechanisms(sasl_server_mechanisms=()))


def test_symbol_keyed_map_sends_str_keys_as_symbols() -> None:
    begin = Begin(next_outgoing_id=0, incoming_window=0, outgoing_window=0, properties={"a": "b"})
    assert octets(begin).endswith("c10702a30161" + "a10162")


def test_map_merged_into_annotations_sends_int_keys_as_ulong() -> None:
    assert octets(Modified(message_annotations={5: None, "a": None})).endswith(
        "c10804" + "530540" + "a3016140"
    )


def test_message_id_takes_each_of_its_types() -> None:
    number = uuid.UUID(int=1)
    for value, wire in [
        (5, "5305"),
        ("a", "a10161"),
        (Symbol("a"), "a10161"),
        (b"a", "a00161"),
        (number, "98" + number.hex),
    ]:
        assert octets(Properties(message_id=value)).endswith(wire)


# Decoding ----------------------------------------------------------------------------------------


OBJECTS: list[tuple[Registry, Any]] = [
    (PERFORMATIVES, Open(container_id="a", channel_max=1)),
    (
        PERFORMATIVES,
        Open(container_id="a", idle_time_out=0, outgoing_locales=["en", "de"], properties={"a": [1]}),
    ),
    (PERFORMATIVES, Attach(**ATTACH, max_message_size=0, source=Source(), target=Coordinator())),
    (
        PERFORMATIVES,
        Attach(**ATTACH, unsettled={b"1": ACCEPTED, b"2": None, b"3": Rejected(error=Error(condition="c"))}),
    ),
    (
        PERFORMATIVES,
        Transfer(
            handle=0,
            delivery_tag=b"t",
            settled=False,
            state=TransactionalState(txn_id=b"1", outcome=ACCEPTED),
        ),
    ),
    (
        PERFORMATIVES,
        Detach(handle=1, closed=True, error=Error(condition="a", description="b", info={"c": 1})),
    ),
    (SASL_PERFORMATIVES, SaslMechanisms(sasl_server_mechanisms=["A", "B"])),
    (SASL_PERFORMATIVES, SaslOutcome(code=SaslCode.SYS_TEMP, additional_data=b"x")),
    (MESSAGING, Header(durable=True, priority=9, ttl=1, first_acquirer=True, delivery_count=2)),
    (
        MESSAGING,
        Properties(message_id=2**63, to="a", user_id=b"u", creation_time=1, group_sequence=2**32 - 1),
    ),
    (TYPES, Source(address="a", durable=TerminusDurability.UNSETTLED_STATE, filter={"f": Described("d", 1)})),
    (
        TYPES,
        Source(
            dynamic=True,
            dynamic_node_properties={"lifetime-policy": DeleteOnClose()},
            default_outcome=RELEASED,
        ),
    ),
    (TYPES, Declare(global_id=[1, "anything"])),
    (TYPES, Declare(global_id=Described("x", 1))),
    (TYPES, Declared(txn_id=b"1")),
    (OURS, Paint(colour=Colour.BLUE, layers=0, names=["a"], sizes=[1, 300], last=Error(condition="x"))),
    (OURS, TransactionalState(txn_id=b"1", outcome=Paint(colour=Colour.RED))),
]


@pytest.mark.parametrize(("registry", "obj"), OBJECTS)
def test_composite_comes_back_as_it_went(registry: Registry, obj: Any) -> None:
    buf = encode(obj)
    assert registry.decode(b"?" + buf + b"?", 1) == (obj, 1 + len(buf))


def test_declared_fields_are_plain_where_the_declaration_tells_the_type() -> None:
    attach, _ = PERFORMATIVES.decode(
        encode(
            Attach(
                **ATTACH | {"handle": 300}, max_message_size=2**40, source=Source(timeout=5, capabilities="c")
            )
        )
    )
    assert [type(each) for each in (attach.handle, attach.max_message_size, attach.name)] == [int, int, str]
    assert type(attach.source.timeout) is int
    assert type(attach.source.capabilities[0]) is Symbol
    assert attach.source.expiry_policy == ExpiryPolicy.SESSION_END
    assert attach.snd_settle_mode is SenderSettleMode.MIXED
    assert attach.rcv_settle_mode is ReceiverSettleMode.FIRST
    properties, _ = MESSAGING.decode(encode(Properties(message_id=5, creation_time=7)))
    assert (type(properties.message_id), type(properties.creation_time)) == (ULong, Timestamp)


@pytest.mark.parametrize("number", ["44", "5300", "800000000000000000"])
def test_registry_takes_every_encoding_of_a_numeric_descriptor(number: str) -> None:
    assert OURS.decode(bytes.fromhex("00" + number + "c0020143")) == (Brush(width=0), 5 + len(number) // 2)


@pytest.mark.parametrize(
    "head",
    [
        "005318",
        "00800000000000000018",
        "00a30f" + b"amqp:close:list".hex(),
        "00b30000000f" + b"amqp:close:list".hex(),
    ],
)
@pytest.mark.parametrize("body", ["45", "c00100", "c0020140", "d00000000400000000", "d0000000050000000140"])
def test_registry_takes_every_form_of_a_described_list(head: str, body: str) -> None:
    buf = bytes.fromhex(head + body)
    assert PERFORMATIVES.decode(buf) == (Close(), len(buf))


@pytest.mark.parametrize(
    ("wire", "capabilities"),
    [
        ("40", ()),
        ("a30161", ("a",)),
        ("b30000000161", ("a",)),
        ("e00200a3", ()),
        ("e00401a3" + "0161", ("a",)),
        ("e00602a301610162", ("a", "b")),
        ("f00000000900000002a301610162", ("a", "b")),
        ("e0020040", ()),  # an empty array of anything says nothing
        ("e0020070", ()),
    ],
)
def test_multiple_field_reads_null_one_and_many_as_a_tuple(wire: str, capabilities: Any) -> None:
    buf = bytes.fromhex("005330" + f"c0{1 + len(wire) // 2:02x}01" + wire)
    assert TYPES.decode(buf) == (Coordinator(capabilities=capabilities), len(buf))


@pytest.mark.parametrize(
    "wire", ["a10161", "e00401a1" + "0161", "e0020140", "e006010040a30161", "c00401a30161"]
)
def test_multiple_field_refuses_what_is_of_another_type(wire: str) -> None:
    buf = bytes.fromhex("005330" + f"c0{1 + len(wire) // 2:02x}01" + wire)
    with pytest.raises(RemoteProtocolError, match="amqp:coordinator:list"):
        TYPES.decode(buf)


@pytest.mark.parametrize("body", ["c00100", "c0020140", "45", "c00501e00200a3"])
def test_mandatory_multiple_field_reads_nothing_as_an_empty_tuple(body: str) -> None:
    assert SASL_PERFORMATIVES.decode(bytes.fromhex("005340" + body))[0].sasl_server_mechanisms == ()


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        ("005323c003024344", "amqp:received:list does not provide outcome"),
        ("a10161", "outcome expected, got string"),
        ("3f", "0x3f"),
    ],
)
def test_archetype_field_refuses_what_does_not_provide_it(outcome: str, text: str) -> None:
    wire = "a00131" + outcome
    with pytest.raises(InvalidFieldError, match=text):
        TYPES.decode(bytes.fromhex("005334" + f"c0{1 + len(wire) // 2:02x}02" + wire))


def test_known_type_that_is_not_a_list_is_a_decode_error_where_it_is_nested() -> None:
    with pytest.raises(
        RemoteProtocolError, match=r"amqp:accepted:list must be a list, not constructor 0x41"
    ) as caught:
        TYPES.decode(encode(TransactionalState(txn_id=b"1", outcome=Described(0x24, True))))
    assert caught.value.condition == "amqp:decode-error"


def test_restricted_choice_is_refused_when_it_is_unknown() -> None:
    with pytest.raises(InvalidFieldError, match=r"example:paint:list.colour: 7 is not a valid colour"):
        OURS.decode(bytes.fromhex("00800000000100000001c003015207"))


def test_error_field_takes_a_symbolic_descriptor() -> None:
    wire = "00a30f" + b"amqp:error:list".hex() + "c00401a30161"
    buf = bytes.fromhex(f"005317c0{1 + len(wire) // 2:02x}01" + wire)
    assert PERFORMATIVES.decode(buf)[0].error == Error(condition="a")


def test_registry_decodes_known_types_inside_maps_only() -> None:
    source = Source(filter={"known": ACCEPTED, "unknown": Described("x", 1)})
    back, _ = TYPES.decode(encode(source))
    assert back.filter == source.filter
    assert type(back.filter["known"]) is Accepted


def test_registry_leaves_the_types_of_a_budget_as_they_were() -> None:
    budget = Budget()
    TYPES.decode(encode(ACCEPTED), 0, budget)
    assert budget.types is None
    assert decode(encode(ACCEPTED), 0, budget)[0] == Described(0x24, [])


def test_registry_resolves_what_was_decoded_without_types() -> None:
    for obj in (Declare(), Discharge(txn_id=b"1", fail=True), Source(address="a", outcomes=["a", "b"])):
        described, _ = decode(encode(obj))
        assert isinstance(described, Described)
        assert TYPES.resolve(described) == obj
    for other in (Described("x", 1), Described(None, 1), 5, ACCEPTED):
        assert TYPES.resolve(other) is other
    with pytest.raises(InvalidFieldError):
        TYPES.resolve(Described(0x32, []))


def test_registry_knows_its_classes() -> None:
    assert list(OURS) == [*TYPES, Paint, Brush]
    assert Paint in OURS
    assert Paint not in TYPES
    assert OURS.lookup(0x24) is Accepted
    assert OURS.lookup("amqp:accepted:list") is Accepted
    assert TYPES.lookup(0x10) is None


# Classes -----------------------------------------------------------------------------------------


def test_composite_shows_what_is_not_a_default() -> None:
    assert repr(ACCEPTED) == "Accepted()"
    assert (
        repr(Source(address="a", timeout=0, capabilities="c")) == "Source(address='a', capabilities=('c',))"
    )
    assert repr(Flow(incoming_window=0, next_outgoing_id=1, outgoing_window=2)) == (
        "Flow(incoming_window=0, next_outgoing_id=1, outgoing_window=2)"
    )


def test_composite_encodes_itself_into_a_buffer() -> None:
    out = bytearray(b"x")
    Close().__amqp_encode__(out)  # type: ignore[attr-defined]
    assert out == b"x" + encode(Close())


def test_composite_compares_by_class_and_fields() -> None:
    assert Accepted() == ACCEPTED
    assert Source(address="a") == Source(address="a")
    assert Source(address="a") != Source(address="b")
    different: list[Any] = [Source(), Target(), Released(), Accepted()]
    assert [one == other for one in different for other in different].count(True) == 4


def test_composite_is_slots_and_keywords_only() -> None:
    assert not hasattr(ACCEPTED, "__dict__")
    with pytest.raises(TypeError):
        Source("a")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Flow(incoming_window=1)  # type: ignore[call-arg]


def test_section_has_both_descriptors_and_its_octets() -> None:
    assert (DATA.name, DATA.code, DATA.prefix) == ("amqp:data:binary", 0x75, b"\x00\x53\x75")
    assert repr(DATA) == "Section('amqp:data:binary', 0x75)"
    assert Section("example:x", 0x1_0000_0000).prefix.hex() == "00800000000100000000"


# The second codec --------------------------------------------------------------------------------


def as_naive(value: Any) -> Any:
    """A composite as the second codec takes it: a name and a dict of fields."""
    plan = getattr(type(value), "__amqp__", None)
    if plan is None:
        return (
            int(value) if isinstance(value, IntEnum) else list(value) if isinstance(value, tuple) else value
        )
    fields = {field.name: as_naive(each) for field, each in zip(plan.fields, plan.values(value), strict=True)}
    return plan.name.removeprefix("amqp:").removesuffix(":list"), fields


uints = st.integers(0, 2**32 - 1)
terms = st.lists(st.text("abc-:", min_size=1, max_size=6), max_size=3)
errors = st.none() | st.builds(Error, condition=st.text("abc:", max_size=5), description=st.none() | names)
states = (
    st.none()
    | st.sampled_from([ACCEPTED, RELEASED])
    | st.builds(Rejected, error=errors)
    | st.builds(Modified, delivery_failed=st.none() | st.booleans())
)
performatives = st.one_of(
    st.builds(
        Open,
        container_id=names,
        max_frame_size=uints,
        channel_max=st.integers(0, 65_535),
        desired_capabilities=terms,
    ),
    st.builds(
        Attach,
        name=names,
        handle=uints,
        role=st.booleans(),
        snd_settle_mode=st.sampled_from(SenderSettleMode),
        source=st.none() | st.builds(Source, address=st.none() | names, outcomes=terms, timeout=uints),
        target=st.none()
        | st.builds(Target, address=st.none() | names, durable=st.sampled_from(TerminusDurability)),
        initial_delivery_count=st.none() | uints,
        max_message_size=st.none() | st.integers(0, 2**64 - 1),
    ),
    st.builds(
        Flow,
        incoming_window=uints,
        next_outgoing_id=uints,
        outgoing_window=uints,
        handle=st.none() | uints,
        drain=st.booleans(),
    ),
    st.builds(
        Transfer,
        handle=uints,
        delivery_tag=st.none() | st.binary(max_size=32),
        settled=st.none() | st.booleans(),
        state=states,
    ),
    st.builds(Detach, handle=uints, closed=st.booleans(), error=errors),
)


@given(performatives)
@settings(deadline=None)
def test_performative_of_the_second_codec_is_read_as_ours(performative: Any) -> None:
    name, fields = as_naive(performative)
    (frame,) = naive.parse_frames(naive.frame(name, **fields))
    assert frame.name == name
    body = naive.frame(name, **fields)[8:]
    assert PERFORMATIVES.decode(body) == (performative, len(body))


@given(performatives, st.data())
@settings(deadline=None, max_examples=scaled(50))
def test_damaged_performative_gives_an_object_or_a_remote_error(
    performative: Any, data: st.DataObject
) -> None:
    buf = encode(performative)
    assert PERFORMATIVES.decode(buf) == (performative, len(buf))
    damage = data.draw(st.integers(1, 255))
    for index in range(len(buf)):
        for damaged in (buf[:index], buf[:index] + bytes((buf[index] ^ damage,)) + buf[index + 1 :]):
            try:
                PERFORMATIVES.decode(damaged)
            except RemoteProtocolError:
                continue
