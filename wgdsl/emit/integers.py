"""Integer polynomials as C++ expressions on `int`. Division and remainder floor, also for negative numerators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..diagnostics.model import InternalError
from ..program.poly import Atom, Factor, Monomial, Poly, Symbol

# how tightly a text binds
SHIFT, SUM, PRODUCT, PRIMARY = range(4)


@dataclass(frozen=True)
class Integers:
    """How symbols are spelled, which of them cannot be negative, and who supplies `ptx` helpers by name. wide: all is computed
    in 64 bits."""

    symbols: Mapping[str, str]
    natural: frozenset[str]
    helper: Callable[[str], str] = field(compare=False)
    elements: Mapping[Atom, str] = field(default_factory=dict)
    wide: bool = False

    def binding(self, symbol: str, text: str, natural: bool) -> Integers:
        """The same with one more symbol, or one that hides an outer one."""
        marked = self.natural | {symbol} if natural else self.natural - {symbol}
        return replace(self, symbols={**self.symbols, symbol: text}, natural=marked)

    def with_element(self, a: Atom, text: str) -> Integers:
        """The same with an element of a tensor."""
        return replace(self, elements={**self.elements, a: text})

    def text(self, p: Poly, tight: int = SHIFT) -> str:
        """C++ text, in brackets if it binds less tightly than asked."""
        text, binds = self._sum(p)
        return text if binds >= tight else f"({text})"

    def is_natural(self, p: Poly) -> bool:
        """Whether the value is provably not negative."""
        return all(c >= 0 and all(self._natural_factor(f) for f in m) for m, c in p.terms)

    def _natural_factor(self, f: Factor) -> bool:
        if isinstance(f, Symbol):
            return f.name in self.natural
        if f.op == "element":
            return False
        if f.op == "max":
            return any(self.is_natural(a) for a in f.args)
        if f.op == "mod":
            return self.is_natural(f.args[1])
        return all(self.is_natural(a) for a in f.args)

    def _sum(self, p: Poly) -> tuple[str, int]:
        if not p.terms:
            return self._number(0), PRIMARY
        ordered = sorted(p.terms, key=lambda t: (not t[0], t[1] < 0))
        first, binds = self._term(*ordered[0])
        if len(ordered) == 1:
            return first, binds
        out = first if binds >= SUM else f"({first})"
        for m, c in ordered[1:]:
            text, binds = self._term(m, abs(c))
            out += (" - " if c < 0 else " + ") + (text if binds > SUM else f"({text})")
        return out, SUM

    def _term(self, m: Monomial, c: int) -> tuple[str, int]:
        if not m:
            return self._number(c), PRIMARY if c >= 0 else SUM
        if len(m) == 1 and c == 1:
            return self._factor(m[0])
        parts = []
        for f in m:
            text, binds = self._factor(f)
            parts.append(text if binds >= PRIMARY else f"({text})")
        if abs(c) != 1:
            parts.append(self._number(abs(c)))
        return ("-" if c < 0 else "") + " * ".join(parts), PRODUCT if c > 0 else SUM

    def _factor(self, f: Factor) -> tuple[str, int]:
        if isinstance(f, Symbol):
            if f.name not in self.symbols:
                raise InternalError(f"nothing binds the integer {f.name!r} where the role program uses it")
            return self._cast(self.symbols[f.name]), PRIMARY
        if f.op == "element":
            return self._cast(self.elements[f]), PRIMARY
        if f.op in ("min", "max"):
            out = self.text(f.args[0])
            for a in f.args[1:]:
                out = f"{f.op}({out}, {self.text(a)})"
            return out, PRIMARY
        return self._divide(f)

    def _divide(self, f: Atom) -> tuple[str, int]:
        a, b = f.args
        divisor = b.constant
        if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
            if f.op == "floordiv":
                return f"{self.text(a, SUM + 1)} >> {divisor.bit_length() - 1}", SHIFT
            return f"{self.text(a, SUM + 1)} & {divisor - 1}", SHIFT
        if self.is_natural(a) and self.is_natural(b):
            sign = "/" if f.op == "floordiv" else "%"
            return f"{self.text(a, PRODUCT)} {sign} {self.text(b, PRIMARY)}", PRODUCT
        name = self.helper("floor_div" if f.op == "floordiv" else "floor_mod")
        return self._cast(f"{name}({self.text(a)}, {self.text(b)})"), PRIMARY

    def _number(self, c: int) -> str:
        return f"{c}LL" if self.wide else str(c)

    def _cast(self, text: str) -> str:
        return f"(long long){text}" if self.wide else text
