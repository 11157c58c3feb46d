"""What is shown of a filter that is malformed."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp10.filters import FilterError, Selector


def test_error_shows_little_of_a_long_word() -> None:
    with pytest.raises(FilterError) as caught:
        Selector("a " + "b" * 4000)
    assert len(str(caught.value)) < 300
