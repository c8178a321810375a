"""products: an `issue` step, matched against the program.

In: the step, the role that takes it, the plan and the placement.  Out: a `Product`: the program's node and where its operands
and its result lie, all rules of the instruction kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from ..diagnostics.model import WgError
from ..diagnostics.schedule import (
    NoHome,
    NotAlongK,
    NotYetSupported,
    RowsPerWarpgroup,
    TileShape,
    UnknownName,
    WrongProduct,
    WrongTarget,
)
from ..foundation.source import Span
from ..program.expr import loads
from ..program.graph import Reduce
from ..roles.model import Buffer
from ..roles.shares import share_of
from ..syntax import ast
from ..targets.choice import TARGETS
from ..targets.engines import ENGINES, Engine
from ..targets.wgmma import KEYS
from .mask import is_shifted
from .named import display, resolve
from .place import Placement, name_of
from .plan import Plan, RolePlan


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product's node and where its operands and result lie."""

    engine: str
    node: Reduce
    name: str
    value: str  # registers of the result
    rows: str
    cols: str
    a: str | None  # home of the left operand, None if in registers
    a_value: str | None
    b: str
    a_major: str
    b_major: str
    k: int
    promoted: bool = False  # the engine multiplies each tile by itself, and threads add the products up

    @property
    def result(self) -> str:
        """The registers that the engine writes."""
        return f"{self.value}.part" if self.promoted else self.value


def match_product(plan: Plan, placement: Placement, role: RolePlan, s: ast.IssueStep) -> Product:
    """The product of the program that an issue step of a role computes. Raises WgError if it can't, or can't so."""
    streamed = plan.streamed
    target = name_of(s.target)
    name = resolve(streamed, target)
    node = streamed.tile_node(name)
    state = streamed.state(name)
    found = node if isinstance(node, Reduce) else state.node if state else None
    if found is None or not found.is_contract:
        known = [n.name for n in streamed.tile if isinstance(n, Reduce)]
        known += [t.name for t in streamed.states if t.is_contract]
        raise WgError(UnknownName(span=s.target.span, what="product of the program", name=target, known=tuple(known)))
    chip = TARGETS[plan.schedule.target]
    if s.engine not in chip.products:
        raise WgError(WrongTarget(span=s.span, engine=s.engine, target=chip.name, has=chip.products))
    accumulates = state is not None
    if accumulates != (s.op == "+="):
        why, op = ("it is summed over the stream", "+=") if accumulates else ("each tile has its own", "=")
        raise WgError(WrongProduct(span=s.span, target=target, why=why, cure=f"write `{op}`", statement=found.span))
    return _Match(plan=plan, placement=placement, role=role, step=s, node=found).product()


