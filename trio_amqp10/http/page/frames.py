"""The watches of frames that the page began, each by a name to prove it.

The name cannot be guessed. A watch ends when the page ends it, when no frames were asked for during ten seconds, and when HTTP is
not served any more.

Knows watches and users; the management does the work.
"""

from __future__ import annotations

import base64
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.http.api.bodies import field
from trio_amqp10.http.api.paging import json_response
from trio_amqp10.http.errors import RequestError

from . import shapes

if TYPE_CHECKING:
    from starlette.responses import Response

    from trio_amqp10.container.management import FrameWatch, WatchedFrame
    from trio_amqp10.http.api.call import Call
    from trio_amqp10.sasl import Identity

    from .history import History

WATCHES: Final = "frame_watches"
"""The name of the ``FrameWatches`` in the state of the application."""


class FrameWatches:
    """The watches by their names, each with the user who began it."""

    def __init__(self) -> None:
        self._watches: dict[str, tuple[FrameWatch, str | None]] = {}

    def add(self, watch: FrameWatch, user: Identity | None) -> str:
        """Add a watch, and return its name. Those that have ended are forgotten."""
        self._watches = {name: each for name, each in self._watches.items() if not each[0].closed}
        name = token_urlsafe(12)
        self._watches[name] = watch, _name_of(user)
        return name

    def find(self, name: str, user: Identity | None) -> FrameWatch:
        """Return the watch that this user began.

        Raises:
            RequestError: 404, there is none.
        """
        watch, owner = self._watches.get(name, (None, None))
        if watch is None or watch.closed or owner != _name_of(user):
            raise RequestError(404, "not_found", "this watch has ended: begin another one")
        return watch

    def close(self) -> None:
        """End all watches."""
        for watch, _ in self._watches.values():
            watch.close()
        self._watches.clear()


def _name_of(user: Identity | None) -> str | None:
    return None if user is None else user.name


def _watches(call: Call) -> FrameWatches:
    found: FrameWatches = getattr(call.request.app.state, WATCHES)
    return found


async def begin(call: Call, _history: History) -> Response:
    """Begin to watch the frames of a connection. Cancelled: the watch ends by itself."""
    body = await call.body()
    number, payload = field(body, "connection", int), field(body, "payload", int, 0)
    watch = await call.management.watch_frames(number, payload=payload)
    return await json_response({"watch": _watches(call).add(watch, call.identity)})


async def frames(call: Call, _history: History) -> Response:
    """Return the frames after a number. Cancelled: no frame is lost."""
    body = await call.body()
    watch = _watches(call).find(field(body, "watch", str), call.identity)
    found = await watch.frames(field(body, "after", int, 0), field(body, "count", int, 500))
    return await json_response({"frames": [_shown(each) for each in found.frames], "over": found.over})


def _shown(frame: WatchedFrame) -> dict[str, Any]:
    shown = shapes.status(frame, "payload", "fields")
    return {
        **shown,
        "fields": shapes.plain(frame.fields),
        "payload": base64.b64encode(frame.payload).decode(),
    }


async def end(call: Call, _history: History) -> Response:
    """End a watch."""
    _watches(call).find(field(await call.body(), "watch", str), call.identity).close()
    return await json_response({})
