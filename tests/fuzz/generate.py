"""Cases of every kind, by decisions of any source."""

from __future__ import annotations

from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.fuzz.products import products
from tests.fuzz.several import layers, statistics
from tests.fuzz.streams import streams


def case(c: Choices) -> Case:
    return c.pick(streams, products, streams, products, streams, statistics, layers)(c)
