"""2.1: containers, connections, sessions, links, and which of them handles which frame."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, RULE, Change, need

REQUIREMENTS = [
    need(
        "2.1.1-1",
        MAY,
        "a container holds many nodes",
        "management_lists_nodes_by_type_attribute_and_place",
    ),
    need(
        "2.1.2-1",
        MUST,
        "frames arrive in the order in which they were sent, and none is left out",
        "engine_tells_and_writes_the_same_octet_by_octet",
        "frame_over_512_octets_is_held_with_all_that_follows_when_no_open_was_read",
        mutants=(
            Change("self._chunks = [buf[pos:]]", "self._chunks = []"),
            Change(
                "if self._held is not None:\n            self._held.append(head)",
                "if self._held is not None and size > self.frame_size:\n            self._held.append(head)",
            ),
        ),
    ),
    need(
        "2.1.2-2",
        MAY,
        "a connection has several sessions at once, as many as both ends have channels for",
        "sessions_begin_at_once_from_both_ends",
        "connection_begins_no_more_sessions_than_the_smaller_channel_max_has_room_for",
        mutant=Change("return len(self.ours) <= self._highest()", "return not self.ours"),
    ),
    need(
        "2.1.2-3",
        RULE,
        "a session has any number of links, in both directions",
        "session_carries_any_number_of_links_of_both_directions",
        "handles_are_used_up_to_handle_max_and_no_further",
        mutants=(
            Change("        if handle > self._handle_limit:", "        if handle > 1:"),
            Change("        if handle > self._handle_limit:", "        if handle >= self._handle_limit:"),
            Change("        if handle > self._handle_limit:", "        if False:"),
        ),
    ),
    need(
        "2.1.2-4",
        RULE,
        "the state of a terminus can outlive its connection; the link is resumed from it",
        "sender_takes_up_its_link_on_another_connection",
        "receiver_takes_up_its_link_with_what_it_holds",
    ),
    need(
        "2.1.3-1",
        RULE,
        "open and close are for the connection; begin, end, flow and disposition for a session; attach, transfer, "
        "detach and a flow with a handle for a link",
        "row_23_frame_on_an_unmapped_channel_closes",
        "row_42_frame_for_a_handle_without_a_link_ends_the_session",
        "session_echoes_a_flow_that_came_before_it_was_answered",
    ),
]
