"""``amqp10 reply``: a command answers requests, whatever it does."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.tools.cli.command_runner import Interrupts
from trio_amqp10.tools.cli.reply import ReplyOptions, reply

from .conftest import amqp10, done, interrupt, serving, start

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Generator, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with serving("--queue", "asked,dead-letter=dead", "--queue", "dead", "--queue", "answers") as url:
        yield url


@contextmanager
def replying(url: str, *arguments: str) -> Generator[subprocess.Popen[bytes]]:
    process = start("reply", f"{url}/asked", *arguments)
    try:
        yield process
    finally:
        if process.poll() is None:
            interrupt(process)


def asked(url: str, body: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(done("request", f"{url}/asked", "--body", body, "--json"))
    return found


def test_output_of_the_command_is_the_reply(service: str) -> None:
    with replying(service, "--count", "2", "--", "tr", "a-z", "A-Z") as process:
        assert done("request", f"{service}/asked", "--body", "tea") == b"TEA\n"
        assert done("request", f"{service}/asked", "--body", "coffee") == b"COFFEE\n"
        assert process.communicate(timeout=20) == (b"", b"")
        assert process.returncode == 0


def test_command_gets_octets_and_fields(service: str) -> None:
    script = 'printf "%s|%s|%s|%s|%s|" "$AMQP10_REQUEST_SUBJECT" "$AMQP10_REQUEST_MESSAGE_ID" "$AMQP10_REQUEST_PROPERTY_a_b" "$AMQP10_REQUEST_PRIORITY" "$AMQP10_PASSWORD"; cat'
    line = (
        b'{"body": {"base64": "AP8K"}, "subject": "s; rm -rf /", "message_id": 7, "reply_to": "answers",'
        b' "application_properties": {"a b": 5, "nul": "\\u0000"}}\n'
    )
    done("send", f"{service}/asked", "--json", stdin=line)
    assert (
        amqp10(
            "reply", f"{service}/asked", "--count", "1", "--", "sh", "-c", script, AMQP10_PASSWORD="secret"
        ).stderr
        == b""
    )
    shown = done("receive", f"{service}/answers", "--until-empty", "--format", "%c %b")
    assert shown == b"7 s; rm -rf /|7|5|4||\x00\xff\n\n"


@pytest.mark.parametrize(
    ("command", "status", "error"),
    [
        (("sh", "-c", "echo part; exit 3"), 3, "exit status 3"),
        (("sh", "-c", "kill -9 $$"), 137, "ended by signal 9"),
        (("/no/such/command",), 127, "cannot be started"),
        (("sleep", "100"), 124, "killed after 0.5 s"),
        (("sh", "-c", "sleep 100 & exit 0"), 124, "killed after 0.5 s"),
        (("yes",), 125, "octets"),
    ],
)
def test_command_that_fails_is_reported_to_the_requester(
    service: str, command: tuple[str, ...], status: int, error: str
) -> None:
    seconds = "20" if command == ("yes",) else "0.5"
    with replying(service, "--count", "1", "--timeout", seconds, "--", *command) as process:
        reply = asked(service, "tea")
        _, err = process.communicate(timeout=20)
    properties = reply["application_properties"]
    assert isinstance(properties, dict)
    assert properties["exit-status"] == status
    assert error in properties["error"]
    assert error in err.decode()
    assert reply["body"] == ("part\n" if status == 3 else "")


def test_request_without_reply_to_is_accepted_or_rejected(service: str) -> None:
    done("send", f"{service}/asked", stdin=b"good\nbad\n")
    result = amqp10("reply", f"{service}/asked", "--count", "2", "--", "grep", "-q", "good")
    assert (result.returncode, result.stdout) == (0, b"")
    assert done("receive", f"{service}/dead", "--until-empty") == b"bad\n"
    assert done("receive", f"{service}/asked", "--until-empty") == b""


def test_commands_run_at_a_time_up_to_the_limit(service: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    done("send", f"{service}/asked", stdin=b"x\n" * 4)
    script = f"echo + >> {log}; sleep 0.3; echo - >> {log}"
    assert (
        amqp10(
            "reply", f"{service}/asked", "--count", "4", "--concurrency", "2", "--", "sh", "-c", script
        ).returncode
        == 0
    )
    running = most = 0
    for mark in log.read_text().split():
        running += 1 if mark == "+" else -1
        most = max(most, running)
    assert most == 2


def test_interrupt_kills_the_command_and_gives_the_request_back(service: str, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    done("send", f"{service}/asked", "--body", "tea")
    with replying(service, "--", "sh", "-c", f"echo $$ > {pid}; sleep 100") as process:
        while not pid.exists() or not pid.read_text().strip():
            time.sleep(0.05)
        interrupt(process, signal.SIGINT)
        assert process.returncode == 0
    assert done("receive", f"{service}/asked", "--until-empty") == b"tea\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_reply_to_that_is_gone_is_reported(service: str) -> None:
    line = b'{"body": 1, "reply_to": "$none"}\n'
    done("send", f"{service}/asked", "--json", stdin=line)
    result = amqp10("reply", f"{service}/asked", "--count", "1", "--", "cat")
    assert result.returncode == 0
    assert b"the reply could not be sent to '$none'" in result.stderr


async def test_reply_to_that_goes_while_it_is_sent_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    container = amqp.Container()
    requests = container.add_queue("asked")

    @container.consumer("answers")
    async def _(delivery: amqp.Delivery) -> None:
        container.remove_node("answers")

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        async with amqp.open_connection(listener.url) as client, client.open_sender("asked") as sender:
            await sender.send(amqp.Message(b"tea", reply_to="answers"))
        options = ReplyOptions(url=listener.url, address="asked", command=["cat"], count=1)
        await reply(options, Interrupts(trio.CancelScope()))
        nursery.cancel_scope.cancel()
    assert "the reply could not be sent to 'answers'" in capfd.readouterr().err
    assert len(requests) == 0


def test_request_that_cannot_be_decoded_is_rejected(service: str) -> None:
    done("send", f"{service}/asked", "--json", stdin=b'{"undecodable": {"base64": "AFN3wQ=="}}\n')
    result = amqp10("reply", f"{service}/asked", "--count", "1", "--", "cat")
    assert b"cannot be decoded is rejected" in result.stderr
    assert amqp10("receive", f"{service}/dead", "--until-empty", "--raw").stdout == b"\x00Sw\xc1\n"
