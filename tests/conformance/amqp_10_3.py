"""The page of AMQ Protocol 10.3: each method, each state and what the class reference says, with the test that shows it.

The methods and the states are those of the product; the lines are those of the text of the class reference.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp091.engine.states import ChannelState, ConnectionState
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.engine.states import CHANNEL, CONNECTION

from . import amqp_10_3_mutants
from .figures import counted
from .requirement import RULE, Requirement
from .rst import ROOT, find_test, table, title

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from enum import Enum

_ENGINE: Final = "amqp_10_3/engine/test_profile"
_SERVER: Final = "amqp_10_3/server/test_"
_ALL: Final = "amqp_10_3/wire/test_methods:method_is_as_the_lists_of_the_class_reference_say"
"""The test of a method that has no test of its own."""

_HEAD = """
.. This page is made by ``python -m tests.conformance``: change the tables, not the page.

The class reference of AMQ Protocol 10.3, of 2006. The protocol is historical, and there is no other implementation to test against: the tests compare the code
with the document and with vectors from two independent encoders, and connect its two ends. Line numbers refer to the text of the document.
:doc:`../decisions/0036-amqp-10-3` decides the questions that the document leaves open, such as the octets of frames and most arguments.

"""

_METHODS_TEXT = """
The sender of each method, and the method that it answers, as in the lists of the document, with the line of the entry.

"""

_STATES_TEXT = """
The table has the state after each step. Any other step of the peer closes the connection, with 503, or with 504 after it was opened.

