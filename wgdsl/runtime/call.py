"""The arguments of one call, sorted and checked.

In: what the caller passed.  Out: arrays, scalars and dims by name, and, for a launch, views that fit the program.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..diagnostics.model import Problem, WgError
from ..diagnostics.runtime import (
    BaseRule,
    MissingArgument,
    NotAnArray,
    ReadOnlyOutput,
    UnknownArgument,
    WrongDevice,
    WrongDType,
)
from ..program.graph import Input, Output, ProgramGraph
from .arrays import ArrayView, view
from .bind import call_dims, signature, tensor_name, whole
from .overlap import onto_itself
from .scalars import number


@dataclass(frozen=True, kw_only=True)
class Given:
    """What the caller passed, by name. `outputs` holds the arrays to write into, if any."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    scalars: Mapping[str, Any] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)


class Interface:
    """The names of a program's arguments and results."""

    def __init__(self, graph: ProgramGraph, choices: Mapping[str, tuple[str, ...]] | None = None):
        self.graph = graph
        self.choices = choices or {}  # what each type of the program may be
        self.inputs = tuple(n.name for n in graph.inputs)
        self.written = graph.outputs
        self.outputs = tuple(n.tensor for n in self.written)
        self.scalars = tuple(s.name for s in graph.scalars)
        self.nodes: dict[str, Input | Output] = {tensor_name(n): n for n in (*graph.inputs, *graph.outputs)}
        self._rules = {name: (n.dtype.name, n.dtype.nbytes, isinstance(n, Output)) for name, n in self.nodes.items()}

    @cached_property
    def positions(self) -> tuple[str, ...]:
        """Inputs and scalars in the order of their declarations."""
        rows = [(n.span, n.name) for n in (*self.graph.inputs, *self.graph.scalars)]
        if any(span is None for span, _ in rows):
            return tuple(name for _, name in rows)
        return tuple(name for _, name in sorted(rows, key=lambda r: r[0].start if r[0] else 0))

    def sort(self, args: tuple[Any, ...], named: Mapping[str, Any], out: Any) -> Given:
        """The arguments by kind. Raises WgError for missing and unknown names."""
        if args:
            named = {**self._placed(args, named), **named}
        inputs = {name: named[name] for name in self.inputs if named.get(name) is not None}
        if len(inputs) != len(self.inputs):
            missing = [name for name in self.inputs if name not in inputs]
            raise WgError(MissingArgument(name=missing[0], signature=signature(self.graph)))
        scalars = {s.name: number(s.name, named[s.name], s.dtype) for s in self.graph.scalars if named.get(s.name) is not None}
        rest = [name for name in named if name not in self.inputs and name not in self.scalars]
        dims = {name: whole(name, named[name]) for name in rest if name in self.dims}
        for name in rest:
            if name not in dims:
                raise WgError(UnknownArgument(name=name, known=(*self.positions, *call_dims(self.graph))))
        return Given(inputs=inputs, outputs=self._outputs(out), scalars=scalars, dims=dims)

    @cached_property
    def dims(self) -> frozenset[str]:
        """The dims that a call may give by name."""
        return frozenset((*self.graph.dims, *self.graph.fixed))

    @cached_property
    def results(self) -> Any:
        """The type of several results."""
        return namedtuple("Results", self.outputs, rename=True)

    def result(self, arrays: Mapping[str, Any]) -> Any:
        """What a call returns: its only output, or all of them."""
        if len(self.outputs) == 1:
            return arrays[self.outputs[0]]
        return self.results(*(arrays[name] for name in self.outputs))

    def _placed(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(self.positions):
            extra = f"number {len(self.positions) + 1} (without a name)"
            raise WgError(UnknownArgument(name=extra, known=self.positions))
        placed = dict(zip(self.positions, args, strict=False))
        for name in placed.keys() & named.keys():
            raise WgError(UnknownArgument(name=f"{name}` a second time, beside `{name}", known=self.positions))
        return placed

    def _outputs(self, out: Any) -> Mapping[str, Any]:
        if out is None:
            return {}
        if not isinstance(out, Mapping):
            if len(self.outputs) == 1:
                return {self.outputs[0]: out}
            raise WgError(MissingArgument(name="out", signature=signature(self.graph)))
        for name in out:
            if name not in self.outputs:
                raise WgError(UnknownArgument(name=str(name), known=self.outputs))
        return {name: array for name, array in out.items() if array is not None}

    def check(self, views: Mapping[str, ArrayView]) -> None:
        """Element types, outputs that can be written, base addresses. Ranks and shapes are `bind`'s."""
        ours = [(name, v) for name, v in views.items() if name in self.nodes]
        problems = [p for name, v in ours if not self._fits(name, v) for p in self._problems(name, v)]
        if problems:
            raise WgError(problems)

    def _fits(self, name: str, v: ArrayView) -> bool:
        """Whether there is no problem, as far as that is known at once."""
        dtype, nbytes, written = self._rules[name]
        return v.dtype == dtype and not v.pointer % nbytes and not (written and (v.readonly or onto_itself(name, v)))

    def _problems(self, name: str, v: ArrayView) -> list[Problem]:
        node, found = self.nodes[name], list[Problem]()
        if v.dtype != node.dtype.name:
            choice = next((t for t, d in self.graph.types.items() if d == node.dtype), "")
            allowed = v.dtype in self.choices.get(choice, ())
            return [WrongDType(name=name, got=v.dtype, expected=node.dtype.name, type_name=choice if allowed else "")]
        if v.pointer % node.dtype.nbytes:
            found.append(BaseRule(name=name, off=v.pointer % node.dtype.nbytes, multiple=node.dtype.nbytes))
        if isinstance(node, Output):
            if v.readonly:
                found.append(ReadOnlyOutput(name=name))
            overlap = onto_itself(name, v)
            found += [overlap] if overlap else []
        return found


def host_views(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, ArrayView]:
    """Views of NumPy arrays; the results have to be some too."""
    seen = {name: view(name, a) for name, a in (*inputs.items(), *outputs.items())}
    for name in outputs:
        if seen[name].framework != "numpy":
            raise WgError(NotAnArray(name=name, got=f"of {seen[name].framework}, where results are NumPy arrays"))
    return seen


def one_device(views: Mapping[str, ArrayView]) -> int:
    """The device on which all the arrays lie (-1: the host). Raises WgError (WG0603) if they don't."""
    first = next(iter(views), None)
    if first is None:
        return -1
    home = next((name for name, v in views.items() if v.device >= 0), first)
    for name, v in views.items():
        if v.device != views[home].device:
            raise WgError(WrongDevice(name=name, got=v.place, other=home, expected=views[home].place))
    return views[home].device
