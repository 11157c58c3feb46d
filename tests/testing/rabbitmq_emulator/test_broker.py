"""The stand-in for RabbitMQ, as clients see it: requests over paired links, and messages that go by routing keys."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.broker.helpers import matches
from tests.container.helpers import bodies, fill
from trio_amqp10.testing import rabbitmq
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ
from trio_amqp10.testing.rabbitmq_emulator.addresses import hash_of
from trio_amqp10.wire.values import Symbol, UInt

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from trio.testing import MockClock

    Ask = Callable[..., Awaitable[tuple[int, Any]]]

PAIRED = {Symbol("paired"): True}


@asynccontextmanager
async def asking(conn: amqp.Connection) -> AsyncGenerator[Ask]:
    """What makes a request and gives status and body of its answer."""
    async with (
        conn.open_sender("/management", name="pair", properties=PAIRED) as sender,
        conn.open_receiver(
            "/management", name="pair", properties=PAIRED, target=amqp.Target(address="/management")
        ) as receiver,
    ):

        async def ask(method: str, path: str, body: Any = None) -> tuple[int, Any]:
            await sender.send(
                amqp.Message(amqp.Value(body), subject=method, to=path, reply_to="$me", message_id="7")
            )
            delivery = await receiver.receive()
            answer = delivery.message
            assert (answer.correlation_id, answer.application_properties) == ("7", {"http:response": "1.1"})
            return int(answer.subject or ""), answer.body

        yield ask


@asynccontextmanager
async def client(broker: RabbitMQ | None = None) -> AsyncGenerator[tuple[amqp.Connection, Ask]]:
    broker = broker or RabbitMQ()
    async with broker.container.connect() as conn, asking(conn) as ask:
        yield conn, ask


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
        ("PUT", "/queues/", {}, 400, "without a name"),
        ("PUT", "/queues/amq.q", {}, 403, "amq."),
        ("PUT", "/queues/a%0Ab", {}, 400, "line feeds"),
        ("PUT", "/queues/q", None, 400, "is a map, not NoneType"),
        ("PUT", "/queues/q", {"colour": 1}, 400, "bad queue property 'colour'"),
        ("PUT", "/queues/q", {"durable": "yes"}, 400, "bad queue property 'durable'"),
        ("PUT", "/queues/q", {"arguments": {"x-queue-type": "stream"}}, 501, "streams"),
        ("PUT", "/queues/q", {"arguments": {"x-queue-type": "odd"}}, 400, "'odd'"),
        ("PUT", "/queues/q", {"arguments": {"x-max-length": -1}}, 400, "expected a number of at least 0"),
        ("PUT", "/queues/q", {"arguments": {"x-overflow": "odd"}}, 400, "reject-publish"),
        ("PUT", "/queues/q", {"arguments": {"x-dead-letter-exchange": 1}}, 400, "are strings"),
        ("DELETE", "/queues/q/messages", None, 400, "no queue 'q'"),
        ("DELETE", "/queues/q/consumers", None, 501, "'consumers'"),
        ("PATCH", "/queues/q", None, 501, "PATCH /queues/q"),
        ("PUT", "queues/q", {}, 400, "begins with /"),
        ("PUT", "/queues/\u00e9", {}, 400, "percent-encoding"),
        ("PUT", "/exchanges/", {}, 403, "without a name"),
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
            with pytest.raises(amqp.LinkRefusedError, match="exclusive to another"):
                async with other.open_receiver("/queues/mine"):
                    pass
            async with conn.open_receiver("/queues/mine") as receiver:
                assert await bodies(receiver, 1) == ["hello"]
        await wait_all_tasks_blocked()
        assert (await ask_other("GET", "/queues/mine"))[0] == 404


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
        assert (len(brief), len(dead)) == (1, 1)
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


async def test_bindings_with_arguments_are_listed_and_ended_one_by_one() -> None:
    async with client() as (_, ask):
        await ask("PUT", "/queues/q", {})
        table = [{"n": -1}, {"n": -2}, {"n": 1, "x-match": "any"}, {}]
        for arguments in table:
            body = {"source": "amq.headers", "destination_queue": "q", "arguments": arguments}
            assert await ask("POST", "/bindings", body) == (204, None)
        listing = "/bindings?src=amq.headers&dstq=q&key="
        found = (await ask("GET", listing))[1]
        assert [each["arguments"] for each in found] == table
        places = [each["location"] for each in found]
        assert places[-1].endswith(";key=;args=")
        assert len(set(places)) == 4
        for n, place in enumerate(places, 1):
            assert await ask("DELETE", place) == (204, None)
            assert [each["location"] for each in (await ask("GET", listing))[1]] == places[n:]


def test_hash_of_the_arguments_of_a_binding_is_the_same_for_equal_ones() -> None:
    assert hash_of({"a": 1, "b": [True, None]}) == hash_of({"b": [True, None], "a": UInt(1)})
    assert hash_of({"a": 1}) != hash_of({"a": True})
    assert len(hash_of({"a": {"b": 1}})) == 6


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


def test_what_a_program_declares_wrongly_is_an_error_of_its_own() -> None:
    broker = RabbitMQ()
    for call, why in (
        (lambda: broker.declare_queue("q", {"x-queue-type": "stream"}), "streams"),
        (lambda: broker.declare_exchange("e", "x-odd"), "x-odd"),
        (lambda: broker.bind("amq.headers", "q", arguments={"x-match": "some"}), "no queue 'q'"),
        (lambda: broker.bind("e", "q"), "no exchange 'e'"),
    ):
        with pytest.raises(amqp.LocalProtocolError, match=why):
            call()
    broker.declare_exchange("e", "topic")
    assert repr(broker) == "<RabbitMQ 'rabbit@localhost' queues=0>"


def test_rabbitmq_listens_for_the_length_of_a_block_and_says_what_it_is() -> None:
    async def look(url: str) -> None:
        async with amqp.open_connection(url) as conn:
            properties = conn.remote.properties
            assert (properties["product"], properties["version"]) == ("RabbitMQ", "4.0.0")
            await fill(conn, "/queues/orders", "tea")
        with pytest.raises(amqp.SecurityError):
            async with amqp.open_connection(url.replace("guest:guest", "guest:wrong")):
                pass

    broker = RabbitMQ()
    queue = broker.declare_queue("mine")
    with rabbitmq(["orders"], broker=broker) as url:
        assert url.startswith("amqp://guest:guest@127.0.0.1:")
        trio.run(look, url)
    assert len(queue) == 0
