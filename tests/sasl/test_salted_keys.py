"""Salted keys of a server's users, and the file that contains them."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramMechanism  # type: ignore[import-untyped]

from tests.scaled import scaled
from trio_amqp10 import sasl
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.sasl.scram_messages import HASHES, derive_client_and_server_key

if TYPE_CHECKING:
    from pathlib import Path

KEYS = sasl.ScramKeys(bytes(16), 4096, b"k" * 32, b"s" * 32)
TEXT = """\
trio-amqp10-users 1
secret AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
user ada SCRAM-SHA-256 4096 AAAAAAAAAAAAAAAAAAAAAA== a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s= c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M=
"""


def run(coroutine: Any) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


# Keys


@pytest.mark.parametrize("mechanism", HASHES)
def test_derive_keys_agrees_with_a_second_implementation(mechanism: str) -> None:
    keys = sasl.derive_keys("pen\u00adcil", mechanism, iterations=5000)
    salt, stored_key, server_key, iterations = ScramMechanism(mechanism).make_auth_info(
        "pencil", 5000, keys.salt
    )
    assert (keys.salt, keys.stored_key, keys.server_key) == (salt, stored_key, server_key)
    assert (keys.iterations, len(salt)) == (iterations, 16)


def test_derive_keys_takes_a_new_salt_each_time_and_15000_iterations() -> None:
    one, other = sasl.derive_keys("pencil"), sasl.derive_keys("pencil")
    assert one.salt != other.salt
    assert one.iterations == 15_000
    assert sasl.derive_keys("pencil", entropy=bytes, iterations=4096).salt == bytes(16)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"password": ""}, "a password must have"),
        ({"password": "secret\0"}, "a control character"),
        ({"password": "secret" * 50}, "a password must have"),
        (
            {"mechanism": "SCRAM-SHA-256-PLUS"},
            "has no keys; expected one of: SCRAM-SHA-512, SCRAM-SHA-256, SCRAM-SHA-1",
        ),
        ({"iterations": 4095}, "4095 iterations, not 4096 to 1000000"),
        ({"salt": bytes(7)}, "a salt of 7 octets"),
    ],
)
def test_derive_keys_refuses(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(LocalProtocolError, match=reason) as caught:
        sasl.derive_keys(**{"password": "secret", **arguments})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        (bytes(7), 4096, bytes(32), bytes(32), "a salt of 7 octets, fewer than 8"),
        (bytes(16), 4095, bytes(32), bytes(32), "4095 iterations, not 4096 to 1000000"),
        (bytes(16), 1_000_001, bytes(32), bytes(32), "1000001 iterations, not 4096 to 1000000"),
        (bytes(16), 4096, b"", b"", "the keys are empty or differ in length"),
        (bytes(16), 4096, bytes(32), bytes(20), "the keys are empty or differ in length"),
    ],
)
def test_scram_keys_refuse_what_cannot_be(arguments: Any) -> None:
    *arguments, reason = arguments
    with pytest.raises(LocalProtocolError, match=reason):
        sasl.ScramKeys(*arguments)


def test_scram_keys_take_the_least_salt_and_the_most_iterations() -> None:
    keys = sasl.ScramKeys(bytes(8), 1_000_000, bytes(32), bytes(32))
    assert (len(keys.salt), keys.iterations) == (8, 1_000_000)


def test_scram_keys_stay_out_of_a_repr() -> None:
    assert repr(KEYS) == f"ScramKeys(salt={bytes(16)!r}, iterations=4096)"


# Users


def test_credentials_are_a_mapping_of_users() -> None:
    credentials = sasl.Credentials()
    credentials.set_password("zoe\u0308", "pencil", iterations=4096)
    credentials.set_password("ada", "enigma", mechanisms=["SCRAM-SHA-1"], iterations=4096)
    assert (list(credentials), len(credentials)) == (["zo\u00eb", "ada"], 2)
    assert list(credentials["zo\u00eb"]) == ["SCRAM-SHA-512", "SCRAM-SHA-256"]
    before = credentials["ada"]
    credentials.set_password("ada", "other", iterations=4096)
    assert credentials["ada"] != before
    credentials.remove("ada")
    assert "ada" not in credentials
    with pytest.raises(KeyError):
        credentials.remove("ada")
    assert repr(credentials) == "<Credentials of 1 users>"
    assert len(credentials.secret) == 32
    assert credentials.secret != sasl.Credentials().secret


def test_credentials_refuse_a_user_without_keys() -> None:
    with pytest.raises(LocalProtocolError, match="at least one mechanism"):
        sasl.Credentials({"ada": {}})
    credentials = sasl.Credentials()
    for username, mechanisms, why in (
        ("ada", [], "a user needs the keys of at least one mechanism"),
        ("", ["SCRAM-SHA-1"], "a user name must have"),
        ("ada", ["PLAIN"], "'PLAIN' has no keys"),
    ):
        with pytest.raises(LocalProtocolError, match=f"^{why}"):
            credentials.set_password(username, "enigma", mechanisms=mechanisms)
    assert len(credentials) == 0


def test_credentials_verify_passwords_for_plain() -> None:
    credentials = sasl.Credentials()
    assert run(credentials.verify("ada", "enigma")) is False
    credentials.set_password("ada", "enigma", iterations=4096)
    assert run(credentials.verify("ada", "enigma")) is True
    for username, password in (("ada", "other"), ("ada", ""), ("ada", "\0"), ("nobody", "enigma")):
        assert run(credentials.verify(username, password)) is False


def test_credentials_verify_each_user_by_its_own_keys() -> None:
    credentials = sasl.Credentials()
    for name in ("ada", "bob", "zoe"):
        credentials.set_password(name, f"{name}'s", iterations=4096)
        assert {keys.iterations for keys in credentials[name].values()} == {4096}
    for name in ("ada", "bob", "zoe"):
        for password in ("ada's", "bob's", "zoe's"):
            assert run(credentials.verify(name, password)) is (password == f"{name}'s")


def test_credentials_derive_a_key_for_a_user_who_is_not_there_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from trio_amqp10.sasl import salted_keys as module

    derived: list[str] = []

    def derive(mechanism: str, password: str, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
        derived.append(password)
        return derive_client_and_server_key(mechanism, password, salt, iterations)

    credentials = sasl.Credentials()
    credentials.set_password("ada", "enigma", iterations=4096)
    monkeypatch.setattr(module, "derive_client_and_server_key", derive)
    assert run(credentials.verify("nobody", "enigma")) is False
    assert derived == ["enigma"]


# The file


def test_users_file_has_the_form_that_is_written_down() -> None:
    credentials = sasl.parse_users(TEXT)
    assert credentials["ada"] == {"SCRAM-SHA-256": KEYS}
    assert credentials.secret == bytes(32)
    assert sasl.format_users(credentials) == TEXT


def test_users_file_may_hold_comments_and_no_secret() -> None:
    head, _, user = TEXT.splitlines()
    text = f"# users\n\n{head}  \n  \n# ada\n{user}\r\n"
    assert sasl.parse_users(text)["ada"] == {"SCRAM-SHA-256": KEYS}
    assert sasl.parse_users(text).secret != sasl.parse_users(text).secret


USER = TEXT.splitlines()[2]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1 .* the first line is not"),
        ("# nothing\n", "line 1 .* the first line is not"),
        ("trio-amqp10-users 2\n", "line 1 .* the first line is not"),
        (USER, "line 1 .* the first line is not"),
        (" " + TEXT, "line 1 .* the first line is not"),
        ("trio-amqp10-users 1\nsecret ?\n", "line 2 .* invalid Base64"),
        (TEXT + "secret AAAA\n", "line 4 .* neither a first secret"),
        (TEXT + "user bob\n", "line 4 .* neither a first secret"),
        (TEXT + USER + " more\n", "line 4 .* neither a first secret"),
        (TEXT + "password ada enigma\n", "line 4 .* neither a first secret"),
        (TEXT + USER, "line 4 .* contains already"),
        (TEXT + USER.replace("ada", "b=b"), "line 4 .* not in its normal form"),
        (TEXT + USER.replace("ada", "%62ob"), "line 4 .* not in its normal form"),
        (TEXT + USER.replace("ada", "zoe%CC%88"), "line 4 .* not in its normal form"),
        (TEXT + USER.replace("ada", "%FF"), "line 4 .* an invalid user name"),
        (TEXT + USER.replace("ada", "%07"), "line 4 .* an invalid user name"),
        (TEXT + USER.replace("ada", "bob").replace("256", "3"), "line 4 .* an unknown mechanism"),
        (TEXT + USER.replace("ada", "bob").replace("256", "1"), "line 4 .* of another length"),
        (TEXT + USER.replace("ada", "bob").replace("4096", "4_96"), "line 4 .* an invalid iteration count"),
        (
            TEXT + USER.replace("ada", "bob").replace("4096", "\u0664\u0660\u0669\u0666"),
            "line 4 .* an invalid iteration count",
        ),
        (
            TEXT + USER.replace("ada", "bob").replace("4096", "4" * 5000),
            "line 4 .* an invalid iteration count",
        ),
        (TEXT + USER.replace("ada", "bob").replace("4096", "4" * 10), "line 4 .* an invalid iteration count"),
        (TEXT + USER.replace("ada", "bob").replace("4096", "4" * 9), "line 4 .* 444444444 iterations"),
        (TEXT + USER.replace("ada", "bob").replace("4096", "4095"), "line 4 .* 4095 iterations"),
        (TEXT + USER.replace("ada", "bob").replace("c3Nz", "?"), "line 4 .* Base64"),
    ],
)
def test_parse_users_names_the_line_that_is_wrong_and_quotes_nothing(text: str, reason: str) -> None:
    with pytest.raises(LocalProtocolError, match=reason) as caught:
        sasl.parse_users(text)
    assert "a2tr" not in str(caught.value)


def test_users_file_spells_every_sign_of_a_name_that_is_no_letter_or_digit() -> None:
    credentials = sasl.Credentials({"a/b c%": {"SCRAM-SHA-256": KEYS}})
    text = sasl.format_users(credentials)
    assert "user a%2Fb%20c%25 SCRAM-SHA-256" in text
    assert dict(sasl.parse_users(text)) == dict(credentials)


names = st.text(min_size=1, max_size=8)


@settings(max_examples=scaled(50))
@given(names=st.lists(names, max_size=4), secret=st.binary(min_size=1, max_size=40))
def test_parse_users_reads_what_format_users_wrote(names: list[str], secret: bytes) -> None:
    prepared: set[str] = set()
    for name in names:
        try:
            sasl.Scram(name, "")
        except LocalProtocolError:
            continue
        prepared.add(sasl.Scram(name, "").username)
    users = {name: {"SCRAM-SHA-256": KEYS} for name in prepared}
    credentials = sasl.parse_users(sasl.format_users(sasl.Credentials(users, secret=secret)))
    assert dict(credentials) == users
    assert credentials.secret == secret


def test_write_users_writes_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("old")
    path.chmod(0o644)
    sasl.write_users(path, sasl.parse_users(TEXT))
    assert path.read_text() == TEXT
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["users"]
    assert dict(sasl.read_users(str(path))) == {"ada": {"SCRAM-SHA-256": KEYS}}


def test_write_users_leaves_what_was_there_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "users"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no room"):
        sasl.write_users(path, sasl.parse_users(TEXT))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["users"]


def test_read_users_refuses_a_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(LocalProtocolError, match="is no users file: it is not ASCII"):
        sasl.read_users(path)
    with pytest.raises(OSError, match="No such file"):
        sasl.read_users(tmp_path / "nothing")
