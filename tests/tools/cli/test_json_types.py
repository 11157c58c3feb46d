"""What ``receive --json`` writes comes back by ``send --json``, with every AMQP type."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from hypothesis import given, settings

import trio_amqp10 as amqp
from tests.amqp10.wire.strategies import values
from tests.scaled import scaled
from trio_amqp10.amqp10.wire.values import Array, Int, Symbol, UByte, ULong
from trio_amqp10.tools.cli.json_types import parse_scalar
from trio_amqp10.tools.cli.message_from_json import message_from_json
from trio_amqp10.tools.cli.message_text import message_json

from .conftest import done, failed, misused


def received(message: amqp.Message) -> amqp.Message:
    return amqp.Message.from_payload(message.to_payload())


@settings(max_examples=scaled(300))
@given(values)
def test_every_value_comes_back(value: Any) -> None:
    message = received(amqp.Message(amqp.Value(value), annotations={"x-opt": value, 7: value}))
    assert message_from_json(message_json(message)).to_payload() == message.to_payload()


@pytest.mark.parametrize(
    "message",
    [
        amqp.Message(b"text"),
        amqp.Message(b"\xff\x00"),
        amqp.Message(None),
        amqp.Message(amqp.Value(b"octets")),
        amqp.Message(amqp.Value("text")),
        amqp.Message(amqp.Sequence([1, UByte(2)])),
        amqp.Message(
            {"base64": "AA=="},
            message_id=uuid.UUID(int=5),
            correlation_id=b"\x00",
            user_id=b"ada",
            to="t",
            subject="s",
            reply_to="r",
            content_type="text/plain",
            content_encoding="gzip",
            absolute_expiry_time=1,
            creation_time=2,
            group_id="g",
            group_sequence=3,
            reply_to_group_id="h",
            durable=True,
            priority=9,
            ttl=1000,
            first_acquirer=True,
            delivery_count=2,
            application_properties={"n": Int(5), "a/b~c": UByte(1), "": None},
            annotations={"x-opt-a": Array([], "symbol"), ULong(5): Symbol("s")},
            delivery_annotations={"x": 1},
            footer={"x-f": b"f"},
        ),
    ],
)
def test_every_part_of_a_message_comes_back(message: amqp.Message) -> None:
    message = received(message)
    assert message_from_json(message_json(message)).to_payload() == message.to_payload()


def test_types_stand_only_where_json_has_none() -> None:
    message = amqp.Message([1, 1.5, "a", None, True, b"b", {"k": 2}], application_properties={"n": Int(5)})
    shown = json.loads(message_json(message))
    assert shown["types"] == {"/application_properties/n": "int"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"[]", "expected a JSON object"),
        (b"{", "not JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"bdy": 1}', "unknown member 'bdy'; did you mean body?"),
        (b'{"body": NaN}', "NaN is not JSON"),
        (b'{"body": 9223372036854775808}', "is not a long"),
        (b'{"body": 1, "types": []}', "types=[]: expected an object"),
        (b'{"body": 1, "types": {"/body": 5}}', "the type must be a string"),
        (b'{"body": 1, "types": {"/body": "bite"}}', "'bite' is not a type"),
        (b'{"body": 300, "types": {"/body": "ubyte"}}', "/body: 300 is not of type ubyte"),
        (b'{"body": "x", "types": {"/body": "uuid"}}', "/body: 'x' is not of type uuid"),
        (b'{"body": "x", "types": {"/body": "decimal32"}}', "expected a decimal number"),
        (b'{"body": "x", "types": {"/body": "boolean"}}', "expected true or false"),
        (b'{"body": "x", "types": {"/body": "double"}}', "not of type double"),
        (b'{"body": [1], "types": {"/body": "array of string"}}', "/body/0: 1 is not of type string"),
        (b'{"body": 1, "types": {"/body": "encoded:!"}}', "not base64"),
        (b'{"body": 1, "types": {"/body": "encoded:/w=="}}', "not the octets of a value"),
        (b'{"body": 1, "types": {"/body": "encoded:QEA="}}', "1 octets follow"),
        (b'{"body": {"base64": "!"}}', "/body: this is not base64"),
        (b'{"body": 1, "body_type": "data"}', "a body of data"),
        (b'{"body": 1, "body_type": "sequence"}', "a sequence is an array"),
        (b'{"body": 1, "body_type": "text"}', "body_type 'text'"),
        (b'{"ttl": "x"}', "ttl"),
        (b'{"annotations": 5}', "/annotations: expected an object"),
        (b'{"annotations": [5]}', "pairs of key and value"),
        (b'{"annotations": [[[], 5]]}', "a key must be"),
        (b'{"undecodable": 5}', "undecodable=5: expected"),
        (b'{"undecodable": {"base64": ""}, "message_format": -1}', "message_format=-1: expected"),
        (b'{"undecodable": {"base64": ""}, "body": 1}', "unknown member 'body'"),
    ],
)
def test_line_that_is_no_message_is_refused_by_name(line: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as wrong:
        message_from_json(line)
    assert said in str(wrong.value)


def test_octets_that_cannot_be_decoded_come_back() -> None:
    message = message_from_json(b'{"undecodable": {"base64": "AFN3wQ=="}, "message_format": 7}')
    assert message.to_payload() == b"\x00\x53\x77\xc1"
    assert message.message_format == 7


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [("int", "5", Int(5)), ("boolean", "true", True), ("symbol", "a", Symbol("a")), ("binary", "a", b"a")],
)
def test_property_has_the_type_that_it_is_given(kind: str, text: str, value: Any) -> None:
    found = parse_scalar(kind, text)
    assert found == value
    assert found.__class__ is value.__class__


def test_properties_of_types_go_out_and_come_back(queue: str) -> None:
    done(
        "send",
        queue,
        "--body",
        "x",
        "--property",
        "n:int=5",
        "--property",
        "a:b=1",
        "--property",
        "f:float=nan",
    )
    line = done("receive", queue, "--count", "1", "--json")
    shown = json.loads(line)
    assert shown["application_properties"] == {"n": 5, "a:b": "1", "f": "nan"}
    assert shown["types"] == {"/application_properties/n": "int", "/application_properties/f": "float"}
    assert done("send", queue, "--json", "--subject", "s", "--property", "m=2", stdin=line * 2) == b"sent 2\n"
    again = json.loads(done("receive", queue, "--count", "1", "--json"))
    assert again["subject"] == "s"
    assert again["application_properties"] == {"n": 5, "a:b": "1", "f": "nan", "m": "2"}


def test_send_says_which_line_or_option_is_wrong(queue: str) -> None:
    assert "line 2: the line is not JSON" in failed("send", queue, "--json", stdin=b'{"body": 1}\nx\n')
    assert "did you mean int?" in misused("send", queue, "--property", "n:itn=5")
    assert "is not of type ubyte" in misused("send", queue, "--property", "n:ubyte=500")
    assert "exclude each other" in misused("send", queue, "--json", "--binary")
