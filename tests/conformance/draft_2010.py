"""The page of the draft of 2010: each type, each state and what the document says of them, with the test that shows it.

Types are those of the product's registries; states those of the engine. Lines are those of the document's text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.draft_2010.registries import FRAME_BODIES, SASL_FRAME_BODIES, TYPES
from trio_amqp10.amqp10.engine.states import ConnectionState, SessionState
from trio_amqp10.amqp10.wire.composite import plan_of

from . import draft_2010_mutants
from .figures import counted, numbered
from .rst import ROOT, find_test, table, title

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEAD = """
.. This page is made by ``python -m tests.conformance``: change the tables, not the page.

AMQP 1.0, draft of 19 May 2010, revision 1090. It is historical, and there is no other implementation to test against: the tests compare the code with the
document and with vectors, and connect its two ends. Line numbers refer to the text of the document. :doc:`../decisions/0037-draft-of-2010` decides the questions that
the document leaves open. :doc:`conformance` shows the statements that the final standard has word for word: the engine is the same.

"""

_TYPES = """
Composite types with their codes, and their fields in order. *By analogy*: no source defines this.

"""

_STATES = """
States of connections and sessions. The engine uses the names of the final standard.

"""

_STATEMENTS = """
The statements of the document about other things than types and states.
"""

_VECTOR = "vector_is_read_and_written_back"

TYPE_LINES: Final[Mapping[str, tuple[str, str]]] = {
    "amqp:error:list": ("1524-1542", "error_comes_back"),
    "amqp:linkage:list": ("1386-1408", _VECTOR),
    "amqp:flow-state:list": ("1422-1460", _VECTOR),
    "amqp:extent:list": ("1470-1472", "extents_are_ranges_of_their_own"),
    "amqp:fragment:list": ("1474-1502", "message_is_joined_of_its_fragments"),
    "amqp:header:list": ("1703-1765", "message_comes_back"),
    "amqp:properties:list": ("1767-1817", "message_comes_back"),
    "amqp:footer:list": ("1819-1833", "footer_has_one_map_of_both"),
    "amqp:transfer-state:map": ("1839-1856", "state_comes_back"),
    "amqp:accepted:map": ("1858-1862", "outcome_comes_back"),
    "amqp:rejected:map": ("1864-1872", "outcome_comes_back"),
    "amqp:released:map": ("1874-1878", "outcome_comes_back"),
    "amqp:modified:map": ("1880-1906", "outcome_comes_back"),
    "amqp:source:map": ("1948-1992", "terminus_comes_back_with_the_lifetime_of_its_link"),
    "amqp:target:map": ("1994-2016", "terminus_comes_back_with_the_lifetime_of_its_link"),
    "amqp:filter:list": ("2028-2043", "filters_of_other_forms"),
    "amqp:delete-on-close:map": ("2049-2053", "terminus_comes_back_with_the_lifetime_of_its_link"),
    "amqp:delete-on-no-links:map": ("2055-2059", "terminus_comes_back_with_the_lifetime_of_its_link"),
    "amqp:delete-on-no-messages:map": ("2061-2065", "terminus_comes_back_with_the_lifetime_of_its_link"),
    "amqp:delete-on-no-links-or-messages:map": (
        "2067-2071",
        "terminus_comes_back_with_the_lifetime_of_its_link",
    ),
    "amqp:coordinator:list": ("2115, by analogy", "coordinator_comes_back"),
    "amqp:declare:list": ("2119-2126, by analogy", "declare_comes_back"),
    "amqp:discharge:list": ("2128-2135, by analogy", "discharge_comes_back_and_names_its_transaction_beside"),
    "amqp:open:list": ("1142-1202", "open_comes_back_with_the_time_out_of_two_intervals"),
    "amqp:begin:list": ("1204-1230", "begin_comes_back"),
    "amqp:attach:list": ("1232-1290", "attach_comes_back"),
    "amqp:flow:list": ("1292-1298", _VECTOR),
    "amqp:transfer:list": ("1300-1324", _VECTOR),
    "amqp:disposition:list": ("1326-1328", "ranges_of_one_pass_are_extents_of_one_frame"),
    "amqp:detach:list": ("1330-1350", "detach_closes_without_a_linkage"),
    "amqp:end:list": ("1352-1360", "ends_come_back"),
    "amqp:close:list": ("1362-1370", "ends_come_back"),
    "amqp:sasl-mechanisms:list": ("2217-2234", "sasl_frame_comes_back"),
    "amqp:sasl-init:list": ("2236-2251, by analogy", "sasl_frame_comes_back"),
    "amqp:sasl-challenge:list": ("2253-2273", "sasl_frame_comes_back"),
    "amqp:sasl-response:list": ("2275-2287, by analogy", "sasl_frame_comes_back"),
    "amqp:sasl-outcome:list": ("2289-2317, by analogy", "sasl_frame_comes_back"),
}
"""The lines of each type, and a test."""

_C, _S = ConnectionState, SessionState
_MACHINE = "octets_may_come_in_any_chunks"
_ENDS = "session_begins_and_ends_on_either_side"

STATES: Final[tuple[tuple[str, str, Any, str, str], ...]] = (
    ("connection", "START", _C.START, "675", _MACHINE),
    ("connection", "HDR_RCVD", _C.HDR_RCVD, "677", _MACHINE),
    ("connection", "HDR_SENT", _C.HDR_SENT, "679", _MACHINE),
    ("connection", "HDR_EXCH", _C.HDR_EXCH, "739", _MACHINE),
    ("connection", "OPEN_PIPE", _C.OPEN_PIPE, "681", "what_is_larger_waits_for_the_open_and_then_leaves"),
    ("connection", "OC_PIPE", _C.OC_PIPE, "683", _MACHINE),
    ("connection", "OPEN_RCVD", _C.OPEN_RCVD, "685", _MACHINE),
    ("connection", "OPEN_SENT", _C.OPEN_SENT, "687", _MACHINE),
    ("connection", "CLOSE_PIPE", _C.CLOSE_PIPE, "689-691", _MACHINE),
    ("connection", "OPENED", _C.OPENED, "693", "open_carries_what_both_standards_have"),
    ("connection", "CLOSE_RCVD", _C.CLOSE_RCVD, "697-705", "close_is_answered"),
    ("connection", "CLOSE_SENT", _C.CLOSE_SENT, "707-711", "frames_behind_a_close_of_ours_are_dropped_but_for_the_close"),
    ("connection", "END", _C.END, "713-715", "frames_behind_a_close_of_ours_are_dropped_but_for_the_close"),
    ("session", "UNMAPPED", _S.UNMAPPED, "793-797, 831", _ENDS),
    ("session", "BEGIN_SENT", _S.BEGIN_SENT, "799-803", _ENDS),
    ("session", "BEGIN_RCVD", _S.BEGIN_RCVD, "805-809", _ENDS),
    ("session", "MAPPED", _S.MAPPED, "811-813", _ENDS),
    ("session", "END_SENT", _S.END_SENT, "815-817", "frames_behind_an_end_of_ours_are_dropped"),
    ("session", "END_RCVD", _S.END_RCVD, "819-823", _ENDS),
    ("session", "discarding, which has no name", _S.DISCARDING, "785-789", "frames_behind_an_end_of_ours_are_dropped"),
)  # fmt: skip
"""Of what, the document's name, the engine's, lines, and a test."""

STATEMENTS: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("II 1.4", "310-318", "descriptors are symbols, or numbers with a domain above", "every_type_is_found_by_both_descriptors"),
    ("II 1.4", "310", "the symbol stands for the number", "symbolic_descriptor_is_read"),
    ("II 2", "321-368", "octets that no constructor begins, or that end too early", "octets_that_are_no_value_are_a_decode_error"),
    ("II 2.5", "422-456", "each value in an encoding of the list, and in no other", "value_comes_back_from_the_draft_and_its_octets_are_of_the_draft"),
    ("II 2.5", "422-456", "encodings that only the final standard has", "encodings_of_the_final_standard_are_taken_unless_strict"),
    ("II 2.5", "444-446", "strings in UTF-16", "utf16_is_read"),
    ("II 2.4", "416-420, 451-452", "an array is an encoding of a list", "described_array_becomes_a_list_of_described_values"),
    ("II 3", "466", "mandatory fields are not null", "map_that_has_to_have_a_field_is_not_written_without"),
    ("II 3", "466", "several values are a list described by true, and one stands bare", "several_are_a_list_under_true_and_one_stands_bare"),
    ("II 3", "466", "every element of the list is of the field's type", "several_of_something_else_are_refused"),
    ("II 3", "468", "a composite is a list or a map, as its symbol ends", "list_where_a_map_is_due_is_refused"),
    ("II 3.1", "472", "trailing nulls may be left out", _VECTOR),
    ("II 3.2", "484", "keys of a map are symbols that name fields", "map_with_a_wrong_field_is_refused"),
    ("II 3.2", "484", "a key without a value may be left out, or be null", "null_in_a_map_is_no_value"),
    ("III 2", "532-557", "the protocol header, and what is sent back for another", "another_protocol_header_gets_ours_and_the_end"),
    ("III 2", "532-557", "the first frame distinguishes the draft from the final standard, whose header it has", "listener_tells_the_two_standards_apart"),
    ("III 3", "617-635", "frames of the AMQP type", "wrong_type_of_frame_and_channel_over_the_highest"),
    ("III 3.2", "637", "an empty frame has no effect", "empty_frame_has_no_effect"),
    ("III 4.1", "651, 1158", "frames of 4,096 octets are always taken", "frames_of_4096_octets_are_taken_before_open"),
    ("III 4.1", "653", "open comes before any other frame", "frame_before_open_ends_the_connection"),
    ("III 4.2", "657-661", "frames may be pipelined before the peer's open", "what_is_larger_waits_for_the_open_and_then_leaves"),
    ("III 4.3", "665", "close is the last frame, and is answered", "close_is_answered"),
    ("III 5.1", "771-773", "remote-channel is set in the answer alone", "answer_to_a_begin_names_the_channel_of_the_peer_and_a_begin_of_ours_none"),
    ("III 5.2", "777", "an error of a link with error-mode end ends the session", "error_mode_end_ends_the_session_behind_the_link"),
    ("III 5.4", "787", "a session that cannot go on is ended with an error", "bad_vector_ends_the_session_with_its_condition"),
    ("III 5.4", "787", "and discards what comes until the peer's end", "frames_behind_an_end_of_ours_are_dropped"),
    ("III 6.1", "847", "a name is that of one link for each direction", "link_may_be_stolen"),
    ("III 6.2", "851", "handles of the two ends are independent", "handles_of_the_two_ends_have_nothing_to_do_with_each_other"),
    ("III 6.3", "883", "an attach is answered with both linkages", "attach_is_answered_with_both_linkages"),
    ("III 6.3", "885", "each end has authority over its own terminus, and may detach", "refusal_of_the_peer_is_read"),
    ("III 6.3", "885, 1240", "a link that cannot be had", "link_is_refused_by_an_attach_without_linkage_and_a_detach"),
    ("III 6.4", "909-934", "a link is resumed with the state of its endpoint", "message_is_resumed_behind_what_the_peer_has"),
    ("III 6.4", "936", "resuming by name alone: a linkage without one of the termini", "attach_without_a_terminus_of_its_own_has_no_linkage"),
    ("III 6.5", "964", "detach without a local linkage closes", "detach_of_ours_keeps_or_drops_the_local_linkage"),
    ("III 6.5", "964", "and is answered with neither", "detach_of_the_peer_is_answered_and_a_close_by_both_null"),
    ("III 6.6", "998, 1270", "transfer-count goes up with each complete message", "sender_counts_each_complete_message"),
    ("III 6.6", "1000", "only the sender moves it; the receiver sends the last that it knows", "receiver_says_the_last_count_that_the_sender_named"),
    ("III 6.6", "1002, 1016", "no link-credit is no limit", "without_a_limit_credit_never_ends"),
    ("III 6.6", "1004-1006", "the sender's credit follows from the receiver's limit", "credit_comes_with_the_attach_and_with_a_flow"),
    ("III 6.6", "1008", "a receiver that does not know the count means the first", "receiver_that_names_no_count_counts_from_the_first"),
    ("III 6.6", "1012", "available", "sender_says_what_waits_beside_a_count_that_has_not_moved"),
    ("III 6.6", "1014, 1020-1022", "drain advances the count to the limit, and a flow reports it", "credit_comes_with_the_attach_and_with_a_flow"),
    ("III 6.6", "1016", "no transfers without credit", "delivery_without_credit_detaches"),
    ("III 6.6", "1024", "what is left of the credit is used by fragmenting", "message_is_sent_as_far_as_the_credit_goes"),
    ("III 6.6", "1028", "the flow-state of a transfer includes it", "message_takes_the_credit_of_all_its_units"),
    ("III 6.9", "1050", "echo is answered", "credit_comes_with_the_attach_and_with_a_flow"),
    ("III 6.10", "1054-1056", "transfer-id is an alias of the delivery-tag in the session", "transfer_under_another_id_in_the_middle_of_a_message_detaches"),
    ("III 6.10", "1070-1082", "a terminal state, and settlement", "extent_of_the_senders_own_settles_what_came"),
    ("III 6.10", "1096-1102", "who settles first decides on the guarantee", "sender_that_settles_first_hears_nothing_and_one_that_does_not_hears_the_outcome"),
    ("III 6.12", "1118", "sections are distinguished by first, last and format-code", "message_is_joined_of_its_fragments"),
    ("III 6.12", "1126", "more, on all transfers but the last", "sender_counts_each_complete_message"),
    ("III 6.12", "1126", "messages of different links may be interleaved", "large_messages_of_two_links_do_not_disturb_each_other"),
    ("III 6.12", "1128, 1320", "what was aborted is discarded", "aborted_message_is_dropped_and_counts"),
    ("III 6.12", "1130", "fragments without the ends of sections", "fragments_that_do_not_follow_each_other_are_an_invalid_field"),
    ("III 7.1", "1158", "without max-frame-size there is no limit", "frame_of_any_size_and_locales_that_are_none"),
    ("III 7.1", "1164", "channels up to channel-max", "wrong_type_of_frame_and_channel_over_the_highest"),
    ("III 7.1", "1170", "the lower of two intervals holds, and 0 is none", "lower_interval_holds_and_0_is_none"),
    ("III 7.1", "1170", "frames within the interval", "empty_frames_are_written_in_every_interval"),
    ("III 7.1", "1170", "no heartbeats, no time-out", "without_heartbeats_silence_means_nothing"),
    ("III 7.3", "1254-1258, 1410-1418", "durable, expiry-policy and timeout of a link", "link_is_kept_as_long_as_the_longest_of_its_termini"),
    ("III 7.3", "1260-1262", "the unsettled map is compared", "message_is_resumed_behind_what_the_peer_has"),
    ("III 7.3", "1266-1276", "transfer-unit", "message_takes_the_credit_of_all_its_units"),
    ("III 7.3", "1278", "that of an outgoing end is ignored", "units_of_an_outgoing_end_are_ignored_and_without_a_limit_all_is_sent"),
    ("III 7.3", "1282-1284", "max-message-size", "message_that_is_too_large_detaches"),
    ("III 8.6", "1430-1436", "session-credit, from the lowest unsettled transfer on", "session_credit_bounds_what_is_sent_until_the_lowest_moves_on"),
    ("III 8.6", "1430", "null before the first transfer is seen, and the next where all are settled", "receiver_says_that_the_lowest_has_moved_on_once_half_is_used"),
    ("III 8.6", "1430, 1590", "a transfer beyond it", "transfer_beyond_the_credit_of_the_session_ends_it"),
    ("III 8.6", "1442", "a sender always sends its count", "sender_says_where_it_counts_from"),
    ("III 8.10", "1470-1472", "an extent may be about one link", "extent_with_a_handle_is_about_that_link_alone"),
    ("III 8.11", "1496-1498", "fragment-offset", "fragments_are_joined_again_that_the_credit_has_parted"),
    ("III 8.13", "1514", "options that are not known, unless x-opt-", "option_that_is_not_known_is_an_error_unless_it_may_be_ignored"),
    ("III 8.15-8.19", "1524-1606", "errors and their conditions", "bad_vector_ends_the_session_with_its_condition"),
    ("IV 2", "1682-1687", "one header, properties and footer, in their places", "section_in_another_place_or_of_another_kind_is_refused"),
    ("IV 2.1", "1695-1697", "each may have no octets", "message_with_nothing_to_say_has_empty_sections"),
    ("IV 2.1", "1698-1701", "sections of data, of values, of a map, of a list", "application_data_as_a_body"),
    ("IV 2.2", "1735-1741", "transmit-time and ttl", "time_to_live_counts_from_the_time_of_transmission"),
    ("IV 2.2", "1743-1745", "former-acquirers", "first_acquirer_is_one_that_nobody_acquired_before"),
    ("IV 2.2", "1747-1753", "delivery-failures", "message_that_is_not_settled_comes_again"),
    ("IV 2.2", "1755", "format-code", "octets_of_another_format_are_data_and_keep_their_format"),
    ("IV 2.2", "1757-1765", "attributes of the message and of the delivery", "message_comes_back"),
    ("IV 2.3", "1771-1805", "ids are octets", "ids_are_octets"),
    ("IV 2.3", "1807-1811", "content-length", "content_length_is_that_of_the_application_data"),
    ("IV 2.5", "1837", "attributes x-req- that are not understood", "message_that_has_to_be_understood_is_rejected"),
    ("IV 3", "1843-1845", "an outcome is terminal, bytes-transferred is not", "state_comes_back"),
    ("IV 3", "1845", "a message is resumed behind bytes-transferred", "message_is_resumed_behind_what_the_peer_has"),
    ("IV 3.3", "1872", "the error of a rejected message in its attributes", "error_of_a_rejected_message_is_in_its_dead_letter"),
    ("IV 5.3", "1958-1966", "dynamic is the policy: the request, and the answer", "node_is_made_for_a_link"),
    ("IV 5.3", "1972", "the sending end decides the distribution-mode", "mode_is_always_said_by_a_source"),
    ("IV 5.3", "1988", "outcomes by their symbols", "terminus_comes_back_with_the_lifetime_of_its_link"),
    ("IV 5.6", "2028-2047", "named filters", "filters_of_other_forms"),
    ("V 1", "2081", "declare makes a transaction", "transaction_is_declared_and_discharged"),
    ("V 1", "2081", "one that cannot be is rejected", "declare_refused_is_no_transaction"),
    ("V 1", "2083", "a command is the one value of a section of amqp-data", "other_sections_are_no_commands"),
    ("V 1", "2097", "work names its transaction in the transfer-state", "work_in_a_transaction_carries_it_both_ways"),
    ("V 1", "2097", "and so does a discharge", "discharge_names_its_transaction_in_the_state_of_the_transfer"),
    ("V 1", "2085-2103", "commit and roll back, over a container", "transaction_is_committed_and_rolled_back"),
    ("V 1.1", "2107", "txn-id among the options of a flow", "transaction_of_acquired_messages_is_an_option_of_the_flow"),
    ("VI 2", "2171-2190", "TLS by protocol id 2", "connection_is_encrypted_by_protocol_id_2"),
    ("VI 3", "2192-2213", "SASL by protocol id 3, the server first", "exchange_is_in_frames_of_the_draft_and_then_the_connection_opens"),
    ("VI 3.7", "2309-2317", "an outcome that is not ok", "wrong_password_is_refused"),
)  # fmt: skip
"""Book and section, lines, what is said, and the test that shows it."""

_FILES = ("amqp10/server/test_draft_2010_dialect", "amqp10/wire/test_composites_as_maps")


def test_of(name: str) -> tuple[str, str]:
    """The file of a test, and its name; other protocols may have one of the same name."""
    own = [
        f"amqp10/draft_2010/{path.stem}"
        for path in sorted((ROOT / "tests/amqp10/draft_2010").glob("test_*.py"))
    ]
    files = [
        file for file in (*own, *_FILES) if f"def test_{name}(" in (ROOT / "tests" / f"{file}.py").read_text()
    ]
    assert len(files) == 1, (name, files)
    return find_test(f"{files[0]}:{name}")


def _reference(name: str) -> str:
    file, found = test_of(name)
    return f"{file.removesuffix('.py')}:{found.removeprefix('test_')}"


REQUIREMENTS: Final = numbered(
    "draft",
    [(section, said, _reference(test)) for section, _, said, test in STATEMENTS],
    draft_2010_mutants.MUTANTS,
)
"""The statements as rows, with their mutants; their numbers are those of no other page."""


def _shown(name: str) -> str:
    file, found = test_of(name)
    return f"``{file}``: ``{found}``"


def _types() -> Iterator[tuple[str, ...]]:
    for registry in (FRAME_BODIES, TYPES, SASL_FRAME_BODIES):
        for cls in registry:
            plan = plan_of(cls)
            lines, test = TYPE_LINES[str(plan.name)]
            fields = ", ".join(
                f"{field.wire_name} {field.requires or field.type}{'!' if field.mandatory else ''}".replace(
                    "*", "any"
                )
                for field in plan.fields
            )
            yield f"``{plan.name}``", f"{int(plan.code):#011x}", fields or "none", lines, _shown(test)


def page() -> str:
    """The page."""
    states = ((of, name, state.name, lines, _shown(test)) for of, name, state, lines, test in STATES)
    statements = ((section, lines, said, _shown(test)) for section, lines, said, test in STATEMENTS)
    return (
        title("Conformance: the draft of 2010")
        + _HEAD
        + title("Types", "-")
        + _TYPES
        + table(("type", "code", "fields", "lines", "test"), _types(), (18, 10, 34, 12, 26))
        + "\n"
        + title("States", "-")
        + _STATES
        + table(("of", "state", "here", "lines", "test"), states, (10, 20, 14, 14, 42))
        + "\n"
        + title("Statements", "-")
        + _STATEMENTS
        + counted(REQUIREMENTS)
        + "\n"
        + table(("section", "lines", "statement", "test"), statements, (10, 14, 36, 40))
    )
