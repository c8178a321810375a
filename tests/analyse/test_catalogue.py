"""Every error of the catalogue: its documented examples, what it says and where it points."""

from __future__ import annotations

import pytest

from tests.analyse.programs import problems_of, wrapped
from tests.catalogue import chosen, examples
from wgdsl.diagnostics import analyse as catalogue
from wgdsl.diagnostics.model import Problem

ERRORS = sorted((c for c in vars(catalogue).values() if isinstance(c, type) and issubclass(c, Problem)), key=lambda c: c.code)
ERRORS = [c for c in ERRORS if c.code]


def test_codes_are_numbered_without_gaps():
    assert [c.code for c in ERRORS] == [f"WG02{n:02}" for n in range(1, len(ERRORS) + 1)]


@pytest.mark.parametrize("error", ERRORS, ids=lambda c: c.code)
def test_documented_example_fails_as_it_says_and_the_mended_one_works(error):
    fails, works = examples(error)
    found = problems_of(fails, **chosen(fails))
    assert error.code in {p.code for p in found}
    assert problems_of(works, **chosen(works)) == ()


@pytest.mark.parametrize("error", ERRORS, ids=lambda c: c.code)
def test_every_problem_says_what_where_and_how(error):
    text, _ = examples(error)
    for p in problems_of(text, **chosen(text)):
        assert p.code == error.code
        assert p.title() and p.span is not None and p.span.text
        assert p.label() or p.help() or p.notes()


def only(body: str, **options) -> Problem:
    (problem,) = problems_of(wrapped(body), **options)
    return problem


@pytest.mark.parametrize(
    "body, code, span, said",
    [
        ("Y[i] = Zz[i]", "WG0201", "Zz", "did you mean `Z`?"),
        ("Y[i] = z[i]", "WG0201", "z", "did you mean `Z`?"),
        ("Y[i] = ex(Z[i])", "WG0201", "ex(Z[i])", "did you mean `exp`"),
        ("Y[i] = Z[i] + skale", "WG0201", "skale", "skale"),
        ("in W: f33[M]\n  Y[i] = Z[i]", "WG0201", "in W: f33[M]", "did you mean `f32`?"),
        ("option act in {none, relu}\n  Y[i] = select(act == rel, 0.0, Z[i])", "WG0201", "rel", "`relu`"),
        ("Y[i] = Z", "WG0203", "Z", "0 indices"),
        ("in c: f32\n  Y[i] = c[i]", "WG0203", "c", "without indices"),
        ("Y[i,j] = X[i,j]", "WG0203", "Y[i,j]", "it is `Y[M]`"),
        ("Y[i] = sum[j] X[i,j] + X[i,j]", "WG0204", "j", "bound here: i"),
        ("Y[i] = sum[j] X[i,j] where j < 3", "WG0204", "j", "a `where` sees the left side's indices"),
        ("Y[i] = sum[j] Z[i] + X[i,j]", "WG0205", "sum[j] Z[i]", "parentheses"),
        ("Y[i] = sum[j,j] X[i,j]", "WG0206", "sum[j,j] X[i,j]", "twice"),
        ("Y[i] = softmax[j] X[i,j]", "WG0206", "softmax[j] X[i,j]", "softmax keeps its axis"),
        ("Y[i] = sum[M] X[i,M]", "WG0206", "sum[M] X[i,M]", "dim"),
        ("Y[i] = sum[k] Z[i] * X[k + i, k]", "WG0209", "k + i", "k + i < M"),
        ("Y[i] = Z[i + 1]", "WG0209", "i + 1", "i + 1 < M"),
        ("Y[i + 1] = Z[i]", "WG0209", "i + 1", "Y"),
        ("Y[i] = Z[i] + sum[k] X[i - 1, k] where i >= 1", "WG0209", "i - 1", "i - 1 >= 0"),
        ("in W: f32[M + N]\n  Y[i] = sum[k] W[i + k]", "WG0207", "sum[k] W[i + k]", "index k < ..."),
        ("Y[i] = not Z[i]", "WG0211", "Z[i]", "a real number"),
        ("Y[i] = Z[i] + (i < 3)", "WG0211", "Z[i] + (i < 3)", "select"),
        ("Y[i] = Z[i < 3]", "WG0211", "i < 3", "an integer"),
        ("Y[i] = Z[0.5]", "WG0211", "0.5", "an integer"),
        ("Y[i] = i < 3", "WG0211", "i < 3", "to be stored as f32"),
        ("out I: i32[M]\n  Y[i] = Z[i]\n  I[i] = Z[i] * 2.0", "WG0211", "Z[i] * 2.0", "i32(...)"),
        ("option act in {none, relu}\n  Y[i] = Z[i] + act", "WG0211", "act", "act == none"),
        ("Y[i] = M[i]", "WG0211", "M", "the dim `M`"),
        ("Y[i] = Z[i] % 2.0", "WG0211", "Z[i] % 2.0", "an integer"),
        ("Y[i] = 7 / 0", "WG0211", "7 / 0", "other than 0"),
        ("def f(a, b) = a + b\n  Y[i] = f(Z[i])", "WG0212", "f(Z[i])", "2 arguments"),
        ("Y[i] = select(i < 3, Z[i])", "WG0212", "select(i < 3, Z[i])", "3 arguments"),
        ("in W: f32[M]\n  in W: f32[N] when N > 2\n  Y[i] = Z[i]", "WG0217", "N > 2", "run-time"),
        ("Y[i] = 1.0 when false", "WG0215", "out Y: f32[M]", "is false"),
        ("W[i] = Z[i] when false\n  Y[i] = W[i]", "WG0216", "W", "doesn't exist"),
        ("option n = M\n  Y[i] = Z[i]", "WG0201", "M", "M"),
        ("let a = a + 1\n  Y[i] = Z[a * 0 + i]", "WG0221", "a", "uses itself"),
        ("Y[i] = Z[i] * 2147483648", "WG0222", "2147483648", "2147483648.0"),
        ("Y[i] = Z[i] * 1e39", "WG0222", "1e39", "inf"),
        ("Y[i] = Z[i] * 1e-50", "WG0222", "1e-50", "0.0"),
        ("Y[i] = Y[i] + 1.0", "WG0223", "Y", "recurrence"),
        ("assume distinct\n  Y[i] = Z[i]", "WG0223", "assume distinct", "increasing"),
        ("assume Z increasing\n  Y[i] = Z[i]", "WG0211", "assume Z increasing", "i32"),
        ("assume Y positive\n  Y[i] = Z[i]", "WG0211", "assume Y positive", "floats"),
        ("in s: i32[M]\n  Y[s[i] + i] = Z[i]", "WG0210", "Y[s[i] + i]", "written once"),
        ("in s: i32[M]\n  Y[i] = Z[s[i + 1]]", "WG0209", "Y[i] = Z[s[i + 1]]", "i + 1 < M"),
        ("in s: i32[M]\n  Y[i] = s[i] / 2", "WG0223", "s[i] / 2", "f32(...)"),
        ("in s: i32\n  Y[i] = Z[i + s * 0]", "WG0223", "i + s * 0", "scalar"),
        ("out U: f32[2 * M]\n  Y[i] = Z[i]\n  U[2 * i] = Y[i]\n  V[i] = U[i]", "WG0223", "U", "bare indices"),
        ("W[i + 1] = Z[i]\n  Y[i] = W[i]", "WG0226", "W[i + 1]", "distinct indices"),
        ("W[i, i] = Z[i]\n  Y[i] = W[i, i]", "WG0226", "W[i, i]", "distinct indices: `W[i]`"),
        ("N[i] = Z[i]\n  Y[i] = N[i]", "WG0202", "N", "a dim"),
        ("def exp(x) = x\n  Y[i] = exp(Z[i])", "WG0202", "def exp(x) = x", "built-in function"),
        ("i[i] = Z[i]\n  Y[i] = Z[i]", "WG0202", "i", "an index"),
        ("W[i] = Z[i] where i > 1\n  Y[i] = Z[i] where i > 2 else W[i]", "WG0227", "W[i]", "restricts"),
        ("Y[i] = Z[i] where W[i] > 0.0\n  W[i] = Z[i]", "WG0213", "W", "before"),
    ],
)
def test_problem(body, code, span, said):
    p = only(body)
    text = "\n".join([p.title(), p.label(), *p.notes(), p.help(), *(t for _, t in p.others())])
    assert (p.code, p.span.text if p.span else None) == (code, span)
    assert said in text


