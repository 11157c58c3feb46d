"""A dialect that knows nothing of AMQP joins a container by its interface alone: see ``toy``."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container import toy
from tests.container.helpers import bodies, queue_of
from tests.container.management.managed import managed
from trio_amqp10.container import Container, Quotas, Rules

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio.testing import MockClock


class Client:
    """The other end, a line at a time."""

    peer: toy.ToyPeer

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._read = b""

    async def say(self, *lines: str) -> None:
        await self.stream.send_all("".join(f"{line}\n" for line in lines).encode())

    async def hear(self) -> str:
        with trio.fail_after(60):
            while b"\n" not in self._read:
                octets = await self.stream.receive_some()
                if not octets:
                    return "(gone)"
                self._read += octets
        line, self._read = self._read.split(b"\n", 1)
        return line.decode()

    async def ask(self, line: str) -> str:
        await self.say(line)
        return await self.hear()


@asynccontextmanager
async def connected(
    container: Container, name: str = "toy", user: str = ""
) -> AsyncGenerator[tuple[Client, str]]:
    """A connection to a listener of 127.0.0.1, and the first line that it is answered."""
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, "amqp://127.0.0.1:0", dialects=[toy.Toy(container)])
        (listener,) = await nursery.start(serve)
        async with await trio.open_tcp_stream("127.0.0.1", listener.port) as stream:
            client = Client(stream)
            yield client, await client.ask(f"TOY {name} {user}".rstrip())
        nursery.cancel_scope.cancel()  # while it is not read, it is not seen that it has gone


@asynccontextmanager
async def dialled(container: Container, name: str = "toy", user: str = "") -> AsyncGenerator[Client]:
    async with connected(container, name, user) as (client, answer):
        assert answer == "HELLO"
        peer = container.connected[-1]
        assert isinstance(peer, toy.ToyPeer)
        client.peer = peer
        yield client


def test_toy_imports_nothing_of_amqp() -> None:
    found = set(re.findall(r"^ *from (trio_amqp10[\w.]*)", Path(toy.__file__).read_text(), re.MULTILINE))
    assert {name.split(".")[1] for name in found} == {"broker", "net"}
    assert not {name for name in found if re.search(r"\.(server|peer)\b", name)}


async def test_toy_publishes_and_pulls_and_acknowledges() -> None:
    container = Container()
    async with dialled(container) as client:
        assert await client.ask("GET q") == "EMPTY"
        assert await client.ask("PUT q some text") == "OK"
        assert await client.ask("GET q") == "MSG 1 q some text"
        assert queue_of(container).leased == 1
        await client.say("ACK 1")
        assert await client.ask("GET q") == "EMPTY"
    assert "q" not in container.nodes


async def test_toy_consumes_with_a_window_and_sees_what_was_given_out_before() -> None:
    container = Container()
    async with dialled(container) as client:
        for text in ("one", "two", "three"):
            await client.ask(f"PUT q {text}")
        assert await client.ask("SUB q 2") == "OK"
        assert [await client.hear() for _ in range(2)] == ["MSG 1 q one", "MSG 2 q two"]
        await wait_all_tasks_blocked()
        assert queue_of(container).leased == 2
        assert await client.ask("NACK 1") == "AGAIN 3 q one"
        assert await client.ask("ACK 2") == "MSG 4 q three"
    assert (len(queue_of(container)), queue_of(container).leased) == (2, 0)
    async with dialled(container) as client:
        assert await client.ask("GET q") == "AGAIN 1 q one"


async def test_toy_and_amqp_10_have_the_same_queues() -> None:
    container = Container()
    async with dialled(container) as client, container.connect() as conn:
        await client.ask("PUT q from toy")
        async with conn.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == [b"from toy"]
        async with conn.open_sender("q") as sender:
            await sender.send("from AMQP")
        assert await client.ask("GET q") == "MSG 1 q from AMQP"
        await client.say("ACK 1")


async def test_toy_is_not_read_while_a_queue_is_full() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=2)
    async with dialled(container) as client, dialled(container) as other:
        await client.say(*[f"PUT q {number}" for number in range(5)])
        assert [await client.hear() for _ in range(2)] == ["OK", "OK"]
        await wait_all_tasks_blocked()
        await client.say("PUT q last")
        await wait_all_tasks_blocked()
        assert not client.peer.wants_data()
        assert client.peer.traffic.octets_in == 5 * len("PUT q 0\n")  # the last one waits in the transport
        taken = []
        for number in range(1, 7):
            line = await other.ask("GET q")
            taken.append(line.rsplit(" ", 1)[1])
            await other.say(f"ACK {number}")
            await wait_all_tasks_blocked()
        assert taken == ["0", "1", "2", "3", "4", "last"]
        assert [await client.hear() for _ in range(4)] == ["OK"] * 4
        assert len(queue) == 0


async def test_toy_is_not_read_while_the_container_holds_too_much() -> None:
    container = Container(memory_limit=2000)
    async with dialled(container) as client:
        for _ in range(3):
            assert await client.ask(f"PUT q {'x' * 400}") == "OK"
        assert container.watermark.high
        await client.say("PUT q more")
        await wait_all_tasks_blocked()
        assert len(queue_of(container)) == 3
        async with (
            container.connect() as conn,
            conn.open_receiver("q") as receiver,
        ):  # has credit, and goes on
            await bodies(receiver, 3)
            assert await client.hear() == "OK"
            assert await bodies(receiver, 1) == [b"more"]


async def test_toy_is_held_to_quotas() -> None:
    container = Container(quotas=Quotas(connections=2, links=2, unsettled=3, node_receivers=1))
    async with dialled(container, user="ada") as client, dialled(container, user="ada") as second:
        async with connected(container, user="ada") as (third, answer):
            assert answer == "BYE amqp:resource-limit-exceeded"
            assert await third.hear() == "(gone)"
        for text in "abcd":
            assert await client.ask(f"PUT q {text}") == "OK"
        assert await client.ask("SUB q 9") == "OK"
        assert [await client.hear() for _ in range(3)] == ["MSG 1 q a", "MSG 2 q b", "MSG 3 q c"]
        assert await second.ask("SUB q 1") == "NO amqp:resource-limit-exceeded"  # one receiver of a node
        assert await second.ask("PUT q e") == "NO amqp:resource-limit-exceeded"  # a third link
        await wait_all_tasks_blocked()
        assert queue_of(container).leased == 3
        assert await client.ask("ACK 2") == "MSG 4 q d"


async def test_toy_may_do_what_the_rules_say() -> None:
    container = Container(authorise=Rules(("ada", "send receive", "q"), ("bob", "receive", "q")))
    async with dialled(container, user="ada") as ada, dialled(container, user="bob") as bob:
        assert await ada.ask("PUT q text") == "OK"
        assert await ada.ask("PUT other text") == "NO amqp:unauthorized-access"
        assert await bob.ask("PUT q text") == "NO amqp:unauthorized-access"
        assert await bob.ask("GET q") == "MSG 1 q text"
        assert await bob.ask("SUB other 1") == "NO amqp:unauthorized-access"
    async with connected(container) as (_, answer):
        assert answer == "BYE amqp:unauthorized-access"
    assert sorted(container.nodes) == ["q"]


async def test_toy_is_seen_by_management_and_statistics() -> None:
    container = Container()
    async with managed(container) as (_, ask), dialled(container, "visitor", "ada") as client:
        await client.ask("PUT in text")
        await client.ask("SUB out 1")
        number = client.peer.number
        status, shown = await ask("READ", type="connection", identity=f"{number}")
        assert (status, shown["name"], shown["user"], shown["octets-in"] > 0) == (200, "visitor", "ada", True)
        status, shown = await ask("READ", type="link", identity=f"{number}/sender/out")
        assert (status, shown["address"], shown["role"]) == (200, "out", "sender")
        status, shown = await ask("READ", type="link", identity=f"{number}/receiver/in")
        assert (status, shown["address"], shown["role"]) == (200, "in", "receiver")
        assert container.statistics()["connections"] == 2
    assert container.past["octets_in"] > 0


async def test_toy_is_closed_by_management() -> None:
    container = Container()
    async with managed(container) as (_, ask), dialled(container) as client:
        number = client.peer.number
        assert await ask("DELETE", type="connection", identity=f"{number}") == (204, {})
        assert [await client.hear() for _ in range(2)] == ["BYE amqp:connection:forced", "(gone)"]


async def test_toy_is_told_that_its_queue_was_deleted() -> None:
    container = Container()
    async with dialled(container) as client:
        await client.ask("SUB q 1")
        container.remove_node("q")
        assert await client.hear() == "END q amqp:resource-deleted"
        assert await client.ask("GET q") == "EMPTY"


async def test_finish_waits_for_what_the_toy_has_not_answered(autojump_clock: MockClock) -> None:
    container = Container()
    async with dialled(container) as client:
        await client.ask("PUT q a")
        await client.ask("PUT q b")
        assert await client.ask("GET q") == "MSG 1 q a"
        assert not await container.finish(1)
        assert await client.ask("GET q") == "EMPTY"
        await client.say("ACK 1")
        assert await container.finish(1)


async def test_toy_replies_go_to_functions_and_dead_letters_come_from_queues() -> None:
    container = Container()
    container.add_queue("q", dead_letter="dead", delivery_limit=1)
    handled: list[Any] = []

    @container.consumer("work")
    async def work(delivery: amqp.Delivery) -> None:
        handled.append(delivery.message.body)

    async with dialled(container) as client:
        assert await client.ask("PUT work text") == "OK"
        assert handled == [b"text"]
        await client.ask("PUT q bad")
        await client.ask("GET q")
        client.peer.given.pop(1).rejected("amqp:decode-error", "no good")
        assert await client.ask("GET dead") == "MSG 2 dead bad"


async def test_toy_works_in_a_transaction() -> None:
    container = Container()
    async with dialled(container) as client, dialled(container) as other:
        await client.ask("PUT q one")
        assert await client.ask("BEGIN") == "OK"
        assert await client.ask("GET q") == "MSG 1 q one"
        await client.say("PUT p two", "ACK 1")
        assert await other.ask("GET p") == "EMPTY"
        assert await client.ask("ROLLBACK") == "OK"
        await client.say("NACK 1")
        assert await other.ask("GET p") == "EMPTY"
        assert await client.ask("BEGIN") == "OK"
        assert await client.ask("GET q") == "AGAIN 2 q one"
        await client.say("PUT p two", "ACK 2", "COMMIT")
        assert [await client.hear() for _ in range(2)] == ["OK", "OK"]
        assert await other.ask("GET p") == "MSG 1 p two"
        assert await other.ask("GET q") == "EMPTY"


async def test_toy_hears_why_its_transaction_was_not_committed() -> None:
    container = Container()
    container.add_queue("q", max_length=1, overflow="reject")
    async with dialled(container) as client:
        await client.ask("PUT q one")
        assert await client.ask("GET q") == "MSG 1 q one"
        assert await client.ask("BEGIN") == "OK"
        await client.say("PUT q two", "PUT q three", "ACK 1")
        assert (await client.ask("COMMIT")).startswith("NO amqp:transaction:rollback")
        assert queue_of(container).leased == 1
        await client.say("ACK 1")
        assert await client.ask("GET q") == "EMPTY"


async def test_toy_that_goes_leaves_nothing_of_its_transaction() -> None:
    container = Container()
    async with dialled(container) as client:
        await client.ask("PUT q one")
        await client.ask("GET q")
        await client.ask("BEGIN")
        await client.say("PUT q two", "ACK 1")
        await wait_all_tasks_blocked()
    assert (len(queue_of(container)), queue_of(container).leased) == (1, 0)
    assert container.statistics()["connections"] == 0


LIVE = """
import os, sys, trio
from tests.broker.test_toy_dialect import dialled
from trio_amqp10 import Container, SqliteStore

