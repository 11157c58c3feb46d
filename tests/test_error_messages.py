"""The page of error messages: each is provoked, and is raised as the page quotes it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trustme

import trio_amqp10 as amqp
from trio_amqp10 import amqp091
from trio_amqp10.testing import open_container, scripted_stream
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ

from .amqp10.peer.test_resume import Ledger, connected, cut

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trio_amqp10.testing import ScriptedPeer

PAGE = Path(__file__).resolve().parents[1] / "docs/error-messages.rst"
ENTRY = re.compile(r"^(.+)\n~+\n\n\.\. code-block:: text\n\n   (\w+): (.+)\n\n(?=\S)", re.MULTILINE)
QUOTED = {title: (kind, message) for title, kind, message in ENTRY.findall(PAGE.read_text())}
LOCALHOST = "amqp://127.0.0.1:0"

Provoke = Callable[[Path], Awaitable[object]]
PROVOKED: dict[str, Provoke] = {}
"""By the title of its entry, what raises the message."""


def provokes(title: str) -> Callable[[Provoke], Provoke]:
    def note(function: Provoke) -> Provoke:
        PROVOKED[title] = function
        return function

    return note


@asynccontextmanager
async def serving(url: str = LOCALHOST, **options: Any) -> AsyncIterator[str]:
    """The URL of a container."""
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(amqp.Container("peer").serve, url, **options))
        yield listener.url
        nursery.cancel_scope.cancel()


async def dial(url: str, **options: Any) -> None:
    async with amqp.open_connection(url, **options):
        pass


def certificate(folder: Path, name: str) -> Path:
    """Of an authority that no machine knows, which is in ``authority.pem``."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    return folder / "server.pem"


@provokes("cannot connect to")
async def nobody_listens(_folder: Path) -> None:
    with trio.socket.socket() as taken:  # bound, and not listening: nobody else gets the port
        await taken.bind(("127.0.0.1", 0))
        await dial(f"amqp://127.0.0.1:{taken.getsockname()[1]}")


@provokes("host '...'")
async def unknown_host(_folder: Path) -> None:
    await dial("amqp://no-such-host.invalid")


@provokes("another program listens there")
async def port_in_use(_folder: Path) -> None:
    async with serving() as url:
        await amqp.Container("second").serve(url)


@provokes("no acceptable SASL mechanism")
async def no_user(_folder: Path) -> None:
    async with serving(sasl=amqp.sasl.Server(users={"ada": "enigma"})) as url:
        await dial(url)


@provokes("would send the password in the clear")
async def in_the_clear(_folder: Path) -> None:
    stream = trio.SocketStream(trio.socket.socket())  # its peer is not known to be this machine
    async with stream, amqp.open_connection(stream, sasl=amqp.sasl.Plain("ada", "enigma")):
        pass


@provokes("the server refused the credentials")
async def wrong_password(_folder: Path) -> None:
    async with serving(sasl=amqp.sasl.Server(users={"ada": "enigma"})) as url:
        await dial(url.replace("//", "//ada:wrong@"))


@provokes("unable to get local issuer certificate")
async def unknown_authority(folder: Path) -> None:
    context = amqp.tls.server_context(certificate(folder, "127.0.0.1"))
    async with serving("amqps://127.0.0.1:0", ssl_context=context) as url:
        await dial(url)


@provokes("dial the name that it was issued for")
async def wrong_name(folder: Path) -> None:
    context = amqp.tls.server_context(certificate(folder, "example.org"))
    async with serving("amqps://127.0.0.1:0", ssl_context=context) as url:
        await dial(url, cafile=folder / "authority.pem")


@provokes("the input from the peer is not TLS")
async def tls_where_there_is_none(_folder: Path) -> None:
    async with serving() as url:
        await dial(url.replace("amqp:", "amqps:"))


@provokes("expected an AMQP 1.0 protocol header")
async def no_amqp(_folder: Path) -> None:
    async def web_server(peer: ScriptedPeer) -> None:
        await peer.expect_header("amqp")
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with scripted_stream(web_server) as stream, amqp.open_connection(stream):
        pass


@provokes("a connection has no path")
async def path(_folder: Path) -> None:
    await dial("amqp://localhost/shop")


@provokes("the URL of a connection has no options")
async def query(_folder: Path) -> None:
    await dial("amqp://localhost?heartbeat=30")


@provokes("is not a URL of AMQP")
async def scheme(_folder: Path) -> None:
    await dial("pyamqp://localhost")


