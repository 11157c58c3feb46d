"""The coordinator against a scripted controller: ids, states, links, limits."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of, served_no_more, two
from trio_amqp10.amqp10.spec.messaging import ACCEPTED
from trio_amqp10.amqp10.spec.transactions import Declare, Declared, Discharge
from trio_amqp10.testing import open_container

from .controllers import control_of, gone, post, retire

NO_REJECTING = amqp.Source(outcomes=("amqp:accepted:list",))


# -- what is asked of it ------------------------------------------------------------------------


async def test_coordinator_tells_what_it_can_do() -> None:
    async with open_container() as container, container.connect() as conn, control_of(conn) as control:
        target: Any = control.link.remote.target
        assert set(target.capabilities) == {
            "amqp:local-transactions",
            "amqp:multi-txns-per-ssn",
            "amqp:multi-ssns-per-txn",
        }


@pytest.mark.parametrize(
    ("body", "condition"),
    [
        (Declare(global_id=b"far"), "amqp:not-implemented"),
        (Discharge(txn_id=b"none"), "amqp:transaction:unknown-id"),
        (Discharge(txn_id=b"none", fail=True), "amqp:transaction:unknown-id"),
        ("a body", "amqp:not-implemented"),
        (amqp.Described(amqp.Symbol("amqp:discharge:list"), []), "amqp:invalid-field"),
        (amqp.Described(amqp.Symbol("amqp:none:list"), []), "amqp:not-implemented"),
    ],
)
async def test_coordinator_rejects_or_detaches_with_what_it_cannot_do(body: Any, condition: str) -> None:
    async with open_container() as container, container.connect() as conn:
        async with control_of(conn) as control:
            outcome = await control.ask(body)
            assert isinstance(outcome, amqp.Rejected)
            assert outcome.error is not None
            assert str(outcome.error.condition) == condition
            await control.declare()
        async with control_of(conn, source=NO_REJECTING) as control:
            await control.link.transmit(amqp.Message(amqp.Value(body)))
            assert await gone(control.link) == condition


async def test_coordinator_ignores_sections_beside_the_body() -> None:
    beside: dict[str, Any] = {
        "durable": True,
        "priority": 9,
        "delivery_annotations": {"x-opt-hop": 1},
        "annotations": {"x-opt-note": 1},
        "subject": "a declare",
        "application_properties": {"txn-id": "another"},
        "footer": {"x-opt-sum": 7},
    }
    async with open_container(["q"]) as container, container.connect() as conn:
        async with control_of(conn) as control, conn.open_sender("q") as sender:
            asked = await control.link.transmit(amqp.Message(amqp.Value(Declare()), **beside))
            declared = await asked.outcome()
            assert isinstance(declared, Declared)
            post(sender, "x", declared.txn_id)
            discharge = amqp.Value(Discharge(txn_id=declared.txn_id))
            asked = await control.link.transmit(amqp.Message(discharge, **beside))
            assert await asked.outcome() == ACCEPTED
        assert len(queue_of(container)) == 1


async def test_coordinator_detaches_a_control_link_that_sends_settled() -> None:
    async with (
        open_container() as container,
        container.connect() as conn,
        control_of(conn, snd_settle_mode=amqp.SenderSettleMode.MIXED) as control,
    ):
        await control.link.transmit(amqp.Message(amqp.Value(Declare())), settled=True)
        assert await gone(control.link) == "amqp:illegal-state"


async def test_coordinator_detaches_a_control_link_whose_discharge_is_settled() -> None:
    async with (
        open_container() as container,
        container.connect() as conn,
        control_of(conn, snd_settle_mode=amqp.SenderSettleMode.MIXED) as control,
    ):
        discharge = Discharge(txn_id=await control.declare())
        await control.link.transmit(amqp.Message(amqp.Value(discharge)), settled=True)
        assert await gone(control.link) == "amqp:illegal-state"


# -- no work on a control link (4.1) ------------------------------------------------------------


@pytest.mark.parametrize("what", ["message", "declare", "discharge"])
@pytest.mark.parametrize("known", [True, False])
async def test_coordinator_rejects_work_on_a_control_link_and_the_rest_is_committed(
    what: str, known: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with control_of(conn) as control, conn.open_sender("q") as sender:
            txn = await control.declare()
            bodies = {"message": "lost?", "declare": amqp.Value(Declare())}
            body = bodies.get(what) or amqp.Value(Discharge(txn_id=txn))
            post(sender, "work", txn)
            outcome = await post(control.link, body, txn if known else b"none").outcome()
            assert isinstance(outcome, amqp.Rejected)  # bare: it is part of no transaction
            assert outcome.error is not None
            assert str(outcome.error.condition) == "amqp:illegal-state"
            assert not len(queue_of(container))
            assert await control.discharge(txn) is None
        assert len(queue_of(container)) == 1
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_coordinator_detaches_for_work_on_a_control_link_that_takes_no_rejection() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with control_of(conn, source=NO_REJECTING) as control, conn.open_sender("q") as sender:
            txn = await control.declare()
            post(sender, "work", txn)
            post(control.link, "lost?", txn)
            assert await gone(control.link) == "amqp:illegal-state"
        assert not len(queue_of(container))


async def test_settled_work_on_a_control_link_fails_the_transaction_of_another() -> None:
    mixed = amqp.SenderSettleMode.MIXED
    async with open_container(["q"]) as container, container.connect() as conn:
        async with (
            control_of(conn) as control,
            control_of(conn, snd_settle_mode=mixed) as other,
            conn.open_sender("q") as sender,
        ):
            txn = await control.declare()
            post(sender, "work", txn)
            post(other.link, "lost?", txn, settled=True)
            assert await gone(other.link) == "amqp:illegal-state"
            assert await control.discharge(txn) == "amqp:illegal-state"
        assert not len(queue_of(container))


async def test_settled_work_on_a_control_link_for_no_transaction_ends_that_link() -> None:
    mixed = amqp.SenderSettleMode.MIXED
    async with (
        open_container() as container,
        container.connect() as conn,
        control_of(conn, snd_settle_mode=mixed) as control,
    ):
        post(control.link, "lost?", b"none", settled=True)
        assert await gone(control.link) == "amqp:illegal-state"


async def test_transaction_of_another_connection_is_unknown_and_goes_on() -> None:
    async with open_container(["q", "r"]) as container, two(container) as (conn, other):
        await fill(other, "r", "in", "more")
        async with (
            control_of(conn) as control,
            control_of(other) as stranger,
            conn.open_sender("q") as sender,
            other.open_sender("q") as strange,
            other.open_receiver("r", credit=1) as receiver,
            other.open_receiver("r", credit=0) as acquiring,
        ):
            txn = await control.declare()
            post(sender, "work", txn)
            outcome = await post(strange, "strange", txn).outcome()
            assert str(outcome.error.condition) == "amqp:transaction:unknown-id"
            for fail in (True, False):
                assert await stranger.discharge(txn, fail=fail) == "amqp:transaction:unknown-id"
            retire(await receiver.receive(), txn)
            assert await gone(receiver) == "amqp:transaction:unknown-id"
            acquiring.acquire_in(txn)
            acquiring.grant(1)
            assert await gone(acquiring) == "amqp:transaction:unknown-id"
            assert await control.discharge(txn) is None
        await wait_all_tasks_blocked()
        assert len(queue_of(container)) == 1
        assert len(queue_of(container, "r")) == 2


async def test_coordinator_declares_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.amqp10.server.coordinator._MOST", 2)
    async with open_container() as container, container.connect() as conn, control_of(conn) as control:
        ids = [await control.declare() for _ in range(2)]
        refused = await control.ask(Declare())
        assert str(refused.error.condition) == "amqp:resource-limit-exceeded"
        assert await control.discharge(ids[0]) is None
        await control.declare()


async def test_coordinator_discharges_and_declares_nothing_while_the_service_ends() -> None:
    async with (
        open_container() as container,
        container.connect() as conn,
        control_of(conn) as control,
        conn.open_sender("q") as sender,
    ):
        txn = await control.declare()
        post(sender, "last", txn)
        await wait_all_tasks_blocked()
        assert await container.finish(0)
        refused = await control.ask(Declare())
        assert str(refused.error.condition) == "amqp:resource-limit-exceeded"
        assert await control.discharge(txn) is None
        assert len(queue_of(container)) == 1


async def test_work_before_a_discharge_in_the_same_read_is_part_of_it() -> None:
    async with open_container(["q"]) as container, two(container) as (conn, other):
        await fill(other, "r", "in")
        async with (
            control_of(conn) as control,
            conn.open_sender("q") as sender,
            conn.open_receiver("r") as receiver,
        ):
            txn = await control.declare()
            delivery = await receiver.receive()
            await wait_all_tasks_blocked()
            asked = control.link.send_nowait(amqp.Message(amqp.Value(Declare())))
            post(sender, "out", txn)
            retire(delivery, txn)
            done = control.link.send_nowait(amqp.Message(amqp.Value(Discharge(txn_id=txn))))
            assert isinstance(await asked.outcome(), Declared)
            assert await done.outcome() == ACCEPTED
            assert len(queue_of(container, "q")) == 1
        await wait_all_tasks_blocked()
        assert "r" not in container.nodes


# -- posting ------------------------------------------------------------------------------------


async def test_control_link_is_detached_when_discharged_with_a_message_partly_sent(
    autojump_clock: Any,
) -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with control_of(conn) as control, conn.open_sender("q") as sender:
            txn = await control.declare()
            link = sender._link
            room = conn.engine.write_buffer.frame_size
            window, link.session.windows.remote_incoming_window = (
                link.session.windows.remote_incoming_window,
                1,
            )
            post(sender, bytes(3 * room), txn)
            link.session.windows.remote_incoming_window = window
            link.session.partials.clear()
            await control.link.transmit(amqp.Message(amqp.Value(Discharge(txn_id=txn))))
            assert await gone(control.link) == "amqp:transaction:rollback"
            link.partial = None
        await wait_all_tasks_blocked()
        assert not len(queue_of(container))


async def test_transaction_that_holds_too_much_is_rolled_back() -> None:
    container = amqp.Container(max_unsettled_octets=10_000)
    container.add_queue("q")
    async with (
        container.connect() as conn,
        control_of(conn) as control,
        conn.open_sender("q") as sender,
    ):
        txn = await control.declare()
        await post(sender, bytes(9_000), txn).outcome()
        await post(sender, bytes(9_000), txn).outcome()
        late = await post(sender, "x", txn).outcome()
        assert str(late.error.condition) == "amqp:transaction:rollback"
        assert await control.discharge(txn) == "amqp:transaction:rollback"
        assert await control.discharge(txn) == "amqp:transaction:unknown-id"
        assert not len(queue_of(container))


@pytest.mark.parametrize("fail", [False, True])
async def test_transaction_is_rolled_back_when_a_node_that_it_posts_to_is_removed(fail: bool) -> None:
    async with open_container(["p", "q"]) as container, container.connect() as conn:
        async with (
            control_of(conn) as control,
            conn.open_sender("p") as one,
            conn.open_sender("q") as other,
        ):
            txn = await control.declare()
            await post(one, "x", txn).outcome()
            await post(other, "y", txn).outcome()
            container.remove_node("p")
            assert await control.discharge(txn, fail=fail) == (None if fail else "amqp:transaction:rollback")
        assert not len(queue_of(container))


async def test_commit_fails_when_a_node_takes_no_messages_any_more() -> None:
    async with (
        open_container(["q"]) as container,
        container.connect() as conn,
        control_of(conn) as control,
        conn.open_sender("q") as sender,
    ):
        txn = await control.declare()
        await post(sender, "x", txn).outcome()
        queue_of(container).accepts_senders = False
        assert await control.discharge(txn) == "amqp:transaction:rollback"


@pytest.mark.logs_errors
async def test_commit_goes_on_when_a_node_fails_on_its_messages(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(amqp.Node):
        accepts_senders = True

        def on_arrivals(self, inlet: amqp.Inlet) -> None:
            if inlet.take() is not None:
                raise ValueError

    async with open_container(["q"]) as container, container.connect() as conn:
        container.add_node(Broken("broken"))
        async with (
            control_of(conn) as control,
            conn.open_sender("broken") as one,
            conn.open_sender("q") as other,
        ):
            txn = await control.declare()
            await post(one, "x", txn).outcome()
            await post(other, "y", txn).outcome()
            assert await control.discharge(txn) is None
            assert len(queue_of(container)) == 1
    assert "failed on the messages" in caplog.text


# -- retiring -----------------------------------------------------------------------------------


@pytest.mark.parametrize("acquired", [False, True])
@pytest.mark.parametrize("other_txn", [False, True])
async def test_control_link_is_detached_when_a_delivery_gets_an_outcome_elsewhere(
    acquired: bool, other_txn: bool
) -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a")
        async with (
            control_of(conn) as control,
            control_of(conn) as second,
            conn.open_receiver("q", credit=0) as receiver,
        ):
            txn = await control.declare()
            elsewhere = await second.declare()
            if acquired:
                receiver.acquire_in(txn)
            delivery = await receiver.receive()
            if not acquired:
                retire(delivery, txn)
                await wait_all_tasks_blocked()
                delivery.state = None
            if other_txn:
                retire(delivery, elsewhere)
            else:
                delivery.accept()
            assert await gone(control.link) == "amqp:transaction:rollback"
            receiver.acquire_in(None)
            assert await second.discharge(elsewhere) is None
            await wait_all_tasks_blocked()
            assert (len(container.nodes) == 1, queue_of(container).available) == (True, int(acquired))


# -- acquiring ----------------------------------------------------------------------------------


@pytest.mark.parametrize("txn_id", [b"none", [1]])
async def test_flow_that_names_no_transaction_of_ours_ends_its_link(txn_id: Any) -> None:
    async with (
        open_container(["q"]) as container,
        container.connect() as conn,
        conn.open_receiver("q", credit=0) as receiver,
    ):
        receiver.acquire_in(txn_id)
        receiver.grant(1)
        assert await gone(receiver) == "amqp:transaction:unknown-id"


async def test_nothing_is_acquired_in_a_transaction_that_timed_out(autojump_clock: Any) -> None:
    container = amqp.Container(transaction_timeout=1)
    async with (
        two(container) as (conn, other),
        control_of(conn) as control,
        conn.open_receiver("q", credit=0) as receiver,
    ):
        txn = await control.declare()
        receiver.acquire_in(txn)
        receiver.grant(1)
        await trio.sleep(2)
        await fill(other, "q", "a")
        await wait_all_tasks_blocked()
        assert receiver.buffered == 0
        receiver.acquire_in(None)
        assert await control.discharge(txn, fail=True) is None
        assert await bodies(receiver, 1) == ["a"]  # its credit stands, in no transaction


async def test_declare_after_the_end_of_its_connection_begins_nothing(autojump_clock: Any) -> None:
    container = amqp.Container(transaction_timeout=1)
    async with container.connect() as conn, control_of(conn) as control:
        async with served_no_more(container):
            with trio.move_on_after(10) as waiting:
                await control.declare()
        assert waiting.cancelled_caught


class Fragile(amqp.Node):
    """Fails when it is given something, as often as it should."""

    accepts_senders = True

    def __init__(self, failures: float) -> None:
        super().__init__("fragile")
        self.failures = failures
        self.got: list[Any] = []

    def on_arrivals(self, inlet: amqp.Inlet) -> None:
        while True:
            arrival = inlet.take()
            if arrival is None:
                return
            if self.failures:
                self.failures -= 1
                raise ZeroDivisionError
            self.got.append(arrival.message.body)
            arrival.accept()


@pytest.mark.logs_errors
async def test_messages_of_a_commit_stay_until_the_node_that_fails_on_them_takes_them(
    autojump_clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    container, node = amqp.Container(), Fragile(3)
    container.add_node(node)
    async with container.connect() as conn, conn.open_sender("fragile") as sender:
        async with conn.open_transaction() as txn:
            await sender.send("a", transaction=txn)
            await sender.send("b", transaction=txn)
        assert node.got == []
        assert container.watermark.octets > 0
        await trio.sleep(5)
        assert node.got == ["a", "b"]
        assert container.watermark.octets == 0
    caplog.clear()


@pytest.mark.logs_errors
async def test_messages_of_a_commit_outlast_their_connection_while_the_node_fails_on_them(
    autojump_clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    container, node = amqp.Container(), Fragile(float("inf"))
    container.add_node(node)
    async with container.connect() as other:
        async with (
            container.connect() as conn,
            conn.open_sender("fragile") as sender,
            conn.open_transaction() as txn,
        ):
            await sender.send("a", transaction=txn)
        await trio.sleep(1000)
        assert container.watermark.octets > 0
        node.failures = 0
        await trio.sleep(60)
        assert node.got == ["a"]
        await fill(other, "fragile", "others go on")
        assert node.got == ["a", "others go on"]
    caplog.clear()


# -- a posting that is refused, or dropped on its way here ------------------------------------------


@pytest.mark.parametrize("settled", [False, True])
async def test_transaction_is_rolled_back_when_a_message_of_it_is_larger_than_its_link_takes(
    settled: bool,
) -> None:
    async with (
        open_container(["q"]) as container,
        container.connect(limits=amqp.Limits(max_message_size=100_000)) as conn,
        control_of(conn) as control,
        conn.open_sender("q") as sender,
        conn.open_sender("q") as other,
    ):
        txn = await control.declare()
        assert (await post(other, "x", txn).outcome()) == ACCEPTED
        sender._link.size_limit = None  # the sender does not keep to it
        post(sender, bytes(200_000), txn, settled=settled)
        assert await control.discharge(txn) == "amqp:transaction:rollback"
        assert not len(queue_of(container))


@pytest.mark.parametrize("many", [False, True])
async def test_transaction_is_rolled_back_when_a_message_comes_on_a_link_that_was_detached_here(
    many: bool,
) -> None:
    async with (
        open_container(["q"]) as container,
        container.connect() as conn,
        control_of(conn) as control,
        conn.open_sender("other") as sender,
        conn.open_sender("q") as fine,
    ):
        txn, free = await control.declare(), await control.declare()
        post(fine, "x", txn)
        await post(fine, "y", free).outcome()
        container.remove_node("other")
        post(sender, bytes(1_000_000 if many else 1), txn, settled=True)  # before the detach is read
        assert await control.discharge(txn) == "amqp:transaction:rollback"
        assert await control.discharge(free) is None
        assert len(queue_of(container)) == 1


async def test_transaction_is_rolled_back_when_its_link_is_closed_before_a_message_was_permitted() -> None:
    answers: list[trio.Event] = []

    async def authorise(access: amqp.Access) -> bool:
        if access.address == "q":
            answers.append(trio.Event())
            await answers[-1].wait()
        return True

    container = amqp.Container(authorise=authorise)
    container.add_queue("q")
    async with (
        container.connect() as conn,
        control_of(conn) as control,
        conn.open_sender(None) as sender,
    ):
        txn = await control.declare()
        post(sender, amqp.Message("x", to="q"), txn)
        await wait_all_tasks_blocked()
        (inlet,) = container.relay.inlets
        inlet.close("app:gone", "closed here")
        for answer in answers:
            answer.set()
        assert await control.discharge(txn) == "amqp:transaction:rollback"
        assert not len(queue_of(container))
