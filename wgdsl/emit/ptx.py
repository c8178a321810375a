"""The PTX wrappers: one small inline function for each instruction that the emitted text uses, and none for others.

Every function here takes what distinguishes the instruction (a shape, a count) and returns its C++ definition. Names and
definitions end up in `namespace ptx` of the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..targets.cp_async import CP_ASYNC_BYTES
from ..targets.mma import mnemonic as warp_mnemonic
from ..targets.wgmma import INSTRUCTIONS, M
from .asm import Asm

DEVICE = "__device__ __forceinline__"


@dataclass(frozen=True)
class Function:
    """A C++ function of `namespace ptx`: its name, and its definition line by line."""

    name: str
    lines: tuple[str, ...]


WRAPPERS: dict[str, Callable[..., Function]] = {}


def wrapper(make: Callable[..., Function]) -> Callable[..., Function]:
    assert make.__name__ not in WRAPPERS, f"two wrappers named {make.__name__}"
    WRAPPERS[make.__name__] = make
    return make


def _function(head: str, body: list[str], template: str = "") -> Function:
    name = head.split("(")[0].split()[-1]
    opening = [template] if template else []
    return Function(name, (*opening, f"{DEVICE} {head} {{", *("  " + b for b in body), "}"))


def _asm(head: str, text: str, *inputs: tuple[str, str], memory: bool = True) -> Function:
    """A function that is one instruction; `{}` in its text are the inputs in turn."""
    a = Asm(memory=memory)
    a.row(text.format(*(a.input(c, e) for c, e in inputs)))
    return _function(head, a.lines())


# Addresses and integers.


@wrapper
def shared_address() -> Function:
    return _function("unsigned shared_address(const void* p)", ["return (unsigned)__cvta_generic_to_shared(p);"])


@wrapper
def floor_div() -> Function:
    return _function("int floor_div(int a, int b)", ["const int q = a / b;", "return q - (q * b != a && (a < 0) != (b < 0));"])


@wrapper
def floor_mod() -> Function:
    return _function(
        "int floor_mod(int a, int b)", ["const int r = a % b;", "return r != 0 && (r < 0) != (b < 0) ? r + b : r;"]
    )


@wrapper
def divided() -> Function:
    """x / d.value for 0 <= x < 2^31 (`roles.items.multiplier`)."""
    return _function("int divided(int x, Divisor d)", ["return __umulhi(2u * x, d.multiplier) >> d.shift;"])


# Mbarriers.


@wrapper
def mbarrier_init() -> Function:
    return _asm(
        "void mbarrier_init(unsigned bar, int count)",
        "mbarrier.init.shared::cta.b64 [{}], {};",
        ("r", "bar"),
        ("r", "count"),
    )


@wrapper
def fence_mbarrier_init() -> Function:
    return _asm("void fence_mbarrier_init()", "fence.mbarrier_init.release.cluster;")


@wrapper
def mbarrier_wait() -> Function:
    a = Asm(memory=True)
    bar, parity = a.input("r", "bar"), a.input("r", "parity")
    a.row("{")
    a.row(".reg .pred done;")
    a.row(f"again: mbarrier.try_wait.parity.shared::cta.b64 done, [{bar}], {parity};")
    a.row("@!done bra again;")
    a.row("}")
    return _function("void mbarrier_wait(unsigned bar, unsigned parity)", a.lines())


@wrapper
def mbarrier_expect() -> Function:
    return _asm(
        "void mbarrier_expect(unsigned bar, int bytes)",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [{}], {};",
        ("r", "bar"),
        ("r", "bytes"),
    )


@wrapper
def mbarrier_arrive() -> Function:
    return _asm("void mbarrier_arrive(unsigned bar)", "mbarrier.arrive.shared::cta.b64 _, [{}];", ("r", "bar"))


@wrapper
def mbarrier_arrive_times() -> Function:
    text = "mbarrier.arrive.shared::cta.b64 _, [{}], {};"
    return _asm("void mbarrier_arrive_times(unsigned bar, unsigned count)", text, ("r", "bar"), ("r", "count"))


@wrapper
def store_shared_int() -> Function:
    return _asm("void store_shared_int(unsigned to, int value)", "st.shared.b32 [{}], {};", ("r", "to"), ("r", "value"))


# The clock.


@wrapper
def note_clock(groups: int) -> Function:
    """Without a branch: one between a product's issue and its wait would serialise products (C7512)."""
    a = Asm()
    left = a.output("+r", "left")
    to, number = a.input("l", "to"), a.input("r", "number")
    a.row("{")
    a.row(".reg .pred noted;")
    a.row(".reg .b64 at, note, number;")
    a.row(f"setp.ge.u32 noted, {left}, {groups};")
    a.row("mov.u64 note, %%clock64;")
    a.row("shl.b64 note, note, 16;")
    a.row(f"cvt.u64.u32 number, {number};")
    a.row("or.b64 note, note, number;")
    a.row(f"mad.wide.u32 at, {left}, 8, {to};")
    a.row("@noted st.u64 [at], note;")
    a.row(f"@noted sub.u32 {left}, {left}, {groups};")
    a.row("}")
    return _function("void note_clock(unsigned& left, unsigned long long* to, unsigned number)", a.lines())


