"""Refuse a function that is not async when it is given, rather than at each call."""

from __future__ import annotations

from inspect import iscoroutinefunction, isfunction, unwrap
from typing import TYPE_CHECKING, Any

from .errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable


def require_async(function: Callable[..., Any], use: str) -> None:
    """Check that a plain function is a coroutine function.

    Any other callable may return an awaitable, so it is accepted.

    Args:
        function: The function, method or callable object to check.
        use: The use that it is given for, as in ``"container.function('upper')"``.

    Raises:
        LocalProtocolError: It is written with ``def`` (or as a generator), or is not callable.
    """
    if not callable(function):
        raise LocalProtocolError(f"{use} requires an async function, not {function!r}")
    written = unwrap(function)
    if isfunction(written) and written.__name__ != "<lambda>" and not iscoroutinefunction(written):
        raise LocalProtocolError(f"{use} requires an async function: write async def {written.__name__}(...)")
