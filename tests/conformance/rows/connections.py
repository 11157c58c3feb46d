"""2.4: how a connection is opened, kept, and closed."""

from __future__ import annotations

from tests.conformance.requirement import (
    MAY,
    MUST,
    MUST_NOT,
    RULE,
    SHOULD,
    SHOULD_NOT,
    Change,
    need,
)

__all__ = ["REQUIREMENTS"]

_FRAME_LIMIT_IGNORED = Change(
    "self.frame_size = min(max_frame_size, PEER_FRAME_CAP)", "self.frame_size = PEER_FRAME_CAP"
)
_CHANNEL_LIMIT_IGNORED = Change(
    "else min(connection.limits.channel_max, connection.remote.channel_max)",
    "else connection.limits.channel_max",
)
_HANDLE_LIMIT_IGNORED = Change("limit = min(limit, self.remote.handle_max)", "pass")
_CLOSE_WITHOUT_ERROR = Change("encode(Close(error=error))", "encode(Close())")
_CLOSE_ON_CHANNEL_1 = Change("encode_frame(0, encode(Close", "encode_frame(1, encode(Close")
_TIMER_IN_ANY_STATE = Change(
    "        if self.state is not ConnectionState.OPENED:\n            return\n        silence =",
    "        silence =",
)
_NOTHING_IS_DISCARDED = Change(
    "        elif self.state is ConnectionState.OPENED or self.state is ConnectionState.OPEN_RCVD:\n",
    "        else:\n",
)
_FAULTS_ARE_TOLD_AGAIN = Change(
    "        if self.state in _CLOSING:\n            return None\n        self.close(error_of(fault))",
    "        self.close(error_of(fault))",
)

