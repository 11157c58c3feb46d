"""The links of a connection by name and role (2.6.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.amqp10.spec.transport import Role
from trio_amqp10.core.errors import LocalProtocolError

from .states import LinkState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .link import Link
    from .session_core import SessionCore


class LinkNames:
    """The links of one end by name: a name is unique for each direction.

    If we detach a link before the peer has answered its attach, a new link may take its name. The old link is
    kept until its answer comes: the answers on one session come in the order of the attaches.
    """

    __slots__ = ("_leaving", "_leaving_count", "_links", "_past")

    def __init__(self) -> None:
        self._past = (0, 0)  # deliveries of links that are over: sent, received
        self._links: dict[tuple[str, bool], Link] = {}
        self._leaving: dict[tuple[str, bool], list[Link]] = {}
        self._leaving_count = 0

    def __len__(self) -> int:
        return len(self._links) + self._leaving_count

    def __iter__(self) -> Iterator[Link]:
        yield from self._links.values()
        for links in self._leaving.values():
            yield from links

    def find(self, name: str, role: bool, session: SessionCore | None = None) -> Link | None:
        """Return the link that an attach of this name on ``session`` refers to, or None.

        ``role`` is the role of this end.
        """
        for link in self._leaving.get((name, role), ()):
            if link.session is session and link.remote is None:
                return link
        return self._links.get((name, role))

    def claim(self, link: Link) -> None:
        """Give the name of ``link`` to it.

        Raises:
            LocalProtocolError: another link of this end has the name.
        """
        key = link.name, link.role
        holder = self._links.get(key)
        if holder is not None:
            if holder.state is not LinkState.DETACH_SENT:
                raise LocalProtocolError(
                    f"a link {link.name!r} of this direction exists on this connection already (2.6.1)"
                )
            if holder.remote is None:
                self._leaving.setdefault(key, []).append(holder)
                self._leaving_count += 1
            else:
                self._count(holder)
        self._links[key] = link

    def release(self, link: Link) -> None:
        """Free the name of ``link``, which is over, unless another link has it already."""
        key = link.name, link.role
        if self._links.get(key) is link:
            del self._links[key]
            self._count(link)
        elif link in self._leaving.get(key, ()):
            self._count(link)
            self._leaving[key].remove(link)
            self._leaving_count -= 1
            if not self._leaving[key]:
                del self._leaving[key]

    def _count(self, link: Link) -> None:
        self._past = _plus(self._past, link)

    def deliveries(self) -> tuple[int, int]:
        """Return the number of deliveries of all links so far: sent, received."""
        counts = self._past
        for link in self:
            counts = _plus(counts, link)
        return counts


def _plus(counts: tuple[int, int], link: Link) -> tuple[int, int]:
    sent, received = counts
    if link.role is Role.SENDER:
        return sent + link.deliveries, received
    return sent, received + link.deliveries
