"""Tokens of a command and of Entra: got, kept while fresh, renewed, and never shown."""

from __future__ import annotations

import base64
import json
import pickle
import shlex
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.amqp10.peer.town import Town
from trio_amqp10.core.tokens import JWT, SAS, Token, sign_sas
from trio_amqp10.spark import token_sources
from trio_amqp10.spark.connections import dial, with_reconnects
from trio_amqp10.spark.offset_reader import read
from trio_amqp10.spark.options import LogOptions, OptionError, QueueOptions
from trio_amqp10.spark.token_sources import CommandTokens, EntraTokens, FreshTokens, token_source
from trio_amqp10.testing.azure_emulator import HubOptions

from .desk import PATIENCE, dotted
from .hubs import KEY, KEY_NAME, HubServer

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "the-signature-of-a-token"
SIGN = """
import os, sys
from trio_amqp10.core.tokens import sign_sas
import time
open(sys.argv[2], "a").write("called\\n")
print(sign_sas(os.environ["AMQP10_AUDIENCE"], sys.argv[1], sys.argv[3], time.time() + 3600).value)
"""
FAIL_ONCE = """
import pathlib, sys
failed = pathlib.Path(sys.argv[1])
if not failed.exists():
    failed.touch()
    sys.exit(3)
print(sys.argv[2])
"""


def jwt(**claims: Any) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}.{SECRET}"


def python(program: str, *arguments: str) -> str:
    return shlex.join([sys.executable, "-c", program, *arguments])


def options(**given: str) -> QueueOptions:
    return QueueOptions.parse(
        {"url": "amqp://broker.example", "address": "q", "spool": "/nowhere"} | dotted(given)
    )


# A command ----------------------------------------------------------------------------------------


async def test_command_prints_a_jwt_with_its_expiry_or_a_sas_token() -> None:
    text = jwt(exp=1_900_000_000)
    found = await CommandTokens(python("import sys; print(sys.argv[1])", text))("sb://h/q")
    assert (found.value, found.type, found.expires) == (text, JWT, 1_900_000_000.0)
    signed = sign_sas("sb://h/q", "name", "key", 2_000_000_000).value
    found = await CommandTokens(python("import sys; print(sys.argv[1])", signed))("sb://h/q")
    assert (found.value, found.type, found.expires) == (signed, SAS, 2_000_000_000.0)


async def test_command_finds_the_audience_in_its_environment() -> None:
    program = "import os, sys; sys.exit(0 if os.environ['AMQP10_AUDIENCE'] == 'sb://h/q' else 3)"
    with pytest.raises(OptionError, match="printed no token"):
        await CommandTokens(python(program))("sb://h/q")
    with pytest.raises(OSError, match="ended with 3"):
        await CommandTokens(python(program))("sb://h/other")


@pytest.mark.parametrize(
    "printed", ["", "no token", SECRET, "Bearer a.b.c", "SharedAccessSignature sr=x", "\u00e9"]
)
async def test_output_that_is_no_token_is_an_error_that_does_not_show_it(printed: str) -> None:
    tokens = CommandTokens(python("import sys; sys.stdout.buffer.write(sys.argv[1].encode())", printed))
    with pytest.raises(OptionError, match="printed no token: expected a JSON Web Token") as caught:
        await tokens("sb://h/q")
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(tokens)


async def test_command_that_does_not_exist_is_named_and_one_that_hangs_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(OptionError, match="'/no/such' cannot be started: No such file"):
        await CommandTokens(f"/no/such --secret {SECRET}")("sb://h/q")
    monkeypatch.setattr(token_sources, "_PATIENCE", 0.2)
    with pytest.raises(TimeoutError, match=r"printed no token within 0\.2 s"):
        await CommandTokens(python("import time; time.sleep(60)"))("sb://h/q")


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ab")), max_size=20), st.integers(1, 60))
def test_token_is_used_again_until_four_fifths_of_its_lifetime_are_over(
    asked: list[tuple[int, str]], lifetime: int
) -> None:
    now = 1000.0
    made: dict[str, float] = {}

    async def source(audience: str) -> Token:
        made[audience] = now
        return Token(f"{audience}{now}", JWT, now + lifetime)

    tokens = FreshTokens(source, lambda: now)
    for pause, audience in asked:
        now += pause
        due = audience not in made or now >= made[audience] + 0.8 * lifetime
        before = made.get(audience)
        found = _run(tokens, audience)
        assert (made[audience] == now) if due else (made[audience] == before)
        assert found.value == f"{audience}{made[audience]}"


