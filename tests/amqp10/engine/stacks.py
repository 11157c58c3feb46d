"""Stacks to talk to, accepting and dialling, and what a peer says to them before AMQP begins (5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import frame, header
from tests.naive.script import Script
from trio_amqp10 import sasl
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.layer_stack import Layer, Stack
from trio_amqp10.amqp10.engine.states import ConnectionState
from trio_amqp10.core.errors import SecurityError

if TYPE_CHECKING:
    from collections.abc import Callable

OPEN = frame("open", container_id="peer")
AMQP = header() + OPEN
USERS = {"guest": "guest-secret"}
GOOD = b"\0guest\0guest-secret"


async def never(user: str, password: str) -> bool:
    """Asked in these tests, and never awaited."""
    raise AssertionError


def listening(
    *, users: Any = USERS, plain: bool = False, verify: Any = None, mechanisms: Any = (), **options: Any
) -> tuple[Stack, Script]:
    """An accepting stack with PLAIN, unless the options say otherwise."""
    server = sasl.Server(None if verify or mechanisms else users, verify=verify, mechanisms=mechanisms)
    offer: Callable[[], sasl.SaslServer] = lambda: sasl.SaslServer(server.offer(secure=True))  # noqa: E731
    stack = Stack(Connection("engine", **options), 0.0, accept_sasl=offer, accept_plain=plain, accepting=True)
    return stack, Script(stack)


def dialling(*mechanisms: Any, pipelined: bool = True, **options: Any) -> tuple[Stack, Script]:
    """A dialling stack with its header out, which has opened and begun already."""
    connection = Connection("engine", pipelined=pipelined, **options)
    client = sasl.SaslClient(mechanisms or [sasl.Plain("guest", "guest-secret")], hostname="h")
    stack = Stack(connection, 0.0, sasl=client)
    connection.open()
    connection.session().begin()
    script = Script(stack)
    script.expect_header("sasl")
    return stack, script


def init(message: bytes = GOOD, mechanism: str = "PLAIN") -> bytes:
    return frame("sasl-init", mechanism=mechanism, initial_response=message)


MECHANISMS = frame("sasl-mechanisms", sasl_server_mechanisms=["PLAIN"])
OK = frame("sasl-outcome", code=0)


def security_error(script: Script, *octets: bytes) -> SecurityError:
    """What a dialler raises on these octets."""
    with pytest.raises(SecurityError) as caught:
        script.send(*octets)
    script.collect()
    return caught.value


def aborted(stack: Stack, script: Script) -> None:
    """The transport is to be aborted: not another octet, and nothing more is read."""
    script.expect_nothing()
    assert script.over
    assert stack.layer is Layer.DEAD
    assert stack.connection.state is ConnectionState.END
    script << AMQP
    script.expect_nothing()
