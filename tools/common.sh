# Sourced by tools/setup, tools/test, tools/demo, tools/check and .ci/run: paths, messages, the environment. Defines names only.
# Needs: bash. Leaves: ROOT (the clone), CACHE (what setup fetched), JOBS, and the functions below.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=$ROOT/.cache
JOBS=${HIDET_JOBS:-$(nproc)}
export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1
export CTEST_OUTPUT_ON_FAILURE=1

say() { printf '== %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# timed TITLE COMMAND...: runs the command, says how long it took and returns its status.
timed() {
  local title=$1 start=$SECONDS status=0
  shift
  say "$title"
  "$@" || status=$?
  if ((status == 0)); then
    say "$title: done in $((SECONDS - start)) s"
  else
    say "$title: FAILED with status $status after $((SECONDS - start)) s"
  fi
  return "$status"
}

# Prints the folder of a CUDA toolkit with NVRTC and its headers, or nothing.
find_cuda() {
  local root lib
  for root in "${HIDET_CUDA_ROOT:-}" "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda "$CACHE/cuda"; do
    [[ -n $root && -f $root/include/cuda_fp16.h ]] || continue
    for lib in lib64 lib targets/x86_64-linux/lib; do
      if compgen -G "$root/$lib/libnvrtc.so.*" >/dev/null; then
        printf '%s\n' "$root"
        return
      fi
    done
  done
}

# The Python that has numpy; setup made it.
venv_python() { printf '%s\n' "$CACHE/venv/bin/python3"; }

# What the programs under test need to find, and a build cache inside the clone.
export_environment() {
  local cuda
  cuda=$(find_cuda)
  [[ -n $cuda ]] || fail "no NVRTC found; run tools/setup, which fetches it"
  export HIDET_CUDA_ROOT=$cuda HIDET_CACHE_DIR=$ROOT/build/cache
}

# configure FOLDER PRESET OPTION...: configures quietly; the log is shown when that fails.
configure() {
  local folder=$1 preset=$2
  shift 2
  mkdir -p "$folder"
  if ! cmake -S "$ROOT" -B "$folder" --preset "$preset" "$@" >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    fail "cmake could not configure $folder"
  fi
}

# fill_models NAME...: runnable models in build/models; each is written once.
fill_models() {
  local out=$ROOT/build/models name
  mkdir -p "$out"
  for name in "$@"; do
    [[ -f $out/$name.done && $out/$name.done -nt $ROOT/tests/models/$name.json ]] && continue
    "$(venv_python)" "$ROOT/tests/models/fill_weights.py" "$out" "$name" || return 1
    touch "$out/$name.done"
  done
}
