// exp, log, tanh, sigmoid, sin, cos and power of one float, without branches or calls, so that a
// plain loop `out[i] = exp_f32(a[i])` becomes vector code (libm's functions never do).
// Needs g++ or clang++ and IEEE floats (never -ffast-math); -fno-math-errno -fno-trapping-math let
// g++ turn the selections `c ? a : b` into blends. Used through common/ops.def.
//
// How the coefficients were found: each polynomial minimises the largest relative error of the
// function's result over the reduced interval (weighted least squares, reweighted until the error
// is level), from values of 50 digits. Then, lowest power first, one coefficient after another is
// rounded to float and the others are fitted again around it.
//
// Largest errors measured against libm in double, over every 11th of the 2^32 floats (without FMA
// every 53rd; power: 16 million random pairs). Half an ulp is the rounding of the result itself.
//
//              ulp, with FMA   without   notes
//   exp             1.01         0.98    results below 2^-126 are denormal, within 0.75 units
//   log             0.80         0.77    denormal arguments included
//   tanh            2.59         2.53    relative, down to the smallest argument
//   sigmoid         2.82         2.61    denormal results below -87.3 as in exp
//   sin, cos        1.54         1.54    every finite argument, however large
//   power           0.51         0.51    worked in double
//
// NaN, infinities and signed zeros follow numpy.
#pragma once

#include <cstdint>

#ifndef NEEDLE_ISA
#error "define NEEDLE_ISA (baseline, avx2 or avx512): each instruction set has its own namespace"
#endif

