"""Every message that the package raises, logs at warning or above, or sends to a peer, read from its sources.

A message is a text in a call of an exception, of a logger or of an error of a protocol. Where a function or a class only adds to the
text of its caller, as ``RULE.broken("two opens")`` does, the message is the whole text, at the place of the caller. Values are holes:
``{name!r}`` in the sources is a `Hole` here. Runs nothing of the package, and does not know which messages are alike.
"""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FOLDERS: Final = ("trio_amqp10", "pyspark_amqp10")

_LEVELS: Final = frozenset({"warning", "error", "exception", "critical"})
_LOGGERS: Final = re.compile(r"(?:^|[._])(?:log|logger|LOG)$")
_ALTERNATIVES: Final = 24
"""Texts of one call at most; an expression with more is a hole."""
_DEPTH: Final = 4
"""Functions at most between the text and the exception."""

_CONDITION: Final = re.compile(r"(?:Condition|_C|_R|ReplyCode\w*)\.[A-Z_]+(?:\.value)?$")
_DIRECT: Final = frozenset({"RemoteProtocolError", "ReplyError", "RefusedError", "FilterError"})
"""Exceptions that add a condition, a code, a rule or a position to the text of their caller: the text is the message."""
_LOSSES: Final = frozenset({"_die", "_lose", "abandon"})
"""Methods that end a connection for a reason, which is the end of the error about the loss."""
_REASON: Final = re.compile(r"why|reason|doubt|failure_text|obstacle")
"""Functions that return the end of an error."""
_EXCEPTION: Final = re.compile(r"(?:Error|Exception|BadParameter)$")
_TEXT: Final = "text"
"""The kind of a function that returns a text, and makes no message by itself."""

_ERRORS: Final = {"Error": (1, "description")}
"""Errors of protocols that are no exceptions: where their text is, by position and by name."""
_INTERNAL: Final = frozenset({"AssertionError", "StopIteration", "KeyError"})
"""A program of a user does not meet these."""


class Hole(NamedTuple):
    """A value in a message.

    Attributes:
        source: the expression.
        form: its conversion and format, such as ``!r`` or ``:g``.
    """

    source: str
    form: str = ""


