"""Selectors, copying and durability of a source (3.5.3, 3.5.8).

A peer's attach says what is in place. RabbitMQ 4 says of a queue what it was asked, then moves all messages, and keeps
nothing: so there what the attach says counts for nothing.

Knows attached receivers; what is received, others know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.messaging import ExpiryPolicy, Source, TerminusDurability
from trio_amqp10.wire.values import Described, Symbol

if TYPE_CHECKING:
    import trio_amqp10 as amqp

    from .options import QueueOptions, ReadOptions

__all__ = ["check_copying", "check_filter", "check_keeping", "keeps_nothing", "selecting", "source_of"]

_AWAY: Final = 86_400
"""Seconds that a peer is asked to wait for a query that has died."""


def selecting(selector: str | None) -> dict[Any, Any] | None:
    """The filter of a source that selects (apache-filters, 0x468C00000004)."""
    if selector is None:
        return None
    name = Symbol("apache.org:selector-filter:string")
    return {name: Described(name, selector)}


def source_of(options: QueueOptions) -> Source:
    """What is asked of the peer's end: which messages, and what to remember of the link (3.5.3)."""
    keeping = options.dedup == "link"
    policy = ExpiryPolicy.CONNECTION_CLOSE if keeping else ExpiryPolicy.SESSION_END
    return Source(
        address=options.address,
        filter=selecting(options.selector),
        durable=TerminusDurability.UNSETTLED_STATE if keeping or options.durable else TerminusDurability.NONE,
        expiry_policy=ExpiryPolicy.NEVER if options.durable else policy,
        timeout=_AWAY if keeping else 0,
    )


def check_filter(receiver: amqp.Receiver, options: ReadOptions) -> None:
    """Whether the peer selects: if not, others' messages would be taken (3.5.3).

    Raises:
        LocalProtocolError: it does not.
    """
    if options.selector is not None:
        source: Any = receiver.remote.source
        if not getattr(source, "filter", None) or _echoes(receiver):
            raise LocalProtocolError(
                f"the peer at {options.where} does not apply the selector {options.selector!r}: leave option "
                "'selector' out, and filter in Spark"
            )


def check_copying(receiver: amqp.Receiver, options: ReadOptions) -> None:
    """Whether the peer copies its messages (distribution-mode copy, 3.5.3).

    Raises:
        LocalProtocolError: it would move them.
    """
    granted: Any = receiver.remote.source
    if getattr(granted, "distribution_mode", None) != "copy" or _echoes(receiver):
        raise LocalProtocolError(
            f"{options.address!r} cannot be browsed: the peer would move its messages, not copy them. Take them with "
            "spark.readStream"
        )


def check_keeping(receiver: amqp.Receiver, options: ReadOptions) -> None:
    """Whether the peer remembers the link when it is gone (3.5.3).

    Raises:
        LocalProtocolError: it does not.
    """
    granted: Any = receiver.remote.source
    lasting = (ExpiryPolicy.CONNECTION_CLOSE, ExpiryPolicy.NEVER)
    if getattr(granted, "expiry_policy", None) not in lasting or _echoes(receiver):
        raise keeps_nothing(options)


def keeps_nothing(options: ReadOptions) -> LocalProtocolError:
    """What to say of a peer that will not remember a link."""
    return LocalProtocolError(
        f"option 'dedup' is 'link', and the peer at {options.where} does not keep links: with 'message-id' messages are "
        "known by their ids; with 'none' some may come twice after a crash"
    )


def _echoes(receiver: amqp.Receiver) -> bool:
    """Whether the peer's source is ours once more, and no promise."""
    told = receiver.session.connection.remote.properties
    return told.get(Symbol("product")) == "RabbitMQ"
