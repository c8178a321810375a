"""How long things take on one SM: the numbers behind a predicted timeline, and where each comes from.

`docs/performance.md` has the same table with what each number leaves out. Rates are per cycle of the SM clock. Sources:
GUIDE = CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions" and "Shared Memory"; H100, A100 = NVIDIA's
architecture white papers; RUN = recorded runs of attention kernels on an H200 with hardware counters; PUBLISHED = latencies of
published pointer-chasing measurements (GH200: 281 cycles to the L2 cache; A100: 200); CODE = counted in machine code.
"""

from __future__ import annotations

from dataclasses import dataclass

from .choice import FAMILIES, TARGETS

TENSOR, FMA, ALU, MUFU, SHUFFLE, ISSUE, SHARED, MEMORY = ENGINES = (
    "tensor cores", "FMA", "ALU", "MUFU", "shuffles", "issue", "shared memory", "copies",
)  # fmt: skip
PIPES = (FMA, ALU, MUFU, SHUFFLE)  # that a thread's instructions go to


@dataclass(frozen=True, kw_only=True)
class Known:
    """A number and its source."""

    value: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Cycles:
    """One machine. The model is of one of an SM's four partitions, on which each warpgroup has one warp, and of what the four
    share.

    sms: of the machine. clock: in GHz. products: 16-bit floating-point operations of an SM. lanes: results of each pipe of an
    SM for one kind of instruction. interval: between two instructions of one warp at least. shared, memory: bytes of an SM
    from and to shared memory, and between it and the L2 cache. shared_latency, memory_latency: cycles until a first byte is
    there. bandwidth: bytes a second of the machine's memory.
    """

    machine: str
    sms: Known
    clock: Known
    products: Known
    lanes: dict[str, Known]
    interval: Known
    shared: Known
    shared_latency: Known
    memory: Known
    memory_latency: Known
    bandwidth: Known

    def __post_init__(self):
        assert tuple(self.lanes) == PIPES, "every pipe has a rate"
        assert self.interval.value >= 1, "a partition issues one instruction a cycle"

    def occupied(self, pipe: str, instructions: float) -> float:
        """Cycles that a warp's instructions keep its partition's pipe."""
        return instructions * PARTITIONS * LANES / self.lanes[pipe].value

    def product(self, m: int, n: int, k: int, nbytes: int) -> float:
        """Cycles of the SM's tensor cores for one product of operands of `nbytes`; those of 8 bits go at twice the rate."""
        return 2 * m * n * k * nbytes / (2 * self.products.value)


PARTITIONS, LANES = 4, 32


def _lanes(fma: int, source: str) -> dict[str, Known]:
    return {
        FMA: Known(value=fma, source=source),
        ALU: Known(value=64, source=f"{source}: compare, minimum, maximum; conversions"),
        MUFU: Known(value=16, source=f"{source}: exp2, log2, reciprocal, tanh"),
        SHUFFLE: Known(value=32, source=f"{source}: warp shuffle"),
    }


# Stalls of kind `wait` (an earlier instruction's fixed latency) are 1.9 to 2.1 cycles for each instruction issued.
_INTERVAL = Known(value=3, source="RUN: 1 cycle to issue and 1.9 to 2.1 of `wait` stalls for each instruction")

