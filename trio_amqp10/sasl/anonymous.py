"""ANONYMOUS: no credentials, and so no identity (RFC 4505)."""

from __future__ import annotations

from typing import Final

from trio_amqp10.errors import LocalProtocolError

from .mechanism import (
    ClientContext,
    ClientExchange,
    ClientMechanism,
    Refused,
    Respond,
    ServerContext,
    ServerExchange,
    ServerMechanism,
    ServerStep,
    Verified,
)

__all__ = ["Anonymous", "AnonymousServer"]

NAME: Final = "ANONYMOUS"
TRACE_LIMIT: Final = 255
"""Characters of trace information (RFC 4505, section 2)."""


class Anonymous(ClientMechanism):
    """Ask to be let in without credentials.

    Args:
        trace: what the server may write into its log, at most 255 characters. It is never
            empty by default: there are servers that wait for more when nothing comes.
    """

    __slots__ = ("_trace",)

    name = NAME

    def __init__(self, trace: str = "anonymous") -> None:
        if len(trace) > TRACE_LIMIT:
            raise LocalProtocolError(
                f"trace information of {len(trace)} characters, more than {TRACE_LIMIT} (RFC 4505, 2)"
            )
        self._trace: Final = trace

    def begin(self, context: ClientContext) -> ClientExchange:  # noqa: ARG002 - of no use to it
        return _AnonymousClient(self._trace)


class _AnonymousClient(ClientExchange):
    __slots__ = ("_trace",)

    def __init__(self, trace: str) -> None:
        self._trace = trace

    def start(self) -> Respond:
        return Respond(self._trace.encode())


class AnonymousServer(ServerMechanism):
    """Let everyone in, as ``anonymous``."""

    __slots__ = ()

    name = NAME

    def begin(self, context: ServerContext) -> ServerExchange:  # noqa: ARG002 - of no use to it
        return _AnonymousServer()


class _AnonymousServer(ServerExchange):
    __slots__ = ()

    def start(self, initial_response: bytes | None) -> ServerStep:
        # Trace information is not worth a challenge of its own, so none at all will do, and it is
        # kept nowhere. Its grammar counts characters; octets are at most four times as many.
        if initial_response is not None and len(initial_response) > 4 * TRACE_LIMIT:
            return Refused()
        return Verified("anonymous")
