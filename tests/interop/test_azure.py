"""azure-servicebus gets its tokens taken by ``$cbs`` of a container, and sends and receives; what it may not is refused."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp

from .conftest import need
from .ours import within
from .peers import PEERS

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = {"root": ("cm9vdA==", "send receive create transact"), "sender": ("c2VuZA==", "send")}


@pytest.fixture
def azure() -> Callable[..., Any]:
    """Runs the peer's program against a stand-in; gives what it said, and the container."""
    need("azure")
    return lambda mode, name, *more: within(_run, mode, name, more)


async def _run(mode: str, name: str, more: tuple[str, ...]) -> tuple[Any, amqp.Container]:
    container = amqp.Container("namespace")
    container.add_cbs(amqp.SasKeys(KEYS), azure=True)
    container.add_queue("orders")
    program = str(Path(__file__).with_name("azure_peer.py"))
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0"))
        arguments = ["--port", str(listeners[0].port), "--name", name, "--key", KEYS[name][0], *more]
        done = await trio.run_process(
            [str(PEERS / "azure/bin/python"), program, mode, *arguments], capture_stdout=True
        )
        nursery.cancel_scope.cancel()
    return json.loads(done.stdout), container


def test_azure_servicebus_sends_and_receives_once_its_token_is_taken(azure: Callable[..., Any]) -> None:
    said, container = azure("exchange", "root", "--count", "25")
    assert said == {"got": [f"message {number}" for number in range(25)]}
    assert len(container.nodes["orders"]) == 0


def test_azure_servicebus_is_told_what_it_may_not(azure: Callable[..., Any]) -> None:
    said, _ = azure("refused", "sender")
    assert said == {
        "wrong key": "ServiceBusAuthenticationError",
        "sends only": "ServiceBusAuthorizationError",
    }
