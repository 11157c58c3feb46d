"""The mechanisms that a listener offers and a client may use, by transport."""

from __future__ import annotations

import pytest

from trio_amqp10 import sasl
from trio_amqp10.core.errors import LocalProtocolError

from .frames import CountServer, converse

USERS = {"guest": "guest-secret"}


class Token(CountServer):
    name = "X-TOKEN"
    needs_secrecy = True


async def verify(_username: str, _password: str) -> bool:
    return True


STRONG = ["SCRAM-SHA-512", "SCRAM-SHA-256"]
BOUND = ["SCRAM-SHA-512-PLUS", "SCRAM-SHA-256-PLUS"]
TLS = sasl.ServerContext(channel_bindings={"tls-exporter": b"exported"})
KEYS = sasl.ScramKeys(bytes(16), 4096, bytes(32), bytes(32))


async def look_up(_username: str) -> sasl.UserKeys | None:
    return None


def names(server: sasl.Server, secure: bool, allowed: bool = False) -> list[str]:
    return [mechanism.name for mechanism in server.offer(secure, allowed)]


@pytest.mark.parametrize(
    ("server", "requires_sasl", "secure", "insecure"),
    [
        (sasl.Server(), False, ["ANONYMOUS"], ["ANONYMOUS"]),
        (sasl.Server(anonymous=True), False, ["ANONYMOUS"], ["ANONYMOUS"]),
        (sasl.Server(USERS), True, [*STRONG, "PLAIN"], STRONG),
        (
            sasl.Server({}),
            True,
            [*STRONG, "PLAIN"],
            STRONG,
        ),  # an empty mapping of users: no client can log in
        (sasl.Server(verify=verify), True, ["PLAIN"], []),
        (sasl.Server(USERS, anonymous=True), True, [*STRONG, "PLAIN", "ANONYMOUS"], [*STRONG, "ANONYMOUS"]),
        (sasl.Server(USERS, anonymous=False), True, [*STRONG, "PLAIN"], STRONG),
        (sasl.Server(USERS, scram=["SCRAM-SHA-1"]), True, ["SCRAM-SHA-1", "PLAIN"], ["SCRAM-SHA-1"]),
        (sasl.Server(credentials=look_up), True, STRONG, STRONG),
        (sasl.Server(credentials={}), True, STRONG, STRONG),
        (sasl.Server(credentials=look_up, verify=verify), True, [*STRONG, "PLAIN"], STRONG),
        (sasl.Server(mechanisms=[CountServer(1)]), True, ["X-COUNT"], ["X-COUNT"]),
        (
            sasl.Server(USERS, mechanisms=[CountServer(1), Token(1)]),
            True,
            ["X-COUNT", "X-TOKEN", *STRONG, "PLAIN"],
            ["X-COUNT", *STRONG],
        ),
    ],
)
def test_server_offers_what_the_transport_may_carry(
    server: sasl.Server, requires_sasl: bool, secure: list[str], insecure: list[str]
) -> None:
    assert server.requires_sasl is requires_sasl
    assert names(server, secure=True) == secure
    assert names(server, secure=False) == insecure
    assert names(server, secure=False, allowed=True) == secure


@pytest.mark.parametrize("checks", [{"users": USERS}, {"verify": verify}])
@pytest.mark.parametrize(("secure", "allowed"), [(True, False), (False, True)])
def test_server_permits_plain_where_it_offers_it(
    checks: dict[str, object], secure: bool, allowed: bool
) -> None:
    plain = sasl.Server(**checks).offer(secure, allowed)[-1]  # type: ignore[arg-type]
    assert not isinstance(plain.begin(sasl.ServerContext()).start(b"\0guest\0guest-secret"), sasl.Refused)


def test_server_refuses_to_be_configured_so_that_nobody_could_connect() -> None:
    with pytest.raises(LocalProtocolError, match="no client could connect"):
        sasl.Server(anonymous=False)


