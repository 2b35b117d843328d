#!/bin/bash
# Makes a folder that runs on a machine with a GPU, a Python and nothing else of what this project needs: the package
# with its libraries, LLVM linked in, and the tests and benchmarks.
#   tools/gpu_bundle.sh FOLDER PYTHON [TEST PROGRAMS...]
# PYTHON: an interpreter of the other machine's minor version, with the packages of tools/requirements.txt. There:
#   FOLDER/run python3 -m pytest FOLDER/tests/python/cuda
#   FOLDER/run FOLDER/bin/test_codegen --gtest_filter='Gpu*'
#   FOLDER/run python3 FOLDER/fuzz.py FOLDER loops --count 10000 --jobs 16
# The build folder is build-gpu (FLAMBEAU_BUILD_DIR=... another one).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -ge 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
folder=$(realpath -m "$1") python=$2
shift 2
build=${FLAMBEAU_BUILD_DIR:-build-gpu}
[ -f "$build/build.ninja" ] || cmake --preset release -B "$build" -DFLAMBEAU_LLVM_STATIC=ON "-DFLAMBEAU_PYTHON_EXECUTABLE=$python"
cmake --build "$build" --target flambeau _C stubs "$@"
rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/tests"
cmake --install "$build" --component python --prefix "$folder" --strip > /dev/null
for name in "$@"; do
  program=$(find "$build" -type f -executable -name "$name" | head -n 1)
  strip -o "$folder/bin/$name" "$program"
done
# What the programs need beside the package's libraries: fmt, GoogleTest.
for program in "$folder"/bin/*; do
  [ -f "$program" ] || continue
  ldd "$program" | awk '/=> \// && /lib(fmt|gtest|gmock)/ {print $3}' | xargs -r cp -Lnt "$folder/flambeau/lib"
done
cp -r tests/python "$folder/tests/"
cp -r benchmarks "$folder/"
cp tools/fuzz.py "$folder/"
find "$folder" -name __pycache__ -prune -exec rm -rf {} +
cat > "$folder/run" <<'RUN'
#!/bin/bash
# Runs a command with the package of this folder.
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1
export LD_LIBRARY_PATH=$here/flambeau:$here/flambeau/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$@"
RUN
chmod +x "$folder/run"
du -sh "$folder" | sed 's/^/gpu_bundle: /'
