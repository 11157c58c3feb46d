"""2.4.5: the idle time-outs of a connection."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RULE, SHOULD, Change, need

from .connections import TIMER_IN_ANY_STATE

REQUIREMENTS = [
    need(
        "2.4.5-1",
        SHOULD,
        "a peer that is silent for longer than the time-out is sent a close with an error that states this",
        "row_36_silent_peer_is_told_so_and_given_up_later",
        "[idle]",
        mutant=Change(
            "            self.fail(fault)\n            raise fault\n        self._check_answers(now)",
            "            raise fault\n        self._check_answers(now)",
        ),
    ),
    need(
        "2.4.5-2",
        MAY,
        "and if it does not answer that, the socket is closed",
        "row_36_silent_peer_is_told_so_and_given_up_later",
        mutant=Change('self.abandon(f"no close from the peer within', 'str(f"no close from the peer within'),
    ),
    need(
        "2.4.5-3",
        RULE,
        "the time counts from the last frame that was received",
        "row_36_silent_peer_is_told_so_and_given_up_later",
        "idle_counts_silence_from_the_last_octets",
        mutants=(
            Change("self.context.now = self._idle.last_received = now", "self.context.now = now"),
            Change("silent_at = self.last_received + self._threshold", "silent_at = self._threshold"),
        ),
        gap="from the last octets, whether they complete a frame or not",
    ),
    need(
        "2.4.5-4",
        RULE,
        "each end has a time-out of its own",
        "connection_keeps_both_alive_when_both_want_it",
        "idle_looks_at_the_earlier_of_its_two_deadlines",
        mutants=(
            Change(
                "return silent_at if self._heartbeat_at is None else min(silent_at, self._heartbeat_at)",
                "return self._heartbeat_at",
            ),
            Change("        if milliseconds:", "        if False:"),
        ),
    ),
    need(
        "2.4.5-5",
        SHOULD,
        "half of the real time-out is announced",
        "idle_announces_half_of_its_threshold_as_a_uint",
        "open_says_who_we_are",
        mutant=Change(
            "int(min(self._threshold * 500, 0xFFFFFFFF))", "int(min(self._threshold * 1000, 0xFFFFFFFF))"
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
        "tcp_keep_alive_is_on_at_both_ends",
        mutant=Change("socket.SO_KEEPALIVE, 1", "socket.SO_KEEPALIVE, 0"),
    ),
    need(
        "2.4.5-8",
        MAY,
        "an empty frame is sent when there is nothing else to send",
        "connection_keeps_alive_what_the_peer_would_give_up",
        "idle_calls_for_a_heartbeat_when_nothing_was_written_in_a_quarter",
        mutants=(
            Change("            if due:\n                self.write_buffer.keep_alive()", "            pass"),
            Change("        return not wrote", "        return False"),
        ),
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
            TIMER_IN_ANY_STATE,
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
                TIMER_IN_ANY_STATE,
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
        mutant=TIMER_IN_ANY_STATE,
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
        "an end that finds that it was silent for longer than the peer's time-out closes with an error that states this",
        "connection_that_stood_still_for_longer_than_the_peer_waits_closes_with_an_error",
        "idle_finds_silence_of_its_own_when_a_look_comes_much_too_late",
        mutant=Change("silence >= 8 * self._quarter else None", "False else None"),
        gap="twice what the peer announced counts as its threshold; found only where nothing else was written first",
    ),
]
