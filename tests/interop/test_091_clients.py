"""Clients of AMQP 0-9-1 that others wrote, and what is built on them, against a container, RabbitMQ and its emulator.

The same assertions hold of all of these; what one of them cannot do is in ``EXCEPTIONS``, with the reason.
"""

from __future__ import annotations

import ast
import atexit
import json
import os
import re
import shutil
import subprocess
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority, serving
from trio_amqp10.testing import rabbitmq, running_container
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ
from trio_amqp10.testing.threads import in_thread

from .conftest import need
from .peers import JARS, PEERS
from .served import Served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from .rabbitmq import Broker

HERE = Path(__file__).resolve().parent
TARGETS = ("container", "emulator", "rabbitmq4", "rabbitmq3")
SECONDS = 60.0

EXCEPTIONS = {
    (
        "rabbitmq4",
        "tasks_that_are_due_later_do_not_hold_up_others",
    ): "4.x leaves running consumers their prefetch",
}
"""What does not hold of a target, by target and scenario, and why."""


@cache
def java(file: str) -> list[str]:
    """What runs a program in Java: compiled once where there is a compiler, from its source otherwise."""
    jars = os.pathsep.join(str(PEERS / "java/usr/share/java" / each) for each in JARS)
    run = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    if shutil.which("javac") is None:
        return [*run, "-cp", jars, str(HERE / file)]
    classes = TemporaryDirectory()
    atexit.register(classes.cleanup)
    subprocess.run(["javac", "-d", classes.name, "-cp", jars, str(HERE / file)], check=True)
    return [*run, "-cp", classes.name + os.pathsep + jars, Path(file).stem]


@dataclass
class Program:
    """One of the programs that hold scenarios.

    Attributes:
        peer: what has to be installed.
        file: its name.
        prefixes: of a scenario's name on the command line; one for each way to run it.
    """

    peer: str
    file: str
    prefixes: tuple[str, ...] = ("",)

    @property
    def command(self) -> list[str]:
        if self.file.endswith(".java"):
            return java(self.file)
        interpreter = "node" if self.file.endswith(".js") else str(PEERS / self.peer / "bin/python")
        return [interpreter, str(HERE / self.file)]

    def scenarios(self, *, restarting: bool) -> list[str]:
        """Functions whose first parameter is ``url`` or ``run``; those that restart the broker take ``restart`` too."""
        text = (HERE / self.file).read_text()
        if self.file.endswith(".js"):
            return [] if restarting else re.findall(r"^  async (\w+)\(", text, re.MULTILINE)
        if self.file.endswith(".java"):
            found: list[str] = re.findall(r"^  public static void (\w+)\(String url\)", text, re.MULTILINE)
            return [each for each in found if each.endswith("_after_a_restart") is restarting]
        return [
            prefix + function.name
            for prefix in self.prefixes
            for function in ast.parse(text).body
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            and (names := [each.arg for each in function.args.args])[:1] in (["url"], ["run"])
            and not function.name.startswith("_")
            and names[1:] == (["restart"] if restarting else [])
            and function.args.kwarg is None
        ]


PROGRAMS = (
    Program("pika", "pika_peer.py"),
    Program("pika", "pika_async_peer.py", ("select.", "asyncio.")),
    Program("pika", "aio_pika_peer.py"),
    Program("pika", "kombu_peer.py"),
    Program("amqplib", "amqplib_peer.js"),
    Program("java", "JavaPeer.java"),
    Program("frameworks", "frameworks_peer.py"),
    Program("taskiq", "taskiq_peer.py"),
    Program("nameko", "nameko_peer.py"),
)
ENVIRONMENT = {"NODE_PATH": str(PEERS / "amqplib/node_modules")}


def cases(*, restarting: bool) -> list[object]:
    return [
        pytest.param(program, scenario, id=f"{re.split('_peer|Peer', program.file)[0].lower()}-{scenario}")
        for program in PROGRAMS
        for scenario in program.scenarios(restarting=restarting)
    ]


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest) -> Generator[tuple[str, str]]:
    """The name of a broker, and its URL."""
    if request.param == "container":
        with running_container(users={"guest": "guest"}) as url:
            yield request.param, url.replace("amqp://", "amqp://guest:guest@")
    elif request.param == "emulator":
        with rabbitmq() as url:
            yield request.param, url
    else:
        broker: Broker = request.getfixturevalue(request.param)
        yield request.param, broker.url


def except_for(target: str, scenario: str) -> None:
    if reason := EXCEPTIONS.get((target, scenario)):
        pytest.skip(reason)


