"""Lists of tiles that are kept between calls.

In: a kernel whose schedule lists tiles.  Out: two kernels over the same role program: one that makes the lists, with them for
its result; and one that takes them as an argument. What both of them check, launch and remember is what every kernel does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..diagnostics.model import Problem, WgError
from ..diagnostics.runtime import DimsDisagree, MissingArgument, TilesDontFit
from ..program.expr import Const
from ..program.graph import Input, Node, Output, ProgramGraph
from ..roles.model import Kernel as RoleKernel
from ..roles.model import ListTile, RoleProgram, TensorArg, walk
from .scalars import names_in

if TYPE_CHECKING:
    from .kernel import Kernel


@dataclass(frozen=True, eq=False)
class Tiles:
    """Lists of the tiles that aren't empty: for each tile of rows how many there are, then each of them, twice its number and 1
    more if no element of it lies outside. `dims`: the sizes that they are for."""

    array: Any
    dims: Mapping[str, int]
    maker: RoleKernel


def lister_of(roles: RoleProgram) -> RoleKernel | None:
    """The kernel of a role program that lists tiles."""
    return next((k for k in roles.kernels if any(_lists(k))), None)


def _lists(k: RoleKernel) -> Iterable[str]:
    return (s.tensor for r in k.roles for s in walk(r.steps) if isinstance(s, ListTile))


@dataclass(frozen=True)
class Halves:
    """The two kernels. `whole`: the one that they are of."""

    whole: Kernel
    maker: RoleKernel
    tensor: TensorArg

    @staticmethod
    def of(whole: Kernel) -> Halves:
        """Raises WgError (WG0659) for a kernel that lists nothing."""
        maker = lister_of(whole.roles)
        if maker is None:
            why = f"schedule `{whole.roles.schedule}` lists no tiles"
            raise WgError(TilesDontFit(why=why, cure="`stream ... listed` in the schedule makes it do so"))
        return Halves(whole, maker, maker.tensor(next(iter(_lists(maker)))))

    @property
    def needed(self) -> tuple[str, ...]:
        """The dims that the lists depend on."""
        return tuple(p.name for p in self.maker.params if p.kind == "dim")

    def lister(self, every: bool) -> Kernel:
        """The kernel that makes lists, of what it reads or of every argument of the program."""
        graph = self.whole.graph
        t = self.tensor
        nothing = Const(value=0.0)
        result = Output(
            name=f"{t.name}.result", indices=(), tensor=t.name, dtype=t.dtype, shape=t.shape, access=(), value=nothing
        )
        graph = replace(graph if every else self.reduced(graph), nodes=(*self.inputs(graph, every), result))
        roles = replace(self.whole.roles, kernels=(self.unmarked(self.maker),))
        return self.kernel(graph, roles)

    def inputs(self, graph: ProgramGraph, every: bool) -> tuple[Node, ...]:
        read = {t.name for t in self.maker.tensors}
        return tuple(n for n in graph.inputs if every or n.name in read)

    def reduced(self, graph: ProgramGraph) -> ProgramGraph:
        """The program's dims and scalars as far as the lists hang on them."""
        shapes = {s for n in self.inputs(graph, False) if isinstance(n, Input) for p in n.shape for s in p.symbols()}
        opened = {s for x in shapes for s in (graph.derived[x].symbols() if x in graph.derived else {x})}
        dims = tuple(d for d in graph.dims if d in opened or d in self.needed)
        known = {*dims, *graph.fixed}
        used = {x.name for p in self.maker.params for x in p.scalars}
        return replace(
            graph,
            dims=dims,
            derived={name: p for name, p in graph.derived.items() if p.symbols() <= known},
            scalars=tuple(s for s in graph.scalars if s.name in used),
            requires=tuple(e for e in graph.requires if {*names_in(e)} <= known | used),
        )

    def user(self) -> Kernel:
        """The kernel that takes lists."""
        graph, t = self.whole.graph, self.tensor
        given = Input(name=t.name, indices=(), dtype=t.dtype, shape=t.shape)
        kernels = tuple(self.unmarked(k) for k in self.whole.roles.kernels if k is not self.maker)
        return self.kernel(replace(graph, nodes=(given, *graph.nodes)), replace(self.whole.roles, kernels=kernels))

    def unmarked(self, k: RoleKernel) -> RoleKernel:
        """The kernel with its lists as an argument like others."""
        return replace(k, tensors=tuple(replace(t, temporary=t.temporary and t.name != self.tensor.name) for t in k.tensors))

    def kernel(self, graph: ProgramGraph, roles: RoleProgram) -> Kernel:
        from .kernel import Kernel

        forms, names = self.whole.forms, [k.name for k in roles.kernels]
        backends = {
            **forms.backends,
            "sim": partial(forms.backends["sim"], roles=roles),
            "reference": partial(_evaluated, self.tensor.name, forms.backends["reference"]),
        }
        return Kernel(
            replace(
                forms, graph=graph, roles=roles, texts={n: forms.texts[n] for n in names},
                entries={n: forms.entries[n] for n in names}, backends=backends,
            ),
            self.whole.cache,
        )  # fmt: skip

    def made(self, args: tuple[Any, ...], named: Mapping[str, Any], device: str, **more: Any) -> Tiles:
        """Run the one that makes lists."""
        if device not in ("gpu", "sim"):
            raise ValueError(f"device is {device!r}; tiles are listed on gpu and sim")
        given = {*self.whole.interface.positions[: len(args)], *named}
        lister = self.whole.lister(every=given >= {*self.whole.interface.inputs})
        for name in (n for n in given - {*lister.interface.positions} if n in self.whole.interface.positions):
            read = ", ".join(f"`{n}`" for n in lister.interface.positions)
            cure = f"pass all arguments of a call, or only what tells of tiles: {read}, and sizes that these don't tell"
            raise WgError(TilesDontFit(why=f"the lists don't depend on `{name}`", cure=cure))
        if device == "gpu" and not lister.interface.inputs:
            why = "no array of this call says on which device the lists are to be"
            raise WgError(TilesDontFit(why=why, cure="pass all arguments of a call"))
        try:
            array = lister.simulate(*args, **named, **more) if device == "sim" else lister(*args, **named, device=device)
        except WgError as e:
            raise WgError([self.asked(p, lister) for p in e.problems]) from e
        bound = lister.bound(lister.interface.sort(args, named, None))
        return Tiles(array, {d: bound.dims[d] for d in self.needed}, self.maker)

    def asked(self, p: Problem, lister: Kernel) -> Problem:
        """What is missing, as it is missing here: no call of a kernel but this one was meant."""
        signature = f"kernel.list_tiles({', '.join(lister.interface.positions)})"
        return replace(p, signature=signature) if isinstance(p, MissingArgument) else p

    def arguments(self, tiles: Any, named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the one that takes lists. Raises WgError (WG0659) for lists of another kernel, or of other sizes."""
        if not isinstance(tiles, Tiles):
            why = f"`tiles` is of type {type(tiles).__name__}"
            raise WgError(TilesDontFit(why=why, cure="pass what `list_tiles` of this kernel has returned"))
        if tiles.maker is not self.maker and tiles.maker != self.maker:
            why = f"`tiles` are of kernel {tiles.maker.name}, whose lists aren't those of {self.maker.name}"
            raise WgError(TilesDontFit(why=why, cure="make them by `list_tiles` of this kernel"))
        for name in (d for d in tiles.dims if d in named and named[d] != tiles.dims[d]):
            raise WgError(self.other_size(name, tiles, named[name]))
        return {**named, **tiles.dims, self.tensor.name: tiles.array}

    def other_size(self, name: str, tiles: Tiles, value: Any) -> TilesDontFit:
        why = f"`tiles` are for {name} = {tiles.dims[name]}, and {name} is {value} in this call"
        return TilesDontFit(why=why, cure="list the tiles of these arrays: `list_tiles`")

    def used(self, tiles: Tiles, call: Any) -> Any:
        """What a call on lists gives. A dim that disagrees with them is told as theirs."""
        try:
            return call()
        except WgError as e:
            wrong = [p for p in e.problems if isinstance(p, DimsDisagree) and p.dim in tiles.dims]
            wrong = [p for p in wrong if "the call" in (p.where, p.other_where)]
            if not wrong:
                raise
            p = wrong[0]
            raise WgError(self.other_size(p.dim, tiles, p.value if p.other_where == "the call" else p.other)) from e


def _evaluated(lists: str, evaluate: Callable[..., Any], arrays: Mapping[str, Any], *of: Any) -> Any:
    """What the program says, which knows nothing of lists."""
    return evaluate({name: a for name, a in arrays.items() if name != lists}, *of)
