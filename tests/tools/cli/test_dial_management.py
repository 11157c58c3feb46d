"""Management of a URL of 0-9-1 is asked for in 1.0."""

from __future__ import annotations

import pytest

from trio_amqp10.tools.cli.dial_management import management_url


@pytest.mark.parametrize(
    ("url", "dialled"),
    [
        ("amqp://u:p@h/q", ("amqp://u:p@h/q", None)),
        ("amqp091://h", ("amqp://h:5672", None)),
        ("amqp091s://u%40x:p%2F@h:99/shop?heartbeat=3", ("amqps://u%40x:p%2F@h:99", "shop")),
        ("AMQP091://u@[::1]/%2F", ("amqp://u@[::1]:5672", None)),
        ("amqp091ws://h/path?vhost=shop", ("amqpws://h:80/path", "shop")),
        ("amqp091+unix:///run/a.sock", ("amqp+unix:///run/a.sock", None)),
    ],
)
def test_management_of_a_url_of_0_9_1_is_asked_for_in_1_0(url: str, dialled: tuple[str, str | None]) -> None:
    assert management_url(url) == dialled
