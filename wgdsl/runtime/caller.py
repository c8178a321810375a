"""Calls of a kernel on a GPU.

In: the arguments as the caller wrote them.  Out: its results, computed on the caller's current stream and device.

A call on torch tensors like an earlier one is recognised by a key (`torch_call`) and launched by the plan made then. Any other
is looked at in full: names, views, checks, outputs, plan; and remembered if it went well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.runtime import WrongDevice
from ..program.graph import ProgramGraph
from ..roles.model import RoleProgram
from ..targets.choice import TARGETS
from . import cuda
from .allocate import empty
from .arrays import ArrayView, to_numpy, view
from .bind import Binder, Bound, shape_of
from .call import Given, Interface, host_views, one_device
from .launch import Launcher, Template
from .module import Module
from .nvrtc import Compiled
from .plan import Plan, layout
from .staging import staged
from .streams import current_stream
from .temporaries import Blocks, Passing
from .torch_call import ALONE, Cell, Form, form_of
from .torch_run import ready_of

FORMS, PLANS = 64, 256  # forms of call, and layouts in general, that a kernel remembers

Binaries = Callable[[], Mapping[str, Compiled]]
Again = Callable[[str, str], Compiled]


class Calls:
    """Recognises the calls of one program."""

    def __init__(self, interface: Interface):
        self.interface = interface
        self._binder = Binder(interface.graph)
        self._forms = lru_cache(maxsize=FORMS)(self._form)

    @property
    def graph(self) -> ProgramGraph:
        return self.interface.graph

    def call(self, args: tuple[Any, ...], named: dict[str, Any], out: Any) -> Any:
        """See `Kernel.__call__`."""
        if out is None:
            key, values = (len(args), *named), (*args, *named.values())
        elif type(out) is dict:
            key, values = (len(args), *named, None, *out), (*args, *named.values(), *out.values())
        else:
            key, values = (len(args), *named, ALONE), (*args, *named.values(), out)
        try:
            form = self._forms(key)
        except ModuleNotFoundError:  # torch may come later
            form = None
        if form is None:
            return self.first(args, named, out)
        ready, pointers, cell = form.find(*values)
        if ready is not None:
            return ready(pointers, out)
        return self.first(args, named, out, form, cell)

    def _form(self, key: tuple[Any, ...]) -> Form | None:
        return form_of(self.interface, key)

    def first(
        self, args: tuple[Any, ...], named: dict[str, Any], out: Any, form: Form | None = None, cell: Cell | None = None
    ) -> Any:
        """A call looked at in full. If it is of a form that can be recognised, what it came to goes into the cell."""
        raise NotImplementedError

    def plan(self, given: Given, views: Mapping[str, ArrayView]) -> Plan:
        """The plan of a call on device arrays. Raises WgError (WG06xx) for shapes, numbers and devices that don't fit; the rest
        is checked when the plan launches."""
        raise NotImplementedError

    def global_array(self, kernel: str, name: str, device: int) -> tuple[int, int]:
        """Address and bytes of an array that the text of one of the kernels declares."""
        raise NotImplementedError

    def bind(self, given: Given, views: Mapping[str, ArrayView]) -> Bound:
        """The dims and scalars of a call on arrays of these shapes."""
        return self._binder.bind({name: v.shape for name, v in views.items()}, given.dims, given.scalars)

    def bound(self, given: Given) -> Bound:
        """The dims and scalars of a call."""
        return self.bind(given, {name: view(name, array) for name, array in given.inputs.items()})

    def host_outputs(self, given: Given) -> dict[str, Any]:
        """NumPy arrays for the results: those given, new ones for the rest."""
        bound = self.bound(given)
        made = {n.tensor: empty("numpy", -1, shape_of(n, bound), n.dtype) for n in self.interface.written}
        return {**made, **given.outputs}


class Caller(Calls):
    """Runs one program's kernels. `binaries` compiles them when they are first needed, `again` one of them by its name for
    another architecture."""

    def __init__(self, interface: Interface, roles: RoleProgram, entries: Mapping[str, str], binaries: Binaries, again: Again):
        super().__init__(interface)
        self.roles, self.entries = roles, entries
        self._binaries, self._again = binaries, again
        self._modules: dict[str, Module] = {}
        self._launchers = {k.name: Launcher(k) for k in roles.kernels}
        self._lock = threading.Lock()
        self._passed = tuple({t.name: t for k in roles.kernels for t in k.tensors if t.temporary}.values())
        self._blocks = Blocks()
        self._plans: Callable[[Any], list[Plan]] = lru_cache(maxsize=PLANS)(lambda key: [])  # cells, filled by `plan`

    def first(
        self, args: tuple[Any, ...], named: dict[str, Any], out: Any, form: Form | None = None, cell: Cell | None = None
    ) -> Any:
        cuda.driver()
        given = self.interface.sort(args, named, out)
        views = {name: view(name, array) for name, array in given.inputs.items()}
        first = next(iter(views.values()), None)
        if first is not None and first.framework == "numpy":
            one_device(views)
            return self._staged(given)
        outputs = self._outputs(given, views)
        if cell is not None and form is not None:  # the order in which the next call's addresses will come
            views = {**{name: views[name] for name in form.arrays}, **views}
        bound = self.bind(given, views)
        plan = self._plan(views, bound)
        framework = first.framework if first else ""
        pointers = tuple([v.pointer for v in views.values()])
        plan.run(pointers, current_stream(framework, plan.device.ordinal))
        if framework in ("jax", "dlpack"):  # nobody else orders their streams after ours
            self._wait(plan)
        if cell is not None:
            cell.ready = ready_of(self.interface, plan, bound, out)
        return self.interface.result(outputs)

    def _wait(self, plan: Plan) -> None:
        with cuda.on_device(plan.device.ordinal):
            cuda.checked(cuda.driver().cuStreamSynchronize(0), "cuStreamSynchronize", self.graph.name)

    def _outputs(self, given: Given, views: dict[str, ArrayView]) -> dict[str, Any]:
        """The arrays to write into, allocated if need be; their views are added to `views`."""
        for name, array in given.outputs.items():
            views[name] = view(name, array)
        first = next(iter(views.values()))
        results = dict(given.outputs)
        missing = [node for node in self.interface.written if node.tensor not in results]
        bound = self.bind(given, views) if missing else None
        for node in missing:
            assert bound is not None
            results[node.tensor] = array = empty(first.framework, first.device, shape_of(node, bound), node.dtype)
            views[node.tensor] = view(node.tensor, array)._replace(readonly=False)  # JAX says it is; nobody has it yet
        return results

    def plan(self, given: Given, views: Mapping[str, ArrayView]) -> Plan:
        return self._plan(views, self.bind(given, views))

    def _plan(self, views: Mapping[str, ArrayView], bound: Bound) -> Plan:
        cell = self._plans((bound, *layout(views)))
        if not cell:
            device = one_device(views)
            if device < 0:
                name, v = next(iter(views.items()))
                raise WgError(WrongDevice(name=name, got=v.place))
            cell[:] = [self._new_plan(views, bound, cuda.device(device))]
        return cell[0]

    def _new_plan(self, views: Mapping[str, ArrayView], bound: Bound, device: cuda.Device) -> Plan:
        def templates(views: Mapping[str, ArrayView]) -> tuple[Template, ...]:
            self.interface.check(views)
            if all(0 in views[name].shape for name in self.interface.outputs):
                return ()
            made = [launcher.template(self._module(name), views, bound, device) for name, launcher in self._launchers.items()]
            return tuple(t for t in made if t is not None)

        passing = Passing(self._passed, bound, device.ordinal, self._blocks) if self._passed else None
        return Plan(device, views, frozenset(self.interface.outputs), templates, passing)

    def _module(self, name: str) -> Module:
        binary = self._binaries()[name]
        with self._lock:
            if name not in self._modules:
                kernel = next(k for k in self.roles.kernels if k.name == name)
                self._modules[name] = Module(
                    cubin=binary.cubin,
                    entry=self.entries[name],
                    target=self.roles.target,
                    shared=TARGETS[self.roles.target].shared_bytes(kernel.shared_bytes),
                    compiler=binary.nvrtc,
                    again=partial(self._again, name),
                )
            return self._modules[name]

    def global_array(self, kernel: str, name: str, device: int) -> tuple[int, int]:
        return self._module(kernel).global_array(name, device)

    def _staged(self, given: Given) -> Any:
        """Host arrays: copied to the current device and back."""
        inputs = {name: to_numpy(name, a) for name, a in given.inputs.items()}
        self.interface.check(host_views(inputs, given.outputs))
        outputs = self.host_outputs(given)
        device = cuda.current_device()
        with cuda.on_device(device), staged(device, inputs, outputs) as views:
            self.plan(given, views).run(tuple(v.pointer for v in views.values()), 0)
        return self.interface.result(outputs)
