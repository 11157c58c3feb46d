"""AMQP 0-9-1: a client for trio, and below it the codec and the engine, sans-IO, for both roles.

The modules of this folder know no clock, socket, trio or logger. The names here are those of the client, which stands in
``client``, lists them, and is imported when one of them is first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import *  # noqa: F403 - all of its names, which it lists


def __getattr__(name: str) -> Any:
    # A module of this folder is no name of the client: what imports one gets here first, while the client may need it itself.
    public = name == "__all__" or not name.startswith("_")
    if public and find_spec(f"{__name__}.{name}") is None:
        client = import_module(".client", __name__)
        if name == "__all__" or name in client.__all__:
            return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
