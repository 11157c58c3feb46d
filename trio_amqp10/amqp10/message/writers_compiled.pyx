# cython: language_level=3, boundscheck=False, wraparound=False
"""The fast writer of ``writers_shortcut``, compiled (3.2): an optional part of the compiled wheel.

It has the same result and the same tests, and calls that function for an unusual message. What stands before the
body is written into an array, so each write is after a question to ``has_room``.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_AS_DOUBLE
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from trio_amqp10.amqp10.wire.shortcut_memos import ENCODED_SYMBOLS
from trio_amqp10.amqp10.wire.values import Timestamp, ULong

from .writers_shortcut import FAULTS, HEADERS, general_section, usual_payload as other_payload

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
    unsigned long long PyLong_AsUnsignedLongLong(object number) except? 0xFFFFFFFFFFFFFFFF

from .compiled_names cimport *

cdef enum:
    BODY_HEAD = 8  # the most octets of a body before its content: 00, descriptor, constructor, size
    ROOM = 2048  # octets that a usual message has before its body


cdef struct Writer:
    unsigned char octets[ROOM]
    Py_ssize_t size


cdef inline bint has_room(Writer *out, Py_ssize_t size) noexcept nogil:
    return out.size + size <= ROOM


cdef inline void put(Writer *out, int octet) noexcept nogil:
    """Write an octet, where ``has_room`` was asked for."""
    out.octets[out.size] = <unsigned char>octet
    out.size += 1


cdef inline void put64(Writer *out, int constructor, uint64_t number) noexcept nogil:
    """Write a value of eight octets, where ``has_room`` was asked for nine."""
    cdef int place
    put(out, constructor)
    for place in range(8):
        put(out, <int>(number >> (56 - 8 * place) & 0xFF))


cdef inline bint put_octets(Writer *out, bytes octets) noexcept:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(octets)
    if not has_room(out, size):
        return False
    memcpy(out.octets + out.size, PyBytes_AS_STRING(octets), size)
    out.size += size
    return True


cdef inline bint put_string(Writer *out, object text) except -1:
    """Write a short string; whether it is short, and there is room."""
    cdef Py_ssize_t size
    cdef const char *octets
    # Python keeps the octets of a text that is not ASCII as long as the text: those of a long one are not asked for.
    if PyUnicode_GET_LENGTH(text) > 255:
        return False
    octets = PyUnicode_AsUTF8AndSize(text, &size)
    if size > 255 or not has_room(out, size + 2):
        return False
    put(out, STRING8)
    put(out, <int>size)
    memcpy(out.octets + out.size, octets, size)
    out.size += size
    return True


cdef inline Py_ssize_t begin_section(Writer *out, int section, int constructor) noexcept nogil:
    """Write the head of a section, where ``has_room`` was asked for; where its size and count are to stand."""
    put(out, DESCRIBED)
    put(out, SMALL_ULONG)
    put(out, section)
    put(out, constructor)
    out.size += 2
    return out.size - 2


cdef inline bint end_section(Writer *out, Py_ssize_t at, Py_ssize_t count) noexcept nogil:
    """Write size and count; whether both are of one octet."""
    cdef Py_ssize_t size = out.size - at - 1
    if size > 255 or count > 255:
        return False
    out.octets[at] = <unsigned char>size
    out.octets[at + 1] = <unsigned char>count
    return True


cdef bint put_properties(Writer *out, list fields) except -1:
    cdef Py_ssize_t at
    cdef int place, type, count = 0
    cdef object value
    if len(fields) != PROPERTIES_FIELDS or not has_room(out, SECTION_HEAD + PROPERTIES_FIELDS):
        return False
    at = begin_section(out, PROPERTIES, LIST8)
    for place in range(PROPERTIES_FIELDS):
        value = fields[place]
        if value is None:
            continue
        if not has_room(out, PROPERTIES_FIELDS):
            return False
        while count < place:
            put(out, NULL_VALUE)
            count += 1
        type = FIELD_TYPES[place]
        if type == SYMBOL:
            if not put_octets(out, ENCODED_SYMBOLS[value]):
                return False
        elif value.__class__ is str and (type == STRING or type == ID):
            if not put_string(out, value):
                return False
        elif value.__class__ is ULong and value > 255 and has_room(out, 9):
            put64(out, ULONG, PyLong_AsUnsignedLongLong(value))
        elif value.__class__ is Timestamp and type == TIME and has_room(out, 9):
            put64(out, TIMESTAMP, <uint64_t><int64_t>value)
        else:
            return False
        count += 1
    if count == 0:
        out.size = at - 4
        return True
    return end_section(out, at, count)


cdef bint put_application_properties(Writer *out, dict pairs) except -1:
    cdef Py_ssize_t at
    cdef object key, value
    cdef int overflow = 0
    cdef long long number
    if not has_room(out, SECTION_HEAD):
        return False
    at = begin_section(out, APPLICATION_PROPERTIES, MAP8)
    for key, value in pairs.items():
        if key.__class__ is not str or not put_string(out, key) or not has_room(out, 9):
            return False
        if value.__class__ is str:
            if not put_string(out, value):
                return False
        elif value.__class__ is int:
            number = PyLong_AsLongLongAndOverflow(value, &overflow)
            if overflow:
                return False
            if -128 <= number <= 127:
                put(out, SMALL_LONG)
                put(out, <int>(number & 0xFF))
            else:
                put64(out, LONG, <uint64_t>number)
        elif value.__class__ is bool:
            put(out, TRUE if value is True else FALSE)
        elif value.__class__ is float:
            put_double(out, PyFloat_AS_DOUBLE(value))
        else:
            return False
    return end_section(out, at, 2 * len(pairs))


cdef inline void put_double(Writer *out, double number) noexcept nogil:
    cdef uint64_t bits
    memcpy(&bits, &number, 8)
    put64(out, DOUBLE, bits)


cdef bint put_before_body(Writer *out, list sections) except -1:
    cdef int place
    if sections[0] is not None and not put_octets(out, HEADERS[tuple(sections[0])]):
        return False
    for place in range(1, 3):
        if sections[place] and not put_octets(out, general_section(place, sections[place])):
            return False
    if sections[3] is not None and not put_properties(out, sections[3]):
        return False
    if not sections[4]:
        return True
    return sections[4].__class__ is dict and put_application_properties(out, sections[4])


def usual_payload(list sections not None):
    """Do as ``writers_shortcut.usual_payload``."""
    cdef Writer out
    cdef Py_ssize_t size
    cdef int shift
    cdef bytes made
    cdef char *to
    cdef object body
    out.size = 0
    try:
        body = sections[5]
        if sections[6] or body.__class__ is not bytes or not put_before_body(&out, sections):
            return other_payload(sections)
    except FAULTS:
        return None
    size = PyBytes_GET_SIZE(body)
    if not has_room(&out, BODY_HEAD) or size > 0xFFFFFFFF:
        return other_payload(sections)
    put(&out, DESCRIBED)
    put(&out, SMALL_ULONG)
    put(&out, DATA)
    if size < 256:
        put(&out, BINARY8)
        put(&out, <int>size)
    else:
        put(&out, BINARY32)
        for shift in range(24, -8, -8):
            put(&out, <int>(size >> shift & 0xFF))
    made = PyBytes_FromStringAndSize(NULL, out.size + size)
    to = PyBytes_AS_STRING(made)
    memcpy(to, out.octets, out.size)
    memcpy(to + out.size, PyBytes_AS_STRING(body), size)
    return made
