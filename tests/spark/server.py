"""A container in a thread of its own: a real peer for code that blocks, and for other processes."""

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
    """``with Server() as server``: it listens at ``server.url``, and takes calls from other threads.

    A ``Peer``: ``down`` and ``up`` take it off the network and bring it back at the same port, with what it holds.
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
        """Close all connections, and listen no more."""
        trio.from_thread.run_sync(self._serving.cancel, trio_token=self._token)
        assert self._ended.wait(10)

    def call(self, function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """Run an async function there."""
        return trio.from_thread.run(function, *args, trio_token=self._token)

    def ask(self, function: Callable[[], Any]) -> Any:
        """Run a function there."""
        return trio.from_thread.run_sync(function, trio_token=self._token)

    @property
    def name(self) -> str:
        """Its container-id."""
        return str(self.container.name)

    def queue(self, name: str) -> Any:
        """A queue, added if need be."""

        def find() -> Any:
            found = self.container.nodes.get(name)  # an empty queue is false
            return self.container.add_queue(name) if found is None else found

        return self.ask(find)

    def address(self, name: str) -> str:
        """Of a queue, which is added if need be."""
        self.queue(name)
        return name

    def bounded(self, name: str, length: int) -> str:
        """The address of a new queue that rejects what is more than so many messages."""
        self.ask(lambda: self.container.add_queue(name, max_length=length, overflow="reject"))
        return name

    def releasing(self) -> str:
        """An address where all that is sent is released."""

        async def release(delivery: amqp.Delivery) -> None:
            delivery.release()

        self.ask(lambda: self.container.consumer("releasing")(release))
        return "releasing"

    def missing(self) -> str:
        """An address where there is nothing, and nothing is made."""
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
        """Messages that a queue holds, those with receivers among them."""
        return int(self.ask(lambda: len(self.container.nodes[name])))  # type: ignore[arg-type]

    def receivers(self, name: str) -> int:
        """Links that receive from a queue."""
        return int(self.queue(name).statistics()["receivers"])

    def take(self, name: str) -> list[amqp.Message]:
        """All that a queue has, taken off it."""
        self.queue(name)

        async def receive() -> list[amqp.Message]:
            async with self.container.connect() as connection:
                return await take_all(connection, name)

        return list(self.call(receive))
