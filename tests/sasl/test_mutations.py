"""Every message of every mechanism cut at each octet, changed, or replaced.

The naive codec changes the messages on their way. Whatever they become, the client raises only
declared errors, the server refuses, and never does only one of them accept.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.performatives import frame, parse_frames
from trio_amqp10.core.errors import RemoteProtocolError, SecurityError

from .cases import CASES, Case, cases, derive_once, sides
from .frames import converse, settle

__all__ = ["derive_once"]  # a fixture


def bodies_of(case: Case) -> list[tuple[str, bytes]]:
    """Return the mechanism's messages of an exchange in order, with their senders."""
    client, server = sides(case)
    found: list[tuple[str, bytes]] = []
    for each in parse_frames(converse(client, server)):
        for name in ("initial_response", "challenge", "response", "additional_data"):
            data = each.fields.get(name)
            if data is not None:
                found.append(
                    ("server" if each.name in ("sasl-challenge", "sasl-outcome") else "client", data)
                )
    return found


def replay(case: Case, changed: int, data: bytes) -> tuple[bool, bool]:
    """Repeat the exchange with message ``changed`` replaced; return who accepted."""
    client, server = sides(case)
    number = -1
    source, target = server, client
    with_nothing_said = 0
    while with_nothing_said < 2:
        raw: Any = source.data_to_send()
        with_nothing_said = 0 if raw else with_nothing_said + 1
        out = b""
        for each in parse_frames(raw):
            fields = dict(each.fields)
            for name in ("initial_response", "challenge", "response", "additional_data"):
                if fields.get(name) is not None:
                    number += 1
                    if number == changed:
                        fields[name] = data
            out += frame(each.name, **fields)
        try:
            target.receive_data(out)
            while target.question is not None:
                target.answer(settle(target.question))
        except (RemoteProtocolError, SecurityError):
            assert target is client  # a server refuses, and raises nothing for what a mechanism was sent
            assert target.failed
        source, target = target, source
    assert server.error is None
    return client.done, server.done


def check_changed(case: Case, changed: int, sender: str, data: bytes) -> None:
    client_done, server_done = replay(case, changed, data)
    if case.client.name.startswith("SCRAM"):
        assert not client_done  # both proofs cover all messages
        assert server_done is False or sender == "server"
    else:
        assert client_done is server_done


@cases
def test_exchange_survives_every_cut_of_every_message(case: Case) -> None:
    for number, (sender, data) in enumerate(bodies_of(case)):
        for size in range(len(data)):
            check_changed(case, number, sender, data[:size])


names = [name for name in CASES if name != "unknown user"]


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_exchange_survives_any_octet_changed_in_any_message(data: st.DataObject) -> None:
    case = CASES[data.draw(st.sampled_from(names))]
    bodies = bodies_of(case)
    number = data.draw(st.integers(0, len(bodies) - 1))
    sender, body = bodies[number]
    position = data.draw(st.integers(0, max(len(body) - 1, 0)))
    octet = data.draw(st.integers(0, 255))
    changed = body[:position] + bytes([octet]) + body[position + 1 :]
    if changed != body:
        check_changed(case, number, sender, changed)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_exchange_survives_anything_in_the_place_of_any_message(data: st.DataObject) -> None:
    case = CASES[data.draw(st.sampled_from(names))]
    bodies = bodies_of(case)
    number = data.draw(st.integers(0, len(bodies) - 1))
    pieces = [
        b"n=",
        b"r=",
        b"s=",
        b"i=",
        b"c=",
        b"p=",
        b"v=",
        b",",
        b"=",
        b"\0",
        b"\1",
        b"biws",
        b"ada",
        b"4096",
    ]
    garbage = st.binary(max_size=30) | st.lists(st.sampled_from(pieces)).map(b"".join)
    sender, body = bodies[number]
    changed = data.draw(garbage)
    if changed != body:
        check_changed(case, number, sender, changed)
