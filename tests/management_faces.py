"""The source of management for asyncio and without async: ``python -m tests.management_faces`` writes both modules.

``RemoteManagement`` is the one list of its calls. Each call of a face has the same parameters and the same docstring, and awaits the
call of trio through the bridge. ``tests/test_management_faces.py`` holds that the modules are what this makes.
"""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Final

from trio_amqp10 import bridges
from trio_amqp10.container.management import remote_management

from .blocking_source import WITHOUT_ASYNC, changed, write

LIST: Final = Path(remote_management.__file__)

_HEAD: Final = '''\
"""Management of the container of a peer, DESCRIBED.

``python -m tests.management_faces`` generates this module from ``container/management/remote_management.py``: change that, but not this.
"""

# ruff: noqa: A002, F401

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

from trio_amqp10.amqp10.message import Message  # noqa: TC001 - the manual reads annotations

from .BRIDGE import Opened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.container.management.listing import Page
    from trio_amqp10.container.management.remote_listing import RemoteListing as AsyncListing
    from trio_amqp10.container.management.remote_listing import RemoteReading as AsyncReading
    from trio_amqp10.container.management.remote_management import RemoteManagement as AsyncRemoteManagement
    from trio_amqp10.container.management.single_messages import Ending
    from trio_amqp10.container.management.status import STATUSES

    from .BRIDGE import Bridge

T = TypeVar("T")


class RemoteListing(Generic[T]):
    """A list of things in the container of a peer.

    Read it with ``async for``, or in pages, as ``trio_amqp10.container.management.RemoteListing``.
    """

    def __init__(self, bridge: Bridge, inner: AsyncListing[T]) -> None:
        self._bridge = bridge
        self._inner = inner

    def __aiter__(self) -> RemoteReading[T]:
        """Iterate over all entries: those of one reply at a time."""
        return RemoteReading(self._bridge, self._inner.reading())

    async def page(self, offset: int = 0, count: int = 500) -> Page[T]:
        """Return a page: at most ``count`` entries, after the first ``offset``.

        For its errors see the method of trio.

        Cancelled: nothing has changed.
        """
        return await self._bridge.run(lambda: self._inner.page(offset, count))

    async def count(self) -> int:
        """Return the number of entries; for its errors see the method of trio.

        Cancelled: nothing has changed.
        """
        return await self._bridge.run(self._inner.count)

    def __repr__(self) -> str:
        return f"<FACE {self._inner!r}>"


class RemoteReading(Generic[T]):
    """One reading of a list."""

    def __init__(self, bridge: Bridge, inner: AsyncReading[T]) -> None:
        self._bridge = bridge
        self._inner = inner
        self._entries: list[T] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next entry.

        Cancelled: no entry is lost.
        """
        if not self._entries:
            self._entries = (await self._bridge.run(self._inner.some, self._inner.put_back))[::-1]
        if not self._entries:
            raise StopAsyncIteration
        return self._entries.pop()


class RemoteManagement(Opened["AsyncRemoteManagement"]):
'''

_CHANGES: Final = (*WITHOUT_ASYNC, (r"Any number of tasks may", "Any number of threads may"))
"""How the module for asyncio becomes the other one."""


def module(face: str) -> Path:
    """The module of a face, ``"aio"`` or ``"blocking"``."""
    name = "asyncio" if face == "aio" else face
    return Path(bridges.__file__).with_name(f"{name}_management_generated.py")


def source(face: str) -> str:
    """The text of the module of a face."""
    tree = ast.parse(LIST.read_text())
    (listed,) = [
        each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == "RemoteManagement"
    ]
    calls = [
        each
        for each in listed.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("_")
    ]
    text = _HEAD + _docstring(listed, 4) + "".join(map(_call, calls))
    used = {
        name.id for call in calls for name in ast.walk(call.returns or call) if isinstance(name, ast.Name)
    }
    (statuses,) = [
        each
        for each in tree.body
        if isinstance(each, ast.ImportFrom) and each.module == "status" and each.level
    ]
    text = text.replace("STATUSES", ", ".join(each.name for each in statuses.names if each.name in used))
    bridge, described = (
        ("asyncio_bridge", "for asyncio") if face == "aio" else ("blocking_bridge", "without async")
    )
    for word, meaning in (("BRIDGE", bridge), ("DESCRIBED", described), ("FACE", face)):
        text = text.replace(word, meaning)
    return changed(text, _CHANGES) if face == "blocking" else text


def _docstring(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, indent: int) -> str:
    text = ast.get_docstring(node)
    assert text, node.name
    ending = "\n" if "\n" in text else ""
    return textwrap.indent(f'"""{text}{ending}"""\n', " " * indent)


def _call(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The method of a face for a call of the list."""
    given = node.args
    passed = [each.arg for each in given.args[1:]] + [f"{each.arg}={each.arg}" for each in given.kwonlyargs]
    if given.kwarg is not None:
        passed.append(f"**{given.kwarg.arg}")
    called = f"self._inner.{node.name}({', '.join(passed)})"
    assert node.returns is not None, node.name
    head = f"def {node.name}({ast.unparse(given)}) -> {ast.unparse(node.returns)}:"
    if isinstance(node, ast.AsyncFunctionDef):
        run = f"lambda: {called}" if passed else called.removesuffix("()")
        head, body = f"async {head}", f"return await self._bridge.run({run})"
    else:
        body = f"return RemoteListing(self._bridge, {called})"
    return f"\n    {head}\n{_docstring(node, 8)}        {body}\n"


if __name__ == "__main__":
    for each in ("aio", "blocking"):
        write(module(each), source(each))
