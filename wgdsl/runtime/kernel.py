"""The kernel object: what `wgdsl.compile` returns.

In: the forms of one program under one schedule.  Out: something to call, with every form and the report as properties.

A call takes torch, CuPy, JAX (DLPack) or NumPy arrays, checks them, allocates outputs that aren't given, and runs on the
caller's current stream and device. Lengths and counts are read from the shapes: nothing is compiled again for a new one.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..diagnostics.emit import CompilerWarning
from ..diagnostics.model import WgError
from ..diagnostics.render import render_plain
from ..diagnostics.runtime import EditedTextRefused, NotAnArray, WrongDevice
from ..program.graph import ProgramGraph
from ..program.streamed import Streamed
from ..roles.model import RoleProgram
from ..targets.sm_90a import SM_90A
from . import cuda
from .allocate import empty
from .arrays import ArrayView, to_numpy, view
from .bind import Binder, Bound, shape_of
from .cache import Cache
from .call import Given, Interface, one_device
from .edited import edited_texts
from .launch import Launch, prepare
from .module import Module
from .nvrtc import Compiled, Refused
from .staging import staged
from .streams import current_stream
from .verdict import complaints_of

PLANS, SHAPES = 512, 1024  # launches and bindings that a kernel remembers

Backend = Callable[..., Mapping[str, Any]]  # (arrays, scalars, dims)


@dataclass(frozen=True, kw_only=True)
class Forms:
    """One program under one schedule, as far as the driver has brought it. `texts` and `entries` are by kernel name.

    backends: what else can run it (`sim`, `reference`): arrays, scalars and dims -> outputs, all NumPy.  choices: the element
    types that each `type` of the program may be.
    """

    graph: ProgramGraph
    stream: Streamed
    roles: RoleProgram
    texts: Mapping[str, str]
    entries: Mapping[str, str]
    backends: Mapping[str, Backend]
    seconds: Mapping[str, float]
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def cuda(self) -> str:
        return "\n".join(self.texts.values())


class Kernel:
    """A compiled program. Call it with arrays; see the module's docstring."""

    def __init__(self, forms: Forms, cache: Cache | None = None):
        self.forms = forms
        self.interface = Interface(forms.graph, forms.choices)
        self._binder = Binder(forms.graph)
        self._cache = cache or Cache.shared()
        self._lock = threading.Lock()
        self._binary: dict[str, Compiled] | None = None
        self._modules: dict[str, Module] = {}
        self._bindings: OrderedDict[Any, Bound] = OrderedDict()
        self._plans: OrderedDict[Any, tuple[Launch, ...]] = OrderedDict()

    def __repr__(self) -> str:
        return f"<wgdsl kernel: program {self.forms.graph.name}, schedule {self.forms.roles.schedule}, {self.target}>"

    @property
    def target(self) -> str:
        return self.forms.roles.target

    @property
    def graph(self) -> ProgramGraph:
        return self.forms.graph

    @property
    def stream(self) -> Streamed:
        """The streamed graph (form 3)."""
        return self.forms.stream

    @property
    def roles(self) -> RoleProgram:
        return self.forms.roles

    @property
    def cuda(self) -> str:
        return self.forms.cuda

    @property
    def binaries(self) -> Mapping[str, Compiled]:
        """What NVRTC made of each kernel. The first use compiles, or reads the cache; warns of spills and the like."""
        if self._binary is None:
            with self._lock:
                if self._binary is None:
                    self._binary = {n: self._cache.compile(t, self.target, f"{n}.cu") for n, t in self.forms.texts.items()}
                    self._warn(self._binary)
        return self._binary

    def build(self) -> Kernel:
        """Compile now rather than at the first call."""
        self.binaries  # noqa: B018
        return self

    def probe(self, *args: Any, device: str = "gpu", **named: Any) -> dict[str, Any]:
        """Run it, and give what the schedule's `probe` steps have seen: a NumPy array of f32 for each tile, by a key like
        `P[b=0,g=0,r=0,i=0][j=2]`, numbers of tiles; NaN where the value has no element, or nothing was computed.

        device: `gpu` or `sim`. Raises WgError (WG0909) for a schedule without a probe.
        """
        from .probing import probe

        return probe(self, args, named, device)

    def with_cuda(self, text: str, path: str = "the edited text") -> Kernel:
        """The same kernel with an edited CUDA text in place of the emitted one, compiled. `path`: what messages call it.

        Raises WgError for a text that NVRTC refuses, or whose entry can't be launched with the same arguments.
        """
        texts = edited_texts(self.forms.texts, self.forms.entries, text, path)
        try:
            return Kernel(replace(self.forms, texts=texts), self._cache).build()
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

        device: `gpu`, `sim` (the role program on the CPU) or `reference` (the program in float64). Returns the output, or a
        namedtuple of all. Raises WgError (WG06xx) for arguments that don't fit, EnvironmentFault without a GPU.
        """
        if device != "gpu":
            return self._elsewhere(device, args, named, out)
        cuda.driver()
        given = self.interface.sort(args, named, out)
        views = {name: view(name, array) for name, array in given.inputs.items()}
        first = next(iter(views.values()), None)
        if first is not None and first.framework == "numpy":
            one_device(views)
            return self._staged(given)
        outputs = self._outputs(given, views)
        self._run(given, views, first.framework if first else "")
        return self._result(outputs)

    def simulate(self, *args: Any, out: Any = None, seed: int | None = None, **named: Any) -> Any:
        """Run the role program in the simulator; results are NumPy arrays. `seed`: take turns in another order."""
        return self._elsewhere("sim", args, named, out, seed=seed)

    def _outputs(self, given: Given, views: dict[str, ArrayView]) -> dict[str, Any]:
        """The arrays to write into, allocated if need be; their views are added to `views`."""
        first = next(iter(views.values()), None)
        for name, array in given.outputs.items():
            views[name] = view(name, array)
        first = first or next(iter(views.values()))
        results = {}
        bound = None
        for node in self.graph.outputs:
            array = given.outputs.get(node.tensor)
            if array is None:
                bound = bound or self._bind(given, views)
                array = empty(first.framework, first.device, shape_of(node, bound), node.dtype)
                views[node.tensor] = view(node.tensor, array)._replace(readonly=False)  # JAX says it is; nobody has it yet
            results[node.tensor] = array
        return results

    def _bind(self, given: Given, views: Mapping[str, ArrayView]) -> Bound:
        shapes = {name: v.shape for name, v in views.items()}
        key = (tuple(shapes.items()), tuple(given.scalars.items()), tuple(given.dims.items()))
        return _remember(self._bindings, SHAPES, key, lambda: self._binder.bind(shapes, given.dims, given.scalars))

    def bound(self, given: Given) -> Bound:
        """The dims and scalars of a call."""
        return self._bind(given, {name: view(name, array) for name, array in given.inputs.items()})

    def launches(self, given: Given, views: Mapping[str, ArrayView]) -> tuple[Launch, ...]:
        """The launches of a call on device arrays, without those that have nothing to do. Their device must be current."""
        key = (tuple(views.items()), tuple(given.scalars.items()), tuple(given.dims.items()))
        device = cuda.device(next(iter(views.values())).device)
        return _remember(self._plans, PLANS, key, lambda: self._plan(given, views, device))

    def _run(self, given: Given, views: Mapping[str, ArrayView], framework: str) -> None:
        device = next(iter(views.values())).device
        if device < 0:
            self._refuse_host(views)
        with cuda.on_device(device):
            launches = self.launches(given, views)
            if launches:
                stream = current_stream(framework, device)
                for launch in launches:
                    launch.run(stream)
        if framework in ("jax", "dlpack") and launches:  # nobody else orders their streams after ours
            cuda.checked(cuda.driver().cuStreamSynchronize(0), "cuStreamSynchronize", self.graph.name)

    def _refuse_host(self, views: Mapping[str, ArrayView]) -> None:
        one_device(views)
        name, v = next(iter(views.items()))
        raise WgError(WrongDevice(name=name, got=v.place))

    def _plan(self, given: Given, views: Mapping[str, ArrayView], dev: cuda.Device) -> tuple[Launch, ...]:
        self.interface.check(views)
        one_device(views)
        bound = self._bind(given, views)
        if all(0 in v.shape for name, v in views.items() if name in self.interface.outputs):
            return ()
        count = dev.multiprocessors
        launches = (prepare(k, self._module(k.name), views, bound, dev.ordinal, count) for k in self.roles.kernels)
        return tuple(launch for launch in launches if launch.blocks)

    def _module(self, name: str) -> Module:
        binary = self.binaries[name]
        with self._lock:
            if name not in self._modules:
                kernel = next(k for k in self.roles.kernels if k.name == name)
                shared = kernel.shared_bytes + SM_90A.shared_slack
                entry = self.forms.entries[name]
                module = Module(cubin=binary.cubin, entry=entry, target=self.target, shared=shared, compiler=binary.nvrtc)
                self._modules[name] = module
            return self._modules[name]

    def _staged(self, given: Given) -> Any:
        """Host arrays: copied to the current device and back."""
        inputs = {name: to_numpy(name, a) for name, a in given.inputs.items()}
        self.interface.check(self._host_views(inputs, given.outputs))
        outputs = self.host_outputs(given)
        device = cuda.current_device()
        with cuda.on_device(device), staged(device, inputs, outputs) as views:
            self._run(given, views, "numpy")
        return self._result(outputs)

    def host_outputs(self, given: Given) -> dict[str, Any]:
        """NumPy arrays for the results: those given, new ones for the rest."""
        bound = self.bound(given)
        made = {n.tensor: empty("numpy", -1, shape_of(n, bound), n.dtype) for n in self.graph.outputs}
        return {**made, **given.outputs}

    def _host_views(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, ArrayView]:
        seen = {name: view(name, a) for name, a in (*inputs.items(), *outputs.items())}
        for name in outputs:
            if seen[name].framework != "numpy":
                raise WgError(NotAnArray(name=name, got=f"of {seen[name].framework}, where results are NumPy arrays"))
        return seen

    def _elsewhere(self, device: str, args: tuple[Any, ...], named: Mapping[str, Any], out: Any, **more: Any) -> Any:
        """One of the backends on NumPy arrays."""
        if device not in self.forms.backends:
            raise ValueError(f"device is {device!r}; there are gpu, {', '.join(self.forms.backends)}")
        given = self.interface.sort(args, named, out)
        inputs = {name: to_numpy(name, a) for name, a in given.inputs.items()}
        seen = self._host_views(inputs, given.outputs)
        self.interface.check(seen)
        bound = self._bind(given, seen)
        results = self.forms.backends[device](inputs, bound.scalars, bound.dims, **more)
        for name, array in given.outputs.items():
            array[...] = results[name]
        return self._result({**results, **given.outputs})

    def _result(self, outputs: Mapping[str, Any]) -> Any:
        if len(self.interface.outputs) == 1:
            return outputs[self.interface.outputs[0]]
        return self._results(*(outputs[name] for name in self.interface.outputs))

    @cached_property
    def _results(self) -> Any:
        return namedtuple("Results", self.interface.outputs, rename=True)


def _remember(memory: OrderedDict[Any, Any], limit: int, key: Any, make: Callable[[], Any]) -> Any:
    """A small cache. Two threads may make the same entry at once; either will do."""
    try:
        return memory[key]
    except KeyError:
        value = make()
    except TypeError:  # something in the key can't be hashed, an array of rank 0 for a scalar: make it each time
        return make()
    memory[key] = value
    while len(memory) > limit:
        try:
            memory.popitem(last=False)
        except KeyError:
            break
    return value
