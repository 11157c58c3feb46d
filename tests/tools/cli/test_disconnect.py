"""``amqp10 disconnect``: closes a connection, and fails where there is none to close."""

from __future__ import annotations

import json
import time
from typing import Any

from .conftest import SECONDS, done, failed, serving, start


def receiving_from(url: str, address: str) -> set[str]:
    """The identities of the connections that receive from there."""
    links: list[dict[str, Any]] = json.loads(done("top", url, "--once", "--json"))["links"]
    return {each["connection"] for each in links if each["address"] == address}


def test_disconnect_closes_a_connection() -> None:
    with serving("--management", "--queue", "q") as url:
        receiver = start("receive", f"{url}/q", "--timeout", f"{SECONDS}")
        try:
            deadline = time.monotonic() + SECONDS
            while not (found := receiving_from(url, "q")):
                assert time.monotonic() < deadline
            assert done("disconnect", url, *found) == b""
            _, stderr = receiver.communicate(timeout=SECONDS)
        finally:
            receiver.kill()
        assert receiver.returncode == 1
        assert b"amqp:connection:forced" in stderr
        assert not receiving_from(url, "q")


def test_disconnect_fails_where_there_is_no_such_connection_or_no_management() -> None:
    with serving("--management") as url:
        assert "connection 99 was not closed: no connection '99'" in failed("disconnect", url, "99")
    with serving() as url:
        assert "the peer refuses $management" in failed("disconnect", url, "1")