Text = tuple[str | Hole, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A message, and the place that it comes from.

    Attributes:
        kind: the name of its class; ``log`` if it is only logged.
        text: its words and holes.
        path: the module, from the root of the project.
        line: of the call.
    """

    kind: str
    text: Text
    path: str
    line: int

    @property
    def shown(self) -> str:
        """The text with ``...`` for each value."""
        text = "".join("..." if isinstance(part, Hole) else part for part in self.text)
        return re.sub(r"(?:\.\.\.){2,}", "...", text).strip()

    @property
    def words(self) -> str:
        """The text without its values."""
        return "".join(part for part in self.text if isinstance(part, str))

    @property
    def holes(self) -> tuple[Hole, ...]:
        """The values, in their order."""
        return tuple(part for part in self.text if isinstance(part, Hole))


@dataclass(slots=True, eq=False)
class _Wrapper:
    """A function or a class whose text contains arguments of its caller."""

    kind: str
    text: Text
    parameters: tuple[str, ...]
    defaults: Mapping[str, ast.expr]
    path: str
    line: int
    owner: str
    used: bool = False
    """Whether a call has put words into the text."""


@dataclass(slots=True)
class _Function:
    """A function of the sources, or the body of a module."""

    module: _Module
    owner: str
    name: str
    line: int
    arguments: ast.arguments
    parameters: tuple[str, ...]
    calls: list[ast.Call]
    names: dict[str, list[ast.expr]]
    answers: list[tuple[int, ast.expr]]
    """Line and text of each ``return 400, "no name"``."""
    returned: ast.expr | None
    """The text that it returns, if it does nothing else."""


@dataclass(slots=True)
class _Module:
    path: str
    tree: ast.Module
    constants: dict[str, ast.expr] = field(default_factory=dict)
    tables: dict[str, list[ast.expr]] = field(default_factory=dict)
    """The texts of each dict of texts."""
    imported: dict[str, str] = field(default_factory=dict)
    """The module that each name comes from."""


@cache
def messages() -> tuple[Message, ...]:
    """Every message of the package, by its text."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return tuple(messages_in({path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}))


def messages_in(sources: Mapping[str, str]) -> list[Message]:
    """Every message of these modules, by text; the sources are given by path."""
    return _Collector([_Module(path, ast.parse(source)) for path, source in sources.items()]).collect()


class _Collector:
    """Goes over all functions until no more of them are known to build messages for their callers."""

    def __init__(self, modules: list[_Module]) -> None:
        self.exceptions: set[str] = {
            name
            for name, value in vars(builtins).items()
            if isinstance(value, type) and issubclass(value, BaseException)
        } - _INTERNAL
        self.bases: dict[str, list[str]] = {}
        self.wrappers: dict[str, list[_Wrapper]] = {}
        self.functions: list[_Function] = []
        for module in modules:
            self._read(module)
        while grown := {
            name
            for name, bases in self.bases.items()
            if name not in self.exceptions
            and any(base in self.exceptions or _EXCEPTION.search(base) for base in bases)
        }:
            self.exceptions |= grown
        self.wrappers = self._text_functions()

    def _read(self, module: _Module) -> None:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                self.bases[node.name] = [_unparse(base).rpartition(".")[2] for base in node.bases]
            elif isinstance(node, ast.ImportFrom):
                for name in node.names:
                    module.imported[name.asname or name.name] = (node.module or "").rpartition(".")[2]
        for node in module.tree.body:
            value = getattr(node, "value", None)
            if (target := _assigned(node)) and isinstance(value, ast.expr) and _is_text(value):
                module.constants[target] = value
            elif target and isinstance(value, ast.Dict) and all(map(_is_text, value.values)):
                module.tables[target] = value.values
        nothing = ast.arguments([], [], None, [], [], None, [])
        self.functions.append(
            _Function(module, "", "", 0, nothing, (), list(_calls(_within(module.tree.body))), {}, [], None)
        )
        for node, owner in _functions(module.tree):
            arguments = node.args
            parameters = [
                each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            ]
            nodes = list(_within(node.body))
            last = node.body[-1]
            alone = len(node.body) == 1 or (len(node.body) == 2 and isinstance(node.body[0], ast.Expr))
            returned = last.value if isinstance(last, ast.Return) and alone else None
            self.functions.append(
                _Function(
                    module,
                    owner,
                    node.name,
                    node.lineno,
                    arguments,
                    tuple(parameters),
                    list(_calls(nodes)),
                    _locals(nodes),
                    list(_answers(node.name, nodes)),
                    returned,
                )
            )

    def _text_functions(self) -> dict[str, list[_Wrapper]]:
        """The functions that return a text with an argument, and do nothing else."""
        found: dict[str, list[_Wrapper]] = {}
        for function in self.functions:
            if function.returned is not None and isinstance(function.returned, ast.JoinedStr):
                for text in self._expanded(function.module, function.returned, {}):
                    if any(not hole.form and hole.source in function.parameters for hole in _holes(text)):
                        found.setdefault(function.name, []).append(self._wrapper(function, _TEXT, text))
        return found

    @staticmethod
    def _wrapper(function: _Function, kind: str, text: Text) -> _Wrapper:
        return _Wrapper(
            kind,
            text,
            function.parameters,
            _defaults(function.arguments),
            function.module.path,
            function.line,
            function.owner,
        )

    def collect(self) -> list[Message]:
        """Return every message."""
        texts = self._text_functions()
        found: set[Message] = set()
        for _ in range(_DEPTH):
            found = set()
            wrappers = {name: list(each) for name, each in texts.items()}
            for function in self.functions:
                found.update(self._in_function(function, wrappers))
            if _sizes(wrappers) == _sizes(self.wrappers):
                break
            self.wrappers = wrappers
        for each in self.wrappers.values():
            for wrapper in each:
                if not wrapper.used and wrapper.kind != _TEXT:
                    found.add(Message(wrapper.kind, _merged(wrapper.text), wrapper.path, wrapper.line))
        return sorted(
            (each for each in found if len(re.findall(r"[A-Za-z]{2,}", each.words)) > 1),
            key=lambda each: (each.words, each.path, each.line),
        )

    def _in_function(self, function: _Function, wrappers: dict[str, list[_Wrapper]]) -> Iterator[Message]:
        for line, answer in function.answers:
            for text in self._expanded(function.module, answer, function.names):
                yield Message("reason", _merged(text), function.module.path, line)
        init = function.name == "__init__" and function.owner in self.exceptions
        for call in function.calls:
            for kind, text in self._texts_of(function, call):
                plain = any(
                    not hole.form
                    and hole.source in function.parameters
                    and _may_be_text(function.arguments, hole.source)
                    for hole in _holes(text)
                )
                if init or plain:
                    name = function.owner if init else function.name
                    if name not in _DIRECT:
                        wrappers.setdefault(name, []).append(self._wrapper(function, kind, text))
                else:
                    yield Message(kind, _merged(text), function.module.path, call.lineno)

    def _texts_of(self, function: _Function, call: ast.Call) -> Iterator[tuple[str, Text]]:
        """The kinds and texts of the messages that a call makes, if it makes any."""
        called = _unparse(call.func)
        receiver, _, name = called.rpartition(".")
        if name in _LEVELS and _LOGGERS.search(receiver):
            if call.args:
                for text in self._expanded(function.module, call.args[0], function.names):
                    yield "log", _percent(text, call.args[1:])
        elif called == "super().__init__" and function.owner in self.exceptions:
            base = next((self._constructor(each) for each in self.bases[function.owner]), "")
            if base in self.wrappers:
                yield from self._through(function, base, function.owner, call)
            else:
                yield from ((function.owner, text) for text in self._first_text(function, call))
        elif name in _ERRORS and "." not in called:
            position, keyword = _ERRORS[name]
            if argument := _argument(call, position, keyword):
                yield from (
                    (name, text) for text in self._expanded(function.module, argument, function.names)
                )
        elif name in self.exceptions or _EXCEPTION.search(name):
            if name in _INTERNAL:
                return
            if (constructor := self._constructor(name)) in self.wrappers:
                yield from self._through(function, constructor, name, call)
            else:
                yield from ((name, text) for text in self._first_text(function, call))
        elif name in self.wrappers:
            yield from self._through(function, name, "", call)
        elif name in _LOSSES and call.args:
            yield from (
                ("reason", text) for text in self._expanded(function.module, call.args[0], function.names)
            )
        elif function.name and (argument := _after_condition(call)) is not None:
            yield from (("Error", text) for text in self._expanded(function.module, argument, function.names))

    def _constructor(self, name: str) -> str:
        """The class that gives an exception its constructor, or the name itself."""
        seen = name
        while seen not in self.wrappers and (
            base := next((base for base in self.bases.get(seen, ()) if base in self.exceptions), "")
        ):
            seen = base
        return seen if seen in self.wrappers else name

    def _first_text(self, function: _Function, call: ast.Call) -> Iterator[Text]:
        """The texts of the first argument that has words, or of the only one."""
        named = [
            each.value for each in call.keywords if each.arg in ("message", "description", "detail", "text")
        ]
        for argument in (*call.args, *named):
            texts = self._expanded(function.module, argument, function.names)
            words = any(isinstance(part, str) and " " in part for text in texts for part in text)
            passed = isinstance(argument, ast.Name) and _may_be_text(function.arguments, argument.id)
            if words or passed:
                yield from texts
                return

    def _meant(self, function: _Function, name: str, called: str) -> list[_Wrapper]:
        """The functions of that name that a call may mean: of its module, or imported; or methods."""
        receiver = called.rpartition(".")[0]
        known = self.wrappers[name]
        if name in self.exceptions:
            return [each for each in known if each.path == function.module.path] or known
        if not receiver:
            source = function.module.imported.get(name)
            return [
                each
                for each in known
                if not each.owner
                and (
                    each.path == function.module.path
                    if source is None
                    else each.path.endswith((f"/{source}.py", f"/{source}/__init__.py"))
                )
            ]
        if receiver in ("self", "cls", "super()"):
            return [each for each in known if each.owner and each.path == function.module.path] or [
                each for each in known if each.owner in self.bases.get(function.owner, ())
            ]
        if receiver in function.module.imported and not receiver[0].isupper():
            return [each for each in known if not each.owner and each.path.endswith(f"/{receiver}.py")]
        return [each for each in known if each.owner]

    def _through(
        self, function: _Function, name: str, kind: str, call: ast.Call
    ) -> Iterator[tuple[str, Text]]:
        """The texts of a wrapper with the arguments of this call."""
        called = _unparse(call.func)
        for wrapper in self._meant(function, name, called):
            if wrapper.kind == _TEXT:
                continue
            for text, filled in self._filled(
                function.module, wrapper, call, function.names, 0, function.parameters
            ):
                if filled or name in self.exceptions:
                    wrapper.used = True
                    yield kind or wrapper.kind, text

    def _filled(
        self,
        module: _Module,
        wrapper: _Wrapper,
        call: ast.Call,
        names: Mapping[str, list[ast.expr]],
        depth: int = 0,
        passing: tuple[str, ...] = (),
    ) -> Iterator[tuple[Text, bool]]:
        """The texts of a wrapper with arguments, and whether these have words."""
        own = bool(wrapper.owner) and wrapper.parameters[:1] in (("self",), ("cls",))
        parameters = wrapper.parameters[1:] if own else wrapper.parameters
        given: dict[str, ast.expr] = dict(zip(parameters, call.args, strict=False))
        given.update({each.arg: each.value for each in call.keywords if each.arg})
        if any(isinstance(each, ast.Starred) for each in call.args) or not set(given) <= set(parameters):
            return
        choices: list[list[Text]] = []
        filled = False
        for part in wrapper.text:
            if not isinstance(part, Hole) or part.source not in parameters:
                choices.append([(part,)])
                continue
            argument = given.get(part.source, wrapper.defaults.get(part.source))
            if argument is None:
                choices.append([(part,)])
            elif part.form:
                value = argument.value if isinstance(argument, ast.Constant) else None
                shown = repr(value) if part.form == "!r" else str(value)
                choices.append([(part if value is None else shown,)])
            else:
                texts = self._expanded(module, argument, names, depth)
                passed = isinstance(argument, ast.Name) and argument.id in passing
                filled |= passed or any(
                    " " in part for text in texts for part in text if isinstance(part, str)
                )
                choices.append(texts)
        yield from ((text, filled) for text in _combined(choices))

    def _expanded(
        self, module: _Module, node: ast.expr, names: Mapping[str, list[ast.expr]], depth: int = 0
    ) -> list[Text]:
        """The texts that an expression may be, with holes for what the sources do not show."""
        hole: list[Text] = [(Hole(_unparse(node)),)]
        if depth > _DEPTH:
            return hole
        again = depth + 1
        texts = hole
        match node:
            case ast.Constant(value=str() as text):
                return [(text,)]
            case ast.Constant(value=int() as number):
                return [(str(number),)]
            case ast.Constant(value=bytes() as octets):
                return [(octets.decode("latin-1"),)]
            case ast.JoinedStr(values=values):
                return _combined([self._piece(module, each, names, again) for each in values]) or hole
            case ast.BinOp(left=left, op=ast.Add(), right=right) if _is_text(left) or _is_text(right):
                texts = _combined(
                    [self._expanded(module, left, names, again), self._expanded(module, right, names, again)]
                )
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                given = list(right.elts) if isinstance(right, ast.Tuple) else [right]
                texts = [_percent(text, given) for text in self._expanded(module, left, names, again)]
                return texts if any(_has_words(text) for text in texts) else hole
            case ast.IfExp(body=first, orelse=second):
                texts = self._expanded(module, first, names, again) + self._expanded(
                    module, second, names, again
                )
            case ast.BoolOp(op=ast.Or(), values=values):
                texts = [text for each in values for text in self._expanded(module, each, names, again)]
            case ast.Subscript(value=ast.Name(id=name)) if name in module.tables:
                texts = [
                    text for each in module.tables[name] for text in self._expanded(module, each, {}, again)
                ]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get")) if name in module.tables:
                texts = [
                    text for each in module.tables[name] for text in self._expanded(module, each, {}, again)
                ]
            case ast.Name(id=name) if name in names:
                rest = {each: values for each, values in names.items() if each != name}
                texts = [text for each in names[name] for text in self._expanded(module, each, rest, again)]
            case ast.Name(id=name) if name in module.constants:
                return self._expanded(module, module.constants[name], {}, again)
            case ast.Call(func=function) if (name := _unparse(function).rpartition(".")[2]) in self.wrappers:
                known = [each for each in self.wrappers[name] if each.kind == _TEXT]
                near = [each for each in known if each.path == module.path] or known
                if len({each.line for each in near}) == 1:
                    for made, filled in self._filled(module, near[0], node, names, again):
                        if filled or any(each in made for each in _argument_holes(node)):
                            return [made]
            case _:
                pass
        return texts if any(_has_words(text) for text in texts) and len(texts) <= _ALTERNATIVES else hole

    def _piece(
        self, module: _Module, value: ast.expr, names: Mapping[str, list[ast.expr]], depth: int
    ) -> list[Text]:
        """The texts of one value of an f-string."""
        if not isinstance(value, ast.FormattedValue):
            return self._expanded(module, value, names, depth)
        if form := _form(value):
            return [(Hole(_unparse(value.value), form),)]
        return self._expanded(module, value.value, names, depth)


def _after_condition(call: ast.Call) -> ast.expr | None:
    """The text of a call with a condition or a reply code, such as ``link.close(Condition.NOT_FOUND.value, "no node")``."""
    for condition, argument in zip(call.args, call.args[1:], strict=False):
        if _CONDITION.match(_unparse(condition)) and isinstance(
            argument, ast.Constant | ast.JoinedStr | ast.Name
        ):
            return argument
    return None


def _holes(text: Text) -> Iterator[Hole]:
    return (part for part in text if isinstance(part, Hole))


def _argument_holes(call: ast.Call) -> list[Hole]:
    return [Hole(_unparse(each)) for each in call.args]


def _sizes(wrappers: Mapping[str, list[_Wrapper]]) -> dict[str, int]:
    return {name: len(each) for name, each in wrappers.items()}


@cache
def _unparse(node: ast.AST) -> str:
    return ast.unparse(node)


def _has_words(text: Text) -> bool:
    return any(isinstance(part, str) for part in text) or not text


def _combined(choices: list[list[Text]]) -> list[Text]:
    """Every text of one choice after the other; a choice of many is a hole if there would be too many."""
    number = 1
    for texts in choices:
        number *= len(texts)
    if number > _ALTERNATIVES:
        choices = [texts if len(texts) == 1 else [(Hole("..."),)] for texts in choices]
    return [tuple(part for text in each for part in text) for each in product(*choices)]


def _percent(text: Text, values: list[ast.expr]) -> Text:
    """The text with holes for the ``%s`` of a logger."""
    rest = iter(values)
    parts: list[str | Hole] = []
    for part in text:
        if isinstance(part, Hole):
            parts.append(part)
            continue
        for index, piece in enumerate(re.split(r"(%[-.\d*]*[a-zA-Z%])", part)):
            if index % 2 == 0:
                parts.append(piece)
            elif piece == "%%":
                parts.append("%")
            else:
                value = next(rest, None)
                parts.append(Hole(ast.unparse(value) if value else "", "!r" if piece == "%r" else ""))
    return tuple(parts)


def _merged(text: Text) -> Text:
    parts: list[str | Hole] = []
    for part in text:
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        elif part != "":
            parts.append(part)
    return tuple(parts)


def _form(value: ast.FormattedValue) -> str:
    conversion = f"!{chr(value.conversion)}" if value.conversion != -1 else ""
    return conversion + (f":{ast.unparse(value.format_spec)[2:-1]}" if value.format_spec else "")


def _argument(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    if len(call.args) > position:
        return call.args[position]
    return next((each.value for each in call.keywords if each.arg == keyword), None)


def _may_be_text(arguments: ast.arguments, name: str) -> bool:
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if each.arg == name:
            return each.annotation is None or "str" in ast.unparse(each.annotation)
    return False


def _defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    positional = [*arguments.posonlyargs, *arguments.args]
    found = dict(
        zip(
            (each.arg for each in positional[len(positional) - len(arguments.defaults) :]),
            arguments.defaults,
            strict=True,
        )
    )
    found.update(
        {
            each.arg: value
            for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if value
        }
    )
    return found


def _assigned(node: ast.AST) -> str:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        return node.target.id
    return ""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """Every function, and the name of the class that it is a method of."""
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, owner = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield child, owner
                stack.append((child, ""))
            elif not isinstance(child, ast.expr):  # which has no function with a name
                stack.append((child, child.name if isinstance(child, ast.ClassDef) else owner))


def _within(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every node of a body but those of functions inside it."""
    stack = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield node
        stack.extend(ast.iter_child_nodes(node))


def _calls(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    return (node for node in nodes if isinstance(node, ast.Call))


def _answers(function: str, nodes: Iterable[ast.AST]) -> Iterator[tuple[int, ast.expr]]:
    """Line and text of each answer with a status of HTTP that is an error, and of each reason."""
    reasons = _REASON.search(function) is not None
    for node in nodes:
        match node:
            case (
                ast.Return(value=ast.Tuple(elts=[ast.Constant(value=int() as status), text]))
                | ast.Assign(value=ast.Tuple(elts=[ast.Constant(value=int() as status), text]))
            ) if status >= 400:
                yield node.lineno, text
            case ast.Return(value=ast.expr() as text) if reasons:
                yield node.lineno, text
            case _:
                pass


def _locals(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    """The expressions that each local name is assigned."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if name := _assigned(node):
            found.setdefault(name, []).append(node.value)  # type: ignore[attr-defined]
    return found
