"""E, sections 6 to 8: expressions that are filters ("AMQP Filter Expressions", working draft 10)."""

from __future__ import annotations

from tests.conformance.requirement import MUST, MUST_NOT, RULE, SHOULD, Change, need

_FUNCTIONS = "not offered: expressions have no functions, and a call is an error of syntax"

REQUIREMENTS = [
    need(
        "E-6.1-1",
        RULE,
        "amqp:sql-filter has the descriptor 0x120, and its value is an expression",
        "filter_is_applied_and_echoed",
        mutant=Change('Symbol("amqp:sql-filter"), ULong(0x120)', 'Symbol("amqp:sql-filter"), ULong(0x121)'),
        gap="with the extra ``selector``; without it the filter is left out of the answer",
    ),
    need(
        "E-6.2-1",
        MUST,
        "if a value cannot be converted to the type that an operator needs, the evaluation fails",
        "selector_does_not_match",
        mutant=Change(
            "        value = operand(message)\n        if not _is_number(value):\n            return None\n"
            "        return -value",
            "        value: Any = operand(message)\n        return -value",
        ),
        gap="in arithmetic; a comparison of two values of unlike types is false, as in JMS",
    ),
    need(
        "E-6.2-2",
        MUST,
        "numbers of the types that the draft lists are converted to one type before they are compared or computed with",
        "selector_matches",
        mutants=(
            Change("return isinstance(value, (int, float)) and", "return isinstance(value, int) and"),
            Change('return float("nan") if number.is_nan() else float(number)', "return OTHER"),
        ),
        gap="integers of any type, floats and decimals; the pairs of types are not shown one by one",
    ),
    need(
        "E-6.2-3",
        MUST_NOT,
        "a conversion narrows a value",
        "integers_compare_exactly_when_no_float_has_their_value",
        mutant=Change(
            'is too large an integer", token.start_pos)\n    return Constant(number)',
            'is too large an integer", token.start_pos)\n    return Constant(float(number))',
        ),
        gap="a decimal becomes the nearest float",
    ),
    need(
        "E-6.2-4",
        MUST_NOT,
        "an overflow makes the evaluation fail",
        "selector_matches",
        mutant=Change("                result = float(result)\n", "                return None\n"),
        gap="an integer that overflows becomes a float and a float infinite, not a value that is no number",
    ),
    need(
        "E-6.2-5",
        MUST,
        "timestamps compare with integers, and with strings as ISO 8601 has them",
        "timestamps_compare_with_integers",
        mutant=Change(
            "    if value.__class__ in _PLAIN or isinstance",
            "    if isinstance(value, Timestamp):\n        return OTHER\n    if value.__class__ in _PLAIN or isinstance",
        ),
        gap="not with strings",
    ),
    need(
        "E-6.3-1",
        MUST,
        "``%`` of LIKE takes as few characters as possible",
        gap="nothing to show: whether a text is like a pattern does not depend on it",
    ),
    need(
        "E-6.3-2",
        MUST,
        "behind IN is a set of values",
        "parser_of_sql_says_what_is_wrong_and_where",
        "selector_matches",
        mutants=(
            Change(
                '"(" sum ("," sum)* ")"                  -> in_choices',
                '"(" (sum ("," sum)*)? ")" -> in_choices',
            ),
            Change("return In(parts[0], tuple(parts[1:]))", "return In(parts[0], tuple(parts[1:2]))"),
        ),
    ),
    need(
        "E-6.4-1",
        MUST,
        "the result of a division by zero is a float that is not a number",
        "selector_does_not_match",
        mutant=Change(
            "            except (ZeroDivisionError, ValueError):  # x / 0; the remainder of an infinity\n"
            "                return None",
            "            except (ZeroDivisionError, ValueError):  # x / 0; the remainder of an infinity\n"
            "                return 0",
        ),
        gap="the result is unknown; it differs only where a comparison with it is negated, which does not match",
    ),
    need(
        "E-6.4-2",
        MUST,
        "behind ``%`` is an integer",
        gap="not offered: a remainder can be taken of any two numbers",
    ),
    need("E-6.6-1", MUST, "functions of one implementation have a prefix of its vendor", gap=_FUNCTIONS),
    need("E-6.6-2", MUST, "the value of an unknown function is null", gap=_FUNCTIONS),
    need(
        "E-6.6-3",
        MUST,
        "counts and positions in LEFT, RIGHT and SUBSTRING are positive, and negative ones an error",
        gap=_FUNCTIONS,
    ),
    need("E-6.6-4", MUST, "a DATE without a time zone is in UTC", gap=_FUNCTIONS),
    need(
        "E-6.7-1",
        MUST,
        "a value is named by its section and its field, and an unknown field of a section is an error of syntax",
        "name_of_sql_is_read_from_its_place",
        "parser_of_sql_says_what_is_wrong_and_where",
        mutants=(
            Change("section = _SHORT.get(head)", "section = None"),
            Change(
                'raise FilterError(f"{section} has no field {excerpt(name)}", position)', "return fields[0]"
            ),
        ),
    ),
    need(
        "E-6.7-2",
        MUST,
        "the value of a field is of a simple type, a string, a symbol, or null",
        "values_are_plain_or_other",
        mutant=Change("    return OTHER\n", "    return value\n"),
        gap="any other value is not null, and no comparison with it is true",
    ),
    need(
        "E-6.7-3",
        MUST,
        "an entry that is not there, and an index outside of a list, is null",
        "selector_matches",
        mutant=Change("value = values.get(key)", 'value = values.get(key, "")'),
        gap="there are no indexes",
    ),
    need(
        "E-7.1-1",
        SHOULD,
        "the complexity of a filter is limited",
        "filter_of_properties_raises_when_it_is_malformed",
        "parser_says_what_is_wrong_and_where",
        "parser_refuses_what_is_nested_too_deeply",
        mutants=(
            Change("MAX_FIELDS: Final = 64", "MAX_FIELDS: Final = 640"),
            Change("max_length is not None and len(text) > max_length", "max_length is None"),
            Change("        if self.depth > MAX_DEPTH:", "        if self.depth > 2 * MAX_DEPTH:"),
        ),
    ),
    need(
        "E-7.1-2",
        SHOULD,
        "a limit that a filter exceeds is logged, and reported to the peer by a general error",
        gap="not offered: the detach names the limit, as for any malformed filter, and nothing is logged",
    ),
    need(
        "E-7.2-1",
        SHOULD,
        "messages and filters that are made to cause faults cause none",
        "selector_raises_nothing_when_the_message_cannot_be_decoded",
        "parser_raises_only_filter_errors_when_the_text_is_garbage",
        mutants=(
            Change(
                "        except RemoteProtocolError:\n            return False\n\n    def __str__",
                "        except ZeroDivisionError:\n            return False\n\n    def __str__",
            ),
            Change("        raise _explained(text, error) from None", "        raise"),
        ),
    ),
    need(
        "E-8-1",
        MUST,
        "each type of filter that is offered is implemented whole",
        gap="not yet: amqp:sql-filter has no functions and no indexes, and compares unlike types as JMS does",
    ),
]
