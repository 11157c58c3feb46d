"""One content as it comes on a channel: a method, a header, bodies, in that order and nothing between (0-9-1, 4.2.6).

Octets are counted for the whole connection while a content is not complete, and compared with what was declared before
they are stored. What is stored takes no more memory than its octets, however small its frames are: small frames are joined,
empty ones are not stored, and of the properties the octets alone are kept until the content is complete.
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


_SMALL: Final = 1024
"""Octets of a body frame under which it is joined with the frame before it."""


class Bounds(Protocol):
    """What the connection lets its contents take together."""

    limits: Limits
    letters: Letters

    def count_partial(self, octets: int) -> None: ...

    @property
    def profile(self) -> Profile: ...


class Assembly:
    """The content that is under way, if one is.

    Attributes:
        expects: the type of frame that is due.
        method: what is being taken; None between methods.
    """

    __slots__ = ("_bodies", "_bounds", "_got", "_octets", "_size", "expects", "method")

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.expects: int = METHOD
        self.method: Method | None = None
        self._octets: bytes | None = None  # of the properties, once the header has come
        self._size = 0
        self._bodies: list[bytes | bytearray] = []
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
        self._octets, self._size = header.octets, header.size
        self.expects = BODY
        bounds.count_partial(len(header.octets))
        return header

    def is_aborted_by(self, payload: bytes) -> bool:
        """Whether a body frame with this payload says that the rest of the content does not come (10.3)."""
        return not payload and self._bounds.profile.aborts_content

    def take_body(self, payload: bytes) -> None:
        """A part of the body.

        Raises:
            ReplyError: 501, more than the header declares; 506, too much is not complete.
        """
        got = self._got + len(payload)
        if got > self._size:
            raise ReplyError(ReplyCode091.FRAME_ERROR, f"{got} octets of a body of {self._size}")
        self._got = got
        bodies = self._bodies
        if len(payload) >= _SMALL or got == self._size:
            bodies.append(payload)
        elif bodies and isinstance(bodies[-1], bytearray):
            bodies[-1] += payload
        elif payload:
            bodies.append(bytearray(payload))
        self._bounds.count_partial(len(payload))

    def whole(self) -> Content | None:
        """The content, once it is complete; then the next frame is a method again."""
        if self._octets is None or self._got < self._size:
            return None
        content = self._content(self._octets)
        self.drop()
        return content

    def part(self) -> Content | None:
        """What came of a content that is not complete; None before its header."""
        return None if self._octets is None else self._content(self._octets)

    def drop(self) -> None:
        """Nothing of a content is stored any more; the next frame is a method."""
        if self._octets is not None:
            self._bounds.count_partial(-self._got - len(self._octets))
        self.expects = METHOD
        self._octets = None
        self._bodies = []
        self._got = 0

    def _content(self, octets: bytes) -> Content:
        assert self.method is not None
        bounds, bodies = self._bounds, self._bodies
        kind = bounds.profile.properties[self.method.plan.class_id]
        whole = bodies[0] if len(bodies) == 1 else None
        body = whole if isinstance(whole, bytes) else b"".join(bodies)
        return Content(kind.decode(octets, 0, bounds.letters), body, octets)