REQUIREMENTS = [
    need(
        "2.4-1",
        RULE,
        "the channel numbers of the two directions have nothing to do with each other",
        "channels_of_the_two_directions_have_nothing_to_do_with_each_other",
        mutants=(
            Change("mapped = connection.channels.theirs", "mapped = connection.channels.ours"),
            Change("session = self.theirs.get(channel)", "session = self.ours.get(channel)"),
        ),
    ),
    need(
        "2.4.1-1",
        RULE,
        "a frame has at most 512 octets until the peer's open was read",
        "frame_over_512_octets_is_held_with_all_that_follows_when_no_open_was_read",
        "row_21_open_before_ours_has_so_many_octets_and_no_more",
        "connection_refuses_an_open_that_is_too_long_when_it_is_made",
        "[open-frame-size]",
        gap="an open of up to 8,192 octets is written, and taken: peers in the field do so",
    ),
    need(
        "2.4.1-2",
        RULE,
        "channel 0 is the only one until the peer's open was read",
        "session_begins_before_the_peers_open_on_channel_0",
        gap="a second session that is begun before then is on channel 1",
    ),
    need(
        "2.4.1-3",
        MUST,
        "an open is sent before any other frame, and once",
        "connection_begins_no_session_when_it_is_not_opened",
        "row_21_first_frame_that_is_no_open_on_channel_0_closes",
        "row_21_second_open_closes",
        "[open-first]",
        "[open-once]",
        mutants=(
            Change("if self.state not in _MAY_BEGIN and not self._wants_open:", "if False:"),
            Change(
                'raise rules.OPEN_FIRST.broken(f"{type(performative).__name__.lower()} before open")',
                "return",
            ),
            Change('raise rules.OPEN_ONCE.broken("a second open")', "return"),
        ),
    ),
    need(
        "2.4.1-4",
        RULE,
        "an open is on channel 0",
        "open_and_close_are_written_on_channel_0_when_they_go_out_together",
        "row_21_first_frame_that_is_no_open_on_channel_0_closes",
        "[open-channel]",
        mutants=(
            Change(
                "frame = encode_frame(0, encode(performative))",
                "frame = encode_frame(1, encode(performative))",
            ),
            Change(
                "        if channel != 0:\n            raise rules.OPEN_CHANNEL",
                "        if False:\n            raise rules.OPEN_CHANNEL",
            ),
        ),
    ),
    need(
        "2.4.1-5",
        MUST,
        "after both opens each end stays within what both announced",
        "row_33_frame_that_the_peer_does_not_take_is_refused_here",
        "message_in_parts_keeps_to_window_and_frame_size",
        "connection_begins_no_more_sessions_than_the_smaller_channel_max_has_room_for",
        "session_attaches_no_more_links_than_the_smaller_handle_max_has_room_for",
        mutants=(_FRAME_LIMIT_IGNORED, _CHANNEL_LIMIT_IGNORED, _HANDLE_LIMIT_IGNORED),
    ),
    need(
        "2.4.2-1",
        MAY,
        "frames are sent before the peer's header or open has come",
        "connection_goes_through_oc_pipe_and_close_pipe_when_it_closes_before_it_is_answered",
        "session_takes_a_whole_pipelined_conversation_and_grants_and_receives_in_one_exchange",
        "dialling_may_wait_for_each_answer",
    ),
    need(
        "2.4.2-2",
        RULE,
        "frames that are sent so are such that every peer takes them",
        "frame_over_512_octets_is_held_with_all_that_follows_when_no_open_was_read",
        "session_begins_before_the_peers_open_on_channel_0",
        "row_33_held_frame_that_the_peer_does_not_take_closes",
        gap="channels and handles above 0 are used before the peer has said how many it takes",
    ),
    need(
        "2.4.3-1",
        MUST,
        "a close is written before the connection is closed, with the reason if there is one",
        "connection_goes_through_close_sent_when_it_closes_first",
        "close_carries_the_error_that_it_is_given",
        "connection_goes_through_discarding_when_it_closes_with_an_error",
        mutants=(
            _CLOSE_WITHOUT_ERROR,
            Change("self.outbox.write_frame(encode_frame(0, encode(Close(error=error))))", "pass"),
        ),
    ),
    need(
        "2.4.3-2",
        MUST,
        "the close is the last thing that is written",
        "connection_writes_nothing_behind_its_close",
        "connection_writes_no_empty_frame_behind_its_close",
        mutants=(
            Change(
                "        self._close_deadline = self._now + self.limits.close_timeout\n        self._drop_sessions()\n",
                "        self._close_deadline = self._now + self.limits.close_timeout\n",
            ),
            _TIMER_IN_ANY_STATE,
        ),
    ),
    need(
        "2.4.3-3",
        SHOULD,
        "an end that has written its close reads on until the peer's close",
        "connection_reads_on_behind_its_close_until_it_is_answered",
        "connection_goes_through_close_sent_when_it_closes_first",
        mutant=Change(
            "if self.inbox.deaf or self.state is ConnectionState.END:",
            "if self.inbox.deaf or self.state is ConnectionState.END or self.state is ConnectionState.CLOSE_SENT:",
        ),
    ),
    need(
        "2.4.3-4",
        SHOULD,
        "it waits for that for a time, and no longer",
        "connection_gives_up_a_peer_that_never_answers_its_close",
        "leaving_waits_for_the_close_of_the_peer_so_long_and_no_longer",
        mutants=(
            Change('self.abandon(f"no close from the peer within', 'str(f"no close from the peer within'),
            Change(
                "with trio.move_on_after(self.close_timeout):\n                await self.pump.finished.wait()",
                "with trio.move_on_after(1.0):\n                await self.pump.finished.wait()",
            ),
        ),
    ),
    need(
        "2.4.3-5",
        MAY,
        "a close comes on any channel up to channel-max",
        "close_counts_on_any_channel",
    ),
    need(
        "2.4.3-6",
        SHOULD,
        "a close is written on channel 0",
        "close_is_written_on_channel_0_when_sessions_use_others",
        mutant=_CLOSE_ON_CHANNEL_1,
    ),
    need(
        "2.4.3-7",
        MUST,
        "and so is one that goes out together with the open",
        "open_and_close_are_written_on_channel_0_when_they_go_out_together",
        mutant=_CLOSE_ON_CHANNEL_1,
    ),
    need(
        "2.4.3-8",
        SHOULD_NOT,
        "a socket is used again after both closes",
        "row_37_octets_behind_the_close_are_dropped",
        "leaving_goes_at_once_when_the_peer_closes_too",
    ),
    need(
        "2.4.3-9",
        RULE,
        "nothing has to be read behind the peer's close",
        "row_37_octets_behind_the_close_are_dropped",
    ),
    need(
        "2.4.4-1",
        MAY,
        "both ends close at once; the two closes are each other's answers",
        "row_65_closes_that_cross_are_not_answered_twice",
    ),
    need(
        "2.4.5-1",
        SHOULD,
        "a peer that is silent for longer than the time-out is sent a close with an error that says so",
        "row_36_silent_peer_is_told_so_and_given_up_later",
        "[idle]",
        mutant=Change("            self.fail(fault)\n            raise fault", "            raise fault"),
    ),
    need(
        "2.4.5-2",
        MAY,
        "and if it does not answer that, the socket is closed",
        "row_36_silent_peer_is_told_so_and_given_up_later",
        "row_36_silence_after_the_open_is_too_much",
    ),
    need(
        "2.4.5-3",
        RULE,
        "the time counts from the last frame that was received",
        "row_36_silent_peer_is_told_so_and_given_up_later",
        "idle_counts_silence_from_the_last_octets",
        gap="from the last octets, whether they complete a frame or not",
    ),
    need(
        "2.4.5-4",
        RULE,
        "each end has a time-out of its own",
        "connection_keeps_both_alive_when_both_want_it",
        "idle_looks_at_the_earlier_of_its_two_deadlines",
    ),
    need(
        "2.4.5-5",
        SHOULD,
        "half of the real time-out is announced",
        "idle_announces_half_of_its_threshold_as_a_uint",
        "open_says_who_we_are",
        mutant=Change(
            "min(int(self._threshold * 500), 0xFFFFFFFF)", "min(int(self._threshold * 1000), 0xFFFFFFFF)"
        ),
    ),
    need(
        "2.4.5-6",
        SHOULD,
        "a time-out that cannot be kept is refused by a close with an error",
        "row_35_idle_time_out_that_is_too_short_closes",
        "[idle-time-out]",
        mutant=Change("if timeout and timeout < self.limits.min_idle_timeout * 1000:", "if False:"),
    ),
    need(
        "2.4.5-7",
        SHOULD,
        "TCP keep-alive is used where it can be",
        gap="not yet: sockets are as the system makes them",
    ),
    need(
        "2.4.5-8",
        MAY,
        "an empty frame is sent when there is nothing else to say",
        "connection_keeps_alive_what_the_peer_would_give_up",
        "idle_calls_for_a_heartbeat_when_nothing_was_written_in_a_quarter",
    ),
    need(
        "2.4.5-9",
        MUST,
        "empty frames are taken on any valid channel",
        "empty_frame_is_taken_on_any_channel_whether_it_is_mapped_or_not",
        mutant=Change(
            "        if not body:\n            self._on_empty",
            "        if not body and channel == 0:\n            self._on_empty",
        ),
    ),
    need(
        "2.4.5-10",
        SHOULD,
        "empty frames are sent on channel 0",
        "connection_keeps_alive_what_the_peer_would_give_up",
        "empty_frame_is_a_header_and_nothing_else",
        mutant=Change("_HEADER.pack(8, 2, AMQP_FRAME, 0)", "_HEADER.pack(8, 2, AMQP_FRAME, 1)"),
    ),
    need(
        "2.4.5-11",
        MUST,
        "until the peer's open was read, they are on channel 0 in any case: none is sent then",
        "connection_writes_no_empty_frame_before_the_peers_open",
        mutant=(
            _TIMER_IN_ANY_STATE,
            Change("self._quarter: float | None = None", "self._quarter: float | None = 1.0"),
            Change("self._heartbeat_at: float | None = None", "self._heartbeat_at: float | None = 0.0"),
        ),
    ),
    need(
        "2.4.5-12",
        RULE,
        "empty frames are sent behind the open only",
        "connection_writes_no_empty_frame_before_the_peers_open",
        "row_21_first_frame_that_is_no_open_on_channel_0_closes",
        mutants=(
            (
                _TIMER_IN_ANY_STATE,
                Change("self._quarter: float | None = None", "self._quarter: float | None = 1.0"),
                Change("self._heartbeat_at: float | None = None", "self._heartbeat_at: float | None = 0.0"),
            ),
            Change('raise rules.OPEN_FIRST.broken("an empty frame before open")', "return"),
        ),
    ),
    need(
        "2.4.5-13",
        MUST_NOT,
        "an empty frame is sent behind the close",
        "connection_writes_no_empty_frame_behind_its_close",
        mutant=_TIMER_IN_ANY_STATE,
    ),
    need(
        "2.4.5-14",
        MAY,
        "a flow for a session is sent in place of an empty frame",
        gap="not offered: empty frames do",
    ),
    need(
        "2.4.5-15",
        SHOULD,
        "an end that finds that it was silent for longer than the peer's time-out closes with an error that says so",
        gap="not yet: it writes an empty frame, and leaves the decision to the peer",
    ),
    need(
        "2.4.6-1",
        RULE,
        "the states of a connection, and what leads from one to another, are the standard's",
        "connection_comes_to_where_the_standard_says",
        "endpoint_is_closed_once_whoever_begins",
        "connection_goes_through_open_pipe_and_open_sent_when_it_is_first",
        "[connection-state]",
    ),
    need(
        "2.4.6-2",
        MAY,
        "in CLOSE_RCVD the socket is closed for reading",
        gap="not offered: the close is answered at once, and then the socket is closed whole",
    ),
    need(
        "2.4.6-3",
        RULE,
        "in CLOSE_RCVD frames are sent, and none is expected",
        "connection_writes_what_it_owes_before_it_answers_a_close",
        "row_37_octets_behind_the_close_are_dropped",
        mutants=(
            Change(
                "        self._flush()\n        self.outbox.drop_held()", "        self.outbox.drop_held()"
            ),
            (
                Change("while not (self.deaf or connection.state is _END):", "while not self.deaf:"),
                Change(
                    "                if connection.state is _END:\n                    return False\n", ""
                ),
            ),
        ),
    ),
    need(
        "2.4.6-4",
        MAY,
        "in CLOSE_SENT the socket is closed for writing",
        gap="not offered: it is closed whole, when the peer has answered",
    ),
    need(
        "2.4.6-5",
        MUST,
        "in DISCARDING all frames are dropped silently until the peer's close",
        "connection_goes_through_discarding_when_it_closes_with_an_error",
        "connection_says_one_error_when_many_frames_are_at_fault",
        mutants=(_NOTHING_IS_DISCARDED, _FAULTS_ARE_TOLD_AGAIN),
    ),
    need(
        "2.4.6-6",
        RULE,
        "in END nothing is written",
        "row_65_closes_that_cross_are_not_answered_twice",
        "connection_tells_the_loss_of_its_transport_once",
    ),
]
