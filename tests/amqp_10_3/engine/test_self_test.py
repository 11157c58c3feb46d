"""The classes that let each end test the other: integer, string, field table and content."""

from __future__ import annotations

from typing import Any

import pytest

from tests.amqp_10_3.pairs import (
    connected,
    open_server,
    written,
)
from tests.engine_pairs import arrivals_of, refusal
from trio_amqp10.amqp091.wire.content import Content
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.wire.properties import (
    TestProperties,
)


def answer_to(request: Any, content: Content | None = None, *, asks: str = "client") -> Any:
    pair = connected()
    ours, theirs = pair.channels()
    source, target = (ours, theirs) if asks == "client" else (theirs, ours)
    source.send(request, content)
    pair.run()
    assert not arrivals_of(target)
    (arrival,) = arrivals_of(source)
    assert arrival.request == request
    return arrival


@pytest.mark.parametrize("asks", ["client", "server"])
@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (spec.TestInteger(integer_1=1, integer_2=2, integer_3=3, integer_4=4), 10),
        (spec.TestInteger(integer_1=1, integer_2=2, integer_3=3, integer_4=4, operation=2), 1),
        (spec.TestInteger(integer_1=1, integer_2=2, integer_3=3, integer_4=4, operation=3), 4),
        (spec.TestInteger(integer_1=2, integer_4=(1 << 64) - 1), 1),
        (spec.TestString(string_1="ab", string_2=b"c\xff"), b"abc\xff"),
        (spec.TestString(string_1="ab", string_2=b"c", operation=2), b"c"),
        (spec.TestString(string_1="ab", string_2=b"c", operation=3), b"ab"),
        (spec.TestString(string_1="ab", string_2=b"cd", operation=3), b"ab"),
    ],
)
def test_operation_is_answered_by_either_end(asks: str, request_: Any, answer: Any) -> None:
    assert answer_to(request_, asks=asks).method.result == answer


@pytest.mark.parametrize(
    ("table", "operations", "answers"),
    [
        (
            {"a": 1, "b": 5, "s": "x", "t": b"\xffyz", "f": {"a": 9, "s": "far too long"}},
            (1, 1),
            (6, b"x\xffyz"),
        ),
        ({"a": 1, "b": 5, "s": "x", "t": "yz"}, (2, 2), (1, b"x")),
        ({"a": 1, "b": 5, "s": "x", "t": "yz"}, (3, 3), (5, b"yz")),
        ({}, (2, 3), (0, b"")),
        ({}, (3, 2), (0, b"")),
        ({"a": -1}, (1, 1), ((1 << 64) - 1, b"")),
    ],
)
def test_table_is_answered(table: Any, operations: tuple[int, int], answers: tuple[int, bytes]) -> None:
    method = answer_to(spec.TestTable(table=table, integer_op=operations[0], string_op=operations[1])).method
    assert (method.integer_result, method.string_result) == answers


@pytest.mark.parametrize("asks", ["client", "server"])
@pytest.mark.parametrize("body", [b"", b"hello", bytes([255]) * 200_000])
def test_content_is_answered_with_its_checksum_and_itself(asks: str, body: bytes) -> None:
    arrival = answer_to(spec.TestContent(), Content(TestProperties(), body), asks=asks)
    assert arrival.method.content_checksum == sum(body)
    assert arrival.content.body == body


def test_checksum_of_hello_is_that_of_the_vector() -> None:
    assert answer_to(spec.TestContent(), Content(TestProperties(), b"hello")).method.content_checksum == 0x214


@pytest.mark.parametrize(
    "request_",
    [
        spec.TestInteger(operation=0),
        spec.TestString(operation=4),
        spec.TestTable(integer_op=9),
        spec.TestTable(string_op=9),
    ],
)
def test_unknown_operation_ends_the_connection_with_502(request_: Any) -> None:
    server = open_server()
    fault = refusal(server.receive_data, written(request_, 1), 0.0)
    assert fault is not None
    assert (fault.code, fault.scope) == (502, "connection")
