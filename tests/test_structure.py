"""Parts see values that they are given, and not the parts above them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.path import measure

from .structure import (
    CHAIN,
    PACKAGE,
    acts,
    chains,
    circles,
    functions,
    imports,
    lines_of_code,
    main,
    mirrored,
    sources,
)

if TYPE_CHECKING:
    from pathlib import Path

ENGINE = sources("amqp10/engine")
LARGEST_CIRCLE = 4
CALLS, FILES = 20, 10
QUEUE_CALLS, QUEUE_FILES = 22, 9
CROSSING_CALLS = 80
MIRRORED = 0.95
"""The least share of modules whose tests are in the file of their name."""


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


async def test_message_of_0_9_1_reaches_a_consumer_of_1_0_in_few_calls_and_is_never_decoded() -> None:
    calls = (await measure()).crossing
    assert len(calls) <= CROSSING_CALLS, calls
    assert not [call for call in calls if call.function == "Message._load"]


def test_lines_of_code_are_neither_blank_nor_comments_nor_docstrings(tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text(
        '"""What.\n\nIt is.\n"""\n\n# why\nx = """a\nb"""\n\n\ndef f():\n    """Do."""\n    return x\n'
    )
    assert lines_of_code(source) == 4


def test_modules_have_their_tests_in_the_file_of_their_name() -> None:
    found = mirrored(sources())
    missing = [str(path.relative_to(PACKAGE)) for path, has in found.items() if not has]
    assert len(missing) <= (1 - MIRRORED) * len(found), (
        f"tests/A/test_b.py is not there for A/b.py: {missing}"
    )


@pytest.mark.parametrize(
    ("source", "does"),
    [
        (
            "class Shape(Protocol):\n    sides: int = 4\n    def area(self) -> int:\n        'Say.'\n        ...\n",
            False,
        ),
        ("class Shape:\n    sides = 4\n    class Side:\n        pass\n", False),
        ("SIDES = tuple(range(4))\n", False),
        ("class Shape:\n    def area(self):\n        'Say.'\n        return 4\n", True),
        ("class Shape:\n    for side in range(4):\n        print(side)\n", True),
        ("async def area():\n    return 4\n", True),
    ],
)
def test_module_of_types_and_constants_does_nothing(source: str, does: bool, tmp_path: Path) -> None:
    path = tmp_path / "shape.py"
    path.write_text(source)
    assert acts(path) == does


def test_only_modules_that_act_are_to_have_a_test_file() -> None:
    found = mirrored(sources())
    names = {str(path.relative_to(PACKAGE)) for path in found}
    assert found[PACKAGE / "amqp10/engine/connection.py"]
    assert "amqp10/spec/transport.py" not in names
    assert not any(name.endswith(("__init__.py", "_generated.py")) for name in names)


def test_figures_name_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    printed = capsys.readouterr().out
    assert {line.split()[0] for line in printed.splitlines() if line} >= {"all", "broker", "amqp10", "chunk:"}
    assert "modules with a test file of their name" in printed
    assert functions(ENGINE)[0].lines <= 59
