"""Options of connections have their effect at the peer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority, serving
from tests.amqp10.peer.helpers import idle
from tests.amqp10.peer.town import Town
from trio_amqp10.spark.connections import _is_loss, dial
from trio_amqp10.spark.options import QueueOptions

from .desk import dotted

if TYPE_CHECKING:
    from trio.testing import MockClock


def options(url: str = "amqp://broker.example", **given: str) -> QueueOptions:
    names = dotted(given)
    return QueueOptions.parse({"url": url, "address": "q", "spool": "/nowhere"} | names)


async def test_open_says_what_the_options_say(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    given = options(idleTimeout="40s", maxFrameSize="8k", containerId="spark")
    async with Town(monkeypatch).open() as town, dial(given):
        told = town.conns[-1].remote
        assert (told.container_id, told.hostname) == ("spark", "broker.example")
        assert told.max_frame_size == 8192
        assert told.idle_timeout == 20  # half of it, so that one that is late is not given up (2.4.5)


async def test_password_goes_where_somebody_listens_only_if_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr("trio_amqp10.net.dialling_base.is_private", lambda _: False)
    monkeypatch.setenv("SECRET", "enigma")
    sasl = amqp.sasl.Server(users={"ada": "enigma"})
    given = {"username": "ada", "secretEnv": "SECRET", "sasl_mechanism": "PLAIN"}
    async with Town(monkeypatch, sasl=sasl, allow_plaintext_password=True).open() as town:
        with pytest.raises(amqp.SecurityError, match="allow_plaintext_password"):
            async with dial(options(**given)):
                pass
        async with dial(options(allowPlaintextPassword="true", **given)):
            assert town.conns[-1].identity.name == "ada"


async def test_peer_knows_a_query_by_its_certificate() -> None:
    ada = authority("clients").issue("ada.example", common_name="ada").file
    known: list[Any] = []

    async def handle(connection: amqp.Connection) -> None:
        known.append(connection.identity)
        await idle(connection)

    external = amqp.sasl.ExternalServer(lambda certificate: certificate.common_name)
    serve = partial(
        amqp.serve,
        handle,
        "amqps://127.0.0.1:0",
        ssl_context=serving(clients="clients"),
        sasl=amqp.sasl.Server(mechanisms=[external]),
    )
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(serve)
        given = {
            "tls_ca": str(authority().cafile),
            "tls_cert": str(ada),
            "tls_key": str(ada),
            "sasl_mechanism": "EXTERNAL",
        }
        async with dial(options(listener.url, **given)):
            assert [each.name for each in known] == ["ada"]
        nursery.cancel_scope.cancel()


async def test_peer_that_does_not_open_is_given_up(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async def say_nothing(_stream: trio.abc.Stream) -> None:
        await trio.sleep_forever()

    async with Town(monkeypatch).open() as town:
        town.answer = say_nothing
        before = trio.current_time()
        with pytest.raises(TimeoutError, match="did not open a connection within 3 s"):
            async with dial(options(connectTimeout="3s")):
                pass
        assert trio.current_time() - before == pytest.approx(3)


@pytest.mark.parametrize(
    ("expires", "came_through", "again"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_refusal_after_a_success_may_be_that_of_a_token_that_expired(
    expires: bool, came_through: bool, again: bool
) -> None:
    refusal = amqp.ConnectionClosedError("closed", amqp.ErrorInfo(condition="amqp:unauthorized-access"))
    assert _is_loss(refusal, came_through, expires=expires) is again
