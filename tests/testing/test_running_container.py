"""A container in a thread, for code that is not trio; and the fixture that gives its URL."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.testing import running_container

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]


async def use(url: str, address: str = "orders") -> None:
    async with amqp.open_connection(url) as connection:
        async with connection.open_sender(address) as sender:
            await sender.send("tea")
        async with connection.open_receiver(address) as receiver:
            delivery = await receiver.receive()
            assert delivery.message.body == "tea"
            delivery.accept()


def test_running_container_has_the_queues_that_were_asked_for() -> None:
    with running_container(queues=["orders"], strict=True) as url:
        trio.run(use, url)
        with pytest.raises(amqp.LinkRefusedError, match="amqp:not-found"):
            trio.run(use, url, "others")
    assert not [thread for thread in threading.enumerate() if thread.name == "amqp10 container"]


def test_running_container_runs_handlers_of_yours_and_knows_users() -> None:
    container = amqp.Container("mine")
    names: list[str] = []

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        names.append(threading.current_thread().name)

    async def talk(url: str) -> None:
        async with amqp.open_connection(url) as connection, connection.open_sender("audit") as sender:
            await sender.send("x")

    with running_container(container=container, users={"ada": "enigma"}) as url:
        trio.run(talk, url.replace("//", "//ada:enigma@"))
        with pytest.raises(amqp.SecurityError):
            trio.run(talk, url)
    assert names == ["amqp10 container"]


def test_running_container_is_reached_by_another_process() -> None:
    with running_container(queues=["orders"]) as url:
        command = [sys.executable, "-m", "trio_amqp10", "send", f"{url}/orders", "--body", "tea"]
        done = subprocess.run(command, capture_output=True, timeout=30, check=True)
    assert done.stdout == b"sent 1\n"


def test_fixture_amqp_url_is_of_a_container_that_answers(amqp_url: str) -> None:
    trio.run(use, amqp_url)


def test_fixtures_work_without_any_configuration(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makepyfile(
        textwrap.dedent(
            """
            import trio
            import trio_amqp10 as amqp

            def test_sync(amqp_url):
                async def main():
                    async with amqp.open_connection(amqp_url) as connection:
                        async with connection.open_sender("orders") as sender:
                            await sender.send("tea")
                trio.run(main)

            def test_container(amqp_container):
                async def main():
                    async with amqp_container.connect() as connection:
                        assert connection.remote.container_id == amqp_container.name
                trio.run(main)
            """
        )
    )
    pytester.runpytest_subprocess("-W", "error").assert_outcomes(passed=2)
