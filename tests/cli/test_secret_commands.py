"""``amqp10 passwd``, ``amqp10 certs``, and the server that goes by what they make."""

from __future__ import annotations

import os
import pty
import signal
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cryptography import x509

from trio_amqp10.cli import commands
from trio_amqp10.cli.certs import CertsOptions, certs
from trio_amqp10.cli.command_runner import CommandError
from trio_amqp10.cli.serve import owner_of
from trio_amqp10.net.tls import Certificate
from trio_amqp10.sasl import read_users

from .conftest import AMQP10, ENVIRONMENT, SECONDS, server_of, serving
from .conftest import done as process_done
from .conftest import failed as process_failed


@pytest.fixture
def users(tmp_path: Path) -> str:
    file = str(tmp_path / "users")
    assert done("passwd", file, "ada", "--stdin", "--iterations", "4096", stdin=b"enigma\n") == b"added ada\n"
    return file


def amqp10(*arguments: str, stdin: bytes = b"") -> Result:
    """A command that needs no process of its own."""
    return CliRunner().invoke(commands.amqp10, arguments, input=stdin)


def done(*arguments: str, stdin: bytes = b"") -> bytes:
    result = amqp10(*arguments, stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout_bytes


def failed(*arguments: str, stdin: bytes = b"") -> str:
    result = amqp10(*arguments, stdin=stdin)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    return result.stderr.removesuffix("\n")


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


# -- passwd


def test_passwd_keeps_no_password_and_is_for_its_owner_alone(users: str) -> None:
    assert b"enigma" not in Path(users).read_bytes()
    assert mode(users) == 0o600
    assert list(read_users(users)["ada"]) == ["SCRAM-SHA-512", "SCRAM-SHA-256"]
    assert {keys.iterations for keys in read_users(users)["ada"].values()} == {4096}


def test_passwd_adds_changes_lists_and_deletes(users: str) -> None:
    before = read_users(users)
    assert done("passwd", users, "bob", "--stdin", "--mechanism", "SCRAM-SHA-1", stdin=b"x") == b"added bob\n"
    assert done("passwd", users, "ada", "--stdin", stdin=b"other\r\nmore") == b"changed ada\n"
    after = read_users(users)
    assert list(after["bob"]) == ["SCRAM-SHA-1"]
    assert after["ada"] != before["ada"]
    assert after.secret == before.secret
    assert done("passwd", users, "--list") == b"ada\nbob\n"
    assert done("passwd", users, "bob", "--delete") == b"deleted bob\n"
    assert done("passwd", users, "--list") == b"ada\n"
    assert failed("passwd", users, "bob", "--delete") == f"amqp10: there is no user 'bob' in {users}"


def test_passwd_uses_a_file_of_its_own_when_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert done("passwd", "ada", "--stdin", stdin=b"x") == b"added ada\n"
    assert done("passwd", "--list") == b"ada\n"
    assert list(read_users(tmp_path / "amqp10-users")) == ["ada"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (("eve", "--stdin"), b"\n", "password"),
        (("eve", "--stdin"), b"\xff\n", "not UTF-8"),
        (("eve",), b"x\n", "--stdin reads it from stdin"),
        (("e\nve", "--stdin"), b"x\n", "user name"),
    ],
)
def test_passwd_changes_nothing_when_it_fails(
    users: str, arguments: tuple[str, ...], stdin: bytes, said: str
) -> None:
    before = Path(users).read_bytes()
    assert said in failed("passwd", users, *arguments, stdin=stdin)
    assert Path(users).read_bytes() == before
    assert [each.name for each in Path(users).parent.iterdir()] == ["users"]