"""

METHODS: Final[Mapping[str, str]] = {
    "connection.start": f"{_ENGINE}:client_closes_when_the_server_proposes_another_version",
    "connection.start-ok": f"{_SERVER}protocol:user_logs_in_and_a_wrong_password_ends_the_connection",
    "connection.secure": f"{_ENGINE}:challenges_go_on_until_the_login_is_decided",
    "connection.secure-ok": f"{_ENGINE}:challenges_go_on_until_the_login_is_decided",
    "connection.open": f"{_SERVER}protocol:unknown_virtual_host_is_refused_with_530",
    "connection.open-ok": f"{_ENGINE}:client_and_server_agree",
    "connection.redirect": f"{_ENGINE}:client_is_redirected_and_both_are_done",
    "connection.close": f"{_ENGINE}:507_is_read_as_530",
    "channel.open": f"{_ENGINE}:server_sees_the_window_that_a_channel_was_opened_with",
    "channel.flow": f"{_ENGINE}:flow_stops_contents_of_all_classes",
    "channel.alert": f"{_ENGINE}:alert_is_an_arrival_and_no_error",
    "channel.close": f"{_ENGINE}:507_of_a_close_that_crosses_ours_is_read_as_530",
    "access.request": f"{_SERVER}tickets:realm_that_is_not_there_is_refused",
    "access.request-ok": f"{_SERVER}tickets:ticket_permits_what_it_was_asked_for",
    "exchange.declare": f"{_SERVER}declaring:what_cannot_be_is_refused",
    "exchange.delete": f"{_SERVER}declaring:delete_obeys_its_conditions",
    "queue.declare": f"{_SERVER}declaring:bits_of_what_is_there_are_ignored",
    "queue.bind": f"{_SERVER}declaring:queue_without_a_name_gets_one_and_is_the_one_meant_by_no_name",
    "queue.purge": f"{_SERVER}declaring:purge_leaves_what_is_out",
    "queue.delete": f"{_SERVER}declaring:delete_obeys_its_conditions",
    "basic.consume": f"{_SERVER}outlets:window_holds_back_what_does_not_fit",
    "basic.publish": f"{_SERVER}publishing:unroutable_message_is_returned_if_it_is_mandatory",
    "basic.return": f"{_SERVER}publishing:immediate_message_needs_a_consumer_that_is_ready",
    "basic.deliver": f"{_ENGINE}:deliveries_have_tags_as_in_0_9_1_and_streams_need_no_settling",
    "basic.get": f"{_SERVER}connection:message_goes_through_a_queue",
    "basic.get-ok": f"{_ENGINE}:delivery_that_is_given_up_needs_no_settling",
    "basic.ack": f"{_ENGINE}:tag_0_with_multiple_acknowledges_all_that_is_out",
    "basic.reject": f"{_SERVER}outlets:message_that_is_rejected_comes_to_another_channel_and_dies_at_the_fifth_failure",
    "file.consume": f"{_SERVER}files:files_come_one_at_a_time_and_wait_for_their_window",
    "file.open": f"{_SERVER}files:file_that_another_channel_stages_is_refused_with_405",
    "file.open-ok": f"{_SERVER}files:file_is_resumed_by_the_client_of_the_same_name",
    "file.stage": f"{_SERVER}files:file_that_cannot_be_staged_is_refused",
    "file.publish": f"{_SERVER}files:file_is_staged_published_and_delivered",
    "file.return": f"{_SERVER}files:mandatory_file_is_returned",
    "file.deliver": f"{_SERVER}files:identifier_of_a_delivery_is_the_same_after_a_loss",
    "stream.consume": f"{_SERVER}streams:stream_keeps_to_its_rate",
    "stream.publish": f"{_SERVER}streams:stream_is_delivered_without_acknowledgements",
    "stream.return": f"{_SERVER}streams:stream_returns_what_is_mandatory",
    "stream.deliver": f"{_SERVER}streams:stream_drops_the_least_urgent_above_its_window",
    "tx.commit": f"{_SERVER}publishing:transaction_counts_at_its_commit_and_not_after_a_rollback",
    "tx.rollback": f"{_SERVER}publishing:transaction_counts_at_its_commit_and_not_after_a_rollback",
    "dtx.select": f"{_SERVER}branch:distributed_transaction_without_a_coordinator_is_not_implemented",
    "dtx.start": f"{_SERVER}branch:start_has_its_time",
    "tunnel.request": f"{_SERVER}channel:tunnel_is_the_programs",
    "test.integer": "amqp_10_3/engine/test_self_test:operation_is_answered_by_either_end",
    "test.string": "amqp_10_3/engine/test_self_test:operation_is_answered_by_either_end",
    "test.table": "amqp_10_3/engine/test_self_test:table_is_answered",
    "test.content": "amqp_10_3/engine/test_self_test:content_is_answered_with_its_checksum_and_itself",
    "test.content-ok": "amqp_10_3/engine/test_self_test:checksum_of_hello_is_that_of_the_vector",
    "cluster.hello": f"{_ENGINE}:methods_of_the_cluster_are_events_on_channel_0",
    "cluster.status": f"{_ENGINE}:methods_of_the_cluster_are_events_on_channel_0",
    "cluster.bind": f"{_SERVER}cluster:what_fits_is_relayed_as_a_publish_in_a_tunnel",
}
"""The test of each method; of the others, that of all methods."""

_C = ConnectionState
_N = ChannelState
_AGREE: Final = f"{_ENGINE}:client_and_server_agree"

STATES: Final[Mapping[Enum, tuple[str, str]]] = {
    _C.AWAIT_HEADER: ("284", f"{_ENGINE}:client_of_another_version_gets_our_header"),
    _C.AWAIT_START: ("285, 331-335", f"{_ENGINE}:client_closes_when_the_server_proposes_another_version"),
    _C.AWAIT_START_OK: ("285", _AGREE),
    _C.AWAIT_TUNE: ("286-287", _AGREE),
    _C.AWAIT_SECURE_OK: ("291", f"{_ENGINE}:challenges_go_on_until_the_login_is_decided"),
    _C.AWAIT_TUNE_OK: ("287", _AGREE),
    _C.AWAIT_OPEN: ("288", _AGREE),
    _C.AWAIT_OPEN_OK: ("288, 412-423", f"{_ENGINE}:client_is_redirected_and_both_are_done"),
    _C.OPEN: ("292-294", f"{_ENGINE}:redirect_has_its_time"),
    _C.CLOSE_SENT: ("437", "amqp_10_3/wire/test_frames:trace_and_heartbeat_are_dropped_in_all_states"),
    _C.CLOSED: ("446-449", f"{_ENGINE}:507_is_read_as_530"),
    _N.CLOSED: ("478", f"{_ENGINE}:server_sees_the_window_that_a_channel_was_opened_with"),
    _N.OPENING: ("478, 515", _AGREE),
    _N.OPEN: ("479-484", f"{_ENGINE}:alert_is_an_arrival_and_no_error"),
    _N.CLOSE_SENT: ("582", f"{_ENGINE}:507_of_a_close_that_crosses_ours_is_read_as_530"),
}

STATEMENTS: Final = (
    ("516-518", "nothing is sent ahead beyond the window of the channel", f"{_SERVER}outlets:window_of_the_channel_is_that_of_all_its_consumers"),
    ("561-564", "errors of methods without answers are reported by channel.alert", f"{_SERVER}publishing:publish_that_a_full_queue_refuses_is_told_by_an_alert"),
    ("642-643", "a ticket lasts as long as its channel", f"{_SERVER}tickets:ticket_ends_with_its_channel"),
    ("650-652", "a ticket of another channel ends the connection", f"{_SERVER}tickets:ticket_of_another_channel_ends_the_connection_with_530"),
    ("685, 855, 972", "what needs a ticket", f"{_SERVER}tickets:without_a_ticket_it_is_refused_with_403"),
    ("781-782", "an exclusive queue is its connection's", f"{_SERVER}declaring:exclusive_queue_is_its_connections"),
    ("692-696", "an auto-delete exchange stays for a while", f"{_SERVER}declaring:exchange_of_auto_delete_goes_some_time_after_its_last_binding"),
    ("784-790", "an auto-delete queue stays for a while", f"{_SERVER}declaring:queue_of_auto_delete_goes_after_some_time_of_disuse"),
    ("870-877", "what is pending in a queue that is deleted becomes dead letters", f"{_SERVER}declaring:what_is_pending_in_a_queue_that_is_deleted_becomes_dead_letters"),
    ("973, 1181, 1368", "a tag that is used ends the connection with 530", f"{_SERVER}consuming:tag_that_is_used_ends_the_connection_with_530"),
    ("974", "a message of any size goes to a client that has none", f"{_SERVER}outlets:window_holds_back_what_does_not_fit"),
    ("976, 1186, 1374", "exclusive access that cannot be: 403, and 405 in file and stream", f"{_SERVER}consuming:exclusive_consumer_that_cannot_be_is_refused"),
    ("986-988", "a cancel leaves what was delivered, and nothing is lost", f"{_SERVER}outlets:message_that_waits_for_a_window_is_not_lost_when_its_consumer_is_cancelled"),
    ("1093", "a body frame without payload gives up a content", f"{_ENGINE}:delivery_that_is_given_up_needs_no_settling"),
    ("1096", "a rejected message does not come to its channel again", f"{_SERVER}outlets:message_that_is_rejected_comes_to_another_channel_and_dies_at_the_fifth_failure"),
    ("1454", "tx.select goes before commit", f"{_SERVER}publishing:commit_without_select_is_refused"),
    ("1718-1763", "an exchange here is bound to an exchange of the peer", f"{_SERVER}cluster:peer_binds_many_times_and_gets_a_message_once"),
    ("1508-1509", "a coordinator ends what dtx.start begins", f"{_SERVER}branch:coordinator_ends_a_branch"),
)  # fmt: skip

REQUIREMENTS: Final = [
    Requirement(f"10.3:{lines}", RULE, said, (test,), amqp_10_3_mutants.MUTANTS.get(lines, ()))
    for lines, said, test in STATEMENTS
]
"""The statements as rows, with their mutants; their numbers are those of no other page."""


def _shown(reference: str) -> str:
    file, found = find_test(reference)
    return f"``{file}``: ``{found}``"


def _methods() -> Iterator[tuple[str, ...]]:
    path = ROOT / "tests/amqp_10_3/wire/class_reference.json"
    lines = {row["name"]: row["lines"] for row in json.loads(path.read_text())}
    for plan in spec.METHODS:
        answers = ", ".join(each.plan.name for each in plan.answers) or "none"
        entry = ", ".join(map(str, lines[plan.name]))
        yield plan.name, plan.sender.value, answers, entry, _shown(METHODS.get(plan.name, _ALL))


def _states() -> Iterator[tuple[str, ...]]:
    for name, states in (("connection", CONNECTION), ("channel", CHANNEL)):
        for state, steps in states.items():
            following = ", ".join(f"{step.name.lower()}: {after.name}" for step, after in steps.items())
            lines, test = STATES[state]
            yield name, state.name, following or "none", lines, _shown(test)


def page() -> str:
    """The page."""
    statements = ((lines, said, _shown(test)) for lines, said, test in STATEMENTS)
    return (
        title("Conformance: AMQ Protocol 10.3")
        + _HEAD
        + title("Methods", "-")
        + _METHODS_TEXT
        + table(("method", "sent by", "answers", "lines", "test"), _methods(), (16, 12, 16, 10, 46))
        + "\n"
        + title("States", "-")
        + _STATES_TEXT
        + table(("of", "state", "steps", "lines", "test"), _states(), (8, 14, 34, 14, 30))
        + "\n"
        + title("Statements", "-")
        + "\nThe statements of the document that are not in the lists above.\n"
        + counted(REQUIREMENTS)
        + "\n"
        + table(("lines", "statement", "test"), statements, (14, 40, 46))
    )
