"""The commands that operate a container: what they print, and what they do with the container."""

from __future__ import annotations

import json
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.testing import rabbitmq
from trio_amqp10.tools.cli.command_runner import CommandError, Interrupts
from trio_amqp10.tools.cli.moving import MoveOptions, move

from .conftest import SECONDS, amqp10, done, failed, interrupt, misused, serving, start
from .test_disconnect import receiving_from
from .test_store import killed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def managed() -> Iterator[str]:
    with serving("--management", "--user", "ada:enigma", "--dialect", "0-9-1") as url:
        yield url.replace("amqp://", "amqp://ada:enigma@")


def lines(*numbers: int) -> bytes:
    return b"".join(b"%d\n" % number for number in numbers)


def test_queue_is_created_shown_changed_purged_and_deleted(managed: str) -> None:
    assert done("queue", "create", managed, "orders,max-length=5,overflow=reject,dead-letter=dead") == b""
    assert failed("queue", "create", managed, "orders") == (
        "amqp10: queue 'orders' exists already: change its rules, or delete it first"
    )
    assert "topic" not in failed("topic", "create", managed, "orders")
    shown = json.loads(done("queue", "show", managed, "orders", "--json"))
    assert (shown["max-length"], shown["overflow"], shown["depth"], shown["oldest"]) == (5, "reject", 0, None)
    done("queue", "set", managed, "orders,max-length=9", "--unset", "dead-letter")
    assert done("queue", "show", managed, "orders", "--format", "{max-length} {dead-letter}|") == b"9 |\n"
    done("send", f"{managed}/orders", "--body", "x", "--count", "3")
    assert done("queue", "list", managed, "--format", "{name} {depth}").splitlines() == [b"orders 3"]
    table = done("queue", "list", managed).decode().splitlines()
    assert table[0].split() == [
        "name",
        "depth",
        "ready",
        "unacked",
        "consumers",
        "arrived",
        "acknowledged",
        "oldest",
    ]
    assert table[1].split()[:3] == ["orders", "3", "3"]
    assert "'orders' has 3 messages: it is not empty" in failed(
        "queue", "delete", managed, "orders", "--if-empty"
    )
    assert "--unset 'kind' is no rule of a queue: expected max-length" in misused(
        "queue", "set", managed, "orders", "--unset", "kind"
    )
    assert done("queue", "purge", managed, "orders") == b"purged 3\n"
    assert done("queue", "delete", managed, "orders", "--if-empty", "--if-unused") == b""
    assert "no queue 'orders'" in failed("queue", "show", managed, "orders")


def test_queue_is_browsed_by_management(managed: str) -> None:
    done("queue", "create", managed, "many")
    assert done("queue", "browse", managed, "many") == b""
    done("send", f"{managed}/many", stdin=lines(*range(1200)))
    done("send", f"{managed}/many", "--body", "red", "--property", "colour=red")
    assert done("queue", "browse", managed, "many", "--count", "600") == lines(*range(600))
    assert done("queue", "browse", managed, "many") == lines(*range(1200)) + b"red\n"
    assert done("queue", "browse", managed, "many", "--filter", "colour = 'red'") == b"red\n"
    shown = json.loads(done("queue", "browse", managed, "many", "--count", "1", "--json"))
    assert shown["body"] == "0"
    assert "printed 1201 of 1300: there are no more" in failed(
        "queue", "browse", managed, "many", "--count", "1300"
    )
    assert "no queue 'nowhere'" in failed("queue", "browse", managed, "nowhere")
    done("queue", "delete", managed, "many")


def test_message_that_cannot_be_decoded_is_reported_and_the_others_are_printed(managed: str) -> None:
    async def send() -> None:
        async with amqp.open_connection(managed) as conn, conn.open_sender("odd") as sender:
            for payload in (b"\x00\x53\x99\x40", b"\x00\x53\x77\xa1\x03tea"):
                delivery = sender.send_payload(payload, False, 0)
                assert delivery is not None
                await delivery.outcome()

    done("queue", "create", managed, "odd")
    trio.run(send)
    result = amqp10("queue", "browse", managed, "odd")
    assert (result.returncode, result.stdout) == (1, b"tea\n")
    assert result.stderr.decode().splitlines() == [
        "amqp10: message 0 of odd could not be decoded: 153 describes no section (3.2)",
        "amqp10: 1 of the messages could not be decoded",
    ]
    done("queue", "delete", managed, "odd")


