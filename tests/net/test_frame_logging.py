"""The log of frames: only on request, for every connection, without secrets."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp10.peer.helpers import served
from trio_amqp10 import amqp091, amqp_fast
from trio_amqp10.net.frame_logging import follow_environment
from trio_amqp10.testing import running_container

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "trio_amqp10.frames"


@pytest.fixture
def frames() -> Iterator[logging.Logger]:
    """The logger, which is restored after the test."""
    logger = logging.getLogger(NAME)
    before = (logger.level, list(logger.handlers), logger.propagate)
    yield logger
    level, logger.handlers, logger.propagate = before
    logger.setLevel(level)


async def talk() -> None:
    plain = amqp.sasl.Plain("ada", "xyzzy")
    accept = {"sasl": amqp.sasl.Server(users={"ada": "xyzzy"})}
    async with served(sasl=plain, accept=accept):
        pass


async def test_frames_are_logged_when_the_logger_is_set_to_it(
    frames: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    frames.setLevel(logging.DEBUG)
    await talk()
    lines = [record.getMessage() for record in caplog.records if record.name == NAME]
    numbers = sorted({int(line.split()[0]) for line in lines})
    assert len(numbers) == 2
    for number in numbers:
        mine = [line.removeprefix(f"{number} ") for line in lines if line.startswith(f"{number} ")]
        assert {line[:2] for line in mine} == {"->", "<-"}
        assert any(
            "SaslInit(mechanism=Symbol('PLAIN'), initial_response=<10 octets>)" in line for line in mine
        )
        assert sum("Close()" in line for line in mine) == 2
    assert "xyzzy" not in str(lines)


@pytest.mark.parametrize("dialects", ["all", ["0-9-1"]])
async def test_frames_of_0_9_1_are_logged_at_both_ends(
    frames: logging.Logger, caplog: pytest.LogCaptureFixture, dialects: Any
) -> None:
    container = amqp.Container()
    users = amqp.sasl.Server(users={"ada": "xyzzy"})
    serve = partial(container.serve, "amqp://127.0.0.1:0", dialects=dialects, sasl=users)
    frames.setLevel(logging.DEBUG)
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(serve)
        async with (
            amqp091.open_connection(listener.url, sasl=amqp.sasl.Plain("ada", "xyzzy")) as connection,
            connection.open_publisher() as out,
        ):
            await out.declare_queue("q")
            await out.publish("", "q", b"tea")
        nursery.cancel_scope.cancel()
    lines = [record.getMessage() for record in caplog.records if record.name == NAME]
    sides = mirrored(lines)
    assert any(line.endswith(" header AMQP 0 0.9.1 (AMQP)") for line in sides[0])
    assert any("connection.start-ok(" in line and "response=<10 octets>" in line for line in sides[0])
    assert any("[1] basic.publish(routing_key='q')" in line for line in sides[0])
    assert "xyzzy" not in str(lines)
    assert "tea" not in str(lines)


async def test_commands_of_amqp_fast_are_logged_at_both_ends(
    frames: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    container = amqp.Container()
    users = amqp.sasl.Server(users={"ada": "xyzzy"})
    serve = partial(container.serve, "amqp://127.0.0.1:0", dialects="all", sasl=users)
    frames.setLevel(logging.DEBUG)
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(serve)
        url = listener.url.replace("amqp://", "amqp-fast://")
        async with amqp_fast.open_connection(url, login=("ada", "xyzzy")) as connection:
            connection.ping()
        nursery.cancel_scope.cancel()
    lines = [record.getMessage() for record in caplog.records if record.name == NAME]
    sides = mirrored(lines)
    assert "-> initiation AMQP/Fast version 1" in sides[0] | sides[1]
    assert any("connection response(" in line and "responses=<" in line for line in sides[0])
    assert "xyzzy" not in str(lines)


def mirrored(lines: list[str]) -> tuple[set[str], set[str]]:
    """Check that each end logged the frames that the other wrote; return them."""
    numbers = sorted({int(line.split()[0]) for line in lines})
    one, other = (
        {line.split(maxsplit=1)[1] for line in lines if line.startswith(f"{each} ")} for each in numbers
    )
    turned = {"->": "<-", "<-": "->"}
    assert {turned[line[:2]] + line[2:] for line in one} == other
    return one, other


@pytest.mark.parametrize(
    "module", ["amqp10.peer.connection", "amqp091.client", "amqp_fast.client", "amqp_10_3.client"]
)
def test_client_of_any_protocol_has_its_frames_logged(module: str) -> None:
    code = f"import trio_amqp10.{module}\nfrom trio_amqp10.net.frame_logging import new_frame_log\nprint(new_frame_log())"
    environment = {**os.environ, "AMQP10_TRACE": "frames"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, timeout=60, check=True, text=True
    )
    assert "FrameLog" in done.stdout


async def test_head_that_told_the_dialect_is_logged(
    frames: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    container = amqp.Container()
    frames.setLevel(logging.DEBUG)
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0", dialects="all"))
        async with amqp.open_connection(listener.url):
            pass
        nursery.cancel_scope.cancel()
    lines = [record.getMessage() for record in caplog.records if record.name == NAME]
    ways = [line.split()[1] for line in lines if line.endswith("header AMQP 0 1.0.0 (AMQP)")]
    assert sorted(ways) == ["->", "->", "<-", "<-"]


async def test_frames_are_not_logged_because_everything_else_is(
    frames: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        await talk()
    assert NAME not in {record.name for record in caplog.records}


def test_variable_of_the_environment_has_frames_on_stderr() -> None:
    with running_container() as url:
        command = [sys.executable, "-m", "trio_amqp10", "send", f"{url}/orders", "--body", "tea"]
        environment = {**os.environ, "AMQP10_TRACE": "frames"}
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=30, check=True, text=True
        )
    assert done.stdout == "sent 1\n"
    assert done.stderr.count(" Transfer(") == 1
    assert all(line.split()[2] in ("->", "<-") for line in done.stderr.splitlines())


def test_variable_with_another_value_is_a_warning(
    frames: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    follow_environment("everything")
    assert caplog.messages == ["AMQP10_TRACE=everything is not known: the only value is frames"]
    follow_environment("")
    follow_environment(None)
    assert frames.level == 0
    assert len(caplog.messages) == 1


def test_variable_says_frames_once_only_to_stderr(frames: logging.Logger) -> None:
    follow_environment("frames")
    assert frames.level == logging.DEBUG
    assert len(frames.handlers) == 1
    assert not frames.propagate
