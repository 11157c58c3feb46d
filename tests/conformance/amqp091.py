"""The page of AMQP 0-9-1: each rule of the specification and of its methods, and what shows how the product keeps it.

Rules of the specification have its sections, rules of methods the name of the method (of the XML that belongs to it). Where
RabbitMQ, by which clients go, does otherwise than the document, so does this product: such a row says so, and its tests show it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from . import amqp091_mutants
from .figures import counted
from .requirement import KINDS, MAY, MUST, MUST_NOT, SHOULD, Requirement
from .rst import ROOT, find_test, table, title

if TYPE_CHECKING:
    from collections.abc import Sequence

OTHERWISE: Final = "otherwise"
"""The first word of the gap of a row, if the product deviates from the rule, as RabbitMQ does."""

_SERVER, _CLIENT, _PEER = "server", "client", "both"

_FOLDERS: Final = (
    "amqp091/engine",
    "amqp091/wire",
    "amqp091/conversion",
    "amqp091/server",
    "amqp091/client",
    "broker/exchanges",
    "container",
    "broker",
    "broker/nodes",
    "broker/stores",
    "broker/rights",
    "amqp10/server",
)


@cache
def _reference(name: str) -> str:
    """The file and the name of a test; another protocol may have a test of the same name."""
    if ":" in name:
        return name
    for folder in _FOLDERS:
        for path in sorted((ROOT / "tests" / folder).glob("test_*.py")):
            if f"def test_{name}(" in path.read_text():
                return f"{path.relative_to(ROOT / 'tests').with_suffix('')}:{name}"
    raise LookupError(f"no test is called {name!r}")


def _row(number: str, role: str, level: str, text: str, tests: str = "", gap: str = "") -> Requirement:
    references = tuple(map(_reference, tests.split()))
    return Requirement(number, level, text, references, amqp091_mutants.MUTANTS.get(number, ()), gap, role)


_USER: Final = "nothing to show: it binds the program that uses a client"
_EVERY: Final = "bad_octets_close_the_connection_with_the_code_in_every_split_of_two"
_ENGINE: Final = "what_a_client_may_not_say_gets_its_code"
_CHANNEL: Final = "what_a_client_may_not_say_on_a_channel_gets_its_code"
_CODES: Final = "method_is_refused_with_the_code_that_it_has"

_SPECIFICATION: Final = [
    _row("1.4.2-1", _SERVER, MUST_NOT, "a persistent message is lost in a restart of the server", "persistent_message_in_a_durable_queue_outlives_the_container", "where the container has a store"),
    _row("2.2.4-1", _PEER, MUST, "an error before the connection is open closes the socket without a word", "error_before_the_connection_is_open_ends_it_in_silence login_is_refused_in_silence_when_the_client_knows_no_close_of_it", "but for limits, virtual hosts and logins that are refused, to clients that understand a close then, as RabbitMQ"),
    _row("2.2.4-2", _CLIENT, MUST_NOT, "a method is sent before connection.open, beyond those of the handshake", "commands_of_the_other_role_or_another_state_change_nothing handshake_again_is_refused_with_504"),
    _row("2.3.3-1", _PEER, MUST, "who exceeds the agreed limits is disconnected", "server_takes_eight_octets_above_frame_max_and_a_client_none channels_beyond_the_highest_number_end_the_connection"),
    _row("2.3.3-2", _SERVER, MUST, "the limits that the server proposes are in connection.tune", "server_proposes_its_limits limits_of_the_dialect_are_proposed handshake_opens_both_ends_however_the_octets_come"),
    _row("2.3.3-3", _CLIENT, MAY, "the client lowers them", "client_takes_the_lower_of_both_limits client_asks_for_the_lower_limits_and_takes_its_own_where_there_are_none"),
    _row("2.3.7-1", _PEER, MUST, "who closes a channel or a connection does it by close and close-ok", "channel_is_opened_used_closed_and_its_number_used_again close_of_the_peer_is_answered_and_closes_the_channels"),
    _row("2.3.7-2", _PEER, MUST, "a close is answered with close-ok", "close_of_the_peer_is_answered_and_closes_the_channels both_closing_at_once_close_both both_closing_a_channel_at_once_close_it"),
    _row("3.1.1-1", _SERVER, MUST_NOT, "the server changes the body of a message", "properties_and_body_come_out_as_they_went_in content_is_split_by_frame_max_and_put_together"),
    _row("3.1.1-2", _SERVER, MUST_NOT, "it removes or changes what a content header has", "properties_and_body_come_out_as_they_went_in", "except BCC, which no consumer may see, and expiration, which becomes the remaining time"),
    _row("3.1.2-1", _SERVER, MUST, "a connection has one virtual host", "virtual_host_is_a_container_by_its_name virtual_hosts_are_the_containers_of_a_listener handshake_again_is_refused_with_504"),
    _row("3.1.3.1-1", _SERVER, MUST, "there are direct exchanges: amq.direct, and one without a name", "exchanges_are_there_from_the_start message_is_routed_by_exchanges_of_all_kinds"),
    _row("3.1.3.1-2", _SERVER, MUST, "every queue is bound to the one without a name, by its own name", "default_exchange_cannot_be_changed_and_leads_to_every_queue"),
    _row("3.1.3.2-1", _SERVER, MUST, "there are fanout exchanges, and amq.fanout", "exchanges_are_there_from_the_start message_is_routed_by_exchanges_of_all_kinds"),
    _row("3.1.3.3-1", _CLIENT, MUST, "a routing key of a topic exchange is words of letters and digits, between dots", "", "not offered: any octets are a key, as in RabbitMQ"),
    _row("3.1.3.3-2", _SERVER, SHOULD, "there are topic exchanges, and amq.topic", "exchanges_are_there_from_the_start message_is_routed_by_exchanges_of_all_kinds"),
    _row("3.1.3.4-1", _SERVER, SHOULD, "there are headers exchanges, and amq.match", "exchanges_are_there_from_the_start headers_match_as_in_the_model headers_are_compared_by_value"),
    _row("3.1.3.5-1", _SERVER, MAY, "there are system exchanges, whose names begin with amq.", "", "not offered: there are none"),
    _row("3.1.3.6-1", _SERVER, MUST, "types of exchanges of its own have names that begin with x-", "exchange_of_no_known_type_is_refused", "there are none of its own"),
    _row("3.1.4-1", _SERVER, MUST, "a queue without priorities and with one consumer is first in, first out", "consumer_gets_what_is_there_and_what_comes requeued_messages_take_their_old_places"),
    _row("3.1.5-1", _SERVER, MUST, "bindings go with their queue", "queue_that_is_not_used_goes_with_its_bindings"),
    _row("3.1.8-1", _SERVER, MUST, "a message is removed when it is delivered without acknowledgement, or when it is acknowledged", "no_ack_consumer_gets_everything_and_owes_nothing delivery_is_settled_as_the_client_says"),
    _row("3.1.9-1", _SERVER, MAY, "flow control stops what a channel gets", "flow_stops_deliveries flow_stops_publishes_and_deliveries_and_nothing_else"),
    _row("3.1.10-1", _PEER, MUST, "names that begin with amq. are standard ones", "queue_gets_a_name_when_the_client_has_none reserved_names_can_be_declared_only_when_they_are_there method_is_refused_with_the_code_that_it_has"),
    _row("3.2.1-1", _SERVER, SHOULD, "minima are exceeded generously", "direct_publish_costs_the_same_with_ten_thousand_bindings"),
    _row("3.2.1-2", _CLIENT, SHOULD, "the sender of a synchronous request waits for its answer", "channel_gives_answers_to_the_calls_that_asked answers_are_matched_with_requests_first_in_first_out"),
    _row("4.2.2-1", _CLIENT, MUST, "a connection begins with the protocol header", "greeting_is_what_a_client_begins_with"),
    _row("4.2.2-2", _SERVER, MUST, "another header gets ours, and the end", "other_header_gets_ours_and_the_end"),
    _row("4.2.2-3", _SERVER, MAY, "other protocols are served at the same port", "both_dialects_are_served_at_one_port"),
    _row("4.2.3-1", _PEER, MUST, "a frame ends with CE, and is not decoded before that is seen", "bad_octets_close_the_connection_with_the_code_in_every_split_of_two"),
    _row("4.2.3-2", _PEER, MUST, "a frame of another type, or with another end, closes the connection without further data", _EVERY + " after_a_bad_frame_nothing_more_is_read", "otherwise: a close with 501 is written first, and nothing is read any more, as RabbitMQ"),
    _row("4.2.3-3", _PEER, SHOULD, "that is logged", "", "not offered: the peer gets it in its close; it is not logged, because any stranger could fill the log"),
    _row("4.2.3-4", _PEER, MUST_NOT, "frames are larger than agreed", "content_is_split_by_frame_max_and_put_together", "but for a content header that is larger by itself, as RabbitMQ"),
    _row("4.2.3-5", _PEER, MUST, "a frame that is too large is a connection exception, 501", _EVERY + " server_takes_eight_octets_above_frame_max_and_a_client_none"),
    _row("4.2.3-6", _PEER, MUST, "methods of the connection class, and heartbeats, are on channel 0", "heartbeat_is_on_channel_0 method_of_the_connection_on_a_channel_is_refused_with_503"),
    _row("4.2.3-7", _PEER, MUST, "one that is not is a connection exception, 503", "method_of_the_connection_on_a_channel_is_refused_with_503"),
    _row("4.2.4-1", _SERVER, MUST, "a method that is not known, or not implemented, is an exception: 503 or 540", "unknown_method_is_refused_with_503 " + _CHANNEL),
    _row("4.2.5.1-1", _PEER, MUST_NOT, "integers are thought to be aligned", "methods_round_trip_and_the_second_reader_agrees"),
    _row("4.2.5.5-1", _PEER, MUST, "names of fields begin with a letter, $ or #, and have 128 characters at most", "any_octets_are_a_table_or_refused_with_502", "otherwise: any name of 255 octets is taken, as RabbitMQ"),
    _row("4.2.5.5-2", _SERVER, SHOULD, "a name that cannot be is refused", "", "not offered: any name is taken, as RabbitMQ"),
    _row("4.2.6-1", _PEER, MUST, "a content that is not complete or not well formed is a connection exception, 505", _CHANNEL + " " + _EVERY),
    _row("4.2.6.1-1", _PEER, MUST, "the class of a content header is that of its method, or it is a connection exception, 501", "bad_header_is_refused", "otherwise: 505, as RabbitMQ, and as 4.2.6 has it"),
    _row("4.2.6.1-2", _PEER, MUST, "the weight is 0", _EVERY + " bad_header_is_refused"),
    _row("4.2.6.1-3", _PEER, MUST_NOT, "a content is on channel 0; 504", _ENGINE, "otherwise: a connection exception with 505, as RabbitMQ"),
    _row("4.2.6.2-1", _PEER, MUST, "a body in several frames is one", "content_is_split_by_frame_max_and_put_together contents_of_channels_may_be_mixed"),
    _row("4.2.7-1", _PEER, MUST, "a heartbeat has channel 0, or it is a connection exception, 501", _EVERY),
    _row("4.2.7-2", _PEER, SHOULD, "heartbeats are sent where nothing else is", "heartbeats_are_written_when_nothing_else_was"),
    _row("4.2.7-3", _PEER, SHOULD, "a peer that is silent for two intervals is given up without a close", "peer_that_is_silent_for_two_heartbeats_is_given_up silence_does_not_count_while_nothing_is_read"),
    _row("4.3-1", _PEER, SHOULD, "channels share the connection fairly: a busy one starves no other", "contents_of_channels_may_be_mixed methods_behind_a_failing_one_are_dropped_on_all_channels_at_once", "frames are handled in the order in which they come, and deliveries by turns of consumers"),
    _row("4.4-1", _SERVER, MUST_NOT, "what a method does is seen on its channel before the answer, and MUST be seen after it", "consumer_is_cancelled_by_the_server_behind_the_answer_to_who_deletes_its_queue consumer_is_cancelled_by_the_server_behind_an_answer_that_waits_for_the_store"),
    _row("4.6-1", _PEER, MUST, "a channel is closed by a channel exception, and all channels by a connection exception", "refused_method_closes_the_channel_when_it_needs_no_answer server_error_closes_the_clients_connection_with_its_code close_of_the_peer_is_answered_and_closes_the_channels"),
    _row("4.7-1", _SERVER, MUST, "contents of one way through the server keep their order, unless redelivered is set", "consumer_gets_what_is_there_and_what_comes recover_sends_what_goes_back_in_order_and_redelivered requeued_messages_take_their_old_places"),
    _row("4.10.1-1", _PEER, MUST, "a size precedes its data, and buffers have bounds", "contents_that_are_never_completed_are_bounded_together content_that_is_too_large_closes_the_channel_and_its_body_is_dropped"),
    _row("4.10.2-1", _SERVER, SHOULD, "an error of a login is answered after a while", "login_is_refused_with_403_after_a_while"),
    _row("4.10.2-2", _SERVER, SHOULD, "such errors are logged, and who provokes many is blocked", "connection_beyond_a_quota_is_refused_with_530", "by quotas, and by the hook of a program"),
]  # fmt: skip

_CONNECTION: Final = [
    _row("connection.start-1", _SERVER, MUST, "a version that is not supported gets our header, and the end", "other_header_gets_ours_and_the_end"),
    _row("connection.start-2", _SERVER, MUST, "the version is not above the one that the client asked for", "client_of_0_9_is_a_client_of_0_9_1 handshake_opens_both_ends_however_the_octets_come"),
    _row("connection.start-3", _CLIENT, MUST, "a client that cannot handle the version closes the socket without a word", "server_that_answers_with_a_header_or_another_version_ends_the_client"),
    _row("connection.start-4", _SERVER, SHOULD, "the properties have product, version, platform and others", "amqp091/server/test_login:client_logs_in_by_each_mechanism_of_one_message", "product, version, platform and capabilities; no host and no copyright"),
    _row("connection.start-5", _SERVER, MUST, "the locale en_US is supported", "methods_round_trip_and_the_second_reader_agrees defaults_are_what_clients_leave_out"),
    _row("connection.start-ok-1", _CLIENT, SHOULD, "the properties have product, version and platform", "engine_keeps_what_the_peer_says_of_itself connection_opens_and_closes"),
    _row("connection.start-ok-2", _CLIENT, SHOULD, "the client takes the strongest mechanism that it can", "login_uses_what_the_transport_permits connection_logs_in_with_amqplain"),
    _row("connection.start-ok-3", _SERVER, MUST, "a mechanism that was not proposed ends the connection without a word", "login_is_refused_in_silence_when_the_client_knows_no_close_of_it login_is_refused_with_403_after_a_while", "clients that understand a close then get 403, as RabbitMQ"),
    _row("connection.tune-1", _PEER, MUST, "frames of 4,096 octets are taken until frame-max is agreed, which is not below that", "limits_that_were_not_proposed_are_refused_with_530"),
    _row("connection.tune-ok-1", _SERVER, MUST, "a channel-max above the proposal ends the connection without a negotiated close", "limits_that_were_not_proposed_are_refused_with_530 limits_out_of_bounds_are_refused_with_530", "otherwise: a close with 530, as RabbitMQ"),
    _row("connection.tune-ok-2", _SERVER, MUST, "and so does a frame-max", "limits_that_were_not_proposed_are_refused_with_530 limits_out_of_bounds_are_refused_with_530", "otherwise: a close with 530, as RabbitMQ"),
    _row("connection.open-1", _SERVER, MUST, "virtual hosts are wholly apart", "virtual_host_is_a_container_by_its_name virtual_hosts_are_the_containers_of_a_listener"),
    _row("connection.open-2", _SERVER, SHOULD, "the permission of a client to a virtual host is checked", "connection_that_is_not_permitted_is_refused_with_530 amqp091/server/test_login:unknown_virtual_host_is_refused_with_530"),
    _row("connection.close-1", _PEER, MUST, "after a close all is dropped but close and close-ok", "input_that_follows_an_error_is_dropped_until_the_close_is_answered"),
    _row("connection.close-2", _PEER, MUST, "a close that crosses ours is answered with close-ok", "both_closing_at_once_close_both"),
    _row("connection.close-ok-1", _PEER, SHOULD, "a socket that ends without close-ok is logged", "transport_that_ends_is_reported_once", "the engine reports it, and a program is notified of the loss"),
]  # fmt: skip

_CHANNELS: Final = [
    _row("channel.open-1", _CLIENT, MUST_NOT, "a channel that is open is opened again; 504", _CHANNEL),
    _row("channel.flow-1", _SERVER, MUST, "a new channel is active", "publish_is_confirmed_when_the_queue_has_it channel_is_opened_used_closed_and_its_number_used_again"),
    _row("channel.flow-2", _PEER, SHOULD, "flow is obeyed as fast as can be", "flow_stops_deliveries flow_stops_publishes_and_deliveries_and_nothing_else channel_waits_while_the_server_stops_its_flow"),
    _row("channel.flow-3", _PEER, MAY, "a peer throttles what comes by channel.flow", "channel_waits_while_the_server_stops_its_flow", "our server does not ask for it: it stops reading, as RabbitMQ"),
    _row("channel.flow-4", _PEER, MAY, "who does not obey is disconnected", "", "not offered: what comes nevertheless is taken"),
    _row("channel.flow-5", _SERVER, MUST, "flow is implemented", "flow_is_refused_with_540_where_it_is_not_obeyed flow_stops_deliveries", "the emulator of RabbitMQ refuses active=false with 540, as RabbitMQ"),
    _row("channel.close-1", _PEER, MUST, "after a close all is dropped but close and close-ok", "input_that_follows_an_error_is_dropped_until_the_close_is_answered methods_behind_a_refused_one_are_dropped methods_behind_a_failing_one_are_dropped_on_all_channels_at_once"),
    _row("channel.close-2", _PEER, MUST, "a close that crosses ours is answered with close-ok", "both_closing_a_channel_at_once_close_it"),
    _row("channel.close-ok-1", _PEER, SHOULD, "a socket that ends without close-ok is logged", "", "shown elsewhere: connection.close-ok"),
]  # fmt: skip

_EXCHANGES: Final = [
    _row("exchange-1", _SERVER, MUST, "there are the types fanout and direct", "message_is_routed_by_exchanges_of_all_kinds direct_compares_keys_and_fanout_nothing"),
    _row("exchange-2", _SERVER, SHOULD, "there are topic and headers", "message_is_routed_by_exchanges_of_all_kinds message_is_routed_to_the_queues_whose_headers_match"),
    _row("exchange-3", _SERVER, MUST, "each type has an exchange amq. and its name from the start", "exchanges_are_there_from_the_start"),
    _row("exchange-4", _SERVER, MUST, "there is a direct exchange without a name", "default_exchange_cannot_be_changed_and_leads_to_every_queue"),
    _row("exchange-5", _SERVER, MUST_NOT, "that one is used otherwise than by its empty name, in publish and bind", "default_exchange_cannot_be_changed_and_leads_to_every_queue " + _CODES, "queue.bind to it is refused with 403, as RabbitMQ"),
    _row("exchange.declare-1", _SERVER, SHOULD, "a virtual host has 16 exchanges at least", "", "shown elsewhere: there is no bound but that of a program"),
    _row("exchange.declare-2", _CLIENT, MUST_NOT, "a name that begins with amq. is declared, unless it is there; 403", "reserved_names_can_be_declared_only_when_they_are_there " + _CODES),
    _row("exchange.declare-3", _CLIENT, MUST, "a name is letters, digits and - _ . :; 406", "line_feeds_in_names_are_dropped_at_declare_and_delete", "otherwise: any name is taken, as RabbitMQ"),
    _row("exchange.declare-4", _CLIENT, MUST_NOT, "an exchange is declared again with another type; 530", "exchange_is_not_equivalent_when_a_property_differs " + _CODES, "otherwise: 406, as RabbitMQ"),
    _row("exchange.declare-5", _CLIENT, MUST_NOT, "a type is asked for that is not supported; 503", "exchange_of_no_known_type_is_refused " + _CODES, "otherwise: 406, as RabbitMQ 4"),
    _row("exchange.declare-6", _SERVER, MUST, "passive of an exchange that is not there: 404", _CODES + " passive_declaration_compares_nothing_and_finds_what_is_there"),
    _row("exchange.declare-7", _SERVER, MUST, "declared again, type, durable and arguments are compared; a channel exception where they differ", "exchange_is_not_equivalent_when_a_property_differs"),
    _row("exchange.declare-8", _SERVER, MUST, "there are durable and transient exchanges", "durable_definitions_are_there_after_a_restart_and_no_others"),
    _row("exchange.declare-9", _SERVER, SHOULD, "an exchange of auto-delete stays for a while", "auto_delete_exchange_goes_with_the_last_binding_it_is_the_source_of", "otherwise: it goes at once with its last binding, and stays as long as it never had one, as RabbitMQ"),
    _row("exchange.declare-10", _SERVER, MUST, "auto-delete is ignored if the exchange is there", "exchange_is_not_equivalent_when_a_property_differs", "otherwise: it is compared, as RabbitMQ"),
    _row("exchange.delete-1", _CLIENT, MUST_NOT, "an exchange is deleted that is not there; 404", "exchange_is_deleted_unless_it_is_used_or_reserved", "otherwise: it is answered with delete-ok, as RabbitMQ"),
    _row("exchange.delete-2", _SERVER, MUST_NOT, "one that has bindings is deleted where if-unused is set; 406", "what_is_used_is_deleted_where_nobody_asks exchange_is_deleted_unless_it_is_used_or_reserved"),
    _row("exchange.bind-1", _SERVER, MUST, "a binding that is there may be made again", "duplicate_bindings_are_one_and_arguments_tell_them_apart"),
    _row("exchange.bind-2", _SERVER, MUST, "exchanges may be bound in a circle, and to themselves", "exchanges_in_a_circle_are_followed_once_and_a_queue_gets_one_copy"),
    _row("exchange.bind-3", _SERVER, MUST_NOT, "a message comes to an exchange twice", "exchanges_in_a_circle_are_followed_once_and_a_queue_gets_one_copy"),
    _row("exchange.bind-4", _CLIENT, MUST_NOT, "an exchange is bound that is not there; 404", "binding_needs_both_ends_and_unbinding_none"),
    _row("exchange.unbind-1", _SERVER, MUST, "an unbind that fails is an exception", "binding_needs_both_ends_and_unbinding_none", "otherwise: unbinding what is not bound does nothing, as RabbitMQ"),
]  # fmt: skip

_QUEUES: Final = [
    _row("queue.declare-1", _SERVER, MUST, "a new queue is bound to the exchange without a name by its name", "default_exchange_cannot_be_changed_and_leads_to_every_queue"),
    _row("queue.declare-2", _SERVER, SHOULD, "a virtual host has 256 queues at least", "", "shown elsewhere: there is no bound but that of a program"),
    _row("queue.declare-3", _SERVER, MUST, "a queue without a name gets a new one, which is in declare-ok", "queue_gets_a_name_when_the_client_has_none queue_without_a_name_gets_one"),
    _row("queue.declare-4", _CLIENT, MUST_NOT, "a name that begins with amq. is declared, unless it is there; 403", "queue_gets_a_name_when_the_client_has_none " + _CODES),
    _row("queue.declare-5", _CLIENT, MUST, "a name is letters, digits and - _ . :; 406", "line_feeds_in_names_are_dropped_at_declare_and_delete", "otherwise: any name is taken, as RabbitMQ"),
    _row("queue.declare-6", _SERVER, MUST, "passive of a queue that is not there: 404", _CODES + " passive_declaration_compares_nothing_and_finds_what_is_there"),
    _row("queue.declare-7", _SERVER, MUST, "declared again, durable, exclusive, auto-delete and arguments are compared; a channel exception where they differ", "queue_is_not_equivalent_when_a_property_differs inequivalent_argument_is_named_when_a_queue_is_declared_again"),
    _row("queue.declare-8", _SERVER, MUST, "a durable queue is there after a restart", "durable_definitions_are_there_after_a_restart_and_no_others messages_of_durable_queues_are_there_after_a_restart"),
    _row("queue.declare-9", _SERVER, MUST, "there are durable and transient queues", "durable_definitions_are_there_after_a_restart_and_no_others"),
    _row("queue.declare-10", _SERVER, MUST, "there are exclusive and shared queues", "exclusive_queue_is_refused_to_others_and_gone_with_its_connection exclusive_queue_is_for_its_connection_alone"),
    _row("queue.declare-11", _CLIENT, MUST_NOT, "a queue is used that another connection has for itself; 405", "exclusive_queue_is_refused_to_others_and_gone_with_its_connection exclusive_queue_is_for_its_connection_alone"),
    _row("queue.declare-12", _SERVER, MUST, "auto-delete is ignored if the queue is there", "queue_is_not_equivalent_when_a_property_differs", "otherwise: it is compared, as RabbitMQ, and as declare-7 has it"),
    _row("queue.bind-1", _SERVER, MUST, "a binding that is there may be made again", "duplicate_bindings_are_one_and_arguments_tell_them_apart"),
    _row("queue.bind-2", _SERVER, MUST_NOT, "a message comes to a queue twice, however many bindings match", "exchanges_in_a_circle_are_followed_once_and_a_queue_gets_one_copy direct_compares_keys_and_fanout_nothing"),
    _row("queue.bind-3", _SERVER, MUST, "a durable queue may be bound to a transient exchange", "durable_definitions_are_there_after_a_restart_and_no_others"),
    _row("queue.bind-4", _SERVER, MUST, "bindings of durable queues to durable exchanges are durable", "durable_definitions_are_there_after_a_restart_and_no_others"),
    _row("queue.bind-5", _SERVER, SHOULD, "a queue has 4 bindings at least", "direct_publish_costs_the_same_with_ten_thousand_bindings"),
    _row("queue.bind-6", _CLIENT, MUST, "a queue is named, or was declared on the channel before; 404", "method_without_a_queue_is_refused_when_none_was_declared queue_gets_a_name_when_the_client_has_none"),
    _row("queue.bind-7", _CLIENT, MUST_NOT, "a queue is bound that is not there; 404", _CODES + " binding_needs_both_ends_and_unbinding_none"),
    _row("queue.bind-8", _CLIENT, MUST_NOT, "it is bound to an exchange that is not there; 404", _CODES + " binding_needs_both_ends_and_unbinding_none"),
    _row("queue.bind-9", _SERVER, MUST, "an empty name of an exchange is the default exchange", "default_exchange_cannot_be_changed_and_leads_to_every_queue " + _CODES, "otherwise: it is, and is refused with 403, as RabbitMQ"),
    _row("queue.bind-10", _SERVER, MUST, "a direct exchange passes a message to the queues whose key is its own", "direct_compares_keys_and_fanout_nothing message_is_routed_by_exchanges_of_all_kinds"),
    _row("queue.unbind-1", _SERVER, MUST, "an unbind that fails is an exception", "binding_needs_both_ends_and_unbinding_none", "otherwise: unbinding what is not bound does nothing, as RabbitMQ"),
    _row("queue.purge-1", _SERVER, MUST_NOT, "messages are purged that are out and not acknowledged", "purge_counts_what_is_ready purge_counts_what_was_ready_and_needs_a_queue"),
    _row("queue.purge-2", _SERVER, MAY, "what is purged is kept or logged", "", "not offered: it is gone"),
    _row("queue.purge-3", _CLIENT, MUST_NOT, "a queue is purged that is not there; 404", _CODES + " purge_counts_what_was_ready_and_needs_a_queue"),
    _row("queue.delete-1", _SERVER, SHOULD, "what is pending goes to a dead-letter queue", "queue_is_deleted_unless_it_is_used_or_not_empty", "otherwise: it is dropped, as RabbitMQ"),
    _row("queue.delete-2", _CLIENT, MUST_NOT, "a queue is deleted that is not there; 404", "queue_is_deleted_unless_it_is_used_or_not_empty", "otherwise: it is answered with delete-ok, as RabbitMQ"),
    _row("queue.delete-3", _SERVER, MUST_NOT, "one with consumers is deleted where if-unused is set; 406", "what_is_used_is_deleted_where_nobody_asks queue_is_not_deleted_when_it_is_used_or_not_empty queue_is_deleted_unless_it_is_used_or_not_empty"),
    _row("queue.delete-4", _SERVER, MUST_NOT, "one with messages is deleted where if-empty is set; 406", "queue_is_not_deleted_when_it_is_used_or_not_empty queue_is_deleted_unless_it_is_used_or_not_empty"),
]  # fmt: skip

_BASIC: Final = [
    _row("basic-1", _SERVER, SHOULD, "persistent messages are held on a disk", "persistent_message_in_a_durable_queue_outlives_the_container publisher_is_answered_when_all_queues_have_the_message_stored"),
    _row("basic-2", _SERVER, MUST_NOT, "a persistent message is dropped when a queue overflows", "publish_is_nacked_when_the_queue_rejects_what_it_has_no_room_for requeue_into_a_full_queue_drops_its_head", "otherwise: x-overflow decides; drop-head drops any message, as in RabbitMQ"),
    _row("basic-3", _SERVER, MUST, "there are two priorities at least", "arguments_become_the_policy_of_the_queue", "of queues with x-max-priority, as RabbitMQ"),
    _row("basic-4", _SERVER, MAY, "there are ten", "arguments_become_the_policy_of_the_queue", "up to 255"),
    _row("basic-5", _SERVER, MUST, "messages of one priority keep their order, persistent or not", "consumer_gets_what_is_there_and_what_comes requeued_messages_take_their_old_places"),
    _row("basic-6", _SERVER, MUST, "there is delivery without acknowledgement", "no_ack_consumer_gets_everything_and_owes_nothing"),
    _row("basic-7", _SERVER, MUST, "there is delivery with acknowledgement", "delivery_is_settled_as_the_client_says"),
    _row("basic.qos-1", _SERVER, MUST, "prefetch-size does not bound what goes to a client that has no message", "qos_is_refused_with_a_size", "otherwise: a size other than 0 is refused with 540, as RabbitMQ"),
    _row("basic.qos-2", _SERVER, MUST_NOT, "more is sent than prefetch-count allows", "prefetch_holds_a_consumer_back_until_it_acknowledges prefetch_of_a_channel_is_shared_by_its_consumers prefetch_reaches_consumers_that_run"),
    _row("basic.consume-1", _SERVER, SHOULD, "a queue has 16 consumers at least", "", "shown elsewhere: there is no bound but that of a program"),
    _row("basic.consume-2", _CLIENT, MUST_NOT, "a consumer tag is used twice; 530", "consumer_tag_in_use_ends_the_connection " + _CHANNEL + " consumers_have_tags_of_their_own"),
    _row("basic.consume-3", _CLIENT, MUST_NOT, "a consumer of another channel is named; 530", "consumers_have_tags_of_their_own", "otherwise: another channel does not know it, as RabbitMQ"),
    _row("basic.consume-4", _SERVER, MUST, "an empty tag is replaced by a new one", "consumer_gets_a_tag_when_it_has_none"),
    _row("basic.consume-5", _CLIENT, MUST_NOT, "a queue that has consumers is had exclusively; 403", "exclusive_consumer_is_refused_beside_others_and_keeps_others_out"),
    _row("basic.consume-6", _SERVER, MUST_NOT, "a consumer with no-local gets what its connection published", "no_local_is_obeyed_where_it_is_asked_for", "where the listener has no_local=True; RabbitMQ ignores it"),
    _row("basic.cancel-1", _SERVER, MUST, "a cancel of a queue that is gone is ignored", "cancelled_consumer_gets_no_more_and_may_still_acknowledge consumer_is_cancelled_by_the_server_behind_the_answer_to_who_deletes_its_queue"),
    _row("basic.cancel-2", _SERVER, MUST, "no message is sent behind cancel-ok, and what is out may be settled", "cancelled_consumer_gets_no_more_and_may_still_acknowledge"),
    _row("basic.publish-1", _CLIENT, MUST_NOT, "an exchange is published to that is not there; 404", "publish_is_refused_with_the_code_that_it_has exchange_that_is_not_there_cannot_be_published_to"),
    _row("basic.publish-2", _SERVER, MUST, "an empty name is the default exchange", "default_exchange_cannot_be_changed_and_leads_to_every_queue"),
    _row("basic.publish-3", _SERVER, MUST, "an internal exchange refuses publishes with 403", "internal_exchange_refuses_publishers"),
    _row("basic.publish-4", _SERVER, MAY, "an exchange refuses content, with 540", "", "not offered: exchanges take every content"),
    _row("basic.publish-5", _SERVER, SHOULD, "mandatory: what no queue takes is returned", "unroutable_publish_is_returned_before_its_confirm_when_it_is_mandatory unroutable_publish_is_confirmed_when_it_is_not_mandatory"),
    _row("basic.publish-6", _SERVER, SHOULD, "immediate: what no consumer takes at once is returned", "publish_is_refused_when_it_is_immediate", "otherwise: it is refused with 540, as RabbitMQ"),
    _row("basic.deliver-1", _SERVER, SHOULD, "a message that was delivered five times without an acknowledgement becomes a dead letter", "quorum_queue_counts_what_comes_back_and_gives_up_in_the_end", "on quorum queues, at x-delivery-limit, as RabbitMQ"),
    _row("basic.deliver-2", _CLIENT, MUST_NOT, "a message of one channel is settled on another", "unknown_delivery_tag_is_refused"),
    _row("basic.deliver-3", _SERVER, MUST_NOT, "a delivery tag is 0", "client_refuses_delivery_tags_that_do_not_rise"),
    _row("basic.deliver-4", _SERVER, MUST, "redelivered means that a message was delivered before", "unacknowledged_messages_go_back_when_their_channel_or_connection_is_gone recover_sends_what_goes_back_in_order_and_redelivered"),
    _row("basic.get-1", _SERVER, MUST, "get is answered with the next message, or get-empty", "get_does_not_count_for_the_prefetch delivery_is_settled_as_the_client_says"),
    _row("basic.ack-1", _SERVER, MUST, "multiple settles all up to the tag, and all that are out with tag 0", "tag_0_with_multiple_settles_all_that_is_out delivery_is_settled_as_the_client_says deliveries_are_numbered_and_settled_at_both_ends"),
    _row("basic.ack-2", _SERVER, MUST, "a tag that is not out is a channel exception; 406", "unknown_delivery_tag_is_refused " + _CHANNEL),
    _row("basic.ack-3", _SERVER, MUST, "on a channel with transactions at once, and not at the commit", "acknowledgement_is_undone_when_its_transaction_is_rolled_back"),
    _row("basic.reject-1", _SERVER, SHOULD, "a reject is taken while contents are sent", "contents_of_channels_may_be_mixed"),
    _row("basic.reject-2", _SERVER, SHOULD, "it means that the client cannot process the message now", "delivery_is_settled_as_the_client_says rejected_message_is_dead_lettered_with_its_history"),
    _row("basic.reject-3", _CLIENT, MUST_NOT, "messages are selected by rejecting", "", _USER),
    _row("basic.reject-4", _SERVER, MUST_NOT, "a requeued message comes to the same channel again", "requeued_messages_take_their_old_places", "otherwise: it may, as in RabbitMQ"),
    _row("basic.recover-1", _SERVER, MUST, "redelivered is set on what comes again", "recover_sends_what_goes_back_in_order_and_redelivered recover_requeues_all_and_answers"),
    _row("basic.recover-2", _SERVER, MUST, "requeue=false sends it to the same consumer", "recover_without_requeue_is_refused", "otherwise: it is refused with 540, as RabbitMQ"),
]  # fmt: skip

_TX: Final = [
    _row("tx-1", _CLIENT, MUST_NOT, "programs rely on transactions over several queues", "", "nothing to show: it binds the program; here such a transaction is whole"),
    _row("tx-2", _CLIENT, MUST_NOT, "programs rely on what a transaction does with immediate", "", _USER),
    _row("tx-3", _CLIENT, MUST_NOT, "programs rely on what a transaction does with mandatory", "mandatory_publish_is_returned_at_the_commit_of_its_transaction", "it is returned at the commit"),
    _row("tx.commit-1", _CLIENT, MUST_NOT, "commit without select; 406", "commit_and_rollback_are_refused_without_a_transaction " + _CHANNEL),
    _row("tx.commit-2", _SERVER, MUST, "all that was published and acknowledged is done, and the next transaction begins", "transaction_publishes_at_its_commit commit_is_refused_when_a_queue_rejects_one_of_its_messages"),
    _row("tx.rollback-1", _CLIENT, MUST_NOT, "rollback without select; 406", "commit_and_rollback_are_refused_without_a_transaction " + _CHANNEL),
    _row("tx.rollback-2", _SERVER, MUST, "nothing of it is done; messages are not sent again without recover", "transaction_publishes_nothing_when_it_is_rolled_back acknowledgement_is_undone_when_its_transaction_is_rolled_back rollback_makes_what_was_settled_unsettled_again"),
]  # fmt: skip

PARTS: Final[dict[str, list[Requirement]]] = {
    "The specification": _SPECIFICATION,
    "Class connection": _CONNECTION,
    "Class channel": _CHANNELS,
    "Class exchange": _EXCHANGES,
    "Class queue": _QUEUES,
    "Class basic": _BASIC,
    "Class tx": _TX,
}

REQUIREMENTS: Final[Sequence[Requirement]] = [
    replace(row, number=f"0-9-1:{row.number}") for rows in PARTS.values() for row in rows
]
"""The rows, with numbers that no other page has."""


_HEAD: Final = """
.. This page is made by ``python -m tests.conformance``: change the tables, not the page.

