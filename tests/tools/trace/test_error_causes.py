"""Each condition of the standard has a section and a cause; unknown ones say where to look."""

from __future__ import annotations

import pytest

from trio_amqp10.core.errors import Condition
from trio_amqp10.tools.trace.error_causes import CAUSES, cause_of


@pytest.mark.parametrize("condition", Condition)
def test_condition_of_the_standard_has_its_section_and_a_cause(condition: Condition) -> None:
    """The prefix tells which type defines it: amqp-error, connection-error, session-error, link-error, transaction-error."""
    kind = condition.split(":")[1] if condition.count(":") > 1 else ""
    sections = {
        "": "2.8.15",
        "connection": "2.8.16",
        "session": "2.8.17",
        "link": "2.8.18",
        "transaction": "4.5.8",
    }
    found = cause_of(str(condition))
    assert found is CAUSES[condition]
    assert found.section == sections[kind]
    assert found.usually.endswith(".")


def test_condition_of_a_peer_is_for_its_documentation() -> None:
    assert cause_of("com.example:odd").section == "2.8.14"
