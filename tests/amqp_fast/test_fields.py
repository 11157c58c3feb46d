"""Types of fields and the commands made of them: what is read, what is refused, what is not written."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.commands import Command, CommandTable, command
from trio_amqp10.amqp_fast.faults import Level, ReplyError
from trio_amqp10.amqp_fast.fields import read_table, write_table
from trio_amqp10.amqp_fast.frames import frame, read_size
from trio_amqp10.amqp_fast.message_list import read_list, write_list
from trio_amqp10.amqp_fast.selectors import HeadersSelector
from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.reply_codes import ReplyCodeRfc011

from . import naive

NAMES = st.from_regex(r"[A-Za-z$#][A-Za-z0-9$#_]{0,20}", fullmatch=True)
INTEGERS = st.integers(-(2**31), 2**31 - 1)
VALUES = st.one_of(
    st.text(max_size=30),
    INTEGERS,
    st.builds(lambda n, places: Decimal(n).scaleb(-places), INTEGERS, st.integers(0, 255)),
    st.integers(0, 2**32 - 1).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
)


def table_octets(fields: dict[str, Any]) -> bytes:
    out = bytearray()
    write_table(out, fields)
    return bytes(out)


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_table_is_read_as_it_was_written(fields: dict[str, Any]) -> None:
    octets = table_octets(fields)
    assert read_table(octets, 0, len(octets)) == (fields, len(octets))
    assert [name for name, _, _ in naive.table(octets[2:])] == list(fields)


def test_table_has_the_first_of_two_fields_of_one_name() -> None:
    octets = bytes.fromhex("000e 0161 49 00000001 0161 49 00000002")
    assert read_table(octets, 0, len(octets))[0] == {"a": 1}


def test_table_keeps_text_that_is_no_utf_8() -> None:
    octets = table_octets({"a": b"\xff"})
    fields, _ = read_table(octets, 0, len(octets))
    assert fields == {"a": "\udcff"}
    assert table_octets(fields) == octets


@pytest.mark.parametrize(
    "octets",
    [
        "00",
        "0003 0161",
        "0002 0161",
        "0003 003145",
        "0004 013149 00",
        "0004 0161 5a 00",
        "0006 0161 49 000000",
        "0007 0161 44 00000000",
        "0006 0161 54 000000",
        "0005 0161 53 0001",
        "0004 0261 0053",
    ],
)
def test_table_is_refused_when_it_is_none(octets: str) -> None:
    data = bytes.fromhex(octets)
    with pytest.raises(ReplyError) as caught:
        read_table(data, 0, len(data))
    assert caught.value.code == 502


@pytest.mark.parametrize(
    "fields",
    [
        {"": 1},
        {"1a": 1},
        {"a" * 129: 1},
        {"a": 2**31},
        {"a": True},
        {"a": None},
        {"a": datetime(2005, 3, 30)},  # noqa: DTZ001
        {"a": datetime(2200, 1, 1, tzinfo=UTC)},
        {"a": Decimal("NaN")},
        {"a": Decimal("1e10")},
        {"a": Decimal(9999999999)},
        {"a": Decimal("1e-256")},
        {"a": "\ud800"},
        {"a": b"x" * 65536},
        {"a": b"x" * 40000, "b": b"x" * 40000},
    ],
)
def test_table_is_not_written_when_it_cannot_be_read(fields: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        table_octets(fields)


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (spec.ConnectionOpen(virtual_path="x" * 256), "virtual_path"),
        (spec.ConnectionOpen(client_name="a\0b"), "client_name"),
        (spec.ConnectionOpen(client_name=b"a"), "client_name"),  # type: ignore[arg-type]
        (spec.ChannelAck(message_nbr=-1), "message_nbr"),
        (spec.HandleConsume(selector="text"), "selector"),  # type: ignore[arg-type]
        (spec.HandleConsume(selector=b"x" * 65536), "selector"),
    ],
)
def test_command_that_cannot_be_written_says_which_field(made: Command, name: str) -> None:
    with pytest.raises(LocalProtocolError, match=f"^{name} of {made.plan.name}: "):
        made.encode()


def test_command_without_types_of_fields_is_none() -> None:
    with pytest.raises(TypeError, match="no type of a field"):

        @command(99, "test", sender=EndpointRole.BOTH)
        class Test(Command):
            field: int = 0


def test_table_of_commands_has_28_with_the_numbers_of_the_document() -> None:
    assert sorted(each.id or 0 for each in spec.COMMANDS) == sorted(naive.COMMANDS)
    assert spec.COMMANDS.by_name["handle send"] is spec.HandleSend.plan
    assert repr(spec.HandleSend.plan) == "<handle send>"
    assert len(list(CommandTable([spec.HandleSend]))) == 1


@pytest.mark.parametrize(
    ("size", "head"), [(0xFFFD, "fffe"), (0xFFFE, "ffff0000ffff"), (70000, "ffff00011171")]
)
def test_frame_has_the_shortest_size(size: int, head: str) -> None:
    octets = frame(b"x" * size)
    assert octets.startswith(bytes.fromhex(head))
    assert read_size(octets, 0, 1 << 20) == (len(head) // 2, size + 1)
    assert all(read_size(octets[:cut], 0, 1 << 20) is None for cut in range(len(head) // 2))


def test_fault_has_the_scope_of_its_level() -> None:
    fault = ReplyError(ReplyCodeRfc011.SYNTAX_ERROR, "prefetch: 0", Level.HANDLE)
    assert (fault.scope, fault.reply_text) == ("link", "SYNTAX_ERROR - prefetch: 0")
    assert fault.condition == "amqp:invalid-field"


# -- lists of numbers, selectors --------------------------------------------------------------


@given(st.sets(st.integers(0, 200) | st.integers(0, 2**32 - 1)))
def test_message_list_is_read_as_it_was_written(numbers: set[int]) -> None:
    octets, highest = write_list(numbers)
    assert highest == 0
    assert [number for each in read_list(octets) for number in each] == sorted(numbers)


def test_message_list_is_that_of_the_document() -> None:
    numbers = [0, 5, 9, *range(15, 41), 80]
    assert write_list(numbers) == (b"0 5 9 15-40 80", 0)


@given(st.sets(st.integers(0, 100), min_size=1), st.integers(0, 40))
def test_message_list_names_its_highest_number_when_there_are_more(numbers: set[int], largest: int) -> None:
    octets, highest = write_list(numbers, largest)
    assert len(octets) <= largest
    there = [number for each in read_list(octets) for number in each]
    assert there == sorted(numbers)[: len(there)]
    assert highest == (0 if len(there) == len(numbers) else max(there, default=0))


@pytest.mark.parametrize("octets", [b"a", b"1-", b"-1", b"2-1", b"4294967296", b"1,2", b"1 2--3"])
def test_message_list_is_refused_when_it_is_none(octets: bytes) -> None:
    with pytest.raises(ReplyError) as caught:
        read_list(octets)
    assert caught.value.code == 502


@pytest.mark.parametrize(
    ("selector", "headers", "matches"),
    [
        (b"", {}, True),
        (b"a", {"a": 1}, True),
        (b"a", {"b": 1}, False),
        (b"a=1", {"a": 1}, True),
        (b"a=1", {"a": 2}, False),
        (b"a=", {"a": ""}, True),
        (b"a=", {"a": "x"}, False),
        (b"a=1 b", {"a": "1", "b": "x"}, True),
        (b" a=1  b=y ", {"a": "1", "b": "x"}, False),
        (b"a=x=y", {"a": "x=y"}, True),
    ],
)
def test_selector_matches_headers_that_have_all_its_terms(
    selector: bytes, headers: dict[str, Any], matches: bool
) -> None:
    assert HeadersSelector(selector).matches(headers) is matches


@pytest.mark.parametrize("selector", [b"=1", b"\xff", b"a =b"])
def test_selector_is_refused_when_it_is_none(selector: bytes) -> None:
    with pytest.raises(ReplyError) as caught:
        HeadersSelector(selector)
    assert (caught.value.code, caught.value.level) == (502, Level.HANDLE)