@provokes("trio_amqp10 needs trio, which does not run here")
async def no_trio(_folder: Path) -> None:
    await trio.to_thread.run_sync(asyncio.run, dial("amqp://localhost"))


@provokes("the connection was lost")
async def lost(_folder: Path) -> None:
    async def dying(peer: ScriptedPeer) -> None:
        await peer.accept_open()

    async with scripted_stream(dying) as stream, amqp.open_connection(stream) as conn:
        await conn.wait_closed()


@provokes("no frame from the peer")
async def silent(_folder: Path) -> None:
    async def dead(peer: ScriptedPeer) -> None:
        await peer.accept_open()
        await trio.sleep_forever()

    async with scripted_stream(dead) as stream, amqp.open_connection(stream, idle_timeout=60) as conn:
        await conn.wait_closed()


@provokes("was closed here")
async def used_after_close(_folder: Path) -> None:
    async with open_container() as container, container.connect() as conn:
        async with conn.open_sender("orders") as sender:
            pass
        await sender.send("tea")


@provokes("was refused, amqp:not-found")
async def unknown_address(_folder: Path) -> None:
    async with open_container(strict=True) as container, container.connect() as conn:
        await conn.open_sender("orders").__aenter__()


@provokes("no links are accepted here")
async def no_links(_folder: Path) -> None:
    async def deaf(conn: amqp.Connection) -> None:
        await conn.wait_closed()

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(amqp.serve, deaf, LOCALHOST)
        try:
            async with amqp.open_connection(listener.url) as conn, conn.open_sender("orders"):
                pass
        finally:
            nursery.cancel_scope.cancel()


@provokes("was detached, amqp:link:stolen")
async def stolen(_folder: Path) -> None:
    async with (
        open_container() as container,
        container.connect(container_id="desk") as one,
        container.connect(container_id="desk") as two,
        one.open_receiver("orders", name="x") as receiver,
        two.open_receiver("orders", name="x"),
    ):
        await receiver.receive()


@provokes("the peer settles weaker")
async def weaker(_folder: Path) -> None:
    async def first_only(peer: ScriptedPeer) -> None:
        await peer.accept_open()
        await peer.accept_begin()
        await peer.accept_attach(rcv_settle_mode=0)
        await trio.sleep_forever()

    async with (
        scripted_stream(first_only) as stream,
        amqp.open_connection(stream, close_timeout=0.01) as conn,
    ):
        await conn.open_receiver("orders", guarantee="exactly-once").__aenter__()


@provokes("may not receive from")
async def no_right(_folder: Path) -> None:
    container = amqp.Container("shop", authorise=amqp.Rules(("ada", "send", "orders")))
    users, ada = amqp.sasl.Server(users={"ada": "enigma"}), amqp.sasl.Plain("ada", "enigma")
    async with container.connect(users=users, sasl=ada) as conn, conn.open_receiver("orders"):
        pass


@provokes("its link is gone")
async def settled_too_late(_folder: Path) -> None:
    async with open_container() as container, container.connect() as conn:
        async with conn.open_sender("orders") as sender:
            await sender.send("tea")
        async with conn.open_receiver("orders") as receiver:
            delivery = await receiver.receive()
        delivery.accept()


@provokes("the peer does not apply ... of the filters")
async def no_filter(_folder: Path) -> None:
    async def unfiltered(peer: ScriptedPeer) -> None:
        await peer.accept_open()
        await peer.accept_begin()
        await peer.accept_attach(source=amqp.Source(address="orders"))
        await trio.sleep_forever()

    source = amqp.Source(
        address="orders", filter={"no-local": amqp.Described("apache.org:no-local-filter:list", [])}
    )
    async with (
        scripted_stream(unfiltered) as stream,
        amqp.open_connection(stream, close_timeout=0.01) as conn,
    ):
        await conn.open_receiver("orders", source=source).__aenter__()


@provokes("the handler of this message failed")
async def failing_consumer(_folder: Path) -> None:
    async with open_container() as container:

        @container.consumer("audit")
        async def audit(_delivery: amqp.Delivery) -> None:
            raise ValueError("not like this")

        async with container.connect() as conn, conn.open_sender("audit") as sender:
            await sender.send("tea")


@provokes("is full")
async def full(_folder: Path) -> None:
    async with open_container() as container:
        container.add_queue("small", max_length=1, overflow="reject")
        async with container.connect() as conn, conn.open_sender("small") as sender:
            await sender.send("tea")
            await sender.send("milk")


@provokes("released: it was not processed")
async def unroutable(_folder: Path) -> None:
    broker = RabbitMQ()
    broker.declare_exchange("orders", "topic")
    async with broker.container.connect() as conn, conn.open_sender("/exchanges/orders/tea") as sender:
        await sender.send("one cup")


