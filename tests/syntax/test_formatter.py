"""The canonical layout. That it keeps the tree, the words and the comments is tested for random texts in test_roundtrip."""

from __future__ import annotations

import pytest

from tests.syntax.texts import SHIPPED
from wgdsl.diagnostics.model import WgError
from wgdsl.foundation.source import Source
from wgdsl.syntax.parser import read
from wgdsl.syntax.printer import fmt

UNTIDY = """\r


# top   \r
wg   1 # version
program p{ # open
# first

  dims N, # after a comma
     # in the middle

   M


  in X:f32[N,M]  out Y : f32 [ N , M ] out Z:T when x
  type T in { f16,bf16 }

  option act in{none , relu}   # c1
  require a>0 and not(b) # c2
  let h=-g*R+ - r
\tY[ i , j ]=X[i,j]*-2
  Long[i+1,j]=(sum[j,k](X[i,j]-1))**2 when a==b # c3
  Z[i]=max( X[i,0] ,3)
    + 1 where i<M else -inf


  # last

}


schedule s   for p on sm_90a
{
 load{ fill Qs.0 }
}
"""

TIDY = """# top
wg 1         # version
program p {  # open
  # first

  dims   N,  # after a comma
      # in the middle
      M

  in     X: f32[N, M]
  out    Y: f32[N, M]
  out    Z: T when x
  type   T in {f16, bf16}

  option act in {none, relu}                                 # c1
  require a > 0 and not (b)                                  # c2
  let h = -g * R + -r
  Y[i,j]         = X[i,j] * -2
  Long[i + 1, j] = (sum[j,k] (X[i,j] - 1)) ** 2 when a == b  # c3
  Z[i] = max(X[i,0], 3)
      + 1 where i < M else -inf

  # last
}

schedule s for p on sm_90a {
  load { fill Qs.0 }
}
"""

SCHEDULE = """schedule s for p on sm_90a {
  # placement
  tile   i (128), j 64 * 2
  stream j descending                               # last first
  grid   persistent over (b, i)
  role math : 2 warpgroups, registers 240, split i  # two
  smem As = A[i, k] by tma ring 3
  load { fill Qs.0  for j { fill Ks[j+1]  once { fill Qs.rest }  fill Vs[j] } }

  math {
    await Qs
    for j {
      in turn { issue O += wgmma(P[j], Vs[j-1]) }  # comment
      rescale O when grown by 8
    }
    finish O, L via Os
    for k { }
    once {
      # nothing yet
    }
  }
}
"""


def formatted(text: str) -> str:
    return fmt(Source("t.wg", text))


def test_an_untidy_text():
    assert formatted(UNTIDY) == TIDY


@pytest.mark.parametrize("text", [TIDY, SCHEDULE], ids=["program", "schedule"])
def test_idempotent(text):
    once = formatted(text)
    assert formatted(once) == once


def test_a_tidy_schedule_stays():
    assert formatted(SCHEDULE) == SCHEDULE


def test_a_block_on_one_line_stays_there_if_it_fits():
    long = "for j { " + "  ".join(f"await {'x' * 20}{n}" for n in range(4)) + "  once { pack P } }"
    text = f"schedule s for p on t {{\n  m {{ {long} }}\n}}\n"
    lines = formatted(text).splitlines()
    assert lines[1:3] == ["  m {", "    for j {"] and "      once { pack P }" in lines and len(lines) == 11
    short = "schedule s for p on t {\n  m { for j { await A  once { pack P } } }\n}\n"
    assert formatted(short) == short


def test_comments_of_a_paragraph_stand_in_one_column():
    text = "program p {\n  dims N # a\n  dims Longer # b\n  dims M\n\n  dims K # c\n}\n"
    columns = [line.find("#") for line in formatted(text).splitlines() if "#" in line]
    assert columns == [17, 17, 12]


def test_empty_blocks():
    assert formatted("program p {\n\n}\nschedule s for p on t { m{\n} }") == (
        "program p { }\nschedule s for p on t {\n  m { }\n}\n"
    )


def test_what_does_not_parse_is_not_formatted():
    with pytest.raises(WgError):
        formatted("program p {")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_files_are_in_canonical_layout(path):
    """`wgdsl fmt` mends them."""
    assert fmt(read(path)) == path.read_text(encoding="utf-8")