def test_server_knows_the_users_in_a_mapping() -> None:
    credentials = sasl.Credentials()
    credentials.set_password("eve", "x", iterations=4096)
    assert sasl.Server(credentials=credentials).known_users == ("eve",)
    assert sasl.Server(users={"ada": "x", "bob": "y"}).known_users == ("ada", "bob")
    assert sasl.Server(anonymous=True).known_users == ()


def test_server_refuses_users_together_with_verify() -> None:
    with pytest.raises(LocalProtocolError, match="users cannot be combined with verify"):
        sasl.Server(USERS, verify=verify)
    with pytest.raises(LocalProtocolError, match="users cannot be combined with verify or credentials"):
        sasl.Server(USERS, credentials=look_up)


def test_server_refuses_two_mechanisms_of_one_name() -> None:
    with pytest.raises(LocalProtocolError, match=r"offered twice: PLAIN, SCRAM.*, PLAIN"):
        sasl.Server(USERS, mechanisms=[sasl.PlainServer(USERS)])


def test_server_keeps_passwords_out_of_its_repr() -> None:
    server = sasl.Server(USERS, anonymous=True, mechanisms=[CountServer(1)])
    assert repr(server) == "<sasl.Server: CountServer, 1 users, anonymous>"
    assert repr(sasl.Server(verify=verify)) == "<sasl.Server: verify>"
    assert repr(sasl.Server(credentials=look_up)) == "<sasl.Server: credentials>"


def test_server_offers_plus_where_there_is_a_channel_to_bind_to() -> None:
    offered = [mechanism.name for mechanism in sasl.Server(USERS).offer(True, context=TLS)]
    assert offered == [*BOUND, *STRONG, "PLAIN"]


@pytest.mark.parametrize(
    ("users", "scram", "offered"),
    [
        ({"ada": {"SCRAM-SHA-256": KEYS}}, None, ["SCRAM-SHA-256"]),
        (
            {"ada": {"SCRAM-SHA-256": KEYS}, "bob": {"SCRAM-SHA-512": KEYS, "SCRAM-SHA-256": KEYS}},
            None,
            ["SCRAM-SHA-256"],
        ),
        ({"ada": {"SCRAM-SHA-512": KEYS, "SCRAM-SHA-256": KEYS}}, ["SCRAM-SHA-256"], ["SCRAM-SHA-256"]),
        ({"ada": {"SCRAM-SHA-1": KEYS}}, ["SCRAM-SHA-1"], ["SCRAM-SHA-1"]),
        ({"ada": {"SCRAM-SHA-1": KEYS}}, None, None),
        ({"ada": {"SCRAM-SHA-256": KEYS}, "bob": {"SCRAM-SHA-512": KEYS}}, None, None),
        ({"ada": {"SCRAM-SHA-256": KEYS}}, ["SCRAM-SHA-512", "SCRAM-SHA-256"], None),
        ({"ada": {"SCRAM-SHA-256": KEYS}}, [], None),
    ],
)
def test_server_offers_the_scram_that_all_users_have_keys_for(
    users: dict[str, dict[str, sasl.KeysLike]], scram: list[str] | None, offered: list[str] | None
) -> None:
    if offered is None:
        with pytest.raises(LocalProtocolError, match="lack keys for a SCRAM mechanism"):
            sasl.Server(credentials=users, scram=scram)
    else:
        assert names(sasl.Server(credentials=users, scram=scram), secure=False) == offered


def test_server_refuses_scram_that_it_does_not_know() -> None:
    with pytest.raises(LocalProtocolError, match="no known SCRAM mechanism"):
        sasl.Server(USERS, scram=["SCRAM-MD5"])
    with pytest.raises(LocalProtocolError, match="a secret of 3 octets"):
        sasl.Server(USERS, secret=b"abc")


def first_of(server: sasl.Server) -> bytes:
    (exchange, *_) = [mechanism.begin(sasl.ServerContext(entropy=bytes)) for mechanism in server.offer(False)]
    step = exchange.start(b"n,,n=nobody,r=abc")
    assert isinstance(step, sasl.Challenge)
    return step.data


