"""The decisions of a generator as a hypothesis strategy."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.fuzz.choices import Choices


@st.composite
def choices(draw: st.DrawFn) -> Choices:
    return Choices(lambda n: draw(st.integers(0, n - 1)))
