"""``$cbs``: the node that takes tokens ("claims-based security", as in Azure).

A request puts a token: ``operation`` is ``put-token``, ``type`` the type of the token, ``name`` its
audience and ``expiration`` its end, as application properties, and the token is the body. The reply
has ``status-code`` and ``status-description``, with codes as in HTTP. It goes to the address in ``reply-to``;
a request without that address is answered on the link by which its sender receives from ``$cbs``.

Knows messages; knows neither links nor the content of tokens.
"""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.values import Int
from trio_amqp10.broker.nodes.node import Node, RefusedError
from trio_amqp10.broker.rights.claims import Claim, TokenOffer
from trio_amqp10.core.tokens import Token

from .handlers import Answering

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.broker.nodes.node import Peer, SubscriptionTerms
    from trio_amqp10.broker.peer_interfaces import ConnectedPeer
    from trio_amqp10.broker.rights.claims import Verify

    from .handlers import Post

_log = logging.getLogger("trio_amqp10.container")

ADDRESS: Final = "$cbs"

_MOST: Final = 1000
"""The most audiences that one connection may have claims for."""
_LONGEST: Final = 2048
"""The most characters of an audience, because each is kept."""


class Cbs(Answering):
    """The node that takes tokens, and adds their claims to the peer's connection.

    Args:
        verify: returns the claim of a token.
        post: sends a reply to a node.
        wall: returns seconds since 1970.
    """

    answers_unasked = settles_first = True
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
        properties = {"status-code": Int(status), "status-description": description}
        return Message(None, application_properties=properties)

    async def _put(self, request: Message, peer: ConnectedPeer) -> tuple[int, str]:
        """Take a token, and return a status code and a description."""
        properties: Any = request.application_properties or {}
        if properties.get("operation") != "put-token":
            return 400, f"the operation is {properties.get('operation')!r}: expected put-token"
        audience, kind, value = properties.get("name"), properties.get("type"), request.body
        if not (isinstance(audience, str) and isinstance(kind, str) and isinstance(value, str)):
            return 400, "put-token needs a name and a type, as strings, and the token as a string in the body"
        if not audience or len(audience) > _LONGEST:
            return 400, f"the name has {len(audience)} characters: expected 1 to {_LONGEST}"
        token = Token(value, kind, _seconds(properties.get("expiration")))
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
            return 403, f"this connection has tokens for {_MOST} audiences, and may have no more"
        peer.guard.add_claim(claim, seconds)
        return 202, "Accepted"


def _seconds(expiration: Any) -> float | None:
    """Return an expiration in milliseconds as seconds, or None if it is not a number.

    The token itself carries its end too, so an unreadable expiration is ignored.
    """
    if isinstance(expiration, int) and not isinstance(expiration, bool):
        return expiration / 1000
    return None
