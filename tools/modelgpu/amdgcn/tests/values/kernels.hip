// Functions of constants, which Clang computes itself. With HIDDEN, it does not know the arguments, and uses the GPU's
// instructions. Also quotients and products, which Clang makes of several instructions.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))

typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef HIDDEN
#define ARGUMENT(type, value) ({ type argument_ = (value); asm volatile("" : "+v"(argument_)); argument_; })
#else
#define ARGUMENT(type, value) ((type)(value))
#endif

static __device__ u64 bits(_Float16 value) { return __builtin_bit_cast(unsigned short, value); }
static __device__ u64 bits(float value) { return __builtin_bit_cast(u32, value); }
static __device__ u64 bits(double value) { return __builtin_bit_cast(u64, value); }
static __device__ u64 bits(int value) { return (u32)value; }

static __device__ u32 place() {
  return __builtin_amdgcn_workgroup_id_x() * 128 + __builtin_amdgcn_workitem_id_x();
}

// Calls a function for each of these numbers.
#define NUMBERS(call)                                                                                   \
  call(0.0) call(0.1) call(0.25) call(-0.25) call(0.5) call(0.75) call(-0.75) call(1.0) call(-1.0)      \
  call(1.125) call(-1.125) call(2.5) call(3.75) call(-5.0) call(100.125) call(-200.3) call(255.5) call(-1e-7)
// And these.
#define SPECIAL(call)                                                                       \
  call(-1e-30) call(1e30) call(-1e30) call(65504.0) call(__builtin_inf()) call(-__builtin_inf()) \
  call(__builtin_nan(""))

#define KERNEL(name, numbers)                                                                \
  extern "C" __global__ void name(const u64 *in, u64 *out) {                                 \
    u32 next = 0;                                                                            \
    if (place() != 0) return;                                                                \
    numbers                                                                                  \
  }
#define OF(type, function, value) out[next++] = bits((type)function(ARGUMENT(type, value)));

#define FRACT16(value) OF(_Float16, __builtin_amdgcn_fracth, value)
#define FRACT32(value) OF(float, __builtin_amdgcn_fractf, value)
#define FRACT64(value) OF(double, __builtin_amdgcn_fract, value)
#define SINE16(value) OF(_Float16, __builtin_amdgcn_sinh, value)
#define SINE32(value) OF(float, __builtin_amdgcn_sinf, value)
#define COSINE16(value) OF(_Float16, __builtin_amdgcn_cosh, value)
#define COSINE32(value) OF(float, __builtin_amdgcn_cosf, value)
#define MANTISSA32(value) OF(float, __builtin_amdgcn_frexp_mantf, value)
#define MANTISSA64(value) OF(double, __builtin_amdgcn_frexp_mant, value)
#define EXPONENT32(value) out[next++] = bits(__builtin_amdgcn_frexp_expf(ARGUMENT(float, value)));
#define EXPONENT64(value) out[next++] = bits(__builtin_amdgcn_frexp_exp(ARGUMENT(double, value)));

KERNEL(fract_f16, NUMBERS(FRACT16) SPECIAL(FRACT16))
KERNEL(fract_f32, NUMBERS(FRACT32) SPECIAL(FRACT32))
KERNEL(fract_f64, NUMBERS(FRACT64) SPECIAL(FRACT64))
KERNEL(sin_f16, NUMBERS(SINE16))
KERNEL(sin_f32, NUMBERS(SINE32))
KERNEL(cos_f16, NUMBERS(COSINE16))
KERNEL(cos_f32, NUMBERS(COSINE32))
KERNEL(frexp_mant_f32, NUMBERS(MANTISSA32) SPECIAL(MANTISSA32))
KERNEL(frexp_mant_f64, NUMBERS(MANTISSA64) SPECIAL(MANTISSA64))
KERNEL(frexp_exp_i32_f32, NUMBERS(EXPONENT32) SPECIAL(EXPONENT32))
KERNEL(frexp_exp_i32_f64, NUMBERS(EXPONENT64) SPECIAL(EXPONENT64))

// The numerator is the low half.
extern "C" __global__ void quotients_f32(const u64 *in, u64 *out) {
  u64 pair = in[place()];
  float numerator = __builtin_bit_cast(float, (u32)pair), denominator = __builtin_bit_cast(float, (u32)(pair >> 32));
  out[place()] = bits(numerator / denominator);
}

// A number by its neighbour.
extern "C" __global__ void quotients_f64(const u64 *in, u64 *out) {
  double numerator = __builtin_bit_cast(double, in[place()]);
  double denominator = __builtin_bit_cast(double, in[place() ^ 1]);
  out[place()] = bits(numerator / denominator);
}

// Clang uses an output modifier for the last factor, if the hardware obeys it.
extern "C" __global__ void products_f32(const u64 *in, u64 *out) {
  float a = __builtin_bit_cast(float, (u32)in[place()]), b = __builtin_bit_cast(float, (u32)(in[place()] >> 32));
  out[place()] = bits((a + b) * 4.0f);
}
