"""What provokes each refusal that the schedule page mentions: by section and clause, in its words.

A case is a schedule that the refusal falls on: (the shipped one that it extends, its lines), with edits of the program's text
where the program is at fault.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    base: str
    lines: str
    edits: tuple[tuple[str, str], ...] = ()  # of the program
    dims: tuple[tuple[str, int], ...] = (("D", 64), ("E", 64), ("K", 64))


HEADS = (("D", 64), ("E", 64), ("R", 96))
WIDE = (("D", 64), ("E", 128))
PLAIN = (("option values in {turned, plain}", "option values in {plain, turned}"),)
EARLY_RESCALE = """math {
    await Qs
    for j {
      issue S[j+1] = wgmma(Qs, Ks[j+1])
      rescale W when grown by 4
      issue W += wgmma(Pr[j], Vs[j])
      await S[j+1]
      compute P.max[j+1]
      await W[j]
      compute P[j+1]
      pack P[j+1]
    }
    finish O, L via Os
  }"""
MASK = "where not causal or j <= i + N - M"
LOAD = "role load : 1 warpgroup, registers 24"
MATH = "role math : 2 warpgroups, registers 240, split"
TANH = (
    ("softmax[j] X[b,g,r,i,j]", "tanh(X[b,g,r,i,j] - Top[b,g,r,i])"),
    ("  P[b,g", "  Top[b,g,r,i] = max[j] X[b,g,r,i,j]\n  P[b,g"),
)
WEIGHTS = (
    ("out    L:", "out    W: f32[B, H, M, N]\n  out    L:"),
    ("  L[b,h,i]", "  W[b,h,i,j] = P[b,g,r,i,j]\n  L[b,h,i]"),
)
OTHER_MASK = (
    (MASK, ""),
    ("logsumexp[j] X[b,g,r,i,j]", "logsumexp[j] Y[b,g,r,i,j]"),
    ("  P[b,g", "  Y[b,g,r,i,j] = X[b,g,r,i,j] where j <= i\n  P[b,g"),
)
NORMALISED = (
    (
        "C[i,n] = F[i,n]          when not residual",
        "Total[i] = sum[n] F[i,n]\n  C[i,n] = F[i,n] / Total[i] when not residual",
    ),
)
TURNED_BIAS = ((MASK, f"+ w[j,i] {MASK}"), ("  out    O:", "  in     w: T[N, M]\n  out    O:"))
FILLED = "load { fill Qs for j { fill Ks[j] fill Ws[j] fill Vs[j] } }"
SQUARES = (
    ("out    L:", "out    Z: f32[B, H, M]\n  out    L:"),
    ("softmax[j] X[b,g,r,i,j]", "sigmoid(X[b,g,r,i,j])"),
    ("  L[b,h,i]", "  Z[b,h,i] = sum[j] P[b,g,r,i,j] * P[b,g,r,i,j]\n  L[b,h,i]"),
)
ONE_MORE = (
    ("out    L:", "out    Z: f32[B, H, M]\n  out    L:"),
    ("  L[b,h,i]", "  Z[b,h,i] = max[j] X[b,g,r,i,j]\n  L[b,h,i]"),
)


def attention(steps: str = "", *, before: str = "await Qs", finish: str = "O, L via Os", rescale: str = "rescale O") -> str:
    """The steps of `simple`, with others between."""
    return f"""math {{
    {before}
    for j {{
      issue S[j] = wgmma(Qs, Ks[j])
      await S[j]
      compute P[j]
      {rescale}
      pack P[j]
      issue O += wgmma(P[j], Vs[j])
      {steps}
      await O[j]
    }}
    finish {finish}
  }}"""


JOINED = "grid persistent joined over (b, g, r, i)"
ITEMS = "grid persistent over (b, g, r, i)\n  tile i 64\n  smem Os = O[i] by tma\n"
AROUND = """math {
    await Qs
    in turn { for j {
      issue S[j] = wgmma(Qs, Ks[j])
      await S[j]
      compute P[j]
      rescale O
      issue O += wgmma(P[j], Vs[j])
      await O[j]
    } }
    finish O, L via Os
  }"""
PERSISTENT = "grid persistent over (b, g, r, i)\n  "
DYNAMIC = "grid persistent dynamic over (b, g, r, i)"
TWICE = "role more : 2 warpgroups, registers 24, split i\n  more { }"

DOCUMENTS = (
    ("in     scale", "in     doc: i32[B, M]\n  in     other: i32[B, N]\n  in     scale"),
    (MASK, "where doc[b,i] == other[b,j]"),
)
COMPUTED = ((MASK, "where S[b,g,r,i,j] > 0.0"),)
LISTED = "stream j descending listed"

REFUSALS: dict[str, dict[str, tuple[Case, ...]]] = {
    "tile": {
        "an index that the program lacks": (Case("simple", "tile q 64"),),
        "a size that no instruction of the target has": (Case("simple", "tile j 100"), Case("simple", "tile j 264")),
        "part of an index that nothing steps over": (Case("simple", "tile d 32"),),
    },
    "stream": {
        "an index over which nothing is reduced": (Case("simple", "stream e"),),
        "reductions that can't be combined from tile to tile: the error shows the chain of statements and what would make it "
        "possible": (Case("simple", "stream j", TANH),),
        "a value for each element that is wanted when the pass has ended": (Case("simple", "stream j", WEIGHTS),),
        "reductions along it that see different elements": (Case("simple", "stream j", OTHER_MASK),),
    },
    "grid": {
        "an axis missing from the list": (Case("simple", "grid over (b, g, r)"),),
        "an index that the program lacks": (Case("simple", "grid over (b, g, r, i, q)"),),
        "the streamed index": (Case("simple", "grid over (b, g, r, i, j)"),),
        "an axis that a result lacks": (Case("simple", "grid over (b, g, r, i, d)"),),
    },
    "fuse": {
        "an index that the program lacks": (Case("simple", "fuse m = (i, q)"),),
        "a name that the program has": (Case("simple", "fuse d = (i, r)", dims=HEADS),),
        "an index by itself, or one behind the first whose extent only the call gives": (
            Case("simple", "fuse m = (i)"),
            Case("simple", "fuse m = (r, i)"),
        ),
        "a result that lacks one of them": (Case("simple", "fuse m = (i, e)"),),
        "a reduction along one of them alone": (Case("simple", "fuse m = (i, d)"),),
        "more values of the faster indices than a part of a home has rows, and no multiple of them": (
            Case("simple with i = m", "fuse m = (i, r)\n  grid over (b, g, m)", dims=HEADS),
        ),
    },
    "combine": {
        "results made of anything but plain sums along the stream, such as a maximum, or a sum that is scaled to one": (
            Case("simple", "stream j split s in 4\n  grid over (s, b, g, r, i)\n  combine O, L by atomic_add"),
        ),
        "a reduction along a grid axis that is read back along it": (Case("pipelined", "stream k", NORMALISED),),
        "parts of a result without this line, or this line without parts": (
            Case("pipelined", "stream k split s in 4\n  grid over (s, i, n)"),
            Case("pipelined", "combine C by atomic_add"),
        ),
        "`by merge`, which is not yet supported": (Case("split", "combine C by merge"),),
    },
    "kernel": {
        "an output that no kernel computes": (Case("two_pass", "kernel use computes S { }"),),
        "a tensor that two compute": (Case("two_pass", "kernel use computes P, P.max { }"),),
        "a tensor for nobody": (
            Case("two_pass", "kernel use computes P, W { }", (("  P[i,n]", "  W[i,n] = S[i,n] + 1.0\n  P[i,n]"),)),
        ),
        "kernels that wait for each other": (
            Case("two_pass", "kernel statistics computes P.max, P { }\n  kernel use computes P.sum { }"),
        ),
    },
    "role": {
        "more registers than an SM has for that many threads": (Case("simple", "role load : 1 warpgroup, registers 40"),),
        "less than the role's values need, with every value's share": (
            Case("simple", "role math : 2 warpgroups, registers 96, split i"),
        ),
        "a part that isn't 64 rows": (Case("simple", "tile i 192"),),
        "`split tiles` in a grid that isn't persistent": (Case("simple", f"{MATH} tiles"),),
        "without a turn around the loop": (Case("simple", f"{ITEMS}  smem Qs = Q[i] by tma ring 2\n  {MATH} tiles"),),
        "with fewer slots for what is filled once an item than warpgroups": (
            Case("simple", f"{ITEMS}  {MATH} tiles\n  {AROUND}"),
        ),
    },
    "smem": {
        "more shared memory than the target has, with each buffer's share and what would fit": (
            Case("simple", "smem Ks = K[j] by tma ring 12"),
        ),
        "an engine that the target lacks": (Case("simple", "smem Ks = K[j] by cp_async ring 2"),),
        "a streamed tensor without its tile": (Case("simple", "smem Ks = K by tma ring 2"),),
        "a home that a `compute` reads whose columns don't run along the stream": (
            Case("simple", f"smem Ws = w[j, i] by tma\n  {FILLED}", edits=TURNED_BIAS),
        ),
        "what no role fills, or nothing reads": (
            Case("simple", "smem Ls = K[j] by tma ring 2"),
            Case("simple", "smem Ls = K[j] by tma ring 2\n  load { fill Qs for j { fill Ks[j] fill Vs[j] fill Ls[j] } }"),
        ),
    },
    "Warpgroups": {
        "rows that aren't 64 for each warpgroup": (Case("three", "tile i 128"),),
        "more registers than the pool has": (Case("three", "role math : 3 warpgroups, registers 168, split i"),),
        "tiles that don't fit the registers": (Case("three", "tile j 128", dims=(("D", 128), ("E", 128))),),
        "more threads than a CTA may have": (Case("three", "role load : 6 warpgroups, registers 32"),),
        "two roles that split": (Case("simple", TWICE),),
    },
    "Ring depth": {
        "a depth that is no whole number from 1 to 32": (
            Case("three", "smem Vs = V[j] by tma ring 0"),
            Case("three", "smem Vs = V[j] by tma ring 33"),
        ),
        "fewer slots than a role holds at once": (
            Case("pipelined", "smem As = A[i, k] by tma ring 1\n  smem Bs = B[n, k] by tma ring 1"),
        ),
        "two depths for operands of one `fill`": (Case("pipelined", "smem As = A[i, k] by tma ring 2"),),
        "more than shared memory has": (
            Case("pipelined", "smem As = A[i, k] by tma ring 8\n  smem Bs = B[n, k] by tma ring 8"),
        ),
    },
    "Q once, or twice": {
        "a part that isn't there": (
            Case("three", "load { fill Qs.3  for j { fill Ks[j+1]  once { fill Qs.rest }  fill Vs[j] } }"),
        ),
        "a part that no step fills": (Case("three", "load { fill Qs.0  for j { fill Ks[j+1]  fill Vs[j] } }"),),
        "a fill in every iteration of what holds one tile for all of them": (
            Case("three", "load { for j { fill Qs fill Ks[j+1]  fill Vs[j] } }"),
        ),
    },
    "Staging": {
        "a part that is larger than what it lies over": (Case("simple", "tile j 128", dims=WIDE),),
        "than a slot": (Case("simple", "tile j 32\n  smem Os = O[i] by tma over Vs"),),
        "more parts than the ring has slots": (Case("three", "smem Os = O[i] by tma over Vs"),),
        "a ring of which each warpgroup has its own part": (
            Case("pipelined", "tile n 64\n  smem Cs = C[i, n] by tma over As"),
        ),
        "an operand over another": (Case("simple", "smem Vs = V[j] by tma ring 2 over Qs"),),
        "`await Os` where Os lies over what has one slot": (
            Case("simple", PERSISTENT + attention("once { await Os }")),
        ),
        "lies in slots of a ring": (
            Case("simple", PERSISTENT + "smem Os = O[i] by tma over Vs\n  " + attention("once { await Os }")),
        ),
        "staging that no `finish` goes through": (Case("simple", attention(finish="O, L")),),
        "`split tiles` with staging in a ring": (
            Case("turns", "smem Cs = C[i, n] by tma over Bs"),
        ),
    },
    "Persistent grids": {
        "a ring of items in a grid that hands out none": (Case("simple", "smem work by atomic ring 2"),),
        "two of them": (Case("simple", f"{DYNAMIC}\n  smem work by atomic ring 2\n  smem more by atomic ring 2"),),
        "a dynamic grid in which no role fills": (Case("simple", f"{DYNAMIC}\n  load {{ }}"),),
        "`with Qs`, which is not yet supported": (Case("simple", f"{DYNAMIC} with Qs"),),
    },
    "joined": {
        "a grid that isn't persistent": (Case("two", "grid joined over (b, g, r, i)"),),
        "a tile that is filled once an item and has one slot": (Case("two", f"{JOINED}\n  smem Qs = Q[i] by tma"),),
        "a result staged over such a tile": (
            Case("two", f"{JOINED}\n  smem Qs = Q[i] by tma\n  smem Os = O[i] by tma over Qs"),
        ),
        "a role that multiplies without a step one tile ahead": (
            Case("simple", f"{JOINED}\n  smem Qs = Q[i] by tma ring 2\n  smem Os = O[i] by tma"),
        ),
        "`skip empty per warpgroup`, not yet supported beside it": (Case("two", f"{JOINED}\n  skip empty per warpgroup"),),
    },
    "longest_first": {
        "trip counts that neither only rise nor only fall along one grid axis, as in a window": (
            Case("simple", "grid over (b, g, r, i) longest_first", ((MASK, "where j <= i and i - j < 100"),)),
        ),
        "that depend on two axes": (
            Case("simple", "grid over (b, g, r, i) longest_first", ((MASK, "where j <= i + r"),)),
        ),
    },
    "section": {
        "an index that is no grid axis": (Case("simple", "grid over (b, g, r, i) section (b, d) within 1 MB"),),
        "the axis that `longest_first` orders by": (
            Case("simple", "grid over (b, g, r, i) longest_first section (b, i) within 1 MB", ((MASK, "where j <= i"),)),
        ),
    },
    "Rescale policy": {
        "a number out of that range": (
            Case("simple", attention(rescale="rescale O when grown by 0")),
            Case("simple", attention(rescale="rescale O when grown by 16")),
        ),
        "an output that shows the maximum itself": (
            Case("simple", attention(rescale="rescale O when grown by 8", finish="O, L, Z via Os"), ONE_MORE),
        ),
        "two `rescale` that disagree about one maximum": (
            Case("simple", attention(rescale="rescale O when grown by 8  rescale O when grown by 4")),
        ),
        "one with `grown by` in front of its iteration's `compute`, whose first tile tells it nothing": (
            Case("eight_128", EARLY_RESCALE),
        ),
    },
    "approximate": {
        "a function that the chip doesn't approximate": (Case("simple", "approximate erf"),),
    },
    "accumulate": {
        "what is no sum of products": (Case("scaled_promoted", "accumulate C promote every 128"),),
        "a number that isn't the tile's": (Case("scaled_promoted", "accumulate Acc promote every 64"),),
        "a sum that is rescaled": (Case("simple", "accumulate O promote every 128"),),
        "a grid whose items are joined": (Case("scaled_promoted", "grid persistent joined over (n, i)"),),
        "`mma.sync`": (Case("warps", "accumulate Acc promote every 32"),),
    },
    "Listed tiles": {
        "conditions that are bounds alone, so that the list would hold all tiles between them": (Case("fa3", LISTED),),
        "a stream in parts": (
            Case("fa3", "stream j listed split s in 2\n  grid over (s, b, g, r, i)\n  combine O, L by atomic_add", DOCUMENTS),
        ),
        "items that are joined": (Case("two", f"{LISTED}\n  {JOINED}", DOCUMENTS),),
        "`skip empty per warpgroup`": (Case("three", f"{LISTED}\n  skip empty per warpgroup", DOCUMENTS),),
        "`split tiles`": (Case("simple", f"{LISTED}\n  {ITEMS}\n  {MATH} tiles\n  {AROUND}", DOCUMENTS),),
        "a condition on what the program computes": (Case("fa3", LISTED, COMPUTED),),
        "one of several kernels": (Case("two_pass", "stream k listed"),),
        "tiles of two grid axes, or of none, or of rows that aren't a multiple of 64": (
            Case("simple", f"{LISTED}\n  tile g 1, i 128, j 128, b 2", DOCUMENTS),
        ),
    },
    "regs P as e4m3": {
        "a factor that isn't a power of two": (Case("eight_128", "regs Pr = P as e4m3 times 12 permute v8"),),
        "a tile that no step computes": (Case("eight_128", "regs Sr = S as e4m3 permute v8"),),
        "a type that isn't the other operand's": (
            Case("eight_128", "regs Pr = P as e5m2 permute v8"),
            Case("simple", "regs Pr = P as e4m3 permute v8"),
        ),
        "8 bits without `permute`": (Case("eight_128", "regs Pr = P as e4m3 times 16"),),
        "16 with it": (Case("simple", "regs Pr = P as bf16 permute v8"),),
        "a factor for what isn't summed up by itself": (
            Case("eight_128", "regs Pr = P as e4m3 times 16 permute v8", SQUARES),
        ),
        "values that don't fit the type, such as 16 times those of a maximum that lags by 2^8": (
            Case("eight_128", "regs Pr = P as e4m3 times 256 permute v8"),
        ),
        "tiles that aren't a multiple of 32 keys": (Case("eight_128", "tile j 80"),),
    },
    "by transpose": {
        "what is no home": (Case("turning", "smem Vt = V by transpose ring 2"),),
        "a tile that no step makes, or that a step fills": (
            Case("turning_apart", "turn { for j { } }"),
            Case("turning_apart", "load { fill Qs  for j { fill Ks[j+1]  fill Vs[j]  fill Vt[j] } }"),
        ),
        "a role with steps other than fills, or of several warpgroups": (
            Case("turning_apart", "turn { for j { pack Vt[j]  rescale W } }"),
            Case("turning_apart", "role turn : 2 warpgroups, registers 40\n  role math : 1 warpgroup, registers 136"),
        ),
        "one that also fills, where it would give out the items of a dynamic grid": (
            Case("turning", "grid persistent dynamic over (b, g, r, i)"),
        ),
        "a slot that is filled again before it is read": (
            Case("turning", "load { fill Qs  for j { fill Ks[j+1]  fill Vs[j+1]  pack Vt[j] } }", edits=PLAIN),
        ),
        "a grid whose items are joined": (Case("turning", "grid persistent joined over (b, g, r, i)"),),
        "a listed stream": (Case("turning", "stream j descending listed"),),
        "elements that aren't of 8 bits, or sm_80": (Case("simple", "smem Vt = Vs by transpose ring 2"),),
    },
    "regs P ring 2": {
        "more than two sets": (Case("fa3", "regs P ring 3"),),
        "an operand that no step packs": (Case("fa3", "regs S ring 2"),),
        "any other `regs` line, which is not yet supported": (Case("fa3", "regs Qr = Q"),),
    },
}  # fmt: skip
