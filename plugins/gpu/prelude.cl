/* SPDX-License-Identifier: Apache-2.0 */
/* Precedes every program. A pointer is passed as a buffer and an offset in bytes, since values of a plan share one
 * buffer. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
/* In the list of arguments, and at the beginning of the body:
 *   __kernel void f(IN(x), OUT(y), const long n) { GET_IN(float, x); GET_OUT(float, y); ... x[i] ... } */
#define IN(name) __global const uchar *name##_base, const ulong name##_at
#define OUT(name) __global uchar *name##_base, const ulong name##_at
#define GET_IN(type, name) __global const type *name = (__global const type *)(name##_base + name##_at)
#define GET_OUT(type, name) __global type *name = (__global type *)(name##_base + name##_at)

/* A kernel that may meet invalid elements has FAULT in its arguments, reports each with FAULT_AT(place, value), and
 * continues with another value. The first launch that reports one owns the words (plugins/gpu/step/fault.c reads
 * them): 0: 1 + its number; 1: the lowest place so far, counted down from the largest number; 2: the number of notes.
 * A note is made only if the place is lower than all before, so few are enough. */
#define FAULT __global uint *fault_words, const ulong fault_call
#define FAULT_AT(place, value) note_fault(fault_words, fault_call, place, value)
#define FAULT_NOTES 63
static void note_fault(volatile __global uint *words, const ulong call, const long place, const long value)
{
  const uint mine = (uint)call + 1, holder = atomic_cmpxchg(words, 0, mine);
  if (holder != 0 && holder != mine) return;
  const uint rank = place < 0xfffffffel ? 0xffffffff - (uint)place : 1;
  if (atomic_max(words + 1, rank) >= rank) return;
  const uint note = atomic_inc(words + 2);
  if (note >= FAULT_NOTES) return;
  volatile __global long *to = (volatile __global long *)(words + 4) + 2 * note;
  to[0] = place;
  to[1] = value;
}

/* Elements of the two short types are numbers of 16 bits in memory and float in computing; all others are what they
 * are. LOAD_PLAIN, LOAD_HALF and LOAD_BFLOAT16 are what a kernel's options name LOAD, see gpu_define_elements. */
#define LOAD_PLAIN(p, i) ((p)[i])
#define STORE_PLAIN(p, i, v) ((p)[i] = (v))
#define LOAD4_PLAIN(p, i) vload4(0, (p) + (i))
#define STORE4_PLAIN(p, i, v) vstore4(v, 0, (p) + (i))
#define ROUND_PLAIN(v) (v)
#define ROUND4_PLAIN(v) (v)
#define LOAD_HALF(p, i) vload_half(i, (const __global half *)(p))
#define STORE_HALF(p, i, v) vstore_half_rte(v, i, (__global half *)(p))
#define LOAD4_HALF(p, i) vload_half4(0, (const __global half *)(p) + (i))
#define STORE4_HALF(p, i, v) vstore_half4_rte(v, 0, (__global half *)(p) + (i))
#define LOAD_BFLOAT16(p, i) as_float((uint)(p)[i] << 16)
#define STORE_BFLOAT16(p, i, v) ((p)[i] = (ushort)(as_uint(ROUND_BFLOAT16(v)) >> 16))
#define LOAD4_BFLOAT16(p, i) as_float4(convert_uint4(vload4(0, (p) + (i))) << 16)
#define STORE4_BFLOAT16(p, i, v) vstore4(convert_ushort4(as_uint4(ROUND4_BFLOAT16(v)) >> 16), 0, (p) + (i))
/* Floats as the short types would hold them: to the nearest, halves to even. */
#define ROUNDING(half_name, bfloat16_name, F, U, as_F, as_U)                                                           \
  static F bfloat16_name(F x)                                                                                          \
  {                                                                                                                    \
    U u = as_U(x);                                                                                                     \
    F r = as_F((u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u);                                                          \
    return x != x ? as_F((u & 0xffff0000u) | 0x400000u) : r;                                                           \
  }                                                                                                                    \
  static F half_name(F x)                                                                                              \
  {                                                                                                                    \
    U u = as_U(x);                                                                                                     \
    F r = as_F((u + 0xfffu + (u >> 13 & 1u)) & 0xffffe000u), a = fabs(x);                                              \
    F small = copysign((a + 0.5f) - 0.5f, x); /* the types' steps are as wide as those of float above a half */        \
    r = a >= 65520.0f ? copysign((F)INFINITY, x) : r;                                                                  \
    r = a < 0x1p-14f ? small : r;                                                                                      \
    return x != x ? x : r;                                                                                             \
  }
ROUNDING(ROUND_HALF, ROUND_BFLOAT16, float, uint, as_float, as_uint)
ROUNDING(ROUND4_HALF, ROUND4_BFLOAT16, float4, uint4, as_float4, as_uint4)

/* A window that slides over images, as ops/kernel/window.h fills it in. */
typedef struct image_window {
  int h, w, c, oh, ow, oc; /* images and results, all channels */
  int kh, kw, kc;          /* the window; channels of a filter */
  int stride_y, stride_x, dilation_y, dilation_x, before_y, before_x;
  int unused;
} image_window;
