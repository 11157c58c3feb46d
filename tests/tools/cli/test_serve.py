"""What ``amqp10 serve`` does to its process, and how a signal at its start ends it."""

from __future__ import annotations

import gc
import json
import signal
from functools import partial
from typing import TYPE_CHECKING

import httpx
import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091
from trio_amqp10.net.tls import Certificate
from trio_amqp10.tools.cli import serve as module
from trio_amqp10.tools.cli.serve import ServeOptions, owner_of, serve

from .conftest import (
    SECONDS,
    amqp10,
    done,
    failed,
    interrupt,
    next_listener,
    server_of,
    serving,
    start,
)
from .first_line import interrupt_at_first_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVE = partial(serve, ServeOptions(urls=["amqp://127.0.0.1:0"]))


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The garbage collector as it was, once the test is over."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


async def test_garbage_collector_looks_at_all_seldom_once_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[int] = []
    written, _ = await interrupt_at_first_line(
        SERVE, module, monkeypatch, lambda: frozen.append(gc.get_freeze_count())
    )
    assert written[0].startswith(b"listening amqp://127.0.0.1:")
    assert frozen[0] > 1_000
    young, middle, old = gc.get_threshold()
    assert (
        young >= 40_000
    )  # or it examines a few hundred clients each time that they dial and are cut off together
    assert young * (middle + 1) <= 100_000  # objects examined at once, some tens of milliseconds
    assert young * (middle + 1) * (old + 1) >= 500_000


async def test_signal_at_the_listening_line_ends_serve_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, cancelled = await interrupt_at_first_line(SERVE, module, monkeypatch)
    assert not cancelled
    assert "finishing the deliveries in flight" in capsys.readouterr().err


def test_serve_tells_each_listener_with_its_real_port() -> None:
    with server_of("--listen", "amqp://127.0.0.1:0") as (url, server):
        urls = [url, next_listener(server)]
        assert len(set(urls)) == 2
        for each in urls:
            assert not each.endswith(":0")
            assert done("send", f"{each}/q", "--body", "x") == b"sent 1\n"


def test_serve_by_http_prints_its_listener_and_shares_the_users() -> None:
    with server_of("--http", "http://127.0.0.1:0", "--user", "ada:enigma") as (_, server):
        url = next_listener(server)
        assert url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{url}/api/whoami", auth=("ada", "enigma")).json()["name"] == "ada"
        assert httpx.get(f"{url}/api/whoami").status_code == 401


@pytest.mark.parametrize("url", ["amqp://127.0.0.1", "http://h/path", "http://"])
def test_serve_names_a_url_that_is_none_of_http(url: str) -> None:
    result = amqp10("serve", "--http", url)
    assert result.returncode == 2
    assert b"--http" in result.stderr


def test_serve_by_http_for_other_machines_needs_users() -> None:
    assert "no users" in failed("serve", "--listen", "amqp://127.0.0.1:0", "--http", "http://0.0.0.0:0")


def test_serve_refuses_unknown_addresses_when_strict() -> None:
    with serving("--strict", "--queue", "known") as url:
        assert done("send", f"{url}/known", "--body", "x") == b"sent 1\n"
        assert "amqp:not-found" in failed("send", f"{url}/other", "--body", "x")


def test_serve_has_topics_that_keep_nothing_for_later() -> None:
    with serving("--topic", "prices", "--strict") as url:
        assert done("send", f"{url}/prices", "--body", "x") == b"sent 1\n"
        assert done("receive", f"{url}/prices", "--timeout", "0.2") == b""


