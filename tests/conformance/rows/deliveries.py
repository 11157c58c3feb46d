"""2.6.11 to 2.6.14: messages and deliveries, how they are settled, resumed, and cut into transfers."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RULE, SHOULD, Change, need

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = [
    need(
        "2.6.11-1",
        RULE,
        "a message may take several transfers; more says that others follow",
        "first_transfer_names_the_delivery_and_later_ones_leave_that_out",
        "deliveries_come_whole_however_they_are_cut_and_interleaved",
    ),
    need(
        "2.6.12-1",
        MUST,
        "a delivery has a tag",
        "first_transfer_names_the_delivery_and_later_ones_leave_that_out",
        "row_49_first_transfer_without_id_or_tag_detaches",
        "[delivery-tag]",
        mutants=(
            Change(
                "delivery_tag=delivery.tag,\n                message_format=message_format,",
                "message_format=message_format,",
            ),
            Change("if tag is None or len(tag) > MAX_TAG:", "tag = tag or b''\n    if False:"),
        ),
    ),
    need(
        "2.6.12-2",
        MUST,
        "the tag is unique among the deliveries of the link that either end may hold unsettled",
        "send_refuses_a_tag_that_is_unsettled_from_before",
        "send_refuses_a_tag_that_an_unsettled_delivery_has",
        "send_refuses_a_tag_that_it_has_made_itself",
        "send_makes_no_tag_that_was_chosen",
        "row_49_tag_of_an_unsettled_delivery_detaches",
        "[unique-tag]",
        mutants=(
            Change(
                "    if tag in kept or tag in chosen:\n        raise LocalProtocolError(",
                "    if False:\n        raise LocalProtocolError(",
            ),
            Change('while number.to_bytes(MADE_SIZE, "big") in self:', "while False:"),
            Change("if delivery.tag in link.tags:", "if False:"),
        ),
    ),
    need(
        "2.6.12-3",
        RULE,
        "a delivery is in the sender's unsettled map from its first transfer until it is settled",
        "terminus_holds_a_delivery_until_it_is_settled",
        "attach_says_which_deliveries_have_an_outcome_when_the_link_is_taken_up",
    ),
    need(
        "2.6.12-4",
        MAY,
        "a state may be terminal, so that no other follows, or not",
        "state_that_is_no_outcome_settles_nothing_and_an_outcome_may_follow",
        "row_54_second_terminal_state_is_ignored",
        "receiver_may_tell_how_far_it_has_come_before_its_outcome",
        "outcome_of_a_settled_delivery_is_kept_and_told_to_nobody",
        mutants=(
            Change(
                "    if state is None or isinstance(state, Received):\n        return False\n",
                "    if state is None:\n        return False\n",
            ),
            Change(
                '    return getattr(state, "outcome", state) is not None\n\n\ndef is_refusal',
                '    return getattr(state, "outcome", None) is not None\n\n\ndef is_refusal',
            ),
            Change(
                "        settles = settle and mode == _FIRST and (state is ACCEPTED or is_terminal(state))",
                "        settles = settle and mode == _FIRST",
            ),
            Change(
                "        settles = settle and mode == _FIRST and (state is ACCEPTED or is_terminal(state))",
                "        settles = settle and mode == _FIRST and state is ACCEPTED",
            ),
            Change(
                '        if delivery.state is not None and is_terminal(delivery.state):\n            raise LocalProtocolError(\n                f"delivery {delivery.tag!r} was already',
                '        if delivery.state is not None:\n            raise LocalProtocolError(\n                f"delivery {delivery.tag!r} was already',
            ),
            Change(
                '        if delivery.state is not None and is_terminal(delivery.state):\n            raise LocalProtocolError(\n                f"delivery {delivery.tag!r} was already',
                '        if False:\n            raise LocalProtocolError(\n                f"delivery {delivery.tag!r} was already',
            ),
        ),
    ),
    need(
        "2.6.12-5",
        MAY,
        "a receiver may tell states that are not terminal by a disposition",
        "receiver_may_tell_how_far_it_has_come_before_its_outcome",
    ),
    need(
        "2.6.12-6",
        RULE,
        "a terminal state of the receiver is what it wishes; the sender's is what counts",
        "outcome_that_the_lease_refuses_is_rejected",
        "sender_that_confirms_leaves_the_answer_to_who_watches_the_delivery",
        "resumed_delivery_is_settled_when_the_sender_holds_an_outcome_and_waits_for_us",
    ),
    need(
        "2.6.12-7",
        RULE,
        "a sender tells once that it has settled",
        "settlement_of_a_sender_is_told_once",
    ),
    need(
        "2.6.12-8",
        RULE,
        "a receiver need not tell that it settles what the sender has settled",
        "receiver_keeps_what_the_sender_settled_first_and_tells_nobody_of_its_outcome",
        "outcome_of_a_settled_delivery_is_kept_and_told_to_nobody",
    ),
    need(
        "2.6.12-9",
        SHOULD,
        "a sender that comes to a terminal state by itself says so, and settles when the receiver has confirmed it",
        gap="not offered: a sender here comes to no outcome by itself; it settles without a state, or aborts",
    ),
    need(
        "2.6.12-10",
        RULE,
        "sent settled is at most once; the receiver first is at least once; the sender first is exactly once",
        "both_ends_forget_as_their_modes_say",
        "engine/test_exactly_once:exactly_once_survives_a_cut_before_any_octet",
        "engine/test_exactly_once:exactly_once_survives_cuts_while_it_is_taken_up",
        "engine/test_exactly_once:at_least_once_loses_nothing",
    ),
    need(
        "2.6.12-11",
        MAY,
        "either end may settle whatever the state is",
        "sender_may_settle_before_it_has_heard_anything",
        "sender_may_settle_before_the_receiver",
    ),
    need(
        "2.6.13-1",
        RULE,
        "an attach that resumes has tags and states of all that is unsettled",
        "attach_says_which_deliveries_have_an_outcome_when_the_link_is_taken_up",
        "attach_says_how_far_each_delivery_has_come",
    ),
    need(
        "2.6.13-2",
        MAY,
        "what only the source holds may be sent again",
        "resending_sends_as_new_what_the_receiver_does_not_have",
        "resending_sends_all_as_new_when_the_receiver_forgot_the_link_and_repeats_are_allowed",
    ),
    need(
        "2.6.13-3",
        MUST,
        "and where it is marked as resumed, the receiver ignores it",
        "row_56_resumed_delivery_that_we_do_not_know_is_ignored",
        "resumed_delivery_that_is_not_known_is_ignored",
        "resume_flag_on_a_link_without_a_memory_is_a_delivery_that_is_not_known",
        mutant=Change("Incoming(link, delivery, ignored=True)", "Incoming(link, delivery)"),
    ),
    need(
        "2.6.13-4",
        MUST,
        "what only the target holds is ignored by the sender",
        "resending_says_nothing_of_what_only_the_receiver_holds",
        mutant=Change(
            "    if steps or link.incomplete:\n",
            "    if any(tag not in terminus.unsettled for tag in theirs or ()):\n        link.detach()\n"
            "    if steps or link.incomplete:\n",
        ),
    ),
    need(
        "2.6.13-5",
        MUST,
        "and settled by the receiver",
        "deliveries_that_the_sender_does_not_name_are_settled",
        mutant=Change("elif theirs is None or not link.remote.incomplete_unsettled:", "elif False:"),
    ),
    need(
        "2.6.13-6",
        MUST,
        "what both hold is resumed",
        "resending_resumes_from_where_the_receiver_wants_it",
        "resending_takes_the_outcome_when_the_receiver_has_one",
        "resending_settles_with_its_own_outcome_when_both_hold_one",
        "resending_aborts_what_the_receiver_has_when_the_sender_holds_the_outcome",
        "resending_goes_before_anything_new_and_waits_for_credit",
        "resending_cuts_into_frames_and_names_its_place_once",
        "resending_goes_on_after_a_second_cut",
        "resending_takes_the_default_outcome_when_the_source_does_not_permit_the_receivers",
        mutants=(
            Change("steps.append((sent, theirs[tag]))", "pass"),
            Change("            steps.append((sent, theirs[tag]))", "            steps.append((sent, None))"),
            Change(
                "            steps.append((sent, theirs[tag]))",
                "            steps.append((sent, _NOT_THERE))",
            ),
            Change(
                "            steps.append((sent, theirs[tag]))",
                "            steps.appendleft((sent, theirs[tag]))",
            ),
            Change("        resume = theirs is not _NOT_THERE\n", "        resume = False\n"),
            Change(
                "            offset = offset_of(sent.payload, sent.message_format, theirs) or 0\n",
                "            offset = 0\n",
            ),
            Change(
                "            theirs if isinstance(theirs, Received) else None,\n            resume=resume",
                "            None,\n            resume=resume",
            ),
            Change(
                "            delivery.state = link.permitted(there)\n        link.session.write_body",
                "            pass\n        link.session.write_body",
            ),
            Change(
                "                    state=None if abort else delivery.state,\n                    resume=True,",
                "                    state=None,\n                    resume=True,",
            ),
            Change(
                "                    state=None if abort else delivery.state,\n                    resume=True,",
                "                    state=None if abort else delivery.state,\n                    resume=False,",
            ),
        ),
    ),
    need(
        "2.6.13-7",
        RULE,
        "what an incomplete map does not name is not settled by that",
        "deliveries_that_an_incomplete_map_does_not_name_are_kept",
        "resending_says_nothing_of_what_an_incomplete_map_does_not_name_and_sends_nothing_new",
    ),
    need(
        "2.6.13-8",
        MUST,
        "then the ends settle as much of what is unsettled as they can",
        "resending_says_nothing_of_what_an_incomplete_map_does_not_name_and_sends_nothing_new",
        mutant=Change(
            "if self._steps and self._begun and link.credit > 0:",
            "if self._steps and self._begun and link.credit > 0 and not link.incomplete:",
        ),
    ),
    need(
        "2.6.13-9",
        MUST,
        "and suspend and resume the link again",
        "maps_that_fit_no_frame_are_worked_off_in_turns",
        mutant=Change(
            "if self._link.incomplete and self._resumable_state is not None",
            "if False and self._resumable_state is not None",
        ),
    ),
    need(
        "2.6.13-10",
        RULE,
        "new deliveries go out only when both maps are complete",
        "nothing_new_is_sent_when_the_receivers_map_is_incomplete_and_we_remember_nothing",
        "resending_says_nothing_of_what_an_incomplete_map_does_not_name_and_sends_nothing_new",
        "maps_that_fit_no_frame_are_worked_off_in_turns",
    ),
    need(
        "2.6.13-11",
        MUST,
        "what is resumed has the resume flag",
        "resending_resumes_from_where_the_receiver_wants_it",
        "resending_takes_the_outcome_when_the_receiver_has_one",
        mutants=(
            Change("resume = theirs is not _NOT_THERE", "resume = False"),
            Change("resume=True,\n                    aborted=abort,", "aborted=abort,"),
        ),
    ),
    need(
        "2.6.13-12",
        MAY,
        "the payload may be left out where the receiver needs none",
        "resending_takes_the_outcome_when_the_receiver_has_one",
        "resumed_delivery_that_came_whole_is_not_handed_out_again",
    ),
    need(
        "2.6.13-13",
        RULE,
        "delivery-ids of former endpoints mean nothing on the new ones",
        "delivery_id_of_the_link_before_means_nothing_after_it_was_attached_again",
    ),
    need(
        "2.6.14-1",
        MAY,
        "a large message goes in several transfers, with more on all but the last",
        "first_transfer_names_the_delivery_and_later_ones_leave_that_out",
        "message_in_parts_keeps_to_window_and_frame_size",
    ),
    need(
        "2.6.14-2",
        MAY,
        "messages of different links may be interleaved",
        "messages_in_parts_take_turns_on_one_session",
        "deliveries_come_whole_however_they_are_cut_and_interleaved",
    ),
    need(
        "2.6.14-3",
        MUST_NOT,
        "messages of one link are interleaved",
        "other_messages_wait_until_the_stream_is_over",
        "row_49_continuation_under_another_name_detaches",
        "[continuation]",
        mutants=(
            Change(
                "and self.partial is None\n            and self.resending is None",
                "and self.resending is None",
            ),
            Change("part.delivery_id in (None, delivery.delivery_id)\n        and part", "part"),
            Change("and part.delivery_tag in (None, delivery.tag)", ""),
        ),
    ),
    need(
        "2.6.14-4",
        MAY,
        "a sender may abort a message by a transfer",
        "abort_is_a_transfer_and_settles",
        "leaving_by_an_exception_aborts_and_the_link_goes_on",
    ),
    need(
        "2.6.14-5",
        MUST,
        "the receiver drops what had come of it",
        "row_51_aborted_delivery_is_dropped_and_settled_without_a_word",
        "row_51_aborted_delivery_is_discarded_at_any_fragment",
        mutant=Change(
            "if part.aborted:\n        _drop(link, incoming)",
            "if False:\n        _drop(link, incoming)",
        ),
    ),
]
