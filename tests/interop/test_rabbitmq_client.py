"""rabbitmq-amqp-python-client, which declares, publishes and consumes against RabbitMQ 4, and against what stands in for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trio_amqp10.testing import rabbitmq
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ

from .conftest import need
from .peers import PEERS

if TYPE_CHECKING:
    from .rabbitmq import Broker

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"


def run(url: str) -> dict[str, Any]:
    need("rabbitmq-client")
    program = [str(PEERS / "rabbitmq-client/bin/python"), str(HERE / "rabbitmq_client_peer.py"), url]
    done = subprocess.run(program, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_rabbitmqs_client_finds_here_what_it_finds_at_rabbitmq(rabbitmq4: Broker) -> None:
    with rabbitmq() as url:
        here = run(url)
    there = run(rabbitmq4.url)
    for said in here, there:
        said["one"].sort()
        said["two"].sort()
    assert here == there


def test_rabbitmqs_client_declares_binds_publishes_and_consumes() -> None:
    broker = RabbitMQ()
    with rabbitmq(broker=broker) as url:
        said = run(url)
    assert said["sent"] == ["ACCEPTED"] * 4
    assert said["got"] == ["b", "c", "d"]
    assert (said["purged"], said["info of none"]) == (2, "'wrong response code received: 404'")
    assert said["outcomes"].count("RELEASED") == 2
    assert sorted(body for body, _, _ in said["one"]) == ["a.one", "both", "by to", "direct one", "to all"]
    assert (said["straight"], said["all"]) == (["ACCEPTED"], ["straight"])
    assert (said["unbound"], said["dead"]) == (["RELEASED"], ["late"])
    assert sorted(broker.container.nodes) == [
        "/exchanges/amq.direct",
        "/exchanges/amq.fanout",
        "/exchanges/amq.headers",
        "/exchanges/amq.match",
        "/exchanges/amq.topic",
        "/management",
    ]


def test_example_of_a_test_with_rabbitmqs_client_passes() -> None:
    need("rabbitmq-client")
    [packages] = (PEERS / "rabbitmq-client/lib").glob("python3*/site-packages")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*command, str(EXAMPLES / "test_rabbitmq.py")],
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
