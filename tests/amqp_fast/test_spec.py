"""The table of commands has the numbers of the document."""

from __future__ import annotations

from tests.amqp_fast import naive
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.wire.commands import CommandTable


def test_table_of_commands_has_28_with_the_numbers_of_the_document() -> None:
    assert sorted(each.id or 0 for each in spec.COMMANDS) == sorted(naive.COMMANDS)
    assert spec.HandleSend.plan in list(spec.COMMANDS)
    assert repr(spec.HandleSend.plan) == "<handle send>"
    assert len(list(CommandTable([spec.HandleSend]))) == 1
