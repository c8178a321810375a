"""User names as C++ identifiers.

In: any name of a `.wg` file.  Out: an ASCII identifier, the name itself where C++ and CUDA allow it. `emit/scope.py` keeps
those of one kernel apart.
"""

from __future__ import annotations

import re

_LONGEST = 100

_CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl concept
const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double
dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept
not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof
static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union
unsigned using virtual void volatile wchar_t while xor xor_eq import module final override main std
"""
_LIBRARY = """
NULL EOF NAN INFINITY HUGE_VAL HUGE_VALF CHAR_BIT CHAR_MIN CHAR_MAX SHRT_MIN SHRT_MAX INT_MIN INT_MAX UINT_MAX LONG_MIN
LONG_MAX FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON M_PI M_E M_LN2 M_LOG2E RAND_MAX assert errno offsetof
stdin stdout stderr linux unix i386 size_t ptrdiff_t intptr_t uintptr_t int8_t int16_t int32_t int64_t uint8_t uint16_t
uint32_t uint64_t max_align_t nullptr_t va_list printf vprintf malloc free memcpy memset memmove abort exit trap clock
clock64 wchar_t half half2 nv_half nv_half2 nv_bfloat16 nv_bfloat162 cuda nvcuda cooperative_groups ptx CUtensorMap
"""
_CUDA = """
threadIdx blockIdx blockDim gridDim warpSize dim3 surface texture texture1D cudaStream_t cudaError_t clusterIdx
"""
_MATHS = """
abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc erfcinv erfcx erfinv exp exp10 exp2
expm1 fabs fdim fdivide floor fma fmax fmin fmod frexp hypot ilogb isfinite isinf isnan j0 j1 jn labs ldexp lgamma llabs
llmax llmin llrint llround log log10 log1p log2 logb lrint lround max min modf nan nearbyint nextafter norm norm3d norm4d
normcdf normcdfinv pow powi rcbrt remainder remquo rhypot rint rnorm rnorm3d rnorm4d round rsqrt saturate scalbln scalbn
signbit sin sincos sincospi sinh sinpi sqrt tan tanh tgamma trunc ullmax ullmin umax umin y0 y1 yn swap move forward select
"""
_SCALARS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "longlong", "ulonglong", "float", "double")
_VECTORS = {f"{scalar}{count}" for scalar in _SCALARS for count in ("", 1, 2, 3, 4)} | {
    f"make_{scalar}{count}" for scalar in (*_SCALARS, "half") for count in (1, 2, 3, 4)
}
RESERVED = (
    frozenset((*_CPP.split(), *_LIBRARY.split(), *_CUDA.split(), *_MATHS.split()))
    | {f"{name}f" for name in _MATHS.split()}
    | _VECTORS
)


def identifier(name: str) -> str:
    """The name itself if C++ and CUDA allow it, else one near it that they do. Two names may get the same."""
    out = re.sub(r"[^A-Za-z0-9_]", lambda m: "_" if m[0].isascii() else f"_x{ord(m[0]):x}_", name)
    out = re.sub(r"__+", "_", out).lstrip("_")[:_LONGEST] or "name"
    if out[0].isdigit():
        return f"n_{out}"
    return f"{out}_" if out in RESERVED else out
