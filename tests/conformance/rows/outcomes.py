"""3.3 and 3.4.1 to 3.4.5: the states of a message in a node, and those of a delivery."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RULE, SHOULD, SHOULD_NOT, Change, need

_COUNTS = "queue_gives_a_message_again_with_the_count_and_first_acquirer_that_its_end_leaves"
_DEFAULT = "queue_applies_the_default_outcome_to_what_is_unsettled_when_its_link_goes"
_MERGES = "queue_counts_a_failed_attempt_and_merges_annotations_when_modified"
_RELEASED = "queue_gives_a_released_message_again_in_its_old_place_and_uncounted"
_ACQUIRED = "message_is_available_until_a_link_acquires_it_and_then_for_no_other"
_LOST = "queue_counts_an_attempt_when_the_connection_is_lost"
_ONCE = "delivery_is_settled_once_with_its_outcome"
_PLACES = "resending_resumes_from_where_the_receiver_wants_it"
_FOLLOWS = "store_follows_what_becomes_of_a_message"

REQUIREMENTS = [
    need("3.3-1", RULE, "a message in a node is available at first", _ACQUIRED),
    need(
        "3.3-2",
        RULE,
        "it is acquired before it is transferred, and then goes out by no other link",
        _ACQUIRED,
        "queue_shows_no_message_that_another_has_taken_meanwhile",
    ),
    need(
        "3.3-3",
        RULE,
        "it stays acquired until the transfer is settled",
        "message_stays_acquired_until_its_transfer_is_settled",
    ),
    need(
        "3.3-4",
        RULE,
        "the receiver's state then decides about it; if that is not known, the source's default-outcome does",
        _COUNTS,
        _DEFAULT,
    ),
    need(
        "3.3-5",
        RULE,
        "a node may archive a message by itself, as when its ttl is over; no state of a receiver brings it back",
        "queue_drops_messages_after_their_ttl",
        "queue_drops_an_expired_message_when_it_comes_back",
        gap="a message that a receiver has when its ttl is over is acquired until that receiver has settled it",
    ),
    need(
        "3.3-6",
        RULE,
        "released and modified make it available again; accepted and rejected archive it",
        _COUNTS,
        "queue_drops_a_rejected_message",
    ),
    need(
        "3.4-1",
        RULE,
        "a terminal state is the last",
        "row_54_second_terminal_state_is_ignored",
        "outcome_that_cannot_be_written_raises_and_changes_nothing",
        "outcomes_are_told_once_for_each_delivery_in_whatever_order_they_are_given",
        _ONCE,
    ),
    need(
        "3.4.1-1",
        RULE,
        "received at a target: the first octet that need be sent again",
        "progress_counts_whole_sections_and_octets_of_the_next",
        "attach_says_how_far_each_delivery_has_come",
        _PLACES,
    ),
    need(
        "3.4.1-2",
        RULE,
        "received at a source: the first octet that it can still send",
        "attach_says_which_deliveries_have_an_outcome_when_the_link_is_taken_up",
        _PLACES,
        gap="a sender keeps whole messages: its map has no such place, and it can begin anywhere",
    ),
    need(
        "3.4.1-3",
        RULE,
        "received on the first transfer of a resumed delivery: where its payload begins",
        "resending_cuts_into_frames_and_names_its_place_once",
        _PLACES,
        "resumed_delivery_goes_on_where_the_sender_says",
        "resumed_delivery_is_released_when_the_sender_goes_on_behind_what_came",
    ),
    need(
        "3.4.1-4",
        MUST_NOT,
        "a sender sends received in any other transfer, or in a disposition",
        "resending_cuts_into_frames_and_names_its_place_once",
        "sender_settles_without_a_state_when_the_receiver_has_told_only_how_far_it_has_come",
        mutants=(
            Change(
                "        if isinstance(state, Received):\n            state = None  # only",
                "        # only",
            ),
            Change(
                "        if isinstance(state, Received):\n            state = None  # a sender",
                "        # a sender",
            ),
        ),
    ),
    need(
        "3.4.1-5",
        RULE,
        "the end of section X and the beginning of section X + 1 are the same place",
        "offset_of_knows_the_end_of_a_section_by_either_name",
        "offset_of_is_where_the_octets_ended_for_any_beginning_of_any_payload",
    ),
    need(
        "3.4.2-1",
        RULE,
        "accepted at a source: the message is retired, and its payload cannot be resumed",
        _COUNTS,
        "resending_aborts_what_the_receiver_has_when_the_sender_holds_the_outcome",
    ),
    need(
        "3.4.2-2",
        RULE,
        "the transfers that are left are sent anyway, unless the delivery is aborted",
        "message_in_parts_is_sent_to_its_end_when_its_outcome_comes_before",
        "accept_before_the_end_is_legal_and_reading_goes_on",
    ),
    need(
        "3.4.2-3",
        RULE,
        "accepted at a target: the message was processed, and the source is to come to accepted too",
        "queue_accepts_a_message_once_it_holds_it",
        _ONCE,
    ),
    need(
        "3.4.2-4",
        RULE,
        "accepted leaves delivery-count as it is",
        gap="nothing to show: an accepted message is gone from its node, and its count with it",
    ),
    need(
        "3.4.3-1",
        RULE,
        "rejected at a target: the message is invalid and cannot be processed",
        _ONCE,
        "row_67_consumer_that_raises_rejects_that_delivery_and_nothing_else",
        "rejected_message_goes_to_the_dead_letters_with_what_its_consumer_said",
    ),
    need(
        "3.4.3-2",
        RULE,
        "rejected raises delivery-count in the header of the rejected message",
        "dead_letter_of_a_rejected_message_has_its_delivery_count_raised",
        _DEFAULT,
    ),
    need(
        "3.4.3-3",
        SHOULD_NOT,
        "a source comes to rejected by itself",
        _LOST,
        _COUNTS,
        mutants=(
            Change(
                "        self._acquired(failed=True, due=self._queue.redelivery_time(self.failures + 1, None))\n        self._queue.put_back(self)\n",
                "        self.rejected(None, None)\n",
            ),
            Change(
                "        self._acquired(failed=True, due=self._queue.redelivery_time(self.failures + 1, None))\n",
                "        self._acquired(due=self._queue.redelivery_time(self.failures + 1, None))\n",
            ),
            Change(
                "    def released(self) -> None:\n        self._acquired()\n        self._queue.put_back(self)\n",
                "    def released(self) -> None:\n        self.rejected(None, None)\n",
            ),
        ),
        gap="but where the peer's own default-outcome is rejected, and its link goes",
    ),
    need(
        "3.4.4-1",
        RULE,
        "released at a source: the message is available again, to any receiver",
        _ACQUIRED,
        _RELEASED,
    ),
    need(
        "3.4.4-2",
        MUST_NOT,
        "released raises delivery-count",
        _RELEASED,
        _COUNTS,
        _DEFAULT,
        mutant=Change(
            "    def released(self) -> None:\n        self._acquired()",
            "    def released(self) -> None:\n        self._acquired(failed=True)",
        ),
    ),
    need(
        "3.4.4-3",
        MAY,
        "a source comes to released by itself, as when a lock has run out",
        gap="not offered: a message that is taken from a receiver without an outcome counts as a failed attempt",
    ),
    need(
        "3.4.5-1",
        RULE,
        "modified at a source: the message is available again, changed",
        _MERGES,
        _COUNTS,
    ),
    need(
        "3.4.5-2",
        MAY,
        "a source comes to modified by itself, as when a lock has run out",
        _LOST,
        "lock_that_ends_gives_the_message_to_who_waits",
    ),
    need(
        "3.4.5-3",
        SHOULD,
        "modified at a target: the message was not processed, and the node changes it accordingly",
        _MERGES,
        _FOLLOWS,
        mutant=Change(
            "self._acquired(failed=failed, annotations=annotations, due=due)", "self._acquired(due=due)"
        ),
    ),
    need(
        "3.4.5-4",
        MUST,
        "delivery-failed raises delivery-count",
        _MERGES,
        _COUNTS,
        _FOLLOWS,
        "message_dies_of_too_many_failed_attempts_and_of_no_number_of_releases",
        mutant=Change(
            "self._acquired(failed=failed, annotations=annotations, due=due)",
            "self._acquired(annotations=annotations, due=due)",
        ),
    ),
    need(
        "3.4.5-5",
        MUST_NOT,
        "a message that is undeliverable-here goes to that link again",
        "queue_keeps_a_message_from_the_link_that_finds_it_undeliverable_here",
        "consumer_with_a_filter_does_not_get_what_it_found_undeliverable",
        mutant=Change(
            "        if undeliverable_here:\n            self._queue.refuse",
            "        if False:\n            self._queue.refuse",
        ),
    ),
    need(
        "3.4.5-6",
        RULE,
        "message-annotations of modified replace those of the same keys, and are added otherwise",
        _MERGES,
        "filter_sees_what_the_last_outcome_changed",
    ),
]
