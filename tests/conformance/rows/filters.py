"""E, sections 2 to 5: filters of a source ("AMQP Filter Expressions", working draft 10)."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, RULE, SHOULD, Change, need

_GROUPS = "not offered: no filters that contain filters"
_SIMPLE = "not offered: a filter compares simple values only"

_CAPABILITIES = Change(
    "return (ANONYMOUS_RELAY, _PAIRS, CAPABILITY, *capabilities())",
    "return (ANONYMOUS_RELAY, _PAIRS, CAPABILITY)",
)
_NO_CHECK = Change(
    'raise FilterError(f"filter {excerpt(name)}: {error.description}", error.position) from None', "continue"
)

REQUIREMENTS = [
    need(
        "E-2.1-1",
        RULE,
        "an evaluation that fails is neither true nor false: the negation of such a filter is not true either",
        "selector_does_not_match",
        mutant=Change("return not value if value.__class__ is bool else None", "return not value"),
    ),
    need(
        "E-2.1-2",
        RULE,
        "a filter does not read the body of a message",
        "filters_read_no_body",
        mutant=Change(
            "            for test in self._tests:\n",
            "            message.body  # noqa: B018\n            for test in self._tests:\n",
        ),
    ),
    need(
        "E-2.2-1",
        MUST,
        "the capabilities of a connection name the types of filters that the container applies",
        "answer_echoes_the_filters_that_are_applied_and_drops_those_that_are_not_known",
        mutant=_CAPABILITIES,
    ),
    need(
        "E-2.2-2",
        MUST,
        "AMQP_FILTEX_SQL_V1_0, AMQP_FILTEX_PROP_V1_0 and AMQP_FILTEX_GROUP_V1_0 are each offered for its own filters",
        "expressions_are_dropped_when_the_parser_is_not_installed",
        mutant=Change("    if is_available():\n", "    if True:\n"),
        gap="there are no groups, and so no AMQP_FILTEX_GROUP_V1_0",
    ),
    need(
        "E-2.2-3",
        MAY,
        "a container refuses some filters of a type that it offers",
        "filter_of_properties_raises_when_it_is_malformed",
        "parser_of_sql_says_what_is_wrong_and_where",
    ),
    need(
        "E-2.3-1",
        SHOULD,
        "a filter is checked before its link is attached",
        "attach_with_a_malformed_filter_is_answered_and_detached_with_invalid_field",
        mutant=_NO_CHECK,
    ),
    need(
        "E-2.3-2",
        MUST,
        "a malformed filter ends the link with invalid-field",
        "attach_with_a_malformed_filter_is_answered_and_detached_with_invalid_field",
        "filter_raises_when_it_is_malformed",
        mutant=Change(
            "    condition: Final = Condition.INVALID_FIELD", "    condition: Final = Condition.NOT_ALLOWED"
        ),
    ),
    need(
        "E-2.3-3",
        MUST,
        "a filter that is not supported ends the link",
        gap="not offered: such a filter is left out of the answer, as 3.5.3 asks, and the link stays",
    ),
    need(
        "E-2.3-4",
        RULE,
        "a message for which the evaluation fails is not delivered",
        "selector_does_not_match_when_the_section_it_reads_cannot_be_decoded",
        "filter_is_applied_and_echoed",
        mutants=(
            Change(
                "        except RemoteProtocolError:\n            return False\n\n    def __str__",
                "        except RemoteProtocolError:\n            return True\n\n    def __str__",
            ),
            Change(
                "        except RemoteProtocolError:\n            return False\n        return True",
                "        except RemoteProtocolError:\n            return True\n        return True",
            ),
        ),
    ),
    need(
        "E-2.3-5",
        MAY,
        "such a message is moved elsewhere",
        gap="not offered: it stays in its queue, for consumers with other filters",
    ),
    need("E-3-1", RULE, "the filters all (0x100), any (0x101) and not (0x102) contain filters", gap=_GROUPS),
    need("E-3-2", MAY, "the depth of such filters is limited", gap=_GROUPS),
    need("E-3-3", RULE, "a filter that fails makes the filter that contains it fail", gap=_GROUPS),
    need(
        "E-4-1",
        MUST,
        "the entries of a filter of header or properties are fields of that section, with values of their types",
        "filter_of_properties_raises_when_a_field_is_unknown_or_of_another_type",
        mutants=(
            Change('raise FilterError(f"properties has no field {excerpt(name)}")', "continue"),
            Change('raise FilterError(f"a properties filter: {error}") from None', "continue"),
        ),
        gap="there is no filter of the header",
    ),
    need(
        "E-4-2",
        MUST,
        "a filter with an invalid entry is malformed",
        "filter_raises_when_it_is_malformed",
        "filter_of_properties_raises_when_it_is_malformed",
        mutant=Change("if not 0 < len(entries) <= MAX_FIELDS:", "if len(entries) > 1000:"),
    ),
    need(
        "E-4-3",
        RULE,
        "a field that is absent has its default, or is null",
        "properties_filter_compares_fields",
        "properties_filter_needs_properties_unless_it_asks_for_nothing",
        gap="fields of the properties only, which are null: there is no filter of the header",
    ),
    need(
        "E-4-4",
        RULE,
        "all entries of a filter must match",
        "properties_filter_compares_fields",
        "application_properties_filter_compares_entries",
        mutants=(
            Change("return all(test(fields[index])", "return any(test(fields[index])"),
            Change("return all(key in values and", "return any(key in values and"),
        ),
    ),
    need(
        "E-4.1-1",
        RULE,
        "null in a filter matches any value",
        "application_properties_filter_compares_entries",
        mutant=Change(
            "        return lambda _: True\n    if isinstance(reference",
            "        return lambda value: value is None\n    if isinstance(reference",
        ),
        gap="in a filter of application properties the property must be there",
    ),
    need(
        "E-4.1-2",
        RULE,
        "numbers of different types match by value",
        "application_properties_filter_compares_entries",
        "properties_filter_compares_fields",
        mutant=Change(
            "not isinstance(value, bool) and plain(value) == expected",
            "value.__class__ is reference.__class__ and value == reference",
        ),
    ),
    need(
        "E-4.1-3",
        RULE,
        "strings and symbols match by their characters, in the same case",
        "application_properties_filter_compares_entries",
        "properties_filter_compares_fields",
        mutant=Change(
            "isinstance(value, str) and value == text",
            "isinstance(value, str) and value.lower() == text.lower()",
        ),
    ),
    need(
        "E-4.1-4",
        RULE,
        "``&s:`` asks for a suffix, ``&p:`` for a prefix, and ``&&`` stands for one & at the beginning",
        "properties_filter_compares_fields",
        mutants=(
            Change("value.startswith(text[3:])", "value == text[3:]"),
            Change("value.endswith(text[3:])", "value == text[3:]"),
            Change('text.startswith("&&"):\n        text = text[1:]', 'text.startswith("&&"):\n        pass'),
        ),
    ),
    need(
        "E-4.1-5",
        RULE,
        "a map matches if it has each entry of the filter that is not null, in any order",
        gap=_SIMPLE,
    ),
    need("E-4.1-6", RULE, "lists and arrays match by place, and arrays by their size as well", gap=_SIMPLE),
    need("E-4.1-7", MAY, "the restrictions of described types are not checked", gap=_SIMPLE),
    need(
        "E-4.2-1",
        RULE,
        "there are filters of the header (0x170), the delivery-annotations (0x171), the message-annotations (0x172) and "
        "the footer (0x178)",
        gap="not offered: expressions can name fields of these sections",
    ),
    need(
        "E-4.2-2",
        RULE,
        "there are filters of the properties (0x173) and the application-properties (0x174)",
        "filter_is_applied_and_echoed",
        mutants=(
            Change('("amqp:properties-filter", 0x173,', '("amqp:properties-filter", 0x178,'),
            Change(
                '("amqp:application-properties-filter", 0x174,',
                '("amqp:application-properties-filter", 0x178,',
            ),
        ),
    ),
    need(
        "E-5-1",
        RULE,
        "there are filters that are always true (0x110) and always false (0x111)",
        gap="not offered: an expression can be TRUE or FALSE",
    ),
]