# Named barriers and registers.


@wrapper
def bar_sync() -> Function:
    return _asm("void bar_sync(int id, int threads)", "bar.sync {}, {};", ("r", "id"), ("r", "threads"))


def _bar_red(name: str, op: str) -> Function:
    """Wait as `bar_sync` does; whether a predicate holds in some (or every) thread that takes part (PTX ISA: "barrier.red")."""
    a = Asm(memory=True)
    out = a.output("=r", "all")
    bar, threads, own = a.input("r", "id"), a.input("r", "threads"), a.input("r", "(int)own")
    a.row("{")
    a.row(".reg .pred p, q;")
    a.row(f"setp.ne.s32 p, {own}, 0;")
    a.row(f"barrier.cta.red.{op}.pred q, {bar}, {threads}, p;")
    a.row(f"selp.s32 {out}, 1, 0, q;")
    a.row("}")
    return _function(f"bool {name}(int id, int threads, bool own)", ["int all;", *a.lines(), "return all != 0;"])


@wrapper
def bar_any() -> Function:
    return _bar_red("bar_any", "or")


@wrapper
def bar_all() -> Function:
    return _bar_red("bar_all", "and")


@wrapper
def bar_arrive() -> Function:
    return _asm("void bar_arrive(int id, int threads)", "bar.arrive {}, {};", ("r", "id"), ("r", "threads"))


def _setmaxnreg(direction: str) -> Function:
    a = Asm()
    count = a.input("n", "count")
    a.row(f"setmaxnreg.{direction}.sync.aligned.u32 {count};")
    return _function(f"void setmaxnreg_{direction}()", a.lines(), "template <int count>")


@wrapper
def setmaxnreg_inc() -> Function:
    return _setmaxnreg("inc")


@wrapper
def setmaxnreg_dec() -> Function:
    return _setmaxnreg("dec")


# Tensor copies.


@wrapper
def prefetch() -> Function:
    return _asm("void prefetch(const TMap& map)", "prefetch.tensormap [{}];", ("l", "&map"))


@wrapper
def tma_load(rank: int) -> Function:
    a = Asm(memory=True)
    to, tensor = a.input("r", "to"), a.input("l", "&map")
    at = [a.input("r", f"c{k}") for k in range(rank)]
    bar = a.input("r", "bar")
    a.row(
        f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
        f" [{to}], [{tensor}, {{{', '.join(at)}}}], [{bar}];"
    )
    coords = ", ".join(f"int c{k}" for k in range(rank))
    return _function(f"void tma_load_{rank}d(unsigned to, const TMap& map, {coords}, unsigned bar)", a.lines())


