"""Forms of content by number: registered, imported when they are needed, or not known."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.broker.nodes import form_registry as forms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NUMBER = -4_321
OWNER = ("us", None)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    forms.forget(NUMBER)
    forms._missed.discard(NUMBER)


def read(octets: bytes) -> Any:
    return ("own", octets)


def test_content_is_read_by_the_form_of_its_number() -> None:
    forms.register(NUMBER, forms.Form(read))
    assert forms.content_of(NUMBER, b"x") == ("own", b"x")


def test_form_is_imported_when_its_octets_are_first_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "latecomer.py").write_text(
        "from trio_amqp10.broker.nodes.form_registry import Form, register\n"
        f"register({NUMBER}, Form(lambda octets: ('late', octets)))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    forms.register_later(NUMBER, "latecomer")
    assert "latecomer" not in sys.modules
    assert forms.content_of(NUMBER, b"x") == ("late", b"x")
    del sys.modules["latecomer"]


@pytest.mark.logs_errors
def test_content_of_a_form_that_nobody_reads_is_held_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert forms.content_of(NUMBER, b"octets").octets == b"octets"
    assert caplog.text.count(f"of the form {NUMBER}") == 1


def test_selection_is_read_by_the_form_that_has_some() -> None:
    def select(octets: bytes, owner: tuple[str, str | None]) -> Any:
        return (octets, owner), None

    forms.register(NUMBER, forms.Form(read, select))
    assert forms.selection_of(NUMBER, b"x", OWNER) == ((b"x", OWNER), None)


@pytest.mark.parametrize("known", [False, True])
def test_selection_of_a_form_without_any_is_a_value_error(known: bool) -> None:
    if known:
        forms.register(NUMBER, forms.Form(read))
    with pytest.raises(ValueError, match=f"of the form {NUMBER}"):
        forms.selection_of(NUMBER, b"x", OWNER)
