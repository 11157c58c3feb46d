"""Parsing of URLs: the place of a peer."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trio_amqp10.amqp10.spec import transport
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net import urls
from trio_amqp10.net.urls import Url, parse_url, schemes_of, split_url

ROWS = [
    ("amqp://h", Url("amqp", "h", 5672, "", None, None, None)),
    ("AMQP://h", Url("amqp", "h", 5672, "", None, None, None)),
    ("Amqp+TLS://h", Url("amqp+tls", "h", 5672, "", None, None, None)),
    ("amqp://h/", Url("amqp", "h", 5672, "", None, None, None)),
    ("amqp://h:1/q", Url("amqp", "h", 1, "", None, None, "q")),
    ("amqp://h:/q", Url("amqp", "h", 5672, "", None, None, "q")),
    ("amqp://h:0", Url("amqp", "h", 0, "", None, None, None)),
    ("amqp://h:005672", Url("amqp", "h", 5672, "", None, None, None)),
    ("amqp://h//queues/orders", Url("amqp", "h", 5672, "", None, None, "/queues/orders")),
    ("amqp://h/a%2Fb%25", Url("amqp", "h", 5672, "", None, None, "a/b%")),
    ("amqp://h/%252F", Url("amqp", "h", 5672, "", None, None, "%2F")),
    ("amqp://h/a?b=c#d", Url("amqp", "h", 5672, "", None, None, "a?b=c#d")),
    ("amqp://h/user@host:1", Url("amqp", "h", 5672, "", None, None, "user@host:1")),
    ("amqp://u@h", Url("amqp", "h", 5672, "", "u", None, None)),
    ("amqp://u:@h", Url("amqp", "h", 5672, "", "u", "", None)),
    ("amqp://u:p:q@h", Url("amqp", "h", 5672, "", "u", "p:q", None)),
    ("amqp://u%40x:p%2F%3A@h:7/q", Url("amqp", "h", 7, "", "u@x", "p/:", "q")),
    ("amqp://u@x:p@h", Url("amqp", "h", 5672, "", "u@x", "p", None)),
    ("amqp://[::1]", Url("amqp", "::1", 5672, "", None, None, None)),
    ("amqp://[::1]:8/q", Url("amqp", "::1", 8, "", None, None, "q")),
    ("amqp://u:p@[fe80::1%25eth0]:8", Url("amqp", "fe80::1%eth0", 8, "", "u", "p", None)),
    ("amqps://h/q", Url("amqps", "h", 5671, "", None, None, "q")),
    ("amqp+tls://u:p@h/q", Url("amqp+tls", "h", 5672, "", "u", "p", "q")),
    ("amqpws://h", Url("amqpws", "h", 80, "/", None, None, None)),
    ("amqpwss://h/", Url("amqpwss", "h", 443, "/", None, None, None)),
    ("amqpwss://h:1/a/b%20c", Url("amqpwss", "h", 1, "/a/b%20c", None, None, None)),
    ("amqpws://u:p@h/$x?address=q%2F1", Url("amqpws", "h", 80, "/$x", "u", "p", "q/1")),
    ("amqpws://h?address=q", Url("amqpws", "h", 80, "/", None, None, "q")),
    ("amqp+unix:///run/app.sock", Url("amqp+unix", "", 0, "/run/app.sock", None, None, None)),
    ("amqp+unix:///a%20b%3F?address=q%2F1", Url("amqp+unix", "", 0, "/a b?", None, None, "q/1")),
    ("amqp+unix:///a?address=", Url("amqp+unix", "", 0, "/a", None, None, None)),
    ("amqp+unix:///a?", Url("amqp+unix", "", 0, "/a", None, None, None)),
]

WRONG = [
    ("", "must begin with one of amqp://, amqps://, amqp\\+tls://, amqpws://, amqpwss://, amqp\\+unix://"),
    ("localhost", "must begin with"),
    ("localhost:5672", "must begin with"),
    ("http://h", "must begin with"),
    (
        "amqp://h?heartbeat=30",
        "the URL of a connection has no options, but this one has \\?heartbeat; pass options as arguments",
    ),
    ("amqp://h:5672?heartbeat=30", "^'amqp://h:5672': the URL of a connection has no options"),
    (
        "amqps://u:p@h?x=secret&y",
        r"^'amqps://\*\*\*@h': the URL of a connection has no options, but this one has \?x, y; pass options",
    ),
    ("amqp:/h", "must begin with"),
    ("amqp://", "names no host, as in amqp://localhost:5672"),
    ("amqp:///q", "names no host"),
    ("amqp://u:p@", "names no host"),
    ("amqp://:5672", "names no host"),
    ("amqp://[]", "names no host"),
    ("amqp://[::1", "in brackets, as in amqp://\\[::1\\]:5672"),
    ("amqp://[::1]5672", "in brackets"),
    ("amqp://::1", "names no host"),
    ("amqp://fe80::1", "in brackets"),
    ("amqp://h:x", "from 0 to 65535"),
    ("amqp://h:-1", "from 0 to 65535"),
    ("amqp://h:65536", "from 0 to 65535"),
    ("amqp://h:5672 ", "from 0 to 65535"),
    ("amqp://h:\u0661", "from 0 to 65535"),
    ("amqp://h:" + "9" * 5000, "from 0 to 65535"),
    ("amqpws://", "names no host"),
    ("amqpws://h/a b", "percent-encoded ASCII, as in /a%20b"),
    ("amqpws://h/\u00e4", "percent-encoded ASCII"),
    ("amqpws://h/a#b", "percent-encoded ASCII"),
    ("amqpws://h/a\r\nX: y", "percent-encoded ASCII"),
    ("amqpws://h/a?adress=q", "'adress' is unknown; the only option is \\?address="),
    ("amqp+unix://run/app.sock", "as in amqp\\+unix:///run/app.sock"),
    ("amqp+unix://", "as in amqp\\+unix:///run/app.sock"),
    ("amqp+unix:///a%00b", "as in amqp\\+unix:///run/app.sock"),
    ("amqp+unix:///a?adress=q", "'adress' is unknown; the only option is \\?address="),
]


@pytest.mark.parametrize(
    ("text", "transport"),
    [
        ("other://h/v", "amqp://h/v"),
        ("OTHERS://u:p@h", "amqps://u:p@h"),
        ("otherws://h/path", "amqpws://h/path"),
        ("otherwss://h:1/path", "amqpwss://h:1/path"),
        ("other+unix:///run/a.sock", "amqp+unix:///run/a.sock"),
        ("amqp+tls://h", "amqp+tls://h"),
    ],
)
def test_scheme_of_another_protocol_stands_for_a_transport(text: str, transport: str) -> None:
    assert parse_url(text, schemes_of("other")) == parse_url(transport)


def test_scheme_of_another_protocol_is_known_where_it_is_named() -> None:
    with pytest.raises(LocalProtocolError, match=r"begin with one of .*, other://, others://"):
        parse_url("third://h", schemes_of("other"))
    with pytest.raises(LocalProtocolError, match=r"^'other://h:x': a port"):
        parse_url("other://h:x", schemes_of("other"))
    with pytest.raises(LocalProtocolError, match="must begin with one of"):
        parse_url("other://h")
    with pytest.raises(LocalProtocolError, match="must begin with one of"):
        parse_url("other+tls://h", schemes_of("other"))


@pytest.mark.parametrize(("text", "url"), ROWS)
def test_url_is_read(text: str, url: Url) -> None:
    assert parse_url(text) == url


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_url_is_refused_with_what_to_do_when_it_is_none(text: str, said: str) -> None:
    with pytest.raises(LocalProtocolError, match=said):
        parse_url(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://me:s3cret@h",
        "me:s3cret@h",
        "amqp://me:s3cret@h:x",
        "amqp://me:s3cret@",
        "amqp://me:s3cret@[::1",
        "amqp://me:s3c/s3cret@h",
        "amqp://me:x@s3cret@h:y",
        "amqpws://me:s3cret@h/a?b=c",
        "amqpws://me:x?s3cret@h/a",
        "amqpwss://me:s3cret@h/\u00e4",
        "amqp://me:s3cret@h?x=s3c",
        "amqp://me:x?s3cret@h?y",
        "amqp://h?password=s3cret",
    ],
)
def test_url_shows_no_password_when_it_is_refused(text: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        parse_url(text)
    assert "s3c" not in str(caught.value)


def test_url_shows_no_password_when_it_is_printed() -> None:
    url = parse_url("amqp://me:s3cret@h/q")
    assert "s3cret" not in repr(url)
    assert str(url) == "amqp://h:5672"


@pytest.mark.parametrize(
    ("text", "where", "address"),
    [
        ("amqp://u:p%2F@h:1/a/b", "amqp://u:p%2F@h:1", "a/b"),
        ("AMQP://h/a?b", "AMQP://h", "a?b"),
        ("amqp://h/", "amqp://h/", None),
        ("amqpws://u@h/$x?address=q", "amqpws://u@h/$x", "q"),
        ("amqp+unix:///a%20b?address=q", "amqp+unix:///a%20b", "q"),
        ("amqp+unix:///a", "amqp+unix:///a", None),
    ],
)
def test_url_is_split_into_a_place_and_a_node(text: str, where: str, address: str | None) -> None:
    assert split_url(text) == (where, address)
    assert parse_url(where).address is None


@settings(max_examples=50)
@given(st.text())
def test_url_gives_a_url_or_a_local_error_whatever_the_text(text: str) -> None:
    for url in (text, "amqp://" + text, "amqpws://h" + text, "amqp+unix:///" + text):
        with contextlib.suppress(LocalProtocolError):
            parse_url(url)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@given(host=texts.filter(lambda host: "]" not in host), port=st.integers(0, 65535))
def test_url_reads_what_it_prints_for_a_host(host: str, port: int) -> None:
    url = Url("amqp", host, port, "", None, None, None)
    assert parse_url(str(url)) == url


@given(texts)
def test_url_reads_what_it_prints_for_a_path(path: str) -> None:
    url = Url("amqp+unix", "", 0, "/" + path, None, None, None)
    assert parse_url(str(url)) == url


@given(user=texts, password=texts, address=texts)
def test_url_keeps_what_is_percent_encoded(user: str, password: str, address: str) -> None:
    from urllib.parse import quote

    parts = (quote(part, safe="") for part in (user, password, address))
    url = parse_url("amqp://{}:{}@h/{}".format(*parts))
    assert (url.username, url.password, url.address) == (user, password, address)


def test_ports_are_those_of_the_standard() -> None:
    assert (urls.PORT, urls.SECURE_PORT) == (transport.PORT, transport.SECURE_PORT)
