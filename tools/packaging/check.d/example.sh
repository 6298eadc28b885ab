# The README's example without a GPU, in the current directory. Leaves its report in report.txt.
rocov --version
clang++-22 $(rocov flags --clang clang++-22) --config=testdata/sample/debian12.cfg \
  -O1 testdata/sample/*.hip -o sample
rm -rf rocov-data
rocov run --gpu model:gfx90a -- ./sample
rocov report >report.txt
rocov report --html pages >/dev/null
test -e pages/index.html
