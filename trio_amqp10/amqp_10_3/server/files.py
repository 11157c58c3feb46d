"""Files on a channel, in both directions (C 1107-1113).

From the client: file.open and file.open-ok agree on how much of the file is already here, file.stage transfers the rest, and
file.publish publishes it. The part of an interrupted transfer is kept (``staged_files``). To the client: the same with reversed
roles, one file at a time on each channel. The identifier is a hash of the message, so that the client recognises the file on its
next connection.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.amqp091.wire.content import Content
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp_10_3.wire.properties import FileProperties
from trio_amqp10.broker.exchanges.faults import NotFoundError, PreconditionError
from trio_amqp10.broker.nodes.node import NotTakenError
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCode091

from .content import from_basic
from .outlets import WindowConsumer

if TYPE_CHECKING:
    from trio_amqp10.amqp091.engine.events import Arrival
    from trio_amqp10.amqp091.server.native_message import Published
    from trio_amqp10.broker.endpoints import GivenLease
    from trio_amqp10.broker.nodes.content import Content as Message

    from .channel_base import ChannelBase
    from .staged_files import StagedFile


class FileTransfers:
    """The files of one channel.

    Args:
        channel: the channel of the files.
    """

    def __init__(self, channel: ChannelBase) -> None:
        self._channel = channel
        self._files = channel.options.files
        self._opened: dict[str, StagedFile] = {}
        self._expected: StagedFile | None = None
        self._sending: tuple[FileConsumer, Message, GivenLease, str] | None = None

    # -- from the client --------------------------------------------------------------------

    def open(self, arrival: Arrival) -> None:
        """Process file.open: answer how much of the file is here.

        Raises:
            ReplyError: 405: another channel stages the file; 311: the file is larger than a message may be.
        """
        method: Any = arrival.method
        channel = self._channel
        most = channel.peer.engine.limits.max_message_size
        if method.content_size > most:
            raise ReplyError(
                ReplyCode091.CONTENT_TOO_LARGE,
                f"a file of {method.content_size} octets exceeds the maximum of {most}",
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
        """Process file.stage: add the rest of the file that was opened last.

        Raises:
            ReplyError: 503: no file was opened; 406: the size differs from that in file.open.
        """
        file, self._expected = self._expected, None
        content = arrival.content
        assert content is not None
        if file is None:
            raise ReplyError(ReplyCode091.COMMAND_INVALID, "file.stage without file.open before it")
        if len(file.body) + len(content.body) != file.size:
            found = len(file.body) + len(content.body)
            raise PreconditionError(f"{found} octets were staged, but the file has {file.size}")
        self._add(file, content.body)
        file.properties = content.properties

    def broken_off(self, part: Content) -> None:
        """Keep the part of an interrupted file.stage for the next file.open."""
        file, self._expected = self._expected, None
        if file is not None and len(file.body) + len(part.body) <= file.size:
            self._add(file, part.body)

    def _add(self, file: StagedFile, octets: bytes) -> None:
        """Add octets to a file; they count as incomplete until it is published.

        Raises:
            ReplyError: 506: the limit of incomplete messages is exceeded.
        """
        file.body += octets
        self._channel.peer.engine.count_partial(len(octets))

    def staged(self, identifier: str) -> Content:
        """Return the content of a complete file.

        Raises:
            NotFoundError: no file with this identifier was opened here.
            PreconditionError: the file is incomplete.
        """
        file = self._opened.get(identifier)
        if file is None:
            raise NotFoundError(f"no file {identifier!r} was staged on this channel")
        if not file.whole:
            raise PreconditionError(
                f"the file {identifier!r} is incomplete: {len(file.body)} of {file.size} octets are here"
            )
        return Content(file.properties, bytes(file.body))

    def published(self, identifier: str) -> None:
        """Forget a published file; a refused one was already released with its channel."""
        file = self._opened.pop(identifier, None)
        if file is not None:
            self._channel.peer.engine.count_partial(-len(file.body))
            self._files.finish(file)

    # -- to the client ----------------------------------------------------------------------

    @property
    def sends(self) -> bool:
        """Whether a file is being transferred to the client."""
        return self._sending is not None

    def send(self, outlet: FileConsumer, content: Message, lease: GivenLease) -> None:
        """Open a file at the client; it is staged and delivered after the client's answer."""
        published = outlet.published(content)
        place = f"{published.exchange}\0{published.routing_key}".encode(errors="surrogateescape")
        identifier = hashlib.sha256(b"\0".join((place, published.raw, published.body))).hexdigest()
        self._sending = outlet, content, lease, identifier
        size = len(published.body)
        channel = self._channel
        channel.reply(channel.make("file.open", identifier=identifier, content_size=size))

    def open_ok(self, arrival: Arrival) -> None:
        """Process file.open-ok: send the part of the file that the client does not have.

        Raises:
            PreconditionError: the client states more octets than the file has.
        """
        method: Any = arrival.method
        assert self._sending is not None
        outlet, content, lease, identifier = self._sending
        if method.staged_size > len(outlet.published(content).body):
            raise PreconditionError(f"staged-size {method.staged_size} exceeds the size of the file")
        self._sending = None
        self._channel.consuming103.stall()
        if outlet.closed:
            lease.released()
        else:
            outlet.send_rest(content, lease, identifier, method.staged_size)

    # -- close ------------------------------------------------------------------------------

    def end(self) -> None:
        """End all transfers: keep incoming files, return the outgoing one to its queue."""
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
            raise NotTakenError(f"the properties of the message cannot be encoded: {fault}") from fault
        self._files.send(self, content, lease)
        return not self._no_ack

    def send_rest(self, content: Message, lease: GivenLease, identifier: str, staged: int) -> None:
        """Send the rest of the file, and deliver it, after the client's answer."""
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
