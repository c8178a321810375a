"""WG09xx: imports, schedules that extend others, and the constants of schedules.

Each `doc` is the rule, then texts under `fails:` and `works:`, each a program with its schedule; tests resolve both. A comment
`# with options stages=3` in an example gives what the caller chooses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..foundation.source import Span
from .hints import nearest
from .model import Problem


def _near(name: str, known: tuple[str, ...]) -> str:
    meant = nearest(name, known)
    if meant and meant != name:
        return f"did you mean `{meant}`?"
    return "there are: " + ", ".join(f"`{k}`" for k in known) if known else ""


@dataclass(frozen=True, kw_only=True)
class ImportUnread(Problem):
    """`path` as it was looked up; `why`: what the system said."""

    path: str
    why: str

    code: ClassVar[str] = "WG0901"
    doc: ClassVar[str] = """An import names a `.wg` file, by its path from the folder of the file that has the line; in a text
that is no file, from the current folder.

fails:
  import "examples/gemm/gem.wg"
  schedule mine extends pipelined { tile n 128 }
works:
  import "examples/gemm/gemm.wg"
  schedule mine extends pipelined { tile n 128 }
"""

    def title(self) -> str:
        return f"can't read the imported file `{self.path}`: {self.why}"

    def label(self) -> str:
        return "imported here"

    def help(self) -> str:
        return "a path counts from the folder of the file that imports it"


@dataclass(frozen=True, kw_only=True)
class ImportCycle(Problem):
    """`chain`: the files, the first again at the end."""

    chain: tuple[str, ...]

    code: ClassVar[str] = "WG0902"
    doc: ClassVar[str] = """A file doesn't import itself, neither at once nor by way of others. What two files need stands in a
third one, which both import."""

    def title(self) -> str:
        return f"`{self.chain[0]}` imports itself"

    def label(self) -> str:
        return "this closes the circle"

    def notes(self) -> tuple[str, ...]:
        return (" imports ".join(f"`{p}`" for p in self.chain),)


@dataclass(frozen=True, kw_only=True)
class ProgramTwice(Problem):
    name: str
    first: Span | None = None

    code: ClassVar[str] = "WG0903"
    doc: ClassVar[str] = """A program's name is the only one in its file and in all that the file imports.

fails:
  import "examples/gemm/gemm.wg"
  program gemm {
    dims M
    in   X: f32[M]
    out  Y: f32[M]
    Y[i] = X[i]
  }
  schedule mine extends pipelined { tile n 128 }
works:
  import "examples/gemm/gemm.wg"
  schedule mine extends pipelined { tile n 128 }
"""

    def title(self) -> str:
        return f"two programs are called `{self.name}`"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.first, "the other one"),) if self.first else ()

    def help(self) -> str:
        return "rename one of them"


@dataclass(frozen=True, kw_only=True)
class UnknownBase(Problem):
    name: str
    known: tuple[str, ...] = ()

    code: ClassVar[str] = "WG0904"
    doc: ClassVar[str] = """A schedule extends one of its own file, of an imported file, of a file in the same folder, or a
shipped one: the first of these places that has one of that name decides. It doesn't extend itself.

fails:
  import "examples/gemm/gemm.wg"
  schedule mine extends pipelinde { tile n 128 }
works:
  import "examples/gemm/gemm.wg"
  schedule mine extends pipelined { tile n 128 }
"""

    def title(self) -> str:
        return f"there is no schedule `{self.name}` to extend"

    def help(self) -> str:
        return _near(self.name, self.known)


@dataclass(frozen=True, kw_only=True)
class AmbiguousBase(Problem):
    """`places`: where the schedules of that name stand."""

    name: str
    places: tuple[Span, ...]

    code: ClassVar[str] = "WG0905"
    doc: ClassVar[str] = """Of several schedules of one name a schedule extends the one for the program and the target that it
names itself.

fails:
  program scale { dims M  in X: f32[M]  out Y: f32[M]  Y[i] = X[i] * 2.0 }
  schedule plain for scale on sm_90a { tile i 64 }
  schedule plain for shift on sm_90a { tile i 64 }
  schedule mine extends plain { tile i 128 }
works:
  program scale { dims M  in X: f32[M]  out Y: f32[M]  Y[i] = X[i] * 2.0 }
  schedule plain for scale on sm_90a { tile i 64 }
  schedule plain for shift on sm_90a { tile i 64 }
  schedule mine extends plain for scale { tile i 128 }
"""

    def title(self) -> str:
        return f"several schedules are called `{self.name}`: which one is extended?"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return tuple((span, "one of them") for span in self.places)

    def help(self) -> str:
        return "say for which program and target: `extends NAME for PROGRAM on TARGET`"


@dataclass(frozen=True, kw_only=True)
class BaseCycle(Problem):
    """`chain`: the schedules, the first again at the end."""

    chain: tuple[str, ...]

    code: ClassVar[str] = "WG0906"
    doc: ClassVar[str] = """Schedules that extend each other end in one that extends none.

fails:
  import "examples/gemm/gemm.wg"
  schedule one extends two for gemm { tile n 128 }
  schedule two extends one for gemm { tile i 64 }
works:
  import "examples/gemm/gemm.wg"
  schedule one extends two for gemm { tile n 128 }
  schedule two extends pipelined for gemm { tile i 64 }
