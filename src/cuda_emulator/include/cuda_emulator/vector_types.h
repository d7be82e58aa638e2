// CUDA's small vectors (float2, int4, dim3 ...) with their sizes, alignments and make_ functions.
// Part of the emulator's cuda_runtime.h.
#pragma once

#define NEEDLE_VECTORS(type, name, align2, align4)                            \
  struct name##1 { type x; };                                                 \
  struct alignas(align2) name##2 { type x, y; };                              \
  struct name##3 { type x, y, z; };                                           \
  struct alignas(align4) name##4 { type x, y, z, w; };                        \
  inline name##1 make_##name##1(type x) { return {x}; }                       \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

NEEDLE_VECTORS(signed char, char, 2, 4)
NEEDLE_VECTORS(unsigned char, uchar, 2, 4)
NEEDLE_VECTORS(short, short, 4, 8)
NEEDLE_VECTORS(unsigned short, ushort, 4, 8)
NEEDLE_VECTORS(int, int, 8, 16)
NEEDLE_VECTORS(unsigned int, uint, 8, 16)
NEEDLE_VECTORS(long long, longlong, 16, 16)
NEEDLE_VECTORS(unsigned long long, ulonglong, 16, 16)
NEEDLE_VECTORS(float, float, 8, 16)
NEEDLE_VECTORS(double, double, 16, 16)

#undef NEEDLE_VECTORS

struct dim3 {
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }

  unsigned x, y, z;
};
