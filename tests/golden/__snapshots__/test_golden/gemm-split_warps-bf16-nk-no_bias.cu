// gemm_split_warps_zero_Acc_sum: program gemm, schedule split_warps, target sm_80
// 128 threads (zero_Acc.sum 1 x 128 threads), 0 bytes of shared memory

extern "C" __global__ void __launch_bounds__(128, 1)
gemm_split_warps_zero_Acc_sum(float* Acc_sum_ptr, long long Acc_sum_stride0, long long Acc_sum_stride1, int M,
    int N, int K) {

  const int thread = threadIdx.x & 127;  // of the warpgroup
  const int lane = threadIdx.x & 31;
  const int row = thread / 32 * 16 + lane / 4;  // of its fragments: row and row + 8
  const int first_col = lane % 4 * 2;  // of its fragments
  const int item = blockIdx.x;
  const int n_blocks = (N + 127) >> 7;
  const int rest = item / n_blocks;
  const int n_lo = (item - rest * n_blocks) * 128;
  const int i_lo = rest * 64;
#line 19 "examples/gemm/gemm.wg"
  // Acc[i,n] = sum[k] A[i,k] * B[n,k] when layout == nk
  // Acc.sum[i, n] = 0.0
  {
    const int n_first = n_lo + first_col;
    float* Acc_sum_at = Acc_sum_ptr + n_first * Acc_sum_stride1;
    const int limit = N - n_first - 1;
    float* Acc_sum_at2[2];
    bool ok[2];
    #pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i_row = i_lo + row + 8 * half;
      Acc_sum_at2[half] = Acc_sum_at + i_row * Acc_sum_stride0;
      ok[half] = i_row < M;
    }
    #pragma unroll
    for (int at = 0; at < 64; ++at) {
      const int col = at / 4 * 8 + at % 2;
      const int half = at / 2 % 2;
      if (ok[half] && (col <= limit)) Acc_sum_at2[half][col * Acc_sum_stride1] = 0.0f;
    }
  }
}

// gemm_split_warps: program gemm, schedule split_warps, target sm_80
// 128 threads (math 1 x 128 threads), 65536 bytes of shared memory

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
__device__ __forceinline__ void add_global_f32(float* to, float x) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" : : "l"(to), "f"(x) : "memory");
}
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
}  // namespace ptx

