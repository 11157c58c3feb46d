"""A: messages that are routed by their `to` ("Using the Anonymous Terminus for Message Routing")."""

from __future__ import annotations

from tests.conformance.requirement import MUST, MUST_NOT, RULE, Change, need

REQUIREMENTS = [
    need(
        "A-2.2-1",
        RULE,
        "a message on a link with the null target goes to the node that its ``to`` names, as on a link to that node",
        "anonymous_terminus_routes_each_message_by_its_to",
        mutant=Change("node = self._route(address)", 'node = self._route("q")'),
    ),
    need(
        "A-2.2.1-1",
        RULE,
        "a peer that routes so offers ANONYMOUS-RELAY in its open",
        "anonymous_terminus_routes_each_message_by_its_to",
        mutant=Change(
            "return (ANONYMOUS_RELAY, _PAIRS, CAPABILITY, *capabilities())",
            "return (_PAIRS, CAPABILITY, *capabilities())",
        ),
    ),
    need(
        "A-2.2.1-2",
        MUST_NOT,
        "a sender uses the null target without having desired ANONYMOUS-RELAY in its open",
        "sender_without_an_address_is_refused_when_our_open_did_not_desire_the_relay",
        "sender_without_an_address_is_attached_when_the_peer_offers_the_relay",
        mutants=(
            Change("if ANONYMOUS_RELAY not in connection.engine.local.desired_capabilities:", "if False:"),
            Change("*sole, ANONYMOUS_RELAY)", "*sole)"),
        ),
    ),
    need(
        "A-2.2.2-1",
        MUST,
        "an address to which no link could be attached is reported to the sender of the message",
        "anonymous_terminus_rejects_what_has_nowhere_to_go",
        "anonymous_terminus_rejects_for_a_node_that_takes_nothing_and_goes_on_when_one_is_gone",
        mutant=Change(
            "                refuse(arrival, refusal.condition, refusal.description)\n            return\n"
            "        lines",
            "                arrival.accept()\n            return\n        lines",
        ),
    ),
    need(
        "A-2.2.2-2",
        MUST,
        "an unsettled message is rejected with the error, if the source of its link has the outcome rejected",
        "anonymous_terminus_rejects_what_has_nowhere_to_go",
        mutant=Change(
            "                refuse(arrival, refusal.condition, refusal.description)\n            return\n"
            "        lines",
            "                release(arrival)\n            return\n        lines",
        ),
    ),
    need(
        "A-2.2.2-3",
        MUST,
        "the link is detached with the error, if its source has no outcome rejected",
        "anonymous_terminus_detaches_with_the_tag_where_no_outcome_can_say_that_an_address_is_unknown",
        "relay_under_rules_detaches_with_the_tag_where_it_may_not_reject",
        mutant=Change("if permits(outcome):", "if True:"),
    ),
    need(
        "A-2.2.2-4",
        MUST,
        "the link is detached with the error, if the message was sent settled",
        "anonymous_terminus_refuses_the_link_where_a_settled_message_has_nowhere_to_go",
        "anonymous_terminus_detaches_with_the_tag_where_no_outcome_can_say_that_an_address_is_unknown",
        mutant=Change(
            'inlet.close(refusal.condition, refusal.description, {"delivery-tag": arrival.tag})', "pass"
        ),
    ),
    need(
        "A-2.2.2-5",
        MUST,
        "the info of such an error has the tag of the delivery under ``delivery-tag``",
        "anonymous_terminus_detaches_with_the_tag_where_no_outcome_can_say_that_an_address_is_unknown",
        "relay_under_rules_detaches_with_the_tag_where_it_may_not_reject",
        mutants=(
            Change('refusal.description, {"delivery-tag": arrival.tag})', "refusal.description)"),
            Change('error.description, {"delivery-tag": delivery.tag})', "error.description)"),
        ),
    ),
    need(
        "A-2.2.2-6",
        RULE,
        "a transaction with such a message cannot be committed",
        "relay_rejects_in_the_transaction_what_it_cannot_route",
        "transaction_fails_where_a_message_is_refused_and_its_source_has_no_rejected",
    ),
]
