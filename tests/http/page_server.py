"""A container that serves its page, in a thread of its own: for a browser, which is driven from outside of trio."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.container import Container

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from trio_amqp10.net.listener import Listener
    from trio_amqp10.sasl import Server


class PageServer:
    """A container in a thread.

    Attributes:
        container: the container; touch it through ``do``.
        port: at which HTTP is served.
    """

    def __init__(self, container: Container) -> None:
        self.container = container
        self.port = 0
        self._token: Any = None
        self._serving: trio.CancelScope | None = None
        self._nursery: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def do(self, task: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """Run a function in the container's thread, and return its result."""
        return trio.from_thread.run(task, *args, trio_token=self._token)

    async def serve(self, users: Server | None = None) -> None:
        """Serve HTTP, at the port of before if there was one."""
        scope = self._serving = trio.CancelScope()

        async def serving(task_status: trio.TaskStatus[Any]) -> None:
            url = f"http://127.0.0.1:{self.port}"
            with scope:
                await self.container.serve_http(url, sasl=users, task_status=task_status)

        [listener] = await self._nursery.start(serving)
        found: Listener = listener
        self.port = found.port

    async def stop(self) -> None:
        """Serve HTTP no more."""
        assert self._serving is not None
        self._serving.cancel()
        await trio.sleep(0.1)

    async def keep(self, task: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Start a task that runs until the end."""
        self._nursery.start_soon(task, *args)

    async def run(self, started: threading.Event, ended: threading.Event, users: Server | None) -> None:
        """Serve until ``ended`` is set."""
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await self.serve(users)
            started.set()
            await trio.to_thread.run_sync(ended.wait, abandon_on_cancel=True)
            nursery.cancel_scope.cancel()


@contextmanager
def page_server(container: Container | None = None, users: Server | None = None) -> Generator[PageServer]:
    """Serve the page of a container as long as the block lasts."""
    server = PageServer(container or Container("box"))
    started, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=partial(trio.run, server.run, started, ended, users))
    thread.start()
    try:
        assert started.wait(60)
        yield server
    finally:
        ended.set()
        thread.join()
