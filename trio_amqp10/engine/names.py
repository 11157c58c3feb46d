"""The links of a connection by name and role (2.6.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.errors import LocalProtocolError

from .states import LinkState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .link import Link

__all__ = ["LinkNames"]


class LinkNames:
    """Which of our links an attach is about: a name is unique for each direction."""

    __slots__ = ("_links",)

    def __init__(self) -> None:
        self._links: dict[tuple[str, bool], Link] = {}

    def __len__(self) -> int:
        return len(self._links)

    def __iter__(self) -> Iterator[Link]:
        return iter(self._links.values())

    def find(self, name: str, role: bool) -> Link | None:
        """Our link of this name and role, if there is one."""
        return self._links.get((name, role))

    def claim(self, link: Link) -> None:
        """From now on the peer's attach of this name and direction is about ``link``.

        Raises:
            LocalProtocolError: another link of ours has the name.
        """
        holder = self._links.get((link.name, link.role))
        if holder is not None and holder.state is not LinkState.DETACH_SENT:
            raise LocalProtocolError(
                f"a link {link.name!r} of this direction exists on this connection already (2.6.1)"
            )
        self._links[link.name, link.role] = link

    def release(self, link: Link) -> None:
        """``link`` is over: its name is free, unless another has it already."""
        if self._links.get((link.name, link.role)) is link:
            del self._links[link.name, link.role]
