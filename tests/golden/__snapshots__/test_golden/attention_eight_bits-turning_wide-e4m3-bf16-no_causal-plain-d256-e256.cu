// attention_eight_bits_turning_wide: program attention_eight_bits, schedule turning_wide, target sm...
// 512 threads (load 1 x 128 threads, turn 1 x 128 threads, math 2 x 128 threads), 221296 + 1024 byt...

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
__device__ __forceinline__ void tma_load_5d(unsigned to, const TMap& map, int c0, int c1, int c2, int c3, int c4,
    unsigned bar) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], "
      "[%7];"
      :
      : "r"(to), "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "r"(bar)
      : "memory");
}
__device__ __forceinline__ void ldmatrix_t(unsigned (&r)[4], unsigned at) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(at)
      : "memory");
}
__device__ __forceinline__ void stmatrix(unsigned to, const unsigned (&r)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
      :
      : "r"(to), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
}
__device__ __forceinline__ unsigned bytes_of(unsigned a, unsigned b, unsigned which) {
  return __byte_perm(a, b, which);
}
__device__ __forceinline__ void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}
__device__ __forceinline__ void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive(unsigned bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(bar) : "memory");
}
template <int count>
__device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(count));
}
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
}
__device__ __forceinline__ void wgmma_m64n96k32_e4m3_ss(float (&d)[48], unsigned long long a, unsigned long long b,
    int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %50, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n96k32.f32.e4m3.e4m3 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
      "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, "
      "%35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, %48, %49, p, 1, 1;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),
        "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),
        "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
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
__device__ __forceinline__ float infinity() {
  return __int_as_float(0x7f800000);
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
__device__ __forceinline__ float choose(bool which, float a, float b) {
  return which ? a : b;
}
__device__ __forceinline__ unsigned short pack_e4m3(float a, float b) {
  unsigned short r;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(b), "f"(a));
  return r;
}
__device__ __forceinline__ void wgmma_m64n128k32_e4m3_rs(float (&d)[64], unsigned a0, unsigned a1, unsigned a2,
    unsigned a3, unsigned long long b, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
      "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, "
      "%35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, "
      "%57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),
        "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),
        "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
        "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}
template <int n, int all>
__device__ __forceinline__ auto part(float (&d)[all], int at) -> float (&)[n] {
  return *reinterpret_cast<float (*)[n]>(d + at);
}
__device__ __forceinline__ float quad_sum(float a) {
  a = a + __shfl_xor_sync(~0u, a, 1);
  a = a + __shfl_xor_sync(~0u, a, 2);
  return a;
}
template <int pending>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(pending) : "memory");
}
__device__ __forceinline__ unsigned pack_bf16(float a, float b) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return r;
}
__device__ __forceinline__ void tma_store_5d(const TMap& map, int c0, int c1, int c2, int c3, int c4, unsigned from) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4, %5}], [%6];"
      :
      : "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "r"(from)
      : "memory");
}
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" : : : "memory");
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

