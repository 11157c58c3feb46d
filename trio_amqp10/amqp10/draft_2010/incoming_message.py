"""A message that arrives in fragments (D 1116-1138, 1474-1502)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.core import peer_rules as rules

from .protocol_rules import invalid_field

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.connection_context import Context
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink

    from .sections import DraftSection
    from .spec.transport import Fragment


class IncomingMessage:
    """The fragments of one message that have arrived.

    Args:
        link: the link that it arrives on.
        transfer_id: its id in the session; ``tag`` is its delivery-tag on the link.

    Attributes:
        size: octets that have arrived.
        begun: whether the engine counts the delivery already.
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

    # -- the interface of a PartialDelivery -----------------------------------------------------

    @property
    def held(self) -> int:
        """Octets that are kept of it."""
        return self.size

    def drop_and_detach(self, limit: str) -> None:
        """Detach its link, because deliveries in progress take more than ``limit``."""
        self._link.fail(rules.PARTIAL_DELIVERIES.broken(f"deliveries in progress take more than {limit}"))

    # -------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Count it among the deliveries in progress, because more transfers follow."""
        self.begun = True
        self._context.receiving[self] = None
        self._context.partial_octets += self.size

    def drop(self) -> None:
        """Stop counting it, because it is complete, or will never be."""
        del self._context.receiving[self]
        self._context.partial_octets -= self.size

    def add(self, fragments: tuple[Fragment, ...]) -> None:
        """Add the fragments of one transfer.

        Raises:
            RemoteProtocolError: their flags or offsets do not fit together, or too many transfers are empty.
        """
        if not fragments:
            self._count_empty()
        for fragment in fragments:
            self._add(fragment)

    def _count_empty(self) -> None:
        """Count a transfer or fragment without octets; each delivery may have only some."""
        self._empty += 1
        most = self._context.limits.empty_transfers
        if most is not None and self._empty > most:
            raise rules.EMPTY_TRANSFERS.broken(f"more than {most} empty transfers in one delivery")

    def _add(self, fragment: Fragment) -> None:
        octets = fragment.payload or b""
        if not octets:
            self._count_empty()
        if fragment.fragment_offset is not None and fragment.fragment_offset != self.size:
            raise invalid_field(f"fragment-offset {fragment.fragment_offset}: expected {self.size}", "1498")
        if fragment.first:
            if self._is_open:
                raise invalid_field("a section begins inside of another section", "1482")
            if fragment.format_code is None:
                raise invalid_field("a section begins without a format-code", "1494")
            self._sections.append((fragment.format_code, bytearray()))
            self._is_open = True
        elif not self._is_open:
            raise invalid_field("a fragment outside of any section", "1482")
        code, section = self._sections[-1]
        if fragment.format_code not in (None, code):
            raise invalid_field(f"format-code {fragment.format_code}: the section began with {code}", "1494")
        section += octets
        self.size += len(octets)
        if self.begun:
            self._context.partial_octets += len(octets)
        if fragment.last:
            self._is_open = False

    def sections(self) -> list[DraftSection]:
        """Return the sections of a complete message.

        Raises:
            RemoteProtocolError: its last section has no end.
        """
        if self._is_open:
            raise invalid_field("the last section of a message has no last fragment", "1488")
        return [(code, bytes(octets)) for code, octets in self._sections]
