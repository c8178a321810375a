"""The catalogue of errors that the analyse step raises: WG02xx, what a program may say.

Each `doc` is the rule, then programs under `fails:` and `works:`; tests compile both, so they can't go stale. A comment
`# with dims D=7` or `# with options act=x` in an example gives what the caller passes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..foundation.source import Span
from .model import Problem


def _quoted(names: tuple[str, ...], joint: str = "or") -> str:
    quoted = [f"`{n}`" for n in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {joint} {quoted[-1]}"


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names) if names else "none"


def _count(n: int, word: str) -> str:
    plural = {"index": "indices", "axis": "axes"}.get(word, word + "s")
    return f"{n} {word if n == 1 else plural}"


@dataclass(frozen=True, kw_only=True)
class UnknownName(Problem):
    """`what`: tensor, name, function, dim, type, reduction. `near`: the closest known names, best first."""

    what: str
    name: str
    near: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    code = "WG0201"
    doc = """Every name in a program is a declared option, dim, type, input, output, `let`, `def`, an earlier tensor,
or an index of the statement that it stands in.

fails:
  program scale_rows {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M, N]
    Y[i, j] = W[i, j] * 2.0
  }
works:
  program scale_rows {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M, N]
    Y[i, j] = X[i, j] * 2.0
  }
"""

    def title(self) -> str:
        return f"unknown {self.what} `{self.name}`"

    def label(self) -> str:
        return "not declared here"

    def notes(self) -> tuple[str, ...]:
        return (f"known: {_list(self.known)}",) if self.known and not self.near else ()

    def help(self) -> str:
        return f"did you mean {_quoted(self.near)}?" if self.near else ""


@dataclass(frozen=True, kw_only=True)
class DuplicateName(Problem):
    """`first`: what the name is already (`dim`, `input`, ...), `first_span`: where."""

    name: str
    first: str
    first_span: Span | None = None

    code = "WG0202"
    doc = """Options, dims, types, inputs, outputs, `let`s and `def`s share one namespace; a name is declared once. An input
or output may be declared in several ways if their `when`s leave one.

fails:
  program copy {
    dims M
    in   X: f32[M]
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i]
  }
works:
  program copy {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i]
  }
"""

    def title(self) -> str:
        return f"`{self.name}` is declared twice"

    def label(self) -> str:
        return f"already {'an' if self.first[0] in 'aeiou' else 'a'} {self.first}"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.first_span, "first declared here"),) if self.first_span else ()

    def help(self) -> str:
        return "rename one of the two"


@dataclass(frozen=True, kw_only=True)
class WrongRank(Problem):
    """`got` is 0 for a tensor that is used without indices."""

    tensor: str
    expected: int
    got: int
    form: str  # how it is declared: `Q[B, M, H, D]`
    declared: Span | None = None

    code = "WG0203"
    doc = """A tensor is read and written with one index for each of its axes.

fails:
  program copy {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M, N]
    Y[i, j] = X[i]
  }
works:
  program copy {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M, N]
    Y[i, j] = X[i, j]
  }
"""

    def title(self) -> str:
        return f"`{self.tensor}` has {_count(self.expected, 'axis')}, but {_count(self.got, 'index')} given"

    def label(self) -> str:
        return f"expected {_count(self.expected, 'index')}"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.declared, "declared here"),) if self.declared else ()

    def help(self) -> str:
        if self.expected == 0:
            return f"`{self.tensor}` is a scalar: write it without indices"
        return f"it is `{self.form}`"


@dataclass(frozen=True, kw_only=True)
class UnboundIndex(Problem):
    """`bound`: the indices that the statement does have."""

    name: str
    bound: tuple[str, ...]
    in_where: bool = False

    code = "WG0204"
    doc = """An index stands on the left side of its statement, or is an axis of a reduction around it.

fails:
  program rows {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M]
    Y[i] = X[i, j]
  }
works:
  program rows {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M]
    Y[i] = sum[j] X[i, j]
  }
"""

    def title(self) -> str:
        return f"index `{self.name}` is not bound"

    def label(self) -> str:
        return "neither on the left side nor an axis of a reduction around it"

    def notes(self) -> tuple[str, ...]:
        return (f"bound here: {_list(self.bound)}",)

    def help(self) -> str:
        if self.in_where:
            return f"a `where` sees the left side's indices: restrict the operand in a statement of its own, over `{self.name}`"
        return f"reduce over it (`sum[{self.name}] ...`) or add it to the left side"


@dataclass(frozen=True, kw_only=True)
class AxisMissing(Problem):
    axis: str
    op: str

    code = "WG0205"
    doc = """Each axis of a reduction occurs in what it reduces: otherwise it would only count.

