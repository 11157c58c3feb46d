"""Part 3, messaging: what is asked of an implementation."""

from __future__ import annotations

from .requirement import MUST, MUST_NOT, RULE, SHOULD, need

__all__ = ["REQUIREMENTS"]

REQUIREMENTS = [
    need(
        "3.4.6",
        MUST,
        "what the receiver does not hold is sent anew, without the resume flag, for once or more",
        "resending_sends_as_new_what_the_receiver_does_not_have",
    ),
    need(
        "3.4.6",
        MUST,
        "what the receiver has an outcome for is resumed without payload, to settle it",
        "resending_takes_the_outcome_when_the_receiver_has_one",
        "outcome_that_the_sender_did_not_hear_is_said_again",
    ),
    need(
        "3.4.6",
        MUST,
        "a receiver without progress gets the whole message, resumed",
        "resending_resumes_from_where_the_receiver_wants_it",
    ),
    need(
        "3.4.6",
        MUST,
        "a sender with an outcome says it again, and the receiver takes it and settles",
        "resumed_delivery_is_settled_when_the_sender_holds_an_outcome_and_waits_for_us",
        "resending_settles_with_its_own_outcome_when_both_hold_one",
    ),
    need(
        "3.4.6",
        MUST_NOT,
        "an outcome is in a sender's map while the receiver may still need the message",
        "attach_says_which_deliveries_have_an_outcome_when_the_link_is_taken_up",
    ),
    need(
        "3.5.1",
        MUST_NOT,
        "a filter changes its mind on a message that did not change",
        "consumer_with_a_selector_gets_what_matches_and_leaves_the_rest_in_order",
        "filter_sees_what_the_last_outcome_changed",
    ),
    need(
        "3.5.2",
        MUST_NOT,
        "a source sends again what was accepted",
        "queue_accepts_a_message_once_it_holds_it",
        "queue_loses_nothing_when_a_receive_is_cancelled_at_any_time",
    ),
    need(
        "3.5.2",
        RULE,
        "move takes messages from the node, and copy leaves them",
        "queue_shows_all_messages_in_order_and_keeps_them_when_copied",
    ),
    need(
        "3.5.3, 3.5.4",
        MUST_NOT,
        "who asks for a dynamic node names an address",
        "dynamic_source_is_a_queue_for_any_connection_until_its_link_goes",
        "dynamic_target_is_a_queue_too",
    ),
    need(
        "3.5.3, 3.5.4",
        MUST,
        "who makes a dynamic node tells its address",
        "address_of_a_dynamic_node_is_that_of_the_peer",
        "dynamic_source_is_a_queue_for_any_connection_until_its_link_goes",
    ),
    need(
        "3.5.3, 3.5.4",
        SHOULD,
        "that address has the link's name and the peer's container-id in it",
        "address_of_a_dynamic_node_says_who_had_it_made_and_cannot_be_guessed",
    ),
    need(
        "3.5.3",
        MUST,
        "the sending end says the distribution-mode where it has more than one",
        "queue_shows_all_messages_in_order_and_keeps_them_when_copied",
    ),
    need(
        "3.5.3",
        MUST,
        "the receiving end checks the filters that are in place",
        "answer_echoes_the_filters_that_are_applied_and_drops_those_that_are_not_known",
        gap="the answer is shown in ``remote``, and the program decides",
    ),
    need(
        "3.5.3",
        MUST,
        "default-outcome is an outcome, and outcomes are symbols of outcomes",
        "archetypes_take_the_primitive_types_of_the_standard",
        "archetype_field_refuses_what_does_not_provide_it",
        "row_54_outcome_outside_the_list_reads_as_the_default_or_released",
    ),
    need(
        "3.5.3",
        RULE,
        "outcomes that a source does not permit are not applied",
        "[permitted-outcome]",
        "row_54_receiver_that_leaves_the_list_is_taken_at_the_default",
        "row_54_queue_applies_the_default_outcome_to_one_that_is_not_listed",
    ),
    need(
        "3.5.5",
        RULE,
        "a terminus survives as its durability says, with what is unsettled of durable messages",
        "container_grants_what_it_can_keep",
        "exactly_once_survives_the_death_of_the_container_at_any_commit",
        "lease_is_nobody_elses_after_a_restart_until_its_consumer_comes_back",
        "nothing_is_lost_or_doubled_exactly_once_when_the_container_is_killed",
    ),
    need(
        "3.5.6",
        RULE,
        "a terminus lasts as its expiry policy and time-out say",
        "subscription_stays_so_many_seconds_as_its_source_says",
        "timer_starts_when_the_policy_says",
        "lease_comes_back_to_the_queue_when_its_link_expires",
        "time_that_a_terminus_has_left_goes_on_after_a_restart",
        "attach_asks_for_what_the_program_wants_kept",
    ),
    need(
        "3.5.10 to 3.5.13",
        RULE,
        "a dynamic node lives as its lifetime policy says",
        "dynamic_node_lives_as_long_as_its_lifetime_policy_says",
        "dynamic_terminus_is_deleted_on_close_where_no_policy_is_asked_for",
    ),
]
