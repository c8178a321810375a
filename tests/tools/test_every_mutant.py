"""Every mutant of the shipped schedules that breaks a rule is refused; what may pass and does computes the same.

`make test` takes a sample: of each schedule file one kernel, of each operator one mutant. `make mutants` takes all, and keeps
the reports under `out/mutants`.
"""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.shipped import KERNELS, ROOT, Shipped
from wgdsl.driver import verified
from wgdsl.mutate import mutants
from wgdsl.tools.mutating import Report, run
from wgdsl.tools.mutation_text import report_text
from wgdsl.tools.trial import trial

REPORTS = ROOT / "out" / "mutants"
SEED = 20
ORDERS = 20  # of events in which the simulator runs what may pass, for one kernel of each file
NAMES = re.compile(r"^schedule (\w+)", re.MULTILINE)


def files() -> dict[str, list[Shipped]]:
    """Each schedule file with the kernels that its schedules make."""
    out = {}
    for path in sorted((ROOT / "schedules").glob("*/*.wg")):
        text = path.read_text()
        names = set(NAMES.findall(text))
        says = set(re.findall(r"^schedule \w+ for (\w+)", text, re.M))  # none, where all extend what stands elsewhere
        found = [k for k in KERNELS if k.schedule in names and (k.program.split("/")[1] in says or not says)]
        out[path.stem] = found
    return out


FILES = files()
CHOSEN = {name: Random(SEED).choice(kernels) for name, kernels in FILES.items()}


def complaint(report: Report) -> str:
    return report_text(report, every=False) if report.missed else ""


def test_every_schedule_file_is_covered():
    assert all(FILES.values()) and {k for kernels in FILES.values() for k in kernels} == set(KERNELS)


@pytest.mark.parametrize("name", FILES)
def test_a_sample(name: str):
    report = run(CHOSEN[name].compile().forms.roles, sample=1, seed=SEED)
    assert not report.missed, complaint(report)


@pytest.mark.parametrize("name", ["gemm_pipelined", "dual_gemm", "row_softmax_two_pass", "attention_fa3"])
def test_what_a_rule_exempts_is_accepted(name: str):
    """The verifier, which doesn't know the rules, agrees that these are no change."""
    exempt = [x for x in mutants(CHOSEN[name].compile().forms.roles) if x.exempt]
    assert exempt
    for x in exempt:
        verified(x.program)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("s", KERNELS, ids=[k.name for k in KERNELS])
def test_all(s: Shipped):
    kernel = s.compile()
    report = run(kernel.roles, simulate=trial(kernel, ORDERS) if s in CHOSEN.values() else None)
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / f"{s.name}.txt").write_text(f"{s.name}\n\n{report_text(report)}\n")
    assert not report.missed, complaint(report)
