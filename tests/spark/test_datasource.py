"""The data source checks its options, and makes the reader or the writer that they ask for."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from trio_amqp10.spark.datasource import Amqp10DataSource
from trio_amqp10.spark.offset_stream import LogBatchReader, LogReader
from trio_amqp10.spark.options import OptionError
from trio_amqp10.spark.readers import BrowseReader, QueueStreamReader
from trio_amqp10.spark.writers import BatchWriter, StreamWriter

PEER = {"url": "amqp://h", "address": "q"}
STREAM = PEER | {"spool": "/s"}
LOG = PEER | {"mode": "Log"}
ROWS = from_arrow_schema(pa.schema([("body", pa.binary())]))


def source(given: dict[str, str]) -> Amqp10DataSource:
    return Amqp10DataSource(given)


def test_source_has_the_name_that_is_given_to_format() -> None:
    assert Amqp10DataSource.name() == "amqp10"


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        (STREAM | {"columns": "seq,body"}, ["seq", "body"]),
        (PEER | {"columns": "body"}, ["body"]),
        (LOG | {"columns": "body,seq"}, ["body", "seq"]),
    ],
    ids=["stream", "batch", "log"],
)
def test_columns_are_known_before_it_is_known_what_reads_them(
    given: dict[str, str], columns: list[str]
) -> None:
    assert source(given).schema().names == columns


@pytest.mark.parametrize(
    ("given", "batch", "stream"),
    [(STREAM, None, QueueStreamReader), (PEER, BrowseReader, None), (LOG, LogBatchReader, LogReader)],
    ids=["queue", "browse", "log"],
)
def test_reader_is_the_one_that_the_options_ask_for(given: dict[str, str], batch: Any, stream: Any) -> None:
    one = source(given)
    for make, kind in ((one.reader, batch), (one.streamReader, stream)):
        if kind is not None:
            assert type(make(one.schema())) is kind
        else:
            with pytest.raises(OptionError):
                make(one.schema())


@pytest.mark.parametrize(
    ("given", "why"),
    [(STREAM | {"odd": "1"}, "odd"), (PEER | {"odd": "1"}, "odd"), ({"url": "amqp://h"}, "address")],
)
def test_option_that_cannot_be_is_told_as_of_what_was_meant(given: dict[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        source(given).schema()


def test_schema_cannot_be_chosen() -> None:
    own = StructType([StructField("mine", StringType())])
    for make in (source(PEER).reader, source(STREAM).streamReader, source(LOG).streamReader):
        with pytest.raises(OptionError, match="use option 'columns'"):
            make(own)


def test_writer_is_made_for_rows_that_can_be_messages() -> None:
    one = source(PEER)
    assert type(one.writer(ROWS, overwrite=False)) is BatchWriter
    assert type(one.streamWriter(ROWS, overwrite=False)) is StreamWriter
    with pytest.raises(OptionError, match="cannot be overwritten"):
        one.writer(ROWS, overwrite=True)
    with pytest.raises(OptionError, match="a message needs a column"):
        one.streamWriter(from_arrow_schema(pa.schema([("subject", pa.string())])), overwrite=False)