def test_one_who_may_manage_a_queue_browses_it_without_receiving(tmp_path: Path) -> None:
    rights = tmp_path / "rights.toml"
    rights.write_text(
        "[[rights]]\nusers = ['ops']\npermissions = ['manage']\naddresses = ['orders']\n"
        "[[rights]]\nusers = ['ops']\npermissions = ['send']\naddresses = ['$management']\n"
        "[[rights]]\nusers = ['ops']\npermissions = ['create']\naddresses = ['*']\n"
        "[[rights]]\nusers = ['ada']\npermissions = ['send']\naddresses = ['orders']\n"
    )
    with serving(
        *("--management", "--user", "ops:x", "--user", "ada:x", "--rights", str(rights), "--queue", "orders")
    ) as url:
        ops = url.replace("amqp://", "amqp://ops:x@")
        done("send", f"{url.replace('amqp://', 'amqp://ada:x@')}/orders", "--body", "tea")
        assert "may not receive from 'orders'" in failed("browse", f"{ops}/orders")
        assert done("queue", "browse", ops, "orders") == b"tea\n"


def test_topic_is_created_shown_and_deleted(managed: str) -> None:
    done("topic", "create", managed, "news", "--max-backlog", "7", "--overflow", "wait")
    shown = json.loads(done("topic", "show", managed, "news", "--json"))
    assert (shown["max-backlog"], shown["overflow"], shown["subscriptions"]) == (7, "wait", 0)
    assert done("topic", "list", managed, "--format", "{name}") == b"news\n"
    done("topic", "set", managed, "news", "--overflow", "reject", "--unset", "max-backlog")
    changed = json.loads(done("topic", "show", managed, "news", "--json"))
    assert (changed["max-backlog"], changed["overflow"]) == (None, "reject")
    assert "at least one limit" in misused("topic", "set", managed, "news")
    done("topic", "delete", managed, "news", "--if-unused")
    assert done("topic", "list", managed, "--json") == b""


def test_connection_is_listed_and_closed_with_a_reason(managed: str) -> None:
    done("queue", "create", managed, "watched")
    receiver = start("receive", f"{managed}/watched", "--timeout", f"{SECONDS}")
    try:
        deadline = time.monotonic() + SECONDS
        while not (others := receiving_from(managed, "watched")):
            assert time.monotonic() < deadline
        found = [json.loads(line) for line in done("connection", "list", managed, "--json").splitlines()]
        assert {each["user"] for each in found} == {"ada"}
        assert done("user", "list", managed, "--format", "{name}") == b"ada\n"
        for identity in others:
            assert b"OPENED" in done("connection", "show", managed, identity)
            amqp10("connection", "close", managed, identity, "--reason", "maintenance")
        _, stderr = receiver.communicate(timeout=SECONDS)
    finally:
        receiver.kill()
    assert b"maintenance" in stderr
    assert "no connection '999'" in failed("connection", "close", managed, "999")
    assert "no connection 'abc': give an identity" in failed("connection", "close", managed, "abc")
    done("queue", "delete", managed, "watched")


def test_messages_are_moved_and_dead_letters_sent_back(managed: str) -> None:
    for rules in ("from,dead-letter=letters,delivery-limit=1", "to", "letters"):
        done("queue", "create", managed, rules)
    done("send", f"{managed}/from", stdin=lines(*range(2500)))
    assert done("move", managed, "from", "to", "--count", "1200") == b"moved 1200\n"
    assert done("move", managed, "from", "to", "--filter", "JMSPriority > 8") == b"moved 0\n"
    assert done("move", managed, "from", "to") == b"moved 1300\n"
    assert done("browse", f"{managed}/to") == lines(*range(2500))
    assert "no node 'nowhere'" in failed("move", managed, "to", "nowhere")
    done("move", managed, "to", "from", "--count", "10")
    rejecting = start("receive", f"{managed}/from", "--count", "10", "--undecodable", "reject")
    rejecting.kill()
    rejecting.communicate()
    assert done("redrive", managed, "letters", "--from", "to") == b"moved 0\n"
    assert "no queue 'nowhere'" in failed("redrive", managed, "letters", "--from", "nowhere")
    assert "stay" not in done("redrive", managed, "letters").decode()
    for name in ("from", "to", "letters"):
        done("queue", "delete", managed, name)


