"""2.7.6: the fields of disposition."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, RULE, Change, need

REQUIREMENTS = [
    need(
        "2.7.6-1",
        MAY,
        "a disposition may name deliveries of many links",
        "disposition_may_name_deliveries_of_many_links",
        "outcomes_of_deliveries_of_many_links_are_one_disposition",
    ),
    need(
        "2.7.6-2",
        MUST,
        "all of the direction that its role gives",
        "disposition_is_for_the_direction_that_its_role_says",
        "row_53_dispositions_of_the_wrong_end_touch_nothing",
        mutant=Change(
            "session.settlement.on_range(*fields)",
            "session.settlement.on_range(not fields[0], *fields[1:])",
        ),
    ),
    need(
        "2.7.6-3",
        RULE,
        "of a delivery that is partly sent, the sender had better speak in its next transfer",
        "settlement_of_a_delivery_in_progress_is_in_its_next_transfer",
    ),
    need(
        "2.7.6-4",
        MAY,
        "a disposition may name deliveries of links that are not attached any more",
        "outcome_counts_after_the_detach",
        "settlement_of_the_sender_counts_after_the_detach",
    ),
    need(
        "2.7.6-5",
        MUST,
        "its state counts for them, unless the link was closed or detached with an error",
        "outcome_counts_after_the_detach",
        "settlement_of_the_sender_counts_after_the_detach",
        "outcome_counts_when_it_comes_after_a_detach",
        "outcome_does_not_count_after_a_close_or_an_error",
        mutants=(
            Change(
                "if link.closed or link.error is not None:\n                self.settlement",
                "if True:\n                self.settlement",
            ),
            Change(
                "if link.closed or link.error is not None:\n                self.settlement",
                "if False:\n                self.settlement",
            ),
            Change(
                "        elif error is not None:\n            # The link",
                "        elif error is None:\n            if self.terminus is not None:\n"
                "                self.session.settlement.forget(self)\n        else:\n            # The link",
            ),
        ),
    ),
    need(
        "2.7.6-6",
        RULE,
        "last that is left out is first; it does not come before first, and ids that are not known are no fault",
        "row_53_range_of_one_may_leave_out_its_last",
        "row_53_ids_that_nobody_knows_are_ignored",
        "[disposition-range]",
    ),
    need(
        "2.7.6-7",
        RULE,
        "settled: the end that sends it holds the deliveries no more",
        "ranges_settle_what_a_model_of_single_ids_says",
        "receiver_keeps_what_the_sender_settled_first_and_tells_nobody_of_its_outcome",
    ),
    need(
        "2.7.6-8",
        MAY,
        "batchable: an answer may wait for others",
        "outcome_counts_whatever_batchable_says",
    ),
]
