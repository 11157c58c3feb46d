"""The options of ``amqp10 serve``, for the command line and its file.

One declaration has both: the option, and the key of the file with its reader. Knows click and TOML; serves nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.http.urls import parse_http_url
from trio_amqp10.net.urls import hide_login, parse_url, schemes_of

from .lazy_commands import parsed_by
from .option_types import FILE, LocalPath
from .toml_file import Faults, dotted, read_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Read = Callable[["Reading", str, Any], Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """The file that a key is read from.

    Attributes:
        faults: takes what is wrong.
        folder: the folder of the file, to which paths are relative.
        content: the whole file.
    """

    faults: Faults
    folder: Path
    content: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeOption:
    """An option of the command line, and the same as a key of the file.

    Attributes:
        name: the attribute of ``ServeOptions``.
        flag: the option.
        key: the key, with the tables that it is in.
        read: returns the value of the key as the option has it.
        settings: the other arguments of ``click.option``.
    """

    name: str
    flag: str
    key: str
    read: Read
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


# -- readers --------------------------------------------------------------------------------


def as_listen_url(value: str) -> str:
    """Check the URL of a listener, of AMQP 1.0 or 0-9-1.

    Raises:
        click.BadParameter: it is not such a URL.
    """
    if "://" not in value:
        shown = hide_login(value)
        place = f"localhost:{value}" if value.isdecimal() else shown
        raise click.BadParameter(f"{shown!r}: expected a URL to listen at, as in amqp://{place}")
    try:
        parse_url(value, schemes_of("amqp091"))
    except LocalProtocolError as wrong:
        raise click.BadParameter(str(wrong)) from None
    return value


def as_http_url(value: str) -> str:
    """Check the URL of a listener of HTTP.

    Raises:
        click.BadParameter: it is not such a URL.
    """
    try:
        parse_http_url(value)
    except LocalProtocolError as wrong:
        raise click.BadParameter(str(wrong)) from None
    return value


def _flag(reading: Reading, key: str, value: Any) -> bool:
    return reading.faults.typed(key, value, bool) and value


def _texts(parse: Callable[[str], Any]) -> Read:
    def read(reading: Reading, key: str, value: Any) -> tuple[Any, ...]:
        if not reading.faults.typed(key, value, str, list):
            return ()
        each = [value] if isinstance(value, str) else value
        return tuple(
            reading.faults.parsed(key, parse, one) for one in each if reading.faults.typed(key, one, str)
        )

    return read


def _limit(name: str) -> Read:
    def read(reading: Reading, key: str, value: Any) -> Any:
        if reading.faults.typed(key, value, int, str):
            return reading.faults.parsed(key, parsed_by(name), str(value))
        return None

    return read


def _path(kind: LocalPath) -> Read:
    def read(reading: Reading, key: str, value: Any) -> Any:
        if not reading.faults.typed(key, value, str):
            return None
        path = value if value.startswith(("~", "file:")) or not value else str(reading.folder / value)
        return reading.faults.parsed(key, lambda text: kind.convert(text, None, None), path)

    return read


def _queues(reading: Reading, key: str, value: Any) -> tuple[Any, ...]:
    if not reading.faults.typed(key, value, dict):
        return ()
    read = parsed_rules("read_queue")
    return tuple(read(reading.faults, dotted(key, name), name, table) for name, table in value.items())


def _topics(reading: Reading, key: str, value: Any) -> tuple[Any, ...]:
    if not reading.faults.typed(key, value, str, list, dict):
        return ()
    read = parsed_rules("read_topic")
    if isinstance(value, dict):
        tables = cast("dict[str, Any]", value)
        return tuple(read(reading.faults, dotted(key, name), name, table) for name, table in tables.items())
    names = [value] if isinstance(value, str) else value
    return tuple(
        read(reading.faults, key, name, {}) for name in names if reading.faults.typed(key, name, str)
    )


def parsed_rules(name: str) -> Callable[..., Any]:
    """Return a function of ``node_rules``, imported on first use."""
    found: Callable[..., Any] = getattr(import_module(".node_rules", __package__), name)
    return found


def _users(reading: Reading, key: str, value: Any) -> dict[str, str]:
    if not reading.faults.typed(key, value, dict):
        return {}
    for user, password in value.items():
        place = dotted(key, user)
        if not user:
            reading.faults.add(place, "a user needs a name")
        if password.__class__ is not str:  # never show it
            reading.faults.add(place, "expected a password, as a string")
    return {user: password for user, password in value.items() if password.__class__ is str}


def _quotas(reading: Reading, key: str, value: Any) -> Any:
    return parsed_rules("read_quotas")(reading.faults, key, value)


def _dialects(reading: Reading, key: str, value: Any) -> Any:
    return parsed_rules("read_dialects")(reading.faults, key, value)


def _rights(reading: Reading, key: str, value: Any) -> Any:
    from .rights_file import Rights, parse_rights, read_rights

    if value.__class__ is str:
        path = _path(FILE)(reading, key, value)
        return None if path is None else reading.faults.parsed(key, parse_rights, path)
    return Rights(read_rights(reading.faults, value, reading.content.get("groups", {})))


def _rights_option(path: str) -> Any:
    from .rights_file import parse_rights

    checked = FILE.convert(path, None, None)
    return parse_rights(str(checked))


_rights_option.__name__ = "rights"

_STORE: Final = LocalPath(dir_okay=False)


def _user(value: str) -> tuple[str, str]:
    name, found, password = value.partition(":")
    if not found or not name:
        raise click.BadParameter(f"{name!r}: expected NAME:PASSWORD")
    return name, password


_user.__name__ = "_as_user"


def _as_dict(
    _context: click.Context, _option: click.Parameter, pairs: tuple[tuple[str, str], ...]
) -> dict[str, str]:
    users = dict(pairs)
    if len(users) < len(pairs):
        [(name, times)] = Counter(name for name, _ in pairs).most_common(1)
        raise click.BadParameter(f"user {name!r} is given {times} times: give one password")
    return users


def _merged(
    _context: click.Context, _option: click.Parameter, parts: tuple[dict[str, Any], ...]
) -> dict[str, Any] | None:
    return {name: value for part in parts for name, value in part.items()} if parts else None


# -- the options ----------------------------------------------------------------------------

SERVE_OPTIONS: Final = (
    ServeOption(
        name="urls",
        flag="--listen",
        key="listen",
        read=_texts(as_listen_url),
        settings={
            "metavar": "URL",
            "type": as_listen_url,
            "multiple": True,
            "default": ["amqp://127.0.0.1:5672"],
            "help": "Listen on this URL; port 0 chooses a free port. amqp091:// serves AMQP 0-9-1 only. May be repeated.  [default: amqp://127.0.0.1:5672]",
        },
    ),
    ServeOption(
        name="http",
        flag="--http",
        key="http",
        read=_texts(as_http_url),
        settings={
            "metavar": "URL",
            "type": as_http_url,
            "multiple": True,
            "help": "Serve the HTTP API at this URL, http://HOST:PORT or https://HOST:PORT; other machines reach it only with users and TLS. May be repeated.",
        },
    ),
    ServeOption(
        name="metrics_queues",
        flag="--metrics-queues",
        key="metrics-queues",
        read=_texts(str),
        settings={
            "metavar": "PATTERN",
            "multiple": True,
            "help": "Give the queues with such names values of their own in /metrics, at most 500; * is any text. May be repeated.",
        },
    ),
    ServeOption(
        name="allow_plaintext_password",
        flag="--allow-plaintext-password",
        key="allow-plaintext-password",
        read=_flag,
        settings={
            "is_flag": True,
            "help": "Accept passwords over connections that are not encrypted, from other machines too.",
        },
    ),
    ServeOption(
        name="queues",
        flag="--queue",
        key="queues",
        read=_queues,
        settings={
            "metavar": "NAME[,RULE=VALUE...]",
            "type": parsed_by("parse_queue"),
            "multiple": True,
            "help": "Create a queue with these rules, as in orders,max-length=1000,dead-letter=dead; the rules are listed below. May be repeated.",
        },
    ),
    ServeOption(
        name="topics",
        flag="--topic",
        key="topics",
        read=_topics,
        settings={
            "metavar": "NAME[,LIMIT=VALUE...]",
            "type": parsed_by("parse_topic"),
            "multiple": True,
            "help": "Create a topic with these limits, as in prices,max-backlog=1000,overflow=drop-oldest; also max-subscriptions. May be repeated.",
        },
    ),
    ServeOption(
        name="store",
        flag="--store",
        key="store",
        read=_path(_STORE),
        settings={
            "metavar": "FILE",
            "type": _STORE,
            "help": "Store all messages of queues in this file, which is created if necessary. A queue with durable=false stores only durable messages.",
        },
    ),
    ServeOption(
        name="backup",
        flag="--backup",
        key="backup",
        read=_path(_STORE),
        settings={
            "metavar": "FILE",
            "type": _STORE,
            "help": "Write a copy of the store to this file on each SIGUSR1, while it is used; it replaces the one before.",
        },
    ),
    ServeOption(
        name="users",
        flag="--user",
        key="users",
        read=_users,
        settings={
            "metavar": "NAME:PASSWORD",
            "type": _user,
            "multiple": True,
            "callback": _as_dict,
            "help": "Let this user connect. Without --user and --users, everyone may connect. May be repeated.",
        },
    ),
    ServeOption(
        name="users_file",
        flag="--users",
        key="users-file",
        read=_path(FILE),
        settings={
            "metavar": "FILE",
            "type": FILE,
            "help": 'Let the users in this file connect; "amqp10 passwd" writes it. Read again on SIGHUP.',
        },
    ),
    ServeOption(
        name="rights",
        flag="--rights",
        key="rights",
        read=_rights,
        settings={
            "metavar": "FILE",
            "type": _rights_option,
            "help": "Permit only what the table in this file of TOML permits: users, permissions and addresses. Read again on SIGHUP.",
        },
    ),
    ServeOption(
        name="tls_cert",
        flag="--tls-cert",
        key="tls.cert",
        read=_path(FILE),
        settings={
            "metavar": "FILE",
            "type": FILE,
            "help": "The server certificate, for amqps:// and other URLs with TLS. Read again on SIGHUP.",
        },
    ),
    ServeOption(
        name="tls_key",
        flag="--tls-key",
        key="tls.key",
        read=_path(FILE),
        settings={
            "metavar": "FILE",
            "type": FILE,
            "help": "The key of --tls-cert, if it is in another file.",
        },
    ),
    ServeOption(
        name="tls_client_ca",
        flag="--tls-client-ca",
        key="tls.client-ca",
        read=_path(FILE),
        settings={
            "metavar": "FILE",
            "type": FILE,
            "help": "Require client certificates of these authorities; a client that authenticates with EXTERNAL has the name in its certificate.",
        },
    ),
    ServeOption(
        name="strict",
        flag="--strict",
        key="strict",
        read=_flag,
        settings={
            "is_flag": True,
            "help": "Refuse unknown addresses. Without it, a queue is created on first use.",
        },
    ),
    ServeOption(
        name="quotas",
        flag="--quota",
        key="quotas",
        read=_quotas,
        settings={
            "metavar": "[USER:]NAME=VALUE",
            "type": parsed_by("parse_quota"),
            "multiple": True,
            "help": "Limit each identity or node, as in links=100, or one user, as in ada:connections=5. May be repeated.",
        },
    ),
    ServeOption(
        name="max_failures",
        flag="--max-failures",
        key="max-failures",
        read=_limit("parse_limit"),
        settings={
            "metavar": "N",
            "type": parsed_by("parse_limit"),
            "default": "10",
            "show_default": True,
            "help": "Block a user from a host after this many failed log-ins, and the host after ten times as many; none: never.",
        },
    ),
    ServeOption(
        name="memory_limit",
        flag="--memory-limit",
        key="memory-limit",
        read=_limit("parse_memory_limit"),
        settings={
            "metavar": "SIZE",
            "type": parsed_by("parse_memory_limit"),
            "default": "auto",
            "show_default": True,
            "help": "Limit the memory for messages, as in 512MiB; auto: 40 % of the memory available to the process; none: no limit.",
        },
    ),
    ServeOption(
        name="max_partial",
        flag="--max-partial",
        key="max-partial",
        read=_limit("parse_size"),
        settings={
            "metavar": "SIZE",
            "type": parsed_by("parse_size"),
            "default": "256MiB",
            "show_default": True,
            "help": "Limit the memory for incomplete messages on all connections together, as in 64MiB; none: no limit.",
        },
    ),
    ServeOption(
        name="refuse_durable",
        flag="--refuse-durable",
        key="refuse-durable",
        read=_flag,
        settings={
            "is_flag": True,
            "help": "Without --store, reject durable messages; otherwise they are kept in memory.",
        },
    ),
    ServeOption(
        name="management",
        flag="--management",
        key="management",
        read=_flag,
        settings={"is_flag": True, "help": "Let clients create and delete nodes, at $management."},
    ),
    ServeOption(
        name="log_changes",
        flag="--log-changes",
        key="log-changes",
        read=_flag,
        settings={
            "is_flag": True,
            "help": "Write a line to stderr for each change by management, with its user; refused ones are written anyway.",
        },
    ),
    ServeOption(
        name="dialects",
        flag="--dialect",
        key="dialects",
        read=_dialects,
        settings={
            "multiple": True,
            "metavar": "NAME[,OPTION=VALUE...]",
            "type": parsed_by("parse_dialect"),
            "callback": _merged,
            "help": "Serve this protocol besides AMQP 1.0 on the same URLs, as in 0-9-1,heartbeat=30; all: every protocol; 1.0: AMQP 1.0 alone. May be repeated. Without it: 1.0 and 0-9-1.",
        },
    ),
)


def with_serve_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all of the options to a command, in their order."""
    for option in reversed(SERVE_OPTIONS):
        command = click.option(option.flag, option.name, **option.settings)(command)
    return command


