"""`probe`: what it writes in the simulator is what the step before it has computed, tile by tile."""

from __future__ import annotations

import numpy as np
import pytest

import wgdsl
from tests.lowering import ATTENTION, FA3, GEMM, PIPELINED, SIMPLE
from wgdsl import cli
from wgdsl.tools.probes import with_probes

DIMS = {"B": 1, "G": 1, "R": 2, "M": 150, "N": 200, "D": 64}
CUTS = ((0, 128), (128, 200))  # the tiles along j


def compiled(schedule: str, **options) -> wgdsl.Kernel:
    return wgdsl.compile(
        ATTENTION,
        schedule=schedule,
        dims={"D": 64, "E": 64},
        types={"T": "f16"},
        options={"causal": True, **options},
        build=False,
    )


@pytest.fixture(scope="module")
def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    shapes = {"Q": (1, 150, 2, 64), "K": (1, 200, 1, 64), "V": (1, 200, 1, 64)}
    return {n: rng.standard_normal(s).astype(np.float16) for n, s in shapes.items()}


@pytest.fixture(scope="module")
def exact(inputs) -> dict[str, np.ndarray]:
    """In float64, by head: scores, and exponentials relative to the maximum of the tiles seen so far, the last first."""
    q, k, v = (inputs[n].astype(float) for n in "QKV")
    s = np.einsum("bihd,bjgd->hij", q, k)
    seen = np.where(np.arange(200) <= np.arange(150)[:, None] + 50, s / 8, -np.inf)
    p, o, top = np.zeros_like(s), [None, None], np.full(s.shape[:2], -np.inf)
    total = np.zeros((2, 150, 64))
    for t in (1, 0):
        cut = slice(*CUTS[t])
        old, top = top, np.maximum(top, seen[:, :, cut].max(-1))
        at = np.where(np.isinf(top), 0, top)
        p[:, :, cut] = np.exp(seen[:, :, cut] - at[:, :, None])
        total = total * np.exp(old - at)[:, :, None] + np.einsum("hij,bjgd->hid", p[:, :, cut], v[:, cut])
        o[t] = total
    return {"S": s, "P": p, "O": np.stack(o)}


def padded(a: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    out = np.full(shape, np.nan)
    out[: a.shape[0], : a.shape[1]] = a
    return out


PROBED = {
    "fa3": (FA3, "compute P[j+1]"),
    "simple": (SIMPLE, "compute P[j]"),
}


@pytest.mark.parametrize("name", PROBED)
def test_the_tiles_of_a_computed_value(name, inputs, exact):
    base, step = PROBED[name]
    tiles = compiled(base.replace(step, f"{step}  {step.replace('compute', 'probe')}", 1)).probe(**inputs, device="sim")
    assert list(tiles) == [f"P[b=0,g=0,r={r},i={i}][j={j}]" for r in (0, 1) for i in (0, 1) for j in (0, 1)]
    for r in (0, 1):
        for i, rows in enumerate((slice(0, 128), slice(128, 150))):
            for j, cut in enumerate(CUTS):
                want = padded(exact["P"][r, rows, slice(*cut)], (128, 128))
                np.testing.assert_allclose(tiles[f"P[b=0,g=0,r={r},i={i}][j={j}]"], want, atol=2e-3)


@pytest.mark.parametrize("name, tolerance", [("S", 1e-3), ("O", 2e-2)])
def test_the_tiles_of_a_product(name, tolerance, inputs, exact):
    step = "await S[j+1]" if name == "S" else "await O[j]"
    tiles = compiled(FA3.replace(step, f"{step}  {step.replace('await', 'probe')}", 1)).probe(**inputs, device="sim")
    for r in (0, 1):
        for j, cut in enumerate(CUTS):
            got = tiles[f"{name}[b=0,g=0,r={r},i=0][j={j}]"]
            want = exact["S"][r, :128, slice(*cut)] if name == "S" else exact["O"][j, r, :128]
            np.testing.assert_allclose(got, padded(want, got.shape), atol=tolerance)
            assert got.shape == ((128, 128) if name == "S" else (128, 64))


def test_a_row_value(inputs, exact):
    kernel = compiled(FA3.replace("compute P[j+1]", "compute P[j+1]  probe P.max[j+1]", 1))
    tiles = kernel.probe(**inputs, device="sim")
    top = tiles["P.max[b=0,g=0,r=0,i=0][j=1]"]
    assert top.shape == (128,)
    assert not np.isnan(tiles["P.max[b=0,g=0,r=0,i=0][j=0]"]).any() and (top <= tiles["P.max[b=0,g=0,r=0,i=0][j=0]"]).all()


def test_tiles_that_no_row_of_an_item_sees_are_not_computed():
    rng = np.random.default_rng(1)
    inputs = {n: rng.standard_normal((1, 200, 1, 64)).astype(np.float16) for n in "QKV"}
    tiles = compiled(SIMPLE.replace("compute P[j]", "compute P[j]  probe P[j]", 1)).probe(**inputs, device="sim")
    assert np.isnan(tiles["P[b=0,g=0,r=0,i=0][j=1]"]).all()
    assert not np.isnan(tiles["P[b=0,g=0,r=0,i=0][j=0]"]).any()


def test_the_results_stay_as_they_are(inputs):
    plain, probed = compiled(FA3), compiled(FA3.replace("compute P[j+1]", "compute P[j+1]  probe P[j+1]", 1))
    for a, b in zip(plain(**inputs, device="sim"), probed(**inputs, device="sim"), strict=True):
        assert np.array_equal(a, b)


def test_another_program():
    kernel = wgdsl.compile(GEMM, schedule=PIPELINED.replace("await Acc[k-1]", "await Acc[k]  probe Acc[k]"), build=False)
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((40, 100), (30, 100)))
    tiles = kernel.probe(A=a, B=b, device="sim")
    assert list(tiles) == ["Acc[i=0,n=0][k=0]", "Acc[i=0,n=0][k=1]"]
    for k, n in ((0, 64), (1, 100)):
        want = a[:, :n].astype(float) @ b[:, :n].astype(float).T
        np.testing.assert_allclose(tiles[f"Acc[i=0,n=0][k={k}]"], padded(want, (128, 256)), atol=1e-3)


