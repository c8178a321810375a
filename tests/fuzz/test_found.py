"""Cases that the fuzzer found wrong or refused for no reason, made small."""

from __future__ import annotations

import pytest

from wgdsl.driver import compile
from wgdsl.tools.running import run

ROWS = """wg 1
program fuzzed {
dims M, N, D, E
in Q: T[M, D]
in K: T[N, D]
in V: T[N, E]
in w: f32[N]
in s: f32[M, N]
type T in {bf16, f16}
S[i,j] = sum[d] Q[i,d] * K[j,d]
"""
HOPPER = """}
schedule fuzzed for fuzzed on sm_90a {
tile i 128, j 64
stream j
grid over (i)
role load : 1 warpgroup, registers 24
role math : 2 warpgroups, registers 240, split i
smem Qs = Q[i] by tma
smem Ks = K[j] by tma ring 2
"""
WITH_V = """smem Vs = V[j] by tma ring 2
load { fill Qs for j { fill Ks[j] fill Vs[j] } }
math {
await Qs
for j { issue S[j] = wgmma(Qs, Ks[j]) await S[j] compute P[j] pack P[j] issue O += wgmma(P[j], Vs[j]) await O[j] }
finish O, r
}
}
"""
WITHOUT_V = """load { fill Qs for j { fill Ks[j] } }
math { await Qs for j { issue S[j] = wgmma(Qs, Ks[j]) await S[j] compute r[j] } finish r }
}
"""
AMPERE = """}
schedule fuzzed for fuzzed on sm_80 {
tile i 64, j 48
stream j descending
grid over (i)
role math : 4 warps, registers 255, split i
smem Qs = Q[i] by cp_async
smem Ks = K[j] by cp_async ring 2
smem Vs = V[j] by cp_async
math {
fill Qs
for j {
await Ks[j] fill Ks[j+1] fill Vs[j]
issue S[j] = mma(Qs, Ks[j]) compute P[j] pack P[j] issue O += mma(P[j], Vs[j])
}
finish O, r
}
}
"""
PRODUCT = """wg 1
program fuzzed {
dims M, N, K
in A: T[M, K]
in B: T[N, K]
out F: f32[M, N]
out p: i32[M]
type T in {bf16, f16}
Acc[i,n] = sum[k] A[i,k] * B[n,k]
X[i,n] = Acc[i,n] where n <= i - 10 and (i - n) % 5 == 0
p[i] = argmax[n] X[i,n]
F[i,n] = X[i,n]
}
schedule fuzzed for fuzzed on sm_90a {
tile i 128, k 64
stream k
grid over (i)
role load : 1 warpgroup, registers 24
role math : 2 warpgroups, registers 240, split i
smem As = A[i, k] by tma
smem Bs = B[n, k] by tma
load { for k { fill As[k], Bs[k] } }
math { for k { issue Acc += wgmma(As[k], Bs[k]) await Acc[k] } finish F, p }
}
"""
SUMS = """wg 1
program fuzzed {
dims M, N, K
in A: T[M, K]
in B: T[N, K]
in B2: T[N, K]
out C: f32[M, N]
type T in {bf16, f16}
Acc[i,n] = sum[k] B[n,k] * A[i,k]
Up[i,n] = sum[k] B2[n,k] * A[i,k]
C[i,n] = Acc[i,n] + Up[i,n]
}
"""
TWO_WAITS = """schedule fuzzed for fuzzed on sm_90a {
tile i 128, n 16, k 16
stream k
grid over (n, i)
role load : 1 warpgroup, registers 24
role math : 2 warpgroups, registers 240, split i
smem As = A[i, k] by tma ring 5
smem Bs = B[n, k] by tma ring 5
smem B2s = B2[n, k] by tma ring 5
load { for k { fill As[k], Bs[k], B2s[k] } }
math { for k {
issue Acc += wgmma(As[k], Bs[k]) issue Up += wgmma(As[k], B2s[k])
await Acc[k] await Up[k-1]
} finish C }
}
"""
TWO_WAITS_BY_WARPS = """schedule fuzzed for fuzzed on sm_80 {
tile i 128, n 16, k 16
stream k
grid persistent over (n, i)
role math : 4 warps, registers 255, split i
smem As = A[i, k] by cp_async ring 5
smem Bs = B[n, k] by cp_async ring 5
smem B2s = B2[n, k] by cp_async ring 5
math { for k {
fill As[k], Bs[k], B2s[k]
issue Acc += mma(As[k], Bs[k]) issue Up += mma(As[k], B2s[k])
await Acc[k] await Up[k-1]
} finish C }
}
"""
HEADS = """wg 1
program fuzzed {
dims G, R, M, N, D, E, H = G * R
in Q: T[M, H, D]
in K: T[N, G, D]
in V: T[N, G, E]
in keep: bool[N]
out O: T[M, H, E]
type T in {bf16, f16}
let h = g * R + r
S[g,r,i,j] = sum[d] Q[i,h,d] * K[j,g,d]
X[g,r,i,j] = S[g,r,i,j] * 0.1 where j <= i and keep[j]
P[g,r,i,j] = tanh(X[g,r,i,j])
O[i,h,e] = sum[j] P[g,r,i,j] * V[j,g,e]
}
schedule fuzzed for fuzzed on sm_80 {
fuse m = (i, r)
tile m 128, j 64
stream j listed
grid over (g, m)
role math : 4 warps, registers 255, split m
smem Qs = Q[m] by cp_async
smem Ks = K[j] by cp_async
smem Vs = V[j] by cp_async
math {
fill Qs
for j { fill Ks[j] fill Vs[j] issue S[j] = mma(Qs, Ks[j]) compute P[j] pack P[j] issue O += mma(P[j], Vs[j]) }
finish O
}
}
"""
RESULTS = "out O: T[M, E]\nout r: f32[M]\nO[i,e] = sum[j] P[i,j] * V[j,e]\nr[i] = logsumexp[j] X[i,j]\n"
HALVED = "P[i,j] = X[i,j] * 0.5\n"
CASES = {
    # P is X but for a factor, and was packed after the exponentials had taken its registers
    "weights that another reduction reads": ROWS + "X[i,j] = S[i,j] * 0.1 where j <= i\n" + HALVED + RESULTS + HOPPER + WITH_V,
    # P is S but for factors: there is nothing to compute for it, but the row sums are advanced there
    "weights that are the product": ROWS + "X[i,j] = S[i,j] * 0.1\n" + HALVED + RESULTS + HOPPER + WITH_V,
    # a product of two tensors that no tensor core makes
    "a weighted sum of a row": ROWS
    + "out r: f32[M]\nP[i,j] = softmax[j] S[i,j] * 0.1\nr[i] = sum[j] P[i,j] * w[j]\n"
    + HOPPER
    + WITHOUT_V,
    "a sum of elements weighted one by one": ROWS
    + "out r: f32[M]\nX[i,j] = S[i,j] where j < 70\nr[i] = sum[j] X[i,j] * s[i,j]\n"
    + HOPPER
    + WITHOUT_V,
    # a copy is waited for early in each iteration but the first, with a younger one
    "keys a tile ahead of values": ROWS + "X[i,j] = S[i,j] * 0.1\nP[i,j] = tanh(X[i,j])\n" + RESULTS + AMPERE,
    # what has an `else` exists everywhere, whatever it is made of
    "a choice of what is restricted": ROWS
    + "Y[i,j] = S[i,j] * 0.1 where j <= i\nX[i,j] = tanh(Y[i,j]) where (i - j) % 2 == 0 else -1.0\nP[i,j] = exp(X[i,j])\n"
    + RESULTS
    + HOPPER
    + WITH_V,
    # of two sums that begin in front of the loop one is waited for there, and the loop forgot it
    "sums that are waited for at two places": SUMS + TWO_WAITS,
    "sums of warps that begin in front of the loop": SUMS + TWO_WAITS_BY_WARPS,
    # an item works for fewer rows than its tile has, so that lists were told apart by the wrong number
    "lists of heads that don't fill a tile": HEADS,
    # which places of a row exist needs no result
    "the place of a largest element of some": PRODUCT,
}


@pytest.mark.parametrize("name", CASES)
def test_right(name):
    text = CASES[name]
    product = "dims M, N, K" in text
    fixed = {"N": 32} if product else {"D": 64, "E": 64} | ({"R": 6} if text is HEADS else {})
    kernel = compile(text, schedule="fuzzed", dims=fixed, build=False)
    for m, n in ((70, 200), (200, 70), (130, 0), (1, 1)):
        dims = {"M": m, "K": n} if product else {"M": m, "N": n} | ({"G": 2} if text is HEADS else {})
        done = run(kernel, dims, device="sim", order=m, check=True)
        assert done.right, (m, n, [str(v) for v in done.verdicts])
