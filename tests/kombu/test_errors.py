from __future__ import annotations

import pytest
import trio
from amqp import exceptions as kinds

from trio_amqp10.amqp10.peer.errors import LinkDetachedError, LinkRefusedError, SessionEndedError
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.core.errors import LocalProtocolError, MessageSizeError, SecurityError
from trio_amqp10.kombu import Transport
from trio_amqp10.kombu.errors import kombu_errors, translated
from trio_amqp10.net.errors import ConnectionClosedError
from trio_amqp10.rabbitmq import ManagementError


def refused(condition: str) -> LinkRefusedError:
    return LinkRefusedError("the link was refused", Error(condition=condition))


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (refused("amqp:not-found"), kinds.NotFound),
        (refused("amqp:unauthorized-access"), kinds.AccessRefused),
        (refused("amqp:resource-locked"), kinds.ResourceLocked),
        (refused("com.example:odd"), kinds.ConsumerCancelled),
        (LinkDetachedError("detached"), kinds.ConsumerCancelled),
        (SessionEndedError("ended"), kinds.RecoverableConnectionError),
        (ConnectionClosedError("lost"), kinds.ConnectionForced),
        (ConnectionClosedError("no", Error(condition="amqp:not-allowed")), kinds.NotAllowed),
        (SecurityError("wrong password"), kinds.AccessRefused),
        (MessageSizeError(2, 1), kinds.ContentTooLarge),
        (ManagementError("GET /queues/q", 404, "none"), kinds.NotFound),
        (ManagementError("PUT /queues/q", 409, "other"), kinds.PreconditionFailed),
        (ManagementError("PUT /queues/q", 500, "fault"), kinds.RecoverableConnectionError),
        (trio.ClosedResourceError("closed"), kinds.RecoverableConnectionError),
        (trio.TooSlowError(), TimeoutError),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_error_of_the_library_is_one_of_kombu(failure: Exception, kind: type[Exception]) -> None:
    found = translated(failure)
    assert type(found) is kind
    assert str(found) == (str(failure) or "no answer in time")
    assert isinstance(found, (*Transport.connection_errors, *Transport.channel_errors))


@pytest.mark.parametrize(
    "failure", [LocalProtocolError("no such option"), ValueError("x"), OSError(111, "x")]
)
def test_other_error_stays_as_it_is(failure: Exception) -> None:
    assert translated(failure) is failure
    with pytest.raises(type(failure)) as raised, kombu_errors():
        raise failure
    assert raised.value is failure


def test_error_has_the_original_as_its_cause() -> None:
    original = ConnectionClosedError("lost")
    with pytest.raises(kinds.ConnectionForced, match="lost") as raised, kombu_errors():
        raise original
    assert raised.value.__cause__ is original


def test_lost_connection_is_tried_again_and_a_wrong_password_is_not() -> None:
    assert isinstance(translated(ConnectionClosedError("lost")), Transport.recoverable_connection_errors)
    wrong = translated(SecurityError("wrong password"))
    assert not isinstance(
        wrong, (*Transport.recoverable_connection_errors, *Transport.recoverable_channel_errors)
    )
