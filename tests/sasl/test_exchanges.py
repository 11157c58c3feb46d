"""Every mechanism from the first frame to the outcome.

The naive codec reads the octets on the wire, and writes those of simulated peers.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.performatives import frame, parse_frames
from tests.scaled import scaled
from trio_amqp10 import sasl
from trio_amqp10.amqp10.spec.security import SaslInit, SaslResponse
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError, SecurityError
from trio_amqp10.sasl.tally import FAILURE_PENALTY

from . import frames
from .cases import BINDINGS, CASES, CONTEXT, OFFER, SCRAM, SECRETS, SERVER, Case, cases, derive_once, sides
from .frames import carry, converse, settle

__all__ = ["derive_once"]  # a fixture


@cases
def test_exchange_ends_with_an_identity(case: Case) -> None:
    client, server = sides(case)
    carried = converse(client, server)
    assert client.done
    assert server.done
    assert server.identity == sasl.Identity("ada", case.client.name)
    assert client.mechanism == server.mechanism == case.client.name
    frames = parse_frames(carried)
    assert frames[1]["mechanism"] == case.client.name
    assert frames[-1]["code"] == 0
    assert case.client.name == "PLAIN" or not any(secret in carried for secret in SECRETS)


@cases
def test_row_16_exchange_ends_with_a_penalty_where_credentials_are_wrong(case: Case) -> None:
    client, server = sides(case, wrong=True)
    with pytest.raises(sasl.AuthenticationError) as caught:
        converse(client, server)
    assert caught.value.code == 1
    assert client.failed
    assert server.failed
    assert (server.identity, server.penalty, server.error) == (None, FAILURE_PENALTY, None)
    assert "bad" not in str(caught.value)
    server.receive_data(frame("sasl-init", mechanism=case.client.name, initial_response=b""))
    assert server.data_to_send() == b""  # one attempt a connection


def test_exchange_says_the_same_to_a_wrong_password_as_to_an_unknown_user() -> None:
    def heard(mechanism: sasl.ClientMechanism) -> list[str]:
        client, server = sides(Case(mechanism, mechanism, OFFER))
        said: list[Any] = []
        with pytest.raises(sasl.AuthenticationError):
            while True:
                said += parse_frames(carry(client, server))
                data = server.data_to_send()
                said += parse_frames(data)
                client.receive_data(data)
        return [f"{each.name} {sorted(each.fields)} {len(str(each.fields))}" for each in said]

    assert heard(sasl.Scram("ada", "other")) == heard(sasl.Scram("bob", "other"))


def test_exchange_of_scram_is_two_rounds_with_the_proof_in_the_outcome() -> None:
    client, server = sides(CASES["SCRAM-SHA-256-PLUS"])
    frames = parse_frames(converse(client, server))
    assert [each.name for each in frames] == [
        "sasl-mechanisms", "sasl-init", "sasl-challenge", "sasl-response", "sasl-outcome",
    ]  # fmt: skip
    assert frames[1]["initial_response"].startswith(b"p=tls-server-end-point,,n=ada,r=")
    assert frames[4]["additional_data"].startswith(b"v=")


def test_exchange_of_a_refused_token_tells_the_client_why() -> None:
    client, server = sides(CASES["OAUTHBEARER"], wrong=True)
    with pytest.raises(sasl.AuthenticationError, match="the server refused the token: expired"):
        converse(client, server)


# What a server could do to a client


def answer_of(client: sasl.SaslClient) -> Any:
    return parse_frames(client.data_to_send())[-1]


def dialogue(mechanism: str = "SCRAM-SHA-256") -> tuple[sasl.SaslClient, Any]:
    """Return a client after its init, and the exchange of a real server."""
    client, _ = sides(CASES[mechanism])
    client.receive_data(frame("sasl-mechanisms", sasl_server_mechanisms=[mechanism]))
    exchange = next(each for each in OFFER if each.name == mechanism).begin(CONTEXT)
    step: Any = exchange.start(answer_of(client)["initial_response"])
    client.receive_data(frame("sasl-challenge", challenge=step.data))
    step = exchange.response(answer_of(client)["response"])
    return client, step.data


def test_client_takes_the_proof_of_a_server_as_one_more_challenge() -> None:
    client, proof = dialogue()
    client.receive_data(frame("sasl-challenge", challenge=proof))
    assert answer_of(client)["response"] == b""
    client.receive_data(frame("sasl-outcome", code=0))
    assert client.done


def test_client_takes_the_proof_of_a_server_with_the_outcome() -> None:
    client, proof = dialogue()
    client.receive_data(frame("sasl-outcome", code=0, additional_data=proof))
    assert client.done


@pytest.mark.parametrize("data", [None, b"", b"v=QQ==", b"e=other-error"])
def test_client_does_not_believe_an_ok_without_the_proof(data: bytes | None) -> None:
    client, _ = dialogue()
    with pytest.raises(sasl.AuthenticationError) as caught:
        client.receive_data(frame("sasl-outcome", code=0, additional_data=data))
    assert caught.value.code == 0
    assert client.failed


@cases
def test_row_15_client_ends_an_endless_exchange(case: Case) -> None:
    client, _ = sides(case)
    client.receive_data(frame("sasl-mechanisms", sasl_server_mechanisms=[case.client.name]))
    while client.question is not None:
        client.answer(settle(client.question))
    with pytest.raises((RemoteProtocolError, SecurityError)):
        for _ in range(9):
            client.receive_data(frame("sasl-challenge", challenge=b""))
    assert client.failed


@cases
def test_row_15_server_ends_an_endless_exchange(case: Case) -> None:
    server = sasl.SaslServer(case.server, context=case.context)
    server.receive_data(frame("sasl-init", mechanism=case.client.name))
    for _ in range(9):
        server.receive_data(frame("sasl-response", response=b"\1"))
    assert server.failed
    assert parse_frames(server.data_to_send())[-1].fields == {"code": 1}


def test_client_skips_a_mechanism_that_this_connection_has_nothing_for() -> None:
    mechanisms = sasl.default_mechanisms("ada", "enigma", secure=True)
    for bindings, chosen in (({}, "SCRAM-SHA-512"), (BINDINGS, "SCRAM-SHA-512-PLUS")):
        client = sasl.SaslClient(mechanisms, channel_bindings=bindings)
        client.receive_data(frame("sasl-mechanisms", sasl_server_mechanisms=["PLAIN", *SCRAM]))
        assert client.mechanism == chosen
    client = sasl.SaslClient(mechanisms[:2])
    with pytest.raises(sasl.NoAcceptableMechanismError, match=r"acceptable here: $"):
        client.receive_data(frame("sasl-mechanisms", sasl_server_mechanisms=SCRAM))


def test_exchange_fails_when_plus_is_struck_from_the_list_on_the_way() -> None:
    mechanisms = sasl.default_mechanisms("ada", "enigma", secure=True)
    client = sasl.SaslClient(mechanisms, channel_bindings=BINDINGS)
    server = sasl.SaslServer(OFFER, context=CONTEXT)
    server.data_to_send()
    stripped = [name for name in SCRAM if not name.endswith("-PLUS")]
    client.receive_data(frame("sasl-mechanisms", sasl_server_mechanisms=stripped))
    assert client.mechanism == "SCRAM-SHA-512"
    with pytest.raises(sasl.AuthenticationError):
        converse(client, server)


def test_exchange_fails_when_the_channels_are_two() -> None:
    for name in SCRAM[1::2]:
        case = CASES[name]
        elsewhere = Case(
            case.client, case.wrong, OFFER, bindings={"tls-server-end-point": b"the one between"}
        )
        client, server = sides(elsewhere)
        with pytest.raises(sasl.AuthenticationError):
            converse(client, server)


# Sizes


def test_row_8_exchanges_fit_the_frame_of_the_standard() -> None:
    for case in CASES.values():
        client, server = sides(case, size=512)
        converse(client, server)
        assert client.done
        assert server.done


def test_row_8_a_long_token_fits_the_tolerant_frame_and_fails_locally_in_the_strict_one() -> None:
    async def fetch_long() -> str:
        return "secret" * 300

    async def verify_long(username: str, token: str) -> str | None:
        return username if token == "secret" * 300 else None

    mechanism = sasl.OAuthBearer(fetch_long, "ada")
    case = Case(mechanism, mechanism, [sasl.OAuthBearerServer(verify_long)])
    client, server = sides(case)
    converse(client, server)
    assert server.done
    client, server = sides(case, size=512)
    with pytest.raises(LocalProtocolError, match="would pass the limit of 512") as caught:
        converse(client, server)
    assert "secret" not in str(caught.value)
    assert client.data_to_send() == b""


def test_row_8_a_long_user_name_fails_locally_in_the_strict_frame() -> None:
    mechanism = sasl.Scram("=" * 255, "enigma", "SCRAM-SHA-512")
    client, server = sides(Case(mechanism, mechanism, OFFER), size=512)
    with pytest.raises(LocalProtocolError, match="would pass the limit of 512"):
        converse(client, server)


@settings(max_examples=scaled(60), deadline=None)
@given(
    name=st.sampled_from(SCRAM),
    username=st.text(min_size=1, max_size=12),
    password=st.text(min_size=1, max_size=12),
    right=st.booleans(),
)
def test_exchange_of_scram_agrees_on_any_name_and_password(
    name: str, username: str, password: str, right: bool
) -> None:
    try:
        mechanism = sasl.Scram(username, password, name)
        other = sasl.Scram(username, "x" + password, name)
        keys = sasl.derive_keys(password, name.removesuffix("-PLUS"), iterations=4096)
    except LocalProtocolError:
        return
    users = {mechanism.username: {name.removesuffix("-PLUS"): keys}}
    server = sasl.Server(credentials=users, scram=[name.removesuffix("-PLUS")])
    case = Case(mechanism, other, server.offer(False, context=CONTEXT))
    client, listener = sides(case, wrong=not right)
    if right:
        converse(client, listener)
        assert listener.identity == sasl.Identity(mechanism.username, name)
        assert client.done
    else:
        with pytest.raises(sasl.AuthenticationError):
            converse(client, listener)
        assert listener.identity is None


def test_client_leaves_a_long_derivation_to_who_has_threads() -> None:
    keys = sasl.derive_keys("enigma", iterations=60_000)
    server = sasl.Server(credentials={"ada": {"SCRAM-SHA-256": keys}})
    client = sasl.SaslClient([sasl.Scram("ada", "enigma")])
    listener = sasl.SaslServer(server.offer(False))
    client.receive_data(listener.data_to_send())
    listener.receive_data(client.data_to_send())
    client.receive_data(listener.data_to_send())
    assert client.question is not None
    assert client.question.work is not None
    assert client.data_to_send() == b""
    client.answer(client.question.work())
    converse(client, listener)
    assert client.done


def test_exchange_tells_no_secret_to_who_prints_what_it_meets() -> None:
    for case in CASES.values():
        client, server = sides(case)
        client.receive_data(server.data_to_send())
        shown = f"{client!r} {server!r} {client.question!r} {case.client!r} {case.server!r} {SERVER!r} {case.context!r}"
        assert not any(word in shown for word in ("enigma", "good", "hashed", "exported"))


class Counter:
    """A tally with fixed permission, which stores the reported failures."""

    def __init__(self, *, host: bool = True, user: bool = True) -> None:
        self.host = host
        self.user = user
        self.names: list[str | None] = []

    def permits(self, username: str | None) -> bool:
        return self.host and (username is None or self.user)

    def failed(self, username: str | None) -> None:
        self.names.append(username)


@cases
@pytest.mark.parametrize("wrong", [True, False])
def test_row_16_tally_is_told_of_failures(case: Case, wrong: bool) -> None:
    client, _ = sides(case, wrong=wrong)
    tally = Counter()
    server = sasl.SaslServer(case.server, context=case.context, tally=tally)
    if wrong:
        with pytest.raises(SecurityError):
            converse(client, server)
        wrong_user = "bob" if case in (CASES["unknown user"], CASES["EXTERNAL"]) else "ada"
        assert tally.names == [wrong_user]
        assert (server.failed, server.identity) == (True, None)
    else:
        converse(client, server)
        assert not tally.names
        assert server.done


@cases
def test_row_16_tally_is_told_of_failures_that_name_nobody(case: Case) -> None:
    tally = Counter()
    server = sasl.SaslServer(case.server, context=case.context, tally=tally)
    server.receive_data(frames.frame(SaslInit(mechanism=case.client.name, initial_response=b"\xff")))
    if server.state is sasl.SaslState.EXPECT_RESPONSE:  # the client gets the error in a challenge first
        server.receive_data(frames.frame(SaslResponse(response=b"\1")))
    assert server.failed
    assert tally.names == [None]


@cases
@pytest.mark.parametrize("wrong", [True, False])
@pytest.mark.parametrize("permitted", [{"host": False}, {"user": False}])
def test_row_16_attempt_that_is_not_permitted_ends_in_sys_temp_whatever_its_credentials(
    case: Case, wrong: bool, permitted: dict[str, bool]
) -> None:
    """The outcome is "try later" (5.3.3.6), and reveals nothing about a guess."""
    if permitted == {"user": False} and case.client.name == "EXTERNAL":
        return  # the name is in the certificate
    client, _ = sides(case, wrong=wrong)
    tally = Counter(**permitted)
    server = sasl.SaslServer(case.server, context=case.context, tally=tally)
    with pytest.raises(sasl.AuthenticationError) as caught:
        converse(client, server)
    assert caught.value.temporary
    assert (server.failed, server.identity, server.penalty, server.error) == (True, None, 1.0, None)
    assert not tally.names  # nothing is counted that did not count


@pytest.mark.parametrize(
    ("offered", "acceptable", "advice"),
    [
        (["PLAIN", "SCRAM-SHA-256"], ["ANONYMOUS"], "requires a user: amqp://USER:PASSWORD@HOST"),
        (["ANONYMOUS"], ["SCRAM-SHA-256", "PLAIN"], "knows no users: leave user and password out of the URL"),
        (["EXTERNAL"], ["PLAIN"], "acceptable here: PLAIN$"),
    ],
)
def test_mechanisms_that_do_not_meet_come_with_advice_where_the_url_is_the_reason(
    offered: list[str], acceptable: list[str], advice: str
) -> None:
    assert re.search(advice, str(sasl.NoAcceptableMechanismError(offered, acceptable)))
