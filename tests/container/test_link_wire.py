"""Links to a container, frame by frame: what is refused, stolen, recovered, and heard after a detach (2.6, 2.7.3, 2.7.6)."""

from __future__ import annotations

import pytest

import trio_amqp10 as amqp
from trio_amqp10.spec.messaging import Source, Target
from trio_amqp10.spec.transport import Attach, Detach, Role

from .wire import on_the_wire

# -- dynamic nodes (3.5.3, 3.5.4) -----------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.SENDER, Role.RECEIVER])
async def test_dynamic_node_is_refused_when_it_is_named(role: bool) -> None:
    container = amqp.Container()
    async with on_the_wire(container) as peer:
        ends = (
            {"source": Source(dynamic=True, address="mine")}
            if role
            else {"target": Target(dynamic=True, address="mine")}
        )
        attached = await peer.attach("mine", role, **ends)
        assert (attached.source if role else attached.target) is None
        detached = await peer.expect(Detach, handle=attached.handle, closed=True)
        assert detached.error is not None
        assert detached.error.condition == "amqp:invalid-field"
        assert not container.nodes
        await peer.send(Detach(handle=0, closed=True))
        assert isinstance(await peer.attach("q", Role.SENDER, handle=1), Attach)
