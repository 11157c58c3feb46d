"""The grammar of SCRAM (RFC 5802, section 7), applied strictly."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.sasl import scram_messages as messages
from trio_amqp10.sasl.scram_messages import MalformedError


def test_parse_client_first_reads_every_part() -> None:
    first = messages.parse_client_first(b"p=tls-exporter,a=o=2Cther,n=a=3Db=2C,r=abc,x=more")
    assert (first.header, first.flag, first.binding) == ("p=tls-exporter,a=o=2Cther,", "p", "tls-exporter")
    assert (first.authzid, first.username, first.nonce) == ("o,ther", "a=b,", "abc")
    assert first.bare == "n=a=3Db=2C,r=abc,x=more"
    plain = messages.parse_client_first(b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL")
    assert (plain.header, plain.flag, plain.binding, plain.authzid) == ("n,,", "n", None, "")
    assert messages.parse_client_first("y,,n=zo\u00eb,r=1".encode()).username == "zo\u00eb"


@pytest.mark.parametrize(
    "message",
    [
        "",
        "n",
        "n,",
        "n,,",
        "n=user,r=abc",
        "x,,n=user,r=abc",
        "p,,n=user,r=abc",
        "p=,,n=user,r=abc",
        "p=tls_x,,n=user,r=abc",
        "n\n,,n=user,r=abc",
        "N,,n=user,r=abc",
        "n,user,n=user,r=abc",
        "n,a=,n=user,r=abc",
        "n,,m=1,n=user,r=abc",
        "n,,n=user,m=1,r=abc",
        "n,,n=user,r=abc,m=1",
        "n,,r=abc,n=user",
        "n,,n=user",
        "n,,n=,r=abc",
        "n,,n=us=er,r=abc",
        "n,,n=us=2cer,r=abc",
        "n,,n=user,r=",
        "n,,n=user,r=a c",
        "n,,n=user,r=\u00e4",
        "n,,n=us\0er,r=abc",
        "n,,n=user,r=abc,",
        "n,,n=user,r=abc,x",
        "n,,n=user,r=abc,x=",
        "n,,n=user,r=abc,1=x",
        "n,,n=user,r=abc,xy=z",
        "n,,n=user,r=abc,r=abc",
        "n,,n=user,r=abc\n",
    ],
)
def test_row_14_parse_client_first_refuses(message: str) -> None:
    with pytest.raises(MalformedError):
        messages.parse_client_first(message.encode())


def test_parse_server_first_reads_every_part() -> None:
    first = messages.parse_server_first(b"r=abc,s=QSXCR+Q6sek8bf92,i=4096,x=more")
    assert (first.nonce, len(first.salt), first.iterations) == ("abc", 12, 4096)
    assert first.text == "r=abc,s=QSXCR+Q6sek8bf92,i=4096,x=more"


@pytest.mark.parametrize(
    "message",
    [
        "",
        "e=other-error",
        "m=1,r=abc,s=QQ==,i=4096",
        "s=QQ==,r=abc,i=4096",
        "r=abc,s=QQ==",
        "r=abc,s=,i=4096",
        "r=abc,s=Q,i=4096",
        "r=abc,s=QQ,i=4096",
        "r=abc,s=QR==,i=4096",  # decodes to the same as QQ==
        "r=abc,s=Q-==,i=4096",
        "r=abc,s=QQ==\n,i=4096",
        "r=abc,s=\u00e4,i=4096",
        "r=abc,s=QQ==,i=",
        "r=abc,s=QQ==,i=0",
        "r=abc,s=QQ==,i=04096",
        "r=abc,s=QQ==,i=-1",
        "r=abc,s=QQ==,i=+4096",
        "r=abc,s=QQ==,i=4_096",
        "r=abc,s=QQ==,i=4096\n",
        "r=abc,s=QQ==,i=\u0664\u0660\u0669\u0666",
        "r=abc,s=QQ==,i=" + "9" * 5000,
    ],
)
def test_parse_server_first_refuses(message: str) -> None:
    with pytest.raises(MalformedError):
        messages.parse_server_first(message.encode())


def test_parse_client_final_reads_every_part() -> None:
    final = messages.parse_client_final(b"c=biws,r=abc,x=more,p=cHJvb2Y=")
    assert (final.binding, final.nonce, final.proof) == ("biws", "abc", b"proof")
    assert final.without_proof == "c=biws,r=abc,x=more"


@pytest.mark.parametrize(
    "message",
    ["", "p=QQ==", "c=biws,p=QQ==", "c=biws,r=abc", "r=abc,c=biws,p=QQ==", "c=biws,r=abc,p=QQ==,x=more", "c=biws,r=abc,p=?"],
)  # fmt: skip
def test_row_14_parse_client_final_refuses(message: str) -> None:
    with pytest.raises(MalformedError):
        messages.parse_client_final(message.encode())


def test_parse_server_final_reads_a_signature_or_an_error() -> None:
    assert messages.parse_server_final(b"v=cHJvb2Y=,x=more") == b"proof"
    assert messages.parse_server_final(b"e=invalid-proof") is None
    for message in (b"", b"v=", b"v=?", b"e=", b"x=QQ==", b"\xff", b"v=QQ==,v=QQ=="):
        with pytest.raises(MalformedError):
            messages.parse_server_final(message)


@given(name=st.text(min_size=1, max_size=20).filter(lambda name: "\0" not in name))
def test_parse_name_undoes_escape_name(name: str) -> None:
    escaped = messages.escape_name(name)
    assert "," not in escaped
    assert messages.parse_name(escaped) == name


def test_parse_name_unescapes_once() -> None:
    assert messages.parse_name("=3D2C") == "=2C"
    assert messages.escape_name("=2C") == "=3D2C"


@given(octets=st.binary(min_size=1, max_size=40))
def test_parse_base64_undoes_base64(octets: bytes) -> None:
    assert messages.parse_base64(messages.base64(octets)) == octets


@given(
    message=st.binary(max_size=40)
    | st.text(alphabet="nyparcsive=,2CD3 \0x1", max_size=40).map(str.encode)
)  # fmt: skip
def test_parsers_raise_nothing_else(message: bytes) -> None:
    for parse in (
        messages.parse_client_first,
        messages.parse_server_first,
        messages.parse_client_final,
        messages.parse_server_final,
    ):
        with suppress(MalformedError):
            parse(message)


@pytest.mark.parametrize(
    ("parse", "message", "reason"),
    [
        (messages.parse_client_first, b"n", "an invalid GS2 header"),
        (
            messages.parse_client_first,
            b"n,user,n=user,r=abc",
            "an authorization identity without its a=",
        ),
        (messages.parse_client_first, b"n,,m=1,n=user,r=abc", "an extension that must be understood"),
        (
            messages.parse_client_first,
            b"n,,r=abc,n=user",
            "attributes other than n, r, or in another order",
        ),
        (messages.parse_client_first, b"n,,n=user,r=abc,xy=z", "an invalid attribute"),
        (messages.parse_client_first, b"n,,n=user,r=a c", "a nonce with characters that are not printable"),
        (
            messages.parse_client_first,
            b"n,,n=us=er,r=abc",
            "a name with a comma or an equals sign that is not escaped, or empty",
        ),
        (messages.parse_client_first, b"\xff", "octets that are not UTF-8"),
        (messages.parse_server_first, b"r=abc,s=QQ==,i=0", "an invalid iteration count"),
        (messages.parse_server_first, b"r=abc,s=QQ==,i=1000000000", "an invalid iteration count"),
        (messages.parse_server_first, b"r=abc,s=Q-==,i=4096", "invalid Base64"),
        (messages.parse_server_first, b"r=abc,s=QR==,i=4096", "Base64 that is not canonical"),
        (messages.parse_client_final, b"p=QQ==", "a final message without a proof"),
    ],
)
def test_parsers_say_what_is_wrong_and_quote_none_of_it(parse: Any, message: bytes, reason: str) -> None:
    with pytest.raises(MalformedError) as caught:
        parse(message)
    assert str(caught.value) == reason


def test_parse_server_first_reads_a_count_of_nine_digits() -> None:
    assert messages.parse_server_first(b"r=abc,s=QQ==,i=999999999").iterations == 999_999_999
