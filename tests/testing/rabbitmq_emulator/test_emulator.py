"""The stand-in for RabbitMQ, as clients see it: messages that go by routing keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.broker.exchanges.helpers import matches
from tests.container.helpers import bodies, fill
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ

from .helpers import client

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_queue_that_deletes_itself_goes_with_its_last_consumer() -> None:
    async with client() as (conn, ask):
        await ask("PUT", "/queues/q", {"auto_delete": True})
        await ask("POST", "/bindings", {"source": "amq.fanout", "destination_queue": "q"})
        async with conn.open_receiver("/queues/q"):
            async with conn.open_receiver("/queues/q"):
                pass
            assert (await ask("GET", "/queues/q"))[0] == 200
        await wait_all_tasks_blocked()
        assert (await ask("GET", "/queues/q"))[0] == 404
        assert (await ask("GET", "/bindings?src=amq.fanout&dstq=q&key="))[1] == []


async def test_message_of_a_queue_with_a_ttl_dies_and_goes_where_its_exchange_leads(
    autojump_clock: MockClock,
) -> None:
    broker = RabbitMQ(wall_clock=lambda: 1e9 + trio.current_time())
    arguments = {"x-message-ttl": 1000, "x-dead-letter-exchange": "amq.direct"}
    brief = broker.declare_queue("brief", arguments)
    dead = broker.declare_queue("dead")
    broker.bind("amq.direct", "dead", "brief")
    async with broker.container.connect() as conn:
        await fill(conn, "/queues/brief", "one", amqp.Message("sooner", ttl=500))
        await trio.sleep(0.6)
        assert (len(brief), len(dead)) == (2, 0), "a message expires only at the head of a queue"
        await trio.sleep(0.6)
        assert (len(brief), len(dead)) == (0, 2)


async def test_quorum_queue_gives_up_after_so_many_deliveries() -> None:
    broker = RabbitMQ()
    broker.declare_queue(
        "q",
        {
            "x-queue-type": "quorum",
            "x-delivery-limit": 2,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "dead",
        },
    )
    dead = broker.declare_queue("dead")
    async with broker.container.connect() as conn, conn.open_receiver("/queues/q", credit=0) as receiver:
        await fill(conn, "/queues/q", "x")
        for count in range(3):
            delivery = await receiver.receive()
            assert (delivery.message.delivery_count, len(dead)) == (count, 0)
            delivery.modify(delivery_failed=True)
            await wait_all_tasks_blocked()
        assert len(dead) == 1


# Exchanges --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("a.b", ["a.b"], ["a", "a.b.c", "", "a.c"]),
        ("a.*", ["a.b", "a."], ["a", "a.b.c"]),
        ("#", ["", "a", "a.b.c"], []),
        ("a.#", ["a", "a.b", "a.b.c"], ["", "b"]),
        ("#.z", ["z", "a.z", "a.b.z"], ["z.a", ""]),
        ("*.#.z", ["a.z", "a.b.z"], ["z"]),
        ("#.a.#", ["a", "b.a", "a.b", "b.a.b"], ["b", ""]),
        ("", [""], ["a"]),
        (".".join(["#"] * 40) + ".x", ["x"], [".".join("abc" * 40)]),
    ],
)
def test_words_of_a_routing_key_fit_a_pattern(pattern: str, fitting: list[str], others: list[str]) -> None:
    assert [key for key in fitting + others if matches(pattern, key)] == fitting


async def test_message_gets_to_each_queue_once_and_tells_how_it_came() -> None:
    async with client() as (conn, ask):
        for name in ("q", "r"):
            await ask("PUT", f"/queues/{name}", {})
        for name, kind in (("t", "topic"), ("f", "fanout")):
            assert await ask("PUT", f"/exchanges/{name}", {"type": kind}) == (204, None)
            assert await ask("PUT", f"/exchanges/{name}", {"type": kind}) == (204, None)
        assert (await ask("PUT", "/exchanges/t", {"type": "fanout"}))[0] == 409
        for binding in (
            {"source": "t", "destination_queue": "q", "binding_key": "a.*"},
            {"source": "t", "destination_queue": "q", "binding_key": "#"},
            {"source": "t", "destination_exchange": "f", "binding_key": "a.*"},
            {"source": "f", "destination_exchange": "t"},
            {"source": "f", "destination_queue": "q"},
            {"source": "f", "destination_queue": "r"},
        ):
            assert await ask("POST", "/bindings", binding) == (204, None)
        await fill(conn, "/exchanges/t/a.b", amqp.Message("x", annotations={"x-mine": 1}))
        for name in ("q", "r"):
            async with conn.open_receiver(f"/queues/{name}") as receiver:
                delivery = await receiver.receive()
                notes = {"x-mine": 1, "x-exchange": "t", "x-routing-key": "a.b"}
                assert delivery.message.annotations == notes
                delivery.accept()
                await wait_all_tasks_blocked()
                assert receiver.buffered == 0
        _, found = await ask("GET", "/bindings?src=t&dste=f&key=a.%2A")
        assert found == [
            {
                "source": "t",
                "destination_exchange": "f",
                "binding_key": "a.*",
                "arguments": {},
                "location": "/bindings/src=t;dste=f;key=a.%2A;args=",
            }
        ]
        assert await ask("DELETE", found[0]["location"]) == (204, None)
        await fill(conn, "/exchanges/t/a.b", "y")
        assert (await ask("GET", "/queues/r"))[1]["message_count"] == 0
        assert await ask("DELETE", "/exchanges/f") == (204, None)
        assert await ask("DELETE", "/exchanges/f") == (204, None)


async def test_headers_exchange_compares_headers_with_the_arguments_of_its_bindings() -> None:
    async with client() as (conn, ask):
        await ask("PUT", "/queues/q", {})
        assert await ask("PUT", "/exchanges/h", {"type": "headers"}) == (204, None)
        for arguments in ({"x-match": "all", "colour": "red", "n": 1}, {"x-match": "any", "colour": "green"}):
            body = {"source": "h", "destination_queue": "q", "arguments": arguments}
            assert await ask("POST", "/bindings", body) == (204, None)
        async with conn.open_sender("/exchanges/h/k") as sender, conn.open_receiver("/queues/q") as receiver:
            for properties in ({"colour": "red", "n": 1}, {"colour": "green"}):
                await sender.send(amqp.Message("x", application_properties=properties))
            with pytest.raises(amqp.DeliveryReleasedError):
                await sender.send(amqp.Message("x", application_properties={"colour": "red"}))
            assert await bodies(receiver, 2) == ["x", "x"]


async def test_message_that_matches_no_binding_goes_to_the_alternate_exchange() -> None:
    async with client() as (conn, ask):
        await ask("PUT", "/queues/q", {})
        arguments = {"alternate-exchange": "amq.fanout"}
        assert await ask("PUT", "/exchanges/e", {"arguments": arguments}) == (204, None)
        assert (await ask("PUT", "/exchanges/e", {}))[0] == 409
        await ask("POST", "/bindings", {"source": "amq.fanout", "destination_queue": "q"})
        await fill(conn, "/exchanges/e/k", "x")
        async with conn.open_receiver("/queues/q") as receiver:
            delivery = await receiver.receive()
            assert delivery.message.annotations == {"x-exchange": "e", "x-routing-key": "k"}
            delivery.accept()


async def test_message_that_goes_nowhere_is_released_and_one_too_many_is_rejected() -> None:
    broker = RabbitMQ()
    broker.declare_queue("q", {"x-max-length": 1, "x-overflow": "reject-publish"})
    broker.bind("amq.direct", "q", "k")
    async with broker.container.connect() as conn:
        async with conn.open_sender("/exchanges/amq.direct/k") as sender:
            await sender.send("x")
            with pytest.raises(amqp.DeliveryRejectedError, match="is full"):
                await sender.send("y")
        for address in ("/exchanges/amq.direct", "/exchanges/amq.direct/other"):
            async with conn.open_sender(address) as sender:
                with pytest.raises(amqp.DeliveryReleasedError):
                    await sender.send("z")
        async with conn.open_sender("/exchanges/amq.direct", guarantee="at-most-once") as sender:
            await sender.send("nobody hears")
        async with conn.open_sender(None) as sender:
            with pytest.raises(amqp.DeliveryReleasedError):
                await sender.send(amqp.Message("x", to="/exchanges/amq.direct/other"))
            with pytest.raises(amqp.DeliveryRejectedError, match="no node"):
                await sender.send(amqp.Message("x", to="/exchanges/none/k"))
        await wait_all_tasks_blocked()
        figures = broker.container.nodes["/exchanges/amq.direct"].statistics()
        assert (figures["arrived"], figures["unroutable"]) == (6, 4)


async def test_links_to_an_exchange_end_when_it_is_deleted() -> None:
    async with client() as (conn, ask):
        await ask("PUT", "/exchanges/e", {})
        async with conn.open_sender("/exchanges/e/k") as sender, conn.open_sender("/exchanges/e/k"):
            await ask("DELETE", "/exchanges/e")
            await wait_all_tasks_blocked()
            with pytest.raises(amqp.LinkDetachedError, match="resource-deleted"):
                await sender.send("x")


async def test_exchange_that_is_internal_or_deletes_itself() -> None:
    async with client() as (conn, ask):
        await ask("PUT", "/queues/q", {})
        await ask("PUT", "/exchanges/in", {"internal": True, "auto_delete": True})
        for address in ("/exchanges/in", "/exchanges/in/k"):
            with pytest.raises(amqp.LinkRefusedError, match="internal"):
                async with conn.open_sender(address):
                    pass
        with pytest.raises(amqp.LinkRefusedError, match="gives no messages"):
            async with conn.open_receiver("/exchanges/in"):
                pass
        await ask("POST", "/bindings", {"source": "in", "destination_queue": "q", "binding_key": "k"})
        await ask("POST", "/bindings", {"source": "amq.fanout", "destination_exchange": "in"})
        await ask("DELETE", "/queues/q")
        assert (await ask("GET", "/bindings?src=amq.fanout&dste=in&key="))[1] == []
        with pytest.raises(amqp.LinkRefusedError, match="not-found"):
            async with conn.open_sender("/exchanges/in"):
                pass


async def test_message_that_cannot_be_annotated_goes_on_as_it_is() -> None:
    broker = RabbitMQ()
    broker.declare_queue("q")
    broker.bind("amq.fanout", "q")
    async with broker.container.connect() as conn:
        broken = amqp.Message.from_payload(b"not sections", 77)
        await fill(conn, "/exchanges/amq.fanout", broken)
        async with conn.open_receiver("/queues/q") as receiver:
            delivery = await receiver.receive()
            assert (delivery.payload, delivery.message.message_format) == (b"not sections", 77)
            delivery.accept()


# From Python ------------------------------------------------------------------------------------


async def test_name_without_a_slash_declares_the_queue() -> None:
    broker = RabbitMQ()
    kept = broker.declare_queue("kept", {"x-max-length": 5})
    async with broker.container.connect() as conn:
        await fill(conn, "orders", "tea")
        await fill(conn, "kept", "milk")
        async with conn.open_receiver("/queues/orders") as receiver:
            assert await bodies(receiver, 1) == ["tea"]
        async with conn.open_receiver("kept") as receiver:
            assert await bodies(receiver, 1) == ["milk"]
        await wait_all_tasks_blocked()
        assert len(kept) == 0
        for address in ("queues/orders", "/queues/none", "$none"):
            with pytest.raises(amqp.LinkRefusedError, match="not-found"):
                await fill(conn, address, "lost")


async def test_name_of_a_node_of_the_program_declares_no_queue() -> None:
    broker = RabbitMQ()
    own = broker.container.add_queue("own")
    async with broker.container.connect() as conn:
        await fill(conn, "own", "tea")
    assert len(own) == 1
    assert "/queues/own" not in broker.container.nodes
