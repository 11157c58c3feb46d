"""The decorators of a container that make nodes of the user's functions.

Knows the arguments of the decorators; ``handlers`` runs the functions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from trio_amqp10.broker.nodes.producer_node import ProducerNode
from trio_amqp10.core.async_functions import require_async

from .handlers import ConsumerNode, FunctionNode

if TYPE_CHECKING:
    from trio_amqp10.amqp10.message import Message
    from trio_amqp10.amqp10.peer.delivery import Delivery
    from trio_amqp10.amqp10.peer.sender import Sender
    from trio_amqp10.broker.nodes.node import Node, Peer

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
        """Decorate an async function of a ``Message`` that returns the reply.

        The reply is any AMQP value, or a ``Message``. It goes to the request's ``reply_to`` with the request's
        ``correlation_id``, or if it has none, its ``message_id``; without ``reply_to`` the reply is dropped. If the handler
        raises ``RefusedError``, the request is rejected with its condition and description. If it raises any other exception,
        the exception is logged and the request is rejected with ``amqp:internal-error``.

        Args:
            name: the address.
            concurrency: requests of one link that are handled at a time.
            ordered: whether replies to one link are sent in the order of its requests; if not,
                each is sent as soon as it is ready.
        """

        def decorate(handler: F) -> F:
            require_async(handler, f"container.function({name!r})")
            self.add_node(FunctionNode(name, handler, self._post, concurrency=concurrency, ordered=ordered))
            return handler

        return decorate

    def consumer(self, name: str, *, concurrency: int = 1) -> Callable[[Consumes], Consumes]:
        """Decorate an async function of a ``Delivery``, called for each received message.

        The delivery is accepted when the function returns, unless it was settled otherwise. If the function raises
        ``RefusedError``, the delivery is rejected with its condition and description. If it raises any other exception, the
        exception is logged and the delivery is rejected with ``amqp:internal-error``.

        Args:
            name: the address.
            concurrency: deliveries of one link that are handled at a time; with 1, in order.
        """

        def decorate(handler: Consumes) -> Consumes:
            require_async(handler, f"container.consumer({name!r})")
            self.add_node(ConsumerNode(name, handler, concurrency=concurrency))
            return handler

        return decorate

    def producer(self, name: str) -> Callable[[Produces], Produces]:
        """Decorate an async function of a ``Sender``, called for each link that receives.

        When the function returns, the link is closed after all its messages are settled. If it raises, the exception is
        logged and the link is detached with ``amqp:internal-error``. The function is cancelled if its link ends.

        Args:
            name: the address.
        """

        def decorate(handler: Produces) -> Produces:
            require_async(handler, f"container.producer({name!r})")
            self.add_node(ProducerNode(name, handler))
            return handler

        return decorate