def _run(tokens: FreshTokens, audience: str) -> Token:
    coroutine: Any = tokens(audience)
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    raise AssertionError("it waited")


async def test_token_without_an_expiry_is_not_kept() -> None:
    made: list[str] = []

    async def source(audience: str) -> Token:
        made.append(audience)
        return Token("t", JWT)

    tokens = FreshTokens(source)
    for _ in range(2):
        await tokens("a")
    assert made == ["a", "a"]


# Entra --------------------------------------------------------------------------------------------


class Credential:
    """``DefaultAzureCredential`` for these tests."""

    scopes: list[str]

    def get_token(self, *scopes: str) -> Any:
        if scopes[0] == "broken":
            raise ValueError("no identity here")
        return SimpleNamespace(token=jwt(aud=scopes[0]), expires_on=2_000_000_000)


@pytest.fixture
def entra(monkeypatch: pytest.MonkeyPatch) -> None:
    identity: Any = ModuleType("azure.identity")
    identity.DefaultAzureCredential = Credential
    monkeypatch.setitem(sys.modules, "azure", ModuleType("azure"))
    monkeypatch.setitem(sys.modules, "azure.identity", identity)
    token_sources._of_entra.cache_clear()


@pytest.mark.parametrize(
    ("given", "scope"),
    [
        ({"mode": "log", "dialect": "event-hubs"}, "https://eventhubs.azure.net/.default"),
        ({"mode": "log", "dialect": "event-hubs", "tokenScope": "mine"}, "mine"),
        ({"spool": "/s"}, "https://servicebus.azure.net/.default"),
    ],
)
async def test_entra_gives_a_token_for_the_service(entra: None, given: dict[str, str], scope: str) -> None:
    parse = LogOptions.parse if "mode" in given else QueueOptions.parse
    made = parse({"url": "amqps://ns.servicebus.windows.net", "address": "clicks", "token": "entra"} | given)
    found = token_source(made)
    assert found is not None
    assert found[0] == "sb://ns.servicebus.windows.net/clicks"
    token = await found[1](found[0])
    assert (token.value, token.type, token.expires) == (jwt(aud=scope), JWT, 2_000_000_000.0)


async def test_failure_of_entra_may_pass_and_has_its_reason(entra: None) -> None:
    with pytest.raises(OSError, match="no token for broken came from Microsoft Entra: no identity here"):
        await EntraTokens("broken")("sb://h/q")


def test_entra_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(OptionError, match=r"pip install 'trio-amqp10\[entra\]'"):
        EntraTokens("scope")


# Options ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"token": "entra", "tokenCommand": "t"}, "both name the source of tokens"),
        ({"tokenCommand": "'"}, "expected a command with its arguments"),
        ({"tokenScope": "s"}, "needs 'token' = 'entra'"),
        ({"tokenCommand": "t", "username": "u", "secretEnv": "E"}, "the options have a password too"),
        ({"token": "entra", "url": "amqp://u:p@h"}, "the options have a password too"),
        ({"tokenCommand": "t", "url": "amqp091://h"}, "option 'tokenCommand' is for AMQP 1.0"),
    ],
)
def test_options_that_make_no_sense_are_refused(given: dict[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        options(**given)


def test_command_is_not_shown_with_the_options() -> None:
    made = options(tokenCommand=f"get-token --key {SECRET}")
    assert SECRET not in repr(made)
    assert pickle.loads(pickle.dumps(made)) == made


# At a peer ----------------------------------------------------------------------------------------


MECHANISMS = pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "XOAUTH2", "PLAIN"])


