"""How much memory this process may use, and which share messages take by default.

Knows the files and calls of the operating system; knows no container.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

__all__ = ["SHARE", "available_memory", "default_limit"]

SHARE: Final = 0.4
"""Of the memory that the process may use. The rest is for what a message takes on its way, for links and for Python."""

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")
_UNLIMITED: Final = 2**60
"""As version 1 of cgroups writes no limit, or more."""


def default_limit() -> int | None:
    """Octets that messages may take; None if nothing is known of this machine."""
    memory = available_memory()
    return None if memory is None else int(memory * SHARE)


def available_memory(own: Path = _OWN, cgroups: Path = _CGROUPS) -> int | None:
    """Octets: the least of physical memory, the limits of the process's cgroup and of those above it, and ``RLIMIT_AS``.

    Args:
        own: the file that says in which cgroups the process is.
        cgroups: where they are mounted.

    Returns:
        None where nothing of this can be found out.
    """
    found = [*_physical(), *_address_space(), *_of_cgroups(own, cgroups)]
    return min(found, default=None)


def _physical() -> list[int]:
    if sys.platform == "win32":
        return []
    try:
        return [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (OSError, ValueError):  # not on every system
        return []


def _address_space() -> list[int]:
    if sys.platform == "win32":
        return []
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return [] if soft == resource.RLIM_INFINITY else [soft]


def _of_cgroups(own: Path, cgroups: Path) -> list[int]:
    """The limits of both versions; the own path may not be mounted in a container of the machine's: then its root is."""
    found: list[int] = []
    for line in _read(own).splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            root, name = cgroups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = cgroups / "memory", "memory.limit_in_bytes"
        else:
            continue
        folder = root / path.lstrip("/")
        for each in (folder, *folder.parents):
            if each.is_relative_to(root):
                found += _number(each / name)
    return found


def _number(file: Path) -> list[int]:
    text = _read(file).strip()
    return [int(text)] if text.isdecimal() and int(text) < _UNLIMITED else []


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, ValueError):
        return ""
