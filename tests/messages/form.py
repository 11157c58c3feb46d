"""The form of a message, as far as a program can see it: what is wrong, with which value, and what to do.

CONTRIBUTING.md has the rule, under "Words". Clients of RabbitMQ compare some texts of a broker of AMQP 0-9-1 with those of RabbitMQ:
``RABBITMQ`` has these, and they stay as RabbitMQ has them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .collect import Hole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .collect import Message

LENGTH: Final = 240
"""Characters of the words of a message at most."""

RABBITMQ: Final = re.compile(
    r"inequivalent arg '|queue '.*' in vhost|exchange '.*' in vhost|no queue '|no exchange '|unknown delivery tag"
    r"|cannot switch from|channel is not transactional|prefetch_size!=0|attempt to reuse consumer tag|invalid expiration '"
    r"|user_id property set to '|no previously declared queue|cannot get from queue '|queue name '|requeue=false"
    r"|message size \.\.\. is larger|operation not permitted on the default|negotiated (?:channel|frame)_max"
    r"|vhost .* not found|bad .* (?:property|argument|path segment)|Login was refused|there is an queue"
    r"|reply consumer|fast reply consumer|contains reserved prefix|deletion of system exchange|Invalid x-match field"
    r"|Cannot declare a server-named|invalid property '|invalid arg '|invalid type '|exchange type '"
    r"|does not support global qos|cannot publish to internal|cannot obtain (?:exclusive )?access to locked"
)
"""Texts of RabbitMQ, by which its clients know an error."""

_SECRET: Final = frozenset({"MalformedError"})
"""Messages about the parts of a login, which must not show them."""
_PARTS: Final = frozenset(
    {
        "trio_amqp10/amqp10/wire/json_values.py",
        "trio_amqp10/spark/option_values.py",
        "trio_amqp10/spark/typed_json.py",
        "trio_amqp10/tools/cli/json_types.py",
    }
)
"""Modules with the ends of messages: their caller puts the name and the value before them."""
_CLI: Final = frozenset({"UsageError", "BadParameter"})
_SENTENCES: Final = frozenset({"UsageError"})
"""Kinds that end with a full stop, as those of Click itself do."""

_VALUE: Final = re.compile(
    r"\bmust (?:be|have|contain|hold|begin|lie)\b|\bexpected\b|\binvalid\b|\bnot (?:a )?valid\b"
)
_SHOWN: Final = re.compile(
    r"\w=\S|, not \S|\bis not\b|\bhas no\b|^dialects: |^unexpected end: |\bis a SASL\b"
)
"""A value that stands in the words, or that there is none."""
_VALUE_LAST: Final = re.compile(r"\bmust\b[^:]*: \.\.\.$")
_ARGUMENT: Final = re.compile(r"[a-z_]+ must \b")
_RIGHT: Final = re.compile(r"\b(?:is|are) (?:possible|allowed|expected)\b(?! for)")
_PRONOUN: Final = re.compile(
    r"(?:it|its|they|their|those|we|our|you|your|who|what|that|such|one that)\b", re.IGNORECASE
)
_WORDS: Final = {
    "name the person or the program": r"nobody|somebody|someone|anybody|whoever|whosoever|we|our|us|you|your",
    "name the thing": r"what|whatever|anything|something|thing",
    "a program does not speak": r"says?|said|tells?|told",
    "use a plain word": r"anew|hence|lest|illegal|bogus|wrong|sorry|please|oops|can't",
}
_NAMES: Final = re.compile(
    r"(?:[A-Z][A-Z0-9_-]+\b|AMQP|JMS|SASL|HTTP|PLAIN|ESCAPE|LIKE|Array|Spark|RabbitMQ|Python|Base64|Java|QUEUE|SAS|URL)"
)
_OPTION: Final = re.compile(
    r"(?<![\w'.\"])(?!readStream|foreachBatch|availableNow)[a-z]+(?:[A-Z][a-z]+)+(?![\w'\"(])"
)


def faults_in(message: Message) -> Iterator[str]:
    """Give each rule that a message breaks."""
    shown, kind = message.shown, message.kind
    if RABBITMQ.search(shown):
        return
    hidden = not message.holes and not _SHOWN.search(shown)
    if _VALUE.search(message.words) and hidden and kind not in _SECRET and message.path not in _PARTS:
        yield "a refused value is not shown"
    refused = re.search(r"(.*?): expected|(.*) must be (?!.*\bnot \.\.\.)", shown)
    if (
        refused
        and "..." not in (refused[1] or refused[2])
        and not _SHOWN.search(shown)
        and message.path not in _PARTS
        and kind not in _SECRET
    ):
        yield "a refused value is not shown before what is right"
    if _VALUE_LAST.search(shown):
        yield "the value comes before what is right: NAME=VALUE: expected ..."
    if _ARGUMENT.match(shown) and "=" not in shown:
        yield "an argument and its value: NAME=VALUE: expected ..."
    if _RIGHT.search(shown):
        yield "one word for what is right: expected"
    if _PRONOUN.match(shown):
        yield f"begins without its subject: {shown[:20]!r}"
    for rule, words in _WORDS.items():
        for found in re.finditer(rf"\b(?:{words})\b", message.words):
            yield f"{rule}: {found[0]!r}"
    if shown.endswith(".") != (kind in _SENTENCES) and not shown.endswith("..."):
        yield "ends with a full stop, or does not where Click does"
    if _quoted_without_escapes(message):
        yield "a value in quotes is written with !r"
    if re.search(r"  |\s[:;,](?:\s|$)|[:;,]$|\n|^\s", shown):
        yield "spaces or marks at the wrong place"
    if len(message.words) > LENGTH:
        yield f"has {len(message.words)} characters, not {LENGTH}"
    if shown[0].isupper() and kind not in _SENTENCES and not _NAMES.match(shown):
        yield f"begins with a capital: {shown[:20]!r}"
    if kind == "OptionError" and (option := _OPTION.search(message.words)):
        yield f"the name of an option stands in quotes: {option[0]}"
    if kind in _CLI and (typed := re.search(r"\b[a-z]+_[a-z_]+\b", message.words)):
        yield f"an option as it is typed: {typed[0]}"
    if kind in _CLI | {"OptionError"} and not re.search(
        r"[:;,]|\bneeds?\b|\btakes?\b|\bexcludes?\b|\bgive\b", shown, re.IGNORECASE
    ):
        yield "does not give what to do"


def _quoted_without_escapes(message: Message) -> bool:
    parts = message.text
    return any(
        isinstance(hole, Hole) and not hole.form and _ends(before, "'") and _begins(after, "'")
        for before, hole, after in zip(parts, parts[1:], parts[2:], strict=False)
    )


def _ends(part: str | Hole, mark: str) -> bool:
    return isinstance(part, str) and part.endswith(mark)


def _begins(part: str | Hole, mark: str) -> bool:
    return isinstance(part, str) and part.startswith(mark)
