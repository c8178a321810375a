"""Structural checks: right programs pass, and each mistake is named before anything is emitted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.shipped import KERNELS, field_ids
from tests.sim.programs import attention, drop, edit, gemm
from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.diagnostics.protocol import NeverAwaited, NoProductFence, TouchedInFlight
from wgdsl.diagnostics.verify import (
    IllFormedStep,
    LonelyBarrier,
    NamedBarrier,
    RegisterCount,
    RegisterNeed,
    RegisterPool,
    SharedLayout,
    SharedMemory,
    WrongArrivalCount,
    WrongExpectedBytes,
)
from wgdsl.foundation.dtypes import BF16
from wgdsl.program.expr import Affine
from wgdsl.program.poly import Poly
from wgdsl.roles.checked import Checked
from wgdsl.roles.model import (
    Arrive,
    BarArrive,
    BarSync,
    Buffer,
    Commit,
    Expect,
    FenceWgmma,
    If,
    Loop,
    Pack,
    Registers,
    Ring,
    Role,
    RoleProgram,
    Step,
    StoreShared,
    Tma,
    TmaStore,
    Wait,
    WaitGroup,
    Zero,
)
from wgdsl.verify import check
from wgdsl.verify.registers import register_problems


def problems(program: RoleProgram) -> tuple[Problem, ...]:
    try:
        check(program)
    except WgError as e:
        assert all(p.title() for p in e.problems)
        return e.problems
    return ()


def only(kind: type[Problem], program: RoleProgram):
    found = problems(program)
    assert found and all(isinstance(p, kind) for p in found), found
    return found[0]


def change(match, **fields):
    return lambda s: replace(s, **fields) if match(s) else s


def is_a(kind: type[Step], line: int = 0):
    return lambda s: isinstance(s, kind) and (not line or (s.span is not None and s.span.line == line))


def with_kernel(program: RoleProgram, **fields) -> RoleProgram:
    return replace(program, kernels=(replace(program.kernels[0], **fields),))


@pytest.mark.parametrize("program", [gemm(), gemm(stages=4), attention()], ids=["gemm", "gemm4", "attention"])
def test_right_programs_pass(program):
    assert check(program) == Checked(program)


@pytest.mark.parametrize("s", KERNELS, ids=field_ids())
def test_shipped_schedules_pass(s):
    check(s.compile().forms.roles)


def test_a_broken_rule_comes_alone():
    p = only(IllFormedStep, edit(gemm(), change(is_a(Tma), map="X")))
    assert p.title() == "there is no map `X`" and p.span is not None and p.span.line == 10


def test_a_box_that_the_engine_lacks():
    k = gemm().kernels[0]
    tall = (replace(k.maps[0], box=(64, 512)), *k.maps[1:])
    assert "map `A`: a box extent outside 1 .. 256: (64, 512)" in [p.title() for p in problems(with_kernel(gemm(), maps=tall))]


# Bytes.


@pytest.mark.parametrize("nbytes", [0, 16384, 32752, 32784])
def test_expected_bytes(nbytes):
    p = only(WrongExpectedBytes, edit(gemm(), change(is_a(Expect), nbytes=nbytes)))
    assert (p.barrier, p.part, p.expected, p.moved) == ("As.full", "0", nbytes, 32768)
    assert p.notes() == ("As from A: 8192 bytes",) * 2 + ("Bs from B: 8192 bytes",) * 2


def test_expected_bytes_of_one_part():
    second = lambda s: isinstance(s, Expect) and s.barrier == "Qs.full" and s.part == Poly.of(1)  # noqa: E731
    p = only(WrongExpectedBytes, edit(attention(), change(second, nbytes=4096)))
    assert (p.barrier, p.part, p.span.line) == ("Qs.full", "1", 10)


def test_a_copy_that_nobody_expects():
    found = problems(edit(attention(), drop(lambda s: isinstance(s, Expect) and s.barrier == "Vs.full")))
    assert {type(p) for p in found} == {WrongExpectedBytes, LonelyBarrier}


# Arrivals.


@pytest.mark.parametrize("count", [1, 4, 7, 9])
def test_arrival_counts(count):
    k = gemm().kernels[0]
    wrong = tuple(replace(b, count=count) if b.name == "As.empty" else b for b in k.barriers)
    p = only(WrongArrivalCount, with_kernel(gemm(), barriers=wrong))
    assert (p.barrier, p.count, p.arrivals) == ("As.empty", count, (("math", 8),))
    assert p.title() == f"`As.empty` (part 0) is made for {count} arrivals a phase and gets 8"


def test_a_release_by_one_of_two_warpgroups():
    half = edit(gemm(), lambda s: If(cond=Affine(poly=-Poly.of("wg")), then=(s,)) if isinstance(s, Arrive) else s)
    assert only(WrongArrivalCount, half).arrivals == (("math", 4),)


def test_one_copy_arrives_twice():
    p = only(WrongArrivalCount, edit(gemm(), lambda s: (s, s) if is_a(Arrive, 22)(s) else s))
    assert p.barrier == "As.empty"


def test_a_wait_that_nobody_answers():
    p = only(LonelyBarrier, edit(gemm(), drop(is_a(Arrive))))
    assert p.title() == "`As.empty` is waited for by load, but nobody arrives on it"


def test_an_arrival_that_nobody_waits_for():
    p = only(LonelyBarrier, edit(gemm(), drop(lambda s: isinstance(s, Wait) and s.barrier == "As.empty")))
    assert p.title() == "math arrives on `As.empty`, but nobody waits for it"


# Registers.


def with_registers(*shares: tuple[int, int]) -> RoleProgram:
    """(warpgroups, registers) of each role; the roles do nothing else."""
    first, roles = 0, []
    threads = 128 * sum(n for n, _ in shares)
    launch = 65536 // threads // 8 * 8
    for k, (n, count) in enumerate(shares):
        steps = (Registers(count=count, direction="dec" if count <= launch else "inc"),)
        roles.append(Role(name=f"r{k}", first=first, count=n, registers=count, elected=False, steps=steps))
        first += n
    fields = {"threads": threads, "roles": tuple(roles)}
    empty = dict.fromkeys(("rings", "buffers", "barriers", "values", "maps", "tensors", "params", "named_barriers"), ())
    return with_kernel(gemm(), **fields, **empty)


@pytest.mark.parametrize(
    "shares",
    [
        ((1, 24), (2, 240)),
        ((1, 40), (2, 232)),
        ((1, 24), (2, 232)),
        ((1, 32), (3, 160)),
        ((1, 80), (2, 168), (1, 88)),
        ((1, 24), (4, 112)),
    ],
)
def test_registers_within_the_pool(shares):
    assert problems(with_registers(*shares)) == ()


@pytest.mark.parametrize("shares", [((1, 40), (2, 240)), ((1, 24), (4, 120)), ((1, 40), (3, 160))])
def test_registers_above_the_pool(shares):
    p = only(RegisterPool, with_registers(*shares))
    total, granted = sum(n * r for n, r in shares), p.pool.granted
    assert p.title() == f"the roles ask for {total} registers a lane, the launch grants {granted}" and total > granted


@pytest.mark.parametrize("count", [16, 100, 248, 264])
def test_register_counts_that_the_instruction_lacks(count):
    p = only(RegisterCount, with_registers((1, 24), (2, count)))
    assert f"{count} is not a multiple of 8 from 24 to 240" in p.title()


def test_a_count_in_the_wrong_direction():
    p = only(RegisterCount, edit(gemm(), change(is_a(Registers), direction="inc")))
    assert p.role == "load" and "can't `inc`" in p.title()


def test_registers_that_the_values_need():
    """24 + D/2 + BN/2 + BN/4 must stay 8 below the role's count."""
    k = attention().kernels[0]

    def wide(n: int) -> list[Problem]:
        size = {"S": n, "P": n, "Pr": n, "O": 128}
        values = tuple(replace(v, cols=size.get(v.name, 1)) for v in k.values)
        return list(register_problems(replace(k, values=values)))

    assert wide(192) == []
    (p,) = wide(208)
    assert isinstance(p, RegisterNeed)
    assert p.title() == "role `math` needs about 244 registers a thread, but can use 232 of its 240"
    assert p.notes()[0].splitlines() == [
        "registers a thread",
        "104  S: 64 x 208 f32",
        " 64  O: 64 x 128 f32",
        " 52  Pr: 64 x 208 bf16",
        " 24  addresses, positions and row values",
        "244  in all, 12 more than 240 less 8 for the assembler",
    ]
    assert p.notes()[1] == "pool: load 1 x 24 + math 2 x 240 = 504, of 504 that the launch grants"


