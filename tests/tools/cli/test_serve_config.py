"""``amqp10 serve`` with a file of configuration and a table of rights: read, checked, reloaded."""

from __future__ import annotations

import re
import shutil
import signal
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import pytest
from click.testing import CliRunner

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority
from trio_amqp10.broker.nodes.policy import QUEUE_RULES
from trio_amqp10.broker.rights.access import Action
from trio_amqp10.tools.cli.command_runner import CommandError
from trio_amqp10.tools.cli.rights_file import ReplaceableRules, Rights, rights_of_file
from trio_amqp10.tools.cli.serve import ServeOptions, _Reload  # pyright: ignore[reportPrivateUsage]
from trio_amqp10.tools.cli.serve_command import _options, serve_command  # pyright: ignore[reportPrivateUsage]
from trio_amqp10.tools.cli.serve_options import SERVE_OPTIONS, read_config
from trio_amqp10.tools.cli.service_manager import ServiceManager

from .conftest import amqp10, done, failed, interrupt, next_listener, start

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator, Generator

FULL = """
listen = ["amqp://127.0.0.1:0", "amqp091://127.0.0.1:0"]
http = ["http://127.0.0.1:0"]
metrics-queues = ["orders*"]
allow-plaintext-password = true
strict = true
management = true
log-changes = true
refuse-durable = false
store = "broker.db"
backup = "broker.backup"
topics = ["prices"]
max-failures = "none"
memory-limit = "512MiB"
max-partial = 1000000
dialects = { "0-9-1" = { heartbeat = 30, no-local = true }, "10.3" = {} }

[queues.orders]
max-length = 10
overflow = "reject"
dead-letter = "dead"
ttl = 60000
redelivery-delay = 0.5
grouped = true
max-octets = "1MiB"
[queues.dead]

[users]
ada = "enigma"
bob = "sesame"

[groups]
clerks = ["ada"]

[[rights]]
group = "clerks"
permissions = ["read", "write"]
addresses = ["orders", "prices"]
[[rights]]
user = "bob"
permissions = "receive"
addresses = "orders*"

[quotas]
connections = 5
[quotas.users.bob]
connections = 1
"""


def written(folder: Path, text: str, name: str = "broker.toml") -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def faults_of(folder: Path, text: str) -> str:
    with pytest.raises(CommandError) as wrong:
        read_config(written(folder, text))
    assert wrong.value.code == 2
    return str(wrong.value).replace(str(folder), "").replace("\namqp10: ", "\n")


