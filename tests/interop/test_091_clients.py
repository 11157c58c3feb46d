"""Clients of AMQP 0-9-1 that others wrote (pika, aio-pika, kombu), against a container, and against the emulator of RabbitMQ."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from trio_amqp10.testing import rabbitmq, running_container

from .conftest import need
from .peers import PEERS

PROGRAM = Path(__file__).resolve().parent / "pika_peer.py"
SCENARIOS = [
    function.name
    for function in ast.parse(PROGRAM.read_text()).body
    if isinstance(function, ast.FunctionDef)
    and ast.unparse(function.args) == "url: str"
    and function.args.kwarg is None
]


def run(url: str, scenario: str) -> None:
    need("pika")
    done = subprocess.run(
        [str(PEERS / "pika/bin/python"), str(PROGRAM), url, scenario],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_client_finds_what_it_expects_of_a_container(scenario: str) -> None:
    with running_container(users={"guest": "guest"}) as url:
        run(url.replace("amqp://", "amqp://guest:guest@"), scenario)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_client_finds_what_it_expects_of_the_emulator(scenario: str) -> None:
    with rabbitmq() as url:
        run(url, scenario)
