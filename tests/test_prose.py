"""The check of prose finds each kind of fault, and nothing in plain words."""

from __future__ import annotations

import pytest

from .prose import faults_in, faults_in_page


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ('"""What comes of it."""', "begins without its subject"),
        (f'"""{"x" * 81}"""', "the first line has 81 characters"),
        ('"""Return the size.\n\nThe peer says so."""', "a program does not speak: 'says'"),
        ("x = 1  # nobody reads it", "name the person or the program: 'nobody'"),
        ("x = 1\n'''The size, made anew.'''", "use a word of today: 'anew'"),
        ('def f():\n    """Open a link that is yet to be attached."""', "must, will or should"),
    ],
)
def test_fault_is_found_once(source: str, rule: str) -> None:
    [(line, found)] = faults_in(source)
    assert found.startswith(rule)
    assert line <= 3


@pytest.mark.parametrize(
    "source",
    [
        f'"""{"x" * 80}\n\nWhat follows may be longer."""',
        'x = "nobody says anew"',
        "x = 1  # type: ignore[said]",
        '"""Whether the peer has sent a close."""',
    ],
)
def test_plain_words_are_no_fault(source: str) -> None:
    assert list(faults_in(source)) == []


def test_fault_in_a_page_is_found_in_text_and_tables() -> None:
    page = "The peer says so.\n\n.. list-table::\n\n   * - settled\n     - nobody waits\n"
    assert list(faults_in_page(page)) == [
        (1, "a program does not speak: 'says'"),
        (6, "name the person or the program: 'nobody'"),
    ]


@pytest.mark.parametrize(
    "page",
    [
        ".. code-block:: python\n\n   nobody = told\n\nThe peer answers.",
        "The answer::\n\n   nobody\n\nends.",
        ".. A comment of nobody.\n",
        'The test ``test_peer_says_so`` and the field "told".',
    ],
    ids=["code", "literal", "comment", "quoted"],
)
def test_code_and_quotations_in_a_page_are_no_fault(page: str) -> None:
    assert list(faults_in_page(page)) == []
