"""C: one connection for each container ("AMQP Enforcing Connection Uniqueness")."""

from __future__ import annotations

from tests.conformance.requirement import RULE, Change, need

REQUIREMENTS = [
    need(
        "C-1-1",
        RULE,
        "a client that wants to be the only connection of its container desires sole-connection-for-container, and a "
        "server that enforces that offers it",
        "newcomer_is_refused_when_one_of_them_says_so_and_the_newcomer_nothing_else",
        "detection_is_told_to_who_asks",
        "client_closes_when_the_peer_does_not_offer_to_see_to_it",
        mutants=(
            Change("sole = () if self.sole_connection is None else (SOLE,)", "sole: tuple[str, ...] = ()"),
            Change(
                "return (ANONYMOUS_RELAY, _PAIRS, CAPABILITY, *capabilities())",
                "return (ANONYMOUS_RELAY, _PAIRS, *capabilities())",
            ),
        ),
    ),
    need(
        "C-2-1",
        RULE,
        "the property sole-connection-enforcement-policy of an open is a uint: 0, the default, to refuse the newcomer, "
        "or 1 to close the existing connection",
        "refusal_is_told_in_the_open_before_the_close",
        "connection_that_there_was_is_closed_when_they_say_so",
        "policy_that_is_none_is_refused",
        mutants=(
            Change("properties.get(POLICY, REFUSE)", "properties.get(POLICY, CLOSE_EXISTING)"),
            Change('"close-existing": CLOSE_EXISTING}', '"close-existing": REFUSE}'),
            Change("_POLICIES.get(asked) if", '_POLICIES.get(asked, "refuse") if'),
        ),
    ),
    need(
        "C-3-1",
        RULE,
        "the property sole-connection-detection-policy of the answer is a uint: 0, the default, for strong detection, or "
        "1 for weak",
        "detection_is_told_to_who_asks",
        "connection_of_another_container_is_not_in_the_way",
        mutant=Change("UInt(STRONG)", "UInt(1)"),
        gap="our container detects strongly always; a client shows its program which of the two the peer does",
    ),
    need(
        "C-4-1",
        RULE,
        "a newcomer is refused by an open with amqp:connection-establishment-failed true, and a close with "
        "invalid-field, whose info has invalid-field = container-id",
        "refusal_is_told_in_the_open_before_the_close",
        "newcomer_is_refused_when_one_of_them_says_so_and_the_newcomer_nothing_else",
        mutants=(
            Change('"amqp:connection-establishment-failed"', '"amqp:connection-establishment"'),
            Change('info={Symbol("invalid-field"): Symbol("container-id")}', "info=None"),
        ),
    ),
    need(
        "C-5-1",
        RULE,
        "an existing connection is closed with resource-locked, whose info has sole-connection-enforcement true",
        "connection_that_there_was_is_closed_when_they_say_so",
        mutant=Change("Symbol(ENFORCED): True", "Symbol(ENFORCED): False"),
    ),
    need(
        "C-6-1",
        RULE,
        "if the policies of two connections differ, that of the newcomer holds",
        "newcomer_is_refused_when_one_of_them_says_so_and_the_newcomer_nothing_else",
        "connection_that_there_was_is_closed_when_they_say_so",
        mutant=Change("there if policy is None else policy", "policy if there is None else there"),
    ),
]
