"""What clients declare at RabbitMQ 4 and what then becomes of messages: the same there as in what stands in for it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.testing import rabbitmq

from .ours import within

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from .rabbitmq import Broker

PAIRED = {Symbol("paired"): True}


class Client:
    """A connection, with requests over paired links as RabbitMQ wants them."""

    def __init__(self, conn: amqp.Connection, sender: amqp.Sender, receiver: amqp.Receiver) -> None:
        self.conn = conn
        self._sender = sender
        self._receiver = receiver

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and body of the answer."""
        self._receiver.grant(1)
        with trio.fail_after(10):
            # RabbitMQ ends the session of a request that comes before the credit for its answer.
            await wait_all_tasks_blocked()
            await self._sender.send(
                amqp.Message(amqp.Value(body), subject=method, to=path, reply_to="$me", message_id="7")
            )
            answer = (await self._receiver.receive()).message
        return int(answer.subject or ""), answer.body

    async def put(self, path: str, **properties: Any) -> None:
        """Declare it; what an earlier run left is deleted first."""
        await self.ask("DELETE", path)
        status, body = await self.ask("PUT", path, {"arguments": {}, **properties})
        assert status in (201, 204), body

    async def bind(self, source: str, queue: str, key: str = "", **arguments: Any) -> None:
        body = {"source": source, "destination_queue": queue, "binding_key": key, "arguments": arguments}
        assert await self.ask("POST", "/bindings", body) == (204, None)

    async def send(self, address: str, *messages: Any) -> list[str]:
        """The outcomes."""
        found: list[str] = []
        async with self.conn.open_sender(address) as sender:
            for message in messages:
                try:
                    await sender.send(message)
                    found.append("accepted")
                except amqp.DeliveryRejectedError:
                    found.append("rejected")
                except amqp.DeliveryReleasedError:
                    found.append("released")
        return found

    async def take(self, queue: str, how: str = "accept") -> amqp.Message:
        """The next message, with this outcome."""
        async with self.conn.open_receiver(f"/queues/{queue}") as receiver:
            with trio.fail_after(10):
                delivery = await receiver.receive()
            getattr(delivery, how)()
            return delivery.message

    async def is_empty(self, queue: str) -> bool:
        """Whether nothing is there, once the broker has had time."""
        for _ in range(50):
            if (await self.ask("GET", f"/queues/{queue}"))[1]["message_count"] == 0:
                return True
            await trio.sleep(0.1)
        return False


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Client]:
    async with (
        amqp.open_connection(url) as conn,
        conn.open_sender(
            "/management",
            name="pair",
            properties=PAIRED,
            source=amqp.Source(address="me"),
            guarantee="at-most-once",
        ) as sender,
        conn.open_receiver(
            "/management",
            name="pair",
            properties=PAIRED,
            target=amqp.Target(address="me"),
            guarantee="at-most-once",
            credit=0,
        ) as receiver,
    ):
        yield Client(conn, sender, receiver)