"""

    def title(self) -> str:
        return f"schedule `{self.chain[0]}` extends itself"

    def notes(self) -> tuple[str, ...]:
        return (" extends ".join(f"`{n}`" for n in self.chain),)


@dataclass(frozen=True, kw_only=True)
class NotRenamed(Problem):
    """`tensors`: what the lines of the base name, for a program of which nothing says what they are."""

    tensors: tuple[str, ...]
    base: str
    other: str
    program: str

    code: ClassVar[str] = "WG0907"
    doc: ClassVar[str] = """A schedule that extends one for another program says what each tensor of those lines is in its own:
nothing is matched by name. Lines that it replaces need no names.

fails:
  program double {
    dims M, K
    in   X: f16[M, K]
    out  Y: f16[M, M]
    Z[i,n] = sum[k] X[i,k] * X[n,k]
    Y[i,n] = 2.0 * Z[i,n]
  }
  schedule mine extends pipelined for double with Acc = Z, C = Y { tile n 128 }
works:
  program double {
    dims M, K
    in   X: f16[M, K]
    out  Y: f16[M, M]
    Z[i,n] = sum[k] X[i,k] * X[n,k]
    Y[i,n] = 2.0 * Z[i,n]
  }
  schedule mine extends pipelined for double with A = X, B = X, Acc = Z, C = Y { tile n 128 }
"""

    def title(self) -> str:
        them = ", ".join(f"`{t}`" for t in self.tensors)
        return f"schedule `{self.base}` is for `{self.other}`: what {'is' if len(self.tensors) == 1 else 'are'} {them} here?"

    def help(self) -> str:
        return f"`with {', '.join(f'{t} = ...' for t in self.tensors)}`, tensors of `{self.program}`; or lines in their place"


@dataclass(frozen=True, kw_only=True)
class BadRenaming(Problem):
    """`known`: the names that there are, of the base's lines or of the program; () if the name was renamed before."""

    name: str
    base: str
    program: str = ""
    known: tuple[str, ...] = ()

    code: ClassVar[str] = "WG0908"
    doc: ClassVar[str] = """`with S = T` renames, once, what the lines of the extended schedule call `S`: a tensor, an index or
a dim of the program that they were written for. T is one of the program, or an index that a `fuse` line makes.

fails:
  import "examples/gemm/gemm.wg"
  schedule mine extends pipelined with Ac = Acc { tile n 128 }
works:
  import "examples/gemm/gemm.wg"
  schedule mine extends pipelined with Acc = Acc { tile n 128 }
"""

    def title(self) -> str:
        if self.program:
            return f"program `{self.program}` has no `{self.name}`"
        return f"schedule `{self.base}` names no `{self.name}`" if self.known else f"`{self.name}` is renamed twice"

    def help(self) -> str:
        return _near(self.name, self.known)


@dataclass(frozen=True, kw_only=True)
class OptionTwice(Problem):
    """`what`: what the name is already."""

    name: str
    what: str
    first: Span | None = None

    code: ClassVar[str] = "WG0909"
    doc: ClassVar[str] = """An option of a schedule has a name of its own: the program has no option, dim or index of that name,
since callers choose all of them by name.

fails:
  import "examples/gemm/gemm.wg"
  schedule mine extends pipelined { option bias = 3 }
works:
  import "examples/gemm/gemm.wg"
  schedule mine extends pipelined { option stages = 3 }
"""

    def title(self) -> str:
        if self.first is not None:
            return f"option `{self.name}` is declared twice"
        return f"option `{self.name}` has the name of {_article(self.what)} of the program"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.first, "first declared here"),) if self.first else ()

    def help(self) -> str:
        return "choose another name"


def _article(what: str) -> str:
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"


@dataclass(frozen=True, kw_only=True)
class UnknownConstant(Problem):
    """`dim`: it is a dim of the program that nobody has fixed."""

    name: str
    known: tuple[str, ...] = ()
    dim: bool = False

    code: ClassVar[str] = "WG0910"
    doc: ClassVar[str] = """The numbers of a schedule are made of literals, its own options, and the options and fixed dims of
the program.

fails:
  import "examples/gemm/gemm.wg"
  schedule mine extends pipelined { option stages = 3  smem As = A[i, k] by tma ring stage }
works:
  import "examples/gemm/gemm.wg"
  schedule mine extends pipelined { option stages = 3  smem As = A[i, k] by tma ring stages }
"""

    def title(self) -> str:
        return f"dim `{self.name}` isn't fixed" if self.dim else f"`{self.name}` has no value"

    def label(self) -> str:
        return "known at compile time only if it is fixed" if self.dim else "a constant belongs here"

    def help(self) -> str:
        if self.dim:
            return f"fix it: `--set {self.name}=128`; in Python `dims={{'{self.name}': 128}}`"
        return _near(self.name, self.known)


@dataclass(frozen=True, kw_only=True)
class BadConstant(Problem):
    """`value`: what the expression is instead, if it is anything."""

    why: str
    value: object = None

    code: ClassVar[str] = "WG0911"
    doc: ClassVar[str] = """The constants of a schedule are computed with `+ - * / % **`, comparisons, `and or not`, `select`,
`min` and `max`; whole numbers divide rounding down.

fails:
  import "examples/gemm/gemm.wg"
  schedule mine extends pipelined { smem As = A[i, k] by tma ring bias + 1 }
works:
  import "examples/gemm/gemm.wg"
  schedule mine extends pipelined { smem As = A[i, k] by tma ring select(bias, 2, 3) }
"""

    def title(self) -> str:
        shown = str(self.value).lower() if isinstance(self.value, bool) else self.value
        return self.why if self.value is None else f"{self.why}, and this is `{shown}`"

    def label(self) -> str:
        return "no constant" if self.value is None else ""

    def help(self) -> str:
        return "write `select(condition, a, b)` to choose a number" if isinstance(self.value, bool) else ""