def test_serve_has_topics_with_limits(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text("[topics.prices]\nmax-backlog = 7\noverflow = 'reject'\n")
    for options in (("--topic", "prices,max-backlog=7,overflow=reject"), ("--config", str(file))):
        with serving(*options, "--management") as url:
            shown = json.loads(done("topic", "show", url, "prices", "--json"))
            assert (shown["max-backlog"], shown["overflow"]) == (7, "reject")


def test_serve_has_queues_that_go_by_rules() -> None:
    rules = "small,max-length=1,overflow=reject,grouped,exclusive=false,dead-letter=dead"
    with serving("--queue", rules, "--strict") as url:
        assert done("send", f"{url}/small", "--body", "x") == b"sent 1\n"
        assert "amqp:resource-limit-exceeded" in failed("send", f"{url}/small", "--body", "y")


def test_serve_is_managed_where_it_is_told_to() -> None:
    with serving("--management", "--strict") as url:
        assert done("send", f"{url}/$management", "--body", "x") == b"sent 1\n"
    with serving("--strict") as url:
        assert "amqp:not-found" in failed("send", f"{url}/$management", "--body", "x")


@pytest.mark.parametrize("dialect", ["0-9-1", "all"])
async def test_serve_speaks_0_9_1_where_it_is_told_to(dialect: str) -> None:
    with serving("--dialect", dialect, "--queue", "q") as url:
        async with amqp091.open_connection(url) as connection, connection.open_channel() as channel:
            await channel.publish("", "q", b"x")
            got = await channel.queue("q").get(no_ack=True)
            assert got is not None
            assert got.body == b"x"


async def test_serve_proposes_the_limits_of_a_dialect_that_it_is_told() -> None:
    with serving("--dialect", "0-9-1,heartbeat=7,channel-max=9,frame-max=8KiB,no-local") as url:
        async with amqp091.open_connection(url) as connection:
            assert connection.heartbeat == 7


async def test_serve_holds_identities_to_their_quotas() -> None:
    quotas = [
        "--quota",
        "connections=1",
        "--quota",
        "ada:connections=2",
        "--user",
        "ada:a",
        "--user",
        "bob:b",
    ]
    with serving(*quotas) as url:
        ada, bob = (url.replace("//", f"//{who}@") for who in ("ada:a", "bob:b"))
        async with amqp.open_connection(ada), amqp.open_connection(bob):
            assert done("send", f"{ada}/q", "--body", "x") == b"sent 1\n"
            assert "'bob' has connections=1 already" in failed("send", f"{bob}/q", "--body", "x")


@pytest.mark.whole
def test_serve_lets_a_user_wait_after_so_many_failures_as_it_says() -> None:
    with serving("--user", "ada:enigma", "--user", "bob:b", "--max-failures", "1") as url:
        ada, wrong, bob = (url.replace("//", f"//{who}@") for who in ("ada:enigma", "ada:guess", "bob:b"))
        assert "refused the credentials" in failed("send", f"{wrong}/q", "--body", "x")
        assert "a later attempt may succeed" in failed("send", f"{ada}/q", "--body", "x")
        assert done("send", f"{bob}/q", "--body", "x") == b"sent 1\n"


@pytest.mark.parametrize(
    ("arguments", "warned"), [((), True), (("--user", "ada:enigma"), False)], ids=["anybody", "users"]
)
def test_serve_warns_where_anybody_may_manage_it(arguments: tuple[str, ...], warned: bool) -> None:
    with server_of("--management", *arguments) as (_, server):
        _, told = interrupt(server)
        assert server.returncode == 0
    assert (b"lets every client delete every queue" in told) is warned


def test_serve_takes_no_more_than_it_has_memory_for() -> None:
    with serving("--memory-limit", "1KiB", "--max-partial", "none", "--management") as url:
        for throttled in (False, True, False):
            [container] = [json.loads(done("top", url, "--once", "--json"))["container"]]
            assert container["throttled"] is throttled
            if throttled:
                assert len(done("receive", f"{url}/q", "--count", "1")) == 1001
            else:
                assert done("send", f"{url}/q", "--body", "x" * 1000) == b"sent 1\n"


def test_serve_lets_in_only_users_when_it_has_some() -> None:
    with serving("--user", "ada:enigma", "--user", "bob:with:colon") as url:
        ada, bob = url.replace("//", "//ada:enigma@"), url.replace("//", "//bob:with%3Acolon@")
        assert done("send", f"{ada}/q", "--body", "x") == b"sent 1\n"
        assert done("receive", f"{bob}/q", "--count", "1") == b"x\n"
        assert "not authenticated" in failed("send", f"{url}/q", "--body", "x")
        assert "not authenticated" in failed("send", f"{url.replace('//', '//ada:wrong@')}/q", "--body", "x")


async def test_serve_waits_for_deliveries_in_flight_when_asked_to_end() -> None:
    with server_of() as (url, server):
        assert server.stderr is not None
        async with amqp.open_connection(url, close_timeout=0.5) as connection:
            async with connection.open_sender("q") as sender:
                await sender.send("in flight")
                await sender.send("in the queue")
            async with connection.open_receiver("q", credit=0) as receiver:
                delivery = await receiver.receive()
                server.send_signal(signal.SIGTERM)
                assert b"finishing the deliveries in flight" in await trio.to_thread.run_sync(
                    server.stderr.readline
                )
                assert server.poll() is None
                delivery.accept()
                await trio.to_thread.run_sync(partial(server.communicate, timeout=SECONDS))
        assert server.returncode == 0


def test_serve_is_not_held_up_by_messages_in_its_queues() -> None:
    with server_of() as (url, server):
        done("send", f"{url}/q", stdin=b"1\n2\n")
        _, said = interrupt(server)
        assert server.returncode == 0
    assert b"gave up" not in said


@pytest.mark.whole
async def test_serve_gives_up_on_what_is_in_flight_too_long() -> None:
    with server_of() as (url, server):
        async with amqp.open_connection(url) as connection:
            async with connection.open_sender("q") as sender:
                await sender.send("never settled")
            receiver = await connection.open_receiver("q").__aenter__()
            await receiver.receive()
            _, said = await trio.to_thread.run_sync(interrupt, server)
        assert server.returncode == 0
    assert b"some deliveries were still in flight after 5 s" in said


def test_serve_fails_when_the_port_is_taken(url: str) -> None:
    said = f"amqp10: {url} is in use by another program: choose another port with"
    assert failed("serve", "--listen", url).startswith(f"{said} --listen URL")
    port = url.rpartition(":")[2]
    assert failed("emulate", "rabbitmq", "--port", port).startswith(f"{said} --port")
    assert failed("trace", "--listen", url, "--to", "amqp://127.0.0.1:1").startswith(f"{said} --listen")
    web = url.replace("amqp", "http", 1)
    assert failed("serve", "--listen", "amqp://127.0.0.1:0", "--http", web) == (
        f"{said.replace(url, web)} --http URL; port 0 is a free one"
    )


def test_serve_fails_when_the_path_of_its_socket_is_taken(tmp_path: Path) -> None:
    with serving(listen=f"amqp+unix://{tmp_path}/socket") as url:
        assert failed("serve", "--listen", url) == (
            f"amqp10: {url} is in use by another program: choose another path with --listen URL"
        )


def test_strict_container_warns_of_dead_letters_without_an_address() -> None:
    queues = ("--queue", "a,dead-letter=b", "--queue", "c,dead-letter=a")
    server = start("serve", "--listen", "amqp://127.0.0.1:0", "--strict", *queues)
    next_listener(server)
    lines = [line for line in interrupt(server)[1].decode().splitlines() if "dead letters" in line]
    assert lines == [
        "amqp10: warning: the dead letters of queue 'a' are lost, because 'b' does not exist and --strict creates no queue: add --queue b"
    ]


def alternatives(*names: tuple[str, str], common: str | None = None) -> Certificate:
    subject = () if common is None else ((("commonName", common),),)
    return Certificate(b"", {"subject": subject, "subjectAltName": names})


@pytest.mark.parametrize(
    ("certificate", "owner"),
    [
        (alternatives(("DNS", "h"), common="ada"), "ada"),
        (alternatives(("email", "ada@h")), "ada@h"),
        (alternatives(("URI", "spiffe://h/ada")), "spiffe://h/ada"),
        (alternatives(("DNS", "h")), "h"),
        (alternatives(("DNS", "h"), ("email", "ada@h")), None),
        (alternatives(("IP Address", "127.0.0.1")), None),
        (alternatives(), None),
    ],
)
def test_owner_of_a_certificate_is_its_common_name_or_its_only_other(
    certificate: Certificate, owner: str | None
) -> None:
    assert owner_of(certificate) == owner
