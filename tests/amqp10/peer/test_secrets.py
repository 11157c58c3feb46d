"""No password, token or key is in a log, a repr or the text of an error, whichever mechanism, and however it ends."""

from __future__ import annotations

import base64
import logging
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

import trio_amqp10 as amqp
from trio_amqp10 import sasl
from trio_amqp10.net.transport_layers import AcceptedLayers
from trio_amqp10.net.urls import parse_url
from trio_amqp10.sasl.scram_messages import HASHES

from .authority import authority, serving
from .helpers import acceptor, idle

if TYPE_CHECKING:
    from collections.abc import Callable

PASSWORD, WRONG_PASSWORD = "pass-4711-word", "wrong-0815-word"
TOKEN, WRONG_TOKEN = "ey.token-4711.x", "ey.wrong-0815.x"
KEYS = {name: sasl.derive_keys(PASSWORD, name) for name in HASHES}
SECRETS = [PASSWORD, WRONG_PASSWORD, TOKEN, WRONG_TOKEN]
OCTETS = [
    *(secret.encode() for secret in SECRETS),
    *(octets for keys in KEYS.values() for octets in (keys.stored_key, keys.server_key)),
    b"server secret of 4711",
]


@dataclass
class Seen:
    """All that somebody could read of what happened."""

    texts: list[str] = field(default_factory=list)

    def object(self, *objects: object) -> None:
        for each in objects:
            self.texts += [repr(each), str(each)]

    def failure(self, failure: BaseException) -> None:
        self.texts.append("".join(traceback.format_exception(failure)))
        self.object(failure, *vars(failure).values())

    def check(self) -> None:
        """Of each secret nothing is there: plain, escaped, in hexadecimal, in base64 at any offset."""
        everything = "\n".join(self.texts)
        for octets in OCTETS:
            for form in forms(octets):
                assert form not in everything, form


def forms(octets: bytes) -> list[str]:
    found = [octets.hex(), octets.hex(" "), repr(octets)[2:-1], octets.decode("latin-1")]
    for shift in range(3):  # the first and the last characters depend on what stands beside it
        code = base64.b64encode(bytes(shift) + octets).decode()
        found.append(code[4:-4])
    return found


