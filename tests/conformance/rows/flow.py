"""2.7.4: the fields of flow."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RULE, SHOULD, SHOULD_NOT, Change, need

REQUIREMENTS = [
    need(
        "2.7.4-1",
        MUST,
        "next-incoming-id is set when the peer's begin has come",
        "flow_says_next_incoming_id_as_soon_as_a_begin_has_come_and_counts_on",
        "flow_leaves_next_incoming_id_out_before_the_peers_begin_has_come",
        mutant=Change("next_incoming_id=self.next_incoming_id,", "next_incoming_id=None,"),
    ),
    need(
        "2.7.4-2",
        MUST_NOT,
        "it is set before that",
        "flow_leaves_next_incoming_id_out_before_the_peers_begin_has_come",
        mutant=Change(
            "next_incoming_id=self.next_incoming_id,", "next_incoming_id=self.next_incoming_id or 0,"
        ),
    ),
    need(
        "2.7.4-3",
        RULE,
        "a flow without a handle is about the session alone",
        "flow_without_a_handle_changes_no_link",
        "session_opens_its_window_again_when_half_of_it_is_used",
    ),
    need(
        "2.7.4-4",
        MUST,
        "a flow for a handle without a link ends the session with unattached-handle",
        "row_42_frame_for_a_handle_without_a_link_ends_the_session",
        "row_42_frames_for_a_handle_that_the_peer_detached_end_the_session",
        "[unattached-handle]",
        mutant=Change("    if link is None:\n        errant = ", "    if False:\n        errant = "),
    ),
    need(
        "2.7.4-5",
        MUST_NOT,
        "a flow without a handle has a delivery-count",
        "flow_of_the_session_alone_says_nothing_of_a_link",
        mutant=Change("encode(windows.flow())", "encode(windows.flow(delivery_count=0))"),
    ),
    need(
        "2.7.4-6",
        MUST,
        "a sender's flow has its delivery-count",
        "flow_of_a_sender_says_its_count_and_the_receivers_last_credit_and_drain",
        "drained_gives_the_credit_up_and_says_so",
        mutant=Change(
            "delivery_count=self.delivery_count,",
            "delivery_count=None if self.role is Role.SENDER else self.delivery_count,",
        ),
    ),
    need(
        "2.7.4-7",
        MUST,
        "a receiver's flow has the last one that it knows of",
        "flow_of_a_receiver_says_the_last_count_that_it_knows",
        "row_58_initial_delivery_count_reads_as_zero_when_it_is_null",
        mutant=Change(
            "delivery_count=self.delivery_count,",
            "delivery_count=self.delivery_count if self.role is Role.SENDER else None,",
        ),
    ),
    need(
        "2.7.4-8",
        MUST_NOT,
        "it has one before the sender's attach has come",
        "set_credit_before_the_peers_attach_leaves_the_delivery_count_open",
        mutant=Change("delivery_count=self.delivery_count,", "delivery_count=self.delivery_count or 0,"),
    ),
    need(
        "2.7.4-9",
        RULE,
        "a sender's flow has what is left of the receiver's last link-credit",
        "flow_of_a_sender_says_its_count_and_the_receivers_last_credit_and_drain",
    ),
    need(
        "2.7.4-10",
        MUST_NOT,
        "a flow without a handle has a link-credit",
        "flow_of_the_session_alone_says_nothing_of_a_link",
        mutant=Change("encode(windows.flow())", "encode(windows.flow(link_credit=0))"),
    ),
    need(
        "2.7.4-11",
        RULE,
        "a receiver's flow has the last available of the sender",
        "flow_of_a_receiver_says_what_the_sender_last_had_available",
    ),
    need(
        "2.7.4-12",
        MUST_NOT,
        "a flow without a handle has available",
        "flow_of_the_session_alone_says_nothing_of_a_link",
        mutant=Change("encode(windows.flow())", "encode(windows.flow(available=0))"),
    ),
    need(
        "2.7.4-13",
        RULE,
        "drain is how the sender is, and how the receiver would have it",
        "flow_of_a_sender_says_its_count_and_the_receivers_last_credit_and_drain",
        "flow_of_a_receiver_says_the_drain_that_it_wants",
    ),
    need(
        "2.7.4-14",
        MUST_NOT,
        "a flow without a handle has drain",
        "flow_of_the_session_alone_says_nothing_of_a_link",
        mutant=Change("encode(windows.flow())", "encode(windows.flow(drain=True))"),
    ),
    need(
        "2.7.4-15",
        SHOULD,
        "a flow with echo is answered by the state of the session, and of the link that it names, as soon as can be",
        "echo_is_answered_at_once_and_the_answer_asks_for_none",
        "session_echoes_a_flow_that_came_before_it_was_answered",
        "session_echoes_a_flow_of_a_link_when_its_attach_is_answered",
        mutant=Change("    if flow.echo:\n", "    if False:\n"),
    ),
    need(
        "2.7.4-16",
        MAY,
        "where echo names no handle, the flow of a link may be the answer",
        "echo_for_the_session_is_answered_by_a_flow_of_a_link_where_one_is_due",
    ),
    need(
        "2.7.4-17",
        MAY,
        "several requests may have one answer",
        "row_61_echoes_and_drains_are_answered_by_one_flow_for_a_link_however_many_came",
        "session_writes_one_flow_however_often_it_is_asked",
    ),
    need(
        "2.7.4-18",
        SHOULD_NOT,
        "an answer asks for echo itself",
        "echo_is_answered_at_once_and_the_answer_asks_for_none",
        mutants=(
            Change(
                "    def write_flow(self, *, echo: bool = False) -> None:",
                "    def write_flow(self, *, echo: bool = True) -> None:",
            ),
        ),
    ),
    need(
        "2.7.4-19",
        MUST_NOT,
        "a flow without a handle has properties",
        "flow_of_the_session_alone_says_nothing_of_a_link",
        mutant=Change("encode(windows.flow())", 'encode(windows.flow(properties={"p": 1}))'),
    ),
]