def test_every_option_has_its_key(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("")
    tls = '[tls]\ncert = "cert.pem"\nkey = "cert.pem"\nclient-ca = "cert.pem"\n'
    found = read_config(written(tmp_path, f'users-file = "cert.pem"\n{FULL}{tls}'))
    assert {option.name for option in SERVE_OPTIONS} == found.keys()
    assert found["tls_cert"] == str(tmp_path / "cert.pem")
    assert found["queues"][0] == (
        "orders",
        {
            "max_length": 10,
            "overflow": "reject",
            "dead_letter": "dead",
            "ttl": 60000,
            "redelivery_delay": 0.5,
            "grouped": True,
            "max_octets": 1024 * 1024,
        },
    )
    assert found["quotas"] == [(None, "connections", 5), ("bob", "connections", 1)]
    assert found["max_failures"] is None
    assert found["rights"].rows == (("ada", "receive send", "orders prices"), ("bob", "receive", "orders*"))
    assert found["dialects"]["0-9-1"]["limits"].heartbeat == 30


def test_every_rule_of_a_queue_has_its_key(tmp_path: Path) -> None:
    values = {"flag": "true", "address": '"a"', "count": "1", "octets": '"1KiB"'}
    rows = [
        f"{rule.option} = {values.get(rule.kind, '1') if not rule.choices else repr(rule.choices[0])}"
        for rule in QUEUE_RULES
    ]
    found = read_config(written(tmp_path, "[queues.q]\n" + "\n".join(rows)))
    assert found["queues"][0][1].keys() == {rule.name for rule in QUEUE_RULES}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lisen = 1", "lisen: unknown key; did you mean listen?"),
        ("listen = 1", "listen: expected a string or an array, not a whole number (1)"),
        ('listen = ["http://x"]', "listen: 'http://x' is not a URL"),
        ("strict = 'yes'", "strict: expected a boolean, not a string ('yes')"),
        ("max-failures = true", "max-failures: expected a whole number or a string, not a boolean (true)"),
        ("max-failures = 0", "max-failures: '0': expected a number of at least 1"),
        ("store = 1979-05-27", "store: expected a string, not a date or time"),
        ('store = ""', "store: '' is no path"),
        ('store = "."', "is a directory"),
        ('users-file = "none"', "does not exist"),
        ("tls = 1", "tls: expected a table"),
        ("[tls]\nclient-cas = 'x'", "tls.client-cas: unknown key; did you mean client-ca?"),
        ("queues = ['orders']", "queues: expected a table, not an array"),
        ("[queues]\norders = 1", "queues.orders: expected a table"),
        (
            "[queues.orders]\nmax-lenght = 1",
            "queues.orders.max-lenght: unknown key; did you mean max-length?",
        ),
        (
            "[queues.orders]\nmax-length = '1'",
            "queues.orders.max-length: expected a whole number, not a string",
        ),
        (
            "[queues.orders]\nmax-length = true",
            "queues.orders.max-length: expected a whole number, not a boolean",
        ),
        ("[queues.orders]\nmax-length = 0", "queues.orders: max-length=0: expected at least 1"),
        ("[queues.orders]\ngrouped = 1", "queues.orders.grouped: expected a boolean"),
        ("[queues.orders]\nexpires = nan", "queues.orders: expires=nan: expected more than 0"),
        ("[queues.orders]\noverflow = 'x'", "queues.orders.overflow: overflow='x': expected one of wait"),
        ('[queues."a b".x]', 'queues."a b".x: unknown key'),
        ('[queues.""]', "a queue needs a name"),
        ("topics = [1]", "topics: expected a string"),
        ("topics = ['']", "topics: a topic needs a name"),
        ("topics = 5", "topics: expected a string"),
        ("[topics.'']", "a topic needs a name"),
        ("[topics]\nprices = 5", "topics.prices: expected a table"),
        ("[topics.prices]\nmax-backlog = 0", "topics.prices: max-backlog=0: expected at least 1"),
        ("[topics.prices]\nmax-backlog = '5'", "topics.prices.max-backlog: expected a whole number"),
        ("[topics.prices]\noverflow = 'x'", "topics.prices.overflow: overflow='x': expected one of detach"),
        ("[topics.prices]\nbacklog = 5", "topics.prices.backlog: unknown key; did you mean max-backlog?"),
        ("[users]\nada = 5", "users.ada: expected a password, as a string"),
        ("users = 'ada:x'", "users: expected a table"),
        ("quotas = 5", "quotas: expected a table"),
        ("[quotas]\nlinks = 0", "quotas.links: 0: expected a number of at least 1"),
        ("[quotas]\nlinks = '5'", "quotas.links: expected a whole number"),
        ("[quotas]\nlink = 5", "quotas.link: unknown key; did you mean links?"),
        ("[quotas]\nusers = 5", "quotas.users: expected a table"),
        ("[quotas.users.ada]\nnode-senders = 5", "cannot be set for one user"),
        ("dialects = ['1-0']", "dialects: '1-0' is not a dialect"),
        ("[dialects.'0-9-1']\nheartbeet = 1", "heartbeet: unknown key; did you mean heartbeat?"),
        ("[dialects.'10.3']\nheartbeat = 1", "heartbeat: unknown key; there are none here"),
        ("dialects = 5", "dialects: expected a string or an array or a table"),
        ("[groups]\na = ['x']", "groups are for [[rights]]"),
        ("rights = 5", "rights: expected an array"),
        ("rights = 'none.toml'", "does not exist"),
        ("[[rights]]\nuser = 'a'\npermissions = 'send'", "rights[1]: expected addresses"),
        ("[[rights]]\npermissions = 'send'", "rights[1]: expected exactly one of user, users, group"),
        ("[[rights]]\nuser = 'a'", "rights[1].permissions: expected any of open, send"),
        ("[[rights]]\nuser = 'a'\npermissions = 'sned'", "'sned' is not a permission; did you mean send?"),
        (
            "[[rights]]\ngroup = 'a'\npermissions = 'open'\n[groups]\nb = []",
            "there is no group 'a' in [groups]",
        ),
        (
            "[[rights]]\nuser = 'a'\npermission = 'send'",
            "rights[1].permission: unknown key; did you mean permissions?",
        ),
        ("[[rights]]\nuser = 'a'\npermissions = 'send'\naddresses = 'a b'", "has no spaces"),
        ("[[rights]]\nuser = ''\npermissions = 'open'", "expected a user"),
        ("[[rights]]\nusers = ['a', '']\npermissions = 'open'", "expected a user"),
        ("a = [1", "is not TOML"),
        ("a = " + "[" * 5000, "is not TOML"),
        ("a = 1" + "0" * 5000, "is not TOML"),
    ],
)
def test_fault_is_named_by_file_and_key(text: str, said: str, tmp_path: Path) -> None:
    assert said in faults_of(tmp_path, text)


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    file = written(tmp_path, "strict = 1\nlisen = 1\n[queues.q]\nttl = -1\n")
    result = amqp10("serve", "--config", file, "--check")
    assert (result.returncode, result.stdout) == (2, b"")
    lines = result.stderr.decode().splitlines()
    assert len(lines) == 3
    assert all(line.startswith(f"amqp10: {file}: ") for line in lines)


