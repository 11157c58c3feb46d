# cython: language_level=3
"""Numbers of the standard, for the compiled readers and writer."""

cdef enum Constructor:  # 1.6: those of the usual values
    DESCRIBED = 0x00
    NULL_VALUE = 0x40
    TRUE = 0x41
    FALSE = 0x42
    SMALL_ULONG = 0x53
    SMALL_LONG = 0x55
    ULONG = 0x80
    LONG = 0x81
    DOUBLE = 0x82
    TIMESTAMP = 0x83
    BINARY8 = 0xA0
    STRING8 = 0xA1
    SYMBOL8 = 0xA3
    BINARY32 = 0xB0
    STRING32 = 0xB1
    LIST8 = 0xC0
    MAP8 = 0xC1

cdef enum Section:  # 3.2: the descriptors
    FIRST_SECTION = 0x70
    PROPERTIES = 0x73
    APPLICATION_PROPERTIES = 0x74
    DATA = 0x75
    VALUE = 0x77
    LAST_SECTION = 0x78

cdef enum:  # types of the fields of the properties (3.2.4)
    ID = 0
    BINARY = 1
    STRING = 2
    SYMBOL = 3
    TIME = 4
    NUMBER = 5

cdef extern from *:
    """
    static const char FIELD_TYPES[] = {0, 1, 2, 2, 2, 0, 3, 3, 4, 4, 2, 5, 2};
    """
    const char FIELD_TYPES[13]

cdef enum:
    PROPERTIES_FIELDS = 13
    SECTION_HEAD = 6  # octets of a section before its first item: 00, descriptor, constructor, size and count
