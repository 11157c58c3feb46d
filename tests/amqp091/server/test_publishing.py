"""Publishes: confirms, returns, transactions, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10 import SqliteStore
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.server.publishing import Publishing
from trio_amqp10.container import Container, Rules

from .script import Client, Heard, opened

if TYPE_CHECKING:
    from pathlib import Path

    from trio_amqp10.amqp091.server.native_message import Published
    from trio_amqp10.broker.exchanges.topology import Topology


async def confirming(client: Client, **arguments: Any) -> None:
    await client.ask(spec.QueueDeclare(queue="q", arguments=arguments))
    assert (await client.ask(spec.ConfirmSelect())).name == "confirm.select-ok"


async def test_publish_is_confirmed_when_the_queue_has_it() -> None:
    async with opened() as client:
        await confirming(client)
        await client.publish("", "q", b"1")
        ack = await client.hear()
        assert ack == {"delivery_tag": 1, "multiple": False}


async def test_confirms_of_one_read_are_merged() -> None:
    async with opened() as client:
        await confirming(client)
        sent = client.stream.send_all
        octets = b""

        async def collect(data: bytes) -> None:
            nonlocal octets
            octets += data

        client.stream.send_all = collect  # type: ignore[method-assign]
        for _ in range(20):
            await client.publish("", "q")
        client.stream.send_all = sent  # type: ignore[method-assign]
        await sent(octets)
        assert await client.hear() == {"delivery_tag": 20, "multiple": True}


async def test_publish_is_nacked_when_the_queue_rejects_what_it_has_no_room_for() -> None:
    async with opened() as client:
        await confirming(client, **{"x-max-length": 1, "x-overflow": "reject-publish"})
        await client.publish("", "q")
        assert (await client.hear()).name == "basic.ack"  # type: ignore[union-attr]
        await client.publish("", "q")
        nack = await client.hear()
        assert nack is not None
        assert (nack.name, nack["delivery_tag"]) == ("basic.nack", 2)


@pytest.mark.parametrize("by_hand", [True, False])
async def test_publishes_to_one_queue_end_as_those_by_any_route(
    by_hand: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []
    put = Publishing._put

    def counted(self: Publishing, broker: Topology, published: Published, number: int) -> bool:
        taken.append(by_hand and put(self, broker, published, number))
        return taken[-1]

    monkeypatch.setattr(Publishing, "_put", counted)
    container = Container()
    container.add_topic("prices")
    async with opened(container) as client:
        await confirming(client, **{"x-max-length": 2, "x-overflow": "reject-publish"})
        heard: list[Heard | None] = []
        for key, headers in (("q", {}), ("q", {"CC": ["q"]}), ("q", {}), ("none", {}), ("prices", {})):
            await client.publish("", key, b"tea", mandatory=True, headers=headers or None)
            heard.append(await client.hear())  # one by one: confirms of several may come as one
        heard.append(await client.hear())  # that of what came back
        settled = [
            (each.name, each["delivery_tag"]) for each in heard if each is not None and "delivery_tag" in each
        ]
        assert sorted(settled, key=lambda each: each[1]) == [
            ("basic.ack", 1),
            ("basic.ack", 2),
            ("basic.nack", 3),
            ("basic.ack", 4),
            ("basic.ack", 5),
        ]
        assert [
            each["routing_key"] for each in heard if each is not None and each.name == "basic.return"
        ] == [b"none"]
        assert taken == ([True, True, False, False] if by_hand else [False] * 4)
        declared = await client.ask(spec.QueueDeclare(queue="q", passive=True))
        assert declared["message_count"] == 2
        broker = container.broker
        assert broker is not None
        assert broker.exchanges[""].figures == {"arrived": 3, "unroutable": 0}


async def test_unroutable_publish_is_returned_before_its_confirm_when_it_is_mandatory() -> None:
    async with opened() as client:
        await confirming(client)
        await client.publish("amq.direct", "nowhere", b"back", mandatory=True, message_id="m")
        returned = await client.hear()
        assert returned is not None
        assert (returned.name, returned["reply_code"], returned["reply_text"]) == (
            "basic.return",
            312,
            b"NO_ROUTE",
        )
        assert (returned.body, returned.properties[8]) == (b"back", b"m")
        assert await client.hear() == {"delivery_tag": 1, "multiple": False}


async def test_unroutable_publish_is_confirmed_when_it_is_not_mandatory() -> None:
    async with opened() as client:
        await confirming(client)
        await client.publish("", "nowhere")
        assert (await client.hear()).name == "basic.ack"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("exchange", "properties", "code"),
    [
        ("nope", {}, 404),
        ("", {"expiration": "soon"}, 406),
        ("", {"expiration": "-1"}, 406),
        ("", {"expiration": "315360000001"}, 406),
        ("", {"user_id": "somebody"}, 406),
        ("", {"headers": {"CC": "one"}}, 406),
        ("", {"headers": {"BCC": [1]}}, 406),
        ("", {"reply_to": "amq.rabbitmq.reply-to"}, 406),
    ],
)
async def test_publish_is_refused_with_the_code_that_it_has(
    exchange: str, properties: dict[str, Any], code: int
) -> None:
    async with opened() as client:
        await client.publish(exchange, "q", **properties)
        assert await client.close_code(await client.hear()) == code


async def test_publish_is_refused_when_it_is_immediate() -> None:
    async with opened() as client:
        await client.publish("", "q", immediate=True)
        assert await client.close_code(await client.hear()) == 540


async def test_publish_is_refused_when_the_client_may_not_send_there() -> None:
    container = Container(authorise=Rules(("*", "create open receive", "*"), ("*", "send", "free")))
    async with opened(container) as client:
        await client.ask(spec.QueueDeclare(queue="free"))
        await client.publish("", "free", b"1")
        assert (await client.ask(spec.BasicGet(queue="free"))).body == b"1"
        await client.publish("", "other")
        assert await client.close_code(await client.hear()) == 403


async def test_copies_go_to_further_keys_and_the_blind_ones_are_not_seen() -> None:
    async with opened() as client:
        for name in ("a", "b", "c"):
            await client.ask(spec.QueueDeclare(queue=name))
        await client.publish("", "a", b"x", headers={"CC": ["b"], "BCC": ["c"], "n": 1})
        for name in ("a", "b", "c"):
            got = await client.ask(spec.BasicGet(queue=name, no_ack=True))
            assert got.body == b"x"
            assert [key for key, _ in got.properties[2]] == [b"CC", b"n"]


async def test_undeclared_queue_is_not_made_by_a_publish() -> None:
    container = Container()
    async with opened(container) as client:
        await client.publish("", "unheard", b"1")
        await client.ask(spec.QueueDeclare(queue="mark"))
        assert "unheard" not in container.nodes


async def test_properties_and_body_come_out_as_they_went_in() -> None:
    async with opened() as client:
        await client.ask(spec.QueueDeclare(queue="q"))
        body = bytes(range(256)) * 100
        await client.publish("", "q", body, headers={"n": None, "l": [1, "x"]}, priority=3, app_id="app")
        got = await client.ask(spec.BasicGet(queue="q"))
        assert got.body == body
        assert (got.properties[4], got.properties[12]) == (3, b"app")
        assert got.properties[2] == [(b"n", ("V", None)), (b"l", ("A", [("I", 1), ("S", b"x")]))]


# -- transactions ---------------------------------------------------------------------------


async def in_transaction(client: Client) -> None:
    await client.ask(spec.QueueDeclare(queue="q"))
    assert (await client.ask(spec.TxSelect())).name == "tx.select-ok"


async def test_transaction_publishes_at_its_commit() -> None:
    async with opened() as client:
        await in_transaction(client)
        for body in (b"1", b"2"):
            await client.publish("", "q", body)
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"
        assert (await client.ask(spec.TxCommit())).name == "tx.commit-ok"
        assert [(await client.ask(spec.BasicGet(queue="q"))).body for _ in range(2)] == [b"1", b"2"]


async def test_transaction_publishes_nothing_when_it_is_rolled_back() -> None:
    async with opened() as client:
        await in_transaction(client)
        await client.publish("", "q")
        assert (await client.ask(spec.TxRollback())).name == "tx.rollback-ok"
        assert (await client.ask(spec.TxCommit())).name == "tx.commit-ok"
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"


async def test_acknowledgement_is_undone_when_its_transaction_is_rolled_back() -> None:
    container = Container()
    async with opened(container) as client:
        await in_transaction(client)
        await client.publish("", "q", b"1")
        await client.ask(spec.TxCommit())
        await client.ask(spec.BasicGet(queue="q"))
        await client.say(spec.BasicAck(delivery_tag=1))
        await client.ask(spec.TxRollback())
        assert len(container.nodes["q"]) == 1  # type: ignore[arg-type]
        await client.say(spec.BasicAck(delivery_tag=1))
        await client.ask(spec.TxCommit())
        assert len(container.nodes["q"]) == 0  # type: ignore[arg-type]


async def test_mandatory_publish_is_returned_at_the_commit_of_its_transaction() -> None:
    async with opened() as client:
        await in_transaction(client)
        await client.publish("", "nowhere", b"x", mandatory=True)
        returned = await client.ask(spec.TxCommit())
        assert (returned.name, returned.body) == ("basic.return", b"x")
        assert (await client.hear()).name == "tx.commit-ok"  # type: ignore[union-attr]


async def test_commit_is_refused_when_a_queue_rejects_one_of_its_messages() -> None:
    async with opened() as client:
        await in_transaction(client)
        full = {"x-max-length": 1, "x-overflow": "reject-publish"}
        await client.ask(spec.QueueDeclare(queue="full", arguments=full))
        for _ in range(2):
            await client.publish("", "full")
        assert await client.refused(spec.TxCommit()) == 406


@pytest.mark.parametrize(
    ("first", "second"), [(spec.TxSelect(), spec.ConfirmSelect()), (spec.ConfirmSelect(), spec.TxSelect())]
)
async def test_confirms_and_transactions_exclude_each_other(first: spec.Method, second: spec.Method) -> None:
    async with opened() as client:
        for _ in range(2):
            assert (await client.ask(first)).name.endswith("-ok")
        assert await client.refused(second) == 406


async def test_commit_and_rollback_are_refused_without_a_transaction() -> None:
    async with opened() as client:
        assert await client.refused(spec.TxCommit()) == 406
        assert await client.refused(spec.TxRollback()) == 406


# -- the store ------------------------------------------------------------------------------


async def test_persistent_message_in_a_durable_queue_outlives_the_container(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store") as store:
        container = Container(store=store)
        async with opened(container) as client:
            await client.ask(spec.ExchangeDeclare(exchange="e", type="fanout", durable=True))
            await client.ask(spec.QueueDeclare(queue="q", durable=True))
            await client.ask(spec.QueueBind(queue="q", exchange="e"))
            await client.ask(spec.ConfirmSelect())
            await client.publish("e", "k", b"kept", delivery_mode=2, headers={"a": 1})
            await client.publish("e", "k", b"lost", delivery_mode=1)
            acks = 0
            while acks < 2:
                heard = await client.hear()
                assert heard is not None
                assert heard.name == "basic.ack"
                acks = heard["delivery_tag"]
        await container.flush()
    with SqliteStore(tmp_path / "store") as store:
        container = Container(store=store)
        async with opened(container) as client:
            got = await client.ask(spec.BasicGet(queue="q"))
            assert (got.body, got["exchange"], got["routing_key"]) == (b"kept", b"e", b"k")
            assert (got["redelivered"], got.properties[2]) == (True, [(b"a", ("I", 1))])
            assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"
            await client.publish("e", "again", b"routed")
            assert (await client.ask(spec.BasicGet(queue="q"))).body == b"routed"
        await container.flush()


async def test_names_and_keys_keep_octets_that_are_no_text() -> None:
    odd = b"\xff\xfe".decode(errors="surrogateescape")
    async with opened() as client:
        assert (await client.ask(spec.QueueDeclare(queue="q"))).name == "queue.declare-ok"
        assert (await client.ask(spec.ExchangeDeclare(exchange=odd, type="direct"))).name == (
            "exchange.declare-ok"
        )
        bind = spec.QueueBind(queue="q", exchange=odd, routing_key=odd)
        assert (await client.ask(bind)).name == "queue.bind-ok"
        await client.publish(odd, odd, b"tea")
        got = await client.ask(spec.BasicGet(queue="q"))
        assert (got["exchange"], got["routing_key"], got.body) == (b"\xff\xfe", b"\xff\xfe", b"tea")
