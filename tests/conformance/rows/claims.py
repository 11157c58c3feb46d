"""F: tokens for a node of the container ("AMQP Claims-based Security", working draft 11).

The product has the operation put-token of the drafts before, as Azure Service Bus and Event Hubs have it.
"""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, RECOMMENDED, RULE, SHOULD, Change, need

_PUT_TOKEN = (
    "not offered: a token is put by a request, and its reply has a status, as in the drafts before this one"
)
_AMQPCBS = "not offered: no SASL mechanism AMQPCBS"

_ADDRESS = Change('ADDRESS: Final = "$cbs"', 'ADDRESS: Final = "$tokens"')

REQUIREMENTS = [
    need(
        "F-1-1",
        SHOULD,
        "the node for tokens has the address ``$cbs``",
        "nothing_is_permitted_without_a_token_and_all_that_it_says_with_one",
        mutant=_ADDRESS,
    ),
    need(
        "F-1-2",
        MAY,
        "the property cbs-node of an open names another address for it",
        gap="not offered: the address is always ``$cbs``",
    ),
    need(
        "F-2-1",
        SHOULD,
        "a link is detached when the token that permits it ends and no other took its place",
        "links_are_detached_when_the_claim_ends",
        mutant=Change(
            'the claim for %r has ended", self._peer.container_id, claim.audience)\n            self.review()',
            'the claim for %r has ended", self._peer.container_id, claim.audience)',
        ),
    ),
    need(
        "F-2-2",
        RULE,
        "a token lives no longer than its connection",
        "token_is_good_for_its_connection_only",
    ),
    need(
        "F-3-1",
        SHOULD,
        "a client knows when its tokens end, and puts others before that",
        "keep_token_puts_another_when_nine_tenths_are_over_until_it_is_left",
        mutant=Change("_USED: Final = 0.9", "_USED: Final = 1.1"),
    ),
    need(
        "F-3-2",
        MUST,
        "a client puts its tokens again on a new connection",
        "token_is_put_again_before_the_links_that_need_it",
        mutant=Change(
            "        self._restoring.__enter__()\n        self._nursery.start_soon(self._renew)",
            "        self._nursery.start_soon(self._renew)",
        ),
    ),
    need(
        "F-4.1-1",
        MUST,
        "AMQP_CBS_V1_0 is offered by the container and desired by the client",
        gap="not offered: it would promise the operations of this draft",
    ),
    need(
        "F-4.1-2",
        MUST,
        "the node is at ``$cbs``, if no property of the open names it",
        "nothing_is_permitted_without_a_token_and_all_that_it_says_with_one",
        mutant=_ADDRESS,
    ),
    need(
        "F-4.2-1",
        SHOULD,
        "a connection that is anonymous is closed after some time without a token",
        gap="not offered: such a connection may use nothing but ``$cbs``, and stays",
    ),
    need("F-4.2-2", SHOULD, "the link for tokens has the snd-settle-mode unsettled", gap=_PUT_TOKEN),
    need("F-4.2-3", MUST, "the link for tokens has the rcv-settle-mode first", gap=_PUT_TOKEN),
    need("F-4.2-4", MUST, "the outcomes of its source are accepted and rejected", gap=_PUT_TOKEN),
    need("F-4.2-5", MUST, "its target has the durability none", gap=_PUT_TOKEN),
    need(
        "F-4.3-1",
        MUST,
        "a token is a message with the subject set-token and one value as its body",
        gap=_PUT_TOKEN,
    ),
    need(
        "F-4.3-2", SHOULD, "the application property token-type names the type of the token", gap=_PUT_TOKEN
    ),
    need(
        "F-4.4-1", MUST, "a message whose token is taken is accepted, and any other rejected", gap=_PUT_TOKEN
    ),
    need(
        "F-5-1",
        MUST,
        "tokens go through TLS or another protected transport",
        gap="nothing to show: the program chooses the transport",
    ),
    need(
        "F-5.1-1",
        MUST,
        "over a WebSocket the roles of SASL are those over TCP: the peer that dials is the client",
        "sasl_and_its_roles_are_inside_a_websocket_as_over_tcp",
        mutant=Change(
            "        if mechanisms:\n            sasl = self._options.wire.sasl_client(",
            "        if False:\n            sasl = self._options.wire.sasl_client(",
        ),
    ),
    need(
        "F-5.2-1",
        RECOMMENDED,
        "an anonymous connection ends with the first token that was put on it",
        gap="not offered: it lasts until a peer closes it, and its links as long as their tokens",
    ),
    need("F-5.3-1", MUST, "the SASL mechanism AMQPCBS has frames of up to 8192 octets", gap=_AMQPCBS),
    need(
        "F-5.3-2",
        MUST,
        "its sasl-init has a token at least, and more follow by challenge and response",
        gap=_AMQPCBS,
    ),
    need("F-5.3-3", MUST, "its sasl-outcome shows whether all tokens were accepted", gap=_AMQPCBS),
]
