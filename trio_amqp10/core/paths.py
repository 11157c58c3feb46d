"""Paths of files and folders, as a user writes them.

A user may write ``~`` for the home directory, or a URI of the scheme ``file``. A URI of another scheme is no
path: as a path it would silently become a folder of that name in the working directory.

Knows text; opens no file.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from .errors import LocalProtocolError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/)?")
"""At least two letters: one letter is a drive of Windows."""
_KNOWN: Final = frozenset(
    [
        "abfs",
        "abfss",
        "adl",
        "dbfs",
        "file",
        "ftp",
        "gcs",
        "gs",
        "hdfs",
        "http",
        "https",
        "oss",
        "s3",
        "s3a",
        "s3n",
        "sftp",
        "viewfs",
        "wasb",
        "wasbs",
        "webhdfs",
    ]
)
"""Schemes of object stores, which need no slash after the colon."""
_HERE: Final = ("", "localhost")
"""Hosts of a ``file`` URI that are this machine."""


def scheme_of(where: str) -> str | None:
    """Return the scheme of a URI in lower case, or None for a path.

    One slash after the colon is enough, as in ``dbfs:/mnt/orders``, and a known scheme needs none. ``C:/orders`` and ``./a:/b`` are paths.
    """
    found = _SCHEME.match(where)
    if found is None:
        return None
    scheme = found[1].lower()
    return scheme if found[2] or scheme in _KNOWN else None


def local_path(where: str) -> str:
    """Return the absolute path of a file or a folder on this machine.

    Args:
        where: a path, which may be relative to the working directory or begin with ``~``, or a URI of the scheme ``file``.

    Raises:
        LocalProtocolError: ``where`` is empty, a URI of another scheme or machine, a ``file:`` URI with a relative path,
            or in the home directory of an unknown user.
    """
    if not where:
        raise LocalProtocolError("'' is no path: it is empty")
    scheme = scheme_of(where)
    if scheme == "file":
        return _path_of(where)
    if scheme is not None:
        raise LocalProtocolError(
            f"{where!r} is a URI of the scheme {scheme!r}: expected a path on this machine, or a URI of the scheme 'file'"
            + (f"; a mounted DBFS has the path {'/dbfs/' + _rest_of(where)!r}" if scheme == "dbfs" else "")
        )
    expanded = os.path.expanduser(where)
    if where.startswith("~") and expanded == where:
        raise LocalProtocolError(
            f"{where!r}: the home directory of that user is unknown; write {'./' + where!r} for a name that begins with ~"
        )
    return str(Path(expanded).absolute())


def _rest_of(uri: str) -> str:
    return uri.partition(":")[2].lstrip("/")


def _path_of(uri: str) -> str:
    """Return the path in ``file:/x``, ``file:///x`` or ``file://localhost/x``."""
    rest = uri.partition(":")[2]
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host.lower() not in _HERE:
            raise LocalProtocolError(f"{uri!r} is a file of the host {host!r}: expected file:/ and a path")
        rest = slash + path
    if not rest.startswith("/"):
        raise LocalProtocolError(f"{uri!r} has no absolute path: expected file:/ and a path")
    return str(Path(unquote(rest)))
