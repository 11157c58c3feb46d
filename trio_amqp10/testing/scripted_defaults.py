"""Usual openings, answers and closes of a scripted peer.

Each is a few calls of ``send`` and ``expect``: nothing here that a script could not do by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from trio_amqp10.protocol_headers import AMQP_HEADER, SASL_HEADER
from trio_amqp10.spec.messaging import Source, Target
from trio_amqp10.spec.security import SaslCode, SaslInit, SaslMechanisms, SaslOutcome
from trio_amqp10.spec.transport import Attach, Begin, Close, Detach, End, Flow, Open, Role, Transfer

if TYPE_CHECKING:
    from trio_amqp10.trace.frame_splitter import Piece

__all__ = ["ScriptedDefaults"]

P = TypeVar("P")

_WINDOW: Final = 2048
_ID: Final = 1 << 32


class ScriptedDefaults(ABC):
    """What a ``ScriptedPeer`` may do with one call."""

    last: Piece | None

    def __init__(self) -> None:
        self._next_incoming: dict[int | None, int] = {}  # transfer-id, by the channel that it will come on
        self._next_outgoing: dict[int, int] = {}
        self._delivery_count: Counter[tuple[int | None, int]] = Counter()  # by channel and handle

    @abstractmethod
    async def send(self, *what: Any, channel: int = 0, payload: Any = b"") -> None:
        """Write; see ``ScriptedPeer``."""

    @abstractmethod
    async def expect(self, what: Any, /, *, channel: int | None = None, **fields: Any) -> Any:
        """Read; see ``ScriptedPeer``."""

    @abstractmethod
    async def next(self) -> Piece:
        """Read whatever comes; see ``ScriptedPeer``."""

    def remember(self, piece: Piece) -> None:
        """What credit and windows are counted from (2.5.6, 2.6.7)."""
        said, channel = piece.performative, piece.channel
        if isinstance(said, Begin):
            self._next_incoming[channel] = said.next_outgoing_id
        elif isinstance(said, Attach):
            self._delivery_count[channel, said.handle] = said.initial_delivery_count or 0
        elif isinstance(said, Transfer):
            self._next_incoming[channel] = (self._next_incoming.get(channel, 0) + 1) % _ID
            if not said.more:
                self._delivery_count[channel, said.handle] += 1

    def remember_sent(self, said: Any, channel: int) -> None:
        """What our own windows are counted from (2.5.6)."""
        if isinstance(said, Begin):
            self._next_outgoing[channel] = said.next_outgoing_id
        elif isinstance(said, Transfer):
            self._next_outgoing[channel] = (self._next_outgoing.get(channel, 0) + 1) % _ID

    # -- as the one who was dialled ---------------------------------------------------------

    async def accept_sasl(self, *mechanisms: str, code: SaslCode = SaslCode.OK) -> SaslInit:
        """The SASL layer, after its header came, with one of these mechanisms and without rounds (5.3.2).

        Args:
            mechanisms: what to offer; ANONYMOUS and PLAIN if none. What the peer then says is not checked.
            code: how it ends.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some of it has happened.
        """
        offered = mechanisms or ("ANONYMOUS", "PLAIN")
        await self.send(SASL_HEADER, SaslMechanisms(sasl_server_mechanisms=offered))
        init: SaslInit = await self.expect(SaslInit, mechanism=offered.__contains__)
        await self.send(SaslOutcome(code=code))
        return init

    async def accept_open(self, **fields: Any) -> Open:
        """Header and open as the one who was dialled, and a SASL layer before if the peer begins one (2.4.1).

        Args:
            fields: of our open.

        Returns:
            The peer's open.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some of it has happened.
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
        """Answer the peer's begin on the channel of the same number (2.5.1).

        Args:
            fields: of our begin.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some of it has happened.
        """
        begun: Begin = await self.expect(Begin)
        channel = self._last_channel()
        await self.send(_begin(fields, remote_channel=channel), channel=channel)
        return begun

    async def accept_attach(self, *, credit: int = 0, **fields: Any) -> Attach:
        """Answer the peer's attach with its own handle, source and target (2.6.3).

        Args:
            credit: what to grant at once, if the peer sends.
            fields: of our attach.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some of it has happened.
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
        """See the peer off: answer every detach and end, pass over all else, and answer its close (2.4.6).

        Args:
            fields: of our close.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some of it has happened.
        """
        while not isinstance(said := (await self.next()).performative, Close):
            if isinstance(said, Detach):
                answer = Detach(handle=said.handle, closed=said.closed)
                await self.send(answer, channel=self._last_channel())
            elif isinstance(said, End):
                await self.send(End(), channel=self._last_channel())
        await self.send(Close(**fields))
        return said

    # -- as the one who begins --------------------------------------------------------------

    async def open(self, **fields: Any) -> Open:
        """Header and open as the one who dials; the peer's open.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some of it has happened.
        """
        await self.send(AMQP_HEADER, _filled(Open, fields, container_id="scripted peer"))
        await self.expect(AMQP_HEADER)
        opened: Open = await self.expect(Open)
        return opened

    async def begin(self, channel: int = 0, **fields: Any) -> Begin:
        """Begin a session on a channel; the peer's begin, which answers it (2.5.1).

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some of it has happened.
        """
        await self.send(_begin(fields), channel=channel)
        begun: Begin = await self.expect(Begin, remote_channel=channel)
        return begun

    async def attach(
        self, address: str, role: bool, *, handle: int = 0, channel: int = 0, **fields: Any
    ) -> Attach:
        """Attach a link to a node of the peer's; its attach, which answers (2.6.3).

        Args:
            address: of the node.
            role: ``Role.SENDER`` to send to it, ``Role.RECEIVER`` to receive from it.
            handle: ours of the link.
            channel: ours of the session.
            fields: of our attach.

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some of it has happened.
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
        """Close the connection, and pass over what comes until the peer has closed it too (2.4.6).

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: some of it has happened.
        """
        await self.send(Close(**fields))
        while not isinstance(said := (await self.next()).performative, Close):
            pass
        return said

    # -- as either --------------------------------------------------------------------------

    async def grant(self, credit: int, *, handle: int = 0, channel: int = 0, **fields: Any) -> None:
        """Give the peer credit on a link that it sends on (2.6.7).

        Args:
            credit: how many deliveries it may send from now.
            handle: of the link, at both ends.
            channel: of the session, at both ends.
            fields: of the flow.

        Raises:
            AssertionError: the peer is gone.

        Cancelled: it may have been granted or not.
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
    """A performative with the usual fields, where the script does not say otherwise."""
    return cls(**(usual | fields))
