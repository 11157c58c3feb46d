"""Exactly once over a transport that is cut at any octet (2.6.12, 2.6.13).

Twenty deliveries: none is lost, none is duplicated. ``CUTS=1`` cuts before every octet of the conversation; the usual run takes
every eighth of these cuts.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode

from .cuts import DELIVERIES, Conversation, Cut

STEP = int(os.environ.get("CUTS", "8"))


def whole() -> Conversation:
    """Run the conversation without a cut."""
    conversation = Conversation()
    conversation.run()
    assert conversation.done
    assert conversation.ledger == conversation.messages
    return conversation


TOTALS = whole().octets
"""The octets in each direction; the key is whether they go to the receiver."""


def finish(conversation: Conversation) -> None:
    """Finish the conversation on another transport, which is not cut."""
    conversation.run()
    assert conversation.done, "the two ends wait for each other"
    assert conversation.accepted == len(conversation.sent) == DELIVERIES


@pytest.mark.parametrize("reset", [False, True], ids=["eof", "reset"])
@pytest.mark.parametrize("to_receiver", [True, False], ids=["to-receiver", "to-sender"])
def test_exactly_once_survives_a_cut_before_any_octet(to_receiver: bool, reset: bool) -> None:
    for offset in range(0, TOTALS[to_receiver] + 1, STEP):
        conversation = Conversation()
        conversation.run(Cut(to_receiver, offset, reset))
        finish(conversation)
        assert conversation.ledger == conversation.messages, f"cut before octet {offset}"


cuts: st.SearchStrategy[Cut] = st.one_of(
    *(
        st.builds(
            Cut, st.just(way), st.integers(0, TOTALS[way]), st.booleans()
        )  # at any octet of the whole conversation
        for way in (True, False)
    ),
    st.builds(Cut, st.booleans(), st.integers(0, 400), st.booleans()),  # while the links are resumed
)


@given(st.lists(cuts, min_size=2, max_size=5))
@settings(max_examples=300)
def test_exactly_once_survives_cuts_while_the_links_are_resumed(several: list[Cut]) -> None:
    conversation = Conversation()
    for cut in several:
        conversation.run(cut)
    finish(conversation)
    assert conversation.ledger == conversation.messages


@given(st.lists(cuts, min_size=1, max_size=3), st.booleans())
@settings(max_examples=200)
def test_at_least_once_loses_nothing(several: list[Cut], forgets: bool) -> None:
    conversation = Conversation(mode=ReceiverSettleMode.FIRST, resend=True)
    for cut in several:
        conversation.run(cut)
        if forgets:
            conversation.forget_receiver()
    finish(conversation)
    assert set(conversation.ledger) == set(conversation.messages)


@given(cuts)
@settings(max_examples=200)
def test_exactly_once_never_repeats_a_delivery_that_the_receiver_has_forgotten(cut: Cut) -> None:
    conversation = Conversation()
    conversation.run(cut)
    conversation.forget_receiver()
    conversation.run()
    counts = Counter(conversation.ledger)
    assert max(counts.values(), default=0) <= 1
    doubtful = [sent.payload for sent in conversation.sending.in_doubt]
    missing = [message for message in conversation.messages if message not in counts]
    assert set(missing) <= set(doubtful), "lost, and not reported as in doubt"
    assert len(conversation.sent) == DELIVERIES
