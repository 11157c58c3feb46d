"""The page of AMQP/Fast: each state, each command and what the document says of it, with the test that shows it.

The tables of states and of expected commands are those of the product; the lines are those of the text of RFC 006, 0.8a2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.states import CHANNEL, CONNECTION, EXPECTED, HANDLE, When
from trio_amqp10.core.endpoint_role import EndpointRole

from . import amqp_fast_mutants
from .figures import counted, numbered
from .rst import ROOT, find_test, table, title

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from enum import Enum

    from trio_amqp10.amqp_fast.engine.states import Step
    from trio_amqp10.amqp_fast.wire.commands import Command

_HEAD = """
.. This page is made by ``python -m tests.conformance``: change the tables, not the page.

RFC 006, "The AMQP/Fast Wire-Level Protocol", version 0.8a2 of March 2005, with the reply codes of RFC 011. It is historical, and there
is no other implementation to test against: the tests compare the code with the document and with vectors computed from it, and connect
its two ends. Line numbers refer to the text of the document. :doc:`../decisions/0035-amqp-fast` decides the questions that the document
leaves open.

"""

_COMMANDS = """
Each row gives the time at which an end expects a command; tests show the reaction at other times (3.2.10, 3.3.9, 3.5.17). A command
that is never expected closes the connection with 503.

"""

_STATES = """
The table has the state after each step. Any other step is an error of the end that takes it.

