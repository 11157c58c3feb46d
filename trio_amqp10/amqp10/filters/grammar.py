"""The grammar and parser of expressions (JMS 3.8.1.1, filtex 6).

The only module that needs lark, from the extra ``selector``; it is imported when the first expression is
parsed. The parser is LALR(1): it takes time linear in the text, and does not recurse for nested expressions.
Two dialects share the grammar and differ in literals:

============== =========================================== ===================================
text           JMS                                         filtex
============== =========================================== ===================================
``"a b"``      an identifier                               a string
``0x1F``       a number                                    octets
``017``        a number to base 8                          a number to base 10
``p.subject``  a key of the application properties         properties, as ``properties.subject``
============== =========================================== ===================================

Both accept more than their standard requires: ``!=``, ``%``, ``[a b]`` for a key of the application
properties, BETWEEN, and any expressions after IN. Knows no messages.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final, cast

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from .errors import FilterError, excerpt
from .fields import resolve
from .like import compile_like
from .syntax import (
    FUNCTIONS,
    KEYWORDS,
    And,
    Arithmetic,
    Between,
    Comparison,
    Constant,
    Dialect,
    Expression,
    Identifier,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Sign,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_GRAMMAR: Final = r"""
?start: disjunction
?disjunction: conjunction (_OR conjunction)*
?conjunction: negation (_AND negation)*
?negation: _NOT negation                              -> negated
    | predicate
?predicate: sum
    | sum COMPARISON sum                              -> comparison
    | sum _BETWEEN sum _AND sum                       -> between
    | sum _NOT _BETWEEN sum _AND sum                  -> not_between
    | sum _IN "(" sum ("," sum)* ")"                  -> in_choices
    | sum _NOT _IN "(" sum ("," sum)* ")"             -> not_in_choices
    | sum _LIKE STRING (_ESCAPE STRING)?              -> like
    | sum _NOT _LIKE STRING (_ESCAPE STRING)?         -> not_like
    | sum _IS _NULL                                   -> is_null
    | sum _IS _NOT _NULL                              -> is_not_null
?sum: product
    | product (SIGN product)+                         -> chain
?product: operand
    | operand (FACTOR operand)+                       -> chain
?operand: SIGN operand                                -> sign
    | "(" disjunction ")"
    | INTEGER                                         -> integer
    | DECIMAL                                         -> decimal
    | HEX                                             -> hexadecimal
    | STRING                                          -> string
    | _TRUE                                           -> true
    | _FALSE                                          -> false
    | (NAME | FIELD)                                  -> identifier
    | QUOTED                                          -> quoted
    | DELIMITED                                       -> delimited

