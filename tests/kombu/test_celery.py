"""Celery over the transport: retries, chords, ETA, revoked and late tasks, killed workers, remote control and events."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .celery_run import failures
from .peers import container_url, service_bus_url

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).resolve().parents[2]

SLOW = ("tasks_that_are_due_later_do_not_hold_up_others",)
"""In ``make interop``: it waits for twelve seconds."""

APP = """
import os
import trio_amqp10.kombu
from celery import Celery
app = Celery("t", broker=os.environ["BROKER"])
app.conf.broker_connection_retry_on_startup = False
app.conf.broker_connection_max_retries = 1
"""


@pytest.mark.whole
@pytest.mark.parametrize(("pool", "backend"), [("solo", "rpc"), ("prefork", "files")])
def test_celery_works_with_a_container(pool: str, backend: str) -> None:
    with container_url() as url:
        assert failures(url, pool, backend, SLOW) == {}


def celery(tmp_path: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "app.py").write_text(APP)
    return subprocess.run(
        [sys.executable, "-m", "celery", "-A", "app", *arguments],
        cwd=tmp_path,
        env={**os.environ, "BROKER": url},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_worker_names_a_peer_without_topics_when_it_starts(tmp_path: Path) -> None:
    with container_url(managed=False) as url:
        began = time.monotonic()
        done = celery(tmp_path, url, "worker", "--pool", "solo")
    assert done.returncode != 0
    assert 'broker_transport_options={"topics": False}' in done.stderr
    assert time.monotonic() - began < 20


def test_worker_names_a_queue_that_service_bus_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "celeryconfig.py").write_text("")
    app = APP + 'app.conf.broker_transport_options = {"service_bus": True}\n'
    (tmp_path / "bus.py").write_text(app)
    with service_bus_url("other") as url:
        done = subprocess.run(
            [sys.executable, "-m", "celery", "-A", "bus", "worker", "--pool", "solo"],
            cwd=tmp_path,
            env={**os.environ, "BROKER": url},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode != 0
    assert "'celery'" in done.stderr
    assert "NotFound" in done.stderr


def test_status_without_a_worker_ends(tmp_path: Path) -> None:
    with container_url() as url:
        done = celery(tmp_path, url, "status")
    assert done.returncode != 0
    assert "No nodes replied within time constraint" in done.stderr + done.stdout


def test_wrong_password_ends_the_worker(tmp_path: Path) -> None:
    with container_url(users={"ann": "right"}) as url:
        done = celery(tmp_path, url.replace("//", "//ann:other@"), "worker", "--pool", "solo")
    assert done.returncode != 0
    assert "AccessRefused" in done.stderr


def typed_commands() -> list[str]:
    """The commands of the page, up to the first that is not for this program."""
    page = (ROOT / "docs/how-to/from-celery.rst").read_text()
    return re.findall(r"^   \$ ((?:amqp10 serve|celery|python) .*)$", page, re.MULTILINE)


@pytest.mark.whole
def test_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    serve, worker, *questions, last = typed_commands()
    assert serve.endswith("--management")
    assert "--topic" in last
    with running(serve, tmp_path, "--listen", "amqp://127.0.0.1:0") as (_, listening):
        program = (ROOT / "examples/celery_tasks.py").read_text()
        url = listening.split()[1].replace("amqp://", "amqp10://")
        (tmp_path / "celery_tasks.py").write_text(program.replace("amqp10://localhost:5672", url))
        with running(worker, tmp_path, "--pool", "solo"):
            call = asked(tmp_path, questions[1])  # it waits for the worker
            ping = asked(tmp_path, f"{questions[0]} --timeout 3")
    assert "pong" in ping.stdout, ping.stderr
    assert call.stdout == "5\n", call.stderr


def asked(tmp_path: Path, question: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        line_of(question),
        cwd=tmp_path,
        env=path_of(tmp_path),
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )


def path_of(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}


def line_of(command: str) -> list[str]:
    program, *arguments = shlex.split(command)
    modules = {"amqp10": ["-m", "trio_amqp10"], "celery": ["-m", "celery"], "python": []}
    return [sys.executable, *modules[program], *arguments]


@contextmanager
def running(command: str, tmp_path: Path, *more: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """A program, and the first line that it prints, if it is a server."""
    with subprocess.Popen(
        [*line_of(command), *more],
        cwd=tmp_path,
        env=path_of(tmp_path),
        stdout=subprocess.PIPE if "serve" in command else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process, "" if process.stdout is None else process.stdout.readline()
        finally:
            process.terminate()
            process.communicate(timeout=20)
