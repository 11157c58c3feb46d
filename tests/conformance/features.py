"""The page of features: ours beside those of others, and the tests that show ours."""

from __future__ import annotations

from dataclasses import dataclass

from .rst import find_test, table, title

SYSTEMS = {
    "PC": ("Qpid Proton C and its Python binding", "0.41.0-dev of August 2026", "engine, both ends"),
    "PJ": ("protonj2", "12b0f9b1 of March 2026", "engine and client"),
    "RH": ("rhea", "1a69756 of April 2026", "both ends"),
    "FE": ("fe2o3-amqp", "0.17, 59137a2c of August 2026", "both ends"),
    "GO": ("go-amqp", "26fc7b0 of August 2026", "client"),
    "NL": ("AMQP.Net Lite", "ba49a27 of June 2026", "both ends"),
    "PY": ("the client inside azure-eventhub", "5.15.1", "client"),
    "EC": ("RabbitMQ's amqp10_client", "5b09e556 of August 2026", "client"),
    "RQ": ("RabbitMQ 4", "5b09e556 of August 2026", "broker"),
    "RP": ("rabbitmq-amqp-python-client", "0.6.0, 9dd3cc0 of March 2026", "client, over PC"),
    "AR": ("ActiveMQ Artemis", "6700541d of December 2025", "broker"),
    "MA": ("Microsoft.Azure.Amqp", "b8d2ac0 of June 2026", "both ends"),
    "BJ": ("Qpid Broker-J", "1df338ce of August 2026", "broker"),
}
_MARKS = {"Y": "yes", "P": "part", "N": "no", ".": "", "-": "–"}


@dataclass(frozen=True, slots=True)
class Feature:
    """One row.

    Attributes:
        name: what it is.
        ours: ``Y``, ``P`` or ``N``.
        theirs: a mark for each system of the chapter, in order; ``.`` where nobody looked, ``-`` where it means nothing.
        tests: what shows ours; none where we have nothing.
        note: what is missing of a ``P``.
    """

    name: str
    ours: str
    theirs: str
    tests: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        assert bool(self.tests) is (self.ours != "N"), self.name
        assert bool(self.note) is (self.ours == "P"), self.name


def yes(name: str, theirs: str, *tests: str) -> Feature:
    return Feature(name, "Y", theirs, tests)


def part(name: str, theirs: str, note: str, *tests: str) -> Feature:
    return Feature(name, "P", theirs, tests, note)


def no(name: str, theirs: str) -> Feature:
    return Feature(name, "N", theirs)


