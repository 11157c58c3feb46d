"""B: requests and replies on two links of one name ("AMQP Request-Response Messaging with Link Pairing")."""

from __future__ import annotations

from tests.conformance.requirement import RULE, Change, need

REQUIREMENTS = [
    need(
        "B-2-1",
        RULE,
        "two links of one name in one session, one each way, with the property ``paired`` true, are a pair",
        "pair_of_links_is_told_that_it_is_one",
        "function_replies_on_the_link_of_the_same_name_where_the_request_asks_for_its_pair",
        mutants=(
            Change("return {_PAIRED: True} if", "return None if"),
            Change("outlet.pair == inlet.pair", "True"),
        ),
        gap="the links may belong to two sessions of a connection, and need not have ``paired``",
    ),
    need(
        "B-2-2",
        RULE,
        "the source address of each link of a pair is the target address of the other",
        gap="not offered: the container finds a pair by its name and does not compare addresses, and our client opens "
        "no pairs by itself",
    ),
    need(
        "B-2.1-1",
        RULE,
        "the reply to a request with the reply-to ``$me`` goes to the other link of the pair",
        "function_replies_on_the_link_of_the_same_name_where_the_request_asks_for_its_pair",
        "answer_for_a_link_without_a_pair_is_dropped",
        mutants=(
            Change('PAIRED: Final = "$me"', 'PAIRED: Final = "$pair"'),
            Change('self._drop(f"no link is paired with {inlet!r}")', "pass"),
        ),
    ),
    need(
        "B-3-1",
        RULE,
        "a peer that pairs links offers LINK_PAIR_V1_0 in its open",
        "pair_of_links_is_told_that_it_is_one",
        mutant=Change('_PAIRS: Final = "LINK_PAIR_V1_0"', '_PAIRS: Final = "LINK_PAIR"'),
    ),
]
