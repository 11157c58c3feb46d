"""The processes of a measurement: sides, servers, and the processor time that they take.

Each ends by its own id. A side that fails is an error of the measurement, never a figure.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import sysconfig
import tempfile
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .job import Job

ROOT = Path(__file__).resolve().parents[1]
PEERS = Path(os.environ.get("PEERS", ROOT / ".peers"))
DEADLINE = 240.0
"""Seconds that a side may be silent."""

PYTHON = [sys.executable]
"""What runs modules of ours; behind it come ``-m`` and a module."""

_SIDES = ROOT / "bench" / "sides"
_PROGRAMS = {
    "ours": ["-m", "bench.sides.ours"],
    "codec": ["-m", "bench.sides.codec"],
    "held": ["-m", "bench.sides.held"],
    "bare": ["-m", "bench.sides.bare"],
    "ours091": ["-m", "bench.sides.ours091"],
    "aio": ["-m", "bench.sides.aio_side"],
    "celery": ["-m", "bench.sides.celery_side"],
    "proton": [str(PEERS / "proton/bin/python"), str(_SIDES / "proton_side.py")],
    "rhea": ["node", str(_SIDES / "rhea_side.js")],
    "azure": [str(PEERS / "azure/bin/python"), str(_SIDES / "azure_codec.py")],
    "pika": [str(PEERS / "pika/bin/python"), str(_SIDES / "pika_side.py")],
    "aio-pika": [str(PEERS / "pika/bin/python"), str(_SIDES / "aio_pika_side.py")],
}


class Side:
    """A program that runs a job.

    Args:
        program: one of ``_PROGRAMS``.
        job: what it does.
        python: another interpreter, which takes the dependencies of this one; for modules of ours.
    """

    def __init__(self, program: str, job: Job, python: str | None = None) -> None:
        command = _PROGRAMS[program]
        if command[0] == "-m":
            command = [*PYTHON, *command] if python is None else [python, *command]
        environment = {**os.environ, "NODE_PATH": str(PEERS / "rhea/node_modules")}
        if python is not None:
            environment["PYTHONPATH"] = sysconfig.get_path("purelib")
        self._process = subprocess.Popen(
            [*command, job.to_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        self._name = f"{program} {job.role}"
        self._told: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Take what it tells from the pipe at once, until its end."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._told.put(json.loads(line))
        self._told.put(None)

    def wait(self, word: str) -> Any:
        """What it tells by that word.

        Raises:
            RuntimeError: it ended instead, or is silent for too long.
        """
        while True:
            try:
                told = self._told.get(timeout=DEADLINE)
            except queue.Empty:
                raise RuntimeError(f"{self._name} is silent for {DEADLINE} s") from None
            if told is None:
                raise RuntimeError(f"{self._name} ended without a {word}")
            if word in told:
                return told[word]

    def release(self) -> None:
        """Let it begin."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """Wait for its end, for a while, then end it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdout.close()


@contextmanager
def _running(program: str, job: Job, python: str | None = None) -> Iterator[Side]:
    side = Side(program, job, python)
    try:
        yield side
    finally:
        side.end()


def run_pair(
    sender: str,
    receiver: str,
    job: Job,
    *,
    roles: tuple[str, str] = ("send", "receive"),
    cores: tuple[int | None, int | None] = (None, None),
    python: str | None = None,
) -> tuple[dict[str, float], dict[str, float]]:
    """What a sender and a receiver measured that has the sender dial it."""
    with _running(receiver, replace(job, role=roles[1], core=cores[1]), python) as listening:
        job = replace(job, role=roles[0], url=listening.wait("url"), certfile=None, core=cores[0])
        with _running(sender, job, python) as sending:
            sending.wait("ready")
            sending.release()
            return sending.wait("result"), listening.wait("result")


class Taken(NamedTuple):
    """Results of sides, and the processor seconds that a server took meanwhile."""

    results: list[dict[str, float]]
    server: float


def run_with(server: Server, *sides: tuple[str, Job]) -> Taken:
    """Run sides that dial a server, from when all of them are ready; a receiver comes before its sender."""
    with ExitStack() as stack:
        running = []
        for program, job in sides:
            side = stack.enter_context(_running(program, replace(job, url=server.url)))
            side.wait("ready")
            running.append(side)
        before = server.processor_seconds()
        for side, (_, job) in zip(running, sides, strict=True):
            if job.waits:
                side.release()
        results = [side.wait("result") for side in running]
        return Taken(results, server.processor_seconds() - before)


def run_alone(program: str, job: Job) -> dict[str, float]:
    """The result of one side that needs no other."""
    with _running(program, job) as side:
        result: dict[str, float] = side.wait("result")
        return result


class Server(NamedTuple):
    """A server of messages that runs.

    Attributes:
        url: of AMQP, with user and password where it wants them.
        pid: the leader of its session, all of whose processes count.
    """

    url: str
    pid: int

    def processor_seconds(self) -> float:
        """What its processes have taken so far."""
        return sum(map(_seconds, _session(self.pid)))

    def resident(self) -> int:
        """Octets that are resident of them."""
        page = os.sysconf("SC_PAGE_SIZE")
        pids = _session(self.pid)
        return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page for pid in pids)


@contextmanager
def serve(*options: str, store: bool = False) -> Iterator[Server]:
    """``amqp10 serve`` in a session of its own; ``store`` for durable messages, on the disk of this folder."""
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".bench-") as folder:
        given = ["--store", str(Path(folder) / "store")] if store else []
        command = [*PYTHON, "-m", "trio_amqp10", "serve", "--listen", "amqp://127.0.0.1:0"]
        with subprocess.Popen(
            [*command, *given, *options], stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT
        ) as process:
            assert process.stdout is not None
            try:
                yield Server(process.stdout.readline().split()[1], process.pid)
            finally:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()


def _seconds(pid: int) -> float:
    """User and system time of a process: by the scheduler's own count, which has nanoseconds, where the kernel has one."""
    total = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9
    except OSError:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _session(leader: int) -> list[int]:
    """The processes of a session."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(entry.name))
    return found
