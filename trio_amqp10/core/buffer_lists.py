"""Octets to write as a list of buffers: large payloads are not copied.

A system call can write several buffers, but each costs as much as copying about two kilobytes. So small buffers are joined.

Knows octets, and neither frames nor sockets.
"""

from __future__ import annotations

from typing import Final, TypeAlias

Buffers: TypeAlias = "list[bytes | memoryview]"
"""Octets in order; nothing may change them. An empty list has no octets."""

LARGE: Final = 2048
"""Octets of an average buffer from which buffers are not joined."""


def joined(buffers: Buffers | None) -> bytes | None:
    """Return all octets in one piece; None for None."""
    return None if buffers is None else b"".join(buffers)


def unsent(buffers: Buffers, sent: int) -> Buffers:
    """Return what is left when the first ``sent`` octets are written.

    No octet is copied.
    """
    for place, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[place + 1 :]]
        sent -= len(buffer)
    return []