fails:
  program rows {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M, N]
    Y[i, j] = sum[k] X[i, j]
  }
works:
  program rows {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M]
    Y[i] = sum[j] X[i, j]
  }
"""

    def title(self) -> str:
        return f"`{self.op}[{self.axis}]` reduces over an index that its operand doesn't have"

    def label(self) -> str:
        return f"no `{self.axis}` in the operand"

    def help(self) -> str:
        return f"a reduction takes the product that follows: is `{self.axis}` behind a `+`? Then put parentheses around it"


@dataclass(frozen=True, kw_only=True)
class AxisTaken(Problem):
    """A reduction binds an index that is bound already, or (softmax) needs one that isn't, or repeats it."""

    axis: str
    why: str
    cure: str

    code = "WG0206"
    doc = """A reduction binds its own axes: they differ from the indices of the left side and of reductions around it.
`softmax[j]` keeps its axis, so there `j` must be bound already.

fails:
  program rows {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M, N]
    Y[i, j] = sum[j] X[i, j]
  }
works:
  program rows {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M]
    Y[i] = sum[j] X[i, j]
  }
"""

    def title(self) -> str:
        return f"axis `{self.axis}`: {self.why}"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class ExtentUnknown(Problem):
    index: str

    code = "WG0207"
    doc = """An index has the extent of the dim at which it stands bare (`X[i]`), or what a mixed-radix access implies
(`Q[g * R + r]` at an axis of extent `G * R`); otherwise `index i < ...` declares it.

fails:
  program shift {
    dims M
    in   X: f32[2 * M]
    out  Y: f32[M, M]
    Y[i, i] = X[i + i]
    Z[k] = X[2 * k]
  }
works:
  program shift {
    dims M
    index k < M
    in   X: f32[2 * M]
    out  Y: f32[M]
    Z[k] = X[2 * k]
    Y[i] = Z[i]
  }
"""

    def title(self) -> str:
        return f"the extent of index `{self.index}` can't be inferred"

    def label(self) -> str:
        return f"`{self.index}` stands bare at no dim"

    def help(self) -> str:
        return f"declare it: `index {self.index} < ...`"


@dataclass(frozen=True, kw_only=True)
class ExtentConflict(Problem):
    index: str
    first: str
    second: str
    first_span: Span | None = None

    code = "WG0208"
    doc = """An index name has one extent in the whole program. Where it stands bare at two dims they must be equal.

fails:
  program diagonal {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M]
    Y[i] = X[i, i]
  }
works:
  program diagonal {
    dims M
    in   X: f32[M, M]
    out  Y: f32[M]
    Y[i] = X[i, i]
  }
"""

    def title(self) -> str:
        return f"index `{self.index}` stands at dims of extent `{self.first}` and `{self.second}`"

    def label(self) -> str:
        return f"extent `{self.second}` here"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.first_span, f"extent `{self.first}` here"),) if self.first_span else ()

    def help(self) -> str:
        return f"use two index names, or declare which extent it has: `index {self.index} < ...`"


@dataclass(frozen=True, kw_only=True)
class OutOfRange(Problem):
    """`bound`: the missing inequality, as text."""

    tensor: str
    access: str
    extent: str
    bound: str

    code = "WG0209"
    doc = """Every access is proven in range from the extents, the `where` of its statement and `require`.
A reduction inside a larger expression doesn't see the statement's `where`: give its operand a statement of its own.

fails:
  program shift {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i - 1]
  }
works:
  program shift {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i - 1] where i >= 1
  }
"""

    def title(self) -> str:
        return f"can't prove that `{self.access}` is inside `{self.tensor}`'s axis of extent `{self.extent}`"

    def label(self) -> str:
        return f"missing bound: {self.bound}"

    def help(self) -> str:
        return f"restrict the statement (`where {self.bound}`), declare the index's extent, or `require` it of the dims"


