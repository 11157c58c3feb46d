"""Assembly of one content on a channel: method, header and bodies (0-9-1, 4.2.6).

The frames come in this order, with no other frame of the channel between them. The octets of incomplete
contents are counted for the whole connection, and compared with the declared size before they are stored. A
stored content takes no more memory than its octets, however small its frames are: small frames are joined,
empty frames are not stored, and the properties stay octets until the content is complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp091.wire.content import Content, read_header
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.frames import BODY, HEADER, METHOD
from trio_amqp10.core.reply_codes import ReplyCode091

if TYPE_CHECKING:
    from trio_amqp10.amqp091.wire.content import ContentHeader
    from trio_amqp10.amqp091.wire.methods import Method

    from .channel import Host

_NAMES: Final = {METHOD: "method", HEADER: "content header", BODY: "content body"}


_SMALL: Final = 1024
"""Body frames with fewer octets are joined with the frame before."""


class Assembly:
    """The incomplete content of a channel, if there is one.

    Attributes:
        expects: the type of the next frame.
        method: the method whose content is incomplete; None between methods.
    """

    __slots__ = ("_bodies", "_got", "_host", "_octets", "_size", "expects", "method")

    def __init__(self, host: Host) -> None:
        self._host = host
        self.expects: int = METHOD
        self.method: Method | None = None
        self._octets: bytes | None = None  # the encoded properties, after the header
        self._size = 0
        self._bodies: list[bytes | bytearray] = []
        self._got = 0

    def check(self, kind: int, number: int) -> None:
        """Check that a frame of type ``kind`` is expected on channel ``number``.

        Raises:
            ReplyError: 505, or the code of the version: another type is expected.
        """
        if kind != self.expects:
            raise ReplyError(
                self._host.profile.codes.out_of_order,
                f"a {_NAMES[kind]} frame on channel {number}, expected a {_NAMES[self.expects]} frame",
            )

    def take_header(self, payload: bytes) -> ContentHeader:
        """Take the content header.

        Raises:
            ReplyError: 406, the body is too large; 506, incomplete contents take too much; other codes as
                ``read_header``.
        """
        host, profile = self._host, self._host.profile
        assert self.method is not None
        expected = profile.properties[self.method.plan.class_id]
        header = read_header(payload, host.letters, expected, profile.codes)
        if header.size > host.limits.max_message_size:
            raise ReplyError(
                ReplyCode091.PRECONDITION_FAILED,
                f"message size {header.size} is larger than max size {host.limits.max_message_size}",
            )
        self._octets, self._size = header.octets, header.size
        self.expects = BODY
        host.count_partial(len(header.octets))
        return header

    def is_aborted_by(self, payload: bytes) -> bool:
        """Whether this body frame ends the content before it is complete (10.3)."""
        return not payload and self._host.profile.aborts_content

    def take_body(self, payload: bytes) -> None:
        """Take a part of the body.

        Raises:
            ReplyError: 501, more octets than the header declares; 506, incomplete contents take too much.
        """
        got = self._got + len(payload)
        if got > self._size:
            raise ReplyError(
                ReplyCode091.FRAME_ERROR, f"a body of {got} octets, but its header declares {self._size}"
            )
        self._got = got
        bodies = self._bodies
        if len(payload) >= _SMALL or got == self._size:
            bodies.append(payload)
        elif bodies and isinstance(bodies[-1], bytearray):
            bodies[-1] += payload
        elif payload:
            bodies.append(bytearray(payload))
        self._host.count_partial(len(payload))

    def whole(self) -> Content | None:
        """Return the content if it is complete; the next frame is then a method."""
        if self._octets is None or self._got < self._size:
            return None
        content = self._content(self._octets)
        self.drop()
        return content

    def part(self) -> Content | None:
        """Return the octets so far of an incomplete content; None before its header."""
        return None if self._octets is None else self._content(self._octets)

    def drop(self) -> None:
        """Drop the stored content; the next frame is a method."""
        if self._octets is not None:
            self._host.count_partial(-self._got - len(self._octets))
        self.expects = METHOD
        self._octets = None
        self._bodies = []
        self._got = 0

    def _content(self, octets: bytes) -> Content:
        assert self.method is not None
        host, bodies = self._host, self._bodies
        kind = host.profile.properties[self.method.plan.class_id]
        whole = bodies[0] if len(bodies) == 1 else None
        body = whole if isinstance(whole, bytes) else b"".join(bodies)
        return Content(kind.decode(octets, 0, host.letters), body, octets)
