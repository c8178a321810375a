// gemm_scaled_scaled_promoted: program gemm_scaled, schedule scaled_promoted, target sm_90a
// 384 threads (load 1 x 128 threads, math 2 x 128 threads), 163904 + 1024 bytes of shared memory

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
__device__ __forceinline__ void wgmma_m64n128k32_e4m3_ss(float (&d)[64], unsigned long long a, unsigned long long b,
    int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
      "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, "
      "%35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, "
      "%57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1;\n"
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
template <int n>
__device__ __forceinline__ void ready(float (&d)[n]) {
  #pragma unroll
  for (int k = 0; k < n; ++k)
    asm volatile("" : "+f"(d[k]));
}
__device__ __forceinline__ void mbarrier_arrive(unsigned bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(bar) : "memory");
}
template <int pending>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(pending) : "memory");
}
__device__ __forceinline__ void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ unsigned pack_bf16(float a, float b) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return r;
}
__device__ __forceinline__ void stmatrix(unsigned to, const unsigned (&r)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
      :
      : "r"(to), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
}
__device__ __forceinline__ void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}
__device__ __forceinline__ void tma_store_2d(const TMap& map, int c0, int c1, unsigned from) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
      :
      : "l"(&map), "r"(c0), "r"(c1), "r"(from)
      : "memory");
}
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" : : : "memory");
}
__device__ __forceinline__ unsigned short load_shared_b16(unsigned at) {
  unsigned short value;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(at) : "memory");
  return value;
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
gemm_scaled_scaled_promoted(const __grid_constant__ TMap As_map, const __grid_constant__ TMap Bs_map,
    const __grid_constant__ TMap Cs_map, const float* __restrict__ a_ptr, long long a_stride0,
    const float* __restrict__ b_ptr, long long b_stride0, unsigned short* C_ptr, long long C_stride0,
    long long C_stride1, int M, int N, int K, Divisor i_divisor, int C_tma) {
  extern __shared__ char shared_raw[];
  const unsigned smem = (ptx::shared_address(shared_raw) + 1023) & ~1023u;
  const unsigned As = smem;  // 4 x 2 x 64 x 128 e4m3, 128-byte swizzle
  const unsigned Bs = smem + 65536;  // 4 x 128 x 128 e4m3, 128-byte swizzle
  const unsigned Cs = smem + 131072;  // 2 x 64 x 128 bf16, 128-byte swizzle
  const unsigned As_full = smem + 163840;  // 4 mbarriers, arrivals a phase: 1
  const unsigned As_empty = smem + 163872;  // 4 mbarriers, arrivals a phase: 8
  if (threadIdx.x == 0) {
    ptx::prefetch(As_map);
    ptx::prefetch(Bs_map);
    ptx::prefetch(Cs_map);
    for (int k = 0; k < 4; ++k) ptx::mbarrier_init(As_full + 8 * k, 1);
    for (int k = 0; k < 4; ++k) ptx::mbarrier_init(As_empty + 8 * k, 8);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  const int warpgroup = __shfl_sync(~0u, threadIdx.x >> 7, 0);

  if (warpgroup == 0) {
    // role load (one thread)
#line 10 "schedules/hopper/gemm_scaled.wg"
    // role load : 1 warpgroup, registers 24
    ptx::setmaxnreg_dec<24>();
    const int thread = threadIdx.x & 127;  // of the warpgroup
    int As_stage = 0, As_phase = 0;
    if (thread == 0) {
      const int n_blocks = (N + 127) >> 7;
      const int i_blocks = (M + 127) >> 7;
      const int total = n_blocks * i_blocks;
      #pragma unroll 1
      for (int item = blockIdx.x; item < total; item += gridDim.x) {
        const int rest = ptx::divided(item, i_divisor);
        const int i_lo = (item - rest * i_blocks) * 128;
        const int n_lo = rest * 128;
#line 38 "schedules/hopper/gemm_scaled.wg"
        // schedule scaled_promoted extends scaled
        const int k_hi = (K + 127) >> 7;
        const int k_n = max(k_hi, 0);
        #pragma unroll 1
        for (int k_pos = 0; k_pos < k_n; ++k_pos) {
#line 18 "schedules/hopper/gemm_scaled.wg"
          // fill As[k], Bs[k]
          ptx::mbarrier_wait(As_empty + 8 * As_stage, As_phase ^ 1);
          ptx::mbarrier_expect(As_full + 8 * As_stage, 32768);
          ptx::tma_load_2d(As + As_stage * 16384, As_map, k_pos * 128, i_lo, As_full + 8 * As_stage);
          ptx::tma_load_2d(As + As_stage * 16384 + 8192, As_map, k_pos * 128, i_lo + 64, As_full + 8 * As_stage);
          ptx::tma_load_2d(Bs + As_stage * 16384, Bs_map, k_pos * 128, n_lo, As_full + 8 * As_stage);
          if (++As_stage == 4) {
            As_stage = 0;
            As_phase ^= 1;
          }
        }
      }
    }
  }
  else {
    // role math
#line 11 "schedules/hopper/gemm_scaled.wg"
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
    float Acc_part[64];
    const int n_blocks = (N + 127) >> 7;
    const int i_blocks = (M + 127) >> 7;
    const int total = n_blocks * i_blocks;
    #pragma unroll 1
    for (int item = blockIdx.x; item < total; item += gridDim.x) {
      const int rest = ptx::divided(item, i_divisor);
      const int i_lo = (item - rest * i_blocks) * 128;
      const int n_lo = rest * 128;
#line 38 "schedules/hopper/gemm_scaled.wg"
      // schedule scaled_promoted extends scaled
      const int k_hi = (K + 127) >> 7;
      const int k_n = max(k_hi, 0);
#line 44 "schedules/hopper/gemm_scaled.wg"
      // for k
      #pragma unroll
      for (int at = 0; at < 64; ++at)
        Acc[at] = 0.0f;
      #pragma unroll 1
      for (int k_pos = 0; k_pos < k_n; ++k_pos) {
#line 45 "schedules/hopper/gemm_scaled.wg"
        // issue Acc += wgmma(As[k], Bs[k])
        ptx::mbarrier_wait(As_full + 8 * As_stage, As_phase);
        ptx::wgmma_fence();
        ptx::fresh(Acc_part);
        const unsigned As_at = As_matrix + As_stage * 1024 + wg * 512;
        const unsigned Bs_at = Bs_matrix + As_stage * 1024;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          const unsigned long long a_matrix = ptx::matrix(As_at + 2 * k, 0x40000040);
          const unsigned long long b_matrix = ptx::matrix(Bs_at + 2 * k, 0x40000040);
          ptx::wgmma_m64n128k32_e4m3_ss(Acc_part, a_matrix, b_matrix, k != 0);
        }
        ptx::wgmma_commit();
#line 46 "schedules/hopper/gemm_scaled.wg"
        // await Acc[k]
        ptx::wgmma_wait<0>();
        ptx::ready(Acc_part);
        if (lane == 0) ptx::mbarrier_arrive(As_empty + 8 * As_stage);
        if (++As_stage == 4) {
          As_stage = 0;
          As_phase ^= 1;
        }
        // Acc, by threads
        // Acc = (Acc + Acc.part)
        #pragma unroll
        for (int at = 0; at < 64; ++at)
          Acc[at] = Acc[at] + Acc_part[at];
      }
#line 48 "schedules/hopper/gemm_scaled.wg"
      // finish C via Cs
      // finish C
      // Acc = ((Acc * a[i]) * b[n])
      {
        const int n_first = n_lo + first_col;
        const float* b_at = b_ptr + n_first * b_stride0;
        const int limit = N - n_first - 1;
        float f[2];
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int i_row = i_lo + wg * 64 + row + 8 * half;
          f[half] = (i_row < M) ? a_ptr[i_row * a_stride0] : 0.0f;
        }
        #pragma unroll
        for (int pair = 0; pair < 32; ++pair) {
          const int col = pair / 2 * 8 + pair % 2;
          const float f2 = (col <= limit) ? b_at[col * b_stride0] : 0.0f;
          #pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int at = pair / 2 * 4 + half * 2 + pair % 2;
            Acc[at] = (Acc[at] * f[half]) * f2;
          }
        }
      }
      if (thread == 0) {
        ptx::tma_store_wait_read<0>();
      }
      // Cs is free
      ptx::bar_sync(wg + 1, 128);
      {
        const unsigned tile = Cs + wg * 16384;
        const int line = thread / 32 * 16 + lane % 16;  // the row that this lane addresses
        const unsigned start = tile + line * 128;
        const int chunk = lane / 16 ^ (line & 7);
        #pragma unroll
        for (int pair = 0; pair < 8; ++pair) {
          unsigned r[4];
          #pragma unroll
          for (int q = 0; q < 4; ++q) r[q] = ptx::pack_bf16(Acc[8 * pair + 2 * q], Acc[8 * pair + 2 * q + 1]);
          ptx::stmatrix(start + pair / 4 * 8192 + (chunk ^ pair % 4 * 2) * 16, r);
        }
      }
      // a row pitch that suits the tensor map
      if (C_tma) {
#line 48 "schedules/hopper/gemm_scaled.wg"
        // finish C via Cs
        ptx::fence_async();
        // written
        ptx::bar_sync(wg + 1, 128);
        if (thread == 0) {
          ptx::tma_store_2d(Cs_map, n_lo, i_lo + wg * 64, Cs + wg * 16384);
          ptx::tma_store_2d(Cs_map, n_lo + 64, i_lo + wg * 64, Cs + wg * 16384 + 8192);
          ptx::tma_store_commit();
        }
      }
      else {
#line 48 "schedules/hopper/gemm_scaled.wg"
        // finish C via Cs
        // written
        ptx::bar_sync(wg + 1, 128);
        // C[i, n], element by element
        {
          const unsigned tile = Cs + wg * 16384;
          #pragma unroll 4
          for (int at = thread; at < 8192; at += 128) {
            const int line = at / 128, column = at % 128;
            const int i_at = i_lo + wg * 64 + line;
            const int n_at = n_lo + column;
            const unsigned from = tile + column / 64 * 8192 + ((line * 128 + column % 64 * 2) ^ (line & 7) * 16);
            if (i_at < M && n_at < N) C_ptr[i_at * C_stride0 + n_at * C_stride1] = ptx::load_shared_b16(from);
          }
        }
      }
    }
    // the last store has read its buffer
    if (thread == 0) {
#line 48 "schedules/hopper/gemm_scaled.wg"
      // finish C via Cs
      ptx::tma_store_wait_read<0>();
    }
  }
}
