"""What our listening peers on Qpid Proton have in common: a free port, and an end. Runs under the peers' own venv.

Imported by the ``proton_*.py`` that are run as programs, from their own folder.
"""

from __future__ import annotations

import json
import signal
import socket
from typing import Any


class Stop:
    """Stops the container when its time has come."""

    def __init__(self, container: Any) -> None:
        self.container = container

    def on_timer_task(self, event: Any) -> None:
        self.container.stop()


class Tick:
    """Wakes the reactor's wait in C, so that Python gets to run the signal handler."""

    def on_timer_task(self, event: Any) -> None:
        event.container.schedule(0.1, Tick())


def listen(container: Any, scheme: str = "amqp") -> None:
    """Listen at a free port of this machine until SIGTERM, and print which it is."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    container.listen(f"{scheme}://127.0.0.1:{port}")
    signal.signal(signal.SIGTERM, lambda *_: container.stop())
    container.schedule(0.1, Tick())
    print(json.dumps({"port": port}), flush=True)
