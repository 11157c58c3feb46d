"""2.5: how a session is begun and ended, its states, and its windows."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RECOMMENDED, RULE, Change, need

_SESSION_FAULT_WITHOUT_ERROR = Change(
    "        self.end(error)\n        self.emit_ended(error)",
    "        self.end()\n        self.emit_ended(error)",
)
_FRAMES_ARE_NOT_DISCARDED = Change(
    "        session.state is not SessionState.MAPPED\n"
    "        and session.state is not SessionState.BEGIN_RCVD\n"
    "        and not isinstance(performative, End)",
    "        False",
)
_BAD_FIELDS_ARE_NOT_DISCARDED = Change(
    "    if session.state is not SessionState.MAPPED and session.state is not SessionState.BEGIN_RCVD:\n"
    "        return\n    if link is not None and transfer",
    "    if link is not None and transfer",
)

REQUIREMENTS = [
    need(
        "2.5-1",
        RULE,
        "any number of links, of either direction, are attached to a session",
        "session_carries_any_number_of_links_of_both_directions",
        "handles_are_used_up_to_handle_max_and_no_further",
        mutants=(
            Change("        if handle > self._handle_limit:", "        if handle > 1:"),
            Change("        if handle > self._handle_limit:", "        if handle >= self._handle_limit:"),
            Change("        if handle > self._handle_limit:", "        if False:"),
        ),
    ),
    need(
        "2.5-2",
        MUST_NOT,
        "a link is attached to more than one session at a time",
        "row_41_attach_in_another_session_steals_the_link",
        "link_is_stolen_when_its_peer_attaches_it_on_another_connection",
        "[one-attachment]",
        mutants=(
            Change("        _steal(link, names)\n", "        pass\n"),
            Change("            holder.steal()\n", "            pass\n"),
        ),
    ),
    need(
        "2.5.1-1",
        RULE,
        "a session is begun on an outgoing channel that is free",
        "connection_begins_no_more_sessions_than_the_smaller_channel_max_has_room_for",
        "session_of_the_peer_is_answered_on_a_channel_that_is_free",
        "[channel-in-use]",
        mutants=(
            Change("channel = self._free.take()", "channel = 0"),
            Change(
                "        if channel in self.theirs:\n            raise",
                "        if False:\n            raise",
            ),
        ),
    ),
    need(
        "2.5.1-2",
        RULE,
        "a begin without remote-channel asks for a session, and is answered by a begin on a channel that is free",
        "session_goes_through_begin_rcvd_when_the_peer_is_first",
        "session_of_the_peer_is_answered_on_a_channel_that_is_free",
        "row_23_frame_on_an_unmapped_channel_closes",
        "[mapped-channel]",
        mutants=(
            Change("remote_channel=self.remote_channel,", "remote_channel=None,"),
            Change("raise rules.MAPPED_CHANNEL.broken(", "session = self._add(); str("),
        ),
    ),
    need(
        "2.5.1-3",
        RECOMMENDED,
        "a session takes the lowest channel that is free",
        "connection_begins_no_more_sessions_than_the_smaller_channel_max_has_room_for",
        "channels_are_used_again_when_they_have_rested",
        mutants=(
            Change("if self._free.lowest() <= self._highest():", "if True:"),
            Change(
                "            self._cooling[session.channel] = None",
                "            self._free.free(session.channel)",
            ),
        ),
        gap="the lowest that does not rest: a channel is not used again before eight others were freed, because some "
        "peers free theirs late",
    ),
    need(
        "2.5.1-4",
        MUST_NOT,
        "a begin that is not an answer has a remote-channel",
        "session_goes_through_begin_sent_and_end_sent_when_it_is_first",
        mutant=Change("remote_channel=self.remote_channel,", "remote_channel=self.remote_channel or 0,"),
    ),
    need(
        "2.5.1-5",
        MUST,
        "a begin that is an answer has one",
        "session_goes_through_begin_rcvd_when_the_peer_is_first",
        mutant=Change("remote_channel=self.remote_channel,", "remote_channel=None,"),
    ),
    need(
        "2.5.2-1",
        RULE,
        "sessions end with their connection, closed or lost",
        "row_31_bad_field_closes_the_connection_when_it_is_of_all",
        "connection_tells_the_loss_of_its_transport_once",
        "session_wakes_its_owner_when_the_connection_goes",
        mutants=(
            Change(
                "        self.step(Step.LOST)\n        self._drop_links()\n        self.context.touch(self.owner)",
                "        pass",
            ),
        ),
    ),
    need(
        "2.5.2-2",
        RULE,
        "an end frees the outgoing channel, and carries the error if there is one",
        "session_goes_through_discarding_when_it_ends_with_an_error",
        "session_ends_with_the_error_that_it_is_given",
        "channel_does_not_rest_where_there_is_no_other",
        mutants=(
            Change("encode(End(error=error))", "encode(End())"),
            Change("self.ours.pop(session.channel, None)", "pass"),
        ),
    ),
    need(
        "2.5.2-3",
        RULE,
        "an end is answered by an end",
        "session_goes_through_begin_rcvd_when_the_peer_is_first",
        "session_ends_in_order_when_open_begin_and_end_come_in_one_read",
        mutant=Change(
            "            self.error = end.error\n        self.end()\n", "            self.error = end.error\n"
        ),
    ),
    need(
        "2.5.3-1",
        RULE,
        "ends that cross are each other's answers",
        "row_65_ends_that_cross_are_not_answered_twice",
        mutant=Change(
            "_S.END_SENT: {Step.RECV_BEGIN: _S.END_SENT, Step.RECV_END: _S.ENDED}",
            "_S.END_SENT: {Step.RECV_BEGIN: _S.END_SENT, Step.RECV_END: _S.END_RCVD}",
        ),
    ),
    need(
        "2.5.4-1",
        MUST,
        "a session that cannot process its input ends with an error that gives the reason",
        "row_44_transfer_beyond_the_window_ends_the_session",
        "session_says_its_fault_in_order_when_nothing_was_answered_yet",
        mutant=_SESSION_FAULT_WITHOUT_ERROR,
    ),
    need(
        "2.5.4-2",
        MUST,
        "then all its input is discarded until the peer's end",
        "session_goes_through_discarding_when_it_ends_with_an_error",
        "row_31_bad_field_is_dropped_with_the_frame_when_the_session_was_ended",
        mutants=(_FRAMES_ARE_NOT_DISCARDED, _BAD_FIELDS_ARE_NOT_DISCARDED),
    ),
    need(
        "2.5.5-1",
        RULE,
        "in UNMAPPED no frame is sent or received",
        "session_attaches_no_link_when_it_is_not_begun_or_over",
        "row_23_frame_on_an_unmapped_channel_closes",
        mutants=(
            Change("raise rules.MAPPED_CHANNEL.broken(", "session = self._add(); str("),
            Change("        if self.state not in _BEGUN:", "        if False:"),
        ),
    ),
    need(
        "2.5.5-2",
        MAY,
        "in BEGIN_SENT frames are sent, and cannot be received",
        "session_sends_as_soon_as_the_credit_is_read_when_all_else_was_pipelined",
        mutant=Change("_BEGUN = (SessionState.BEGIN_SENT, ", "_BEGUN = ("),
    ),
    need(
        "2.5.5-3",
        MAY,
        "in BEGIN_RCVD frames are received, and cannot be sent",
        "session_echoes_a_flow_that_came_before_it_was_answered",
        "session_echoes_a_flow_of_a_link_when_its_attach_is_answered",
        mutants=(
            Change("        self.mark_dirty()  # flows may", "        # flows may"),
            Change(
                "        if self._later_flows and link.state in WITH_HANDLE and link in self._later_flows:",
                "        if False:",
            ),
        ),
    ),
    need(
        "2.5.5-4",
        MAY,
        "in MAPPED frames are sent and received",
        "session_carries_any_number_of_links_of_both_directions",
    ),
    need(
        "2.5.5-5",
        MAY,
        "in END_SENT frames are received, and cannot be sent",
        "session_goes_through_begin_sent_and_end_sent_when_it_is_first",
        "connection_takes_a_begin_that_answers_a_session_that_we_have_ended_already",
        mutants=(
            Change("    _S.END_SENT: {Step.RECV_BEGIN: _S.END_SENT, ", "    _S.END_SENT: {"),
            Change(
                "_S.END_SENT: {Step.RECV_BEGIN: _S.END_SENT, Step.RECV_END: _S.ENDED}",
                "_S.END_SENT: {Step.RECV_BEGIN: _S.END_SENT, Step.RECV_END: _S.END_SENT}",
            ),
        ),
    ),
    need(
        "2.5.5-6",
        MAY,
        "in END_RCVD frames are sent, and cannot be received",
        "session_goes_through_begin_rcvd_when_the_peer_is_first",
        gap="the end is answered at once, and nothing else is sent",
    ),
    need(
        "2.5.5-7",
        MUST,
        "in DISCARDING all frames of the session are dropped silently until the peer's end",
        "session_goes_through_discarding_when_it_ends_with_an_error",
        mutant=_FRAMES_ARE_NOT_DISCARDED,
    ),
    need(
        "2.5.5-8",
        RULE,
        "a session that is unmapped again need not be kept",
        "row_65_ends_that_cross_are_not_answered_twice",
        mutant=Change("self.ours.pop(session.channel, None)", "pass"),
    ),
    need(
        "2.5.6-1",
        RULE,
        "each transfer that is sent has a transfer-id of the session's sequence, which no frame names",
        "transfers_of_any_size_count_one_by_one_in_our_ids",
        mutant=Change("self.next_outgoing_id = (self.next_outgoing_id + 1) & MASK", "pass"),
    ),
    need(
        "2.5.6-2",
        MAY,
        "next-outgoing-id begins anywhere",
        "ids_of_the_peer_begin_anywhere_and_wrap",
        mutant=Change(
            "        self.next_incoming_id = self._received_mark = next_outgoing_id\n        self.remote_outgoing_window = outgoing_window\n        self.remote_incoming_window = incoming_window",
            "        self.next_incoming_id = self._received_mark = 0\n        self.remote_outgoing_window = outgoing_window\n        self.remote_incoming_window = incoming_window",
        ),
        gap="ours begin at 0",
    ),
    need(
        "2.5.6-3",
        RULE,
        "it goes up by one with each transfer, in serial number arithmetic (RFC 1982)",
        "remote_window_equals_the_naive_sum_after_each_flow",
        "distance_undoes_add_over_the_wrap",
        "transfers_of_any_size_count_one_by_one_in_our_ids",
        mutants=(
            Change(
                "self.next_outgoing_id = (self.next_outgoing_id + 1) & MASK",
                "self.next_outgoing_id = self.next_outgoing_id + 2",
            ),
            Change("return (serial + n) & MASK", "return serial + n"),
        ),
    ),
    need(
        "2.5.6-4",
        MUST,
        "remote-incoming-window goes down by one with each transfer that is sent, and is computed again from each flow",
        "remote_window_equals_the_naive_sum_after_each_flow",
        "session_sends_no_more_transfers_than_the_window_of_the_peer_has_room_for",
        mutants=(
            Change(
                "            windows.remote_incoming_window -= 1",
                "            windows.remote_incoming_window -= 0",
            ),
            Change("self.remote_incoming_window = distance(", "_ = distance("),
        ),
    ),
    need(
        "2.5.6-5",
        MUST,
        "remote-outgoing-window goes down by one with each transfer that is received, and is set again by each flow",
        "received_counts_until_the_room_is_used_up",
        "remote_window_equals_the_naive_sum_after_each_flow",
        mutants=(
            Change(
                "            self.incoming_window = left\n            self.remote_outgoing_window -= 1\n",
                "            self.incoming_window = left\n",
            ),
            Change(
                "        self.remote_outgoing_window = outgoing_window\n        self.remote_incoming_window = distance(",
                "        self.remote_incoming_window = distance(",
            ),
        ),
    ),
    need(
        "2.5.6-6",
        MAY,
        "outgoing-window goes down when a transfer is sent",
        gap="not offered: it is as large as can be, and the peer's window is the bound",
    ),
    need(
        "2.5.6-7",
        RULE,
        "next-incoming-id is the transfer-id of the last transfer that was received, plus one",
        "ids_of_the_peer_begin_anywhere_and_wrap",
        "received_counts_until_the_room_is_used_up",
        mutant=Change(
            "self.next_incoming_id = ((self.next_incoming_id or 0) + 1) & MASK\n            self.incoming_window = left",
            "self.incoming_window = left",
        ),
    ),
    need(
        "2.5.6-8",
        MAY,
        "incoming-window goes down when a transfer is received",
        "transfer_uses_up_a_place_of_our_window",
        "received_counts_until_the_room_is_used_up",
        mutant=Change("            self.incoming_window = left\n", ""),
    ),
    need(
        "2.5.6-9",
        MUST,
        "next-incoming-id is set to the next-outgoing-id of each flow",
        "next_incoming_id_is_what_the_peers_flow_says",
        "remote_window_equals_the_naive_sum_after_each_flow",
        mutant=Change(
            "        self.acknowledged = base\n        self.next_incoming_id = self._received_mark = next_outgoing_id\n",
            "        self.acknowledged = base\n",
        ),
    ),
    need(
        "2.5.6-10",
        MUST,
        "remote-outgoing-window is set to the outgoing-window of each flow",
        "remote_window_equals_the_naive_sum_after_each_flow",
        mutant=Change(
            "        self.remote_outgoing_window = outgoing_window\n        self.remote_incoming_window = distance(",
            "        self.remote_incoming_window = distance(",
        ),
    ),
    need(
        "2.5.6-11",
        RULE,
        "remote-incoming-window is the flow's next-incoming-id and its incoming-window, less our next-outgoing-id",
        "remote_window_equals_the_naive_sum_after_each_flow",
        mutant=Change(
            "add(base, min(incoming_window, _OUTGOING_WINDOW)), self.next_outgoing_id",
            "add(base, min(incoming_window, _OUTGOING_WINDOW)), base",
        ),
    ),
    need(
        "2.5.6-12",
        RULE,
        "if the flow has no next-incoming-id, our first transfer-id stands for it",
        "flow_that_knows_none_of_our_transfers_counts_from_the_first",
        "remote_window_equals_the_naive_sum_after_each_flow",
        mutant=Change(
            "base = initial_id if next_incoming_id is None else next_incoming_id",
            "base = self.next_outgoing_id if next_incoming_id is None else next_incoming_id",
        ),
    ),
    need(
        "2.5.6-13",
        RULE,
        "no transfer is sent beyond the peer's incoming-window",
        "session_sends_no_more_transfers_than_the_window_of_the_peer_has_room_for",
        "large_message_goes_through_a_window_of_one_and_the_smallest_frames",
        mutants=(
            Change(
                "            windows.remote_incoming_window -= 1",
                "            windows.remote_incoming_window -= 0",
            ),
            Change("        self.remote_incoming_window -= 1", "        self.remote_incoming_window -= 0"),
        ),
    ),
    need(
        "2.5.6-14",
        RULE,
        "a transfer beyond ours ends the session with window-violation, and so does a flow that acknowledges what "
        "was never sent",
        "row_44_transfer_beyond_the_window_ends_the_session",
        "row_45_flow_that_expects_what_we_never_sent_ends_the_session",
        "[incoming-window]",
        "[next-incoming-id]",
        mutants=(
            Change(
                "        left = self.incoming_window - 1\n",
                "        left = max(0, self.incoming_window - 1)\n",
            ),
            Change("if distance(base, self.next_outgoing_id) > 0:", "if False:"),
        ),
    ),
]