@provokes("is in doubt")
async def in_doubt(_folder: Path) -> None:
    ledger = Ledger(forget=True)
    ledger.decide = False
    options: dict[str, Any] = {"name": "x", "store": amqp.MemoryTerminusStore(), "guarantee": "exactly-once"}
    async with connected(ledger) as conn:
        sender = await conn.open_sender("orders", **options).__aenter__()
        delivery = await sender.transmit("one")
        await cut(conn)
    async with connected(ledger) as conn, conn.open_sender("orders", **options):
        await delivery.outcome()


@provokes("AMQP has no type for")
async def no_type(_folder: Path) -> None:
    async with (
        open_container() as container,
        container.connect() as conn,
        conn.open_sender("orders") as sender,
    ):
        await sender.send(object())


@provokes("a message without a message_id")
async def moved_without_id(_folder: Path) -> None:
    async with open_container(queues=["out"]) as source, open_container(queues=["in"]) as target:
        target.add_queue("moved", exclusive=True)
        await source.send("out", "tea")
        async with source.connect() as here, target.connect() as there:
            await amqp.move_messages(here, "out", there, "in", ledger="moved")


@provokes("was already given the outcome")
async def settled_twice(_folder: Path) -> None:
    async with open_container(queues=["orders"]) as container, container.connect() as conn:
        await container.send("orders", "tea")
        async with conn.open_receiver("orders") as receiver:
            delivery = await receiver.receive()
            delivery.accept()
            delivery.release()


@provokes("the transaction was rolled back")
async def rolled_back(_folder: Path) -> None:
    async with open_container() as container:
        container.add_queue("small", max_length=1, overflow="reject")
        async with (
            container.connect() as conn,
            conn.open_sender("small") as sender,
            conn.open_transaction() as txn,
        ):
            await sender.send("tea", transaction=txn)
            await sender.send("milk", transaction=txn)


@asynccontextmanager
async def older(path: str = "") -> AsyncIterator[amqp091.Connection]:
    """A connection of 0-9-1 to a container."""
    async with (
        serving(dialects="all") as url,
        amqp091.open_connection(url.replace("amqp:", "amqp091:") + path) as conn,
    ):
        yield conn


@provokes("312 NO_ROUTE")
async def returned(_folder: Path) -> None:
    async with older() as conn, conn.open_publisher() as out:
        await out.publish("", "nowhere", b"tea", mandatory=True)


@provokes("530 NOT_ALLOWED - vhost ... not found")
async def unknown_virtual_host(_folder: Path) -> None:
    async with older("/shop"):
        pass


@provokes("406 PRECONDITION_FAILED - inequivalent arg")
async def declared_otherwise(_folder: Path) -> None:
    async with older() as conn, conn.open_channel() as channel:
        await channel.declare_queue("orders", durable=True)
        await channel.declare_queue("orders", durable=False)


def innermost(error: BaseException) -> BaseException:
    """The one exception of groups of one, which nurseries of the tests make."""
    while isinstance(error, BaseExceptionGroup):
        [error] = error.exceptions
    return error


def test_every_entry_of_the_page_is_provoked() -> None:
    assert set(PROVOKED) == set(QUOTED)
    assert PAGE.read_text().count("\n~~~") == len(QUOTED)


def pattern(message: str) -> str:
    return ".*".join(map(re.escape, message.split("...")))


@pytest.mark.parametrize(
    "title",
    [
        pytest.param(title, marks=[pytest.mark.logs_errors] if "handler" in title else [])
        for title in PROVOKED
        if title != "no frame from the peer"
    ],
)
async def test_message_is_raised_as_it_is_quoted(title: str, tmp_path: Path) -> None:
    await check(title, tmp_path)


async def test_message_of_a_silent_peer_is_raised_as_it_is_quoted(
    tmp_path: Path, autojump_clock: object
) -> None:
    await check("no frame from the peer", tmp_path)


async def check(title: str, folder: Path) -> None:
    kind, message = QUOTED[title]
    with pytest.raises(Exception) as raised:  # any kind: the page says which
        await PROVOKED[title](folder)
    error = innermost(raised.value)
    assert type(error).__name__ == kind, error
    assert re.fullmatch(pattern(message), str(error), re.DOTALL), error


@pytest.mark.parametrize("title", QUOTED)
def test_title_is_a_part_of_the_message(title: str) -> None:
    _, message = QUOTED[title]
    assert re.search(pattern(title), message), message
