// gemm_split_zero_Acc_sum: program gemm, schedule split, target sm_90a
// 128 threads (zero_Acc.sum 1 x 128 threads), 0 + 1024 bytes of shared memory

extern "C" __global__ void __launch_bounds__(128, 1)
gemm_split_zero_Acc_sum(float* Acc_sum_ptr, long long Acc_sum_stride0, long long Acc_sum_stride1, int M, int N,
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

// gemm_split: program gemm, schedule split, target sm_90a
// 384 threads (load 1 x 128 threads, math 2 x 128 threads), 196704 + 1024 bytes of shared memory

struct alignas(64) TMap { unsigned long long v[16]; };

struct Divisor { int value; unsigned multiplier, shift; };

namespace ptx {
template <int count>
__device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(count));
}
__device__ __forceinline__ int divided(int x, Divisor d) {
  return __umulhi(2u * x, d.multiplier) >> d.shift;
}
__device__ __forceinline__ void mbarrier_wait(unsigned bar, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n"
      :
      : "r"(bar), "r"(parity)
      : "memory");
}
__device__ __forceinline__ void mbarrier_expect(unsigned bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void tma_load_2d(unsigned to, const TMap& map, int c0, int c1, unsigned bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      :
      : "r"(to), "l"(&map), "r"(c0), "r"(c1), "r"(bar)
      : "memory");
}
template <int count>
__device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(count));
}
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
}
__device__ __forceinline__ void wgmma_m64n128k16_bf16_ss(float (&d)[64], unsigned long long a, unsigned long long b,
    int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
      "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, "
      "%35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, "
      "%57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),
        "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),
        "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
        "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"(accumulate));
}
template <int n>
__device__ __forceinline__ void fresh(float (&d)[n]) {
  #pragma unroll
  for (int k = 0; k < n; ++k)
    asm volatile("" : "=f"(d[k]));
}
__device__ __forceinline__ unsigned long long matrix(unsigned low, unsigned high) {
  return (unsigned long long)high << 32 | low;
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}
template <int pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(pending) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive(unsigned bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(bar) : "memory");
}
template <int n>
__device__ __forceinline__ void ready(float (&d)[n]) {
  #pragma unroll
  for (int k = 0; k < n; ++k)
    asm volatile("" : "+f"(d[k]));
}
__device__ __forceinline__ void add_global_f32(float* to, float x) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" : : "l"(to), "f"(x) : "memory");
}
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void prefetch(const TMap& map) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(&map) : "memory");
}
__device__ __forceinline__ void mbarrier_init(unsigned bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}
}  // namespace ptx

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_split(const __grid_constant__ TMap As_map, const __grid_constant__ TMap Bs_map, float* Acc_sum_ptr,
    long long Acc_sum_stride0, long long Acc_sum_stride1, int M, int N, int K, Divisor i_divisor,
    Divisor n_divisor) {
  extern __shared__ char shared_raw[];
  const unsigned smem = (ptx::shared_address(shared_raw) + 1023) & ~1023u;
  const unsigned As = smem;  // 6 x 2 x 64 x 64 bf16, 128-byte swizzle
  const unsigned Bs = smem + 98304;  // 6 x 128 x 64 bf16, 128-byte swizzle
  const unsigned As_full = smem + 196608;  // 6 mbarriers, arrivals a phase: 1
  const unsigned As_empty = smem + 196656;  // 6 mbarriers, arrivals a phase: 8
  if (threadIdx.x == 0) {
    ptx::prefetch(As_map);
    ptx::prefetch(Bs_map);
    for (int k = 0; k < 6; ++k) ptx::mbarrier_init(As_full + 8 * k, 1);
    for (int k = 0; k < 6; ++k) ptx::mbarrier_init(As_empty + 8 * k, 8);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  const int warpgroup = __shfl_sync(~0u, threadIdx.x >> 7, 0);

  if (warpgroup == 0) {
    // role load (one thread)
#line 10 "schedules/hopper/gemm_split.wg"
    // role load : 1 warpgroup, registers 24
    ptx::setmaxnreg_dec<24>();
    const int thread = threadIdx.x & 127;  // of the warpgroup
    int As_stage = 0, As_phase = 0;
    if (thread == 0) {
      const int item = blockIdx.x;
      const int i_blocks = (M + 127) >> 7;
      const int n_blocks = (N + 127) >> 7;
      const int rest = ptx::divided(item, n_divisor);
      const int n_lo = (item - rest * n_blocks) * 128;
      const int rest2 = ptx::divided(rest, i_divisor);
      const int i_lo = (rest - rest2 * i_blocks) * 128;
      const int s = rest2;
#line 4 "schedules/hopper/gemm_split.wg"
      // schedule split for gemm on sm_90a
      const int k_hi = (K + 63) >> 6;
      const int k_share = (max(k_hi, 0) + 7) >> 3;
      const int k_from = s * k_share;
      const int k_to = min(k_hi, k_from + k_share);
      const int k_n = max(k_to - k_from, 0);
      #pragma unroll 1
      for (int k_pos = 0; k_pos < k_n; ++k_pos) {
#line 17 "schedules/hopper/gemm_split.wg"
        // fill As[k], Bs[k]
        ptx::mbarrier_wait(As_empty + 8 * As_stage, As_phase ^ 1);
        ptx::mbarrier_expect(As_full + 8 * As_stage, 32768);
        ptx::tma_load_2d(As + As_stage * 16384, As_map, k_from * 64 + k_pos * 64, i_lo, As_full + 8 * As_stage);
        ptx::tma_load_2d(As + As_stage * 16384 + 8192, As_map, k_from * 64 + k_pos * 64, i_lo + 64,
            As_full + 8 * As_stage);
        ptx::tma_load_2d(Bs + As_stage * 16384, Bs_map, k_from * 64 + k_pos * 64, n_lo, As_full + 8 * As_stage);
        if (++As_stage == 6) {
          As_stage = 0;
          As_phase ^= 1;
        }
      }
    }
  }
  else {
    // role math
#line 11 "schedules/hopper/gemm_split.wg"
    // role math : 2 warpgroups, registers 240, split i
    ptx::setmaxnreg_inc<240>();
    const int wg = warpgroup - 1;
    const unsigned As_matrix = As / 16 + 0x10000;  // descriptor: K-major, 128-byte swizzle, LBO 16, SBO 1024
    const unsigned Bs_matrix = Bs / 16 + 0x10000;  // descriptor: K-major, 128-byte swizzle, LBO 16, SBO 1024
    const int lane = threadIdx.x & 31;
    const int thread = threadIdx.x & 127;  // of the warpgroup
    const int row = thread / 32 * 16 + lane / 4;  // of its fragments: row and row + 8
    const int first_col = lane % 4 * 2;  // of its fragments
    int As_stage = 0, As_phase = 0;
    float Acc[64];
    const int item = blockIdx.x;
    const int i_blocks = (M + 127) >> 7;
    const int n_blocks = (N + 127) >> 7;
    const int rest = ptx::divided(item, n_divisor);
    const int n_lo = (item - rest * n_blocks) * 128;
    const int rest2 = ptx::divided(rest, i_divisor);
    const int i_lo = (rest - rest2 * i_blocks) * 128;
    const int s = rest2;
#line 4 "schedules/hopper/gemm_split.wg"
    // schedule split for gemm on sm_90a
    const int k_hi = (K + 63) >> 6;
    const int k_share = (max(k_hi, 0) + 7) >> 3;
    const int k_from = s * k_share;
    const int k_to = min(k_hi, k_from + k_share);
    const int k_n = max(k_to - k_from, 0);
    if (k_n > 0) {
#line 22 "schedules/hopper/gemm_split.wg"
      // issue Acc += wgmma(As[k], Bs[k])
      ptx::mbarrier_wait(As_full + 8 * As_stage, As_phase);
      ptx::wgmma_fence();
      ptx::fresh(Acc);
      const unsigned As_at = As_matrix + As_stage * 1024 + wg * 512;
      const unsigned Bs_at = Bs_matrix + As_stage * 1024;
      #pragma unroll
      for (int k = 0; k < 4; ++k) {
        const unsigned long long a_matrix = ptx::matrix(As_at + 2 * k, 0x40000040);
        const unsigned long long b_matrix = ptx::matrix(Bs_at + 2 * k, 0x40000040);
        ptx::wgmma_m64n128k16_bf16_ss(Acc, a_matrix, b_matrix, k != 0);
      }
      ptx::wgmma_commit();
      #pragma unroll 1
      for (int k_pos = 1; k_pos < k_n; ++k_pos) {
#line 22 "schedules/hopper/gemm_split.wg"
        // issue Acc += wgmma(As[k], Bs[k])
        if (++As_stage == 6) {
          As_stage = 0;
          As_phase ^= 1;
        }
        ptx::mbarrier_wait(As_full + 8 * As_stage, As_phase);
        ptx::wgmma_fence();
        const unsigned As_at2 = As_matrix + As_stage * 1024 + wg * 512;
        const unsigned Bs_at2 = Bs_matrix + As_stage * 1024;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          const unsigned long long a_matrix = ptx::matrix(As_at2 + 2 * k, 0x40000040);
          const unsigned long long b_matrix = ptx::matrix(Bs_at2 + 2 * k, 0x40000040);
          ptx::wgmma_m64n128k16_bf16_ss(Acc, a_matrix, b_matrix, 1);
        }
        ptx::wgmma_commit();
#line 23 "schedules/hopper/gemm_split.wg"
        // await Acc[k-1]
        ptx::wgmma_wait<1>();
        const int As_back1 = As_stage < 1 ? As_stage + 5 : As_stage - 1;
        if (lane == 0) ptx::mbarrier_arrive(As_empty + 8 * As_back1);
      }
#line 23 "schedules/hopper/gemm_split.wg"
      // await Acc[k-1]
      ptx::wgmma_wait<0>();
      ptx::ready(Acc);
      if (lane == 0) ptx::mbarrier_arrive(As_empty + 8 * As_stage);
      if (++As_stage == 6) {
        As_stage = 0;
        As_phase ^= 1;
      }
    }
    else {
      #pragma unroll
      for (int at = 0; at < 64; ++at)
        Acc[at] = 0.0f;
    }
    // finish C
    if (k_n > 0) {
#line 25 "schedules/hopper/gemm_split.wg"
      // finish C
      // Acc.sum[i, n] = Acc
      {
        const int n_first = n_lo + first_col;
        float* Acc_sum_at = Acc_sum_ptr + n_first * Acc_sum_stride1;
        const int limit = N - n_first - 1;
        float* Acc_sum_at2[2];
        bool ok[2];
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int i_row = i_lo + wg * 64 + row + 8 * half;
          Acc_sum_at2[half] = Acc_sum_at + i_row * Acc_sum_stride0;
          ok[half] = i_row < M;
        }
        #pragma unroll
        for (int at = 0; at < 64; ++at) {
          const int col = at / 4 * 8 + at % 2;
          const int half = at / 2 % 2;
          if (ok[half] && (col <= limit)) ptx::add_global_f32(&Acc_sum_at2[half][col * Acc_sum_stride1], Acc[at]);
        }
      }
    }
  }
}

// gemm_split_finish_C: program gemm, schedule split, target sm_90a
// 128 threads (finish_C 1 x 128 threads), 0 + 1024 bytes of shared memory

namespace ptx {
__device__ __forceinline__ unsigned short to_bf16(float a) {
  unsigned short r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(a));
  return r;
}
}  // namespace ptx

extern "C" __global__ void __launch_bounds__(128, 1)
gemm_split_finish_C(unsigned short* C_ptr, long long C_stride0, long long C_stride1,
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
