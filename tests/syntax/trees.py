"""Random ASTs, as hypothesis strategies: any tree that the grammar can hold."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from wgdsl.syntax import ast
from wgdsl.syntax.lexer import REDUCTIONS, RESERVED
from wgdsl.syntax.tables import tables

WORDS = sorted(t for t in tables().terminals if t.isidentifier() and t not in RESERVED)  # keywords may name things
names = st.sampled_from(["a", "i", "j", "Ks", "x_1", "_u", "letter", "E1", *WORDS])
parts = st.builds("{}.{}".format, names, st.sampled_from(["0", "max", "rest", "0x", "exp.sum"]))


def tuples(of, least: int = 1, most: int = 3):
    return st.lists(of, min_size=least, max_size=most).map(tuple)


def node(kind, /, **fields):
    return st.builds(kind, **fields)


refs = node(ast.Name, id=names | parts)
numbers = node(
    ast.Number,
    value=st.integers(0, 2**63 - 1)
    | st.integers(0, 99)
    | st.floats(0, allow_nan=False, allow_infinity=False)
    | st.sampled_from([math.inf, math.nan]),
)


def _compare(pieces):
    first, rest = pieces
    return ast.Compare(ops=tuple(op for op, _ in rest), operands=(first, *(o for _, o in rest)))


def _larger(inner):
    comparators = st.tuples(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner)
    return (
        node(ast.Index, base=refs, indices=tuples(inner))
        | node(ast.Call, function=names | st.sampled_from(["max", "min", "exp"]), arguments=tuples(inner))
        | node(ast.Unary, op=st.sampled_from(["-", "not"]), operand=inner)
        | node(ast.Binary, op=st.sampled_from(["+", "-", "*", "/", "%", "**", "and", "or"]), left=inner, right=inner)
        | node(ast.Reduce, op=st.sampled_from(sorted(REDUCTIONS)), axes=tuples(names), operand=inner)
        | st.tuples(inner, st.lists(comparators, min_size=1, max_size=3)).map(_compare)
    )


exprs = st.recursive(numbers | refs | node(ast.Bool, value=st.booleans()), _larger, max_leaves=12)
maybe = st.none() | exprs


def _statement(fields):
    target, value, start, where, otherwise, when = fields
    otherwise = otherwise if where else None
    return ast.Statement(target=target, value=value, start=start, where=where, otherwise=otherwise, when=when)


targets = node(ast.Index, base=node(ast.Name, id=names), indices=tuples(exprs))
properties = st.sampled_from(["distinct", "increasing", "positive"])
options = node(ast.OptionDecl, name=names, default=exprs) | node(ast.OptionDecl, name=names, choices=tuples(exprs))
program_items = (
    options
    | node(ast.DimsDecl, entries=tuples(st.tuples(names, maybe)))
    | node(ast.TypeDecl, name=names, choices=tuples(names))
    | node(
        ast.ParamDecl,
        direction=st.just("in"),
        name=names,
        dtype=names,
        shape=st.none() | tuples(exprs),
        default=maybe,
        when=maybe,
    )
    | node(ast.ParamDecl, direction=st.just("out"), name=names, dtype=names, shape=st.none() | tuples(exprs), when=maybe)
    | node(ast.RequireDecl, condition=exprs)
    | node(ast.AssumeDecl, words=st.tuples(properties) | st.tuples(st.sampled_from(["page", "cu_q", "let"]), properties))
    | node(ast.LetDecl, name=names, value=exprs)
    | node(ast.DefDecl, name=names, parameters=tuples(names), body=exprs)
    | node(ast.IndexDecl, entries=tuples(st.tuples(names, exprs)))
    | st.tuples(targets, exprs, maybe, maybe, maybe, maybe).map(_statement)
)
programs = node(ast.Program, name=names, items=tuples(program_items, 0, 5))

tiles = refs | node(ast.Index, base=refs, indices=tuples(exprs, most=1))
simple_steps = (
    node(ast.FillStep, targets=tuples(tiles))
    | node(ast.AwaitStep, target=tiles)
    | node(ast.IssueStep, target=tiles, op=st.sampled_from(["=", "+="]), engine=names, left=tiles, right=tiles)
    | node(ast.ComputeStep, target=tiles)
    | node(ast.PackStep, target=tiles)
    | node(ast.RescaleStep, target=tiles, grown_by=maybe)
    | node(ast.FinishStep, targets=tuples(tiles), via=tuples(names, 0))
    | node(ast.ProbeStep, target=tiles)
)
steps = st.recursive(
    simple_steps,
    lambda inner: (
        node(ast.ForStep, axis=names, body=tuples(inner, 0))
        | node(ast.OnceStep, body=tuples(inner, 0))
        | node(ast.TurnStep, body=tuples(inner, 0))
    ),
    max_leaves=6,
)
grids = node(
    ast.GridDecl,
    axes=tuples(names),
    persistent=st.sampled_from([None, "static", "dynamic"]),
    joined=st.booleans(),
    longest_first=st.booleans(),
    with_home=st.none() | names,
) | node(ast.GridDecl, axes=tuples(names), section=tuples(names), section_bytes=st.sampled_from([1, 1000, 2**10, 3 * 2**20]))
tunings = node(
    ast.Tuning,
    what=st.sampled_from(["tile", "ring", "registers", "option", "warpgroups"]),
    name=names,
    values=tuples(exprs),
)
lines = (
    options
    | node(ast.TileDecl, entries=tuples(st.tuples(names, exprs)))
    | node(ast.FuseDecl, name=names, axes=tuples(names))
    | node(ast.StreamDecl, axis=names, descending=st.booleans())
    | node(ast.StreamDecl, axis=names, descending=st.booleans(), split_index=names, split_count=exprs)
    | grids
    | node(
        ast.RoleDecl,
        name=names,
        count=exprs,
        unit=st.sampled_from(["warp", "warpgroup"]),
        registers=maybe,
        split=st.none() | names,
    )
    | node(
        ast.HomeDecl,
        kind=st.sampled_from(["smem", "regs"]),
        name=names,
        tensor=names | parts,
        indices=tuples(names, 0),
        engine=st.none() | names,
        ring=maybe,
        over=st.none() | names,
        cast=st.none() | names,
        times=maybe,
        permute=st.none() | names,
    )
    | node(ast.RoleBody, role=names, steps=tuples(steps, 0))
    | node(ast.CombineDecl, targets=tuples(names | parts), how=st.sampled_from(["merge", "atomic_add"]))
    | node(ast.SkipDecl)
    | node(ast.ApproximateDecl, functions=tuples(names))
    | node(ast.AccumulateDecl, tensor=names, every=numbers)
    | node(ast.TuneDecl, entries=tuples(tunings))
)
kernels = node(ast.KernelDecl, name=names, computes=tuples(names | parts), items=tuples(lines, 0, 3))
schedule_items = tuples(lines | kernels, 0, 5)
optional = names | st.just("")
schedules = node(ast.Schedule, name=names, program=names, target=names, items=schedule_items) | node(
    ast.Schedule,
    name=names,
    program=optional,
    target=optional,
    items=schedule_items,
    extends=names,
    renames=tuples(node(ast.Renaming, old=names, new=names), 0),
)
files = st.builds(
    lambda version, imports, programs, schedules: ast.File(
        version=version, imports=imports, programs=programs or (ast.Program(name="p", items=()),), schedules=schedules
    ),
    st.none() | st.just(1),
    tuples(node(ast.Import, path=st.sampled_from(["a.wg", "../b c.wg"])), 0, 2),
    tuples(programs, 0, 2),
    tuples(schedules, 0, 2),
)
