"""What a listener offers, and what a client may use: by transport."""

from __future__ import annotations

import pytest

from tests.sasl.frames import CountServer
from trio_amqp10 import sasl
from trio_amqp10.errors import LocalProtocolError

USERS = {"guest": "guest-secret"}


class Token(CountServer):
    name = "X-TOKEN"
    needs_secrecy = True


async def verify(_username: str, _password: str) -> bool:
    return True


def names(server: sasl.Server, secure: bool, allowed: bool = False) -> list[str]:
    return [mechanism.name for mechanism in server.offer(secure, allowed)]


@pytest.mark.parametrize(
    ("server", "requires_sasl", "secure", "insecure"),
    [
        (sasl.Server(), False, ["ANONYMOUS"], ["ANONYMOUS"]),
        (sasl.Server(anonymous=True), False, ["ANONYMOUS"], ["ANONYMOUS"]),
        (sasl.Server(USERS), True, ["PLAIN"], []),
        (sasl.Server({}), True, ["PLAIN"], []),  # users, of whom there are none: nobody gets in
        (sasl.Server(verify=verify), True, ["PLAIN"], []),
        (sasl.Server(USERS, anonymous=True), True, ["PLAIN", "ANONYMOUS"], ["ANONYMOUS"]),
        (sasl.Server(USERS, anonymous=False), True, ["PLAIN"], []),
        (sasl.Server(mechanisms=[CountServer(1)]), True, ["X-COUNT"], ["X-COUNT"]),
        (
            sasl.Server(USERS, mechanisms=[CountServer(1), Token(1)]),
            True,
            ["X-COUNT", "X-TOKEN", "PLAIN"],
            ["X-COUNT"],
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
    (plain,) = sasl.Server(**checks).offer(secure, allowed)  # type: ignore[arg-type]
    assert not isinstance(plain.begin().start(b"\0guest\0guest-secret"), sasl.Refused)


def test_server_refuses_to_be_configured_so_that_nobody_could_connect() -> None:
    with pytest.raises(LocalProtocolError, match="nobody could connect"):
        sasl.Server(anonymous=False)


def test_server_refuses_users_together_with_verify() -> None:
    with pytest.raises(LocalProtocolError, match="either users or verify"):
        sasl.Server(USERS, verify=verify)


def test_server_refuses_two_mechanisms_of_one_name() -> None:
    with pytest.raises(LocalProtocolError, match="offered twice: PLAIN, PLAIN"):
        sasl.Server(USERS, mechanisms=[sasl.PlainServer(USERS)])


def test_server_keeps_passwords_out_of_its_repr() -> None:
    server = sasl.Server(USERS, anonymous=True, mechanisms=[CountServer(1)])
    assert repr(server) == "<sasl.Server: CountServer, 1 users, anonymous>"
    assert repr(sasl.Server(verify=verify)) == "<sasl.Server: verify>"


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
