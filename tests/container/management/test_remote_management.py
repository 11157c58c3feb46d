"""Management of a peer: the same calls and results as ``Container.management``, rights, losses, and strange replies."""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.testing.azure_emulator.helpers import opened as event_hubs
from trio_amqp10.container.management import (
    LeftOut,
    Management,
    ManagementError,
    OperationRefusedError,
    QueueStatus,
    Redriven,
    RemoteManagement,
    TopicStatus,
    management_node,
)
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from trio.testing import MockClock

LOCAL_ONLY = {
    "check_store": "it is for the health of the process, which HTTP shows",
    "container_name": "it is the name in describe, and a property does not ask a peer",
    "depths": "it is for collectors of the process",
    "host_names": "they are the names in virtual_hosts, and a property does not ask a peer",
    "limited": "a property does not ask a peer",
    "may_watch": "a list of what may not be watched is refused",
    "on_behalf_of": "a request is made by the user of its connection",
    "publish_content": "content is an object of the process; publish takes a message",
    "queue_address": "a declared queue has its address in its status",
    "survey": "it is for collectors of the process",
    "watch_frames": "frames are watched as they pass, and a reply is sent once",
}
"""Calls of ``Management`` for which ``$management`` has no operation, and why."""
REMOTE_ONLY = {"entities", "entity"}


@asynccontextmanager
async def both(
    container: amqp.Container | None = None, **options: Any
) -> AsyncGenerator[tuple[Management, RemoteManagement]]:
    """Management of a container: its own, and over a connection."""
    container = container or amqp.Container("peer")
    if "$management" not in container.nodes:
        container.add_management()
    async with container.connect() as conn, conn.open_management(**options) as remote:
        yield container.management, remote


def calls_of(cls: type) -> dict[str, Any]:
    return {name: item for name, item in vars(cls).items() if not name.startswith("_")}


# -- the same calls -------------------------------------------------------------------------


def test_every_call_is_here_or_has_no_operation() -> None:
    assert calls_of(Management).keys() - LOCAL_ONLY.keys() == calls_of(RemoteManagement).keys() - REMOTE_ONLY


@pytest.mark.parametrize("name", sorted(calls_of(RemoteManagement).keys() - REMOTE_ONLY))
def test_call_has_the_parameters_and_the_result_of_management(name: str) -> None:
    ours, theirs = (inspect.signature(getattr(cls, name)) for cls in (RemoteManagement, Management))
    named: list[Any] = [
        [(each.name, each.kind, str(each.annotation)) for each in one.parameters.values()]
        for one in (ours, theirs)
    ]
    if name.startswith("close_"):  # the usual reason is that of the container
        named = [[each[:2] for each in one] for one in named]
    else:
        assert [each.default for each in ours.parameters.values()] == [
            each.default for each in theirs.parameters.values()
        ]
    assert named[0] == named[1]
    assert str(ours.return_annotation).replace("RemoteListing", "Listing") == str(theirs.return_annotation)


async def busy() -> amqp.Container:
    """A container with something of each kind."""
    container = amqp.Container("peer", quotas=amqp.Quotas())
    container.add_management()
    container.add_broker()
    model = container.management
    await model.create_queue("q", max_length=5, overflow="reject", redelivery_delay=1.5)
    await model.create_topic("t", max_backlog=7)
    arguments = {
        "x-max-length": 3,
        "when": datetime(2026, 1, 2, tzinfo=UTC),
        "price": Decimal("1.50"),
        "octets": b"\xff",
        "table": {"deep": [1, 2.5, None, True, "text"]},
    }
    await model.declare_queue("declared", arguments)
    await model.declare_exchange("x", "headers", {"alternate-exchange": "amq.fanout"})
    for key in ("a", "b"):
        await model.bind("x", "declared", "k", {"key": key})
    await model.publish("q", "tea")
    return container


LISTS = [
    name for name, item in calls_of(RemoteManagement).items() if inspect.signature(item).return_annotation.startswith("RemoteListing")
]  # fmt: skip


