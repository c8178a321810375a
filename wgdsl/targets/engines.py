"""The engines of products: what a schedule that names one has to keep to."""

from __future__ import annotations

from dataclasses import dataclass

from . import mma, wgmma


@dataclass(frozen=True, kw_only=True)
class Engine:
    """rows: of a result, for each warpgroup or group of four warps; `blocks`: that many of them at most. n in steps of `n_step`
    up to `n_max`, k in steps of `k_step`. `dtypes`: of operands."""

    name: str
    rows: int
    blocks: int
    n_step: int
    n_max: int
    k_step: int
    dtypes: tuple[str, ...]

    def shares_rows(self, tile: int, groups: int) -> bool:
        """Whether a tile falls into equal shares that each group can multiply."""
        return tile % (self.rows * groups) == 0 and 1 <= tile // (self.rows * groups) <= self.blocks


WGMMA = Engine(
    name="wgmma",
    rows=wgmma.M,
    blocks=1,
    n_step=wgmma.N_STEP,
    n_max=wgmma.N_MAX,
    k_step=wgmma.INSTRUCTIONS["bf16"].k,
    dtypes=tuple(d for d in wgmma.INSTRUCTIONS if wgmma.supported(d)),
)
MMA = Engine(
    name="mma",
    rows=4 * mma.M,
    blocks=4,
    n_step=mma.PAIR,  # what one ldmatrix fetches
    n_max=256,
    k_step=mma.K,
    dtypes=mma.DTYPES,
)
ENGINES = {e.name: e for e in (WGMMA, MMA)}
