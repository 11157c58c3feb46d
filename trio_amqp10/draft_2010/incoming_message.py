"""A message that comes in fragments: what has come of it, section by section (D 1116-1138, 1474-1502)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10 import protocol_rules as rules

from .faults import invalid_field

if TYPE_CHECKING:
    from trio_amqp10.engine.connection_context import Context
    from trio_amqp10.engine.receiver import ReceiverLink

    from .sections import DraftSection
    from .spec.transport import Fragment

__all__ = ["IncomingMessage"]


class IncomingMessage:
    """Fragments on their way to a message.

    Args:
        link: that it comes on.
        transfer_id: what it is called in the session; ``tag`` on the link.

    Attributes:
        size: octets so far.
        begun: whether the engine knows that it has begun.
    """

    __slots__ = (
        "_context",
        "_empty",
        "_is_open",
        "_link",
        "_sections",
        "begun",
        "size",
        "tag",
        "transfer_id",
    )

    def __init__(self, link: ReceiverLink, transfer_id: int, tag: bytes) -> None:
        self._link = link
        self._context: Context = link.context
        self._sections: list[tuple[int, bytearray]] = []
        self._is_open = False
        self._empty = 0
        self.transfer_id: Final = transfer_id
        self.tag: bytes = tag
        self.size: int = 0
        self.begun: bool = False

    # -- as of PartialDelivery ----------------------------------------------------------------

    @property
    def held(self) -> int:
        """Octets that are kept of it."""
        return self.size

    def drop_and_detach(self, limit: str) -> None:
        """Detach its link, because deliveries in progress take more than ``limit``."""
        self._link.fail(rules.PARTIAL_DELIVERIES.broken(f"deliveries in progress take more than {limit}"))

    # -------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """More is to come: it counts among the deliveries in progress."""
        self.begun = True
        self._context.receiving[self] = None
        self._context.partial_octets += self.size

    def drop(self) -> None:
        """What began is complete, or will never be."""
        del self._context.receiving[self]
        self._context.partial_octets -= self.size

    def add(self, fragments: tuple[Fragment, ...]) -> None:
        """The fragments of one transfer.

        Raises:
            RemoteProtocolError: they do not follow each other as they say; or there are too many transfers with nothing.
        """
        if not fragments:
            self._count_empty()
        for fragment in fragments:
            self._add(fragment)

    def _count_empty(self) -> None:
        """A transfer or a fragment without octets: there may be so many in one delivery."""
        self._empty += 1
        most = self._context.limits.empty_transfers
        if most is not None and self._empty > most:
            raise rules.EMPTY_TRANSFERS.broken(f"more than {most} empty transfers in one delivery")

    def _add(self, fragment: Fragment) -> None:
        octets = fragment.payload or b""
        if not octets:
            self._count_empty()
        if fragment.fragment_offset is not None and fragment.fragment_offset != self.size:
            raise invalid_field(
                f"a fragment at {fragment.fragment_offset}, where {self.size} octets have come", "1498"
            )
        if fragment.first:
            if self._is_open:
                raise invalid_field("a section begins before the one before it has ended", "1482")
            if fragment.format_code is None:
                raise invalid_field("a section begins without a format-code", "1494")
            self._sections.append((fragment.format_code, bytearray()))
            self._is_open = True
        elif not self._is_open:
            raise invalid_field("a fragment of no section", "1482")
        code, section = self._sections[-1]
        if fragment.format_code not in (None, code):
            raise invalid_field(f"format-code {fragment.format_code} in a section of {code}", "1494")
        section += octets
        self.size += len(octets)
        if self.begun:
            self._context.partial_octets += len(octets)
        if fragment.last:
            self._is_open = False

    def sections(self) -> list[DraftSection]:
        """What it is, once it is complete.

        Raises:
            RemoteProtocolError: its last section has no end.
        """
        if self._is_open:
            raise invalid_field("the last section of a message has no last fragment", "1488")
        return [(code, bytes(octets)) for code, octets in self._sections]