@pytest.mark.parametrize("content", ["strict = true\n".encode("utf-16"), b"\xff\xfe", b"a = '\xff'"])
def test_file_that_is_no_utf_8_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_bytes(content)
    with pytest.raises(CommandError, match="is not UTF-8"):
        read_config(str(file))


def test_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_bytes(b"\xef\xbb\xbfstrict = true\r\n")
    assert read_config(str(file)) == {"strict": True}


def test_path_that_is_no_file_is_a_usage_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", "/dev/zero"):
        assert CliRunner().invoke(serve_command, ["--config", str(path), "--check"]).exit_code == 2


def test_ten_thousand_queues_are_read_soon(tmp_path: Path) -> None:
    text = "".join(f"[queues.'q/{number}']\nmax-length = {number + 1}\n" for number in range(10_000))
    began = time.monotonic()
    assert len(read_config(written(tmp_path, text))["queues"]) == 10_000
    assert time.monotonic() - began < 10


def test_command_line_replaces_keys(tmp_path: Path) -> None:
    file = written(tmp_path, "strict = true\ntopics = ['a']\nusers-file = 'x'\n")
    (tmp_path / "x").write_text("")
    given: dict[str, Any] = {
        "urls": ("amqp://h",), "users": {}, "users_file": None, "queues": (), "topics": (), "store": None, "backup": None, "quotas": (),
        "tls_cert": None, "tls_key": None, "tls_client_ca": None, "dialects": None, "strict": False,
    }  # fmt: skip
    options = _options(file, given, {"topics": (("b", {}),), "users": {"ada": "x"}})
    assert (options.strict, options.topics, options.users, options.users_file) == (
        True,
        (("b", {}),),
        {"ada": "x"},
        None,
    )


def test_keys_that_exclude_each_other_are_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    file = written(tmp_path, "users-file = 'x'\n[users]\nada = 'x'\n")
    assert f"{file}: --user and --users exclude each other" in failed("serve", "--config", file, code=2)
    file = written(tmp_path, "[queues.q]\ndurable = true\n")
    assert "needs --store" in failed("serve", "--config", file, "--check", code=2)
    file = written(tmp_path, "[tls]\ncert = 'x'\n")
    assert "not a matching certificate" in failed("serve", "--config", file, "--check", code=2)


def test_check_ends_without_serving(tmp_path: Path) -> None:
    file = written(tmp_path, FULL)
    assert done("serve", "--config", file, "--check") == b"valid\n"
    assert not (tmp_path / "broker.db").exists()
    assert done("serve", "--queue", "a", "--check") == b"valid\n"


