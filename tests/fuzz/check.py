"""Is a case right? Compiled, run on outputs full of NaN, held against float64, and again in another order of events."""

from __future__ import annotations

import signal
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

import numpy as np

from tests.fuzz.case import Case
from tests.fuzz.inputs import arrays
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import Settings, compile, prepare
from wgdsl.forms import explained
from wgdsl.foundation.source import Source
from wgdsl.reference.evaluate import evaluate
from wgdsl.runtime.bind import Bound, shape_of
from wgdsl.runtime.kernel import Kernel
from wgdsl.runtime.launch import refusals
from wgdsl.syntax.formatter import fmt
from wgdsl.tools.judge import judge
from wgdsl.tools.running import unwritten

# What a well-typed program with a sensible schedule may be refused for: it takes too much of the machine, or isn't built.
ALLOWED = {
    "WG0405": "not yet supported",
    "WG0706": "more registers than the pool has",
    "WG0707": "more registers than a thread has",
    "WG0708": "more shared memory than there is",
    "WG0722": "more sizes than the verifier tries",
}
LIMIT = 240  # seconds for a case
ITEMS = 300  # of a persistent grid, more than twice as many as a GPU has SMs


@dataclass(kw_only=True)
class Outcome:
    """refused: codes, with the message. wrong: what failed, in words."""

    refused: tuple[str, ...] = ()
    message: str = ""
    wrong: list[str] = field(default_factory=list)
    runs: int = 0

    @property
    def failed(self) -> bool:
        return bool(self.wrong)


def compiled(case: Case, build: bool = False) -> Kernel:
    return compile(
        case.text,
        schedule=case.schedule,
        target=case.target,
        dims=case.dims,
        types={"T": case.dtype},
        options=case.options,
        build=build,
    )


def check(case: Case, device: str = "sim", seed: int = 0, build: bool = False) -> Outcome:
    """seed: of the inputs and the order of events; every fourth case is read back from its explicit form too. build: compile
    the CUDA text too, where nothing runs it."""
    out = Outcome()
    try:
        with limited(LIMIT), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel = compiled(case, build or device == "gpu")
            if device == "sim" and seed % 4 == 0:
                out.wrong += unlike(case, kernel)
            for k, dims in enumerate(case.sizes):
                out.wrong += [f"{given(dims)}: {w}" for w in run(case, kernel, dims, device, seed + k)]
                out.runs += 1
    except WgError as e:
        codes = tuple(dict.fromkeys(p.code for p in e.problems))
        out.message = str(e)
        if set(codes) <= set(ALLOWED):
            out.refused = codes
        else:
            out.wrong.append(f"refused: {', '.join(codes)}")
    except Exception as e:
        out.wrong.append(f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}")
        out.message = traceback.format_exc()
    return out


def unlike(case: Case, kernel: Kernel) -> list[str]:
    """How the kernel's explicit form, read back, differs from it."""
    settings = Settings(options=case.options, types={"T": case.dtype}, dims=case.dims)
    _, journal = prepare(case.text, schedule=case.schedule, target=case.target, settings=settings)
    text = explained(journal.forms)
    again = compile(text, build=False)
    laid_out = fmt(Source("explicit.wg", text))
    wrong = [] if fmt(Source("explicit.wg", laid_out)) == laid_out else ["explicit form: laid out twice"]
    wrong += [] if again.roles == kernel.roles else ["explicit form: other roles"]
    return wrong + ([] if again.forms.texts == kernel.forms.texts else ["explicit form: another CUDA text"])


def given(dims: Mapping[str, int]) -> str:
    return " ".join(f"{n}={v}" for n, v in dims.items())


def run(case: Case, kernel: Kernel, dims: Mapping[str, int], device: str, seed: int) -> list[str]:
    """What is wrong at a size, in words."""
    dims = launchable(case, kernel, crowded(kernel, dims) if device == "gpu" else dims)
    inputs = case.prepared(arrays(case, kernel.graph, dims, seed), dims)
    known = {n for n in dims if n in kernel.graph.dims}
    shaped = {s for i in kernel.graph.inputs for p in i.shape for s in p.symbols()}
    call = kernel.interface.sort((), {**inputs, **{n: dims[n] for n in known - shaped}}, None)
    bound = kernel.bound(call)
    first, second = ({n.tensor: unwritten(shape_of(n, bound), n.dtype) for n in kernel.graph.outputs} for _ in range(2))
    for results, order in ((first, None), (second, seed + 1)):
        if device == "gpu":
            kernel(**inputs, **call.dims, out=results, device="gpu")
        else:
            kernel.simulate(**inputs, **call.dims, out=results, seed=order)
    wrong = [str(v) for v in judge(kernel.graph, inputs, bound.scalars, bound.dims, first) if not v.right]
    wrong += otherwise(case, kernel, inputs, bound)
    if not case.any_order:
        same = (np.array_equal(first[n].view(np.uint8), second[n].view(np.uint8)) for n in first)
        wrong += [f"{n}: not the same twice" for n, equal in zip(first, same, strict=True) if not equal]
    return wrong


def otherwise(case: Case, kernel: Kernel, inputs: Mapping[str, np.ndarray], bound: Bound) -> list[str]:
    """Where the evaluator and the case's own right values differ: both are of float64."""
    expected = case.expected(inputs, bound.dims)
    if not expected:
        return []
    exact = evaluate(kernel.graph, inputs, bound.scalars, {n: bound.dims[n] for n in kernel.graph.dims})
    agree = (np.allclose(exact[n], x, rtol=1e-9, atol=1e-9, equal_nan=True) for n, x in expected.items())
    return [f"{n}: the evaluator is WRONG" for n, right in zip(expected, agree, strict=True) if not right]


def crowded(kernel: Kernel, dims: Mapping[str, int]) -> dict[str, int]:
    """Of a persistent grid on a GPU: so many rows that each CTA has several items, as two CTAs have in the simulator."""
    grids = [k.grid for k in kernel.roles.kernels if k.grid.persistent]
    values = {**kernel.graph.fixed, **dims}
    values |= {n: p.evaluate(values) for n, p in kernel.graph.derived.items()}
    items = min((prod(a.blocks.evaluate(values) for a in g.axes) for g in grids), default=0)
    if not items:
        return dict(dims)
    few = {"N": min(dims["N"], 150)} if "N" in dims and "N" not in kernel.graph.fixed else {}
    return {**dims, **few, "M": dims["M"] * -(-ITEMS // items)}


def launchable(case: Case, kernel: Kernel, dims: Mapping[str, int]) -> dict[str, int]:
    """The dims, rounded up to multiples of 8 if a GPU couldn't take the arrays otherwise."""
    for rounded in (dict(dims), {n: -(-v // 8) * 8 if n in "MNK" else v for n, v in dims.items()}):
        shapes = {n: a.shape for n, a in arrays(case, kernel.graph, rounded, 0).items()}
        values = {**kernel.graph.fixed, **rounded}
        derived = {n: p.evaluate(values) for n, p in kernel.graph.derived.items()}
        shapes |= {o.tensor: tuple(p.evaluate({**values, **derived}) for p in o.shape) for o in kernel.graph.outputs}
        if not any(True for k in kernel.roles.kernels for _ in refusals(k, shapes)):
            return rounded
    raise ValueError(f"no GPU takes arrays of {given(dims)}")


class TookTooLong(Exception):
    pass


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise TookTooLong after so long."""

    def over(*_: object) -> None:
        raise TookTooLong(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