@pytest.mark.parametrize("name", sorted({*LISTS} - REMOTE_ONLY))
async def test_list_is_that_of_management(name: str, autojump_clock: MockClock) -> None:
    container = await busy()
    async with (
        both(container) as (local, remote),
        container.connect() as conn,
        conn.open_receiver("t", name="mine"),
        conn.open_sender("q") as sender,
        conn.open_transaction() as transaction,
    ):
        await sender.send("milk", transaction=transaction)
        here = [each async for each in getattr(local, name)()]
        there = [each async for each in getattr(remote, name)()]
        assert [type(each) for each in there] == [type(each) for each in here]
        assert list(map(without_figures, there)) == list(map(without_figures, here))
        assert here or name == "users"
        assert await getattr(remote, name)().count() == len(here)
        page = await getattr(remote, name)().page(1, 1)
        assert (list(map(without_figures, page.items)), page.more) == (
            list(map(without_figures, here[1:2])),
            len(here) > 2,
        )


MOVING = {
    *("figures", "octets", "octets_in", "octets_out", "messages", "messages_in", "messages_out", "unsettled", "unsettled_in"),
    *("unsettled_out", "unsettled_octets", "incoming_window", "credit", "depth", "unacked", "arrived", "acknowledged", "delivered"),
    *("oldest", "working", "waiting"),
}  # fmt: skip
"""Fields that the request itself changes."""


def without_figures(status: Any) -> dict[str, Any]:
    names = [each for each in type(status).__dataclass_fields__ if each not in MOVING]
    return {name: getattr(status, name) for name in names}


async def test_list_of_links_is_that_of_one_role() -> None:
    async with both() as (local, remote):
        for role in ("sender", "receiver"):
            here = [each.identity async for each in local.links(role=role)]
            assert here == [each.identity async for each in remote.links(role=role)]
            assert len(here) == 1
        with pytest.raises(OperationRefusedError, match="role='x': expected sender or receiver"):
            await remote.links(role="x").page()  # type: ignore[arg-type]
        kinds = {each.kind async for each in remote.nodes(kind="function")}
        assert kinds == {"function"}


async def test_one_thing_is_that_of_management() -> None:
    async with both(await busy()) as (local, remote):
        for address in ("q", "t", "declared", "/exchanges/x", "$management"):
            here, there = await local.node(address), await remote.node(address)
            assert (type(there), without_figures(there)) == (type(here), without_figures(here))
        assert isinstance(await remote.node("t", kind="topic"), TopicStatus)
        assert without_figures(await remote.queue("q")) == without_figures(await local.queue("q"))
        (connection,) = [each async for each in remote.connections()]
        assert (await remote.connection(connection.number)).container_id == connection.container_id
        link = (await remote.links().page(0, 1)).items[0]
        assert (await remote.link(link.identity)).name == link.name
        described = await remote.describe()
        assert (described.name, described.connections) == ("peer", {"AMQP 1.0": 1})
        assert (await remote.entity("queue", "q"))["max-length"] == 5
        assert (await remote.entity("virtual-host", "/"))["container"] == "peer"
        assert [each["name"] async for each in remote.entities("topic")] == ["t"]
        assert len([each async for each in remote.entities("binding")]) == 2
        assert await remote.entities("binding").count() == 2


async def test_exchanges_and_bindings_are_made_found_and_deleted() -> None:
    async with both() as (local, remote):
        assert [each async for each in local.exchanges()] == []
        arguments = {
            "when": datetime(2026, 1, 2, tzinfo=UTC),
            "price": Decimal("1.50"),
            "octets": b"\xff",
            "table": {"deep": [1, 2.5, None, True, "text"]},
        }
        queue = await remote.declare_queue(
            "q/%", {"x-max-length": 3, **arguments}, auto_delete=True, durable=False
        )
        assert without_figures(queue) == without_figures(await local.queue("q/%"))
        assert (queue.arguments, queue.auto_delete, queue.declared) == (
            {"x-max-length": 3, **arguments},
            True,
            True,
        )
        made = await remote.declare_queue("")
        assert made.address.startswith("amq.gen-")
        options = {"durable": False, "auto_delete": True, "internal": True}
        exchange = await remote.declare_exchange(
            "x/ #", "headers", {"alternate-exchange": "amq.fanout"}, **options
        )
        assert exchange == await local.exchange("x/ #") == await remote.exchange("x/ #")
        assert {name: getattr(exchange, name) for name in options} == options
        assert await remote.exchange("") == await local.exchange("")
        binding = await remote.bind("x/ #", "q/%", "", arguments)
        assert [binding] == [each async for each in local.bindings()]
        other = await remote.bind("amq.topic", "x/ #", "a.*", destination_kind="exchange")
        assert (other.destination_kind, other.destination) == ("exchange", "x/ #")
        for key, headers in (("a.b", arguments), ("a.b", {"octets": b""}), ("b", None)):
            here, there = [await one.route("amq.topic", key, headers) for one in (local, remote)]
            assert list(map(without_figures, there)) == list(map(without_figures, here))
        assert [each.address for each in await remote.route("amq.topic", "a.b", arguments)] == ["q/%"]
        assert [each.address for each in await remote.route("", "q/%")] == ["q/%"]
        with pytest.raises(OperationRefusedError) as refused:
            await remote.delete_exchange("amq.topic", if_unused=True)
        assert refused.value.reason in {"precondition", "forbidden"}
        await remote.unbind("amq.topic", "x/ #", "a.*", destination_kind="exchange")
        await remote.unbind("x/ #", "q/%", arguments=arguments)
        await remote.unbind("amq.fanout", "q/%")
        assert [each async for each in local.bindings()] == []
        await remote.declare_exchange("y")
        await remote.bind("y", "q/%")
        with pytest.raises(OperationRefusedError) as refused:
            await remote.delete_exchange("y", if_unused=True)
        assert refused.value.reason == "precondition"
        await remote.delete_exchange("y")
        assert await remote.delete("q/%") == 0
        with pytest.raises(OperationRefusedError) as refused:
            await remote.exchange("y")
        assert refused.value.reason == "not-found"


