"""2.8: settle modes, handles, numbers, locales, errors, and the constants of the transport."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, RULE, SHOULD, SHOULD_NOT, Change, need

_REDIRECTED_HOSTNAME_FORGOTTEN = Change(
    "return DialTarget(replace(place.url, host=host, port=port), error.hostname or host)",
    "return DialTarget(replace(place.url, host=host, port=port), host)",
)

REQUIREMENTS = [
    need(
        "2.8.2-1",
        RULE,
        "a sender sends its deliveries unsettled, settled, or each as it likes, according to its settle mode",
        "send_settles_as_the_mode_of_the_link_says",
        "mixed_sender_settles_delivery_by_delivery",
    ),
    need(
        "2.8.3-1",
        RULE,
        "a receiver settles first, or after the sender has, according to its settle mode",
        "both_ends_forget_as_their_modes_say",
        "receiver_that_settles_second_waits_for_the_senders_word",
    ),
    need(
        "2.8.4-1",
        MAY,
        "the two ends have different handles for a link, and use them again when it is over",
        "session_carries_any_number_of_links_of_both_directions",
        "session_uses_a_handle_and_a_name_again_when_the_link_is_over",
        mutants=(
            Change("if self._by_handle.pop(link.handle, None) is not None:", "if False:"),
            Change(
                "session.by_remote_handle[attach.handle] = link",
                "session.by_remote_handle[link.handle] = link",
            ),
        ),
    ),
    need(
        "2.8.7-1",
        RULE,
        "a delivery-tag has at most 32 octets",
        "send_raises_and_changes_nothing_when_a_rule_is_broken",
        "[delivery-tag]",
    ),
    need(
        "2.8.10-1",
        RULE,
        "sequence numbers are serial numbers of 32 bits (RFC 1982)",
        "distance_undoes_add_over_the_wrap",
        "distance_is_congruent_to_the_difference_and_in_range",
        "delivery_count_and_delivery_id_wrap_and_credit_stays_right",
        "ids_of_the_peer_begin_anywhere_and_wrap",
    ),
    need(
        "2.8.11-1",
        RULE,
        "a message-format is three octets of a format and one of its version",
        "send_says_tag_format_and_state_when_they_are_given",
        "annotations_are_taken_when_strict_where_nothing_is_known_against_them",
        gap="messages of any format are carried as they are; only format 0 is read",
    ),
    need(
        "2.8.12-1",
        SHOULD,
        "the language tag en-US is understood",
        "locale_is_the_first_that_the_reader_wants_and_the_writer_can",
        mutant=Change('DEFAULT_LOCALE: Final = "en-US"', 'DEFAULT_LOCALE: Final = "en_US"'),
    ),
    need(
        "2.8.13-1",
        RULE,
        "the keys of a map of fields are symbols, and none is null",
        "symbol_keyed_map_sends_str_keys_as_symbols",
        "[field-keys]",
        gap="written so; keys of other types are accepted from a peer unless ``Strict.field_keys`` is true",
    ),
    need(
        "2.8.14-1",
        RULE,
        "an error has a condition",
        "error_without_a_condition_is_a_wrong_field",
    ),
    need(
        "2.8.15-1",
        RULE,
        "each condition of 2.8.15 to 2.8.18 is used for its definition",
        "conditions_are_those_of_the_standard",
        "rule_ends_what_it_says_by_its_name_when_it_is_broken",
        "cancelled_service_closes_every_connection_with_forced",
        "link_error_follows_the_condition",
    ),
    need(
        "2.8.16-1",
        SHOULD,
        "a connection that is redirected is dialled again where info leads",
        "dial_follows_to_the_end_when_asked_to",
        "connection_that_comes_back_follows_a_redirect_at_any_time",
        mutant=Change(
            "host = error.network_host or error.hostname", "host = place.url.host if place.url else None"
        ),
        gap="only when the program asks for it, with follow_redirects",
    ),
    need(
        "2.8.16-2",
        SHOULD,
        "the hostname in info is named in the open, and in SASL and TLS",
        "dial_names_the_hostname_of_the_redirect_there",
        "hostname_of_a_redirect_is_named_in_open_sasl_and_tls",
        mutant=_REDIRECTED_HOSTNAME_FORGOTTEN,
    ),
    need(
        "2.8.18-1",
        MAY,
        "the redirect of a link has hostname, network-host, port and address in its info",
        "redirect_is_for_a_link_where_the_url_has_an_address",
        "error_carries_where_to_go_when_a_link_is_refused_with_a_redirect",
        "link_is_opened_where_the_redirect_leads",
        mutants=(
            Change('Symbol("network-host"): to.host,', ""),
            Change('info[Symbol("address")] = to.address', "pass"),
        ),
    ),
    need(
        "2.8.18-2",
        SHOULD,
        "the hostname in it is named in the open, and in SASL and TLS",
        "hostname_of_a_redirect_is_named_in_open_sasl_and_tls",
        mutant=_REDIRECTED_HOSTNAME_FORGOTTEN,
    ),
    need(
        "2.8.19-1",
        RULE,
        "the port is 5672, and 5671 with TLS",
        "url_is_read",
        mutants=(
            Change('"amqp": PORT,', '"amqp": SECURE_PORT,'),
            Change('"amqps": SECURE_PORT,', '"amqps": PORT,'),
        ),
    ),
    need(
        "2.8.19-2",
        SHOULD_NOT,
        "a listener on 5671 waits for a protocol header before TLS",
        "port_for_tls_or_websockets_in_it_refuses_other_octets",
        mutant=Change(
            '        elif None not in nexts:\n            raise RemoteProtocolError(\n                f"a first octet of',
            '        elif False:\n            raise RemoteProtocolError(\n                f"a first octet of',
        ),
    ),
    need(
        "2.8.19-3",
        MUST,
        "the largest frame that the ends agree on has at least 512 octets",
        "row_32_max_frame_size_under_512_closes",
        "dialling_refuses_what_cannot_be",
        "[min-max-frame-size]",
        "open_with_the_least_frame_size_is_taken",
        mutants=(
            Change("if performative.max_frame_size < MIN_MAX_FRAME_SIZE:", "if False:"),
            Change("if size < MIN_MAX_FRAME_SIZE:", "if False:"),
            Change(
                "if performative.max_frame_size < MIN_MAX_FRAME_SIZE:",
                "if performative.max_frame_size <= MIN_MAX_FRAME_SIZE:",
            ),
        ),
    ),
]
