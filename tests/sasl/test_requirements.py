"""Statements of Part 5 that no other test shows by itself."""

from __future__ import annotations

from trio_amqp10 import sasl
from trio_amqp10.amqp10.spec.security import SaslCode, SaslInit, SaslMechanisms, SaslOutcome

from .frames import frame, performatives


def test_server_without_users_offers_anonymous_alone() -> None:
    server = sasl.SaslServer(sasl.Server(anonymous=True).offer(secure=True))
    assert performatives(server.data_to_send()) == [SaslMechanisms(sasl_server_mechanisms=["ANONYMOUS"])]


def test_server_gives_no_additional_data_when_it_refuses() -> None:
    server = sasl.SaslServer(sasl.Server({"guest": "guest-secret"}).offer(secure=True))
    server.data_to_send()
    server.receive_data(frame(SaslInit(mechanism="PLAIN", initial_response=b"\0guest\0wrong")))
    [outcome] = performatives(server.data_to_send())
    assert outcome == SaslOutcome(code=SaslCode.AUTH)
    assert outcome.additional_data is None


def test_server_offers_scram_sha_1_and_plain_when_it_is_told_to() -> None:
    asked = sasl.Server({"guest": "guest-secret"}, scram=["SCRAM-SHA-1"])
    server = sasl.SaslServer(asked.offer(secure=True))
    assert performatives(server.data_to_send()) == [
        SaslMechanisms(sasl_server_mechanisms=["SCRAM-SHA-1", "PLAIN"])
    ]
