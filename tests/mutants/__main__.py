"""``python -m tests.mutants``: change the code in a small way, and see whether a test fails; thousands of times.

mutmut makes the mutants, and has each tried in a fork of a process that has collected the tests, by those tests alone
that call the function. It works in a copy of the sources for each group, below ``.mutants``. A mutant that survives is
either a test that is missing, or a change that changes nothing: then ``reasons.toml`` says so, by the line before and
after, and by why.
Two kinds need no line there: the type that ``cast`` is told, which does nothing when it runs, and letters of a text for
people, of which tests hold what says why and not each letter. Fails where a mutant survives for no reason, and where a
reason is of no mutant any more.

``--results`` takes the place of what the file has of these groups, and leaves the others. ``--resume`` goes on with the
mutants of the run before: those that survived are tried again, by the tests as they are now.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.results import add_option, commit, earlier, write

from .plan import PLANS, Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT: Final = Path(__file__).resolve().parents[2]
_COPIES: Final = _ROOT / ".mutants"
_REASONS: Final = Path(__file__).with_name("reasons.toml")
_COPIED: Final = ("trio_amqp10", "pyspark_amqp10", "typings", "tests")
_IGNORED: Final = shutil.ignore_patterns("__pycache__", "corpus")
_MUTMUT: Final = Path(sys.executable).with_name("mutmut")

_CAST: Final = re.compile(r'\bcast\(("[^"]*"|[^,"]+), ')
"""The type that ``cast`` is told changes nothing when it runs."""

_TEXT: Final = re.compile(r'b?"[^"]*"')
_SENTENCE: Final = re.compile('".* ')

_KILLED: Final = {1, 3}
_SLOW: Final = {24, 36, 152, 255, -24, -9}
_UNTRIED: Final = {5, 33}
"""Exit codes that mutmut keeps for each mutant: failed, out of time, and no test calls the function."""


class _Change(NamedTuple):
    """What a mutant is: one line, before and after. The number in its name is another after each commit."""

    module: str
    old: str
    new: str


@dataclass
class Result:
    """What became of the mutants of one group of modules."""

    name: str
    mutants: int = 0
    killed: int = 0
    slow: int = 0
    reasoned: int = 0
    letters: int = 0
    """Those that change letters of a text for people, and nothing else."""
    untried: int = 0
    survived: int = 0
    seconds: float = 0.0
    survivors: list[str] = field(default_factory=list[str])
    outdated: list[str] = field(default_factory=list[str])
    """Reasons of which there is no such mutant, or it is killed."""

    @property
    def score(self) -> float:
        """Percent of the mutants that changed something, and were noticed."""
        return 100 * (self.killed + self.slow) / max(1, self.mutants - self.reasoned - self.letters)


def run(name: str, plan: Plan, jobs: int, *, resume: bool = False) -> Result:
    """Try all mutants of a plan."""
    began = time.monotonic()
    copy = _COPIES / name.replace("/", "-")
    if resume:
        _forget_survivors(copy)
    else:
        shutil.rmtree(copy, ignore_errors=True)
    _copy(plan, copy)
    environment = dict(os.environ, PYTHONPATH="", HYPOTHESIS_PROFILE="same")
    subprocess.run([_MUTMUT, "run", "--max-children", str(jobs)], cwd=copy, env=environment, check=True)
    result = Result(name)
    reasons = _reasons()
    outdated = dict(reasons)
    modules: set[str] = set()
    for mutant, module, code in _outcomes(copy):
        modules.add(module)
        result.mutants += 1
        if code in _KILLED:
            result.killed += 1
            continue
        if code in _SLOW:
            result.slow += 1
            continue
        change = _change(copy, mutant, module)
        outdated.pop(change, None)
        if change in reasons or _CAST.sub("", change.old) == _CAST.sub("", change.new):
            result.reasoned += 1
            continue
        if _is_letters(change):
            result.letters += 1
            continue
        result.untried += code in _UNTRIED
        result.survived += code not in _UNTRIED
        why = "no test calls it" if code in _UNTRIED else "survived" if code == 0 else f"ended with {code}"
        result.survivors.append(f"{mutant}: {why}\n    - {change.old}\n    + {change.new}")
    result.outdated = [f"{each.old}\n    + {each.new}" for each in outdated if each.module in modules]
    result.seconds = round(time.monotonic() - began, 1)
    return result


def _is_letters(change: _Change) -> bool:
    """Whether a text of more than a word was put between XX and XX, or into other letters, and the rest is as it was."""
    old, new = _TEXT.findall(change.old), _TEXT.findall(change.new)
    if len(old) != len(new) or _TEXT.sub("", change.old) != _TEXT.sub("", change.new):
        return False
    return all(
        before == after or (_SENTENCE.match(before) and after.replace("XX", "").lower() == before.lower())
        for before, after in zip(old, new, strict=True)
    )


def _copy(plan: Plan, copy: Path) -> None:
    for folder in _COPIED:
        shutil.rmtree(copy / folder, ignore_errors=True)
        shutil.copytree(_ROOT / folder, copy / folder, ignore=_IGNORED)
    project = (_ROOT / "pyproject.toml").read_text()
    settings = {
        "source_paths": ["trio_amqp10"],
        "only_mutate": [f"trio_amqp10/{module}" for module in plan.modules],
        "also_copy": list(_COPIED[1:]),
        "pytest_add_cli_args_test_selection": list(plan.tests),
        # Others may import from these, so they stay in the copy.
        "pytest_add_cli_args": [f"--ignore={path}/{name}" for path in plan.tests for name in plan.ignored],
        "use_git_change_detection": False,
        "timeout_multiplier": 5.0,  # of the time that the tests take, and a second: most that take longer wait for ever
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    (copy / "pyproject.toml").write_text("\n".join([project, "[tool.mutmut]", *lines, ""]))


def _forget_survivors(copy: Path) -> None:
    for file in (copy / "mutants").rglob("*.meta"):
        kept = json.loads(file.read_text())
        codes = kept["exit_code_by_key"]
        kept["exit_code_by_key"] = {key: code if code in _KILLED else None for key, code in codes.items()}
        file.write_text(json.dumps(kept))


def _outcomes(copy: Path) -> Iterator[tuple[str, str, int | None]]:
    """Each mutant by name, its module, and how its tests ended."""
    for file in sorted((copy / "mutants").rglob("*.meta")):
        module = str(file.relative_to(copy / "mutants").with_suffix(""))
        for mutant, code in json.loads(file.read_text())["exit_code_by_key"].items():
            yield mutant, module, code


def _change(copy: Path, mutant: str, module: str) -> _Change:
    """By the text that mutmut wrote: its own command for that takes seconds for each."""
    functions = _functions(copy / "mutants" / module)
    name = mutant.rpartition(".")[2]
    plain = re.sub(r"__mutmut_\d+$", "", name)
    before = [line.replace(f"{plain}__mutmut_orig", plain) for line in functions[f"{plain}__mutmut_orig"]]
    after = [line.replace(name, plain) for line in functions[name]]
    lines = list(difflib.ndiff(before, after))
    old = " ".join(line[2:].strip() for line in lines if line[0] == "-")
    new = " ".join(line[2:].strip() for line in lines if line[0] == "+")
    return _Change(module, old, new)


@cache
def _functions(module: Path) -> dict[str, list[str]]:
    text = module.read_text()
    lines = text.splitlines()
    return {
        node.name: lines[node.lineno - 1 : node.end_lineno]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _reasons() -> dict[_Change, str]:
    rows = tomllib.loads(_REASONS.read_text()).get("survivor", []) if _REASONS.exists() else []
    return {_Change(row["module"], row["old"], row["new"]): row["reason"] for row in rows}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes; one for each core"
    )
    parser.add_argument(
        "--resume", action="store_true", help="try those again that survived, of the run before"
    )
    add_option(parser)
    parser.add_argument("modules", nargs="*", choices=[[], *PLANS], help="all, if none is named")
    arguments = parser.parse_args()
    results = [
        run(name, PLANS[name], arguments.jobs, resume=arguments.resume) for name in arguments.modules or PLANS
    ]
    for result in results:
        for survivor in result.survivors:
            print(survivor)
        for reason in result.outdated:
            print(f"a reason of no mutant that survives:\n    - {reason}")
        print(
            f"{result.name:20}{result.mutants:>6} mutants, {result.score:5.1f} % noticed, "
            f"{result.survived} survived, {result.untried} untried, {result.reasoned} with a reason, "
            f"{result.letters} in the letters of a text, {result.seconds:.0f} s"
        )
    names = {each.name for each in results}
    others = [each for each in earlier(arguments.results, "modules") if each["name"] not in names]
    found = [{**asdict(each), "score": round(each.score, 1), "commit": commit()} for each in results]
    write(arguments.results, "mutants", {"modules": [*others, *found]})
    return 1 if any(each.survivors or each.outdated for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