@pytest.mark.parametrize(
    "options, said",
    [
        ({"options": {"causl": True}}, "did you mean `causal`?"),
        ({"options": {"causal": 1}}, "true or false"),
        ({"options": {"w": 0.5}}, "an integer"),
        ({"options": {"w": True}}, "an integer"),
        ({"options": {"size": 96}}, "one of 64, 128"),
        ({"types": {"T": "f8"}}, "`f16` or `bf16`"),
        ({"types": {"S": "f16"}}, "unknown type"),
        ({"dims": {"K": 3}}, "unknown dim"),
        ({"dims": {"M": -1}}, "an integer >= 0"),
        ({"dims": {"M": 2.5}}, "an integer >= 0"),
        ({"dims": {"H": 7, "G": 2}}, "no whole solution"),
        ({"dims": {"H": 7}}, "doesn't determine"),
        ({"dims": {"H": 7, "G": 2, "R": 3}}, "is G * R = 6, but fixed at 7"),
    ],
)
def test_what_the_caller_passes_is_checked(options, said):
    body = (
        "option causal = false\n option w = 3\n option size in {64, 128}\n dims G, R, H = G * R\n type T in {f16, bf16}\n"
        " in W: T[H]\n Y[i] = Z[i]"
    )
    p = only(body, **options)
    assert said in "\n".join([p.title(), p.label(), *p.notes(), p.help()])


def test_one_run_reports_several_problems_in_source_order():
    body = "Y[i] = Zz[i]\n  U[i] = exp(Z[i], 1)\n  W[i,j] = X[i]\n  V[i] = U[i] + W[i,i]"
    assert [p.code for p in problems_of(wrapped(body))] == ["WG0201", "WG0212", "WG0203"]


def test_what_depends_on_a_refused_statement_is_not_reported_again():
    assert [p.code for p in problems_of(wrapped("W[i] = Q[i]\n  U[i] = W[i]\n  Y[i] = U[i]"))] == ["WG0201"]


def test_ranges_of_a_whole_program_are_reported_together():
    body = "W[i] = Z[i + 1]\n  Y[i] = W[i] + Z[i - 1] * X[i, 5]"
    assert [p.span.text for p in problems_of(wrapped(body)) if p.span] == ["i + 1", "i - 1", "5"]


def test_conflicting_extents_name_both_places():
    (p,) = problems_of(wrapped("Y[i] = sum[j] X[i,j] * Z[j]"))
    assert p.code == "WG0208" and [t for _, t in p.others()] == ["extent `N` here"] and "`M`" in p.label()
    assert problems_of(wrapped("Y[i] = sum[j] X[i,j] * Z[j]"), dims={"M": 4, "N": 4}) == ()


def test_arguments_of_a_def_are_checked_where_it_is_used():
    p = only("def f(x) = x + y\n  Y[i] = f(Z[i])")
    assert (p.code, p.span.text if p.span else None) == ("WG0201", "y")