def test_check_warns_as_a_start_does(tmp_path: Path) -> None:
    open_to_all = "amqp10: warning: --management without --user, --users or --tls-client-ca lets every client delete every queue"
    lost = "amqp10: warning: the dead letters of queue 'a' are lost, because 'b' does not exist and --strict creates no queue: add --queue b"
    store = tmp_path / "broker.db"
    kept = ("--queue", "a,dead-letter=b,durable=true", "--store", str(store))

    def warnings(*options: str) -> list[str]:
        result = amqp10("serve", *options, "--check")
        assert (result.returncode, result.stdout) == (0, b"valid\n")
        return result.stderr.decode().splitlines()

    assert warnings("--management", "--strict", "--queue", "a,dead-letter=b") == [open_to_all, lost]
    assert warnings("--management", "--user", "ada:x", "--queue", "a,dead-letter=b") == []
    assert warnings("--strict", *kept) == [lost]
    assert not store.exists()
    store.touch()  # it may have the queue
    assert warnings("--strict", *kept) == []


def test_check_finds_an_address_that_is_given_twice() -> None:
    said = failed("serve", "--queue", "a", "--topic", "a", "--check", code=2)
    assert said == "amqp10: queue 'a' exists already: choose another address"


@contextmanager
def served(*arguments: str) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    process = start("serve", *arguments)
    try:
        yield next_listener(process), process
    finally:
        interrupt(process)


def hang_up(process: subprocess.Popen[bytes], lines: int) -> list[str]:
    process.send_signal(signal.SIGHUP)
    assert process.stderr is not None
    said: list[str] = []
    while len(said) < lines:
        line = process.stderr.readline().decode()
        assert line, said  # The process has ended.
        if line.startswith("amqp10: "):  # others are of the log
            said.append(line.removeprefix("amqp10: ").strip())
    return said


def test_config_serves_what_it_says(tmp_path: Path) -> None:
    with served("--config", written(tmp_path, FULL)) as (url, _):
        ada = url.replace("://", "://ada:enigma@")
        bob = url.replace("://", "://bob:sesame@")
        assert done("send", f"{ada}/orders", "--body", "tea") == b"sent 1\n"
        assert "may not send to 'orders'" in failed("send", f"{bob}/orders", "--body", "tea")
        assert done("receive", f"{bob}/orders", "--until-empty") == b"tea\n"
        assert "not authenticated" in failed("send", f"{url}/orders", "--body", "tea")


def test_hangup_applies_what_can_be_changed_and_says_so(tmp_path: Path) -> None:
    text = FULL.replace('store = "broker.db"\nbackup = "broker.backup"\n', "")
    file = written(tmp_path, text)
    with served("--config", file) as (url, process):
        bob = url.replace("://", "://bob:{}@")
        changed = (
            text.replace("max-length = 10", "max-length = 20")
            .replace('bob = "sesame"', 'bob = "new"')
            .replace('permissions = "receive"', 'permissions = "send receive"')
            .replace("connections = 5", "connections = 6")
            .replace("[queues.dead]", "[queues.tea]")
            .replace("strict = true", "strict = false")
            .replace('["prices"]', '["news"]')
        )
        written(tmp_path, changed)
        said = hang_up(process, 5)
        assert said == [
            "users, certificates and authorities were read again",
            "changed: quotas, rights, users, queue orders (max-length 10 -> 20), queue tea added, topic news added",
            "needs a restart: strict",
            "queue dead is no longer in the file, and stays until a restart",
            "topic prices is no longer in the file, and stays until a restart",
        ]
        assert done("send", f"{bob.format('new')}/orders", "--body", "tea") == b"sent 1\n"
        assert "not authenticated" in failed("send", f"{bob.format('sesame')}/orders", "--body", "tea")
        written(tmp_path, changed + "\nlisen = 1\n")
        (line,) = hang_up(process, 1)
        assert "stay in use" in line
        assert "lisen" in line
        assert done("receive", f"{bob.format('new')}/orders", "--until-empty") == b"tea\n"
        written(tmp_path, changed)
        assert hang_up(process, 2)[1] == "nothing else changed"


