"""The commands as people and checks run them: processes, pipes, signals and exit codes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import types
from functools import partial
from typing import TYPE_CHECKING

import click
import pytest
import trio
from click.testing import CliRunner

import trio_amqp10 as amqp
from tests.peer.helpers import served
from tests.ports import free_port
from trio_amqp10 import amqp091, cli
from trio_amqp10.cli import commands
from trio_amqp10.cli.demo_round import RELAYS
from trio_amqp10.cli.lazy_commands import LazyGroup
from trio_amqp10.cli.node_rules import (
    parse_dialect,
    parse_limit,
    parse_memory_limit,
    parse_queue,
    parse_quota,
    parse_size,
    quotas_of,
)
from trio_amqp10.cli.progress import Progress
from trio_amqp10.cli.send import _Flight  # pyright: ignore[reportPrivateUsage]

from .conftest import (
    ENVIRONMENT,
    SECONDS,
    amqp10,
    done,
    failed,
    interrupt,
    next_listener,
    read_terminal,
    server_of,
    serving,
    start,
)

if TYPE_CHECKING:
    from pathlib import Path


# -- send and receive


def test_send_sends_one_message_when_given_a_body(queue: str) -> None:
    assert done("send", queue, "--body", "hello") == b"sent 1\n"
    assert done("receive", queue, "--count", "1") == b"hello\n"


def test_send_sends_a_body_as_often_as_asked(queue: str) -> None:
    assert done("send", queue, "--body", "again", "--count", "3") == b"sent 3\n"
    assert done("receive", queue, "--count", "3") == b"again\n" * 3


def test_send_sends_each_line_of_stdin_without_its_newline(queue: str) -> None:
    lines = "eins\n\nzwei \u00fc\nthe last without an end".encode()
    assert done("send", queue, stdin=lines) == b"sent 4\n"
    assert done("receive", queue, "--count", "4") == lines + b"\n"


def test_send_sends_each_line_of_a_file(queue: str, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"".join(b"%d\n" % number for number in range(5000)))
    assert done("send", queue, "--file", str(file)) == b"sent 5000\n"
    assert done("receive", queue, "--count", "5000") == file.read_bytes()


def test_send_sends_the_first_lines_when_counted(queue: str) -> None:
    assert done("send", queue, "--count", "2", stdin=b"a\nb\nc\n") == b"sent 2\n"
    assert done("receive", queue, "--timeout", "0.2") == b"a\nb\n"


def test_send_fails_when_there_are_fewer_lines_than_counted(queue: str) -> None:
    assert "sent 1 of 3" in failed("send", queue, "--count", "3", stdin=b"a\n")


def test_send_keeps_octets_when_binary(queue: str) -> None:
    assert done("send", queue, "--binary", stdin=b"\xff\xfe\n\x00\n") == b"sent 2\n"
    assert done("receive", queue, "--count", "2") == b"\xff\xfe\n\x00\n"


def test_send_fails_when_a_line_is_no_text(queue: str) -> None:
    assert "line 2 is not UTF-8" in failed("send", queue, stdin=b"good\n\xff\n")


def test_send_sets_properties_and_durable(queue: str) -> None:
    done("send", queue, "--body", "x", "--durable", "--property", "a=1", "--property", "b=c=d")
    shown = json.loads(done("receive", queue, "--count", "1", "--json"))
    assert shown == {
        "body": "x",
        "body_type": "value",
        "durable": True,
        "application_properties": {"a": "1", "b": "c=d"},
    }


@pytest.mark.parametrize("guarantee", ["at-most-once", "at-least-once", "exactly-once"])
def test_send_and_receive_give_the_guarantee_asked_for(queue: str, guarantee: str) -> None:
    assert done("send", queue, "--guarantee", guarantee, stdin=b"a\nb\n") == b"sent 2\n"
    assert done("receive", queue, "--guarantee", guarantee, "--count", "2") == b"a\nb\n"


def test_send_sends_a_line_as_soon_as_it_is_there(queue: str) -> None:
    sender = start("send", queue)
    assert sender.stdin is not None
    sender.stdin.write(b"now\n")
    sender.stdin.flush()
    assert done("receive", queue, "--count", "1") == b"now\n"
    assert sender.communicate(b"later\n", timeout=20)[0] == b"sent 2\n"


def test_receive_shows_other_values_as_json(queue: str) -> None:
    done("send", queue, "--binary", "--body", "{}")
    shown = json.loads(done("receive", queue, "--count", "1", "--json"))
    assert shown == {"body": "{}", "body_type": "data"}


def test_receive_fails_when_fewer_come_than_counted(queue: str) -> None:
    done("send", queue, "--body", "only")
    result = amqp10("receive", queue, "--count", "2", "--timeout", "0.2")
    assert (result.returncode, result.stdout) == (1, b"only\n")
    assert result.stderr == b"amqp10: received 1 of 2: nothing came for 0.2 s\n"


def test_receive_ends_well_when_nothing_is_counted_and_it_gets_quiet(queue: str) -> None:
    assert done("receive", queue, "--timeout", "0.2") == b""


def test_receive_leaves_what_it_was_not_asked_for(queue: str) -> None:
    done("send", queue, stdin=b"1\n2\n3\n")
    assert done("receive", queue, "--count", "1") == b"1\n"
    assert done("receive", queue, "--count", "2") == b"2\n3\n"


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_receive_ends_well_when_interrupted_without_a_count(queue: str, sig: signal.Signals) -> None:
    done("send", queue, stdin=b"1\n2\n")
    receiver = start("receive", queue)
    assert receiver.stdout is not None
    assert receiver.stdout.readline() + receiver.stdout.readline() == b"1\n2\n"
    assert interrupt(receiver, sig) == (b"", b"")
    assert receiver.returncode == 0


def test_receive_fails_when_interrupted_before_its_count(queue: str) -> None:
    done("send", queue, "--body", "1")
    receiver = start("receive", queue, "--count", "2")
    assert receiver.stdout is not None
    assert receiver.stdout.readline() == b"1\n"
    assert interrupt(receiver, signal.SIGINT)[1] == b"amqp10: received 1 of 2: interrupted\n"
    assert receiver.returncode == 130


def test_receive_accepts_nothing_that_nobody_reads(queue: str) -> None:
    done("send", queue, "--body", "kept")
    reader, writer = os.pipe()
    os.close(reader)
    receiver = start("receive", queue, "--count", "1", stdout=writer)
    os.close(writer)
    said = receiver.communicate(timeout=20)[1]
    assert b"the output was closed" in said
    assert receiver.returncode == 1
    assert done("receive", queue, "--count", "1") == b"kept\n"


# -- browse and request


def test_browse_leaves_the_messages_where_they_are(queue: str) -> None:
    done("send", queue, stdin=b"".join(b"%d\n" % number for number in range(600)))
    everything = done("browse", queue)
    assert everything.split() == [b"%d" % number for number in range(600)]
    assert done("browse", queue, "--count", "2") == b"0\n1\n"
    assert done("receive", queue, "--count", "600") == everything


def test_browse_fails_when_fewer_are_there_than_counted(queue: str) -> None:
    assert "0 of 1" in failed("browse", queue, "--count", "1")


def test_request_fails_when_nobody_answers(queue: str) -> None:
    assert "no reply came within 0.2 s" in failed("request", queue, "--body", "x", "--timeout", "0.2")


# -- serve


def test_serve_tells_each_listener_with_its_real_port() -> None:
    with server_of("--listen", "amqp://127.0.0.1:0") as (url, server):
        urls = [url, next_listener(server)]
        assert len(set(urls)) == 2
        for each in urls:
            assert not each.endswith(":0")
            assert done("send", f"{each}/q", "--body", "x") == b"sent 1\n"


def test_serve_refuses_unknown_addresses_when_strict() -> None:
    with serving("--strict", "--queue", "known") as url:
        assert done("send", f"{url}/known", "--body", "x") == b"sent 1\n"
        assert "amqp:not-found" in failed("send", f"{url}/other", "--body", "x")


def test_serve_has_topics_that_keep_nothing_for_later() -> None:
    with serving("--topic", "prices", "--strict") as url:
        assert done("send", f"{url}/prices", "--body", "x") == b"sent 1\n"
        assert done("receive", f"{url}/prices", "--timeout", "0.2") == b""


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


@pytest.mark.parametrize(
    ("dialect", "why"),
    [
        ("0-8", "'0-8' is no dialect"),
        ("0-9-1,vhost=x", "'vhost=x' is no option"),
        ("0-9-1,heartbeat=often", "heartbeat='often'"),
        ("0-9-1,frame-max=1", "frame_max is 4096"),
        ("0-9-1,frame-max=none", "frame-max='none': expected octets"),
        ("0-9-1,no-local=perhaps", "no-local='perhaps'"),
        ("all,no-local", "options are for 0-9-1"),
    ],
)
def test_serve_says_what_is_wrong_with_a_dialect(dialect: str, why: str) -> None:
    with pytest.raises(click.BadParameter, match=re.escape(why)):
        parse_dialect(dialect)


@pytest.mark.parametrize(
    ("queue", "why"),
    [
        (",max-length=1", "names no queue"),
        ("q,size=1", "'size=1' is no rule"),
        ("q,max-length=many", "max-length='many': expected a whole number"),
        ("q,max-octets=none", "max-octets='none': expected octets"),
        ("q,ttl=5s", "ttl='5s': expected a whole number of milliseconds"),
        ("q,grouped=perhaps", "grouped='perhaps': expected true or false"),
        ("q,max-length=0", "max-length=0: expected at least 1"),
        (
            "q,overflow=flood",
            "overflow='flood': expected one of wait, reject, reject-dead-letter, drop-oldest",
        ),
        ("q,redelivery-delay=soon", "redelivery-delay='soon'"),
        ("q,redelivery-delay=nan", "more than 0 seconds"),
    ],
)
def test_serve_says_what_is_wrong_with_a_rule(queue: str, why: str) -> None:
    with pytest.raises(click.BadParameter, match=re.escape(why)):
        parse_queue(queue)


def test_serve_takes_delays_in_parts_of_seconds() -> None:
    name, rules = parse_queue("q,redelivery-delay=0.5,redelivery-delay-multiplier=2,max-redelivery-delay=60")
    assert (name, rules) == (
        "q",
        {"redelivery_delay": 0.5, "redelivery_delay_multiplier": 2, "max_redelivery_delay": 60},
    )


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


@pytest.mark.parametrize(
    ("quota", "why"),
    [
        ("links", "links='': expected a number of at least 1"),
        ("ada:links=0", "links='0': expected a number of at least 1"),
        ("cheese=3", "'cheese=3' is no quota"),
        ("ada:node-senders=3", "for all, not for one of them"),
    ],
)
def test_serve_says_what_is_wrong_with_a_quota(quota: str, why: str) -> None:
    with pytest.raises(click.BadParameter, match=re.escape(why)):
        quotas_of([parse_quota(quota)])


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
    assert (b"whoever can connect may delete every queue" in told) is warned


def test_serve_takes_no_more_than_it_has_memory_for() -> None:
    with serving("--memory-limit", "1KiB", "--max-partial", "none", "--management") as url:
        for throttled in (False, True, False):
            [container] = [json.loads(done("top", url, "--once", "--json"))["container"]]
            assert container["throttled"] is throttled
            if throttled:
                assert len(done("receive", f"{url}/q", "--count", "1")) == 1001
            else:
                assert done("send", f"{url}/q", "--body", "x" * 1000) == b"sent 1\n"


def test_limits_are_numbers_or_none() -> None:
    assert (parse_memory_limit("auto"), parse_memory_limit("1KiB"), parse_memory_limit("none")) == (
        "auto",
        1024,
        None,
    )
    assert (parse_limit("3"), parse_limit("none")) == (3, None)
    assert [parse_size(each) for each in ("7", "2KiB", "512MiB", "3GiB", "none")] == [
        7,
        2 * 1024,
        512 * 1024**2,
        3 * 1024**3,
        None,
    ]


@pytest.mark.parametrize("value", ["0", "-1", "many", "", "1MB", "MiB", "0KiB", "1.5GiB", "1KiBKiB"])
def test_serve_says_what_is_wrong_with_a_limit(value: str) -> None:
    for parse in (parse_limit, parse_size):
        with pytest.raises(click.BadParameter, match="or none"):
            parse(value)


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


async def test_serve_gives_up_on_what_is_in_flight_too_long() -> None:
    with server_of() as (url, server):
        async with amqp.open_connection(url) as connection:
            async with connection.open_sender("q") as sender:
                await sender.send("never settled")
            receiver = await connection.open_receiver("q").__aenter__()
            await receiver.receive()
            _, said = await trio.to_thread.run_sync(interrupt, server)
        assert server.returncode == 0
    assert b"gave up on deliveries that were still in flight after 5 s" in said


def test_serve_fails_when_the_port_is_taken(url: str) -> None:
    assert "in use" in failed("serve", "--listen", url)


# -- what goes wrong


def test_send_fails_in_one_line_when_nobody_listens() -> None:
    said = failed("send", f"amqp://127.0.0.1:{free_port()}/q", "--body", "x")
    assert "refused" in said
    assert "no program listens there" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("send", "amqp://127.0.0.1", "--body", "x"), "names no node"),
        (("send", "http://127.0.0.1/q", "--body", "x"), "amqp://"),
        (("send", "amqp://h:99999/q", "--body", "x"), "port"),
        (("send", "amqp://h/q", "--body", "x", "--file", __file__), "exclude"),
        (("send", "amqp://h/q", "--file", "/nowhere/at/all"), "does not exist"),
        (("send", "amqp://h/q", "--body", "x", "--property", "novalue"), "NAME=VALUE"),
        (("receive", "amqp://h/q", "--count", "0"), "--count"),
        (("receive", "amqp://h/q", "--guarantee", "maybe"), "at-most-once"),
        (("serve", "--user", "nopassword"), "NAME:PASSWORD"),
        (("fly",), "fly"),
    ],
)
def test_command_line_that_makes_no_sense_ends_with_2(arguments: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(commands.amqp10, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_error_shows_no_password() -> None:
    result = CliRunner().invoke(commands.amqp10, ["send", "amqp://ada:enigma@127.0.0.1", "--body", "x"])
    assert "enigma" not in result.stderr


def test_command_says_what_to_install_when_the_extra_is_missing(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name in ('click', 'rich') else find(name, *rest)\n"
    )
    result = subprocess.run(
        [sys.executable, "-m", "trio_amqp10", "demo"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode().splitlines() == [
        "amqp10 needs click and rich; install them with: pip install 'trio-amqp10[cli]'"
    ]


# -- demo, bench, terminals


def test_demo_sends_and_receives_and_shows_it() -> None:
    shown = done("demo").decode()
    assert "sent      'a string': accepted" in shown
    assert "received  {'an': 'AMQP map'" in shown
    assert "IS ANYBODY THERE?" in shown
    assert "Transfer(" not in shown


def test_demo_shows_frames_when_asked() -> None:
    shown = done("demo", "--frames").decode()
    for what in ("-> header AMQP 3 1.0.0", "<- [0] Open(", "-> [0] Transfer(", "<- [0] Disposition("):
        assert what in shown
    assert shown.count("Transfer(") == 10  # each once, as the end sees it that dialled


def test_demo_sends_a_message_round_through_every_protocol() -> None:
    lines = done("demo", "--dialect", "all").decode().splitlines()
    told = {line.split()[0]: line for line in lines if "once around" in line}
    assert told.keys() == {"1.0", *RELAYS}
    for line in told.values():
        assert "durable, priority 7, {'colour': 'green'}" in line
        assert "not durable" not in line


def test_demo_shows_the_frames_of_every_protocol_when_asked() -> None:
    shown = done("demo", "--dialect", "all", "--frames").decode()
    for what in ("[0] Transfer(", "[1] basic.deliver(", "handle notify(", "[1] tx.commit()"):
        assert what in shown
    assert shown.count("[1] basic.deliver(") == 2  # of 0-9-1 and of 10.3


def test_demo_ends_with_a_line_when_nobody_reads_its_frames() -> None:
    process = start("demo", "--dialect", "all", "--frames")
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        process.stdout.readline()
        process.stdout.close()
        assert len(process.stderr.read().splitlines()) <= 1


def test_bench_measures_both_sides_without_a_peer() -> None:
    figures = json.loads(done("bench", "--count", "500", "--size", "64", "--json"))
    assert (figures["count"], figures["size"], figures["presettled"]) == (500, 64, False)
    for name in (
        "messages_per_second",
        "sender_cpu_us",
        "receiver_cpu_us",
        "latency_p50_us",
        "latency_p99_us",
    ):
        assert figures[name] > 0


def test_bench_measures_against_a_peer(queue: str) -> None:
    shown = done("bench", queue, "--count", "200", "--presettled").decode()
    assert "200 messages of 100 octets, sent settled" in shown
    assert "throughput" in shown
    assert "at p99" in shown


def test_bench_fails_when_nobody_listens() -> None:
    assert amqp10("bench", f"amqp://127.0.0.1:{free_port()}/q").returncode == 1


def test_send_shows_progress_on_a_terminal_and_results_on_stdout(queue: str) -> None:
    ours, theirs = pty.openpty()
    sender = start("send", queue, stderr=theirs)
    os.close(theirs)
    stdout, _ = sender.communicate(b"1\n2\n", timeout=20)
    assert stdout == b"sent 2\n"
    assert b"sending" in read_terminal(ours)


ESCAPES = b"a\tb\x1b]0;title\x07\x1b[2J\xc2\x9b31m\xff\r\n"


def test_receive_shows_escape_codes_on_a_terminal_and_does_not_send_them(queue: str) -> None:
    done("send", queue, "--binary", stdin=ESCAPES)
    ours, theirs = pty.openpty()
    receiver = start("receive", queue, "--count", "1", stdout=theirs)
    os.close(theirs)
    receiver.wait(timeout=20)
    shown = read_terminal(ours)
    assert shown == b"a\tb\\x1b]0;title\\x07\\x1b[2J\\x9b31m\\xff\\x0d\r\n"
    receiver.communicate()


def test_receive_writes_octets_as_they_are_where_there_is_no_terminal(queue: str) -> None:
    done("send", queue, "--binary", stdin=ESCAPES)
    assert done("receive", queue, "--count", "1") == ESCAPES


FIELDS = (
    *(
        "--subject",
        "greeting",
        "--ttl",
        "60",
        "--priority",
        "7",
        "--message-id",
        "m1",
        "--correlation-id",
        "c1",
    ),
    *("--reply-to", "answers", "--content-type", "text/plain"),
)


def test_send_sets_the_fields_that_are_named(queue: str) -> None:
    done("send", queue, "--body", "hi", *FIELDS)
    shown = json.loads(done("receive", queue, "--count", "1", "--json"))
    assert {
        name: shown[name] for name in ("subject", "priority", "message_id", "correlation_id", "reply_to")
    } == {
        "subject": "greeting",
        "priority": 7,
        "message_id": "m1",
        "correlation_id": "c1",
        "reply_to": "answers",
    }
    assert shown["content_type"] == "text/plain"
    assert 0 < shown["ttl"] <= 60_000


@pytest.mark.parametrize("more", [("--body", "x", "--count", "2"), ()])
def test_message_id_is_for_one_message(queue: str, more: tuple[str, ...]) -> None:
    result = amqp10("send", queue, "--message-id", "m", *more)
    assert result.returncode == 2
    assert b"--message-id names one message" in result.stderr


@pytest.mark.parametrize("command", ["receive", "browse"])
def test_filter_takes_only_what_it_is_true_for(queue: str, command: str) -> None:
    for colour in ("red", "blue", "red"):
        done("send", queue, "--body", colour, "--property", f"colour={colour}")
    assert done(command, queue, "--count", "1", "--filter", "colour = 'blue'") == b"blue\n"


def test_filter_that_is_none_is_refused(queue: str) -> None:
    assert "selector" in failed("receive", queue, "--count", "1", "--filter", "colour = = 1")


def test_receive_takes_no_more_ahead_than_its_credit(queue: str) -> None:
    done("send", queue, "--body", "x", "--count", "30")
    receiver = start("receive", queue, "--credit", "2", "--timeout", "1")
    stdout, _ = receiver.communicate(timeout=20)
    assert stdout == b"x\n" * 30
    assert done("receive", queue, "--credit", "2", "--timeout", "0.2") == b""


@pytest.mark.parametrize(
    ("shell", "said"), [("bash", "complete -o"), ("zsh", "#compdef amqp10"), ("fish", "complete --")]
)
def test_completion_prints_a_script(shell: str, said: str) -> None:
    script = done("completion", shell).decode()
    assert said in script
    assert "_AMQP10_COMPLETE" in script


def test_completion_knows_commands_and_options() -> None:
    def completed(words: str, word: int) -> list[str]:
        environment = {
            **ENVIRONMENT,
            "_AMQP10_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(word),
        }
        script = "from trio_amqp10.cli import main; main()"
        shown = subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=SECONDS,
        )
        return [line.partition(",")[2] for line in shown.stdout.splitlines()]

    assert {"send", "receive", "certs", "passwd", "completion"} <= set(completed("amqp10 ", 1))
    assert "--message-id" in completed("amqp10 send --me", 2)
    assert completed("amqp10 receive --guarantee at-l", 3) == ["at-least-once"]


@pytest.mark.parametrize(
    "more",
    [("receive", "q", "--filter", "a = 1", "--count", "1"), ("send", "q", "--subject", "s", "--body", "x")],
)
def test_options_of_1_0_are_refused_in_0_9_1(more: tuple[str, ...]) -> None:
    command, *others = more
    result = amqp10(command, f"amqp091://127.0.0.1:{free_port()}", *others)
    assert result.returncode == 2
    assert b"is of AMQP 1.0" in result.stderr


@pytest.mark.parametrize("credit", [0, 10])
async def test_send_says_once_what_it_waits_for(
    credit: int, autojump_clock: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """A peer without room grants no credit, or keeps what it was sent."""

    async def full(conn: amqp.Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept(credit=credit):
                await trio.sleep_forever()

    async with served(full) as conn, conn.open_sender("small") as sender:
        flight = _Flight(sender, Progress("sending", None, quiet=True))
        for _ in range(2):
            with trio.move_on_after(60):
                await flight.send("tea")
                await flight.land()
    assert capsys.readouterr().err == (
        "amqp10: waiting: 'small' does not take message 1 yet; a full queue takes none until others are received from it\n"
    )


def test_interrupt_of_a_command_that_does_not_take_it_is_reported() -> None:
    group = LazyGroup("amqp10", lazy={})

    @group.command()
    def stopped() -> None:
        raise KeyboardInterrupt

    result = CliRunner().invoke(group, ["stopped"])
    assert (result.exit_code, result.output) == (130, "amqp10: interrupted\n")


def test_interrupt_during_the_start_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(types.ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "trio_amqp10.cli.commands", Interrupted("commands"))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "amqp10: interrupted\n"
