"""``$cbs``: the node that takes tokens ("claims-based security", as in Azure).

A request puts a token: ``operation`` is ``put-token``, ``type`` the type of the token, ``name`` its
audience and ``expiration`` its end, as application properties, and the token is the body. The reply
has ``status-code`` and ``status-description`` in the manner of HTTP. It goes where ``reply-to`` says;
a request without one is answered on the link by which its sender receives from here.

Knows messages; knows neither links nor what tokens say.
"""

# Not every hook needs all that it is told.

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.container.handlers import Answering
from trio_amqp10.container.nodes.node import Node, RefusedError
from trio_amqp10.message import Message
from trio_amqp10.tokens import Token
from trio_amqp10.wire.values import Int

from .claims import Claim, TokenOffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.container.connected_peer import ConnectedPeer
    from trio_amqp10.container.handlers import Post
    from trio_amqp10.container.nodes.node import Peer, SubscriptionTerms

    from .claims import Verify

__all__ = ["ADDRESS", "Cbs"]

_log = logging.getLogger("trio_amqp10.container")

ADDRESS: Final = "$cbs"

_MOST: Final = 1000
"""Audiences that one connection may have claims for."""
_LONGEST: Final = 2048
"""Characters of an audience: it is kept."""


class Cbs(Answering):
    """Takes tokens, and gives their claims to the connection that they came on.

    Args:
        verify: says what a token permits.
        post: sends a reply to a node.
        wall: gives seconds since 1970.
    """

    answers_unasked = True
    needs_no_permission = True

    def __init__(self, verify: Verify, post: Post, wall: Callable[[], float]) -> None:
        super().__init__(ADDRESS, post, concurrency=10)
        self._verify = verify
        self._wall = wall

    def check_outlet(
        self, peer: Peer, *, copying: bool, target: str | None, subscription_terms: SubscriptionTerms
    ) -> None:
        Node.check_outlet(self, peer, copying=copying, target=target, subscription_terms=subscription_terms)

    async def _ask(self, peer: Peer, request: Message) -> Message:
        status, description = await self._put(request, cast("ConnectedPeer", peer))
        said = {"status-code": Int(status), "status-description": description}
        return Message(None, application_properties=said)

    async def _put(self, request: Message, peer: ConnectedPeer) -> tuple[int, str]:
        """Take a token; returns status-code and status-description."""
        said: Any = request.application_properties or {}
        if said.get("operation") != "put-token":
            return 400, f"the operation is {said.get('operation')!r}, and only put-token is possible"
        audience, kind, value = said.get("name"), said.get("type"), request.body
        if not (isinstance(audience, str) and isinstance(kind, str) and isinstance(value, str)):
            return 400, "put-token needs a name and a type, as strings, and the token as a string in the body"
        if not audience or len(audience) > _LONGEST:
            return 400, f"a name has 1 to {_LONGEST} characters"
        token = Token(value, kind, _seconds(said.get("expiration")))
        try:
            claim: Any = self._verify(TokenOffer(audience, token, peer.identity, self._wall()))
            if inspect.isawaitable(claim):
                claim = await claim
            if not isinstance(claim, Claim):
                return 401, "the token is not valid"
            return self._take_claim(claim, peer)
        except RefusedError as refusal:
            return 401, refusal.description
        except Exception:
            _log.exception("a token for %r could not be verified", audience)
            return 500, "the token could not be verified"

    def _take_claim(self, claim: Claim, peer: ConnectedPeer) -> tuple[int, str]:
        seconds = None if claim.expires is None else claim.expires - self._wall()
        if seconds is not None and seconds <= 0:
            return 401, "the token has expired"
        if len(peer.guard.claims) >= _MOST and all(
            claim.audience != one.audience for one in peer.guard.claims
        ):
            return 403, f"there are tokens for {_MOST} audiences on this connection"
        peer.guard.add_claim(claim, seconds)
        return 202, "Accepted"


def _seconds(expiration: Any) -> float | None:
    """A timestamp, or milliseconds; what is neither says nothing, for the token itself says when it ends."""
    if isinstance(expiration, int) and not isinstance(expiration, bool):
        return expiration / 1000
    return None
