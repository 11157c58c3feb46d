"""What a transaction controller of ours writes, frame by frame, to a scripted coordinator (4.2 to 4.4)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.performatives import Frame, frame, parse_sections

from .helpers import dialled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio.testing import MockClock

    from tests.naive.peer import ScriptedPeer

TXN = b"txn-1"
MESSAGE = b"\x00\x53\x77\x41"
IN_TXN = ("transactional-state", {"txn_id": TXN})


class Desk:
    """The coordinator's side of a connection: it does what the test says, and keeps what it heard."""

    def __init__(self, peer: ScriptedPeer) -> None:
        self.peer = peer
        self.heard: list[Frame] = []

    async def next(self, name: str, **fields: Any) -> Frame:
        got = await self.peer.skip_to(name)
        self.heard.append(got)
        for key, value in fields.items():
            assert got[key] == value, (key, got[key], value)
        return got

    async def say(self, delivery_id: int, state: Any, *, settled: bool = True) -> None:
        await self.peer.send(frame("disposition", role=True, first=delivery_id, settled=settled, state=state))

    async def declare(self) -> None:
        got = await self.next("transfer")
        await self.say(got["delivery_id"], ("declared", {"txn_id": TXN}))

    async def discharge(self, state: Any = ("accepted", {})) -> Frame:
        got = await self.next("transfer")
        await self.end(got, state)
        return got

    async def end(self, discharge: Frame, state: Any = ("accepted", {})) -> None:
        await self.say(discharge["delivery_id"], state)
        detach = await self.peer.skip_to("detach")
        await self.peer.send(frame("detach", handle=detach["handle"], closed=True))


@asynccontextmanager
async def coordinated(script: Any) -> AsyncGenerator[tuple[amqp.Connection, Desk], None]:
    """A connection to a coordinator that follows the script."""
    async with dialled(begin=False) as (conn, peer), trio.open_nursery() as nursery:
        desk = Desk(peer)

        async def run() -> None:
            await peer.accept_begin()
            await script(desk)

        nursery.start_soon(run)
        yield conn, desk


def body_of(got: Frame) -> Any:
    [(section, value)] = parse_sections(got.payload)
    assert section == "amqp-value"
    return value


async def test_control_link_permits_rejected(autojump_clock: MockClock) -> None:
    async def script(desk: Desk) -> None:
        attach = await desk.peer.accept_attach(credit=10)
        attached.append(attach)
        await desk.declare()
        await desk.discharge()

    attached: list[Frame] = []
    async with coordinated(script) as (conn, _), conn.open_transaction():
        pass
    _, source = attached[0]["source"]
    assert "amqp:rejected:list" in source["outcomes"]


async def test_declare_and_discharge_are_sent_unsettled(autojump_clock: MockClock) -> None:
    async def script(desk: Desk) -> None:
        await desk.peer.accept_attach(credit=10)
        await desk.declare()
        await desk.discharge()

    async with coordinated(script) as (conn, desk), conn.open_transaction():
        pass
    declare, discharge = desk.heard
    assert not declare["settled"]
    assert not discharge["settled"]
    assert body_of(declare) == ("declare", {})
    assert body_of(discharge) == ("discharge", {"txn_id": TXN, "fail": False})


async def test_transfers_of_posted_messages_name_the_transaction(autojump_clock: MockClock) -> None:
    async def script(desk: Desk) -> None:
        await desk.peer.accept_attach(credit=10)  # the sender's
        await desk.peer.accept_attach(credit=10)  # the control link's
        await desk.declare()
        got = await desk.next("transfer")
        await desk.say(
            got["delivery_id"],
            ("transactional-state", {"txn_id": TXN, "outcome": ("accepted", {})}),
            settled=False,
        )
        await desk.discharge()

    async with coordinated(script) as (conn, desk), conn.open_sender("q") as sender:
        async with conn.open_transaction() as txn:
            assert await sender.send("x", transaction=txn) == amqp.Accepted()
        assert desk.heard[1]["state"][1]["txn_id"] == TXN


async def test_delivery_is_not_retired_in_two_transactions(autojump_clock: MockClock) -> None:
    async def script(desk: Desk) -> None:
        await desk.peer.accept_attach(initial_delivery_count=0)  # the receiver's
        await desk.peer.expect("flow")
        await desk.peer.send(
            frame(
                "transfer",
                handle=0,
                delivery_id=0,
                delivery_tag=b"t",
                message_format=0,
                payload=MESSAGE,
            )
        )
        await desk.peer.accept_attach(credit=10)
        await desk.declare()
        await desk.peer.accept_attach(credit=10)
        got = await desk.next("transfer")
        await desk.say(got["delivery_id"], ("declared", {"txn_id": b"txn-2"}))
        outcome = await desk.next("disposition")
        discharge = await desk.next("transfer")  # of the second, which is left first
        told.append(outcome["state"][1]["txn_id"])
        await desk.end(discharge)
        await desk.discharge()

    told: list[bytes] = []
    async with (
        coordinated(script) as (conn, _),
        conn.open_receiver("q", credit=1) as receiver,
        conn.open_transaction() as one,
        conn.open_transaction() as two,
    ):
        delivery = await receiver.receive()
        delivery.accept(transaction=one)
        with pytest.raises(amqp.LocalProtocolError):
            delivery.accept(transaction=two)
        with pytest.raises(amqp.LocalProtocolError):
            delivery.accept()
        await wait_all_tasks_blocked()
    assert told == [TXN]


