// attention_fa2_wide_longest: program attention, schedule fa2_wide_longest, target sm_80
// 256 threads (math 2 x 128 threads), 131072 bytes of shared memory

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
__device__ __forceinline__ unsigned pack_bf16(float a, float b) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return r;
}
__device__ __forceinline__ void clear_shared_16(unsigned to) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" : : "r"(to), "r"(0) : "memory");
}
__device__ __forceinline__ void ldmatrix_t(unsigned (&r)[4], unsigned at) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(at)
      : "memory");
}
__device__ __forceinline__ float quad_sum(float a) {
  a = a + __shfl_xor_sync(~0u, a, 1);
  a = a + __shfl_xor_sync(~0u, a, 2);
  return a;
}
__device__ __forceinline__ void store_shared_b32(unsigned to, unsigned value) {
  asm volatile("st.shared.b32 [%0], %1;" : : "r"(to), "r"(value) : "memory");
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
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
}  // namespace ptx

extern "C" __global__ void __launch_bounds__(256, 1)
attention_fa2_wide_longest(const unsigned short* __restrict__ Q_ptr, long long Q_stride0, long long Q_stride1,
    long long Q_stride2, long long Q_stride3, const unsigned short* __restrict__ K_ptr, long long K_stride0,
    long long K_stride1, long long K_stride2, long long K_stride3, const unsigned short* __restrict__ V_ptr,
    long long V_stride0, long long V_stride1, long long V_stride2, long long V_stride3, float* L_ptr,
    long long L_stride0, long long L_stride1, long long L_stride2, unsigned short* O_ptr, long long O_stride0,
    long long O_stride1, long long O_stride2, long long O_stride3, int B, int G, int R, int M, int N,
    float scale, float scale_1, Divisor combinations, Divisor g_divisor, Divisor r_divisor) {
  extern __shared__ __align__(128) char shared_raw[];
  const unsigned smem = ptx::shared_address(shared_raw);
  const unsigned Qs = smem;  // 2 x 64 x 256 bf16, 128-byte swizzle
  const unsigned Ks = smem + 65536;  // 64 x 256 bf16, 128-byte swizzle
  const unsigned Vs = smem + 98304;  // 64 x 256 bf16, 128-byte swizzle
  const unsigned Os = smem;  // 2 x 64 x 256 bf16, 128-byte swizzle, over Qs
  const int warpgroup = __shfl_sync(~0u, threadIdx.x >> 7, 0);

  const int wg = warpgroup - 0;
  const int role_thread = threadIdx.x - 0;
  const int lane = threadIdx.x & 31;
  const int thread = threadIdx.x & 127;  // of the warpgroup
  const int first_col = lane % 4 * 2;  // of its fragments
  const int row = thread / 32 * 16 + lane / 4;  // of its fragments: row and row + 8
  float S[32];
  float O[128];
  float P_max[2];
  float P_max_new[2];
  float P_max_ref[2];
  float P_max_corr[2];
  float P_sum[2];
  unsigned P_frag[16];
  float (&P)[32] = S;
  const int item = blockIdx.x;
  const int i_blocks = (M + 127) >> 7;
  const int outer = ptx::divided(item, combinations);
  const int i_lo = (i_blocks - 1 - outer) * 128;
  const int rest = item - outer * B * G * R;
  const int rest2 = ptx::divided(rest, r_divisor);
  const int r = rest - rest2 * R;
  const int rest3 = ptx::divided(rest2, g_divisor);
  const int g = rest2 - rest3 * G;
  const int b = rest3;
#line 34 "schedules/ampere/attention_fa2_wide.wg"
  // schedule fa2_wide_longest extends fa2_wide
  const int j_hi = min((N + 63) >> 6, (min(i_lo + 128, M) + N - M + 63) >> 6);
  const int j_n = max(j_hi, 0);
  const int j_where = j_hi - ((i_lo + wg * 64 + N - M + 1) >> 6);
  const int j_seen_to = min(i_lo + 128, M) + N - M;
#line 17 "schedules/ampere/attention_fa2_wide.wg"
  // fill Qs
  // Qs = Q[b, i, g * R + r, d]
  {
    const unsigned tile = Qs;
    const int line = role_thread / 32, chunk = role_thread % 32;
    const int i_at = i_lo + line;
    const int d_at = chunk * 8;
    const unsigned to = tile + chunk / 8 * 8192 + line * 128 + (chunk % 8 ^ (line & 7)) * 16;
    const char* from = (const char*)(Q_ptr + b * Q_stride0 + i_at * Q_stride1 + (g * R + r) * Q_stride2 + d_at * Q_stride3);
    const long long down = 8LL * Q_stride1 * 2;
    #pragma unroll
    for (int k = 0; k < 8; ++k)
      ptx::cp_async(to + k * 1024, from + k * down, i_at + 8 * k < M ? 16 : 0);
  }
  // Qs = Q[b, i, g * R + r, d]
  {
    const unsigned tile = Qs + 32768;
    const int line = role_thread / 32, chunk = role_thread % 32;
    const int i_at = i_lo + 64 + line;
    const int d_at = chunk * 8;
    const unsigned to = tile + chunk / 8 * 8192 + line * 128 + (chunk % 8 ^ (line & 7)) * 16;
    const char* from = (const char*)(Q_ptr + b * Q_stride0 + i_at * Q_stride1 + (g * R + r) * Q_stride2 + d_at * Q_stride3);
    const long long down = 8LL * Q_stride1 * 2;
    #pragma unroll
    for (int k = 0; k < 8; ++k)
      ptx::cp_async(to + k * 1024, from + k * down, i_at + 8 * k < M ? 16 : 0);
  }
  ptx::cp_async_commit();
#line 27 "schedules/ampere/attention_fa2_wide.wg"
  // issue O += mma(P[j], Vs[j])
  // nothing seen yet
  // P.max = -inf
  #pragma unroll
  for (int half = 0; half < 2; ++half)
    P_max[half] = -ptx::infinity();
  // P.sum = 0.0
  #pragma unroll
  for (int half = 0; half < 2; ++half)
    P_sum[half] = 0.0f;
  if (j_n > 0) {
#line 23 "schedules/ampere/attention_fa2_wide.wg"
    // fill Ks[j+1]
    // Ks = K[b, j, g, d]
    {
      const unsigned tile = Ks;
      const int line = role_thread / 32, chunk = role_thread % 32;
      const int j_at = j_hi * 64 - 64 + line;
      const int d_at = chunk * 8;
      const unsigned to = tile + chunk / 8 * 8192 + line * 128 + (chunk % 8 ^ (line & 7)) * 16;
      const char* from = (const char*)(K_ptr + b * K_stride0 + j_at * K_stride1 + g * K_stride2 + d_at * K_stride3);
      const long long down = 8LL * K_stride1 * 2;
      #pragma unroll
      for (int k = 0; k < 8; ++k)
        ptx::cp_async(to + k * 1024, from + k * down, j_at + 8 * k < N ? 16 : 0);
    }
    ptx::cp_async_commit();
#line 25 "schedules/ampere/attention_fa2_wide.wg"
    // rescale O
    #pragma unroll
    for (int at = 0; at < 128; ++at)
      O[at] = 0.0f;
    // mask {end: partial, where: partial}
    #pragma unroll 1
    for (int j_pos = 0; j_pos < min(max(j_where, 1), j_n - 1); ++j_pos) {
#line 19 "schedules/ampere/attention_fa2_wide.wg"
      // await Ks[j]
      ptx::cp_async_wait<0>();
      // Ks has arrived for all
      ptx::bar_sync(3, 256);
#line 20 "schedules/ampere/attention_fa2_wide.wg"
      // fill Vs[j]
      // Vs = V[b, j, g, e]
      {
        const unsigned tile = Vs;
        const int line = role_thread / 32, chunk = role_thread % 32;
        const int j_at = j_hi * 64 - j_pos * 64 - 64 + line;
        const int e_at = chunk * 8;
        const unsigned to = tile + chunk / 8 * 8192 + line * 128 + (chunk % 8 ^ (line & 7)) * 16;
        const char* from = (const char*)(V_ptr + b * V_stride0 + j_at * V_stride1 + g * V_stride2 + e_at * V_stride3);
        const long long down = 8LL * V_stride1 * 2;
        #pragma unroll
        for (int k = 0; k < 8; ++k)
          ptx::cp_async(to + k * 1024, from + k * down, j_at + 8 * k < N ? 16 : 0);
      }
      ptx::cp_async_commit();
#line 21 "schedules/ampere/attention_fa2_wide.wg"
      // issue S[j] = mma(Qs, Ks[j])
      #pragma unroll
      for (int at = 0; at < 32; ++at)
        S[at] = 0.0f;
      {
        const unsigned start = Ks + (lane % 8 + lane / 16 * 8) * 128;
        const int chunk = lane / 8 % 2 ^ ((lane % 8 + lane / 16 * 8) & 7);
        const unsigned start2 = Qs + wg * 32768 + (thread / 32 * 16 + lane % 16) * 128;
        const int chunk2 = lane / 16 ^ ((lane % 16) & 7);
        #pragma unroll
        for (int k = 0; k < 16; ++k) {
          unsigned a[1][4];
          ptx::ldmatrix(a[0], start2 + 0 * 2048 + 2 * k / 8 * 8192 + (chunk2 ^ 2 * k % 8) * 16);
          #pragma unroll
          for (int pair = 0; pair < 4; ++pair) {
            unsigned b2[4];
            ptx::ldmatrix(b2, start + pair * 2048 + 2 * k / 8 * 8192 + (chunk ^ 2 * k % 8) * 16);
            ptx::mma_m16n8k16_bf16(&S[(2 * pair + 0) * 4 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b2[0], b2[1]);
            ptx::mma_m16n8k16_bf16(&S[(2 * pair + 1) * 4 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b2[2], b2[3]);
          }
        }
      }
#line 22 "schedules/ampere/attention_fa2_wide.wg"
      // await Vs[j]
      ptx::cp_async_wait<0>();
      // Vs has arrived for all
      ptx::bar_sync(3, 256);
#line 23 "schedules/ampere/attention_fa2_wide.wg"
      // fill Ks[j+1]
      // Ks = K[b, j, g, d]
      {
        const unsigned tile = Ks;
        const int line = role_thread / 32, chunk = role_thread % 32;
        const int j_at = j_hi * 64 - j_pos * 64 - 128 + line;
        const int d_at = chunk * 8;
        const unsigned to = tile + chunk / 8 * 8192 + line * 128 + (chunk % 8 ^ (line & 7)) * 16;
        const char* from = (const char*)(K_ptr + b * K_stride0 + j_at * K_stride1 + g * K_stride2 + d_at * K_stride3);
        const long long down = 8LL * K_stride1 * 2;
        #pragma unroll
        for (int k = 0; k < 8; ++k)
          ptx::cp_async(to + k * 1024, from + k * down, j_at + 8 * k < N ? 16 : 0);
      }
      ptx::cp_async_commit();
#line 24 "schedules/ampere/attention_fa2_wide.wg"
      // compute P[j]
      // S = select(N - j - 1 >= 0 and i + N - M - j >= 0, S, -inf)
      {
        const int j_first = j_hi * 64 - j_pos * 64 - 64 + first_col;
        const int limit = N - j_first - 1;
        int limit2[2];
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int i_row = i_lo + wg * 64 + row + 8 * half;
          limit2[half] = min(limit, i_row + N - M - j_first);
        }
        #pragma unroll
        for (int at = 0; at < 32; ++at) {
          const int half = at / 2 % 2;
          const int col = at / 4 * 8 + at % 2;
          S[at] = (col <= limit2[half]) ? S[at] : -ptx::infinity();
        }
      }
      // P.max.new = max(P.max, S over j)
      {
        float acc[2];
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          acc[half] = P_max[half];
        #pragma unroll
        for (int at = 0; at < 32; ++at) {
          const int half = at / 2 % 2;
          acc[half] = ptx::max_nan(acc[half], S[at]);
        }
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          P_max_new[half] = ptx::quad_max(acc[half]);
      }
      // P.max.ref = select(P.max.new == -inf, 0.0, P.max.new)
      #pragma unroll
      for (int half = 0; half < 2; ++half)
        P_max_ref[half] = (P_max_new[half] == -ptx::infinity()) ? 0.0f : P_max_new[half];
      // P.max.corr = exp2(((P.max - P.max.ref) * scale.1))
      #pragma unroll
      for (int half = 0; half < 2; ++half)
        P_max_corr[half] = ptx::exp2((P_max[half] - P_max_ref[half]) * scale_1);
      // P = exp2(((S - P.max.ref) * scale.1))
      {
        float offset[2];
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          offset[half] = P_max_ref[half] * scale_1;
        // the rounding of a large offset would swamp the difference: then subtract first
        if (__any_sync(~0u, !(fmaxf(fabsf(offset[0]), fabsf(offset[1])) <= 1024.0f))) {
          #pragma unroll
          for (int at = 0; at < 32; ++at) {
            const int half = at / 2 % 2;
            P[at] -= P_max_ref[half];
          }
          offset[0] = offset[1] = 0.0f;
        }
        #pragma unroll
        for (int at = 0; at < 32; ++at) {
          const int half = at / 2 % 2;
          P[at] = ptx::exp2(fmaf(P[at], scale_1, -offset[half]));
        }
      }
      // P.sum = sum((P.sum * P.max.corr), P over j) of this lane
      {
        float acc[2];
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          acc[half] = P_sum[half] * P_max_corr[half];
        #pragma unroll
        for (int at = 0; at < 32; ++at) {
          const int half = at / 2 % 2;
          acc[half] = acc[half] + P[at];
        }
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          P_sum[half] = acc[half];
      }
      // P.max = P.max.new
      #pragma unroll
      for (int half = 0; half < 2; ++half)
        P_max[half] = P_max_new[half];
#line 25 "schedules/ampere/attention_fa2_wide.wg"
      // rescale O
      // O = (O * P.max.corr)
      #pragma unroll
      for (int at = 0; at < 128; ++at) {
        const int half = at / 2 % 2;
        O[at] = O[at] * P_max_corr[half];
      }
#line 26 "schedules/ampere/attention_fa2_wide.wg"
      // pack P[j]
      #pragma unroll
      for (int at = 0; at < 16; ++at)
        P_frag[at] = ptx::pack_bf16(P[2 * at], P[2 * at + 1]);
      // no row sees these: a NaN in them must not count
      if (j_seen_to < min(j_hi * 64, N) && j_pos >= 0 && j_pos == 0) {
#line 27 "schedules/ampere/attention_fa2_wide.wg"
        // issue O += mma(P[j], Vs[j])
        {
          const unsigned tile = Vs;
          const int clear_from = max(j_seen_to + j_pos * 64 - j_hi * 64 + 64, 0) * 8;
          const int clear_to = min(min(j_hi * 64, N) + j_pos * 64 - j_hi * 64 + 64, 64) * 8;
          #pragma unroll 1
          for (int panel = 0; panel < 4; ++panel) {
            #pragma unroll 1
            for (int at = clear_from + thread; at < clear_to; at += 128)
              ptx::clear_shared_16(tile + panel * 8192 + at * 16);
          }
        }
        // cleared
        ptx::bar_sync(wg + 1, 128);
      }
#line 27 "schedules/ampere/attention_fa2_wide.wg"
      // issue O += mma(P[j], Vs[j])
      {
        const unsigned start = Vs + (lane % 16) * 128;
        const int chunk = lane / 16 ^ ((lane % 16) & 7);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          #pragma unroll
          for (int pair = 0; pair < 16; ++pair) {
            unsigned b2[4];
            ptx::ldmatrix_t(b2, start + k * 2048 + 2 * pair / 8 * 8192 + (chunk ^ 2 * pair % 8) * 16);
            ptx::mma_m16n8k16_bf16(&O[(2 * pair + 0) * 4 + 0], P_frag[(2 * k + 0) * 2 + 0],
                P_frag[(2 * k + 0) * 2 + 1], P_frag[(2 * k + 1) * 2 + 0], P_frag[(2 * k + 1) * 2 + 1], b2[0], b2[1]);
            ptx::mma_m16n8k16_bf16(&O[(2 * pair + 1) * 4 + 0], P_frag[(2 * k + 0) * 2 + 0],
                P_frag[(2 * k + 0) * 2 + 1], P_frag[(2 * k + 1) * 2 + 0], P_frag[(2 * k + 1) * 2 + 1], b2[2], b2[3]);
          }
        }
      }
    }
    #pragma unroll 1
    for (int j_pos = max(min(max(j_where, 1), j_n - 1), 0); j_pos < j_n - 1; ++j_pos) {
#line 19 "schedules/ampere/attention_fa2_wide.wg"
      // await Ks[j]
      ptx::cp_async_wait<0>();
      // Ks has arrived for all
      ptx::bar_sync(3, 256);
#line 20 "schedules/ampere/attention_fa2_wide.wg"
      // fill Vs[j]
      // Vs = V[b, j, g, e]
      {
        const unsigned tile = Vs;
        const int line = role_thread / 32, chunk = role_thread % 32;
        const int j_at = j_hi * 64 - j_pos * 64 - 64 + line;
        const int e_at = chunk * 8;
        const unsigned to = tile + chunk / 8 * 8192 + line * 128 + (chunk % 8 ^ (line & 7)) * 16;
        const char* from = (const char*)(V_ptr + b * V_stride0 + j_at * V_stride1 + g * V_stride2 + e_at * V_stride3);
        const long long down = 8LL * V_stride1 * 2;
        #pragma unroll
        for (int k = 0; k < 8; ++k)
          ptx::cp_async(to + k * 1024, from + k * down, j_at + 8 * k < N ? 16 : 0);
      }
      ptx::cp_async_commit();
#line 21 "schedules/ampere/attention_fa2_wide.wg"
      // issue S[j] = mma(Qs, Ks[j])
      #pragma unroll
      for (int at = 0; at < 32; ++at)
        S[at] = 0.0f;
      {
        const unsigned start = Ks + (lane % 8 + lane / 16 * 8) * 128;
        const int chunk = lane / 8 % 2 ^ ((lane % 8 + lane / 16 * 8) & 7);
        const unsigned start2 = Qs + wg * 32768 + (thread / 32 * 16 + lane % 16) * 128;
        const int chunk2 = lane / 16 ^ ((lane % 16) & 7);
        #pragma unroll
        for (int k = 0; k < 16; ++k) {
          unsigned a[1][4];
          ptx::ldmatrix(a[0], start2 + 0 * 2048 + 2 * k / 8 * 8192 + (chunk2 ^ 2 * k % 8) * 16);
          #pragma unroll
          for (int pair = 0; pair < 4; ++pair) {
            unsigned b2[4];
            ptx::ldmatrix(b2, start + pair * 2048 + 2 * k / 8 * 8192 + (chunk ^ 2 * k % 8) * 16);
            ptx::mma_m16n8k16_bf16(&S[(2 * pair + 0) * 4 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b2[0], b2[1]);
            ptx::mma_m16n8k16_bf16(&S[(2 * pair + 1) * 4 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b2[2], b2[3]);
          }
        }
      }
#line 22 "schedules/ampere/attention_fa2_wide.wg"
      // await Vs[j]
      ptx::cp_async_wait<0>();
      // Vs has arrived for all
      ptx::bar_sync(3, 256);
#line 23 "schedules/ampere/attention_fa2_wide.wg"
      // fill Ks[j+1]
      // Ks = K[b, j, g, d]
      {
        const unsigned tile = Ks;
        const int line = role_thread / 32, chunk = role_thread % 32;
        const int j_at = j_hi * 64 - j_pos * 64 - 128 + line;
        const int d_at = chunk * 8;
        const unsigned to = tile + chunk / 8 * 8192 + line * 128 + (chunk % 8 ^ (line & 7)) * 16;
        const char* from = (const char*)(K_ptr + b * K_stride0 + j_at * K_stride1 + g * K_stride2 + d_at * K_stride3);
        const long long down = 8LL * K_stride1 * 2;
        #pragma unroll
        for (int k = 0; k < 8; ++k)
          ptx::cp_async(to + k * 1024, from + k * down, j_at + 8 * k < N ? 16 : 0);
      }
      ptx::cp_async_commit();
#line 24 "schedules/ampere/attention_fa2_wide.wg"
      // compute P[j]
      // P.max.new = max(P.max, S over j)
      {
        float acc[2];
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          acc[half] = P_max[half];
        #pragma unroll
        for (int at = 0; at < 32; ++at) {
          const int half = at / 2 % 2;
          acc[half] = ptx::max_nan(acc[half], S[at]);
        }
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          P_max_new[half] = ptx::quad_max(acc[half]);
      }
      // P.max.corr = exp2(((P.max - P.max.new) * scale.1))
      #pragma unroll
      for (int half = 0; half < 2; ++half)
        P_max_corr[half] = ptx::exp2((P_max[half] - P_max_new[half]) * scale_1);
      // P = exp2(((S - P.max.new) * scale.1))
      {
        float offset[2];
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          offset[half] = P_max_new[half] * scale_1;
        // the rounding of a large offset would swamp the difference: then subtract first
        if (__any_sync(~0u, !(fmaxf(fabsf(offset[0]), fabsf(offset[1])) <= 1024.0f))) {
          #pragma unroll
          for (int at = 0; at < 32; ++at) {
            const int half = at / 2 % 2;
            P[at] -= P_max_new[half];
          }
          offset[0] = offset[1] = 0.0f;
        }
        #pragma unroll
        for (int at = 0; at < 32; ++at) {
          const int half = at / 2 % 2;
          P[at] = ptx::exp2(fmaf(P[at], scale_1, -offset[half]));
        }
      }
      // P.sum = sum((P.sum * P.max.corr), P over j) of this lane
      {
        float acc[2];
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          acc[half] = P_sum[half] * P_max_corr[half];
        #pragma unroll
        for (int at = 0; at < 32; ++at) {
          const int half = at / 2 % 2;
          acc[half] = acc[half] + P[at];
        }
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          P_sum[half] = acc[half];
      }
      // P.max = P.max.new
      #pragma unroll
      for (int half = 0; half < 2; ++half)
        P_max[half] = P_max_new[half];
#line 25 "schedules/ampere/attention_fa2_wide.wg"
      // rescale O
      // O = (O * P.max.corr)
      #pragma unroll
      for (int at = 0; at < 128; ++at) {
        const int half = at / 2 % 2;
        O[at] = O[at] * P_max_corr[half];
      }
#line 26 "schedules/ampere/attention_fa2_wide.wg"
      // pack P[j]
      #pragma unroll
      for (int at = 0; at < 16; ++at)
        P_frag[at] = ptx::pack_bf16(P[2 * at], P[2 * at + 1]);
#line 27 "schedules/ampere/attention_fa2_wide.wg"
      // issue O += mma(P[j], Vs[j])
      {
        const unsigned start = Vs + (lane % 16) * 128;
        const int chunk = lane / 16 ^ ((lane % 16) & 7);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          #pragma unroll
          for (int pair = 0; pair < 16; ++pair) {
            unsigned b2[4];
            ptx::ldmatrix_t(b2, start + k * 2048 + 2 * pair / 8 * 8192 + (chunk ^ 2 * pair % 8) * 16);
            ptx::mma_m16n8k16_bf16(&O[(2 * pair + 0) * 4 + 0], P_frag[(2 * k + 0) * 2 + 0],
                P_frag[(2 * k + 0) * 2 + 1], P_frag[(2 * k + 1) * 2 + 0], P_frag[(2 * k + 1) * 2 + 1], b2[0], b2[1]);
            ptx::mma_m16n8k16_bf16(&O[(2 * pair + 1) * 4 + 0], P_frag[(2 * k + 0) * 2 + 0],
                P_frag[(2 * k + 0) * 2 + 1], P_frag[(2 * k + 1) * 2 + 0], P_frag[(2 * k + 1) * 2 + 1], b2[2], b2[3]);
          }
        }
      }
    }
#line 19 "schedules/ampere/attention_fa2_wide.wg"
    // await Ks[j]
    ptx::cp_async_wait<0>();
    // Ks has arrived for all
    ptx::bar_sync(3, 256);
#line 20 "schedules/ampere/attention_fa2_wide.wg"
    // fill Vs[j]
    // Vs = V[b, j, g, e]
    {
      const unsigned tile = Vs;
      const int line = role_thread / 32, chunk = role_thread % 32;
      const int j_at = j_hi * 64 - j_n * 64 + line;
      const int e_at = chunk * 8;
      const unsigned to = tile + chunk / 8 * 8192 + line * 128 + (chunk % 8 ^ (line & 7)) * 16;
      const char* from = (const char*)(V_ptr + b * V_stride0 + j_at * V_stride1 + g * V_stride2 + e_at * V_stride3);
      const long long down = 8LL * V_stride1 * 2;
      #pragma unroll
      for (int k = 0; k < 8; ++k)
        ptx::cp_async(to + k * 1024, from + k * down, j_at + 8 * k < N ? 16 : 0);
    }
    ptx::cp_async_commit();
#line 21 "schedules/ampere/attention_fa2_wide.wg"
    // issue S[j] = mma(Qs, Ks[j])
    #pragma unroll
    for (int at = 0; at < 32; ++at)
      S[at] = 0.0f;
    {
      const unsigned start = Ks + (lane % 8 + lane / 16 * 8) * 128;
      const int chunk = lane / 8 % 2 ^ ((lane % 8 + lane / 16 * 8) & 7);
      const unsigned start2 = Qs + wg * 32768 + (thread / 32 * 16 + lane % 16) * 128;
      const int chunk2 = lane / 16 ^ ((lane % 16) & 7);
      #pragma unroll
      for (int k = 0; k < 16; ++k) {
        unsigned a[1][4];
        ptx::ldmatrix(a[0], start2 + 0 * 2048 + 2 * k / 8 * 8192 + (chunk2 ^ 2 * k % 8) * 16);
        #pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
          unsigned b2[4];
          ptx::ldmatrix(b2, start + pair * 2048 + 2 * k / 8 * 8192 + (chunk ^ 2 * k % 8) * 16);
          ptx::mma_m16n8k16_bf16(&S[(2 * pair + 0) * 4 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b2[0], b2[1]);
          ptx::mma_m16n8k16_bf16(&S[(2 * pair + 1) * 4 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b2[2], b2[3]);
        }
      }
    }
#line 22 "schedules/ampere/attention_fa2_wide.wg"
    // await Vs[j]
    ptx::cp_async_wait<0>();
    // Vs has arrived for all
    ptx::bar_sync(3, 256);
#line 24 "schedules/ampere/attention_fa2_wide.wg"
    // compute P[j]
    // S = select(N - j - 1 >= 0 and i + N - M - j >= 0, S, -inf)
    {
      const int j_first = j_hi * 64 - j_n * 64 + first_col;
      const int limit = N - j_first - 1;
      int limit2[2];
      #pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i_row = i_lo + wg * 64 + row + 8 * half;
        limit2[half] = min(limit, i_row + N - M - j_first);
      }
      #pragma unroll
      for (int at = 0; at < 32; ++at) {
        const int half = at / 2 % 2;
        const int col = at / 4 * 8 + at % 2;
        S[at] = (col <= limit2[half]) ? S[at] : -ptx::infinity();
      }
    }
    // P.max.new = max(P.max, S over j)
    {
      float acc[2];
      #pragma unroll
      for (int half = 0; half < 2; ++half)
        acc[half] = P_max[half];
      #pragma unroll
      for (int at = 0; at < 32; ++at) {
        const int half = at / 2 % 2;
        acc[half] = ptx::max_nan(acc[half], S[at]);
      }
      #pragma unroll
      for (int half = 0; half < 2; ++half)
        P_max_new[half] = ptx::quad_max(acc[half]);
    }
    // P.max.ref = select(P.max.new == -inf, 0.0, P.max.new)
    #pragma unroll
    for (int half = 0; half < 2; ++half)
      P_max_ref[half] = (P_max_new[half] == -ptx::infinity()) ? 0.0f : P_max_new[half];
    // P.max.corr = exp2(((P.max - P.max.ref) * scale.1))
    #pragma unroll
    for (int half = 0; half < 2; ++half)
      P_max_corr[half] = ptx::exp2((P_max[half] - P_max_ref[half]) * scale_1);
    // P = exp2(((S - P.max.ref) * scale.1))
    {
      float offset[2];
      #pragma unroll
      for (int half = 0; half < 2; ++half)
        offset[half] = P_max_ref[half] * scale_1;
      // the rounding of a large offset would swamp the difference: then subtract first
      if (__any_sync(~0u, !(fmaxf(fabsf(offset[0]), fabsf(offset[1])) <= 1024.0f))) {
        #pragma unroll
        for (int at = 0; at < 32; ++at) {
          const int half = at / 2 % 2;
          P[at] -= P_max_ref[half];
        }
        offset[0] = offset[1] = 0.0f;
      }
      #pragma unroll
      for (int at = 0; at < 32; ++at) {
        const int half = at / 2 % 2;
        P[at] = ptx::exp2(fmaf(P[at], scale_1, -offset[half]));
      }
    }
    // P.sum = sum((P.sum * P.max.corr), P over j) of this lane
    {
      float acc[2];
      #pragma unroll
      for (int half = 0; half < 2; ++half)
        acc[half] = P_sum[half] * P_max_corr[half];
      #pragma unroll
      for (int at = 0; at < 32; ++at) {
        const int half = at / 2 % 2;
        acc[half] = acc[half] + P[at];
      }
      #pragma unroll
      for (int half = 0; half < 2; ++half)
        P_sum[half] = acc[half];
    }
    // P.max = P.max.new
    #pragma unroll
    for (int half = 0; half < 2; ++half)
      P_max[half] = P_max_new[half];
#line 25 "schedules/ampere/attention_fa2_wide.wg"
    // rescale O
    // O = (O * P.max.corr)
    #pragma unroll
    for (int at = 0; at < 128; ++at) {
      const int half = at / 2 % 2;
      O[at] = O[at] * P_max_corr[half];
    }
#line 26 "schedules/ampere/attention_fa2_wide.wg"
    // pack P[j]
    #pragma unroll
    for (int at = 0; at < 16; ++at)
      P_frag[at] = ptx::pack_bf16(P[2 * at], P[2 * at + 1]);
    // no row sees these: a NaN in them must not count
    if (j_seen_to < min(j_hi * 64, N) && j_n > 0 && j_n <= 1) {
#line 27 "schedules/ampere/attention_fa2_wide.wg"
      // issue O += mma(P[j], Vs[j])
      {
        const unsigned tile = Vs;
        const int clear_from = max(j_seen_to + j_n * 64 - j_hi * 64, 0) * 8;
        const int clear_to = min(min(j_hi * 64, N) + j_n * 64 - j_hi * 64, 64) * 8;
        #pragma unroll 1
        for (int panel = 0; panel < 4; ++panel) {
          #pragma unroll 1
          for (int at = clear_from + thread; at < clear_to; at += 128)
            ptx::clear_shared_16(tile + panel * 8192 + at * 16);
        }
      }
      // cleared
      ptx::bar_sync(wg + 1, 128);
    }
#line 27 "schedules/ampere/attention_fa2_wide.wg"
    // issue O += mma(P[j], Vs[j])
    {
      const unsigned start = Vs + (lane % 16) * 128;
      const int chunk = lane / 16 ^ ((lane % 16) & 7);
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        #pragma unroll
        for (int pair = 0; pair < 16; ++pair) {
          unsigned b2[4];
          ptx::ldmatrix_t(b2, start + k * 2048 + 2 * pair / 8 * 8192 + (chunk ^ 2 * pair % 8) * 16);
          ptx::mma_m16n8k16_bf16(&O[(2 * pair + 0) * 4 + 0], P_frag[(2 * k + 0) * 2 + 0], P_frag[(2 * k + 0) * 2 + 1],
              P_frag[(2 * k + 1) * 2 + 0], P_frag[(2 * k + 1) * 2 + 1], b2[0], b2[1]);
          ptx::mma_m16n8k16_bf16(&O[(2 * pair + 1) * 4 + 0], P_frag[(2 * k + 0) * 2 + 0], P_frag[(2 * k + 0) * 2 + 1],
              P_frag[(2 * k + 1) * 2 + 0], P_frag[(2 * k + 1) * 2 + 1], b2[2], b2[3]);
        }
      }
    }
  }
  else {
#line 27 "schedules/ampere/attention_fa2_wide.wg"
    // issue O += mma(P[j], Vs[j])
    ptx::cp_async_wait<0>();
    // what was filled once an item has arrived
    ptx::bar_sync(3, 256);
    #pragma unroll
    for (int at = 0; at < 128; ++at)
      O[at] = 0.0f;
  }
#line 29 "schedules/ampere/attention_fa2_wide.wg"
  // finish O, L via Os
  // whole rows
  // P.sum = sum over the lanes of a row
  #pragma unroll
  for (int half = 0; half < 2; ++half)
    P_sum[half] = ptx::quad_sum(P_sum[half]);
  // finish L
  // L[b, g * R + r, i] = ((P.max * scale) + (log2(P.sum) * 0.6931471805599453))
  {
    if (lane % 4 == 0) {
      float* L_at = L_ptr + b * L_stride0 + (g * R + r) * L_stride1;
      #pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i_row = i_lo + wg * 64 + row + 8 * half;
        if (i_row < M) L_at[i_row * L_stride2] = (P_max[half] * scale) + (log2f(P_sum[half]) * 0.6931472f);
      }
    }
  }
  // finish O
  // O = select(P.sum == 0.0, 0.0, (O * rcp(P.sum)))
  {
    bool ok[2];
    float f[2];
    #pragma unroll
    for (int half = 0; half < 2; ++half) {
      ok[half] = P_sum[half] == 0.0f;
      f[half] = __frcp_rn(P_sum[half]);
    }
    #pragma unroll
    for (int at = 0; at < 128; ++at) {
      const int half = at / 2 % 2;
      O[at] = ok[half] ? 0.0f : (O[at] * f[half]);
    }
  }
  {
    const unsigned tile = Os + wg * 32768;
    #pragma unroll
    for (int pair = 0; pair < 64; ++pair) {
      const int line = row + pair % 2 * 8, column = first_col + pair / 2 * 8;
      ptx::store_shared_b32(tile + column / 64 * 8192 + ((line * 128 + column % 64 * 2) ^ (line & 7) * 16),
          ptx::pack_bf16(O[2 * pair], O[2 * pair + 1]));
    }
  }
  // written
  ptx::bar_sync(wg + 1, 128);
  // O[b, i, g * R + r, e], 16 bytes at once
  {
    const unsigned tile = Os + wg * 32768;
    #pragma unroll 4
    for (int k = thread; k < 2048; k += 128) {
      const int line = k / 32, chunk = k % 32;
      const int i_at = i_lo + wg * 64 + line;
      const int e_at = chunk * 8;
      if (i_at < M) ptx::store_global_16((char*)(O_ptr + b * O_stride0 + i_at * O_stride1 + (g * R + r) * O_stride2 + e_at * O_stride3), ptx::load_shared_16(tile + chunk / 8 * 8192 + line * 128 + (chunk % 8 ^ (line & 7)) * 16));
    }
  }
}
