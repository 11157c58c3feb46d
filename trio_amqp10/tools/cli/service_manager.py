"""Report the state of ``amqp10 serve`` to the service manager that started it.

systemd reads the states from a datagram socket, as ``sd_notify(3)`` describes; ``NOTIFY_SOCKET`` names it. Without that variable
nothing is reported. A report that cannot be sent is dropped: the service is more important than its supervision.

Knows the protocol of ``sd_notify``; knows no container.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from typing import TYPE_CHECKING, Final

import trio

from .command_runner import say

if TYPE_CHECKING:
    from collections.abc import Generator, MutableMapping

_SOCKET: Final = "NOTIFY_SOCKET"
_INTERVAL: Final = "WATCHDOG_USEC"
_PROCESS: Final = "WATCHDOG_PID"


class ServiceManager:
    """Sends states to the service manager.

    Args:
        address: the address of its socket: a path, or a name that begins with ``@`` in the abstract namespace; None for no
            service manager.
        interval: microseconds within which it expects a sign of life; None if it expects none.
    """

    def __init__(self, address: str | None = None, interval: int | None = None) -> None:
        self._address = address
        self._interval = interval

    @classmethod
    def of(cls, environment: MutableMapping[str, str]) -> ServiceManager:
        """Return the service manager of an environment, and remove its variables.

        So processes that are started later do not report for this one.
        """
        address = environment.pop(_SOCKET, None)
        microseconds, process = environment.pop(_INTERVAL, ""), environment.pop(_PROCESS, "")
        if address is not None and (address[:1] not in ("/", "@") or sys.platform == "win32"):
            say(
                f"amqp10: warning: NOTIFY_SOCKET={address!r}: expected the path of a socket; nothing is reported to the service manager"
            )
            address = None
        interval = None
        if process in ("", str(os.getpid())) and microseconds.isdecimal() and int(microseconds):
            interval = int(microseconds)
        return cls(address, interval)

    def ready(self, status: str) -> None:
        """Report that the service works; ``status`` is a line for people."""
        self._send("READY=1", f"STATUS={status}")

    def stopping(self) -> None:
        """Report that the service is about to end."""
        self._send("STOPPING=1", "STATUS=finishing the deliveries in flight")

    @contextlib.contextmanager
    def reloading(self, status: str) -> Generator[None]:
        """Report that the body reads the configuration again, and when that is done."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            yield
        finally:
            self.ready(status)

    async def keep_alive(self) -> None:
        """Report that the event loop works, as often as the service manager expects.

        Cancelled: the reports end, after which the service manager ends the process if it still runs.
        """
        if self._address is None or self._interval is None:
            return
        while True:
            self._send("WATCHDOG=1")
            await trio.sleep(self._interval / 2_000_000)

    def _send(self, *states: str) -> None:
        if self._address is None or sys.platform == "win32":
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        message = "\n".join(state.replace("\n", " ") for state in states)
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(message.encode(), address)
