"""Sums, differences and products of two expressions, for programs that tests write by hand."""

from __future__ import annotations

from functools import partial

from wgdsl.program.expr import apply

add, sub, mul = (partial(apply, fn) for fn in ("add", "sub", "mul"))
