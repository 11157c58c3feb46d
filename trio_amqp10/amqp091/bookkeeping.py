"""What methods do to a channel's numbers: delivery tags, confirms, consumers, transactions (0-9-1, basic, confirm, tx).

Four tables, one for each role and direction, from the name of a method to a function. What is sent is checked before anything changes,
and a breach is a ``LocalProtocolError``; what is received is answered with a reply code. Replies have the request that they
answer. A method that has no row changes no number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.reply_codes import ReplyCode091

from .faults import ReplyError
from .tags import Tags

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from . import spec
    from .content import BasicProperties
    from .methods import Method

__all__ = ["RECEIVED", "SENT", "Numbers", "check_properties"]


class Numbers:
    """The numbers of one channel, the same at both ends.

    Attributes:
        deliveries: tags that the server gave out and the client has not settled.
        publishes: publishes in confirm mode that the server has not settled.
        confirming: whether ``confirm.select`` was said.
        consumers: by tag, whether the consumer settles nothing (``no_ack``).
        asked: tags of consumers that a server has not confirmed yet; it delivers nothing to them before.
        leaving: at a client, consumers that it has cancelled without waiting: deliveries may be under way to them.
        user: a server's name for who logged in, to compare with ``user-id``; None to compare nothing.
    """

    __slots__ = ("_publishes", "asked", "confirming", "consumers", "deliveries", "leaving", "user")

    def __init__(self, user: str | None) -> None:
        self.deliveries: Final = Tags()
        self._publishes: Tags | None = None
        self.confirming: bool = False
        self.consumers: dict[str, bool] = {}
        self.asked: dict[str, None] = {}
        self.leaving: dict[str, bool] | None = None  # as long as there are any
        self.user: str | None = user

    @property
    def publishes(self) -> Tags:
        """See above; made when it is first asked for, as most channels of a server confirm nothing."""
        if self._publishes is None:
            self._publishes = Tags()
        return self._publishes


if TYPE_CHECKING:
    Noted = tuple[tuple[int, ...], int]
    """Tags that were settled, and the number of a publish."""
    MethodEffect = Callable[[Numbers, Any, Any], Noted | None]
    """What a method does, with the request that it answers."""


def _refused(explanation: str) -> ReplyError:
    return ReplyError(ReplyCode091.PRECONDITION_FAILED, explanation)


def _no_ack(consume: Any) -> bool:
    """Whether a consumer settles nothing; one whose request cannot say so never settles (10.3, stream.consume)."""
    return getattr(consume, "no_ack", True)


# -- what both ends do ----------------------------------------------------------------------


def _commit(numbers: Numbers, _method: Method, _request: None) -> None:
    numbers.deliveries.commit()


def _rollback(numbers: Numbers, _method: Method, _request: None) -> None:
    numbers.deliveries.rollback()


def _forget_deliveries(numbers: Numbers, _method: Method, _request: Method | None) -> None:
    numbers.deliveries.clear()


def _forget_consumer(numbers: Numbers, method: spec.BasicCancelOk, _request: spec.BasicCancel) -> None:
    numbers.consumers.pop(method.consumer_tag, None)


def _number_publish(numbers: Numbers, _method: Method, _request: None) -> Noted | None:
    if not numbers.confirming:
        return None
    number = numbers.publishes.last + 1
    numbers.publishes.number(number)
    return (), number


# -- what a client sends --------------------------------------------------------------------


def _send_settle(numbers: Numbers, method: Any, _request: None) -> Noted:
    tags = numbers.deliveries.settle(method.delivery_tag, getattr(method, "multiple", False))
    if tags is None:
        raise LocalProtocolError(f"unknown delivery tag {method.delivery_tag}")
    return tags, 0


def _send_confirm_select(numbers: Numbers, _method: Method, _request: None) -> None:
    if numbers.deliveries.transactional:
        raise LocalProtocolError("a channel has transactions or confirms, and this one has transactions")
    numbers.confirming = True


def _send_tx_select(numbers: Numbers, _method: Method, _request: None) -> None:
    if numbers.confirming:
        raise LocalProtocolError("a channel has transactions or confirms, and this one has confirms")
    numbers.deliveries.transactional = True


def _send_tx(numbers: Numbers, _method: Method, _request: None) -> None:
    if not numbers.deliveries.transactional:
        raise LocalProtocolError("the channel has no transaction: send tx.select first")


def _send_commit(numbers: Numbers, method: Method, request: None) -> None:
    _send_tx(numbers, method, request)
    _commit(numbers, method, request)


def _send_rollback(numbers: Numbers, method: Method, request: None) -> None:
    _send_tx(numbers, method, request)
    _rollback(numbers, method, request)


def _send_consume(numbers: Numbers, method: spec.BasicConsume, _request: None) -> None:
    if method.consumer_tag in numbers.consumers:
        raise LocalProtocolError(f"the channel has a consumer {method.consumer_tag!r} already")
    if getattr(method, "no_wait", False):
        if not method.consumer_tag:
            raise LocalProtocolError("a consumer without a tag has to wait for the server to give it one")
        numbers.consumers[method.consumer_tag] = _no_ack(method)


def _send_cancel(numbers: Numbers, method: spec.BasicCancel, _request: None) -> None:
    if getattr(method, "no_wait", False):
        no_ack = numbers.consumers.pop(method.consumer_tag, None)
        if no_ack is not None:
            numbers.leaving = {**(numbers.leaving or {}), method.consumer_tag: no_ack}


# -- what a server receives -----------------------------------------------------------------


def _receive_publish(numbers: Numbers, method: spec.BasicPublish, request: None) -> Noted | None:
    if method.immediate:
        raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, "immediate=true")
    return _number_publish(numbers, method, request)


def _receive_settle(numbers: Numbers, method: Any, _request: None) -> Noted:
    tags = numbers.deliveries.settle(method.delivery_tag, getattr(method, "multiple", False))
    if tags is None:
        raise _refused(f"unknown delivery tag {method.delivery_tag}")
    return tags, 0


def _receive_confirm_select(numbers: Numbers, _method: Method, _request: None) -> None:
    if numbers.deliveries.transactional:
        raise _refused("cannot switch from tx to confirm mode")
    numbers.confirming = True


def _receive_tx_select(numbers: Numbers, _method: Method, _request: None) -> None:
    if numbers.confirming:
        raise _refused("cannot switch from confirm to tx mode")
    numbers.deliveries.transactional = True


def _receive_commit(numbers: Numbers, method: Method, request: None) -> None:
    if not numbers.deliveries.transactional:
        raise _refused("channel is not transactional")
    _commit(numbers, method, request)


def _receive_rollback(numbers: Numbers, method: Method, request: None) -> None:
    if not numbers.deliveries.transactional:
        raise _refused("channel is not transactional")
    _rollback(numbers, method, request)


def _receive_recover(numbers: Numbers, method: Any, request: None) -> None:
    if not method.requeue:
        raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, "requeue=false")
    _forget_deliveries(numbers, method, request)


def _receive_qos(_numbers: Numbers, method: spec.BasicQos, _request: None) -> None:
    if method.prefetch_size:
        raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, f"prefetch_size!=0 ({method.prefetch_size})")


def _receive_consume(numbers: Numbers, method: spec.BasicConsume, _request: None) -> None:
    tag = method.consumer_tag
    if tag in numbers.consumers or tag in numbers.asked:
        raise ReplyError(ReplyCode091.NOT_ALLOWED, f"attempt to reuse consumer tag '{tag}'")
    if not getattr(method, "no_wait", False):
        if tag:
            numbers.asked[tag] = None
    elif tag:
        numbers.consumers[tag] = _no_ack(method)


def _receive_cancel(numbers: Numbers, method: spec.BasicCancel, _request: None) -> None:
    if getattr(method, "no_wait", False):
        numbers.consumers.pop(method.consumer_tag, None)


# -- what a server sends --------------------------------------------------------------------


def _send_number(numbers: Numbers, tag: int, no_ack: bool) -> None:
    if tag != numbers.deliveries.last + 1:
        raise LocalProtocolError(f"the next delivery tag is {numbers.deliveries.last + 1}, not {tag}")
    numbers.deliveries.number(tag, settled=no_ack)


def _send_deliver(numbers: Numbers, method: spec.BasicDeliver, _request: None) -> None:
    if method.consumer_tag not in numbers.consumers:
        raise LocalProtocolError(f"the channel has no consumer {method.consumer_tag!r}")
    _send_number(numbers, method.delivery_tag, numbers.consumers[method.consumer_tag])


def _send_get_ok(numbers: Numbers, method: spec.BasicGetOk, request: spec.BasicGet) -> None:
    _send_number(numbers, method.delivery_tag, request.no_ack)


def _send_consume_ok(numbers: Numbers, method: spec.BasicConsumeOk, request: spec.BasicConsume) -> None:
    tag = method.consumer_tag
    if request.consumer_tag:
        if tag != request.consumer_tag:
            raise LocalProtocolError(f"the client chose the tag {request.consumer_tag!r}, not {tag!r}")
    elif not tag or tag in numbers.consumers or tag in numbers.asked:
        raise LocalProtocolError(f"a consumer's tag is new and not empty: {tag!r}")
    numbers.asked.pop(tag, None)
    numbers.consumers[tag] = _no_ack(request)


def _send_confirm(numbers: Numbers, method: Any, _request: None) -> Noted:
    # Tag 0, for all that are out, would settle at the client what is still under way to us.
    tags = numbers.publishes.settle(method.delivery_tag, method.multiple) if method.delivery_tag else None
    if tags is None:
        raise LocalProtocolError(f"no publish {method.delivery_tag} waits for a confirm")
    return tags, 0


def _cancel_ours(numbers: Numbers, method: spec.BasicCancel, _request: None) -> None:
    numbers.consumers.pop(method.consumer_tag, None)


# -- what a client receives -----------------------------------------------------------------


def _receive_number(numbers: Numbers, tag: int, no_ack: bool) -> None:
    last = numbers.deliveries.last
    if not numbers.deliveries.number(tag, settled=no_ack):
        raise ReplyError(ReplyCode091.COMMAND_INVALID, f"delivery tag {tag} after {last}")


def _receive_deliver(numbers: Numbers, method: spec.BasicDeliver, _request: None) -> None:
    tag = method.consumer_tag
    no_ack = numbers.consumers.get(tag)
    if no_ack is None:
        no_ack = None if numbers.leaving is None else numbers.leaving.get(tag)
    if no_ack is None:
        raise ReplyError(ReplyCode091.COMMAND_INVALID, f"a delivery for {tag!r}, which is no consumer here")
    _receive_number(numbers, method.delivery_tag, no_ack)


def _receive_get_ok(numbers: Numbers, method: spec.BasicGetOk, request: spec.BasicGet) -> None:
    _receive_number(numbers, method.delivery_tag, request.no_ack)


def _receive_consume_ok(numbers: Numbers, method: spec.BasicConsumeOk, request: spec.BasicConsume) -> None:
    numbers.consumers[method.consumer_tag] = _no_ack(request)


def _receive_confirm(numbers: Numbers, method: Any, _request: None) -> Noted:
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
"""What is sent, by the role that sends it."""

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
"""What is received, by the role that receives it."""


def check_properties(numbers: Numbers, properties: BasicProperties) -> None:
    """What a server refuses in the properties of a publish, before its body comes.

    Raises:
        ReplyError: 406; ``expiration`` is no number of milliseconds, or ``user-id`` is another's.
    """
    expiration = properties.expiration
    if expiration is not None and not (expiration.isascii() and expiration.isdigit()):
        raise _refused(f"invalid expiration '{expiration}'")
    user = properties.user_id
    if user is not None and numbers.user is not None and user != numbers.user:
        raise _refused(f"user_id property set to '{user}' but authenticated user was '{numbers.user}'")
