"""Commands in AMQP 0-9-1, against a container that serves it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091
from trio_amqp10.testing import rabbitmq, running_container
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ

from .conftest import amqp10, failed, next_listener, server_of, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def broker() -> RabbitMQ:
    made = RabbitMQ()
    made.declare_queue("orders")
    made.declare_exchange("prices", "topic")
    made.bind("prices", "orders", "*.tea")
    return made


@pytest.fixture
def url(broker: RabbitMQ) -> Iterator[str]:
    with rabbitmq(broker=broker) as found:
        yield found.replace("amqp://", "amqp091://")


def done(*arguments: str, stdin: bytes = b"") -> bytes:
    result = amqp10(*arguments, stdin=stdin)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_lines_are_published_to_a_queue_and_received(url: str) -> None:
    assert done("send", url, "orders", stdin=b"one\ntwo\n\xff\n") == b"sent 3\n"
    assert done("receive", url, "orders", "--count", "3") == b"one\ntwo\n\xff\n"


def test_receive_leaves_what_is_not_wanted_as_it_was(url: str) -> None:
    done("send", url, "orders", "--body", "tea", "--count", "30")
    assert done("receive", url, "orders", "--count", "7") == b"tea\n" * 7
    rest = done("receive", url, "orders", "--timeout", "0.5", "--json").splitlines()
    assert len(rest) == 23
    assert all("first_acquirer" in json.loads(line) for line in rest)


def test_receive_of_more_than_the_prefetch_acknowledges_meanwhile(url: str) -> None:
    done("send", url, "orders", "--body", "x", "--count", "2600")
    assert done("receive", url, "orders", "--count", "2500") == b"x\n" * 2500
    assert done("receive", url, "orders", "--timeout", "0.5") == b"x\n" * 100


def test_message_for_an_exchange_shows_where_it_came_from(url: str) -> None:
    arguments = ("--exchange", "prices", "--routing-key", "green.tea", "--body", "12.50")
    assert done("send", url, *arguments, "--property", "table=7", "--durable") == b"sent 1\n"
    message = json.loads(done("receive", url, "orders", "--count", "1", "--json"))
    assert message["body"] == "12.50"
    assert message["durable"] is True
    assert message["application_properties"] == {"table": "7"}
    assert message["annotations"] == {"x-exchange": "prices", "x-routing-key": "green.tea"}


def test_message_without_a_route_fails(url: str) -> None:
    arguments = ("send", url, "--exchange", "prices", "--routing-key", "coffee", "--body", "x")
    assert "312 NO_ROUTE" in failed(*arguments)
    assert done(*arguments, "--guarantee", "at-most-once") == b"sent 1\n"


def test_unknown_queue_fails(url: str) -> None:
    assert "404 NOT_FOUND" in failed("receive", url, "nowhere")


def test_wrong_password_fails(url: str) -> None:
    assert "not authenticated" in failed("receive", url.replace(":guest@", ":wrong@"), "orders")


def test_silence_before_the_count_fails(url: str) -> None:
    done("send", url, "orders", "--body", "tea")
    result = amqp10("receive", url, "orders", "--count", "2", "--timeout", "0.3")
    assert result.returncode == 1
    assert result.stdout == b"tea\n"
    assert b"received 1 of 2: no message arrived for 0.3 s" in result.stderr
    assert done("receive", url, "orders", "--timeout", "0.3") == b""


def test_received_at_most_once_is_acknowledged(url: str) -> None:
    done("send", url, "orders", "--body", "tea")
    assert done("receive", url, "orders", "--count", "1", "--guarantee", "at-most-once") == b"tea\n"
    assert done("receive", url, "orders", "--timeout", "0.3") == b""


def test_dialect_says_what_amqp_means(url: str) -> None:
    plain = url.replace("amqp091://", "amqp://")
    assert done("send", plain, "orders", "--dialect", "0-9-1", "--body", "tea") == b"sent 1\n"
    assert done("receive", f"{plain}//queues/orders", "--count", "1") == b"tea\n"


def test_request_is_answered_by_a_function() -> None:
    container = amqp.Container()

    @container.function("upper")
    async def upper(message: amqp.Message) -> bytes:
        body: bytes = message.body
        return body.upper()

    with running_container(container=container) as url:
        place = url.replace("amqp://", "amqp091://")
        assert done("request", place, "upper", "--body", "tea") == b"TEA\n"


def test_top_shows_connections_of_both_protocols() -> None:
    async def use(url: str) -> dict[str, Any]:
        async with amqp091.open_connection(url, connection_name="shop"):
            shown = await trio.to_thread.run_sync(amqp10, "top", url, "--once", "--json")
        found: dict[str, Any] = json.loads(shown.stdout)
        return found

    container = amqp.Container()
    container.add_management()
    with running_container(container=container) as url:
        names = [each["name"] for each in trio.run(use, url)["connections"]]
    assert len(names) == 2
    assert "shop" in names


@pytest.mark.whole
@pytest.mark.parametrize("settled", [False, True])
def test_bench_measures_a_server(url: str, settled: bool) -> None:
    options = ("--count", "300", "--size", "64", "--credit", "50", *(("--presettled",) if settled else ()))
    figures = json.loads(done("bench", url, "orders", *options, "--json"))
    assert (figures["dialect"], figures["presettled"], figures["credit"]) == ("0-9-1", settled, 50)
    assert figures["messages_per_second"] > 0
    assert 0 < figures["latency_p50_us"] <= figures["latency_p99_us"]
    assert done("receive", url, "orders", "--timeout", "0.3") == b""  # all was acknowledged
    how = b"no confirms, window 50" if settled else b"each confirmed and acknowledged, window 50"
    assert how in done("bench", url, "orders", *options)


def test_bench_says_why_a_side_fails(url: str) -> None:
    result = amqp10("bench", url, "nowhere", "--count", "10")
    assert result.returncode == 1
    assert b"404 NOT_FOUND" in result.stderr
    assert b"Traceback" not in result.stderr


def test_listener_of_0_9_1_alone_and_what_management_says_there() -> None:
    both = ("--listen", "amqp://127.0.0.1:0", "--dialect", "0-9-1,heartbeat=7", "--management")
    with server_of("--queue", "orders", *both, listen="amqp091://127.0.0.1:0") as (url, process):
        other = next_listener(process)
        assert url.startswith("amqp091://127.0.0.1:")
        assert done("send", url, "orders", "--body", "tea") == b"sent 1\n"
        assert done("receive", f"{other}/orders", "--count", "1") == b"tea\n"
        assert "management needs AMQP 1.0, which the server at 127.0.0.1:" in failed("top", url, "--once")
        assert "management needs AMQP 1.0" in failed("disconnect", url, "1")
        assert "protocol header" in failed("top", url.replace("amqp091", "amqp"), "--once")
        same = other.replace("amqp://", "amqp091://")
        shown = json.loads(done("top", f"{same}?heartbeat=3", "--once", "--json"))
        assert shown["management"] is True
        assert "connection 99 was not closed" in failed("disconnect", same, "99")


def test_listener_of_0_9_1_alone_with_tls(tmp_path: Path) -> None:
    done("certs", str(tmp_path), "--host", "localhost", "--host", "127.0.0.1")
    own = ("--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server-key.pem"))
    with serving("--queue", "orders", *own, listen="amqp091s://127.0.0.1:0") as url:
        assert url.startswith("amqp091s://127.0.0.1:")
        trust = ("--tls-ca", str(tmp_path / "ca.pem"))
        assert done("send", url, "orders", "--body", "tea", *trust) == b"sent 1\n"
        assert "certificate" in failed("send", url, "orders", "--body", "tea")