async def main():
    async with dialled(Container(store=SqliteStore(sys.argv[1]))) as client:
        for text in ("one", "two", "three"):
            assert await client.ask(f"PUT q {text}") == "OK"
        assert await client.ask("GET q") == "MSG 1 q one"
        await client.say("ACK 1")
        assert await client.ask("GET q") == "MSG 2 q two"
        assert await client.ask("BEGIN") == "OK"
        await client.say("PUT q four", "ACK 2")
        await client.say("COMMIT")
        assert [await client.hear() for _ in range(2)] == ["OK", "OK"]
        assert await client.ask("BEGIN") == "OK"
        assert await client.ask("GET q") == "MSG 3 q three"
        await client.say("PUT q never", "ACK 3")
        assert await client.ask("GET q") == "MSG 4 q four"
        await client.peer._container.flush()
        print("said", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


async def test_toy_messages_survive_a_kill(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    process = await trio.lowlevel.open_process([sys.executable, "-c", LIVE, path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    async with process.stdout:
        try:
            said = b""
            while not said.endswith(b"\n") and (more := await process.stdout.receive_some()):
                said += more
        finally:
            process.kill()
            await process.wait()
    assert said == b"said\n"
    with amqp.SqliteStore(path) as store:
        container = Container(store=store)
        async with dialled(container) as client:
            assert await client.ask("GET q") == "AGAIN 1 q three"
            assert await client.ask("GET q") == "AGAIN 2 q four"
            await client.say("ACK 1", "ACK 2")
            assert await client.ask("GET q") == "EMPTY"
