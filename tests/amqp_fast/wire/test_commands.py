"""Commands: what cannot be written, and what is none."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.wire.commands import Command, command
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (spec.ConnectionOpen(virtual_path="x" * 256), "virtual_path"),
        (spec.ConnectionOpen(client_name="a\0b"), "client_name"),
        (spec.ConnectionOpen(client_name=b"a"), "client_name"),  # type: ignore[arg-type]
        (spec.ChannelAck(message_nbr=-1), "message_nbr"),
        (spec.HandleConsume(selector="text"), "selector"),  # type: ignore[arg-type]
        (spec.HandleConsume(selector=b"x" * 65536), "selector"),
    ],
)
def test_command_that_cannot_be_written_says_which_field(made: Command, name: str) -> None:
    with pytest.raises(LocalProtocolError, match=f"^{name} of {made.plan.name}: "):
        made.encode()


def test_command_without_types_of_fields_is_none() -> None:
    with pytest.raises(TypeError, match="is not a type of field"):

        @command(99, "test", sender=EndpointRole.BOTH)
        class Test(Command):
            field: int = 0


def test_plan_shows_its_name() -> None:
    assert repr(spec.ConnectionOpen.plan) == f"<{spec.ConnectionOpen.plan.name}>"