@dataclass(frozen=True, kw_only=True)
class NotInjective(Problem):
    tensor: str
    indices: tuple[str, ...]

    code = "WG0210"
    doc = """The left side names each element once: two index values never write the same element.

fails:
  program sums {
    dims M
    in   X: f32[M, M]
    out  Y: f32[2 * M]
    Y[i + j] = X[i, j]
  }
works:
  program sums {
    dims M
    in   X: f32[M, M]
    out  Y: f32[M * M]
    Y[i * M + j] = X[i, j]
  }
"""

    def title(self) -> str:
        return f"`{self.tensor}`: can't prove that each element is written once"

    def label(self) -> str:
        return f"{_quoted(self.indices, 'and')} may name the same element twice"

    def help(self) -> str:
        return "write each index bare at an axis of its own, or as mixed radix: `g * R + r` where `r < R`"


@dataclass(frozen=True, kw_only=True)
class TypeMismatch(Problem):
    """`expected` and `got` are phrases: `a truth value`, `a real number`."""

    what: str
    expected: str
    got: str
    cure: str = ""

    code = "WG0211"
    doc = """Truth values, integers and real numbers are three kinds. Integers become reals by themselves; nothing
else is converted silently, and indices are integers.

fails:
  program mask {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i] where X[i]
  }
works:
  program mask {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i] where X[i] > 0.0
  }
"""

    def title(self) -> str:
        return f"{self.what} must be {self.expected}"

    def label(self) -> str:
        return f"this is {self.got}"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class WrongArguments(Problem):
    function: str
    expected: str
    got: int

    code = "WG0212"
    doc = """A function takes as many arguments as it is defined with.

fails:
  program act {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = exp(X[i], 2.0)
  }
works:
  program act {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = exp(X[i])
  }
"""

    def title(self) -> str:
        return f"`{self.function}` takes {self.expected}, but {self.got} given"

    def label(self) -> str:
        return f"expected {self.expected}"


@dataclass(frozen=True, kw_only=True)
class UsedEarly(Problem):
    name: str
    definition: Span | None = None

    code = "WG0213"
    doc = """Names are defined before they are used, in the order of the text.

fails:
  program chain {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = Z[i]
    Z[i] = X[i] * 2.0
  }
works:
  program chain {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Z[i] = X[i] * 2.0
    Y[i] = Z[i]
  }
"""

    def title(self) -> str:
        return f"`{self.name}` is used before it is defined"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.definition, "defined here"),) if self.definition else ()

    def help(self) -> str:
        return "move the definition up"


@dataclass(frozen=True, kw_only=True)
class DefinedTwice(Problem):
    tensor: str
    first: Span | None = None

    code = "WG0214"
    doc = """One statement defines a tensor. Several may stand in the text if their `when`s leave exactly one.

fails:
  program act {
    option sharp = false
    dims   M
    in     X: f32[M]
    out    Y: f32[M]
    Y[i] = relu(X[i])
    Y[i] = X[i] * X[i] when not sharp
  }
works:
  program act {
    option sharp = false
    dims   M
    in     X: f32[M]
    out    Y: f32[M]
    Y[i] = relu(X[i])  when sharp
    Y[i] = X[i] * X[i] when not sharp
  }
"""

    def title(self) -> str:
        return f"`{self.tensor}` has more than one live statement"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.first, "the first one"),) if self.first else ()

    def help(self) -> str:
        return "give them `when`s of which exactly one holds"


@dataclass(frozen=True, kw_only=True)
class NoStatement(Problem):
    tensor: str
    dropped: Span | None = None

    code = "WG0215"
    doc = """Every output that the options leave has one live statement.

fails:
  program two {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    out  Z: f32[M]
    Y[i] = X[i]
  }
works:
  program two {
    option both = false
    dims   M
    in     X: f32[M]
    out    Y: f32[M]
    out    Z: f32[M] when both
    Y[i] = X[i]
    Z[i] = X[i]
  }
"""

    def title(self) -> str:
        return f"output `{self.tensor}` is never defined"

    def label(self) -> str:
        return "no live statement has it on the left"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.dropped, "this one's `when` is false"),) if self.dropped else ()

    def help(self) -> str:
        return f"define it, or declare it `when` the condition holds under which `{self.tensor}` exists"


@dataclass(frozen=True, kw_only=True)
class Absent(Problem):
    """A live statement reads a tensor whose `when` is false."""

    name: str
    declared: Span | None = None

    code = "WG0216"
    doc = """What `when` removes can't be read; `select` and `and`/`or` on an option look only at the live side.

fails:
  program linear {
    option with_bias = false
    dims   M
    in     X: f32[M]
    in     bias: f32[M] when with_bias
    out    Y: f32[M]
    Y[i] = X[i] + bias[i]
  }
works:
  program linear {
    option with_bias = false
    dims   M
    in     X: f32[M]
    in     bias: f32[M] when with_bias
    out    Y: f32[M]
    Y[i] = X[i] + select(with_bias, bias[i], 0.0)
  }
"""

    def title(self) -> str:
        return f"`{self.name}` doesn't exist with these options"

    def label(self) -> str:
        return "read here"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.declared, "its `when` is false"),) if self.declared else ()

    def help(self) -> str:
        return "give this statement the same `when`, or read it in `select(option, ..., 0)`"