REFUSED: list[tuple[str, Any]] = [
    ("exists", lambda model: model.declare_queue("declared")),
    ("exists", lambda model: model.declare_exchange("x", "fanout")),
    ("invalid", lambda model: model.declare_queue("new", {"x-max-length": "many"})),
    ("invalid", lambda model: model.declare_exchange("new", "odd")),
    ("forbidden", lambda model: model.declare_exchange("amq.new")),
    ("forbidden", lambda model: model.delete_exchange("amq.direct")),
    ("not-found", lambda model: model.delete_exchange("none")),
    ("not-found", lambda model: model.exchange("none")),
    ("not-found", lambda model: model.route("none", "k")),
    ("not-found", lambda model: model.bind("none", "declared")),
    ("not-found", lambda model: model.bind("x", "none")),
    ("not-found", lambda model: model.bind("x", "declared", destination_kind="exchange")),
    ("invalid", lambda model: model.bind("x", "declared", "", {"x-match": "odd"})),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
async def test_exchanges_and_bindings_are_refused_as_by_management(number: int) -> None:
    reason, call = REFUSED[number]
    async with both(await busy()) as (local, remote):
        with pytest.raises(ManagementError) as here:
            await call(local)
        with pytest.raises(OperationRefusedError) as there:
            await call(remote)
        assert (here.value.reason, there.value.reason) == (reason, reason)
        assert there.value.description == here.value.description


async def test_route_to_many_queues_takes_several_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    async with both() as (local, remote):
        for number in range(7):
            await local.declare_queue(f"q{number}")
            await local.bind("amq.fanout", f"q{number}")
        here = [each.address for each in await local.route("amq.fanout", "")]
        for name, value in (("PAGE", 3), ("_PAGE_OCTETS", 0)):
            monkeypatch.setattr(management_node, name, value)
            assert [each.address for each in await remote.route("amq.fanout", "")] == here
        assert len(here) == 7


async def test_values_that_0_9_1_has_not_are_refused_before_a_request() -> None:
    async with both() as (_, remote):
        deep: dict[str, Any] = {}
        for _ in range(5000):
            deep = {"deep": deep}
        for arguments in ({"odd": object()}, deep):
            with pytest.raises(ManagementError, match="expected values of AMQP 0-9-1") as refused:
                await remote.declare_queue("q", arguments)
            assert refused.value.reason == "invalid"


async def test_user_declares_and_binds_with_the_permissions_for_that() -> None:
    rights = {
        "r": lambda remote: remote.declare_queue("r"),
        "/exchanges/y": lambda remote: remote.declare_exchange("y"),
        "/exchanges/x": lambda remote: remote.route("x", ""),
        "/exchanges/z": lambda remote: remote.delete_exchange("z"),
        "/exchanges/x/k q": lambda remote: remote.unbind("x", "q", "k"),
    }
    for address, call in rights.items():
        for granted in (address, "other"):
            async with (
                logged_in(NODE, ("ada", "create", "temporary/*"), ("ada", "manage", granted)) as (
                    container,
                    conn,
                ),
                conn.open_management() as remote,
            ):
                container.add_broker()
                for name in ("x", "z"):
                    await container.management.declare_exchange(name)
                if granted == address:
                    await call(remote)
                    continue
                with pytest.raises(OperationRefusedError) as refused:
                    await call(remote)
                assert refused.value.reason == "forbidden"


async def test_queue_is_created_changed_emptied_and_deleted() -> None:
    async with both() as (local, remote):
        made = await remote.create_queue("q", max_length=5, overflow="reject")
        assert (made.rules, made.address) == ((await local.queue("q")).rules, "q")
        changed = await remote.set_queue("q", max_length=None, redelivery_delay=2)
        assert (changed.rules.max_length, changed.rules.redelivery_delay) == (None, 2.0)
        topic = await remote.create_topic("t", max_backlog=3)
        assert (topic.max_backlog, (await remote.set_topic("t", overflow="wait")).overflow) == (3, "wait")
        assert await remote.publish("q", "tea") is True
        assert await remote.publish("q", amqp.Message(b"milk", subject="white")) is True
        with pytest.raises(OperationRefusedError) as refused:
            await remote.delete("q", if_empty=True)
        assert refused.value.reason == "precondition"
        assert await remote.purge("q") == 2
        await remote.publish("q", "x")
        assert await remote.delete("q", kind="queue") == 1
        assert await remote.delete("t", if_unused=True) == 0
        assert "q" not in [each.address async for each in local.nodes()]


async def test_messages_are_published_looked_at_taken_moved_and_sent_back() -> None:
    container = amqp.Container("peer")
    container.add_queue("q", dead_letter="dead", delivery_limit=1)
    container.add_queue("dead")
    container.add_queue("to")
    async with both(container) as (local, remote):
        for number in range(1500):
            await local.publish("q", amqp.Message(number, application_properties={"odd": number % 2 == 1}))
        here, there = await local.browse("q", 3, offset=1), await remote.browse("q", 3, offset=1)
        assert [each.message.body for each in there] == [1, 2, 3]
        assert [each.place for each in there] == [each.place for each in here]
        assert there[0].content.size == here[0].content.size
        assert len(await remote.browse("q", 2000)) == 1500
        size = there[0].octets
        assert len(await remote.browse("q", octets=3 * size)) == 3
        assert len(await remote.browse("q", octets=1)) == 1
        assert await remote.browse("q", 0) == []
        (taken,) = await remote.get("q")
        assert (taken.message.body, taken.redelivered) == (0, False)
        assert [each.message.body for each in await remote.get("q", 2, outcome="release")] == [1, 2]
        assert len(await remote.get("q", 150, outcome="reject")) == 150
        assert len(await remote.get("q", 150, octets=3 * size)) == 3
        assert await remote.get("q", 0) == []
        with pytest.raises(ManagementError, match="count=101: expected at most 100 with outcome='release'"):
            await remote.get("q", 101, outcome="release")
        assert await remote.redrive("dead", 10) == Redriven(moved={"q": 10}, left=140)
        assert await remote.redrive("dead", died_in="to") == Redriven(moved={}, left=140)
        assert await remote.redrive("dead", 40, died_in="q") == Redriven(moved={"q": 40}, left=100)
        with pytest.raises(ManagementError, match="no queue 'nowhere'"):
            await remote.redrive("dead", died_in="nowhere")
        assert await remote.redrive("dead") == Redriven(moved={"q": 100}, left=0)
        assert await remote.redrive("dead") == Redriven(moved={}, left=0)
        assert await remote.move("q", "to", 1100) == 1100
        assert await remote.move("q", "to") == 1500 - 1 - 3 - 1100
        assert await remote.move("q", "to") == 0


async def test_numbers_of_more_than_32_bits_are_those_of_management() -> None:
    container = amqp.Container("peer")
    container.add_queue("q")
    async with both(container) as (local, remote):
        await local.publish("q", "tea")
        for model in (local, remote):
            assert len(await model.browse("q", 2**40, octets=2**40)) == 1
            assert await model.browse("q", offset=2**40) == []
            page = await model.queues().page(2**40, 2**40)
            assert (page.items, page.more) == ((), False)
            with pytest.raises(ManagementError, match="expected 0 to 600"):
                await model.hold("q", 2**40)
        assert len(await remote.get("q", octets=2**40)) == 1


async def test_large_messages_are_taken_in_several_replies() -> None:
    container = amqp.Container("peer")
    container.add_queue("q")
    async with both(container) as (local, remote):
        for number in range(20):
            await local.publish("q", bytes([number]) * 2**20)
        assert [each.message.body[0] for each in await remote.get("q", 20)] == list(range(20))
        assert (await local.queue("q")).depth == 0


async def test_move_of_messages_that_match_goes_on_after_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.container.management.remote_management._STEP", 10)
    container = amqp.Container("peer")
    container.add_queue("q")
    container.add_queue("to", max_length=25, overflow="reject")
    async with both(container) as (local, remote):
        for number in range(40):
            await local.publish("q", amqp.Message(number, application_properties={"odd": number % 2 == 1}))
        assert await remote.move("q", "to", filter="odd = TRUE") == 20
        assert len(await remote.browse("q", filter="odd = TRUE")) == 0
        with pytest.raises(OperationRefusedError) as refused:
            await remote.move("q", "to")
        assert refused.value.reason == "refused"
        assert "steps" not in refused.value.description
        assert (await local.queue("q")).depth + (await local.queue("to")).depth == 40


async def test_refusal_after_some_steps_tells_how_many_messages_were_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trio_amqp10.container.management.remote_management._STEP", 10)
    container = amqp.Container("peer")
    container.add_queue("q", dead_letter="dead")
    container.add_queue("dead")
    container.add_queue("to", max_length=25, overflow="wait")
    async with both(container) as (local, remote):
        for _ in range(30):
            await local.publish("q", "x")
        with pytest.raises(OperationRefusedError) as refused:
            await remote.move("q", "to", 30)
        assert str(refused.value).endswith(
            "full; 5 messages were moved before; 20 messages were moved before, in earlier steps (422)"
        )
        assert (await local.queue("to")).depth == 25
        await local.move("to", "q")
        await local.get("q", 30, outcome="reject")
        await local.set_queue("q", max_length=15, overflow="reject")
        with pytest.raises(OperationRefusedError) as refused:
            await remote.redrive("dead")
        assert refused.value.description.endswith("; 10 messages were moved before, in earlier steps")
        assert ((await local.queue("q")).depth, (await local.queue("dead")).depth) == (10, 20)


async def test_queue_is_held_and_redirected() -> None:
    container = amqp.Container("peer")
    queue = container.add_queue("q")
    async with both(container) as (_, remote), container.connect() as conn:
        await remote.hold("q", 0.5)
        assert queue.is_held
        await remote.hold("q", 0)
        assert not queue.is_held
        await remote.redirect("q", "amqp://b.example:5672/q")
        with pytest.raises(amqp.LinkRedirectError):
            async with conn.open_sender("q"):
                pytest.fail("it is open")
        await remote.redirect("q", None)
        for seconds in (-1, 601, "5"):
            with pytest.raises(OperationRefusedError, match=r"seconds=.*: expected"):
                await remote.hold("q", seconds)


async def test_definitions_go_from_one_container_to_another() -> None:
    async with both(await busy()) as (_, source), both() as (there, target):
        exported = await source.export_definitions()
        imported = await target.import_definitions(exported)
        assert imported.left_out == ()
        assert imported.made == {
            "queues": 1,
            "topics": 1,
            "declared-queues": 1,
            "exchanges": 1,
            "bindings": 2,
        }
        assert await there.export_definitions() == exported
        rabbit = {
            "rabbit_version": "4",
            "users": [{"name": "guest"}],
            "queues": [],
            "vhosts": [{"name": "/"}],
        }
        done = await target.import_definitions(rabbit, virtual_host="/")
        assert done.left_out == (
            LeftOut(kind="users", name="guest", reason="users are given to serve, not defined"),
        )
        with pytest.raises(OperationRefusedError) as refused:
            await target.import_definitions({"a": 1})
        assert refused.value.reason == "invalid"
        with pytest.raises(ManagementError, match="expected values of JSON; Object of type bytes"):
            await target.import_definitions({"a": b"x"})


async def test_connection_and_link_of_another_are_closed_with_a_reason() -> None:
    container = amqp.Container("peer")
    container.add_queue("q")
    async with both(container) as (_, remote), container.connect(container_id="other") as conn:
        async with conn.open_receiver("q") as receiver:
            (link,) = [each async for each in remote.links() if each.address == "q"]
            await remote.close_link(link.identity, "tidying")
            with pytest.raises(amqp.LinkDetachedError, match="tidying"):
                await receiver.receive()
        (number,) = [each.number async for each in remote.connections() if each.container_id == "other"]
        await remote.close_connection(number)
        with pytest.raises(amqp.ConnectionClosedError, match="closed by management"):
            await conn.wait_closed()
        with pytest.raises(OperationRefusedError, match=f"no connection '{number}'"):
            await remote.close_connection(number, "again")


async def test_message_that_cannot_be_encoded_is_not_sent() -> None:
    async with both() as (local, remote):
        await local.create_queue("q")
        with pytest.raises(ManagementError, match=r"no type for a builtins\.object") as wrong:
            await remote.publish("q", object())
        assert wrong.value.reason == "invalid"


# -- names and arguments of other protocols -------------------------------------------------


async def test_arguments_that_amqp_1_0_does_not_have_leave_the_list_readable() -> None:
    deep: Any = 1
    for _ in range(30):
        deep = [deep]
    container = amqp.Container("peer")
    container.add_broker()
    arguments = {"price": Decimal("1.50"), "deep": deep, "\udcff": "x"}
    await container.management.declare_queue("q", arguments)
    await container.management.declare_exchange("x")
    await container.management.bind("x", "q", "k\udcff")
    async with both(container) as (_, remote):
        (entity,) = [each async for each in remote.entities("queue") if each["name"] == "q"]
        assert (entity["arguments"]["price"], entity["arguments"]["\\udcff"]) == ("1.50", "x")
        assert "..." in str(entity["arguments"]["deep"])
        assert (await remote.entity("queue", "q"))["arguments"]["price"] == "1.50"
        assert [each.key async for each in remote.bindings()] == ["k\\udcff"]
        assert dict((await remote.queue("q")).arguments) == arguments


# -- rights ---------------------------------------------------------------------------------

NODE = ("ada", "send receive", "$management")


@asynccontextmanager
async def logged_in(*rules: tuple[str, ...], password: str = "enigma") -> AsyncGenerator[Any]:
    """A connection of ada to a container with these rules."""
    container = amqp.Container("peer", authorise=amqp.Rules(("ada", "open"), *rules))  # type: ignore[arg-type]
    container.add_management()
    container.add_queue("q")
    await container.management.publish("q", "tea")
    sasl = amqp.sasl.Server(users={"ada": "enigma"})
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(
            lambda **kwargs: container.serve("amqp://127.0.0.1:0", sasl=sasl, **kwargs)
        )
        url = listener.url.replace("//", f"//ada:{password}@")
        try:
            async with amqp.open_connection(url) as conn:
                yield container, conn
        finally:
            nursery.cancel_scope.cancel()


async def test_wrong_password_is_a_security_error() -> None:
    with pytest.raises(ExceptionGroup) as group:
        async with logged_in(NODE, password="wrong"):
            pytest.fail("it is in")
    assert [type(each).__name__ for each in group.value.exceptions] == ["AuthenticationError"]
    assert group.value.subgroup(amqp.SecurityError)


async def test_user_with_monitor_alone_sees_and_changes_nothing() -> None:
    async with logged_in(NODE, ("ada", "create"), ("ada", "monitor", "* $management/*")) as (container, conn):
        async with conn.open_management() as remote:
            assert "q" in [each.address async for each in remote.queues()]
            assert [each.name async for each in remote.users()] == ["ada"]
            assert (await remote.describe()).name == "peer"
            changes: list[Callable[[], Any]] = [
                lambda: remote.purge("q"),
                lambda: remote.browse("q"),
                lambda: remote.get("q"),
                lambda: remote.publish("q", "x"),
                lambda: remote.delete("q"),
                lambda: remote.hold("q", 1),
                lambda: remote.redirect("q", None),
                lambda: remote.move("q", "other"),
                lambda: remote.redrive("q"),
                lambda: remote.close_connection(1),
                lambda: remote.close_link("1/sender/x"),
            ]
            for change in changes:
                with pytest.raises(OperationRefusedError) as refused:
                    await change()
                assert (refused.value.reason, refused.value.status) == ("forbidden", 403)
        assert (await container.management.queue("q")).ready == 1


async def test_user_who_may_not_send_to_the_node_is_refused_when_it_is_opened() -> None:
    async with logged_in(("ada", "create monitor")) as (_, conn):
        with pytest.raises(amqp.LinkRefusedError) as refused:
            async with conn.open_management():
                pytest.fail("it is open")
        assert refused.value.condition == "amqp:unauthorized-access"


# -- other peers ----------------------------------------------------------------------------


async def test_peer_without_the_node_is_refused_when_it_is_opened() -> None:
    async with amqp.Container(strict=True).connect() as conn:
        with pytest.raises(amqp.LinkRefusedError, match=r"amqp:not-found"):
            async with conn.open_management():
                pytest.fail("it is open")


async def test_rabbitmq_has_no_such_node() -> None:
    async with RabbitMQ().container.connect() as conn:
        with pytest.raises(amqp.LinkRefusedError):
            async with conn.open_management():
                pytest.fail("it is open")


async def test_event_hubs_refuse_what_they_do_not_have(autojump_clock: MockClock) -> None:
    async with event_hubs() as (_, conn), conn.open_management() as remote:
        calls: list[Callable[[], Any]] = [
            lambda: remote.purge("clicks"),
            lambda: remote.queues().page(),
            lambda: remote.entity("queue", "clicks"),
        ]
        for call in calls:
            with pytest.raises(OperationRefusedError) as refused:
                await call()
            assert refused.value.status >= 400


async def test_queue_in_place_of_the_node_never_replies(autojump_clock: MockClock) -> None:
    container = amqp.Container()
    container.add_queue("$management")
    async with container.connect() as conn, conn.open_management(timeout=5) as remote:
        for call in (lambda: remote.purge("q"), lambda: remote.queues().page()):
            with pytest.raises(trio.TooSlowError, match=r"\$management did not answer \w+ within 5 s"):
                await call()


async def test_peer_of_another_kind_says_that_it_does_not_know_the_operation() -> None:
    async with replying(None, 501) as remote:
        with pytest.raises(OperationRefusedError) as refused:
            await remote.purge("q")
        assert refused.value.reason == "not-implemented"


@asynccontextmanager
async def replying(body: Any, status: int = 200) -> AsyncGenerator[RemoteManagement]:
    container = amqp.Container()

    @container.function("$management")
    async def answer(message: amqp.Message) -> amqp.Message:
        return amqp.Message(body, application_properties={"statusCode": status})

    async with container.connect() as conn, conn.open_management() as remote:
        yield remote


STRANGE: list[tuple[str, Any, Callable[[RemoteManagement], Any]]] = [
    ("count=None: expected a whole number", {}, lambda it: it.purge("q")),
    ("count='3': expected a whole number", {"count": "3"}, lambda it: it.move("q", "to", 1)),
    ("counts=5: expected a map", {"made": 5, "left-out": []}, lambda it: it.import_definitions({})),
    ("left-out=", {"made": {}, "left-out": [["a"]]}, lambda it: it.import_definitions({})),
    ("left-out=", {"made": {}, "left-out": [["a", "b", 3]]}, lambda it: it.import_definitions({})),
    ("left-out=None", {"made": {}}, lambda it: it.import_definitions({})),
    ("definitions='x': expected an object", {"definitions": "x"}, lambda it: it.export_definitions()),
    ("definitions=None: expected an object", {}, lambda it: it.export_definitions()),
    ("definitions='[[[", {"definitions": "[" * 100_000}, lambda it: it.export_definitions()),
    ("definitions='5': expected an object", {"definitions": "5"}, lambda it: it.export_definitions()),
    ("messages=None: expected a list", {}, lambda it: it.browse("q")),
    ("messages=5: expected a map", {"messages": [5]}, lambda it: it.get("q")),
    ("message=nothing: expected binary", {"messages": [{}]}, lambda it: it.browse("q")),
    ("routed=None: expected true or false", {}, lambda it: it.publish("q", "x")),
    ("counts=None: expected a map", {"left": 1}, lambda it: it.redrive("q", 1)),
    ("left=None: expected a whole number", {"moved": {}}, lambda it: it.redrive("q", 1)),
    ("status=nothing: expected a string", {}, lambda it: it.queue("q")),
    ("status='topic': expected 'queue'", {"status": "topic"}, lambda it: it.create_queue("q")),
    ("number=nothing: expected a whole number", {}, lambda it: it.connection(1)),
    (
        "name=nothing: expected a string",
        {"attributeNames": [], "results": [[]]},
        lambda it: it.users().page(),
    ),
    ("expected a table", {}, lambda it: it.users().count()),
]


@pytest.mark.parametrize(("fault", "body", "call"), STRANGE)
async def test_reply_of_another_shape_is_an_error(
    fault: str, body: Any, call: Callable[[RemoteManagement], Any]
) -> None:
    async with replying(body) as remote:
        with pytest.raises(amqp.RemoteProtocolError) as wrong:
            await call(remote)
    assert "has another shape than that of a container" in str(wrong.value)
    assert fault in str(wrong.value)


# -- requests at the same time, cancellation, losses ----------------------------------------


async def test_many_requests_at_once_get_each_its_own_reply() -> None:
    async with both() as (_, remote):
        found: dict[str, QueueStatus] = {}

        async def make(name: str) -> None:
            found[name] = await remote.create_queue(name)

        names = [f"q{number}" for number in range(150)]
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                for name in names:
                    nursery.start_soon(make, name)
        assert {name: each.address for name, each in found.items()} == {name: name for name in names}


async def test_cancelled_purge_may_be_done_and_the_next_request_has_its_own_reply() -> None:
    async with both() as (local, remote):
        await local.create_queue("q")
        await local.publish("q", "tea")
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def purge() -> None:
                await remote.purge("q")

            while (await local.queue("q")).ready:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert (await remote.queue("q")).ready == 0


async def test_list_of_ten_thousand_queues_comes_in_pages() -> None:
    container = amqp.Container("peer")
    for number in range(10_000):
        container.add_queue(f"q{number}")
    async with both(container) as (_, remote):
        names = [each.address async for each in remote.queues()]
        assert [name for name in names if name.startswith("q")] == [f"q{number}" for number in range(10_000)]
        assert await remote.queues().count() == len(names)
        assert [each.address for each in (await remote.queues().page(9_998, 2)).items] == ["q9998", "q9999"]
        handled = container.nodes["$management"].statistics()["handled"]
        assert handled < 100


class _Cut:
    """A container that is served over TCP, and whose connections are cut in the middle of a request."""

    def __init__(self) -> None:
        self.container = amqp.Container("peer")
        self.waiting = trio.Event()
        self.asked: list[str] = []

        @self.container.function("$management")
        async def answer(message: amqp.Message) -> amqp.Message:
            operation = message.application_properties["operation"]
            self.asked.append(operation)
            if len(self.asked) == 1:
                self.waiting.set()
                await trio.sleep_forever()
            return amqp.Message({"count": 7}, application_properties={"statusCode": 200})


@pytest.mark.parametrize("reconnect", [False, True])
async def test_connection_lost_in_the_middle_is_an_error_and_the_next_call_works_if_it_is_restored(
    reconnect: bool,
) -> None:
    peer = _Cut()
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(peer.container.serve, "amqp://127.0.0.1:0")
        async with (
            amqp.open_connection(listener.url, reconnect=reconnect) as conn,
            conn.open_management() as remote,
        ):
            async with trio.open_nursery() as cutting:

                @cutting.start_soon
                async def purge() -> None:
                    await peer.waiting.wait()
                    (connected,) = peer.container.connected
                    connected.close("amqp:connection:forced", "maintenance")

                with pytest.raises(amqp.ConnectionClosedError):
                    await remote.purge("q")
            if reconnect:
                with trio.fail_after(20):
                    assert await remote.purge("q") == 7
            else:
                with pytest.raises(amqp.ConnectionClosedError):
                    await remote.purge("q")
            assert peer.asked == ["PURGE"] * (2 if reconnect else 1)
        nursery.cancel_scope.cancel()


async def test_own_connection_is_closed_by_a_request_and_the_call_raises() -> None:
    container = amqp.Container("peer")
    container.add_management()
    with pytest.raises(amqp.ConnectionClosedError):
        async with container.connect() as conn, conn.open_management() as remote:
            (own,) = [each async for each in remote.connections()]
            await remote.close_connection(own.number, "me")


async def test_calls_after_the_block_raise() -> None:
    async with both() as (_, remote):
        assert repr(remote) == "<RemoteManagement at '$management'>"
    with pytest.raises(trio.ClosedResourceError):
        await remote.purge("q")
    await wait_all_tasks_blocked()
