"""Every mechanism with right and wrong credentials, for tests of whole exchanges."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import pytest

from trio_amqp10 import sasl
from trio_amqp10.sasl import scram_client, scram_messages, scram_server
from trio_amqp10.sasl.scram_messages import HASHES

USERS = {"ada": "enigma"}
BINDINGS = {"tls-server-end-point": b"hashed", "tls-exporter": b"exported"}
CERTIFICATE = {"CN": "ada"}
SCRAM = [name + plus for name in HASHES for plus in ("", "-PLUS")]


derive = lru_cache(None)(scram_messages.derive_client_and_server_key)


@pytest.fixture(autouse=True)
def derive_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cache derived keys, because thousands of exchanges in a module need the same."""
    monkeypatch.setattr(scram_client, "derive_client_and_server_key", derive)
    monkeypatch.setattr(scram_server, "derive_client_and_server_key", derive)


async def fetch() -> str:
    return "good"


async def fetch_bad() -> str:
    return "bad"


async def verify(username: str, token: str) -> str | None:
    return username if token == "good" else None


@dataclass
class Case:
    """A mechanism with right and with wrong credentials."""

    client: sasl.ClientMechanism
    wrong: sasl.ClientMechanism
    server: list[sasl.ServerMechanism]
    context: sasl.ServerContext = field(default_factory=lambda: CONTEXT)
    bindings: dict[str, bytes] = field(default_factory=lambda: BINDINGS)


CONTEXT = sasl.ServerContext(channel_bindings=BINDINGS, peer_certificate=CERTIFICATE, entropy=bytes)
SERVER = sasl.Server(USERS, scram=list(HASHES), secret=bytes(32))
OFFER = SERVER.offer(True, context=CONTEXT)

CASES = {
    **{
        name: Case(sasl.Scram("ada", "enigma", name), sasl.Scram("ada", "other", name), OFFER)
        for name in SCRAM
    },
    "unknown user": Case(sasl.Scram("ada", "enigma"), sasl.Scram("bob", "enigma"), OFFER),
    "PLAIN": Case(sasl.Plain("ada", "enigma"), sasl.Plain("ada", "other"), OFFER),
    "EXTERNAL": Case(
        sasl.External(), sasl.External("bob"), [sasl.ExternalServer(lambda certificate: certificate["CN"])]
    ),
    "OAUTHBEARER": Case(
        sasl.OAuthBearer(fetch, "ada"), sasl.OAuthBearer(fetch_bad, "ada"), [sasl.OAuthBearerServer(verify)]
    ),
    "XOAUTH2": Case(sasl.XOAuth2(fetch, "ada"), sasl.XOAuth2(fetch_bad, "ada"), [sasl.XOAuth2Server(verify)]),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
SECRETS = (b"enigma", b"other")


def sides(case: Case, *, wrong: bool = False, size: int = 8192) -> tuple[sasl.SaslClient, sasl.SaslServer]:
    client = sasl.SaslClient(
        [case.wrong if wrong else case.client],
        hostname="h",
        channel_bindings=case.bindings,
        entropy=bytes,
        max_frame_size=size,
    )
    return client, sasl.SaslServer(case.server, context=case.context, max_frame_size=size)
