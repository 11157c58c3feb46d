"""The table of rights of ``amqp10 serve``: who may do what at which addresses.

Each ``[[rights]]`` has a ``user``, ``users`` or a ``group``, ``permissions``, and ``addresses``; ``[groups]`` has the users of each
group. Beside the actions of ``Rules`` there are the permissions of RabbitMQ: ``configure`` is ``create`` and ``delete``, ``write`` is
``send``, ``read`` is ``receive``. Knows no container.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from trio_amqp10.broker.rights.access import Action, Rules
from trio_amqp10.core.errors import LocalProtocolError

from .command_runner import CommandError, explain
from .toml_file import Faults, dotted, nearest, read_toml

if TYPE_CHECKING:
    from trio_amqp10.broker.rights.access import Access

_PERMISSIONS: Final[dict[str, tuple[str, ...]]] = {
    **{action: (action,) for action in get_args(Action)},
    "configure": ("create", "delete"),
    "write": ("send",),
    "read": ("receive",),
}
"""The actions of ``Rules`` for each permission of a file."""

_WHO: Final = ("user", "users", "group")
_KEYS: Final = (*_WHO, "permissions", "addresses")


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of a container, which a reload can replace.

    Attributes:
        rows: the arguments of ``Rules``.
        file: the file that they come from; None for the file of configuration.
    """

    rows: tuple[tuple[str, ...], ...]
    file: str | None = None

    def rules(self) -> Rules:
        """Return the table for ``Container(authorise=...)``."""
        return Rules(*self.rows)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


class ReplaceableRules:
    """An ``authorise`` function whose table can be replaced while connections use it.

    Args:
        rules: the first table.

    Attributes:
        rules: the table in use.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def __call__(self, access: Access) -> bool:
        """Whether the table permits this."""
        return self.rules(access)


def parse_rights(path: str) -> Rights:
    """Return the rights in a file.

    Raises:
        click.BadParameter: the file is not valid; there is one line for each fault.
    """
    try:
        return rights_of_file(path)
    except (CommandError, OSError) as wrong:
        raise click.BadParameter(explain(wrong) or str(wrong)) from None


def rights_of_file(path: str) -> Rights:
    """Return the rights in a file.

    Raises:
        CommandError: the file is not valid; there is one line for each fault.
        OSError: the file cannot be read.
    """
    content = read_toml(path)
    faults = Faults(path)
    faults.unknown(content, ("rights", "groups"))
    if "rights" not in content:
        faults.add("", "there is no [[rights]], so nobody could do anything")
    rows = read_rights(faults, content.get("rights", []), content.get("groups", {}))
    faults.check()
    return Rights(rows, path)


def read_rights(faults: Faults, tables: Any, groups: Any) -> tuple[tuple[str, ...], ...]:
    """Return the arguments of ``Rules`` for the tables of a file.

    Args:
        faults: takes what is wrong.
        tables: the value of ``rights``.
        groups: the value of ``groups``.
    """
    members = _groups(faults, groups)
    rows: list[tuple[str, ...]] = []
    if not faults.typed("rights", tables, list):
        return ()
    for place, table in enumerate(tables, 1):
        key = f"rights[{place}]"
        if faults.typed(key, table, dict):
            rows += _rows(faults, key, table, members)
    return tuple(rows)


def _groups(faults: Faults, groups: Any) -> dict[str, list[str]]:
    if not faults.typed("groups", groups, dict):
        return {}
    return {name: _words(faults, dotted("groups", name), users) for name, users in groups.items()}


def _rows(
    faults: Faults, key: str, table: dict[str, Any], groups: dict[str, list[str]]
) -> list[tuple[str, ...]]:
    faults.unknown(table, _KEYS, key)
    who = [name for name in _WHO if name in table]
    if len(who) != 1:
        faults.add(key, f"expected exactly one of {', '.join(_WHO)}")
        return []
    users = _words(faults, f"{key}.{who[0]}", table[who[0]], split=False)
    if who[0] == "group":
        for name in users:
            if name not in groups:
                faults.add(f"{key}.group", f"there is no group {name!r} in [groups]{nearest(name, groups)}")
        users = [user for name in users for user in groups.get(name, ())]
    permissions = _words(faults, f"{key}.permissions", table.get("permissions", []))
    for name in permissions:
        if name not in _PERMISSIONS:
            faults.add(f"{key}.permissions", f"{name!r} is not a permission{nearest(name, _PERMISSIONS)}")
    actions = [action for name in permissions for action in _PERMISSIONS.get(name, ())]
    if not permissions:
        faults.add(f"{key}.permissions", f"expected any of {', '.join(_PERMISSIONS)}")
    addresses = _words(faults, f"{key}.addresses", table.get("addresses", []), split=False)
    for address in addresses:
        if not address or address.split() != [address]:
            faults.add(
                f"{key}.addresses",
                f"{address!r}: an address in a rule is not empty and has no spaces; use a * instead",
            )
            return []
    rows = [(user, " ".join(actions), *([" ".join(addresses)] if addresses else [])) for user in users]
    if actions:
        try:
            Rules(*rows)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        except LocalProtocolError as wrong:
            faults.add(key, str(wrong).partition(": ")[2])
    return rows


def _words(faults: Faults, key: str, value: Any, *, split: bool = True) -> list[str]:
    """Return a string, or the strings of an array; with ``split``, the words of each."""
    if not faults.typed(key, value, str, list):
        return []
    texts = [value] if isinstance(value, str) else value
    found = [each for each in texts if faults.typed(key, each, str)]
    return [word for each in found for word in each.split()] if split else found
