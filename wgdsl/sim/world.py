"""What all CTAs of a launch share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..program.poly import Poly
from ..roles.model import Kernel, TensorMap, Value
from .integers import Env, Integer, compiled
from .tensors import Box, Tensor, box_of, gather


@dataclass(kw_only=True)
class World:
    """What all CTAs of a kernel share. `log`: who made each store, by ordinal. lenient: an element may be written twice, and a
    store outside a tensor is dropped."""

    kernel: Kernel
    dims: Mapping[str, int]
    scalars: Mapping[str, float]
    tensors: Mapping[str, Tensor]
    limit: int
    lenient: bool = False
    log: list[str] = field(default_factory=list)
    functions: dict[int, Callable[[Env], Integer]] = field(default_factory=dict)
    boxes: dict[tuple, Box] = field(default_factory=dict)
    gathered: dict[Box, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        k = self.kernel
        self.buffers = {b.name: b for b in k.buffers}
        self.rings = {r.name: r for r in k.rings}
        self.barriers = {b.name: b for b in k.barriers}
        self.maps = {m.name: m for m in k.maps}
        self.extents: Mapping[str, Poly] = k.index_extents
        self.values: dict[str, tuple[Value, ...]] = {r.name: tuple(v for v in k.values if v.role == r.name) for r in k.roles}

    def function(self, p: Poly) -> Callable[[Env], Integer]:
        """A polynomial of the kernel as a function. They are found by identity: the kernel keeps them."""
        found = self.functions.get(id(p))
        if found is None:
            found = self.functions[id(p)] = compiled(p)
        return found

    def box(self, m: TensorMap, coords: tuple[int, ...], extents: tuple[int, ...]) -> Box:
        """The elements of one copy; both tuples fastest dimension first."""
        key = (m.name, coords, extents)
        if key not in self.boxes:
            self.boxes[key] = box_of(m, len(self.tensors[m.tensor].shape), coords, extents)
        return self.boxes[key]

    def loaded(self, tensor: str, box: Box) -> np.ndarray:
        """What a bulk load brings; what no step of the kernel writes is looked up once."""
        t = self.tensors[tensor]
        if t.writers is not None:
            return gather(t, box)
        if box not in self.gathered:
            self.gathered[box] = gather(t, box)
        return self.gathered[box]
