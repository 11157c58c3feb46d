"""Addresses of bindings have a hash of their arguments."""

from __future__ import annotations

from trio_amqp10.amqp10.wire.values import UInt
from trio_amqp10.testing.rabbitmq_emulator.addresses import hash_of

from .helpers import client


async def test_bindings_with_arguments_are_listed_and_ended_one_by_one() -> None:
    async with client() as (_, ask):
        await ask("PUT", "/queues/q", {})
        table = [{"n": -1}, {"n": -2}, {"n": 1, "x-match": "any"}, {}]
        for arguments in table:
            body = {"source": "amq.headers", "destination_queue": "q", "arguments": arguments}
            assert await ask("POST", "/bindings", body) == (204, None)
        listing = "/bindings?src=amq.headers&dstq=q&key="
        found = (await ask("GET", listing))[1]
        assert [each["arguments"] for each in found] == table
        places = [each["location"] for each in found]
        assert places[-1].endswith(";key=;args=")
        assert len(set(places)) == 4
        for n, place in enumerate(places, 1):
            assert await ask("DELETE", place) == (204, None)
            assert [each["location"] for each in (await ask("GET", listing))[1]] == places[n:]


def test_hash_of_the_arguments_of_a_binding_is_the_same_for_equal_ones() -> None:
    assert hash_of({"a": 1, "b": [True, None]}) == hash_of({"b": [True, None], "a": UInt(1)})
    assert hash_of({"a": 1}) != hash_of({"a": True})
    assert len(hash_of({"a": {"b": 1}})) == 6
