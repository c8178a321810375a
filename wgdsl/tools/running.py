"""`wgdsl run`: a kernel on random inputs, checked against float64, timed.

In: a kernel, its dims, a seed of the inputs, in the simulator one of the order of events, and where to run.  Out: what came
out, and lines to print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..diagnostics.model import EnvironmentFault, WgError
from ..diagnostics.runtime import DimsDontFit, UnknownSetting
from ..driver import Journal, guarded, orders_of, timed
from ..foundation.dtypes import DType
from ..reference.random import random_inputs
from ..reference.shapes import solve_dims
from ..roles.marks import KEPT, measured
from ..runtime import cuda
from ..runtime.bind import Bound, call_dims, shape_of
from ..runtime.kernel import Kernel
from ..runtime.launch import refusals
from ..runtime.noting import noted
from ..runtime.timing import time_kernel
from ..settings import numbers
from ..targets.registers import WARPGROUP
from .judge import Verdict, judge
from .timeline_text import timeline_lines
from .trace_events import trace_text
from .watch import busy, watched

SHOWN = 12  # tiles of a probe that are listed
DEVICES = ("auto", "gpu", "sim", "reference")


@dataclass(frozen=True, kw_only=True)
class Run:
    """Inputs and results are NumPy arrays by name. orders: of the events in the simulator, in words, by kernel."""

    device: str
    inputs: Mapping[str, np.ndarray]
    results: Mapping[str, np.ndarray]
    bound: Bound
    verdicts: tuple[Verdict, ...] = ()
    seconds: tuple[float, ...] = field(default=())
    orders: Mapping[str, str] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        return all(v.right for v in self.verdicts)


def choose_device(wanted: str) -> str:
    """`auto` is the GPU where there is one, else the simulator."""
    if wanted not in DEVICES:
        raise WgError(UnknownSetting(text=wanted, known=DEVICES, why=f"`{wanted}` is no device to run on"))
    if wanted != "auto":
        return wanted
    return "gpu" if cuda.available() else "sim"


def run(
    kernel: Kernel,
    dims: Mapping[str, int],
    *,
    device: str,
    seed: int = 0,
    order: int | None = None,
    check: bool = False,
    repeats: int = 0,
) -> Run:
    """Run once, outputs filled with NaN before; then check and time. seed: of the inputs. order: a seed of the order of events,
    in the simulator alone; None is the canonical one."""
    inputs = _inputs(kernel, dims, seed)
    given = kernel.interface.sort((), {**inputs, **parameters(kernel, dims)}, None)
    bound = kernel.bound(given)
    untouched = {n.tensor: unwritten(shape_of(n, bound), n.dtype) for n in kernel.graph.outputs}
    outputs = {name: a.copy() for name, a in untouched.items()}
    with busy():
        if device == "sim":
            kernel.simulate(**inputs, **given.dims, out=outputs, seed=order)
        else:
            kernel(**inputs, **given.dims, out=outputs, device=device)
    found = (inputs | untouched, bound.scalars, bound.dims, outputs, kernel.approximated)
    verdicts = judge(kernel.graph, *found) if check else []
    with busy():
        seconds = time_kernel(kernel, inputs, given.dims, repeats) if repeats else []
    return Run(
        device=device,
        inputs=inputs,
        results=outputs,
        bound=bound,
        verdicts=tuple(verdicts),
        seconds=tuple(seconds),
        orders=orders_of(kernel, order) if order is not None else {},
    )


def interleaved(
    kernels: Sequence[Kernel], dims: Mapping[str, int], *, rounds: int, repeats: int
) -> tuple[Mapping[str, int], list[list[float]]]:
    """Every dim of a call, and seconds of many launches of each of several kernels of one program on the same inputs. They take
    turns, a round each, so that a card that grows warm slows down all of them."""
    inputs, told = _inputs(kernels[0], dims, 0), parameters(kernels[0], dims)
    bound = kernels[0].bound(kernels[0].interface.sort((), {**inputs, **told}, None))
    found: list[list[float]] = [[] for _ in kernels]
    for _ in range(rounds):
        for kernel, times in zip(kernels, found, strict=True):
            with busy():
                times += time_kernel(kernel, inputs, told, repeats)
    return bound.dims, found


def _inputs(kernel: Kernel, dims: Mapping[str, int], seed: int) -> dict[str, np.ndarray]:
    return random_inputs(kernel.graph, every_dim(kernel, dims), seed)


def every_dim(kernel: Kernel, dims: Mapping[str, int]) -> dict[str, int]:
    """All dims of a call, from those that follow from no others. Raises WgError for dims that don't exist or don't fit."""
    known = (*kernel.graph.dims, *kernel.graph.derived, *kernel.graph.fixed)
    for name in dims:
        if name not in known:
            raise WgError(UnknownSetting(text=name, known=known, why=f"the program has no dim `{name}`"))
    try:
        return solve_dims(kernel.graph, {}, dims)
    except ValueError as e:
        raise WgError(DimsDontFit(why=str(e), dims=kernel.graph.dims)) from None


def parameters(kernel: Kernel, dims: Mapping[str, int]) -> dict[str, int]:
    """Dims that the call has to be told."""
    return {name: dims[name] for name in call_dims(kernel.graph) if name in dims}


def unwritten(shape: tuple[int, ...], dtype: DType) -> Any:
    """An output that shows which of its elements nobody wrote."""
    return np.full(shape, np.nan if dtype.kind == "float" else -(2**31) * (dtype.kind == "int"), dtype.numpy())


def summary(run: Run) -> list[str]:
    """Lines to print."""
    dims = ", ".join(f"{n} = {v}" for n, v in run.bound.dims.items())
    lines = [f"ran on {run.device}: {dims}", *order_lines(run.orders)]
    lines += [f"  {v}" for v in run.verdicts]
    if not run.verdicts:
        lines += [f"  {name}: {_shape(a)}" for name, a in run.results.items()]
    if run.seconds:
        t = sorted(run.seconds)
        lines.append(f"  time: median {1e6 * t[len(t) // 2]:.1f} us, fastest {1e6 * t[0]:.1f} us, of {len(t)} runs")
    return lines


def order_lines(orders: Mapping[str, str]) -> list[str]:
    return [f"  order of events{f' in {name}' if len(orders) > 1 else ''}: {order}" for name, order in orders.items()]


def _shape(a: np.ndarray) -> str:
    values = a.astype(np.float64)
    seen = f", {np.nanmin(values):.4g} to {np.nanmax(values):.4g}" if values.size and not np.isnan(values).all() else ""
    return f"{list(a.shape)} {a.dtype}{seen}"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `wgdsl run` was asked. `timeout` None: this is the watched process. `seed`: of the inputs, None like 0; in the
    simulator of the order of events too, None for the canonical one."""

    dims: tuple[str, ...]
    device: str
    check: bool
    repeats: int
    seed: int | None
    cuda: Path | None
    output: Path | None
    timeout: float | None
    probe_out: Path | None = None
    probed: bool = False
    timeline: Path | None = None


