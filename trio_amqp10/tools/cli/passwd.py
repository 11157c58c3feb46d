"""``amqp10 passwd``: keep a file of users with salted keys (RFC 5802)."""

from __future__ import annotations

import getpass
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.sasl import Credentials, read_users, write_users
from trio_amqp10.sasl.saslprep import prepare

from .command_runner import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_FILE: Final = "amqp10-users"


@dataclass(frozen=True, kw_only=True)
class PasswdOptions:
    """The options of ``amqp10 passwd``."""

    file: str
    user: str
    delete: bool
    stdin: bool
    iterations: int
    mechanisms: Sequence[str]


def passwd(options: PasswdOptions) -> str:
    """Add a user, change a password, or delete a user; return what was done.

    Raises:
        CommandError: the user does not exist, or the password is not valid.
        OSError: the file cannot be read or written.
    """
    users = load_users(options.file, new=not options.delete)
    name = _prepared(options.user)
    if options.delete:
        if name not in users:
            raise CommandError(f"{options.file} has no user {name!r}; --list prints its users")
        users.remove(name)
        done = "deleted"
    else:
        done = "changed" if name in users else "added"
        password = _read_line() if options.stdin else _ask(name)
        try:
            users.set_password(name, password, mechanisms=options.mechanisms, iterations=options.iterations)
        except LocalProtocolError as wrong:
            raise CommandError(str(wrong)) from None
    write_users(options.file, users)
    return f"{done} {name}"


def list_users(file: str) -> list[str]:
    """Return the users of a file, sorted.

    Raises:
        CommandError: the file is not a file of users.
        OSError: the file cannot be read.
    """
    return sorted(load_users(file))


def load_users(file: str, *, new: bool = False) -> Credentials:
    """Read a file of users; with ``new``, a missing file has no users.

    Raises:
        CommandError: the file is not a file of users.
        OSError: the file cannot be read.
    """
    try:
        return read_users(file)
    except FileNotFoundError:
        if new:
            return Credentials()
        raise
    except LocalProtocolError as wrong:
        raise CommandError(f"{file}: {wrong}") from None


def _prepared(user: str) -> str:
    try:
        return prepare(user, "user name")
    except LocalProtocolError as wrong:
        raise CommandError(str(wrong)) from None


def _ask(name: str) -> str:
    if not sys.stdin.isatty():
        raise CommandError("there is no terminal to ask for a password; use --stdin to read it from stdin")
    password = getpass.getpass(f"password of {name}: ")
    if getpass.getpass("once more: ") != password:
        raise CommandError("the two passwords are different; nothing was changed")
    return password


def _read_line() -> str:
    """Return the first line of stdin, without its newline."""
    octets = sys.stdin.buffer.readline()
    try:
        return octets.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise CommandError("the password on stdin is not UTF-8") from None
