"""What a peer asks for that wants to be alone, and what the container answers."""

from __future__ import annotations

import trio_amqp10 as amqp

from .sole_connections import refused, scripted


async def test_detection_is_told_to_who_asks() -> None:
    container = amqp.Container()
    async with scripted(container) as peer:
        answer = await peer.dial_open(
            container_id="me", desired_capabilities=["sole-connection-for-container"]
        )
        assert "sole-connection-for-container" in answer["offered_capabilities"]
        assert answer["properties"] == {"sole-connection-detection-policy": 0}


async def test_policy_that_is_none_is_refused() -> None:
    container = amqp.Container()
    failure = await refused(
        container,
        container_id="me",
        desired_capabilities="sole-connection-for-container",
        properties={"sole-connection-enforcement-policy": amqp.UInt(7)},
    )
    assert failure.condition == "amqp:invalid-field"
    assert failure.error is not None
    assert (
        failure.error.description
        == "sole-connection-enforcement-policy=UInt(7): expected 0 (refuse) or 1 (close existing)"
    )
    assert failure.error.info == {"invalid-field": "properties"}
