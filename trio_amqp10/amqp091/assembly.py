"""One content as it comes on a channel: a method, a header, bodies, in that order and nothing between (0-9-1, 4.2.6).

Octets are counted for the whole connection while a content is not complete, and compared with what was declared before
they are stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from trio_amqp10.reply_codes import ReplyCode091

from .content import Content, read_header
from .faults import ReplyError
from .frames import BODY, HEADER, METHOD

if TYPE_CHECKING:
    from .content import ContentHeader
    from .fields import Letters
    from .limits import Limits
    from .methods import Method
    from .profile import Profile

__all__ = ["Assembly", "Bounds"]

_NAMES: Final = {METHOD: "method", HEADER: "content header", BODY: "content body"}


class Bounds(Protocol):
    """What the connection lets its contents take together."""

    limits: Limits
    letters: Letters
    partial: int

    @property
    def profile(self) -> Profile: ...


class Assembly:
    """The content that is under way, if one is.

    Attributes:
        expects: the type of frame that is due.
        method: what is being taken; None between methods.
    """

    __slots__ = ("_bodies", "_bounds", "_got", "_header", "expects", "method")

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.expects: int = METHOD
        self.method: Method | None = None
        self._header: ContentHeader | None = None
        self._bodies: list[bytes] = []
        self._got = 0

    def check(self, kind: int, number: int) -> None:
        """A frame of this type came on the channel of this number.

        Raises:
            ReplyError: 505, or the code of the version; another one is due.
        """
        if kind != self.expects:
            raise ReplyError(
                self._bounds.profile.codes.out_of_order,
                f"a {_NAMES[kind]} frame on channel {number}, where a {_NAMES[self.expects]} is due",
            )

    def take_header(self, payload: bytes) -> ContentHeader:
        """The content header.

        Raises:
            ReplyError: 406, the body is too large; 506, too much is not complete; and as ``read_header``.
        """
        bounds, profile = self._bounds, self._bounds.profile
        assert self.method is not None
        expected = profile.properties[self.method.plan.class_id]
        header = read_header(payload, bounds.letters, expected, profile.codes)
        if header.size > bounds.limits.max_message_size:
            raise ReplyError(
                ReplyCode091.PRECONDITION_FAILED,
                f"message size {header.size} is larger than max size {bounds.limits.max_message_size}",
            )
        self._header = header
        self.expects = BODY
        self._count(len(header.octets))
        return header

    def is_aborted_by(self, payload: bytes) -> bool:
        """Whether a body frame with this payload says that the rest of the content does not come (10.3)."""
        return not payload and self._bounds.profile.aborts_content

    def take_body(self, payload: bytes) -> None:
        """A part of the body.

        Raises:
            ReplyError: 501, more than the header declares; 506, too much is not complete.
        """
        header = self._header
        assert header is not None
        got = self._got + len(payload)
        if got > header.size:
            raise ReplyError(ReplyCode091.FRAME_ERROR, f"{got} octets of a body of {header.size}")
        self._got = got
        self._bodies.append(payload)
        self._count(len(payload))

    def whole(self) -> Content | None:
        """The content, once it is complete; then the next frame is a method again."""
        header = self._header
        if header is None or self._got < header.size:
            return None
        body = self._bodies[0] if len(self._bodies) == 1 else b"".join(self._bodies)
        self.drop()
        return Content(header.properties, body, header.octets)

    def part(self) -> Content | None:
        """What came of a content that is not complete; None before its header."""
        header = self._header
        return None if header is None else Content(header.properties, b"".join(self._bodies), header.octets)

    def drop(self) -> None:
        """Nothing of a content is stored any more; the next frame is a method."""
        if self._header is not None:
            self._bounds.partial -= self._got + len(self._header.octets)
        self.expects = METHOD
        self._header = None
        self._bodies = []
        self._got = 0

    def _count(self, octets: int) -> None:
        bounds = self._bounds
        bounds.partial += octets
        if bounds.partial > bounds.limits.max_partial:
            raise ReplyError(
                ReplyCode091.RESOURCE_ERROR, f"{bounds.partial} octets of contents that are not complete"
            )