@wrapper
def tma_store(rank: int) -> Function:
    return _tma_out(rank, "tma_store", "cp.async.bulk", "global.shared::cta")


@wrapper
def tma_add(rank: int) -> Function:
    """PTX ISA: "cp.reduce.async.bulk.tensor"."""
    return _tma_out(rank, "tma_add", "cp.reduce.async.bulk", "global.shared::cta.add.tile")


def _tma_out(rank: int, name: str, instruction: str, kind: str) -> Function:
    a = Asm(memory=True)
    tensor = a.input("l", "&map")
    at = [a.input("r", f"c{k}") for k in range(rank)]
    source = a.input("r", "from")
    a.row(f"{instruction}.tensor.{rank}d.{kind}.bulk_group [{tensor}, {{{', '.join(at)}}}], [{source}];")
    coords = ", ".join(f"int c{k}" for k in range(rank))
    return _function(f"void {name}_{rank}d(const TMap& map, {coords}, unsigned from)", a.lines())


@wrapper
def tma_store_commit() -> Function:
    return _asm("void tma_store_commit()", "cp.async.bulk.commit_group;")


def _store_wait(name: str, text: str) -> Function:
    a = Asm(memory=True)
    pending = a.input("n", "pending")
    a.row(f"{text} {pending};")
    return _function(f"void {name}()", a.lines(), "template <int pending>")


@wrapper
def tma_store_wait_read() -> Function:
    return _store_wait("tma_store_wait_read", "cp.async.bulk.wait_group.read")


@wrapper
def tma_store_wait() -> Function:
    return _store_wait("tma_store_wait", "cp.async.bulk.wait_group")


@wrapper
def fence_async() -> Function:
    return _asm("void fence_async()", "fence.proxy.async.shared::cta;")


# Wgmma.


@wrapper
def matrix() -> Function:
    return _function("unsigned long long matrix(unsigned low, unsigned high)", ["return (unsigned long long)high << 32 | low;"])


