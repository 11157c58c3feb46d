"""``open_connection``: client properties, and the letters of field tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.amqp091.wire.fields import STRICT, USUAL

if TYPE_CHECKING:
    from trio_amqp10.amqp091.wire.fields import Letters


async def test_client_sends_its_capabilities_beside_the_properties_of_the_program(connected: Any) -> None:
    async with connected(client_properties={"team": "tea", "product": "kettle"}) as (broker, _):
        [peer] = broker.peers
        properties = peer.answer.client_properties
    assert (properties["team"], properties["product"]) == ("tea", "kettle")
    assert set(properties["capabilities"].values()) == {True}
    assert {"publisher_confirms", "basic.nack", "consumer_cancel_notify"} <= set(properties["capabilities"])


@pytest.mark.parametrize(("strict", "letters"), [(False, USUAL), (True, STRICT)], ids=["usual", "strict"])
async def test_strict_tables_selects_the_letters_of_field_tables(
    connected: Any, strict: bool, letters: Letters
) -> None:
    async with connected(strict_tables=strict) as (_, connection):
        assert connection.engine.letters is letters
