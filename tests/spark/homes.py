"""The peers of ``kills``, and the producer of their messages.

``python -m tests.spark.homes`` is a container with a queue and a ledger.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Literal, Self

import trio

import trio_amqp10 as amqp
from tests.interop import rabbitmq
from tests.interop.peers import PEERS
from trio_amqp10.spark import Ledger

from .peers import take_all

if TYPE_CHECKING:
    from pathlib import Path


class Home:
    """The queue that is read.

    Attributes:
        url: where it is.
        address: of the queue.
        name: as a victim.
    """

    url: str
    name = "container"
    address = "q"
    mortal = False
    """Whether it may be killed, because it keeps its messages."""
    sent_again = 0
    """The most messages that the producer sends twice after a kill.

    None if the sender's link resumes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        """Kill it, and start it again."""
        raise NotImplementedError


class Container(Home):
    """Ours, with a ledger and a queue to send to."""

    _arguments: tuple[str, ...] = ("tests.spark.homes",)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *self._arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().removeprefix("listening ").strip()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=10)


class StoredContainer(Container):
    """``amqp10 serve --store``, which is killed like everything else."""

    mortal = True

    def __enter__(self) -> Self:
        listen = getattr(self, "url", "amqp://127.0.0.1:0")  # at the port that it had
        store = str(self._folder / "container.db")
        self._arguments = ("trio_amqp10", "serve", "--listen", listen, "--store", store, "--queue", "q")
        return super().__enter__()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()
        self.__enter__()


class RabbitMQ(Home):
    """A node of RabbitMQ 4."""

    name = "RabbitMQ"
    mortal = True
    sent_again = 170  # as much credit as it gives, and it keeps no links

    def __enter__(self) -> Self:
        self._broker = rabbitmq.start(4, peers=PEERS)
        self.url = self._broker.url
        self.address = self._broker.new_queue()
        return self

    def __exit__(self, *_: object) -> None:
        self._broker.stop()

    def kill(self) -> None:
        self._broker.kill()
        self._broker.start()


async def serve() -> None:
    """A process of its own."""
    container = amqp.Container("peer")
    for name in ("q", "out"):
        container.add_queue(name)
    container.add_node(Ledger("ledger"))
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        print(listeners[0].url, flush=True)


class Producer:
    """Sends numbered messages, about ``rate`` a second, until ``stop`` is called.

    Each is sent once, if the peer keeps the link.
    """

    def __init__(self, home: Home, rate: int) -> None:
        self.sent = 0
        self._home = home
        self._rate = rate
        self._enough = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._run,), daemon=True)
        self._thread.start()

    async def _run(self) -> None:
        mortal = self._home.mortal
        again = self._home.sent_again > 0
        guarantee: Literal["exactly-once", "at-least-once"] = "at-least-once" if again else "exactly-once"
        async with (
            amqp.open_connection(self._home.url, reconnect=mortal) as connection,
            connection.open_sender(self._home.address, guarantee=guarantee) as sender,
        ):
            while not self._enough.is_set():
                for _ in range(self._rate // 10):
                    message = amqp.Message(b"%d" % self.sent, message_id=self.sent, durable=mortal)
                    await sender.transmit(message)
                    self.sent += 1
                await trio.sleep(0.1)
            await sender.flush()

    def stop(self) -> int:
        self._enough.set()
        self._thread.join()
        return self.sent


async def take(url: str, name: str) -> list[bytes]:
    """The bodies of all that a queue has."""
    async with amqp.open_connection(url) as connection:
        return [message.body for message in await take_all(connection, name)]


if __name__ == "__main__":
    trio.run(serve)
