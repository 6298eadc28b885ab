// Numbers of two generators of rocRAND, whose means and variances are known.
#include "device.h"
#include <rocrand/rocrand.h>

#include <cmath>
#include <vector>

int main() {
    const size_t count = 20000;
    float *place;
    CHECK(hipMalloc(&place, count * sizeof(float)));
    for (rocrand_rng_type type : {ROCRAND_RNG_PSEUDO_PHILOX4_32_10, ROCRAND_RNG_PSEUDO_XORWOW}) {
        rocrand_generator generator;
        CHECK(rocrand_create_generator(&generator, type));
        CHECK(rocrand_set_seed(generator, 42));
        for (bool is_normal : {false, true}) {
            CHECK(is_normal ? rocrand_generate_normal(generator, place, count, 0, 1)
                            : rocrand_generate_uniform(generator, place, count));
            std::vector<float> values(count);
            CHECK(hipMemcpy(values.data(), place, count * sizeof(float), hipMemcpyDeviceToHost));
            double sum = 0, squares = 0;
            for (float value : values) {
                sum += value;
                squares += double(value) * value;
            }
            double mean = sum / count, variance = squares / count - mean * mean;
            bool is_right = std::fabs(mean - (is_normal ? 0 : 0.5)) < 0.02 &&
                            std::fabs(variance - (is_normal ? 1 : 1.0 / 12)) < 0.03;
            std::printf("%d %s: mean %.4f, variance %.4f: %s\n", int(type), is_normal ? "normal" : "uniform", mean,
                        variance, is_right ? "right" : "WRONG");
        }
        CHECK(rocrand_destroy_generator(generator));
    }
    return 0;
}