"""

_STATEMENTS = """
The statements of the document that are not in the lists above.
"""

_NEVER = "command_that_is_never_expected_closes_the_connection_with_503"

COMMANDS: Final[Mapping[EndpointRole, Mapping[type[Command], tuple[int, str]]]] = {
    EndpointRole.CLIENT: {
        spec.ConnectionChallenge: (937, "challenges_go_on_until_the_server_is_content"),
        spec.ConnectionResponse: (939, _NEVER),
        spec.ConnectionTune: (941, "tune_lowers_what_the_client_writes_and_reads"),
        spec.ConnectionPing: (943, "ping_is_answered_when_asked_and_the_answer_is_not"),
        spec.ConnectionOpen: (945, _NEVER),
        spec.ConnectionReply: (947, "client_refuses_a_reply_for_another_tag"),
        spec.ConnectionClose: (949, "close_of_the_peer_is_answered_and_nothing_follows"),
        spec.ChannelOpen: (1191, _NEVER),
        spec.ChannelAck: (1193, _NEVER),
        spec.ChannelCommit: (1195, _NEVER),
        spec.ChannelRollback: (1197, _NEVER),
        spec.ChannelReply: (1199, "channel_reply_is_for_a_command_that_waits"),
        spec.ChannelClose: (1201, "channel_that_the_server_closes_raises_for_its_handles"),
        spec.HandleOpen: (1862, _NEVER),
        spec.HandleSend: (1864, _NEVER),
        spec.HandleConsume: (1866, _NEVER),
        spec.HandleCancel: (1868, _NEVER),
        spec.HandleFlow: (1870, _NEVER),
        spec.HandleUnget: (1872, _NEVER),
        spec.HandleQuery: (1874, _NEVER),
        spec.HandleBrowse: (1876, _NEVER),
        spec.HandleCreated: (1878, "client_takes_answers_to_what_it_asked"),
        spec.HandleNotify: (1880, "client_closes_the_connection_when_a_command_answers_nothing"),
        spec.HandleIndex: (1882, "client_takes_answers_to_what_it_asked"),
        spec.HandleReply: (1884, "client_takes_answers_to_what_it_asked"),
        spec.HandlePrepare: (1886, "notify_is_prepared_too_and_has_the_recovery_flag"),
        spec.HandleReady: (1888, "large_message_is_prepared_and_what_follows_waits"),
        spec.HandleClose: (1890, "handle_that_is_refused_raises_and_the_channel_lives"),
    },
    EndpointRole.SERVER: {
        spec.ConnectionChallenge: (955, _NEVER),
        spec.ConnectionResponse: (957, "response_that_is_not_understood_is_closed_after_a_pause"),
        spec.ConnectionTune: (959, "client_may_tune_several_times"),
        spec.ConnectionPing: (961, "ping_is_answered_when_asked_and_the_answer_is_not"),
        spec.ConnectionOpen: (963, "connection_opens_in_the_order_of_the_document"),
        spec.ConnectionReply: (965, _NEVER),
        spec.ConnectionClose: (967, "close_of_the_client_is_answered"),
        spec.ChannelOpen: (1205, "channel_open_is_answered_with_close_when_it_cannot_be"),
        spec.ChannelAck: (1207, "messages_come_up_to_the_prefetch_and_go_on_with_an_ack"),
        spec.ChannelCommit: (1209, "commit_places_what_was_sent_and_settles_what_was_received"),
        spec.ChannelRollback: (1213, "rollback_drops_what_was_sent_and_gives_back_what_was_received"),
        spec.ChannelReply: (1215, _NEVER),
        spec.ChannelClose: (1217, "end_of_a_channel_rolls_its_transaction_back"),
        spec.HandleOpen: (1894, "handle_that_is_open_is_closed_when_it_is_opened_again"),
        spec.HandleSend: (1896, "message_that_is_sent_reaches_the_queue_and_is_confirmed_when_asked"),
        spec.HandleConsume: (1898, "messages_come_up_to_the_prefetch_and_go_on_with_an_ack"),
        spec.HandleCancel: (
            1900,
            "durable_subscription_gathers_while_its_client_is_away_until_it_is_cancelled",
        ),
        spec.HandleFlow: (1902, "flow_stops_and_restarts_messages"),
        spec.HandleUnget: (1904, "unget_gives_a_message_to_another_client"),
        spec.HandleQuery: (1906, "browse_shows_what_the_index_names_and_takes_nothing"),
        spec.HandleBrowse: (1908, "browse_of_a_message_that_is_gone_is_answered_with_310"),
        spec.HandleCreated: (1910, _NEVER),
        spec.HandleNotify: (1912, _NEVER),
        spec.HandleIndex: (1914, _NEVER),
        spec.HandleReply: (1916, _NEVER),
        spec.HandlePrepare: (1918, "message_that_was_prepared_and_not_sent_is_kept"),
        spec.HandleReady: (1920, "notify_is_prepared_too_and_has_the_recovery_flag"),
        spec.HandleClose: (1922, "close_of_a_handle_arrives_in_order_and_nothing_may_follow"),
    },
}
"""For each command that an end may receive: the line of the document's list, and the test."""

STATES: Final[Mapping[str, tuple[Mapping[Enum, Mapping[Step, Enum]], str, Mapping[str, str]]]] = {
    "Connection": (
        CONNECTION,  # type: ignore[dict-item]
        "642-677, 700, 743-757, 790-806, 862-866, 912-931",
        {
            "AWAIT_INITIATION": "server_speaks_version_1_to_clients_of_later_ones",
            "AWAIT_CHALLENGE": "challenges_go_on_until_the_server_is_content",
            "AWAIT_RESPONSE": "login_that_fails_ends_after_a_pause_without_a_word",
            "AWAIT_TUNE": "challenges_go_on_until_the_server_is_content",
            "AWAIT_OPEN": "client_may_tune_several_times",
            "OPENING": "server_reads_nothing_while_a_decision_is_due",
            "OPEN": "close_of_the_peer_is_answered_and_nothing_follows",
            "REFUSING": "server_ends_another_protocol_after_a_pause_without_a_word",
            "CLOSE_SENT": "command_after_our_close_is_answered_with_another_close",
            "CLOSED": "end_of_the_transport_is_a_loss_unless_both_closed",
        },
    ),
    "Channel": (
        CHANNEL,  # type: ignore[dict-item]
        "1014-1042, 1159-1181",
        {
            "CLOSED": "channel_open_is_confirmed_when_asked",
            "OPEN": "close_of_a_channel_arrives_behind_all_else_and_is_answered_by_the_application",
            "CLOSE_SENT": "commands_after_our_close_of_a_channel_are_answered_with_another",
            "CLOSE_RECEIVED": "channel_is_free_again_when_both_have_closed_it",
        },
    ),
    "Handle": (
        HANDLE,  # type: ignore[dict-item]
        "1360-1402, 1834-1856",
        {
            "CLOSED": "handle_takes_the_commands_of_its_service",
            "OPEN": "close_of_a_handle_arrives_in_order_and_nothing_may_follow",
            "CLOSE_SENT": "handle_closed_without_an_error_still_takes_what_comes",
            "CLOSE_RECEIVED": "handle_is_free_when_its_close_is_answered",
        },
    ),
}
"""Of each table: the lines of the document, and the test for what leads out of each state."""

