// A product of a sparse matrix and a vector by rocSPARSE, compared with the same sum on the host.
#include "device.h"
#include <rocsparse/rocsparse.h>

#include <cmath>
#include <vector>

int main() {
    // Row i has i % 9 values.
    const int rows = 700, columns = 300;
    std::vector<int> starts{0}, places;
    std::vector<double> values, x(columns), y(rows, 1), expected(rows);
    for (int i = 0; i < columns; ++i) x[i] = i % 13 - 6;
    for (int i = 0; i < rows; ++i) {
        expected[i] = 2;
        for (int j = 0; j < i % 9; ++j) {
            places.push_back((i * 7 + j * 31) % columns);
            values.push_back(i % 5 - j);
            expected[i] += 3 * values.back() * x[places.back()];
        }
        starts.push_back(int(places.size()));
    }
    rocsparse_handle handle;
    rocsparse_mat_descr matrix;
    CHECK(rocsparse_create_handle(&handle));
    CHECK(rocsparse_create_mat_descr(&matrix));
    double three = 3, two = 2;
    double *dy = on_device(y);
    CHECK(rocsparse_dcsrmv(handle, rocsparse_operation_none, rows, columns, int(places.size()), &three, matrix,
                           on_device(values), on_device(starts), on_device(places), nullptr, on_device(x), &two, dy));
    CHECK(hipMemcpy(y.data(), dy, rows * sizeof(double), hipMemcpyDeviceToHost));
    double wrong = 0;
    for (int i = 0; i < rows; ++i) wrong += std::fabs(y[i] - expected[i]);
    std::printf("dcsrmv %.6f\n", wrong);
    CHECK(rocsparse_destroy_mat_descr(matrix));
    CHECK(rocsparse_destroy_handle(handle));
    return 0;
}