def test_server_makes_salts_up_from_the_secret_of_its_credentials() -> None:
    one, same, other = (
        sasl.Credentials(secret=bytes(32)),
        sasl.Credentials(secret=bytes(32)),
        sasl.Credentials(),
    )
    assert first_of(sasl.Server(credentials=one)) == first_of(sasl.Server(credentials=same))
    assert first_of(sasl.Server(credentials=one)) != first_of(sasl.Server(credentials=other))
    assert first_of(sasl.Server(credentials=other, secret=bytes(32))) == first_of(
        sasl.Server(credentials=one)
    )
    assert first_of(sasl.Server(credentials={})) != first_of(sasl.Server(credentials={}))


@pytest.mark.parametrize(("name", "password", "verified"), [
    ("guest", "guest-secret", True), ("guest", "other", False), ("nobody", "guest-secret", False),
])  # fmt: skip
def test_server_lets_in_by_scram_who_is_among_its_users(name: str, password: str, verified: bool) -> None:
    server = sasl.SaslServer(sasl.Server(USERS, scram=["SCRAM-SHA-256"], secret=bytes(16)).offer(False))
    client = sasl.SaslClient([sasl.Scram(name, password)])
    if verified:
        converse(client, server)
    else:
        with pytest.raises(sasl.AuthenticationError):
            converse(client, server)
    assert server.done is verified


def test_server_asks_what_another_does_once_it_is_replaced_by_it() -> None:
    server = sasl.Server()
    assert not server.requires_sasl
    other = sasl.Server({"guest": "guest-secret"}, scram=["SCRAM-SHA-1"])
    server.replace_by(other)
    assert server.requires_sasl
    names = [mechanism.name for mechanism in server.offer(True)]
    assert names == [mechanism.name for mechanism in other.offer(True)] == ["SCRAM-SHA-1", "PLAIN"]
    assert repr(server) == repr(other)


@pytest.mark.parametrize(
    ("other", "secure", "names"),
    [
        (sasl.Server(anonymous=True), True, ["ANONYMOUS"]),
        (sasl.Server(verify=sasl.Credentials().verify), True, ["PLAIN"]),
        (sasl.Server(credentials=sasl.Credentials()), True, ["SCRAM-SHA-512", "SCRAM-SHA-256"]),
    ],
)
def test_server_offers_what_another_does_once_it_is_replaced_by_it(
    other: sasl.Server, secure: bool, names: list[str]
) -> None:
    server = sasl.Server()
    server.replace_by(other)
    assert [mechanism.name for mechanism in server.offer(secure)] == names
    assert repr(server) == repr(other)


# The client's half of the same rule

PLAIN, ANONYMOUS = sasl.Plain("guest", "guest-secret"), sasl.Anonymous()


@pytest.mark.parametrize(("secure", "allowed"), [(True, False), (False, True), (True, True)])
def test_check_allowed_gives_all_where_nobody_reads_along_or_the_user_said_so(
    secure: bool, allowed: bool
) -> None:
    chosen = sasl.check_allowed([PLAIN, ANONYMOUS], secure=secure, allow_plaintext_password=allowed)
    assert chosen == (PLAIN, ANONYMOUS)


def test_check_allowed_leaves_out_what_needs_secrecy() -> None:
    assert sasl.check_allowed([PLAIN, ANONYMOUS], secure=False) == (ANONYMOUS,)


def test_check_allowed_raises_when_nothing_is_left() -> None:
    with pytest.raises(
        sasl.PlaintextPasswordError, match="PLAIN would send the password in the clear"
    ) as caught:
        sasl.check_allowed([PLAIN], secure=False)
    assert "secret" not in str(caught.value)


def test_check_allowed_makes_nothing_of_nothing() -> None:
    assert sasl.check_allowed([], secure=False) == ()
