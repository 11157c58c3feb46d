"""``amqp10 serve``: a container of queues and topics that live as long as the process."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

import trio_amqp10 as amqp

from .run import Interrupts, say, write_out

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ServeOptions", "serve"]

_PATIENCE: Final = 5.0
"""Seconds that deliveries in flight have to be settled once we are to stop."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What the command line said."""

    urls: Sequence[str]
    queues: Sequence[tuple[str, dict[str, Any]]] = ()
    topics: Sequence[str] = ()
    users: dict[str, str] = field(default_factory=dict[str, str])
    strict: bool = False
    management: bool = False
    allow_plaintext_password: bool = False


async def serve(options: ServeOptions, interrupts: Interrupts) -> None:
    """Serve until a signal comes, then finish what is in flight.

    Raises:
        OSError: it is not possible to listen there.
    """
    container = amqp.Container("amqp10", strict=options.strict)
    for queue, rules in options.queues:
        container.add_queue(queue, **rules)
    for topic in options.topics:
        container.add_topic(topic)
    if options.management:
        container.add_management()
    start = partial(
        container.serve,
        *options.urls,
        sasl=amqp.sasl.Server(users=options.users) if options.users else None,
        allow_plaintext_password=options.allow_plaintext_password,
    )
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(start)
        await write_out("".join(f"listening {listener.url}\n" for listener in listeners).encode())
        with interrupts.here():
            await trio.sleep_forever()
        say("amqp10: finishing the deliveries in flight; a second signal stops at once")
        await container.finish(_PATIENCE)
        nursery.cancel_scope.cancel()