CHAPTERS: dict[str, tuple[str, list[Feature]]] = {
    "Types": (
        "PC PJ RH FE GO NL PY EC/RQ AR MA BJ",
        [
            yes("every primitive type", "Y Y P Y P Y P P . P .", "decode_reads_every_encoding"),
            yes(
                "decimals, without loss",
                "P Y P P N P P P . P .",
                "decimal_reads_every_pattern_and_writes_an_equal_number",
            ),
            yes(
                "arrays, of described values too",
                "Y Y P Y P Y Y P . Y Y",
                "row_28_descriptors_of_an_array_count_as_levels",
                "array_equals_the_plain_list_and_shows_its_type",
            ),
            yes(
                "performatives with symbolic descriptors",
                "N Y Y Y N Y N Y . Y .",
                "registry_takes_every_encoding_of_a_numeric_descriptor",
                "error_field_takes_a_symbolic_descriptor",
            ),
            yes(
                "performatives that are the empty list",
                "Y Y Y Y Y Y N Y . Y .",
                "registry_takes_every_form_of_a_described_list",
            ),
            yes(
                "multiple: one, an array, or null",
                "Y Y Y Y Y . . Y . . .",
                "multiple_field_reads_null_one_and_many_as_a_tuple",
            ),
            yes(
                "bounds on what hostile octets cost",
                "Y Y N P Y . P Y . . Y",
                "row_25_count_beyond_the_octets_is_refused_before_anything_is_made",
                "row_27_performative_has_1024_nodes",
                "row_28_nesting_is_refused_when_it_is_deeper_than_32",
            ),
            yes(
                "classes of one's own as AMQP types",
                "N N N Y N Y N N N Y N",
                "object_is_sent_as_declared_and_comes_back",
            ),
        ],
    ),
    "Connections and sessions": (
        "PC PJ RH FE GO NL PY EC RQ AR MA BJ",
        [
            yes(
                "pipelined open",
                "Y P P P N . Y N . Y . Y",
                "session_takes_a_whole_pipelined_conversation_and_grants_and_receives_in_one_exchange",
            ),
            yes(
                "channel-max enforced",
                "Y N N P P P P . Y Y Y Y",
                "row_22_channel_over_our_channel_max_closes",
            ),
            yes("handle-max enforced", "Y Y N N P Y N . Y . Y .", "row_39_handle_over_our_handle_max_closes"),
            yes(
                "idle time-outs both ways",
                "Y Y P Y P Y P Y Y Y Y Y",
                "idle_connections_keep_each_other_alive",
                "row_36_silent_peer_is_told_so_and_given_up_later",
            ),
            yes(
                "max-frame-size enforced",
                "Y Y N Y Y Y N . Y . Y .",
                "row_20_frame_over_our_size_closes_on_its_first_four_octets",
            ),
            yes(
                "deliveries of many transfers, both ways",
                "Y Y Y Y Y Y P Y Y Y Y Y",
                "messages_cross_whole_when_frames_and_windows_are_small",
            ),
            yes(
                "our incoming window enforced",
                "Y N N N N N N N Y . Y Y",
                "row_44_transfer_beyond_the_window_ends_the_session",
            ),
            yes(
                "the peer's incoming window respected",
                "Y Y P Y Y Y P Y Y Y Y Y",
                "session_sends_no_more_transfers_than_the_window_of_the_peer_has_room_for",
            ),
            part(
                "the size of the incoming window as an option",
                "Y Y P Y N P Y N Y N Y N",
                "in frames, not in octets",
                "session_opens_its_window_again_when_half_of_it_is_used",
            ),
            yes(
                "serial numbers tested where they wrap",
                ". Y N P P Y N Y Y . Y Y",
                "delivery_count_and_delivery_id_wrap_and_credit_stays_right",
                "distance_undoes_add_over_the_wrap",
            ),
        ],
    ),
    "Links, deliveries, messages": (
        "PC PJ RH FE GO NL PY EC RQ AR MA BJ",
        [
            yes(
                "credit, kept up or by hand",
                "Y Y Y Y Y Y P Y Y Y Y Y",
                "credit_is_topped_up_at_half",
                "grant_adds_to_the_credit",
            ),
            yes(
                "deliveries without credit refused",
                "N N N Y N Y N . . . Y Y",
                "row_46_delivery_without_credit_detaches_with_transfer_limit_exceeded",
            ),
            yes("drain, at both ends", "Y Y P Y P P N Y Y Y Y Y", "drain_both_ways_between_two_of_ours"),
            yes(
                "echo answered",
                "N P N Y Y N N . Y . . Y",
                "row_61_echoes_and_drains_are_answered_by_one_flow_for_a_link_however_many_came",
            ),
            yes(
                "snd-settle-mode, all three",
                "Y Y Y Y Y P Y Y Y Y Y Y",
                "send_settles_as_the_mode_of_the_link_says",
            ),
            yes(
                "rcv-settle-mode second",
                "Y Y Y Y Y N P N N N Y Y",
                "receiver_that_settles_second_waits_for_the_senders_word",
                "exactly_once_is_settled_by_both",
            ),
            yes(
                "links resumed, with unsettled maps",
                "N N N P N N N N N N Y Y",
                "sender_takes_up_its_link_on_another_connection",
                "amqp10/engine/test_exactly_once:exactly_once_survives_a_cut_before_any_octet",
            ),
            yes(
                "links stolen", "N N N N N P N N N N Y Y", "row_41_attach_of_an_attached_name_steals_the_link"
            ),
            yes(
                "aborted deliveries dropped",
                "Y Y N Y Y N N N N Y Y Y",
                "row_51_aborted_delivery_is_dropped_and_settled_without_a_word",
            ),
            yes(
                "aborting a delivery",
                "Y Y N P N N N N - - P -",
                "leaving_by_an_exception_aborts_and_the_link_goes_on",
            ),
            yes(
                "dispositions in ranges",
                "Y P Y Y P N P Y Y Y Y Y",
                "outcomes_of_consecutive_deliveries_are_one_disposition",
            ),
            yes(
                "every section of a message",
                "Y Y Y Y Y Y Y Y Y Y Y Y",
                "sections_are_found_whichever_are_present",
            ),
            yes(
                "sections out of order refused",
                "N . N . . . N N Y . . P",
                "sections_out_of_order_are_refused_when_read",
            ),
            yes(
                "large deliveries streamed, both ways",
                "Y Y N N N N N N N Y P .",
                "amqp10/peer/test_stream_sender:stream_arrives_as_it_was_sent",
                "sender_waits_for_the_reader_and_other_links_do_not",
            ),
            yes(
                "dynamic nodes",
                "Y Y Y Y Y P P Y P Y . Y",
                "dynamic_source_is_a_queue_for_any_connection_until_its_link_goes",
            ),
            yes(
                "lifetime policies",
                "N Y N Y Y N P N P P Y Y",
                "dynamic_node_lives_as_long_as_its_lifetime_policy_says",
            ),
            yes(
                "filters: selectors, SQL, properties, subjects, no-local",
                "P P P P P P P P Y P P Y",
                "evaluator_of_jms_equals_a_naive_one",
                "evaluator_of_sql_equals_a_naive_one",
                "filter_is_applied_and_echoed",
            ),
            yes(
                "distribution-mode",
                "Y Y P Y Y P N N N Y P Y",
                "queue_shows_all_messages_in_order_and_keeps_them_when_copied",
            ),
            yes(
                "the anonymous relay",
                "Y Y Y P P P N Y Y Y P Y",
                "anonymous_terminus_routes_each_message_by_its_to",
            ),
            yes(
                "message formats of one's own",
                "Y Y Y Y Y Y Y N P P . Y",
                "message_keeps_its_format",
                "queue_passes_on_other_message_formats_untouched",
            ),
        ],
    ),
    "Transactions": (
        "PC PJ RH FE GO NL PY EC RQ AR MA BJ",
        [
            yes(
                "controller",
                "Y Y N Y N Y N N - - Y -",
                "message_becomes_visible_when_its_transaction_commits",
            ),
            yes(
                "coordinator",
                "P Y N Y N P N N N Y . Y",
                "coordinator_tells_what_it_can_do",
                "proton_aborts_and_commits_in_our_container",
            ),
            yes(
                "transactional acquisition",
                "N N N N N N N N N N . P",
                "acquired_messages_go_back_when_the_transaction_is_rolled_back",
            ),
        ],
    ),
    "Security and transports": (
        "PC PJ RH FE GO NL PY EC RQ AR MA BJ",
        [
            yes(
                "SASL client: ANONYMOUS, PLAIN, EXTERNAL",
                "Y Y Y Y Y Y Y Y - Y Y -",
                "exchange_ends_with_an_identity",
            ),
            yes("SASL client: SCRAM", "P Y N Y N N N N - P N -", "scram_says_what_the_rfc_says"),
            no("SASL client: CRAM-MD5, GSSAPI", "P P N N N N N N - N N -"),
            yes(
                "SASL client: XOAUTH2, OAUTHBEARER",
                "N Y P N Y N N N - N N -",
                "oauthbearer_spells_a_token_as_rfc_7628_does",
                "xoauth2_spells_a_token_as_its_servers_want_it",
            ),
            yes(
                "SASL server: ANONYMOUS, PLAIN, EXTERNAL",
                "P P Y Y N Y N N Y Y Y Y",
                "external_server_lets_in_whom_the_mapper_names",
                "plain_server_verifies_the_right_password",
            ),
            yes(
                "SASL server: SCRAM",
                "P N N Y N N N N N Y N Y",
                "scram_server_verifies_the_right_password_and_no_other",
            ),
            part(
                "SASL server: OAuth, GSSAPI",
                "P N N N N P N N P Y N Y",
                "no GSSAPI; rhea gets in by XOAUTH2 (``make interop``), OAUTHBEARER was not tried with other clients yet",
                "oauthbearer_server_lets_in_whom_the_application_names",
                "token_that_ends_ends_the_connection",
            ),
            yes("TLS first", "Y Y Y Y Y Y Y Y Y Y Y Y", "messages_cross_tls"),
            yes(
                "TLS by protocol id 2, dialling",
                "N N N Y Y N N N - - Y -",
                "messages_cross_tls",
                "row_03_answer_that_is_less_than_tls_ends_the_dialling",
            ),
            yes(
                "TLS by protocol id 2, listening",
                "Y N N N - N - - N . Y .",
                "messages_cross_tls",
                "row_04_octets_before_the_switch_to_tls_never_cross_it",
            ),
            yes("WebSockets, both ends", "N Y Y Y N Y Y Y P Y Y Y", "messages_cross_a_websocket"),
            yes(
                "claims-based security: put-token",
                "N N N Y N P Y N P N Y N",
                "put_token_says_what_the_token_is_for_and_when_it_ends",
                "nothing_is_permitted_without_a_token_and_all_that_it_says_with_one",
            ),
            yes(
                "any stream in place of a socket",
                "Y Y Y Y Y Y N N - - Y -",
                "tls_goes_over_any_stream",
                "connection_works_over_a_bad_network",
            ),
        ],
    ),
    "Patterns, operations, comfort": (
        "PC PJ RH FE GO NL PY EC/RQ RP AR MA BJ",
        [
            yes("a container of nodes", "Y P Y Y N Y N N N - Y -", "serve_reaches_the_nodes_over_tcp"),
            yes(
                "a scripted peer to test against",
                "N Y N N N N N P N P P P",
                "scripted_peer_is_dialled_and_takes_a_message",
                "scripted_peer_dials_a_container_and_sends_and_receives",
            ),
            yes(
                "a transport in memory",
                "N P N N P P N N N P N N",
                "open_container_has_the_queues_that_were_asked_for",
                "memory_stream_pair_keeps_the_rules_of_a_half_closeable_stream",
            ),
            yes(
                "delayed redelivery: by the queue, and as the consumer asks",
                "- - - - - - - Y . . . .",
                "delay_grows_with_each_failed_attempt_up_to_its_maximum",
                "consumer_says_how_long_to_wait",
                "message_waits_on_after_a_restart",
            ),
            yes("requests and replies", "Y N P P N Y Y Y P Y Y -", "request_returns_the_reply"),
            yes(
                "$management",
                "N N N Y N N Y Y Y Y P Y",
                "management_creates_a_queue_with_rules_and_reads_its_live_figures",
            ),
            yes(
                "links in pairs (LINK_PAIR_V1_0)",
                "N N N N N N N Y Y N N N",
                "pair_of_links_is_told_that_it_is_one",
                "queue_is_declared_shown_purged_and_deleted",
            ),
            yes("connections that reconnect", "Y Y Y N N N Y N Y - P -", "sends_wait_until_the_peer_is_back"),
            yes(
                "redirects, of links and connections",
                "P Y N N N N Y N N Y N N",
                "redirect_tells_where_to",
                "connection_that_comes_back_follows_a_redirect_at_any_time",
            ),
            yes(
                "back-pressure",
                "P Y P Y Y Y P P P - Y -",
                "sender_waits_for_credit",
                "row_63_sender_waits_for_room_when_the_peer_does_not_read",
            ),
            yes(
                "cancelling loses nothing",
                "- - - Y P N N - - - P -",
                "cancelled_receive_loses_nothing_whenever_it_happens",
                "call_leaves_both_ends_consistent_when_it_is_cancelled_at_any_checkpoint",
            ),
            yes("frames traced", "Y Y Y Y P Y Y P P Y Y Y", "frames_are_logged_when_the_logger_is_set_to_it"),
            yes(
                "a capture drawn: lanes, deliveries, credit, errors",
                ". . . . . . . . . . . .",
                "delivery_is_a_thread_through_its_frames",
                "hostile_capture_adds_no_element_to_the_page",
                "filters_show_what_belongs_together",
            ),
            yes(
                "a proxy that shows frames as they pass",
                ". . . . . . . . . . . .",
                "octets_and_half_closes_pass_as_they_are",
                "frames_are_shown_as_they_pass",
            ),
            yes(
                "OpenTelemetry",
                "P N N N N N N N N N N N",
                "consumer_and_its_settlement_are_spans_of_the_trace_of_the_sender",
            ),
            no("metrics", "N N N N N N N Y N Y N Y"),
            yes(
                "a command line",
                "P P N N N P N N N Y P Y",
                "send_sends_each_line_of_stdin_without_its_newline",
                "trace_of_a_capture_says_who_talks_and_draws_it",
            ),
            part(
                "capabilities",
                "P Y N N Y N N Y N Y N Y",
                "offered, asked for and shown, without constants for them",
                "open_says_who_we_are",
                "container_tells_the_capabilities_of_a_node_to_those_who_ask",
            ),
            yes("addresses as URLs", "Y Y Y Y Y Y Y Y Y Y Y -", "url_reads_what_it_prints_for_a_host"),
            yes(
                "types for checkers",
                "Y - - - - - P - P - - -",
                "package_says_that_it_is_typed",
                "public_method_is_typed",
            ),
            yes(
                "an engine without a socket",
                "Y Y P N N N N N N - N N",
                "pure_module_knows_no_clock_nor_socket_nor_trio",
            ),
            yes(
                "fuzzing, properties",
                "Y N N N Y N N Y N N N N",
                "engine_survives_any_value_in_any_field",
                "target_raises_nothing_else_when_octets_are_broken",
            ),
            yes(
                "installed without a compiler",
                "N Y Y Y Y Y Y Y N Y Y Y",
                "module_depends_on_trio_alone_but_for_its_extra",
            ),
            yes(
                "rules by name, strict or tolerant one by one",
                ". . . . . . . . . . . .",
                "rule_ends_what_it_says_by_its_name_when_it_is_broken",
                "row_44_transfers_beyond_the_window_are_taken_when_tolerant_as_many_again",
            ),
        ],
    ),
}

