"""3.2 and 3.2.1: the sections of a message, and its header."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RULE, SHOULD, Change, need

_COUNTS = "queue_gives_a_message_again_with_the_count_and_first_acquirer_that_its_end_leaves"
_URGENT = "queue_gives_urgent_messages_first_and_keeps_order_among_equals"
_TEN = "queue_tells_ten_priorities_apart_and_takes_those_above_as_the_highest"
_TEN_LEVELS = "nothing to show: queues have ten levels"
_REFUSES = "where ``refuse_durable`` is set; other containers without a store accept them as others, for many clients make all durable"

REQUIREMENTS = [
    need(
        "3.2-1",
        RULE,
        "no node on the way changes the bare message: properties, application-properties and body",
        "intermediary_changes_the_header_and_leaves_the_bare_message",
        "bare_message_leaves_a_node_as_it_came",
        "bare_message_leaves_the_relay_as_it_came",
    ),
    need(
        "3.2-2",
        MUST_NOT,
        "a node on the way puts in a section of the bare message that was left out",
        "queue_puts_no_section_into_a_bare_message_that_it_gives_again",
        mutant=Change(
            "                message.annotations = merged(message.annotations, annotations)",
            "                message.annotations = merged(message.annotations, annotations)\n"
            "                message.subject = message.subject or ''",
        ),
    ),
    need(
        "3.2-3",
        MUST_NOT,
        "a node on the way encodes a section of the bare message again",
        "intermediary_changes_the_header_and_leaves_the_bare_message",
        "bare_is_what_came_between_the_annotations_and_the_footer",
        "bare_message_leaves_the_relay_as_it_came",
        "bare_message_is_the_octets_that_came_when_it_was_stored",
        mutant=Change(
            "                out += self._payload[span[0] : span[1]]",
            "                SECTION_WRITERS[place](out, read_section(place, self._payload, span, True))",
        ),
    ),
    need(
        "3.2-4",
        RULE,
        "header, delivery-annotations, message-annotations, properties, application-properties and footer are there "
        "once or not at all",
        "sections_are_found_whichever_are_present",
        "section_that_comes_twice_is_refused_when_read",
        "[sections]",
    ),
    need(
        "3.2-5",
        RULE,
        "a body is data sections, or amqp-sequence sections, or one amqp-value section",
        "body_travels_in_the_section_of_its_type",
        "body_joins_data_sections_and_sections_keeps_them",
        "body_joins_sequences_and_sections_keeps_them",
        "body_sections_of_two_kinds_are_refused_when_read",
    ),
    need(
        "3.2-6",
        RULE,
        "sections are in their order",
        "sections_out_of_order_are_refused_when_read",
        "sections_out_of_order_are_refused_when_strict_only",
        "[section-order]",
    ),
    need(
        "3.2-7",
        RULE,
        "a message has a body",
        "body_travels_in_the_section_of_its_type",
        "body_without_a_section_reads_as_none_and_stays_away",
        gap="one that comes without a body is read as None, and goes on as it came",
    ),
    need(
        "3.2.1-1",
        MUST,
        "a header that is not there means its defaults",
        "field_is_kept_sent_and_read",
        "terms_are_those_that_the_message_has",
        _URGENT,
        mutants=(
            Change('(HEADER, "priority", 4)', '(HEADER, "priority", 5)'),
            Change("NORMAL: Final = 4", "NORMAL: Final = 5"),
        ),
    ),
    need(
        "3.2.1-2",
        MUST_NOT,
        "a durable message is lost when a node on its way ends without warning and starts again",
        "queue_has_durable_messages_again_when_the_container_starts_again",
        "queue_accepts_and_gives_a_durable_message_only_when_it_is_stored",
        mutant=Change(
            "            self.durable: bool = durable\n",
            "            self.durable: bool = False\n",
        ),
        gap="in a container with a store",
    ),
    need(
        "3.2.1-3",
        MUST_NOT,
        "a target that may lose durable messages accepts one",
        "queue_rejects_a_durable_message_when_it_cannot_be_stored",
        mutant=Change(
            "    if failure is None:\n        accept(arrival)", "    if True:\n        accept(arrival)"
        ),
        gap="a container without a store keeps them in memory, and accepts them as others unless ``refuse_durable`` is set",
    ),
    need(
        "3.2.1-4",
        SHOULD,
        "it rejects them with precondition-failed where the source permits rejected",
        "node_without_a_store_rejects_durable_messages_when_it_is_to_refuse_them",
        mutant=Change(
            "        refuse(arrival, Condition.PRECONDITION_FAILED, why)", "        release(arrival)"
        ),
        gap=_REFUSES,
    ),
    need(
        "3.2.1-5",
        MUST,
        "it detaches the link with that error otherwise",
        "node_without_a_store_detaches_for_durable_messages_when_they_come_settled",
        mutant=Change(
            "    if arrival.settled:\n        inlet.close(Condition.PRECONDITION_FAILED.value, why)",
            "    if arrival.settled:\n        pass",
        ),
        gap=_REFUSES,
    ),
    need("3.2.1-6", MAY, "messages of higher priority go out before those of lower", _URGENT, _TEN),
    need(
        "3.2.1-7",
        MUST,
        "with n levels, fewer than ten, priorities 0 to 5 - ceiling(n/2) are the lowest level",
        gap=_TEN_LEVELS,
    ),
    need("3.2.1-8", MUST, "4 + floor(n/2) and above are the highest", gap=_TEN_LEVELS),
    need("3.2.1-9", MUST, "and those between are levels of their own", gap=_TEN_LEVELS),
    need(
        "3.2.1-10",
        MUST,
        "with n levels, ten or more, priorities 0 to n - 1 are levels of their own, and all above are as n - 1",
        _TEN,
        _URGENT,
        mutants=(
            Change("HIGHEST: Final = 9", "HIGHEST: Final = 8"),
            Change("            priority = highest\n", "            priority = 0\n"),
        ),
    ),
    need(
        "3.2.1-11",
        RULE,
        "ttl counts from the arrival of the message at a node",
        "queue_gives_a_message_on_with_what_is_left_of_its_ttl",
        "queue_drops_messages_after_their_ttl",
        "message_goes_on_to_expire_when_the_container_starts_again",
    ),
    need(
        "3.2.1-12",
        RULE,
        "a message that has outlived its ttl is dropped, or is a dead letter",
        "queue_drops_messages_after_their_ttl",
        "expired_message_goes_to_the_dead_letters_and_expires_no_more",
    ),
    need(
        "3.2.1-13",
        SHOULD,
        "a message goes on with what is left of its ttl",
        "queue_gives_a_message_on_with_what_is_left_of_its_ttl",
        "queue_shows_no_expired_message_and_ages_the_copies",
        "queue_drops_messages_after_their_absolute_expiry_time",
        mutant=Change("            message.ttl = left", "            message.ttl = self._ttl"),
    ),
    need(
        "3.2.1-14",
        RULE,
        "first-acquirer is true only before any link has acquired the message",
        _COUNTS,
        "first_acquirer_is_not_promised_again_when_the_container_starts_again",
    ),
    need(
        "3.2.1-15",
        MAY,
        "where it is false, another link may have acquired the message before",
        "queue_counts_an_attempt_when_the_connection_is_lost",
    ),
    need(
        "3.2.1-16",
        RULE,
        "delivery-count is 0 at the first delivery",
        "queue_counts_an_attempt_when_the_connection_is_lost",
    ),
    need(
        "3.2.1-17",
        RULE,
        "delivery-count goes up according to the outcome that is settled at the sender",
        _COUNTS,
        "dead_letter_of_a_rejected_message_has_its_delivery_count_raised",
        "queue_applies_the_default_outcome_to_what_is_unsettled_when_its_link_goes",
    ),
]
