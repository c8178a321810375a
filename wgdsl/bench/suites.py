"""The suites by name. Each makes its cases for a target; None for that of the suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .attention import ampere, attention, lengths
from .case import Case
from .dual_gemm import dual_gemm
from .gemm import gemm
from .variants import variants

Suite = Callable[[str | None], Sequence[Case]]

SUITES: Mapping[str, Suite] = {
    "attention": attention,
    "lengths": lengths,
    "gemm": gemm,
    "dual_gemm": dual_gemm,
    "ampere": ampere,
    "variants": variants,
}
