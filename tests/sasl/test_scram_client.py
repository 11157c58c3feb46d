"""SCRAM on the client's side: the vectors of the RFCs, and misbehaving servers."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramMechanism  # type: ignore[import-untyped]

from tests.scaled import scaled
from trio_amqp10 import sasl
from trio_amqp10.amqp10.spec.security import SaslCode
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .frames import settle

SHA_1 = (
    "SCRAM-SHA-1",
    "fyko+d2lbbFgONRv9qkxdawL",
    [
        b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    ],
)
"""The example of RFC 5802, section 5."""
SHA_256 = (
    "SCRAM-SHA-256",
    "rOprNGfwEbeRWgbNEkqO",
    [
        b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ],
)
"""The example of RFC 7677, section 3."""
VECTORS = pytest.mark.parametrize(("mechanism", "nonce", "messages"), [SHA_1, SHA_256])

BINDINGS = {"tls-exporter": b"exported", "tls-server-end-point": b"hashed", "tls-unique": b"broken"}


def nonce_of(text: str) -> Any:
    """Return a source of entropy that leads to this nonce."""
    return lambda _size: b64decode(text)


def begin(mechanism: str = "SCRAM-SHA-256", **options: Any) -> sasl.ClientExchange:
    """Return an exchange that has sent its first message, ``n,,n=user,r=AAA...``."""
    context = sasl.ClientContext(entropy=bytes)
    exchange = sasl.Scram("user", "pencil", mechanism, **options).begin(context)
    exchange.start()
    return exchange


NONCE = b64encode(bytes(24)).decode()


def first(nonce: str = NONCE + "x", salt: str = "QSXCR+Q6sek8bf92", iterations: object = 4096) -> bytes:
    return f"r={nonce},s={salt},i={iterations}".encode()


def sent(step: object) -> bytes:
    assert isinstance(step, sasl.Respond)
    assert step.data is not None
    return step.data


@VECTORS
@pytest.mark.parametrize("with_outcome", [False, True])
def test_scram_says_what_the_rfc_says(
    mechanism: str, nonce: str, messages: list[bytes], with_outcome: bool
) -> None:
    context = sasl.ClientContext(entropy=nonce_of(nonce))
    exchange = sasl.Scram("user", "pencil", mechanism).begin(context)
    assert sent(exchange.start()) == messages[0]
    assert sent(exchange.challenge(messages[1])) == messages[2]
    if with_outcome:
        assert exchange.finish(messages[3]) is None
    else:
        assert sent(exchange.challenge(messages[3])) == b""
        assert exchange.finish(None) is None


def test_scram_prepares_and_escapes() -> None:
    exchange = sasl.Scram("zoe\u0308,=", "p").begin(sasl.ClientContext(entropy=bytes))
    assert sent(exchange.start()) == f"n,,n=zo\u00eb=2C=3D,r={NONCE}".encode()


def test_scram_makes_a_new_nonce_for_each_exchange() -> None:
    mechanism = sasl.Scram("user", "pencil")
    starts = {sent(mechanism.begin(sasl.ClientContext()).start()) for _ in range(5)}
    assert len(starts) == 5


@pytest.mark.parametrize("mechanism", ["SCRAM-MD5", "scram-sha-1", "PLAIN", "SCRAM-SHA-1-PLUS-PLUS"])
def test_scram_refuses_a_mechanism_that_it_does_not_know(mechanism: str) -> None:
    with pytest.raises(LocalProtocolError, match="no known SCRAM mechanism"):
        sasl.Scram("user", "pencil", mechanism)


@pytest.mark.parametrize("kind", ["tls-unique", "tls-exporter "])
def test_scram_refuses_a_channel_binding_that_is_not_used(kind: str) -> None:
    with pytest.raises(LocalProtocolError, match="no known type of channel binding"):
        sasl.Scram("user", "pencil", channel_binding=kind)


def test_scram_refuses_names_and_passwords_that_rfc_4013_does_and_shows_none() -> None:
    for username, password in (("", "secret"), ("u" * 256, "secret"), ("u\0", "secret"), ("u", "secret\0")):
        with pytest.raises(LocalProtocolError) as caught:
            sasl.Scram(username, password)
        assert "secret" not in str(caught.value)
    with pytest.raises(LocalProtocolError, match="a password must have"):
        sasl.Scram("u", "s" * 256)


def test_scram_keeps_the_password_out_of_its_repr() -> None:
    assert repr(sasl.Scram("user", "pencil")) == "Scram('user', ..., 'SCRAM-SHA-256')"


# The channel


@pytest.mark.parametrize(
    ("mechanism", "bindings", "offered", "header"),
    [
        ("SCRAM-SHA-256", {}, (), b"n,,"),
        ("SCRAM-SHA-256", {"tls-unique": b"broken"}, (), b"n,,"),
        ("SCRAM-SHA-256", BINDINGS, ("SCRAM-SHA-256",), b"y,,"),
        ("SCRAM-SHA-256", BINDINGS, ("SCRAM-SHA-256", "SCRAM-SHA-512-PLUS"), b"y,,"),
        ("SCRAM-SHA-256", BINDINGS, ("SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"), b"n,,"),
        ("SCRAM-SHA-256-PLUS", BINDINGS, (), b"p=tls-server-end-point,,"),
        ("SCRAM-SHA-256-PLUS", {"tls-exporter": b"exported"}, (), b"p=tls-exporter,,"),
    ],
)
def test_scram_tells_what_it_knows_of_the_channel(
    mechanism: str, bindings: dict[str, bytes], offered: tuple[str, ...], header: bytes
) -> None:
    context = sasl.ClientContext(None, offered, bindings, bytes)
    scram = sasl.Scram("user", "pencil", mechanism)
    assert scram.usable(context)
    exchange = scram.begin(context)
    assert sent(exchange.start()).startswith(header + b"n=user,")
    final = sent(exchange.challenge(first()))
    data = bindings[header[2:-2].decode()] if header.startswith(b"p") else b""
    assert b64decode(final.split(b",")[0][2:]) == header + data


def test_scram_uses_the_channel_binding_that_is_named() -> None:
    scram = sasl.Scram("user", "pencil", "SCRAM-SHA-1-PLUS", channel_binding="tls-exporter")
    assert sent(scram.begin(sasl.ClientContext(channel_bindings=BINDINGS)).start()).startswith(
        b"p=tls-exporter,"
    )
    assert not scram.usable(sasl.ClientContext(channel_bindings={"tls-server-end-point": b"hashed"}))


@pytest.mark.parametrize("bindings", [{}, {"tls-unique": b"broken"}])
def test_scram_plus_is_of_no_use_without_a_channel_to_bind_to(bindings: dict[str, bytes]) -> None:
    scram, context = sasl.Scram("u", "p", "SCRAM-SHA-1-PLUS"), sasl.ClientContext(channel_bindings=bindings)
    assert not scram.usable(context)
    with pytest.raises(LocalProtocolError, match="needs a TLS connection"):
        scram.begin(context)


# The server's first message


@pytest.mark.parametrize(
    "message",
    [b"", b"\xff", b"nonsense", b"m=1," + first(), first(iterations="x"), first(salt="?"), b"e=other-error"],
)
def test_scram_aborts_on_a_malformed_challenge(message: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="a challenge of SCRAM-SHA-256 with"):
        begin().challenge(message)


@pytest.mark.parametrize("nonce", [NONCE, "x" + NONCE, "other", NONCE[:-1] + "x", NONCE.lower() + "x"])
def test_scram_refuses_a_nonce_that_does_not_add_to_its_own(nonce: str) -> None:
    with pytest.raises(sasl.AuthenticationError, match="did not extend our nonce") as caught:
        begin().challenge(first(nonce=nonce))
    assert (caught.value.code, caught.value.temporary) == (None, False)
    assert str(caught.value).endswith("(mechanism SCRAM-SHA-256)")


def test_scram_refuses_too_few_iterations() -> None:
    assert begin().challenge(first(iterations=4096))
    with pytest.raises(sasl.AuthenticationError, match="4095 iterations, fewer than 4096"):
        begin().challenge(first(iterations=4095))


def test_scram_refuses_too_many_iterations_without_computing_any() -> None:
    with pytest.raises(sasl.AuthenticationError, match="1000001 iterations, more than 1000000"):
        begin().challenge(first(iterations=1_000_001))
    with pytest.raises(sasl.AuthenticationError, match="5001 iterations, more than 5000"):
        begin(max_iterations=5000).challenge(first(iterations=5001))
    assert isinstance(begin().challenge(first(iterations=1_000_000)), sasl.Question)


def test_scram_asks_for_a_thread_when_it_takes_long() -> None:
    assert isinstance(begin().challenge(first(iterations=50_000)), sasl.Respond)
    exchange = begin("SCRAM-SHA-1")
    question = exchange.challenge(first(iterations=50_001))
    assert isinstance(question, sasl.Question)
    assert question.about == "SCRAM-SHA-1: 50001 iterations"
    assert "pencil" not in repr(question)
    assert question.work is not None
    in_a_thread = question.work()
    question.work = None
    assert settle(question) == in_a_thread  # who has no threads awaits, and gets the same
    assert sent(exchange.answer(in_a_thread)).startswith(b"c=biws,r=AAA")


def test_scram_takes_no_answer_that_it_did_not_ask_for() -> None:
    with pytest.raises(LocalProtocolError, match="no question was asked"):
        begin().answer((b"", b""))


# The server's last message


def final_of(exchange: sasl.ClientExchange) -> None:
    exchange.challenge(first())


FORGED = b"v=" + b64encode(bytes(32))


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        (FORGED, None, "does not know the password"),
        (b"v=QQ==", None, "does not know the password"),
        (b"e=invalid-proof", SaslCode.AUTH, "the server refused the credentials"),
    ],
)
def test_scram_refuses_a_server_that_does_not_prove_itself_by_a_challenge(
    message: bytes, code: SaslCode | None, text: str
) -> None:
    exchange = begin()
    final_of(exchange)
    with pytest.raises(sasl.AuthenticationError, match=text) as caught:
        exchange.challenge(message)
    assert (caught.value.code, caught.value.mechanism) == (code, "SCRAM-SHA-256")


def test_scram_refuses_a_user_name_that_cannot_be() -> None:
    with pytest.raises(LocalProtocolError, match=r"^a user name must have 1 to 255 octets"):
        sasl.Scram("", "pencil")


def test_scram_aborts_on_a_malformed_last_challenge() -> None:
    exchange = begin()
    final_of(exchange)
    with pytest.raises(RemoteProtocolError, match="a challenge of SCRAM-SHA-256 with"):
        exchange.challenge(b"")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (None, "did not prove its identity"),
        (b"", "an invalid attribute"),
        (b"v=?", "Base64"),
        (FORGED, "does not know the password"),
        (b"e=other-error", "refused the credentials"),
    ],
)
def test_scram_doubts_an_ok_without_a_proof(data: bytes | None, text: str) -> None:
    exchange = begin()
    final_of(exchange)
    doubt = exchange.finish(data)
    assert doubt is not None
    assert text in doubt


@pytest.mark.parametrize("data", [None, b"", FORGED])
def test_scram_doubts_an_ok_before_its_own_proof(data: bytes | None) -> None:
    assert begin().finish(data) == "the server accepted the login, but did not prove its identity"


def test_scram_takes_no_third_challenge() -> None:
    mechanism, nonce, messages = SHA_256
    exchange = sasl.Scram("user", "pencil", mechanism).begin(sasl.ClientContext(entropy=nonce_of(nonce)))
    exchange.start()
    exchange.challenge(messages[1])
    exchange.challenge(messages[3])
    with pytest.raises(RemoteProtocolError, match="but the mechanism has none"):
        exchange.challenge(messages[3])


# By other hands

texts = st.text(alphabet="abz09 ,=\u00fc\u00e9\u05d0", min_size=1, max_size=12)


@settings(max_examples=scaled(25))
@given(
    mechanism=st.sampled_from(["SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"]),
    plus=st.booleans(),
    username=texts,
    password=texts,
)
def test_scram_agrees_with_a_server_by_other_hands(
    mechanism: str, plus: bool, username: str, password: str
) -> None:
    data = b"the hash of a certificate"
    name = mechanism + "-PLUS" * plus
    bindings = {"tls-server-end-point": data} if plus else {}
    try:
        scram = sasl.Scram(username, password, name)
    except LocalProtocolError:  # directions mixed
        return
    other = ScramMechanism(name)
    record = other.make_auth_info(password)
    seen: list[str] = []

    def look_up(name: str) -> Any:
        seen.append(name)
        return record

    server = other.make_server(look_up, channel_binding=("tls-server-end-point", data) if plus else None)
    exchange = scram.begin(sasl.ClientContext(channel_bindings=bindings))
    server.set_client_first(sent(exchange.start()).decode())
    server.set_client_final(sent(exchange.challenge(server.get_server_first().encode())).decode())
    assert exchange.finish(server.get_server_final().encode()) is None
    assert seen == [scram.username]
