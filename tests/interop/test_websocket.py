"""rhea and us over WebSockets, both ways round, from node and from a page in a browser."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp

from . import exchange
from .conftest import need
from .ours import within
from .peers import PEERS, Process

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from .peers import Client

MODES = pytest.mark.parametrize("presettled", [False, True], ids=["unsettled", "presettled"])


@pytest.fixture
def rhea_ws(rhea: Client) -> Client:
    return replace(rhea, scheme="amqpws", listen_flags=("--websocket",))


@MODES
def test_rhea_receives_the_corpus_over_a_websocket_when_we_dial(rhea_ws: Client, presettled: bool) -> None:
    exchange.we_dial_and_send(rhea_ws, presettled)


@MODES
def test_rhea_sends_the_corpus_over_a_websocket_when_we_dial(rhea_ws: Client, presettled: bool) -> None:
    exchange.we_dial_and_receive(rhea_ws, presettled)


@MODES
def test_rhea_sends_the_corpus_over_a_websocket_when_we_listen(rhea_ws: Client, presettled: bool) -> None:
    exchange.we_listen_and_receive(rhea_ws, presettled)


@MODES
def test_rhea_receives_the_corpus_over_a_websocket_when_we_listen(rhea_ws: Client, presettled: bool) -> None:
    exchange.we_listen_and_send(rhea_ws, presettled)


# -- a page in a browser --------------------------------------------------------------------

COUNT = 100

PAGE = """<!doctype html><script src="/rhea.js"></script><script>
const rhea = require('rhea');
const {url, count} = SETTINGS;
const container = rhea.create_container();
container.on('message', (context) => {
    const body = context.message.body;
    sender.send({message_id: context.message.message_id, body: {heard: body, by: navigator.userAgent}});
});
const connection = container.connect({
    connection_details: container.websocket_connect(WebSocket)(url, ['amqp']),
    username: 'ann', password: 's3cret', reconnect: false,
});
const sender = connection.open_sender('answers');
sender.on('sender_open', () => connection.open_receiver('questions'));
</script>
"""


@contextmanager
def page(settings: dict[str, Any], tmp_path: Path) -> Generator[str, None, None]:
    """A browser on a page of ours, as long as the block lasts; gives the page's origin."""
    script = (PEERS / "rhea/node_modules/rhea/dist/rhea.js").read_bytes()

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = PAGE.replace("SETTINGS", json.dumps(settings)).encode()
            body = script if self.path == "/rhea.js" else text
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript" if body is script else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        Thread(target=site.serve_forever, daemon=True).start()
        settings["origin"] = f"http://127.0.0.1:{site.server_port}"
        try:
            yield str(settings["origin"])
        finally:
            site.shutdown()


def browser(url: str, tmp_path: Path) -> Process:
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    return Process(
        ["chromium", *flags, f"--user-data-dir={tmp_path}", "--disable-background-networking", url]
    )


async def with_page(tmp_path: Path, *, listed: bool, talk: Any) -> None:
    settings: dict[str, Any] = {"count": COUNT}
    container = amqp.Container("service")
    sasl = amqp.sasl.Server({"ann": "s3cret"})
    with page(settings, tmp_path) as origin:
        async with trio.open_nursery() as nursery:
            origins = [origin] if listed else ["http://other.example"]
            [listener] = await nursery.start(
                partial(container.serve, "amqpws://127.0.0.1:0", sasl=sasl, origins=origins)
            )
            settings["url"] = listener.url.replace("amqpws:", "ws:")
            process = browser(origin, tmp_path)
            try:
                async with container.connect() as connection:
                    await talk(connection)
            finally:
                with trio.CancelScope(shield=True):
                    await trio.to_thread.run_sync(process.end)
            nursery.cancel_scope.cancel()


def test_page_in_a_browser_exchanges_messages_with_a_container(tmp_path: Path) -> None:
    need("chromium")

    async def talk(connection: amqp.Connection) -> None:
        async with (
            connection.open_sender("questions") as sender,
            connection.open_receiver("answers") as receiver,
        ):
            for number in range(COUNT):
                await sender.transmit(amqp.Message(f"{number} \u2603", message_id=number))
            for number in range(COUNT):
                delivery = await receiver.receive()
                message = delivery.message
                assert message.message_id == number
                assert message.body["heard"] == f"{number} \u2603"
                assert "Chrome" in message.body["by"]
                delivery.accept()
            await sender.flush()

    within(partial(with_page, tmp_path, listed=True, talk=talk))


class Ear(logging.Handler):
    """Hears what a listener says of those who came no further."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = trio.Event()
        self.said = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.said = record.getMessage()
        self.heard.set()


def test_page_from_elsewhere_is_not_let_in(tmp_path: Path) -> None:
    need("chromium")

    async def run() -> None:
        ear = Ear()
        log = logging.getLogger("trio_amqp10.listen")
        log.addHandler(ear)
        log.setLevel(logging.INFO)

        async def talk(connection: amqp.Connection) -> None:
            await ear.heard.wait()

        try:
            await with_page(tmp_path, listed=False, talk=talk)
        finally:
            log.setLevel(logging.NOTSET)
            log.removeHandler(ear)
        assert "a script of a page from 'http://127.0.0.1:" in ear.said
        assert "which is not among the permitted origins" in ear.said

    within(run)
