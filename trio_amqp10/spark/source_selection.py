"""Selectors, copying and durability of a source (3.5.3, 3.5.8).

The peer's attach contains the source that is in effect. RabbitMQ 4 repeats the source of the receiver for a queue, but moves all messages,
and keeps no link state: so its attach is not trusted.

Knows attached receivers, not messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source, TerminusDurability
from trio_amqp10.amqp10.wire.values import Described, Symbol
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    import trio_amqp10 as amqp

    from .options import QueueOptions, ReadOptions

_AWAY: Final = 86_400
"""The timeout of the source: seconds for which the peer should keep a lost link."""


def selector_filter(selector: str | None) -> dict[Any, Any] | None:
    """Return the filter-set for a selector (apache-filters, 0x468C00000004)."""
    if selector is None:
        return None
    name = Symbol("apache.org:selector-filter:string")
    return {name: Described(name, selector)}


def source_of(options: QueueOptions) -> Source:
    """Return the source to attach to, with its filter, durability and expiry (3.5.3)."""
    keeping = options.dedup == "link"
    policy = ExpiryPolicy.CONNECTION_CLOSE if keeping else ExpiryPolicy.SESSION_END
    return Source(
        address=options.address,
        filter=selector_filter(options.selector),
        durable=TerminusDurability.UNSETTLED_STATE if keeping or options.durable else TerminusDurability.NONE,
        expiry_policy=ExpiryPolicy.NEVER if options.durable else policy,
        timeout=_AWAY if keeping else 0,
    )


def check_filter(receiver: amqp.Receiver, options: ReadOptions) -> None:
    """Check that the peer applies the selector, if there is one (3.5.3).

    Otherwise messages that are not for this query would be received.

    Raises:
        LocalProtocolError: the peer does not apply the selector.
    """
    if options.selector is not None:
        source: Any = receiver.remote.source
        if not getattr(source, "filter", None) or _echoes(receiver):
            raise LocalProtocolError(
                f"the peer at {options.where} does not apply the selector {options.selector!r}: leave option "
                "'selector' out, and filter in Spark"
            )


def check_copying(receiver: amqp.Receiver, options: ReadOptions) -> None:
    """Check that the peer copies its messages (distribution-mode copy, 3.5.3).

    Raises:
        LocalProtocolError: the peer would move its messages.
    """
    granted: Any = receiver.remote.source
    if getattr(granted, "distribution_mode", None) != "copy" or _echoes(receiver):
        raise LocalProtocolError(
            f"{options.address!r} cannot be browsed: the peer would move its messages, not copy them. Take them with "
            "spark.readStream"
        )


def check_keeping(receiver: amqp.Receiver, options: ReadOptions) -> None:
    """Check that the peer keeps the link after the connection is lost (3.5.3).

    Raises:
        LocalProtocolError: the peer does not keep the link.
    """
    granted: Any = receiver.remote.source
    lasting = (ExpiryPolicy.CONNECTION_CLOSE, ExpiryPolicy.NEVER)
    if getattr(granted, "expiry_policy", None) not in lasting or _echoes(receiver):
        raise not_keeping_error(options)


def not_keeping_error(options: ReadOptions) -> LocalProtocolError:
    """Return the error for a peer that does not keep links."""
    return LocalProtocolError(
        f"option 'dedup' is 'link', and the peer at {options.where} does not keep links: with 'message-id' messages are "
        "known by their ids; with 'none' some may come twice after a crash"
    )


def _echoes(receiver: amqp.Receiver) -> bool:
    """Whether the peer merely repeats the source that it was sent."""
    properties = receiver.session.connection.remote.properties
    return properties.get(Symbol("product")) == "RabbitMQ"