def test_definitions_are_exported_and_imported(managed: str, tmp_path: Path) -> None:
    done("queue", "create", managed, "kept,max-length=3")
    done("topic", "create", managed, "told")
    file = tmp_path / "definitions.json"
    assert done("definitions", "export", managed, str(file)) == b""
    exported = json.loads(file.read_text())
    assert exported["queues"] == [{"name": "kept", "rules": {"max-length": 3}}]
    assert json.loads(done("definitions", "export", managed)) == exported
    for kind, name in (("queue", "kept"), ("topic", "told")):
        done(kind, "delete", managed, name)
    assert done("definitions", "import", managed, str(file)) == b"imported 1 queue, 1 topic\n"
    assert done("definitions", "import", managed, stdin=file.read_bytes()) == b"imported 1 queue, 1 topic\n"
    rabbit = {
        "rabbit_version": "4",
        "users": [{"name": "guest"}],
        "queues": [{"name": "tasks", "vhost": "/"}],
    }
    file.write_text(json.dumps(rabbit))
    result = amqp10("definitions", "import", managed, str(file))
    assert (result.returncode, result.stdout) == (1, b"imported 1 declared-queue\n")
    assert b"left out 'guest' of users: users are given to serve" in result.stderr
    assert b"1 definition left out" in result.stderr
    file.write_text('{\n"queues": [')
    assert f"{file}: line 2, column 12: " in failed("definitions", "import", managed, str(file))
    assert "stdin: '[]': expected an object of JSON" in failed("definitions", "import", managed, stdin=b"[]")
    for definitions in (
        {"queues": [{"nam": "x"}]},
        {"trio-amqp10": 1, "queues": [{"nam": "x", "rules": {}}]},
    ):
        broken = amqp10("definitions", "import", managed, stdin=json.dumps(definitions).encode()).stderr
        assert b"name=None: expected a text in each of " in broken
        assert b"Error" not in broken
    for name in ("kept", "tasks"):
        done("queue", "delete", managed, name)


def test_command_says_what_is_missing(managed: str) -> None:
    with serving() as url:
        assert "the peer refuses $management" in failed("queue", "list", url)
        assert 'a container has it with "amqp10 serve --management"' in failed("redrive", url, "q")
    done("queue", "create", managed, "shown")
    broken = failed("queue", "list", managed, "--format", "{name", code=2)
    assert "--format '{name': expected '}' before end of string; expected {NAME} for an attribute" in broken
    done("queue", "delete", managed, "shown")
    assert "'{nothing}': 'nothing' is no attribute" in failed(
        "connection", "list", managed, "--format", "{nothing}", code=2
    )
    for wrong in (
        ["queue", "create", managed, "q,size=1"],
        ["queue", "set", managed, "q"],
        ["queue", "list", "x"],
    ):
        assert amqp10(*wrong).returncode == 2


def test_move_of_an_empty_queue_is_checked_as_that_of_a_full_one(managed: str) -> None:
    for name in ("empty", "other"):
        done("queue", "create", managed, name)
    for wrong in (("empty", "nowhere"), ("empty", "empty"), ("empty", "other", "--filter", "a =")):
        without = failed("move", managed, *wrong)
        done("send", f"{managed}/empty", "--body", "x")
        assert failed("move", managed, *wrong) == without
        done("receive", f"{managed}/empty", "--count", "1")
    assert done("move", managed, "empty", "other") == b"moved 0\n"
    for name in ("empty", "other"):
        done("queue", "delete", managed, name)


def test_exchange_is_created_bound_shown_and_deleted(managed: str) -> None:
    options = ("--type", "headers", "--transient", "--auto-delete", "--internal", "--arguments", '{"n": 1}')
    done("exchange", "create", managed, "inner", *options)
    shown = json.loads(done("exchange", "show", managed, "inner", "--json"))
    assert [shown[name] for name in ("type", "durable", "auto-delete", "internal", "arguments")] == [
        "headers",
        False,
        True,
        True,
        {"n": 1},
    ]
    assert done("exchange", "create", managed, "news", "--type", "topic") == b""
    assert "'news'" in failed("exchange", "create", managed, "news")
    names = done("exchange", "list", managed, "--format", "{name}:{type}").splitlines()
    assert {b"news:topic", b"inner:headers", b":direct"} <= set(names)
    assert done("exchange", "list", managed).split()[:3] == [b"name", b"type", b"durable"]
    done("queue", "create", managed, "readers")
    done("binding", "create", managed, "news", "inner", "--key", "sport.*", "--exchange")
    match = ("--arguments", '{"x-match": "any", "kind": "tea"}')
    done("binding", "create", managed, "inner", "readers", *match)
    form = "{source} {destination-kind} {destination} {key} {arguments}"
    assert done("binding", "list", managed, "--format", form).splitlines() == [
        b"news exchange inner sport.* {}",
        b'inner queue readers  {"x-match": "any", "kind": "tea"}',
    ]
    assert "not-found" not in failed("binding", "create", managed, "news", "nowhere")
    assert "'news'" in failed("exchange", "delete", managed, "news", "--if-unused")
    assert "'[]': expected an object of JSON" in misused(
        "binding", "create", managed, "news", "readers", "--arguments", "[]"
    )
    done("binding", "delete", managed, "inner", "readers", *match)
    done("exchange", "delete", managed, "news")
    assert done("binding", "list", managed, "--json") == b""
    assert "no exchange 'news'" in failed("exchange", "show", managed, "news")
    done("queue", "delete", managed, "readers")


