"""2.7.5: the fields of transfer."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RULE, SHOULD, SHOULD_NOT, Change, need

_ABORTED = "if part.aborted:\n        _drop(link, incoming)"

REQUIREMENTS = [
    need(
        "2.7.5-1",
        MAY,
        "a message goes in one transfer, or in several where it is larger than a frame",
        "first_transfer_names_the_delivery_and_later_ones_leave_that_out",
        "messages_cross_two_engines_whole_at_every_frame_size",
    ),
    need(
        "2.7.5-2",
        MUST,
        "the first transfer of a delivery has a delivery-id",
        "first_transfer_names_the_delivery_and_later_ones_leave_that_out",
        "row_49_first_transfer_without_id_or_tag_detaches",
        "[first-delivery-id]",
        mutants=(
            Change(
                "delivery_id=delivery.delivery_id,\n                delivery_tag=delivery.tag,\n                message",
                "delivery_tag=delivery.tag,\n                message",
            ),
            Change(
                "link.fail(rules.FIRST_DELIVERY_ID.broken("
                '"the first transfer of a delivery needs a delivery-id"))\n        return',
                "delivery_id = session.next_incoming_delivery_id or 0",
            ),
        ),
    ),
    need(
        "2.7.5-3",
        MAY,
        "later ones may leave it out",
        "first_transfer_names_the_delivery_and_later_ones_leave_that_out",
        "row_49_continuation_may_repeat_its_name",
    ),
    need(
        "2.7.5-4",
        RULE,
        "a later one with another delivery-id is a fault",
        "row_49_continuation_under_another_name_detaches",
    ),
    need(
        "2.7.5-5",
        MUST,
        "the first transfer has a delivery-tag; later ones may leave it out",
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
        "2.7.5-6",
        RULE,
        "a later one with another delivery-tag is a fault",
        "row_49_continuation_under_another_name_detaches",
        "[continuation]",
    ),
    need(
        "2.7.5-7",
        MUST,
        "the first transfer has a message-format; later ones may leave it out",
        "first_transfer_names_the_delivery_and_later_ones_leave_that_out",
        mutant=Change(
            "delivery_tag=delivery.tag,\n                message_format=message_format,",
            "delivery_tag=delivery.tag,",
        ),
        gap="a missing one of the peer's reads as 0",
    ),
    need(
        "2.7.5-8",
        RULE,
        "a later one with another message-format is a fault",
        "row_49_continuation_under_another_name_detaches",
    ),
    need(
        "2.7.5-9",
        MUST,
        "settled that is left out on the first transfer reads as false",
        "transfer_is_unsettled_unless_it_says_settled",
        mutant=Change(
            "if not settled:\n                session.settlement.incoming[delivery_id] = delivery",
            "if settled is False:\n                session.settlement.incoming[delivery_id] = delivery",
        ),
    ),
    need(
        "2.7.5-10",
        MUST,
        "left out on a later one, it reads as true if one before was true, and as false otherwise",
        "settled_that_is_left_out_later_is_what_was_said_before",
        "row_49_settled_on_any_transfer_settles",
        mutants=(
            Change(
                "elif part.settled is False and incoming.settled:",
                "elif not part.settled and incoming.settled:",
            ),
            Change(
                "    if part.settled:\n        # The",
                "    if part.settled is not False:\n        # The",
            ),
        ),
    ),
    need(
        "2.7.5-11",
        MUST,
        "in snd-settle-mode settled, at least one transfer of each delivery has true",
        "send_settles_as_the_mode_of_the_link_says",
        "begin_settles_as_the_link_says",
        "[settle-mode]",
        mutants=(
            Change(
                "self._always_settled = self.snd_settle_mode == SenderSettleMode.SETTLED",
                "self._always_settled = False",
            ),
            Change(
                '        self.fail(rules.SETTLE_MODE.broken(f"a delivery that is sent {sent}, on a link of mode {mode}"))\n        return False\n',
                "        return True\n",
            ),
        ),
    ),
    need(
        "2.7.5-12",
        MUST,
        "in mode unsettled, none has true, but one that aborts",
        "send_settles_as_the_mode_of_the_link_says",
        "begin_settles_as_the_link_says",
        "resending_takes_the_outcome_when_the_receiver_has_one",
        "settled_goes_with_the_mode_of_the_link_when_strict_and_is_counted_otherwise",
        "delivery_that_is_aborted_may_be_settled_or_not",
        "[settle-mode]",
        mutants=(
            Change(
                "not (part.aborted or link.fits_mode(settled=delivery.settled))",
                "not link.fits_mode(settled=delivery.settled)",
            ),
            Change(
                "self._always_settled = self.snd_settle_mode == SenderSettleMode.SETTLED",
                "self._always_settled = True",
            ),
            Change("settled = abort or link.snd_settle_mode != SenderSettleMode.UNSETTLED", "settled = True"),
            Change(
                '        self.fail(rules.SETTLE_MODE.broken(f"a delivery that is sent {sent}, on a link of mode {mode}"))\n        return False\n',
                "        return True\n",
            ),
        ),
    ),
    need(
        "2.7.5-13",
        SHOULD,
        "more is ignored where aborted is true",
        "row_51_aborted_delivery_may_say_that_more_would_follow",
        mutant=Change(_ABORTED, "if part.aborted and not part.more:\n        _drop(link, incoming)"),
    ),
    need(
        "2.7.5-14",
        SHOULD_NOT,
        "more and aborted are both true",
        "abort_is_a_transfer_and_settles",
        "abort_waits_for_the_window_and_drops_what_is_pending",
        mutants=(
            Change(
                "Transfer(handle=link.handle, more=False, aborted=True)",
                "Transfer(handle=link.handle, more=True, aborted=True)",
            ),
            Change(
                "        if self._aborted:\n            session.write_body(encode(Transfer(",
                "        if False:\n            session.write_body(encode(Transfer(",
            ),
        ),
    ),
    need(
        "2.7.5-15",
        MUST,
        "rcv-settle-mode first: the receiver settles the delivery without waiting for the sender",
        "delivery_settles_as_its_first_transfer_says_and_else_as_the_link",
        "resumed_delivery_settles_first_when_its_transfer_says_so",
        mutants=(
            Change("settlement.modes[delivery.delivery_id] = part.rcv_settle_mode", "pass"),
            Change("settlement.modes[delivery_id] = ReceiverSettleMode.FIRST", "pass"),
        ),
    ),
    need(
        "2.7.5-16",
        MUST_NOT,
        "second: the receiver settles it before it has sent its state and the sender has settled",
        "receiver_that_settles_second_waits_for_the_senders_word",
        "delivery_settles_as_its_first_transfer_says_and_else_as_the_link",
        mutant=Change("settles = settle and mode == _FIRST and", "settles = settle and"),
    ),
    need(
        "2.7.5-17",
        RULE,
        "left out: as the link has it",
        "delivery_settles_as_its_first_transfer_says_and_else_as_the_link",
    ),
    need(
        "2.7.5-18",
        RULE,
        "second is illegal on a link that settles first",
        "transfer_that_asks_for_settle_mode_second_detaches_when_the_link_settles_first",
        "[transfer-settle-mode]",
    ),
    need(
        "2.7.5-19",
        RULE,
        "it is ignored where the delivery is sent settled",
        "transfer_that_is_settled_may_say_any_settle_mode",
        "settle_mode_of_a_transfer_is_ignored_where_it_is_settled",
    ),
    need(
        "2.7.5-20",
        RULE,
        "it does not outlast the suspension of the link",
        "settle_mode_of_a_transfer_does_not_outlast_its_link",
    ),
    need(
        "2.7.5-21",
        RULE,
        "the state of a transfer counts as a disposition right before it",
        "state_of_any_transfer_is_that_of_the_delivery",
        "state_that_is_no_outcome_may_be_altered_by_a_disposition",
        "transfer_says_the_state_of_the_sender",
    ),
    need(
        "2.7.5-22",
        RULE,
        "a terminal state that the sender has sent is altered by nothing that it sends later",
        "outcome_that_the_sender_has_told_is_altered_by_nothing_later",
    ),
    need(
        "2.7.5-23",
        MUST,
        "a receiver ignores resumed deliveries that it does not hold",
        "row_56_resumed_delivery_that_we_do_not_know_is_ignored",
        "resumed_delivery_that_is_not_known_is_ignored",
        mutant=Change("Incoming(link, delivery, ignored=True)", "Incoming(link, delivery)"),
    ),
    need(
        "2.7.5-24",
        MUST_NOT,
        "a sender resumes deliveries that it does not hold",
        "resending_says_nothing_of_what_only_the_receiver_holds",
        mutant=Change(
            "    if steps or link.incomplete:\n",
            "    for tag in set(theirs or ()) - set(terminus.unsettled):\n"
            "        made = link.context.outgoing_class(link, 0, tag, False)\n"
            '        steps.append((Sent(made, b"", 0), (theirs or {})[tag]))\n'
            "    if steps or link.incomplete:\n",
        ),
    ),
    need(
        "2.7.5-25",
        MUST,
        "the first transfer of a resumed delivery has the resume flag",
        "resending_cuts_into_frames_and_names_its_place_once",
        "resending_resumes_from_where_the_receiver_wants_it",
        mutant=Change("resume = theirs is not _NOT_THERE", "resume = False"),
    ),
    need(
        "2.7.5-26",
        MAY,
        "later ones may have it, or not",
        "resume_may_be_said_again_on_later_transfers",
    ),
    need(
        "2.7.5-27",
        MAY,
        "a resumed delivery may have no payload, and bring the state alone",
        "resending_takes_the_outcome_when_the_receiver_has_one",
        "resumed_delivery_is_settled_when_the_sender_took_our_outcome",
    ),
    need(
        "2.7.5-28",
        SHOULD,
        "a message that is aborted is dropped",
        "row_51_aborted_delivery_is_dropped_and_settled_without_a_word",
        "row_51_aborted_delivery_is_discarded_at_any_fragment",
        mutant=Change(_ABORTED, "if False:\n        _drop(link, incoming)"),
    ),
    need(
        "2.7.5-29",
        MUST,
        "the payload of a transfer that aborts is ignored",
        "payload_of_a_transfer_that_aborts_is_ignored",
        "payload_of_a_delivery_that_begins_with_its_abort_is_ignored",
        "payload_of_an_abort_counts_for_no_limit",
        "payload_of_an_abort_is_no_part_of_a_message_that_streams",
        "row_51_aborted_delivery_is_discarded_at_any_fragment",
        mutants=(
            Change(
                _ABORTED,
                "if part.aborted:\n"
                "        link.context.partial_octets += len(payload)\n"
                "        _drop(link, incoming)",
            ),
            Change(
                "    elif not part.more and not part.aborted and not _is_too_large(link, len(payload)):",
                "    elif not part.more and not _is_too_large(link, len(payload)):",
            ),
            Change(
                "    if part.aborted:\n        _drop(link, incoming)",
                "    if part.aborted and not payload:\n        _drop(link, incoming)",
            ),
            Change(
                "            delivery.inflow.abort()\n            _withdraw",
                "            delivery.inflow.abort()\n            delivery.inflow.append(payload)\n            _withdraw",
            ),
        ),
    ),
    need(
        "2.7.5-30",
        RULE,
        "a message that is aborted is settled",
        "row_51_aborted_delivery_is_dropped_and_settled_without_a_word",
        "abort_is_a_transfer_and_settles",
    ),
    need(
        "2.7.5-31",
        MAY,
        "batchable: an answer may wait for others",
        "disposition_goes_out_at_the_end_of_the_read_whatever_batchable_says",
    ),
    need(
        "2.7.5-32",
        RULE,
        "on any transfer of a delivery it counts for all of it",
        "batchable_on_any_transfer_of_a_delivery_changes_nothing",
        gap="the hint changes nothing: answers wait for others until the end of a read",
    ),
    need(
        "2.7.5-33",
        RULE,
        "it does not outlast the suspension of the link",
        gap="nothing to show: the hint is not kept at all",
    ),
]
