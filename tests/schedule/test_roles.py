"""What sync and pipeline write out, checked on the text of the role program."""

from __future__ import annotations

from tests.emit.checks import check
from tests.lowering import FA3, PIPELINED, SIMPLE, attention, gemm, lowered
from wgdsl.roles.text import roles_text


def text(g, schedule: str) -> str:
    return roles_text(lowered(g, schedule), lines=False)


def test_overlap_and_turns():
    """Prologue, steady loop, drain; the first wait before the turn, the second inside; S awaited with O in flight."""
    check(
        text(attention(), FA3),
        """
// CHECK: role math
// CHECK: if j.n - 1 >= 0 {
// CHECK-NEXT: wait Ks.full[s] parity p
// CHECK-NEXT: fence wgmma
// CHECK-NEXT: wgmma S = Qs[wg, s] k_major * Ks[s] k_major first
// CHECK-NEXT: commit
// CHECK-NEXT: wait_group 0 ready S
// CHECK-NEXT: arrive Ks.empty[s] by lane 0 of each warp
// CHECK-NEXT: advance Ks
// CHECK: pack P.frag = P
// CHECK-NEXT: forget O
// CHECK-NEXT: loop j.pos 0 .. j.n - 2
// CHECK-NEXT: wait Ks.full[s] parity p
// CHECK-NEXT: sync bar wg + 1 threads 256
// CHECK-NEXT: fence wgmma
// CHECK-NEXT: wgmma S = Qs[wg, s] k_major * Ks[s] k_major first
// CHECK-NEXT: commit
// CHECK-NEXT: wait Vs.full[s] parity p
// CHECK-NEXT: fence wgmma
// CHECK-NEXT: wgmma O += P.frag * Vs[s] mn_major first if -j.pos >= 0
// CHECK-NEXT: commit
// CHECK-NEXT: arrive bar (wg + 1) % (2) + 1 threads 256
// CHECK-NEXT: wait_group 1 ready S
// CHECK-NEXT: arrive Ks.empty[s] by lane 0 of each warp
// CHECK-NEXT: advance Ks
// CHECK-NEXT: compute {
// CHECK: wait_group 0 ready O
// CHECK-NEXT: arrive Vs.empty[s] by lane 0 of each warp
// CHECK-NEXT: advance Vs
// CHECK-NEXT: pack P.frag = P
// CHECK-NEXT: compute {
// CHECK-NEXT: O[{{.*}}] = (O * P.max.corr)
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: wait Vs.full[s] parity p
// CHECK-NEXT: fence wgmma
// CHECK-NEXT: wgmma O += P.frag * Vs[s] mn_major first if -j.n + 1 >= 0
// CHECK-NOT: P.max.corr
// CHECK: } else {
// CHECK-NEXT: zero O
""",
    )


def test_masks_stand_in_the_copies_that_need_them():
    """The first tile tests the end of the keys and the diagonal, the first loop the diagonal, the second nothing."""
    check(
        text(attention(causal=True), FA3),
        """
// CHECK: role math
// CHECK: S[{{.*}}] = select(N - j - 1 >= 0 and i + N - M - j >= 0, S, -inf)
// CHECK-NEXT: P.max[
// CHECK-NEXT: P.max.ref[{{.*}}] = select((P.max == -inf), 0.0, P.max)
// CHECK: loop j.pos 0 .. min(j.where - 1, j.n - 1) - 1 mask {where: partial}
// CHECK: S[{{.*}}] = select(i + N - M - j >= 0, S, -inf)
// CHECK: loop j.pos max(min(j.where - 1, j.n - 1), 0) .. j.n - 2 mask {}
// CHECK-NOT: select(
// CHECK: wgmma O += P.frag * Vs[s] mn_major first if -j.n + 1 >= 0
""",
    )


def test_without_overlap_every_product_is_awaited_at_once():
    check(
        text(attention(), SIMPLE),
        """
// CHECK: role math
// CHECK: loop j.pos 0 .. min(j.n, 1) - 1 mask {end: partial}
// CHECK: loop j.pos max(min(j.n, 1), 0) .. j.n - 1 mask {}
// CHECK-NEXT: wait Ks.full[s] parity p
// CHECK-NEXT: fence wgmma
// CHECK-NEXT: wgmma S =
// CHECK-NEXT: commit
// CHECK-NEXT: wait_group 0 ready S
// CHECK: O[{{.*}}] = (O * P.max.corr)
// CHECK: pack P.frag = P
// CHECK: wgmma O += P.frag * Vs[s] mn_major first if -j.pos >= 0
// CHECK-NEXT: commit
// CHECK-NEXT: wait_group 0 ready O
""",
    )


def test_a_late_await_releases_the_slot_before():
    """One product stays in flight: its slot is released one iteration later, behind the ring's position."""
    check(
        text(gemm(), PIPELINED),
        """
// CHECK: barrier As.empty of As count 8
// CHECK: expect As.full[s] bytes 49152
// CHECK-NEXT: tma As[0, s] = A[i.lo +: 64, 64 * k.pos +: 64]
// CHECK-NEXT: tma As[1, s] = A[i.lo + 64 +: 64, 64 * k.pos +: 64]
// CHECK-NEXT: tma Bs[s] = B[n.lo +: 256, 64 * k.pos +: 64]
// CHECK-NEXT: advance As
// CHECK: loop k.pos 1 .. k.n - 1
// CHECK-NEXT: advance As
// CHECK-NEXT: wait As.full[s] parity p
// CHECK-NEXT: fence wgmma
// CHECK-NEXT: wgmma Acc +=
// CHECK-NEXT: commit
// CHECK-NEXT: wait_group 1
// CHECK-NEXT: arrive As.empty[s-1] by lane 0 of each warp
// CHECK-NEXT: }
// CHECK-NEXT: wait_group 0 ready Acc
// CHECK-NEXT: arrive As.empty[s] by lane 0 of each warp
// CHECK-NEXT: advance As
""",
    )


def test_what_is_filled_once_an_item_has_no_empty_barrier_unless_items_follow():
    plain = text(attention(), FA3)
    persistent = text(attention(), FA3.replace("grid   over", "grid   persistent over"))
    assert "Qs.empty" not in plain
    check(
        persistent,
        """
// CHECK: barrier Qs.empty of Qs count 1 parts 2
// CHECK: wait Qs.empty[0, s] parity not p
// CHECK: store O[
// CHECK: wait_read 0
// CHECK-NEXT: arrive Qs.empty[wg, s] by one thread
// CHECK: advance Qs
""",
    )
