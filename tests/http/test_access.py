"""The gate: other origins, content types, sizes, times, and the headers of every answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import trio

from trio_amqp10.container import Container, Rules
from trio_amqp10.http.access import Gate, Limits
from trio_amqp10.http.api.routes import OPERATIONS
from trio_amqp10.http.page.files import FILES
from trio_amqp10.http.page.routes import OPERATIONS as OPERATIONS_OF_PAGE

from .served import Client, quoted, raw, served

if TYPE_CHECKING:
    from starlette.types import Message

SAFE = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.mark.parametrize("path", ["whoami", "nope", "queues/%FF/x", "queues?page=0"])
async def test_every_answer_has_the_headers_for_safety_and_no_cookie(path: str) -> None:
    async with served() as client:
        answer = await client.ask("GET", path)
    assert {name: answer.headers[name] for name in SAFE} == SAFE
    assert "set-cookie" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers
    assert "server" not in answer.headers
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("host", ["evil.example", "", "127.0.0.1.evil.example", "[::1", "10.0.0.1:80"])
async def test_without_users_another_name_of_this_machine_is_refused(host: str) -> None:
    async with served() as client:
        assert (await client.fault("GET", "whoami", headers={"Host": host}))[0] == 403
        for good in ("localhost", "127.0.0.1:1", "[::1]:80"):
            assert (await client.ask("GET", "whoami", headers={"Host": good})).status_code == 200


async def test_with_users_any_name_is_fine() -> None:
    async with served(users={"ada": "x"}) as client:
        assert (await client.ask("GET", "whoami", headers={"Host": "broker.example"})).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_page_of_another_origin_is_refused(headers: dict[str, str]) -> None:
    async with served() as client:
        assert (await client.fault("GET", "whoami", headers=headers))[0] == 403
        own = {"Origin": f"http://127.0.0.1:{client.port}", "Sec-Fetch-Site": "same-origin"}
        assert (await client.ask("GET", "whoami", headers=own)).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None]
)
async def test_change_needs_the_content_type_of_json(kind: str | None) -> None:
    async with served() as client:
        headers = {"Origin": f"http://127.0.0.1:{client.port}"} if kind is None else {"Content-Type": kind}
        answer = await client.ask("PUT", "queues/%2F/q", content=b"{}", headers=headers)
        assert answer.status_code == 415
        assert await client.get("queues") == []
        kind = "Application/JSON; charset=utf-8"
        answer = await client.ask("PUT", "queues/%2F/q", content=b"{}", headers={"Content-Type": kind})
        assert answer.status_code == 201


@pytest.mark.parametrize("name", ["Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode"])
async def test_program_that_is_no_browser_may_leave_out_the_content_type(name: str) -> None:
    async with served() as client:
        own = f"http://127.0.0.1:{client.port}" if name == "Origin" else "same-origin"
        answer = await client.ask("PUT", "queues/%2F/q", content=b"{}", headers={name: own})
        assert answer.status_code == 415
        assert (await client.ask("PUT", "queues/%2F/q", content=b"{}")).status_code == 201


@pytest.mark.parametrize("announced", [True, False])
async def test_body_above_the_limit_is_refused_before_it_is_read(announced: bool) -> None:
    async with served(max_body=1000) as client:
        length = "Content-Length: 100000000" if announced else "Transfer-Encoding: chunked"
        head = f"PUT /api/queues/%2F/q HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
        body = b"{" * 5000 if announced else b"1388\r\n" + b"{" * 5000 + b"\r\n"
        with trio.fail_after(20):
            answer = await raw(client.port, head.encode() + body)
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"1000 octets" in answer
        assert await client.get("queues") == []


async def test_body_of_the_limit_is_taken() -> None:
    async with served(max_body=1000) as client:
        body = b"{}" + b" " * 998
        headers = {"Content-Type": "application/json"}
        answer = await client.ask("PUT", "queues/%2F/q", content=body, headers=headers)
        assert answer.status_code == 201


async def test_path_above_the_limit_is_refused() -> None:
    async with served() as client:
        assert (await client.fault("GET", "queues/" + "a" * 5000))[0] == 414


async def test_headers_above_the_limit_are_refused_however_they_arrive() -> None:
    async with served() as client:
        for extra, status in ((15_000, 200), (16_500, 431), (60_000, 431), (90_000, 431)):
            answer = await client.ask("GET", "whoami", headers={"X-Extra": "a" * extra})
            assert answer.status_code == status
        line = f"GET /api/whoami?{'a' * 16_500} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert (await raw(client.port, line.encode())).startswith(b"HTTP/1.1 431")


async def test_request_that_takes_too_long_is_answered() -> None:
    container = Container("box", strict=True)
    container.add_queue("full", max_length=1)
    async with served(container, request_timeout=0.2) as client:
        body = {"properties": {}, "routing_key": "full", "payload": "x", "payload_encoding": "string"}
        path = "exchanges/%2F/amq.default/publish"
        assert (await client.post(path, body)) == {"routed": True}
        assert (await client.fault("POST", path, body))[:2] == (503, "timeout")
        assert (await client.get("queues/%2F/full"))["messages"] == 1


async def test_connection_goes_on_after_a_refused_request() -> None:
    async with served() as client:
        for path in ("nope", "queues/%2/x", "queues?page=0"):
            assert (await client.ask("GET", path)).status_code >= 400
            assert (await client.ask("GET", "whoami")).status_code == 200


async def test_open_path_needs_no_login() -> None:
    async def behind(_scope: object, _receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body"})  # type: ignore[operator]

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError

    gate = Gate(
        behind,
        Container("box").management.on_behalf_of,
        Limits(max_body=1, request_timeout=1),
        open_paths={"/healthz"},
    )
    scope = {"type": "http", "method": "GET", "raw_path": b"/healthz", "query_string": b""} | {
        "headers": [],
        "state": {},
    }
    await gate(scope, receive, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == 204
    with pytest.raises(KeyError, match="connection"):  # the state has no login: any other path asks for it
        await gate({**scope, "raw_path": b"/"}, receive, send)  # type: ignore[arg-type]


# -- rights ---------------------------------------------------------------------------------

RULES = Rules(
    ("root", "monitor manage create delete send receive", "*"),
    ("root", "monitor manage", "$management/*"),
    ("eye", "monitor", "orders"),
    ("eye", "monitor", "$management/*"),
    ("hand", "manage", "orders"),
    ("nobody", "open"),
)
USERS = {"root": "x", "eye": "x", "hand": "x", "nobody": "x"}


async def _as(client: Client, user: str) -> None:
    client.http.auth = (user, "x")  # type: ignore[assignment]


async def test_each_user_sees_and_changes_what_its_rights_permit() -> None:
    container = Container("box", strict=True, authorise=RULES)
    container.add_broker()
    for name in ("orders", "secret"):
        container.broker.declare_queue(name)  # type: ignore[union-attr]
    async with served(container, users=USERS) as client:
        assert {each["name"] for each in await client.get("queues")} == {"orders", "secret"}
        await _as(client, "eye")
        assert {each["name"] for each in await client.get("queues")} == {"orders"}
        assert (await client.get("whoami"))["tags"] == ["monitoring"]
        assert await client.get("connections") == []
        for method, path in (("DELETE", "queues/%2F/orders"), ("DELETE", "queues/%2F/orders/contents")):
            assert (await client.fault(method, path))[0] == 401
        assert (await client.fault("PUT", "queues/%2F/more", {}))[0] == 401
        await _as(client, "hand")
        assert (await client.fault("GET", "connections"))[0] == 401
        assert (await client.fault("GET", "overview"))[0] == 401
        assert await client.delete("queues/%2F/orders/contents") == 204
        await _as(client, "nobody")
        assert await client.get("queues") == []
        assert set(container.nodes) >= {"orders", "secret"}


async def test_user_without_a_right_cannot_tell_what_exists() -> None:
    container = Container("box", strict=True, authorise=RULES)
    container.add_broker().declare_queue("secret")
    async with served(container, users=USERS, login=("nobody", "x")) as client:
        for method, path, body in (
            ("GET", "queues/%2F/{}", None),
            ("DELETE", "queues/%2F/{}", None),
            ("DELETE", "queues/%2F/{}/contents", None),
            ("POST", "queues/%2F/{}/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}),
            ("GET", "queues/%2F/{}/bindings", None),
            ("GET", "exchanges/%2F/{}", None),
        ):
            there = await client.fault(method, path.format("secret"), body)
            other = await client.fault(method, path.format("nowhere"), body)
            assert there == (*other[:2], other[2].replace("nowhere", "secret"))


async def test_name_with_a_slash_is_one_name() -> None:
    async with served() as client:
        name = "a/b%2F?#ü <script>"
        assert await client.put(f"queues/%2F/{quoted(name)}") == 201
        assert (await client.get(f"queues/%2F/{quoted(name)}"))["name"] == name
        assert [each["name"] for each in await client.get("queues/%2F")] == [name]


EVERYTHING = [
    *((method, f"/api/{path}") for method, path, _ in OPERATIONS),
    *((method, f"/api/amqp10/{path}") for method, path, _ in OPERATIONS_OF_PAGE),
    *(("GET", path) for path in FILES),
    *((method, path) for method in ("GET", "HEAD") for path in ("/metrics", "/nothing", "/api/nothing")),
]


def spelled(path: str, name: str) -> str:
    """A path with its parts: the only virtual host, and this name."""
    return re.sub(r"{\w+}", quoted(name), path.replace("{vhost}", "%2F"))


@pytest.mark.parametrize("login", [None, ("nobody", "x")])
async def test_client_without_a_right_learns_nothing_from_any_route(login: tuple[str, str] | None) -> None:
    container = Container("box", strict=True, authorise=Rules(("root", "manage", "*")))
    container.add_broker().declare_queue("secret")
    async with served(container, users={"nobody": "x"}, metrics_queues=["*"]) as client:
        client.http.auth = login  # type: ignore[assignment]
        for method, path in EVERYTHING:
            answers = []
            for name in ("secret", "absent"):
                body = {"address": name, "source": name} if method in ("POST", "PUT") else None
                answer = await client.http.request(method, spelled(path, name), json=body)
                assert ("www-authenticate" in answer.headers) == (answer.status_code == 401)
                answers.append((answer.status_code, answer.text.replace(name, "NAME")))
            assert answers[0] == answers[1], path
            assert "secret" not in answers[0][1]
            if login is None:
                assert answers[0][0] == 401, path
            elif path == "/metrics":
                assert answers[0][0] == 403
    assert "secret" in container.nodes
