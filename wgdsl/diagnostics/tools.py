"""WG10xx: what the commands beside compiling are asked, and can't do: goldens, differences, edited texts, probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .hints import nearest
from .model import Problem


def _near(name: str, known: tuple[str, ...]) -> str:
    meant = nearest(name, known)
    if meant:
        return f"did you mean `{meant}`?"
    return "there are: " + ", ".join(f"`{k}`" for k in known) if known else ""


@dataclass(frozen=True, kw_only=True)
class NoGoldens(Problem):
    code: ClassVar[str] = "WG1001"
    doc: ClassVar[str] = """Goldens lie in the folder `golden` beside their `.wg` file: `golden.json` says how each was made.

fails:
  wgdsl golden check linear.wg
works:
  wgdsl golden update linear.wg
  wgdsl golden check linear.wg
"""
    path: str
    folder: str

    def title(self) -> str:
        return f"there are no goldens of {self.path} in {self.folder}"

    def help(self) -> str:
        if not self.path.endswith(".wg"):
            return "name a `.wg` file, or a folder with a `golden.json`"
        return f"`wgdsl golden update {self.path}` makes one; `--set` and `--schedule` choose which"


@dataclass(frozen=True, kw_only=True)
class BadManifest(Problem):
    code: ClassVar[str] = "WG1002"
    doc: ClassVar[
        str
    ] = """`golden.json` holds an object `goldens`: by the name of each text the file and the schedule that it was
made of, what was fixed, and the dims with which it is proven.

fails:
  {"goldens": {"linear-simple": {}}}
works:
  {"goldens": {"linear-simple": {"file": "../linear.wg", "schedule": "simple"}}}
"""
    path: str
    why: str

    def title(self) -> str:
        return f"{self.path} is no list of goldens: {self.why}"

    def help(self) -> str:
        return "`wgdsl golden update` writes it"


@dataclass(frozen=True, kw_only=True)
class StaleGolden(Problem):
    code: ClassVar[str] = "WG1003"
    doc: ClassVar[str] = """Only a text that is emitted today can be proven: update a golden that differs before it is run.

fails:
  wgdsl golden prove linear.wg
works:
  wgdsl golden update linear.wg
  wgdsl golden prove linear.wg
"""
    name: str
    state: str

    def title(self) -> str:
        return f"golden `{self.name}` is {self.state}: a run of it would prove nothing"

    def help(self) -> str:
        return "look at `wgdsl golden check`, then `wgdsl golden update`"


@dataclass(frozen=True, kw_only=True)
class NoCommonProgram(Problem):
    """`programs`: those that both schedules are for."""

    code: ClassVar[str] = "WG1004"
    doc: ClassVar[str] = """`wgdsl diff` compares two schedules of one program.

fails:
  wgdsl diff fa3 pipelined
works:
  wgdsl diff fa3 simple --set D=128 E=128
"""
    first: str
    second: str
    programs: tuple[str, ...] = ()
    wanted: str = ""

    def title(self) -> str:
        if self.programs:
            both = (
                f"`{self.first}` and `{self.second}` are schedules"
                if self.first != self.second
                else f"`{self.first}` names schedules"
            )
            return f"{both} of several programs: {', '.join(self.programs)}"
        of = f" `{self.wanted}`" if self.wanted else ""
        return f"no program{of} was found that both `{self.first}` and `{self.second}` are schedules of"

    def help(self) -> str:
        if self.programs:
            return "`--program NAME` chooses"
        return "`wgdsl diff FILE A B` names the program's file; A and B are names of schedules, or `.wg` files"


@dataclass(frozen=True, kw_only=True)
class EditedText(Problem):
    """`what` stands in the edited text as `got`."""

    code: ClassVar[str] = "WG1005"
    doc: ClassVar[str] = """`wgdsl run --cuda FILE` and `kernel.with_cuda(text)` launch an edited text as the
emitted one: its entry has the same name, parameters and threads, and its header comment, if it has one,
names the same program, schedule and target.

fails:
  wgdsl compile linear.wg --set T=bf16 --emit cuda -o mine.cu
  sed -i 's/int M, int N, int K/int M, int N/' mine.cu
  wgdsl run linear.wg --set T=bf16 --dims M=64,N=64,K=64 --cuda mine.cu
