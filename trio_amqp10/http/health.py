"""``/healthz`` and ``/readyz``: probes of a container for supervisors.

They need no authentication. ``/healthz`` answers while the process works. ``/readyz`` answers 200 if the container can take messages: it listens, its store
can be written, and its messages take less memory than the limit; otherwise 503, with the reasons in JSON. An answer is at most
a second old, so that probes, however many, cost little. It names neither files nor addresses, because anyone may ask.

Knows management; has no other figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trio_amqp10.container.management.errors import ManagementError

if TYPE_CHECKING:
    from starlette.requests import Request

    from trio_amqp10.container.management import Management

PATHS: Final = ("/healthz", "/readyz")
_HTTP: Final = ("http://", "https://")
_FRESH: Final = 1.0
"""Seconds for which an answer holds."""
_PATIENCE: Final = 1.0
"""Seconds that the store has for a commit."""
_HEADERS: Final = {"cache-control": "no-store"}


def routes(management: Management) -> list[Route]:
    """Return the routes of the probes; ``management`` is that of the program."""
    readiness = Readiness(management)

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "ok"}, headers=_HEADERS)

    async def readyz(_request: Request) -> Response:
        reasons = await readiness.reasons()
        if reasons:
            return JSONResponse({"status": "failed", "reasons": reasons}, status_code=503, headers=_HEADERS)
        return JSONResponse({"status": "ok"}, headers=_HEADERS)

    return [
        Route(path, answer, methods=["GET"]) for path, answer in zip(PATHS, (healthz, readyz), strict=True)
    ]


class Readiness:
    """Whether a container can take messages.

    Args:
        management: of the program.
    """

    def __init__(self, management: Management) -> None:
        self._management = management
        self._asking = trio.Lock()
        self._until = 0.0
        self._reasons: list[str] = []

    async def reasons(self) -> list[str]:
        """Return why it cannot take messages; empty if it can.

        Cancelled: nothing has changed.
        """
        async with self._asking:
            if trio.current_time() >= self._until:
                self._reasons = await self._look()
                self._until = trio.current_time() + _FRESH
            return self._reasons

    async def _look(self) -> list[str]:
        page = await self._management.containers().page(count=1)
        [container] = page.items
        found: list[str] = []
        if container.finishing:
            found.append("the container is finishing, and takes no new work")
        elif all(url.startswith(_HTTP) for url in container.listeners):  # HTTP alone takes no messages.
            found.append("no listener is open")
        if container.throttled:
            found.append(
                f"messages take {container.octets} octets of memory: the limit is {container.memory_limit}"
            )
        try:
            with trio.fail_after(_PATIENCE):
                await self._management.check_store()
        except trio.TooSlowError:
            found.append(f"the store has not written a row in {_PATIENCE:g} s")
        except ManagementError:  # It names the file, and is in the log.
            found.append("the store cannot be written")
        return found