async def test_hangup_changes_the_limits_of_a_topic_and_tells_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def hangups() -> AsyncIterator[int]:
        for topics in wanted:
            now[:] = [ServeOptions(urls=(), topics=topics)]
            yield signal.SIGHUP

    limits = {"max_backlog": 5, "overflow": "reject"}
    wanted = [
        [("prices", limits)],
        [("prices", limits)],
        [("news", {}), ("tea", {})],
        [("news", {"max_backlog": 3})],
    ]
    container = amqp.Container()
    topic = container.add_topic("prices")
    container.add_queue("tea")
    now: list[ServeOptions] = []
    old = ServeOptions(urls=(), topics=[("prices", {})])
    await _Reload(old, lambda: now[0], hangups(), False, ServiceManager.of({})).run(
        container, amqp.sasl.Server(anonymous=True), None
    )
    said = [line.partition("amqp10: ")[2] for line in capsys.readouterr().err.splitlines()]
    assert (topic.max_backlog, topic.overflow, topic.max_subscriptions) == (5, "reject", 10_000)
    assert [line for line in said if "read again" not in line] == [
        "changed: topic prices (max-backlog 10000 -> 5, overflow detach -> reject)",
        "nothing else changed",
        said[4],
        "changed: topic news added",
        "topic prices is no longer in the file, and stays until a restart",
    ]
    assert "topic tea: the address is taken by queue 'tea'" in said[4]
    assert cast("Any", container.nodes["news"]).max_backlog == 3


def test_hangup_that_cannot_change_a_queue_changes_nothing(tmp_path: Path) -> None:
    text = 'listen = "amqp://127.0.0.1:0"\n[quotas]\nlinks = 5\n[queues.jobs]\n'
    with served("--config", written(tmp_path, text)) as (url, process):
        done("send", f"{url}/jobs", "--body", "tea")
        for rule in ("exclusive", "single-active", "grouped"):
            written(tmp_path, text.replace("= 5", "= 6") + f"{rule} = true\n[queues.tea]\n")
            [line] = hang_up(process, 1)
            assert "authorities stay in use: queue jobs: " in line
            assert f"{rule.replace('-', '_')} of queue 'jobs'" in line
            assert line.endswith("cannot be changed: delete the queue and create it again")
        written(tmp_path, text.replace("= 5", "= 6"))
        assert hang_up(process, 2)[1] == "changed: quotas"
        assert done("receive", f"{url}/jobs", "--until-empty") == b"tea\n"


def test_hangup_leaves_durable_queues_of_a_new_store_to_a_restart(tmp_path: Path) -> None:
    text = 'listen = "amqp://127.0.0.1:0"\n'
    with served("--config", written(tmp_path, text)) as (url, process):
        written(tmp_path, f'store = "broker.db"\n{text}[queues.jobs]\ndurable = true\n[queues.tea]\n')
        said = hang_up(process, 4)
        assert said[1:] == [
            "changed: queue tea added",
            "needs a restart: store",
            "queue jobs: durable needs a restart",
        ]
        assert hang_up(process, 3)[1:] == ["nothing else changed", "queue jobs: durable needs a restart"]
        assert done("send", f"{url}/tea", "--body", "tea") == b"sent 1\n"


async def test_store_that_fails_at_a_hangup_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(name: str) -> None:
        raise amqp.StoreError(f"the rows of {name!r} cannot be read")

    async def one_hangup() -> AsyncIterator[int]:
        yield signal.SIGHUP

    before, after = (Rights((("ada", action, "*"),)) for action in ("send", "receive"))
    old = ServeOptions(urls=(), rights=before)
    new = ServeOptions(urls=(), rights=after, queues=[("tea", {})])
    first = before.rules()
    container = amqp.Container(authorise=ReplaceableRules(first))
    monkeypatch.setattr(container, "add_queue", fail)
    reload = _Reload(old, lambda: new, one_hangup(), False, ServiceManager.of({}))
    await reload.run(container, amqp.sasl.Server(anonymous=True), None)
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith("authorities stay in use: the rows of 'tea' cannot be read")
    rules = container.authorise
    assert isinstance(rules, ReplaceableRules)
    assert rules.rules is first


