"""2.6.7 to 2.6.10: flow control of a link."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RULE, SHOULD, Change, need

REQUIREMENTS = [
    need(
        "2.6.7-1",
        RULE,
        "delivery-count goes up by one with each delivery",
        "send_writes_a_transfer_and_counts",
        "attach_of_a_sender_says_where_its_count_begins",
        "begin_sends_the_first_transfer_and_takes_credit",
        "deliveries_go_on_where_the_count_wraps",
        "delivery_count_and_delivery_id_wrap_and_credit_stays_right",
        "flow_of_a_receiver_says_the_last_count_that_it_knows",
        "drained_gives_the_credit_up_and_says_so",
        "payload_of_a_delivery_that_begins_with_its_abort_is_ignored",
        mutants=(
            Change(
                "        self.credit -= 1\n        self.delivery_count = ((self.delivery_count or 0) + 1) & MASK\n        if not settled:\n",
                "        self.credit -= 1\n        self.delivery_count = ((self.delivery_count or 0) + 2) & MASK\n        if not settled:\n",
            ),
            Change(
                "        self.credit -= 1\n        self.delivery_count = ((self.delivery_count or 0) + 1) & MASK\n        if not settled:\n",
                "        self.credit -= 1\n        if not settled:\n",
            ),
            Change(
                "        self.credit -= 1\n        self.delivery_count = ((self.delivery_count or 0) + 1) & MASK\n        if not settled:\n",
                "        self.credit -= 1\n        self.delivery_count = ((self.delivery_count or 0) + 1)\n        if not settled:\n",
            ),
            Change(
                "        self.credit -= 1\n        self.delivery_count = ((self.delivery_count or 0) + 1) & MASK\n\n    def keep",
                "        self.credit -= 1\n        self.delivery_count = ((self.delivery_count or 0) + 2) & MASK\n\n    def keep",
            ),
            Change(
                "        self.credit -= 1\n        self.delivery_count = ((self.delivery_count or 0) + 1) & MASK\n\n    def keep",
                "        self.credit -= 1\n\n    def keep",
            ),
            Change(
                "            link.credit -= 1\n            link.delivery_count = ((link.delivery_count or 0) + 1) & MASK\n",
                "            link.credit -= 1\n            link.delivery_count = ((link.delivery_count or 0) + 2) & MASK\n",
            ),
            Change(
                "            link.credit -= 1\n            link.delivery_count = ((link.delivery_count or 0) + 1) & MASK\n",
                "            link.credit -= 1\n",
            ),
            Change(
                "        self.delivery_count: int | None = 0\n",
                "        self.delivery_count: int | None = 1\n",
            ),
            Change(
                "        self.delivery_count: int | None = ((self.delivery_count or 0) + 1) & MASK\n        return True\n",
                "        self.delivery_count: int | None = ((self.delivery_count or 0) + 2) & MASK\n        return True\n",
            ),
            Change(
                "        self.delivery_count: int | None = ((self.delivery_count or 0) + 1) & MASK\n        return True\n",
                "        return True\n",
            ),
            Change(
                '            "initial_delivery_count": self.delivery_count,\n',
                '            "initial_delivery_count": 0,\n',
            ),
            Change(
                "        self.count_from(attach.initial_delivery_count or 0)\n",
                "        self.count_from(0)\n",
            ),
        ),
    ),
    need(
        "2.6.7-2",
        MAY,
        "only the sender changes the delivery-count by itself",
        "count_of_a_sender_is_changed_by_no_flow_of_the_receiver",
        "drained_gives_the_credit_up_and_says_so",
    ),
    need(
        "2.6.7-3",
        RULE,
        "the delivery-count of the receiver is the last value that it received, plus one for each delivery since",
        "flow_of_a_receiver_says_the_last_count_that_it_knows",
        "drain_ends_when_the_sender_gives_the_credit_up",
    ),
    need(
        "2.6.7-4",
        RULE,
        "only the receiver chooses link-credit",
        "row_52_flow_of_the_links_sender_counts_for_count_and_available_only",
    ),
    need(
        "2.6.7-5",
        MUST,
        "the sender keeps to the limit that count and credit of the receiver set",
        "send_does_nothing_when_it_cannot",
        "row_64_queue_is_bounded_by_credit_when_nobody_takes_from_it",
        "credit_is_the_formula_of_the_standard",
        "credit_that_crossed_what_was_sent_is_less_by_that",
        "credit_counts_from_our_attach_where_the_receiver_names_no_count",
        "send_writes_a_transfer_and_counts",
        "row_62_granted_credit_is_never_ignored_and_what_is_unsettled_can_be_counted",
        "delivery_count_and_delivery_id_wrap_and_credit_stays_right",
        mutants=(
            Change("self.credit > 0\n            and self.partial is None", "self.partial is None"),
            Change(
                "        base = self._first_count if flow.delivery_count is None else flow.delivery_count\n",
                "        base = self.delivery_count or 0\n",
            ),
            Change(
                "        base = self._first_count if flow.delivery_count is None else flow.delivery_count\n",
                "        base = self._first_count\n",
            ),
            Change(
                "            limit = add(base, min(flow.link_credit, FAR))\n",
                "            limit = add(base, min(flow.link_credit, FAR) + 1)\n",
            ),
            Change(
                "            limit = add(base, min(flow.link_credit, FAR))\n",
                "            limit = min(flow.link_credit, FAR)\n",
            ),
            Change(
                "            self.credit: int = max(0, distance(limit, self.delivery_count or 0))\n",
                "            self.credit: int = max(self.credit, distance(limit, self.delivery_count or 0))\n",
            ),
            Change(
                "            self.credit: int = max(0, distance(limit, self.delivery_count or 0))\n",
                "            self.credit: int = distance(limit, base)\n",
            ),
            Change(
                "            self.credit > 0\n            and self.partial",
                "            self.credit >= 0\n            and self.partial",
            ),
        ),
    ),
    need(
        "2.6.7-6",
        MUST,
        "the sender sets its credit by the formula: the receiver's count and credit, less its own count",
        "credit_is_the_formula_of_the_standard",
        "credit_that_crossed_what_was_sent_is_less_by_that",
        mutants=(
            Change(
                "self.credit: int = max(0, distance(limit, self.delivery_count or 0))",
                "self.credit: int = flow.link_credit",
            ),
            Change(
                "            self.credit: int = max(0, distance(limit, self.delivery_count or 0))\n",
                "            self.credit: int = max(0, distance(limit, self._first_count))\n",
            ),
            Change(
                "            self.credit: int = max(0, distance(limit, self.delivery_count or 0))\n",
                "            self.credit: int = distance(limit, self.delivery_count or 0)\n",
            ),
        ),
    ),
    need(
        "2.6.7-7",
        MUST,
        "where the receiver names no count, it counts from the attach",
        "credit_counts_from_our_attach_where_the_receiver_names_no_count",
        "credit_is_the_formula_of_the_standard",
        mutant=Change(
            "base = self._first_count if flow.delivery_count is None else flow.delivery_count",
            "base = flow.delivery_count or 0",
        ),
    ),
    need(
        "2.6.7-8",
        MUST,
        "its credit goes down as its count goes up",
        "send_writes_a_transfer_and_counts",
        "begin_sends_the_first_transfer_and_takes_credit",
        mutants=(
            Change(
                "        session.next_delivery_id = (delivery_id + 1) & MASK\n        self.credit -= 1\n",
                "        session.next_delivery_id = (delivery_id + 1) & MASK\n",
            ),
            Change(
                "self.session.next_delivery_id = (delivery_id + 1) & MASK\n        self.credit -= 1\n",
                "self.session.next_delivery_id = (delivery_id + 1) & MASK\n",
            ),
        ),
    ),
    need(
        "2.6.7-9",
        RULE,
        "only the sender chooses available",
        "row_52_flow_of_the_links_receiver_counts_without_its_available",
    ),
    need(
        "2.6.7-10",
        MAY,
        "it may send though available is 0",
        "sender_sends_though_it_has_said_that_nothing_is_available",
    ),
    need(
        "2.6.7-11",
        MUST,
        "what the receiver believes to be available does not fall below 0",
        "available_of_a_receiver_is_what_was_said_last_however_many_come",
        mutant=Change(
            "            link.credit -= 1\n",
            "            link.credit -= 1\n            link.available -= 1\n",
        ),
    ),
    need(
        "2.6.7-12",
        SHOULD,
        "a sender that is drained and has too few messages uses its credit up",
        "drained_gives_the_credit_up_and_says_so",
        "drain_gives_credit_back_when_nobody_sends",
        "queue_answers_a_drain_when_it_is_empty_and_gives_what_it_has_first",
        mutant=Change(
            "        if self.drain:\n            self.count_from",
            "        if False:\n            self.count_from",
        ),
    ),
    need(
        "2.6.7-13",
        RULE,
        "drain of the sender is the last value of the receiver",
        "flow_of_a_sender_says_its_count_and_the_receivers_last_credit_and_drain",
    ),
    need(
        "2.6.7-14",
        MUST_NOT,
        "a sender begins a delivery without credit",
        "send_does_nothing_when_it_cannot",
        "sender_waits_for_credit",
        mutant=Change("self.credit > 0\n            and self.partial is None", "self.partial is None"),
    ),
    need(
        "2.6.7-15",
        MAY,
        "messages in flight when credit was lowered: the receiver may take them, or detach with transfer-limit-exceeded",
        "row_46_excess_is_accepted_when_we_lowered_credit_with_transfers_in_flight",
        "row_46_excess_is_accepted_when_credit_was_lowered_in_steps",
        "[link-credit]",
        gap="they are accepted; a delivery that no credit has covered detaches the link",
    ),
    need(
        "2.6.7-16",
        MUST,
        "drain and nothing to send: the sender's count goes up to the limit, and a flow reports it",
        "drained_gives_the_credit_up_and_says_so",
        "drain_brings_both_ends_to_the_same_count_when_nothing_is_to_be_sent",
        mutants=(
            Change("self.count_from(add(self.delivery_count or 0, self.credit))", "pass"),
            Change(
                "self.credit = 0\n            self.session.owe_flow(self)",
                "self.credit = 0",
            ),
        ),
    ),
    need(
        "2.6.7-17",
        RULE,
        "delivery-count is a serial number, and wraps",
        "delivery_count_and_delivery_id_wrap_and_credit_stays_right",
        "lawful_sender_is_never_short_of_credit_when_flows_come_late",
    ),
    need(
        "2.6.7-18",
        RULE,
        "link-credit, available and drain begin as 0, 0 and false",
        "link_begins_without_credit_and_with_nothing_available_or_drained",
    ),
    need(
        "2.6.7-19",
        MAY,
        "delivery-count may begin anywhere; the sender's attach has the first value",
        "attach_of_a_sender_says_where_its_count_begins",
    ),
    need(
        "2.6.7-20",
        RULE,
        "the receiver begins with the count of the sender's attach",
        "row_58_initial_delivery_count_reads_as_zero_when_it_is_null",
        "flow_of_a_receiver_says_the_last_count_that_it_knows",
    ),
    need(
        "2.6.8-1",
        RULE,
        "a receiver gets messages with a time-out by credit, a wait and a drain, and the answer leaves no doubt",
        "drain_returns_what_still_came",
        "drain_ends_when_all_the_credit_is_used",
        "queue_answers_a_drain_when_it_is_empty_and_gives_what_it_has_first",
    ),
    need(
        "2.6.9-1",
        MAY,
        "credit may be given again when it falls below a threshold",
        "credit_is_topped_up_at_half",
        "credit_keeps_so_many_outstanding_and_never_more",
    ),
    need(
        "2.6.10-1",
        RULE,
        "a credit of 0 stops the link; what is in flight still comes",
        "row_46_excess_is_accepted_when_we_lowered_credit_with_transfers_in_flight",
        "leaving_takes_credit_to_zero_and_releases_what_nobody_took",
    ),
    need(
        "2.6.10-2",
        MAY,
        "by echo the receiver may learn when the link has come to rest",
        "receiver_may_ask_when_its_link_has_come_to_rest",
        gap="the engine offers it; a receiver drains instead",
    ),
]
