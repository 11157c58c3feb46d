"""A container that runs alone ends at a signal, after what is under way."""

from __future__ import annotations

import os
import signal
import socket
import threading
from typing import Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.ports import free_port
from trio_amqp10 import blocking

BRIEF = amqp.Backoff(initial=0.05, factor=1, maximum=0.05, give_up_after=2)
"""Until the container listens; after its end, until the client gives up."""


def test_signal_ends_a_container_after_the_handler_under_way() -> None:
    container = amqp.Container("shop")
    replies: list[Any] = []
    url = f"amqp://127.0.0.1:{free_port()}"

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        await trio.sleep(0.2)  # the signal is there
        return message.body.upper()

    def ask() -> None:
        with blocking.connect(url, reconnect=BRIEF) as conn, conn.open_requester("upper") as requester:
            replies.append(requester.request("tea", timeout=20).body)

    client = threading.Thread(target=ask)
    client.start()
    container.run(url)
    client.join()
    assert replies == ["TEA"]


def test_second_signal_ends_a_container_at_once() -> None:
    container = amqp.Container("shop")
    url = f"amqp://127.0.0.1:{free_port()}"
    handled = threading.Event()

    @container.consumer("never")
    async def never(_: amqp.Delivery) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await trio.sleep(0.2)
        handled.set()
        os.kill(os.getpid(), signal.SIGINT)
        await trio.sleep_forever()

    def send() -> None:
        with (
            pytest.raises(amqp.AmqpError),
            blocking.connect(url, reconnect=BRIEF) as conn,
            conn.open_sender("never") as sender,
        ):
            sender.send("tea", timeout=20)

    client = threading.Thread(target=send)
    client.start()
    container.run(url)
    assert handled.is_set()
    client.join()


def test_address_that_is_taken_ends_the_program_with_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SystemExit) as ended:
        url = f"amqp://127.0.0.1:{taken.getsockname()[1]}"
        amqp.Container("shop").run(url)
    assert ended.value.code == (
        f"{url}: Address already in use (another program listens there, or this one does: port 0 selects a free port)"
    )