COMPARISON: "<>" | "!=" | "<=" | ">=" | "=" | "<" | ">"
SIGN: "+" | "-"
FACTOR: "*" | "/" | "%"
HEX.4: /0[xX][0-9A-Fa-f]+[lL]?/
DECIMAL.3: /(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?|[0-9]+[eE][+-]?[0-9]+[fFdD]?/
INTEGER.2: /[0-9]+[lL]?/
NAME: /(?:[^\W\d]|\$)[\w$.]*/
FIELD.2: /(?:{sections})\.[\w$.]+(?:-[^\W\d][\w$.]*)*/
STRING: {string}
QUOTED: {quoted}
DELIMITED: /\[(?:[^\[\]]|\[\[|\]\])*\]/

%declare {keywords}
%ignore /[ \t\f\r\n]+/
"""

_SINGLE: Final = "'[^']*(?:''[^']*)*'"
_DOUBLE: Final = '"[^"]*(?:""[^"]*)*"'
_LONG_SECTIONS: Final = (
    "header|properties|footer|(?:application|delivery|message)[-_](?:properties|annotations)"
)
_NEVER: Final = "(?!)."

_MAX_INTEGER: Final = 2**64 - 1

_NAMES: Final = {
    **dict.fromkeys(("INTEGER", "DECIMAL", "HEX", "_TRUE", "_FALSE", "NAME", "FIELD"), "a value"),
    **dict.fromkeys(("QUOTED", "DELIMITED", "LPAR"), "a value"),
    **{f"_{word}": word for word in KEYWORDS - {"TRUE", "FALSE"}},
    "COMPARISON": "a comparison",
    "SIGN": "an operator",
    "FACTOR": "an operator",
    "STRING": "a string",
    "RPAR": ")",
    "COMMA": ",",
    "$END": "the end",
}
"""The words of an error for the tokens that the parser expected."""


def parse(text: str, dialect: Dialect) -> Expression:
    """Parse a text to an expression.

    Raises:
        FilterError: the text is not an expression of this dialect; the position is that of the first wrong
            word.
    """
    try:
        return cast("Expression", cast("Any", _parser(dialect)).parse(text))
    except UnexpectedInput as error:
        raise _explained(text, error) from None


@functools.cache
def _parser(dialect: Dialect) -> Lark:
    jms = dialect == "jms"
    grammar = _GRAMMAR
    for name, pattern in {
        "sections": f"{_LONG_SECTIONS}|{'amqp' if jms else '[hdmpaf]'}",
        "string": f"/{_SINGLE if jms else f'{_SINGLE}|{_DOUBLE}'}/",
        "quoted": f"/{_DOUBLE if jms else _NEVER}/",
        "keywords": " ".join(f"_{word}" for word in sorted(KEYWORDS)),
    }.items():
        grammar = grammar.replace(f"{{{name}}}", pattern)
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        maybe_placeholders=False,
        transformer=cast("Any", _Builder(dialect)),
        lexer_callbacks={"NAME": _keyword if jms else _keyword_or_function},
    )


def _keyword(token: Token) -> Token:
    """Turn a name into a keyword, in upper or lower case (JMS 3.8.1.1)."""
    word = token.upper()
    return Token.new_borrow_pos(f"_{word}", token, token) if word in KEYWORDS else token


def _keyword_or_function(token: Token) -> Token:
    if token.upper() in FUNCTIONS:
        raise FilterError(f"the function {token.upper()} is not supported", token.start_pos)
    return _keyword(token)


def _explained(text: str, error: UnexpectedInput) -> FilterError:
    position = error.pos_in_stream if error.pos_in_stream is not None else len(text)
    if isinstance(error, UnexpectedCharacters):
        if text[position] in "'\"":
            return FilterError("a string without its closing quote", position)
        return FilterError(f"unexpected {text[position]!r}", position)
    assert isinstance(error, UnexpectedToken)
    token = cast("Token", error.token)
    found = "end" if token.type == "$END" else excerpt(str(token))
    position = len(text) if token.type == "$END" else position
    possible = {_NAMES[name] for name in error.accepts or error.expected}
    if "a value" in possible:  # a sign or a parenthesis can begin a value too
        possible = {"a value"}
    return FilterError(f"unexpected {found}: expected {' or '.join(sorted(possible))}", position)


class _Builder:
    """Builds a node for each rule of the grammar; a method has the name of its rule."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect: Dialect = dialect

    def disjunction(self, terms: list[Expression]) -> Expression:
        return Or(tuple(terms))

    def conjunction(self, terms: list[Expression]) -> Expression:
        return And(tuple(terms))

    def negated(self, parts: list[Expression]) -> Expression:
        return Not(parts[0])

    def comparison(self, parts: list[Any]) -> Expression:
        left, operator, right = parts
        return Comparison(cast("Operator", "<>" if operator == "!=" else str(operator)), left, right)

    def between(self, parts: list[Expression]) -> Expression:
        return Between(*parts)

    def not_between(self, parts: list[Expression]) -> Expression:
        return Not(self.between(parts))

    def in_choices(self, parts: list[Expression]) -> Expression:
        return In(parts[0], tuple(parts[1:]))

    def not_in_choices(self, parts: list[Expression]) -> Expression:
        return Not(self.in_choices(parts))

    def like(self, parts: list[Any]) -> Expression:
        value, *literals = parts
        pattern, escape = [*map(_content, literals), None][:2]
        try:
            compile_like(cast("str", pattern), escape)  # checks the pattern while its position is known
        except FilterError as error:
            raise FilterError(error.description, literals[-1].start_pos) from None
        return Like(value, cast("str", pattern), escape)

    def not_like(self, parts: list[Any]) -> Expression:
        return Not(self.like(parts))

    def is_null(self, parts: list[Expression]) -> Expression:
        return IsNull(parts[0])

    def is_not_null(self, parts: list[Expression]) -> Expression:
        return Not(IsNull(parts[0]))

    def chain(self, parts: list[Any]) -> Expression:
        operators: Iterator[str] = map(str, parts[1::2])
        return Arithmetic(parts[0], tuple(zip(operators, parts[2::2], strict=True)))

    def sign(self, parts: list[Any]) -> Expression:
        return Sign(str(parts[0]), parts[1])

    def integer(self, parts: list[Token]) -> Expression:
        digits = parts[0].rstrip("lL")
        octal = self._dialect == "jms" and len(digits) > 1 and digits[0] == "0"
        if octal and not {"8", "9"}.isdisjoint(digits):
            raise FilterError(
                f"{excerpt(digits)} begins with 0, but is not an octal number", parts[0].start_pos
            )
        return _integer(int(digits, 8 if octal else 10), parts[0])

    def hexadecimal(self, parts: list[Token]) -> Expression:
        digits = parts[0][2:]
        if self._dialect == "jms":
            return _integer(int(digits.rstrip("lL"), 16), parts[0])
        if len(digits) % 2 or digits[-1] in "lL":
            raise FilterError("octets need an even number of hexadecimal digits", parts[0].start_pos)
        return Constant(bytes.fromhex(digits))

    def decimal(self, parts: list[Token]) -> Expression:
        number = float(parts[0].rstrip("fFdD"))
        if math.isinf(number):
            raise FilterError(f"{excerpt(str(parts[0]))} is too large a number", parts[0].start_pos)
        return Constant(number)

    def string(self, parts: list[Token]) -> Expression:
        return Constant(_content(parts[0]))

    def true(self, _: list[Token]) -> Expression:
        return Constant(True)

    def false(self, _: list[Token]) -> Expression:
        return Constant(False)

    def identifier(self, parts: list[Token]) -> Expression:
        return resolve(str(parts[0]), self._dialect, parts[0].start_pos)

    def quoted(self, parts: list[Token]) -> Expression:
        return resolve(_content(parts[0]), self._dialect, parts[0].start_pos)

    def delimited(self, parts: list[Token]) -> Expression:
        name = parts[0][1:-1].replace("[[", "[").replace("]]", "]")
        return Identifier("application_properties", name)


def _integer(number: int, token: Token) -> Expression:
    if number > _MAX_INTEGER:
        raise FilterError(f"{excerpt(str(token))} is too large an integer", token.start_pos)
    return Constant(number)


def _content(literal: Token) -> str:
    """Return the text of a literal: without its quotes, which are doubled inside."""
    quote = literal[0]
    return literal[1:-1].replace(quote * 2, quote)
