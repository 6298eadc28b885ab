// Two calls of rocBLAS whose results are known by arithmetic: a product of matrices, and a batched triangular solve.
#include "device.h"
#include <rocblas/rocblas.h>

#include <cmath>
#include <vector>

// The sum of |found - expected|.
static double product(rocblas_handle handle, int m, int n, int k) {
    std::vector<float> a(m * k), b(k * n), c(m * n, 0);
    for (size_t i = 0; i < a.size(); ++i) a[i] = float(i % 7) - 3;
    for (size_t i = 0; i < b.size(); ++i) b[i] = float(i % 5) - 2;
    float *da = on_device(a), *db = on_device(b), *dc = on_device(c);
    float one = 1, zero = 0;
    CHECK(rocblas_sgemm(handle, rocblas_operation_none, rocblas_operation_none, m, n, k, &one, da, m, db, k, &zero, dc,
                        m));
    CHECK(hipMemcpy(c.data(), dc, c.size() * sizeof(float), hipMemcpyDeviceToHost));
    double wrong = 0;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int l = 0; l < k; ++l) sum += double(a[i + l * m]) * b[l + j * k];
            wrong += std::fabs(sum - c[i + j * m]);
        }
    CHECK(hipFree(da));
    CHECK(hipFree(db));
    CHECK(hipFree(dc));
    return wrong;
}

// Solves L X = B for `batches` lower triangles of n rows, with as many right sides.
static double solve(rocblas_handle handle, int n, int sides, int batches) {
    std::vector<float> a(n * n, 0), x(n * sides), b(n * sides, 0);
    for (int j = 0; j < n; ++j)
        for (int i = j; i < n; ++i) a[i + j * n] = i == j ? 2 : float((i + j) % 3 - 1) / 4;
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 9) - 4;
    for (int j = 0; j < sides; ++j)
        for (int i = 0; i < n; ++i)
            for (int l = 0; l <= i; ++l) b[i + j * n] += a[i + l * n] * x[l + j * n];
    std::vector<float *> as, bs;
    for (int batch = 0; batch < batches; ++batch) {
        as.push_back(on_device(a));
        bs.push_back(on_device(b));
    }
    float **das, **dbs, one = 1;
    CHECK(hipMalloc(&das, batches * sizeof(float *)));
    CHECK(hipMalloc(&dbs, batches * sizeof(float *)));
    CHECK(hipMemcpy(das, as.data(), batches * sizeof(float *), hipMemcpyHostToDevice));
    CHECK(hipMemcpy(dbs, bs.data(), batches * sizeof(float *), hipMemcpyHostToDevice));
    CHECK(rocblas_strsm_batched(handle, rocblas_side_left, rocblas_fill_lower, rocblas_operation_none,
                                rocblas_diagonal_non_unit, n, sides, &one, das, n, dbs, n, batches));
    double wrong = 0;
    for (float *place : bs) {
        CHECK(hipMemcpy(b.data(), place, b.size() * sizeof(float), hipMemcpyDeviceToHost));
        for (size_t i = 0; i < b.size(); ++i) wrong += std::fabs(b[i] - x[i]);
    }
    return wrong;
}

int main() {
    rocblas_handle handle;
    CHECK(rocblas_create_handle(&handle));
    std::printf("sgemm %.6f\n", product(handle, 192, 160, 128));
    std::printf("strsm_batched %.6f\n", solve(handle, 160, 24, 3));
    CHECK(rocblas_destroy_handle(handle));
    return 0;
}
