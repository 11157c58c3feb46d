"""Basic authentication and certificates of HTTP clients."""

from __future__ import annotations

import base64
import ssl
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import trio_amqp10.http.login as module
from tests.amqp10.peer.authority import authority
from trio_amqp10 import tls
from trio_amqp10.container import Container
from trio_amqp10.http.errors import RequestError
from trio_amqp10.http.login import ConnectionLogin
from trio_amqp10.sasl import Credentials, ExternalServer, Server
from trio_amqp10.tools.cli.serve import owner_of

from .served import served

USERS = {"ada": "secret", "ün": "pä:ss"}


@pytest.fixture(autouse=True)
def _short_penalty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FAILURE_PENALTY", 0.01)
    monkeypatch.setattr(module, "_JITTER", 0.01)


@pytest.mark.parametrize("login", list(USERS.items()))
async def test_user_with_the_right_password_is_let_in(login: tuple[str, str]) -> None:
    async with served(users=USERS) as client:
        name, password = (each.encode() for each in login)
        answer = await client.ask("GET", "whoami", auth=(name, password))
    assert answer.json()["name"] == login[0]


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Basic",
        "Basic !!!",
        "Basic YWRh",
        "Bearer abc",
        "Basic " + base64.b64encode(b"ada:wrong").decode(),
        "Basic " + base64.b64encode(b":secret").decode(),
        "Basic " + base64.b64encode(b"\xff:secret").decode(),
        "Basic " + base64.b64encode(b"ada\0ada:secret").decode(),
        "Basic " + base64.b64encode(b"nobody:secret").decode(),
    ],
)
async def test_any_other_login_is_refused_with_a_challenge(authorization: str | None) -> None:
    async with served(users=USERS) as client:
        client.http.auth = None
        headers = {} if authorization is None else {"Authorization": authorization}
        answer = await client.ask("GET", "overview", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic ")
    assert set(answer.json()) == {"error", "reason"}


async def test_login_of_a_request_is_that_of_the_request_and_not_of_the_connection() -> None:
    async with served(users=USERS) as client:
        assert (await client.get("whoami"))["name"] == "ada"
        assert (await client.ask("GET", "whoami", auth=("ada", "wrong"))).status_code == 401
        client.http.auth = None
        assert (await client.ask("GET", "whoami")).status_code == 401


async def test_failures_lock_a_user_out_even_with_the_right_password() -> None:
    async with served(users=USERS, max_failures=2) as client:
        for _ in range(3):
            assert (await client.ask("GET", "whoami", auth=("ada", "wrong"))).status_code == 401
        async with httpx.AsyncClient(base_url=client.http.base_url, auth=("ada", "secret")) as other:
            assert (await other.get("/api/whoami")).status_code == 401


async def test_salted_keys_are_checked_too() -> None:
    users = Credentials()
    users.set_password("ada", "secret", iterations=4096)
    container = Container("box")
    async with served(container, users=USERS) as client:
        client.container._logins[0].replace_by(Server(credentials=users, verify=users.verify))
        assert (await client.get("whoami"))["name"] == "ada"
        assert (await client.ask("GET", "whoami", auth=("ada", "wrong"))).status_code == 401


async def test_certificate_is_a_login_without_a_password() -> None:
    ours, clients = authority(), authority("clients")
    context = tls.server_context(ours.issue().file, client_cafile=clients.cafile)
    trusts = ssl.create_default_context(cafile=ours.cafile)
    trusts.load_cert_chain(clients.issue(common_name="ada").file)
    sasl = Server(mechanisms=[ExternalServer(owner_of)])
    async with served(url="https://127.0.0.1:0", ssl_context=context, trusts=trusts, server=sasl) as client:
        assert (await client.get("whoami"))["name"] == "ada"


async def test_password_that_would_not_be_secret_is_not_even_looked_at() -> None:
    accepted: Any = SimpleNamespace(
        sasl=Server(users=USERS),
        private=False,
        allow_plaintext_password=False,
        transport=SimpleNamespace(channel_bindings={}, peer_certificate=None),
    )
    with pytest.raises(RequestError) as caught:
        await ConnectionLogin(accepted).identify("Basic YWRhOnNlY3JldA==")
    assert caught.value.status == 403
