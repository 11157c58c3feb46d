"""Filters of a source: the messages that a link gets (3.5.8).

``parse_filters`` reads the filter-set of an attach. ``Selector`` is one expression of JMS or of the OASIS
draft "AMQP Filter Expressions" (filtex), and can be used without a link. Knows no link and no node.
"""

from .errors import FilterError
from .filterset import FilterSet, capabilities, parse_filters
from .selector import Dialect, Selector

__all__ = ["Dialect", "FilterError", "FilterSet", "Selector", "capabilities", "parse_filters"]
