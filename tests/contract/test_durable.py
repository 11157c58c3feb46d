"""What a peer was told is accepted as durable is there after a restart, whatever its protocol, form and path."""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from tests.soak.kills import Server
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source, TerminusDurability

from .protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path


TOPIC_FORMS = [
    (protocol, form) for protocol, entry in PROTOCOLS.items() for form in entry.durable_topic_forms
]
FORMS = [(protocol, form) for protocol, entry in PROTOCOLS.items() for form in entry.durable_forms]
BODY = b"what was accepted is kept"

SUBSCRIPTION = Source(
    address="news", durable=TerminusDurability.UNSETTLED_STATE, expiry_policy=ExpiryPolicy.NEVER
)


def made(store: amqp.SqliteStore, protocol: str) -> amqp.Container:
    container = amqp.Container("contract", store=store)
    container.add_queue("q", dead_letter="dead", redelivery_delay=3600)
    container.add_queue("brief", dead_letter="dead", ttl=0)
    container.add_queue("narrow", dead_letter="dead", max_length=0, overflow="drop-oldest")
    container.add_queue("dead")
    container.add_topic("news")
    if protocol == "10.3":
        container.add_broker()
    return container


@asynccontextmanager
async def serving(path: Path, protocol: str) -> AsyncGenerator[tuple[amqp.Container, int]]:
    """A container in its first life, and the port of the protocol."""
    with amqp.SqliteStore(path) as store:
        container = made(store, protocol)
        async with trio.open_nursery() as nursery:
            dialects = [] if protocol == "1.0" else [protocol]
            (listener,) = await nursery.start(
                partial(container.serve, "amqp://127.0.0.1:0", dialects=dialects)
            )
            yield container, listener.port
            assert container.journal is not None
            await container.journal.flushed()
            nursery.cancel_scope.cancel()


async def payloads_after_restart(path: Path, address: str, source: Source | None = None) -> list[bytes]:
    """What a container that begins with this store gives to a receiver."""
    with amqp.SqliteStore(path) as store:
        container = made(store, "1.0")
        async with (
            container.connect(container_id="ada") as connection,
            connection.open_receiver(address, name="mine", source=source, credit=0) as receiver,
        ):
            receiver.grant(100)
            deliveries = await receiver.drain()
            return [delivery.payload for delivery in deliveries]


def test_every_protocol_has_a_form_in_which_a_message_is_durable() -> None:
    assert all(entry.durable_forms for entry in PROTOCOLS.values())


@pytest.mark.parametrize(("protocol", "form"), FORMS)
async def test_what_was_accepted_as_durable_is_there_after_a_restart(
    protocol: str, form: str, tmp_path: Path
) -> None:
    async with serving(tmp_path / "store", protocol) as (_, port):
        await PROTOCOLS[protocol].durable_forms[form](port, "q", BODY)
    (payload,) = await payloads_after_restart(tmp_path / "store", "q")
    assert BODY in payload


@pytest.mark.parametrize(("protocol", "form"), FORMS)
async def test_what_was_accepted_as_durable_is_there_after_it_died(
    protocol: str, form: str, tmp_path: Path
) -> None:
    """Its dead letter is as durable as it was."""
    async with serving(tmp_path / "store", protocol) as (_, port):
        for queue in ("brief", "narrow"):
            await PROTOCOLS[protocol].durable_forms[form](port, queue, BODY)
    payloads = await payloads_after_restart(tmp_path / "store", "dead")
    assert [BODY in payload for payload in payloads] == [True, True]


async def reject(container: amqp.Container) -> None:
    """Receive a message, and reject it."""
    async with container.connect() as connection, connection.open_receiver("q") as receiver:
        (await receiver.receive()).reject()


async def fail(container: amqp.Container) -> None:
    """Receive a message, and have it wait for the next attempt."""
    async with container.connect() as connection, connection.open_receiver("q") as receiver:
        (await receiver.receive()).modify(delivery_failed=True)


async def hold(container: amqp.Container) -> None:
    """Receive a message on a link that is kept with its unsettled state, and answer nothing."""
    async with container.connect(container_id="ada") as connection:
        receiver = await connection.open_receiver("q", name="mine", guarantee="exactly-once").__aenter__()
        await receiver.receive()
        await receiver.detach()


PATHS: dict[str, tuple[Callable[[amqp.Container], Awaitable[None]], str]] = {
    "rejected": (reject, "dead"),
    "delayed": (fail, "q"),
    "unsettled": (hold, "q"),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("protocol", "form"), FORMS)
async def test_what_was_accepted_as_durable_is_there_after_a_receiver_had_it(
    protocol: str, form: str, path: str, tmp_path: Path
) -> None:
    act, address = PATHS[path]
    async with serving(tmp_path / "store", protocol) as (container, port):
        await PROTOCOLS[protocol].durable_forms[form](port, "q", BODY)
        await act(container)
    with amqp.SqliteStore(tmp_path / "store") as store:
        container = made(store, "1.0")
        async with container.connect():
            assert len(container.nodes[address]) == 1  # type: ignore[arg-type]
            assert len(container.nodes["q"]) + len(container.nodes["dead"]) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(("protocol", "form"), TOPIC_FORMS)
async def test_what_was_accepted_as_durable_is_there_for_a_durable_subscription(
    protocol: str, form: str, tmp_path: Path
) -> None:
    async with serving(tmp_path / "store", protocol) as (container, port):
        async with container.connect(container_id="ada") as connection:
            receiver = await connection.open_receiver("news", name="mine", source=SUBSCRIPTION).__aenter__()
            await receiver.detach()
        await PROTOCOLS[protocol].durable_topic_forms[form](port, "news", BODY)
    (payload,) = await payloads_after_restart(tmp_path / "store", "news", SUBSCRIPTION)
    assert BODY in payload


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_was_accepted_as_durable_is_there_after_a_kill(protocol: str, tmp_path: Path) -> None:
    entry = PROTOCOLS[protocol]
    dialect = () if protocol == "1.0" else ("--dialect", protocol)
    server = Server(tmp_path / "store", "--queue", "q,durable=false", *dialect)
    await server.start()
    try:
        port = int(server.url.rpartition(":")[2])
        for number, form in enumerate(entry.durable_forms.values()):
            await form(port, "q", BODY + b" %d." % number)
    finally:
        await server.end(signal.SIGKILL)
    payloads = await payloads_after_restart(tmp_path / "store", "q")
    for number, form_name in enumerate(entry.durable_forms):
        assert any(BODY + b" %d." % number in payload for payload in payloads), form_name
    assert len(payloads) == len(entry.durable_forms)


async def test_delivery_that_was_aborted_is_not_there_after_a_restart(tmp_path: Path) -> None:
    async with (
        serving(tmp_path / "store", "1.0") as (container, _),
        container.connect() as connection,
        connection.open_sender("q") as sender,
    ):
        with pytest.raises(ZeroDivisionError):
            async with sender.stream(message=amqp.Message(durable=True)) as stream:
                await stream.send_all(bytes(200_000))
                raise ZeroDivisionError
        await sender.send(amqp.Message(BODY, durable=True))
    (payload,) = await payloads_after_restart(tmp_path / "store", "q")
    assert BODY in payload
