"""The dialects that a container can serve beside AMQP 1.0, by name, or alone, by the scheme of a URL.

Knows names; a dialect is imported when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.net.urls import schemes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trio_amqp10.container.connected_peer import ServingContainer
    from trio_amqp10.net.dialect import Dialect

__all__ = ["DIALECTS", "DIALECT_SCHEMES", "dialects_of", "named_by_scheme", "of_own_schemes"]

Asked: TypeAlias = "str | Sequence[str | Dialect] | Mapping[str, Mapping[str, Any]]"

DIALECTS: Final = {
    "0-9-1": ("amqp091.protocol", "Amqp091"),
    "10.3": ("amqp_10_3.protocol", "Amqp103"),
    "amqp-fast": ("amqp_fast.protocol", "AmqpFast"),
    "1.0-draft-2010": ("draft_2010", "Draft2010"),
}
"""Where the class of each is; it is called with the container."""

DIALECT_SCHEMES: Final = {"amqp091": "0-9-1"}
"""Dialects that are served alone where a URL has a scheme of theirs (``net.urls.schemes_of``)."""

_IN_PLACE: Final = frozenset({"1.0-draft-2010"})
"""Those that begin as AMQP 1.0 does, and so are served in its place: only where they are named."""


def dialects_of(container: ServingContainer, asked: Asked, **options: Any) -> tuple[Dialect, ...]:
    """The dialects that are asked for.

    Args:
        container: that serves them.
        asked: ``"all"``, which is all that can be told from AMQP 1.0, or names and dialects, or the options of each dialect by its name.
        options: of all those that are named; of ``"all"`` those are served that take them.

    Raises:
        LocalProtocolError: there is none of such a name, or it does not take these options.
    """
    if isinstance(asked, Mapping):
        return tuple(_made(container, name, {**options, **own}) for name, own in asked.items())
    if asked == "all":
        told = (name for name in DIALECTS if name not in _IN_PLACE)
        return tuple(_made(container, name, options) for name in told if not _unknown(name, options))
    names = (asked,) if isinstance(asked, str) else asked
    return tuple(_made(container, each, options) if isinstance(each, str) else each for each in names)


def of_own_schemes(
    container: ServingContainer, urls: Iterable[str], asked: Asked, **options: Any
) -> dict[str, Dialect]:
    """The dialects that are served alone on any of these URLs, by the first part of their schemes.

    Args:
        container: that serves them.
        urls: where it listens.
        asked: as for ``dialects_of``: options by name hold for these dialects too.
        options: of all of them.

    Raises:
        LocalProtocolError: one does not take these options.
    """
    own: Mapping[str, Mapping[str, Any]] = asked if isinstance(asked, Mapping) else {}
    return {
        protocol: _made(container, name, {**options, **own.get(name, {})})
        for protocol, name in named_by_scheme(urls).items()
    }


def named_by_scheme(urls: Iterable[str]) -> dict[str, str]:
    """Those of ``DIALECT_SCHEMES`` that any of these URLs has."""
    schemes = {url.partition("://")[0].lower() for url in urls}
    return {
        protocol: name
        for protocol, name in DIALECT_SCHEMES.items()
        if not schemes.isdisjoint(schemes_of(protocol))
    }


def _made(container: ServingContainer, name: str, options: Mapping[str, Any]) -> Dialect:
    if name not in DIALECTS:
        raise LocalProtocolError(f"no dialect {name!r}: {', '.join(DIALECTS)} can be served, or 'all'")
    if wrong := _unknown(name, options):
        taken = ", ".join(list(signature(_class_of(name)).parameters)[1:])
        raise LocalProtocolError(f"dialect {name!r} takes no {', '.join(wrong)}, but {taken}")
    return cast("Dialect", _class_of(name)(container, **options))


def _unknown(name: str, options: Mapping[str, Any]) -> list[str]:
    """Those of the options that the dialect does not take."""
    known = signature(_class_of(name)).parameters
    return [option for option in options if option not in known]


def _class_of(name: str) -> Any:
    module, made = DIALECTS[name]
    return getattr(import_module(f".{module}", __package__), made)
