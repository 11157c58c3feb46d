"""The memory that this process may use, and the default share of messages.

Knows the files and calls of the operating system; knows no container.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

SHARE: Final = 0.4
"""The share of messages in the memory that the process may use.

The rest is for messages in transit, for links and for Python.
"""

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")
_UNLIMITED: Final = 2**60
"""The number from which on version 1 of cgroups means no limit."""


def default_limit() -> int | None:
    """Return the octets that messages may take; None if the memory is unknown."""
    memory = available_memory()
    return None if memory is None else int(memory * SHARE)


def available_memory(own: Path = _OWN, cgroups: Path = _CGROUPS) -> int | None:
    """Return the octets that this process may use.

    It is the least of physical memory, the limits of the process's cgroup and of the cgroups above it, and ``RLIMIT_AS``.

    Args:
        own: the file that lists the cgroups of the process.
        cgroups: the folder where the cgroups are mounted.

    Returns:
        None if no limit can be found.
    """
    found = [*_physical(), *_address_space(), *_of_cgroups(own, cgroups)]
    return min(found, default=None)


def _physical() -> list[int]:
    if sys.platform == "win32":
        return []
    try:
        return [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (OSError, ValueError):  # not every system has these names
        return []


def _address_space() -> list[int]:
    if sys.platform == "win32":
        return []
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return [] if soft == resource.RLIM_INFINITY else [soft]


def _of_cgroups(own: Path, cgroups: Path) -> list[int]:
    """Return the limits of the process's cgroups and their parents, of both versions.

    In a container the process's own path may not be mounted; the root always is.
    """
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