def test_without_a_probe_there_is_nothing(inputs):
    with pytest.raises(wgdsl.WgError, match="WG1009"):
        compiled(FA3).probe(**inputs, device="sim")


REFUSED = {
    "compute P[j+1]  probe P[j]": "WG0411",
    "compute P[j+1]  probe O[j]": "WG0410",
    "compute P[j+1]  probe S[j+1]": "WG1006",
    "compute P[j+1]  probe P.sum[j+1]": "WG0405",
    "compute P[j+1]  probe P": "WG0421",
    "compute P[j+1]  probe Z[j]": "WG0401",
    "compute P[j+1]  probe P[j+1]  probe P[j+1]": "WG0422",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_can_not_be_probed(text):
    with pytest.raises(wgdsl.WgError) as e:
        compiled(FA3.replace("compute P[j+1]", text, 1))
    assert [p.code for p in e.value.problems] == [REFUSED[text]]


def test_a_probe_outside_the_loop():
    with pytest.raises(wgdsl.WgError, match="outside the loop"):
        compiled(SIMPLE.replace("finish O, L via Os", "probe O[j]  finish O, L via Os"))


@pytest.fixture
def wgdsl_run(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "attention.wg").write_text(ATTENTION + FA3.replace("wg 1\n", ""))

    def call(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as e:
            fixed = ["--set", "D=64", "E=64", "--dims", "B=1,G=1,R=1,M=70,N=150", "--device", "sim"]
            cli.main(["run", "attention.wg", "--schedule", "fa3", *fixed, *words])
        out, err = capfd.readouterr()
        return int(e.value.code or 0), out + err

    return call


def test_the_command_line_puts_a_probe_in(wgdsl_run, tmp_path):
    code, said = wgdsl_run("--probe", "P[j]", "--probe", "O", "--probe", "P.max", "--probe-out", "tiles.npz")
    assert code == 0 and "6 tiles were looked at" in said and "P[b=0,g=0,r=0,i=0][j=1]: [128, 128] float32" in said
    with np.load(tmp_path / "tiles.npz") as kept:
        assert {k.split("[")[0] for k in kept} == {"P", "O", "P.max"} and kept["O[b=0,g=0,r=0,i=0][j=0]"].shape == (128, 64)


MISTAKES = [(["--probe", "Q"], "WG1007"), (["--probe", "P j"], "WG1007"), (["--probe-out", "x"], "WG1009")]


@pytest.mark.parametrize("words, code", MISTAKES)
def test_mistakes_on_the_command_line(wgdsl_run, words, code):
    rc, said = wgdsl_run(*words)
    assert rc == 1 and code in said


def test_a_schedule_stays_as_it_is_without_one():
    from tests.lowering import schedule

    assert with_probes(schedule(FA3), []) == schedule(FA3)
    assert with_probes(schedule(FA3), ["P"]) == schedule(FA3.replace("compute P[j+1]", "compute P[j+1]  probe P[j+1]", 1))


def test_the_text_compiles_with_one_pointer_more():
    """Strides beside it: nothing else of the entry changes."""
    plain, probed = compiled(FA3), compiled(FA3.replace("compute P[j+1]", "compute P[j+1]  probe P[j+1]", 1))
    assert "P_probe_ptr" in probed.cuda and "probe" not in plain.cuda
    (r,) = next(iter(probed.build().binaries.values())).kernels
    assert not r.complaints and r.spill_stores == 0
