"""How inlets and outlets are detached: stolen, for now, or with an error.

Knows links; does not know what any node does with a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.engine.states import LinkState
from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.rules import ONE_ATTACHMENT
from trio_amqp10.spec.transport import Error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.peer.link import Link

__all__ = ["error_of", "steal", "suspend"]


def steal(link: Link[Any]) -> None:
    """The same peer has attached a link of this name elsewhere: this one is over, and its terminus goes there (2.6.1)."""
    conn, end = link._conn, link._link  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    conn.pump.feed(
        lambda: end.fail(ONE_ATTACHMENT.broken("attached anew, on another connection"), closed=False)
    )


def suspend(link: Link[Any], condition: str, description: str) -> None:
    """Detach for now: the peer may attach again, and find all as it was."""
    conn, end = link._conn, link._link  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if end.state is LinkState.ATTACHED:
        fault = RemoteProtocolError(description, condition, scope="link")
        conn.pump.feed(lambda: end.fail(fault, closed=False))


def error_of(
    condition: str | None, description: str | None, info: Mapping[Any, Any] | None = None
) -> Error | None:
    """The error of a detach; None for one without."""
    return None if condition is None else Error(condition=condition, description=description, info=info)
