"""`wgdsl targets`: what it says is what the registry and the rows of `targets/` hold."""

from __future__ import annotations

from wgdsl.driver import lowered_steps
from wgdsl.roles.model import Step, Wgmma
from wgdsl.targets.choice import TARGETS
from wgdsl.tools.targets import targets_text


def table() -> dict[str, str]:
    rows = targets_text().split("\nstep ")[1].splitlines()[1:]
    return dict(row.split(maxsplit=1) for row in rows)


def test_every_step_has_a_row():
    rows = table()
    assert set(rows) == {s.__name__ for s in Step.__subclasses__()}
    assert rows["Wgmma"].split()[0] == "yes"


def test_a_step_without_a_lowering_shows(monkeypatch):
    from wgdsl.emit import lowering

    monkeypatch.delitem(lowering.LOWERINGS, (Wgmma, "hopper"))
    assert "Wgmma" not in lowered_steps()["sm_90a"] and table()["Wgmma"].split()[0] == "-"


def test_limits_and_engines():
    text = targets_text()
    for t in TARGETS.values():
        assert f"{t.name}\n" in text and f"{t.shared_limit} bytes a CTA" in text
        assert all(f"  {engine}\n" in text for engine in (*t.products, *t.copies))
    assert "bf16: m 64, n 8 to 256 in steps of 8, k in steps of 16; f32 sums; either operand K- or MN-major\n" in text
    assert "e4m3" in text.split("(not yet in schedules)")[0].splitlines()[-1]
