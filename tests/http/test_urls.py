"""URLs to serve HTTP at."""

from __future__ import annotations

import pytest

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.http.urls import is_loopback, parse_http_url


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port"),
    [
        ("http://127.0.0.1:0", "http", "127.0.0.1", 0),
        ("http://localhost", "http", "localhost", 15672),
        ("https://broker.example/", "https", "broker.example", 15671),
        ("HTTP://[::1]:80", "http", "::1", 80),
    ],
)
def test_url_has_a_scheme_a_host_and_a_port(url: str, scheme: str, host: str, port: int) -> None:
    parsed = parse_http_url(url)
    assert (parsed.scheme, parsed.host, parsed.port) == (scheme, host, port)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:15672",
        "amqp://h",
        "http://",
        "http://h:99999",
        "http://h/x",
        "http://h?x",
        "http://[::1",
    ],
)
def test_other_text_is_refused_and_shown(url: str) -> None:
    with pytest.raises(LocalProtocolError, match=r"http|no URL"):
        parse_http_url(url)


def test_password_in_a_url_is_refused_and_not_shown() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        parse_http_url("http://ada:secret@h:1")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("h", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
