"""Twenty deliveries over a transport that is cut anywhere: none lost, none twice (2.6.12, 2.6.13).

``CUTS=1`` puts one before every octet of the conversation; the ordinary run takes every eighth of them.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trio_amqp10.spec.transport import ReceiverSettleMode

from .cuts import DELIVERIES, Conversation, Cut

STEP = int(os.environ.get("CUTS", "8"))


def whole() -> Conversation:
    """The conversation that nothing disturbs."""
    conversation = Conversation()
    conversation.run()
    assert conversation.done
    assert conversation.ledger == conversation.messages
    return conversation


TOTALS = whole().octets
"""Octets in each direction; True: to the receiver."""


def finish(conversation: Conversation) -> None:
    """On another transport, that stays."""
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
        st.builds(Cut, st.just(way), st.integers(0, TOTALS[way]), st.booleans())  # of the whole conversation
        for way in (True, False)
    ),
    st.builds(Cut, st.booleans(), st.integers(0, 400), st.booleans()),  # while it is taken up
)


@given(st.lists(cuts, min_size=2, max_size=5))
@settings(max_examples=300)
def test_exactly_once_survives_cuts_while_it_is_taken_up(several: list[Cut]) -> None:
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
def test_exactly_once_never_repeats_what_a_receiver_forgot(cut: Cut) -> None:
    conversation = Conversation()
    conversation.run(cut)
    conversation.forget_receiver()
    conversation.run()
    counts = Counter(conversation.ledger)
    assert max(counts.values(), default=0) <= 1
    doubtful = [sent.payload for sent in conversation.sending.in_doubt]
    missing = [message for message in conversation.messages if message not in counts]
    assert set(missing) <= set(doubtful), "lost, and nobody was told"
    assert len(conversation.sent) == DELIVERIES
