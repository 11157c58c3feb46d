"""Texts of options: what each kind of value takes, and what it says of a text that it does not take."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.spark import option_values as values

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (values.text, "x", "x"),
        (values.boolean, " True ", True),
        (values.boolean, "false", False),
        (values.seconds, "500ms", 0.5),
        (values.seconds, "1.5 m", 90.0),
        (values.seconds, "7", 7.0),
        (values.octets(1), "64m", 64 * 2**20),
        (values.octets(1), "1 GiB", 2**30),
        (values.octets(1), "12kb", 12 * 1024),
        (values.count(0), "0", 0),
        (values.lanes, "External", "external"),
        (values.lanes, "3", 3),
        (values.one_of("none", "link"), " LINK", "link"),
        (values.names, "a, b", ("a", "b")),
        (values.offsets, "Latest", "latest"),
        (values.offsets, "17", 17),
        (values.offsets, '{"a": 0}', {"a": 0}),
        (values.typed_columns, "n int, `the kind` STRING, big bigint", (("n", "int"), ("the kind", "string"), ("big", "long"))),
        (values.milliseconds, "17", 17),
        (values.milliseconds, "1970-01-01T01:00:01+01:00", 1000),
        (values.location, "s3://bucket/orders", "s3://bucket/orders"),
        (values.location, "hdfs:///orders", "hdfs:///orders"),
        (values.location, "orders/spool", "orders/spool"),
        (values.location, "file:///orders", "/orders"),
        (values.local_file, "/a/b", "/a/b"),
    ],
)  # fmt: skip
def test_text_of_an_option_is_its_value(parse: Callable[[str], Any], text: str, value: Any) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "why"),
    [
        (values.text, "", "empty"),
        (values.boolean, "yes", "true or false"),
        (values.seconds, "1h", "ms, s or m"),
        (values.seconds, "-1s", "ms, s or m"),
        (values.octets(1024), "1023", "at least 1024"),
        (values.octets(1), "1t", "at least 1"),
        (values.count(1), "0", "at least 1"),
        (values.count(1), "1.0", "at least 1"),
        (values.lanes, "0", "external"),
        (values.one_of("none", "link"), "both", "none, link"),
        (values.names, "a,,b", "each once"),
        (values.names, "a,a", "each once"),
        (values.offsets, "-1", "a number"),
        (values.offsets, "true", "a number"),
        (values.offsets, '{"a": "b"}', "a number"),
        (values.typed_columns, "n decimal", "the types are"),
        (values.typed_columns, "n int, N long", "each once"),
        (values.milliseconds, "2026-11-23T12:00:00", "with its zone"),
        (values.milliseconds, "today", "with its zone"),
        (values.location, "s3a://bucket/orders", "write s3://"),
        (values.location, "dbfs:/orders", "/dbfs"),
        (values.location, "gs:///orders", "names a bucket"),
        (values.location, "", "empty"),
    ],
)
def test_text_that_is_no_value_is_refused_with_what_is_possible(
    parse: Callable[[str], Any], text: str, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        parse(text)


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)))  # noqa: DTZ001 - without a zone, as hypothesis wants it
def test_time_is_the_last_whole_millisecond_before_it(moment: datetime) -> None:
    found, millisecond = values.milliseconds(moment.isoformat()), timedelta(milliseconds=1)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    assert found * millisecond <= since < (found + 1) * millisecond


@given(st.one_of(st.integers(0), st.dictionaries(st.text(), st.integers(0))))
def test_offsets_are_read_as_json(said: int | dict[str, int]) -> None:
    assert values.offsets(json.dumps(said)) == said