async def test_retired_delivery_is_settled_after_the_commit(autojump_clock: MockClock) -> None:
    async def script(desk: Desk) -> None:
        await desk.peer.accept_attach(initial_delivery_count=0)
        await desk.peer.expect("flow")
        await desk.peer.send(
            frame("transfer", handle=0, delivery_id=0, delivery_tag=b"t", message_format=0, payload=MESSAGE)
        )
        await desk.peer.accept_attach(credit=10)
        await desk.declare()
        retired = await desk.next("disposition")
        assert not retired["settled"]
        discharge = await desk.next("transfer")
        await desk.say(discharge["delivery_id"], ("accepted", {}))
        settled.append(await desk.next("disposition"))

    settled: list[Frame] = []
    async with (
        coordinated(script) as (conn, _),
        conn.open_receiver("q", credit=1) as receiver,
        conn.open_transaction() as txn,
    ):
        (await receiver.receive()).accept(transaction=txn)
        await wait_all_tasks_blocked()
    assert (settled[0]["first"], settled[0]["settled"]) == (0, True)
    assert settled[0]["state"] == ("accepted", {})


async def test_credit_of_a_transaction_is_drained_before_its_discharge(autojump_clock: MockClock) -> None:
    async def script(desk: Desk) -> None:
        await desk.peer.accept_attach(initial_delivery_count=0)
        await desk.peer.accept_attach(credit=10)
        await desk.declare()
        granted = await desk.next("flow")
        assert (granted["link_credit"], granted["properties"]) == (3, {"txn-id": TXN})
        drained = await desk.next("flow", drain=True)
        assert drained["link_credit"] == 3
        windows: Any = {
            "next_incoming_id": 0,
            "incoming_window": 2048,
            "next_outgoing_id": 0,
            "outgoing_window": 2048,
        }
        await desk.peer.send(frame("flow", **windows, handle=0, delivery_count=3, link_credit=0, drain=True))
        await desk.discharge()
        ended.append(True)

    ended: list[bool] = []
    async with (
        coordinated(script) as (conn, _),
        conn.open_receiver("q", credit=0) as receiver,
        conn.open_transaction() as txn,
    ):
        receiver.grant(3, transaction=txn)
        await wait_all_tasks_blocked()
    assert ended == [True]


# -- messages that the peer refuses ----------------------------------------------------------------


def in_txn(outcome: str | None) -> Any:
    state: dict[str, Any] = {"txn_id": TXN}
    return "transactional-state", state if outcome is None else state | {"outcome": (outcome, {})}


REFUSALS = {
    "rejected": (in_txn("rejected"),),
    "released": (in_txn("released"),),
    "modified": (in_txn("modified"),),
    "bare": (("rejected", {}),),
    "refused later": (in_txn("accepted"), ("released", {})),
    "settled without a word": (None,),
}


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("later", [0.0, 3.0])
async def test_transaction_is_rolled_back_when_a_message_of_it_is_refused_and_nobody_looked(
    refusal: str, later: float, autojump_clock: MockClock
) -> None:
    """The peer would commit all the same, and answers the posting as late as it likes."""

    async def script(desk: Desk) -> None:
        for _ in range(2):
            await desk.peer.accept_attach(credit=10)
        await desk.declare()
        got = await desk.next("transfer")
        await trio.sleep(later)
        said = REFUSALS[refusal]
        for number, state in enumerate(said, 1):
            await desk.say(got["delivery_id"], state, settled=number == len(said))
        await desk.discharge()

    async with coordinated(script) as (conn, desk), conn.open_sender("q") as sender:
        with pytest.raises(amqp.TransactionRolledBackError, match="a message in it was refused"):
            async with conn.open_transaction() as txn:
                await sender.transmit("x", transaction=txn)
                if refusal == "refused later":
                    await trio.sleep(10)  # the first outcome is what a commit would wait for
    assert txn.state == "rolled back"
    assert body_of(desk.heard[-1]) == ("discharge", {"txn_id": TXN, "fail": True})