# Shared memory.


def with_tiles(d: int, stages: int, staging: bool) -> RoleProgram:
    """bf16, 128 x 128 tiles of depth d: Q once, K and V in rings, an own staging buffer or none."""
    homes = [("Qs", 2, 64, 1), ("Ks", 1, 128, stages), ("Vs", 1, 128, stages)] + ([("Os", 2, 64, 1)] if staging else [])
    at, buffers = 0, []
    for name, parts, rows, n in homes:
        b = Buffer(name=name, tensor=name[0], dtype=BF16, rows=rows, cols=d, rows_index="i", cols_index="d", swizzle=128,
                   ring=name, parts=parts, stages=n, offset=at)  # fmt: skip
        buffers.append(b)
        at += b.total_bytes
    rings = tuple(Ring(name=b.name, stages=b.stages, buffers=(b.name,)) for b in buffers)
    return with_kernel(with_registers((1, 24), (2, 240)), buffers=tuple(buffers), rings=rings, shared_bytes=at + 8 * 16)


def test_shared_memory_that_fits():
    assert problems(with_tiles(128, 3, staging=False)) == ()  # 224 KiB and barriers


@pytest.mark.parametrize(
    "d, stages, staging, total", [(128, 3, True, 263296), (256, 2, False, 328832), (512, 1, False, 394368)]
)
def test_shared_memory_that_does_not_fit(d, stages, staging, total):
    p = only(SharedMemory, with_tiles(d, stages, staging))
    assert p.title() == f"{total} bytes of shared memory are needed, sm_90a has 232448"
    head, *rows, last = p.notes()[0].splitlines()
    assert head == "bytes of shared memory, parts x stages x tile"
    assert rows[1].split() == [str(256 * d * stages), "Ks:", "1", "x", str(stages), "x", str(256 * d)]
    assert last == f"{total}  in all, {total - 232448} more than the 232448 of sm_90a"
    assert sum(int(row.split()[0]) for row in rows) == total, "every byte has a name"


