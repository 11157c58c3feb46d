"""The server, the user and the password that a client does not have to type.

They come from a context, a named table in the file of ``AMQP10_CONFIG``, or from ``AMQP10_URL``, ``AMQP10_USER`` and
``AMQP10_PASSWORD``. So no password is in the list of processes or the history of the shell. A user and a password are sent only
to the server that they were given for. Knows click, and URLs; dials nothing.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import click

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.paths import local_path
from trio_amqp10.net.urls import parse_url, split_url

if TYPE_CHECKING:
    from trio_amqp10.net.urls import Url

_CONFIG: Final = "AMQP10_CONFIG"
_URL: Final = "AMQP10_URL"
_USER: Final = "AMQP10_USER"
_PASSWORD: Final = "AMQP10_PASSWORD"

_TEXTS: Final = ("url", "user", "password")
_PATHS: Final = ("password-file", "tls-ca", "tls-cert", "tls-key")
_FLAGS: Final = ("allow-plaintext-password",)


@dataclass(frozen=True, kw_only=True)
class ServerDefaults:
    """The server, user and options of a client without those of a command line.

    Attributes:
        source: where it was given, for messages.
        url: the URL of the server, or None.
        user: the user, or None.
        password: the password, or None.
        tls_ca: as the option ``--tls-ca``.
        tls_cert: as ``--tls-cert``.
        tls_key: as ``--tls-key``.
        allow_plaintext_password: as the option.
    """

    source: str
    url: str | None = None
    user: str | None = None
    password: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    allow_plaintext_password: bool = False

    def covers(self, url: str) -> bool:
        """Whether the user, the password and the options for TLS are meant for this URL."""
        if self.url is None:
            return True
        ours, its = place_of(self.url), place_of(url)
        return (ours.scheme, ours.host.lower(), ours.port, ours.path) == (
            its.scheme,
            its.host.lower(),
            its.port,
            its.path,
        )

    def login_source(self, url: str) -> str | None:
        """Return where the login for this URL was given; None if in the URL."""
        place = place_of(url)
        if self.user is None or (place.username, place.password) != (self.user, self.password):
            return None
        if not self.covers(url):
            return None
        return f"{_USER} and {_PASSWORD}" if self.source == _URL else self.source


def is_091(url: str) -> bool:
    """Whether the scheme of a URL is of AMQP 0-9-1."""
    return url.partition("://")[0].lower().startswith("amqp091")


def default_url() -> str | None:
    """Return the URL of the server for an address alone; None if unknown.

    Raises:
        click.UsageError: a variable or the file of contexts is not valid.
    """
    return server_defaults().url


def default_address(value: str) -> tuple[str, str] | None:
    """Return URL and address for an address alone; None if no server is known.

    Raises:
        click.UsageError: as ``default_url``.
    """
    url = default_url()
    if url is None or "://" in value:
        return None
    return (url if is_091(url) else split_url(url)[0]), value


def with_login(url: str) -> str:
    """Return a URL with the user and the password that are known for it.

    A user or password of its own stays.

    Raises:
        click.UsageError: as ``default_url``.
    """
    defaults = server_defaults()
    if defaults.user is None and defaults.password is None:
        return url
    parsed = place_of(url)
    if parsed.scheme == "amqp+unix" or parsed.password is not None or not defaults.covers(url):
        return url
    if parsed.username is None:
        user = defaults.user
    elif defaults.password is not None and defaults.user in (None, parsed.username):
        user = parsed.username
    else:
        user = None  # there is no password, or it is another user's
    if user is None:
        return url
    scheme, _, rest = url.partition("://")
    mark = re.search("[/?]", rest)
    end = len(rest) if mark is None else mark.start()
    authority = rest[:end].rpartition("@")[2]
    login = quote(user, safe="") + (
        "" if defaults.password is None else f":{quote(defaults.password, safe='')}"
    )
    return f"{scheme}://{login}@{authority}{rest[end:]}"


def server_defaults() -> ServerDefaults:
    """Return what the context of this command gives or, without one, the environment.

    Raises:
        click.UsageError: a variable or the file of contexts is not valid, or there is no such context.
    """
    here = click.get_current_context(silent=True)
    root = None if here is None else here.find_root()
    if root is None:
        return _environment()
    if not isinstance(root.obj, ServerDefaults):
        root.obj = _found(root.params.get("context_name"))
    return root.obj


def _found(name: str | None) -> ServerDefaults:
    file = os.environ.get(_CONFIG)
    if name is not None and not file:
        raise click.UsageError(f"--context {name} needs a file of contexts: set {_CONFIG} to its path.")
    given = _environment()
    if not file or (name is None and given.url is not None):
        return given
    context = _from_file(file, name)
    return given if context is None else context


def _environment() -> ServerDefaults:
    url = os.environ.get(_URL) or None
    if url is not None:
        _check(url, _URL)
    return ServerDefaults(
        source=_URL,
        url=url,
        user=os.environ.get(_USER) or None,
        password=os.environ.get(_PASSWORD) or None,
    )


def _from_file(text: str, name: str | None) -> ServerDefaults | None:
    """Return a context of the file, or its default one; None if it has no default.

    Only this context is checked, so that a fault in one does not stop the others.
    """
    from .command_runner import CommandError, explain, say
    from .toml_file import Faults, nearest, read_toml

    try:
        file = local_path(text)
        content = read_toml(file)
        faults = Faults(file)
        faults.unknown(content, ("default", "contexts"))
        contexts: dict[str, Any] = content.get("contexts", {})
        if not faults.typed("contexts", contexts, dict):
            contexts = {}
        chosen: Any = content.get("default") if name is None else name
        if chosen is None:
            faults.check()
            return None
        if faults.typed("default", chosen, str) and chosen not in contexts:
            key = "default" if name is None else ""
            faults.add(key, f"there is no context {chosen!r}{nearest(chosen, contexts)}")
        faults.check()
        found = _context(faults, file, f"contexts.{chosen}", contexts[chosen])
        faults.check()
    except LocalProtocolError as wrong:
        raise click.UsageError(f"{_CONFIG}: {wrong}") from None
    except OSError as failure:
        raise click.UsageError(f"{_CONFIG}: {explain(failure)}") from None
    except CommandError as wrong:
        raise click.UsageError(f"{wrong}") from None
    if (
        found.password is not None
        and os.name == "posix"
        and Path(file).stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)
    ):
        say(f"amqp10: warning: other users of this machine can read the password in {file}: chmod 600 {file}")
    return found


def _context(faults: Any, file: str, key: str, table: Any) -> ServerDefaults:
    made = ServerDefaults(source=f"{key} of {file}")
    if not faults.typed(key, table, dict):
        return made
    faults.unknown(table, (*_TEXTS, *_PATHS, *_FLAGS), key)
    values: dict[str, Any] = {}
    for name in (*_TEXTS, *_PATHS, *_FLAGS):
        value = table.get(name)
        if value is not None and faults.typed(f"{key}.{name}", value, bool if name in _FLAGS else str):
            values[name.replace("-", "_")] = _path(file, value) if name in _PATHS else value
    if "url" in values:
        try:
            place_of(values["url"])
        except LocalProtocolError as wrong:
            faults.add(f"{key}.url", str(wrong))
    password_file = values.pop("password_file", None)
    if password_file is not None:
        if "password" in values:
            faults.add(key, "password and password-file exclude each other: use one of them")
        values["password"] = _first_line(faults, f"{key}.password-file", password_file)
    return replace(made, **values)


def _path(file: str, value: str) -> str:
    """Return a path that is relative to the file that names it."""
    return value if value.startswith(("~", "file:")) else str(Path(file).parent / value)


def _first_line(faults: Any, key: str, path: str) -> str | None:
    from .command_runner import CommandError, explain
    from .toml_file import read_text

    try:
        return read_text(local_path(path)).partition("\n")[0].removesuffix("\r")
    except (OSError, CommandError, LocalProtocolError) as failure:
        faults.add(key, explain(failure) or str(failure))
    return None


def _check(url: str, name: str) -> None:
    try:
        place_of(url)
    except LocalProtocolError as wrong:
        raise click.UsageError(f"{name}: {wrong}") from None


def place_of(url: str) -> Url:
    """Return the parts of a URL of AMQP 1.0 or 0-9-1.

    Raises:
        LocalProtocolError: it is not a URL.
    """
    if is_091(url):
        from trio_amqp10.amqp091.client.urls import parse_place

        return parse_place(url).url
    return parse_url(url)
