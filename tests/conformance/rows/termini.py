"""3.5: sources and targets, filters, distribution modes, expiry, and dynamic nodes."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RULE, SHOULD, Change, need

_ASKED_BY_NAME = (
    Change("if terminus.dynamic and terminus.address is not None:", "if False:"),
    Change("if asked.dynamic and asked.address is not None:", "if False:"),
)
_NOT_NAMED = Change("(self._amqp10.echoes and not asked.dynamic)", "asked.dynamic")
_NO_NAMES = Change("for name in (container_id, link_name)]", "for name in ('x', 'y')]")
_SAYS_ANYWAY = (
    Change("if terminus.dynamic_node_properties and not terminus.dynamic:", "if False:"),
    Change(
        "return actual_properties(asked.dynamic_node_properties) if asked.dynamic else None",
        "return actual_properties(asked.dynamic_node_properties)",
    ),
)

REQUIREMENTS = [
    need(
        "3.5.1-1",
        MUST_NOT,
        "a filter changes its answer for a message whose state and annotations are the same",
        "filter_says_the_same_of_a_message_whenever_it_is_asked",
        mutant=Change("self._tests = tuple(tests)", "self._tests = iter(tests)"),
    ),
    need(
        "3.5.2-1",
        MUST_NOT,
        "a source sends a message again that was accepted",
        "queue_gives_an_accepted_message_to_nobody_again",
        mutant=Change("                self.lease.accepted()\n", "                self.lease.released()\n"),
    ),
    need(
        "3.5.2-2",
        MUST,
        "the source of a link that copies keeps what it needs for that",
        "queue_shows_all_messages_in_order_and_keeps_them_when_copied",
        mutant=Change("seen[rank] = entry.order", "pass"),
        gap="while the link is attached: nothing of such a source is kept then, and the answer shows it "
        "(``test_answer_to_a_browser_says_that_nothing_is_kept_and_another_link_sees_all_again``)",
    ),
    need(
        "3.5.2-3",
        RULE,
        "move acquires a message before it is transferred and archives it when it is accepted; copy changes nothing",
        "queue_leases_what_it_moves_and_leaves_what_it_copies",
        "queue_shows_all_messages_in_order_and_keeps_them_when_copied",
        "queue_remembers_unsettled_copies_and_does_not_care_what_becomes_of_them",
    ),
    need(
        "3.5.3-1",
        MUST_NOT,
        "a receiver that asks for a dynamic node names an address",
        "opening_refuses_a_dynamic_node_that_is_half_one",
        "dynamic_node_is_refused_when_it_is_named",
        mutants=_ASKED_BY_NAME,
    ),
    need(
        "3.5.3-2",
        MUST,
        "the sender that has made the node sends its address",
        "dynamic_source_is_a_queue_for_any_connection_until_its_link_goes",
        "accepting_a_dynamic_node_needs_the_address_that_was_made",
        mutants=(_NOT_NAMED, Change("        check_made(source)\n", "")),
    ),
    need(
        "3.5.3-3",
        SHOULD,
        "that address has the link's name and the container-id of the receiver in it",
        "address_of_a_dynamic_node_says_who_had_it_made_and_cannot_be_guessed",
        mutant=_NO_NAMES,
    ),
    need(
        "3.5.3-4",
        MUST,
        "dynamic-node-properties is not set where dynamic is not true",
        "opening_refuses_a_dynamic_node_that_is_half_one",
        "node_properties_are_left_out_of_the_answer_when_no_dynamic_node_is_asked_for",
        "node_properties_are_echoed_for_a_dynamic_source_only",
        mutants=(
            *_SAYS_ANYWAY,
            Change(
                "dynamic_node_properties=asked.dynamic_node_properties if asked.dynamic else None,",
                "dynamic_node_properties=asked.dynamic_node_properties,",
            ),
        ),
        gap="from a peer that sets it anyway it is ignored",
    ),
    need(
        "3.5.3-5",
        RULE,
        "it has what the receiver wishes, and what the node of the sender has",
        "dynamic_terminus_is_answered_with_the_properties_that_its_node_has",
    ),
    need(
        "3.5.3-6",
        MUST,
        "a sender with more than one distribution-mode names the one in use",
        "queue_shows_all_messages_in_order_and_keeps_them_when_copied",
        "queue_leases_what_it_moves_and_leaves_what_it_copies",
        "lasting_subscription_that_all_share_is_found_by_its_name_alone",
        mutants=(
            Change(
                "distribution_mode=DistributionMode.COPY if copying else DistributionMode.MOVE,",
                "distribution_mode=None,",
            ),
            Change(
                "distribution_mode=DistributionMode.MOVE,\n                **expiry_fields(subscription_terms)",
                "**expiry_fields(subscription_terms)",
            ),
        ),
    ),
    need(
        "3.5.3-7",
        MAY,
        "a receiver may name the one that it wishes",
        "queue_shows_all_messages_in_order_and_keeps_them_when_copied",
        "browser_with_a_filter_sees_what_matches_and_takes_nothing",
    ),
    need(
        "3.5.3-8",
        RULE,
        "a receiver names the filter that it wants, a sender the filter that is in place",
        "answer_echoes_the_filters_that_are_applied_and_drops_those_that_are_not_known",
        "answer_echoes_no_filter_where_the_node_applies_none",
    ),
    need(
        "3.5.3-9",
        MUST,
        "a receiver checks that the filter in place will do, and detaches otherwise",
        "receiver_is_refused_when_a_filter_that_it_asked_for_is_not_in_place",
        "receiver_that_is_attached_again_looks_for_its_filters_once_more",
        mutants=(
            Change('if not asked or options.filters == "optional":', "if True:"),
            Change(
                "                self.check_answer(resumable.options)\n            except BaseException",
                "                pass\n            except BaseException",
            ),
        ),
    ),
    need(
        "3.5.3-10",
        RULE,
        "the default-outcome is for transfers that are settled without a terminal state",
        "default_outcome_counts_when_a_delivery_is_settled_without_an_outcome",
        "outcome_of_a_settlement_without_a_state_is_the_default",
        mutants=(
            Change(
                "link.permitted(outcome) if isinstance(outcome, OUTCOMES) else link.default_outcome",
                "link.default_outcome if outcome is None else link.permitted(outcome)",
            ),
            Change('return cast("Outcome", self.link.default_outcome)', "return RELEASED"),
        ),
    ),
    need(
        "3.5.3-11",
        RULE,
        "it is applied when the source is destroyed too",
        "queue_applies_the_default_outcome_to_what_is_unsettled_when_its_link_goes",
        mutant=Change("if default is None or self._node.may_refuse_outcomes:", "if True:"),
    ),
    need(
        "3.5.3-12",
        MUST,
        "it is an outcome",
        "archetype_field_refuses_what_does_not_provide_it",
        "archetypes_take_the_primitive_types_of_the_standard",
        mutant=Change('archetype("outcome")', 'archetype("delivery-state", "string")'),
    ),
    need(
        "3.5.3-13",
        RULE,
        "outcomes has those that can be chosen on the link: no other is chosen, and none has its effect",
        "full_queue_detaches_a_sender_whose_source_has_no_rejected",
        "consumer_that_gives_a_message_back_says_it_with_an_outcome_that_the_source_has",
        "consumer_that_releases_detaches_a_sender_whose_source_has_nothing_but_accepted",
        "[permitted-outcome]",
        "row_54_queue_applies_the_default_outcome_to_one_that_is_not_listed",
        gap="a program chooses its own outcomes as a receiver",
    ),
    need(
        "3.5.3-14",
        MAY,
        "outcomes may be empty: the default-outcome is for all then",
        "row_54_every_outcome_is_permitted_when_the_source_names_none",
        gap="a receiver that chooses another anyway is taken at it, as peers leave the field out and choose",
    ),
    need(
        "3.5.3-15",
        MUST,
        "a source with neither supports accepted",
        "row_54_every_outcome_is_permitted_when_the_source_names_none",
        mutant=Change(
            'frozenset(getattr(self.source, "outcomes", ())) or None',
            'frozenset(getattr(self.source, "outcomes", ()))',
        ),
    ),
    need(
        "3.5.3-16",
        MUST,
        "outcomes are symbolic descriptors of outcomes",
        "row_54_outcome_outside_the_list_reads_as_the_default_or_released",
        "opening_refuses_outcomes_that_are_no_descriptors",
        mutants=(
            Change(
                "plan_of(type(state)).name in self.outcomes", "type(state).__name__.lower() in self.outcomes"
            ),
            Change('if ":" not in outcome:', "if False:"),
        ),
    ),
    need(
        "3.5.3-17",
        MAY,
        "a mere producer may have a source without any field",
        "own_end_has_no_fields_when_the_program_names_none",
    ),
    need(
        "3.5.3-18",
        RULE,
        "capabilities has what the source can do, of what is asked for",
        "container_tells_the_capabilities_of_a_node_to_those_who_ask",
        "answer_echoes_the_filters_that_are_applied_and_drops_those_that_are_not_known",
    ),
    need(
        "3.5.4-1",
        MUST_NOT,
        "a sender that asks for a dynamic node names an address",
        "opening_refuses_a_dynamic_node_that_is_half_one",
        "dynamic_node_is_refused_when_it_is_named",
        mutants=_ASKED_BY_NAME,
    ),
    need(
        "3.5.4-2",
        MUST,
        "the receiver that has made the node sends its address",
        "dynamic_target_is_a_queue_too",
        "accepting_a_dynamic_node_needs_the_address_that_was_made",
        mutants=(_NOT_NAMED, Change("        check_made(target)\n", "")),
    ),
    need(
        "3.5.4-3",
        SHOULD,
        "that address has the link's name and the container-id of the sender in it",
        "address_of_a_dynamic_target_says_who_had_it_made",
        mutant=_NO_NAMES,
    ),
    need(
        "3.5.4-4",
        MUST,
        "dynamic-node-properties is not set where dynamic is not true",
        "opening_refuses_a_dynamic_node_that_is_half_one",
        "node_properties_are_left_out_of_the_answer_when_no_dynamic_node_is_asked_for",
        mutants=_SAYS_ANYWAY,
        gap="from a peer that sets it anyway it is ignored",
    ),
    need(
        "3.5.4-5",
        RULE,
        "it has what the sender wishes, and what the node of the receiver has",
        "dynamic_terminus_is_answered_with_the_properties_that_its_node_has",
    ),
    need(
        "3.5.4-6",
        MAY,
        "a mere consumer may have a target without any field",
        "own_end_has_no_fields_when_the_program_names_none",
    ),
    need(
        "3.5.5-1",
        RULE,
        "none, configuration and unsettled-state are the parts of a terminus that survive its process",
        "container_grants_what_it_can_keep",
        "source_is_recovered_from_the_store_when_the_container_was_killed",
        "link_that_was_not_durable_becomes_so_with_what_it_has_and_back",
        "exactly_once_survives_the_death_of_the_container_at_any_commit",
    ),
    need(
        "3.5.6-1",
        RULE,
        "the timer starts at the detach, at the end of the session, at the close of the connection, or never",
        "timer_starts_when_the_policy_says",
        "attach_asks_for_what_the_program_wants_kept",
        gap="a container keeps nothing for ever unless ``max_terminus_age`` is None, and its answer has the time",
    ),
    need(
        "3.5.6-2",
        RULE,
        "a link that is attached again in time stops it",
        "timer_stops_when_the_link_is_attached_again_and_starts_from_the_full_time",
        mutant=Change("retained.attached = True\n        _stop(retained)", "retained.attached = True"),
    ),
    need(
        "3.5.6-3",
        RULE,
        "and when it starts again it has its full time",
        "timer_stops_when_the_link_is_attached_again_and_starts_from_the_full_time",
    ),
    need(
        "3.5.6-4",
        RULE,
        "without a word a terminus lasts until its session has ended, and no longer",
        "message_waits_for_its_outcome_after_a_detach_while_the_session_lasts",
        gap="live deliveries do; a link that is attached again finds nothing, and the answer has session-end with 0",
    ),
    need(
        "3.5.7-1",
        RULE,
        "what was transferred on a link that moves is not available to other links",
        "queue_gives_to_those_who_have_credit_in_turn",
        "queue_leases_what_it_moves_and_leaves_what_it_copies",
    ),
    need(
        "3.5.7-2",
        RULE,
        "what was transferred on a link that copies is",
        "queue_leases_what_it_moves_and_leaves_what_it_copies",
        "queue_shows_all_messages_in_order_and_keeps_them_when_copied",
    ),
    need(
        "3.5.8-1",
        MUST,
        "the keys of a filter set are symbols",
        "names_of_a_filter_set_are_sent_as_symbols",
        mutant=Change(
            'Annotated[symbol_map, Named("filter-set")]',
            'Annotated[__import__("trio_amqp10.amqp10.wire.fields", fromlist=["plain_map"]).plain_map, Named("filter-set")]',
        ),
        gap="keys of other types are taken from a peer",
    ),
    need(
        "3.5.8-2",
        MUST,
        "its values are null or described types that are filters",
        "filter_is_dropped_when_it_is_not_understood",
        mutant=Change("        else:\n            dropped[name] = value\n            continue\n", ""),
        gap="what a program asks for goes out as it is: the filters of some services are not described",
    ),
    need(
        "3.5.8-3",
        RULE,
        "a message passes if it passes each filter",
        "message_passes_when_it_passes_all_filters",
    ),
    need(
        "3.5.8-4",
        RULE,
        "a name with null is as one that is not there",
        "everything_passes_when_there_are_no_filters",
    ),
    need(
        "3.5.9-1",
        MUST,
        "the lifetime-policy of a node is one of the types that are a lifetime policy",
        "dynamic_terminus_is_deleted_on_close_where_no_policy_is_asked_for",
        mutant=Change(
            '"lifetime-policy": _policy(asked),', '"lifetime-policy": (asked or {}).get("lifetime-policy"),'
        ),
    ),
    need(
        "3.5.9-2",
        MUST,
        "its supported-dist-modes are distribution modes, one or more",
        "dynamic_terminus_is_answered_with_the_properties_that_its_node_has",
        mutant=Change(
            'Array([DistributionMode.MOVE, DistributionMode.COPY], "symbol")', 'Array([], "symbol")'
        ),
    ),
    need(
        "3.5.9-3",
        RULE,
        "a dynamic node lives at least as long as the link that it was made for",
        "dynamic_node_lives_as_long_as_its_lifetime_policy_says",
    ),
    need(
        "3.5.10-1",
        RULE,
        "with delete-on-close it is deleted when that link is gone",
        "dynamic_node_lives_as_long_as_its_lifetime_policy_says",
        "dynamic_node_without_messages_stays_for_another_link_as_its_lifetime_policy_says",
    ),
    need(
        "3.5.11-1",
        RULE,
        "with delete-on-no-links when the last link from it or to it is gone",
        "dynamic_node_lives_as_long_as_its_lifetime_policy_says",
        "dynamic_node_without_messages_stays_for_another_link_as_its_lifetime_policy_says",
    ),
    need(
        "3.5.12-1",
        RULE,
        "with delete-on-no-messages when that link is gone, and all messages are",
        "dynamic_node_lives_as_long_as_its_lifetime_policy_says",
        "dynamic_node_with_a_message_under_lease_is_not_without_messages",
        "dynamic_node_without_messages_stays_for_another_link_as_its_lifetime_policy_says",
    ),
    need(
        "3.5.13-1",
        RULE,
        "with delete-on-no-links-or-messages when all links from it or to it are gone, and all messages",
        "dynamic_node_lives_as_long_as_its_lifetime_policy_says",
        "dynamic_node_with_a_message_under_lease_is_not_without_messages",
        "dynamic_node_without_messages_stays_for_another_link_as_its_lifetime_policy_says",
    ),
]