extern "C" __global__ void __launch_bounds__(128, 2)
gemm_split_warps(const unsigned short* __restrict__ A_ptr, long long A_stride0, long long A_stride1,
    const unsigned short* __restrict__ B_ptr, long long B_stride0, long long B_stride1, float* Acc_sum_ptr,
    long long Acc_sum_stride0, long long Acc_sum_stride1, int M, int N, int K, Divisor i_divisor,
    Divisor n_divisor) {
  extern __shared__ __align__(128) char shared_raw[];
  const unsigned smem = ptx::shared_address(shared_raw);
  const unsigned As = smem;  // 2 x 128 x 64 bf16, 128-byte swizzle
  const unsigned Bs = smem + 32768;  // 2 x 128 x 64 bf16, 128-byte swizzle

  const int thread = threadIdx.x & 127;  // of the warpgroup
  const int lane = threadIdx.x & 31;
  const int row = thread / 32 * 32 + lane / 4;  // of its fragments: row, row + 8, row + 16 and row + 24
  const int first_col = lane % 4 * 2;  // of its fragments
  int As_stage = 0;
  float Acc[128];
  const int item = blockIdx.x;
  const int i_blocks = (M + 127) >> 7;
  const int n_blocks = (N + 127) >> 7;
  const int rest = ptx::divided(item, n_divisor);
  const int n_lo = (item - rest * n_blocks) * 128;
  const int rest2 = ptx::divided(rest, i_divisor);
  const int i_lo = (rest - rest2 * i_blocks) * 128;
  const int s = rest2;
#line 4 "schedules/ampere/gemm_split_warps.wg"
  // schedule split_warps for gemm on sm_80
  const int k_hi = (K + 63) >> 6;
  const int k_share = (max(k_hi, 0) + 7) >> 3;
  const int k_from = s * k_share;
  const int k_to = min(k_hi, k_from + k_share);
  const int k_n = max(k_to - k_from, 0);
  if (k_n > 0) {
#line 18 "schedules/ampere/gemm_split_warps.wg"
    // fill As[k+1], Bs[k+1]
    // As = A[i, k]
    {
      const unsigned tile = As + As_stage * 16384;
      const int line = thread / 8, chunk = thread % 8;
      const int i_at = i_lo + line;
      const int k_at = k_from * 64 + chunk * 8;
      const unsigned to = tile + line * 128 + (chunk ^ (line & 7)) * 16;
      const char* from = (const char*)(A_ptr + i_at * A_stride0 + k_at * A_stride1);
      const long long down = 16LL * A_stride0 * 2;
      #pragma unroll
      for (int k = 0; k < 8; ++k)
        ptx::cp_async(to + k * 2048, from + k * down, i_at + 16 * k < M ? max(min((K - k_at) * 2, 16), 0) : 0);
    }
    // Bs = B[n, k]
    {
      const unsigned tile = Bs + As_stage * 16384;
      const int line = thread / 8, chunk = thread % 8;
      const int n_at = n_lo + line;
      const int k_at = k_from * 64 + chunk * 8;
      const unsigned to = tile + line * 128 + (chunk ^ (line & 7)) * 16;
      const char* from = (const char*)(B_ptr + n_at * B_stride0 + k_at * B_stride1);
      const long long down = 16LL * B_stride0 * 2;
      #pragma unroll
      for (int k = 0; k < 8; ++k)
        ptx::cp_async(to + k * 2048, from + k * down, n_at + 16 * k < N ? max(min((K - k_at) * 2, 16), 0) : 0);
    }
    ptx::cp_async_commit();
    As_stage = As_stage == 1 ? 0 : As_stage + 1;
    #pragma unroll
    for (int at = 0; at < 128; ++at)
      Acc[at] = 0.0f;
    #pragma unroll 1
    for (int k_pos = 0; k_pos < k_n - 1; ++k_pos) {
#line 17 "schedules/ampere/gemm_split_warps.wg"
      // await As[k]
      ptx::cp_async_wait<0>();
      // As has arrived for all
      ptx::bar_sync(0 + 1, 128);
#line 18 "schedules/ampere/gemm_split_warps.wg"
      // fill As[k+1], Bs[k+1]
      // As = A[i, k]
      {
        const unsigned tile = As + As_stage * 16384;
        const int line = thread / 8, chunk = thread % 8;
        const int i_at = i_lo + line;
        const int k_at = k_from * 64 + k_pos * 64 + 64 + chunk * 8;
        const unsigned to = tile + line * 128 + (chunk ^ (line & 7)) * 16;
        const char* from = (const char*)(A_ptr + i_at * A_stride0 + k_at * A_stride1);
        const long long down = 16LL * A_stride0 * 2;
        #pragma unroll
        for (int k = 0; k < 8; ++k)
          ptx::cp_async(to + k * 2048, from + k * down, i_at + 16 * k < M ? max(min((K - k_at) * 2, 16), 0) : 0);
      }
      // Bs = B[n, k]
      {
        const unsigned tile = Bs + As_stage * 16384;
        const int line = thread / 8, chunk = thread % 8;
        const int n_at = n_lo + line;
        const int k_at = k_from * 64 + k_pos * 64 + 64 + chunk * 8;
        const unsigned to = tile + line * 128 + (chunk ^ (line & 7)) * 16;
        const char* from = (const char*)(B_ptr + n_at * B_stride0 + k_at * B_stride1);
        const long long down = 16LL * B_stride0 * 2;
        #pragma unroll
        for (int k = 0; k < 8; ++k)
          ptx::cp_async(to + k * 2048, from + k * down, n_at + 16 * k < N ? max(min((K - k_at) * 2, 16), 0) : 0);
      }
      ptx::cp_async_commit();
      As_stage = As_stage == 1 ? 0 : As_stage + 1;
#line 19 "schedules/ampere/gemm_split_warps.wg"
      // issue Acc += mma(As[k], Bs[k])
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
            ptx::mma_m16n8k16_bf16(&Acc[(2 * pair + 0) * 8 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b[0], b[1]);
            ptx::mma_m16n8k16_bf16(&Acc[(2 * pair + 0) * 8 + 4], a[1][0], a[1][1], a[1][2], a[1][3], b[0], b[1]);
            ptx::mma_m16n8k16_bf16(&Acc[(2 * pair + 1) * 8 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b[2], b[3]);
            ptx::mma_m16n8k16_bf16(&Acc[(2 * pair + 1) * 8 + 4], a[1][0], a[1][1], a[1][2], a[1][3], b[2], b[3]);
          }
        }
      }
    }
#line 17 "schedules/ampere/gemm_split_warps.wg"
    // await As[k]
    ptx::cp_async_wait<0>();
    // As has arrived for all
    ptx::bar_sync(0 + 1, 128);
#line 19 "schedules/ampere/gemm_split_warps.wg"
    // issue Acc += mma(As[k], Bs[k])
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
          ptx::mma_m16n8k16_bf16(&Acc[(2 * pair + 0) * 8 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b[0], b[1]);
          ptx::mma_m16n8k16_bf16(&Acc[(2 * pair + 0) * 8 + 4], a[1][0], a[1][1], a[1][2], a[1][3], b[0], b[1]);
          ptx::mma_m16n8k16_bf16(&Acc[(2 * pair + 1) * 8 + 0], a[0][0], a[0][1], a[0][2], a[0][3], b[2], b[3]);
          ptx::mma_m16n8k16_bf16(&Acc[(2 * pair + 1) * 8 + 4], a[1][0], a[1][1], a[1][2], a[1][3], b[2], b[3]);
        }
      }
    }
  }
  else {
    #pragma unroll
    for (int at = 0; at < 128; ++at)
      Acc[at] = 0.0f;
  }
  // finish C
  if (k_n > 0) {
#line 21 "schedules/ampere/gemm_split_warps.wg"
    // finish C
    // Acc.sum[i, n] = Acc
    {
      const int n_first = n_lo + first_col;
      float* Acc_sum_at = Acc_sum_ptr + n_first * Acc_sum_stride1;
      const int limit = N - n_first - 1;
      float* Acc_sum_at2[4];
      bool ok[4];
      #pragma unroll
      for (int half = 0; half < 4; ++half) {
        const int i_row = i_lo + 0 * 128 + row + 8 * half;
        Acc_sum_at2[half] = Acc_sum_at + i_row * Acc_sum_stride0;
        ok[half] = i_row < M;
      }
      #pragma unroll
      for (int at = 0; at < 128; ++at) {
        const int col = at / 8 * 8 + at % 2;
        const int half = at / 2 % 4;
        if (ok[half] && (col <= limit)) ptx::add_global_f32(&Acc_sum_at2[half][col * Acc_sum_stride1], Acc[at]);
      }
    }
  }
}