def test_passwd_fails_when_the_file_is_none(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("ada:enigma\n")
    assert f"{other}: line 1 of a users file" in failed("passwd", str(other), "ada", "--stdin", stdin=b"x")
    assert other.read_text() == "ada:enigma\n"
    assert "No such file" in failed("passwd", str(tmp_path / "none"), "--list")
    assert "No such file" in failed("passwd", str(tmp_path / "none"), "ada", "--delete")


@pytest.mark.parametrize(
    "arguments",
    [(), ("a", "b", "c"), ("--list", "a", "b"), ("a", "--list", "--stdin"), ("a", "--delete", "--stdin")],
)
def test_passwd_says_what_it_needs(arguments: tuple[str, ...]) -> None:
    assert amqp10("passwd", *arguments).exit_code == 2


@pytest.mark.parametrize("again", ["enigma", "other"])
def test_passwd_asks_twice_and_shows_nothing(tmp_path: Path, again: str) -> None:
    file = tmp_path / "users"
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*AMQP10, "passwd", str(file), "ada"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=ENVIRONMENT,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    for prompt, word in ((b"password of ada: ", "enigma"), (b"once more: ", again)):
        while prompt not in shown:
            shown += os.read(ours, 1000)
        os.write(ours, f"{word}\n".encode())
    stdout, _ = child.communicate(timeout=SECONDS)
    try:
        while octets := os.read(ours, 1000):
            shown += octets
    except OSError:
        pass  # the other end is closed
    os.close(ours)
    assert b"enigma" not in shown
    assert (child.returncode, stdout) == ((0, b"added ada\n") if again == "enigma" else (1, b""))
    assert file.exists() == (again == "enigma")


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
        assert f"nothing was read again: {users}: line 1" in read_again(server)
        assert process_done("send", *bob) == b"sent 1\n"
        (tmp_path / "server.pem").unlink()
        Path(users).unlink()
        assert "nothing was read again" in read_again(server)


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
        assert "nothing was read again" in read_again(server)
        assert process_done(*ada("second")) == b"sent 1\n"


def alternatives(*names: tuple[str, str], common: str | None = None) -> Certificate:
    subject = () if common is None else ((("commonName", common),),)
    return Certificate(b"", {"subject": subject, "subjectAltName": names})


@pytest.mark.parametrize(
    ("certificate", "owner"),
    [
        (alternatives(("DNS", "h"), common="ada"), "ada"),
        (alternatives(("email", "ada@h")), "ada@h"),
        (alternatives(("URI", "spiffe://h/ada")), "spiffe://h/ada"),
        (alternatives(("DNS", "h")), "h"),
        (alternatives(("DNS", "h"), ("email", "ada@h")), None),
        (alternatives(("IP Address", "127.0.0.1")), None),
        (alternatives(), None),
    ],
)
def test_owner_of_a_certificate_is_its_common_name_or_its_only_other(
    certificate: Certificate, owner: str | None
) -> None:
    assert owner_of(certificate) == owner


# -- certs


def made(directory: Path, **changes: Any) -> list[str]:
    options = {
        "hosts": ("localhost", "127.0.0.1"),
        "clients": ("ada",),
        "days": 30,
        "renew": False,
        **changes,
    }
    return [Path(path).name for path in certs(CertsOptions(directory=str(directory), **options))]


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def connect(directory: Path, host: str, *, client: str | None = None, ca: Path | None = None) -> str:
    """Both ends of TLS in memory; returns what the server knows of its client."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(directory / "ca.pem"))
    server.load_cert_chain(directory / "server.pem", directory / "server-key.pem")
    server.verify_mode = ssl.CERT_OPTIONAL
    theirs = ssl.create_default_context(cafile=str(ca or directory / "ca.pem"))
    for context in (server, theirs):
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    if client is not None:
        theirs.load_cert_chain(directory / f"{client}.pem", directory / f"{client}-key.pem")
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        theirs.wrap_bio(down, up, server_hostname=host),
        server.wrap_bio(up, down, server_side=True),
    )
    waiting = list(ends)
    for _ in range(10):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not waiting
    known: Any = ends[1].getpeercert()
    return str(known["subjectAltName"][0][1]) if known else ""


def test_certs_make_a_server_and_clients_that_trust_each_other(tmp_path: Path) -> None:
    written = made(tmp_path / "tls", clients=("ada", "bob@example.org"))
    assert written == [
        f"{name}{what}.pem" for name in ("ca", "server", "ada", "bob@example.org") for what in ("", "-key")
    ]
    assert connect(tmp_path / "tls", "localhost", client="ada") == "ada"
    assert connect(tmp_path / "tls", "127.0.0.1", client="bob@example.org") == "bob@example.org"
    assert connect(tmp_path / "tls", "localhost") == ""
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        connect(tmp_path / "tls", "example.org")
    made(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(tmp_path / "tls", "localhost", ca=tmp_path / "other" / "ca.pem")


def test_certs_keep_keys_to_their_owner(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made(tmp_path / "tls")
    finally:
        os.umask(before)
    for path in (tmp_path / "tls").iterdir():
        assert mode(path) == (0o600 if "-key" in path.name else 0o644)
    assert mode(tmp_path / "tls") == 0o700


def test_certs_use_an_authority_again_and_never_replace_it(tmp_path: Path) -> None:
    made(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(CommandError, match=r"server\.pem is there already: --renew"):
        made(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert made(tmp_path, renew=True, clients=("bob",)) == [
        "server.pem",
        "server-key.pem",
        "bob.pem",
        "bob-key.pem",
    ]
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {name for name in before if before[name] != after[name]} == {"server.pem", "server-key.pem"}
    assert connect(tmp_path, "localhost", client="ada") == "ada"


def test_certs_last_as_long_as_asked_and_no_longer_than_their_authority(tmp_path: Path) -> None:
    made(tmp_path, days=10)
    made(tmp_path, days=100, renew=True)
    ends = [load(tmp_path / f"{name}.pem").not_valid_after_utc for name in ("ca", "server", "ada")]
    assert len(set(ends)) == 1
    assert timedelta(days=9) < ends[0] - datetime.now(UTC) <= timedelta(days=10)


def test_certs_fail_where_the_authority_is_none(tmp_path: Path) -> None:
    made(tmp_path / "a")
    made(tmp_path / "b")
    directory = tmp_path / "a"
    (directory / "ca-key.pem").write_bytes((tmp_path / "b" / "ca-key.pem").read_bytes())
    with pytest.raises(CommandError, match="is not the key of"):
        made(directory, renew=True)
    (directory / "ca-key.pem").write_bytes(b"?")
    with pytest.raises(CommandError, match=r"are no authority that can be used"):
        made(directory, renew=True)
    (directory / "ca-key.pem").unlink()
    with pytest.raises(CommandError, match=r"are no authority that can be used"):
        made(directory, renew=True)


def test_certs_fail_where_the_authority_has_expired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trio_amqp10.cli import certs as module

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=31)

    made(tmp_path)
    monkeypatch.setattr(module, "datetime", Later)
    with pytest.raises(CommandError, match="has expired"):
        made(tmp_path, renew=True)


@pytest.mark.parametrize("name", ["", "ca", "server", "../x", ".x", "-x", "a b", "\u00fc"])
def test_certs_refuse_names_that_are_no_files(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError, match="cannot be the name of a client"):
        made(tmp_path / "tls", clients=(name,))
    assert not (tmp_path / "tls").exists()


def test_certs_refuse_hosts_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be in a certificate"):
        made(tmp_path, hosts=("\u00fc" * 100,))
    assert made(tmp_path / "ok", hosts=("m\u00fcnchen.example",))
    names = load(tmp_path / "ok" / "server.pem").extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == ["xn--mnchen-3ya.example"]


def test_certs_command_prints_what_it_wrote(tmp_path: Path) -> None:
    directory = tmp_path / "tls"
    names = ["ca.pem", "ca-key.pem", "server.pem", "server-key.pem", "client.pem", "client-key.pem"]
    assert done("certs", str(directory)).decode().split() == [str(directory / name) for name in names]
    assert connect(directory, "127.0.0.1", client="client") == "client"
    assert "is there already" in failed("certs", str(directory))
    done("certs", str(directory), "--renew", "--host", "example.org", "--client", "bob", "--days", "2")
    assert connect(directory, "example.org", client="bob") == "bob"
    assert amqp10("certs", str(directory), "--days", "0").exit_code == 2


def test_certs_command_names_the_extra_that_is_missing(tmp_path: Path) -> None:
    program = "import sys; sys.modules['cryptography'] = None; from trio_amqp10.cli import main; main()"
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


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tls")
    made(directory)
    return directory


def files(tls: Path, **options: str) -> list[str]:
    return [
        word for name, file in options.items() for word in (f"--{name.replace('_', '-')}", str(tls / file))
    ]


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


def test_send_takes_any_certificate_when_insecure(tls: Path) -> None:
    with serving(
        *files(tls, tls_cert="server.pem", tls_key="server-key.pem"), listen="amqps://127.0.0.1:0"
    ) as url:
        assert process_done("send", f"{url}/q", "--body", "x", "--insecure") == b"sent 1\n"


def test_tls_options_say_what_does_not_go_together(tls: Path) -> None:
    assert amqp10("serve", *files(tls, tls_key="server-key.pem")).exit_code == 2
    listen = ("serve", "--listen", "amqps://127.0.0.1:0")
    wrong = files(tls, tls_cert="server.pem", tls_key="ada-key.pem")
    assert "no certificate, key and authorities that go together" in failed(*listen, *wrong)
    assert "needs a certificate" in failed(*listen)
    target = ("send", "amqp://127.0.0.1:1/q", "--body", "x")
    assert "has no TLS" in failed(*target, *files(tls, tls_ca="ca.pem"))
    assert "insecure" in failed(
        "send", "amqps://127.0.0.1:1/q", "--body", "x", "--insecure", *files(tls, tls_ca="ca.pem")
    )
