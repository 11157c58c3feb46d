"""The page of the manual about Spark, and the example, are run."""

from __future__ import annotations

import ast
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import trio_amqp10 as amqp
from tests.test_docs import ROOT, blocks

from .desk import PATIENCE
from .peers import lacks

if TYPE_CHECKING:
    from pathlib import Path

    from .server import Server


@lacks("copy")
def test_page_does_what_it_says(spark: Any, server: Server, tmp_path: Path) -> None:
    page = ROOT / "docs" / "how-to" / "spark.rst"
    server.put("orders", [amqp.Message(f"order {number}", subject="tea") for number in range(5)])
    server.put("dead-letters", [amqp.Message(b"", application_properties={"reason": "expired"})])
    names = {"spark": spark, "folder": str(tmp_path)}
    for block in blocks(page):
        if block.kind == "python":
            program = block.text.replace("amqp://guest:guest@localhost:5672", server.url)
            assert program != block.text or "amqp://" not in block.text
            exec(compile("\n" * block.line + program, page, "exec", dont_inherit=True), names)
    assert spark.read.parquet(str(tmp_path / "orders")).count() == 5
    assert sorted(message.body for message in server.take("again")) == ["coffee", "tea"]


def test_example_counts_every_request(java: None) -> None:
    example = ROOT / "examples" / "spark_pipeline.py"
    done = subprocess.run(
        [sys.executable, str(example), "3000"], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    runs_on, *said, by_status, total = done.stdout.splitlines()
    assert runs_on.startswith("Spark runs on Java ")
    counts = ast.literal_eval(by_status.partition(": ")[2])
    bars = [line.split() for line in said if not line.startswith("counting: batch ")]
    assert sum(int(number) for _, _, number in bars) == sum(counts.values())
    assert all(len(bar) == -(-int(number) // 50) for _, bar, number in bars)
    assert total.startswith(f"{sum(counts.values())} of 3000 requests")
    assert 2 * 1000 < sum(counts.values()) < 3000  # two minutes, at twenty requests a second
    assert counts["200"] > 0.8 * sum(counts.values())
