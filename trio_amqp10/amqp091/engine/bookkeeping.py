"""The effect of methods on a channel's delivery tags, confirms and consumers.

There are four tables, one for each role and direction, from the name of a method to a function (0-9-1, basic,
confirm, tx). A method to be sent is checked before anything changes, and a violation is a
``LocalProtocolError``; for a received method a violation is a ``ReplyError`` with a reply code. A server also
refuses what it does not implement, with 540: ``immediate``, a ``prefetch_size``, a recover without requeue. Replies
come with the request that they answer. A method without a row has no effect on the numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.wire.delivery_tags import Tags
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCode091

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091 import spec
    from trio_amqp10.amqp091.wire.content import BasicProperties
    from trio_amqp10.amqp091.wire.methods import Method


class ChannelNumbers:
    """The delivery tags, confirms and consumers of one channel, equal at both ends.

    Attributes:
        deliveries: delivery tags that the server used and the client has not settled.
        publishes: publishes in confirm mode that the server has not settled.
        confirming: whether the channel is in confirm mode (``confirm.select``).
        consumers: by consumer tag, whether the consumer settles nothing (``no_ack``).
        asked: tags of consumers that a server has not confirmed yet; it delivers nothing to them before.
        leaving: at a client, consumers that it cancelled without waiting: deliveries to them may be under way.
        user: the user that logged in at a server, to compare with ``user-id``; None to compare nothing.
    """

    __slots__ = ("_publishes", "asked", "confirming", "consumers", "deliveries", "leaving", "user")

    def __init__(self, user: str | None) -> None:
        self.deliveries: Final = Tags()
        self._publishes: Tags | None = None
        self.confirming: bool = False
        self.consumers: dict[str, bool] = {}
        self.asked: dict[str, None] | None = None  # None while there are none, to save memory
        self.leaving: dict[str, bool] | None = None  # likewise
        self.user: str | None = user

    @property
    def publishes(self) -> Tags:
        """Publishes in confirm mode that the server has not settled.

        Created on first use, because most channels of a server confirm nothing.
        """
        if self._publishes is None:
            self._publishes = Tags()
        return self._publishes


if TYPE_CHECKING:
    Noted = tuple[tuple[int, ...], int]
    """The tags that a method settles, and the number of a publish."""
    MethodEffect = Callable[[ChannelNumbers, Any, Any], Noted | None]
    """A function for one method; the last argument is the request that it answers."""


def _refused(explanation: str) -> ReplyError:
    return ReplyError(ReplyCode091.PRECONDITION_FAILED, explanation)


def _no_ack(consume: Any) -> bool:
    """Whether a consumer settles nothing; always true for stream.consume of 10.3."""
    return getattr(consume, "no_ack", True)


# -- both roles -----------------------------------------------------------------------------


def _commit(numbers: ChannelNumbers, _method: Method, _request: None) -> None:
    numbers.deliveries.commit()


def _rollback(numbers: ChannelNumbers, _method: Method, _request: None) -> None:
    numbers.deliveries.rollback()


def _forget_deliveries(numbers: ChannelNumbers, _method: Method, _request: Method | None) -> None:
    numbers.deliveries.clear()


def _forget_consumer(numbers: ChannelNumbers, method: spec.BasicCancelOk, _request: spec.BasicCancel) -> None:
    numbers.consumers.pop(method.consumer_tag, None)


def _number_publish(numbers: ChannelNumbers, _method: Method, _request: None) -> Noted | None:
    if not numbers.confirming:
        return None
    number = numbers.publishes.last + 1
    numbers.publishes.add(number)
    return (), number


# -- sent by a client -----------------------------------------------------------------------


def _send_settle(numbers: ChannelNumbers, method: Any, _request: None) -> Noted:
    tags = numbers.deliveries.settle(method.delivery_tag, getattr(method, "multiple", False))
    if tags is None:
        raise LocalProtocolError(f"unknown delivery tag {method.delivery_tag}")
    return tags, 0


def _send_confirm_select(numbers: ChannelNumbers, _method: Method, _request: None) -> None:
    if numbers.deliveries.transactional:
        raise LocalProtocolError(
            "this channel has transactions, so it cannot have confirms: open another channel"
        )
    numbers.confirming = True


def _send_tx_select(numbers: ChannelNumbers, _method: Method, _request: None) -> None:
    if numbers.confirming:
        raise LocalProtocolError(
            "this channel has confirms, so it cannot have transactions: open another channel"
        )
    numbers.deliveries.transactional = True


def _send_tx(numbers: ChannelNumbers, _method: Method, _request: None) -> None:
    if not numbers.deliveries.transactional:
        raise LocalProtocolError("the channel has no transaction: send tx.select first")


def _send_commit(numbers: ChannelNumbers, method: Method, request: None) -> None:
    _send_tx(numbers, method, request)
    _commit(numbers, method, request)


def _send_rollback(numbers: ChannelNumbers, method: Method, request: None) -> None:
    _send_tx(numbers, method, request)
    _rollback(numbers, method, request)


def _send_consume(numbers: ChannelNumbers, method: spec.BasicConsume, _request: None) -> None:
    if method.consumer_tag in numbers.consumers:
        raise LocalProtocolError(f"the channel has a consumer {method.consumer_tag!r} already")
    if getattr(method, "no_wait", False):
        if not method.consumer_tag:
            raise LocalProtocolError(
                "no_wait needs a consumer_tag, because the server's choice comes in its answer"
            )
        numbers.consumers[method.consumer_tag] = _no_ack(method)


def _send_cancel(numbers: ChannelNumbers, method: spec.BasicCancel, _request: None) -> None:
    if getattr(method, "no_wait", False):
        no_ack = numbers.consumers.pop(method.consumer_tag, None)
        if no_ack is not None:
            numbers.leaving = {**(numbers.leaving or {}), method.consumer_tag: no_ack}


# -- received by a server -------------------------------------------------------------------


def _receive_publish(numbers: ChannelNumbers, method: spec.BasicPublish, request: None) -> Noted | None:
    if method.immediate:
        raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, "immediate=true")
    return _number_publish(numbers, method, request)


def _receive_settle(numbers: ChannelNumbers, method: Any, _request: None) -> Noted:
    tags = numbers.deliveries.settle(method.delivery_tag, getattr(method, "multiple", False))
    if tags is None:
        raise _refused(f"unknown delivery tag {method.delivery_tag}")
    return tags, 0


def _receive_confirm_select(numbers: ChannelNumbers, _method: Method, _request: None) -> None:
    if numbers.deliveries.transactional:
        raise _refused("cannot switch from tx to confirm mode")
    numbers.confirming = True


def _receive_tx_select(numbers: ChannelNumbers, _method: Method, _request: None) -> None:
    if numbers.confirming:
        raise _refused("cannot switch from confirm to tx mode")
    numbers.deliveries.transactional = True


def _receive_commit(numbers: ChannelNumbers, method: Method, request: None) -> None:
    if not numbers.deliveries.transactional:
        raise _refused("channel is not transactional")
    _commit(numbers, method, request)


def _receive_rollback(numbers: ChannelNumbers, method: Method, request: None) -> None:
    if not numbers.deliveries.transactional:
        raise _refused("channel is not transactional")
    _rollback(numbers, method, request)


def _receive_recover(numbers: ChannelNumbers, method: Any, request: None) -> None:
    if not method.requeue:
        raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, "requeue=false")
    _forget_deliveries(numbers, method, request)


def _receive_qos(_numbers: ChannelNumbers, method: spec.BasicQos, _request: None) -> None:
    if method.prefetch_size:
        raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, f"prefetch_size!=0 ({method.prefetch_size})")


def _receive_consume(numbers: ChannelNumbers, method: spec.BasicConsume, _request: None) -> None:
    tag = method.consumer_tag
    if tag in numbers.consumers or tag in (numbers.asked or ()):
        raise ReplyError(ReplyCode091.NOT_ALLOWED, f"attempt to reuse consumer tag '{tag}'")
    if not getattr(method, "no_wait", False):
        if tag:
            if numbers.asked is None:
                numbers.asked = {}
            numbers.asked[tag] = None
    elif tag:
        numbers.consumers[tag] = _no_ack(method)


def _receive_cancel(numbers: ChannelNumbers, method: spec.BasicCancel, _request: None) -> None:
    if getattr(method, "no_wait", False):
        numbers.consumers.pop(method.consumer_tag, None)


# -- sent by a server -----------------------------------------------------------------------


def _send_number(numbers: ChannelNumbers, tag: int, no_ack: bool) -> None:
    if tag != numbers.deliveries.last + 1:
        raise LocalProtocolError(f"the next delivery tag is {numbers.deliveries.last + 1}, not {tag}")
    numbers.deliveries.add(tag, settled=no_ack)


def _send_deliver(numbers: ChannelNumbers, method: spec.BasicDeliver, _request: None) -> None:
    if method.consumer_tag not in numbers.consumers:
        raise LocalProtocolError(f"the channel has no consumer {method.consumer_tag!r}")
    _send_number(numbers, method.delivery_tag, numbers.consumers[method.consumer_tag])


def _send_get_ok(numbers: ChannelNumbers, method: spec.BasicGetOk, request: spec.BasicGet) -> None:
    _send_number(numbers, method.delivery_tag, request.no_ack)


def _send_consume_ok(
    numbers: ChannelNumbers, method: spec.BasicConsumeOk, request: spec.BasicConsume
) -> None:
    tag = method.consumer_tag
    if request.consumer_tag:
        if tag != request.consumer_tag:
            raise LocalProtocolError(f"the client chose the tag {request.consumer_tag!r}, not {tag!r}")
    elif not tag or tag in numbers.consumers or tag in (numbers.asked or ()):
        raise LocalProtocolError(f"consumer_tag={tag!r}: expected a new tag that is not empty")
    if numbers.asked:
        numbers.asked.pop(tag, None)
    numbers.consumers[tag] = _no_ack(request)


def _send_confirm(numbers: ChannelNumbers, method: Any, _request: None) -> Noted:
    # Tag 0 with ``multiple`` would also settle publishes at the client that have not arrived here yet.
    tags = numbers.publishes.settle(method.delivery_tag, method.multiple) if method.delivery_tag else None
    if tags is None:
        raise LocalProtocolError(f"no publish {method.delivery_tag} waits for a confirm")
    return tags, 0


def _cancel_ours(numbers: ChannelNumbers, method: spec.BasicCancel, _request: None) -> None:
    numbers.consumers.pop(method.consumer_tag, None)


# -- received by a client -------------------------------------------------------------------


def _receive_number(numbers: ChannelNumbers, tag: int, no_ack: bool) -> None:
    last = numbers.deliveries.last
    if not numbers.deliveries.add(tag, settled=no_ack):
        raise ReplyError(ReplyCode091.COMMAND_INVALID, f"delivery tag {tag} after {last}")


def _receive_deliver(numbers: ChannelNumbers, method: spec.BasicDeliver, _request: None) -> None:
    tag = method.consumer_tag
    no_ack = numbers.consumers.get(tag)
    if no_ack is None:
        no_ack = None if numbers.leaving is None else numbers.leaving.get(tag)
    if no_ack is None:
        raise ReplyError(ReplyCode091.COMMAND_INVALID, f"a delivery for the unknown consumer {tag!r}")
    _receive_number(numbers, method.delivery_tag, no_ack)


def _receive_get_ok(numbers: ChannelNumbers, method: spec.BasicGetOk, request: spec.BasicGet) -> None:
    _receive_number(numbers, method.delivery_tag, request.no_ack)


def _receive_consume_ok(
    numbers: ChannelNumbers, method: spec.BasicConsumeOk, request: spec.BasicConsume
) -> None:
    numbers.consumers[method.consumer_tag] = _no_ack(request)


def _receive_confirm(numbers: ChannelNumbers, method: Any, _request: None) -> Noted:
    tags = numbers.publishes.settle(method.delivery_tag, method.multiple, tolerant=True)
    if tags is None:
        raise _refused(f"unknown delivery tag {method.delivery_tag}")
    return tags, 0


SENT: Final[Mapping[EndpointRole, Mapping[str, MethodEffect]]] = {
    EndpointRole.CLIENT: {
        "basic.publish": _number_publish,
        "basic.ack": _send_settle,
        "basic.nack": _send_settle,
        "basic.reject": _send_settle,
        "basic.recover-async": _forget_deliveries,
        "basic.consume": _send_consume,
        "basic.cancel": _send_cancel,
        "confirm.select": _send_confirm_select,
        "tx.select": _send_tx_select,
        "tx.commit": _send_commit,
        "tx.rollback": _send_rollback,
    },
    EndpointRole.SERVER: {
        "basic.deliver": _send_deliver,
        "basic.get-ok": _send_get_ok,
        "basic.consume-ok": _send_consume_ok,
        "basic.cancel-ok": _forget_consumer,
        "basic.cancel": _cancel_ours,
        "basic.ack": _send_confirm,
        "basic.nack": _send_confirm,
    },
}
"""The effects of sent methods, by the role of the sender."""

RECEIVED: Final[Mapping[EndpointRole, Mapping[str, MethodEffect]]] = {
    EndpointRole.SERVER: {
        "basic.publish": _receive_publish,
        "basic.ack": _receive_settle,
        "basic.nack": _receive_settle,
        "basic.reject": _receive_settle,
        "basic.recover": _receive_recover,
        "basic.recover-async": _receive_recover,
        "basic.consume": _receive_consume,
        "basic.cancel": _receive_cancel,
        "basic.qos": _receive_qos,
        "confirm.select": _receive_confirm_select,
        "tx.select": _receive_tx_select,
        "tx.commit": _receive_commit,
        "tx.rollback": _receive_rollback,
    },
    EndpointRole.CLIENT: {
        "basic.deliver": _receive_deliver,
        "basic.get-ok": _receive_get_ok,
        "basic.consume-ok": _receive_consume_ok,
        "basic.cancel-ok": _forget_consumer,
        "basic.cancel": _cancel_ours,
        "basic.ack": _receive_confirm,
        "basic.nack": _receive_confirm,
        "basic.recover-ok": _forget_deliveries,
    },
}
"""The effects of received methods, by the role of the receiver."""


def check_properties(numbers: ChannelNumbers, properties: BasicProperties) -> None:
    """Check the properties of a publish at a server, before its body comes.

    Raises:
        ReplyError: 406; ``expiration`` is no number of milliseconds, or ``user-id`` is not the user that logged
            in.
    """
    expiration = properties.expiration
    if expiration is not None:
        digits = expiration.removeprefix("+")  # RabbitMQ takes a sign too
        if not (digits.isascii() and digits.isdigit()):
            raise _refused(f"invalid expiration '{expiration}': expected a number of milliseconds")
    user = properties.user_id
    if user is not None and numbers.user is not None and user != numbers.user:
        raise _refused(f"user_id property set to '{user}' but authenticated user was '{numbers.user}'")
