"""The container's end of a link: what inlets and outlets have in common.

An end owns the engine's link. It is attached once; it is over when that attachment is over. The node is notified
once when it begins and once when it is over.

Knows links; does not know what any node does with a message.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from trio_amqp10.engine.link import Link as EngineLink
from trio_amqp10.engine.states import LinkState
from trio_amqp10.errors import Condition, RemoteProtocolError
from trio_amqp10.net.read_turns import current_turns
from trio_amqp10.peer.errors import link_error
from trio_amqp10.protocol_rules import ONE_ATTACHMENT
from trio_amqp10.spec.transport import Attach, Error, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.container.nodes.node import Node, Owner
    from trio_amqp10.engine.events import LinkDetached
    from trio_amqp10.peer.delivery import Delivery, Outcome
    from trio_amqp10.peer.incoming_links import IncomingLink
    from trio_amqp10.peer.link_options import LinkOptions
    from trio_amqp10.peer.session import Session
    from trio_amqp10.peer.statistics import ReceiverStatistics, SenderStatistics


__all__ = ["LinkEnd"]

_log = logging.getLogger("trio_amqp10.container")

_ATTACHED = LinkState.ATTACHED

E = TypeVar("E", bound=EngineLink)


class LinkEnd(Generic[E]):
    """The container's end of a link; a ``LinkOwner``.

    Attributes:
        pair: names the link: its peer, with the user that it proved to be, and its name (2.6.1).
        session: that the link is on.
        final: whether the link was closed, and not only detached (2.6.6); False while it is attached.
    """

    __slots__ = ("_link", "_node", "_over", "final", "pair", "session", "touched")

    def __init__(self, session: Session, link: E, node: Node, owner: Owner) -> None:
        self.touched: bool = False
        self.session: Session = session
        self.pair: object = (owner, link.name)
        self.final: bool = False
        self._link = link
        self._node = node
        self._over = False
        link.owner = self

    @property
    def name(self) -> str:
        """The link's name (2.6.1)."""
        return self._link.name

    @property
    def role(self) -> bool:
        """``Role.SENDER`` if it is the container that sends."""
        return self._link.role

    @property
    def remote(self) -> Attach:
        """The peer's attach (2.7.3)."""
        assert self._link.remote is not None
        return self._link.remote

    @property
    def terminus(self) -> Any:
        """The terminus that the container has: what its attach says of it (3.5)."""
        link = self._link
        return link.source if link.role is Role.SENDER else link.target

    @property
    def node(self) -> str | None:
        """The address of the node, as the container's attach says it."""
        return getattr(self.terminus, "address", None)

    @property
    def credit(self) -> int:
        """Messages that may still be sent without more credit (2.6.7)."""
        return self._link.credit

    @property
    def closed(self) -> bool:
        """Whether the link is over."""
        return self._link.state is not _ATTACHED

    def statistics(self) -> SenderStatistics | ReceiverStatistics:
        """What the link has done so far, and where it stands: live figures by name."""
        raise NotImplementedError

    # -- the beginning ----------------------------------------------------------------------

    def attach(self, incoming: IncomingLink, options: LinkOptions) -> None:
        """Answer the peer's attach.

        Raises:
            LocalProtocolError: it was answered before, or the answer fits no frame.
        """
        incoming.answer(options)

    def begin(self) -> None:
        """The link is attached: have the node know it, and what came meanwhile."""
        try:
            self._enter_node()
        except Exception:
            self.fail()
        else:
            current_turns().run(self.wake)  # a long queue is given out in pieces

    def _enter_node(self) -> None:
        raise NotImplementedError

    def wake(self) -> None:
        """Something happened on the link, or it is over."""
        raise NotImplementedError

    def on_attached(self) -> None:
        """The peer has attached first, always."""

    # -- the end ----------------------------------------------------------------------------

    def on_detached(self, event: LinkDetached) -> None:
        """The peer has detached the link, or a fault has."""
        self.final = event.closed
        self.wake()

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        """Detach for good, without waiting for the peer's answer. Nothing happens if the link is over."""
        if self._over:
            return
        error = None if condition is None else Error(condition=condition, description=description, info=info)
        try:
            self._before_detach()
            self._link.detach(error=error)
        finally:
            self._end()

    def _before_detach(self) -> None:
        """The last thing on a link that is closed here."""

    def fail(self) -> None:
        """An exception of the node is being handled: detach, whatever that raises."""
        _log.exception("%r failed, and with it %r", self._node, self)
        self._close_anyway(Condition.INTERNAL_ERROR, "the node failed")

    def _close_anyway(self, condition: Condition, description: str) -> None:
        try:
            self.close(condition.value, description)
        except Exception:
            _log.exception("%r could not be closed", self)

    def _end(self) -> None:
        """The link is over: once, tell the node, and the conversation."""
        raise NotImplementedError

    def steal(self) -> None:
        """The same peer has attached a link of this name elsewhere: this one is over, and its terminus goes there (2.6.1)."""
        fault = ONE_ATTACHMENT.broken("attached anew, on another connection")
        self.session.connection.pump.feed(lambda: self._link.fail(fault, closed=False))

    def suspend(self, condition: str, description: str) -> None:
        """Detach for now: the peer may attach again, and find all as it was."""
        if self._link.state is _ATTACHED:
            fault = RemoteProtocolError(description, condition, scope="link")
            self.session.connection.pump.feed(lambda: self._link.fail(fault, closed=False))

    # -- asked by deliveries ----------------------------------------------------------------

    def permitted(self, delivery: Delivery, outcome: Outcome) -> Outcome | None:  # noqa: ARG002
        """As ``LinkOwner.permitted``."""
        return outcome

    def has_lapsed(self, delivery: Any) -> bool:  # noqa: ARG002
        """The container brings no link back itself."""
        return False

    def raise_if_outcome_lost(self, delivery: Any) -> None:  # noqa: ARG002
        """Raise if the link is over.

        Raises:
            LinkDetachedError: it is.
        """
        if self.closed:
            raise link_error(self.name, self._link.error, self.final, address=self.node)

    def reading(self, delivery: Any) -> None:
        """Deliveries come whole."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.node!r} {self._link.state.name} credit={self._link.credit}>"