works:
  wgdsl compile linear.wg --set T=bf16 --emit cuda -o mine.cu
  wgdsl run linear.wg --set T=bf16 --dims M=64,N=64,K=64 --cuda mine.cu
"""
    path: str
    what: str
    expected: str
    got: str

    def title(self) -> str:
        return f"{self.path} can't be launched in place of the emitted text: {self.what} must stay"

    def notes(self) -> tuple[str, ...]:
        return (f"emitted: {self.expected}", f"{self.path}: {self.got}")

    def help(self) -> str:
        return "`wgdsl compile ... --emit cuda` with the same schedule and `--set` prints the text to start from"


@dataclass(frozen=True, kw_only=True)
class RegistersTaken(Problem):
    code: ClassVar[str] = "WG1006"
    doc: ClassVar[str] = """A probe shows what is in registers where it stands. `compute P[j]` works in the registers
of the scores: after it they hold `P`, so `S` is probed before.

fails:
  await S[j]
  compute P[j]
  probe S[j]
works:
  await S[j]
  probe S[j]
  compute P[j]
"""
    name: str
    by: str

    def title(self) -> str:
        return f"`{self.name}` is gone where this probe stands: its registers hold `{self.by}` by now"

    def help(self) -> str:
        return f"put the probe before the step that computes `{self.by}`, or probe `{self.by}`"


@dataclass(frozen=True, kw_only=True)
class NothingToProbe(Problem):
    """`known`: what the schedule's roles compute or await inside their loops."""

    code: ClassVar[str] = "WG1007"
    doc: ClassVar[str] = """`wgdsl run --probe 'P[j]'` puts `probe P[j]` behind the step that computes or awaits P.

fails:
  wgdsl run attention.wg --probe 'Q[j]'
works:
  wgdsl run attention.wg --probe 'P[j]'
"""
    name: str
    known: tuple[str, ...]

    def title(self) -> str:
        return f"no step computes `{self.name}`, or awaits it as a product"

    def help(self) -> str:
        return _near(self.name, self.known)


@dataclass(frozen=True, kw_only=True)
class NeedsProbeCall(Problem):
    code: ClassVar[str] = "WG1008"
    doc: ClassVar[str] = """A kernel whose schedule has a `probe` writes to arrays beside its results, which only
`kernel.probe(...)` and `wgdsl run --probe-out FILE.npz` provide.

fails:
  kernel(Q=q, K=k, V=v)
works:
  tiles = kernel.probe(Q=q, K=k, V=v)
"""
    names: tuple[str, ...]

    def title(self) -> str:
        return f"this kernel probes {', '.join(f'`{n}`' for n in self.names)}, and the call has no room for that"

    def help(self) -> str:
        return "call `kernel.probe(...)`, or take the `probe` steps out of the schedule"


@dataclass(frozen=True, kw_only=True)
class NoProbe(Problem):
    code: ClassVar[str] = "WG1009"
    doc: ClassVar[str] = """`kernel.probe(...)` gives what the `probe` steps of a schedule have written.

fails:
  for j { compute P[j] }
works:
  for j { compute P[j]  probe P[j] }
"""
    schedule: str

    def title(self) -> str:
        return f"schedule `{self.schedule}` has no `probe` step"

    def help(self) -> str:
        return "add one behind the step that makes the value: `probe P[j]`; or `wgdsl run --probe 'P[j]'`"


@dataclass(frozen=True, kw_only=True)
class OfAnotherProgram(Problem):
    """`programs`: those that it is a schedule of."""

    code: ClassVar[str] = "WG1010"
    doc: ClassVar[str] = """`wgdsl compare` puts schedules of one program beside each other, that of its FILE.

fails:
  wgdsl compare attention.wg --schedules fa3,pipelined
works:
  wgdsl compare attention.wg --schedules fa3,three --set D=128 E=128
"""
    schedule: str
    program: str
    programs: tuple[str, ...]

    def title(self) -> str:
        return f"`{self.schedule}` is a schedule of {_names(self.programs)}, not of `{self.program}`"

    def help(self) -> str:
        return "schedules of one program can be compared; `--program NAME` chooses if FILE holds several"


