"""A budget counts every value and every level that decoding makes (2.8.14, 2.8.15)."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp10.spec import TYPES
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.decode import Budget, decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError


def refusal(octets: str | bytes, budget: Budget | None = None) -> RemoteProtocolError:
    buf = bytes.fromhex(octets) if isinstance(octets, str) else octets
    with pytest.raises(RemoteProtocolError) as caught:
        decode(buf, 0, budget)
    return caught.value


@pytest.mark.parametrize(
    ("octets", "nodes"),
    [
        ("40", 1),
        ("c003024040", 3),
        ("c10502a1016b40", 3),
        ("e00402500102", 3),
        ("00a3016140", 3),
        ("c00601" + "00a3016140", 4),
        ("e0020540", 1),
        ("e007020053075001" + "02", 4),
    ],
)
def test_decode_charges_every_value_to_the_budget(octets: str, nodes: int) -> None:
    budget = Budget(nodes)
    decode(bytes.fromhex(octets), 0, budget)
    assert (budget.nodes, budget.depth) == (0, 32)
    with pytest.raises(RemoteProtocolError) as caught:
        decode(bytes.fromhex(octets), 0, Budget(nodes - 1))
    assert caught.value.condition == "amqp:resource-limit-exceeded"


def test_budget_is_cumulative_when_it_is_passed_on() -> None:
    budget = Budget(3)
    decode(b"\x40", 0, budget)
    decode(b"\x40", 0, budget)
    decode(b"\x40", 0, budget)
    with pytest.raises(RemoteProtocolError):
        decode(b"\x40", 0, budget)


def test_row_27_nodes_over_the_budget_are_a_resource_limit() -> None:
    lists = (
        bytes.fromhex("d0") + (4 + 65_536).to_bytes(4, "big") + (65_536).to_bytes(4, "big") + b"\x45" * 65_536
    )
    assert refusal(lists).condition == "amqp:resource-limit-exceeded"
    inner = "c0" + f"{1 + 200:02x}" + "c8" + "40" * 200
    assert refusal("d0" + f"{4 + 406:08x}" + "00000002" + inner * 2, Budget(400)).condition == (
        "amqp:resource-limit-exceeded"
    )


@pytest.mark.parametrize("octets", [b"\x00" * 5_000, b"\x00\x40" * 5_000, b"\x00\x53\x01" * 5_000])
def test_row_28_chain_of_descriptors_is_refused(octets: bytes) -> None:
    assert refusal(octets).condition == "amqp:decode-error"


@pytest.mark.parametrize(
    ("head", "tail"), [("c0{:02x}01", "40"), ("c1{:02x}0240", "40"), ("e0{:02x}01", "5001"), ("", "")]
)
def test_row_28_nesting_is_refused_when_it_is_deeper_than_32(head: str, tail: str) -> None:
    def nest(levels: int) -> bytes:
        inner = bytes.fromhex(tail)
        for level in range(levels):
            if not head:
                inner = bytes.fromhex("0040") + (inner or b"\x40")
            elif head.startswith("e0") and level == 0:
                inner = bytes.fromhex("e00301" + tail)
            else:
                rest = bytes.fromhex(head.format(0))[2:] + inner
                inner = bytes.fromhex(head.format(len(rest)))[:2] + rest
        return inner

    assert decode(nest(32))[1] == len(nest(32))
    error = refusal(nest(33))
    assert error.condition == "amqp:decode-error"
    assert "nested too deeply" in error.description


def test_row_28_descriptors_of_an_array_count_as_levels() -> None:
    def described(times: int) -> str:
        return f"e0{1 + 2 * times + 1:02x}00" + "0040" * times + "50"

    decode(bytes.fromhex(described(31)))
    assert "nested too deeply" in refusal(described(32)).description


def test_row_28_composites_count_as_levels() -> None:
    def nest(times: int) -> Source:
        return Source(filter={"f": nest(times - 1)}) if times else Source()

    # Each is a described list (two levels) whose map is a third.
    octets = encode(nest(10))
    assert TYPES.decode(octets) == (nest(10), len(octets))
    out = bytearray()
    plan_of(Source).encode(out, nest(11), 99)
    with pytest.raises(RemoteProtocolError, match="nested too deeply"):
        TYPES.decode(bytes(out))
    with pytest.raises(LocalProtocolError, match="nested more than 32"):
        encode(nest(11))
