"""The page of the manual about Spark is run."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import trio_amqp10 as amqp
from tests.test_docs import ROOT, blocks
from tests.test_readme import IN_SPARK, PAGES, commands, name_of, with_comment

from .peers import lacks

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from .server import Server


@lacks("copy")
def test_page_does_what_it_says(
    spark: Any, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    page = ROOT / "docs" / "how-to" / "spark.rst"
    server.put("orders", [amqp.Message(f"order {number}", subject="tea") for number in range(5)])
    server.put("dead-letters", [amqp.Message(b"", application_properties={"reason": "expired"})])
    names: dict[str, Any] = {"spark": spark}
    for block in blocks(page):
        if block.kind == "python":
            program = block.text.replace("amqp://guest:guest@localhost:5672", server.url)
            assert program != block.text or "amqp://" not in block.text
            exec(compile("\n" * block.line + program, page, "exec", dont_inherit=True), names)
    assert spark.read.parquet(f"{names['folder']}/orders").count() == 5
    assert sorted(message.body for message in server.take("again")) == ["coffee", "tea"]


@lacks("copy")
def test_readme_shows_a_queue_as_a_table(
    spark: Any, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    _ = spark
    server.put("orders", ["tea"])
    [file] = with_comment(PAGES[0], IN_SPARK)
    [promised] = [
        printed
        for block in blocks(PAGES[0])
        if block.kind == "console"
        for command, printed in commands(block)
        if command == f"python {name_of(file)}"
    ]
    exec(
        compile(file.text.replace("amqp://localhost:5672", server.url), PAGES[0], "exec", dont_inherit=True),
        {},
    )
    assert capfd.readouterr().out.splitlines() == promised
