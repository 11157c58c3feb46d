"""Your own classes as AMQP values: declare, send and receive them (1.3, 1.4).

Declare
-------

A registry knows your types. A dataclass becomes a described type with a name, and a number of your
own domain; its fields are sent as a list, in order, as the fields of the standard's types are::

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

A class that is not declared can be sent too: a dataclass or TypedDict as a plain map that any peer
can read, a NamedTuple as a list::

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
    anything = types.read(delivery.message)               # by the descriptor, or the plain value

    value = types.to_value(order)                         # the same without a message
    order = types.from_value(Order, value)

An error has the path of the wrong value, ``Order.lines[2].count: expected uint, got string 'x'``. An
object that cannot be sent raises ``LocalProtocolError``. A received value that does not match raises
``RemoteProtocolError`` with condition ``amqp:invalid-field``, for ``delivery.reject(error.condition, error.description)``.

The meaning of an annotation
----------------------------

====================================  ===========================================================
``bool``, ``bytes``, ``UUID``         boolean, binary, uuid
``int``, ``float``, ``str``           sent as long, double, string; read from any integer, any
                                      binary floating point, string, symbol or char
``datetime``, ``Decimal``             timestamp (aware; milliseconds), decimal128 (read: any decimal)
``amqp.ulong``, ``amqp.symbol``, ...  exactly that type, as a plain int, float or str
``amqp.ULong``, ``amqp.Symbol``, ...  exactly that type, as its own class
``list[T]``, ``set[T]``, ``deque``    a list; read from an array too
``tuple[T, ...]``, ``tuple[A, B]``    a list; a list of two
``dict[K, V]``                        a map
``Mapping[K, V]``, ``PairMap[K, V]``  a map, also with keys that no dict can hold
``amqp.Array[amqp.ulong]``            an array
``amqp.Multiple[amqp.symbol]``        null, one, or an array, as in fields of the standard
``T | None``                          null
``A | B``                             the descriptor decides, or the type
an ``Enum``, ``Literal["a", 1]``      their values; ``Annotated[Colour, amqp.ubyte]`` sets the type
a dataclass, NamedTuple, TypedDict    as declared; generic ones too: ``Page[Order]``
an abstract class                     any composite that is a subclass of it
``object``, ``Any``                   any value; composites are recognised
====================================  ===========================================================

Fields
------

* ``Annotated[int, Key("unit-price")]`` or ``field(metadata={"amqp": "unit-price"})`` names the key
  in a map; ``rename=`` of the registry or of one class makes keys of names.
* ``others: Annotated[dict[str, Any], REST]`` holds the keys of a map that are not other fields. Without
  it they are ignored, and with ``unknown="refuse"`` they are an error. The same holds for further
  elements of a list.
* null, or a missing field, is read as None if the annotation has None, otherwise as the default;
  without a default it is an error.
* ``field(init=False)`` is not sent. ``__post_init__`` may raise ValueError if the value does not fit.
* ``encoding="map"`` sends fields by name under the descriptor, ``encoding="value"`` the only field itself.

Inheritance: fields of bases come first; an object is written by its own class; an annotation accepts
subclasses that are composites. Classes of other libraries: ``types.adapt(Path, str, str, Path)``.

Knows nothing of links and frames: the codec converts between objects and the values of ``wire.values``.
"""

from __future__ import annotations

from .amqp10.typed.field_markers import REST, Key
from .amqp10.typed.registry import Registry

__all__ = ["REST", "Key", "Registry"]