def perform(kernel: Kernel, journal: Journal, request: Request, arguments: list[str]) -> tuple[list[str], bool]:
    """Lines to print, and whether the results are right. A run on the GPU goes to a watched process."""
    device = choose_device(request.device)
    if request.cuda is not None:
        kernel = kernel.with_cuda(request.cuda.read_text("utf-8"), str(request.cuda))
        _needs_gpu(device, f"{request.cuda} compiles ({_compiled(kernel)}), but CUDA texts run on a GPU only")
    if request.timeline is not None:
        _needs_gpu(device, "an SM's clock is read on a GPU only")
        kernel, names = timed(kernel)
    if request.repeats:
        _needs_gpu(device, "times are taken on a GPU only")
    if device == "gpu":
        cuda.driver()
        with guarded(journal):  # before the clock of the watched process runs
            kernel.build()
        if request.timeout is not None:
            return [], watched(arguments, request.timeout) == 0
    if request.timeline is not None:
        with guarded(journal):
            return measure(kernel, names, numbers(request.dims), request.seed or 0, request.timeline), True
    if request.probed:
        with guarded(journal):
            return probed(kernel, numbers(request.dims), device, request), True
    with guarded(journal):
        done = run(
            kernel,
            numbers(request.dims),
            device=device,
            seed=request.seed or 0,
            order=request.seed if device == "sim" else None,
            check=request.check,
            repeats=request.repeats,
        )
    if request.output is not None:
        arrays: dict[str, Any] = {n: portable(a) for n, a in {**done.inputs, **done.results}.items()}
        np.savez(request.output, **arrays)
    return [*summary(done), *gpu_notes(kernel, done)], done.right


