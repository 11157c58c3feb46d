"""The mark for the compiler changes no class where nothing is compiled."""

from __future__ import annotations

from trio_amqp10.core.mypyc_attributes import mypyc_attr


def test_marked_class_is_the_class_itself() -> None:
    class Plain:
        pass

    assert mypyc_attr(allow_interpreted_subclasses=True)(Plain) is Plain
