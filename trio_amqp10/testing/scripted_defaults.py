"""The usual openings, answers and closes of a scripted peer.

Each is a few calls of ``send`` and ``expect``, which a script could also make itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.spec.security import SaslCode, SaslInit, SaslMechanisms, SaslOutcome
from trio_amqp10.amqp10.spec.transport import Attach, Begin, Close, Detach, End, Flow, Open, Role, Transfer
from trio_amqp10.core.protocol_headers import AMQP_HEADER, SASL_HEADER

if TYPE_CHECKING:
    from trio_amqp10.tools.trace.frame_splitter import Piece

P = TypeVar("P")

_WINDOW: Final = 2048
_ID: Final = 1 << 32


class ScriptedDefaults(ABC):
    """The methods of ``ScriptedPeer`` that exchange several frames."""

    last: Piece | None

    def __init__(self) -> None:
        self._next_incoming: dict[int | None, int] = {}  # the expected transfer-id for each incoming channel
        self._next_outgoing: dict[int, int] = {}
        self._delivery_count: Counter[tuple[int | None, int]] = Counter()  # by channel and handle

    @abstractmethod
    async def send(self, *what: Any, channel: int = 0, payload: Any = b"") -> None:
        """Write performatives; see ``ScriptedPeer``."""

    @abstractmethod
    async def expect(self, what: Any, /, *, channel: int | None = None, **fields: Any) -> Any:
        """Read and compare; see ``ScriptedPeer``."""

    @abstractmethod
    async def next(self) -> Piece:
        """Read the next piece; see ``ScriptedPeer``."""

    def remember(self, piece: Piece) -> None:
        """Update the counts that flow frames need, from a received piece (2.5.6, 2.6.7)."""
        performative, channel = piece.performative, piece.channel
        if isinstance(performative, Begin):
            self._next_incoming[channel] = performative.next_outgoing_id
        elif isinstance(performative, Attach):
            self._delivery_count[channel, performative.handle] = performative.initial_delivery_count or 0
        elif isinstance(performative, Transfer):
            self._next_incoming[channel] = (self._next_incoming.get(channel, 0) + 1) % _ID
            if not performative.more:
                self._delivery_count[channel, performative.handle] += 1

    def remember_sent(self, performative: Any, channel: int) -> None:
        """Update the transfer-ids that flow frames need, from a sent piece (2.5.6)."""
        if isinstance(performative, Begin):
            self._next_outgoing[channel] = performative.next_outgoing_id
        elif isinstance(performative, Transfer):
            self._next_outgoing[channel] = (self._next_outgoing.get(channel, 0) + 1) % _ID

    # -- as the end that was dialled ----------------------------------------------------------

    async def accept_sasl(self, *mechanisms: str, code: SaslCode = SaslCode.OK) -> SaslInit:
        """Accept the SASL layer after its header, without challenges (5.3.2).

        Args:
            mechanisms: the mechanisms to offer; ANONYMOUS and PLAIN if none are given. The credentials are not checked.
            code: the outcome.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some frames may have been exchanged.
        """
        offered = mechanisms or ("ANONYMOUS", "PLAIN")
        await self.send(SASL_HEADER, SaslMechanisms(sasl_server_mechanisms=offered))
        init: SaslInit = await self.expect(SaslInit, mechanism=offered.__contains__)
        await self.send(SaslOutcome(code=code))
        return init

    async def accept_open(self, **fields: Any) -> Open:
        """Answer the peer's header and open, and a SASL layer if it begins one (2.4.1).

        Args:
            fields: the fields of our open.

        Returns:
            The peer's open.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some frames may have been exchanged.
        """
        header = (await self.next()).octets
        if header == SASL_HEADER:
            await self.accept_sasl()
            header = (await self.next()).octets
        if header != AMQP_HEADER:
            raise AssertionError(f"expected the protocol header {AMQP_HEADER!r}, got {header!r}")
        await self.send(AMQP_HEADER)
        opened: Open = await self.expect(Open)
        await self.send(_filled(Open, fields, container_id="scripted peer"))
        return opened

    async def accept_begin(self, **fields: Any) -> Begin:
        """Answer the peer's begin, on the channel of the same number (2.5.1).

        Args:
            fields: the fields of our begin.

        Returns:
            The peer's begin.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some frames may have been exchanged.
        """
        begun: Begin = await self.expect(Begin)
        channel = self._last_channel()
        await self.send(_begin(fields, remote_channel=channel), channel=channel)
        return begun

    async def accept_attach(self, *, credit: int = 0, **fields: Any) -> Attach:
        """Answer the peer's attach with its own handle, source and target (2.6.3).

        Args:
            credit: the credit to grant at once, if the peer is the sender.
            fields: the fields of our attach.

        Returns:
            The peer's attach.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some frames may have been exchanged.
        """
        got: Attach = await self.expect(Attach)
        channel = self._last_channel()
        answer = _filled(
            Attach,
            fields,
            name=got.name,
            handle=got.handle,
            role=not got.role,
            source=got.source,
            target=got.target,
            initial_delivery_count=0 if got.role is Role.RECEIVER else None,
        )
        await self.send(answer, channel=channel)
        if credit and got.role is Role.SENDER:
            await self.grant(credit, handle=got.handle, channel=channel)
        return got

    async def accept_close(self, **fields: Any) -> Close:
        """Answer every detach and end, ignore other frames, and answer the close (2.4.6).

        Args:
            fields: the fields of our close.

        Returns:
            The peer's close.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some frames may have been exchanged.
        """
        while not isinstance(performative := (await self.next()).performative, Close):
            if isinstance(performative, Detach):
                answer = Detach(handle=performative.handle, closed=performative.closed)
                await self.send(answer, channel=self._last_channel())
            elif isinstance(performative, End):
                await self.send(End(), channel=self._last_channel())
        await self.send(Close(**fields))
        return performative

    # -- as the end that dials ----------------------------------------------------------------

    async def open(self, **fields: Any) -> Open:
        """Open the connection: send header and open, and return the peer's open.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some frames may have been exchanged.
        """
        await self.send(AMQP_HEADER, _filled(Open, fields, container_id="scripted peer"))
        await self.expect(AMQP_HEADER)
        opened: Open = await self.expect(Open)
        return opened

    async def begin(self, channel: int = 0, **fields: Any) -> Begin:
        """Begin a session on a channel, and return the peer's begin (2.5.1).

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some frames may have been exchanged.
        """
        await self.send(_begin(fields), channel=channel)
        begun: Begin = await self.expect(Begin, remote_channel=channel)
        return begun

    async def attach(
        self, address: str, role: bool, *, handle: int = 0, channel: int = 0, **fields: Any
    ) -> Attach:
        """Attach a link to a node of the peer, and return the peer's attach (2.6.3).

        Args:
            address: the address of the node.
            role: ``Role.SENDER`` to send to it, ``Role.RECEIVER`` to receive from it.
            handle: our handle of the link.
            channel: our channel of the session.
            fields: the fields of our attach.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some frames may have been exchanged.
        """
        asked = _filled(
            Attach,
            fields,
            name=f"{address} {handle}",
            handle=handle,
            role=role,
            source=Source(address=address if role else None),
            target=Target(address=None if role else address),
            initial_delivery_count=None if role else 0,
        )
        await self.send(asked, channel=channel)
        attached: Attach = await self.expect(Attach, name=asked.name, role=not role)
        return attached

    async def close(self, **fields: Any) -> Close:
        """Close the connection, and ignore frames until the peer closes it too (2.4.6).

        Returns:
            The peer's close.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some frames may have been exchanged.
        """
        await self.send(Close(**fields))
        while not isinstance(performative := (await self.next()).performative, Close):
            pass
        return performative

    # -- as either end ----------------------------------------------------------------------

    async def grant(self, credit: int, *, handle: int = 0, channel: int = 0, **fields: Any) -> None:
        """Grant the peer credit on a link on which it sends (2.6.7).

        Args:
            credit: the number of deliveries that the peer may send from now on.
            handle: the handle of the link, at both ends.
            channel: the channel of the session, at both ends.
            fields: the fields of the flow.

        Raises:
            AssertionError: the peer has closed the stream.

        Cancelled: the credit may have been granted.
        """
        flow = _filled(
            Flow,
            fields,
            next_incoming_id=self._next_incoming.get(channel, 0),
            incoming_window=_WINDOW,
            next_outgoing_id=self._next_outgoing.get(channel, 0),
            outgoing_window=_WINDOW,
            handle=handle,
            delivery_count=self._delivery_count[channel, handle] % _ID,
            link_credit=credit,
        )
        await self.send(flow, channel=channel)

    def _last_channel(self) -> int:
        return (self.last.channel or 0) if self.last is not None else 0


def _begin(fields: dict[str, Any], remote_channel: int | None = None) -> Begin:
    return _filled(
        Begin,
        fields,
        remote_channel=remote_channel,
        next_outgoing_id=0,
        incoming_window=_WINDOW,
        outgoing_window=_WINDOW,
    )


def _filled(cls: type[P], fields: dict[str, Any], **usual: Any) -> P:
    """Make a performative with the fields of the script, and the usual others."""
    return cls(**(usual | fields))
