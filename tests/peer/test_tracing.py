"""Frames in the log: when asked for, of every connection, and no secret among them."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp
from tests.peer.helpers import served
from trio_amqp10.peer.tracing import follow_environment
from trio_amqp10.testing import running_container

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "trio_amqp10.frames"


@pytest.fixture
def frames() -> Iterator[logging.Logger]:
    """The logger, as it was before once the test is over."""
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
    assert caplog.messages == ["AMQP10_TRACE=everything is not known; it may be: frames"]
    follow_environment("")
    follow_environment(None)
    assert frames.level == 0
    assert len(caplog.messages) == 1


def test_variable_says_frames_once_only_to_stderr(frames: logging.Logger) -> None:
    follow_environment("frames")
    assert frames.level == logging.DEBUG
    assert len(frames.handlers) == 1
    assert not frames.propagate