namespace needle::cpu::NEEDLE_ISA {

// A float's or double's bits, and back. __builtin_memcpy, since std::memcpy and std::bit_cast would
// be shared by the linker across the instruction sets.
static inline uint32_t float_bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float bits_float(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint64_t double_bits(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline double bits_double(uint64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

constexpr uint32_t kSignBit = 0x80000000u;
constexpr float kInfinity = __builtin_inff();
constexpr float kNaN = __builtin_nanf("");

// |x|; a mask rather than fabsf, so that no library is asked.
static inline float magnitude(float x) { return bits_float(float_bits(x) & ~kSignBit); }

// x with its sign flipped where `sign` has its top bit set.
static inline float flip_sign(float x, uint32_t sign) {
  return bits_float(float_bits(x) ^ (sign & kSignBit));
}

// Adding 1.5 * 2^23 to a float below 2^22 in magnitude (1.5 * 2^52 to a double below 2^51) leaves
// no bits for a fraction: the sum is rounded to an integer, and its lowest bits hold that integer.
constexpr float kRoundFloat = 0x1.8p23f;
constexpr double kRoundDouble = 0x1.8p52;

// x = n ln 2 + r with |r| <= ln 2 / 2. ln 2 comes in two parts: n * kLn2High is exact.
constexpr float kLog2E = 1.44269502f;
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194442e-4f;

struct ExpParts {
  float expm1_r;  // e^r - 1, |r| <= 0.347
  int32_t n;      // x = n ln 2 + r
};

// Split e^x into 2^n and e^r for |x| <= 104 (NaN gives NaN and an n without meaning).
static inline ExpParts exp_parts(float x) {
  const float shifted = x * kLog2E + kRoundFloat;
  const float n = shifted - kRoundFloat;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  // e^r = 1 + r + r^2 q(r)
  float q = 1.38214545e-3f;
  q = q * r + 8.36866163e-3f;
  q = q * r + 4.16682549e-2f;
  q = q * r + 1.66665211e-1f;
  q = q * r + 4.99999940e-1f;
  return {q * (r * r) + r, static_cast<int32_t>(float_bits(shifted) - float_bits(kRoundFloat))};
}

// 2^n for -126 <= n <= 127.
static inline float power_of_two(int32_t n) {
  return bits_float(static_cast<uint32_t>(n + 127) << 23);
}

// e^x. Overflows to inf above 88.72; results below 2^-126 are denormal, 0 below -103.98.
static inline float exp_f32(float x) {
  x = x > 89.0f ? 89.0f : x;  // written so that a NaN passes
  x = x < -104.0f ? -104.0f : x;
  const ExpParts parts = exp_parts(x);
  // 2^n may be neither normal nor finite: multiply by two halves of it, the second rounds.
  const int32_t half = parts.n >> 1;
  return (1.0f + parts.expm1_r) * power_of_two(half) * power_of_two(parts.n - half);
}

struct LogParts {
  float f;    // x = 2^exponent (1 + f), sqrt(1/2) - 1 <= f < sqrt(2) - 1
  int32_t e;  // the exponent
};

// Split a positive finite x, denormal or not.
static inline LogParts log_parts(float x) {
  const bool denormal = x < 0x1p-126f;
  const float normal = denormal ? x * 0x1p23f : x;
  constexpr uint32_t kSqrtHalf = 0x3f3504f3u;  // the bits of sqrt(1/2)
  const uint32_t above = float_bits(normal) - kSqrtHalf;
  const int32_t e = (static_cast<int32_t>(above) >> 23) - (denormal ? 23 : 0);
  return {bits_float((above & 0x7fffffu) + kSqrtHalf) - 1.0f, e};
}

// The natural logarithm; -inf at 0, NaN below.
static inline float log_f32(float x) {
  const LogParts parts = log_parts(x);
  const float f = parts.f;
  const float e = static_cast<float>(parts.e);
  // log(1 + f) = f - f^2 / 2 + f^3 q(f)
  float q = 6.74956970e-2f;
  q = q * f - 1.16701990e-1f;
  q = q * f + 1.18834689e-1f;
  q = q * f - 1.24062069e-1f;
  q = q * f + 1.42203629e-1f;
  q = q * f - 1.66679904e-1f;
  q = q * f + 2.00020716e-1f;
  q = q * f - 2.50000089e-1f;
  q = q * f + 3.33333135e-1f;
  const float square = f * f;
  // Smallest terms first.
  const float tail = (q * (f * square) + e * kLn2Low) - 0.5f * square;
  const float result = (tail + f) + e * kLn2High;
  const float at_edge = x == 0.0f ? -kInfinity : kNaN;
  return x > 0.0f ? (x < kInfinity ? result : x) : at_edge;
}

// (e^2x - 1) / (e^2x + 1) on |x|, the sign put back: exactly odd, -0 stays -0.
static inline float tanh_f32(float x) {
  float a = magnitude(x);
  a = a > 10.0f ? 10.0f : a;  // from 9.02 on the result is 1
  const ExpParts parts = exp_parts(2.0f * a);
  const float scale = power_of_two(parts.n);
  const float expm1 = parts.expm1_r * scale + (scale - 1.0f);
  return flip_sign(expm1 / (expm1 + 2.0f), float_bits(x));
}

// 1 / (1 + e^-x); written with e^-|x| so that nothing overflows and small results keep their
// digits.
static inline float sigmoid_f32(float x) {
  const float z = exp_f32(-magnitude(x));
  const float above_half = 1.0f / (1.0f + z);
  return x < 0.0f ? z * above_half : above_half;
}

// For the reduction of sin and cos. A float is mantissa * 2^(E - 150), E its exponent field (1 for
// denormals). parts[E] + parts[256 + E] is 2^(E - 150) * 2/pi without its multiples of 4 (whole
// turns). The first part has 29 bits, so that its product with a 24-bit mantissa is exact in
// double; the second the next 53. E = 255 (inf, NaN) holds NaN.
struct QuarterTurns {
  double parts[512];
};

// Bits [from, from + count) of 2/pi behind its binary point, as an integer; count <= 53.
constexpr uint64_t two_over_pi_bits(int from, int count) {
  constexpr uint32_t kTwoOverPi[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                     0xdb629599, 0x3c439041, 0xfe5163ab};
  uint64_t bits = 0;
  for (int i = from; i < from + count; ++i) {
    bits = 2 * bits + ((kTwoOverPi[i / 32] >> (31 - i % 32)) & 1u);
  }
  return bits;
}

// value * 2^exponent.
constexpr double scaled(double value, int exponent) {
  for (; exponent > 0; --exponent) value *= 2.0;
  for (; exponent < 0; ++exponent) value *= 0.5;
  return value;
}

constexpr QuarterTurns make_quarter_turns() {
  QuarterTurns table{};
  for (int row = 0; row < 255; ++row) {
    const int shift = (row == 0 ? 1 : row) - 150;
    const int from = shift > 2 ? shift - 2 : 0;  // bit j of 2/pi has weight 2^(shift - 1 - j) here
    table.parts[row] = scaled(static_cast<double>(two_over_pi_bits(from, 29)), shift - from - 29);
    table.parts[256 + row] =
        scaled(static_cast<double>(two_over_pi_bits(from + 29, 53)), shift - from - 82);
  }
  table.parts[255] = table.parts[511] = __builtin_nan("");
  return table;
}

static constexpr QuarterTurns kQuarterTurns = make_quarter_turns();

// The kernels read the table through this pointer, whose value g++ does not know: from a table at a
// known address g++ 12 makes no vector loads of scattered elements.
inline const double* quarter_turns = kQuarterTurns.parts;

// sin of |x| plus `quarter` quarter turns, up to the sign of x.
static inline float sin_of_turned(float x, uint32_t quarter) {
  const uint32_t bits = float_bits(x) & ~kSignBit;
  const int32_t row = static_cast<int32_t>(bits >> 23);
  const int32_t hidden_bit = row == 0 ? 0 : 0x800000;
  const int32_t unit = static_cast<int32_t>(bits & 0x7fffffu) + hidden_bit;
  const double mantissa = static_cast<double>(unit);
  const double high = mantissa * quarter_turns[row];
  const double low = mantissa * quarter_turns[256 + row];
  const double shifted = (high + low) + kRoundDouble;
  const double turns = (high - (shifted - kRoundDouble)) + low;  // in -0.5 .. 0.5; exact difference
  const float r = static_cast<float>(turns * 1.5707963267948966);
  const float square = r * r;
  // sin r = r + r^3 s(r^2)
  float s = -1.95182860e-4f;
  s = s * square + 8.33218917e-3f;
  s = s * square - 1.66666552e-1f;
  const float sine = s * (r * square) + r;
  // cos r = 1 - r^2 / 2 + r^4 c(r^2)
  float c = 2.44323273e-5f;
  c = c * square - 1.38873095e-3f;
  c = c * square + 4.16666456e-2f;
  const float cosine = c * (square * square) - 0.5f * square + 1.0f;
  quarter += static_cast<uint32_t>(double_bits(shifted));
  return flip_sign((quarter & 1u) != 0 ? cosine : sine, quarter << 30);
}

// The sine of x in radians, of any finite size; NaN for the infinities.
static inline float sin_f32(float x) { return flip_sign(sin_of_turned(x, 0), float_bits(x)); }

// The cosine likewise.
static inline float cos_f32(float x) { return sin_of_turned(x, 1); }

// log2 of a positive finite x in double, relative error below 2^-44.
static inline double log2_f64(float x) {
  const LogParts parts = log_parts(x);
  const double f = static_cast<double>(parts.f);
  // log2(1 + f) = s a(s^2) with s = f / (2 + f)
  const double s = f / (2.0 + f);
  const double square = s * s;
  double a = 0.28290156953331397;
  a = a * square + 0.31990563243433284;
  a = a * square + 0.4122092528231139;
  a = a * square + 0.5770779423777767;
  a = a * square + 0.9617966941131757;
  a = a * square + 2.8853900817778504;
  return s * a + static_cast<double>(parts.e);
}

// 2^t for |t| <= 1000, relative error below 2^-34.
static inline double exp2_f64(double t) {
  const double shifted = t + kRoundDouble;
  const double r = t - (shifted - kRoundDouble);
  double p = 1.5196156199919023e-05;
  p = p * r + 0.0001546675654418993;
  p = p * r + 0.0013333935056644047;
  p = p * r + 0.009618038131212023;
  p = p * r + 0.05550410365991506;
  p = p * r + 0.24022651066568482;
  p = p * r + 0.6931471807045306;
  p = p * r + 1.0;
  return p * bits_double((double_bits(shifted) + 1023u) << 52);
}

// x ** y = 2^(y log2 |x|) in double, then the sign and the exceptions of C99 and numpy.
static inline float power_f32(float x, float y) {
  const float ax = magnitude(x);
  const float ay = magnitude(y);
  const double at_edge = ax == 0.0f ? static_cast<double>(-kInfinity) : static_cast<double>(ax);
  double t = static_cast<double>(y) * (ax > 0.0f && ax < kInfinity ? log2_f64(ax) : at_edge);
  t = t > 200.0 ? 200.0 : t;  // a float overflows at 128 and is 0 below -150; a NaN passes
  t = t < -200.0 ? -200.0 : t;
  const float unsigned_power = static_cast<float>(exp2_f64(t));

  const float half = 0.5f * ay;
  const bool integer = __builtin_truncf(ay) == ay;
  const bool odd = integer && __builtin_truncf(half) != half;
  const float power = odd ? flip_sign(unsigned_power, float_bits(x)) : unsigned_power;
  const bool no_real_value = x < 0.0f && ax < kInfinity && !integer;
  // 1 ** y and x ** 0 are 1 even for NaN; (-1) ** inf is 1.
  const bool one = x == 1.0f || y == 0.0f || (ax == 1.0f && ay == kInfinity);
  return one ? 1.0f : (no_real_value ? kNaN : power);
}

}  // namespace needle::cpu::NEEDLE_ISA
