# The module rocov and the plugin of pytest, over a library of kernels. PYTHON is the interpreter.
clang++-22 $(rocov flags --clang clang++-22) --config=testdata/sample/debian12.cfg -O1 -shared -fPIC \
  kernels.hip -o libkernels.so
rm -rf module-data pytest-data plain-data

# Without librocov, the calls do nothing.
"$PYTHON" -c 'import rocov; assert not rocov.stop() and not rocov.dump() and rocov.version() is None'

rocov run --gpu model:gfx90a -o module-data -- "$PYTHON" module.py
rocov report module-data --per-test | tee module.txt
for label in decorated block/inner last; do grep -q "$label" module.txt; done
rocov report module-data --show kernels.hip >module.txt
# Five calls: not the first, outside of the window, nor the last, whose counts reset dropped.
grep -E '\| +3\| .*number /= 2;' module.txt

rocov run --gpu model:gfx90a -o pytest-data -- "$PYTHON" -m pytest -q test_kernels.py
rocov report pytest-data --per-test | grep 'test_kernels.py/test_halve'

# The plugin of coverage.py is found, and coverage.py measures as before.
printf '[run]\nplugins = rocov\n' >.coveragerc
"$PYTHON" -m pytest -q --cov test_kernels.py | grep -E '^test_kernels.py .* 100%'
