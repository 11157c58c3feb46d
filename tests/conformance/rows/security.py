"""Part 5: security layers."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, RULE, SHOULD, Change, need

REQUIREMENTS = [
    need(
        "5.1-1",
        RULE,
        "a layer may run inside another: SASL inside TLS, and AMQP inside both",
        "messages_cross_tls",
        "one_port_takes_them_all_when_it_is_to_detect",
    ),
    need(
        "5.1-2",
        MUST,
        "an end that ends a layer shuts its outgoing stream first",
        "pump_has_the_peer_read_the_last_words_after_a_fault",
        mutant=Change(
            "                    await self._stream.send_eof()\n                except Exception:\n                    return",
            "                    pass\n                except Exception:\n                    return",
        ),
    ),
    need(
        "5.1-3",
        MUST,
        "and reads the incoming stream to its end",
        "pump_has_the_peer_read_the_last_words_after_a_fault",
        mutant=Change(
            "            while self._reading:\n                await self._progress.wait()\n\n", "\n"
        ),
        gap="for a second at most",
    ),
    need(
        "5.2-1",
        MUST,
        "a tunnel by protocol id 2 begins with its header from either side",
        "row_04_octets_before_the_switch_to_tls_never_cross_it",
        mutant=Change(
            'TLS_HEADER: Final = b"AMQP\\x02\\x01\\x00\\x00"',
            'TLS_HEADER: Final = b"AMQP\\x01\\x01\\x00\\x00"',
        ),
    ),
    need(
        "5.2-2",
        RULE,
        "the headers of the tunnel are exchanged as all protocol headers are, and another exchange follows inside",
        "messages_cross_tls",
        "row_02_weaker_header_is_shown_that_of_tls",
    ),
    need(
        "5.2-3",
        RULE,
        "the client of TLS is the peer that dialled",
        "row_04_octets_before_the_switch_to_tls_never_cross_it",
        "messages_cross_tls",
    ),
    need(
        "5.2-4",
        SHOULD,
        "the client names the server that it means (SNI)",
        "certificate_chosen_by_name_is_the_one_that_exchanges_are_bound_to",
        mutant=Change(
            "server_hostname=server_hostname, server_side=server_side",
            "server_hostname='elsewhere.example' if server_hostname else None, server_side=server_side",
        ),
    ),
    need(
        "5.2-5",
        MUST,
        "the client validates the certificate",
        "row_06_certificate_that_does_not_hold_is_refused_by_both_sides_in_words",
        "row_06_context_that_is_not_safe_is_refused",
        mutants=(
            Change(
                "    if not insecure and (context.verify_mode is not",
                "    if False and (context.verify_mode is not",
            ),
            Change(
                "    if insecure:\n        context.check_hostname = False",
                "    if True:\n        context.check_hostname = False",
            ),
        ),
    ),
    need(
        "5.2-6",
        MAY,
        "TLS may be shut down one way",
        "tls_is_a_stream_as_trio_has_them",
        "close_is_told_inside_tls",
    ),
    need(
        "5.2.1-1",
        MAY,
        "TLS may come without the header, on a port of its own or on the one that takes all layers",
        "messages_cross_tls",
        "one_port_takes_them_all_when_it_is_to_detect",
    ),
    need(
        "5.3-1",
        MUST,
        "a SASL layer begins with its header, protocol id 3, from either side",
        "stack_authenticates_and_reads_on_when_all_comes_in_one_read",
        "row_3_downgrade_is_refused_before_any_credentials_leave",
        mutants=(
            Change(
                "            self._out = SASL_HEADER\n            self.sasl = self._accept_sasl()",
                "            self.sasl = self._accept_sasl()",
            ),
            Change(
                "            self.layer = Layer.SASL_HEADER\n            self._out = SASL_HEADER",
                "            self.layer = Layer.SASL_HEADER",
            ),
        ),
    ),
    need(
        "5.3-2",
        RULE,
        "the headers of SASL are exchanged as all protocol headers are",
        "row_1_header_is_awaited_octet_by_octet_while_it_may_be_one",
        "row_2_layer_that_is_not_taken_is_shown_the_header_of_one_that_is",
    ),
    need(
        "5.3.1-1",
        RULE,
        "a SASL frame is of type 1",
        "row_10_layer_refuses_frames_of_the_amqp_type",
        "[sasl-frame]",
    ),
    need(
        "5.3.1-2",
        SHOULD,
        "octets 6 and 7 of a SASL frame are 0, and are ignored",
        "layer_ignores_the_channel_and_the_extended_header",
        "client_writes_the_octets_of_the_standard",
        mutants=(
            Change(
                "            frame_type, _, start, end = frame  # the",
                "            frame_type, channel, start, end = frame\n            assert channel == 0  # the",
            ),
            Change("encode_frame(0, body, SASL_FRAME)", "encode_frame(1, body, SASL_FRAME)"),
        ),
    ),
    need(
        "5.3.1-3",
        SHOULD,
        "the data offset is 2; an extended header is ignored",
        "layer_ignores_the_channel_and_the_extended_header",
        "client_writes_the_octets_of_the_standard",
        mutants=(
            Change(
                "    return frame_type, channel, pos + 4 * doff, pos + size",
                "    return frame_type, channel, pos + 8, pos + size",
            ),
            Change(
                "_HEADER.pack(FRAME_HEADER_SIZE + len(body), 2, frame_type, channel) + body",
                "_HEADER.pack(12 + len(body), 3, frame_type, channel) + b'none' + body",
            ),
        ),
    ),
    need(
        "5.3.1-4",
        RULE,
        "a SASL frame has at most 512 octets",
        "row_8_layer_takes_512_octets_and_no_more_when_strict",
        "row_8_exchanges_fit_the_frame_of_the_standard",
        "[sasl-frame-size]",
        gap="up to 8,192 are taken unless strict: tokens do not fit 512",
    ),
    need(
        "5.3.1-5",
        MUST,
        "a SASL frame holds one performative of SASL and nothing else",
        "row_9_layer_refuses_what_follows_the_performative_in_its_frame",
        mutant=Change(
            "        if end != len(body):\n            raise SASL_FRAME_RULE",
            "        if False:\n            raise SASL_FRAME_RULE",
        ),
    ),
    need(
        "5.3.1-6",
        RULE,
        "an empty SASL frame cannot be recovered from",
        "row_9_layer_refuses_an_empty_frame",
        "row_9_frame_that_does_not_hold_one_performative_aborts",
    ),
    need(
        "5.3.2-1",
        MUST,
        "the server lists its mechanisms",
        "server_offers_its_mechanisms_at_once",
        mutant=Change("        self._send_body(_encode_mechanisms(list(self._mechanisms)))\n", ""),
    ),
    need(
        "5.3.2-2",
        MUST,
        "the client takes one of them",
        "client_chooses_by_its_own_order",
        "row_13_client_names_the_list_when_nothing_in_it_will_do",
        mutant=Change("for mechanism in usable if mechanism.name in offered)", "for mechanism in usable)"),
    ),
    need(
        "5.3.2-3",
        MUST,
        "the peer that dialled is the client of SASL, and the other the server",
        "row_11_performative_of_a_server_aborts",
        "row_11_dialler_aborts_on_what_no_server_may_send_now",
        "[sasl-order]",
        mutant=Change(
            'raise SASL_ORDER.broken(f"{type(performative).__name__} while',
            'SASL_ORDER.broken(f"{type(performative).__name__} while',
        ),
    ),
    need(
        "5.3.3.1-1",
        RULE,
        "the list of mechanisms is not empty",
        "row_13_client_refuses_an_empty_or_null_list",
        "server_needs_something_to_offer",
    ),
    need(
        "5.3.3.1-2",
        SHOULD,
        "a server that asks for no authentication lists ANONYMOUS alone",
        "server_without_users_offers_anonymous_alone",
        mutant=Change(
            "if permitted and (self._users is not None or self._verify is not None):", "if permitted:"
        ),
    ),
    need(
        "5.3.3.1-3",
        RULE,
        "the list is in the server's order of preference",
        "server_offers_its_mechanisms_at_once",
    ),
    need(
        "5.3.3.2-1",
        MUST,
        "a mechanism that the server does not support is refused as a failure to authenticate",
        "row_12_mechanism_that_was_not_offered_is_a_failure",
        "row_12_server_refuses_a_mechanism_that_it_did_not_offer",
        mutant=Change(
            "            self._fail(SaslCode.AUTH)  # the client",
            "            self._fail(SaslCode.SYS)  # the client",
        ),
    ),
    need(
        "5.3.3.2-2",
        MUST,
        "the client takes the most secure mechanism that both have",
        "client_chooses_by_its_own_order",
        "default_mechanisms_where_nobody_reads_along",
        mutants=(
            Change(
                "next((mechanism for mechanism in usable if mechanism.name in offered), None)",
                "next((mechanism for name in offered for mechanism in usable if mechanism.name == name), None)",
            ),
            Change(
                "return (*scram, *external, Plain(username, password)) if secure",
                "return (Plain(username, password), *scram, *external) if secure",
            ),
        ),
    ),
    need(
        "5.3.3.2-3",
        SHOULD,
        "where the client names no host, the server takes one of its own by default",
        "default_serves_those_who_ask_for_another_host_or_none",
        mutant=Change(
            'return self._hosts.get((connection.remote.hostname or "").lower(), self._default)',
            'return self._hosts.get((connection.remote.hostname or "").lower())',
        ),
    ),
    need(
        "5.3.3.2-4",
        SHOULD,
        "the hostname is the one that SNI has, or null",
        "names_that_differ_are_refused_when_they_are_to_be_compared",
        mutant=Change(
            "                mechanisms,\n                hostname=hostname,",
            "                mechanisms,\n                hostname='elsewhere.example',",
        ),
    ),
    need(
        "5.3.3.5-1",
        MUST,
        "after an outcome of ok, protocol headers are exchanged again",
        "stack_authenticates_and_reads_on_when_all_comes_in_one_read",
        "dialler_writes_no_octet_of_amqp_before_the_outcome_is_ok",
        mutants=(
            Change("        rest = sasl.take_rest()\n", "        rest = sasl.take_rest()[8:]\n"),
            Change(
                "        self._out += sasl.data_to_send()\n        self.layer = Layer.AMQP\n",
                "        self._out += sasl.data_to_send()\n        self.layer = Layer.AMQP\n        self.connection.data_to_send()\n",
            ),
        ),
    ),
    need(
        "5.3.3.5-2",
        RULE,
        "additional data come with a success only",
        "server_gives_additional_data_with_the_outcome",
        "server_gives_no_additional_data_when_it_refuses",
    ),
    need(
        "5.3.3.6-1",
        RULE,
        "ok, auth, sys, sys-perm and sys-temp are distinguished",
        "client_raises_by_the_code_of_another_outcome",
        "authentication_error_tells_the_codes_apart",
        "stack_tells_a_system_error_when_the_question_cannot_be_answered",
    ),
]
