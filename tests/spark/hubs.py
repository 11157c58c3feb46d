"""Event hubs in another thread, filled by a client."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

import trio

import trio_amqp10 as amqp
from trio_amqp10.testing import event_hubs
from trio_amqp10.testing.azure_emulator import EventHubs, HubOptions

if TYPE_CHECKING:
    from pathlib import Path

KEY_NAME = "RootManageSharedAccessKey"
KEY = "SAS_KEY_VALUE"


class HubServer:
    """Event hubs in another thread: ``with HubServer(clicks=HubOptions()) as server``."""

    def __init__(self, **hubs: HubOptions) -> None:
        self.namespace = EventHubs()
        for name, options in hubs.items():
            self.namespace.add_hub(name, options)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        text = self._stack.enter_context(event_hubs(namespace=self.namespace))
        found = re.search(r":([0-9]+);", text)
        assert found is not None
        self.url = f"amqp://127.0.0.1:{found[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def fill(self, partition: int, count: int, hub: str = "clicks") -> None:
        """Send so many events, whose bodies are their numbers."""
        begin = self.namespace.hubs[hub].partitions[str(partition)].end

        async def send() -> None:
            async with (
                amqp.open_connection(self.url) as connection,
                connection.keep_token(f"sb://127.0.0.1/{hub}", amqp.SasTokens(KEY_NAME, KEY)),
                connection.open_sender(f"{hub}/Partitions/{partition}") as sender,
            ):
                for number in range(begin, begin + count):
                    await sender.transmit(b"%d" % number)

        trio.run(send)

    def options(self, folder: Path, key: str = KEY, **given: str) -> dict[str, str]:
        """For Spark, in the name of the key, which is in a file in this folder."""
        path = folder / "key"
        path.write_text(key)
        return {
            "url": self.url,
            "mode": "log",
            "dialect": "event-hubs",
            "token": "sas",
            "username": KEY_NAME,
            "secretFile": str(path),
            "columns": "address,seq,body",
        } | given
