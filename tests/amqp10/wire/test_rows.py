"""What octets that are no value lead to: the rows of the reaction table that the codec answers for.

The codec raises; which of connection, session and link ends for it is tested with the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trio_amqp10.amqp10.spec import PERFORMATIVES, SASL_PERFORMATIVES
from trio_amqp10.amqp10.spec.messaging import ACCEPTED
from trio_amqp10.amqp10.spec.transport import Attach, Flow, Open
from trio_amqp10.amqp10.wire.decode import Budget, decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.fields import InvalidFieldError
from trio_amqp10.amqp10.wire.values import Described, ZeroWidthArray
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

if TYPE_CHECKING:
    from trio_amqp10.amqp10.wire.composite import Registry


def refusal(octets: str | bytes, budget: Budget | None = None) -> RemoteProtocolError:
    buf = bytes.fromhex(octets) if isinstance(octets, str) else octets
    with pytest.raises(RemoteProtocolError) as caught:
        decode(buf, 0, budget)
    return caught.value


def performative_refusal(octets: str, registry: Registry = PERFORMATIVES) -> RemoteProtocolError:
    with pytest.raises(RemoteProtocolError) as caught:
        registry.decode(bytes.fromhex(octets))
    return caught.value


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        ("a101ff", "string are not utf-8"),
        ("a103eda080", "string are not utf-8"),  # a surrogate in UTF-8
        ("b100000001ff", "string are not utf-8"),
        ("a30180", "symbol are not ascii"),
        ("b30000000180", "symbol are not ascii"),
        ("3f", "0x3f is not a known constructor"),
        ("c002013f", "0x3f is not a known constructor"),
        ("e002003f", "0x3f is not a known constructor"),
        ("5602", "0x02 is not the octet of a boolean"),
        ("e003015602", "0x02 is not the octet of a boolean"),
        ("7300110000", "0x110000 is not a Unicode character"),
        ("730000d800", "0xd800 is not a Unicode character"),
        ("c1020140", "key without a value"),
        ("c0030140", "end inside"),
        ("c003014040", "1 octets before the stated size"),
        ("c00301a1014141", "1 octets after the stated size"),
        ("c105025501a1014141", "1 octets after the stated size"),
        ("c10402404040", "1 octets before the stated size"),
        ("e004015001" + "02", "1 octets before the stated size"),
        ("e003014000", "1 octets before the stated size"),
        ("c000", "end inside"),
        ("c00000", "0 elements in 0 octets"),
        ("d00000000300000000", "0 elements in 0 octets"),
        ("e00000", "0 elements in 0 octets"),
        ("", "end inside"),
        ("70000000", "end inside"),
        ("74000000", "end inside"),
        ("98" + "00" * 15, "end inside"),
        ("a00261", "end inside"),
        ("a0", "end inside"),
        ("b0000000", "end inside"),
        ("00", "end inside"),
        ("00a30161", "end inside"),
        ("e00100", "end inside"),
    ],
)
def test_row_24_octets_that_are_no_value_are_a_decode_error(octets: str, text: str) -> None:
    error = refusal(octets)
    assert error.condition == "amqp:decode-error"
    assert error.scope == "connection"
    assert text in error.description


@pytest.mark.parametrize("code", ["c0", "c1", "e0"])
def test_row_25_count_beyond_the_octets_is_refused_before_anything_is_made(code: str) -> None:
    content = "50" if code == "e0" else ""
    size = f"{1 + len(content) // 2:02x}"
    assert "elements in 0 octets" in refusal(code + size + "fe" + content).description


@pytest.mark.parametrize("code", ["d0", "d1", "f0"])
def test_row_25_long_count_beyond_the_octets_is_refused_before_anything_is_made(code: str) -> None:
    content = "50" if code == "f0" else ""
    budget = Budget()
    error = refusal(code + f"{4 + len(content) // 2:08x}" + "fffffffe" + content, budget)
    assert "elements in 0 octets" in error.description
    assert budget.nodes == 65_535


def test_row_25_size_beyond_the_octets_is_refused() -> None:
    for octets in ("d0ffffffff00000000", "f0ffffffff0000000050", "b0ffffffff", "b1ffffffff", "b3ffffffff"):
        assert refusal(octets).condition == "amqp:decode-error"


def test_row_26_zero_width_array_stays_opaque() -> None:
    budget = Budget(1)
    value, end = decode(bytes.fromhex("f000000005ffffffff40"), 0, budget)
    assert (value, end) == (ZeroWidthArray(0x40, 2**32 - 1), 10)
    assert budget.nodes == 0
    with pytest.raises(LocalProtocolError, match="more than the 65536"):
        value.expand()


def test_row_27_performative_has_1024_nodes() -> None:
    def octets(count: int) -> bytes:
        return encode(Open(container_id="", properties={str(key): None for key in range(count)}))

    # One for the performative, ten for its fields, and two for each pair.
    PERFORMATIVES.decode(octets(506))
    with pytest.raises(RemoteProtocolError) as caught:
        PERFORMATIVES.decode(octets(507))
    assert caught.value.condition == "amqp:resource-limit-exceeded"


def test_row_27_unsettled_of_an_attach_is_counted_apart() -> None:
    unsettled = {str(number).encode(): ACCEPTED for number in range(5_000)}
    octets = encode(Attach(name="a", handle=0, role=True, unsettled=unsettled, properties={"a": 1}))
    attach, _ = PERFORMATIVES.decode(octets)
    assert attach.unsettled == unsettled
    octets = encode(
        Attach(name="a", handle=0, role=True, unsettled={str(n).encode(): None for n in range(32_769)})
    )
    with pytest.raises(RemoteProtocolError) as caught:
        PERFORMATIVES.decode(octets)
    assert caught.value.condition == "amqp:resource-limit-exceeded"


@pytest.mark.parametrize("code", ["00", "45", "c00100", "d00000000400000000", "c10100", "e0020050", "3f"])
def test_row_28_compound_descriptor_is_refused(code: str) -> None:
    assert "is not the constructor of a descriptor" in refusal("00" + code + "40").description
    assert "is not the constructor of a descriptor" in refusal("e00800" + "00" + code + "40" * 10).description


def pairs(*octets: str) -> str:
    content = "".join(octets)
    return f"c1{1 + len(content) // 2:02x}{len(octets):02x}{content}"


def test_row_29_duplicate_map_key_is_a_decode_error() -> None:
    error = refusal(pairs("a10161", "40", "a10161", "41"))
    assert (error.condition, error.rule) == ("amqp:decode-error", "duplicate-map-keys")
    assert "'a' appears twice" in error.description


def test_row_29_last_duplicate_wins_when_they_are_allowed() -> None:
    octets = pairs("a10161", "40", "a10162", "40", "a10161", "41", "5501", "40", "a10161", "42", "5501", "41")
    budget = Budget(allow_duplicate_keys=True)
    assert decode(bytes.fromhex(octets), 0, budget)[0] == {"a": False, "b": None, 1: True}


NAN = "827ff8000000000000"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5501", "41"),  # long and boolean
        ("5501", "5201"),  # long and uint
        ("5501", "823ff0000000000000"),  # long and double
        ("a10161", "a30161"),  # string and symbol
        ("820000000000000000", "828000000000000000"),  # 0.0 and -0.0
        (NAN, NAN),  # equal to nothing
        (NAN, "827ff8000000000001"),
        ("45", "c1020140"[:2] + "0100"),  # lists and maps
        ("c003015501", "c0020141"),
        ("e0030150" + "01", "e0020050"),  # arrays
        ("e0020240", "e0020340"),
        ("00a3016145", "00a30161c0020140"),  # described lists
        ("00a301615501", "00a3016141"),
    ],
)
def test_row_29_map_keeps_keys_that_differ_for_the_standard_only(one: str, other: str) -> None:
    octets = bytes.fromhex(pairs(one, "5401", other, "5402", "a1027879", "5403"))
    for budget in (Budget(), Budget(allow_duplicate_keys=True)):
        value, end = decode(octets, 0, budget)
        assert end == len(octets)
        assert encode(value) == octets
        assert [*value.values()] == [1, 2, 3]
        assert value["xy"] == 3
        assert (budget.depth, budget.nodes >= 65_536 - len(octets)) == (32, True)


@pytest.mark.parametrize(
    "key", ["5501", "45", "c10100", "e0020050", "e0020140", "004045", "00a3016145", "7432800001"]
)
def test_row_29_key_that_is_there_twice_is_a_decode_error_whatever_its_type(key: str) -> None:
    for before in ((), ("5501", "40", "41", "40")):
        octets = pairs(*before, *(() if before and key == "5501" else (key, "40")), key, "41")
        error = refusal(octets)
        assert error.condition == "amqp:decode-error"
        assert "appears twice" in error.description
        value, _ = decode(bytes.fromhex(octets), 0, Budget(allow_duplicate_keys=True))
        assert [*value.values()][-1 if not before or key != "5501" else 0] is True


def test_row_29_map_that_a_dict_holds_is_a_dict_when_duplicates_are_allowed() -> None:
    octets = bytes.fromhex(pairs("a10161", "40", "a10161", "41"))
    assert decode(octets, 0, Budget(allow_duplicate_keys=True))[0].__class__ is dict


@pytest.mark.parametrize("size", ["0d", "0f"])
def test_row_29_size_of_a_map_with_equal_keys_is_checked_too(size: str) -> None:
    octets = bytes.fromhex(pairs("a10161", "40", "a30161", "40") + "40")
    assert decode(octets)[1] == len(octets) - 1
    wrong = octets[:1] + bytes((octets[1] + 1,)) + octets[2:]
    assert "after the stated size" in refusal(wrong).description or "before" in refusal(wrong).description


def test_row_29_described_and_decimal_keys_are_taken() -> None:
    value, _ = decode(bytes.fromhex(pairs("00a3016140", "41", "7432800001", "42")))
    assert value[Described("a", None)] is True


@pytest.mark.parametrize(
    "octets",
    [
        "005324c00100",  # an outcome
        "005340c0050140a30141",  # a SASL performative
        "005399c00100",
        "008000000001000000" + "10c00100",  # another domain
        "00a30161c00100",
        "00a10e" + b"amqp:open:list".hex() + "45",  # a string is no descriptor of ours
        "00551045",
        "40",
        "c00100",
        "005310a10161",
        "005310c10100",
    ],
)
def test_row_30_what_is_no_performative_is_a_framing_error(octets: str) -> None:
    error = performative_refusal(octets)
    assert error.condition == "amqp:connection:framing-error"
    assert error.scope == "connection"


def test_row_30_amqp_performative_is_a_framing_error_in_the_sasl_layer() -> None:
    assert (
        performative_refusal("005318c00100", SASL_PERFORMATIVES).condition == "amqp:connection:framing-error"
    )


def test_row_30_unknown_state_and_terminus_stay_described() -> None:
    attach = Attach(
        name="a", handle=0, role=True, source=Described("x:source", [1]), target=Described(0x9999, "?")
    )
    back, _ = PERFORMATIVES.decode(encode(attach))
    assert (back.source, back.target) == (attach.source, attach.target)


FLOW = "005313"


@pytest.mark.parametrize(
    ("octets", "composite", "field", "scope"),
    [
        ("005310c00100", "amqp:open:list", "container-id", "connection"),  # missing
        ("00531045", "amqp:open:list", "container-id", "connection"),
        ("005310c0020140", "amqp:open:list", "container-id", "connection"),  # null
        ("005310c00301" + "5501", "amqp:open:list", "container-id", "connection"),  # wrong type
        ("005310c00201" + "44", "amqp:open:list", "container-id", "connection"),
        ("005311c00604" + "4043" + "43" + "a100", "amqp:begin:list", "outgoing-window", "connection"),
        (FLOW + "c0020140", "amqp:flow:list", "incoming-window", "session"),
        (FLOW + "c0050440434340", "amqp:flow:list", "outgoing-window", "session"),
        ("005315c003" + "024140", "amqp:disposition:list", "first", "session"),
        ("005314c0020140", "amqp:transfer:list", "handle", "link"),
        ("005316c0020140", "amqp:detach:list", "handle", "link"),
        ("005316c00403" + "434241", "amqp:detach:list", "error", "link"),  # boolean for an error
        ("005316c00903" + "4342" + "005324c00100", "amqp:detach:list", "error", "link"),  # an outcome for it
        ("005316c00903" + "4342" + "00551dc00100", "amqp:detach:list", "error", "link"),
        (
            "005312c00804" + "a10161" + "4341" + "5003",
            "amqp:attach:list",
            "snd-settle-mode",
            "link",
        ),  # unknown choice
        (
            "005312c00704" + "a10161" + "4341" + "43",
            "amqp:attach:list",
            "snd-settle-mode",
            "link",
        ),  # uint for ubyte
    ],
)
def test_row_31_bad_field_is_named(octets: str, composite: str, field: str, scope: str) -> None:
    error = performative_refusal(octets)
    assert isinstance(error, InvalidFieldError)
    assert (error.condition, error.scope) == ("amqp:invalid-field", scope)
    assert (error.composite, error.field) == (composite, field)
    assert error.description.startswith(f"{composite}.{field}: ")


def test_row_31_bad_field_tells_which_link_is_meant() -> None:
    attach = encode(Attach(name="a", handle=7, role=True, source=Described(0x28, [1])))
    with pytest.raises(InvalidFieldError) as caught:
        PERFORMATIVES.decode(attach)
    assert caught.value.values["name"] == "a"
    assert caught.value.values["handle"] == 7
    assert caught.value.scope == "link"
    assert (
        "amqp:attach:list.source: amqp:source:list.address: address expected, got long"
        in caught.value.description
    )


def test_row_31_extra_list_items_are_a_decode_error() -> None:
    error = performative_refusal("005318c003024040")
    assert error.condition == "amqp:decode-error"
    assert "has 1 fields, not 2" in error.description


@pytest.mark.parametrize(
    "octets",
    [
        "005318c003014040",  # an octet after the last field
        "005318c0020140"[:-2],  # truncated
        "005318c0030140",
        "005318c00102",
        "005318",
        "00",
        "",
        "005318d0ffffffff0000000040",
        "0018c00100",
        "005316c00403" + "4342" + "00",  # cut inside the error
        "005310c00401" + "a101ff",
    ],
)
def test_row_31_broken_list_is_no_bad_field(octets: str) -> None:
    assert performative_refusal(octets).condition in ("amqp:decode-error", "amqp:connection:framing-error")
    assert not isinstance(performative_refusal(octets), InvalidFieldError)


@pytest.mark.parametrize(
    "fields",
    [
        "c00804" + "40" + "520152025203",
        "c00905" + "40" + "520152025203" + "40",
        "c00f0b" + "40" + "520152025203" + "40" * 7,
    ],
)
def test_row_31_defaults_are_read_when_fields_are_null_or_omitted(fields: str) -> None:
    flow, _ = PERFORMATIVES.decode(bytes.fromhex(FLOW + fields))
    assert flow == Flow(incoming_window=1, next_outgoing_id=2, outgoing_window=3, drain=False, echo=False)
