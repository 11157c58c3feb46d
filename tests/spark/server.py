"""A container in its own thread: a peer for blocking code and other processes."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import trio

import trio_amqp10 as amqp
from trio_amqp10.spark import Ledger

from .peers import take_all

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable


class Server:
    """A ``Peer`` that listens at ``server.url``: ``with Server() as server``.

    ``down`` takes it off the network, and ``up`` brings it back at the same port, with its messages.
    """

    user = ("ada", "enigma")
    mechanisms = ("PLAIN", "SCRAM-SHA-256")

    def __init__(self, url: str = "amqp://127.0.0.1:0", **options: Any) -> None:
        self._options = options
        self.container = amqp.Container("server")
        self.container.add_node(Ledger("ledger"))
        self.url = url
        self._users: dict[str, str] | None = None
        self._token: Any = None
        self._serving = trio.CancelScope()
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._main, ready), daemon=True)
        self._thread.start()
        assert ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        trio.from_thread.run_sync(self._nursery.cancel_scope.cancel, trio_token=self._token)
        self._thread.join(10)

    async def _main(self, ready: threading.Event) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as self._nursery:
            await self._up()
            ready.set()
            await trio.sleep_forever()

    async def _up(self) -> None:
        self._serving = trio.CancelScope()
        sasl = amqp.sasl.Server(users=dict([self.user]), anonymous=True)
        listeners = await self._nursery.start(
            self._serve, partial(self.container.serve, self.url, sasl=sasl, **self._options)
        )
        self.url = listeners[0].url

    async def _serve(self, serve: Callable[..., Awaitable[None]], task_status: Any) -> None:
        self._ended = threading.Event()
        with self._serving:
            await serve(task_status=task_status)
        self._ended.set()

    def up(self) -> None:
        """Listen again."""
        trio.from_thread.run(self._up, trio_token=self._token)

    def down(self) -> None:
        """Close all connections, and stop listening."""
        trio.from_thread.run_sync(self._serving.cancel, trio_token=self._token)
        assert self._ended.wait(10)

    def call(self, function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """Run an async function in the thread of the container."""
        return trio.from_thread.run(function, *args, trio_token=self._token)

    def ask(self, function: Callable[[], Any]) -> Any:
        """Run a function in the thread of the container."""
        return trio.from_thread.run_sync(function, trio_token=self._token)

    @property
    def name(self) -> str:
        """Its container-id."""
        return str(self.container.name)

    def queue(self, name: str) -> Any:
        """Return a queue, which is added if it does not exist."""

        def find() -> Any:
            found = self.container.nodes.get(name)  # an empty queue is false
            return self.container.add_queue(name) if found is None else found

        return self.ask(find)

    def address(self, name: str) -> str:
        """Return the address of a queue, which is added if it does not exist."""
        self.queue(name)
        return name

    def bounded(self, name: str, length: int) -> str:
        """Return the address of a new queue that rejects messages above a length."""
        self.ask(lambda: self.container.add_queue(name, max_length=length, overflow="reject"))
        return name

    def releasing(self) -> str:
        """Return an address where all messages are released."""

        async def release(delivery: amqp.Delivery) -> None:
            delivery.release()

        self.ask(lambda: self.container.consumer("releasing")(release))
        return "releasing"

    def missing(self) -> str:
        """Return an address without a node, where none is made."""
        self.ask(lambda: setattr(self.container, "strict", True))
        return "missing"

    def put(self, name: str, messages: Iterable[Any]) -> None:
        """Send to a queue."""
        self.queue(name)

        async def send() -> None:
            for each in messages:
                await self.container.send(name, each)

        self.call(send)

    def held(self, name: str) -> int:
        """Return the number of messages in a queue, including unsettled ones."""
        return int(self.ask(lambda: len(self.container.nodes[name])))  # type: ignore[arg-type]

    def receivers(self, name: str) -> int:
        """Return the number of receivers of a queue."""
        return int(self.queue(name).statistics()["receivers"])

    def take(self, name: str) -> list[amqp.Message]:
        """Receive and accept all messages of a queue."""
        self.queue(name)

        async def receive() -> list[amqp.Message]:
            async with self.container.connect() as connection:
                return await take_all(connection, name)

        return list(self.call(receive))
