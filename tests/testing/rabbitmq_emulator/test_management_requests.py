"""Requests to the management of RabbitMQ, and why those that cannot be done are refused."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ

from .helpers import PAIRED, client


async def test_pair_of_links_is_told_that_it_is_one() -> None:
    async with RabbitMQ().container.connect() as conn:
        assert "LINK_PAIR_V1_0" in conn.remote.offered_capabilities
        async with (
            conn.open_sender("/management", name="a", properties=PAIRED) as sender,
            conn.open_receiver(
                "/management", name="a", properties=PAIRED, target=amqp.Target(address="x")
            ) as receiver,
            conn.open_sender("/management", name="b") as other,
        ):
            assert sender.remote.properties == receiver.remote.properties == PAIRED
            assert not other.remote.properties


async def test_answer_for_a_link_without_a_pair_is_dropped() -> None:
    broker = RabbitMQ()
    async with broker.container.connect() as conn, conn.open_sender("/management") as sender:
        await sender.send(amqp.Message(None, subject="GET", to="/queues/q", reply_to="$me"))
        await wait_all_tasks_blocked()
        assert broker.container.nodes["/management"].statistics()["dropped"] == 1


async def test_queue_is_declared_shown_purged_and_deleted() -> None:
    broker = RabbitMQ()
    async with client(broker) as (conn, ask):
        arguments = {"x-max-length": 5, "x-note": "kept"}
        status, shown = await ask("PUT", "/queues/a%2Fb", {"arguments": arguments, "durable": True})
        assert status == 201
        assert shown == {
            "message_count": 0,
            "consumer_count": 0,
            "name": "a/b",
            "vhost": "/",
            "durable": True,
            "auto_delete": False,
            "exclusive": False,
            "type": "classic",
            "arguments": arguments,
            "leader": "rabbit@localhost",
            "replicas": ["rabbit@localhost"],
        }
        assert (await ask("PUT", "/queues/a%2Fb", {"arguments": arguments}))[0] == 200
        assert await ask("PUT", "/queues/a%2Fb", {}) == (409, "there is a queue 'a/b' with other properties")
        await fill(conn, "/queues/a%2fb", "x", "y", "z")
        async with conn.open_receiver("/queues/%61%2fb", credit=0) as receiver:
            assert receiver.remote.source.address == "/queues/%61%2fb", "as it was asked for"
            delivery = await receiver.receive()
            _, shown = await ask("GET", "/queues/a%2Fb")
            assert (shown["message_count"], shown["consumer_count"]) == (2, 1)
            assert await ask("DELETE", "/queues/a%2Fb/messages") == (200, {"message_count": 2})
            delivery.accept()
        assert await ask("DELETE", "/queues/a%2Fb") == (200, {"message_count": 0})
        assert await ask("DELETE", "/queues/a%2Fb") == (200, {"message_count": 0})
        assert await ask("GET", "/queues/a%2Fb") == (404, "no queue 'a/b'")
        with pytest.raises(amqp.LinkRefusedError, match="amqp:not-found"):
            async with conn.open_sender("/queues/a%2Fb"):
                pass


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "why"),
    [
        ("PUT", "/queues/", {}, 400, "must have a name"),
        ("PUT", "/queues/amq.q", {}, 403, "amq."),
        ("PUT", "/queues/a%0Ab", {}, 400, "line feeds"),
        ("PUT", "/queues/q", None, 400, "must be a map, not NoneType"),
        ("PUT", "/queues/q", {"colour": 1}, 400, "bad queue property 'colour'"),
        ("PUT", "/queues/q", {"durable": "yes"}, 400, "bad queue property 'durable'"),
        ("PUT", "/queues/q", {"arguments": {"x-queue-type": "stream"}}, 501, "streams"),
        ("PUT", "/queues/q", {"arguments": {"x-queue-type": "odd"}}, 400, "'odd'"),
        ("PUT", "/queues/q", {"arguments": {"x-max-length": -1}}, 400, "expected a number of at least 0"),
        ("PUT", "/queues/q", {"arguments": {"x-overflow": "odd"}}, 400, "reject-publish"),
        ("PUT", "/queues/q", {"arguments": {"x-dead-letter-exchange": 1}}, 400, "invalid type 'signedint'"),
        ("DELETE", "/queues/q/messages", None, 400, "no queue 'q'"),
        ("DELETE", "/queues/q/consumers", None, 501, "'consumers'"),
        ("PATCH", "/queues/q", None, 501, "PATCH /queues/q"),
        ("PUT", "queues/q", {}, 400, "begins with /"),
        ("PUT", "/queues/\u00e9", {}, 400, "percent-encode"),
        ("PUT", "/exchanges/", {}, 403, "must have a name"),
        ("PUT", "/exchanges/amq.mine", {}, 403, "amq."),
        ("PUT", "/exchanges/e", {"type": "x-odd"}, 400, "'x-odd'"),
        ("PUT", "/exchanges/e", {"arguments": {"alternate-exchange": 1}}, 400, "alternate-exchange"),
        ("PUT", "/exchanges/e", {"arguments": {1: "a"}}, 400, "bad exchange argument 1"),
        ("DELETE", "/exchanges/amq.topic", None, 403, "amq."),
        ("POST", "/bindings", {"source": "amq.topic"}, 400, "destination_queue"),
        ("POST", "/bindings", {"source": "e", "destination_queue": "q"}, 400, "no exchange 'e'"),
        ("POST", "/bindings", {"source": "amq.topic", "destination_queue": "q"}, 400, "no queue 'q'"),
        ("POST", "/bindings", {"source": "", "destination_queue": "q"}, 403, "default exchange"),
        (
            "POST",
            "/bindings",
            {"source": "amq.headers", "destination_exchange": "amq.topic", "arguments": {"x-match": "some"}},
            400,
            "x-match",
        ),
        ("GET", "/bindings?src=e&key=k", None, 400, "dstq or dste"),
        ("DELETE", "/bindings/src=e", None, 400, "bad binding path"),
        ("DELETE", "/bindings/src=e;dstq=q;key=;args=abc", None, 204, None),
        ("DELETE", "/bindings/src=e;dstq=q;key=;args=", None, 204, None),
    ],
)
async def test_request_that_cannot_be_done_is_told_why(
    method: str, path: str, body: Any, status: int, why: str | None
) -> None:
    async with client() as (_, ask):
        told = await ask(method, path, body)
        assert told[0] == status
        assert (told[1] is None) if why is None else why in told[1]


async def test_exclusive_queue_is_its_connections_and_goes_with_it() -> None:
    broker = RabbitMQ()
    async with client(broker) as (other, ask_other):
        async with client(broker) as (conn, ask):
            assert (await ask("PUT", "/queues/mine", {"exclusive": True}))[1]["exclusive"] is True
            assert (await ask("PUT", "/queues/mine", {"exclusive": True}))[0] == 200
            assert (await ask_other("PUT", "/queues/mine", {"exclusive": True}))[0] == 400
            assert (await ask_other("PUT", "/queues/mine", {}))[0] == 409
            assert (await ask_other("DELETE", "/queues/mine"))[0] == 400
            await fill(other, "/queues/mine", "hello")
            with pytest.raises(amqp.LinkRefusedError, match="cannot obtain exclusive access"):
                async with other.open_receiver("/queues/mine"):
                    pass
            async with conn.open_receiver("/queues/mine") as receiver:
                assert await bodies(receiver, 1) == ["hello"]
        await wait_all_tasks_blocked()
        assert (await ask_other("GET", "/queues/mine"))[0] == 404
