"""ServiceBus: topics, what is scheduled, requests, rights, addresses, and the stand-in in a thread."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.peer.errors import LinkRefusedError
from trio_amqp10.testing import service_bus
from trio_amqp10.testing.azure_emulator import EntityOptions, ServiceBus
from trio_amqp10.tokens import sign_sas
from trio_amqp10.wire.values import Array, Timestamp

from .helpers import HOST, ask, bus_of, locking, open_client, put, wall

if TYPE_CHECKING:
    from trio.testing import MockClock


def later(body: Any, seconds: float, **more: Any) -> amqp.Message:
    due = Timestamp(round((wall() + seconds) * 1000))
    return amqp.Message(body, annotations={"x-opt-scheduled-enqueue-time": due}, **more)


def wish(*messages: amqp.Message) -> dict[str, Any]:
    return {"messages": [{"message-id": "x", "message": each.to_payload()} for each in messages]}


async def test_scheduled_message_comes_when_it_is_due_with_a_new_number(autojump_clock: MockClock) -> None:
    async with open_client(bus_of(q=EntityOptions(lock_duration=600))) as conn:
        status, body = await ask(conn, "q", "schedule-message", wish(later("a", 60), later("b", 30)))
        assert (status, body) == (200, {"sequence-numbers": [1, 2]})
        await put(conn, "q", later("c", 90), later("d", -1))
        _, shown = await ask(conn, "q", "peek-message", {"from-sequence-number": 1, "message-count": 10})
        peeked = [amqp.Message.from_payload(each["message"]) for each in shown["messages"]]
        assert [(each.body, each.annotations["x-opt-message-state"]) for each in peeked] == [
            ("a", 2),
            ("b", 2),
            ("c", 2),
            ("d", 0),
        ]
        cancel = {"sequence-numbers": Array([1, 1], "long")}
        assert (await ask(conn, "q", "cancel-scheduled-message", cancel))[0] == 200
        assert await ask(conn, "q", "cancel-scheduled-message", cancel) == (
            404,
            "com.microsoft:message-not-found",
        )
        began = trio.current_time()
        async with conn.open_receiver("q") as receiver:
            got: list[Any] = []
            for _ in range(3):
                message = (await receiver.receive()).message
                number = message.annotations["x-opt-sequence-number"]
                got.append((message.body, number, round(trio.current_time() - began)))
        assert got == [("d", 4, 0), ("b", 5, 30), ("c", 6, 90)]


async def test_earlier_message_does_not_wait_for_the_timer_of_a_later_one(autojump_clock: MockClock) -> None:
    bus = bus_of(q=EntityOptions(lock_duration=600))
    async with open_client(bus) as conn, open_client(bus) as other:
        await put(conn, "q", later("late", 100))
        async with other.open_receiver("q") as one, conn.open_receiver("q", credit=1) as receiver:
            await wait_all_tasks_blocked()
            await put(conn, "q", later("early", 10))
            began = trio.current_time()
            assert (await one.receive()).message.body == "early"
            assert trio.current_time() - began == pytest.approx(10)
            await one.aclose()
            assert (await receiver.receive()).message.body == "late"
            assert trio.current_time() - began == pytest.approx(100)


async def test_topic_hands_messages_to_subscriptions_now_and_later(autojump_clock: MockClock) -> None:
    bus = bus_of()
    bus.add_topic("prices")
    bus.add_subscription("prices", "all")
    bus.add_subscription("prices", "oil", wants=lambda message: message.subject == "oil")
    async with open_client(bus) as conn:
        await put(conn, "prices", amqp.Message(1, subject="oil"), amqp.Message(2, subject="tea"))
        async with (
            conn.open_receiver("prices/subscriptions/ALL") as everything,
            conn.open_receiver("prices/Subscriptions/oil") as oil,
        ):
            assert [(await everything.receive()).message.body for _ in range(2)] == [1, 2]
            delivery = await oil.receive()
            assert delivery.message.body == 1
            delivery.reject()
            _, body = await ask(
                conn, "prices", "schedule-message", wish(later(3, 5, subject="oil"), later(4, 5))
            )
            await ask(
                conn, "prices", "cancel-scheduled-message", {"sequence-numbers": body["sequence-numbers"][1:]}
            )
            message = (await oil.receive()).message
            assert (message.body, message.annotations["x-opt-sequence-number"]) == (3, 2)
            assert (await everything.receive()).message.body == 3
        with pytest.raises(LinkRefusedError, match="takes no messages"):
            await put(conn, "prices/Subscriptions/oil", 5)
        with pytest.raises(LinkRefusedError, match="gives no messages"):
            async with conn.open_receiver("prices"):
                pass
    assert len(bus.entities["prices/Subscriptions/oil/$DeadLetterQueue"]) == 1


async def test_topic_takes_no_message_that_a_subscription_cannot_hold(autojump_clock: MockClock) -> None:
    bus = bus_of()
    bus.add_topic("t")
    bus.add_subscription(
        "t", "s", EntityOptions(requires_session=True), wants=lambda message: message.body == 1
    )
    async with open_client(bus) as conn:
        await put(conn, "t", 2, amqp.Message(1, group_id="g"))
        with pytest.raises(amqp.DeliveryRejectedError, match="requires sessions"):
            await put(conn, "t", 1)
    assert len(bus.entities["t/Subscriptions/s"]) == 1


async def test_peek_goes_on_from_a_number_and_ends(autojump_clock: MockClock) -> None:
    async with open_client(bus_of(q=None)) as conn:
        await put(conn, "q", *range(5), *(bytes(600_000) for _ in range(3)))

        async def peek(number: int, count: int) -> Any:
            status, body = await ask(
                conn, "q", "peek-message", {"from-sequence-number": number, "message-count": count}
            )
            return (status, len(body["messages"])) if status == 200 else status

        assert await peek(0, 3) == (200, 3)
        assert await peek(4, 100) == (200, 3)  # no more than a reply can take
        assert await peek(8, 100) == (200, 1)
        assert await peek(9, 100) == 204


WRONG: list[tuple[str, Any]] = [
    ("nonsense", {}),
    ("peek-message", None),
    ("peek-message", [1]),
    ("peek-message", {"from-sequence-number": 1, "message-count": -1}),
    ("peek-message", {"from-sequence-number": "1", "message-count": True}),
    ("renew-lock", {"lock-tokens": []}),
    ("renew-lock", {"lock-tokens": Array(["x"], "string")}),
    ("renew-lock", {"lock-tokens": [uuid.uuid4()]}),
    ("renew-lock", {"lock-tokens": uuid.uuid4()}),
    ("receive-by-sequence-number", {"sequence-numbers": [1]}),
    ("receive-by-sequence-number", {"sequence-numbers": [1] * 1001}),
    ("update-disposition", {"disposition-status": "completed"}),
    ("update-disposition", {"disposition-status": "defered", "lock-tokens": [uuid.uuid4()]}),
    ("schedule-message", {"messages": [{}]}),
    ("schedule-message", {"messages": [{"message": b"nonsense"}]}),
    ("schedule-message", {"messages": [{"message": amqp.Message("now").to_payload()}]}),
    ("cancel-scheduled-message", {"sequence-numbers": [1]}),
    ("renew-session-lock", {"session-id": "x"}),
    ("renew-session-lock", {}),
    ("get-session-state", {"session-id": 1}),
    ("set-session-state", {"session-id": "x", "session-state": "text"}),
    ("get-message-sessions", {}),
]


@pytest.mark.parametrize(("operation", "body"), WRONG, ids=lambda value: str(value)[:40])
async def test_request_that_makes_no_sense_gets_a_status(
    autojump_clock: MockClock, operation: str, body: Any
) -> None:
    bus = bus_of(q=EntityOptions(requires_session="session" in operation))
    async with open_client(bus) as conn:
        status, condition = await ask(conn, "q", operation, body)
        assert 400 <= status < 600 or (body is None and status == 400)
        assert re.match("com.microsoft:|amqp:", condition)
        if operation == "nonsense":
            assert (status, condition) == (501, "amqp:not-implemented")


async def test_key_permits_what_it_is_for(autojump_clock: MockClock) -> None:
    bus_of()  # the clock
    keys = {"sender": ("k1", "send"), "reader": ("k2", "receive create"), "maker": ("k3", "send create")}
    bus = ServiceBus(keys=keys, wall_clock=wall)
    bus.add_queue("Orders")
    peek = {"from-sequence-number": 1, "message-count": 1}
    async with open_client(bus, "sender", "k1") as conn:
        await put(conn, "orders", "tea")
        with pytest.raises(LinkRefusedError, match="unauthorized-access"):
            async with conn.open_receiver("orders"):
                pass
    async with open_client(bus, "reader", "k2") as conn:
        assert (await ask(conn, "orders", "peek-message", peek))[0] == 200
        assert await ask(conn, "orders", "schedule-message", {}) == (401, "amqp:unauthorized-access")
    async with open_client(bus, "maker", "k3") as conn:
        assert (await ask(conn, "orders", "peek-message", peek))[0] == 401
        assert (await ask(conn, "ORDERS", "schedule-message", wish(later("tea", 5))))[0] == 200
    async with bus.container.connect() as conn:
        token = sign_sas(f"{HOST}/ORDERS", "sender", "k1", wall() + 60)
        await conn.put_token(f"{HOST}/ORDERS", token)
        async with conn.open_sender("amqps://localhost:5672/orders"):
            pass
        with pytest.raises(LinkRefusedError, match="unauthorized-access"):
            async with conn.open_sender("other"):
                pass
    assert "SharedAccessKeyName=reader;SharedAccessKey=k2;" in bus.connection_string(1, "reader")
    with pytest.raises(LocalProtocolError, match="no key 'nobody'"):
        bus.connection_string(1, "nobody")


async def test_entities_have_names_of_their_own() -> None:
    bus = ServiceBus()
    bus.add_queue("orders")
    with pytest.raises(LocalProtocolError, match="in another case"):
        bus.add_queue("Orders")
    with pytest.raises(LocalProtocolError, match="is taken"):
        bus.add_topic("orders")
    with pytest.raises(LocalProtocolError, match="add it first"):
        bus.add_subscription("prices", "all")


async def test_service_ends_while_somebody_waits(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None)
    async with open_client(bus) as conn:
        await put(conn, "q", later("tea", 1000))
        async with locking(conn, "q"):
            await wait_all_tasks_blocked()
            began = trio.current_time()
            assert await bus.container.finish(5)
            assert trio.current_time() == began
            await trio.sleep(2000)
            assert bus.entities["q"].statistics()["locked"] == 0


async def test_stand_in_runs_in_a_thread() -> None:
    with service_bus(["orders"], {"prices": ["all"]}) as connection_string:
        said = dict(part.split("=", 1) for part in connection_string.rstrip(";").split(";"))
        assert said.pop("UseDevelopmentEmulator") == "true"
        host = said["Endpoint"]
        source = amqp.SasTokens(said["SharedAccessKeyName"], said["SharedAccessKey"])
        async with (
            amqp.open_connection(host.replace("sb:", "amqp:")) as conn,
            conn.keep_token(f"{host}/", source),
        ):
            await put(conn, "orders", "tea")
            await put(conn, "prices", 7)
            for address, body in (("orders", "tea"), ("prices/Subscriptions/all", 7)):
                async with locking(conn, address) as receiver:
                    delivery = await receiver.receive()
                    assert delivery.message.body == body
                    delivery.accept()


async def test_transaction_sends_and_settles_at_its_end(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None)
    entity = bus.entities["q"]
    async with open_client(bus) as conn:
        async with conn.open_sender("q") as sender, conn.open_transaction() as txn:
            await sender.send("tea", transaction=txn)
            assert len(entity) == 0
        assert len(entity) == 1
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            async with conn.open_transaction() as txn:
                delivery.accept(transaction=txn)
                await wait_all_tasks_blocked()
                assert len(entity) == 1
            assert len(entity) == 0