STATEMENTS: Final = (
    ("2.2.4", "231-239", "sizes of two octets, or of six, count what is behind them", "frame_has_the_shortest_size"),
    ("2.2.5", "265-279", "large messages of one channel do not starve others", "channels_take_turns_and_the_connection_goes_first"),
    ("2.2.8.2", "346-356", "channel, then handle", "channel_and_handle_open_without_a_word_unless_confirmed"),
    ("2.2.8.3", "357-364", "send", "message_that_is_sent_reaches_the_queue_and_is_confirmed_when_asked"),
    ("2.2.8.4", "366-374", "consume, pause, restart", "flow_stops_and_restarts_messages"),
    ("2.2.8.5", "376-391", "one ACK for all up to a number", "ack_settles_all_up_to_its_number_which_need_not_exist"),
    ("2.2.8.6", "392-402", "errors close a handle or a channel, by a handshake", "error_closes_the_channel_which_may_be_opened_again"),
    ("2.2.8.7", "404-416", "browse", "browse_shows_what_the_index_names_and_takes_nothing"),
    ("2.2.8.8", "418-438", "confirmations come behind what the command had for effects", "confirmation_of_a_durable_message_waits_for_the_store_and_others_behind_it"),
    ("2.2.9", "440-444", "commands of the connection go first", "channels_take_turns_and_the_connection_goes_first"),
    ("2.2.12", "458-468, 826, 841", "heartbeats are voluntary", "peer_is_given_up_after_two_intervals_only_once_it_has_pinged"),
    ("3.1.1", "478-610", "each command has its number and its fields", "vector_is_read_as_the_second_reader_does_and_written_back"),
    ("3.1.1", "612-616", "sizes, strings and bits that cannot be", "bad_octets_get_the_code_at_the_level"),
    ("3.2.2", "642-677", "the protocol id, and the versions", "server_speaks_version_1_to_clients_of_later_ones"),
    ("3.2.3", "700, 759, 806", "4096 octets until the connection is tuned", "negotiation_has_commands_of_4096_octets_at_most"),
    ("3.2.3.1", "702-739", "field tables", "table_is_read_as_it_was_written"),
    ("3.2.3.1", "741", "the first of two fields of one name", "table_has_the_first_of_two_fields_of_one_name"),
    ("3.2.4.1", "761-769", "the mechanism NONE", "client_that_need_not_log_in_is_anonymous"),
    ("3.2.4.2", "771-788", "the mechanism PLAIN", "client_logs_in_by_plain"),
    ("3.2.5", "804, 820, 837", "a client lowers values and raises none", "server_refuses_a_tune_that_raises_a_value_and_names_it"),
    ("3.2.5.1", "822-828", "bounds of channels, handles and transactions", "channels_and_handles_have_a_number_at_most"),
    ("3.2.5.1", "828", "the bound of a transaction", "transaction_has_a_number_of_messages_at_most"),
    ("3.2.5.2", "843-859", "dictionaries", "headers_have_short_names_on_the_wire_if_dictionaries_are_on"),
    ("3.2.6", "876", "virtual paths", "virtual_path_that_there_is_not_is_refused"),
    ("3.2.6", "878", "a client name is active once", "client_name_is_active_once_at_a_time"),
    ("3.2.9", "926-931", "who closed answers each command with another close", "command_after_our_close_is_answered_with_another_close"),
    ("3.2.12", "977-979", "a pause before a hostile connection is ended", "server_ends_another_protocol_after_a_pause_without_a_word"),
    ("3.3.2.2", "1050-1070", "restartable channels", "transfer_that_broke_off_goes_on_over_another_connection"),
    ("3.3.2.2", "1052-1054", "the sender continues in another session, after it has reconnected by itself", "large_message_goes_on_where_it_broke_off"),
    ("3.3.2.2", "1054, 1810", "and so does the server, for a client that has reconnected", "large_message_comes_on_where_it_broke_off"),
    ("3.3.3", "1087-1089", "messages are numbered by channel", "messages_of_all_handles_of_a_channel_are_numbered_together"),
    ("3.3.3", "1091", "no ACK for peer services", "ack_with_peer_services_alone_closes_the_channel"),
    ("3.3.4", "1110-1114", "commit", "commit_places_what_was_sent_and_settles_what_was_received"),
    ("3.3.5", "1135-1137", "rollback", "rollback_drops_what_was_sent_and_gives_back_what_was_received"),
    ("3.3.7", "1176-1181", "who closed answers each command with another close", "commands_after_our_close_of_a_channel_are_answered_with_another"),
    ("3.4.2", "1231-1233", "fragments of one message at a time on a channel", "message_that_cannot_be_is_refused_at_the_level"),
    ("3.4.3", "1235-1265", "fragments come behind commands", "message_arrives_whole_in_fragments_of_the_size_that_was_agreed"),
    ("3.4.4", "1267-1302", "the head of a message", "head_of_a_message_is_read_as_the_second_reader_does_and_written_back"),
    ("3.5.2.1", "1404-1414", "service types", "destination_of_another_service_is_not_found"),
    ("3.5.2", "1384-1392", "access of a handle, and what each service takes", "handle_is_closed_when_its_service_does_not_take_a_command"),
    ("3.5.2.2", "1416-1426", "temporary destinations go with the channel", "temporary_destination_goes_with_its_channel"),
    ("3.5.2.2", "1420-1426", "and are their client's alone", "temporary_queue_is_its_clients_alone"),
    ("3.5.2.3", "1440-1468", "names are put together", "name_of_a_destination_is_that_of_open_and_that_of_send"),
    ("3.5.2.3", "1442, 1548", "a prefix is all destinations below it, later ones too", "prefix_consumes_from_what_is_added_and_goes_on_without_what_is_deleted"),
    ("3.5.2.3", "1584", "and is cancelled as one", "durable_subscription_of_a_prefix_is_cancelled_as_one"),
    ("3.5.2.3", "1446-1452", "an empty name is every destination", "empty_name_sends_to_every_queue_and_no_topic"),
    ("3.5.3", "1495", "out-of-band transfers are not there", "channel_open_is_answered_with_close_when_it_cannot_be"),
    ("3.5.3.1", "1507-1521", "streams", "stream_arrives_piece_by_piece_until_the_handle_is_closed"),
    ("3.5.4", "1542", "prefetch", "messages_come_up_to_the_prefetch_and_go_on_with_an_ack"),
    ("3.5.4", "1544", "no-local", "no_local_leaves_out_what_the_connection_sent_itself"),
    ("3.5.4", "1546", "unreliable", "unreliable_messages_are_gone_once_they_are_sent"),
    ("3.5.4", "1550, 1558-1562", "durable subscriptions", "durable_subscription_keeps_its_selector_across_a_restart"),
    ("3.5.4", "1554-1556", "selectors", "selector_passes_what_it_names"),
    ("3.5.7", "1632-1634", "UNGET before the ACK that covers it", "unget_gives_one_message_back_before_the_ack"),
    ("3.5.9", "1684", "a message that is gone", "browse_of_a_message_that_is_gone_is_answered_with_310"),
    ("3.5.12", "1758-1764", "lists of numbers", "message_list_is_that_of_the_document"),
    ("3.5.12", "1764", "lists that are too long", "message_list_names_its_highest_number_when_there_are_more"),
    ("3.5.13", "1786-1790", "a message is known by its head; its hash", "prepared_message_is_refused_when_its_hash_is_wrong"),
    ("3.5.14", "1806-1812", "how much is there; too large", "prepare_that_cannot_be_is_refused_at_the_level"),
    ("3.5.16", "1851-1856", "who closed a handle goes on processing", "handle_closed_without_an_error_still_takes_what_comes"),
)  # fmt: skip
"""Section, lines, what is said, and the test that shows it."""

