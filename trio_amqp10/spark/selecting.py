"""Sources that select: the filter to ask for, and whether the peer applies it (3.5.3, 3.5.8).

Knows attached receivers; what is received, others know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.wire.values import Described, Symbol

if TYPE_CHECKING:
    import trio_amqp10 as amqp

    from .options import ReadOptions

__all__ = ["check_filter", "selecting"]


def selecting(selector: str | None) -> dict[Any, Any] | None:
    """The filter of a source that selects (apache-filters, 0x468C00000004)."""
    if selector is None:
        return None
    name = Symbol("apache.org:selector-filter:string")
    return {name: Described(name, selector)}


def check_filter(receiver: amqp.Receiver, options: ReadOptions) -> None:
    """Whether the peer selects: if not, others' messages would be taken (3.5.3).

    Raises:
        LocalProtocolError: it does not.
    """
    if options.selector is not None:
        source: Any = receiver.remote.source
        if not getattr(source, "filter", None):
            raise LocalProtocolError(
                f"the peer at {options.where} does not apply the selector {options.selector!r}: leave option "
                "'selector' out, and filter in Spark"
            )
