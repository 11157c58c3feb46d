"""The rooms of the package, and which stands on which: drawn from the imports.

An arrow leads from a room to one that it imports when it runs. One that others imply is left out: where a room stands on a
second, and that on a third, there is no arrow from the first to the third.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import trio_amqp10
from tests.structure import imports

from .drawing import Drawing, Point

__all__ = ["draw", "rooms", "stands_on"]

_PACKAGE: Final = Path(trio_amqp10.__file__).parent
_TRACE: Final = "tools/trace"
_WORDS: Final = {
    "core": "errors, state machines, timers",
    "net": "streams, TLS, listeners, pump, recovery",
    "sasl": "mechanisms",
    "broker": "nodes, exchanges, stores, rights",
    "container": "a server of named nodes",
    "http": "management API, metrics",
    "testing": "emulators, scripted peers",
    "tools": "the amqp10 command",
    _TRACE: "reads captures and frame logs",
    "bridges": "asyncio, threads",
    "otel": "traces and metrics",
    "kombu": "a transport for Celery",
    "spark": "source and sink",
}
_WIDTH, _HEIGHT, _STEP = 176.0, 62.0, 112.0
_MARGIN: Final = 14.0


def room_of(path: Path) -> str:
    """Return the room of a file: its folder at the top level, or its own name there.

    The reader of traces is a room of its own.
    """
    parts = path.relative_to(_PACKAGE).with_suffix("").parts
    return _TRACE if "/".join(parts[:2]) == _TRACE else parts[0]


@cache
def rooms() -> dict[str, list[str]]:
    """Return the folders of the top level, each with the rooms inside it."""
    found: dict[str, list[str]] = {}
    for folder in sorted(each.parent for each in _PACKAGE.glob("*/__init__.py")):
        inner = [each.parent.name for each in sorted(folder.glob("*/__init__.py"))]
        found[folder.name] = [*(["spec"] if (folder / "spec.py").exists() else []), *inner]
    found["tools"].remove("trace")
    return found | {_TRACE: []}


@cache
def stands_on() -> dict[str, set[str]]:
    """Return the rooms that each room imports at run time, without implied ones."""
    files = sorted(_PACKAGE.rglob("*.py"))
    direct: dict[str, set[str]] = {room: set() for room in rooms()}
    for path, others in imports(files, typing=False).items():
        if room_of(path) in direct:
            direct[room_of(path)] |= {room_of(other) for other in others} & direct.keys()
    for room, others in direct.items():
        others.discard(room)
    every = {room: _below(room, direct) for room in direct}
    return {
        room: {other for other in others if not any(other in every[each] for each in others - {other})}
        for room, others in direct.items()
    }


def _below(room: str, direct: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = [room]
    while todo:
        new = direct[todo.pop()] - found
        found |= new
        todo += new
    return found


def _floors() -> list[list[str]]:
    """Return the rooms by floor, lowest first; a room imports none of its own floor."""
    height: dict[str, int] = {}

    def of(room: str) -> int:
        if room not in height:
            height[room] = max((of(each) + 1 for each in stands_on()[room]), default=0)
        return height[room]

    floors: list[list[str]] = [[] for _ in range(max(map(of, rooms())) + 1)]
    for room in rooms():
        floors[height[room]].append(room)
    return floors


def draw(theme: str) -> str:
    """The SVG."""
    floors = _floors()
    across = max(map(len, floors))
    width = across * (_WIDTH + 2 * _MARGIN)
    drawing = Drawing(
        round(width), round(len(floors) * _STEP), "The rooms of the package, and what each stands on", theme
    )
    places: dict[str, Point] = {}
    for number, floor in enumerate(reversed(floors)):
        for index, room in enumerate(floor):
            places[room] = (width * (index + 0.5) / len(floor), number * _STEP + _STEP / 2)
    for room, others in stands_on().items():
        for other in sorted(others):
            (x, y), (end, below) = places[room], places[other]
            lines = [(x, y + _HEIGHT / 2), (end, below - _HEIGHT / 2)]
            drawing.arrow(lines, colour="grid", title=f"{room} -> {other}")
    for room, place in places.items():
        inner = rooms()[room]
        words = [room, _WORDS.get(room, "")]
        if room not in _WORDS:
            words = (
                [room, ", ".join(inner[:3]), ", ".join(inner[3:])]
                if len(inner) > 3
                else [room, ", ".join(inner)]
            )
        drawing.box(
            place,
            (_WIDTH, _HEIGHT),
            [each for each in words if each],
            colour=0 if room not in _WORDS else "ink",
        )
    return drawing.text()
