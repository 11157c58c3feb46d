"""ANONYMOUS: no credentials, and therefore no identity (RFC 4505)."""

from __future__ import annotations

from typing import Final

from trio_amqp10.core.errors import LocalProtocolError

from .mechanism import (
    ClientContext,
    ClientExchange,
    ClientMechanism,
    Refused,
    ServerContext,
    ServerExchange,
    ServerMechanism,
    ServerStep,
    SoleResponse,
    Verified,
)

NAME: Final = "ANONYMOUS"
TRACE_LIMIT: Final = 255
"""Characters of trace information (RFC 4505, section 2)."""


class Anonymous(ClientMechanism):
    """Log in without credentials.

    Args:
        trace: text that the server may write to its log, at most 255 characters. It is not
            empty by default, because some servers wait for more after an empty response.
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
        return SoleResponse(self._trace.encode())


class AnonymousServer(ServerMechanism):
    """Accept every client, under the name ``anonymous``."""

    __slots__ = ()

    name = NAME

    def begin(self, context: ServerContext) -> ServerExchange:  # noqa: ARG002 - of no use to it
        return _AnonymousServer()


class _AnonymousServer(ServerExchange):
    __slots__ = ()

    def start(self, initial_response: bytes | None) -> ServerStep:
        # Trace information is optional here, because asking for it would need one more challenge, and it is
        # not stored. Its grammar counts characters, which have at most four octets each (RFC 4505, section 2).
        if initial_response is not None and len(initial_response) > 4 * TRACE_LIMIT:
            return Refused()
        return Verified("anonymous")
