"""Progress is shown on a terminal, and results on stdout."""

from __future__ import annotations

import os
import pty

import pytest

from .conftest import (
    read_terminal,
    serving,
    start,
)


def test_send_shows_progress_on_a_terminal_and_results_on_stdout(queue: str) -> None:
    ours, theirs = pty.openpty()
    sender = start("send", queue, stderr=theirs)
    os.close(theirs)
    stdout, _ = sender.communicate(b"1\n2\n", timeout=20)
    assert stdout == b"sent 2\n"
    assert b"sending" in read_terminal(ours)


@pytest.mark.parametrize("dialect", [[], ["--dialect", "0-9-1"]], ids=["1.0", "0-9-1"])
def test_send_shows_how_to_end_and_no_progress_while_bodies_are_typed(dialect: list[str]) -> None:
    with serving("--dialect", "0-9-1", "--queue", "tea") as url:
        ours, theirs = pty.openpty()
        target = [f"{url}/tea"] if not dialect else [url, "tea"]
        sender = start("send", *target, *dialect, stdin=theirs, stderr=theirs)
        os.close(theirs)
        os.write(ours, b"one\ntwo\n\x04")
        stdout, _ = sender.communicate(timeout=20)
        assert stdout == b"sent 2\n"
        shown = read_terminal(ours)
        assert b"type one message a line; Ctrl-D at the beginning of a line ends" in shown
        assert b"sending" not in shown