@dataclass(frozen=True, kw_only=True)
class NotConstant(Problem):
    what: str

    code = "WG0217"
    doc = """`when`, option defaults and choices are decided at compile time: by options and fixed dims.

fails:
  program act {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i] when M > 3
  }
works:
  program act {
    option on = true
    dims   M
    in     X: f32[M]
    out    Y: f32[M] when on
    Y[i] = X[i]
  }
"""

    def title(self) -> str:
        return f"{self.what} must be known at compile time"

    def label(self) -> str:
        return "depends on a run-time value"

    def help(self) -> str:
        return "use options, or fix the dims that it names"


@dataclass(frozen=True, kw_only=True)
class BadOption(Problem):
    """`expected`: a phrase."""

    option: str
    expected: str
    got: str

    code = "WG0218"
    doc = """An option's value has the type of its default, or is one of its choices.

fails:
  program act {                      # with options act=swish
    option act in {none, relu}
    dims   M
    in     X: f32[M]
    out    Y: f32[M]
    Y[i] = select(act == relu, relu(X[i]), X[i])
  }
works:
  program act {                      # with options act=relu
    option act in {none, relu}
    dims   M
    in     X: f32[M]
    out    Y: f32[M]
    Y[i] = select(act == relu, relu(X[i]), X[i])
  }
"""

    def title(self) -> str:
        return f"option `{self.option}` can't be {self.got}"

    def label(self) -> str:
        return f"expected {self.expected}"


@dataclass(frozen=True, kw_only=True)
class BadType(Problem):
    name: str
    expected: tuple[str, ...]
    got: str

    code = "WG0219"
    doc = """A type parameter is one of the types in its braces.

fails:
  program copy {                     # with types T=f32
    dims M
    type T in {f16, bf16}
    in   X: T[M]
    out  Y: T[M]
    Y[i] = X[i]
  }
works:
  program copy {                     # with types T=bf16
    dims M
    type T in {f16, bf16}
    in   X: T[M]
    out  Y: T[M]
    Y[i] = X[i]
  }
"""

    def title(self) -> str:
        return f"type `{self.name}` can't be {self.got}"

    def label(self) -> str:
        return f"expected {_quoted(self.expected)}"


@dataclass(frozen=True, kw_only=True)
class BadDim(Problem):
    dim: str
    why: str
    cure: str = ""

    code = "WG0220"
    doc = """A fixed dim is an integer from 0 on; a computed dim follows from the dims in its formula.

fails:
  program copy {                     # with dims H=7, R=2
    dims G, R, H = G * R
    in   X: f32[G, R]
    out  Y: f32[G, R]
    Y[i, j] = X[i, j]
  }
works:
  program copy {                     # with dims H=8, R=2
    dims G, R, H = G * R
    in   X: f32[G, R]
    out  Y: f32[G, R]
    Y[i, j] = X[i, j]
  }
"""

    def title(self) -> str:
        return f"dim `{self.dim}`: {self.why}"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class Recursive(Problem):
    """`cycle`: the names, first again at the end."""

    what: str
    cycle: tuple[str, ...]

    code = "WG0221"
    doc = """`def` and `let` are put in where they are used, so they may not use themselves.

fails:
  program act {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    def  f(x) = g(x) + 1.0
    def  g(x) = f(x) * 2.0
    Y[i] = f(X[i])
  }
works:
  program act {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    def  g(x) = x * 2.0
    def  f(x) = g(x) + 1.0
    Y[i] = f(X[i])
  }
"""

    def title(self) -> str:
        return f"`{self.what} {self.cycle[0]}` uses itself"

    def notes(self) -> tuple[str, ...]:
        return (" -> ".join(self.cycle),)