def test_buffers_that_overlap():
    k = gemm().kernels[0]
    moved = (k.buffers[0], replace(k.buffers[1], offset=1024), k.buffers[2])
    assert only(SharedLayout, with_kernel(gemm(), buffers=moved)).title() == "`As` overlaps `Bs` and isn't declared to"


def test_alignment():
    k = gemm().kernels[0]
    moved = (*k.buffers[:2], replace(k.buffers[2], offset=k.buffers[2].offset + 512))
    titles = [p.title() for p in problems(with_kernel(gemm(), buffers=moved))]
    assert "`Cs` doesn't start on a multiple of 1024 bytes" in titles
    odd = tuple(replace(b, offset=b.offset + 4) for b in k.barriers)
    titles = [p.title() for p in problems(with_kernel(gemm(), barriers=odd))]
    assert "`As.full` doesn't start on a multiple of 8 bytes" in titles


# Named barriers.


def test_ids():
    p = only(NamedBarrier, edit(gemm(), change(is_a(BarSync), id=Poly.of("wg") + 15)))
    assert p.title() == "named barrier 16: ids are 1 to 15"
    p = only(NamedBarrier, edit(gemm(), change(is_a(BarSync), id=Poly.of("wg"))))
    assert p.title() == "named barrier 0: ids are 1 to 15"


def test_threads():
    p = only(NamedBarrier, edit(gemm(), change(is_a(BarSync), threads=256)))
    assert p.title() == "named barrier 8: its steps name 256 threads, but 128 take part"
    p = only(NamedBarrier, edit(gemm(), change(is_a(BarSync), id=Poly.of(8))))
    assert p.title() == "named barrier 8: its steps name 128 threads, but 256 take part"
    p = only(NamedBarrier, edit(gemm(), change(is_a(BarSync), threads=100)))
    assert "no multiple of 32" in p.title()
    p = only(NamedBarrier, edit(attention(), change(is_a(BarArrive, 19), threads=384)))
    assert "its steps name 256 and 384 threads" in p.title()


def test_arrivals_without_a_wait():
    p = only(NamedBarrier, edit(attention(), drop(is_a(BarSync, 19))))
    assert p.title() == "named barrier 1: warpgroups arrive, and none waits"


def test_reserved_ids():
    p = only(NamedBarrier, with_kernel(gemm(), named_barriers=(("turns", 7, 2), ("staging", 8, 2))))
    assert p.title() == "named barrier 8: it serves both turns and staging"


# Products.


def test_a_missing_commit():
    p = only(TouchedInFlight, edit(gemm(), drop(is_a(Commit))))
    assert p.value == "Acc" and p.event.step == "wait_group 0 ready Acc"


def test_a_missing_wait_group():
    p = only(TouchedInFlight, edit(gemm(), drop(is_a(WaitGroup, 22))))
    assert p.value == "Acc" and p.event.step == "write Cs[wg, s] = Acc" and p.span.line == 25


def test_a_wait_group_that_leaves_too_many():
    p = only(TouchedInFlight, edit(attention(), change(is_a(WaitGroup, 24), pending=2)))
    assert p.value == "S" and p.event.step == "wait_group 2 ready S"


def test_an_operand_rewritten_before_its_product_is_done():
    """Pr is packed before the wait for the product that reads it, which only a second round shows."""

    def early(s: Step):
        if not isinstance(s, Loop) or not any(isinstance(x, Pack) for x in s.body):
            return s
        pack = next(x for x in s.body if isinstance(x, Pack))
        rest = [x for x in s.body if x is not pack]
        at = next(k for k, x in enumerate(rest) if is_a(WaitGroup, 25)(x))
        return replace(s, body=(*rest[:at], pack, *rest[at:]))

    p = only(TouchedInFlight, edit(attention(), early))
    assert (p.value, p.event.step) == ("Pr", "pack Pr = P")


def test_a_product_that_is_never_awaited():
    gone = drop(lambda s: isinstance(s, WaitGroup | Zero | StoreShared | TmaStore))
    p = only(NeverAwaited, edit(gemm(), gone))
    assert p.title().endswith("is never waited for before `math` ends")
    found = problems(edit(edit(gemm(), gone), drop(is_a(Commit))))
    assert [p.title().endswith("is never committed before `math` ends") for p in found] == [True]


def test_a_missing_fence():
    p = only(NoProductFence, edit(gemm(), drop(is_a(FenceWgmma))))
    assert p.value == "Acc" and p.span.line == 20
    p = only(NoProductFence, edit(attention(), drop(is_a(FenceWgmma, 21))))
    assert p.span.line == 21
