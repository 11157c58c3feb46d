"""Management: nodes created, read, changed, deleted and listed by requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import fill, queue_of
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Described, UInt, ULong
from trio_amqp10.container import Container, Node, QueuePolicy, Topic
from trio_amqp10.container.management import management_node, status_builders

from .managed import managed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio.testing import MockClock

    Ask = Callable[..., Awaitable[tuple[int, Any]]]


async def test_management_creates_a_queue_with_rules_and_reads_its_live_figures() -> None:
    async with managed() as (container, ask):
        rules = {"max-length": UInt(5), "overflow": "reject", "grouped": True}
        status, made = await ask("CREATE", rules, type="queue", name="q")
        assert (status, made["name"], made["identity"], made["type"]) == (201, "q", "q", "queue")
        assert queue_of(container).policy == QueuePolicy(max_length=5, overflow="reject", grouped=True)
        await container.send("q", "x")
        for key in ("name", "identity"):
            status, found = await ask("READ", **{key: "q"})
            assert status == 200
            assert (found["messages"], found["available"], found["arrived"], found["max-length"]) == (
                1,
                1,
                1,
                5,
            )
            assert (found["dead-letter"], found["senders"]) == (None, 0)
        assert found["octets"] > 0


async def test_management_creates_and_deletes_a_topic() -> None:
    async with managed() as (container, ask):
        status, made = await ask("CREATE", {"max-backlog": 7, "overflow": "wait"}, type="topic", name="t")
        assert (status, made["max-backlog"], made["overflow"], made["subscriptions"]) == (201, 7, "wait", 0)
        assert isinstance(container.nodes["t"], Topic)
        assert await ask("DELETE", type="topic", name="t") == (204, {})
        assert await ask("DELETE", type="topic", name="t") == (404, "no topic 't'")


async def test_management_changes_the_rules_of_a_queue() -> None:
    async with managed() as (container, ask):
        container.add_queue("q", max_length=1, delivery_limit=2)
        status, changed = await ask(
            "UPDATE", {"max-length": None, "dead-letter": "dead"}, type="queue", name="q"
        )
        assert (status, changed["max-length"], changed["dead-letter"], changed["delivery-limit"]) == (
            200,
            None,
            "dead",
            2,
        )
        assert queue_of(container).policy == QueuePolicy(dead_letter="dead", delivery_limit=2)
        status, why = await ask("UPDATE", {"exclusive": True}, name="q")
        assert (status, "cannot be changed" in why) == (400, True)


async def test_management_sets_and_shows_delays_in_whole_and_in_parts_of_seconds(
    autojump_clock: MockClock,
) -> None:
    async with managed() as (container, ask):
        rules = {"redelivery-delay": 1.5, "redelivery-delay-multiplier": 2, "max-redelivery-delay": 60}
        status, made = await ask("CREATE", rules, type="queue", name="q")
        assert (status, {name: made[name] for name in rules}) == (201, rules)
        assert queue_of(container).policy.delay_after(3) == 6
        await container.send("q", "x")
        async with container.connect() as conn, conn.open_receiver("q", credit=1) as receiver:
            (await receiver.receive()).modify(delivery_failed=True)
            await wait_all_tasks_blocked()
            _, found = await ask("READ", name="q")
            assert (found["messages"], found["available"], found["leased"], found["delayed"]) == (1, 0, 0, 1)
            (await receiver.receive()).accept()
        await ask("UPDATE", {"redelivery-delay-multiplier": None}, name="q")
        assert queue_of(container).policy.delay_after(3) == 1.5
        status, why = await ask("UPDATE", {"redelivery-delay": "long"}, name="q")
        assert (status, "expected float" in why) == (400, True)


async def test_management_counts_what_has_expired_as_gone(autojump_clock: MockClock) -> None:
    async with managed() as (container, ask):
        container.add_queue("q")
        await container.send("q", amqp.Message("x", ttl=1000))
        await trio.sleep(2)
        _, found = await ask("READ", name="q")
        assert (found["messages"], found["expired"]) == (0, 1)


async def test_management_lists_nodes_by_type_attribute_and_place() -> None:
    container = Container()
    for name in ("a", "b", "c"):
        container.add_queue(name, max_length=9)
    container.add_topic("t")

    @container.function("f")
    async def function(message: amqp.Message) -> None: ...

    async with managed(container) as (_, ask):
        _, found = await ask("QUERY", type="org.amqp.management", name="self", entityType="queue")
        names = found["attributeNames"]
        assert [row[names.index("name")] for row in found["results"]][:3] == ["a", "b", "c"]
        wanted = {"attributeNames": ["name", "max-length", "handled"]}
        _, found = await ask("QUERY", wanted, entityType="queue", offset=1, count=1)
        assert found == {"attributeNames": wanted["attributeNames"], "results": [["b", 9, None]]}
        _, found = await ask("QUERY", wanted, entityType="function")
        assert sorted(row[0] for row in found["results"]) == ["$management", "f"]
        _, found = await ask("QUERY", {"attributeNames": ["type"]}, entityType="node")
        assert {row[0] for row in found["results"]} == {"queue", "topic", "function"}
        assert (await ask("QUERY", entityType="no such thing"))[1]["results"] == []
        for wrong in ({"offset": -1}, {"count": "many"}, {"offset": True}):
            assert (await ask("QUERY", **wrong))[0] == 400


async def test_management_answers_with_a_page_and_says_whether_there_is_more() -> None:
    container = Container(memory_limit=None)
    for number in range(1200):
        container.add_queue(f"q{number}")
    container.add_management()
    async with container.connect() as conn, conn.open_requester("$management") as requester:

        async def page(**more: Any) -> tuple[list[Any], Any, Any]:
            asked = {"operation": "QUERY", "entityType": "queue", **more}
            body = {"attributeNames": ["name"]}
            reply = await requester.request(amqp.Message(body, application_properties=asked))
            told = reply.application_properties
            assert told["count"] == len(reply.body["results"])
            return [row[0] for row in reply.body["results"]], told["more"], told["statusCode"]

        names = [f"q{number}" for number in range(1200)]
        assert await page() == (names[:500], True, 200)
        assert await page(offset=500, count=700) == (names[500:1000], True, 200)
        found, more, _ = await page(offset=1000)
        assert found[:200] == names[1000:]
        assert more is False
        assert await page(count=3) == (names[:3], True, 200)
        assert await page(count=0) == ([], True, 200)
        assert (await page(offset=5000))[:2] == ([], False)


async def test_management_bounds_what_one_reply_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    status = status_builders.node_status

    def counting(container: Container, node: Any) -> Any:
        made.append(node.address)
        return status(container, node)

    monkeypatch.setattr(status_builders, "node_status", counting)
    container = Container()
    for number in range(400):
        container.add_queue(f"{number} {'x' * 10_000}")
    async with managed(container) as (_, ask):
        _, found = await ask("QUERY", {"attributeNames": ["name"]}, entityType="queue")
        assert 100 <= len(found["results"]) <= 110  # about a megabyte
        assert len(made) == len(found["results"])  # and no more than these were looked at
        made.clear()
        await ask("QUERY", {"attributeNames": ["name"]}, entityType="queue", offset=300, count=2)
        assert len(made) == 2
        made.clear()
        await ask("GET-TYPES")
        assert len(made) < 10


@pytest.mark.parametrize(
    ("body", "properties"),
    [
        ({"attributeNames": [f"a{number}" for number in range(101)]}, {}),
        ({"attributeNames": ["a" * 2049]}, {}),
        ({"attributeNames": [1]}, {}),
        ({"attributeNames": "name"}, {}),
        ({"attributeNames": {"name": "x"}}, {}),
        (None, {"operation": "READ", "name": "x" * 2049}),
        (None, {"operation": "READ", "name": 7 * "x", "type": "y" * 2000}),
        (None, {"operation": "x" * 2000}),
        ({"x" * 2000: 1}, {"operation": "CREATE", "type": "queue", "name": "n"}),
        ({"max-length": "x" * 2000}, {"operation": "CREATE", "type": "queue", "name": "n"}),
        (None, {"operation": "CREATE", "type": "x" * 2000, "name": "n"}),
        (None, {"operation": "QUERY", "count": "x" * 2000}),
        (None, {"operation": "READ", "type": "link", "identity": "x" * 2000}),
    ],
)
async def test_management_bounds_what_is_asked_and_what_it_says_of_it(
    body: Any, properties: dict[str, Any]
) -> None:
    async with managed() as (_, ask):
        status, description = await ask(**{"operation": "QUERY", "body": body} | properties)
        assert status in (400, 404, 501)
        assert len(description) < 500


async def test_exchanges_are_named_by_their_name_or_address_and_have_attributes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    container = Container(strict=True)
    container.add_broker()
    async with managed(container) as (_, ask):
        status, made = await ask("DECLARE", {"type": "fanout", "durable": False}, type="exchange", name="a b")
        assert (status, made["identity"], made["type"]) == (200, "/exchanges/a%20b", "exchange")
        assert await ask(
            "DECLARE", {"type": "fanout", "durable": False}, type="exchange", name="/exchanges/a%20b"
        ) == (
            200,
            made,
        )
        status, queue = await ask(
            "DECLARE", {"durable": None, "arguments": '{"x-max-length": 3}'}, type="queue"
        )
        assert (status, queue["max-length"], queue["type"]) == (200, 3, "queue")
        status, binding = await ask("BIND", {"source": "a b", "destination": queue["name"]}, type="binding")
        assert (status, binding["identity"]) == (200, f"a b/queue/{queue['name']}/")
        for form, name in ((None, "name"), ("status", "address")):
            status, found = await ask("ROUTE", {"key": "k"}, identity="/exchanges/a%20b", form=form)
            assert [each[name] for each in found["queues"]] == [queue["name"]]
            assert not found["more"]
        _, other = await ask("DECLARE", type="queue")
        await ask("BIND", {"source": "a b", "destination": other["name"]}, type="binding")
        with monkeypatch.context() as patch:
            patch.setattr(management_node, "_PAGE_OCTETS", 0)
            _, found = await ask("ROUTE", name="a b")
            assert ([each["name"] for each in found["queues"]], found["more"]) == ([queue["name"]], True)
            _, found = await ask("ROUTE", name="a b", offset=1)
            assert ([each["name"] for each in found["queues"]], found["more"]) == ([other["name"]], False)
        assert await ask("UNBIND", {"source": "a b", "destination": other["name"]}) == (204, {})
        huge = {"source": "a b", "destination": queue["name"], "arguments": f'{{"a": {2**64}}}'}
        assert (await ask("BIND", huge))[0] == 400
        assert (await ask("QUERY", entityType="binding"))[0] == 200
        assert await ask("UNBIND", {"source": "a b", "destination": queue["name"]}) == (204, {})
        assert await ask("DELETE", type="exchange", name="a b", **{"if-unused": True}) == (204, {})
        assert (await ask("READ", type="exchange", name="/exchanges/a%20b"))[0] == 404
        status, operations = await ask("GET-OPERATIONS")
        assert list(operations["exchange"]) == ["READ", "DECLARE", "DELETE", "ROUTE"]
        assert list(operations["binding"]) == ["READ", "BIND", "UNBIND"]
        assert operations["queue"]["DECLARE"] == ["arguments", "durable", "auto-delete"]


async def test_management_answers_success_with_a_map_in_an_amqp_value() -> None:
    container = Container()
    container.add_management()
    async with container.connect() as conn, conn.open_requester("$management") as requester:
        for operation in ("QUERY", "GET-TYPES", "GET-ATTRIBUTES", "GET-OPERATIONS", "GET-ANNOTATIONS"):
            asked = {"operation": operation, "type": "org.amqp.management", "name": "self"}
            reply = await requester.request(amqp.Message(application_properties=asked))
            assert reply.application_properties["statusCode"] == 200
            assert isinstance(reply.body, dict)
            assert b"\x00\x53\x77" in reply.to_payload()


async def test_management_asks_a_node_for_each_attribute_once() -> None:
    async with managed() as (_, ask):
        names = ["name", "name", "type", "name"]
        assert (await ask("QUERY", {"attributeNames": names}))[1]["attributeNames"] == ["name", "type"]


async def test_management_tells_what_there_is_to_manage() -> None:
    class Echo(Node):
        accepts_senders = True

    container = Container()
    container.add_node(Echo("echo"))
    async with managed(container) as (_, ask):
        _, types = await ask("GET-TYPES")
        assert types == {
            "node": [],
            "queue": ["node"],
            "topic": ["node"],
            "echo": ["node"],
            "function": ["node"],
            **{kind: [] for kind in ("container", "connection", "link", "account", "channel")},
            **{kind: [] for kind in ("subscription", "transaction", "user", "virtual-host", "binding")},
        }
        assert (await ask("GET-TYPES", entityType="queue"))[1] == {"queue": ["node"]}
        _, attributes = await ask("GET-ATTRIBUTES")
        assert set(attributes["node"]) <= set(attributes["echo"]) <= set(attributes["queue"])
        _, operations = await ask("GET-OPERATIONS")
        assert set(operations["queue"]) > {"READ", "CREATE", "UPDATE", "DELETE", "PURGE", "MOVE"}
        assert set(operations["topic"]) == {"READ", "CREATE", "UPDATE", "DELETE"}
        assert operations["echo"] == {"READ": []}
        assert "max-length" in operations["queue"]["CREATE"]
        assert (await ask("GET-ANNOTATIONS", entityType="queue"))[1] == {"queue": []}
        assert await ask("GET-MGMT-NODES") == (200, [])
        assert (await ask("READ", name="echo"))[1]["type"] == "echo"


@pytest.mark.parametrize(
    ("operation", "body", "properties", "status", "why"),
    [
        ("CREATE", None, {"type": "queue", "name": "q"}, 409, "already"),
        ("CREATE", None, {"type": "star", "name": "x"}, 400, "'star'"),
        ("CREATE", None, {"type": "queue"}, 400, "name=None"),
        ("CREATE", None, {"type": "queue", "name": ""}, 400, "name=''"),
        ("CREATE", {"size": 1}, {"type": "queue", "name": "x"}, 400, "'size'"),
        ("CREATE", {"max-length": "1"}, {"type": "queue", "name": "x"}, 400, "max-length='1'"),
        ("CREATE", {"max-length": True}, {"type": "queue", "name": "x"}, 400, "max-length=True"),
        ("CREATE", {"exclusive": None}, {"type": "queue", "name": "x"}, 400, "exclusive=None"),
        ("CREATE", {"max-length": 0}, {"type": "queue", "name": "x"}, 400, "at least 1"),
        ("CREATE", {"overflow": None}, {"type": "topic", "name": "x"}, 400, "overflow=None"),
        ("CREATE", ["list"], {"type": "queue", "name": "x"}, 400, "expected a map"),
        ("READ", None, {"name": "nowhere"}, 404, "'nowhere'"),
        ("READ", None, {"name": "q", "type": "topic"}, 404, "topic 'q'"),
        ("UPDATE", None, {"name": "$management"}, 400, "not a queue"),
        ("UPDATE", {"max-backlog": 0}, {"name": "t", "type": "topic"}, 400, "at least 1"),
        ("UPDATE", {"max-length": 1}, {"name": "t", "type": "topic"}, 400, "max-length"),
        ("UPDATE", {"max-backlog": 1}, {"name": "q", "type": "topic"}, 404, "topic 'q'"),
        ("UPDATE", {"max-length": 0}, {"name": "q"}, 400, "at least 1"),
        ("DELETE", None, {"name": "$management"}, 400, "part of the service"),
        ("PAINT", None, {"name": "q"}, 501, "'PAINT'"),
        ("DECLARE", None, {"name": "x"}, 400, "type=None cannot be declared: expected queue or exchange"),
        ("DECLARE", None, {"type": "topic", "name": "x"}, 400, "'topic' cannot be declared"),
        ("DECLARE", None, {"type": "queue", "name": 7}, 400, "name=7"),
        ("DECLARE", None, {"type": "exchange"}, 400, "name=None"),
        ("DECLARE", {"internal": True}, {"type": "queue", "name": "x"}, 400, "'internal'"),
        ("DECLARE", {"durable": 1}, {"type": "queue", "name": "x"}, 400, "durable=1"),
        (
            "DECLARE",
            {"arguments": {}},
            {"type": "queue", "name": "x"},
            400,
            "arguments={}: expected a string; give",
        ),
        ("DECLARE", {"arguments": "["}, {"type": "queue", "name": "x"}, 400, "an object of JSON in a string"),
        ("DECLARE", {"arguments": "[]"}, {"type": "queue", "name": "x"}, 400, "expected a map"),
        ("DECLARE", {"type": 7}, {"type": "exchange", "name": "x"}, 400, "type=7 in the body"),
        ("DECLARE", {"type": "x" * 3000}, {"type": "exchange", "name": "x"}, 400, "has 3000 characters"),
        ("BIND", None, {}, 400, "source is missing in the body"),
        ("BIND", {"source": "amq.direct"}, {}, 400, "destination is missing in the body"),
        (
            "BIND",
            {"source": "a", "destination": "q", "destination-kind": "x"},
            {},
            400,
            "destination-kind='x'",
        ),
        ("UNBIND", {"source": 1, "destination": "q"}, {}, 400, "source=1 in the body"),
        ("ROUTE", {"headers": 1}, {"name": "amq.direct"}, 400, "headers=1"),
        ("ROUTE", None, {"name": "amq.direct", "offset": -1}, 400, "offset=-1"),
        ("ROUTE", None, {"name": "nowhere"}, 404, "no exchange 'nowhere'"),
        ("DELETE", None, {"type": "exchange", "name": "nowhere"}, 404, "no exchange 'nowhere'"),
        ("PURGE", None, {"name": "$management"}, 404, "no queue"),
        ("PUBLISH", {"message": "text"}, {"name": "q"}, 400, "expected binary"),
        ("BROWSE", None, {"name": "q", "filter": "a ="}, 400, "filter"),
        ("GET", None, {"name": "q", "outcome": "eat"}, 400, "outcome='eat'"),
        ("MOVE", None, {"name": "q", "target": "q"}, 400, "both"),
        ("MOVE", None, {"name": "q", "target": "nowhere"}, 404, "'nowhere'"),
        ("MOVE", None, {"name": "q", "target": "q", "count": -1}, 400, "count=-1"),
        ("REDRIVE", None, {"name": "nowhere"}, 404, "'nowhere'"),
        ("REDRIVE", None, {"name": "q", "died-in": "nowhere"}, 404, "'nowhere'"),
        ("REDRIVE", None, {"name": "q", "died-in": 5}, 400, "died-in=5"),
        ("IMPORT", {"definitions": "["}, {}, 400, "JSON"),
        ("DELETE", None, {"name": "q", "if-empty": 1}, 400, "if-empty=1"),
        (None, None, {"name": "q"}, 400, "operation=None"),
    ],
)
async def test_management_says_why_it_does_not_do_it(
    operation: str, body: Any, properties: dict[str, Any], status: int, why: str
) -> None:
    async with managed() as (container, ask):
        container.add_queue("q")
        container.add_topic("t")
        before = dict(container.nodes)
        assert (await ask(operation, body, **properties))[0] == status
        assert why in (await ask(operation, body, **properties))[1]
        assert container.nodes == before


@pytest.mark.parametrize("large", ["a" * 100_000, b"a" * 100_000, ["a" * 50_000, [b"a" * 50_000]]])
async def test_page_of_queues_with_large_arguments_is_about_a_megabyte(large: Any) -> None:
    container = Container()
    broker = container.add_broker()
    for number in range(30):
        broker.declare_queue(f"q{number}", {"large": {"inner": large}})
    async with managed(container) as (_, ask):
        for form in ({}, {"form": "status"}):
            _, page = await ask("QUERY", entityType="queue", **form)
            assert 5 <= len(page["results"]) <= 11


@pytest.mark.parametrize(
    ("operation", "name", "answer"),
    [
        ("READ", "type", (404, "no ['a'] 'q'")),
        ("UPDATE", "type", (404, "no ['a'] 'q'")),
        ("DELETE", "type", (404, "no ['a'] 'q'")),
        ("QUERY", "entityType", (200, [])),
    ],
)
@pytest.mark.parametrize("form", [None, "status"])
async def test_management_answers_a_peer_whose_type_is_a_list(
    operation: str, name: str, answer: tuple[int, Any], form: str | None
) -> None:
    container = Container()
    container.add_management()
    container.add_queue("q")
    asked = {"operation": operation, "name": "q", "form": form, name: ["a"]}
    section = encode(Described(ULong(0x74), asked))  # no message of ours may have a list there (3.2.5)
    async with container.connect() as conn, conn.open_requester("$management") as requester:
        reply = await requester.request(amqp.Message.from_payload(section + amqp.Message({}).to_payload()))
    told = reply.application_properties
    assert (told["statusCode"], reply.body["results"] if reply.body else told["statusDescription"]) == answer


async def test_container_is_not_managed_unless_it_says_so() -> None:
    container = Container(strict=True)
    async with container.connect() as conn:
        with pytest.raises(amqp.LinkRefusedError):
            await fill(conn, "$management", "x")


async def test_management_shows_who_is_connected_and_by_which_links() -> None:
    container = Container("c", strict=True)
    container.add_queue("q")
    async with (
        managed(container) as (_, ask),
        container.connect(container_id="other") as conn,
        conn.open_sender("q", name="mine") as sender,
    ):
        await sender.send("x")
        status, found = await ask("QUERY", entityType="connection")
        assert status == 200
        connections = [dict(zip(found["attributeNames"], row, strict=True)) for row in found["results"]]
        other = connections[1]
        assert (other["name"], other["identity"], other["type"]) == ("other", "2", "connection")
        assert (other["state"], other["receivers"], other["octets-in"] > 0) == ("OPENED", 1, True)
        _, found = await ask("QUERY", {"attributeNames": ["identity", "address", "role"]}, entityType="link")
        assert ["2/receiver/mine", "q", "receiver"] in found["results"]
        status, link = await ask("READ", type="link", identity="2/receiver/mine")
        assert (status, link["messages"], link["credit"] > 0, link["peer"]) == (200, 1, True, "other")
        _, attributes = await ask("GET-ATTRIBUTES")
        assert set(other) == set(attributes["connection"])
        assert set(link) < set(attributes["link"])
    async with managed(Container()) as (_, ask):
        assert await ask("READ", type="link", identity="7/sender/x") == (404, "no link '7/sender/x'")
        assert await ask("DELETE", type="link", identity="1/sender/x") == (404, "no link '1/sender/x'")
        status, why = await ask("DELETE", type="account", name="x")
        assert (status, why) == (400, "an entity of type 'account' can only be read and listed")


async def test_management_closes_a_connection_when_it_is_deleted() -> None:
    container = Container(strict=True)
    container.add_queue("q")
    async with managed(container) as (_, ask):
        with pytest.raises(amqp.ConnectionClosedError) as closed:
            async with container.connect(container_id="other") as conn, conn.open_receiver("q") as receiver:
                assert await ask("DELETE", type="connection", identity="2") == (204, {})
                await receiver.receive()
        assert closed.value.error is not None
        assert closed.value.error.condition == "amqp:connection:forced"
        assert closed.value.error.description == "closed by management"
        _, found = await ask("QUERY", {"attributeNames": ["identity"]}, entityType="connection")
        assert found["results"] == [["1"]]
        assert await ask("DELETE", type="connection", identity="2") == (404, "no connection '2'")
        assert (await ask("DELETE", type="connection", name="other"))[0] == 400
        assert (await ask("GET-OPERATIONS", entityType="connection"))[1] == {
            "connection": {"READ": [], "DELETE": []}
        }


@pytest.mark.parametrize("address", ["$management", "$cbs"])
async def test_asking_for_a_service_that_is_not_there_makes_no_queue_of_it(address: str) -> None:
    container = Container()
    async with container.connect() as conn:
        with pytest.raises(amqp.LinkRefusedError, match="amqp:not-found"):
            async with conn.open_sender(address):
                pass
    assert container.nodes == {}


async def test_management_does_with_messages_what_the_model_does() -> None:
    container = Container()
    container.add_queue("a", dead_letter="dead")
    container.add_queue("b")
    container.add_queue("dead")
    async with managed(container) as (_, ask):
        for number in range(5):
            payload = amqp.Message(number, application_properties={"n": number}).to_payload()
            assert await ask("PUBLISH", {"message": payload}, name="a") == (200, {"routed": True})
        _, shown = await ask("BROWSE", name="a", offset=1, count=2)
        assert [amqp.Message.from_payload(each["message"]).body for each in shown["messages"]] == [1, 2]
        assert (shown["messages"][0]["place"], shown["messages"][0]["died-in"]) == (1, None)
        assert await ask("MOVE", name="a", target="b", filter="n > 2") == (200, {"count": 2})
        assert await ask("MOVE", name="b", target="a", count=1) == (200, {"count": 1})
        _, got = await ask("GET", name="a", outcome="reject", count=2)
        assert [each["place"] for each in got["messages"]] == [0, 1]
        assert await ask("REDRIVE", name="dead") == (200, {"moved": {"a": 2}, "left": 0})
        status, why = await ask("DELETE", **{"name": "a", "if-empty": True})
        assert (status, why) == (412, "'a' has 4 messages: it is not empty")
        assert await ask("PURGE", name="a") == (200, {"count": 4})
        assert await ask("DELETE", **{"name": "a", "if-empty": True, "if-unused": True}) == (204, {})


async def test_management_shows_no_more_of_a_queue_than_fits_a_reply() -> None:
    container = Container()
    container.add_queue("a")
    for number in range(5):
        await container.send("a", bytes([number]) * 400_000)
    async with managed(container) as (_, ask):
        places: list[int] = []
        while found := (await ask("BROWSE", name="a", offset=len(places)))[1]["messages"]:
            assert len(found) <= 2
            places += [each["place"] for each in found]
    assert places == [0, 1, 2, 3, 4]


async def test_management_exports_and_imports_definitions() -> None:
    container = Container()
    container.add_queue("a", max_length=1)
    async with managed(container) as (_, ask):
        _, exported = await ask("EXPORT")
        container.remove_node("a")
        assert await ask("IMPORT", exported) == (200, {"made": {"queues": 1}, "left-out": []})
        assert queue_of(container, "a").policy.max_length == 1
        _, done = await ask(
            "IMPORT", {"definitions": '{"rabbit_version": "4", "users": [{"name": "guest"}]}'}
        )
        assert [each[:2] for each in done["left-out"]] == [["users", "guest"]]
        for text in ("5", "[]", "{", "[" * 100_000):
            status, why = await ask("IMPORT", {"definitions": text})
            assert (status, "expected an object of JSON" in why) == (400, True)


async def test_management_closes_a_link_with_a_reason() -> None:
    container = Container()
    container.add_queue("q")
    async with (
        managed(container) as (_, ask),
        container.connect() as conn,
        conn.open_receiver("q", name="mine") as receiver,
    ):
        assert await ask("DELETE", type="link", identity="2/sender/mine", reason="too slow") == (204, {})
        with pytest.raises(amqp.LinkDetachedError, match="too slow"):
            await receiver.receive()
