"""``amqp10 top``: once, live, without management, and how rates come about."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from typing import Any

import pytest
from rich.console import Console

import trio_amqp10 as amqp
from trio_amqp10.tools.cli.open_management import list_entities
from trio_amqp10.tools.cli.top import Sample, _drawn

from .conftest import (
    AMQP10,
    ENVIRONMENT,
    SECONDS,
    amqp10,
    done,
    failed,
    interrupt,
    read_terminal,
    serving,
    start,
)


def test_top_shows_nodes_connections_and_links_once() -> None:
    with serving("--management", "--queue", "orders", "--memory-limit", "5MiB") as url:
        done("send", f"{url}/orders", stdin=b"1\n2\n3\n")
        shown = json.loads(done("top", url, "--once", "--json"))
        assert shown["management"] is True
        nodes = {node["name"]: node for node in shown["nodes"]}
        assert (nodes["orders"]["type"], nodes["orders"]["messages"]) == ("queue", 3)
        [connection] = shown["connections"]  # that of top itself
        assert (connection["state"], connection["senders"], connection["receivers"]) == ("OPENED", 1, 1)
        [asks] = [link for link in shown["links"] if link["role"] == "receiver"]
        assert (asks["address"], asks["connection"]) == ("$management", connection["identity"])
        assert asks["messages"] == 3  # requests: for nodes, connections, and links; one more follows
        assert shown["container"]["held-octets"] > 3 * 512
        assert shown["container"]["memory-limit"] == 5 * 1024 * 1024
        assert shown["container"]["throttled"] is False
        assert "rate" not in nodes["orders"]
        text = done("top", url, "--once").decode()
        assert {"nodes", "connections", "links", "memory of messages"} <= {
            line.strip() for line in text.splitlines()
        }
        assert "orders" in text


def test_top_is_plain_text_when_it_is_asked_for_once_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    with serving("--management", "--queue", "orders") as url:
        terminal = {**ENVIRONMENT, "TERM": "xterm-256color"}
        process = subprocess.Popen([*AMQP10, "top", url, "--once"], stdout=theirs, env=terminal)
        os.close(theirs)
        shown = read_terminal(ours).decode()
        assert process.wait(SECONDS) == 0
    assert "orders" in shown
    assert "x1b" not in shown
    assert "\x1b" not in shown


def test_top_says_what_it_can_of_a_peer_without_management() -> None:
    with serving() as url:
        result = amqp10("top", url, "--once", "--json")
        assert result.returncode == 0
        assert b"the peer refuses $management (" in result.stderr
        assert b"amqp:not-found" in result.stderr
        shown = json.loads(result.stdout)
        assert (shown["management"], shown["peer"]["container-id"]) == (False, "amqp10")
        assert "ANONYMOUS-RELAY" in shown["peer"]["capabilities"]
        assert shown["connection"]["state"] == "OPENED"
        assert "nodes" not in shown
        text = amqp10("top", url, "--once").stdout
        assert b"container-id" in text
        assert re.search(rb'^capabilities +\["ANONYMOUS-RELAY", ', text, re.MULTILINE)


def test_top_fails_where_management_is_of_another_kind() -> None:
    with serving("--queue", "$management") as url:
        process = start("top", url, "--once")
        deadline = time.monotonic() + SECONDS
        request = None
        while request is None and time.monotonic() < deadline:
            got = amqp10("receive", f"{url}/$management", "--count", "1", "--timeout", "1", "--json")
            request = json.loads(got.stdout) if got.returncode == 0 else None
        assert request is not None
        answer(url, request)
        _, stderr = process.communicate(timeout=SECONDS)
        assert process.returncode == 1
        assert b"does not list a node: not here" in stderr


def answer(url: str, request: dict[str, str]) -> None:
    import trio

    async def send() -> None:
        async with amqp.open_connection(url) as conn, conn.open_sender(request["reply_to"]) as sender:
            told = {"statusCode": amqp.Int(501), "statusDescription": "not here"}
            await sender.send(amqp.Message(correlation_id=request["message_id"], application_properties=told))

    trio.run(send)


def test_top_draws_on_a_terminal_until_interrupted() -> None:
    ours, theirs = pty.openpty()
    with serving("--management", "--queue", "orders") as url:
        process = start("top", url, "--interval", "0.1", stdout=theirs)
        os.close(theirs)
        shown = b""
        deadline = time.monotonic() + SECONDS
        while shown.count(b"orders") < 2 and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.5)[0]:
                shown += os.read(ours, 65536)
        assert shown.count(b"orders") >= 2  # drawn again
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        while process.poll() is None and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    os.read(ours, 65536)
                except OSError:  # the terminal is gone with the process
                    break
        assert process.wait(SECONDS) == 0
        process.communicate()
    os.close(ours)


def test_top_prints_a_line_each_time_with_rates_where_it_is_asked_for_json() -> None:
    with serving("--management", "--queue", "orders") as url:
        process = start("top", url, "--interval", "0.1", "--json")
        assert process.stdout is not None
        first, second = json.loads(process.stdout.readline()), json.loads(process.stdout.readline())
        assert "rate" not in first["nodes"][0]
        rates = {node["name"]: node.get("rate") for node in second["nodes"]}
        assert rates["orders"] == 0
        assert rates["$management"] > 0
        assert all(link["rate"] > 0 for link in second["links"])
        interrupt(process)
        assert process.returncode == 0


def test_top_fails_where_nobody_answers() -> None:
    assert "127.0.0.1" in failed("top", "amqp://127.0.0.1:1", "--once")


def test_top_says_when_a_container_takes_no_more() -> None:
    mark = {"held-octets": 7000, "memory-limit": 6000, "throttled": True, "refused-for-memory": 3}
    seen = Sample(time=1.0, peer={}, managed=True, ours={}, containers=({"name": "c", **mark},))
    console = Console(width=120)
    with console.capture() as text:
        console.print(_drawn(seen, None))
    [line] = [line for line in text.get().splitlines() if "senders must wait" in line]
    assert line.split()[:3] == ["c", "7,000", "6,000"]


def sample(seconds: float, **messages: int | None) -> Sample:
    nodes = tuple({"identity": name, "type": "queue", "arrived": number} for name, number in messages.items())
    return Sample(time=seconds, peer={}, managed=True, ours={}, nodes=nodes)


def test_rates_are_of_what_is_in_both_samples() -> None:
    assert sample(12, a=30, b=5, c=None).rates("nodes", sample(10, a=10, c=None)) == {"a": 10.0}


async def test_top_names_the_management_node_itself_in_its_requests() -> None:
    container = amqp.Container()
    asked: list[Any] = []

    @container.function("$management")
    async def answer(message: amqp.Message) -> amqp.Message:
        asked.append(message.application_properties)
        body = {"attributeNames": ["name"], "results": [["q"]]}
        return amqp.Message(body, application_properties={"statusCode": 200, "statusDescription": "OK"})

    async with container.connect() as conn, conn.open_management() as management:
        assert await list_entities(management, "queue") == [{"name": "q"}]
    [request] = asked
    assert (request["type"], request["name"]) == ("org.amqp.management", "self")
    assert "identity" not in request


@pytest.mark.parametrize("before", [None, sample(12, a=1)])
def test_rates_need_a_sample_from_before(before: Sample | None) -> None:
    assert sample(12, a=30).rates("nodes", before) == {}
