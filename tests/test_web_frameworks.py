"""The web applications of the manual under a real server: a request, a delivery in the background, and SIGTERM."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from trio_amqp10 import blocking
from trio_amqp10.testing import running_container

from .places import ROOT
from .ports import free_port
from .test_docs import blocks

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs/how-to/web-frameworks.rst"
SECONDS = 60


@pytest.mark.parametrize(("module", "worker"), [("shop", "trio"), ("aio_shop", "asyncio")])
def test_application_serves_and_ends_at_sigterm(module: str, worker: str, tmp_path: Path) -> None:
    (program,) = [each.text for each in blocks(PAGE) if each.text.startswith(f"# {module}.py")]
    port = free_port()
    with running_container(["orders", "shipments"]) as url:
        (tmp_path / f"{module}.py").write_text(program.replace("amqp://localhost:5672", url))
        command = [
            "-m",
            "hypercorn",
            "--worker-class",
            worker,
            "--bind",
            f"127.0.0.1:{port}",
            f"{tmp_path / module}:app",
        ]
        with subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, stderr=subprocess.PIPE, text=True
        ) as server:
            try:
                assert post(port, {"id": 1}) == {"accepted": True}
                with blocking.connect(url) as conn:
                    with conn.open_sender("shipments") as sender:
                        sender.send("tea", timeout=SECONDS)  # the consumer of the application accepts it
                    server.send_signal(signal.SIGTERM)
                    errors = server.communicate(timeout=SECONDS)[1]
                    with conn.open_receiver("orders") as receiver:
                        assert receiver.receive(timeout=SECONDS).message.body == {"id": 1}
            finally:
                server.kill()
    assert server.returncode == 0, errors
    assert "Traceback" not in errors, errors


def post(port: int, body: object) -> object:
    """Sends an order, as soon as the server listens."""
    for _ in range(SECONDS * 10):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        try:
            client.request("POST", "/orders", json.dumps(body), {"content-type": "application/json"})
            return json.load(client.getresponse())
        except ConnectionRefusedError:
            time.sleep(0.1)
        finally:
            client.close()
    raise AssertionError("the server did not listen")