@dataclass(frozen=True, kw_only=True)
class NothingToCompare(Problem):
    code: ClassVar[str] = "WG1011"
    doc: ClassVar[str] = """`--schedules` takes names of schedules, or `.wg` files, with commas between them: a column each.

fails:
  wgdsl compare attention.wg --schedules ,
works:
  wgdsl compare attention.wg --schedules fa3,three --set D=128 E=128
"""
    text: str
    known: tuple[str, ...]

    def title(self) -> str:
        return f"`--schedules {self.text}` names no schedule"

    def help(self) -> str:
        return "there are: " + _names(self.known) if self.known else ""


@dataclass(frozen=True, kw_only=True)
class NoCycleModel(Problem):
    code: ClassVar[str] = "WG1012"
    doc: ClassVar[str] = """A timeline is predicted for a machine: how long each step takes on it (`docs/performance.md`).

fails:
  wgdsl timeline linear.wg --schedule warps --target sm_86
works:
  wgdsl timeline linear.wg --schedule warps --target sm_80
"""
    target: str
    known: tuple[str, ...]

    def title(self) -> str:
        return f"there is no cycle model for {self.target}"

    def help(self) -> str:
        return f"there is one for {_names(self.known)}; a schedule for one of them can be compiled for it"


@dataclass(frozen=True, kw_only=True)
class NoTimeline(Problem):
    code: ClassVar[str] = "WG1013"
    doc: ClassVar[str] = """A picture shows timelines that `wgdsl` wrote, by `-o`.

fails:
  wgdsl timeline linear.wg --dims M=512,N=512,K=512 --beside linear.wg --svg linear.svg
works:
  wgdsl timeline linear.wg --dims M=512,N=512,K=512 -o linear.json --svg linear.svg
"""
    path: str
    why: str

    def title(self) -> str:
        return f"{self.path} holds no timeline: {self.why}"


@dataclass(frozen=True, kw_only=True)
class NotByName(Problem):
    code: ClassVar[str] = "WG1014"
    doc: ClassVar[str] = """The tables of `wgdsl tune` hold names, by which the schedules are found again: in the program's own
file and what it imports, beside it, or among the shipped ones.

fails:
  wgdsl tune linear.wg --schedule other/mine.wg --dims M=512,N=512,K=512
works:
  wgdsl tune linear.wg --schedule simple --dims M=512,N=512,K=512
"""
    path: str

    def title(self) -> str:
        return f"`--schedule {self.path}` is a file, and a tuner takes names"

    def help(self) -> str:
        return "put the file beside the program's, or import it there, and name the schedule"


@dataclass(frozen=True, kw_only=True)
class BadLimit(Problem):
    code: ClassVar[str] = "WG1015"
    doc: ClassVar[
        str
    ] = """`wgdsl tune` times at least one candidate of each call, in more than no time, by at least one process; `wgdsl bench`
takes at least one round of some time.

fails:
  wgdsl tune linear.wg --dims M=512,N=512,K=512 --most 0
works:
  wgdsl tune linear.wg --dims M=512,N=512,K=512 --most 10
"""
    option: str
    value: float

    def title(self) -> str:
        return f"`{self.option} {self.value:g}` leaves nothing to do"

    def help(self) -> str:
        return "give a positive number"


@dataclass(frozen=True, kw_only=True)
class UnknownWord(Problem):
    """what: suite, peer, schedule, case or what is filtered by. known: what can be said instead."""

    code: ClassVar[str] = "WG1016"
    doc: ClassVar[str] = """`wgdsl bench` knows its suites, the peers of each, and what their cases can be
filtered by. A schedule that is named has to be one for the program of some suite, on its target.

fails:
  wgdsl bench attention --head-dims 96
works:
  wgdsl bench attention --head-dims 64,128
"""
    what: str
    text: str
    known: tuple[str, ...]

    def title(self) -> str:
        return f"there is no {self.what} `{self.text}` to bench"

    def help(self) -> str:
        return _near(self.text, self.known)


@dataclass(frozen=True, kw_only=True)
class NoResults(Problem):
    code: ClassVar[str] = "WG1017"
    doc: ClassVar[str] = """`wgdsl bench show` reads what `wgdsl bench --jsonl` has written: JSON lines.

fails:
  wgdsl bench show linear.wg
works:
  wgdsl bench show out/bench.jsonl
"""
    path: str
    why: str

    def title(self) -> str:
        return f"{self.path} holds no results of a benchmark: {self.why}"

    def help(self) -> str:
        return "`wgdsl bench --jsonl FILE` writes one"


def _names(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{w}`" for w in words)
