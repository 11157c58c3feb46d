"""``amqp10 disconnect``: close connections by ``$management``."""

from __future__ import annotations

from dataclasses import dataclass, field

from trio_amqp10.container.management.errors import OperationRefusedError

from .command_runner import CommandError, Interrupts
from .dial_options import DialOptions
from .manage import connection_number
from .open_management import open_management, refusal_text


@dataclass(frozen=True, kw_only=True)
class DisconnectOptions:
    """The options of ``amqp10 disconnect``."""

    url: str
    identities: tuple[str, ...]
    dial: DialOptions = field(default_factory=DialOptions)


async def disconnect(options: DisconnectOptions, interrupts: Interrupts) -> None:  # noqa: ARG001 - an interrupt cancels the whole command
    """Close the connections with these identities, one after the other.

    Raises:
        CommandError: an identity is unknown, or the peer has no management that closes connections.
    """
    async with open_management(options.url, options.dial) as management:
        for identity in options.identities:
            try:
                await management.close_connection(connection_number(identity))
            except OperationRefusedError as refused:
                raise CommandError(f"connection {identity} was not closed: {refusal_text(refused)}") from None
