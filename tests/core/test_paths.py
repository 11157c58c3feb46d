"""Paths that a user writes: a URI never becomes a folder of that name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.paths import local_path, scheme_of

HERE = Path.cwd()


@pytest.mark.parametrize(
    ("where", "scheme"),
    [
        ("dbfs:/mnt/x", "dbfs"),
        ("dbfs://mnt/x", "dbfs"),
        ("dbfs:///mnt/x", "dbfs"),
        ("dbfs:mnt/x", "dbfs"),
        ("S3://bucket/x", "s3"),
        ("s3a:/bucket/x", "s3a"),
        ("file:/x", "file"),
        ("file:x", "file"),
        ("odd+thing.1-2:/x", "odd+thing.1-2"),
        ("C:/x", None),
        ("c:\\x", None),
        ("/a:/b", None),
        ("./dbfs:/x", None),
        ("orders:2027.db", None),
        ("~/x", None),
        ("orders.db", None),
        (":memory:", None),
        ("", None),
    ],
)
def test_scheme_is_what_is_before_the_colon(where: str, scheme: str | None) -> None:
    assert scheme_of(where) == scheme


@pytest.mark.parametrize(
    ("where", "path"),
    [
        ("/x/y", "/x/y"),
        ("x/y", str(HERE / "x/y")),
        ("./a:/b", str(HERE / "a:/b")),
        ("orders:2027.db", str(HERE / "orders:2027.db")),
        ("file:/x", "/x"),
        ("file:///x%20y", "/x y"),
        ("FILE://localhost/x", "/x"),
        ("file:/", "/"),
        ("/x/../y", "/x/../y"),
    ],
)
def test_path_is_absolute(where: str, path: str) -> None:
    assert local_path(where) == path


def test_path_in_the_home_directory_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert local_path("~/x") == "/home/ada/x"
    assert local_path("~") == "/home/ada"
    assert local_path("./~") == str(HERE / "~")


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("", "empty"),
        ("dbfs:/mnt/x", "scheme 'dbfs'.*'/dbfs/mnt/x'"),
        ("s3://bucket/x", "scheme 's3'"),
        ("nonsense:///x", "scheme 'nonsense'"),
        ("file:x", "no absolute path"),
        ("file://there/x", "host 'there'"),
        ("file://localhost", "no absolute path"),
        ("~nobody-of-that-name/x", "the home directory of that user is unknown"),
    ],
)
def test_what_is_no_path_here_is_refused_by_name(where: str, why: str) -> None:
    with pytest.raises(LocalProtocolError, match=why):
        local_path(where)


@given(st.from_regex(r"\A[a-z][a-z0-9+.-]{1,9}:/{1,3}[a-z/]*\Z"))
def test_uri_is_never_a_folder_of_that_name(where: str) -> None:
    scheme = scheme_of(where)
    assert scheme == where.partition(":")[0]
    if scheme != "file":
        with pytest.raises(LocalProtocolError, match=re.escape(repr(scheme))):
            local_path(where)
