// row_softmax_two_pass_warps_statistics: program row_softmax, schedule two_pass_warps_statistics, t...
// 128 threads (math 1 x 128 threads), 32768 bytes of shared memory

namespace ptx {
__device__ __forceinline__ void cp_async(unsigned to, const void* from, int nbytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(nbytes) : "memory");
}
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}
__device__ __forceinline__ float infinity() {
  return __int_as_float(0x7f800000);
}
template <int pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory");
}
__device__ __forceinline__ void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void mma_m16n8k16_bf16(float* d, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
    unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
      "%2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void ldmatrix(unsigned (&r)[4], unsigned at) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(at)
      : "memory");
}
__device__ __forceinline__ float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ __forceinline__ float quad_max(float a) {
  a = max_nan(a, __shfl_xor_sync(~0u, a, 1));
  a = max_nan(a, __shfl_xor_sync(~0u, a, 2));
  return a;
}
__device__ __forceinline__ float exp2(float a) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return r;
}
__device__ __forceinline__ float quad_sum(float a) {
  a = a + __shfl_xor_sync(~0u, a, 1);
  a = a + __shfl_xor_sync(~0u, a, 2);
  return a;
}
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
}  // namespace ptx

extern "C" __global__ void __launch_bounds__(128, 2)
row_softmax_two_pass_warps_statistics(const unsigned short* __restrict__ A_ptr, long long A_stride0,
    long long A_stride1, const unsigned short* __restrict__ B_ptr, long long B_stride0, long long B_stride1,
    float* P_max_ptr, long long P_max_stride0, float* P_sum_ptr, long long P_sum_stride0, int M, int N,
    float scale, float scale_1) {
  extern __shared__ __align__(128) char shared_raw[];
  const unsigned smem = ptx::shared_address(shared_raw);
  const unsigned As = smem;  // 128 x 64 bf16, 128-byte swizzle
  const unsigned Bs = smem + 16384;  // 2 x 64 x 64 bf16, 128-byte swizzle

  const int thread = threadIdx.x & 127;  // of the warpgroup
  const int lane = threadIdx.x & 31;
  const int first_col = lane % 4 * 2;  // of its fragments
  const int row = thread / 32 * 32 + lane / 4;  // of its fragments: row, row + 8, row + 16 and row + 24
  int Bs_stage = 0;
  float S[64];
  float P_max[4];
  float P_max_new[4];
  float P_max_corr[4];
  float P_sum[4];
  float P_max_ref[4];
  float (&P_exp)[64] = S;
  const int item = blockIdx.x;
  const int i_lo = item * 128;
#line 6 "schedules/ampere/row_softmax_two_pass_warps.wg"
  // kernel statistics computes P.max, P.sum
  const int n_hi = (N + 63) >> 6;
  const int n_n = max(n_hi, 0);
#line 17 "schedules/ampere/row_softmax_two_pass_warps.wg"
  // fill As
  // As = A[i, k]
  {
    const unsigned tile = As;
    const int line = thread / 8, chunk = thread % 8;
    const int i_at = i_lo + line;
    const int k_at = chunk * 8;
    const unsigned to = tile + line * 128 + (chunk ^ (line & 7)) * 16;
    const char* from = (const char*)(A_ptr + i_at * A_stride0 + k_at * A_stride1);
    const long long down = 16LL * A_stride0 * 2;
    #pragma unroll
    for (int k = 0; k < 8; ++k)
      ptx::cp_async(to + k * 2048, from + k * down, i_at + 16 * k < M ? 16 : 0);
  }
  ptx::cp_async_commit();
#line 22 "schedules/ampere/row_softmax_two_pass_warps.wg"
  // compute P.sum[n]
  // nothing seen yet
  // P.max = -inf
  #pragma unroll
  for (int half = 0; half < 4; ++half)
    P_max[half] = -ptx::infinity();
  // P.sum = 0.0
  #pragma unroll
  for (int half = 0; half < 4; ++half)
    P_sum[half] = 0.0f;
  if (n_n > 0) {
#line 20 "schedules/ampere/row_softmax_two_pass_warps.wg"
    // fill Bs[n+1]
    // Bs = B[n, k]
    {
      const unsigned tile = Bs + Bs_stage * 8192;
      const int line = thread / 8, chunk = thread % 8;
      const int n_at = line;
      const int k_at = chunk * 8;
      const unsigned to = tile + line * 128 + (chunk ^ (line & 7)) * 16;
      const char* from = (const char*)(B_ptr + n_at * B_stride0 + k_at * B_stride1);
      const long long down = 16LL * B_stride0 * 2;
      #pragma unroll
      for (int k = 0; k < 4; ++k)
        ptx::cp_async(to + k * 2048, from + k * down, n_at + 16 * k < N ? 16 : 0);
    }
    ptx::cp_async_commit();
    Bs_stage = Bs_stage == 1 ? 0 : Bs_stage + 1;
    #pragma unroll 1
    for (int n_pos = 0; n_pos < n_n - 1; ++n_pos) {
#line 19 "schedules/ampere/row_softmax_two_pass_warps.wg"
      // await Bs[n]
      ptx::cp_async_wait<0>();
      // Bs has arrived for all
      ptx::bar_sync(0 + 1, 128);
#line 20 "schedules/ampere/row_softmax_two_pass_warps.wg"
      // fill Bs[n+1]
      // Bs = B[n, k]
      {
        const unsigned tile = Bs + Bs_stage * 8192;
        const int line = thread / 8, chunk = thread % 8;
        const int n_at = n_pos * 64 + 64 + line;
        const int k_at = chunk * 8;
        const unsigned to = tile + line * 128 + (chunk ^ (line & 7)) * 16;
        const char* from = (const char*)(B_ptr + n_at * B_stride0 + k_at * B_stride1);
        const long long down = 16LL * B_stride0 * 2;
        #pragma unroll
        for (int k = 0; k < 4; ++k)
          ptx::cp_async(to + k * 2048, from + k * down, n_at + 16 * k < N ? 16 : 0);
      }
      ptx::cp_async_commit();
      Bs_stage = Bs_stage == 1 ? 0 : Bs_stage + 1;
#line 21 "schedules/ampere/row_softmax_two_pass_warps.wg"
      // issue S[n] = mma(As, Bs[n])
      #pragma unroll
      for (int at = 0; at < 64; ++at)
        S[at] = 0.0f;
      {
        const unsigned start = Bs + Bs_stage * 8192 + (lane % 8 + lane / 16 * 8) * 128;
        const int chunk = lane / 8 % 2 ^ ((lane % 8 + lane / 16 * 8) & 7);
        const unsigned start2 = As + (thread / 32 * 32 + lane % 16) * 128;
        const int chunk2 = lane / 16 ^ ((lane % 16) & 7);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          unsigned a[2][4];
          ptx::ldmatrix(a[0], start2 + 0 * 2048 + (chunk2 ^ 2 * k) * 16);
          ptx::ldmatrix(a[1], start2 + 1 * 2048 + (chunk2 ^ 2 * k) * 16);
          #pragma unroll
          for (int pair = 0; pair < 4; ++pair) {
            unsigned b[4];
            ptx::ldmatrix(b, start + pair * 2048 + (chunk ^ 2 * k) * 16);
            ptx::mma_m16n8k16_bf16(&S[(2 * pair + 0) * 8 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b[0], b[1]);
            ptx::mma_m16n8k16_bf16(&S[(2 * pair + 0) * 8 + 4], a[1][0], a[1][1], a[1][2], a[1][3], b[0], b[1]);
            ptx::mma_m16n8k16_bf16(&S[(2 * pair + 1) * 8 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b[2], b[3]);
            ptx::mma_m16n8k16_bf16(&S[(2 * pair + 1) * 8 + 4], a[1][0], a[1][1], a[1][2], a[1][3], b[2], b[3]);
          }
        }
      }
#line 22 "schedules/ampere/row_softmax_two_pass_warps.wg"
      // compute P.sum[n]
      // P.max.new = max(P.max, S over n)
      {
        float acc[4];
        #pragma unroll
        for (int half = 0; half < 4; ++half)
          acc[half] = P_max[half];
        #pragma unroll
        for (int at = 0; at < 64; ++at) {
          const int half = at / 2 % 4;
          acc[half] = ptx::max_nan(acc[half], S[at]);
        }
        #pragma unroll
        for (int half = 0; half < 4; ++half)
          P_max_new[half] = ptx::quad_max(acc[half]);
      }
      // P.max.corr = exp2(((P.max - P.max.new) * scale.1))
      #pragma unroll
      for (int half = 0; half < 4; ++half)
        P_max_corr[half] = ptx::exp2((P_max[half] - P_max_new[half]) * scale_1);
      // P.exp = exp2(((S - P.max.new) * scale.1))
      {
        float offset[4];
        #pragma unroll
        for (int half = 0; half < 4; ++half)
          offset[half] = P_max_new[half] * scale_1;
        // the rounding of a large offset would swamp the difference: then subtract first
        if (__any_sync(~0u, !(fmaxf(fmaxf(fmaxf(fabsf(offset[0]), fabsf(offset[1])), fabsf(offset[2])),
            fabsf(offset[3])) <= 1024.0f))) {
          #pragma unroll
          for (int at = 0; at < 64; ++at) {
            const int half = at / 2 % 4;
            P_exp[at] -= P_max_new[half];
          }
          offset[0] = offset[1] = offset[2] = offset[3] = 0.0f;
        }
        #pragma unroll
        for (int at = 0; at < 64; ++at) {
          const int half = at / 2 % 4;
          P_exp[at] = ptx::exp2(fmaf(P_exp[at], scale_1, -offset[half]));
        }
      }
      // P.sum = sum((P.sum * P.max.corr), P.exp over n) of this lane
      {
        float acc[4];
        #pragma unroll
        for (int half = 0; half < 4; ++half)
          acc[half] = P_sum[half] * P_max_corr[half];
        #pragma unroll
        for (int at = 0; at < 64; ++at) {
          const int half = at / 2 % 4;
          acc[half] = acc[half] + P_exp[at];
        }
        #pragma unroll
        for (int half = 0; half < 4; ++half)
          P_sum[half] = acc[half];
      }
      // P.max = P.max.new
      #pragma unroll
      for (int half = 0; half < 4; ++half)
        P_max[half] = P_max_new[half];
    }
#line 19 "schedules/ampere/row_softmax_two_pass_warps.wg"
    // await Bs[n]
    ptx::cp_async_wait<0>();
    // Bs has arrived for all
    ptx::bar_sync(0 + 1, 128);
#line 21 "schedules/ampere/row_softmax_two_pass_warps.wg"
    // issue S[n] = mma(As, Bs[n])
    #pragma unroll
    for (int at = 0; at < 64; ++at)
      S[at] = 0.0f;
    {
      const int Bs_back1 = Bs_stage ^ 1;
      const unsigned start = Bs + Bs_back1 * 8192 + (lane % 8 + lane / 16 * 8) * 128;
      const int chunk = lane / 8 % 2 ^ ((lane % 8 + lane / 16 * 8) & 7);
      const unsigned start2 = As + (thread / 32 * 32 + lane % 16) * 128;
      const int chunk2 = lane / 16 ^ ((lane % 16) & 7);
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned a[2][4];
        ptx::ldmatrix(a[0], start2 + 0 * 2048 + (chunk2 ^ 2 * k) * 16);
        ptx::ldmatrix(a[1], start2 + 1 * 2048 + (chunk2 ^ 2 * k) * 16);
        #pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
          unsigned b[4];
          ptx::ldmatrix(b, start + pair * 2048 + (chunk ^ 2 * k) * 16);
          ptx::mma_m16n8k16_bf16(&S[(2 * pair + 0) * 8 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b[0], b[1]);
          ptx::mma_m16n8k16_bf16(&S[(2 * pair + 0) * 8 + 4], a[1][0], a[1][1], a[1][2], a[1][3], b[0], b[1]);
          ptx::mma_m16n8k16_bf16(&S[(2 * pair + 1) * 8 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b[2], b[3]);
          ptx::mma_m16n8k16_bf16(&S[(2 * pair + 1) * 8 + 4], a[1][0], a[1][1], a[1][2], a[1][3], b[2], b[3]);
        }
      }
    }
#line 22 "schedules/ampere/row_softmax_two_pass_warps.wg"
    // compute P.sum[n]
    // S = select(N - n - 1 >= 0, S, -inf)
    {
      const int n_first = n_n * 64 - 64 + first_col;
      const int limit = N - n_first - 1;
      #pragma unroll
      for (int at = 0; at < 64; ++at) {
        const int col = at / 8 * 8 + at % 2;
        S[at] = (col <= limit) ? S[at] : -ptx::infinity();
      }
    }
    // P.max.new = max(P.max, S over n)
    {
      float acc[4];
      #pragma unroll
      for (int half = 0; half < 4; ++half)
        acc[half] = P_max[half];
      #pragma unroll
      for (int at = 0; at < 64; ++at) {
        const int half = at / 2 % 4;
        acc[half] = ptx::max_nan(acc[half], S[at]);
      }
      #pragma unroll
      for (int half = 0; half < 4; ++half)
        P_max_new[half] = ptx::quad_max(acc[half]);
    }
    // P.max.ref = select(P.max.new == -inf, 0.0, P.max.new)
    #pragma unroll
    for (int half = 0; half < 4; ++half)
      P_max_ref[half] = (P_max_new[half] == -ptx::infinity()) ? 0.0f : P_max_new[half];
    // P.max.corr = exp2(((P.max - P.max.ref) * scale.1))
    #pragma unroll
    for (int half = 0; half < 4; ++half)
      P_max_corr[half] = ptx::exp2((P_max[half] - P_max_ref[half]) * scale_1);
    // P.exp = exp2(((S - P.max.ref) * scale.1))
    {
      float offset[4];
      #pragma unroll
      for (int half = 0; half < 4; ++half)
        offset[half] = P_max_ref[half] * scale_1;
      // the rounding of a large offset would swamp the difference: then subtract first
      if (__any_sync(~0u, !(fmaxf(fmaxf(fmaxf(fabsf(offset[0]), fabsf(offset[1])), fabsf(offset[2])),
          fabsf(offset[3])) <= 1024.0f))) {
        #pragma unroll
        for (int at = 0; at < 64; ++at) {
          const int half = at / 2 % 4;
          P_exp[at] -= P_max_ref[half];
        }
        offset[0] = offset[1] = offset[2] = offset[3] = 0.0f;
      }
      #pragma unroll
      for (int at = 0; at < 64; ++at) {
        const int half = at / 2 % 4;
        P_exp[at] = ptx::exp2(fmaf(P_exp[at], scale_1, -offset[half]));
      }
    }
    // P.sum = sum((P.sum * P.max.corr), P.exp over n) of this lane
    {
      float acc[4];
      #pragma unroll
      for (int half = 0; half < 4; ++half)
        acc[half] = P_sum[half] * P_max_corr[half];
      #pragma unroll
      for (int at = 0; at < 64; ++at) {
        const int half = at / 2 % 4;
        acc[half] = acc[half] + P_exp[at];
      }
      #pragma unroll
      for (int half = 0; half < 4; ++half)
        P_sum[half] = acc[half];
    }
    // P.max = P.max.new
    #pragma unroll
    for (int half = 0; half < 4; ++half)
      P_max[half] = P_max_new[half];
  }
  else {
#line 22 "schedules/ampere/row_softmax_two_pass_warps.wg"
    // compute P.sum[n]
    ptx::cp_async_wait<0>();
  }
#line 24 "schedules/ampere/row_softmax_two_pass_warps.wg"
  // finish P.max, P.sum
  // whole rows
  // P.sum = sum over the lanes of a row
  #pragma unroll
  for (int half = 0; half < 4; ++half)
    P_sum[half] = ptx::quad_sum(P_sum[half]);
  // finish P.max
  // P.max[i] = (P.max * scale)
  {
    if (lane % 4 == 0) {
      #pragma unroll
      for (int half = 0; half < 4; ++half) {
        const int i_row = i_lo + 0 * 128 + row + 8 * half;
        if (i_row < M) P_max_ptr[i_row * P_max_stride0] = P_max[half] * scale;
      }
    }
  }
  // finish P.sum
  // P.sum[i] = P.sum
  {
    if (lane % 4 == 0) {
      #pragma unroll
      for (int half = 0; half < 4; ++half) {
        const int i_row = i_lo + 0 * 128 + row + 8 * half;
        if (i_row < M) P_sum_ptr[i_row * P_sum_stride0] = P_sum[half];
      }
    }
  }
}

// row_softmax_two_pass_warps_use: program row_softmax, schedule two_pass_warps_use, target sm_80
// 128 threads (math 1 x 128 threads), 98304 bytes of shared memory

struct Divisor { int value; unsigned multiplier, shift; };

namespace ptx {
__device__ __forceinline__ int divided(int x, Divisor d) {
  return __umulhi(2u * x, d.multiplier) >> d.shift;
}
__device__ __forceinline__ void cp_async(unsigned to, const void* from, int nbytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(nbytes) : "memory");
}
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}
template <int pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory");
}
__device__ __forceinline__ void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void mma_m16n8k16_bf16(float* d, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
    unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
      "%2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void ldmatrix(unsigned (&r)[4], unsigned at) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(at)
      : "memory");
}
__device__ __forceinline__ float infinity() {
  return __int_as_float(0x7f800000);
}
__device__ __forceinline__ float exp2(float a) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return r;
}
__device__ __forceinline__ float choose(bool which, float a, float b) {
  return which ? a : b;
}
__device__ __forceinline__ void store_shared_b32(unsigned to, unsigned value) {
  asm volatile("st.shared.b32 [%0], %1;" : : "r"(to), "r"(value) : "memory");
}
__device__ __forceinline__ unsigned pack_bf16(float a, float b) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return r;
}
__device__ __forceinline__ uint4 load_shared_16(unsigned at) {
  uint4 v;
  asm volatile(
      "ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "r"(at)
      : "memory");
  return v;
}
__device__ __forceinline__ void store_global_16(void* to, uint4 v) {
  *(uint4*)to = v;
}
__device__ __forceinline__ unsigned short load_shared_b16(unsigned at) {
  unsigned short value;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(at) : "memory");
  return value;
}
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
}  // namespace ptx

