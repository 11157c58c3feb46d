"""A standalone cluster: a master and workers as processes on 127.0.0.1.

Folders may be hidden from a worker, as if it were on another machine: it runs in its own mount namespace, where they are
empty. That needs root, or a kernel that permits user namespaces.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyspark

if TYPE_CHECKING:
    from collections.abc import Sequence

SPARK_HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
WORKERS = ("one", "two", "hidden")
"""Names of workers: tasks find theirs in the variable ``AMQP10_WORKER``."""
_SECONDS = 120.0
_DEPLOY = "org.apache.spark.deploy"


@cache
def hiding() -> list[str] | None:
    """Return the command that gives a process its own mounts.

    It needs root or a user namespace; None if neither is permitted.
    """
    for command in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    return None


class Cluster:
    """A master, and workers of one core: ``with Cluster(folder) as cluster``.

    Args:
        folder: the folder for logs and work.
        hide: folders that are hidden from the worker ``hidden``.
        workers: the names of the workers.

    Attributes:
        url: of the master.
    """

    def __init__(self, folder: Path, hide: Sequence[Path] = (), workers: Sequence[str] = WORKERS) -> None:
        self._folder = folder
        self._names = workers
        self._hide = hide
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self.url = ""

    def __enter__(self) -> Self:
        try:
            self._master = self._start(
                "master", [f"{_DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", "0"]
            )
            self.url = self._logged("master", re.compile(r"Starting Spark master at (spark://\S+)"))[1]
            for name in self._names:
                self.start_worker(name)
            for name in self._names:
                self._logged(name, re.compile("Successfully registered with master"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in [*self._workers.values(), *([self._master] if self._master else [])]:
            _end(process)

    def start_worker(self, name: str) -> None:
        command = [f"{_DEPLOY}.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "700m"]
        command += ["--work-dir", str(self._folder / f"work-{name}"), self.url]
        self._workers[name] = self._start(name, command, hide=self._hide if name == "hidden" else ())

    def kill_worker(self, name: str) -> None:
        """Kill a worker and its executors, as if its machine were gone."""
        _end(self._workers.pop(name), signal.SIGKILL)

    def executors(self, name: str) -> list[int]:
        """Return the ids of the processes that run tasks for a worker."""
        return [
            pid
            for pid in _descendants(self._workers[name].pid)
            if b"CoarseGrainedExecutorBackend" in _command(pid)
        ]

    def _start(self, name: str, command: Sequence[str], hide: Sequence[Path] = ()) -> subprocess.Popen[bytes]:
        environment = os.environ | {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "AMQP10_WORKER": name,
        }
        run = [str(SPARK_HOME / "bin" / "spark-class"), command[0], "--webui-port", "0", *command[1:]]
        if hide:
            mounts = " && ".join(f"mount -t tmpfs none '{each}'" for each in hide)
            run = [*(hiding() or []), "sh", "-c", f'{mounts} && exec "$@"', "sh", *run]
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(run, env=environment, stdout=log, stderr=log, start_new_session=True)

    def _logged(self, name: str, wanted: re.Pattern[str]) -> re.Match[str]:
        """Wait for a line of a log."""
        path = self._folder / f"{name}.log"
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            found = wanted.search(path.read_text(errors="replace"))
            if found is not None:
                return found
            process = self._master if name == "master" else self._workers[name]
            if process is not None and process.poll() is not None:
                break
            time.sleep(0.1)
        raise TimeoutError(f"{name} did not start:\n{path.read_text(errors='replace')[-3000:]}")


def _end(process: subprocess.Popen[bytes], sig: signal.Signals = signal.SIGTERM) -> None:
    """End a process that was started here, and its descendants."""
    children = _descendants(process.pid)
    for pid in [process.pid, *children]:
        try:
            os.kill(pid, sig)
        except ProcessLookupError:
            continue
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *_descendants(int(child))]
    except OSError:
        pass  # it has ended meanwhile
    return found


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
