"""Commands as a user types them: what makes no sense, completion, and interrupts."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from trio_amqp10.tools.cli import commands
from trio_amqp10.tools.cli.lazy_commands import LazyGroup

from .conftest import (
    ENVIRONMENT,
    SECONDS,
    done,
)


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
        script = "from trio_amqp10.tools.cli import main; main()"
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


def test_interrupt_of_a_command_that_does_not_take_it_is_reported() -> None:
    group = LazyGroup("amqp10", lazy={})

    @group.command()
    def stopped() -> None:
        raise KeyboardInterrupt

    result = CliRunner().invoke(group, ["stopped"])
    assert (result.exit_code, result.output) == (130, "amqp10: interrupted\n")
