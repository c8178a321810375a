"""Golden texts of a user's own file: written, compared, proven; never called proven without a run of that very text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wgdsl import cli
from wgdsl.diagnostics.model import EnvironmentFault, WgError
from wgdsl.tools import golden, hardware, proving
from wgdsl.tools.golden import NOT_RUN, PROVEN, adopted, emitted, rewrite, states, unused
from wgdsl.tools.judge import Verdict
from wgdsl.tools.manifest import chosen, read_folder

README = Path(__file__).parents[2] / "README.md"
LINEAR = next(b for b in re.findall(r"```wg\n(.*?)```", README.read_text("utf-8"), re.DOTALL) if "program linear" in b)
CARD = hardware.Card(name="A card", target="sm_90a", driver="580.1 (CUDA 13.0)", nvrtc="13.0")


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder, the current one, with `linear.wg`."""
    monkeypatch.chdir(tmp_path)
    Path("linear.wg").write_text(LINEAR, "utf-8")
    return tmp_path


@pytest.fixture
def wgdsl(here, capfd):
    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as e:
            cli.main(["golden", *words])
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return int(e.value.code or 0), out, err

    return call


def snapshot(folder: Path) -> dict[str, bytes]:
    return {p.as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def only():
    folder, goldens = chosen(Path("linear.wg"))
    (state,) = states(folder, goldens)
    return folder, goldens[0], state


def test_without_goldens_the_command_that_makes_one_is_named(wgdsl):
    for word in ("check", "status", "prove"):
        code, _, err = wgdsl(word, "linear.wg")
        assert code == 1 and "WG1001" in err and "`wgdsl golden update linear.wg` makes one" in err


def test_a_golden_is_written_beside_its_file(wgdsl, here):
    code, out, _ = wgdsl("update", "linear.wg", "--set", "T=bf16", "--dims", "M=70,N=40", "K=64")
    assert code == 0 and "not yet proven on a GPU: golden/linear-simple-bf16.cu" in out and "0 of 1 proven" in out
    row = json.loads(Path("golden/golden.json").read_text())["goldens"]["linear-simple-bf16"]
    assert row == {"file": "../linear.wg", "schedule": "simple", "set": ["T=bf16"], "dims": [["M=70", "N=40", "K=64"]]}
    assert 'extern "C" __global__' in Path("golden/linear-simple-bf16.cu").read_text()
    assert wgdsl("check")[:2] == (0, "1 of 1 as they are emitted now\n")


def test_a_text_does_not_depend_on_where_it_is_made(wgdsl, here, monkeypatch):
    wgdsl("update", "linear.wg")
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    assert wgdsl("check", "../linear.wg")[0] == 0 and wgdsl("check", str(here / "golden"))[0] == 0
    monkeypatch.chdir(here)
    moved = here / "elsewhere"
    moved.mkdir()
    for name in ("linear.wg", "golden"):
        (here / name).rename(moved / name)
    assert wgdsl("check", "elsewhere/linear.wg")[0] == 0


def test_check_shows_a_diff_and_writes_nothing(wgdsl, here):
    wgdsl("update", "linear.wg")
    Path("linear.wg").write_text(LINEAR.replace("gelu(", "relu("), "utf-8")
    before = snapshot(here)
    code, out, _ = wgdsl("check", "linear.wg")
    assert code == 1 and out.startswith("stale golden/linear-simple.cu\n--- golden/linear-simple.cu\n")
    assert "-    // A = gelu((A + b[n]))" in out and "+    // A = relu((A + b[n]))" in out
    assert out.endswith("0 of 1 as they are emitted now\n")
    assert snapshot(here) == before


def test_update_says_what_it_can_not_write(wgdsl, here):
    wgdsl("update", "linear.wg")
    text = Path("golden/linear-simple.cu").read_text()
    Path("linear.wg").write_text(LINEAR.replace("      await A[k]\n", ""), "utf-8")
    code, out, _ = wgdsl("update", "linear.wg")
    assert code == 1 and "broken golden/linear-simple.cu: left as it is" in out and "WG0413" in out
    assert Path("golden/linear-simple.cu").read_text() == text
    assert wgdsl("check")[0] == 1


def test_a_golden_is_described_with_its_file(wgdsl):
    code, _, err = wgdsl("update", "--set", "T=bf16")
    assert code == 1 and "name the `.wg` file" in err


def test_all_goldens_of_a_file_are_rewritten(wgdsl, here):
    wgdsl("update", "linear.wg")
    wgdsl("update", "linear.wg", "--set", "T=bf16")
    Path("linear.wg").write_text(LINEAR.replace("gelu(", "relu("), "utf-8")
    code, out, _ = wgdsl("update", ".")
    assert code == 0 and out.count("wrote golden/linear-simple") == 2
    assert wgdsl("check", "linear.wg")[1] == "2 of 2 as they are emitted now\n"


def test_a_schedule_in_a_file_of_its_own(wgdsl, here):
    program, schedule = LINEAR.split("schedule simple")
    Path("linear.wg").write_text(program)
    Path("mine.wg").write_text("wg 1\n\nschedule mine" + schedule)
    assert wgdsl("update", "linear.wg", "--schedule", "mine.wg")[0] == 0
    assert read_folder(here / "golden").goldens[0].schedule == "../mine.wg"
    assert wgdsl("check", "mine.wg")[:2] == (0, "1 of 1 as they are emitted now\n")
    assert '"mine.wg"' in Path("golden/linear-mine.cu").read_text()


def prove_with(monkeypatch, error: float, bar: float = 1.0):
    """Prove the golden on a GPU that gives this error."""
    verdict = Verdict(output="Y", error=error, bar=bar, largest=3.0, elements=1)
    monkeypatch.setattr(proving, "run", lambda *_, **__: type("Run", (), {"verdicts": (verdict,)}))
    folder, g, state = only()
    return proving.prove(folder, g, state, CARD)


def test_proven_is_the_text_that_ran_right_and_no_other(wgdsl, here, monkeypatch):
    wgdsl("update", "linear.wg")
    assert only()[2].kind == NOT_RUN
    assert prove_with(monkeypatch, 0.5).right
    rows = hardware.load(Path("golden/hardware.json"))
    text = Path("golden/linear-simple.cu").read_text()
    row = rows[hardware.digest(text)]
    assert (row.kernel, row.card, row.nvrtc, row.max_error, row.runs) == ("linear-simple", "A card", "13.0", 0.5, 4)
    assert only()[2].kind == PROVEN and "1 proven" in wgdsl("status")[1]

    Path("linear.wg").write_text(LINEAR.replace("gelu(", "relu("), "utf-8")
    code, out, _ = wgdsl("update", "linear.wg")
    assert code == 0 and "not yet proven on a GPU: golden/linear-simple.cu" in out
    _, out, _ = wgdsl("status")
    assert "not yet run golden/linear-simple.cu" in out and "unused      record of linear-simple" in out
    assert "0 proven, 1 not yet run, 1 unused" in out


def test_a_wrong_run_takes_the_proof_away(wgdsl, monkeypatch):
    wgdsl("update", "linear.wg")
    prove_with(monkeypatch, 0.5)
    assert not prove_with(monkeypatch, 2.0).right
    assert hardware.load(Path("golden/hardware.json")) == {} and only()[2].kind == NOT_RUN


def test_a_stale_golden_is_not_run(wgdsl, monkeypatch):
    wgdsl("update", "linear.wg")
    Path("golden/linear-simple.cu").write_text("edited")
    with pytest.raises(WgError, match="WG1003"):
        prove_with(monkeypatch, 0.0)
    assert not Path("golden/hardware.json").exists()


def test_without_a_gpu_nothing_is_proven(wgdsl):
    wgdsl("update", "linear.wg")
    folder, g, state = only()
    with pytest.raises(EnvironmentFault, match="takes a run on a GPU"):
        proving.prove(folder, g, state, None)
    assert not Path("golden/hardware.json").exists()


def test_the_sizes_of_a_proof_suit_the_engines_and_are_right_in_the_simulator(here):
    folder, (g,) = adopted(Path("linear.wg"), settings=["T=bf16"])
    proof = proving.tried(g, emitted(folder, g), device="sim")
    assert proof.right
    assert [dims for dims, _ in proof.runs] == [
        {"M": 16, "N": 16, "K": 16}, {"M": 128, "N": 128, "K": 64},
        {"M": 144, "N": 144, "K": 80}, {"M": 432, "N": 432, "K": 240},
    ]  # fmt: skip


def test_what_is_left_over_is_listed(here):
    folder, _ = adopted(Path("linear.wg"), settings=[])
    (state,) = states(folder)
    assert state.kind == golden.MISSING and rewrite(folder, state)
    Path("golden/other.cu").write_text("x")
    assert [(s.name, s.kind) for s in unused(folder)] == [("other", "unused")]


@pytest.mark.parametrize("text", ["[]", '{"goldens": {"a": {}}}', '{"goldens": {"a": 3}}', "{}", "no"])
def test_a_manifest_that_is_none(wgdsl, text):
    Path("golden").mkdir()
    Path("golden/golden.json").write_text(text)
    code, _, err = wgdsl("check")
    assert code == 1 and "WG1002" in err
