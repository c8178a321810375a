"""Every error that a text, a schedule or a role program can have, rendered: one file for each code, from its failing example.

`test_syntax.py` holds those of WG01xx, `test_run_time.py` those of WG05xx and WG06xx; together they cover the catalogue.
"""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.broken import SHIPPED, right
from tests.catalogue import both
from tests.sim.test_shipped import inputs
from tests.snapshots import TextFile
from tests.verify.kernels import apart
from wgdsl.diagnostics.catalogue import all_problems
from wgdsl.diagnostics.model import WgError
from wgdsl.diagnostics.render import render_all
from wgdsl.driver import Settings, prepare
from wgdsl.forms import explained
from wgdsl.reading import read_unit
from wgdsl.sim import simulate_unchecked
from wgdsl.syntax.parser import read
from wgdsl.verify.closure import explore
from wgdsl.verify.report import problem_of

FOLDER = Path(__file__).parent / "__snapshots__"
STAGES = ("02", "03", "04", "07", "08", "09", "11")  # those whose documentation has examples that run here


def missing_file() -> None:
    read(Path("missing.wg"))


def endless() -> None:
    simulate_unchecked(right("pipelined"), *inputs(SHIPPED["pipelined"][2], 70, 600), limit=100)


def other_setting() -> None:
    _, journal = prepare("examples/gemm/gemm.wg", schedule="pipelined", settings=Settings(types={"T": "bf16"}), target="sm_90a")
    prepare(explained(journal.forms), settings=Settings(types={"T": "f16"}), target="sm_90a")


def too_many_states() -> None:
    raise WgError(problem_of(explore(right("pipelined").kernels[0], limit=10).fault))


def running_ahead() -> None:
    raise WgError(problem_of(explore(apart()).fault))


def import_cycle() -> None:
    with TemporaryDirectory() as folder, chdir(folder):
        Path("a.wg").write_text('wg 1\nimport "b.wg"\n')
        Path("b.wg").write_text('wg 1\nimport "a.wg"\n')
        read_unit("a.wg")


BY_HAND = {
    "WG0101": missing_file,
    "WG0722": too_many_states,
    "WG0723": running_ahead,
    "WG0817": endless,
    "WG0902": import_cycle,
    "WG1109": other_setting,
}
CODES = [c for c in all_problems() if c[2:4] in STAGES and c not in BY_HAND]


@pytest.mark.parametrize("code", CODES)
def test_the_failing_example(code, snapshot):
    fails, _ = both(all_problems()[code])
    assert render_all(fails) + "\n" == snapshot(extension_class=TextFile, name=code)


@pytest.mark.parametrize("code", BY_HAND)
def test_without_an_example(code, snapshot):
    with pytest.raises(WgError) as caught:
        BY_HAND[code]()
    assert render_all(caught.value.problems) + "\n" == snapshot(extension_class=TextFile, name=code)


@pytest.mark.parametrize("code", all_problems())
def test_every_code_has_a_snapshot(code):
    assert [f for f in FOLDER.glob("*/*.txt") if code in f.name]


def test_no_snapshot_is_left_over():
    assert {f.stem for f in (FOLDER / "test_snapshots").iterdir()} == {*CODES, *BY_HAND}