H200 = Cycles(
    machine="H200",
    sms=Known(value=132, source="H100"),
    clock=Known(value=1.6, source="RUN: sampled between 1.45 and 1.75 GHz under such kernels, which the power cap holds"),
    products=Known(value=4096, source="H100: 989 TFLOP/s of 16 bits on 132 SMs at 1.83 GHz; RUN: agrees with its counters"),
    lanes=_lanes(128, "GUIDE, 9.0"),
    interval=_INTERVAL,
    shared=Known(value=128, source="GUIDE: 32 banks of 4 bytes"),
    shared_latency=Known(value=30, source="PUBLISHED, about"),
    memory=Known(
        value=64, source="RUN: 14 and 21 bytes a cycle are 19 % and 32 % of the L2 cache's rate; a third run halves that"
    ),
    memory_latency=Known(value=281, source="PUBLISHED for GH200; of a plain load: what a bulk copy adds isn't known"),
    bandwidth=Known(value=4.29e12, source="RUN: a copy"),
)
A100 = Cycles(
    machine="A100",
    sms=Known(value=108, source="A100"),
    clock=Known(value=1.41, source="A100"),
    products=Known(value=2048, source="A100: 312 TFLOP/s of 16 bits on 108 SMs at 1.41 GHz"),
    lanes=_lanes(64, "GUIDE, 8.0"),
    interval=Known(value=3, source="as on the H200; not measured on an A100"),
    shared=Known(value=128, source="GUIDE: 32 banks of 4 bytes"),
    shared_latency=Known(value=30, source="PUBLISHED, about"),
    memory=Known(value=47, source="A100: 5120 bytes a cycle of the L2 cache for 108 SMs"),
    memory_latency=Known(value=200, source="PUBLISHED"),
    bandwidth=Known(value=1.56e12, source="A100, 40 GB: its peak"),
)

MACHINES = {"sm_90a": H200, "sm_80": A100}
assert MACHINES.keys() <= TARGETS.keys()

# Instructions of a warp for each element, by pipe, of the functions that role programs hold. One that isn't rounded right by a
# single instruction is refined by others (CODE, to a few).
FUNCTIONS: dict[str, dict[str, float]] = {
    "neg": {}, "abs": {},  # a sign of an operand
    "add": {FMA: 1}, "sub": {FMA: 1}, "mul": {FMA: 1},
    "min": {ALU: 1}, "max": {ALU: 1}, "relu": {ALU: 1},
    "exp2": {MUFU: 1}, "exp": {FMA: 1, MUFU: 1},
    "log2": {MUFU: 1, FMA: 2, ALU: 2}, "log": {MUFU: 1, FMA: 3, ALU: 2},
    "rcp": {MUFU: 1, FMA: 4, ALU: 2}, "div": {MUFU: 1, FMA: 8, ALU: 4},
    "rsqrt": {MUFU: 1, FMA: 2}, "sqrt": {MUFU: 1, FMA: 4, ALU: 2},
    "tanh_approx": {MUFU: 1}, "tanh": {MUFU: 2, FMA: 8, ALU: 4}, "sigmoid": {MUFU: 2, FMA: 3}, "silu": {MUFU: 2, FMA: 4},
    "erf": {MUFU: 1, FMA: 20, ALU: 4}, "gelu": {MUFU: 1, FMA: 23, ALU: 4}, "gelu_tanh": {MUFU: 2, FMA: 12, ALU: 4},
    "pow": {MUFU: 2, FMA: 20, ALU: 8},
}  # fmt: skip

# Instructions of a warp for one step, beside those for its elements: addresses, predicates, the loop around a try_wait (CODE,
# to a few).
STEPS = {
    "Wait": 8, "Arrive": 5, "Expect": 5, "Tma": 12, "Advance": 4, "BarSync": 3, "BarArrive": 3, "Loop": 6, "If": 3, "Let": 4,
    "FenceWgmma": 1, "Commit": 1, "WaitGroup": 1, "FenceAsync": 1, "Elect": 4, "TmaStore": 12, "CommitStore": 1, "WaitStore": 1,
    "CommitCopies": 1, "WaitCopies": 1, "Items": 8, "Read": 12, "Fetch": 8, "PutItem": 6, "TakeItem": 8, "NextItem": 8,
    "Registers": 1, "Leave": 2, "Tally": 4, "ListTile": 20, "Classify": 8,
}  # fmt: skip
PER_PRODUCT = 2  # of an asynchronous product, for each matrix instruction: itself and its descriptor's low half


assert {TARGETS[t].family for t in MACHINES} == set(FAMILIES), "both kinds of target have one"
