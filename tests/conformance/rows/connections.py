"""2.4 to 2.4.4: how a connection is opened and closed."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, RULE, SHOULD, SHOULD_NOT, Change, need

_FRAME_LIMIT_IGNORED = Change(
    "self.frame_size = min(max_frame_size, PEER_FRAME_CAP)", "self.frame_size = PEER_FRAME_CAP"
)
_CHANNEL_LIMIT_IGNORED = Change(
    "self._remote_max = channel_max\n",
    "self._remote_max = self._max\n",
)
_HANDLE_LIMIT_IGNORED = Change(
    "limit if self.remote is None else min(limit, self.remote.handle_max)", "limit"
)
_CLOSE_WITHOUT_ERROR = Change("encode(Close(error=error))", "encode(Close())")
_CLOSE_ON_CHANNEL_1 = Change("encode_frame(0, encode(Close", "encode_frame(1, encode(Close")
TIMER_IN_ANY_STATE = Change(
    "        if self.state is not ConnectionState.OPENED:\n            return\n        silence =",
    "        silence =",
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
        mutants=(
            Change(
                "        if size > self.frame_size:\n            self.check(",
                "        if False:\n            self.check(",
            ),
            Change(
                "usual = MIN_MAX_FRAME_SIZE if self.strict.open_frame_size else SIZE_BEFORE_OPEN",
                "usual = SIZE_BEFORE_OPEN",
            ),
            Change("    if len(frame) > SIZE_BEFORE_OPEN:", "    if False:"),
        ),
        gap="an open of up to 8,192 octets is written, and taken: peers in the field do so",
    ),
    need(
        "2.4.1-2",
        RULE,
        "channel 0 is the only one until the peer's open was read",
        "one_session_begins_before_the_peers_open_on_channel_0",
        mutant=Change(
            "self._remote_max = 0  # only",
            "self._remote_max = channel_max  # only",
        ),
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
    ),
    need(
        "2.4.2-2",
        RULE,
        "frames that are sent so are such that every peer takes them",
        "frame_over_512_octets_is_held_with_all_that_follows_when_no_open_was_read",
        "one_session_begins_before_the_peers_open_on_channel_0",
        "row_33_held_frame_that_the_peer_does_not_take_closes",
        mutants=(
            Change(
                "        if size > self.frame_size:\n            self.check(",
                "        if False:\n            self.check(",
            ),
            Change(
                "self._remote_max = 0  # only",
                "self._remote_max = channel_max  # only",
            ),
            Change("            if largest > max_frame_size:", "            if False:"),
        ),
        gap="handles above 0 are used before the peer has announced its maximum",
    ),
    need(
        "2.4.3-1",
        MUST,
        "a close is written before the connection is closed, with the reason if there is one",
        "connection_goes_through_close_sent_when_it_closes_first",
        "close_carries_the_error_that_it_is_given",
        "connection_goes_through_discarding_when_it_closes_with_an_error",
        "close_is_on_channel_0_whatever_channels_are_in_use",
        mutants=(
            _CLOSE_WITHOUT_ERROR,
            Change("self.write_buffer.write_frame(encode_frame(0, encode(Close(error=error))))", "pass"),
            Change(
                "self.write_buffer.write_frame(encode_frame(0, encode(Close(error=error))))",
                "self.write_buffer.write_frame(encode_frame(1, encode(Close(error=error))))",
            ),
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
                "        self._close_deadline = self.context.now + self.limits.close_timeout\n        self._drop_sessions()\n",
                "        self._close_deadline = self.context.now + self.limits.close_timeout\n",
            ),
            TIMER_IN_ANY_STATE,
        ),
    ),
    need(
        "2.4.3-3",
        SHOULD,
        "an end that has written its close reads on until the peer's close",
        "connection_reads_on_behind_its_close_until_it_is_answered",
        "connection_goes_through_close_sent_when_it_closes_first",
        mutant=Change(
            "if self.frame_reader.deaf or self.state is ConnectionState.END:",
            "if self.frame_reader.deaf or self.state is ConnectionState.END or self.state is ConnectionState.CLOSE_SENT:",
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
        mutant=Change(
            "isinstance(performative, Close):\n            self._on_close",
            "isinstance(performative, Close) and channel == 0:\n            self._on_close",
        ),
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
        mutant=Change(
            'return None if self.state is ConnectionState.END or self.frame_reader.deaf else b""',
            'return b""',
        ),
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
        mutant=Change("unexpected = self.state is ConnectionState.OPENED", "unexpected = True"),
    ),
]
