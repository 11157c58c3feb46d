"""The protocols that a container serves beside AMQP 1.0, and how each is found.

A dialect is chosen by name and served on the same URLs, or chosen by the scheme of a URL and served alone there. Knows
names; a dialect is imported when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.urls import schemes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trio_amqp10.broker.peer_interfaces import ServingContainer
    from trio_amqp10.net.dialect import Dialect

Asked: TypeAlias = "str | Sequence[str | Dialect] | Mapping[str, Mapping[str, Any]]"

DIALECTS: Final = {
    "0-9-1": ("amqp091.server.protocol", "Amqp091"),
    "10.3": ("amqp_10_3.server.protocol", "Amqp103"),
    "amqp-fast": ("amqp_fast.server.protocol", "AmqpFast"),
    "1.0-draft-2010": ("amqp10.server.draft_2010_dialect", "Draft2010"),
}
"""The module and class of each dialect; the class is called with the container."""

DIALECT_SCHEMES: Final = {"amqp091": "0-9-1"}
"""Dialects that are served alone on URLs with their own schemes.

``net.urls.schemes_of`` lists the schemes of each.
"""

ALWAYS: Final = "1.0"
"""The name of AMQP 1.0, which is always served.

Alone, it means no other protocol.
"""

_IN_PLACE: Final = frozenset({"1.0-draft-2010"})
"""Dialects that begin as AMQP 1.0 does and are served in its place.

``"all"`` does not include them: they must be named.
"""


def dialects_of(container: ServingContainer, asked: Asked, **options: Any) -> tuple[Dialect, ...]:
    """Return the dialects that are asked for.

    Args:
        container: the container that serves them.
        asked: ``"all"`` for all dialects that can be distinguished from AMQP 1.0; or names and dialects; or the options
            of each dialect by its name.
            ``"1.0"`` names no dialect beside AMQP 1.0.
        options: options of all dialects that are named; ``"all"`` includes only dialects that take these options.

    Raises:
        LocalProtocolError: no dialect has such a name, or it does not take these options; or ``"1.0"`` and a dialect that is
            served in its place are both named.
    """
    _check_places(asked)
    if isinstance(asked, Mapping):
        named = ((name, own) for name, own in asked.items() if name != ALWAYS)
        return tuple(_made(container, name, {**options, **own}) for name, own in named)
    if asked == "all":
        distinct = (name for name in DIALECTS if name not in _IN_PLACE)
        return tuple(_made(container, name, options) for name in distinct if not _unknown(name, options))
    names = (asked,) if isinstance(asked, str) else asked
    return tuple(
        _made(container, each, options) if isinstance(each, str) else each for each in names if each != ALWAYS
    )


def of_own_schemes(
    container: ServingContainer, urls: Iterable[str], asked: Asked, **options: Any
) -> dict[str, Dialect]:
    """Return the dialects that are served alone on any of these URLs.

    The keys are the first parts of their schemes.

    Args:
        container: the container that serves them.
        urls: the URLs to listen on.
        asked: as for ``dialects_of``: options by name hold for these dialects too.
        options: options of all of them.

    Raises:
        LocalProtocolError: a dialect does not take these options.
    """
    own: Mapping[str, Mapping[str, Any]] = asked if isinstance(asked, Mapping) else {}
    return {
        protocol: _made(container, name, {**options, **own.get(name, {})})
        for protocol, name in named_by_scheme(urls).items()
    }


def named_by_scheme(urls: Iterable[str]) -> dict[str, str]:
    """Return the entries of ``DIALECT_SCHEMES`` that any of these URLs has."""
    schemes = {url.partition("://")[0].lower() for url in urls}
    return {
        protocol: name
        for protocol, name in DIALECT_SCHEMES.items()
        if not schemes.isdisjoint(schemes_of(protocol))
    }


def _check_places(asked: Asked) -> None:
    for name in sorted(_IN_PLACE):
        if not isinstance(asked, str) and name in asked and ALWAYS in asked:
            raise LocalProtocolError(
                f"dialects {ALWAYS!r} and {name!r} begin alike, and a listener serves one of them: name one"
            )


def _made(container: ServingContainer, name: str, options: Mapping[str, Any]) -> Dialect:
    if name not in DIALECTS:
        raise LocalProtocolError(
            f"no dialect {name!r}: {ALWAYS}, {', '.join(DIALECTS)} can be served, or 'all'"
        )
    if wrong := _unknown(name, options):
        taken = ", ".join(list(signature(_class_of(name)).parameters)[1:])
        raise LocalProtocolError(f"dialect {name!r} takes no {', '.join(wrong)}: its options are {taken}")
    return cast("Dialect", _class_of(name)(container, **options))


def _unknown(name: str, options: Mapping[str, Any]) -> list[str]:
    """Return the names of the options that the dialect does not take."""
    known = signature(_class_of(name)).parameters
    return [option for option in options if option not in known]


def _class_of(name: str) -> Any:
    module, made = DIALECTS[name]
    return getattr(import_module(f"trio_amqp10.{module}"), made)
