"""What the library says where it is used wrongly, or where nobody answers: what was wrong, with which value."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_fast
from trio_amqp10.testing import open_container

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path


@pytest.fixture
async def conn() -> AsyncIterator[amqp.Connection]:
    async with open_container() as container, container.connect() as conn:
        yield conn


async def enter(opening: Any) -> None:
    async with opening:
        raise AssertionError("nobody is there")


@pytest.mark.parametrize(
    "use",
    [
        lambda: enter(amqp.open_connection("amqp://127.0.0.1:1")),
        lambda: enter(amqp091.open_connection("amqp091://127.0.0.1:1")),
        lambda: enter(amqp_fast.open_connection("amqp-fast://127.0.0.1:1")),
        lambda: enter(amqp.Container().connect()),
        lambda: amqp.serve(print, "amqp://127.0.0.1:0"),  # type: ignore[arg-type]
        lambda: amqp.Container().serve("amqp://127.0.0.1:0"),
    ],
    ids=["open_connection", "amqp091", "amqp_fast", "connect", "serve", "container"],
)
def test_without_trio_it_is_said_that_trio_is_missing(use: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await use()

    with pytest.raises(RuntimeError, match=r"needs trio, .* trio\.run\(main\)"):
        asyncio.run(main())


@pytest.mark.parametrize("where", [None, 5, b"amqp://127.0.0.1", [None], ["amqp://127.0.0.1", 7]])
def test_what_is_no_url_is_named(where: Any) -> None:
    with pytest.raises(
        TypeError, match=r"cannot dial .*: give a URL such as 'amqp://localhost:5672'"
    ) as caught:
        amqp.open_connection(where)
    assert repr(where) in str(caught.value)


def test_urls_may_come_from_an_iterator() -> None:
    assert amqp.open_connection(iter(["amqp://127.0.0.1:1", "amqp://127.0.0.1:2"]))  # type: ignore[arg-type]


async def test_host_that_is_not_known_is_named() -> None:
    with pytest.raises(socket.gaierror, match=r"host 'no-such-host\.invalid'") as caught:
        await enter(amqp.open_connection("amqp://no-such-host.invalid"))
    assert caught.value.errno == socket.EAI_NONAME


async def test_unix_socket_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=rf"amqp\+unix://{tmp_path}/none"):
        await enter(amqp.open_connection(f"amqp+unix://{tmp_path}/none"))


async def test_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"amqp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OSError, match=rf"port 0 selects a free port\): '{url}'") as caught:
            await amqp.serve(print, url)  # type: ignore[arg-type]
    assert caught.value.errno == errno.EADDRINUSE


async def test_directory_that_is_not_there_is_named_where_it_is_listened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=rf"amqp\+unix://{tmp_path}/none/socket"):
        await amqp.serve(print, f"amqp+unix://{tmp_path}/none/socket")  # type: ignore[arg-type]


async def test_all_addresses_that_were_tried_are_named() -> None:
    with pytest.raises(OSError, match=r"127\.0\.0\.1:1") as caught:
        await enter(amqp.open_connection("amqp://127.0.0.1:1"))
    assert isinstance(caught.value.__cause__, (OSError, ExceptionGroup))


def test_error_of_a_peer_has_no_name_that_could_be_caught() -> None:
    assert not hasattr(amqp, "Error")
    assert all(
        issubclass(value, Exception)
        for name in amqp.__all__  # type: ignore[attr-defined]
        if name.endswith("Error") and isinstance(value := getattr(amqp, name), type)
    )


@pytest.mark.parametrize("option", ["idle_timeout", "max_frame_size", "channel_max"])
def test_option_that_is_no_number_is_refused_at_once(option: str) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=f"{option}='3': expected an? (int|number) or None"):
        amqp.open_connection("amqp://localhost", **{option: "3"})  # type: ignore[arg-type]


async def test_what_was_not_entered_says_how_to_enter_it(conn: amqp.Connection) -> None:
    openings: list[Any] = [
        amqp.open_connection("amqp://localhost"),
        conn.open_sender("orders"),
        conn.open_receiver("orders"),
        conn.open_requester("orders"),
        conn.open_transaction(),
    ]
    for opening in openings:
        with pytest.raises(AttributeError, match="no attribute 'send'; enter it first: async with"):
            opening.send("tea")


async def test_argument_that_is_missing_is_missing_from_the_function_that_was_called(
    conn: amqp.Connection,
) -> None:
    with pytest.raises(TypeError, match=r"^open_receiver\(\): missing a required argument: 'address'$"):
        conn.open_receiver()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^open_connection\(\): missing a required argument: 'where'$"):
        amqp.open_connection()  # type: ignore[call-arg]


async def test_refused_connection_says_so_in_class_and_message() -> None:
    with trio.socket.socket() as taken:  # bound, and not listening: nobody else gets the port
        await taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(
            ConnectionRefusedError, match=rf"cannot connect to localhost:{port}: Connection refused"
        ):
            await enter(amqp.open_connection(f"amqp://localhost:{port}"))


def test_address_that_is_taken_is_named() -> None:
    container = amqp.Container()
    container.add_queue("orders")
    with pytest.raises(
        amqp.LocalProtocolError, match="queue 'orders' exists already: choose another address"
    ):
        container.add_queue("orders")


@pytest.mark.parametrize("credit", [1.5, True, "3", None, -1])
async def test_credit_that_is_no_number_of_messages_changes_nothing(
    conn: amqp.Connection, credit: Any
) -> None:
    async with conn.open_receiver("q", credit=0) as receiver, conn.open_sender("q") as sender:
        with pytest.raises(amqp.LocalProtocolError, match=r"set_credit\(.*at least 0"):
            receiver.set_credit(credit)
        await sender.send("still usable")
        assert (await receiver.receive()).message.body == "still usable"


@pytest.mark.parametrize("most", [0, 1.5, "3", None])
async def test_number_of_messages_that_is_none_takes_no_message(conn: amqp.Connection, most: Any) -> None:
    async with conn.open_receiver("q") as receiver, conn.open_sender("q") as sender:
        await sender.send("there")
        with pytest.raises(amqp.LocalProtocolError, match=r"receive_many\(.*at least 1"):
            await receiver.receive_many(most)
        assert (await receiver.receive()).message.body == "there"