// gemm_split_warps_finish_C: program gemm, schedule split_warps, target sm_80
// 128 threads (finish_C 1 x 128 threads), 0 bytes of shared memory

namespace ptx {
__device__ __forceinline__ unsigned short to_bf16(float a) {
  unsigned short r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(a));
  return r;
}
}  // namespace ptx

extern "C" __global__ void __launch_bounds__(128, 1)
gemm_split_warps_finish_C(unsigned short* C_ptr, long long C_stride0, long long C_stride1,
    const float* __restrict__ Acc_sum_ptr, long long Acc_sum_stride0, long long Acc_sum_stride1, int M, int N,
    int K) {

  const int thread = threadIdx.x & 127;  // of the warpgroup
  const int lane = threadIdx.x & 31;
  const int row = thread / 32 * 16 + lane / 4;  // of its fragments: row and row + 8
  const int first_col = lane % 4 * 2;  // of its fragments
  const int item = blockIdx.x;
  const int n_blocks = (N + 127) >> 7;
  const int rest = item / n_blocks;
  const int n_lo = (item - rest * n_blocks) * 128;
  const int i_lo = rest * 64;
#line 31 "examples/gemm/gemm.wg"
  // C[i,n] = F[i,n]          when not residual
  // C[i, n] = Acc.sum[i, n]
  {
    const int n_first = n_lo + first_col;
    unsigned short* C_at = C_ptr + n_first * C_stride1;
    const float* Acc_sum_at = Acc_sum_ptr + n_first * Acc_sum_stride1;
    const int limit = N - n_first - 1;
    unsigned short* C_at2[2];
    const float* Acc_sum_at2[2];
    bool ok[2];
    #pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i_row = i_lo + row + 8 * half;
      C_at2[half] = C_at + i_row * C_stride0;
      Acc_sum_at2[half] = Acc_sum_at + i_row * Acc_sum_stride0;
      ok[half] = i_row < M;
    }
    #pragma unroll
    for (int at = 0; at < 64; ++at) {
      const int col = at / 4 * 8 + at % 2;
      const int half = at / 2 % 2;
      if (ok[half] && (col <= limit)) C_at2[half][col * C_stride1] = ptx::to_bf16((ok[half] && (col <= limit))
          ? Acc_sum_at2[half][col * Acc_sum_stride1] : 0.0f);
    }
  }
}
