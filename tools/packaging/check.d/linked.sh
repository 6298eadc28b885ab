# Programs that are linked with librocov.so and with librocov.a, outside of `rocov run`. LIBRARIES is the directory of
# librocov.so and the modelled GPU.
export ROCOV_MODELGPU=gfx90a
flags="$(rocov flags --clang clang++-22) --config=testdata/sample/debian12.cfg -O1"
rm -rf windows-data static-data pgo faster-data

clang++-22 $flags windows.hip $(pkg-config --cflags --libs rocov) -o windows
LD_LIBRARY_PATH=$LIBRARIES LD_PRELOAD=$LIBRARIES/librocov_modelgpu.so LLVM_PROFILE_FILE=windows-data/%p.profraw \
  ./windows | tee windows.txt
grep -q ': 0 0 0 0; 8 \* 3 is 24$' windows.txt
rocov report windows-data --show windows.hip >windows.txt
# Two launches of 64 work-items; the third was outside of the window.
grep -E '\| +128\| .*\*= 2;' windows.txt

# librocov.a in a build for PGO: instrument, run, and compile with the profile.
clang++-22 $flags testdata/sample/*.hip -lamdhip64 $(rocov flags --link) -o static
LD_PRELOAD=$LIBRARIES/librocov_modelgpu.so LLVM_PROFILE_FILE=static-data/%p.profraw ./static
use=$(rocov merge -q static-data --pgo pgo)
case "$use" in *-fprofile-instr-use=*gfx90a.profdata*) ;; *) exit 1 ;; esac
clang++-22 $use --config=testdata/sample/debian12.cfg -O2 testdata/sample/*.hip -o faster 2>faster.txt
! grep -i 'out of date\|no profile data' faster.txt
LD_PRELOAD=$LIBRARIES/librocov_modelgpu.so ./faster
