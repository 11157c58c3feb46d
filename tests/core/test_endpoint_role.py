"""Which end of a connection may send what."""

from __future__ import annotations

import pytest

from trio_amqp10.core.endpoint_role import EndpointRole


@pytest.mark.parametrize(
    ("sender", "permitted"),
    [
        (EndpointRole.CLIENT, {EndpointRole.CLIENT}),
        (EndpointRole.SERVER, {EndpointRole.SERVER}),
        (EndpointRole.BOTH, {EndpointRole.CLIENT, EndpointRole.SERVER, EndpointRole.BOTH}),
    ],
)
def test_role_permits_itself_and_both_permits_all(sender: EndpointRole, permitted: set[EndpointRole]) -> None:
    assert {role for role in EndpointRole if sender.permits(role)} == permitted
