"""What names the target of a command in 0-9-1, and what does not go together."""

from __future__ import annotations

import pytest

from tests.ports import free_port

from .conftest import (
    amqp10,
)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("send", "amqp091://localhost/orders"), b"The path of an AMQP 0-9-1 URL is the virtual host"),
        (("send", "amqp091://localhost", "a", "--exchange", "b"), b"QUEUE excludes --exchange"),
        (("send", "amqp://localhost/a", "--exchange", "b"), b"are for AMQP 0-9-1"),
        (("receive", "amqp091://localhost", "a", "--guarantee", "exactly-once"), b"has no exactly-once"),
        (("receive", "amqp091://", "a"), b"names no host"),
        (("browse", "amqp091://localhost/orders"), b"give an amqp:// URL"),
        (("bench", "--dialect", "0-9-1"), b"AMQP 0-9-1 needs a server"),
        (("bench", "amqp091://localhost"), b"name the queue after the URL"),
        (("top", "amqp091://"), b"names no host"),
        (("serve", "--listen", "amqp091+tls://localhost"), b"must begin with one of"),
        (("send", "amqp://localhost"), b"names no node"),
        (("send", "q"), b"'q': expected a URL, as in amqp://localhost:5672/q; AMQP10_URL gives"),
        (("send", "localhost:5672/q"), b"expected a URL, as in amqp://localhost:5672/q"),
        (("send", "amqp://localhost", "two words", "--body", "x"), b"write URL/two%20words"),
        (("queue", "list", "localhost:5672"), b"expected a URL, as in amqp://localhost:5672"),
        (
            ("queue", "list", "amqp://localhost/q"),
            b"expected the URL of a server, without the address of a node",
        ),
        (("top", "amqp://localhost/q"), b"expected the URL of a server, without the address of a node"),
        (
            ("migrate", "amqp://a/q", "amqp://b"),
            b"expected the URL of a server, without the address of a node",
        ),
        (("serve", "amqp://127.0.0.1:5673"), b"use --listen URL"),
        (
            ("serve", "--listen", "localhost:5673"),
            b"expected a URL to listen at, as in amqp://localhost:5673",
        ),
        (("serve", "--listen", "5673"), b"expected a URL to listen at, as in amqp://localhost:5673"),
        (("serve", "--user", "ada:x", "--user", "ada:y"), b"user 'ada' is given 2 times"),
        (("serve", "--queue", "a", "--queue", "a,ttl=1"), b"--queue a is given more than once"),
        (("serve", "--topic", "a", "--topic", "a"), b"--topic a is given more than once"),
        (
            ("emulate", "rabbitmq", "--listen", "amqp://localhost"),
            b"an emulator listens at --host and --port",
        ),
    ],
)
def test_command_line_that_makes_no_sense_says_why(arguments: tuple[str, ...], said: bytes) -> None:
    result = amqp10(*arguments)
    assert result.returncode == 2
    assert said in result.stderr.replace(b"\n", b" ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("send", "ada:enigma@localhost/q"),
        ("queue", "list", "ada:enigma@localhost"),
        ("queue", "list", "amqp://localhost", "amqp://ada:enigma@localhost"),
        ("browse", "amqp091://ada:enigma@localhost"),
        ("serve", "--listen", "ada:enigma@localhost"),
        ("serve", "amqp://ada:enigma@localhost"),
    ],
)
def test_command_line_that_makes_no_sense_shows_no_password(arguments: tuple[str, ...]) -> None:
    result = amqp10(*arguments)
    assert result.returncode == 2
    assert b"***@localhost" in result.stderr
    assert b"enigma" not in result.stderr


@pytest.mark.parametrize(
    "more",
    [("receive", "q", "--filter", "a = 1", "--count", "1"), ("send", "q", "--subject", "s", "--body", "x")],
)
def test_options_of_1_0_are_refused_in_0_9_1(more: tuple[str, ...]) -> None:
    command, *others = more
    result = amqp10(command, f"amqp091://127.0.0.1:{free_port()}", *others)
    assert result.returncode == 2
    assert b"AMQP 0-9-1 has no" in result.stderr
