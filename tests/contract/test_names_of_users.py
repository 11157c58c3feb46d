"""Names belong to users, reserved names to nobody, and a permission to the thing that it was given for."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp091.server import script as script091
from tests.amqp_10_3.server import script as script103
from tests.amqp_fast.server import script as script_fast
from trio_amqp10.amqp091 import spec as spec091
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.amqp_10_3 import spec as spec103
from trio_amqp10.amqp_fast import spec as spec_fast
from trio_amqp10.amqp_fast.server.protocol import AmqpFast
from trio_amqp10.broker.exchanges.addresses import spell_exchange
from trio_amqp10.container import Container
from trio_amqp10.sasl import Server

from .test_rights import Permissions

USERS = Server(users={"ada": "a", "mallory": "m"})
ADA = {"mechanism": "PLAIN", "LOGIN": "ada", "PASSWORD": "a"}
MALLORY = {"mechanism": "PLAIN", "LOGIN": "mallory", "PASSWORD": "m"}
RESERVED = ["$cbs", "$management", "amq.mine", "temporary/mine", "/exchanges/x", "/exchanges/x/k"]


def permits(*rights: tuple[str, str | None], later: bool = False) -> Permissions:
    return Permissions(rights, later=later)


# -- AMQP/Fast ------------------------------------------------------------------------------


async def test_client_name_of_amqp_fast_is_a_name_of_its_user() -> None:
    container = Container()
    dialect = AmqpFast(container)
    async with (
        script_fast.opened(container, USERS, dialect, client_name="ada-svc", **MALLORY) as mallory,
        script_fast.opened(container, USERS, dialect, client_name="ada-svc", **ADA) as ada,
    ):
        assert await mallory.quiet()
        assert await ada.quiet()


async def test_temporary_destination_of_amqp_fast_is_its_users_alone() -> None:
    container = Container()
    dialect = AmqpFast(container)
    async with (
        script_fast.opened(container, USERS, dialect, client_name="svc", **ADA) as ada,
        script_fast.opened(container, USERS, dialect, client_name="svc", **MALLORY) as mallory,
    ):
        await ada.handle("ada/inbox", temporary=True)
        assert (await ada.heard()).name == "handle created"
        await mallory.handle("ada/inbox", temporary=True)
        assert await mallory.code() == ("handle", 403)
        await mallory.handle("ada/inbox", 2)
        assert await mallory.code(spec_fast.HandleConsume(handle_id=2)) == ("handle", 403)


async def test_temporary_destination_of_amqp_fast_needs_no_permission_but_to_make_it() -> None:
    container = Container(authorise=permits(("create", "ada/inbox")))
    async with script_fast.opened(container) as ada:
        await ada.handle("ada/inbox", temporary=True)
        assert (await ada.heard()).name == "handle created"
        await ada.consume()
        await ada.send(b"1")
        assert (await ada.got())[1] == b"1"
        async with script_fast.opened(container) as other:
            await other.handle("ada/inbox")
            await other.send(b"2")
            assert await other.code() == ("handle", 403)


@pytest.mark.parametrize("name", RESERVED)
async def test_reserved_name_is_nobodys_temporary_destination(name: str) -> None:
    container = Container()
    async with script_fast.opened(container) as client:
        await client.handle(name, temporary=True)
        assert await client.code() == ("handle", 403)
    assert name not in container.nodes


async def test_part_of_a_message_is_kept_for_the_user_that_sent_it() -> None:
    container = Container()
    container.add_queue("q")
    dialect = AmqpFast(container)
    owners = []
    for login in (ADA, MALLORY):
        async with script_fast.opened(container, USERS, dialect, client_name="svc", **login):
            (peer,) = container.connected
            owners.append(peer.engine.owner)  # type: ignore[attr-defined]
    assert owners[0] != owners[1]


# -- 0-9-1 and 10.3 -------------------------------------------------------------------------


@pytest.mark.parametrize("name", RESERVED)
async def test_reserved_name_is_nobodys_queue(name: str) -> None:
    container = Container()
    async with script091.opened(container) as client:
        assert await client.refused(spec091.QueueDeclare(queue=name)) == 403
        assert await client.refused(spec091.QueueDeclare(queue=f"\n{name}")) == 403
    async with script103.opened(container) as client103:
        _, code = await client103.refused(spec103.QueueDeclare(queue=name))
        assert code == 403
    assert name not in container.nodes


async def test_name_with_line_feeds_is_asked_for_as_it_is_made() -> None:
    container = Container(authorise=permits(("create", "a\nb"), ("delete", "a\nb"), ("receive", "a\nb")))
    container.add_broker().declare_queue("ab")
    async with script091.opened(container) as client:
        assert await client.refused(spec091.QueueDeclare(queue="a\nb", durable=True)) == 403
        assert await client.refused(spec091.QueueDeclare(queue="a\nb", passive=True)) == 403
        assert await client.refused(spec091.QueueDelete(queue="a\nb")) == 403
        assert await client.refused(spec091.ExchangeDeclare(exchange="a\nb")) == 403


@pytest.mark.parametrize("later", [False, True])
async def test_exclusive_queue_is_the_connections_own_as_long_as_it_lasts(
    later: bool, autojump_clock: trio.testing.MockClock
) -> None:
    permissions = permits(("create", "mine"), ("receive", "/exchanges/amq.topic/#"), later=later)
    container = Container(authorise=permissions)
    dialect = Amqp091(container)
    async with script091.opened(container, dialect=dialect) as owner:
        assert (
            await owner.ask(spec091.QueueDeclare(queue="mine", exclusive=True))
        ).name == "queue.declare-ok"
        bind = spec091.QueueBind(queue="mine", exchange="amq.topic", routing_key="a")
        assert (await owner.ask(bind)).name == "queue.bind-ok"
        await owner.ask(spec091.ConfirmSelect())
        await owner.publish("", "mine", b"1")
        await owner.heard("basic.ack")
        assert (await owner.ask(spec091.BasicGet(queue="mine", no_ack=True))).name == "basic.get-ok"
        async with script091.opened(container, dialect=dialect) as other:
            assert await other.refused(spec091.BasicGet(queue="mine")) == 403
        assert (await owner.ask(spec091.QueueDelete(queue="mine"))).name == "queue.delete-ok"
        # The name is another's now: what was permitted to the owner of the queue is not remembered for it.
        container.broker.declare_queue("mine")  # type: ignore[union-attr]
        for method in (spec091.BasicGet(queue="mine"), spec091.QueueDelete(queue="mine"), bind):
            assert await owner.refused(method) == 403
        await owner.publish("", "mine", b"2")
        assert await owner.close_code(await owner.hear()) == 403


async def test_permission_to_create_is_asked_for_each_time() -> None:
    permissions = permits(("create", "q"), ("delete", "q"))
    container = Container(authorise=permissions)
    async with script091.opened(container) as client:
        assert (await client.ask(spec091.QueueDeclare(queue="q"))).name == "queue.declare-ok"
        permissions.permitted.clear()
        assert await client.refused(spec091.QueueDelete(queue="q")) == 403
        assert await client.refused(spec091.QueueDeclare(queue="q")) == 403


async def test_every_key_of_many_is_asked_for() -> None:
    keys = [f"q{number}" for number in range(3000)]
    permissions = permits(*(("send", key) for key in keys))
    container = Container(authorise=permissions)
    async with script091.opened(container) as client:
        await client.ask(spec091.ConfirmSelect())
        await client.publish("", "q0", b"", headers={"CC": keys})
        await client.heard("basic.ack")
        assert permissions.asked == [("send", key) for key in keys]
        await client.publish("", "q0", b"", headers={"CC": ["q0"], "BCC": [*keys[:9], "secret"]})
        assert await client.close_code(await client.hear()) == 403


@pytest.mark.parametrize("later", [False, True])
async def test_binding_does_not_tell_the_type_of_an_exchange(
    later: bool, autojump_clock: trio.testing.MockClock
) -> None:
    answers = set()
    for name in ("fan", "top", "non"):
        permissions = permits(("send", "mine"), later=later)
        container = Container(authorise=permissions)
        broker = container.add_broker()
        broker.declare_queue("mine")
        broker.declare_exchange("fan", "fanout")
        broker.declare_exchange("top", "topic")
        async with script091.opened(container) as client:
            began = trio.current_time()
            heard = await client.ask(spec091.QueueBind(queue="mine", exchange=name, routing_key="k"))
            told = repr(heard), trio.current_time() - began, tuple(permissions.asked)
            answers.add(repr(told).replace(name, "NAME"))
    assert len(answers) == 1


async def test_key_of_a_binding_is_not_enough_for_an_exchange_that_ignores_it() -> None:
    container = Container(authorise=permits(("send", "mine"), ("receive", "/exchanges/fan/k")))
    broker = container.add_broker()
    broker.declare_queue("mine")
    broker.declare_exchange("fan", "fanout")
    async with script091.opened(container) as client:
        assert await client.refused(spec091.QueueBind(queue="mine", exchange="fan", routing_key="k")) == 403
    assert not len(broker.bindings)


# -- AMQP 1.0 -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "spelt"),
    [
        ("/exchanges/x/secret", "/exchanges/x/secret"),
        ("/exchanges/x/%73ecret", "/exchanges/x/secret"),
        ("/exchanges/%78", "/exchanges/x"),
        ("/exchanges/x/a%2fb", "/exchanges/x/a%2Fb"),
        ("/exchanges/x/a b", "/exchanges/x/a%20b"),
        ("/exchanges/x/%", "/exchanges/x/%25"),
        ("/exchanges/x/é", "/exchanges/x/%C3%A9"),
        ("/exchanges/x/a.*", "/exchanges/x/a.*"),
    ],
)
async def test_address_of_an_exchange_has_one_spelling(address: str, spelt: str) -> None:
    assert spell_exchange(address) == spelt
    assert spell_exchange(spelt) == spelt
    permissions = permits(("send", spelt))
    container = Container(authorise=permissions)
    container.add_broker().declare_exchange("x", "topic")
    async with container.connect() as connection, connection.open_sender(address):
        assert permissions.asked == [("send", spelt)]


async def test_exchange_that_does_not_exist_is_no_queue() -> None:
    container = Container()
    container.add_broker()
    async with container.connect() as connection:
        with pytest.raises(amqp.LinkRefusedError, match="amqp:not-found"):
            async with connection.open_sender("/exchanges/none/k"):
                pass
    assert "/exchanges/none/k" not in container.nodes


async def test_annotation_for_further_keys_sends_nowhere() -> None:
    container = Container()
    broker = container.add_broker()
    broker.declare_queue("mine", {"x-dead-letter-exchange": ""})
    broker.declare_queue("others")
    async with container.connect() as connection:
        async with connection.open_sender("mine") as sender:
            await sender.send(amqp.Message("x", annotations={"x-cc": ["others"], "x-routing-key": "others"}))
        async with connection.open_receiver("mine") as receiver:
            (await receiver.receive()).reject()
    assert broker.queues["others"].available == 0


async def test_reply_of_a_function_needs_the_permission_of_the_peer_that_asks() -> None:
    permissions = permits(("send", "echo"))
    container = Container(authorise=permissions)
    container.add_queue("others")

    @container.function("echo")
    async def echo(request: amqp.Message) -> Any:
        return request.body

    async with container.connect() as connection, connection.open_sender("echo") as sender:
        await sender.send(amqp.Message("x", reply_to="others"))
        assert len(container.nodes["others"]) == 0  # type: ignore[arg-type]
        permissions.permitted.add(("send", "others"))
        await sender.send(amqp.Message("x", reply_to="others"))
        assert len(container.nodes["others"]) == 1  # type: ignore[arg-type]
