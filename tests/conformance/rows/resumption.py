"""3.4.6: deliveries that are resumed, by what either end last knew of them."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RULE, SHOULD, SHOULD_NOT, Change, need

_AS_NEW = Change("steps.append((sent, _NOT_THERE))", "pass")
_NEVER_RESUMED = Change("resume = theirs is not _NOT_THERE", "resume = True")
_NOTHING_DROPPED = Change("return delivery, have[:offset]", "return delivery, have")

REQUIREMENTS = [
    need(
        "3.4.6-1",
        MUST,
        "what the receiver does not hold is sent again whole, for at least once or exactly once",
        "resending_sends_as_new_what_the_receiver_does_not_have",
        mutant=_AS_NEW,
    ),
    need(
        "3.4.6-2",
        MUST_NOT,
        "the transfers of such a delivery have the resume flag",
        "resending_sends_as_new_what_the_receiver_does_not_have",
        mutant=_NEVER_RESUMED,
    ),
    need(
        "3.4.6-3",
        MUST,
        "a receiver that holds a part drops what comes before the first octet that it lacks",
        "resumed_delivery_goes_on_where_the_sender_says",
        mutant=_NOTHING_DROPPED,
    ),
    need(
        "3.4.6-4",
        RULE,
        "and the sender begins at that octet or before it",
        "resending_resumes_from_where_the_receiver_wants_it",
        mutant=Change("sent.payload[offset:],", "sent.payload[offset + 1 :],"),
    ),
    need(
        "3.4.6-5",
        MUST,
        "a delivery that the receiver has an outcome for is named by a transfer that resumes it",
        "resending_takes_the_outcome_when_the_receiver_has_one",
        mutant=Change("resume=True,\n                    aborted=abort,", "aborted=abort,"),
    ),
    need(
        "3.4.6-6",
        SHOULD,
        "that transfer has the outcome that the source applied",
        "resending_takes_the_outcome_when_the_receiver_has_one",
        "resending_takes_the_default_outcome_when_the_source_does_not_permit_the_receivers",
        mutant=Change("state=None if abort else delivery.state,", "state=None,"),
    ),
    need(
        "3.4.6-7",
        MAY,
        "it may be settled where both have the same outcome",
        "resending_settles_by_the_transfer_when_the_link_leaves_the_choice",
        gap="where the link is in mode mixed: in mode unsettled a disposition settles it (2.7.5)",
    ),
    need(
        "3.4.6-8",
        MUST,
        "of a delivery that the receiver has no state for, the whole message is sent",
        "resending_resumes_from_where_the_receiver_wants_it",
        mutant=Change(
            "offset = 0\n        if isinstance(theirs, Received):",
            "offset = 1\n        if isinstance(theirs, Received):",
        ),
    ),
    need(
        "3.4.6-9",
        MUST,
        "by transfers with the resume flag and the same delivery-tag",
        "resending_resumes_from_where_the_receiver_wants_it",
        mutant=Change("resume = theirs is not _NOT_THERE", "resume = theirs not in (_NOT_THERE, None)"),
    ),
    need(
        "3.4.6-10",
        SHOULD_NOT,
        "a receiver keeps a delivery in its map without a state",
        "attach_says_how_far_each_delivery_has_come",
        mutant=Change(
            "return progress(self.partials.get(tag, delivery.payload), delivery.message_format)",
            "return None",
        ),
    ),
    need(
        "3.4.6-11",
        MAY,
        "a sender that can resume from some octet on only may still be able to send the message as new",
        "resending_sends_as_new_what_the_receiver_does_not_have",
        "resending_resumes_from_where_the_receiver_wants_it",
        gap="it keeps each message whole until it is settled",
    ),
    need(
        "3.4.6-12",
        MUST,
        "such a message that the receiver does not hold is sent again, without the resume flag",
        "resending_sends_as_new_what_the_receiver_does_not_have",
        mutants=(_AS_NEW, _NEVER_RESUMED),
    ),
    need(
        "3.4.6-13",
        MAY,
        "if it cannot be sent again, the application may be notified that it may be lost",
        "resending_leaves_in_doubt_what_has_no_outcome_when_the_receiver_forgot_the_link",
        "outcome_is_in_doubt_when_the_peer_forgot_the_link",
    ),
    need(
        "3.4.6-14",
        MUST,
        "if the sender's map has the position from which it can go on, the receiver drops what it has already too",
        "resumed_delivery_goes_on_where_the_sender_says",
        mutant=_NOTHING_DROPPED,
    ),
    need(
        "3.4.6-15",
        RULE,
        "a delivery that cannot go on is aborted by a transfer that resumes it, and then sent as new or reported as lost",
        "delivery_that_the_sender_aborts_is_handed_out_when_it_is_sent_as_new",
        gap="shown for a receiver: our sender keeps each message whole, and so can always go on",
    ),
    need(
        "3.4.6-16",
        MUST_NOT,
        "a terminal outcome of the sender changes",
        "resending_settles_with_its_own_outcome_when_both_hold_one",
        mutant=Change(
            "if there is not None and final(sent.delivery.state) is None:",
            "if there is not None:",
        ),
    ),
    need(
        "3.4.6-17",
        MUST_NOT,
        "an outcome is in the sender's map while the receiver may still need the message",
        "attach_says_which_deliveries_have_an_outcome_when_the_link_is_taken_up",
        mutant=Change(
            "return {tag: final(sent.delivery.state) for tag, sent in self.unsettled.items()}",
            "return {tag: sent.delivery.state for tag, sent in self.unsettled.items()}",
        ),
    ),
    need(
        "3.4.6-18",
        RULE,
        "what the sender has an outcome for and the receiver does not hold need not be sent again",
        "resending_settles_without_a_word_when_only_the_sender_holds_an_outcome",
        mutant=Change(
            "elif final(sent.delivery.state) is not None:\n            # The receiver has settled it, and its outcome is known here: settle (2.6.12).\n            _settle(link, terminus, sent)",
            "elif False:\n            pass",
        ),
    ),
    need(
        "3.4.6-19",
        MUST,
        "where the receiver has a part, the sender is taken to have come to its outcome by itself, and aborts",
        "resending_aborts_what_the_receiver_has_when_the_sender_holds_the_outcome",
        "resumed_delivery_is_taken_back_when_the_sender_has_no_more_use_for_it",
        mutants=(
            Change("abort = there is None", "abort = False"),
            Change("if rare.aborted or final(rare.state) is not None:", "if final(rare.state) is not None:"),
        ),
    ),
    need(
        "3.4.6-20",
        SHOULD,
        "what both have the same outcome for is just settled",
        "resending_settles_with_its_own_outcome_when_both_hold_one",
        "resending_settles_by_the_transfer_when_the_link_leaves_the_choice",
        mutants=(
            Change(
                "            link.session.settlement.settle_outgoing(delivery)\n        _settle",
                "            pass\n        _settle",
            ),
            Change(
                "settled = abort or link.snd_settle_mode != SenderSettleMode.UNSETTLED", "settled = False"
            ),
        ),
    ),
    need(
        "3.4.6-21",
        MUST,
        "if the outcomes differ, the sender sends its own again",
        "resending_settles_with_its_own_outcome_when_both_hold_one",
        mutant=Change("state=None if abort else delivery.state,", "state=there,"),
    ),
    need(
        "3.4.6-22",
        SHOULD,
        "and the receiver echoes it and settles; in mode second when the sender has",
        "outcome_of_the_sender_counts_when_the_receiver_has_another",
        "resumed_delivery_is_settled_when_the_sender_holds_an_outcome_and_waits_for_us",
        mutant=Change("if not rare.aborted and not rare.settled:", "if False:"),
    ),
    need(
        "3.4.6-23",
        RULE,
        "a receiver without a state for a delivery is as one with nothing of it: the sender with an outcome aborts",
        "resending_aborts_what_the_receiver_has_when_the_sender_holds_the_outcome",
        mutant=Change("abort = there is None", "abort = isinstance(theirs, Received)"),
    ),
]