class Handler(logging.Handler):
    def __init__(self, seen: Seen) -> None:
        super().__init__(logging.DEBUG)
        self.seen = seen
        self.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.texts += [self.format(record), repr(record.args)]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every logger of ours at DEBUG, and the one for frames, as ``AMQP10_TRACE=frames`` has it."""
    seen = Seen()
    handler = Handler(seen)
    root = logging.getLogger("trio_amqp10")
    frames = logging.getLogger("trio_amqp10.frames")
    levels = [(logger, logger.level) for logger in (root, frames)]
    for logger, _ in levels:
        logger.setLevel(logging.DEBUG)
    root.addHandler(handler)
    yield seen
    root.removeHandler(handler)
    for logger, level in levels:
        logger.setLevel(level)


async def fetch() -> str:
    return TOKEN


async def fetch_wrong() -> str:
    return WRONG_TOKEN


async def verify_token(username: str, token: str) -> str | None:
    return username if token == TOKEN else None


async def verify(username: str, password: str) -> bool:
    return password == PASSWORD


async def raises(username: str, secret: str) -> Any:
    raise ValueError("the directory is down")


def scram_server() -> sasl.Server:
    return sasl.Server(credentials={"ann": KEYS}, scram=list(HASHES), secret=b"server secret of 4711")


Make = tuple["Callable[[bool], sasl.ClientMechanism]", "Callable[[], sasl.Server]"]

WAYS: dict[str, Make] = {
    "PLAIN": (
        lambda right: sasl.Plain("ann", PASSWORD if right else WRONG_PASSWORD),
        lambda: sasl.Server({"ann": PASSWORD}),
    ),
    "PLAIN, verified": (
        lambda right: sasl.Plain("ann", PASSWORD if right else WRONG_PASSWORD),
        lambda: sasl.Server(verify=verify),
    ),
    "OAUTHBEARER": (
        lambda right: sasl.OAuthBearer(fetch if right else fetch_wrong, "ann"),
        lambda: sasl.Server(mechanisms=[sasl.OAuthBearerServer(verify_token)]),
    ),
    "XOAUTH2": (
        lambda right: sasl.XOAuth2(fetch if right else fetch_wrong, "ann"),
        lambda: sasl.Server(mechanisms=[sasl.XOAuth2Server(verify_token)]),
    ),
    "EXTERNAL": (
        lambda right: sasl.External("" if right else "bob"),
        lambda: sasl.Server(mechanisms=[sasl.ExternalServer(lambda certificate: certificate.common_name)]),
    ),
}


def _scram(name: str) -> Make:
    return (lambda right: sasl.Scram("ann", PASSWORD if right else WRONG_PASSWORD, name), scram_server)


WAYS |= {name + plus: _scram(name + plus) for name in HASHES for plus in ("", "-PLUS")}


async def meet(seen: Seen, client: sasl.ClientMechanism, server: sasl.Server, *, secured: bool) -> bool:
    """A dialler and a listener of ours, with all that they are made of looked at; whether they came together."""
    ours, theirs = memory_stream_pair()
    options: dict[str, Any] = {}
    entrance = AcceptedLayers()
    if secured:
        certificate = authority("clients").issue(common_name="ann").file
        options = {"layers": ["tls"], "cafile": str(authority().cafile), "certfile": certificate}
        options["server_hostname"] = "localhost"
        entrance = AcceptedLayers(stacks=frozenset({("tls",)}), context=serving(clients="clients"))
    accepting = acceptor(sasl=server, entrance=entrance)

    async def handle(connection: amqp.Connection) -> None:
        seen.object(connection, connection.identity, connection.engine, connection.pump)
        await idle(connection)

    seen.object(client, server, accepting, *server.offer(True))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(accepting.run, theirs, handle)
        dialling = amqp.open_connection(ours, sasl=client, **options)
        seen.object(dialling)
        try:
            async with dialling as connection:
                seen.object(connection, connection.engine, connection.pump, connection.remote)
                return True
        except amqp.SecurityError as failure:
            seen.failure(failure)
            return False


@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
@pytest.mark.parametrize("way", WAYS)
async def test_secrets_of_a_mechanism_are_nowhere_to_be_read(
    way: str, right: bool, seen: Seen, autojump_clock: MockClock
) -> None:
    make_client, make_server = WAYS[way]
    secured = way == "EXTERNAL" or way.endswith("-PLUS")
    assert await meet(seen, make_client(right), make_server(), secured=secured) is right
    everything = "\n".join(seen.texts)
    assert "SaslInit(" in everything  # frames were looked at
    assert "p=" not in everything  # nor what lets passwords be tried without the server
    seen.check()


@pytest.mark.parametrize(
    ("client", "server"),
    [
        (sasl.Plain("ann", PASSWORD), sasl.Server(verify=raises)),
        (
            sasl.OAuthBearer(fetch, "ann"),
            sasl.Server(mechanisms=[sasl.OAuthBearerServer(raises)]),
        ),
    ],
)
@pytest.mark.logs_errors
async def test_secrets_are_nowhere_to_be_read_where_checking_them_fails(
    client: sasl.ClientMechanism, server: sasl.Server, seen: Seen, autojump_clock: MockClock
) -> None:
    assert not await meet(seen, client, server, secured=False)
    assert "the directory is down" in "\n".join(seen.texts)
    seen.check()


@pytest.mark.parametrize("scheme", ["amqp", "amqps", "amqpws"])
async def test_password_of_a_url_is_nowhere_to_be_read(scheme: str, seen: Seen) -> None:
    url = f"{scheme}://ann:{PASSWORD}@127.0.0.1:1"
    dialling = amqp.open_connection(url)
    seen.object(parse_url(url), dialling)
    with pytest.raises(OSError, match="127") as caught:
        async with dialling:
            pytest.fail("nobody listens there")
    seen.texts.append("".join(traceback.format_exception_only(caught.value)))
    for wrong in (f"http://ann:{PASSWORD}@h", f"amqp://ann:{PASSWORD}@h:port"):
        with pytest.raises(amqp.LocalProtocolError) as refused:
            amqp.open_connection(wrong)
        seen.object(refused.value)
    seen.check()


def test_secrets_of_credentials_are_nowhere_to_be_read(seen: Seen) -> None:
    credentials = sasl.Credentials({"ann": KEYS}, secret=b"server secret of 4711")
    seen.object(credentials, credentials["ann"], *credentials["ann"].values(), credentials.items())
    text = sasl.format_users(credentials)
    for line in text.splitlines()[1:]:
        with pytest.raises(amqp.LocalProtocolError) as refused:
            sasl.parse_users(text + line + " more\n")
        seen.object(refused.value)
    seen.check()
