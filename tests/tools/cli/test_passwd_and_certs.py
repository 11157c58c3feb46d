"""The commands ``amqp10 passwd`` and ``amqp10 certs``, and the server that goes by what they make."""

from __future__ import annotations

import signal
import ssl
import subprocess
import sys
from pathlib import Path

from .conftest import ENVIRONMENT, SECONDS, server_of, serving
from .conftest import done as process_done
from .conftest import failed as process_failed
from .without_a_process import amqp10, connect, done, failed, files, made


def test_serve_lets_in_whom_the_file_of_users_has(users: str) -> None:
    with serving("--users", users) as url:
        ada = url.replace("//", "//ada:enigma@")
        assert process_done("send", f"{ada}/q", "--body", "x") == b"sent 1\n"
        assert "not authenticated" in process_failed(
            "send", f"{url.replace('//', '//ada:wrong@')}/q", "--body", "x"
        )


def test_serve_fails_when_the_file_of_users_is_none(tmp_path: Path, users: str) -> None:
    other = tmp_path / "other"
    other.write_text("")
    listen = ("serve", "--listen", "amqp://127.0.0.1:0")
    assert f"{other}: line 1" in failed(*listen, "--users", str(other))
    assert amqp10(*listen, "--users", users, "--user", "a:b").exit_code == 2
    assert amqp10(*listen, "--users", str(tmp_path / "none")).exit_code == 2


def read_again(server: subprocess.Popen[bytes]) -> str:
    """Send a hangup; what the server says of it."""
    assert server.stderr is not None
    server.send_signal(signal.SIGHUP)
    return next(line for line in map(bytes.decode, server.stderr) if line.startswith("amqp10: "))


def test_serve_reads_users_and_certificates_again_when_hung_up(tmp_path: Path, users: str) -> None:
    made(tmp_path)
    own = ("--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server-key.pem"))
    with server_of("--users", users, *own, listen="amqps://127.0.0.1:0") as (url, server):
        port = int(url.rpartition(":")[2])
        bob = (f"{url.replace('//', '//bob:sesame@')}/q", "--body", "x", "--tls-ca", str(tmp_path / "ca.pem"))
        assert "not authenticated" in process_failed("send", *bob)
        before = ssl.get_server_certificate(("127.0.0.1", port))
        done("passwd", users, "bob", "--stdin", "--iterations", "4096", stdin=b"sesame\n")
        made(tmp_path, renew=True)
        assert read_again(server) == "amqp10: users, certificates and authorities were read again\n"
        assert process_done("send", *bob) == b"sent 1\n"
        assert ssl.get_server_certificate(("127.0.0.1", port)) != before
        Path(users).write_text("ada:enigma\n")
        assert f"the old users, certificates and authorities stay in use: {users}: line 1" in read_again(
            server
        )
        assert process_done("send", *bob) == b"sent 1\n"
        (tmp_path / "server.pem").unlink()
        Path(users).unlink()
        assert "stay in use" in read_again(server)


def test_serve_knows_clients_by_their_certificates(tmp_path: Path, users: str) -> None:
    made(tmp_path)
    own = ("--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server-key.pem"))
    ca = str(tmp_path / "ca.pem")
    ada = (
        "--tls-ca",
        ca,
        "--tls-cert",
        str(tmp_path / "ada.pem"),
        "--tls-key",
        str(tmp_path / "ada-key.pem"),
    )
    with serving("--users", users, *own, "--tls-client-ca", ca, listen="amqps://127.0.0.1:0") as url:
        assert process_done("send", f"{url}/q", "--body", "x", *ada) == b"sent 1\n"
        assert "refused" in process_failed("send", f"{url}/q", "--body", "x", "--tls-ca", ca)


def test_serve_reads_the_authorities_of_clients_again_when_hung_up(tmp_path: Path) -> None:
    made(tmp_path / "first")
    made(tmp_path / "second")
    own = tmp_path / "first"
    authorities = tmp_path / "clients.pem"
    authorities.write_bytes((own / "ca.pem").read_bytes())
    certificate = ("--tls-cert", str(own / "server.pem"), "--tls-key", str(own / "server-key.pem"))
    clients = ("--tls-client-ca", str(authorities))

    def ada(which: str) -> tuple[str, ...]:
        folder = tmp_path / which
        keys = ("--tls-cert", str(folder / "ada.pem"), "--tls-key", str(folder / "ada-key.pem"))
        return ("send", f"{url}/q", "--body", "x", "--tls-ca", str(own / "ca.pem"), *keys)

    with server_of(*certificate, *clients, listen="amqps://127.0.0.1:0") as (url, server):
        assert process_done(*ada("first")) == b"sent 1\n"
        process_failed(*ada("second"))
        authorities.write_bytes((tmp_path / "second/ca.pem").read_bytes())
        assert read_again(server) == "amqp10: users, certificates and authorities were read again\n"
        assert process_done(*ada("second")) == b"sent 1\n"
        process_failed(*ada("first"))
        authorities.write_text("")
        assert "stay in use" in read_again(server)
        assert process_done(*ada("second")) == b"sent 1\n"


# -- certs


def test_certs_command_prints_what_it_wrote(tmp_path: Path) -> None:
    directory = tmp_path / "tls"
    names = ["ca.pem", "ca-key.pem", "server.pem", "server-key.pem", "client.pem", "client-key.pem"]
    assert done("certs", str(directory)).decode().split() == [str(directory / name) for name in names]
    assert connect(directory, "127.0.0.1", client="client") == "client"
    assert "exists: --renew" in failed("certs", str(directory))
    done("certs", str(directory), "--renew", "--host", "example.org", "--client", "bob", "--days", "2")
    assert connect(directory, "example.org", client="bob") == "bob"
    assert amqp10("certs", str(directory), "--days", "0").exit_code == 2


def test_certs_command_names_the_extra_that_is_missing(tmp_path: Path) -> None:
    program = "import sys; sys.modules['cryptography'] = None; from trio_amqp10.tools.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", program, "certs", str(tmp_path / "tls")],
        capture_output=True,
        env=ENVIRONMENT,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 2
    assert b"pip install 'trio-amqp10[tls]'" in result.stderr


# -- TLS with what certs made


def test_serve_and_its_clients_speak_tls_with_certificates_of_both(tls: Path, users: str) -> None:
    ours = files(tls, tls_cert="server.pem", tls_key="server-key.pem", tls_client_ca="ca.pem")
    with serving(*ours, "--users", users, listen="amqps://127.0.0.1:0") as url:
        assert url.startswith("amqps://127.0.0.1:")
        target = f"{url.replace('//', '//ada:enigma@')}/q"
        theirs = files(tls, tls_ca="ca.pem", tls_cert="ada.pem", tls_key="ada-key.pem")
        assert process_done("send", target, "--body", "x", *theirs) == b"sent 1\n"
        assert process_done("receive", target, "--count", "1", *theirs) == b"x\n"
        process_failed("send", target, "--body", "x", *files(tls, tls_ca="ca.pem"))  # without a certificate
        assert "certificate" in process_failed(
            "send", target, "--body", "x"
        )  # of an authority that is not known
