"""amqp10 passwd keeps a file of users, and no password."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from trio_amqp10.sasl import read_users

from .conftest import AMQP10, ENVIRONMENT, SECONDS
from .without_a_process import amqp10, done, failed, mode


def test_passwd_keeps_no_password_and_is_for_its_owner_alone(users: str) -> None:
    assert b"enigma" not in Path(users).read_bytes()
    assert mode(users) == 0o600
    assert list(read_users(users)["ada"]) == ["SCRAM-SHA-512", "SCRAM-SHA-256"]
    assert {keys.iterations for keys in read_users(users)["ada"].values()} == {4096}


def test_passwd_adds_changes_lists_and_deletes(users: str) -> None:
    before = read_users(users)
    assert done("passwd", users, "bob", "--stdin", "--mechanism", "SCRAM-SHA-1", stdin=b"x") == b"added bob\n"
    assert done("passwd", users, "ada", "--stdin", stdin=b"other\r\nmore") == b"changed ada\n"
    after = read_users(users)
    assert list(after["bob"]) == ["SCRAM-SHA-1"]
    assert after["ada"] != before["ada"]
    assert after.secret == before.secret
    assert done("passwd", users, "--list") == b"ada\nbob\n"
    assert done("passwd", users, "bob", "--delete") == b"deleted bob\n"
    assert done("passwd", users, "--list") == b"ada\n"
    assert (
        failed("passwd", users, "bob", "--delete")
        == f"amqp10: {users} has no user 'bob'; --list prints its users"
    )


def test_passwd_uses_a_file_of_its_own_when_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert done("passwd", "ada", "--stdin", stdin=b"x") == b"added ada\n"
    assert done("passwd", "--list") == b"ada\n"
    assert list(read_users(tmp_path / "amqp10-users")) == ["ada"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (("eve", "--stdin"), b"\n", "password"),
        (("eve", "--stdin"), b"\xff\n", "not UTF-8"),
        (("eve",), b"x\n", "use --stdin to read it from stdin"),
        (("e\nve", "--stdin"), b"x\n", "user name"),
    ],
)
def test_passwd_changes_nothing_when_it_fails(
    users: str, arguments: tuple[str, ...], stdin: bytes, said: str
) -> None:
    before = Path(users).read_bytes()
    assert said in failed("passwd", users, *arguments, stdin=stdin)
    assert Path(users).read_bytes() == before
    assert [each.name for each in Path(users).parent.iterdir()] == ["users"]


def test_passwd_fails_when_the_file_is_none(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("ada:enigma\n")
    assert f"{other}: line 1 of a users file" in failed("passwd", str(other), "ada", "--stdin", stdin=b"x")
    assert other.read_text() == "ada:enigma\n"
    assert "No such file" in failed("passwd", str(tmp_path / "none"), "--list")
    assert "No such file" in failed("passwd", str(tmp_path / "none"), "ada", "--delete")


@pytest.mark.parametrize(
    "arguments",
    [(), ("a", "b", "c"), ("--list", "a", "b"), ("a", "--list", "--stdin"), ("a", "--delete", "--stdin")],
)
def test_passwd_says_what_it_needs(arguments: tuple[str, ...]) -> None:
    assert amqp10("passwd", *arguments).exit_code == 2


@pytest.mark.parametrize("again", ["enigma", "other"])
def test_passwd_asks_twice_and_shows_nothing(tmp_path: Path, again: str) -> None:
    file = tmp_path / "users"
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*AMQP10, "passwd", str(file), "ada"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=ENVIRONMENT,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    for prompt, word in ((b"password of ada: ", "enigma"), (b"once more: ", again)):
        while prompt not in shown:
            shown += os.read(ours, 1000)
        os.write(ours, f"{word}\n".encode())
    stdout, _ = child.communicate(timeout=SECONDS)
    try:
        while octets := os.read(ours, 1000):
            shown += octets
    except OSError:
        pass  # the other end is closed
    os.close(ours)
    assert b"enigma" not in shown
    assert (child.returncode, stdout) == ((0, b"added ada\n") if again == "enigma" else (1, b""))
    assert file.exists() == (again == "enigma")
