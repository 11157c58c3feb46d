"""Messages to rows and back, without loss but for documented cases."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.amqp10.wire import strategies as wire
from trio_amqp10.amqp10.message.sections import APPLICATION_PROPERTIES, FOOTER
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.spark.message_encoder import encode_batch
from trio_amqp10.spark.options import OptionError, QueueOptions, SinkOptions
from trio_amqp10.spark.rows import RowMaker, Rows
from trio_amqp10.spark.schema import MAPS
from trio_amqp10.spark.typed_json import UnfitError, from_text, to_text, type_of

PEER = {"url": "amqp://h", "address": "q"}
SINK = SinkOptions.parse(PEER | {"dedup.id": "none"})


def options(**given: str) -> QueueOptions:
    names = {"types": "propertyTypes", "raw": "includeRaw", "on_error": "onDecodeError", "json": "bodyJson"}
    return QueueOptions.parse(
        PEER | {"spool": "/s"} | {names.get(key, key): text for key, text in given.items()}
    )


class Came(NamedTuple):
    """The part of a delivery that becomes columns."""

    payload: bytes
    message_format: int = 0
    tag: bytes = b"tag"


def batch_of(payloads: list[bytes], message_format: int = 0, **given: str) -> pa.RecordBatch:
    maker, rows = RowMaker(options(**given)), Rows()
    maker.gather(rows, [Came(each, message_format) for each in payloads], 7)
    return maker.batch(rows, range(10, 10 + len(payloads)), peer="peer")


def row_of(message: amqp.Message, **given: str) -> dict[str, Any]:
    row: dict[str, Any] = batch_of([message.to_payload()], **given).to_pylist()[0]
    return row


def back(batch: pa.RecordBatch, sink: SinkOptions = SINK) -> list[bytes]:
    return [each.to_payload() for each in encode_batch(batch, sink).messages]


# There and back -----------------------------------------------------------------------------------

moments = st.integers(-(2**63) // 1000 + 1, 2**63 // 1000)
ids = st.one_of(wire.texts, st.binary(max_size=9), st.uuids(), st.integers(0, 2**64 - 1))
keys = st.text(st.characters(max_codepoint=127), max_size=5)
bodies = st.one_of(
    st.binary(max_size=300),
    wire.values.map(amqp.Value),
    st.lists(st.lists(wire.values, max_size=2), min_size=1, max_size=2).map(
        lambda lists: amqp.Sequence(*lists)
    ),
)
properties = st.fixed_dictionaries(
    {},
    optional={
        "message_id": ids,
        "user_id": st.binary(max_size=9),
        "to": wire.texts,
        "subject": wire.texts,
        "reply_to": wire.texts,
        "correlation_id": ids,
        "content_type": keys,
        "content_encoding": keys,
        "absolute_expiry_time": moments,
        "creation_time": moments,
        "group_id": wire.texts,
        "group_sequence": st.integers(0, 2**32 - 1),
        "reply_to_group_id": wire.texts,
        "ttl": st.integers(0, 2**32 - 1),
        "application_properties": st.dictionaries(wire.texts, wire.scalars, max_size=3),
        "annotations": st.dictionaries(keys, wire.values, max_size=3),
        "delivery_annotations": st.dictionaries(keys, wire.values, max_size=3),
        "footer": st.dictionaries(keys, wire.values, max_size=3),
    },
)


@given(bodies, properties)
@example(b"", {"creation_time": -(2**63) // 1000 + 1, "absolute_expiry_time": 2**63 // 1000})
def test_message_survives_with_types(body: Any, said: dict[str, Any]) -> None:
    payload = amqp.Message(body, **said).to_payload()
    assert back(batch_of([payload], types="true")) == [payload]


@given(st.lists(st.tuples(bodies, properties), min_size=2, max_size=5))
def test_messages_of_a_batch_do_not_mix(said: list[tuple[Any, dict[str, Any]]]) -> None:
    payloads = [amqp.Message(body, **fields).to_payload() for body, fields in said]
    assert back(batch_of(payloads, types="true")) == payloads


@given(bodies, properties)
def test_message_survives_raw_but_for_its_journey(body: Any, said: dict[str, Any]) -> None:
    payload = amqp.Message(body, **said).to_payload()
    said.pop("delivery_annotations", None)
    assert back(batch_of([payload], raw="true")) == [amqp.Message(body, **said).to_payload()]


@given(st.lists(wire.values, min_size=1, max_size=5))
def test_value_survives_as_text_and_type(values: list[Any]) -> None:
    for value in values:
        assert wire.same(from_text(to_text(value), type_of(value)), value)


@pytest.mark.parametrize("key", [amqp.ULong(7), amqp.Symbol("7")])
def test_key_of_an_annotation_keeps_its_type(key: Any) -> None:
    payload = amqp.Message(b"", annotations={key: 1}).to_payload()
    assert back(batch_of([payload], types="true")) == [payload]


def test_header_goes_on_without_what_belongs_to_one_journey() -> None:
    message = amqp.Message(b"x", durable=True, priority=7, ttl=9, first_acquirer=True, delivery_count=3)
    onwards = amqp.Message(b"x", durable=True, priority=7, ttl=9).to_payload()
    assert back(batch_of([message.to_payload()])) == [onwards]
    assert back(batch_of([message.to_payload()], raw="true")) == [onwards]


def test_message_of_another_format_goes_on_as_it_is() -> None:
    payload = b"\xff\xff"
    (onwards,) = encode_batch(batch_of([payload], 9), SINK).messages
    assert (onwards.to_payload(), onwards.message_format) == (payload, 9)


# Rows ---------------------------------------------------------------------------------------------


def test_row_tells_what_a_message_is() -> None:
    message = amqp.Message(
        "tea",
        message_id=7,
        subject="s",
        creation_time=1000,
        application_properties={"n": 1, "s": "x"},
        priority=9,
    )
    row = row_of(message, json="true")
    assert row["body_text"] == "tea"
    assert row["body_json"] == '"tea"'
    assert row["body_type"] == "value"
    assert row["header"]["priority"] == 9
    assert row["properties"]["message_id"] == "7"
    assert row["properties"]["message_id_type"] == "ulong"
    assert row["properties"]["creation_time"].timestamp() == 1.0
    assert row["application_properties"] == [("n", "1"), ("s", "x")]
    assert row["footer"] is None
    assert (row["address"], row["seq"], row["peer"], row["delivery_tag"]) == ("q", 10, "peer", b"tag")


def test_bodies_have_their_types() -> None:
    kinds = {"data": amqp.Data(b"a", b"b"), "sequence": amqp.Sequence([1]), "value": amqp.Value(b"v")}
    for kind, body in kinds.items():
        row = row_of(amqp.Message(body))
        assert (row["body_type"], row["body_text"]) == (kind, None)
    assert row_of(amqp.Message(kinds["data"]))["body"] == b"ab"


@pytest.mark.parametrize(
    ("body", "content"),
    [
        (b"\xff", b"\xff"),
        (amqp.Data(b"a", b"b"), b"ab"),
        (amqp.Value(b"v"), b"v"),
        ("t\u00e9", "t\u00e9".encode()),
        (amqp.Symbol("s"), b"s"),
        (amqp.Value(None), None),
        (7, b"7"),
        (amqp.Value({"a": [1, True]}), b'{"a":[1,true]}'),
        (amqp.Sequence([1], ["x"]), b'[1,"x"]'),
    ],
)
def test_payload_is_what_a_body_says_whatever_its_section(body: Any, content: bytes | None) -> None:
    payload = amqp.Message(body).to_payload()
    found = batch_of([payload, amqp.Message(b"").to_payload()], columns="payload").to_pylist()
    assert [row["payload"].replace(b" ", b"") if row["payload"] else row["payload"] for row in found] == [
        content,
        b"",
    ]


def test_payload_is_no_column_unless_it_is_named() -> None:
    assert "payload" not in RowMaker(options()).schema.names
    assert batch_of([b"\x01"], 7, columns="payload,seq").to_pylist() == [{"payload": b"\x01", "seq": 10}]


def test_payload_is_the_body_of_a_row_that_has_no_other() -> None:
    assert sent(payload=[b"x"])[0].body == b"x"
    assert sent(payload=[b"x"], body=[b"y"])[0].body == b"y"


def test_time_too_far_to_tell_is_null() -> None:
    row = row_of(amqp.Message(b"", creation_time=2**62, absolute_expiry_time=1))
    assert row["properties"]["creation_time"] is None


def test_message_without_a_body_has_null() -> None:
    row = batch_of([b""]).to_pylist()[0]
    assert (row["body"], row["body_type"]) == (None, None)


def test_columns_are_chosen_by_name() -> None:
    assert RowMaker(options(columns="seq, body")).schema.names == ["seq", "body"]
    assert not set(MAPS) & set(RowMaker(options(maps="false")).schema.names)
    with pytest.raises(OptionError, match="no column 'raw' with these options"):
        RowMaker(options(columns="raw"))


def test_message_that_cannot_be_decoded_is_an_error() -> None:
    with pytest.raises(RemoteProtocolError):
        batch_of([b"\x00\x53\x73\xff"])


def test_message_that_cannot_be_decoded_has_a_column_where_it_is_wanted() -> None:
    good = amqp.Message("fine").to_payload()
    bad = b"\x00\x53\x73\xff"
    rows = batch_of([bad, good], on_error="deadletter-column").to_pylist()
    assert rows[0]["body"] == bad
    assert "decode-error" in rows[0]["decode_error"]
    assert (rows[0]["seq"], rows[0]["properties"]) == (10, None)
    assert (rows[1]["body_text"], rows[1]["decode_error"]) == ("fine", None)


def test_message_that_cannot_be_decoded_is_refused_where_it_is_to_be_rejected() -> None:
    maker, rows = RowMaker(options(on_error="reject")), Rows()
    bad = Came(b"\x00\x53\x73\xff")
    maker.gather(rows, [Came(b""), bad, Came(b"")], 0)
    assert len(rows.came) == len(rows.moments) == 2
    assert [came for came, _ in rows.refused] == [bad]


sections: st.SearchStrategy[bytes] = st.builds(
    lambda body, said: amqp.Message(body, **said).to_payload(),
    bodies,
    properties.flatmap(
        lambda said: st.sampled_from([{}, {"priority": 9}]).map(lambda header: {**said, **header})
    ),
)


@st.composite
def mangled(draw: st.DrawFn) -> bytes:
    """Octets of a message, some of which are others."""
    octets = bytearray(draw(sections))
    for _ in range(draw(st.integers(0, 3))):
        if octets:
            octets[draw(st.integers(0, len(octets) - 1))] = draw(st.integers(0, 255))
    return bytes(octets[: draw(st.integers(0, len(octets)))]) if draw(st.booleans()) else bytes(octets)


@given(st.lists(mangled(), min_size=2, max_size=4))
def test_message_is_read_the_same_whatever_came_before_it(payloads: list[bytes]) -> None:
    """A maker remembers what others were read as."""
    every_way = [*payloads, *payloads, *reversed(payloads)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trio_amqp10.spark.rows._MOST_CACHED", 2)
        maker = RowMaker(options(on_error="deadletter-column", types="true"))
        for payload in every_way:
            rows = Rows()
            maker.gather(rows, [Came(payload)], 7)
            alone = batch_of([payload], on_error="deadletter-column", types="true")
            assert maker.batch(rows, range(10, 11), peer="peer").equals(alone)


@pytest.mark.parametrize(("ids", "useful"), [(3, True), (10_000, False)])
def test_memory_that_never_knows_anything_is_given_up(ids: int, useful: bool) -> None:
    maker = RowMaker(options())
    for start in range(0, 10_000, 500):
        messages = [
            amqp.Message(b"", application_properties={"n": number % ids})
            for number in range(start, start + 500)
        ]
        maker.gather(Rows(), [Came(each.to_payload()) for each in messages], 0)
    memories = {place: memory for place, _, _, memory in maker._readers}
    assert (memories[APPLICATION_PROPERTIES] is not None) == useful
    assert memories[FOOTER] is not None


# What a sink takes ----------------------------------------------------------------------------------


def sent(sink: SinkOptions = SINK, **columns: list[Any]) -> list[amqp.Message]:
    return encode_batch(pa.RecordBatch.from_pydict(columns), sink).messages


def test_fields_may_stand_alone() -> None:
    (message,) = sent(body=[b"x"], subject=["s"], priority=[7], user_id=["me"], correlation_id=["c"])
    assert message == amqp.Message(b"x", subject="s", priority=7, user_id=b"me", correlation_id="c")


def test_string_is_a_value_and_binary_is_data_unless_told() -> None:
    assert [each.body for each in sent(body=["text"])] == ["text"]
    assert sent(value=[b"x"])[0].sections == (amqp.Data(b"x"),)
    told = SinkOptions.parse(PEER | {"dedup.id": "none", "bodyType": "data"})
    assert sent(told, value=["text"])[0].sections == (amqp.Data(b"text"),)
    told = SinkOptions.parse(PEER | {"dedup.id": "none", "bodyType": "value"})
    assert sent(told, value=[b"x"])[0].sections == (amqp.Value(b"x"),)


def test_text_stands_in_for_a_body() -> None:
    assert [each.body for each in sent(body_text=["a", None])] == ["a", None]


def test_options_speak_where_the_row_does_not() -> None:
    told = SinkOptions.parse(PEER | {"dedup.id": "none", "durable": "true", "ttl": "2s"})
    first, second = sent(told, body=[b"", b""], ttl=[None, 5], durable=[None, False])
    assert (first.durable, first.ttl, second.durable, second.ttl) == (True, 2000, False, 5)


def test_each_row_may_have_its_address() -> None:
    sink = SinkOptions.parse({"url": "amqp://h"})
    batch = pa.RecordBatch.from_pydict({"body": [b"", b""], "address": ["a", "b"]})
    assert encode_batch(batch, sink).addresses == ["a", "b"]
    with pytest.raises(UnfitError, match=r"row 0 .*'address' is null"):
        encode_batch(
            pa.RecordBatch.from_pydict({"body": [b""], "address": pa.array([None], pa.string())}), sink
        )


def test_rows_without_an_id_are_named_after_their_task_or_what_they_say() -> None:
    batch = pa.RecordBatch.from_pydict({"body": [b"a", b"b", b"b"], "message_id": [None, "7", None]})
    told = SinkOptions.parse(PEER | {"dedup.id": "artemis"})
    found = encode_batch(batch, told, name="task", first=5).messages
    assert [each.message_id for each in found] == ["task-5", "7", "task-7"]
    assert [each.application_properties["_AMQ_DUPL_ID"] for each in found] == ["task-5", "7", "task-7"]
    one, _, other = encode_batch(batch, told).messages
    assert one.message_id != other.message_id
    assert [each.message_id for each in encode_batch(batch, told).messages] == [
        one.message_id,
        "7",
        other.message_id,
    ]


def test_id_that_was_made_is_text_whatever_the_others_are() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"body": [b"a", b"b"], "message_id": [None, "7"], "message_id_type": ["ulong", "ulong"]}
    )
    found = encode_batch(batch, SinkOptions.parse(PEER), name="task").messages
    assert [each.message_id for each in found] == ["task-0", 7]


def test_archive_with_and_without_octets_is_sent_row_by_row() -> None:
    archived = amqp.Message("old", message_id=1).to_payload()
    batch = pa.RecordBatch.from_pydict({"body": [b"x", b"new"], "raw": [archived, None]})
    first, second = encode_batch(batch, SinkOptions.parse(PEER), name="task").messages
    assert first.to_payload() == archived
    assert (second.body, second.message_id) == (b"new", None)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("300", "ubyte"),
        ("1.5", "long"),
        ("true", "long"),
        ('"x"', "double"),
        ("1", "boolean"),
        ("1", "null"),
        ("1", "nothing"),
        ('"x"', "uuid"),
        ('"x"', "binary"),
        ("[2]", f"list {type_of([1]).split()[1]}"),
        ("[1]", "list !!"),
        ("[1]", "list /w=="),
    ],
)
def test_text_and_type_that_contradict_each_other_are_refused(text: str, kind: str) -> None:
    with pytest.raises(UnfitError, match="cannot be of type"):
        from_text(text, kind)


@pytest.mark.parametrize("kind", ["int/string", "ulong/string"])
def test_key_that_cannot_be_is_refused(kind: str) -> None:
    batch = pa.RecordBatch.from_pydict(
        {"body": [b""], "footer": [[("k", '"v"')]], "footer_types": [[("k", kind)]]},
        schema=pa.schema(
            {
                "body": pa.binary(),
                "footer": pa.map_(pa.string(), pa.string()),
                "footer_types": pa.map_(pa.string(), pa.string()),
            }
        ),
    )
    with pytest.raises(UnfitError, match="key"):
        back(batch)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"body": [b"\xff"], "body_type": ["value"]}, "row 0"),
        ({"body": [b"\x40"], "body_type": ["sequence"]}, "cannot hold"),
        ({"body": [b"\x40"], "body_type": ["other"]}, "cannot hold"),
        ({"body": [b""], "message_id": ["x"], "message_id_type": ["ulong"]}, "row 0"),
        ({"body": [b""], "message_id": ["x"], "message_id_type": ["float"]}, "an id is a string"),
        ({"body": [b""], "priority": [256]}, "priority"),
    ],
)
def test_row_that_cannot_be_a_message_is_refused(columns: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(UnfitError, match=message):
        sent(**columns)


def test_json_of_a_map_reads_as_json() -> None:
    row = row_of(amqp.Message(b"", annotations={"a": [1, {"b": b"\xff"}]}))
    assert json.loads(row["message_annotations"][0][1]) == [1, {"b": {"base64": "/w=="}}]