The rules of AMQP 0-9-1 of 2008. Rules of the specification have the number of their section, rules of a method the name of the method.
The second column has the end that a rule binds, the third the word of the document; "MUST NOT" stands before a forbidden behaviour.
The fourth column names the tests.

Clients of 0-9-1 are written for RabbitMQ, and expect its answers. If RabbitMQ deviates from the document, this product does the same, and
the row begins with **otherwise**: its tests show the actual behaviour. :doc:`conformance` explains "not offered", "shown elsewhere" and
"nothing to show".
"""


def _shown(row: Requirement) -> str:
    tests = "; ".join(f"``{name}`` ({file})" for file, name in map(find_test, row.tests))
    kind, _, why = row.gap.partition(": ")
    if row.tests and kind == OTHERWISE:
        return f"**{OTHERWISE}**: {why}: {tests}"
    if row.tests:
        return f"{tests} ({row.gap})" if row.gap else tests
    assert kind in KINDS, row
    return f"**{kind}**: {why}"


def _tally(rows: list[Requirement]) -> list[int]:
    otherwise = sum(row.gap.startswith(OTHERWISE) for row in rows)
    limited = sum(bool(row.tests and row.gap) for row in rows) - otherwise
    untested = sum(not row.tests for row in rows)
    with_mutant = sum(bool(row.mutants) for row in rows)
    return [len(rows), with_mutant, len(rows) - otherwise - limited - untested, limited, otherwise, untested]


def page() -> str:
    """The page."""
    every = [row for rows in PARTS.values() for row in rows]
    tallies = [(name, *map(str, _tally(rows))) for name, rows in (*PARTS.items(), ("all", every))]
    head = ("part", "rules", "with a mutant", "shown", "with a limit", OTHERWISE, "without tests")
    text = title("Conformance: AMQP 0-9-1") + _HEAD + counted(every) + "\n"
    text += table(head, tallies, (28, *(12 for _ in head[1:])))
    for name, rows in PARTS.items():
        cells = [(row.number, row.role, row.level, row.text, _shown(row)) for row in rows]
        text += f"\n{title(name, '-')}\n" + table(
            ("rule", "binds", "", "what is required", "shown by"), cells, (12, 8, 8, 34, 38)
        )
    return text
