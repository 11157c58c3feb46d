"""Options of commands that dial: certificates, and what does not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .conftest import done as process_done
from .conftest import serving
from .without_a_process import amqp10, failed, files

if TYPE_CHECKING:
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