@pytest.mark.parametrize("settled", [False, True])
async def test_transaction_is_rolled_back_when_the_peer_detaches_a_link_that_posted(
    settled: bool, autojump_clock: MockClock
) -> None:
    async def script(desk: Desk) -> None:
        sender = await desk.peer.accept_attach(credit=10, snd_settle_mode=2)
        await desk.peer.accept_attach(credit=10)
        await desk.declare()
        await desk.next("transfer")
        error = ("error", {"condition": "amqp:resource-limit-exceeded"})
        await desk.peer.send(frame("detach", handle=sender["handle"], closed=True, error=error))
        await desk.discharge()

    async with coordinated(script) as (conn, desk):
        opening = conn.open_sender("q")
        sender = await opening.__aenter__()
        with pytest.raises(amqp.TransactionRolledBackError, match="resource-limit-exceeded") as failed:
            async with conn.open_transaction() as txn:
                await sender.transmit("x", transaction=txn, settled=settled)
                await wait_all_tasks_blocked()
        assert failed.value.condition == "amqp:resource-limit-exceeded"
    assert body_of(desk.heard[-1]) == ("discharge", {"txn_id": TXN, "fail": True})


@pytest.mark.parametrize("how", ["outcome", "send", "settle"])
async def test_transaction_commits_without_a_message_that_the_program_knows_to_be_refused(
    how: str, autojump_clock: MockClock
) -> None:
    async def script(desk: Desk) -> None:
        for _ in range(2):
            await desk.peer.accept_attach(credit=10)
        await desk.declare()
        got = await desk.next("transfer")
        await desk.say(got["delivery_id"], in_txn("rejected"), settled=False)
        await desk.discharge()

    async with coordinated(script) as (conn, desk), conn.open_sender("q") as sender:
        async with conn.open_transaction() as txn:
            if how == "send":
                with pytest.raises(amqp.DeliveryRejectedError):
                    await sender.send("x", transaction=txn)
            else:
                delivery = await sender.transmit("x", transaction=txn)
                if how == "settle":
                    delivery.settle()
                else:
                    assert isinstance(await delivery.outcome(), amqp.Rejected)
        assert txn.state == "committed"
    assert body_of(desk.heard[-1]) == ("discharge", {"txn_id": TXN, "fail": False})


async def test_commit_asks_a_coordinator_that_tells_no_outcome_in_time_and_reports_what_it_refused_then(
    autojump_clock: MockClock,
) -> None:
    async def script(desk: Desk) -> None:
        for _ in range(2):
            await desk.peer.accept_attach(credit=10)
        await desk.declare()
        got = await desk.next("transfer")
        discharge = await desk.next("transfer")
        await desk.say(got["delivery_id"], ("rejected", {}))
        await desk.end(discharge)

    async with coordinated(script) as (conn, desk), conn.open_sender("q") as sender:
        began = trio.current_time()
        with pytest.raises(amqp.TransactionError, match="committed without a message") as failed:
            async with conn.open_transaction() as txn:
                await sender.transmit("x", transaction=txn)
        assert type(failed.value) is amqp.TransactionError
        assert txn.state == "committed"
        assert trio.current_time() - began == pytest.approx(conn.close_timeout)
    assert body_of(desk.heard[-1]) == ("discharge", {"txn_id": TXN, "fail": False})


async def test_commit_reports_an_outcome_that_changes_with_the_answer() -> None:
    async def script(desk: Desk) -> None:
        for _ in range(2):
            await desk.peer.accept_attach(credit=10)
        await desk.declare()
        got = await desk.next("transfer", state=IN_TXN)
        accepted: Any = ("transactional-state", {"txn_id": TXN, "outcome": ("accepted", {})})
        rejected: Any = ("transactional-state", {"txn_id": TXN, "outcome": ("rejected", {})})
        await desk.say(got["delivery_id"], accepted, settled=False)
        discharge = await desk.next("transfer")
        await desk.say(got["delivery_id"], rejected, settled=False)
        await desk.end(discharge)

    async with coordinated(script) as (conn, _), conn.open_sender("q") as sender:
        with pytest.raises(amqp.TransactionError, match="committed without a message") as failed:
            async with conn.open_transaction() as txn:
                await sender.transmit("x", transaction=txn)
        assert type(failed.value) is amqp.TransactionError
        assert txn.state == "committed"


async def test_committed_transaction_does_not_await_the_end_of_its_control_link(
    autojump_clock: MockClock,
) -> None:
    async def script(desk: Desk) -> None:
        await desk.peer.accept_attach(credit=10)
        await desk.declare()
        discharge = await desk.next("transfer")
        await desk.say(discharge["delivery_id"], ("accepted", {}))
        await desk.next("detach", closed=True)

    async with coordinated(script) as (conn, desk):
        began = trio.current_time()
        async with conn.open_transaction() as txn:
            pass
        assert (txn.state, trio.current_time()) == ("committed", began)
        await wait_all_tasks_blocked()
        assert desk.heard[-1].name == "detach"