extern "C" __global__ void __launch_bounds__(128, 2)
row_softmax_two_pass_warps_use(const unsigned short* __restrict__ A_ptr, long long A_stride0,
    long long A_stride1, const unsigned short* __restrict__ B_ptr, long long B_stride0, long long B_stride1,
    const float* __restrict__ P_sum_ptr, long long P_sum_stride0, const float* __restrict__ P_max_ptr,
    long long P_max_stride0, unsigned short* P_ptr, long long P_stride0, long long P_stride1, int M, int N,
    float scale, Divisor n_divisor, int P_tma) {
  extern __shared__ __align__(128) char shared_raw[];
  const unsigned smem = ptx::shared_address(shared_raw);
  const unsigned As = smem;  // 2 x 128 x 64 bf16, 128-byte swizzle
  const unsigned Bs = smem + 32768;  // 2 x 128 x 64 bf16, 128-byte swizzle
  const unsigned Ps = smem + 65536;  // 128 x 128 bf16, 128-byte swizzle

  const int thread = threadIdx.x & 127;  // of the warpgroup
  const int lane = threadIdx.x & 31;
  const int row = thread / 32 * 32 + lane / 4;  // of its fragments: row, row + 8, row + 16 and row + 24
  const int first_col = lane % 4 * 2;  // of its fragments
  int As_stage = 0;
  float S[128];
  const int item = blockIdx.x;
  const int n_blocks = (N + 127) >> 7;
  const int rest = ptx::divided(item, n_divisor);
  const int n_lo = (item - rest * n_blocks) * 128;
  const int i_lo = rest * 128;
#line 28 "schedules/ampere/row_softmax_two_pass_warps.wg"
  // kernel use computes P
  const int k_hi = 1;
  const int k_n = max(k_hi, 0);
  if (k_n > 0) {
#line 42 "schedules/ampere/row_softmax_two_pass_warps.wg"
    // fill As[k+1], Bs[k+1]
    // As = A[i, k]
    {
      const unsigned tile = As + As_stage * 16384;
      const int line = thread / 8, chunk = thread % 8;
      const int i_at = i_lo + line;
      const int k_at = chunk * 8;
      const unsigned to = tile + line * 128 + (chunk ^ (line & 7)) * 16;
      const char* from = (const char*)(A_ptr + i_at * A_stride0 + k_at * A_stride1);
      const long long down = 16LL * A_stride0 * 2;
      #pragma unroll
      for (int k = 0; k < 8; ++k)
        ptx::cp_async(to + k * 2048, from + k * down, i_at + 16 * k < M ? 16 : 0);
    }
    // Bs = B[n, k]
    {
      const unsigned tile = Bs + As_stage * 16384;
      const int line = thread / 8, chunk = thread % 8;
      const int n_at = n_lo + line;
      const int k_at = chunk * 8;
      const unsigned to = tile + line * 128 + (chunk ^ (line & 7)) * 16;
      const char* from = (const char*)(B_ptr + n_at * B_stride0 + k_at * B_stride1);
      const long long down = 16LL * B_stride0 * 2;
      #pragma unroll
      for (int k = 0; k < 8; ++k)
        ptx::cp_async(to + k * 2048, from + k * down, n_at + 16 * k < N ? 16 : 0);
    }
    ptx::cp_async_commit();
    As_stage = As_stage == 1 ? 0 : As_stage + 1;
    #pragma unroll
    for (int at = 0; at < 128; ++at)
      S[at] = 0.0f;
    #pragma unroll 1
    for (int k_pos = 0; k_pos < k_n - 1; ++k_pos) {
#line 41 "schedules/ampere/row_softmax_two_pass_warps.wg"
      // await As[k]
      ptx::cp_async_wait<0>();
      // As has arrived for all
      ptx::bar_sync(0 + 1, 128);
#line 42 "schedules/ampere/row_softmax_two_pass_warps.wg"
      // fill As[k+1], Bs[k+1]
      // As = A[i, k]
      {
        const unsigned tile = As + As_stage * 16384;
        const int line = thread / 8, chunk = thread % 8;
        const int i_at = i_lo + line;
        const int k_at = k_pos * 64 + 64 + chunk * 8;
        const unsigned to = tile + line * 128 + (chunk ^ (line & 7)) * 16;
        const char* from = (const char*)(A_ptr + i_at * A_stride0 + k_at * A_stride1);
        const long long down = 16LL * A_stride0 * 2;
        #pragma unroll
        for (int k = 0; k < 8; ++k)
          ptx::cp_async(to + k * 2048, from + k * down, i_at + 16 * k < M ? max(min((64 - k_at) * 2, 16), 0) : 0);
      }
      // Bs = B[n, k]
      {
        const unsigned tile = Bs + As_stage * 16384;
        const int line = thread / 8, chunk = thread % 8;
        const int n_at = n_lo + line;
        const int k_at = k_pos * 64 + 64 + chunk * 8;
        const unsigned to = tile + line * 128 + (chunk ^ (line & 7)) * 16;
        const char* from = (const char*)(B_ptr + n_at * B_stride0 + k_at * B_stride1);
        const long long down = 16LL * B_stride0 * 2;
        #pragma unroll
        for (int k = 0; k < 8; ++k)
          ptx::cp_async(to + k * 2048, from + k * down, n_at + 16 * k < N ? max(min((64 - k_at) * 2, 16), 0) : 0);
      }
      ptx::cp_async_commit();
      As_stage = As_stage == 1 ? 0 : As_stage + 1;
#line 43 "schedules/ampere/row_softmax_two_pass_warps.wg"
      // issue S += mma(As[k], Bs[k])
      {
        const unsigned start = Bs + As_stage * 16384 + (lane % 8 + lane / 16 * 8) * 128;
        const int chunk = lane / 8 % 2 ^ ((lane % 8 + lane / 16 * 8) & 7);
        const unsigned start2 = As + As_stage * 16384 + (thread / 32 * 32 + lane % 16) * 128;
        const int chunk2 = lane / 16 ^ ((lane % 16) & 7);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          unsigned a[2][4];
          ptx::ldmatrix(a[0], start2 + 0 * 2048 + (chunk2 ^ 2 * k) * 16);
          ptx::ldmatrix(a[1], start2 + 1 * 2048 + (chunk2 ^ 2 * k) * 16);
          #pragma unroll
          for (int pair = 0; pair < 8; ++pair) {
            unsigned b[4];
            ptx::ldmatrix(b, start + pair * 2048 + (chunk ^ 2 * k) * 16);
            ptx::mma_m16n8k16_bf16(&S[(2 * pair + 0) * 8 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b[0], b[1]);
            ptx::mma_m16n8k16_bf16(&S[(2 * pair + 0) * 8 + 4], a[1][0], a[1][1], a[1][2], a[1][3], b[0], b[1]);
            ptx::mma_m16n8k16_bf16(&S[(2 * pair + 1) * 8 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b[2], b[3]);
            ptx::mma_m16n8k16_bf16(&S[(2 * pair + 1) * 8 + 4], a[1][0], a[1][1], a[1][2], a[1][3], b[2], b[3]);
          }
        }
      }
    }
#line 41 "schedules/ampere/row_softmax_two_pass_warps.wg"
    // await As[k]
    ptx::cp_async_wait<0>();
    // As has arrived for all
    ptx::bar_sync(0 + 1, 128);
#line 43 "schedules/ampere/row_softmax_two_pass_warps.wg"
    // issue S += mma(As[k], Bs[k])
    {
      const int As_back1 = As_stage ^ 1;
      const unsigned start = Bs + As_back1 * 16384 + (lane % 8 + lane / 16 * 8) * 128;
      const int chunk = lane / 8 % 2 ^ ((lane % 8 + lane / 16 * 8) & 7);
      const unsigned start2 = As + As_back1 * 16384 + (thread / 32 * 32 + lane % 16) * 128;
      const int chunk2 = lane / 16 ^ ((lane % 16) & 7);
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        unsigned a[2][4];
        ptx::ldmatrix(a[0], start2 + 0 * 2048 + (chunk2 ^ 2 * k) * 16);
        ptx::ldmatrix(a[1], start2 + 1 * 2048 + (chunk2 ^ 2 * k) * 16);
        #pragma unroll
        for (int pair = 0; pair < 8; ++pair) {
          unsigned b[4];
          ptx::ldmatrix(b, start + pair * 2048 + (chunk ^ 2 * k) * 16);
          ptx::mma_m16n8k16_bf16(&S[(2 * pair + 0) * 8 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b[0], b[1]);
          ptx::mma_m16n8k16_bf16(&S[(2 * pair + 0) * 8 + 4], a[1][0], a[1][1], a[1][2], a[1][3], b[0], b[1]);
          ptx::mma_m16n8k16_bf16(&S[(2 * pair + 1) * 8 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b[2], b[3]);
          ptx::mma_m16n8k16_bf16(&S[(2 * pair + 1) * 8 + 4], a[1][0], a[1][1], a[1][2], a[1][3], b[2], b[3]);
        }
      }
    }
  }
  else {
    #pragma unroll
    for (int at = 0; at < 128; ++at)
      S[at] = 0.0f;
  }
#line 45 "schedules/ampere/row_softmax_two_pass_warps.wg"
  // finish P via Ps
  // finish P
  // S = select(P.sum[i] == 0.0, 0.0, (exp2((((S * scale) - select(P.max[i] == -inf, 0.0, P.max[i])) *...
  {
    float offset[4];
    float f[4];
    #pragma unroll
    for (int half = 0; half < 4; ++half) {
      const int i_row = i_lo + 0 * 128 + row + 8 * half;
      offset[half] = ((((i_row < M) ? P_max_ptr[i_row * P_max_stride0] : 0.0f) == -ptx::infinity())
          ? 0.0f : ((i_row < M) ? P_max_ptr[i_row * P_max_stride0] : 0.0f)) * 1.442695f;
      f[half] = (((i_row < M) ? P_max_ptr[i_row * P_max_stride0] : 0.0f) == -ptx::infinity()) ? 0.0f : ((i_row < M)
          ? P_max_ptr[i_row * P_max_stride0] : 0.0f);
    }
    #pragma unroll
    for (int at = 0; at < 128; ++at)
      S[at] = S[at] * scale;
    // the rounding of a large offset would swamp the difference: then subtract first
    if (__any_sync(~0u, !(fmaxf(fmaxf(fmaxf(fabsf(offset[0]), fabsf(offset[1])), fabsf(offset[2])),
        fabsf(offset[3])) <= 1024.0f))) {
      #pragma unroll
      for (int at = 0; at < 128; ++at) {
        const int half = at / 2 % 4;
        S[at] -= f[half];
      }
      offset[0] = offset[1] = offset[2] = offset[3] = 0.0f;
    }
    bool ok[4];
    float f2[4];
    #pragma unroll
    for (int half = 0; half < 4; ++half) {
      const int i_row = i_lo + 0 * 128 + row + 8 * half;
      ok[half] = ((i_row < M) ? P_sum_ptr[i_row * P_sum_stride0] : 0.0f) == 0.0f;
      f2[half] = (i_row < M) ? P_sum_ptr[i_row * P_sum_stride0] : 0.0f;
    }
    #pragma unroll
    for (int at = 0; at < 128; ++at) {
      const int half = at / 2 % 4;
      S[at] = ptx::choose(ok[half], 0.0f, __fdiv_rn(ptx::exp2(fmaf(S[at], 1.442695f, -offset[half])), f2[half]));
    }
  }
  {
    const unsigned tile = Ps;
    #pragma unroll
    for (int pair = 0; pair < 64; ++pair) {
      const int line = row + pair % 4 * 8, column = first_col + pair / 4 * 8;
      ptx::store_shared_b32(tile + column / 64 * 16384 + ((line * 128 + column % 64 * 2) ^ (line & 7) * 16),
          ptx::pack_bf16(S[2 * pair], S[2 * pair + 1]));
    }
  }
  // written
  ptx::bar_sync(0 + 1, 128);
  // rows that suit stores of 16 bytes
  if (P_tma) {
#line 45 "schedules/ampere/row_softmax_two_pass_warps.wg"
    // finish P via Ps
    // P[i, n], 16 bytes at once
    {
      const unsigned tile = Ps;
      const int line = thread / 16, chunk = thread % 16;
      const int i_at = i_lo + 0 * 128 + line;
      const int n_at = n_lo + chunk * 8;
      const unsigned to = tile + chunk / 8 * 16384 + line * 128 + (chunk % 8 ^ (line & 7)) * 16;
      char* from = (char*)(P_ptr + i_at * P_stride0 + n_at * P_stride1);
      const long long down = 8LL * P_stride0 * 2;
      #pragma unroll
      for (int k = 0; k < 16; ++k)
        if (i_at + 8 * k < M && n_at < N) ptx::store_global_16(from + k * down, ptx::load_shared_16(to + k * 1024));
    }
  }
  else {
#line 45 "schedules/ampere/row_softmax_two_pass_warps.wg"
    // finish P via Ps
    // P[i, n], element by element
    {
      const unsigned tile = Ps;
      #pragma unroll 4
      for (int at = thread; at < 16384; at += 128) {
        const int line = at / 128, column = at % 128;
        const int i_at = i_lo + 0 * 128 + line;
        const int n_at = n_lo + column;
        const unsigned from = tile + column / 64 * 16384 + ((line * 128 + column % 64 * 2) ^ (line & 7) * 16);
        if (i_at < M && n_at < N) P_ptr[i_at * P_stride0 + n_at * P_stride1] = ptx::load_shared_b16(from);
      }
    }
  }
}