_HEAD = """
.. This page is made by ``python -m tests.conformance``: change the tables, not the page.

This page compares the features of this library with those of others. Our column is true of this version, and each "yes" has a test
(at the end of the page). The other columns come from the sources of the versions below, and may be out of date. An empty cell
means unknown; a dash means not applicable. If ours is "part", the first column names the missing part in brackets.

"""


def _shown(feature: Feature) -> str:
    tests = "; ".join(f"``{name}`` ({file})" for file, name in map(find_test, feature.tests))
    return f"{feature.name}: {tests}"


def _name(feature: Feature) -> str:
    return f"{feature.name} ({feature.note})" if feature.note else feature.name


def _head(key: str) -> str:
    """Return the heading of a column: letters that show the names of their systems under the mouse."""
    return f":abbr:`{key} ({', '.join(SYSTEMS[each][0] for each in key.split('/'))})`"


def page() -> str:
    text = title("Features") + _HEAD
    text += table(
        ("", "what", "version read", "role"),
        [(key, *about) for key, about in SYSTEMS.items()],
        (6, 40, 34, 20),
    )
    for name, (systems, features) in CHAPTERS.items():
        keys = systems.split()
        rows = [
            (_name(f), f"**{_MARKS[f.ours]}**", *(_MARKS[mark] for mark in f.theirs.split()))
            for f in features
        ]
        widths = (36, 6, *(5 for _ in keys))
        text += f"\n{title(name, '-')}\n" + table(("", "ours", *map(_head, keys)), rows, widths)
    text += f'\n{title("Tests", "-")}\nThe tests that show each "yes" and "part" of ours, by their files below ``tests/``.\n'
    for name, (_, features) in CHAPTERS.items():
        text += f"\n{title(name, '~')}\n" + "".join(f"- {_shown(f)}\n" for f in features if f.tests)
    return text