async def test_hangup_that_is_refused_leaves_the_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def hangups() -> AsyncIterator[int]:
        yield signal.SIGHUP
        assert context.certificate == first.der
        new.queues.clear()
        yield signal.SIGHUP

    first, second = authority().issue("127.0.0.1"), authority("next").issue("127.0.0.1")
    file = tmp_path / "certificate.pem"
    shutil.copy(first.file, file)
    context = amqp.tls.server_context(file)
    shutil.copy(second.file, file)
    container = amqp.Container()
    container.add_topic("tea")
    old, new = ServeOptions(urls=()), ServeOptions(urls=(), queues=[("tea", {})])
    reload = _Reload(old, lambda: new, hangups(), False, ServiceManager.of({}))
    await reload.run(container, amqp.sasl.Server(anonymous=True), context)
    refused, done, *_ = capsys.readouterr().err.splitlines()
    assert "authorities stay in use: queue tea: the address is taken" in refused
    assert done.endswith("were read again")
    assert context.certificate == second.der


def test_new_rights_end_links_that_they_do_not_permit(tmp_path: Path) -> None:
    rights = written(
        tmp_path, "[[rights]]\nuser = '*'\npermissions = 'read write configure'\naddresses = '*'\n", "r"
    )
    with served("--listen", "amqp://127.0.0.1:0", "--rights", rights) as (url, process):
        receiver = start("receive", f"{url}/orders")
        done("send", f"{url}/orders", "--body", "tea")
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == b"tea\n"
        written(tmp_path, "[[rights]]\nuser = '*'\npermissions = 'send'\naddresses = '*'\n", "r")
        assert hang_up(process, 2)[1] == "changed: rights"
        _, err = receiver.communicate(timeout=20)
        assert b"amqp:unauthorized-access" in err
        assert receiver.returncode == 1


def test_hangup_during_the_load_ends_nothing(tmp_path: Path) -> None:
    text = 'listen = "amqp://127.0.0.1:0"\n' + "".join(f"[queues.q{number}]\n" for number in range(20_000))
    process = start("serve", "--config", written(tmp_path, text))
    time.sleep(0.3)  # before that, it is Python that starts
    for _ in range(20):
        time.sleep(0.05)
        process.send_signal(signal.SIGHUP)
    assert next_listener(process).startswith("amqp://")
    out, err = interrupt(process)
    assert process.returncode == 0
    assert (out, b"Traceback" in err) == (b"", False)


def test_file_of_the_manual_has_every_key() -> None:
    page = Path(__file__).resolve().parents[3] / "docs/how-to/broker.toml"
    assert read_config(str(page))["rights"].rows[0] == ("ada", "send receive", "orders orders/*")
    text = re.sub(r"^# (?=[a-z-]+ = |\[)", "", page.read_text(), flags=re.MULTILINE)
    content = tomllib.loads(text)
    for option in SERVE_OPTIONS:
        place: Any = content
        for name in option.key.split("."):
            assert name in place, option.key
            place = place[name]


@pytest.mark.parametrize("action", get_args(Action))
def test_each_action_is_a_permission_of_a_file(action: str, tmp_path: Path) -> None:
    row = f"[[rights]]\nuser = 'a'\npermissions = '{action}'\naddresses = 'x'\n"
    assert rights_of_file(written(tmp_path, row, "r")).rows == (("a", action, "x"),)


def test_rights_of_a_file_are_checked(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"there is no \[\[rights\]\], so nobody could do anything"):
        rights_of_file(written(tmp_path, "", "r"))
    file = written(tmp_path, "[[rights]]\nusers = ['a', 'b']\npermissions = ['configure', 'transact']\n", "r")
    assert rights_of_file(file).rows == (("a", "create delete transact"), ("b", "create delete transact"))
    result = CliRunner().invoke(serve_command, ["--rights", written(tmp_path, "x = 1", "r"), "--check"])
    assert result.exit_code == 2
    assert "x: unknown key; expected one of groups, rights" in result.output
