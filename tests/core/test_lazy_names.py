"""Names of a package that are imported at their first use."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.core.lazy_names import lazy_names, names_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package of two modules, of which none was imported."""
    folder = tmp_path / "lazily"
    folder.mkdir()
    (folder / "__init__.py").write_text("import os\n")
    (folder / "birds.py").write_text("__all__ = ['crow']\ncrow = 'caw'\nhidden = 'x'\n_own = 'y'\n")
    (folder / "trees.py").write_text("oak = 'acorn'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import lazily  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports]

    yield lazily
    for name in [name for name in sys.modules if name.partition(".")[0] == "lazily"]:
        del sys.modules[name]


def test_name_is_imported_at_its_first_use_and_kept(package: Any) -> None:
    lazy = lazy_names("lazily", {".birds": "crow", ".trees": "oak"})
    assert "lazily.birds" not in sys.modules
    assert lazy.get("crow") == "caw"
    assert "lazily.trees" not in sys.modules
    assert package.crow == "caw"
    assert lazy.shown == ["crow", "oak"]


def test_name_of_a_module_is_that_module(package: Any) -> None:
    lazy = lazy_names("lazily", {".": "birds"}, "trees")
    assert lazy.get("birds") is sys.modules["lazily.birds"]
    assert lazy.get("trees") is sys.modules["lazily.trees"]
    assert lazy.shown == ["birds"]
    assert package.birds.crow == "caw"


@pytest.mark.usefixtures("package")
def test_other_name_is_an_attribute_error() -> None:
    lazy = lazy_names("lazily", {".birds": "crow"})
    with pytest.raises(AttributeError, match="lazily has no attribute 'cow'") as caught:
        lazy.get("cow")
    assert caught.value.name == "cow"


@pytest.mark.usefixtures("package")
def test_names_are_the_public_and_the_special_ones_only() -> None:
    names = lazy_names("lazily", {".birds": "crow"}).names()
    assert "crow" in names
    assert "__name__" in names
    assert "os" not in names
    assert names == sorted(names)


@pytest.mark.usefixtures("package")
def test_package_may_have_the_names_of_one_module() -> None:
    get, names = names_of("lazily", ".birds")
    assert get("crow") == "caw"
    assert get("__all__") == ["crow"]
    assert "crow" in names()
    assert "hidden" not in names()


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("name", ["hidden", "_own", "trees", "cow"])
def test_name_that_the_module_does_not_show_is_an_attribute_error(name: str) -> None:
    get, _ = names_of("lazily", ".birds")
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        get(name)
