"""Types of options name a value that they cannot have."""

from __future__ import annotations

import pytest

from .conftest import amqp10


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("send", "amqp://h/q", "--ttl", "5s"), "'--ttl': '5s': expected a number of seconds"),
        (("send", "amqp://h/q", "--ttl", "0"), "'--ttl': '0': expected a number of seconds, more than 0"),
        (("send", "amqp://h/q", "--priority", "256"), "'256': expected a whole number, from 0 to 255"),
        (("receive", "amqp://h/q", "--count", "all"), "'all': expected a whole number, at least 1"),
        (("serve", "--store", "s3://bucket/x"), "'--store': 's3://bucket/x' is a URI of the scheme 's3'"),
        (("serve", "--users", "dbfs:/x"), "'--users': 'dbfs:/x' is a URI of the scheme 'dbfs'"),
        (("top", "--spool", "gs:/x"), "--spool gs:///x: a URI of the scheme 'gs' names a bucket"),
        (("send", "amqp://h/q", "--tls-ca", "abfss://x"), "'--tls-ca': 'abfss://x' is a URI of the scheme"),
        (("trace", "-", "--html", "s3:/x"), "'--html': 's3:/x' is a URI of the scheme 's3'"),
        (("passwd", "hdfs:/x", "ada"), "'hdfs:/x' is a URI of the scheme 'hdfs'"),
        (("certs", "wasb:/x"), "'wasb:/x' is a URI of the scheme 'wasb'"),
    ],
)
def test_value_that_an_option_cannot_have_is_named_with_what_is_expected(
    arguments: tuple[str, ...], why: str
) -> None:
    result = amqp10(*arguments, stdin=b"x\nx\n")
    assert result.returncode == 2, result.stderr
    assert why in result.stderr.decode()
