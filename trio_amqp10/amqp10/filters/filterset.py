"""FilterSet: the filters of a source, and those that the answer confirms.

================================================ ============== ==================
descriptor                                       code           defined by
================================================ ============== ==================
``apache.org:legacy-amqp-direct-binding:string`` 0x468C00000000 apache-filters.xml
``apache.org:legacy-amqp-topic-binding:string``  0x468C00000001 apache-filters.xml
``apache.org:no-local-filter:list``              0x468C00000003 apache-filters.xml
``apache.org:selector-filter:string``            0x468C00000004 apache-filters.xml
``amqp:sql-filter``                              0x120          filtex 6
``amqp:properties-filter``                       0x173          filtex 4.2.4
``amqp:application-properties-filter``           0x174          filtex 4.2.5
================================================ ============== ==================

filtex is the OASIS draft "AMQP Filter Expressions". For filters and their answers see 3.5.3 and 3.5.8.

Knows no links: the caller passes the sender of a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.message.sections import LAST_VERSION
from trio_amqp10.amqp10.wire.values import Described, Symbol, ULong
from trio_amqp10.core.errors import RemoteProtocolError

from .errors import FilterError, excerpt
from .properties import application_properties_filter, properties_filter
from .selector import Dialect, Selector, is_available
from .subject import exact_subject, matching_subject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp10.message import Message

    Test = Callable[[Message], object]
    """A test of a message: it matches if the result is True."""


class FilterSet:
    """The filters of a link: a message must match all of them (3.5.8).

    ``parse_filters`` makes it. Without filters every message matches, and the set is false.
    """

    __slots__ = ("_tests", "dropped", "echo", "no_local")

    def __init__(
        self,
        tests: list[Test],
        echo: dict[Symbol, Described],
        dropped: dict[Symbol, Any],
        *,
        no_local: bool,
    ) -> None:
        self._tests = tuple(tests)
        self.echo: Final = echo
        """The filters that are applied, as received, for the source of the answer."""
        self.dropped: Final = dropped
        """The unknown filters, which are not applied and not in the answer."""
        self.no_local: Final = no_local
        """Whether a peer gets no message of its own; ``matches`` needs both ids then."""

    def matches(
        self, message: Message, *, link_container_id: str | None = None, origin: str | None = None
    ) -> bool:
        """Whether a message matches all filters.

        A message that cannot be decoded does not match a filter that must decode it.

        Args:
            message: only the sections that the filters need are decoded; it is not changed.
            link_container_id: the container-id of the peer that receives on the link.
            origin: the container-id of the peer that sent the message, None if unknown.
        """
        if self.no_local and origin is not None and origin == link_container_id:
            return False
        if message.message_format > LAST_VERSION and self._tests:
            # The sections of other formats are unknown (2.8.11).
            return False
        try:
            for test in self._tests:
                if test(message) is not True:
                    return False
        except RemoteProtocolError:
            return False
        return True

    def __bool__(self) -> bool:
        return bool(self._tests) or self.no_local

    def __repr__(self) -> str:
        return f"<FilterSet of {', '.join(map(repr, self.echo.values())) or 'no filters'}>"


def parse_filters(filter_map: Mapping[Any, Any] | None) -> FilterSet:
    """Return the filters that a peer asks for.

    Filters with a descriptor that is not listed above, and expressions without the extra ``selector``, are in
    ``dropped``: the answer does not contain them, so the peer learns that they are not applied (3.5.3).

    Raises:
        FilterError: a known filter is malformed: the attach is answered with a detach with
            ``FilterError.condition``, ``amqp:invalid-field``.
    """
    tests: list[Test] = []
    echo: dict[Symbol, Described] = {}
    dropped: dict[Symbol, Any] = {}
    no_local = False
    for name, value in (filter_map or {}).items():
        if value is None:  # null means that there is no such filter (3.5.8)
            continue
        descriptor = _descriptor_of(value)
        if descriptor in _NO_LOCAL:  # its value has no meaning: clients send an empty list, or a text
            no_local = True
        elif descriptor in _KINDS:
            try:
                tests.append(_KINDS[descriptor](value.value))
            except FilterError as error:
                raise FilterError(f"filter {excerpt(name)}: {error.description}", error.position) from None
        else:
            dropped[name] = value
            continue
        echo[name] = value
    return FilterSet(tests, echo, dropped, no_local=no_local)


def capabilities() -> tuple[Symbol, ...]:
    """Return the capabilities of a source or container with these filters (3.5.3)."""
    names = ["APACHE.ORG:NO_LOCAL", "AMQP_FILTEX_PROP_V1_0"]
    if is_available():
        names += ["APACHE.ORG:SELECTOR", "AMQP_FILTEX_SQL_V1_0"]
    return tuple(map(Symbol, names))


def _expression_filter(dialect: Dialect) -> Callable[[Any], Test]:
    def compiled(value: Any) -> Test:
        if not isinstance(value, str):
            raise FilterError(f"an expression must be a string, not {excerpt(value)}")
        return Selector(value, dialect=dialect).evaluate

    return compiled


_NO_LOCAL: Final = (Symbol("apache.org:no-local-filter:list"), ULong(0x468C00000003))
_EXPRESSIONS: Final = (
    *(Symbol("apache.org:selector-filter:string"), ULong(0x468C00000004)),
    *(Symbol("amqp:sql-filter"), ULong(0x120)),
)
_KINDS: Final[dict[object, Callable[[Any], Test]]] = {
    descriptor: kind
    for name, code, kind in (
        ("apache.org:legacy-amqp-direct-binding:string", 0x468C00000000, exact_subject),
        ("apache.org:legacy-amqp-topic-binding:string", 0x468C00000001, matching_subject),
        (*_EXPRESSIONS[:2], _expression_filter("jms")),
        (*_EXPRESSIONS[2:], _expression_filter("sql")),
        ("amqp:properties-filter", 0x173, properties_filter),
        ("amqp:application-properties-filter", 0x174, application_properties_filter),
    )
    for descriptor in (Symbol(name), ULong(code))
}


def _descriptor_of(value: Any) -> Symbol | ULong | None:
    """Return the descriptor of a filter.

    None if ``value`` is not a filter, or cannot be applied without the extra ``selector``.
    """
    if not isinstance(value, Described) or not isinstance(value.descriptor, (Symbol, ULong)):
        return None
    if value.descriptor in _EXPRESSIONS and not is_available():
        return None
    return value.descriptor
