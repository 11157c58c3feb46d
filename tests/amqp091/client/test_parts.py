"""URLs, records of declarations, errors and logins, each by itself."""

from __future__ import annotations

from typing import Any

import pytest

import trio_amqp10.amqp091 as package
from trio_amqp10 import amqp091
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.client.errors import channel_closed, connection_closed
from trio_amqp10.amqp091.client.login import AmqPlain, mechanisms_for
from trio_amqp10.amqp091.client.topology import Topology
from trio_amqp10.amqp091.client.urls import parse_place
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.reply_codes import ReplyCode091


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


def test_topology_declares_exchanges_then_queues_then_bindings() -> None:
    topology = Topology()
    queue = spec.QueueDeclare(queue="q")
    name = topology.queue_declared(queue, "q")
    bind = spec.QueueBind(queue="q", exchange="x", routing_key="k")
    topology.bound(bind, name)
    topology.bound(bind, name)
    topology.exchange_declared(spec.ExchangeDeclare(exchange="x"))
    topology.exchange_declared(spec.ExchangeDeclare(exchange="y", passive=True))
    topology.bound(spec.ExchangeBind(destination="x", source="amq.topic"))
    assert [each.plan.name for each in topology.requests()] == [
        "exchange.declare",
        "queue.declare",
        "queue.bind",
        "exchange.bind",
    ]
    topology.exchange_deleted("x")
    assert list(topology.requests()) == [queue]


def test_topology_forgets_what_deletes_itself() -> None:
    topology = Topology()
    topology.exchange_declared(spec.ExchangeDeclare(exchange="x", auto_delete=True))
    name = topology.queue_declared(spec.QueueDeclare(queue="q", auto_delete=True), "q")
    topology.bound(spec.QueueBind(queue="q", exchange="x"), name)
    topology.unbound(spec.QueueUnbind(queue="other", exchange="x"))
    topology.queue_unused("other")
    topology.queue_unused("q")
    assert list(topology.requests()) == []


def test_topology_gives_a_queue_its_new_name() -> None:
    topology = Topology()
    declared = spec.QueueDeclare()
    name = topology.queue_declared(declared, "gen-1")
    topology.bound(spec.QueueBind(queue="gen-1", exchange="x"), name)
    assert topology.queue_declared(spec.QueueDeclare(queue="gen-1", passive=True), "gen-1") is name
    topology.renamed(declared, "gen-2")
    assert (name.now, name.before) == ("gen-2", "gen-1")
    assert [each.queue for each in topology.requests() if isinstance(each, spec.QueueBind)] == ["gen-2"]
    topology.unbound(spec.QueueUnbind(queue="gen-2", exchange="x"))
    assert list(topology.requests()) == [declared]


@pytest.mark.parametrize("code", list(ReplyCode091))
def test_errors_name_code_text_and_method(code: ReplyCode091) -> None:
    closed = connection_closed(
        spec.ConnectionClose(reply_code=code, reply_text="why\x07", class_id=60, method_id=40)
    )
    assert str(int(code)) in str(closed)
    assert "why\ufffd" in str(closed)
    assert closed.method == "basic.publish"
    channel = channel_closed(
        3, spec.ChannelClose(reply_code=code, reply_text=f"{code.name} - x"), by_peer=True
    )
    assert str(channel).count(code.name) == 1
    assert channel.method is None


def test_errors_take_codes_that_are_not_known() -> None:
    error = channel_closed(1, spec.ChannelClose(reply_code=999, reply_text="odd"), by_peer=False)
    assert "999 odd" in str(error)
    assert "broke a rule" in str(error)
    assert not error.may_retry
    assert error.condition == "amqp:internal-error"


def names(*args: Any, **options: Any) -> list[str]:
    return [each.name for each in mechanisms_for(*args, **options)]


def test_login_uses_what_the_transport_permits() -> None:
    assert names(None, None, secure=True, has_certificate=True) == ["EXTERNAL"]
    assert names(None, None, secure=True, has_certificate=False)[-2:] == ["PLAIN", "AMQPLAIN"]
    assert "PLAIN" not in names("a", "b", secure=False, has_certificate=False)
    assert "EXTERNAL" in names("a", "b", secure=True, has_certificate=True)
    assert repr(AmqPlain("a", "secret")) == "AmqPlain('a', ...)"


def test_package_shows_the_names_of_the_client() -> None:
    assert set(amqp091.__all__) <= set(dir(package))
    assert all(getattr(amqp091, name) is not None for name in amqp091.__all__)
    with pytest.raises(AttributeError):
        _ = amqp091.nothing
