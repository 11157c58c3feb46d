"""``amqp10 disconnect``: close connections by ``$management``."""

from __future__ import annotations

from dataclasses import dataclass, field

import trio

import trio_amqp10 as amqp

from .command_runner import CommandError, Interrupts
from .dial_management import dial_management
from .dial_options import DialOptions

__all__ = ["DisconnectOptions", "disconnect"]

_PATIENCE = 10.0
"""Seconds to wait for each answer."""


@dataclass(frozen=True, kw_only=True)
class DisconnectOptions:
    """What the command line said."""

    url: str
    identities: tuple[str, ...]
    dial: DialOptions = field(default_factory=DialOptions)


async def disconnect(options: DisconnectOptions, interrupts: Interrupts) -> None:  # noqa: ARG001 - it is cancelled whole
    """Close the connections of these identities, in turn.

    Raises:
        CommandError: there is none of that identity, or no management that closes connections.
    """
    async with dial_management(options.url, options.dial) as connection:
        try:
            async with connection.open_requester("$management") as requester:
                for identity in options.identities:
                    await _close(requester, identity)
        except amqp.LinkRefusedError as refused:
            raise CommandError(f"the peer has no $management for us: {refused}") from None


async def _close(requester: amqp.Requester, identity: str) -> None:
    asked = {"operation": "DELETE", "type": "connection", "identity": identity}
    try:
        reply = await requester.request(amqp.Message(None, application_properties=asked), timeout=_PATIENCE)
    except trio.TooSlowError:
        raise CommandError(f"$management does not answer within {_PATIENCE:g} s") from None
    said = reply.application_properties
    if said.get("statusCode") != 204:
        raise CommandError(
            f"connection {identity} is not closed: {said.get('statusCode')} {said.get('statusDescription')}"
        )
