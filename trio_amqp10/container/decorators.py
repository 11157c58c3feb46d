"""The decorators of a container that make nodes of the user's functions.

Knows their arguments; does not know how the functions are run (``handlers``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .handlers import ConsumerNode, FunctionNode
from .nodes.producer import ProducerNode

if TYPE_CHECKING:
    from trio_amqp10.message import Message
    from trio_amqp10.peer.delivery import Delivery
    from trio_amqp10.peer.sender import Sender

    from .nodes.node import Node, Peer

__all__ = ["HandlerDecorators"]

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])
Consumes = TypeVar("Consumes", bound="Callable[[Delivery], Awaitable[None]]")
Produces = TypeVar("Produces", bound="Callable[[Sender], Awaitable[None]]")


class HandlerDecorators:
    """The decorators of ``Container``, as a base class of it."""

    def add_node(self, node: Node) -> None:
        """See ``Container``."""
        raise NotImplementedError

    async def _post(self, address: str, message: Message, peer: Peer) -> None:
        raise NotImplementedError

    def function(self, name: str, *, concurrency: int = 100, ordered: bool = True) -> Callable[[F], F]:
        """Decorates an async function of a ``Message`` that returns the reply: any AMQP value, or a ``Message``.

        The reply goes to the request's ``reply_to`` with its ``correlation_id``, or else its
        ``message_id``; without ``reply_to`` it is dropped. When the handler raises ``RefusedError``, the request is rejected
        with its condition and description; with ``amqp:internal-error`` when it raises anything else, which is logged.

        Args:
            name: the address.
            concurrency: requests of one link that are handled at a time.
            ordered: whether replies to one link leave in the order of its requests all the same; if not,
                each leaves as soon as it is there.
        """

        def decorate(handler: F) -> F:
            self.add_node(FunctionNode(name, handler, self._post, concurrency=concurrency, ordered=ordered))
            return handler

        return decorate

    def consumer(self, name: str, *, concurrency: int = 1) -> Callable[[Consumes], Consumes]:
        """Decorates an async function of a ``Delivery`` that peers send to us.

        The delivery is accepted when the function returns, unless it was settled otherwise. When it raises ``RefusedError``, the
        delivery is rejected with its condition and description; with ``amqp:internal-error`` when it raises anything else, which
        is logged.

        Args:
            name: the address.
            concurrency: deliveries of one link that are handled at a time; with 1, in order.
        """

        def decorate(handler: Consumes) -> Consumes:
            self.add_node(ConsumerNode(name, handler, concurrency=concurrency))
            return handler

        return decorate

    def producer(self, name: str) -> Callable[[Produces], Produces]:
        """Decorates an async function of a ``Sender``: it runs once for each link that receives from us.

        Returning closes the link once all that was sent is settled; an exception detaches it with
        ``amqp:internal-error``, and is logged. It is cancelled when its link is gone.

        Args:
            name: the address.
        """

        def decorate(handler: Produces) -> Produces:
            self.add_node(ProducerNode(name, handler))
            return handler

        return decorate
