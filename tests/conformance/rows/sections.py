"""3.2.2 to 3.2.16: annotations, properties, application-properties, footer, and the message format."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, MUST_NOT, RULE, SHOULD, SHOULD_NOT, Change, need

_EMPTY = ("sections_are_found_whichever_are_present", "map_is_kept_sent_and_read")
_UNSAID = "message_says_nothing_of_its_content_when_its_program_does_not"
_PROGRAM = "the value that the program sets is not compared with that"
_MERGES = "queue_counts_a_failed_attempt_and_merges_annotations_when_modified"
_AGES = "queue_gives_a_message_on_with_what_is_left_of_its_ttl"
_HOP = "queue_drops_delivery_annotations_which_were_for_this_hop_only"
_UNKNOWN = "annotation_that_is_not_known_ends_the_link_when_strict_only"


def _encoding(name: str) -> Change:
    """Every message says this content-encoding, unless its program says another."""
    return Change(
        "        properties: list[Any] = [\n",
        f"        content_encoding = content_encoding or {name!r}\n        properties: list[Any] = [\n",
    )


REQUIREMENTS = [
    need(
        "3.2.2-1",
        RULE,
        "a delivery annotation that is not understood is not acted upon, and does not go on",
        _HOP,
    ),
    need(
        "3.2.2-2",
        SHOULD,
        "capabilities of the link, its source and its target show which delivery annotations an end understands",
        gap="nothing to show: no delivery annotation is sent here by itself, and none is understood",
    ),
    need(
        "3.2.2-3",
        MUST,
        "the value of the delivery annotation rejected is an error",
        "annotation_rejected_is_refused_when_it_is_no_error",
        "annotation_rejected_goes_out_when_it_is_an_error",
        mutants=(
            Change('    if "rejected" in annotations and not', "    if False and not"),
            Change("isinstance(value, Described) and value.descriptor in _ERROR", "False"),
        ),
        gap="checked when it is sent; nothing here acts upon one that comes",
    ),
    need("3.2.2-4", RULE, "no section of delivery annotations means an empty map", *_EMPTY),
    need(
        "3.2.3-1",
        SHOULD,
        "message annotations go on at each step",
        "queue_passes_on_the_octets_that_came",
        _HOP,
        mutants=(
            Change(
                "            self.octets: bytes = octets\n",
                "            message = Message.from_payload(octets)\n"
                "            message.annotations = None\n            self.octets = message.to_payload()\n",
            ),
            Change(
                "            message.delivery_annotations = None\n            return",
                "            message.delivery_annotations = None\n            message.annotations = None\n"
                "            return",
            ),
        ),
    ),
    need(
        "3.2.3-2",
        MUST,
        "a node on the way passes them on, but for what it changes or adds on purpose",
        _MERGES,
        _AGES,
        mutants=(
            Change("merged(message.annotations, annotations)", "merged({}, annotations)"),
            Change(
                "            message.ttl = left",
                "            message.ttl = left\n            message.annotations = None",
            ),
        ),
    ),
    need("3.2.3-3", RULE, "no section of message annotations means an empty map", *_EMPTY),
    need(
        "3.2.4-1",
        MUST,
        "a node on the way leaves the properties as they are",
        _MERGES,
        _AGES,
        "queue_gives_on_every_property_as_it_came",
        mutants=(
            Change(
                "            if failed:\n                message.delivery_count",
                "            message.subject = 'other'\n            if failed:\n                message.delivery_count",
            ),
            Change(
                "            message.ttl = left",
                "            message.ttl = left\n            message.message_id = None",
            ),
            Change(
                "            message.ttl = left\n",
                "            message.ttl = left\n            message.subject = None\n",
            ),
            Change(
                "            message.ttl = left\n",
                "            message.ttl = left\n            message.correlation_id = message.message_id\n",
            ),
            Change(
                "            message.ttl = left\n",
                "            message.ttl = left\n            message.content_type = None\n",
            ),
            Change(
                "            if failed:\n                message.delivery_count",
                "            message.group_id = None\n            if failed:\n                message.delivery_count",
            ),
            Change(
                "            if failed:\n                message.delivery_count",
                "            message.group_sequence = None\n            if failed:\n                message.delivery_count",
            ),
            Change(
                "            if failed:\n                message.delivery_count",
                "            message.user_id = None\n            if failed:\n                message.delivery_count",
            ),
        ),
    ),
    need(
        "3.2.4-2",
        RULE,
        "a message-id is that of one message only; its producer sees to that",
        "requests_have_ids_of_their_own_when_their_program_names_none",
        gap="for the ids that are made here, which are those of requests",
    ),
    need(
        "3.2.4-3",
        MAY,
        "a broker drops a message whose message-id has come before",
        gap="not offered: a queue takes every message, whatever its id",
    ),
    need(
        "3.2.4-4",
        MAY,
        "a node on the way authenticates the user-id",
        gap="not offered: it goes on as it came, and is not compared with the user whom the peer proved to be",
    ),
    need(
        "3.2.4-5",
        RULE,
        "to names the node that the message is for, which need not be the node at the end of its link",
        "queue_keeps_a_message_whose_to_names_another_node",
        "anonymous_terminus_routes_each_message_by_its_to",
    ),
    need(
        "3.2.4-6",
        RULE,
        "message-id and correlation-id are a ulong, a uuid, a binary or a string",
        "id_travels_as_one_of_its_four_types",
        "field_refuses_what_it_may_not_be",
        "row_31_field_of_a_wrong_type_is_refused_when_read",
    ),
    need(
        "3.2.4-7",
        SHOULD_NOT,
        "content-type is set where the type is not known",
        _UNSAID,
        "message_says_one_thing_of_its_content_and_no_other",
        mutant=Change(
            "        properties: list[Any] = [\n",
            "        content_type = content_type or 'application/octet-stream'\n        properties: list[Any] = [\n",
        ),
    ),
    need(
        "3.2.4-8",
        SHOULD,
        "content-type is application/octet-stream for octets that are truly opaque",
        gap="nothing to show: whether octets are opaque, the program knows",
    ),
    need(
        "3.2.4-9",
        SHOULD_NOT,
        "content-type is set for a body other than data",
        _UNSAID,
        "message_says_one_thing_of_its_content_and_no_other",
        mutant=Change(
            "        properties: list[Any] = [\n",
            "        content_type = content_type or 'text/plain'\n        properties: list[Any] = [\n",
        ),
        gap=_PROGRAM,
    ),
    need(
        "3.2.4-10",
        MUST_NOT,
        "content-encoding is set for a body other than data",
        _UNSAID,
        "message_says_one_thing_of_its_content_and_no_other",
        mutant=_encoding("gzip"),
        gap=_PROGRAM,
    ),
    need(
        "3.2.4-11",
        MUST_NOT,
        "content-encoding is identity",
        _UNSAID,
        "message_says_one_thing_of_its_content_and_no_other",
        mutant=_encoding("identity"),
        gap=_PROGRAM,
    ),
    need(
        "3.2.4-12",
        SHOULD_NOT,
        "better no content-encoding is set than that",
        _UNSAID,
        "message_says_one_thing_of_its_content_and_no_other",
        "queue_gives_on_every_property_as_it_came",
        mutants=(
            Change(
                "        properties: list[Any] = [\n",
                "        content_encoding = content_encoding or (content_type and 'identity')\n        properties: list[Any] = [\n",
            ),
            _encoding("identity"),
            Change(
                "            message.ttl = left\n",
                "            message.ttl = left\n            message.content_encoding = message.content_encoding or 'identity'\n",
            ),
            Change(
                "            if failed:\n                message.delivery_count",
                "            message.content_encoding = message.content_encoding or 'identity'\n            if failed:\n                message.delivery_count",
            ),
        ),
    ),
    need(
        "3.2.4-13",
        SHOULD_NOT,
        "content-encoding is compress",
        _UNSAID,
        "message_says_one_thing_of_its_content_and_no_other",
        mutant=Change(
            "        properties: list[Any] = [\n",
            "        content_encoding = content_encoding or 'compress'\n        properties: list[Any] = [\n",
        ),
        gap=_PROGRAM,
    ),
    need(
        "3.2.4-14",
        SHOULD_NOT,
        "content-encoding has several values",
        _UNSAID,
        "message_says_one_thing_of_its_content_and_no_other",
        mutant=Change(
            "        properties: list[Any] = [\n",
            "        content_encoding = content_encoding or 'gzip,compress'\n        properties: list[Any] = [\n",
        ),
        gap=_PROGRAM,
    ),
    need(
        "3.2.4-15",
        RULE,
        "content-encoding names what was applied to the data of that content-type, as in HTTP",
        "body_is_left_as_it_is_when_a_content_encoding_says_how_to_read_it",
        gap="the data are packed and unpacked by the program",
    ),
    need(
        "3.2.4-16",
        RULE,
        "a message has expired once its absolute-expiry-time is past",
        "queue_drops_messages_after_their_absolute_expiry_time",
        "clock_returns_the_earlier_of_two_deadlines",
    ),
    need(
        "3.2.5-1",
        RULE,
        "keys of application-properties are strings",
        "application_property_key_of_another_type_is_refused_when_sent",
    ),
    need(
        "3.2.5-2",
        RULE,
        "their values are of simple types: no map, list or array",
        "application_property_of_a_simple_type_is_sent",
        "application_property_of_another_type_is_refused_when_sent",
        gap="of a message that came such values are read, and go on as they came",
    ),
    need(
        "3.2.5-3",
        RULE,
        "the footer, after the body, has values that need the whole bare message",
        "head_comes_before_the_body_and_the_footer_behind_it",
        "queue_passes_on_the_octets_that_came",
    ),
    need(
        "3.2.10-1",
        RULE,
        "keys of annotations are symbols or ulongs",
        "annotation_keys_travel_as_symbols_and_ulongs",
        "annotation_key_of_another_type_is_refused_when_sent",
    ),
    need(
        "3.2.10-2",
        RULE,
        "ulongs, and symbols that do not begin with x-, are reserved",
        _UNKNOWN,
        "rejected_message_goes_to_the_dead_letters_with_what_its_consumer_said",
        gap="no reserved key is known here, and none is made; a program may send any",
    ),
    need(
        "3.2.10-3",
        MUST,
        "a key that begins with x-opt- and is not understood is ignored",
        "annotations_are_taken_when_strict_where_nothing_is_known_against_them",
        mutant=Change('return isinstance(key, Symbol) and key.startswith("x-opt-")', "return False"),
    ),
    need(
        "3.2.10-4",
        MUST,
        "a link is detached with not-implemented for any other key that is not understood",
        _UNKNOWN,
        "[annotation-keys]",
        mutant=Change(
            "                self.fail(rules.ANNOTATION_KEYS.broken(fault))\n                return",
            "                pass",
        ),
        gap="where ``Strict(annotation_keys=True)`` asks for it: peers in the field send keys of their own "
        "without that beginning, which are kept and passed on otherwise",
    ),
    need(
        "3.2.16-1",
        RULE,
        "the message-format of such messages is 0",
        "send_writes_a_transfer_and_counts",
        "payload_is_not_looked_at_before_an_attribute_is_read",
        "queue_passes_on_other_message_formats_untouched",
    ),
]
