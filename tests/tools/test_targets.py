"""`wgdsl targets`: what it says is what the registry and the rows of `targets/` hold."""

from __future__ import annotations

from wgdsl.driver import lowered_steps
from wgdsl.roles.model import Step, Wgmma
from wgdsl.targets.choice import FAMILIES, TARGETS, serves
from wgdsl.tools.targets import COPIES, PRODUCTS, targets_text


def table() -> dict[str, str]:
    rows = targets_text().split("\nstep ")[1].splitlines()[1:]
    return dict(row.split(maxsplit=1) for row in rows)


def test_every_step_has_a_row():
    rows = table()
    direct = Step.__subclasses__()
    assert set(rows) == {s.__name__ for s in (*direct, *(t for s in direct for t in s.__subclasses__()))}
    assert rows["Wgmma"].split()[0] == "yes"


def test_a_step_without_a_lowering_shows(monkeypatch):
    from wgdsl.emit import lowering

    monkeypatch.delitem(lowering.LOWERINGS, (Wgmma, "hopper"))
    assert "Wgmma" not in lowered_steps()["sm_90a"] and table()["Wgmma"].split()[0] == "-"


def test_limits_and_engines():
    text = targets_text()
    for t in TARGETS.values():
        assert f"{t.name}\n" in text and f"{t.shared_limit} bytes a CTA" in text
        assert all(f"  {engine}\n" in text for engine in (*t.products, *t.copies, *t.stores))
        assert set(t.products) <= set(PRODUCTS) and set(t.copies) <= set(COPIES), "each says what it can do"
    assert "bf16: m 64, n 8 to 256 in steps of 8, k in steps of 16; f32 sums; either operand K- or MN-major\n" in text
    assert "e4m3: m 64, n 8 to 256 in steps of 8, k in steps of 32; f32 sums of about 14 bits; operands K-major\n" in text
    assert "bf16: m 64 to 256 for 4 warps in steps of 64, n 16 to 256 in steps of 16" in text


def test_later_targets_of_a_family_have_the_same_engines():
    """That is what the text says of them in place of a list."""
    for a in TARGETS.values():
        for b in (b for b in TARGETS.values() if serves(a.name, b.name)):
            assert (a.products, a.copies, a.stores, a.unit) == (b.products, b.copies, b.stores, b.unit)
            assert (a.shared_alignment, a.matrix_stores) == (b.shared_alignment, b.matrix_stores)
    assert "  engines    as sm_80; takes schedules on sm_80, sm_86, sm_89 too\n" in targets_text()


def test_the_steps_of_a_family_are_emitted_for_all_of_it():
    steps = lowered_steps()
    for family in FAMILIES:
        assert len({steps[t.name] for t in TARGETS.values() if t.family == family}) == 1
    assert "Mma" in steps["sm_120"] and "Wgmma" not in steps["sm_120"]