@wrapper
def wgmma(dtype: str, n: int, a_registers: bool, a_major: str, b_major: str) -> Function:
    """D[64, n] = A * B (+ D). A from registers or shared memory; majors K or MN."""
    row = INSTRUCTIONS[dtype]
    asm = Asm()
    d = [asm.output("+f", f"d[{k}]") for k in range(M * n // 128)]
    if a_registers:
        a = "{" + ", ".join(asm.input("r", f"a{k}") for k in range(4)) + "}"
    else:
        a = asm.input("l", "a")
    b = asm.input("l", "b")
    accumulate = asm.input("r", "accumulate")
    majors = ([] if a_registers else [a_major]) + [b_major]
    if not row.transposable and "MN" in majors:
        raise ValueError(f"{dtype} operands of wgmma are K-major")
    transposed = "".join(f", {int(m == 'MN')}" for m in majors) if row.transposable else ""
    asm.row("{")
    asm.row(".reg .pred p;")
    asm.row(f"setp.ne.b32 p, {accumulate}, 0;")
    asm.row(f"{row.mnemonic(n)} {{{', '.join(d)}}}, {a}, {b}, p, 1, 1{transposed};")
    asm.row("}")
    kind = ("_rs" if a_registers else "_ss") + ("_ta" if a_major == "MN" else "") + ("_tb" if b_major == "MN" else "")
    first = "unsigned a0, unsigned a1, unsigned a2, unsigned a3" if a_registers else "unsigned long long a"
    head = f"void wgmma_m{M}n{n}k{row.k}_{dtype}{kind}(float (&d)[{len(d)}], {first}, unsigned long long b, int accumulate)"
    return _function(head, asm.lines())


@wrapper
def part() -> Function:
    """Some of the registers of a result that several instructions make."""
    body = ["return *reinterpret_cast<float (*)[n]>(d + at);"]
    return _function("auto part(float (&d)[all], int at) -> float (&)[n]", body, "template <int n, int all>")


@wrapper
def wgmma_fence() -> Function:
    return _asm("void wgmma_fence()", "wgmma.fence.sync.aligned;")


@wrapper
def wgmma_commit() -> Function:
    return _asm("void wgmma_commit()", "wgmma.commit_group.sync.aligned;")


@wrapper
def wgmma_wait() -> Function:
    a = Asm(memory=True)
    pending = a.input("n", "pending")
    a.row(f"wgmma.wait_group.sync.aligned {pending};")
    return _function("void wgmma_wait()", a.lines(), "template <int pending>")


@wrapper
def ready() -> Function:
    """Ties the registers of a finished product to this place, so that no read of them moves above its wait."""
    a = Asm()
    a.output("+f", "d[k]")
    a.row("")
    body = ["#pragma unroll", "for (int k = 0; k < n; ++k)", *("  " + x for x in a.lines())]
    return _function("void ready(float (&d)[n])", body, "template <int n>")


@wrapper
def fresh() -> Function:
    """Ends what the registers held: the compiler need not keep it, though an instruction with a run-time scale-d names them."""
    a = Asm()
    a.output("=f", "d[k]")
    a.row("")
    body = ["#pragma unroll", "for (int k = 0; k < n; ++k)", *("  " + x for x in a.lines())]
    return _function("void fresh(float (&d)[n])", body, "template <int n>")


# Products of single warps.


@wrapper
def mma(dtype: str) -> Function:
    asm = Asm()
    d = [asm.output("+f", f"d[{k}]") for k in range(4)]
    a = [asm.input("r", f"a{k}") for k in range(4)]
    b = [asm.input("r", f"b{k}") for k in range(2)]
    lists = ", ".join("{" + ", ".join(x) + "}" for x in (d, a, b, d))
    asm.row(f"{warp_mnemonic(dtype)} {lists};")
    arguments = ", ".join(f"unsigned {x}{k}" for x, n in (("a", 4), ("b", 2)) for k in range(n))
    return _function(f"void mma_m16n8k16_{dtype}(float* d, {arguments})", asm.lines())


@wrapper
def ldmatrix(transposed: bool) -> Function:
    a = Asm(memory=True)
    values, at = [a.output("=r", f"r[{k}]") for k in range(4)], a.input("r", "at")
    a.row(f"ldmatrix.sync.aligned.m8n8.x4{'.trans' * transposed}.shared.b16 {{{', '.join(values)}}}, [{at}];")
    return _function(f"void ldmatrix{'_t' * transposed}(unsigned (&r)[4], unsigned at)", a.lines())


# Copies of threads.


@wrapper
def cp_async() -> Function:
    """Of the 16 bytes the first `nbytes`; the rest become 0."""
    return _asm(
        "void cp_async(unsigned to, const void* from, int nbytes)",
        f"cp.async.cg.shared.global [{{}}], [{{}}], {CP_ASYNC_BYTES}, {{}};",
        ("r", "to"),
        ("l", "from"),
        ("r", "nbytes"),
    )


@wrapper
def cp_async_commit() -> Function:
    return _asm("void cp_async_commit()", "cp.async.commit_group;")


@wrapper
def cp_async_wait() -> Function:
    a = Asm(memory=True)
    pending = a.input("n", "pending")
    a.row(f"cp.async.wait_group {pending};")
    return _function("void cp_async_wait()", a.lines(), "template <int pending>")


@wrapper
def load_shared_16() -> Function:
    a = Asm(memory=True)
    values, at = [a.output("=r", f"v.{c}") for c in "xyzw"], a.input("r", "at")
    a.row(f"ld.shared.v4.b32 {{{', '.join(values)}}}, [{at}];")
    return _function("uint4 load_shared_16(unsigned at)", ["uint4 v;", *a.lines(), "return v;"])


@wrapper
def store_global_16() -> Function:
    return _function("void store_global_16(void* to, uint4 v)", ["*(uint4*)to = v;"])


# Shared memory by threads.


@wrapper
def stmatrix() -> Function:
    a = Asm(memory=True)
    to = a.input("r", "to")
    values = [a.input("r", f"r[{k}]") for k in range(4)]
    a.row(f"stmatrix.sync.aligned.m8n8.x4.shared.b16 [{to}], {{{', '.join(values)}}};")
    return _function("void stmatrix(unsigned to, const unsigned (&r)[4])", a.lines())


def _store_shared(name: str, suffix: str, kind: str, constraint: str) -> Function:
    a = Asm(memory=True)
    to, value = a.input("r", "to"), a.input(constraint, "value")
    a.row(f"st.shared.{suffix} [{to}], {value};")
    return _function(f"void {name}(unsigned to, {kind} value)", a.lines())


@wrapper
def store_shared_b32() -> Function:
    return _store_shared("store_shared_b32", "b32", "unsigned", "r")


@wrapper
def store_shared_f32x2() -> Function:
    a = Asm(memory=True)
    to, x, y = a.input("r", "to"), a.input("f", "x"), a.input("f", "y")
    a.row(f"st.shared.v2.f32 [{to}], {{{x}, {y}}};")
    return _function("void store_shared_f32x2(unsigned to, float x, float y)", a.lines())


@wrapper
def add_global_f32() -> Function:
    a = Asm(memory=True)
    to, x = a.input("l", "to"), a.input("f", "x")
    a.row(f"red.relaxed.gpu.global.add.f32 [{to}], {x};")
    return _function("void add_global_f32(float* to, float x)", a.lines())


@wrapper
def max_global_f32() -> Function:
    """The order of f32 is that of their bits as signed integers if positive, and the reverse of it as unsigned ones if
    negative. A NaN is made the largest of all."""
    return _extreme("max", "0x7fffffff", ("max.s32", "min.u32"))


@wrapper
def min_global_f32() -> Function:
    """As for the maximum; a NaN is made the smallest of all."""
    return _extreme("min", "0xffffffff", ("min.s32", "max.u32"))


def _extreme(op: str, nan: str, signs: tuple[str, str]) -> Function:
    lines = [f"const unsigned bits = x != x ? {nan}u : __float_as_uint(x);", "if (int(bits) >= 0) {"]
    for k, how in enumerate(signs):
        a = Asm(memory=True)
        to, x = a.input("l", "to"), a.input("r", "bits")
        a.row(f"red.relaxed.gpu.global.{how} [{to}], {x};")
        lines += [*(["} else {"] if k else []), *(f"    {line}" for line in a.lines())]
    return _function(f"void {op}_global_f32(float* to, float x)", [*lines, "}"])


@wrapper
def clear_shared_16() -> Function:
    a = Asm(memory=True)
    to, zero = a.input("r", "to"), a.input("r", "0")
    a.row(f"st.shared.v4.b32 [{to}], {{{zero}, {zero}, {zero}, {zero}}};")
    return _function("void clear_shared_16(unsigned to)", a.lines())


@wrapper
def load_shared_b32x2() -> Function:
    a = Asm(memory=True)
    one, other, at = a.output("=r", "a"), a.output("=r", "b"), a.input("r", "at")
    a.row(f"ld.shared.v2.b32 {{{one}, {other}}}, [{at}];")
    return _function("void load_shared_b32x2(unsigned& a, unsigned& b, unsigned at)", a.lines())


@wrapper
def load_shared_int() -> Function:
    return _load_shared("load_shared_int", "b32", "int", "r")


def _load_shared(name: str, suffix: str, kind: str, constraint: str) -> Function:
    a = Asm(memory=True)
    value, at = a.output(f"={constraint}", "value"), a.input("r", "at")
    a.row(f"ld.shared.{suffix} {value}, [{at}];")
    return _function(f"{kind} {name}(unsigned at)", [f"{kind} value;", *a.lines(), "return value;"])


@wrapper
def load_shared_b16() -> Function:
    return _load_shared("load_shared_b16", "u16", "unsigned short", "h")


@wrapper
def load_shared_b32() -> Function:
    return _load_shared("load_shared_b32", "b32", "unsigned", "r")


# Rounding.


def _convert(name: str, returns: str, constraint: str, text: str, *arguments: tuple[str, str, str]) -> Function:
    """A pure one-instruction function; arguments are (constraint, type, name), in the order of the text's `{}`."""
    a = Asm(volatile=False)
    out = a.output(f"={constraint}", "r")
    a.row(text.format(out, *(a.input(c, n) for c, _, n in arguments)))
    formal = ", ".join(f"{t} {n}" for _, t, n in sorted(arguments, key=lambda x: x[2]))
    return _function(f"{returns} {name}({formal})", [f"{returns} r;", *a.lines(), "return r;"])


@wrapper
def pack(dtype: str) -> Function:
    """Two numbers rounded into one register: `a` in the low half. The instruction's first source is the high half."""
    return _convert(
        f"pack_{dtype}", "unsigned", "r", f"cvt.rn.{dtype}x2.f32 {{}}, {{}}, {{}};", ("f", "float", "b"), ("f", "float", "a")
    )


@wrapper
def round_to(dtype: str) -> Function:
    return _convert(f"to_{dtype}", "unsigned short", "h", f"cvt.rn.{dtype}.f32 {{}}, {{}};", ("f", "float", "a"))


@wrapper
def widen(dtype: str) -> Function:
    if dtype == "bf16":
        return _function("float from_bf16(unsigned short a)", ["return __int_as_float((int)a << 16);"])
    return _convert("from_f16", "float", "f", "cvt.f32.f16 {}, {};", ("h", "unsigned short", "a"))


# Maths.


@wrapper
def exp2() -> Function:
    return _convert("exp2", "float", "f", "ex2.approx.ftz.f32 {}, {};", ("f", "float", "a"))


@wrapper
def log2_approx() -> Function:
    return _convert("log2_approx", "float", "f", "lg2.approx.ftz.f32 {}, {};", ("f", "float", "a"))


@wrapper
def choose() -> Function:
    return _function("float choose(bool which, float a, float b)", ["return which ? a : b;"])


@wrapper
def infinity() -> Function:
    return _function("float infinity()", ["return __int_as_float(0x7f800000);"])


@wrapper
def rcp_fast() -> Function:
    return _convert("rcp_fast", "float", "f", "rcp.approx.ftz.f32 {}, {};", ("f", "float", "a"))


@wrapper
def max_nan() -> Function:
    """The larger one; NaN if either is (fmaxf would drop it)."""
    return _convert("max_nan", "float", "f", "max.NaN.f32 {}, {}, {};", ("f", "float", "a"), ("f", "float", "b"))


@wrapper
def min_nan() -> Function:
    return _convert("min_nan", "float", "f", "min.NaN.f32 {}, {}, {};", ("f", "float", "a"), ("f", "float", "b"))


@wrapper
def tanh_approx() -> Function:
    """Off by 2^-11 of the value at most (PTX ISA, section "tanh")."""
    return _convert("tanh_approx", "float", "f", "tanh.approx.f32 {}, {};", ("f", "float", "a"))


POWERS = {1: "b", 2: "b * b", 3: "b * b * b", 4: "b * b * (b * b)"}


@wrapper
def power(n: int) -> Function:
    """A power with a small whole exponent (`program.expr.exponent`), by products. The reciprocal comes first: the square of a
    large number is infinite before that of its reciprocal is 0."""
    if n > 0:
        return _function(f"float power_{n}(float b)", [f"return {POWERS[n]};"])
    return _function(f"float power_minus_{-n}(float a)", ["const float b = __frcp_rn(a);", f"return {POWERS[-n]};"])


@wrapper
def relu() -> Function:
    return _function("float relu(float a)", ["return max_nan(a, 0.0f);"])


@wrapper
def exp() -> Function:
    return _function("float exp(float a)", ["return exp2(a * 1.442695f);"])


@wrapper
def sigmoid() -> Function:
    return _function("float sigmoid(float a)", ["return rcp_fast(1.0f + exp2(a * -1.442695f));"])


@wrapper
def silu() -> Function:
    return _function("float silu(float a)", ["return a * sigmoid(a);"])


@wrapper
def gelu() -> Function:
    """a / 2 * (1 + erf(a / sqrt 2)). For negative a that sum would cancel, so half the complement of erf is made instead, as
    t * exp(-z * z + p(t)) with z = |a| / sqrt 2 and t = 1 / (1 + z / 2): the Chebyshev fit of Numerical Recipes (section 6.2),
    to 1.2e-7 of the value.
    """
    coefficients = (0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196,
                    1.00002368, -1.26551223)  # fmt: skip
    first, *rest = coefficients
    body = [
        "const float t = rcp_fast(fmaf(0.35355339f, fabsf(a), 1.0f));",
        f"float p = {first}f;",
        *(f"p = fmaf(p, t, {c}f);" for c in rest),
        "const float half = 0.5f * t * exp2(1.44269504f * fmaf(-0.5f * a, a, p));",
        "return a * (a < 0.0f ? half : 1.0f - half);",
    ]
    return _function("float gelu(float a)", body)


TANH_NEAR = 0.6  # from where on 1 - 2 / (exp(2 |a|) + 1) doesn't cancel
TANH_SERIES = (-0.00589571, 0.02079642, -0.05378395, 0.13331925, -0.33333298)  # of (tanh(a) / a - 1) / a^2, in a^2, below that


@wrapper
def tanh() -> Function:
    """To 4e-7 of the value, without a branch: those of a tile's elements run side by side. The fit is a weighted least squares
    one of the relative error.
    """
    first, *rest = TANH_SERIES
    body = [
        "const float z = fabsf(a);",
        "const float far = fmaf(-2.0f, rcp_fast(exp2(2.8853901f * z) + 1.0f), 1.0f);",
        "const float square = z * z;",
        f"float p = {first}f;",
        *(f"p = fmaf(p, square, {c}f);" for c in rest),
        f"return copysignf(z < {TANH_NEAR}f ? fmaf(z * square, p, z) : far, a);",
    ]
    return _function("float tanh(float a)", body)


@wrapper
def gelu_tanh() -> Function:
    """0.5 a (1 + tanh(u)) is a * sigmoid(2 u)."""
    return _function("float gelu_tanh(float a)", ["return a * sigmoid(1.5957691f * (a + 0.044715f * a * a * a));"])


def _quad(op: str, combine: str) -> Function:
    """The same value for the 4 lanes that share a row."""
    body = [f"a = {combine.format('a', f'__shfl_xor_sync(~0u, a, {k})')};" for k in (1, 2)]
    return _function(f"float quad_{op}(float a)", [*body, "return a;"])


@wrapper
def quad_sum() -> Function:
    return _quad("sum", "{} + {}")


@wrapper
def quad_max() -> Function:
    return _quad("max", "max_nan({}, {})")


@wrapper
def quad_min() -> Function:
    return _quad("min", "min_nan({}, {})")


# wrappers that call others
NEEDS = {
    "quad_max": ("max_nan",),
    "quad_min": ("min_nan",),
    "relu": ("max_nan",),
    "exp": ("exp2",),
    "sigmoid": ("rcp_fast", "exp2"),
    "silu": ("sigmoid",),
    "gelu": ("rcp_fast", "exp2"),
    "tanh": ("rcp_fast", "exp2"),
    "gelu_tanh": ("sigmoid",),
}
