"""WG03xx: a program that can't be brought into streamed form.

Each `doc` is the rule, then under `fails:` and `works:` a program with the lines of its schedule that matter, or such lines of
a shipped schedule; tests stream both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..foundation.source import Span
from .model import Problem


@dataclass(frozen=True, kw_only=True)
class StreamAxisUnknown(Problem):
    code: ClassVar[str] = "WG0301"
    doc: ClassVar[str] = """`stream INDEX` names an index over which the program reduces.

In schedule `simple` for `attention`:

fails:
  stream i
works:
  stream j descending
"""
    axis: str
    reduced: tuple[str, ...]

    def title(self) -> str:
        return f"nothing reduces over `{self.axis}`"

    def label(self) -> str:
        return "this index can't be streamed"

    def help(self) -> str:
        if not self.reduced:
            return "the program reduces over no index"
        return "the program reduces over " + ", ".join(f"`{a}`" for a in self.reduced)


@dataclass(frozen=True, kw_only=True)
class NotSeparable(Problem):
    code: ClassVar[str] = "WG0302"
    doc: ClassVar[str] = """A reduction along the streamed axis may use earlier reductions along it only as a factor: each
summand is f(earlier results) * g(this element), because the old content is corrected by f(new) /
f(old) when they move.

fails:
  program p {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M]
    m[i] = max[j] X[i, j]
    Y[i] = sum[j] tanh(X[i, j] - m[i])
  }
  schedule s for p on sm_90a {
    stream j
  }
works:
  program p {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M]
    m[i] = max[j] X[i, j]
    Y[i] = sum[j] exp(X[i, j] - m[i])
  }
  schedule s for p on sm_90a {
    stream j
  }
"""
    name: str
    first: tuple[str, ...]  # the earlier results
    summand: str
    chain: tuple[str, ...] = ()  # who needs whom, in words
    earlier: tuple[tuple[Span, str], ...] = ()  # the statements of what is needed

    def title(self) -> str:
        return f"`{self.name}` can't be computed in one pass"

    def label(self) -> str:
        return "uses earlier results in a way that can't be corrected later"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return self.earlier

    def notes(self) -> tuple[str, ...]:
        return (*self.chain, f"its summand is {self.summand}")

    def help(self) -> str:
        terms = "write the summand as f(earlier results) * g(this element), or as a sum of such terms"
        kernel = f"`kernel NAME computes {', '.join(self.first)} {{ ... }}`"
        return f"{terms}, or compute the earlier results in a kernel of their own: {kernel}"


@dataclass(frozen=True, kw_only=True)
class NotStreamable(Problem):
    code: ClassVar[str] = "WG0303"
    doc: ClassVar[str] = """Statements between the streamed reductions and the outputs fit one pass over the axis: an element
along it is gone when the pass has ended.

fails:
  program p {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M, N]
    Y[i, j] = softmax[j] X[i, j]
  }
  schedule s for p on sm_90a {
    stream j
  }
works:
  program p {
    dims M, N
    in   X: f32[M, N]
    out  Y: f32[M]
    Y[i] = logsumexp[j] X[i, j]
  }
  schedule s for p on sm_90a {
    stream j
  }
"""
    name: str
    why: str
    chain: tuple[str, ...] = ()  # who needs whom, in words
    earlier: tuple[tuple[Span, str], ...] = ()  # the statements of what is needed
    first: tuple[str, ...] = ()  # what a kernel before could compute
    along: tuple[str, ...] = ()  # axes along which the rest could be streamed

    def title(self) -> str:
        return f"`{self.name}` doesn't fit a single pass over the streamed axis"

    def label(self) -> str:
        return self.why

    def others(self) -> tuple[tuple[Span, str], ...]:
        return self.earlier

    def notes(self) -> tuple[str, ...]:
        return self.chain

    def help(self) -> str:
        other = f"`stream {self.along[0]}`" if self.along else ""
        if not self.first:
            return other or "split the program: one kernel makes one pass"
        behind = f", and {other} for the rest" if other else " before"
        return f"one kernel makes one pass: `kernel NAME computes {', '.join(self.first)} {{ ... }}`{behind}"
