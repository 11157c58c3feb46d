# cython: language_level=3, boundscheck=False, wraparound=False
"""The fast readers of ``readers_shortcut``, compiled (3.2): an optional part of the compiled wheel.

Each function has the result of the function that it names, and the same tests. For an unusual value it calls
that function or returns None. Octets are read through a pointer, so each read is after a comparison with ``end``.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from trio_amqp10.amqp10.wire.decode_budget import NO_BUDGET
from trio_amqp10.amqp10.wire.readers import SCALARS
from trio_amqp10.amqp10.wire.shortcut_memos import READ_FAULTS, SYMBOLS
from trio_amqp10.amqp10.wire.values import Timestamp, ULong

from .header_and_properties_generated import read_properties as read_other_properties

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *octets, Py_ssize_t size, const char *errors)

ctypedef const unsigned char *Octets

from .compiled_names cimport *

_new_int = int.__new__


cdef inline uint64_t get64(Octets at) noexcept nogil:
    cdef uint64_t number = 0
    cdef int place
    for place in range(8):
        number = number << 8 | at[place]
    return number


cdef inline double get_double(Octets at) noexcept nogil:
    cdef uint64_t bits = get64(at)
    cdef double number
    memcpy(&number, &bits, 8)
    return number


cdef inline bint is_short(Octets octets, bytes buf, Py_ssize_t start, Py_ssize_t end, int constructor) noexcept:
    """Whether a whole section is there, of this constructor under a ``smallulong``."""
    return (
        0 <= start
        and start + SECTION_HEAD <= end
        and end <= PyBytes_GET_SIZE(buf)
        and octets[start + 1] == SMALL_ULONG
        and octets[start + 3] == constructor
    )


cdef inline object text_at(Octets octets, Py_ssize_t pos, Py_ssize_t size):
    return PyUnicode_DecodeUTF8(<const char *>octets + pos, size, NULL)


def read_properties(bytes buf not None, Py_ssize_t start, Py_ssize_t end):
    """Do as ``header_and_properties_generated.read_properties``."""
    cdef Octets octets = <Octets>PyBytes_AS_STRING(buf)
    cdef Py_ssize_t pos = start + SECTION_HEAD, size
    cdef int code, place, count, type
    cdef list fields
    if not is_short(octets, buf, start, end, LIST8) or octets[start + 5] > PROPERTIES_FIELDS:
        return None
    count = octets[start + 5]
    fields = [None] * PROPERTIES_FIELDS
    for place in range(count):
        if pos >= end:
            return None
        code = octets[pos]
        if code == NULL_VALUE:
            pos += 1
            continue
        type = FIELD_TYPES[place]
        if code == STRING8 and (type == STRING or type == ID) or code == SYMBOL8 and type == SYMBOL or code == BINARY8 and (type == BINARY or type == ID):
            if pos + 2 > end:
                return None
            size = octets[pos + 1]
            pos += 2
            if pos + size > end:
                return None
            try:
                if code == STRING8:
                    fields[place] = text_at(octets, pos, size)
                elif code == SYMBOL8:
                    fields[place] = SYMBOLS[buf[pos : pos + size]]
                else:
                    fields[place] = buf[pos : pos + size]
            except UnicodeDecodeError:
                return None
            pos += size
        elif code == ULONG and type == ID or code == TIMESTAMP and type == TIME:
            if pos + 9 > end:
                return None
            if type == ID:
                fields[place] = _new_int(ULong, get64(octets + pos + 1))
            else:
                fields[place] = _new_int(Timestamp, <int64_t>get64(octets + pos + 1))
            pos += 9
        else:
            return read_other_properties(buf, start, end)
    return fields if pos == end else None


cdef inline object read_map(bytes buf, Py_ssize_t start, Py_ssize_t end, int key_code):
    cdef Octets octets = <Octets>PyBytes_AS_STRING(buf)
    cdef Py_ssize_t pos = start + SECTION_HEAD, size
    cdef int code
    cdef dict pairs = {}
    cdef object key, value
    if not is_short(octets, buf, start, end, MAP8):
        return None
    try:
        while pos < end:
            if octets[pos] != key_code or pos + 2 > end:
                return None
            size = octets[pos + 1]
            pos += 2
            if pos + size >= end:
                return None
            key = text_at(octets, pos, size) if key_code == STRING8 else SYMBOLS[buf[pos : pos + size]]
            pos += size
            code = octets[pos]
            pos += 1
            if code == STRING8:
                if pos >= end or pos + 1 + octets[pos] > end:
                    return None
                size = octets[pos]
                value = text_at(octets, pos + 1, size)
                pos += 1 + size
            elif code == SMALL_LONG:
                if pos >= end:
                    return None
                value = <int><signed char>octets[pos]
                pos += 1
            elif code == LONG or code == DOUBLE:
                if pos + 8 > end:
                    return None
                value = <int64_t>get64(octets + pos) if code == LONG else get_double(octets + pos)
                pos += 8
            elif code == TRUE:
                value = True
            elif code == FALSE:
                value = False
            else:
                value, pos = SCALARS[code](buf, pos, NO_BUDGET)
            pairs[key] = value
    except READ_FAULTS:
        return None
    return pairs if pos == end and octets[start + 5] == 2 * len(pairs) else None


def read_application_properties(bytes buf not None, Py_ssize_t start, Py_ssize_t end):
    """Do as ``readers_shortcut.read_application_properties``."""
    return read_map(buf, start, end, STRING8)


def read_annotations(bytes buf not None, Py_ssize_t start, Py_ssize_t end):
    """Do as ``readers_shortcut.read_annotations``."""
    return read_map(buf, start, end, SYMBOL8)


section_readers = (read_annotations, read_properties, read_application_properties)


def usual_spans(bytes payload not None):
    """Do as ``readers_shortcut.usual_spans``."""
    cdef Octets octets = <Octets>PyBytes_AS_STRING(payload)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(payload), pos = 0, stop
    cdef int section, constructor, place, last_place = -1
    cdef list spans = [None] * 7
    while pos + 5 <= end:
        section = octets[pos + 2]
        constructor = octets[pos + 3]
        if octets[pos] != DESCRIBED or octets[pos + 1] != SMALL_ULONG:
            return None
        if section < FIRST_SECTION or section > LAST_SECTION:
            return None
        # The three kinds of body, 0x75 to 0x77, share a place.
        place = section - FIRST_SECTION if section < DATA else 6 if section == LAST_SECTION else 5
        if place <= last_place:
            return None
        if constructor == LIST8 or constructor == MAP8 or constructor == BINARY8 or constructor == STRING8:
            stop = pos + 5 + octets[pos + 4]
        elif section == DATA and constructor == BINARY32 or section == VALUE and constructor == STRING32:
            if pos + 8 > end:
                return None
            stop = pos + 8 + (<Py_ssize_t>octets[pos + 4] << 24 | octets[pos + 5] << 16 | octets[pos + 6] << 8 | octets[pos + 7])
            if stop != end:
                return None
        else:
            return None
        if stop > end:
            return None
        spans[place] = (pos, stop)
        if stop == end:
            return spans
        last_place = place
        pos = stop
    return None