def measure(kernel: Kernel, names: Mapping[str, str], dims: Mapping[str, int], seed: int, output: Path) -> list[str]:
    """Run it for what its texts note, and write the trace. Lines to print."""
    with busy():
        notes = noted(kernel, _inputs(kernel, dims, seed), parameters(kernel, dims), names)
        machine = cuda.device(cuda.current_device()).name
    shape = {k.name: (KEPT + 1, k.threads // WARPGROUP) for k in kernel.roles.kernels}
    found = [measured(k, notes[k.name].reshape(shape[k.name]), machine) for k in kernel.roles.kernels if k.name in notes]
    output.write_text(trace_text(found), "utf-8")
    return [line for t in found for line in timeline_lines(t)]


def probed(kernel: Kernel, dims: Mapping[str, int], device: str, request: Request) -> list[str]:
    """Run for what the schedule's probes see. Lines to print; all tiles go to a file if one is asked for."""
    inputs, output = _inputs(kernel, dims, request.seed or 0), request.probe_out
    order = request.seed if device == "sim" else None
    with busy():
        tiles = kernel.probe(**inputs, **parameters(kernel, dims), device=device, seed=order)
    lines = [f"ran on {device}: {len(tiles)} tiles were looked at"]
    lines += order_lines(orders_of(kernel, order)) if order is not None else []
    lines += [f"  {key}: {_shape(a)}" for key, a in list(tiles.items())[:SHOWN]]
    if output is not None:
        arrays: dict[str, Any] = dict(tiles)
        np.savez(output, **arrays)
    elif len(tiles) > SHOWN:
        lines.append(f"  ... and {len(tiles) - SHOWN} more: `--probe-out FILE.npz` keeps all")
    return lines


def _compiled(kernel: Kernel) -> str:
    found = [r for c in kernel.binaries.values() for r in c.kernels]
    return "; ".join(f"{r.registers} registers at launch, {r.spill_stores + r.spill_loads} bytes spilled" for r in found)


def _needs_gpu(device: str, what: str) -> None:
    if not cuda.available():
        raise EnvironmentFault(what, "run this on a machine with an NVIDIA GPU and its driver")
    if device != "gpu":
        raise EnvironmentFault(what, "leave `--device` out: this machine has one")


def portable(a: np.ndarray) -> np.ndarray:
    """The array in a type that NumPy's files can hold: bf16 and fp8 become f32, exactly."""
    return a if a.dtype.isbuiltin == 1 else a.astype(np.float32)


def gpu_notes(kernel: Kernel, done: Run) -> list[str]:
    """What a GPU would refuse of arrays that the simulator took: dense ones, as NumPy arrays are copied to a GPU."""
    if done.device != "sim":
        return []
    shapes = {name: a.shape for name, a in {**done.inputs, **done.results}.items()}
    problems = dict.fromkeys(p for k in kernel.roles.kernels for p in refusals(k, shapes))
    return [f"note: on a GPU `{p.name}` would be refused: {p.title()}" for p in problems]