extern "C" __global__ void __launch_bounds__(512, 1)
attention_eight_bits_turning_wide(const __grid_constant__ TMap Qs_map, const __grid_constant__ TMap Ks_map,
    const __grid_constant__ TMap Vs_map, const __grid_constant__ TMap Os_map, const float* __restrict__ q_ptr,
    long long q_stride0, long long q_stride1, const float* __restrict__ k_ptr, long long k_stride0,
    long long k_stride1, float* L_ptr, long long L_stride0, long long L_stride1, long long L_stride2,
    const float* __restrict__ v_ptr, long long v_stride0, long long v_stride1, int B, int G, int R, int M,
    int N, float scale, Divisor g_divisor, Divisor r_divisor, Divisor i_divisor) {
  extern __shared__ char shared_raw[];
  const unsigned smem = (ptx::shared_address(shared_raw) + 1023) & ~1023u;
  const unsigned Qs = smem;  // 2 x 64 x 256 e4m3, 128-byte swizzle
  const unsigned Ks = smem + 32768;  // 2 x 96 x 256 e4m3, 128-byte swizzle
  const unsigned Vs = smem + 81920;  // 96 x 256 e4m3, 128-byte swizzle
  const unsigned Os = smem + 106496;  // 2 x 64 x 256 bf16, 128-byte swizzle
  const unsigned Vt = smem + 172032;  // 2 x 256 x 96 e4m3, 32-byte swizzle
  const unsigned Qs_full = smem + 221184;  // 2 x 1 mbarriers, arrivals a phase: 1
  const unsigned Qs_empty = smem + 221200;  // 2 x 1 mbarriers, arrivals a phase: 4
  const unsigned Ks_full = smem + 221216;  // 2 mbarriers, arrivals a phase: 1
  const unsigned Ks_empty = smem + 221232;  // 2 mbarriers, arrivals a phase: 8
  const unsigned Vs_full = smem + 221248;  // 1 mbarrier, arrivals a phase: 1
  const unsigned Vs_empty = smem + 221256;  // 1 mbarrier, arrivals a phase: 4
  const unsigned Vt_full = smem + 221264;  // 2 mbarriers, arrivals a phase: 1
  const unsigned Vt_empty = smem + 221280;  // 2 mbarriers, arrivals a phase: 8
  if (threadIdx.x == 0) {
    ptx::prefetch(Qs_map);
    ptx::prefetch(Ks_map);
    ptx::prefetch(Vs_map);
    ptx::prefetch(Os_map);
    for (int k = 0; k < 2; ++k) ptx::mbarrier_init(Qs_full + 8 * k, 1);
    for (int k = 0; k < 2; ++k) ptx::mbarrier_init(Qs_empty + 8 * k, 4);
    for (int k = 0; k < 2; ++k) ptx::mbarrier_init(Ks_full + 8 * k, 1);
    for (int k = 0; k < 2; ++k) ptx::mbarrier_init(Ks_empty + 8 * k, 8);
    ptx::mbarrier_init(Vs_full, 1);
    ptx::mbarrier_init(Vs_empty, 4);
    for (int k = 0; k < 2; ++k) ptx::mbarrier_init(Vt_full + 8 * k, 1);
    for (int k = 0; k < 2; ++k) ptx::mbarrier_init(Vt_empty + 8 * k, 8);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();
  const int warpgroup = __shfl_sync(~0u, threadIdx.x >> 7, 0);

  if (warpgroup == 0) {
    // role load (one thread)
#line 188 "schedules/hopper/attention_eight_bits.wg"
    // role load : 1 warpgroup, registers 24
    ptx::setmaxnreg_dec<24>();
    const int thread = threadIdx.x & 127;  // of the warpgroup
    int Qs_phase = 0;
    int Ks_stage = 0, Ks_phase = 0;
    int Vs_phase = 0;
    if (thread == 0) {
      const int i_blocks = (M + 127) >> 7;
      const int total = B * G * R * i_blocks;
      #pragma unroll 1
      for (int item = blockIdx.x; item < total; item += gridDim.x) {
        const int rest = ptx::divided(item, i_divisor);
        const int i_lo = (item - rest * i_blocks) * 128;
        const int rest2 = ptx::divided(rest, r_divisor);
        const int r = rest - rest2 * R;
        const int rest3 = ptx::divided(rest2, g_divisor);
        const int g = rest2 - rest3 * G;
        const int b = rest3;
#line 186 "schedules/hopper/attention_eight_bits.wg"
        // schedule turning_wide extends turning_apart
        const int j_hi = (N + 95) / 96;
        const int j_n = max(j_hi, 0);
#line 140 "schedules/hopper/attention_eight_bits.wg"
        // fill Qs.0
        ptx::mbarrier_wait(Qs_empty, Qs_phase ^ 1);
        ptx::mbarrier_expect(Qs_full, 16384);
        ptx::tma_load_5d(Qs, Qs_map, 0, i_lo, 0, g * R + r, b, Qs_full);
        if (j_n > 0) {
#line 140 "schedules/hopper/attention_eight_bits.wg"
          // fill Ks[j+1]
          ptx::mbarrier_wait(Ks_empty + 8 * Ks_stage, Ks_phase ^ 1);
          ptx::mbarrier_expect(Ks_full + 8 * Ks_stage, 24576);
          ptx::tma_load_5d(Ks + Ks_stage * 24576, Ks_map, 0, j_hi * 96 - 96, 0, g, b, Ks_full + 8 * Ks_stage);
          if (++Ks_stage == 2) {
            Ks_stage = 0;
            Ks_phase ^= 1;
          }
#line 140 "schedules/hopper/attention_eight_bits.wg"
          // fill Qs.rest
          ptx::mbarrier_wait(Qs_empty + 8, Qs_phase ^ 1);
          ptx::mbarrier_expect(Qs_full + 8, 16384);
          ptx::tma_load_5d(Qs + 16384, Qs_map, 0, i_lo + 64, 0, g * R + r, b, Qs_full + 8);
          Qs_phase ^= 1;
          #pragma unroll 1
          for (int j_pos = 0; j_pos < j_n - 1; ++j_pos) {
#line 140 "schedules/hopper/attention_eight_bits.wg"
            // fill Ks[j+1]
            ptx::mbarrier_wait(Ks_empty + 8 * Ks_stage, Ks_phase ^ 1);
            ptx::mbarrier_expect(Ks_full + 8 * Ks_stage, 24576);
            ptx::tma_load_5d(Ks + Ks_stage * 24576, Ks_map, 0, j_hi * 96 - j_pos * 96 - 192, 0, g, b,
                Ks_full + 8 * Ks_stage);
            if (++Ks_stage == 2) {
              Ks_stage = 0;
              Ks_phase ^= 1;
            }
#line 140 "schedules/hopper/attention_eight_bits.wg"
            // fill Vs[j]
            ptx::mbarrier_wait(Vs_empty, Vs_phase ^ 1);
            ptx::mbarrier_expect(Vs_full, 24576);
            ptx::tma_load_5d(Vs, Vs_map, 0, j_hi * 96 - j_pos * 96 - 96, 0, g, b, Vs_full);
            Vs_phase ^= 1;
          }
#line 140 "schedules/hopper/attention_eight_bits.wg"
          // fill Vs[j]
          ptx::mbarrier_wait(Vs_empty, Vs_phase ^ 1);
          ptx::mbarrier_expect(Vs_full, 24576);
          ptx::tma_load_5d(Vs, Vs_map, 0, j_hi * 96 - j_n * 96, 0, g, b, Vs_full);
          Vs_phase ^= 1;
        }
        else {
#line 140 "schedules/hopper/attention_eight_bits.wg"
          // fill Qs.rest
          ptx::mbarrier_wait(Qs_empty + 8, Qs_phase ^ 1);
          ptx::mbarrier_expect(Qs_full + 8, 16384);
          ptx::tma_load_5d(Qs + 16384, Qs_map, 0, i_lo + 64, 0, g * R + r, b, Qs_full + 8);
          Qs_phase ^= 1;
        }
      }
    }
  }
  else if (warpgroup < 2) {
    // role turn
#line 130 "schedules/hopper/attention_eight_bits.wg"
    // role turn : 1 warpgroup, registers 40
    ptx::setmaxnreg_dec<40>();
    const int thread = threadIdx.x & 127;  // of the warpgroup
    const int lane = threadIdx.x & 31;
    int Vs_phase = 0;
    int Vt_stage = 0, Vt_phase = 0;
    const int i_blocks = (M + 127) >> 7;
    const int total = B * G * R * i_blocks;
    #pragma unroll 1
    for (int item = blockIdx.x; item < total; item += gridDim.x) {
#line 186 "schedules/hopper/attention_eight_bits.wg"
      // schedule turning_wide extends turning_apart
      const int j_hi = (N + 95) / 96;
      const int j_n = max(j_hi, 0);
      #pragma unroll 1
      for (int j_pos = 0; j_pos < j_n; ++j_pos) {
#line 142 "schedules/hopper/attention_eight_bits.wg"
        // pack Vt[j]
        ptx::mbarrier_wait(Vs_full, Vs_phase);
        ptx::mbarrier_wait(Vt_empty + 8 * Vt_stage, Vt_phase ^ 1);
        {
          const unsigned tile = Vt + Vt_stage * 24576;
          const unsigned start = Vs;
          #pragma unroll
          for (int turn = 0; turn < 4; ++turn) {
            const int block = thread / 32 + turn * 4;
            const int line = block * 16 + lane % 8 * 2 + lane / 8 % 2, column = lane / 16 * 16;
            #pragma unroll
            for (int k = 0; k < 3; ++k) {
              unsigned r2[4];
              ptx::ldmatrix_t(r2,
                  start + k * 4096 + (block * 16) / 128 * 12288 + ((lane * 128 + (block * 16) % 128 * 1) ^ (lane & 7) * 16));
              const unsigned t[4] = {ptx::bytes_of(r2[0], r2[1], 0x6420), ptx::bytes_of(r2[0], r2[1], 0x7531),
                  ptx::bytes_of(r2[2], r2[3], 0x6420), ptx::bytes_of(r2[2], r2[3], 0x7531)};
              ptx::stmatrix(tile + (k * 32 + column) / 32 * 8192 + ((line * 32 + (k * 32 + column) % 32 * 1) ^ (line >> 2 & 1) * 16), t);
            }
          }
        }
        ptx::fence_async();
        // transposed
        ptx::bar_sync(0 + 1, 128);
        if (thread == 0) {
          ptx::mbarrier_arrive(Vt_full + 8 * Vt_stage);
        }
        if (++Vt_stage == 2) {
          Vt_stage = 0;
          Vt_phase ^= 1;
        }
        if (lane == 0) ptx::mbarrier_arrive(Vs_empty);
        Vs_phase ^= 1;
      }
    }
  }
  else {
    // role math
#line 189 "schedules/hopper/attention_eight_bits.wg"
    // role math : 2 warpgroups, registers 224, split i
    ptx::setmaxnreg_inc<224>();
    const int wg = warpgroup - 2;
    const unsigned Qs_matrix = Qs / 16 + 0x10000;  // descriptor: K-major, 128-byte swizzle, LBO 16, SBO 1024
    const unsigned Ks_matrix = Ks / 16 + 0x10000;  // descriptor: K-major, 128-byte swizzle, LBO 16, SBO 1024
    const int lane = threadIdx.x & 31;
    const int first_col = lane % 4 * 2;  // of its fragments
    const unsigned Vt_matrix = Vt / 16 + 0x10000;  // descriptor: K-major, 32-byte swizzle, LBO 16, SBO 256
    const int thread = threadIdx.x & 127;  // of the warpgroup
    const int row = thread / 32 * 16 + lane / 4;  // of its fragments: row and row + 8
    int Qs_phase = 0;
    int Ks_stage = 0, Ks_phase = 0;
    int Vt_stage = 0, Vt_phase = 0;
    float S[48];
    float W[128];
    float P_max[2];
    float P_max_ref[2];
    float P_sum[2];
    unsigned P_frag[12];
    float P_max_new[2];
    float P_max_corr[2];
    float (&P)[48] = S;
    const int i_blocks2 = (M + 127) >> 7;
    const int total = B * G * R * i_blocks2;
    #pragma unroll 1
    for (int item = blockIdx.x; item < total; item += gridDim.x) {
      const int rest = ptx::divided(item, i_divisor);
      const int i_lo = (item - rest * i_blocks2) * 128;
      const int rest2 = ptx::divided(rest, r_divisor);
      const int r = rest - rest2 * R;
      const int rest3 = ptx::divided(rest2, g_divisor);
      const int g = rest2 - rest3 * G;
      const int b = rest3;
#line 186 "schedules/hopper/attention_eight_bits.wg"
      // schedule turning_wide extends turning_apart
      const int j_hi = (N + 95) / 96;
      const int j_n = max(j_hi, 0);
#line 195 "schedules/hopper/attention_eight_bits.wg"
      // await Qs
      ptx::mbarrier_wait(Qs_full + 8 * wg, Qs_phase);
      if (j_n > 0) {
#line 197 "schedules/hopper/attention_eight_bits.wg"
        // issue S[j+1] = wgmma(Qs, Ks[j+1])
        ptx::mbarrier_wait(Ks_full + 8 * Ks_stage, Ks_phase);
        ptx::wgmma_fence();
        ptx::fresh(S);
        const unsigned Qs_at = Qs_matrix + wg * 1024;
        const unsigned Ks_at = Ks_matrix + Ks_stage * 1536;
        #pragma unroll
        for (int k = 0; k < 8; ++k) {
          const unsigned long long a_matrix = ptx::matrix(Qs_at + k / 4 * 512 + k % 4 * 2, 0x40000040);
          const unsigned long long b_matrix = ptx::matrix(Ks_at + k / 4 * 768 + k % 4 * 2, 0x40000040);
          ptx::wgmma_m64n96k32_e4m3_ss(S, a_matrix, b_matrix, k != 0);
        }
        ptx::wgmma_commit();
#line 199 "schedules/hopper/attention_eight_bits.wg"
        // await S[j+1]
        ptx::wgmma_wait<0>();
        ptx::ready(S);
        if (lane == 0) ptx::mbarrier_arrive(Ks_empty + 8 * Ks_stage);
        if (++Ks_stage == 2) {
          Ks_stage = 0;
          Ks_phase ^= 1;
        }
#line 200 "schedules/hopper/attention_eight_bits.wg"
        // compute P.max[j+1]
        // S = select(N - j - 1 >= 0, S, -inf)
        {
          const int j_first = j_hi * 96 - 96 + first_col;
          const int limit = N - j_first - 1;
          #pragma unroll
          for (int at = 0; at < 48; ++at) {
            const int col = at / 4 * 8 + at % 2;
            S[at] = (col <= limit) ? S[at] : -ptx::infinity();
          }
        }
        // P.max = max(S over j)
        {
          float acc[2];
          #pragma unroll
          for (int half = 0; half < 2; ++half)
            acc[half] = -ptx::infinity();
          #pragma unroll
          for (int at = 0; at < 48; ++at) {
            const int half = at / 2 % 2;
            acc[half] = ptx::max_nan(acc[half], S[at]);
          }
          #pragma unroll
          for (int half = 0; half < 2; ++half)
            P_max[half] = ptx::quad_max(acc[half]);
        }
        // P.max.ref = select(P.max == -inf, 0.0, P.max)
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          P_max_ref[half] = (P_max[half] == -ptx::infinity()) ? 0.0f : P_max[half];
#line 201 "schedules/hopper/attention_eight_bits.wg"
        // compute P[j+1]
        // S = select(N - j - 1 >= 0, S, -inf)
        {
          const int j_first = j_hi * 96 - 96 + first_col;
          const int limit = N - j_first - 1;
          #pragma unroll
          for (int at = 0; at < 48; ++at) {
            const int col = at / 4 * 8 + at % 2;
            S[at] = (col <= limit) ? S[at] : -ptx::infinity();
          }
        }
        // P = select(N - j - 1 >= 0, exp2((((S - P.max.ref) * (((q[b, g] * scale) * k[b, g]) * 1.4426950408...
        {
          const float f = ((q_ptr[b * q_stride0 + g * q_stride1] * scale) * k_ptr[b * k_stride0 + g * k_stride1]) * 1.442695f;
          float offset[2];
          #pragma unroll
          for (int half = 0; half < 2; ++half)
            offset[half] = P_max_ref[half] * f;
          // the rounding of a large offset would swamp the difference: then subtract first
          if (__any_sync(~0u, !(fmaxf(fabsf(offset[0]), fabsf(offset[1])) <= 1024.0f))) {
            #pragma unroll
            for (int at = 0; at < 48; ++at) {
              const int half = at / 2 % 2;
              P[at] -= P_max_ref[half];
            }
            offset[0] = offset[1] = 0.0f;
          }
          const int j_first = j_hi * 96 - 96 + first_col;
          const int limit = N - j_first - 1;
          #pragma unroll
          for (int at = 0; at < 48; ++at) {
            const int half = at / 2 % 2;
            const int col = at / 4 * 8 + at % 2;
            P[at] = ptx::choose(col <= limit, ptx::exp2(fmaf(P[at], f, -offset[half]) + 8.0f), 0.0f);
          }
        }
        // P.sum = sum(P over j) of this lane
        {
          float acc[2];
          #pragma unroll
          for (int half = 0; half < 2; ++half)
            acc[half] = 0.0f;
          #pragma unroll
          for (int at = 0; at < 48; ++at) {
            const int half = at / 2 % 2;
            acc[half] = acc[half] + P[at];
          }
          #pragma unroll
          for (int half = 0; half < 2; ++half)
            P_sum[half] = acc[half];
        }
#line 203 "schedules/hopper/attention_eight_bits.wg"
        // pack P[j+1]
        #pragma unroll
        for (int at = 0; at < 12; ++at)
          P_frag[at] = ptx::pack_e4m3(P[at / 2 * 8 + at % 2 * 2],
              P[at / 2 * 8 + at % 2 * 2 + 1]) | (unsigned)ptx::pack_e4m3(P[at / 2 * 8 + at % 2 * 2 + 4],
              P[at / 2 * 8 + at % 2 * 2 + 4 + 1]) << 16;
#line 204 "schedules/hopper/attention_eight_bits.wg"
        // rescale W
        ptx::fresh(W);
        #pragma unroll 1
        for (int j_pos = 0; j_pos < j_n - 1; ++j_pos) {
#line 197 "schedules/hopper/attention_eight_bits.wg"
          // issue S[j+1] = wgmma(Qs, Ks[j+1])
          ptx::mbarrier_wait(Ks_full + 8 * Ks_stage, Ks_phase);
          ptx::wgmma_fence();
          ptx::fresh(S);
          const unsigned Qs_at2 = Qs_matrix + wg * 1024;
          const unsigned Ks_at2 = Ks_matrix + Ks_stage * 1536;
          #pragma unroll
          for (int k = 0; k < 8; ++k) {
            const unsigned long long a_matrix = ptx::matrix(Qs_at2 + k / 4 * 512 + k % 4 * 2, 0x40000040);
            const unsigned long long b_matrix = ptx::matrix(Ks_at2 + k / 4 * 768 + k % 4 * 2, 0x40000040);
            ptx::wgmma_m64n96k32_e4m3_ss(S, a_matrix, b_matrix, k != 0);
          }
          ptx::wgmma_commit();
#line 198 "schedules/hopper/attention_eight_bits.wg"
          // issue W += wgmma(Pr[j], Vt[j])
          ptx::mbarrier_wait(Vt_full + 8 * Vt_stage, Vt_phase);
          ptx::wgmma_fence();
          const unsigned Vt_at = Vt_matrix + Vt_stage * 1536;
          #pragma unroll
          for (int k = 0; k < 3; ++k) {
            const unsigned long long b_matrix = ptx::matrix(Vt_at + 512 * k, 0xc0000010);
            const unsigned long long b_matrix2 = ptx::matrix(Vt_at + 512 * k + 256, 0xc0000010);
            ptx::wgmma_m64n128k32_e4m3_rs(ptx::part<64>(W, 0), P_frag[4 * k], P_frag[4 * k + 1], P_frag[4 * k + 2],
                P_frag[4 * k + 3], b_matrix, k != 0 || j_pos > 0);
            ptx::wgmma_m64n128k32_e4m3_rs(ptx::part<64>(W, 64), P_frag[4 * k], P_frag[4 * k + 1], P_frag[4 * k + 2],
                P_frag[4 * k + 3], b_matrix2, k != 0 || j_pos > 0);
          }
          ptx::wgmma_commit();
#line 199 "schedules/hopper/attention_eight_bits.wg"
          // await S[j+1]
          ptx::wgmma_wait<1>();
          ptx::ready(S);
          if (lane == 0) ptx::mbarrier_arrive(Ks_empty + 8 * Ks_stage);
          if (++Ks_stage == 2) {
            Ks_stage = 0;
            Ks_phase ^= 1;
          }
#line 200 "schedules/hopper/attention_eight_bits.wg"
          // compute P.max[j+1]
          // P.max.new = max(P.max, S over j)
          {
            float acc[2];
            #pragma unroll
            for (int half = 0; half < 2; ++half)
              acc[half] = P_max[half];
            #pragma unroll
            for (int at = 0; at < 48; ++at) {
              const int half = at / 2 % 2;
              acc[half] = ptx::max_nan(acc[half], S[at]);
            }
            #pragma unroll
            for (int half = 0; half < 2; ++half)
              P_max_new[half] = ptx::quad_max(acc[half]);
          }
          // P.max.corr = exp2(((P.max - P.max.new) * (((q[b, g] * scale) * k[b, g]) * 1.4426950408889634)))
          {
            const float f = ((q_ptr[b * q_stride0 + g * q_stride1] * scale) * k_ptr[b * k_stride0 + g * k_stride1]) * 1.442695f;
            #pragma unroll
            for (int half = 0; half < 2; ++half)
              P_max_corr[half] = ptx::exp2((P_max[half] - P_max_new[half]) * f);
          }
          // P.max = P.max.new
          #pragma unroll
          for (int half = 0; half < 2; ++half)
            P_max[half] = P_max_new[half];
#line 201 "schedules/hopper/attention_eight_bits.wg"
          // compute P[j+1]
          // P = exp2((((S - P.max) * (((q[b, g] * scale) * k[b, g]) * 1.4426950408889634)) + 8.0))
          {
            const float f = ((q_ptr[b * q_stride0 + g * q_stride1] * scale) * k_ptr[b * k_stride0 + g * k_stride1]) * 1.442695f;
            float offset[2];
            #pragma unroll
            for (int half = 0; half < 2; ++half)
              offset[half] = P_max[half] * f;
            // the rounding of a large offset would swamp the difference: then subtract first
            if (__any_sync(~0u, !(fmaxf(fabsf(offset[0]), fabsf(offset[1])) <= 1024.0f))) {
              #pragma unroll
              for (int at = 0; at < 48; ++at) {
                const int half = at / 2 % 2;
                P[at] -= P_max[half];
              }
              offset[0] = offset[1] = 0.0f;
            }
            #pragma unroll
            for (int at = 0; at < 48; ++at) {
              const int half = at / 2 % 2;
              P[at] = ptx::exp2(fmaf(P[at], f, -offset[half]) + 8.0f);
            }
          }
          // P.sum = sum((P.sum * P.max.corr), P over j) of this lane
          {
            float acc[2];
            #pragma unroll
            for (int half = 0; half < 2; ++half)
              acc[half] = P_sum[half] * P_max_corr[half];
            #pragma unroll
            for (int at = 0; at < 48; ++at) {
              const int half = at / 2 % 2;
              acc[half] = acc[half] + P[at];
            }
            #pragma unroll
            for (int half = 0; half < 2; ++half)
              P_sum[half] = acc[half];
          }
#line 202 "schedules/hopper/attention_eight_bits.wg"
          // await W[j]
          ptx::wgmma_wait<0>();
          ptx::ready(W);
          if (lane == 0) ptx::mbarrier_arrive(Vt_empty + 8 * Vt_stage);
          if (++Vt_stage == 2) {
            Vt_stage = 0;
            Vt_phase ^= 1;
          }
#line 203 "schedules/hopper/attention_eight_bits.wg"
          // pack P[j+1]
          #pragma unroll
          for (int at = 0; at < 12; ++at)
            P_frag[at] = ptx::pack_e4m3(P[at / 2 * 8 + at % 2 * 2],
                P[at / 2 * 8 + at % 2 * 2 + 1]) | (unsigned)ptx::pack_e4m3(P[at / 2 * 8 + at % 2 * 2 + 4],
                P[at / 2 * 8 + at % 2 * 2 + 4 + 1]) << 16;
#line 204 "schedules/hopper/attention_eight_bits.wg"
          // rescale W
          // W = (W * P.max.corr)
          #pragma unroll
          for (int at = 0; at < 128; ++at) {
            const int half = at / 2 % 2;
            W[at] = W[at] * P_max_corr[half];
          }
        }
#line 198 "schedules/hopper/attention_eight_bits.wg"
        // issue W += wgmma(Pr[j], Vt[j])
        ptx::mbarrier_wait(Vt_full + 8 * Vt_stage, Vt_phase);
        ptx::wgmma_fence();
        const unsigned Vt_at = Vt_matrix + Vt_stage * 1536;
        #pragma unroll
        for (int k = 0; k < 3; ++k) {
          const unsigned long long b_matrix = ptx::matrix(Vt_at + 512 * k, 0xc0000010);
          const unsigned long long b_matrix2 = ptx::matrix(Vt_at + 512 * k + 256, 0xc0000010);
          ptx::wgmma_m64n128k32_e4m3_rs(ptx::part<64>(W, 0), P_frag[4 * k], P_frag[4 * k + 1], P_frag[4 * k + 2],
              P_frag[4 * k + 3], b_matrix, k != 0 || j_n >= 2);
          ptx::wgmma_m64n128k32_e4m3_rs(ptx::part<64>(W, 64), P_frag[4 * k], P_frag[4 * k + 1], P_frag[4 * k + 2],
              P_frag[4 * k + 3], b_matrix2, k != 0 || j_n >= 2);
        }
        ptx::wgmma_commit();
#line 202 "schedules/hopper/attention_eight_bits.wg"
        // await W[j]
        ptx::wgmma_wait<0>();
        ptx::ready(W);
        if (lane == 0) ptx::mbarrier_arrive(Vt_empty + 8 * Vt_stage);
        if (++Vt_stage == 2) {
          Vt_stage = 0;
          Vt_phase ^= 1;
        }
      }
      else {
        #pragma unroll
        for (int at = 0; at < 128; ++at)
          W[at] = 0.0f;
        // nothing seen yet
        // P.max = -inf
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          P_max[half] = -ptx::infinity();
        // P.sum = 0.0
        #pragma unroll
        for (int half = 0; half < 2; ++half)
          P_sum[half] = 0.0f;
      }
#line 204 "schedules/hopper/attention_eight_bits.wg"
      // rescale W
      if (lane == 0) ptx::mbarrier_arrive(Qs_empty + 8 * wg);
      Qs_phase ^= 1;
#line 206 "schedules/hopper/attention_eight_bits.wg"
      // finish O, L via Os
      // whole rows
      // P.sum = sum over the lanes of a row
      #pragma unroll
      for (int half = 0; half < 2; ++half)
        P_sum[half] = ptx::quad_sum(P_sum[half]);
      // finish L
      // L[b, g * R + r, i] = ((((P.max * q[b, g]) * scale) * k[b, g]) + (log2((P.sum * 0.00390625)) * 0.6...
      {
        if (lane % 4 == 0) {
          float* L_at = L_ptr + b * L_stride0 + (g * R + r) * L_stride1;
          const float f = q_ptr[b * q_stride0 + g * q_stride1];
          const float f2 = k_ptr[b * k_stride0 + g * k_stride1];
          #pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int i_row = i_lo + wg * 64 + row + 8 * half;
            if (i_row < M) L_at[i_row * L_stride2] = (((P_max[half] * f) * scale) * f2) + (log2f(P_sum[half] * 0.00390625f) * 0.6931472f);
          }
        }
      }
      // finish O
      // W = select((P.sum * 0.00390625) == 0.0, 0.0, (((W * 0.00390625) * rcp((P.sum * 0.00390625))) * v[...
      {
        const float f2 = v_ptr[b * v_stride0 + g * v_stride1];
        bool ok[2];
        float f[2];
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
          ok[half] = (P_sum[half] * 0.00390625f) == 0.0f;
          f[half] = __frcp_rn(P_sum[half] * 0.00390625f);
        }
        #pragma unroll
        for (int at = 0; at < 128; ++at) {
          const int half = at / 2 % 2;
          W[at] = ok[half] ? 0.0f : (((W[at] * 0.00390625f) * f[half]) * f2);
        }
      }
      if (thread == 0) {
        ptx::tma_store_wait_read<0>();
      }
      // Os is free
      ptx::bar_sync(wg + 2, 128);
      {
        const unsigned tile = Os + wg * 32768;
        const int line = thread / 32 * 16 + lane % 16;  // the row that this lane addresses
        const unsigned start = tile + line * 128;
        const int chunk = lane / 16 ^ (line & 7);
        #pragma unroll
        for (int pair = 0; pair < 16; ++pair) {
          unsigned r2[4];
          #pragma unroll
          for (int q = 0; q < 4; ++q) r2[q] = ptx::pack_bf16(W[8 * pair + 2 * q], W[8 * pair + 2 * q + 1]);
          ptx::stmatrix(start + pair / 4 * 8192 + (chunk ^ pair % 4 * 2) * 16, r2);
        }
      }
      ptx::fence_async();
      // written
      ptx::bar_sync(wg + 2, 128);
      if (thread == 0) {
        ptx::tma_store_5d(Os_map, 0, i_lo + wg * 64, 0, g * R + r, b, Os + wg * 32768);
        ptx::tma_store_commit();
      }
    }
    // the last store has read its buffer
    if (thread == 0) {
      ptx::tma_store_wait_read<0>();
    }
  }
}
