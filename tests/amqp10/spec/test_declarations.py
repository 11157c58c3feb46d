"""Every declaration against the table of the standard: a name, code, order or default that is off by one shows here."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from trio_amqp10.amqp10.spec import (
    PERFORMATIVES,
    SASL_PERFORMATIVES,
    TYPES,
    messaging,
    security,
    transactions,
    transport,
)
from trio_amqp10.amqp10.wire import codes, frames
from trio_amqp10.amqp10.wire.composite import Field, Registry, Section, plan_of
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.errors import Condition

from . import standard

if TYPE_CHECKING:
    from trio_amqp10.amqp10.wire.fields import FieldType


class Row(NamedTuple):
    name: str
    type: str
    requires: str
    multiple: bool
    mandatory: bool
    default: str | None


ROW = re.compile(r"    (\S+): (\S+)(?: <(\S+)>)?( \*)?( !)?(?: = (\S+))?")


def blocks(table: str) -> list[tuple[list[str], list[str]]]:
    """Heads, each split at its bars, and the indented lines under them."""
    found: list[tuple[list[str], list[str]]] = []
    for line in table.strip().splitlines():
        if line.startswith(" "):
            found[-1][1].append(line)
        else:
            found.append(([part.strip() for part in line.split("|")], []))
    return found


def parse_row(line: str) -> Row:
    match = ROW.fullmatch(line)
    assert match, line
    name, kind, requires, multiple, mandatory, default = match.groups()
    return Row(name, kind, requires or "", bool(multiple), bool(mandatory), default)


# By name: (descriptor, code, archetypes), and the rows of the fields.
COMPOSITES = {
    head[0]: (head[1:], [parse_row(line) for line in rows]) for head, rows in blocks(standard.COMPOSITES)
}
# By name: (source, archetypes, then descriptor and code of a section), and the choices.
RESTRICTED = {
    head[0]: (head[1:], dict(line.strip().split(" = ") for line in rows))
    for head, rows in blocks(standard.RESTRICTED)
}
REGISTRIES: list[Registry] = [PERFORMATIVES, SASL_PERFORMATIVES, TYPES]
CLASSES: dict[str, type[Any]] = {
    plan_of(cls).name: cls
    for cls in [*(cls for registry in REGISTRIES for cls in registry), messaging.Header, messaging.Properties]
}


def class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))


def default_of(field: Field) -> str | None:
    """A default as the standard writes it."""
    if field.default is None or field.multiple:
        return None
    if isinstance(field.default, bool):
        return str(field.default).lower()
    if isinstance(field.default, IntEnum):
        return field.default.name.lower().replace("_", "-")
    return str(field.default)


def test_encodings_are_those_of_the_standard() -> None:
    rows = [line.split() for line in standard.ENCODINGS.strip().splitlines()]
    assert {
        int(code, 16): codes.Encoding(kind, "" if name == "-" else name, category, int(width))
        for code, kind, name, category, width in rows
    } == codes.ENCODINGS


def test_declarations_are_all_the_composites_of_the_standard() -> None:
    assert len(COMPOSITES) == 33
    assert {head[0] for head, _ in COMPOSITES.values()} == set(CLASSES)


@pytest.mark.parametrize("name", COMPOSITES)
def test_composite_has_the_descriptor_and_archetypes_of_the_standard(name: str) -> None:
    (symbol, code, provides), _ = COMPOSITES[name]
    plan = plan_of(CLASSES[symbol])
    assert plan.cls.__name__ == class_name(name)
    assert plan.code == int(code, 16)
    assert plan.provides == set(filter(None, provides.split(", ")))


@pytest.mark.parametrize("name", COMPOSITES)
def test_composite_has_the_fields_of_the_standard_in_order(name: str) -> None:
    (symbol, *_), rows = COMPOSITES[name]
    assert [
        Row(field.wire_name, field.type, field.requires, field.multiple, field.mandatory, default_of(field))
        for field in plan_of(CLASSES[symbol]).fields
    ] == rows


def providing(archetype: str) -> set[str]:
    return {head[0] for head, _ in COMPOSITES.values() if archetype in head[2].split(", ")}


def test_registries_hold_what_each_layer_may_carry() -> None:
    assert {plan_of(cls).name for cls in PERFORMATIVES} == providing("frame")
    assert {plan_of(cls).name for cls in SASL_PERFORMATIVES} == providing("sasl-frame")
    apart = providing("frame") | providing("sasl-frame") | providing("section")
    assert {plan_of(cls).name for cls in TYPES} == set(CLASSES) - apart


def test_sections_are_those_of_the_standard() -> None:
    declared = {each.name: int(each.code) for each in vars(messaging).values() if isinstance(each, Section)}
    assert declared == {head[2]: int(head[3], 16) for head, _ in RESTRICTED.values() if head[2:]}
    assert len(declared) == 7


ENUMS: dict[str, type[IntEnum]] = {
    "sender-settle-mode": transport.SenderSettleMode,
    "receiver-settle-mode": transport.ReceiverSettleMode,
    "terminus-durability": messaging.TerminusDurability,
    "sasl-code": security.SaslCode,
}


@pytest.mark.parametrize("name", ENUMS)
def test_enum_has_the_choices_of_the_standard(name: str) -> None:
    (source, *_), choices = RESTRICTED[name]
    members = {member.name.lower().replace("_", "-"): str(int(member)) for member in ENUMS[name]}
    assert members == choices
    field_type: FieldType = vars(ENUMS[name])["__amqp_field__"]
    assert {codes.ENCODINGS[code].type for code in field_type.readers} == {source}


OPEN_SETS: dict[str, type[Any]] = {
    "terminus-expiry-policy": messaging.ExpiryPolicy,
    "std-dist-mode": messaging.DistributionMode,
    "txn-capability": transactions.TxnCapability,
}


@pytest.mark.parametrize("name", OPEN_SETS)
def test_open_set_has_a_symbol_for_each_choice_of_the_standard(name: str) -> None:
    _, choices = RESTRICTED[name]
    constants = {key: value for key, value in vars(OPEN_SETS[name]).items() if key.isupper()}
    assert {key.lower().replace("_", "-"): value for key, value in constants.items()} == choices
    assert all(isinstance(value, Symbol) for value in constants.values())


def test_role_is_the_bool_of_the_standard() -> None:
    choices = {name: value == "true" for name, value in RESTRICTED["role"][1].items()}
    assert choices == {"sender": transport.Role.SENDER, "receiver": transport.Role.RECEIVER}


def test_conditions_are_those_of_the_standard() -> None:
    sets = [choices for head, choices in RESTRICTED.values() if head[1] == "error-condition"]
    assert {str(condition) for condition in Condition} == {
        value for choices in sets for value in choices.values()
    }


def test_names_of_a_filter_set_are_sent_as_symbols() -> None:
    octets = bytes(encode(messaging.Source(filter={"f": None})))
    assert b"\xa3\x01f\x40" in octets


def test_archetypes_take_the_primitive_types_of_the_standard() -> None:
    primitives: dict[str, set[str]] = {}
    for (source, provides, *_), _ in RESTRICTED.values():
        primitives.setdefault(provides, set()).add(source)
    for cls in CLASSES.values():
        for field in plan_of(cls).fields:
            if field.type == "*" and field.requires != "global-tx-id":  # nothing in the standard provides one
                taken = {codes.ENCODINGS[code].type for code in field.readers if code} - {"null"}
                assert taken == primitives.get(field.requires, set()), field.wire_name


def source_of(name: str) -> str:
    """The primitive type under a restricted type."""
    while name in RESTRICTED:
        name = RESTRICTED[name][0][0]
    return name


def test_fields_take_every_encoding_of_their_type_and_no_other() -> None:
    for cls in CLASSES.values():
        for field in plan_of(cls).fields:
            if field.type in ("*", "error"):
                continue
            kinds = {source_of(field.type)} | ({"array"} if field.multiple else set())
            kinds |= set() if field.mandatory and not field.multiple else {"null"}
            wanted = {code for code, row in codes.ENCODINGS.items() if row.type in kinds}
            assert set(field.readers) == wanted, f"{cls.__name__}.{field.name}"


def test_definitions_are_those_of_the_standard() -> None:
    modules = (transport, messaging, security)
    for line in standard.DEFINITIONS.strip().splitlines():
        name, value = line.split(" = ")
        declared = [
            vars(module)[key] for module in modules if (key := name.replace("-", "_")) in vars(module)
        ]
        assert declared == [int(value)], name
    assert frames.MIN_MAX_FRAME_SIZE == transport.MIN_MAX_FRAME_SIZE
