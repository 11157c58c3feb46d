"""Files on one channel of 10.3, in both directions: opened, staged from where they broke off, then published or delivered (C 1107-1113).

What comes: file.open and file.open-ok say how much of the file is there already, file.stage brings the rest, and file.publish
publishes it. What breaks off is kept (``staged_files``). What goes: the same with the roles changed, one file at a time on a
channel; the identifier is made of the octets of the message, so that a client knows it again on its next connection.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.amqp091.content import Content
from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.amqp091.fields import FIVE
from trio_amqp10.amqp_10_3.properties import FileProperties
from trio_amqp10.container.broker.faults import NotFoundError, PreconditionError
from trio_amqp10.container.nodes.node import NotTakenError
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.reply_codes import ReplyCode091

from .content import from_basic
from .outlets import WindowConsumer

if TYPE_CHECKING:
    from trio_amqp10.amqp091.events import Arrival
    from trio_amqp10.container.endpoints import GivenLease
    from trio_amqp10.container.nodes.content import Content as Message
    from trio_amqp10.container.protocols.amqp091.native_message import Published

    from .channel_base import ChannelBase
    from .staged_files import StagedFile

__all__ = ["FileConsumer", "FileTransfers"]


class FileTransfers:
    """The files of one channel.

    Args:
        channel: whose they are.
    """

    def __init__(self, channel: ChannelBase) -> None:
        self._channel = channel
        self._files = channel.options.files
        self._opened: dict[str, StagedFile] = {}
        self._expected: StagedFile | None = None
        self._sending: tuple[FileConsumer, Message, GivenLease, str] | None = None

    # -- in ---------------------------------------------------------------------------------

    def open(self, arrival: Arrival) -> None:
        """file.open: say how much of the file is there.

        Raises:
            ReplyError: 405, another channel stages it; 311, it is larger than a message may be.
        """
        method: Any = arrival.method
        channel = self._channel
        most = channel.peer.engine.limits.max_message_size
        if method.content_size > most:
            raise ReplyError(
                ReplyCode091.CONTENT_TOO_LARGE,
                f"a file of {method.content_size} octets, where {most} are taken",
            )
        key = channel.peer.owner, method.identifier
        before = self._opened.pop(method.identifier, None)
        if before is not None:
            channel.peer.engine.count_partial(-len(before.body))
        file = self._files.open(key, method.content_size, channel, trio.current_time())
        self._opened[method.identifier] = self._expected = file
        channel.peer.engine.count_partial(len(file.body))
        channel.reply(channel.make("file.open-ok", staged_size=len(file.body)))

    def stage(self, arrival: Arrival) -> None:
        """file.stage: the rest of the file that was opened last.

        Raises:
            ReplyError: 503, none was; 406, it is not as many octets as file.open said.
        """
        file, self._expected = self._expected, None
        content = arrival.content
        assert content is not None
        if file is None:
            raise ReplyError(ReplyCode091.COMMAND_INVALID, "file.stage without file.open before it")
        if len(file.body) + len(content.body) != file.size:
            found = len(file.body) + len(content.body)
            raise PreconditionError(f"{found} octets were staged of a file of {file.size}")
        self._add(file, content.body)
        file.properties = content.properties

    def broken_off(self, part: Content) -> None:
        """What came of a file.stage that broke off is kept for the next file.open."""
        file, self._expected = self._expected, None
        if file is not None and len(file.body) + len(part.body) <= file.size:
            self._add(file, part.body)

    def _add(self, file: StagedFile, octets: bytes) -> None:
        """Octets of a file count among those of messages that are not complete, until it is published.

        Raises:
            ReplyError: 506, they are too many.
        """
        file.body += octets
        self._channel.peer.engine.count_partial(len(octets))

    def staged(self, identifier: str) -> Content:
        """The content of a whole file.

        Raises:
            NotFoundError: no file of this name was opened here.
            PreconditionError: it is not whole.
        """
        file = self._opened.get(identifier)
        if file is None:
            raise NotFoundError(f"no file {identifier!r} was staged on this channel")
        if not file.whole:
            raise PreconditionError(
                f"{len(file.body)} octets of {file.size} of the file {identifier!r} are here"
            )
        return Content(file.properties, bytes(file.body))

    def published(self, identifier: str) -> None:
        """It is a message now, unless that was refused and the channel is over."""
        file = self._opened.pop(identifier, None)
        if file is not None:
            self._channel.peer.engine.count_partial(-len(file.body))
            self._files.finish(file)

    # -- out --------------------------------------------------------------------------------

    @property
    def sends(self) -> bool:
        """Whether a file is on its way to the client."""
        return self._sending is not None

    def send(self, outlet: FileConsumer, content: Message, lease: GivenLease) -> None:
        """Open a file at the client; it is staged and delivered once the client has answered."""
        published = outlet.published(content)
        place = f"{published.exchange}\0{published.routing_key}".encode(errors="surrogateescape")
        identifier = hashlib.sha256(b"\0".join((place, published.raw, published.body))).hexdigest()
        self._sending = outlet, content, lease, identifier
        size = len(published.body)
        channel = self._channel
        channel.reply(channel.make("file.open", identifier=identifier, content_size=size))

    def open_ok(self, arrival: Arrival) -> None:
        """file.open-ok: the client has so many octets of the file.

        Raises:
            PreconditionError: more than the file has.
        """
        method: Any = arrival.method
        assert self._sending is not None
        outlet, content, lease, identifier = self._sending
        if method.staged_size > len(outlet.published(content).body):
            raise PreconditionError(f"{method.staged_size} octets are staged of a file that has fewer")
        self._sending = None
        self._channel.consuming103.stall()
        if outlet.closed:
            lease.released()
        else:
            outlet.send_rest(content, lease, identifier, method.staged_size)

    # -- the end ----------------------------------------------------------------------------

    def end(self) -> None:
        """The channel is over: what is not published is kept, what is not delivered goes back."""
        under_way = self._channel.engine.part
        if under_way is not None and under_way[0].plan.name == "file.stage":
            self.broken_off(under_way[1])
        now = trio.current_time()
        opened, self._opened = self._opened, {}
        for file in opened.values():
            self._channel.peer.engine.count_partial(-len(file.body))
            self._files.release(file, now)
        sending, self._sending = self._sending, None
        if sending is not None:
            sending[2].released()


class FileConsumer(WindowConsumer):
    """A consumer of the class file; see ``WindowConsumer``."""

    def __init__(self, channel: ChannelBase, *args: Any, **options: Any) -> None:
        super().__init__(channel, *args, **options)
        self._files = channel.files
        self._identifier = ""
        self._staged = 0

    def ready(self) -> bool:
        return not self._files.sends and super().ready()

    def send(self, content: Message, lease: GivenLease) -> bool:
        properties = from_basic(self.published(content).properties, FileProperties)
        try:
            properties.encode(FIVE)
        except LocalProtocolError as fault:
            raise NotTakenError(f"its properties cannot be written: {fault}") from fault
        self._files.send(self, content, lease)
        return not self._no_ack

    def send_rest(self, content: Message, lease: GivenLease, identifier: str, staged: int) -> None:
        """The client has answered: send the rest of the file, and deliver it."""
        self._identifier, self._staged = identifier, staged
        if not super().send(content, lease):
            self._consuming.uncount(lease)

    def _carried(self, published: Published) -> Content:
        return Content(from_basic(published.properties, FileProperties), published.body[self._staged :])

    def _write(self, published: Published, lease: GivenLease, carried: Content) -> int:
        channel = self._channel
        tag = channel.engine.numbers.deliveries.last + 1
        channel.engine.send(channel.make("file.stage"), carried)
        deliver = {"exchange": published.exchange, "routing_key": published.routing_key}
        channel.engine.send(
            channel.make(
                "file.deliver",
                consumer_tag=self.tag,
                delivery_tag=tag,
                redelivered=lease.redelivered,
                identifier=self._identifier,
                **deliver,
            )
        )
        return tag
