"""URLs of the client: transport, virtual host and options."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp091.client.urls import parse_place
from trio_amqp10.core.errors import LocalProtocolError


@pytest.mark.parametrize(
    ("url", "scheme", "vhost"),
    [
        ("amqp091://h", "amqp", "/"),
        ("amqp091://h/", "amqp", "/"),
        ("amqp://h/%2f", "amqp", "/"),
        ("amqp://h//", "amqp", "/"),
        ("amqp091://h/a%20b", "amqp", "a b"),
        ("amqp091://h/a%2Fb", "amqp", "a/b"),
        ("amqp091s://u:p@h:99/v?heartbeat=3", "amqps", "v"),
        ("amqp091://h?vhost=x", "amqp", "x"),
        ("amqp091ws://h/socket?vhost=v", "amqpws", "v"),
        ("amqp091wss://h/socket", "amqpwss", "/"),
        ("amqp091+unix:///run/a.sock?vhost=v", "amqp+unix", "v"),
    ],
)
def test_url_names_transport_and_virtual_host(url: str, scheme: str, vhost: str) -> None:
    place = parse_place(url)
    assert (place.url.scheme, place.virtual_host) == (scheme, vhost)
    assert repr(vhost) in str(place)


def test_url_has_options() -> None:
    place = parse_place(
        "amqp://u%40x:p%2F@h/v?heartbeat=3&frame_max=8192&auth_mechanism=plain&auth_mechanism=external&certfile=%2Fc"
    )
    assert (place.url.username, place.url.password) == ("u@x", "p/")
    assert place.numbers == {"heartbeat": 3, "frame_max": 8192}
    assert place.mechanisms == ("PLAIN", "EXTERNAL")
    assert place.words == {"certfile": "/c"}


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "amqp+tls://h",
        "amqp091://",
        "amqp091://h?heartbeat=x",
        "amqp091://h?color=red",
        "amqp091://h?verify=verify_none",
        "amqp091://u:secret?x@",
    ],
)
def test_url_that_is_none_is_refused_without_showing_a_password(url: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        parse_place(url)
    assert "secret" not in str(caught.value)
