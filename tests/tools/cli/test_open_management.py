"""The errors of management, as a command reports them."""

from __future__ import annotations

from functools import partial

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.container.management import OperationRefusedError
from trio_amqp10.tools.cli.command_runner import CommandError, explain, was_dialled
from trio_amqp10.tools.cli.dial_options import DialOptions
from trio_amqp10.tools.cli.manage import connection_number
from trio_amqp10.tools.cli.open_management import (
    NoManagementError,
    list_entities,
    open_management,
    operation_errors,
)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, r"^no queue 'q'$"),
        (418, r"^no queue 'q' \(418\)$"),
        (
            501,
            r"^the peer's \$management cannot purge: it is of another kind, or of an older version$",
        ),
    ],
)
def test_refusal_is_the_text_of_the_container(status: int, text: str) -> None:
    with pytest.raises(CommandError, match=text), operation_errors():
        raise OperationRefusedError("PURGE", status, "no queue 'q'")


def test_reply_that_does_not_come_is_an_error_of_the_command() -> None:
    with pytest.raises(CommandError, match="did not answer"), operation_errors():
        raise trio.TooSlowError("$management did not answer")


async def test_peer_that_lists_nothing_is_of_another_kind() -> None:
    container = amqp.Container()

    @container.function("$management")
    async def answer(message: amqp.Message) -> amqp.Message:
        return amqp.Message(None, application_properties={"statusCode": 501, "statusDescription": "no"})

    async with container.connect() as conn, conn.open_management() as management:
        with pytest.raises(CommandError, match=r"^\$management does not list a queue: no; amqp10 supports"):
            await list_entities(management, "queue")


async def test_management_of_a_url_is_opened_and_its_lack_reported() -> None:
    container = amqp.Container(strict=True)
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        with pytest.raises(NoManagementError, match=r"^the peer refuses \$management \(.*amqp10 serve"):
            async with open_management(listener.url, DialOptions()):
                pytest.fail("it is open")
        container.add_management()
        with pytest.raises(CommandError, match="no queue 'q'"):
            async with open_management(listener.url, DialOptions()) as management:
                await management.purge("q")
        nursery.cancel_scope.cancel()


def test_number_of_a_connection_is_that_of_its_identity() -> None:
    assert connection_number("7") == 7


@pytest.mark.parametrize("text", ["-7", "", "x", "9" * 30, "²"])
def test_text_that_is_no_identity_of_a_connection_is_named(text: str) -> None:
    with pytest.raises(CommandError, match=f"no connection '{text}'"):
        connection_number(text)


async def test_right_that_is_missing_is_named_with_the_user_who_was_logged_in() -> None:
    container = amqp.Container(strict=True, authorise=lambda access: access.action == "open")
    container.add_management()
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, sasl=amqp.sasl.Server(users={"ops": "enigma"}))
        [listener] = await nursery.start(serve, "amqp://127.0.0.1:0")
        url = listener.url.replace("//", "//ops:enigma@")
        with pytest.raises(
            NoManagementError, match=r"'ops' may not have a node made .permission 'create'."
        ) as no:
            async with open_management(url, DialOptions()):
                pytest.fail("it is open")
        assert "serve --management" not in str(no.value)
        with pytest.raises(amqp.LinkRefusedError) as refused:
            async with DialOptions().dial(url) as conn, conn.open_receiver("orders"):
                pytest.fail("it is open")
        text = explain(ExceptionGroup("", [refused.value]))
        assert text is not None
        assert text.endswith("'ops' may not receive from 'orders' (as user 'ops')")
        assert not was_dialled(refused.value)
        nursery.cancel_scope.cancel()


async def test_peer_without_management_is_told_apart_in_python_too() -> None:
    container = amqp.Container(strict=True)
    async with container.connect() as conn:
        with pytest.raises(
            amqp.LinkRefusedError,
            match=r"no node '\$management': a container has it after add_management\(\)",
        ) as refused:
            async with conn.open_management():
                pytest.fail("it is open")
        assert refused.value.condition == "amqp:not-found"