@dataclass(frozen=True, kw_only=True)
class _Match:
    """One issue step and the node that it names."""

    plan: Plan
    placement: Placement
    role: RolePlan
    step: ast.IssueStep
    node: Reduce

    @property
    def engine(self) -> Engine:
        return ENGINES[self.step.engine]

    def product(self) -> Product:
        node, left, right = self.node, self.left(), name_of(self.step.right)
        read = loads(node.body)
        tensors = [x.tensor for x in read]
        a_tensor = self.operand_tensor(left, self.step.left.span)
        b_tensor = self.operand_tensor(right, self.step.right.span)
        if right not in self.plan.homes:
            raise WgError(NoHome(span=self.step.right.span, name=right, homes=tuple(self.plan.homes)))
        if sorted((a_tensor, b_tensor)) != sorted(tensors):
            self.wrong(f"the operands hold {self.named([a_tensor, b_tensor])}", f"multiply homes of {self.named(tensors)}")
        held = {self.plan.homes[h].access for h in (left, right) if h in self.plan.homes}
        if not held <= {x.access for x in read}:
            why = f"the operands hold other elements of {self.named([a_tensor])}"
            self.wrong(why, f"multiply homes of {' and '.join(f'`{x}`' for x in read)}")
        axis = node.axes[0]
        if len(node.axes) != 1:
            raise WgError(NotYetSupported(span=self.step.span, what="a product over several axes"))
        both = [self.plan.homes[h].access for h in (left, right) if h in self.plan.homes]
        if len(both) > 1 and axis == self.plan.axis and any(is_shifted(a, axis) for a in both):
            what = f"a product along `{axis}`, which a tensor says the begin of, with both operands in shared memory"
            raise WgError(NotYetSupported(span=self.step.span, what=what))
        b = self.placement.placed[right].buffer
        cols = b.rows_index if b.cols_index == axis else b.cols_index
        rows = self.rows_of(left)
        if axis not in (b.rows_index, b.cols_index) or rows == cols:
            self.wrong(f"`{right}` holds no axis `{axis}`", f"`{right}` needs `{axis}` and one further axis")
        self.check_rows(rows, cols)
        k = self.plan.size(axis, b_tensor, self.step.span)
        self.shape(cols, self.plan.size(cols, b_tensor, self.step.span), axis, k, b)
        in_memory = left in self.plan.homes
        a = self.placement.placed[left].buffer if in_memory else None
        self.types(axis, cols, a, b)
        return Product(
            engine=self.engine.name,
            node=node,
            name=name_of(self.step.target),
            value=display(self.plan.streamed, node.name),
            rows=rows,
            cols=cols,
            a=left if in_memory else None,
            a_value=None if in_memory else left,
            b=right,
            a_major="MN" if a is not None and a.rows_index == axis else "K",
            b_major="MN" if b.rows_index == axis else "K",
            k=k,
            promoted=node.name in self.plan.promoted,
        )

    def left(self) -> str:
        """The left operand: a home, or a tile that is computed, which the home of its operand stands for."""
        name = name_of(self.step.left)
        form = next((f for f in self.plan.forms.values() if f.name == name), None)
        return name if form is None else display(self.plan.streamed, form.node)

    def check_rows(self, rows: str, cols: str) -> None:
        """A warpgroup multiplies rows of the left operand, as many as the engine takes; several of one role must own different
        ones."""
        split, left, right = self.role.split, self.left(), name_of(self.step.right)
        if split == cols:
            why = f"its rows run along `{rows}`, but `{self.role.name}` is split along `{split}`"
            self.wrong(why, f"rows come from the left operand: `{self.engine.name}({right}, {left})`")
        owner = self.plan.split_role
        if owner is not None and owner.split == rows and owner.name != self.role.name:
            raise WgError(NotYetSupported(span=self.step.span, what=f"a product over rows that `{owner.name}` is split along"))
        count = 1 if self.role.by_item else self.role.count  # of the warpgroups that share the rows of an item
        if not self.engine.shares_rows(self.plan.axis_of(rows).count, 1) or (count > 1 and split != rows):
            tile = self.plan.size(rows)
            problem = RowsPerWarpgroup(span=self.role.span, index=rows, tile=tile, warpgroups=count, split=split == rows)
            raise WgError(replace(problem, most=self.engine.blocks, unit=self.plan.target.unit))

    def operand_tensor(self, name: str, span: Span | None) -> str:
        if name in self.plan.homes:
            return self.plan.homes[name].tensor
        node = resolve(self.plan.streamed, name)
        if not node:
            known = (*self.plan.homes, *(display(self.plan.streamed, n) for n in self.plan.streamed.order))
            raise WgError(NoHome(span=span, name=name, homes=known))
        return node

    def wrong(self, why: str, cure: str) -> NoReturn:
        target = name_of(self.step.target)
        raise WgError(WrongProduct(span=self.step.span, target=target, why=why, cure=cure, statement=self.node.span))

    def named(self, tensors: list[str]) -> str:
        return " and ".join(f"`{display(self.plan.streamed, t)}`" for t in tensors)

    def rows_of(self, left: str) -> str:
        axis = self.node.axes[0]
        if left in self.plan.homes:
            a = self.placement.placed[left].buffer
            if axis not in (a.rows_index, a.cols_index):
                self.wrong(f"`{left}` holds no axis `{axis}`", f"`{left}` needs `{axis}` and one further axis")
            return a.rows_index if a.cols_index == axis else a.cols_index
        node = self.plan.streamed.tile_node(resolve(self.plan.streamed, left))
        assert node is not None
        wide = [i for i in node.indices if i != axis and self.plan.size(i, left, self.step.span) > 1]
        if len(wide) != 1:
            raise WgError(NotYetSupported(span=self.step.span, what=f"`{left}` as a register operand"))
        return wide[0]

    def types(self, axis: str, cols: str, a: Buffer | None, b: Buffer) -> None:
        """Both operands have one type, and lie as the engine takes that."""
        dtype, name, span = b.dtype.name, self.engine.name, self.step.span
        self.in_registers(a, b)
        if self.plan.v8 and cols == self.plan.axis and self.plan.size(cols) % KEYS:
            rule, shares = f"columns in the order v8 are a multiple of {KEYS}", (share_of(b),)
            what = "n of this product"
            raise WgError(TileShape(span=span, what=what, value=self.plan.size(cols), rule=rule, index=cols, shares=shares))
        if a is not None and a.dtype != b.dtype:
            cure = "give both operands one type"
            raise WgError(NotYetSupported(span=span, what=f"{name} of {a.dtype} by {dtype}", cure=cure))
        for operand in (x for x in (a, b) if x is not None and x.rows_index == axis and dtype in self.engine.k_major):
            free = operand.cols_index
            raise WgError(
                NotAlongK(
                    span=self.step.right.span if operand is b else self.step.left.span,
                    home=operand.name, tensor=operand.tensor, axis=axis, free=free, dtype=dtype, engine=name,
                )
            )  # fmt: skip

    def in_registers(self, a: Buffer | None, b: Buffer) -> None:
        """An operand in registers has the form that the schedule says, of which one of 8 bits has to have one."""
        form = self.plan.forms.get(resolve(self.plan.streamed, self.left())) if a is None else None
        dtype, shown, span = b.dtype.name, name_of(self.step.left), self.step.span
        if a is None and form is None and dtype in self.engine.k_major:
            cure = f"say its form: `regs {shown}r = {shown} as {dtype} permute v8`"
            raise WgError(NotYetSupported(span=span, what=f"`{shown}` of {dtype} as an operand in registers", cure=cure))
        if form is not None and form.dtype != b.dtype:
            what, cure = f"`{shown}` as {form.dtype} by {dtype}", f"`as {dtype}`, or drop the line of `{form.name}`"
            raise WgError(NotYetSupported(span=form.span, what=what, cure=cure))

    def shape(self, cols: str, n: int, axis: str, k: int, b: Buffer) -> None:
        dtype, shares = b.dtype.name, (share_of(b),)
        e = self.engine
        if dtype not in e.k_steps:
            known, target = ", ".join(e.k_steps), self.plan.target.name
            what, cure = f"{e.name} of {dtype} on {target}", f"types that it multiplies: {known}"
            raise WgError(NotYetSupported(span=self.step.span, what=what, cure=cure))
        if n % e.n_step or not 0 < n <= e.n_max:
            rule = f"{e.name} has n a multiple of {e.n_step} up to {e.n_max}"
            what = "n of this product"
            raise WgError(TileShape(span=self.step.span, what=what, value=n, rule=rule, index=cols, shares=shares))
        if k % e.k_steps[dtype]:
            rule = f"{e.name} of {dtype} takes k in steps of {e.k_steps[dtype]}"
            what = "k of this product"
            raise WgError(TileShape(span=self.step.span, what=what, value=k, rule=rule, index=axis, shares=shares))
