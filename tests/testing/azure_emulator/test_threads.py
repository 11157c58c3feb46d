"""The stand-ins run in a thread, and say where."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp
from trio_amqp10.testing import event_hubs, service_bus
from trio_amqp10.testing.azure_emulator import EventHubs

from .helpers import locking, put, reading

if TYPE_CHECKING:
    from collections.abc import Sequence


def test_stand_in_runs_in_a_thread_and_says_where() -> None:
    async def main(port: int, wanted: Sequence[bytes]) -> list[Any]:
        token = amqp.SasTokens("RootManageSharedAccessKey", "SAS_KEY_VALUE")
        async with (
            amqp.open_connection(f"amqp://127.0.0.1:{port}") as conn,
            conn.keep_token(f"sb://127.0.0.1:{port}/clicks", token),
        ):
            await put(conn, "clicks", *wanted)
            async with reading(conn) as receiver:
                return [(await receiver.receive()).message.body for _ in wanted]

    with event_hubs({"clicks": 1}) as connection_string:
        found = re.fullmatch(
            r"Endpoint=sb://127\.0\.0\.1:(\d+);SharedAccessKeyName=RootManageSharedAccessKey;"
            r"SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;",
            connection_string,
        )
        assert found is not None
        assert trio.run(main, int(found[1]), [b"a", b"b"]) == [b"a", b"b"]
    hubs = EventHubs()
    hubs.add_hub("mine")
    with event_hubs(namespace=hubs) as connection_string:
        assert connection_string.startswith("Endpoint=sb://127.0.0.1:")


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
