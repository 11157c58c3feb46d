"""Compile the fast readers and writer of messages into the wheel.

Only with HATCH_BUILD_HOOK_ENABLE_CUSTOM=1, as ``make wheel-compiled`` sets it; the usual wheel is pure Python.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from Cython.Build import cythonize
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension


class CompiledModules(BuildHookInterface):  # type: ignore[type-arg]  # hatchling declares no parameter
    """Adds an extension module for each ``.pyx`` of the library."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling passes it
        self._folder = TemporaryDirectory()  # until the wheel is written
        flags = os.environ.get("CFLAGS", "-O3 -g0").split()
        sources = [path.relative_to(self.root) for path in Path(self.root, "trio_amqp10").rglob("*.pyx")]
        modules = [
            Extension(".".join(source.with_suffix("").parts), [str(source)], extra_compile_args=flags)
            for source in sources
        ]
        distribution = Distribution({"ext_modules": cythonize(modules, build_dir=self._folder.name)})
        build = distribution.get_command_obj("build_ext")
        build.build_lib = build.build_temp = self._folder.name  # type: ignore[attr-defined]
        build.ensure_finalized()
        build.run()
        for built in build.get_outputs():  # type: ignore[attr-defined]
            build_data["force_include"][built] = str(Path(built).relative_to(self._folder.name))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        self._folder.cleanup()
