"""The protocol headers that announce a layer (2.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.protocol_headers import (
    AMQP_HEADER,
    AMQP_ID,
    HEADER_SIZE,
    SASL_HEADER,
    SASL_ID,
    TLS_HEADER,
    TLS_ID,
    describe_greeting,
    header_id,
    served_as,
)

HEADERS = {AMQP_ID: AMQP_HEADER, TLS_ID: TLS_HEADER, SASL_ID: SASL_HEADER}


@pytest.mark.parametrize(("protocol_id", "header"), HEADERS.items())
def test_header_carries_its_id_and_version_1_0_0(protocol_id: int, header: bytes) -> None:
    assert header == b"AMQP" + bytes([protocol_id, 1, 0, 0])
    assert len(header) == HEADER_SIZE


@pytest.mark.parametrize(("protocol_id", "header"), HEADERS.items())
def test_header_id_waits_for_eight_octets_when_the_first_ones_match(protocol_id: int, header: bytes) -> None:
    for size in range(HEADER_SIZE):
        assert header_id(header[:size]) is None
    assert header_id(header) == protocol_id


@pytest.mark.parametrize("header", HEADERS.values())
@given(rest=st.binary(max_size=20))
def test_header_id_ignores_what_follows_the_header(header: bytes, rest: bytes) -> None:
    assert header_id(header + rest) == header[4]


@pytest.mark.parametrize(
    "data",
    [
        b"G",  # an HTTP request: the first octet decides
        b"\x16\x03\x01",  # a TLS hello
        b"AMQP\x00\x00\x09\x01",  # AMQP 0-9-1
        b"AMQP\x01\x01\x00\x09",  # AMQP 0-9
        b"AMQP\x00\x02",  # a version of the future
        b"AMQP\x00\x01\x01",
        b"AMQP\x00\x01\x00\x01",
        b"AMQP\x04",  # an unknown protocol id
        b"amqp",
    ],
)
def test_row_1_header_id_refuses_at_the_first_octet_that_no_header_has(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match=r"expected an AMQP 1\.0 protocol header") as caught:
        header_id(data)
    assert caught.value.condition == "amqp:connection:framing-error"


@given(data=st.binary(max_size=12) | st.sampled_from(list(HEADERS.values())).map(lambda h: h[:6]))
def test_header_id_decides_as_soon_as_the_octets_do(data: bytes) -> None:
    head = data[:HEADER_SIZE]
    matching = [i for i, header in HEADERS.items() if header.startswith(head)]
    if not matching:
        with pytest.raises(RemoteProtocolError):
            header_id(data)
    elif len(head) == HEADER_SIZE:
        assert header_id(data) == matching[0]
    else:
        assert header_id(data) is None


# The first octets of another protocol --------------------------------------------------------------


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        (b"HTTP/1.1", "HTTP"),
        (b"GET / HT", "HTTP"),
        (b"SSH-2.0-", "SSH"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "TLS"),
        (b"\x16\x03\x03\x00", "TLS"),
        (b"AMQP\x00\x01\x00\x00", "AMQP 1.0: dial it with trio_amqp10.open_connection"),
        (b"AMQP\x03\x01\x00\x00", "AMQP 1.0 that requires SASL"),
        (b"AMQP\x00\x00\x09\x01", "AMQP 0-9-1: dial it with trio_amqp10.amqp091.open_connection"),
        (b"AMQP\x01\x01\x00\x0a", "AMQP 0-10"),
        (b"AMQP\x07\x07\x07\x07", "another version of AMQP"),
    ],
)
def test_protocol_is_named_after_the_octets(octets: bytes, expected: str) -> None:
    assert describe_greeting(octets).startswith(f"{octets!r}, which is {expected}")


@pytest.mark.parametrize("octets", [b"", b"H", b"\x4a\x00\x00\x00", b"220 smtp"])
def test_other_octets_are_shown_as_they_are(octets: bytes) -> None:
    assert describe_greeting(octets) == repr(octets)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b"AMQP\x00\x00\x09\x01", "0-9-1"),
        (b"AMQP\x01\x01\x00\x09", "0-9-1"),
        (b"AMQP\x01\x01\x0a\x03", "10.3"),
        (AMQP_HEADER, None),
        (b"HTTP", None),
    ],
)
def test_header_of_another_protocol_has_the_name_by_which_it_is_served(
    header: bytes, name: str | None
) -> None:
    assert served_as(header) == name
