"""The container's end of a link: the base of inlets and outlets.

An end owns the engine's link. It is attached once, and is over when that attachment is over. The node is notified
once when it begins and once when it is over.

Knows links; does not know what a node does with a message.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from trio_amqp10.amqp10.engine.link import Link as EngineLink
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.peer.errors import link_error
from trio_amqp10.amqp10.spec.transport import Attach, Error, Role
from trio_amqp10.core.errors import Condition, RemoteProtocolError
from trio_amqp10.core.peer_rules import ONE_ATTACHMENT
from trio_amqp10.net.read_turns import current_turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp10.engine.events import LinkDetached
    from trio_amqp10.amqp10.peer.delivery import Delivery, Outcome
    from trio_amqp10.amqp10.peer.incoming_links import IncomingLink
    from trio_amqp10.amqp10.peer.link_options import LinkOptions
    from trio_amqp10.amqp10.peer.session import Session
    from trio_amqp10.amqp10.peer.statistics import ReceiverStatistics, SenderStatistics
    from trio_amqp10.broker.nodes.node import Node, Owner


_log = logging.getLogger("trio_amqp10.container")

_ATTACHED = LinkState.ATTACHED

E = TypeVar("E", bound=EngineLink)


class LinkEnd(Generic[E]):
    """The container's end of a link; a ``LinkOwner``.

    Attributes:
        pair: the identity of the link: its peer, with the user that it proved to be, and its name (2.6.1).
        session: the session of the link.
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
        """``Role.SENDER`` if the container sends."""
        return self._link.role

    @property
    def remote(self) -> Attach:
        """The peer's attach (2.7.3)."""
        assert self._link.remote is not None
        return self._link.remote

    @property
    def terminus(self) -> Any:
        """The terminus in the container's attach (3.5)."""
        link = self._link
        return link.source if link.role is Role.SENDER else link.target

    @property
    def node(self) -> str | None:
        """The address of the node in the container's attach."""
        return getattr(self.terminus, "address", None)

    @property
    def credit(self) -> int:
        """Messages that may be sent without more credit (2.6.7)."""
        return self._link.credit

    @property
    def closed(self) -> bool:
        """Whether the link is over."""
        return self._link.state is not _ATTACHED

    def statistics(self) -> SenderStatistics | ReceiverStatistics:
        """Return live figures of the link by name."""
        raise NotImplementedError

    # -- the beginning ----------------------------------------------------------------------

    def attach(self, incoming: IncomingLink, options: LinkOptions) -> None:
        """Answer the peer's attach.

        Raises:
            LocalProtocolError: it was answered before, or the answer fits no frame.
        """
        incoming.answer(options)

    def begin(self) -> None:
        """Add the link to its node, and pass on messages that have arrived meanwhile."""
        try:
            self._enter_node()
        except Exception:
            self.fail()
        else:
            # A long queue is sent in pieces, so that other links get their turn.
            current_turns().run(self.wake)

    def _enter_node(self) -> None:
        raise NotImplementedError

    def wake(self) -> None:
        """React to a change of the link, or to its end."""
        raise NotImplementedError

    def on_attached(self) -> None:
        """Do nothing: the peer has always attached first."""

    # -- the end ----------------------------------------------------------------------------

    def on_detached(self, event: LinkDetached) -> None:
        """Note that the peer, or a protocol error, has detached the link."""
        self.final = event.closed
        self.wake()

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        """Close the link without waiting for the peer's answer.

        Nothing happens if the link is over.
        """
        if self._over:
            return
        error = None if condition is None else Error(condition=condition, description=description, info=info)
        try:
            self._before_detach()
            self._link.detach(error=error)
        finally:
            self._end()

    def _before_detach(self) -> None:
        """Finish the deliveries of a link that the container is about to close."""

    def fail(self) -> None:
        """Detach the link because the node raised the exception that is being handled.

        A further exception is logged.
        """
        _log.exception("%r failed, so %r is detached", self._node, self)
        self._close_anyway(Condition.INTERNAL_ERROR, "the node failed")

    def _close_anyway(self, condition: Condition, description: str) -> None:
        try:
            self.close(condition.value, description)
        except Exception:
            _log.exception("%r could not be closed", self)

    def _end(self) -> None:
        """Notify the node and the connection, once, that the link is over."""
        raise NotImplementedError

    def steal(self) -> None:
        """End this link: the same peer attached a link of this name elsewhere (2.6.1).

        Its terminus goes to the other link.
        """
        fault = ONE_ATTACHMENT.broken("attached again, on another connection")
        self.session.connection.pump.feed(lambda: self._link.fail(fault, closed=False))

    def suspend(self, condition: str, description: str) -> None:
        """Detach for now: the peer may attach again, and resume the deliveries."""
        if self._link.state is _ATTACHED:
            fault = RemoteProtocolError(description, condition, scope="link")
            self.session.connection.pump.feed(lambda: self._link.fail(fault, closed=False))

    def expire(self) -> None:
        """End the unsettled deliveries, because the link was not resumed in time."""
        raise NotImplementedError

    # -- called by deliveries ---------------------------------------------------------------

    def permitted(self, delivery: Delivery, outcome: Outcome) -> Outcome | None:  # noqa: ARG002
        """See ``LinkOwner.permitted``."""
        return outcome

    def has_lapsed(self, delivery: Any) -> bool:  # noqa: ARG002
        """False: the container does not attach a link again by itself."""
        return False

    def raise_if_outcome_lost(self, delivery: Any) -> None:  # noqa: ARG002
        """Raise if the link is over.

        Raises:
            LinkDetachedError: the link is over.
        """
        if self.closed:
            raise link_error(self.name, self._link.error, self.final, address=self.node)

    def reading(self, delivery: Any) -> None:
        """Do nothing: an inlet gets only whole deliveries."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.node!r} {self._link.state.name} credit={self._link.credit}>"
