"""The table of methods against the class reference: who sends what, what answers what, how many arguments, and the labels."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.amqp091.naive import argument
from tests.amqp091.wire.test_vectors import plain, without_letters
from tests.amqp_10_3 import naive
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import FIVE, Scan, read_table, write_table
from trio_amqp10.amqp091.wire.typed_values import LongString
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from trio_amqp10.amqp091.wire.methods import Method

REFERENCE = json.loads(Path(__file__).with_name("class_reference.json").read_text())
"""What the lists of the class reference say of each method, with the lines where they do."""

PLANS = list(spec.METHODS)
ROLES = {
    ("server",): EndpointRole.CLIENT,
    ("client",): EndpointRole.SERVER,
    ("client", "server"): EndpointRole.BOTH,
}
NUMBERS = {"octet": 8, "short": 16, "long": 32, "longlong": 64}


def test_table_has_the_methods_of_the_class_reference_and_no_others() -> None:
    assert {plan.name: plan.method_id for plan in PLANS} == {row["name"]: row["id"] for row in REFERENCE}
    assert len(PLANS) == 85


@pytest.mark.parametrize("row", REFERENCE, ids=[row["name"] for row in REFERENCE])
def test_method_is_as_the_lists_of_the_class_reference_say(row: dict[str, Any]) -> None:
    plan = spec.METHODS.by_name[row["name"]]
    if plan.name != "tunnel.request":  # its client's list is empty (C 1593), and the grammar has it (C 1570)
        assert plan.sender is ROLES[tuple(row["accepted_by"])]
    assert (len(plan.arguments) > 1) == row["several"]
    answered = [each.plan.name for each in plan.answers]
    if plan.name == "channel.flow-ok":  # asynchronous (C 494), and it confirms (C 553)
        assert answered == ["channel.flow"]
    elif plan.name == "file.open-ok":  # a request (C 1150), which file.stage carries out (C 1109)
        assert answered == ["file.open"]
    else:
        own = plan.name.split(".")[0]
        expected = row["kind"].removeprefix("Sync response to ").lower()
        assert answered == ([f"{own}.{expected}"] if "response" in row["kind"] else [])
        assert plan.synchronous == (row["kind"] == "Sync request")


def test_each_argument_says_where_it_is_from() -> None:
    rows = re.findall(r"^    (\w+): \w+ = .+?(?:  # (.+))?$", Path(spec.__file__).read_text(), re.MULTILINE)
    arguments = sum(len(vars(plan.made).get("__annotations__", ())) for plan in PLANS)
    assert len(rows) == arguments > 150
    assert all(re.fullmatch(r"asl|C \d+(-\d+)?", label) for _, label in rows)


def values(name: str) -> st.SearchStrategy[Any]:
    """Values of one type of argument."""
    text = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20)
    if name in NUMBERS:
        return st.integers(0, (1 << NUMBERS[name]) - 1)
    if name == "table":
        names = st.from_regex(r"[a-z$#][a-zA-Z0-9_$#]{0,9}", fullmatch=True)
        return st.dictionaries(names, st.one_of(st.integers(-(1 << 31), (1 << 31) - 1), text), max_size=3)
    return {"bit": st.booleans(), "shortstr": text, "longstr": st.binary(max_size=20)}[name]


def methods() -> st.SearchStrategy[Method]:
    """Any method with any arguments."""
    return st.sampled_from(PLANS).flatmap(
        lambda plan: st.builds(plan.made, **{name: values(kind.name) for name, kind in plan.arguments})
    )


@given(methods())
def test_method_is_read_back_and_read_alike_by_the_second_reader(method: Method) -> None:
    octets = method.plan.write(method, FIVE)
    assert spec.METHODS.read(octets, FIVE) == method
    name, arguments = naive.method(octets)
    assert name == method.plan.name
    assert [without_letters(each) for each in arguments] == [
        plain(getattr(method, each)) for each, _ in method.plan.arguments
    ]


@pytest.mark.parametrize(
    "octets",
    [
        b"\1at\1",
        b"\1al" + bytes(8),
        b"\1aV",
        b"\1ax\0\0\0\0",
        b"\1aA\0\0\0\0",
        b"\0I" + bytes(4),
        b"\0019I" + bytes(4),
    ],
    ids=["bool", "int64", "void", "octets", "array", "empty-name", "name-that-begins-with-a-digit"],
)
def test_table_with_a_letter_or_a_name_that_10_3_has_not_is_refused_with_502(octets: bytes) -> None:
    with pytest.raises(ReplyError) as caught:
        read_table(len(octets).to_bytes(4) + octets, 0, len(octets) + 4, Scan(FIVE))
    assert caught.value.code == 502


def test_first_of_two_equal_names_counts() -> None:
    octets = b"\1aI\0\0\0\1\1aI\0\0\0\2"
    table, _ = read_table(len(octets).to_bytes(4) + octets, 0, len(octets) + 4, Scan(FIVE))
    assert table == {"a": 1}


def test_letters_are_the_five() -> None:
    out = bytearray()
    write_table(
        out,
        {"$a": -1, "b": True, "c": b"\xff", "d": "t", "e": LongString(b"x"), "f": {}, "g": bytearray(b"y")},
        FIVE,
    )
    assert [(name, letter) for name, (letter, _) in argument(io.BytesIO(out), "T")] == [
        (b"$a", "I"),
        (b"b", "I"),
        (b"c", "S"),
        (b"d", "S"),
        (b"e", "S"),
        (b"f", "F"),
        (b"g", "S"),
    ]


@pytest.mark.parametrize(
    "table", [{"a": 1.5}, {"a": 1 << 31}, {"a": None}, {"a": []}, {"": 1}, {"a" * 129: 1}]
)
def test_value_or_name_that_10_3_has_not_is_not_written(table: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        write_table(bytearray(), table, FIVE)