# -- the file -------------------------------------------------------------------------------


def read_config(path: str) -> dict[str, Any]:
    """Return the values in a file of configuration, by the names of the options.

    Raises:
        CommandError: it is not valid; there is one line for each fault, with the file and the key.
        OSError: it cannot be read.
    """
    content = read_toml(path)
    faults = Faults(path)
    reading = Reading(faults, Path(path).parent, content)
    found: dict[str, Any] = {}
    tables = {option.key.partition(".")[0] for option in SERVE_OPTIONS if "." in option.key}
    known = {option.key.partition(".")[0] for option in SERVE_OPTIONS} | {"groups"}
    faults.unknown(content, known)
    for name in sorted(tables & content.keys()):
        if faults.typed(name, content[name], dict):
            inner = {
                option.key.partition(".")[2] for option in SERVE_OPTIONS if option.key.startswith(f"{name}.")
            }
            faults.unknown(content[name], inner, name)
    if "groups" in content and not isinstance(content.get("rights"), list):
        faults.add("groups", "groups are for [[rights]] in this file, but there are none")
    for option in SERVE_OPTIONS:
        value = _value_at(content, option.key)
        if value is not None:
            found[option.name] = option.read(reading, option.key, value)
    faults.check()
    return found


def _value_at(content: Mapping[str, Any], key: str) -> Any:
    name, _, rest = key.partition(".")
    value = content.get(name)
    if not rest:
        return value
    return cast("dict[str, Any]", value).get(rest) if isinstance(value, dict) else None
