"""The application joins its parts, and its own errors are JSON too."""

from __future__ import annotations

import pytest

from trio_amqp10.container import Container
from trio_amqp10.http.access import Gate
from trio_amqp10.http.application import Limits, application

from .served import served


def test_application_is_behind_the_gate() -> None:
    assert isinstance(application(Container("box"), Limits(max_body=1, request_timeout=1)), Gate)


@pytest.mark.parametrize("path", ["/page", "/nope", "/api", "/api/../x", "/%2e%2e/", "*"])
async def test_unknown_path_is_404_in_json(path: str) -> None:
    async with served() as client:
        answer = await client.http.get(path if path.startswith("/") else "/" + path)
        assert (answer.status_code, answer.json()["error"]) == (404, "Object Not Found")
