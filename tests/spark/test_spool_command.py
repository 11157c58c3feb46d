"""``amqp10 spool``: the receiver without Spark, as a program of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from tests.tools.cli.first_line import interrupt_at_first_line
from trio_amqp10.spark.lanes_reader import LaneRows
from trio_amqp10.spark.storage import open_store
from trio_amqp10.tools.cli import spool as module
from trio_amqp10.tools.cli.dial_options import DialOptions

from .desk import PATIENCE, numbered, read, until
from .peers import lacks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .objects import ObjectServer
    from .peers import Peer

COMMAND = [sys.executable, "-m", "trio_amqp10", "spool"]


class Program:
    """``amqp10 spool`` of a queue, as often as it is started."""

    def __init__(self, peer: Peer, where: str) -> None:
        self.where = where
        self._target = f"{peer.url}/{peer.address('q')}"
        self.running: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, lane: str = "a") -> subprocess.Popen[str]:
        command = [*COMMAND, self._target, "--to", self.where, "--lane", lane, *arguments]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=dict(os.environ))
        self.running.append(process)
        return process

    def bodies(self) -> list[bytes]:
        rows = LaneRows(open_store(self.where))
        return [row["body"] for row in read(rows.batch({}, rows.ends({})), columns="body")]


@pytest.fixture(params=["folder", "objects"])
def program(request: pytest.FixtureRequest, peer: Peer, tmp_path: Path) -> Iterator[Program]:
    where = str(tmp_path / "spool")
    if request.param == "objects":
        objects: ObjectServer = request.getfixturevalue("objects")
        where = objects.uri(tmp_path.name)
    one = Program(peer, where)
    yield one
    for process in one.running:
        process.kill()
        process.communicate()


def test_messages_are_stored_and_accepted_until_told_to_end(peer: Peer, program: Program) -> None:
    process = program.start()
    assert process.stdout is not None
    assert process.stdout.readline().startswith("spooling a/00000001-")
    peer.put("q", numbered(1000))
    until(lambda: peer.held("q") == 0)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert (process.returncode, stdout, stderr) == (0, "spooled 1000\n", "")
    assert program.bodies() == [b"%d" % number for number in range(1000)]


@lacks("inside")
def test_signal_at_the_spooling_line_ends_spool_in_order(
    peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = module.SpoolOptions(
        url=peer.url,
        address=peer.address("q"),
        where=str(tmp_path / "spool"),
        lane="a",
        selector=None,
        given={},
        until_empty=False,
        dial=DialOptions(),
    )
    written, cancelled = trio.run(
        interrupt_at_first_line, partial(module.spool, options), module, monkeypatch
    )
    assert not cancelled
    assert written[1:] == [b"spooled 0\n"]


def test_program_that_is_killed_is_followed_by_another(peer: Peer, program: Program) -> None:
    peer.put("q", numbered(3000))
    process = program.start("--option", "dedup=message-id", "--option", "credit=100")
    until(lambda: peer.held("q") < 3000)
    process.kill()
    process.communicate()
    until(lambda: peer.receivers("q") == 0)
    assert program.start("--option", "dedup=message-id", "--until-empty").wait(PATIENCE) == 0
    assert sorted(program.bodies()) == sorted(b"%d" % number for number in range(3000))
    assert peer.held("q") == 0


@lacks("nobody")
def test_what_is_wrong_is_said_in_a_line(peer: Peer, program: Program) -> None:
    for arguments, code, words in (
        (("--option", "credits=5"), 2, "no option 'credits' is known here"),
        (("--option", "dedup"), 2, "'dedup': expected NAME=VALUE"),
        (("--until-empty", "--option", "address=missing"), 0, ""),
    ):
        process = program.start(*arguments)
        _, stderr = process.communicate(timeout=PATIENCE)
        assert process.returncode == code
        assert words in stderr
    _, stderr = program.start(lane="a.b").communicate(timeout=PATIENCE)
    assert "a lane cannot be called 'a.b'" in stderr


def test_address_where_nothing_is_ends_it_with_the_condition_of_the_peer(
    peer: Peer, program: Program
) -> None:
    program._target = f"{peer.url}/{peer.missing()}"
    process = program.start()
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "amqp:not-found" in stderr.splitlines()[-1]
