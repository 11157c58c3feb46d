"""2.7.3: the fields of attach."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RECOMMENDED, RULE, SHOULD, Change, need

REQUIREMENTS = [
    need(
        "2.7.3-1",
        MUST_NOT,
        "a handle in use is taken for another link",
        "attach_takes_the_lowest_handle_that_is_free",
        "handle_stays_in_use_until_both_ends_have_detached",
        mutant=Change(
            "handle = self.session.free_handle() if self.handle < 0 else self.handle",
            "handle = max(0, self.handle)",
        ),
    ),
    need(
        "2.7.3-2",
        MUST,
        "an attach on a handle in use is answered at once with handle-in-use, which ends the session",
        "row_40_attach_on_a_handle_in_use_ends_the_session",
        "[handle-in-use]",
        mutant=Change("if attach.handle in session.by_remote_handle:", "if False:"),
    ),
    need(
        "2.7.3-3",
        RECOMMENDED,
        "the lowest handle that is free is taken",
        "attach_takes_the_lowest_handle_that_is_free",
        "session_uses_a_handle_and_a_name_again_when_the_link_is_over",
        mutant=Change(
            "        handle = self._handles.lowest()\n", "        handle = self._handles.lowest() + 1\n"
        ),
    ),
    need(
        "2.7.3-4",
        RULE,
        "role shows whether the attaching end sends or receives",
        "attach_has_both_termini_whichever_end_is_ours",
        "attach_answers_the_peers_when_that_came_first",
    ),
    need(
        "2.7.3-5",
        RULE,
        "snd-settle-mode is what the sender does, and what the receiver would like",
        "settle_mode_of_each_end_is_its_own_word",
    ),
    need(
        "2.7.3-6",
        SHOULD,
        "a sender does as the receiver would like, where the receiver attached first and it can",
        "sender_is_accepted_with_the_settle_mode_that_the_receiver_wants",
        "queue_gives_settled_where_the_receiver_asks_for_at_most_once",
        mutants=(
            Change(
                "snd_settle_mode=SenderSettleMode(remote.snd_settle_mode),\n"
                "            rcv_settle_mode=ReceiverSettleMode(remote.rcv_settle_mode),\n"
                "            source=source,\n",
                "snd_settle_mode=SenderSettleMode.MIXED,\n"
                "            rcv_settle_mode=ReceiverSettleMode(remote.rcv_settle_mode),\n"
                "            source=source,\n",
            ),
            Change(
                "return LinkOptions(\n        snd_settle_mode=SenderSettleMode(remote.snd_settle_mode),",
                "return LinkOptions(\n        snd_settle_mode=SenderSettleMode.MIXED,",
            ),
        ),
    ),
    need(
        "2.7.3-7",
        RULE,
        "rcv-settle-mode is what the receiver does, and what the sender would like",
        "settle_mode_of_each_end_is_its_own_word",
    ),
    need(
        "2.7.3-8",
        SHOULD,
        "a receiver does as the sender would like, where the sender attached first and it can",
        "receiver_is_accepted_with_the_settle_mode_that_the_sender_wants",
        "queue_serves_links_that_settle_second",
        mutants=(
            Change(
                "rcv_settle_mode=ReceiverSettleMode(remote.rcv_settle_mode),\n            source=source or remote.source,",
                "rcv_settle_mode=ReceiverSettleMode.FIRST,\n            source=source or remote.source,",
            ),
            Change(
                "rcv_settle_mode=ReceiverSettleMode(remote.rcv_settle_mode),\n        source=source,",
                "rcv_settle_mode=ReceiverSettleMode.FIRST,\n        source=source,",
            ),
        ),
        gap="a container that is to be like Azure settles first",
    ),
    need(
        "2.7.3-9",
        RULE,
        "a link without a source never sends a message",
        "nothing_is_handed_out_from_a_link_without_a_source",
        "container_refuses_an_attach_without_a_terminus",
    ),
    need(
        "2.7.3-10",
        RULE,
        "a link without a target never takes one",
        "nothing_is_sent_to_a_link_without_a_target",
        "container_refuses_an_attach_without_a_terminus",
    ),
    need(
        "2.7.3-11",
        MUST,
        "the states that both ends have of a tag are compared, to resolve what is in doubt",
        "resending_settles_with_its_own_outcome_when_both_hold_one",
        "resending_takes_the_outcome_when_the_receiver_has_one",
        "outcome_that_the_sender_did_not_hear_is_said_again",
        mutants=(
            Change(
                "        there = final(theirs)\n        if ours is None and there is None and not",
                "        there = None\n        if ours is None and there is None and not",
            ),
            Change(
                "if is_terminal(delivery.state):\n        state, delivery.state",
                "if False:\n        state, delivery.state",
            ),
        ),
    ),
    need(
        "2.7.3-12",
        MAY,
        "deliveries are sent again or resumed according to it",
        "resending_resumes_from_where_the_receiver_wants_it",
        "resending_sends_as_new_what_the_receiver_does_not_have",
    ),
    need(
        "2.7.3-13",
        MAY,
        "where a map fits no frame, the session may be ended with frame-size-too-small",
        gap="not offered: the map is sent in part, and marked so",
    ),
    need(
        "2.7.3-14",
        SHOULD,
        "it is sent in part instead",
        "attach_says_what_fits_and_that_it_is_not_all_when_the_frame_is_small",
        mutant=Change(
            'return {"unsettled": unsettled, "incomplete_unsettled": len(unsettled) < len(states)}',
            'return {"unsettled": states}',
        ),
    ),
    need(
        "2.7.3-15",
        MUST_NOT,
        "an unsettled map has null for a key",
        "row_31_unsettled_map_with_keys_that_are_no_tags_ends_the_session",
        mutant=Change("if attach.unsettled is not None and not has_tags(attach.unsettled):", "if False:"),
    ),
    need(
        "2.7.3-16",
        MUST,
        "the map is null where a link is attached again and not resumed",
        "link_that_is_attached_again_and_not_resumed_has_no_map",
        "amqp10/engine/test_sender_resume:attach_says_no_map_when_the_link_is_new",
        "amqp10/engine/test_receiver_resume:attach_says_no_map_when_the_link_is_new",
        "sent_delivery_goes_on_under_its_id_when_the_peer_attaches_again_without_a_map",
        "received_delivery_goes_on_under_its_id_when_the_peer_attaches_again_without_a_map",
        mutants=(
            Change("attach = Attach(**fields)", 'attach = Attach(**{"unsettled": {}, **fields})'),
            Change("            and self.terminus.is_live_on(self.session)\n", "            and False\n"),
        ),
    ),
    need(
        "2.7.3-17",
        RULE,
        "what an incomplete map does not name is not settled by that",
        "deliveries_that_an_incomplete_map_does_not_name_are_kept",
        "resending_says_nothing_of_what_an_incomplete_map_does_not_name_and_sends_nothing_new",
    ),
    need(
        "2.7.3-18",
        MUST_NOT,
        "a sender begins new deliveries where a map was incomplete",
        "resending_says_nothing_of_what_an_incomplete_map_does_not_name_and_sends_nothing_new",
        "nothing_new_is_sent_when_the_receivers_map_is_incomplete_and_we_remember_nothing",
        mutant=Change(
            "self.incomplete = self.incomplete or attach.incomplete_unsettled\n\n    def resume",
            "pass\n\n    def resume",
        ),
    ),
    need(
        "2.7.3-19",
        MUST,
        "a receiver that sent an incomplete map detaches with an error on a new delivery",
        "new_delivery_is_refused_when_our_own_map_was_incomplete",
        "[incomplete-unsettled]",
        mutant=Change(
            "link.fail(rules.INCOMPLETE_UNSETTLED.broken(",
            "str(rules.INCOMPLETE_UNSETTLED.broken(",
        ),
    ),
    need(
        "2.7.3-20",
        MUST,
        "then the link is detached and attached again at least once before new deliveries",
        "maps_that_fit_no_frame_are_worked_off_in_turns",
        "link_is_attached_again_when_the_peers_unsettled_map_is_incomplete",
        mutants=(
            Change(
                "if self._link.incomplete and self._resumable_state is not None",
                "if False and self._resumable_state is not None",
            ),
            Change("return self._link.incomplete and self._resumable_state is None", "return False"),
        ),
    ),
    need(
        "2.7.3-21",
        MUST_NOT,
        "a sender's initial-delivery-count is null",
        "attach_of_a_sender_says_where_its_count_begins",
        "row_58_sender_without_a_first_count_is_refused_when_strict",
        "[initial-delivery-count]",
        mutants=(
            Change('"initial_delivery_count": self.delivery_count,', '"initial_delivery_count": None,'),
            Change("if link.context.strict.initial_delivery_count:", "if False:"),
        ),
        gap="a missing one reads as 0, unless the rule is held strictly",
    ),
    need(
        "2.7.3-22",
        RULE,
        "a receiver's is ignored",
        "initial_delivery_count_of_a_receiver_is_ignored",
    ),
    need(
        "2.7.3-23",
        RULE,
        "a message larger than max-message-size ends the link with message-size-exceeded",
        "row_47_message_in_parts_detaches_at_the_first_octet_over",
        "row_47_message_in_one_frame_over_the_maximum_detaches",
        "queue_keeps_messages_for_others_when_thirty_links_attach_that_take_none_of_them",
        "[max-message-size]",
    ),
    need(
        "2.7.3-24",
        RULE,
        "0 or null sets no limit",
        "send_takes_a_message_of_any_size_when_the_peer_names_none",
        "row_47_message_of_any_size_is_taken_when_there_is_no_limit",
    ),
    need(
        "2.7.3-25",
        MUST_NOT,
        "an end uses capabilities that it has not desired",
        gap="nothing to show: links use no capability by themselves; a program desires those that it uses",
    ),
]
