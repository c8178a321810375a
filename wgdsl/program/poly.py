"""Integer polynomials over named symbols (dims, indices, tile origins): extents, access maps, trip counts.

Exact and hashable. Equal whatever the order of terms, but terms stay in the order in which they were first written: texts read
as the user wrote them, and no name decides an order. `floordiv`, `min` and `max` are opaque atoms, so that a trip count such as
`min(N, i0 + 128 + N - M) // 80` is one value that can be printed, evaluated and emitted. So is `len[b]`, an element of a tensor
of integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce


@dataclass(frozen=True)
class Symbol:
    """A named integer."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Atom:
    """An opaque integer operation. op: floordiv, mod, min, max, element: that of `tensor` at the arguments."""

    op: str
    args: tuple[Poly, ...]
    tensor: str = ""

    def __str__(self) -> str:
        if self.op == "element":
            return f"{self.tensor}[{', '.join(map(str, self.args))}]"
        if self.op in ("floordiv", "mod"):
            return f"({self.args[0]}) {'/' if self.op == 'floordiv' else '%'} ({self.args[1]})"
        return f"{self.op}({', '.join(map(str, self.args))})"


Factor = Symbol | Atom
Monomial = tuple[Factor, ...]


def _sorted(m: Monomial) -> Monomial:
    return m if len(m) < 2 else tuple(sorted(m, key=str))


