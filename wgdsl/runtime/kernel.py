"""The kernel object: what `wgdsl.compile` returns.

In: the forms of one program under one schedule.  Out: something to call, with every form and the report as properties.

A call takes torch, CuPy, JAX (DLPack) or NumPy arrays, checks them, allocates outputs that aren't given, and runs on the
caller's current stream and device. Lengths and counts are read from the shapes: nothing is compiled again for a new one.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..diagnostics.emit import CompilerWarning
from ..diagnostics.model import WgError
from ..diagnostics.render import render_plain
from ..diagnostics.runtime import EditedTextRefused, UnknownArgument
from ..program.graph import ProgramGraph
from ..program.streamed import Streamed
from ..roles.approximated import approximated
from ..roles.model import RoleProgram
from .arrays import ArrayView, to_numpy
from .bind import Bound, whole
from .by_name import call_by_name
from .cache import Cache
from .call import Given, Interface, host_views
from .caller import Caller, Calls
from .edited import edited_texts
from .launch import Launch
from .listing import Halves, Tiles
from .nvrtc import Compiled, Refused
from .verdict import complaints_of

Backend = Callable[..., Mapping[str, Any]]  # (arrays, scalars, dims)


@dataclass(frozen=True, kw_only=True)
class Forms:
    """One program under one schedule, as far as the driver has brought it. `texts` and `entries` are by kernel name.

    backends: what else can run it (`sim`, `reference`): arrays, scalars and dims -> outputs, all NumPy.  choices: the element
    types that each `type` of the program may be.  told: how the target was chosen, for the report.
    """

    graph: ProgramGraph
    stream: Streamed | None  # None for an explicit form
    roles: RoleProgram
    texts: Mapping[str, str]
    entries: Mapping[str, str]
    backends: Mapping[str, Backend]
    seconds: Mapping[str, float]
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    told: tuple[str, ...] = ()

    @property
    def cuda(self) -> str:
        return "\n".join(self.texts.values())


class Kernel:
    """A compiled program. Call it with arrays; see the module's docstring."""

    def __init__(self, forms: Forms, cache: Cache | None = None):
        self.forms = forms
        self.interface = Interface(forms.graph, forms.choices)
        self.cache = cache or Cache.shared()
        self._lock = threading.Lock()
        self._binary: dict[str, Compiled] | None = None
        self._caller: Calls = Caller(self.interface, forms.roles, forms.entries, lambda: self.binaries, self._compiled)
        call_by_name(self, Kernel)

    def __repr__(self) -> str:
        return f"<wgdsl kernel: program {self.forms.graph.name}, schedule {self.forms.roles.schedule}, {self.target}>"

    @property
    def target(self) -> str:
        return self.forms.roles.target

    @property
    def graph(self) -> ProgramGraph:
        return self.forms.graph

    @property
    def stream(self) -> Streamed | None:
        """The streamed graph (form 3); None for an explicit form."""
        return self.forms.stream

    @property
    def roles(self) -> RoleProgram:
        return self.forms.roles

    @property
    def approximated(self) -> frozenset[str]:
        """Functions of which it takes the chip's approximation."""
        return approximated(self.forms.roles)

    @property
    def cuda(self) -> str:
        return self.forms.cuda

    @property
    def binaries(self) -> Mapping[str, Compiled]:
        """What NVRTC made of each kernel. The first use compiles, or reads the cache; warns of spills and the like."""
        if self._binary is None:
            with self._lock:
                if self._binary is None:
                    self._binary = {n: self._compiled(n, self.target) for n in self.forms.texts}
                    self._warn(self._binary)
        return self._binary

    def _compiled(self, name: str, arch: str) -> Compiled:
        return self.cache.compile(self.forms.texts[name], arch, f"{name}.cu")

    def pick(self, /, **dims: int) -> Kernel:
        """The plain kernel for these dims of a call, of which some may be left out: this one, unless its schedule depends on
        them (`choosing`). Raises WgError (WG0613) for a name that is no dim."""
        known = (*self.interface.graph.dims, *self.interface.graph.fixed)
        for name, size in dims.items():
            if name not in known:
                raise WgError(UnknownArgument(name=name, known=known))
            whole(name, size)
        return self

    def build(self) -> Kernel:
        """Compile now rather than at the first call."""
        self.binaries  # noqa: B018
        return self

    def probe(self, *args: Any, device: str = "gpu", seed: int | None = None, **named: Any) -> dict[str, Any]:
        """Run it, and give what the schedule's `probe` steps have seen: a NumPy array of f32 for each tile, by a key like
        `P[b=0,g=0,r=0,i=0][j=2]`, numbers of tiles; NaN where the value has no element, or nothing was computed.

        device: `gpu` or `sim`. seed: of the simulator's order of events. Raises WgError (WG1009) for a schedule without a
        probe.
        """
        from .probing import probe

        return probe(self, args, named, device, seed)

    def with_cuda(self, text: str, path: str = "the edited text") -> Kernel:
        """The same kernel with an edited CUDA text in place of the emitted one, compiled. `path`: what messages call it.

        Raises WgError for a text that NVRTC refuses, or whose entry can't be launched with the same arguments.
        """
        texts = edited_texts(self.forms.texts, self.forms.entries, text, path)
        try:
            return Kernel(replace(self.forms, texts=texts), self.cache).build()
        except Refused as e:
            raise WgError(EditedTextRefused(path=path, log=e.log)) from None

    def _warn(self, binaries: Mapping[str, Compiled]) -> None:
        for kernel in self.roles.kernels:
            problems = complaints_of(kernel, binaries[kernel.name])
            if problems:
                text = "\n".join(render_plain(p) for p in problems).replace("error[", "warning[")
                warnings.warn(text, CompilerWarning, stacklevel=5)

    @property
    def ptx(self) -> str:
        return "\n".join(c.ptx for c in self.binaries.values())

    @property
    def cubin(self) -> bytes:
        """The cubin of the kernel; of the first one if the schedule cuts the program into several (`binaries` has all)."""
        return next(iter(self.binaries.values())).cubin

    @cached_property
    def sass(self) -> str:
        from .sass import disassemble

        return "\n".join(disassemble(c.cubin) for c in self.binaries.values())

    @property
    def report(self) -> Any:
        from .report import make_report

        return make_report(self.forms, self.binaries)

    def __call__(self, *args: Any, out: Any = None, device: str = "gpu", **named: Any) -> Any:
        """Run it. Arrays by name or in the order of their declarations; `out` maps outputs to arrays to write into.

        device: `gpu`, `sim` (the role program on the CPU) or `reference` (the program in float64). tiles: lists of tiles, if
        the schedule lists them; without, they are made first. Returns the output, or a namedtuple of all. Raises WgError
        (WG06xx) for arguments that don't fit, EnvironmentFault without a GPU."""
        if self._takes_tiles(named):
            return self._on_tiles(named.pop("tiles"), named, lambda k, given: k(*args, out=out, device=device, **given))
        if device == "gpu":
            return self._caller.call(args, named, out)
        return self._elsewhere(device, args, named, out)

    def simulate(self, *args: Any, out: Any = None, seed: int | None = None, **named: Any) -> Any:
        """Run the role program in the simulator; results are NumPy arrays. `seed`: of another order of events. tiles: as in a
        call."""
        if self._takes_tiles(named):
            return self._on_tiles(named.pop("tiles"), named, lambda k, given: k.simulate(*args, out=out, seed=seed, **given))
        return self._elsewhere("sim", args, named, out, seed=seed)

    # Lists of tiles.

    def list_tiles(self, *args: Any, device: str = "gpu", seed: int | None = None, **named: Any) -> Tiles:
        """Make the lists of tiles that aren't empty alone, for calls with `tiles=...`: as long as what the mask reads stays the
        same, so do they. Takes all arguments of a call, or by name the arrays that the mask reads, and sizes that these don't
        tell. device: `gpu` or `sim`. seed: of the simulator's order of events.

        Raises WgError (WG0659) for a schedule that lists nothing.
        """
        return self._halves.made(args, named, device, **({"seed": seed} if device == "sim" else {}))

    @cached_property
    def _halves(self) -> Halves:
        return Halves.of(self)

    def lister(self, every: bool) -> Kernel:
        """The kernel that makes lists alone. every: it takes all arguments of the program."""
        return self._lister_of_all if every else self._lister

    @cached_property
    def _lister(self) -> Kernel:
        return self._halves.lister(every=False)

    @cached_property
    def _lister_of_all(self) -> Kernel:
        return self._halves.lister(every=True)

    @cached_property
    def _on_lists(self) -> Kernel:
        return self._halves.user()

    def _takes_tiles(self, named: dict[str, Any]) -> bool:
        """Whether `tiles` of a call are lists: the program may have an argument of that name. None is as good as none."""
        if "tiles" not in named or "tiles" in (*self.interface.positions, *self.interface.dims):
            return False
        if named["tiles"] is None:
            del named["tiles"]
        return "tiles" in named

    def _on_tiles(self, tiles: Any, named: Mapping[str, Any], call: Callable[[Kernel, Mapping[str, Any]], Any]) -> Any:
        given = self._halves.arguments(tiles, named)
        return self._halves.used(tiles, lambda: call(self._on_lists, given))

    def bound(self, given: Given) -> Bound:
        """The dims and scalars of a call."""
        return self._caller.bound(given)

    def host_outputs(self, given: Given) -> dict[str, Any]:
        """NumPy arrays for the results: those given, new ones for the rest."""
        return self._caller.host_outputs(given)

    def launches(self, given: Given, views: Mapping[str, ArrayView]) -> tuple[Launch, ...]:
        """The launches of a call on device arrays and the default stream, without those that have nothing to do. Their device
        must be current."""
        return self._caller.plan(given, views).at(tuple(v.pointer for v in views.values()), 0)

    def global_array(self, kernel: str, name: str, device: int) -> tuple[int, int]:
        """Address and bytes of an array that the text of one of the kernels declares. The device must be current."""
        return self._caller.global_array(kernel, name, device)

    def _elsewhere(self, device: str, args: tuple[Any, ...], named: Mapping[str, Any], out: Any, **more: Any) -> Any:
        """One of the backends on NumPy arrays."""
        if device not in self.forms.backends:
            raise ValueError(f"device is {device!r}; there are gpu, {', '.join(self.forms.backends)}")
        given = self.interface.sort(args, named, out)
        inputs = {name: to_numpy(name, a) for name, a in given.inputs.items()}
        seen = host_views(inputs, given.outputs)
        self.interface.check(seen)
        bound = self._caller.bind(given, seen)
        # what a program doesn't write of an array that is given stays as it was
        results = self.forms.backends[device]({**inputs, **given.outputs}, bound.scalars, bound.dims, **more)
        for name, array in given.outputs.items():
            array[...] = results[name]
        return self.interface.result({**results, **given.outputs})