@dataclass(frozen=True, kw_only=True)
class LiteralRange(Problem):
    text: str
    why: str
    cure: str = ""

    code = "WG0222"
    doc = """A real literal is a finite f32 (write `inf` for infinity); an integer literal fits 32 bits.

fails:
  program big {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i] * 1e39
  }
works:
  program big {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i] * 1e38
  }
"""

    def title(self) -> str:
        return f"literal {self.text} {self.why}"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class NotBuilt(Problem):
    """Something the language knows and this version doesn't compile."""

    what: str
    cure: str = ""
    chain: tuple[str, ...] = ()

    code = "WG0223"
    doc = """Recurrences, integer division of tensor elements and other assumptions than `increasing` and `positive` are
part of the language, but this version of the compiler doesn't build them yet.

fails:
  program halves {
    dims M
    in   at: i32[M]
    out  Y: f32[M]
    Y[i] = at[i] / 2
  }
works:
  program halves {
    dims M
    in   at: i32[M]
    out  Y: f32[M]
    Y[i] = f32(at[i]) / 2
  }
"""

    def title(self) -> str:
        return f"{self.what} can't be compiled yet"

    def notes(self) -> tuple[str, ...]:
        return self.chain

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class UnusedIndex(Problem):
    index: str

    code = "WG0224"
    doc = """`index i < ...` declares the extent of an index that some statement has.

fails:
  program copy {
    dims M
    index k < M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i]
  }
works:
  program copy {
    dims M
    index i < M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i]
  }
"""

    def title(self) -> str:
        return f"index `{self.index}` is declared, but no statement uses it"

    def help(self) -> str:
        return "remove the declaration, or check the name"


@dataclass(frozen=True, kw_only=True)
class RequireFails(Problem):
    condition: str

    code = "WG0225"
    doc = """What `require` says must hold; with the given options and fixed dims it is known not to.

fails:
  program copy {                     # with dims M=3
    dims    M
    require M >= 4
    in      X: f32[M]
    out     Y: f32[M]
    Y[i] = X[i]
  }
works:
  program copy {                     # with dims M=4
    dims    M
    require M >= 4
    in      X: f32[M]
    out     Y: f32[M]
    Y[i] = X[i]
  }
"""

    def title(self) -> str:
        return f"`require {self.condition}` does not hold for the given options and dims"

    def help(self) -> str:
        return "compile with other options or dims, or leave the dims it names to the call"


@dataclass(frozen=True, kw_only=True)
class BadTarget(Problem):
    tensor: str
    why: str
    cure: str

    code = "WG0226"
    doc = """The left side of a statement is an output, or a new tensor with distinct bare indices.

fails:
  program shift {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    X[i] = 0.0
    Y[i] = X[i]
  }
works:
  program shift {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Z[i] = X[i] * 0.0
    Y[i] = Z[i]
  }
"""

    def title(self) -> str:
        return f"`{self.tensor}` {self.why}"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class BadElse(Problem):
    why: str
    cure: str

    code = "WG0227"
    doc = """`else` gives the value outside the `where`. It needs a `where`, a value that exists there, and a left
side that covers the whole array: otherwise `where` selects what is written, and the rest stays untouched.

fails:
  program part {
    dims M
    in   X: f32[M]
    out  Y: f32[2 * M]
    Y[2 * i] = X[i] where i > 0 else 1.0
  }
works:
  program part {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i] where i > 0 else 1.0
  }
"""

    def title(self) -> str:
        return f"`else` {self.why}"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class TooDeep(Problem):
    limit: int

    code = "WG0228"
    doc = """With every `def` and `let` put in, an expression is at most 200 operators deep.

fails:
  program deep {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    def  four(x) = sqrt(sqrt(sqrt(sqrt(x))))
    def  more(x) = four(four(four(four(x))))
    def  most(x) = more(more(more(more(x))))
    Y[i] = most(most(most(most(X[i]))))
  }
works:
  program deep {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    def  four(x) = sqrt(sqrt(sqrt(sqrt(x))))
    def  more(x) = four(four(four(four(x))))
    def  most(x) = more(more(more(more(x))))
    Z[i] = most(most(X[i]))
    Y[i] = most(most(Z[i]))
  }
"""

    def title(self) -> str:
        return f"this expression is more than {self.limit} levels deep"

    def help(self) -> str:
        return "split it into several statements"


@dataclass(frozen=True, kw_only=True)
class NoOutput(Problem):
    program: str

    code = "WG0229"
    doc = """A program has an output that the options leave.

fails:
  program nothing {
    option on = false
    dims   M
    in     X: f32[M]
    out    Y: f32[M] when on
    Y[i] = X[i]
  }
works:
  program something {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i]
  }
"""

    def title(self) -> str:
        return f"program `{self.program}` has no output with these options"

    def help(self) -> str:
        return "declare one: `out Y: f32[M]`"
