"""Options of commands that dial: certificates, and what does not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp
from tests.ports import free_port
from trio_amqp10.tools.cli.command_runner import Dialled, explain, note_dialled

from .conftest import done as process_done
from .conftest import failed as process_failed
from .conftest import serving, start
from .without_a_process import amqp10, failed, files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_send_takes_any_certificate_when_insecure(tls: Path) -> None:
    with serving(
        *files(tls, tls_cert="server.pem", tls_key="server-key.pem"), listen="amqps://127.0.0.1:0"
    ) as url:
        assert process_done("send", f"{url}/q", "--body", "x", "--insecure") == b"sent 1\n"


def test_tls_options_say_what_does_not_go_together(tls: Path) -> None:
    assert amqp10("serve", *files(tls, tls_key="server-key.pem")).exit_code == 2
    listen = ("serve", "--listen", "amqps://127.0.0.1:0")
    wrong = files(tls, tls_cert="server.pem", tls_key="ada-key.pem")
    assert "not a matching certificate, key and authorities" in failed(*listen, *wrong)
    assert "needs a certificate" in failed(*listen)
    target = ("send", "amqp://127.0.0.1:1/q", "--body", "x")
    assert "has no TLS" in failed(*target, *files(tls, tls_ca="ca.pem"))
    assert "insecure" in failed(
        "send", "amqps://127.0.0.1:1/q", "--body", "x", "--insecure", *files(tls, tls_ca="ca.pem")
    )


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """The authority of a container with a user."""
    with serving("--management", "--user", "ada:enigma") as url:
        yield url.partition("://")[2]


@pytest.mark.whole
@pytest.mark.parametrize(
    "command",
    [
        ("send", "amqp://{login}{place}/q", "--body", "x"),
        ("send", "amqp091://{login}{place}", "q", "--body", "x"),
        ("receive", "amqp://{login}{place}/q", "--until-empty"),
        ("queue", "list", "amqp://{login}{place}"),
        ("top", "amqp://{login}{place}", "--once"),
        ("migrate", "amqp://{login}{place}", "amqp://127.0.0.1:1"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_wrong_password_names_user_and_server(guarded: str, command: tuple[str, ...]) -> None:
    in_url = process_failed(*(word.format(login="ada:wrong@", place=guarded) for word in command))
    assert in_url.startswith(f"amqp10: not authenticated as 'ada' at {guarded}: ")
    assert "log in" not in in_url


def test_wrong_password_of_the_environment_is_named(guarded: str) -> None:
    said = process_failed(
        "send", f"amqp://{guarded}/q", "--body", "x", AMQP10_USER="ada", AMQP10_PASSWORD="wrong"
    )
    assert "not authenticated as 'ada'" in said
    assert said.endswith("(user and password are from AMQP10_USER and AMQP10_PASSWORD)")
    typed = process_failed(
        "send", f"amqp://ada:wrong@{guarded}/q", "--body", "x", AMQP10_USER="ada", AMQP10_PASSWORD="enigma"
    )
    assert "not authenticated as 'ada'" in typed
    assert "AMQP10" not in typed


def test_user_for_a_server_without_users_is_to_be_removed_where_it_is_given(url: str) -> None:
    send = ("--body", "x")
    given = process_failed("send", f"{url}/q", *send, AMQP10_USER="ada", AMQP10_PASSWORD="x")
    assert "the user is from AMQP10_USER and AMQP10_PASSWORD: unset it for this server" in given
    assert "leave user and password out of the URL" in process_failed(
        "send", url.replace("://", "://ada:x@") + "/q", *send
    )


@pytest.mark.whole
def test_server_that_blocks_after_failures_is_not_given_for_a_wrong_url() -> None:
    with serving("--user", "ada:enigma", "--max-failures", "1") as url:
        target = url.replace("://", "://ada:wrong@") + "/q"
        process_failed("send", target, "--body", "x")
        said = process_failed("send", target, "--body", "x")
    assert "after too many failures a server refuses an address or a user for some time" in said
    assert "URL" not in said


def test_port_without_tls_is_named(url: str) -> None:
    place = url.partition("://")[2]
    said = process_failed("send", f"amqps://{place}/q", "--body", "x")
    assert said.startswith(f"amqp10: {place}: the input from the peer is not TLS")
    assert said.endswith("use a scheme without TLS, such as amqp://, if that port has none")


def test_silent_server_is_named_with_the_seconds() -> None:
    failure = amqp.ConnectionClosedError(
        "localhost:8000: the peer took too long, before its protocol header; the program there may not be a server of AMQP"
    )
    note_dialled(failure, Dialled(authority="localhost:8000", seconds=5.01))
    assert explain(failure) == (
        "localhost:8000: the peer took too long, before its protocol header; the program there may not be a server of AMQP (5 s)"
    )


def test_virtual_host_that_does_not_exist_gets_no_advice_about_addresses(url: str) -> None:
    said = process_failed("send", url.replace("amqp", "amqp091", 1) + "/none", "q", "--body", "x")
    assert "vhost none not found" in said
    assert "the address exists" not in said


def test_command_that_waits_for_its_server_reports_so() -> None:
    port = free_port()
    waiting = start("send", f"amqp://127.0.0.1:{port}/q", "--body", "x", "--wait", "30")
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == f"amqp10: waiting for 127.0.0.1:{port}\n".encode()
    with serving(listen=f"amqp://127.0.0.1:{port}"):
        assert waiting.communicate(timeout=30) == (b"sent 1\n", b"")
