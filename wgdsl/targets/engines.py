"""The engines of products: what a schedule that names one has to keep to."""

from __future__ import annotations

from dataclasses import dataclass

from . import mma, wgmma


@dataclass(frozen=True, kw_only=True)
class Engine:
    """rows: of a result, for each warpgroup or group of four warps; `blocks`: that many of them at most. n in steps of `n_step`
    up to `n_max`. `k_steps`: by the type of operands, in what steps it takes k. `k_major`: types whose operands have to be
    K-major; others may be MN-major too."""

    name: str
    rows: int
    blocks: int
    n_step: int
    n_max: int
    k_steps: dict[str, int]
    k_major: tuple[str, ...] = ()

    def shares_rows(self, tile: int, groups: int) -> bool:
        """Whether a tile falls into equal shares that each group can multiply."""
        return tile % (self.rows * groups) == 0 and 1 <= tile // (self.rows * groups) <= self.blocks


WGMMA = Engine(
    name="wgmma",
    rows=wgmma.M,
    blocks=1,
    n_step=wgmma.N_STEP,
    n_max=wgmma.N_MAX,
    k_steps={d: i.k for d, i in wgmma.INSTRUCTIONS.items()},
    k_major=tuple(d for d, i in wgmma.INSTRUCTIONS.items() if not i.transposable),
)
MMA = Engine(
    name="mma",
    rows=4 * mma.M,
    blocks=4,
    n_step=mma.PAIR,  # what one ldmatrix fetches
    n_max=256,
    k_steps=dict.fromkeys(mma.DTYPES, mma.K),
)
ENGINES = {e.name: e for e in (WGMMA, MMA)}