def test_server_of_the_environment_is_operated(managed: str, tmp_path: Path) -> None:
    at = {"AMQP10_URL": managed}
    for command in (
        ("queue", "create", "here"),
        ("queue", "set", "here,ttl=1000"),
        ("queue", "show", "here"),
        ("queue", "list"),
        ("queue", "purge", "here"),
        ("topic", "create", "news"),
        ("topic", "list"),
        ("topic", "delete", "news"),
        ("exchange", "create", "x"),
        ("binding", "create", "x", "here", "--key", "k"),
        ("binding", "list"),
        ("exchange", "delete", "x"),
        ("connection", "list"),
        ("user", "list"),
        ("queue", "create", "there"),
        ("move", "here", "there"),
        ("redrive", "there"),
        ("definitions", "export", str(tmp_path / "file")),
        ("definitions", "import", str(tmp_path / "file")),
        ("queue", "delete", "here"),
        ("queue", "delete", managed, "there"),
    ):
        done(*command, **at)
    assert "Missing argument 'URL'" in misused("queue", "list")
    assert "Missing argument 'NAME'" in misused("queue", "show", **at)
    assert "'b': expected only [URL] NAME." in misused("queue", "show", managed, "a", "b")


def test_rabbitmq_is_named_to_users_of_its_management() -> None:
    with rabbitmq() as url:
        assert b"the peer is RabbitMQ, so its open frame is shown" in amqp10("top", url, "--once").stderr
        assert "as in amqp://HOST//queues/NAME" in failed("send", f"{url}/queues/orders", "--body", "x")
        said = failed("queue", "list", url)
        assert (
            "the peer is RabbitMQ, which this command cannot operate: use rabbitmqadmin or rabbitmqctl"
            in said
        )


def test_move_between_queues_of_a_peer_without_management_uses_its_transactions() -> None:
    with serving("--queue", "from", "--queue", "to") as url:
        done("send", f"{url}/from", stdin=lines(*range(250)))
        assert done("move", url, "from", "to", "--count", "150") == b"moved 150\n"
        assert done("move", url, "from", "to") == b"moved 100\n"
        assert done("browse", f"{url}/to") == lines(*range(250))


async def test_move_from_a_peer_that_answers_no_drain_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(amqp.Node):
        accepts_receivers = True

        def on_demand(self, outlet: amqp.Outlet) -> None:
            pass

    monkeypatch.setattr("trio_amqp10.tools.cli.moving._PATIENCE", 0.05)
    container = amqp.Container()
    container.add_node(Silent("from"))
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        options = MoveOptions(url=listener.url, source="from", target="to")
        with pytest.raises(CommandError, match=r"^'from' did not answer a drain within 0\.05 s$"):
            await move(options, Interrupts(trio.CancelScope()))
        nursery.cancel_scope.cancel()


def test_interrupted_move_loses_nothing(managed: str) -> None:
    for name in ("from", "to"):
        done("queue", "create", managed, name)
    done("send", f"{managed}/from", "--body", "x" * 100, "--count", "20000")
    moving = start("move", managed, "from", "to")
    time.sleep(0.15)
    stdout, stderr = interrupt(moving, signal.SIGINT)
    depths = done("queue", "list", managed, "--format", "{name} {depth}").decode().split()
    found = dict(zip(depths[::2], map(int, depths[1::2]), strict=True))
    assert found["from"] + found["to"] == 20000
    if moving.returncode == 130:
        assert b"interrupted" in stderr
    else:
        assert moving.returncode in (0, -signal.SIGINT)  # it was over, or had not begun
    if stdout:
        assert stdout == b"moved %d\n" % found["to"]
    for name in ("from", "to"):
        done("queue", "delete", managed, name)


QUEUES = ("--queue", "a,dead-letter=letters", "--queue", "b", "--queue", "letters", "--management")


@pytest.mark.whole
def test_no_message_is_lost_or_doubled_by_kills_in_the_middle_of_a_move(tmp_path: Path) -> None:
    kills = 20
    chance = random.Random(5)
    with killed(tmp_path / "store", *QUEUES) as url:
        done("send", f"{url}/a", stdin=lines(*range(5000)))
    places = ["a", "b"]
    interrupted = 0
    for _ in range(kills):
        source, target = places
        with killed(tmp_path / "store", *QUEUES) as url:
            moving = start("move", url, source, target)
            time.sleep(chance.uniform(0.02, 0.25))
        moving.communicate(timeout=SECONDS)
        interrupted += moving.returncode != 0
        if not moving.returncode:
            places.reverse()
    with killed(tmp_path / "store", *QUEUES) as url:
        found = [int(line) for name in "ab" for line in done("browse", f"{url}/{name}").splitlines()]
    assert sorted(found) == list(range(5000))
    assert interrupted
