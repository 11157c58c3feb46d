"""Clients of other makes with wishes to our container: selectors, reply nodes made for them; and rhea with a password."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp

from .ours import within
from .peers import HERE, PEERS, Process

if TYPE_CHECKING:
    from .peers import Client

ENVIRONMENT = {"NODE_PATH": str(PEERS / "rhea/node_modules")}


def ask(client: Client, name: str, mode: str, url: str) -> Any:
    """What the client's program says it saw."""
    if name == "rhea":
        command = [client.command[0], str(HERE / "rhea_wishes.js"), mode, url.rpartition(":")[2]]
    else:
        command = [client.command[0], str(HERE / "proton_wishes.py"), mode, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("mode", ["select", "request"])
@pytest.mark.parametrize("name", ["proton", "rhea"])
def test_client_has_its_wish(name: str, mode: str, request: pytest.FixtureRequest) -> None:
    client: Client = request.getfixturevalue(name)

    async def run() -> Any:
        container = amqp.Container("ours")
        queue = container.add_queue("colours")

        @container.function("upper")
        async def upper(message: amqp.Message) -> str:
            return str(message.body).upper()

        for number, colour in enumerate(["red", "green", "blue", "green"]):
            await container.send("colours", amqp.Message(number, application_properties={"colour": colour}))
        async with trio.open_nursery() as nursery:
            [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
            said = await trio.to_thread.run_sync(ask, client, name, mode, listener.url)
            nursery.cancel_scope.cancel()
        return said, len(queue)

    said, left = within(run)
    if mode == "select":
        assert said == {"bodies": [1, 3]}
        assert left == 2
    else:
        assert said == {"body": "HELLO", "correlation_id": 7, "dynamic": True}
        assert left == 4


def test_rhea_lets_us_in_with_the_right_password_only(rhea: Client) -> None:
    process = Process([rhea.command[0], str(HERE / "rhea_wishes.js"), "plain"], ENVIRONMENT)
    try:
        port = json.loads(process.read_until(b'"port"').splitlines()[-1])["port"]

        async def run() -> None:
            with pytest.raises(amqp.SecurityError):
                async with amqp.open_connection(f"amqp://ada:wrong@127.0.0.1:{port}"):
                    raise AssertionError("let in")
            dialling = amqp.open_connection(f"amqp://ada:enigma@127.0.0.1:{port}")
            async with dialling as conn, conn.open_sender("q") as sender:
                await sender.send("hello")

        within(run)
        said = json.loads(process.read_until(b'"body"').splitlines()[-1])
        assert said == {"users": ["ada", "ada"], "body": "hello"}
    finally:
        process.end()
