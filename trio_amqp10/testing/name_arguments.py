"""Read the arguments for names: a collection, or a mapping of names to options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar, cast

from trio_amqp10.core.errors import LocalProtocolError

T = TypeVar("T")


def names_in(names: Iterable[str], argument: str) -> list[str]:
    """Return the names as a list.

    Args:
        names: the names of queues, topics or hubs.
        argument: the name of the argument, for the error.

    Raises:
        LocalProtocolError: the argument is one string, whose letters would each be a name.
    """
    if isinstance(names, str):
        raise LocalProtocolError(
            f"{argument}={names!r}: expected several names, as in {argument}=[{names!r}]"
        )
    return list(names)


def options_by_name(names: Mapping[str, T] | Iterable[str], argument: str, default: T) -> dict[str, T]:
    """Return the option of each name; without a mapping, each name has the default.

    Raises:
        LocalProtocolError: as for ``names_in``.
    """
    if isinstance(names, Mapping):
        return dict(cast("Mapping[str, T]", names))
    return dict.fromkeys(names_in(names, argument), default)
