"""Redirects: what they say, who follows them, how far, and what goes along (2.8.16, 2.8.18)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import frame, header
from trio_amqp10.amqp10.peer.redirects import DialTarget, redirected
from trio_amqp10.net import dialling_base
from trio_amqp10.net.urls import parse_url

from .authority import authority
from .helpers import acceptor, listening, served

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator

    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.net.urls import Url

EVEN = amqp.Backoff(initial=1, factor=1, maximum=1, jitter=False)


class Net:
    """Hosts by name, each with a handler; every connection to them is in memory.

    Attributes:
        hosts: handlers by ``host:port``; strings redirect to that URL.
        dialled: where to, each time that somebody tried.
        asked: the hostnames that peers opened with.
        conns: the peers' ends, newest last.
    """

    def __init__(self, **hosts: Any) -> None:
        self.hosts: dict[str, Any] = {f"{name}:5672": handler for name, handler in hosts.items()}
        self.users = amqp.sasl.Server()
        self.dialled: list[str] = []
        self.asked: list[str | None] = []
        self.conns: list[Connection] = []

    @asynccontextmanager
    async def up(self, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[None]:
        async with trio.open_nursery() as nursery:

            async def connect(url: Url) -> trio.abc.Stream:
                await trio.lowlevel.checkpoint()
                self.dialled.append(url.authority)
                handler = self.hosts[url.authority]

                async def handle(conn: Connection) -> None:
                    self.asked.append(conn.remote.hostname)
                    self.conns.append(conn)
                    if isinstance(handler, str):
                        await conn.aclose(amqp.redirect(handler))
                    else:
                        await handler(conn)

                ours, theirs = memory_stream_pair()
                nursery.start_soon(acceptor(sasl=self.users).run, theirs, handle)
                return ours

            monkeypatch.setattr(dialling_base, "connect", connect)
            yield
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()


def queues() -> Any:
    return amqp.Container("queues").handle


# -- what a redirect says -----------------------------------------------------------------------


def test_redirect_is_for_the_connection_where_the_url_has_no_address() -> None:
    error = amqp.redirect("amqp://b.example:5680")
    assert error.condition == "amqp:connection:redirect"
    assert error.info == {"hostname": "b.example", "network-host": "b.example", "port": 5680}


def test_redirect_is_for_a_link_where_the_url_has_an_address() -> None:
    error = amqp.redirect("amqp://10.0.0.2/orders", hostname="b.example")
    assert error.condition == "amqp:link:redirect"
    assert error.info == {
        "hostname": "b.example",
        "network-host": "10.0.0.2",
        "port": 5672,
        "address": "orders",
    }


@pytest.mark.parametrize("url", ["amqp+unix:///run/app.sock", "amqp://b.example:0", "b.example"])
def test_redirect_refuses_a_url_without_host_and_port(url: str) -> None:
    with pytest.raises(amqp.LocalProtocolError):
        amqp.redirect(url)


@pytest.mark.parametrize(
    ("info", "told"),
    [
        (None, (None, None, None)),
        ({"hostname": "b", "network-host": "10.0.0.2", "port": 5680}, ("b", "10.0.0.2", 5680)),
        ({"hostname": 5, "network-host": "", "port": True}, (None, None, None)),
        ({"port": 65536}, (None, None, None)),
        ({"port": "5672"}, (None, None, None)),
    ],
)
def test_redirect_error_reads_what_is_there_and_of_the_right_type(info: Any, told: Any) -> None:
    error = amqp.ErrorInfo(condition="amqp:connection:redirect", info=info)
    failure = amqp.ConnectionRedirectError("gone", error)
    assert (failure.hostname, failure.network_host, failure.port) == told


async def test_error_carries_where_to_go_when_the_connection_is_closed_with_a_redirect() -> None:
    async def handle(conn: Connection) -> None:
        await wait_all_tasks_blocked()
        await conn.aclose(amqp.redirect("amqp://10.0.0.2:5680", hostname="b.example"))

    async with served(handle) as conn:
        with pytest.raises(amqp.ConnectionRedirectError) as caught:
            await conn.wait_closed()
    failure = caught.value
    assert isinstance(failure, amqp.ConnectionClosedError)
    assert (failure.hostname, failure.network_host, failure.port) == ("b.example", "10.0.0.2", 5680)


async def test_error_carries_where_to_go_when_a_link_is_refused_with_a_redirect() -> None:
    async def handle(conn: Connection) -> None:
        async for link in conn.incoming_links():
            await link.refuse(amqp.redirect("amqp://b.example/there"))

    async with served(handle) as conn:
        for opening in (conn.open_sender("here"), conn.open_receiver("here")):
            with pytest.raises(amqp.LinkRedirectError) as caught:
                async with opening:
                    raise AssertionError("a link that should not come to be")
            assert caught.value.network_host == "b.example"
            assert (caught.value.port, caught.value.address) == (5672, "there")


def test_place_keeps_the_scheme_and_what_is_not_told() -> None:
    place = DialTarget(parse_url("amqps://ada:x@a.example:5680/orders"))
    error = amqp.ConnectionRedirectError(
        "go", amqp.ErrorInfo(condition="amqp:connection:redirect", info={"hostname": "b.example"})
    )
    onward = redirected(place, error)
    assert str(onward) == "amqps://b.example:5680"
    assert onward.url is not None
    assert (onward.url.username, onward.url.address, onward.hostname) == ("ada", "orders", "b.example")


@pytest.mark.parametrize("url", [None, "amqp+unix:///run/app.sock"])
def test_place_without_a_host_leads_nowhere(url: str | None) -> None:
    error = amqp.ConnectionRedirectError("go", amqp.redirect("amqp://b.example"))
    with pytest.raises(amqp.LocalProtocolError, match="cannot be followed"):
        redirected(DialTarget(None if url is None else parse_url(url)), error)


def test_redirect_to_no_host_leads_nowhere() -> None:
    error = amqp.ConnectionRedirectError("go", amqp.ErrorInfo(condition="amqp:connection:redirect"))
    with pytest.raises(amqp.LocalProtocolError, match="redirects without the name of a host"):
        redirected(DialTarget(parse_url("amqp://a.example")), error)


# -- who follows --------------------------------------------------------------------------------


async def test_dial_follows_to_the_end_when_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net(a="amqp://b", b="amqp://c", c=queues())
    async with net.up(monkeypatch):
        async with amqp.open_connection("amqp://a", follow_redirects=True) as conn:
            assert conn.remote.container_id == "service"
            async with conn.open_sender("q") as sender:
                assert await sender.send("hello") == amqp.Accepted()
        assert net.dialled == ["a:5672", "b:5672", "c:5672"]
        assert net.asked == ["a", "b", "c"]


async def test_dial_names_the_hostname_of_the_redirect_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def first(conn: Connection) -> None:
        await conn.aclose(amqp.redirect("amqp://b", hostname="tenant.example"))

    net = Net(a=first, b=queues())
    async with (
        net.up(monkeypatch),
        amqp.open_connection("amqp://a", hostname="mine", follow_redirects=True),
    ):
        assert net.asked == ["mine", "tenant.example"]


async def test_dial_raises_the_redirect_when_not_asked_to_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net(a="amqp://b", b=queues())
    async with net.up(monkeypatch):
        with pytest.raises(amqp.ConnectionRedirectError):
            async with amqp.open_connection("amqp://a") as conn:
                await conn.wait_closed()
        assert net.dialled == ["a:5672"]


@pytest.mark.parametrize(("follow", "dialled"), [(1, 2), (3, 4), (True, 6)])
async def test_dial_gives_up_when_peers_redirect_in_a_circle(
    monkeypatch: pytest.MonkeyPatch, follow: bool | int, dialled: int
) -> None:
    net = Net(a="amqp://b", b="amqp://a")
    async with net.up(monkeypatch):
        with pytest.raises(amqp.ConnectionRedirectError):
            async with amqp.open_connection("amqp://a", follow_redirects=follow):
                raise AssertionError("a connection that should not come to be")
        assert len(net.dialled) == dialled


def test_dial_refuses_a_negative_number_of_redirects() -> None:
    with pytest.raises(amqp.LocalProtocolError, match="follow_redirects=-1"):
        amqp.open_connection("amqp://a", follow_redirects=-1)


async def test_dial_waits_for_what_follows_the_open_and_takes_an_ended_session_for_no_redirect(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)

    async def connect(_: Url) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        return ours

    async def answer() -> None:
        await peer.expect_header("amqp")
        await peer.send(header("amqp"))
        await peer.expect("open")
        await peer.expect_nothing(1)  # the begin waits for the open
        await peer.send(frame("open", container_id="peer"))
        await peer.accept_begin()
        await peer.send(frame("end", error=("error", {"condition": "amqp:not-allowed"})))
        await peer.expect("end")
        ended.set()

    monkeypatch.setattr(dialling_base, "connect", connect)
    ended = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        async with amqp.open_connection("amqp://a", sasl=False, follow_redirects=True) as conn:
            await ended.wait()
            assert not conn.closed
            nursery.start_soon(peer.aclose)


async def test_connection_that_comes_back_follows_a_redirect_at_any_time(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    net = Net(a=queues(), b=queues())
    async with net.up(monkeypatch):
        async with amqp.open_connection("amqp://a", reconnect=EVEN, follow_redirects=True) as conn:
            changes = conn.changes()
            async with conn.open_sender("q") as sender:
                await sender.send("at a")
                await net.conns[-1].aclose(amqp.redirect("amqp://b"))
                await sender.send("at b")
                kinds = [(await changes.__anext__()).url for _ in range(2)]
                assert kinds == [None, "amqp://b:5672"]
                await net.conns[-1].aclose()
                await sender.send("at a again")
        assert net.dialled == ["a:5672", "b:5672", "a:5672"]


async def test_connection_that_comes_back_gives_up_when_redirected_and_not_to_follow(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    net = Net(a=queues())
    async with net.up(monkeypatch), amqp.open_connection("amqp://a", reconnect=EVEN) as conn:
        await net.conns[-1].aclose(amqp.redirect("amqp://b"))
        with pytest.raises(amqp.ConnectionRedirectError):
            await conn.wait_closed()


async def test_connection_that_comes_back_gives_up_when_redirected_in_a_circle(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async def later(conn: Connection) -> None:
        await trio.sleep(5)
        here = conn.remote.hostname
        await conn.aclose(amqp.redirect("amqp://b" if here == "a" else "amqp://a"))

    net = Net(a=later, b=later)
    async with net.up(monkeypatch):
        async with amqp.open_connection("amqp://a", reconnect=EVEN, follow_redirects=3) as conn:
            with pytest.raises(amqp.ConnectionRedirectError):
                await conn.wait_closed()
        assert len(net.dialled) == 4


async def test_connection_that_comes_back_counts_anew_when_redirects_are_far_apart(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async def later(conn: Connection) -> None:
        await trio.sleep(100)
        here = conn.remote.hostname
        await conn.aclose(amqp.redirect("amqp://b" if here == "a" else "amqp://a"))

    net = Net(a=later, b=later)
    async with net.up(monkeypatch):
        async with amqp.open_connection(
            "amqp://a", reconnect=EVEN, follow_redirects=1, idle_timeout=None
        ) as conn:
            with trio.move_on_after(450):
                await conn.wait_closed()
            assert not conn.closed
        assert len(net.dialled) == 5


# -- what goes along ----------------------------------------------------------------------------

ADA = amqp.sasl.Server(users={"ada": "secret"})


async def test_salted_keys_do_not_go_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net(a="amqp://b", b=queues())
    net.users = ADA
    async with net.up(monkeypatch):
        with pytest.raises(amqp.SecurityError, match="trusted_hosts=") as caught:
            async with amqp.open_connection(
                "amqp://ada:secret@a", follow_redirects=True, allow_plaintext_password=True
            ):
                raise AssertionError("a connection that should not come to be")
        assert isinstance(caught.value.__cause__, amqp.ConnectionRedirectError)
        assert net.dialled == ["a:5672"]


async def test_salted_keys_do_not_go_to_another_host_when_it_is_only_called_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def first(conn: Connection) -> None:
        await conn.aclose(amqp.redirect("amqp://b", hostname="a"))

    net = Net(a=first, b=queues())
    async with net.up(monkeypatch):
        with pytest.raises(amqp.SecurityError):
            async with amqp.open_connection(
                "amqp://a", sasl=amqp.sasl.Scram("ada", "secret"), follow_redirects=True
            ):
                raise AssertionError("a connection that should not come to be")
        assert net.dialled == ["a:5672"]


async def test_salted_keys_go_to_a_host_that_is_trusted_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net(a="amqp://b", b=queues())
    net.users = ADA
    async with (
        net.up(monkeypatch),
        amqp.open_connection(
            "amqp://ada:secret@a",
            follow_redirects=True,
            trusted_hosts=["B"],
            allow_plaintext_password=True,
        ) as conn,
    ):
        assert conn.remote.container_id == "service"
        assert [one.identity.name for one in net.conns] == ["ada", "ada"]


async def test_salted_keys_go_to_another_port_of_the_same_host(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net(a="amqp://A:5680")
    net.hosts["A:5680"] = queues()
    net.users = ADA
    async with (
        net.up(monkeypatch),
        amqp.open_connection("amqp://ada:secret@a", follow_redirects=True, allow_plaintext_password=True),
    ):
        assert net.dialled == ["a:5672", "A:5680"]


@pytest.mark.parametrize(
    ("options", "to", "hostname", "refused"),
    [
        ({}, "a", "a", None),
        ({}, "b", "b", "b"),
        ({}, "b", "a", None),  # the certificate has to name the host of the URL
        ({}, "a", "b", "b"),
        ({"trusted_hosts": ["b"]}, "10.0.0.2", "b", None),
        ({"server_hostname": "a.example"}, "b", "b", None),
        ({"insecure": True}, "b", "a", "b"),
        ({"insecure": True}, "a", "b", None),
    ],
)
def test_salted_keys_go_to_whom_tls_proves_where_there_is_tls(
    options: dict[str, Any], to: str, hostname: str, refused: str | None
) -> None:
    dialling = amqp.open_connection("amqps://ada:secret@a", **options)
    error = amqp.ConnectionRedirectError("go", amqp.redirect(f"amqp://{to}", hostname=hostname))
    if refused is None:
        dialling.redirected(error)
    else:
        with pytest.raises(amqp.SecurityError, match=f"redirects to '{refused}'"):
            dialling.redirected(error)


def test_certificate_is_a_credential_too() -> None:
    dialling = amqp.open_connection("amqps://a", certfile="ada.pem")
    with pytest.raises(amqp.SecurityError, match="redirects to 'b'"):
        dialling.redirected(amqp.ConnectionRedirectError("go", amqp.redirect("amqp://b")))


@pytest.mark.parametrize("kind", ["connection", "link"])
async def test_hostname_of_a_redirect_is_named_in_open_sasl_and_tls(kind: str) -> None:
    asked: list[tuple[str | None, ...]] = []

    async def there(conn: Connection) -> None:
        asked.append((conn.remote.hostname, conn.sasl_hostname, conn.server_name))
        await conn.wait_closed()

    async def here(conn: Connection) -> None:
        if kind == "connection":
            await conn.aclose(amqp.redirect(f"amqp://127.0.0.1:{goal.port}", hostname="b.example"))
        async for link in conn.incoming_links():
            await link.refuse(amqp.redirect(f"amqp://127.0.0.1:{goal.port}/q", hostname="b.example"))

    def context(name: str) -> ssl.SSLContext:
        return amqp.tls.server_context(authority().issue(name).file)

    options: dict[str, Any] = {"sasl": amqp.sasl.Anonymous(), "cafile": str(authority().cafile)}
    async with (
        listening(there, "amqps://127.0.0.1:0", ssl_context=context("b.example")) as [goal],
        listening(here, "amqps://127.0.0.1:0", ssl_context=context("localhost")) as [start],
    ):
        url = f"amqps://localhost:{start.port}"
        if kind == "connection":
            async with amqp.open_connection(url, follow_redirects=True, **options):
                pass
        else:
            async with amqp.open_connection(url, **options) as conn:
                with pytest.raises(amqp.LinkRedirectError) as caught:
                    async with conn.open_sender("q"):
                        raise AssertionError("a link that should not come to be")
                async with conn.open_redirected(caught.value):
                    pass
    assert asked == [("b.example", "b.example", "b.example")]


# -- links --------------------------------------------------------------------------------------


async def test_link_is_opened_where_the_redirect_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    async def elsewhere(access: amqp.Access) -> bool:
        if access.action == "send":
            error = amqp.redirect("amqp://b/there")
            raise amqp.RefusedError(error.condition, error.description or "", error.info)
        return True

    there = amqp.Container("there")
    net = Net(a=amqp.Container("here", authorise=elsewhere).handle, b=there.handle)
    async with net.up(monkeypatch), amqp.open_connection("amqp://a") as conn:
        with pytest.raises(amqp.LinkRedirectError) as caught:
            async with conn.open_sender("here"):
                raise AssertionError("a link that should not come to be")
        error = caught.value
        async with conn.open_redirected(error) as other, other.open_sender(error.address) as sender:
            await sender.send("hello")
        assert list(there.nodes) == ["there"]
        assert not conn.closed


async def test_container_redirects_a_connection_when_asked_whether_it_may_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def elsewhere(_: amqp.Access) -> bool:
        error = amqp.redirect("amqp://b")
        raise amqp.RefusedError(error.condition, error.description or "", error.info)

    net = Net(a=amqp.Container("here", authorise=elsewhere).handle, b=queues())
    async with net.up(monkeypatch), amqp.open_connection("amqp://a", follow_redirects=True):
        assert net.dialled == ["a:5672", "b:5672"]


async def test_open_redirected_does_not_take_credentials_to_another_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = Net(a=queues())
    net.users = ADA
    async with (
        net.up(monkeypatch),
        amqp.open_connection("amqp://ada:secret@a", allow_plaintext_password=True) as conn,
    ):
        error = amqp.LinkRedirectError("go", amqp.redirect("amqp://b/q"))
        with pytest.raises(amqp.SecurityError):
            conn.open_redirected(error)


async def test_open_redirected_refuses_where_nobody_dialled() -> None:
    error = amqp.LinkRedirectError("go", amqp.redirect("amqp://b/q"))
    accepted: list[Connection] = []

    async def handle(conn: Connection) -> None:
        accepted.append(conn)
        await conn.wait_closed()

    async with served(handle) as conn:
        await wait_all_tasks_blocked()
        with pytest.raises(amqp.LocalProtocolError, match="was accepted"):
            accepted[0].open_redirected(error)
        with pytest.raises(amqp.LocalProtocolError, match="a stream"):
            conn.open_redirected(error)