def town_of(monkeypatch: pytest.MonkeyPatch, mechanism: str, text: str) -> Town:
    """Return peers at which a token is that of ada."""

    async def verify(_user: str, token: str) -> str | None:
        return "ada" if token == text else None

    servers: dict[str, Any] = {"OAUTHBEARER": amqp.sasl.OAuthBearerServer, "XOAUTH2": amqp.sasl.XOAuth2Server}
    sasl = (
        amqp.sasl.Server(users={"ada": text})
        if mechanism == "PLAIN"
        else amqp.sasl.Server(mechanisms=[servers[mechanism](verify)])
    )
    return Town(monkeypatch, sasl=sasl, allow_plaintext_password=True)


def login(mechanism: str, command: str) -> QueueOptions:
    given = {"tokenCommand": command, "sasl.mechanism": mechanism, "username": "ada"}
    return options(**given, allowPlaintextPassword="true")


@MECHANISMS
async def test_token_may_be_that_of_the_login(monkeypatch: pytest.MonkeyPatch, mechanism: str) -> None:
    text = jwt(exp=time.time() + 3600)
    command = python("import sys; print(sys.argv[1])", text)
    async with town_of(monkeypatch, mechanism, text).open() as town, dial(login(mechanism, command)):
        assert town.conns[-1].identity.name == "ada"


@MECHANISMS
async def test_command_that_fails_before_a_login_is_run_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mechanism: str
) -> None:
    text = jwt(exp=time.time() + 3600)
    command = python(FAIL_ONCE, str(tmp_path / "failed"), text)
    async with town_of(monkeypatch, mechanism, text).open() as town:

        async def use(*_: object) -> Any:
            return town.conns[-1].identity.name

        assert await with_reconnects(login(mechanism, command), use) == "ada"
    assert (tmp_path / "failed").exists()


def test_events_are_read_with_the_tokens_of_a_command_which_runs_once(tmp_path: Path) -> None:
    with HubServer(clicks=HubOptions(partition_count=1)) as hubs:
        hubs.fill(0, 3)
        given = {
            "url": hubs.url,
            "mode": "log",
            "dialect": "event-hubs",
            "address": "clicks",
            "columns": "body",
        }
        command = python(SIGN, KEY_NAME, str(tmp_path / "calls"), KEY)
        made = LogOptions.parse(given | {"tokenCommand": command})
        for _ in range(2):
            batches = read(made, "clicks/Partitions/0", 0, 3)
            assert [row["body"] for each in batches for row in each.to_pylist()] == [b"0", b"1", b"2"]
        assert (tmp_path / "calls").read_text() == "called\n"
        wrong = LogOptions.parse(
            given | {"tokenCommand": python(SIGN, KEY_NAME, str(tmp_path / "calls"), "wrong")}
        )
        with pytest.raises(amqp.AmqpError, match="signature"):
            list(read(wrong, "clicks/Partitions/0", 0, 3))


def test_tokens_are_in_no_plan_and_in_no_checkpoint(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with HubServer(clicks=HubOptions(partition_count=1)) as hubs:
        hubs.fill(0, 30)
        command = python(SIGN, KEY_NAME, str(tmp_path / "calls"), KEY)
        given = {
            "url": hubs.url,
            "mode": "log",
            "dialect": "event-hubs",
            "address": "clicks",
            "tokenCommand": command,
        }
        frame = spark.readStream.format("amqp10").options(**given, columns="body").load()
        frame.explain(extended=True)
        writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        query = writer.start()
        assert query.awaitTermination(PATIENCE)
        query.explain(extended=True)
        progress = json.dumps([each.json for each in query.recentProgress], default=str)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 30
    shown = capfd.readouterr()
    texts = [shown.out, shown.err, caplog.text, progress]
    texts += [
        path.read_text(errors="replace") for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()
    ]
    assert len(texts) > 5
    for text in texts:
        assert "SharedAccessSignature" not in text
        assert KEY not in text
