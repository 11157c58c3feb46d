"""Requests: the parts of a path, the virtual host, flags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.served import quoted, served
from trio_amqp10.container import Container
from trio_amqp10.container.virtual_hosts import VirtualHosts
from trio_amqp10.http.api.call import _decoded
from trio_amqp10.http.errors import RequestError


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_every_name_goes_through_a_path(name: str) -> None:
    assert _decoded("name", quoted(name)) == name


@pytest.mark.parametrize("part", ["%", "%2", "%g0", "%%20", "%FF", "%C3", "%ED%A0%80", "a" * 256])
def test_part_that_is_no_name_is_refused(part: str) -> None:
    with pytest.raises(RequestError) as caught:
        _decoded("name", part)
    assert caught.value.status == 400


async def test_only_the_hosts_of_the_container_are_there() -> None:
    async with served() as client:
        assert await client.put("queues/%2f/q") == 201
        for host in ("%2F%2F", "none", "%20"):
            assert (await client.fault("GET", f"queues/{host}"))[0] == 404
            assert (await client.fault("PUT", f"queues/{host}/q", {}))[0] == 404


async def test_container_with_hosts_has_their_names() -> None:
    container = Container("box", strict=True)
    VirtualHosts({"a.example": container, "b.example": container})
    async with served(container) as client:
        assert await client.put("queues/b.example/q") == 201
        assert [each["vhost"] for each in await client.get("queues/b.example")] == ["b.example"]
        assert [each["vhost"] for each in await client.get("queues")] == ["a.example"]
        assert [each["name"] for each in await client.get("vhosts")] == ["a.example", "b.example"]
        assert (await client.fault("GET", "queues/%2F"))[0] == 404


async def test_flag_is_true_or_false() -> None:
    async with served() as client:
        await client.put("queues/%2F/q")
        assert (await client.fault("DELETE", "queues/%2F/q?if-empty=perhaps"))[0] == 400
        assert await client.delete("queues/%2F/q?if-empty=true&if-unused=false") == 204
