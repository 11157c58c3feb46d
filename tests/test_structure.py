"""Parts see values that they are given, and not the parts above them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.path import measure

from .structure import (
    CHAIN,
    PACKAGE,
    chains,
    circles,
    functions,
    imports,
    lines_of_code,
    main,
    sources,
)

if TYPE_CHECKING:
    from pathlib import Path

ENGINE = sources("engine")
LARGEST_CIRCLE = 4
CALLS, FILES = 20, 10
QUEUE_CALLS, QUEUE_FILES = 22, 9


def test_part_of_the_engine_reaches_through_no_session_for_the_connection() -> None:
    assert chains(ENGINE) == []


@pytest.mark.parametrize(
    "line", ["self.session.connection.touch(x)", "session.connection.limits", "link.session.context.strict"]
)
def test_chain_is_what_goes_through_a_session_to_the_connection(line: str) -> None:
    assert CHAIN.search(line)
    assert not CHAIN.search("self.context.touch(x)")


def test_package_has_no_circle_when_it_runs_and_small_ones_for_types() -> None:
    files = sources()
    assert circles(imports(files, typing=False)) == []
    assert [circle for circle in circles(imports(files, typing=True)) if len(circle) > LARGEST_CIRCLE] == []


def test_circle_has_the_files_that_import_each_other_and_no_others() -> None:
    one, two, three, other = (PACKAGE / f"{name}.py" for name in ("one", "two", "three", "other"))
    graph: dict[Path, set[Path]] = {one: {two, other}, two: {three}, three: {one}, other: set()}
    assert circles(graph) == [["one.py", "three.py", "two.py"]]


async def test_message_goes_through_a_queue_in_few_calls() -> None:
    calls = (await measure()).message
    assert len(calls) <= QUEUE_CALLS, calls
    assert len({call.file for call in calls}) <= QUEUE_FILES, calls


async def test_chunk_with_a_message_reaches_its_receiver_in_few_calls() -> None:
    calls = (await measure()).chunk
    assert len(calls) <= CALLS, calls
    assert len({call.file for call in calls}) <= FILES, calls


def test_lines_of_code_are_neither_blank_nor_comments_nor_docstrings(tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text(
        '"""What.\n\nIt is.\n"""\n\n# why\nx = """a\nb"""\n\n\ndef f():\n    """Do."""\n    return x\n'
    )
    assert lines_of_code(source) == 4


def test_figures_name_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    printed = capsys.readouterr().out
    assert {line.split()[0] for line in printed.splitlines() if line} >= {"all", "engine", "peer", "chunk:"}
    assert functions(ENGINE)[0].lines <= 60