@pytest.mark.parametrize(("program", "scenario"), cases(restarting=False))
def test_client_finds_what_it_expects(program: Program, scenario: str, target: tuple[str, str]) -> None:
    name, url = target
    except_for(name, scenario)
    need(program.peer)
    done = subprocess.run(
        [*program.command, url, scenario],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.mark.parametrize(
    ("pool", "backend"), [("solo", "rpc"), ("prefork", "files")], ids=["solo", "prefork"]
)
def test_celery_finds_what_it_expects(pool: str, backend: str, target: tuple[str, str]) -> None:
    name, url = target
    need("frameworks")
    excluded = [scenario for where, scenario in EXCEPTIONS if where == name]
    done = subprocess.run(
        [str(PEERS / "frameworks/bin/python"), str(HERE / "celery_peer.py"), url, pool, backend, *excluded],
        capture_output=True,
        text=True,
        timeout=3 * SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    wrong = json.loads(done.stdout)
    assert not wrong, "\n".join(f"{scenario}: {what}" for scenario, what in wrong.items())


# -- over TLS ---------------------------------------------------------------------------------------

JAVA = next(each for each in PROGRAMS if each.file == "JavaPeer.java")
OVER_TLS = (
    "confirms",
    "large_body_in_small_frames",
    "prefetch_and_acknowledgements",
    "wrong_password",
    "heartbeats",
)


@asynccontextmanager
async def served_with_tls(name: str) -> AsyncGenerator[str]:
    broker = RabbitMQ()
    if name == "emulator":
        serve = partial(broker.container.serve, **broker.serve_options)
    else:
        serve = partial(amqp.Container().serve, sasl=amqp.sasl.Server({"guest": "guest"}), dialects=["0-9-1"])
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(serve, "amqps://127.0.0.1:0", ssl_context=serving()))
        yield f"amqps://guest:guest@localhost:{listener.port}"
        nursery.cancel_scope.cancel()


@pytest.fixture(scope="module", params=["container", "emulator", "rabbitmq4"])
def tls_url(request: pytest.FixtureRequest) -> Generator[str]:
    """The URL of a broker with TLS, as ``localhost``, by ``authority()``."""
    if request.param == "rabbitmq4":
        broker: Broker = request.getfixturevalue(request.param)
        yield f"amqps://guest:guest@localhost:{broker.tls_port}"
    else:
        with in_thread(served_with_tls(request.param), "amqp10 tls") as url:
            yield url


def java_over_tls(url: str, scenario: str, believed: str) -> subprocess.CompletedProcess[str]:
    need(JAVA.peer)
    command = [*JAVA.command, url, scenario, str(authority(believed).cafile)]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.mark.parametrize("scenario", OVER_TLS)
def test_java_finds_what_it_expects_over_tls(scenario: str, tls_url: str) -> None:
    done = java_over_tls(tls_url, scenario, "believed")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def test_java_is_not_served_where_it_does_not_believe_the_certificate(tls_url: str) -> None:
    done = java_over_tls(tls_url, "confirms", "clients")
    assert done.returncode == 1
    assert "SSLHandshakeException" in done.stderr


# -- through a restart of the broker ----------------------------------------------------------------


@contextmanager
def restartable(name: str, request: pytest.FixtureRequest) -> Generator[tuple[str, Callable[[], object]]]:
    """The URL of a broker, and what restarts it."""
    if name != "container":
        broker: Broker = request.getfixturevalue(name)
        yield broker.url, lambda: (broker.evaluate("rabbit:stop()"), broker.evaluate("rabbit:start()"))
        return
    served = Served(request.getfixturevalue("tmp_path") / "store", user="guest:guest")
    try:
        yield served.url, served.restart
    finally:
        served.end()


@pytest.mark.parametrize("name", ["container", "rabbitmq4", "rabbitmq3"])
@pytest.mark.parametrize(("program", "scenario"), cases(restarting=True))
def test_client_is_back_after_a_restart(
    program: Program, scenario: str, name: str, request: pytest.FixtureRequest
) -> None:
    need(program.peer)
    with restartable(name, request) as (url, restart):
        client = subprocess.Popen(
            [*program.command, url, scenario],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert client.stdin is not None
        assert client.stdout is not None
        try:
            said = ""
            for line in client.stdout:
                if line == "restart\n":
                    restart()
                    client.stdin.write("\n")
                    client.stdin.flush()
                said += line
            client.wait(SECONDS)
        finally:
            client.kill()
            client.communicate()
    assert client.returncode == 0, said[-4000:]
    assert "restart\n" in said