@pytest.fixture(params=["rabbitmq4", "here"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """RabbitMQ, and what stands in for it."""
    if request.param == "here":
        with rabbitmq() as url:
            yield url
    else:
        there: Broker = request.getfixturevalue("rabbitmq4")
        yield there.url


def told(message: amqp.Message) -> tuple[Any, ...]:
    """Where it was published to, and where it died: all that is the same in every run, and the types of it."""
    notes = message.annotations
    deaths = [
        {str(key): (type(value).__name__, value) for key, value in each.items() if "-time" not in key}
        for each in notes.get("x-opt-deaths", ())
    ]
    names = sorted(str(key) for key in notes if not key.startswith("x-opt-deadletter"))
    rest = {name: notes[name] for name in names if name != "x-opt-deaths"}
    return message.ttl is not None, rest, deaths


async def _headers(url: str) -> None:
    async with connected(url) as client:
        await client.put("/exchanges/h", type="headers", arguments={"alternate-exchange": "alt"})
        assert (await client.ask("PUT", "/exchanges/h", {"type": "headers", "arguments": {}}))[0] == 409
        await client.put("/exchanges/alt", type="fanout")
        for queue in ("h1", "h2"):
            await client.put(f"/queues/{queue}")
        await client.bind("h", "h1", "", **{"x-match": "all", "colour": "red"})
        await client.bind("h", "h1", "", **{"x-match": "any", "colour": "green", "n": 1})
        await client.bind("alt", "h2")
        body = {"source": "h", "destination_queue": "h1", "binding_key": "", "arguments": {"x-match": "odd"}}
        assert (await client.ask("POST", "/bindings", body))[0] == 400
        coloured = [
            amqp.Message(str(each), application_properties=each)
            for each in ({"colour": "red"}, {"n": 1}, {"colour": "blue"})
        ]
        assert await client.send("/exchanges/h/k", *coloured) == ["accepted"] * 3
        for n, queue in enumerate(("h1", "h1", "h2")):
            message = await client.take(queue)
            assert message.body == coloured[n].body
            assert message.annotations == {"x-exchange": "h", "x-routing-key": "k"}
        listing = "/bindings?src=h&dstq=h1&key="
        found = {each["arguments"]["x-match"]: each for each in (await client.ask("GET", listing))[1]}
        assert found.keys() == {"all", "any"}
        assert {key for each in found.values() for key in each} == {
            "source",
            "destination_queue",
            "binding_key",
            "arguments",
            "location",
        }
        assert (await client.ask("DELETE", "/bindings/src=h;dstq=h1;key=;args=zzzzzz"))[0] == 204
        assert (await client.ask("DELETE", found["any"]["location"]))[0] == 204
        [left] = (await client.ask("GET", listing))[1]
        assert left == found["all"]
        assert await client.send("/exchanges/h/k", coloured[1]) == ["accepted"]
        assert (await client.take("h2")).body == coloured[1].body


async def _deaths(url: str) -> list[Any]:
    async with connected(url) as client:
        for exchange in ("dlx", "src"):
            await client.put(f"/exchanges/{exchange}", type="topic")
        await client.put("/queues/w", arguments={"x-dead-letter-exchange": "dlx"})
        await client.put("/queues/dead", arguments={"x-dead-letter-exchange": "src"})
        await client.bind("src", "w", "a.#")
        await client.bind("dlx", "dead", "#")
        seen = [await client.send("/exchanges/src/a.b", amqp.Message("x", ttl=60_000))]
        seen += [told(await client.take(queue, "reject")) for queue in ("w", "dead", "w")]
        seen.append(told(await client.take("dead")))
        seen.append(await client.send("/exchanges/src/a.c", amqp.Message("late", ttl=100)))
        seen.append(told(await client.take("dead")))
        lie = amqp.Message("straight", annotations={"x-exchange": "lie", "x-routing-key": "lie"})
        seen.append(await client.send("/queues/w", lie))
        seen += [told(await client.take("w", "reject")), told(await client.take("dead"))]
        back = {"x-dead-letter-exchange": ""}
        await client.put("/queues/back", arguments=back)
        await client.send("/queues/back", "x")
        seen += [told(await client.take("back", how)) for how in ("reject", "accept")]
        await client.put("/queues/round", arguments=back | {"x-message-ttl": 100})
        await client.send("/queues/round", "x")
        assert await client.is_empty("round"), "it would go in circles"
        seen += await _full(client)
        with pytest.raises(amqp.LinkRefusedError):
            await client.send("/exchanges//w", "x")
        return seen


async def _full(client: Client) -> list[Any]:
    """What becomes of messages that a queue has no room for."""
    seen: list[Any] = []
    dlx = {"x-dead-letter-exchange": "dlx"}
    for bound in ("x-max-length", "x-max-length-bytes"):
        await client.put("/queues/nothing", arguments=dlx | {bound: 0})
        seen.append(await client.send("/queues/nothing", "x"))
        seen.append(told(await client.take("dead")))
    await client.put("/queues/none", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    seen.append(await client.send("/queues/none", "x", "y"))
    for kind in ("classic", "quorum"):
        arguments = {"x-queue-type": kind, "x-max-length": 1, "x-overflow": "reject-publish-dlx"}
        await client.put("/queues/one", arguments=dlx | arguments)
        seen.append(await client.send("/queues/one", "1", "2", "3"))
        for _ in range(2):
            letter = await client.take("dead")
            seen.append((letter.body, told(letter)))
        seen.append((await client.take("one")).body)
    return seen


def test_headers_alternates_and_bindings_with_arguments_are_as_in_rabbitmq(url: str) -> None:
    within(_headers, url)


def test_dead_letters_are_as_in_rabbitmq(rabbitmq4: Broker) -> None:
    there = within(_deaths, rabbitmq4.url)
    with rabbitmq() as url:
        here = within(_deaths, url)
    for mine, its in zip(here, there, strict=True):
        assert mine == its
