"""The dialects that a container can serve beside AMQP 1.0, by name.

Knows names; a dialect is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, cast

from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio_amqp10.container.service import Container
    from trio_amqp10.net.dialect import Dialect

__all__ = ["DIALECTS", "dialects_of"]

DIALECTS: Final = {"0-9-1": ("amqp091.dialect", "Amqp091")}
"""Where the class of each is; it is called with the container."""


def dialects_of(container: Container, asked: Literal["all"] | Sequence[str | Dialect]) -> tuple[Dialect, ...]:
    """The dialects that are asked for.

    Args:
        container: that serves them.
        asked: ``"all"``, or names and dialects.

    Raises:
        LocalProtocolError: there is none of such a name.
    """
    names: Sequence[str | Dialect] = tuple(DIALECTS) if asked == "all" else asked
    if isinstance(names, str):
        names = (names,)
    return tuple(_made(container, each) if isinstance(each, str) else each for each in names)


def _made(container: Container, name: str) -> Dialect:
    if name not in DIALECTS:
        raise LocalProtocolError(f"no dialect {name!r}: {', '.join(DIALECTS)} can be served, or 'all'")
    module, made = DIALECTS[name]
    return cast("Dialect", getattr(import_module(f".{module}", __package__), made)(container))