@dataclass(frozen=True, eq=False)
class Poly:
    """Sum of integer coefficients times products of factors; `terms` holds no zero and no product twice."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @cached_property
    def _identity(self) -> frozenset[tuple[Monomial, int]]:
        return frozenset((_sorted(m), c) for m, c in self.terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    # construction
    @staticmethod
    def of(value: int | str | Poly) -> Poly:
        if isinstance(value, Poly):
            return value
        if isinstance(value, int):
            return Poly((((), int(value)),)) if value else Poly()
        return Poly((((Symbol(value),), 1),))

    @staticmethod
    def _make(terms: Iterable[tuple[Monomial, int]]) -> Poly:
        """Gather equal products, each as it was first written."""
        sums: dict[Monomial, int] = {}
        written: dict[Monomial, Monomial] = {}
        for m, c in terms:
            key = _sorted(m)
            written.setdefault(key, m)
            sums[key] = sums.get(key, 0) + c
        return Poly(tuple((written[k], c) for k, c in sums.items() if c))

    def in_order(self) -> Poly:
        """The same with terms and factors ordered by their text."""
        return Poly(tuple(sorted(((_sorted(m), c) for m, c in self.terms), key=lambda t: (len(t[0]), str(t[0])))))

    # algebra
    def __add__(self, other: int | Poly) -> Poly:
        return Poly._make((*self.terms, *Poly.of(other).terms))

    __radd__ = __add__

    def __neg__(self) -> Poly:
        return Poly(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: int | Poly) -> Poly:
        return self + -Poly.of(other)

    def __rsub__(self, other: int | Poly) -> Poly:
        return Poly.of(other) - self

    def __mul__(self, other: int | Poly) -> Poly:
        return Poly._make((m + n, c * d) for m, c in self.terms for n, d in Poly.of(other).terms)

    __rmul__ = __mul__

    # views
    @property
    def number(self) -> int:
        """What stands in the sum by itself."""
        return dict(self.terms).get((), 0)

    @property
    def constant(self) -> int | None:
        """The value if it is a plain number, else None."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def bare(self) -> str | None:
        """The symbol's name if this is exactly one symbol, else None."""
        if len(self.terms) != 1 or self.terms[0][1] != 1 or len(self.terms[0][0]) != 1:
            return None
        factor = self.terms[0][0][0]
        return factor.name if isinstance(factor, Symbol) else None

    def symbols(self) -> frozenset[str]:
        found: set[str] = set()
        for m, _ in self.terms:
            for f in m:
                if isinstance(f, Symbol):
                    found.add(f.name)
                else:
                    found.update(*(a.symbols() for a in f.args))
        return frozenset(found)

    def coefficient(self, name: str) -> Poly | None:
        """Coefficient of a symbol that occurs linearly; zero if absent; None if it isn't linear."""
        out: list[tuple[Monomial, int]] = []
        target = Symbol(name)
        for m, c in self.terms:
            count = sum(f == target for f in m)
            if any(isinstance(f, Atom) and name in Poly(((((f,)), 1),)).symbols() for f in m) or count > 1:
                return None
            if count:
                out.append((tuple(f for f in m if f != target), c))
        return Poly._make(out)

    def without(self, names: Iterable[str]) -> Poly:
        """The terms that hold none of the symbols."""
        names = set(names)
        return Poly(tuple((m, c) for m, c in self.terms if not names & Poly(((m, 1),)).symbols()))

    def substitute(self, values: Mapping[str, int | Poly]) -> Poly:
        def factor(f: Factor) -> Poly:
            if isinstance(f, Symbol):
                return Poly.of(values[f.name]) if f.name in values else Poly.of(f.name)
            args = [a.substitute(values) for a in f.args]
            return element(f.tensor, args) if f.op == "element" else _ATOMS[f.op](*args)

        total = Poly()
        for m, c in self.terms:
            total = total + reduce(lambda a, f: a * factor(f), m, Poly.of(c))
        return total

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The integer at given symbols. Raises KeyError for a missing one. `len[]` is a function that gives the elements of a
        tensor `len` at indices."""

        def factor(f: Factor) -> int:
            if isinstance(f, Symbol):
                return int(values[f.name])
            args = [a.evaluate(values) for a in f.args]
            return values[elements_name(f.tensor)](*args) if f.op == "element" else _INTS[f.op](args)  # type: ignore[operator]

        return sum(c * reduce(lambda a, f: a * factor(f), m, 1) for m, c in self.terms)

    def divisible_by(self, n: int) -> bool:
        """Whether every coefficient is a multiple of n (so the value is, whatever the symbols)."""
        return all(c % n == 0 for _, c in self.terms)

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        # positive terms first, constants last, so that `N - M` reads as written
        ordered = sorted(self.terms, key=lambda t: (not t[0], t[1] < 0))
        out = ""
        for m, c in ordered:
            whole = len(m) == 1 and (c == 1 or (c == -1 and bool(out)))  # else a quotient would take what stands before it
            body = " * ".join(str(f) if whole or isinstance(f, Symbol) or f.op in CALLS else f"({f})" for f in m)
            text = body if m and abs(c) == 1 else f"{abs(c)} * {body}" if m else str(abs(c))
            out += (f" - {text}" if c < 0 else f" + {text}") if out else (f"-{text}" if c < 0 else text)
        return out


def compiled(polys: Iterable[Poly]) -> Callable[[Mapping[str, int]], tuple[int, ...]]:
    """What gives the values of several polynomials at given symbols, a hundred times as fast as `evaluate`. For those that are
    needed again and again: making it takes longer than evaluating them once."""
    parts = [python(p) for p in polys]
    return eval(f"lambda at: ({''.join(f'{part}, ' for part in parts)})", {"min": min, "max": max})


def python(p: Poly) -> str:
    """A polynomial as a Python expression, its symbols looked up in `at`."""

    def factor(f: Factor) -> str:
        if isinstance(f, Symbol):
            return f"at[{f.name!r}]"
        args = [python(a) for a in f.args]
        if f.op == "element":
            return f"at[{elements_name(f.tensor)!r}]({', '.join(args)})"
        return f"{f.op}({', '.join(args)})" if f.op in ("min", "max") else f" {_OPERATORS[f.op]} ".join(args).join("()")

    terms = [" * ".join([*([] if c == 1 and m else [str(c)]), *map(factor, m)]) for m, c in p.terms]
    return f"({' + '.join(terms) or 0})"


CALLS = ("min", "max", "element")  # operations whose text needs no brackets
_OPERATORS = {"floordiv": "//", "mod": "%"}
_INTS: dict[str, Callable[[list[int]], int]] = {
    "floordiv": lambda a: a[0] // a[1],
    "mod": lambda a: a[0] % a[1],
    "min": min,
    "max": max,
}


def floordiv(a: int | Poly, b: int | Poly) -> Poly:
    """Floor division; exact where the coefficients divide."""
    a, b = Poly.of(a), Poly.of(b)
    if a.constant is not None and b.constant is not None:
        return Poly.of(a.constant // b.constant)
    if b.constant == 1:
        return a
    if b.constant and a.divisible_by(b.constant):
        return Poly(tuple((m, c // b.constant) for m, c in a.terms))
    return Poly((((Atom("floordiv", (a, b)),), 1),))


def mod(a: int | Poly, b: int | Poly) -> Poly:
    """Remainder with the sign of the divisor."""
    a, b = Poly.of(a), Poly.of(b)
    if a.constant is not None and b.constant is not None:
        return Poly.of(a.constant % b.constant)
    if b.constant == 1 or (b.constant and a.divisible_by(b.constant)):
        return Poly()
    return Poly((((Atom("mod", (a, b)),), 1),))


def ceildiv(a: int | Poly, b: int | Poly) -> Poly:
    """Ceiling division by what is positive."""
    return floordiv(Poly.of(a) + b - 1, b)


def _extreme(op: str, args: tuple[int | Poly, ...]) -> Poly:
    flat: list[Poly] = []
    for p in (Poly.of(x) for x in args):
        if p not in flat:
            flat.append(p)
    numbers = [p.constant for p in flat if p.constant is not None]
    rest = [p for p in flat if p.constant is None]
    if numbers:
        rest.append(Poly.of(min(numbers) if op == "min" else max(numbers)))
    return rest[0] if len(rest) == 1 else Poly((((Atom(op, tuple(rest)),), 1),))


def minimum(*args: int | Poly) -> Poly:
    """The least of the arguments; numbers among them are folded."""
    return _extreme("min", args)


def maximum(*args: int | Poly) -> Poly:
    """The largest of the arguments; numbers among them are folded."""
    return _extreme("max", args)


def element(tensor: str, indices: Iterable[int | Poly]) -> Poly:
    """An element of a tensor of integers."""
    return Poly((((Atom("element", tuple(map(Poly.of, indices)), tensor),), 1),))


def elements_name(tensor: str) -> str:
    """Among the values of symbols, what gives the elements of a tensor."""
    return f"{tensor}[]"


def elements(p: Poly) -> Iterator[Atom]:
    """The elements of tensors that a polynomial reads, those at whose indices others stand first."""
    for f in (f for m, _ in p.terms for f in m if isinstance(f, Atom)):
        for a in f.args:
            yield from elements(a)
        if f.op == "element":
            yield f


def with_elements(p: Poly, of: Callable[[Atom], Poly]) -> Poly:
    """The same with something else for each element."""

    def factor(f: Factor) -> Poly:
        if isinstance(f, Symbol):
            return Poly.of(f.name)
        return of(f) if f.op == "element" else _ATOMS[f.op](*(with_elements(a, of) for a in f.args))

    return sum((reduce(lambda a, f: a * factor(f), m, Poly.of(c)) for m, c in p.terms), Poly())


_ATOMS: dict[str, Callable[..., Poly]] = {"floordiv": floordiv, "mod": mod, "min": minimum, "max": maximum}
