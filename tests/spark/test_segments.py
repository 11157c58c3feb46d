"""Segments are read with any options, which decide only about rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.amqp10.wire import strategies as wire
from trio_amqp10.spark.options import QueueOptions
from trio_amqp10.spark.rows import RowMaker, Rows
from trio_amqp10.spark.segments import SegmentError, SegmentReader, extra_of, inlined, keys, segment
from trio_amqp10.spark.spool import Slice

from .desk import read

if TYPE_CHECKING:
    from pathlib import Path

BAD = b"\x00\x53\x73\xc0\x01\x05"


class Came(NamedTuple):
    payload: bytes
    message_format: int = 0
    tag: bytes = b"tag"


def options(**given: str) -> QueueOptions:
    return QueueOptions.parse({"url": "amqp://h", "address": "q", "spool": "/s"} | given)


def as_file(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def written(came: list[Came], **more: Any) -> Slice:
    """A segment that begins with row 100, whole."""
    moments = list(range(1000, 1000 + len(came)))
    batch = segment(came, moments, address="orders", peer="broker", **more)
    return Slice(as_file(batch), 0, len(came), 100)


def former(came: list[Came], **given: str) -> Slice:
    """The same by version 1: rows as the options wanted them then."""
    maker, rows = RowMaker(options(**given), address="orders"), Rows()
    maker.gather(rows, came, 1000)
    batch = maker.batch(rows, range(100, 100 + len(came)), peer="broker")
    return Slice(as_file(batch), 0, len(came), 100)


ANY_OPTIONS = st.fixed_dictionaries(
    {"onDecodeError": st.sampled_from(["fail", "reject", "deadletter-column"])},
    optional={
        "maps": st.sampled_from(["true", "false"]),
        "includeRaw": st.sampled_from(["true", "false"]),
        "propertyTypes": st.sampled_from(["true", "false"]),
        "bodyJson": st.sampled_from(["true", "false"]),
        "columns": st.sampled_from(["body", "seq,body", "properties,address", "delivery_tag,header,peer"]),
    },
)


@given(ANY_OPTIONS, st.lists(wire.values.map(amqp.Value), min_size=1, max_size=4))
def test_rows_are_those_that_would_have_been_made_on_arrival(
    given: dict[str, str], bodies: list[Any]
) -> None:
    came = [
        Came(amqp.Message(body, message_id=n, application_properties={"n": n}).to_payload())
        for n, body in enumerate(bodies)
    ]
    asked = options(**given)
    maker, rows = RowMaker(asked, address="orders"), Rows()
    maker.gather(rows, came, 0)
    rows.moments = list(range(1000, 1000 + len(came)))
    expected = maker.batch(rows, range(100, 100 + len(came)), peer="broker")
    (found,) = SegmentReader(asked).read([written(came)])
    assert found.equals(expected)


def test_slices_of_segments_have_the_numbers_of_their_rows() -> None:
    whole = written([Came(amqp.Message(b"%d" % n).to_payload()) for n in range(5000)])
    rows = read([whole._replace(start=10, stop=4990)], columns="seq,body,received_at")
    assert [row["seq"] for row in rows] == list(range(110, 5090))
    assert [row["body"] for row in rows] == [b"%d" % n for n in range(10, 4990)]
    assert rows[0]["received_at"].microsecond == 1010


def test_what_a_segment_says_of_its_origin_is_in_every_row() -> None:
    (row,) = read(
        [written([Came(b"\x01", 7, b"\xff")])], columns="address,peer,delivery_tag,message_format,body"
    )
    assert row == {
        "address": "orders",
        "peer": "broker",
        "delivery_tag": b"\xff",
        "message_format": 7,
        "body": b"\x01",
    }


def test_message_that_cannot_be_decoded_waits_until_the_options_take_it() -> None:
    good = amqp.Message(b"fine").to_payload()
    stored = written([Came(good), Came(BAD)])
    for on_error in ("fail", "reject"):
        with pytest.raises(SegmentError, match=r"rows 100 to 101 cannot be decoded: .*'deadletter-column'"):
            read([stored], onDecodeError=on_error)
    rows = read([stored], onDecodeError="deadletter-column", columns="body,properties,decode_error")
    assert [row["body"] for row in rows] == [b"fine", BAD]
    assert "decode-error" in rows[1]["decode_error"]


def test_rows_may_travel_with_the_plan() -> None:
    came = [Came(amqp.Message(b"%d" % n).to_payload()) for n in range(10)]
    part = written(came, extra={b"tags": ["x"] * 1000})._replace(start=3, stop=6)
    carried = inlined(part)
    assert read([carried]) == read([part])
    assert carried == Slice(carried.source, 0, 3, 103)
    assert len(carried.source) < len(part.source) / 2  # without what only the receiver needs


def test_file_that_an_executor_cannot_see_is_named_with_what_to_do(tmp_path: Path) -> None:
    missing = Slice(str(tmp_path / "seg"), 0, 1, 0)
    with pytest.raises(SegmentError, match=r"seg does not exist here: .*'spool.transport' = 'inline'"):
        read([missing])


def test_ids_are_found_in_segments_of_both_formats(tmp_path: Path) -> None:
    path = tmp_path / "seg"
    source = written([Came(b"a"), Came(b"b", 1)], extra={b"x": 5}).source
    assert isinstance(source, bytes)
    path.write_bytes(source)
    assert keys(path, bytes.decode) == ["a", None]
    assert (extra_of(path, b"x"), extra_of(path, b"y")) == (5, None)
    batch = pa.RecordBatch.from_pydict({"seq": [1]})
    for said, found in ({b"trio-amqp10.ids": b'["string:a", null]'}, ["string:a", None]), ({}, []):
        path.write_bytes(as_file(batch.replace_schema_metadata(said)))
        assert keys(path, bytes.decode) == found


# Format 1 -----------------------------------------------------------------------------------------

MESSAGE = Came(amqp.Message("tea", message_id=7, application_properties={"n": 1}).to_payload())


def test_rows_of_format_1_are_read_with_the_options_that_they_had_or_fewer_columns() -> None:
    old = former([MESSAGE, MESSAGE])
    assert read([old]) == read([former([MESSAGE, MESSAGE])])
    assert read([old._replace(start=1)], columns="seq,body_text") == [{"seq": 101, "body_text": "tea"}]
    assert set(read([old], maps="false")[0]).isdisjoint({"footer", "application_properties"})


def test_rows_of_format_1_with_octets_are_read_with_any_options() -> None:
    old = former([MESSAGE], includeRaw="true")
    new = written([MESSAGE])
    assert read([old], propertyTypes="true", bodyJson="true") == read(
        [new], propertyTypes="true", bodyJson="true"
    )
    assert read([inlined(old)], propertyTypes="true") == read([new], propertyTypes="true")


def test_rows_of_format_1_that_lack_a_column_say_what_they_have() -> None:
    old = former([MESSAGE], columns="seq,body")
    with pytest.raises(
        SegmentError, match=r"rows 100 to 100 .* have only seq, body: run the query with the options that it"
    ):
        read([old])
    assert read([old], columns="seq") == [{"seq": 100}]


def test_segment_of_a_newer_format_is_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1]}).replace_schema_metadata({b"trio-amqp10.format": b"3"})
    with pytest.raises(SegmentError, match=r"rows from 100 on are of format 3, .* newer trio-amqp10"):
        read([Slice(as_file(batch), 0, 1, 100)])