_FOLDERS = (
    "amqp_fast/wire",
    "amqp_fast/engine",
    "amqp_fast/conversion",
    "amqp_fast/client",
    "amqp_fast/server",
)


def test_of(name: str) -> tuple[str, str]:
    """The file of a test, and its name; other protocols may have one of the same name."""
    files = [
        str(path.relative_to(ROOT / "tests").with_suffix(""))
        for folder in _FOLDERS
        for path in sorted((ROOT / "tests" / folder).glob("test_*.py"))
        if f"def test_{name}(" in path.read_text()
    ]
    assert len(files) == 1, (name, files)
    return find_test(f"{files[0]}:{name}")


def _reference(name: str) -> str:
    file, found = test_of(name)
    return f"{file.removesuffix('.py')}:{found.removeprefix('test_')}"


REQUIREMENTS: Final = numbered(
    "fast",
    [(section, said, _reference(test)) for section, _, said, test in STATEMENTS],
    amqp_fast_mutants.MUTANTS,
)
"""The statements as rows, with their mutants; their numbers are those of no other page."""


def _shown(name: str) -> str:
    file, found = test_of(name)
    return f"``{file}``: ``{found}``"


def _commands() -> Iterator[tuple[str, ...]]:
    for role, rules in EXPECTED.items():
        for command, (line, test) in COMMANDS[role].items():
            rule = rules[command]
            otherwise = "" if rule.when is When.ALWAYS else f"{rule.code.value}, {rule.level.name.lower()}"
            yield (
                command.plan.name,
                role.value,
                rule.when.value,
                rule.reaction,
                otherwise,
                str(line),
                _shown(test),
            )


def _states() -> Iterator[tuple[str, ...]]:
    for name, (states, lines, tests) in STATES.items():
        for state, steps in states.items():
            following = ", ".join(f"{step.name.lower()}: {after.name}" for step, after in steps.items())
            yield name, state.name, following or "none", lines, _shown(tests[state.name])


def page() -> str:
    """The page."""
    statements = ((section, lines, said, _shown(test)) for section, lines, said, test in STATEMENTS)
    return (
        title("Conformance: AMQP/Fast")
        + _HEAD
        + title("Commands", "-")
        + _COMMANDS
        + table(
            ("command", "received by", "expected", "answer", "otherwise", "line", "test"),
            _commands(),
            (16, 8, 16, 16, 12, 6, 26),
        )
        + "\n"
        + title("States", "-")
        + _STATES
        + table(("of", "state", "steps", "lines", "test"), _states(), (8, 14, 34, 18, 26))
        + "\n"
        + title("Statements", "-")
        + _STATEMENTS
        + counted(REQUIREMENTS)
        + "\n"
        + table(("section", "lines", "statement", "test"), statements, (8, 14, 38, 40))
    )
