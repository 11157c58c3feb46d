"""The page about 0-9-1 does what it says, against a broker in memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.places import ROOT
from tests.test_docs import blocks

if TYPE_CHECKING:
    import pytest

PAGE = ROOT / "docs" / "how-to" / "amqp091.rst"


async def test_page_does_what_it_says(brokered: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert PAGE.name == "amqp091.rst"
    names: dict[str, Any] = {"__name__": "amqp091"}
    async with brokered() as broker:
        broker.password = "guest"
        for block in (each for each in blocks(PAGE) if each.kind == "python"):
            program = re.sub(r"^trio\.run\(main\)$", "", block.text, flags=re.MULTILINE)
            exec(compile("\n" * block.line + program, PAGE, "exec", dont_inherit=True), names)
            await names["main"]()
            printed = re.findall(r"print\(.*# (.*)$", block.text, re.MULTILINE)
            assert capsys.readouterr().out.splitlines() == printed
