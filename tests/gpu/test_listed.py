"""Listed streams on a GPU: the lists are NumPy's, what goes through them is right, and lists are kept between calls."""

from __future__ import annotations

import numpy as np
import pytest

from tests.programs.test_listed import BASES, PROGRAMS, SIZES, inputs, listed, mask, shown, tiles
from tests.programs.test_masks_and_scores import called
from wgdsl.diagnostics.model import WgError

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")
from tests.gpu.support import captured  # noqa: E402


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_listed_program_is_right(name, base):
    kernel = listed(PROGRAMS[name], base)
    kernel.build()
    for m, n in SIZES[:-1]:
        for _ in range(2):
            a = inputs(kernel, PROGRAMS[name], m, n)
            assert called(kernel, PROGRAMS[name], m, n, None, device="gpu", **a) == [], (m, n)


@pytest.mark.parametrize("base", ["fa3", "three", "fa2"])
@pytest.mark.parametrize("name", ["documents", "documents in a window", "blocks of a head", "keys", "integers"])
def test_lists_are_numpys(name, base):
    kernel = listed(PROGRAMS[name], base)
    for m, n in (*SIZES, (1000, 3000)):
        a = inputs(kernel, PROGRAMS[name], m, n)
        seen = mask(name, a, m, n)
        seen = seen.reshape(2, 1, 2, m, n) if name == "blocks of a head" else seen
        np.testing.assert_array_equal(shown(kernel.list_tiles(**a).array), tiles(seen, *BASES[base], descending=True))


@pytest.mark.parametrize("base", ["fa3", "fa2"])
def test_lists_are_kept_on_the_device(base):
    kernel = listed(PROGRAMS["documents, causal"], base)
    a = inputs(kernel, PROGRAMS["documents, causal"], 500, 700)
    a = {n: torch.from_numpy(x.astype(np.float32)).bfloat16() if n in "QKV" else torch.from_numpy(x) for n, x in a.items()}
    on = {n: x.cuda() for n, x in a.items()}
    made = kernel.list_tiles(doc=on["doc"], other=on["other"])
    assert made.array.device == on["Q"].device and made.dims == {"B": 2, "M": 500, "N": 700}
    want = kernel(**on)
    for _ in range(3):
        got = kernel(**on, tiles=made)
        assert torch.equal(got.O, want.O) and torch.equal(got.L, want.L)
    longer = {**on, "K": on["K"][:, :699], "V": on["V"][:, :699], "other": on["other"][:, :699]}
    with pytest.raises(WgError, match="N = 700, and N is 699"):
        kernel(**longer, tiles=made)
    with captured() as graph:
        inside = kernel(**on, tiles=made)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(inside.O, want.O)
