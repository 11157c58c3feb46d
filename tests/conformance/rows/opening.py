"""2.7.1 and 2.7.2: what open and begin say."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RULE, SHOULD, Change, need

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
_OTHER_DEFAULT_LOCALE = Change('DEFAULT_LOCALE: Final = "en-US"', 'DEFAULT_LOCALE: Final = "en-GB"')

REQUIREMENTS = [
    need(
        "2.7.1-1",
        MUST,
        "the first frame in either direction is an open",
        "connection_goes_through_hdr_exch_and_open_rcvd_when_the_peer_is_first",
        "row_21_anything_before_the_open_is_a_framing_error",
        "[open-first]",
        mutants=(
            Change('self.write_buffer.write_frame(self._open)\n        self._open = b""', "pass"),
            Change(
                'raise rules.OPEN_FIRST.broken(f"{type(performative).__name__.lower()} before open")',
                "return",
            ),
        ),
    ),
    need(
        "2.7.1-2",
        RULE,
        "an open names a container",
        "connection_closes_when_an_open_names_no_container",
        "open_says_who_we_are",
        mutants=(
            Change(
                "            container_id=container_id,\n            hostname=hostname,\n            max_frame_size",
                "            container_id='x',\n            hostname=hostname,\n            max_frame_size",
            ),
            Change(
                "    container_id: string\n    hostname: string",
                '    container_id: string = ""\n    hostname: string',
            ),
        ),
    ),
    need(
        "2.7.1-3",
        SHOULD,
        "a peer that names no host gets the default that is configured",
        "default_serves_those_who_ask_for_another_host_or_none",
        mutant=Change(
            '.get((connection.remote.hostname or "").lower(), self._default)',
            '.get((connection.remote.hostname or "").lower())',
        ),
    ),
    need(
        "2.7.1-4",
        SHOULD,
        "a host that TLS or SASL has named is named again in the open, or none is",
        "dialling_names_one_host_in_tls_sasl_and_open",
        "dialling_names_no_host_when_it_knows_none",
        mutants=(
            Change(
                "engine = self._engine(self._host_of(place))",
                'engine = self._engine("elsewhere")',
            ),
        ),
        gap="a program may choose different ones by hostname and server_hostname",
    ),
    need(
        "2.7.1-5",
        MAY,
        "the host has been named before, by SASL or by the server name indication of TLS",
        "name_in_sasl_counts_where_there_is_no_tls",
        "sni_is_told_beside_a_callback_that_chooses_certificates",
    ),
    need(
        "2.7.1-6",
        RULE,
        "an open without max-frame-size sets no limit",
        "peer_that_announces_no_frame_size_takes_any",
    ),
    need(
        "2.7.1-7",
        MUST_NOT,
        "a frame is sent that is larger than the peer takes",
        "row_33_frame_that_the_peer_does_not_take_is_refused_here",
        "message_in_parts_keeps_to_window_and_frame_size",
        mutant=_FRAME_LIMIT_IGNORED,
    ),
    need(
        "2.7.1-8",
        MUST,
        "a frame that is larger than announced closes the connection with framing-error",
        "row_20_frame_over_our_size_closes_on_its_first_four_octets",
        "[max-frame-size]",
        mutant=Change("    if size > max_size:", "    if False:"),
    ),
    need(
        "2.7.1-9",
        MUST,
        "frames of up to 512 octets are taken",
        "frame_of_512_octets_is_taken_before_and_after_the_open",
        "row_32_max_frame_size_under_512_closes",
        "dialling_refuses_what_cannot_be",
        "[min-max-frame-size]",
        "open_with_the_least_frame_size_is_taken",
        mutants=(
            (
                Change("    if size > max_size:", "    if size >= max_size:"),
                Change("if doff == 2 and 8 < size <= limit and", "if doff == 2 and 8 < size < limit and"),
            ),
            Change("if performative.max_frame_size < MIN_MAX_FRAME_SIZE:", "if False:"),
            Change("if size < MIN_MAX_FRAME_SIZE:", "if False:"),
            Change(
                "if performative.max_frame_size < MIN_MAX_FRAME_SIZE:",
                "if performative.max_frame_size <= MIN_MAX_FRAME_SIZE:",
            ),
        ),
    ),
    need(
        "2.7.1-10",
        RULE,
        "there are at most channel-max plus one sessions at once",
        "connection_begins_no_more_sessions_than_the_smaller_channel_max_has_room_for",
        "row_59_session_more_than_the_peers_own_channel_max_closes",
        mutant=Change(
            "self._remote_max = channel_max\n",
            "self._remote_max = self._max\n",
        ),
    ),
    need(
        "2.7.1-11",
        MUST_NOT,
        "a channel above the peer's channel-max is used",
        "connection_begins_no_more_sessions_than_the_smaller_channel_max_has_room_for",
        mutant=_CHANNEL_LIMIT_IGNORED,
    ),
    need(
        "2.7.1-12",
        MUST,
        "a frame on a channel above ours closes the connection with framing-error",
        "row_22_channel_over_our_channel_max_closes",
        "row_22_any_frame_on_a_channel_over_our_channel_max_closes",
        "[channel-max]",
        mutant=Change("        if channel > self.limits.channel_max:", "        if False:"),
    ),
    need(
        "2.7.1-13",
        RULE,
        "an idle-time-out of 0 is none",
        "idle_time_out_of_zero_is_none",
        "idle_has_no_deadline_when_neither_end_minds_silence",
        mutants=(
            Change(
                "        if milliseconds:\n            self._quarter = milliseconds / 4000",
                "        if milliseconds is not None:\n            self._quarter = max(milliseconds, 4000) / 4000",
            ),
            Change("timeout / 1000 if timeout else None", "timeout / 1000 if timeout is not None else None"),
        ),
    ),
    need(
        "2.7.1-14",
        SHOULD,
        "an idle-time-out that cannot be kept closes the connection with an error that gives the reason",
        "row_35_idle_time_out_that_is_too_short_closes",
        "[idle-time-out]",
        mutant=Change("if timeout and timeout < self.limits.min_idle_timeout * 1000:", "if False:"),
    ),
    need(
        "2.7.1-15",
        MAY,
        "a time-out is applied that the peer does not know",
        gap="not offered: what is applied to silence is announced",
    ),
    need(
        "2.7.1-16",
        MUST,
        "texts in the locale en-US are supported",
        "locale_is_the_first_that_the_reader_wants_and_the_writer_can",
        "locales_are_told_and_chosen_at_both_ends",
        mutant=_OTHER_DEFAULT_LOCALE,
    ),
    need(
        "2.7.1-17",
        RULE,
        "an end that announces no outgoing-locales writes en-US only",
        "locale_is_the_first_that_the_reader_wants_and_the_writer_can",
        mutant=Change(
            "known = {tag.lower(): str(tag) for tag in (DEFAULT_LOCALE, *written)}",
            "known = {tag.lower(): str(tag) for tag in wanted}",
        ),
    ),
    need(
        "2.7.1-18",
        RULE,
        "texts are in the first of the reader's incoming-locales that the writer has, otherwise in en-US",
        "locale_is_the_first_that_the_reader_wants_and_the_writer_can",
        "locales_are_told_and_chosen_at_both_ends",
        mutant=Change(
            "for tag in wanted if tag.lower() in known), DEFAULT_LOCALE)", "for tag in ()), DEFAULT_LOCALE)"
        ),
        gap="texts of the library are English; the program learns the locale for its own",
    ),
    need(
        "2.7.1-19",
        MAY,
        "the peer's outgoing-locales show which of our incoming-locales it has chosen",
        "locales_are_told_and_chosen_at_both_ends",
        mutant=Change(
            "choose_locale(self.engine.local.incoming_locales, self.remote.outgoing_locales)",
            "choose_locale(self.engine.local.incoming_locales, ())",
        ),
    ),
    need(
        "2.7.1-20",
        MUST,
        "a connection whose peer does not offer a capability that is needed is closed",
        "client_closes_when_the_peer_does_not_offer_to_see_to_it",
        "vet_closes_a_connection_whose_peer_lacks_a_capability_that_is_needed",
        mutants=(
            Change("await self._close_without(SOLE, connection, stack)", "pass"),
            Change("        self.engine.close(error)\n", ""),
        ),
        gap="sole-connection-for-container, where a program asks for it, is the one that is needed here; of others the "
        "program decides",
    ),
    need(
        "2.7.1-21",
        MAY,
        "a capability is used that was desired and is offered",
        "sender_without_an_address_is_attached_when_the_peer_offers_the_relay",
        "connection_of_another_container_is_not_in_the_way",
    ),
    need(
        "2.7.1-22",
        MUST_NOT,
        "a capability is used that was not desired",
        "sender_without_an_address_is_refused_when_our_open_did_not_desire_the_relay",
        "sender_without_an_address_is_attached_when_the_peer_offers_the_relay",
        mutants=(
            Change("if ANONYMOUS_RELAY not in connection.engine.local.desired_capabilities:", "if False:"),
            Change("*sole, ANONYMOUS_RELAY)", "*sole)"),
        ),
    ),
    need(
        "2.7.2-1",
        MUST_NOT,
        "a begin that is not an answer has a remote-channel",
        "session_goes_through_begin_sent_and_end_sent_when_it_is_first",
        mutant=Change("remote_channel=self.remote_channel,", "remote_channel=self.remote_channel or 0,"),
    ),
    need(
        "2.7.2-2",
        MUST,
        "the remote-channel of an answer is the channel of the begin that it answers",
        "session_goes_through_begin_rcvd_when_the_peer_is_first",
        "row_38_begin_that_answers_nothing_closes",
        "row_38_begin_that_answers_a_second_time_closes",
        "[remote-channel]",
        mutants=(
            Change("remote_channel=self.remote_channel,", "remote_channel=self.remote_channel and 0,"),
            (
                Change(
                    "answered = self.ours.get(begin.remote_channel)",
                    "answered = self.ours.get(begin.remote_channel) or self._add()",
                ),
                Change(
                    "if answered is None or answered.state is SessionState.UNMAPPED or answered.remote is not None:",
                    "if False:",
                ),
            ),
        ),
    ),
    need(
        "2.7.2-3",
        RULE,
        "a begin has next-outgoing-id, incoming-window and outgoing-window",
        "begin_that_leaves_out_where_its_session_stands_closes",
    ),
    need(
        "2.7.2-4",
        MUST_NOT,
        "an attach has a handle above the peer's handle-max",
        "session_attaches_no_more_links_than_the_smaller_handle_max_has_room_for",
        mutant=_HANDLE_LIMIT_IGNORED,
    ),
    need(
        "2.7.2-5",
        MUST,
        "a handle above ours closes the connection with framing-error",
        "row_39_handle_over_our_handle_max_closes",
        "[handle-max]",
        mutant=Change("if attach.handle > context.limits.handle_max:", "if False:"),
    ),
    need(
        "2.7.2-6",
        MUST_NOT,
        "a capability of sessions is used that was not desired",
        gap="nothing to show: no capability of sessions is known here, and none is desired or used",
    ),
]
