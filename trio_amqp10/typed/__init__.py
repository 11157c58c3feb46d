"""Your own classes as AMQP values: declare once, send objects, receive objects (1.3, 1.4).

Declare
-------

A registry knows your types. A dataclass becomes a described type with a name, and a number of your
own domain; its fields travel as a list, in order, as those of the standard's types do::

    types = amqp.Registry()

    @types.composite("com.example:line:list", 0x0BAD_0000_0002)
    @dataclass
    class Line:
        article: str
        count: amqp.uint = 1
        price: Decimal | None = None

    @types.composite("com.example:order:list", 0x0BAD_0000_0001)
    @dataclass
    class Order:
        id: UUID
        placed: datetime
        lines: list[Line]

A class that is not declared travels too, as a plain map that any peer can read: dataclasses and
TypedDicts by name, NamedTuples as a list::

    @dataclass
    class Person:
        name: str
        born: datetime
        tags: list[str] = field(default_factory=list)

Send and receive
----------------

::

    await sender.send(order)                              # a composite is a value like any other
    await sender.send(types.message(person, subject="hello"))

    order = types.read(delivery.message, Order)           # type checkers know: an Order
    either = types.read(delivery.message, Order | Refund) # the descriptor decides
    anything = types.read(delivery.message)               # what the descriptor says, or the plain value

    value = types.to_value(order)                         # the same without a message
    order = types.from_value(Order, value)

What does not fit is said with its path, ``Order.lines[2].count: expected uint, got string 'x'``:
``LocalProtocolError`` for an object that cannot be sent, and ``RemoteProtocolError`` with condition
``amqp:invalid-field`` for what a peer sent, which suits ``delivery.reject(error.condition, error.description)``.

What an annotation means
------------------------

====================================  ===========================================================
``bool``, ``bytes``, ``UUID``         boolean, binary, uuid
``int``, ``float``, ``str``           sent as long, double, string; read from any integer, any
                                      binary floating point, string, symbol or char
``datetime``, ``Decimal``             timestamp (aware; milliseconds), decimal128 (read: any decimal)
``amqp.ulong``, ``amqp.symbol``, ...  exactly that type, as a plain int, float or str
``amqp.ULong``, ``amqp.Symbol``, ...  exactly that type, as the class that remembers it
``list[T]``, ``set[T]``, ``deque``    a list; read from an array too
``tuple[T, ...]``, ``tuple[A, B]``    a list; a list of two
``dict[K, V]``                        a map
``Mapping[K, V]``, ``PairMap[K, V]``  a map, also with keys that no dict can hold
``amqp.Array[amqp.ulong]``            an array
``amqp.Multiple[amqp.symbol]``        null, one, or an array, as in fields of the standard
``T | None``                          null
``A | B``                             told apart by descriptor, or by type
an ``Enum``, ``Literal["a", 1]``      their values; ``Annotated[Colour, amqp.ubyte]`` says the type
a dataclass, NamedTuple, TypedDict    as declared; generic ones too: ``Page[Order]``
an abstract class                     any composite that is a subclass of it
``object``, ``Any``                   any value; composites are recognised
====================================  ===========================================================

Fields
------

* ``Annotated[int, Key("unit-price")]`` or ``field(metadata={"amqp": "unit-price"})`` names the key
  in a map; ``rename=`` of the registry or of one class makes keys of names.
* ``others: Annotated[dict[str, Any], REST]`` holds the keys of a map that are no field's. Without it
  they are ignored; ``unknown="refuse"`` makes them a fault. So too for further elements of a list.
* null, or nothing, reads as None where the annotation has None, else as the default, else is a fault.
* ``field(init=False)`` does not travel. ``__post_init__`` may raise ValueError: the value does not fit.
* ``encoding="map"`` sends fields by name under the descriptor, ``encoding="value"`` the only field itself.

Inheritance: fields of bases come first; an object is written as its own class says; an annotation
takes the subclasses that are composites. Other people's classes: ``types.adapt(Path, str, str, Path)``.

Knows nothing of links and frames: the codec is between objects and the values of ``wire.values``.
"""

from __future__ import annotations

from .field_markers import REST, Key
from .registry import Registry

__all__ = ["REST", "Key", "Registry"]
