#!/usr/bin/env bash
# What tools/sanitize_gpu makes of its tools' words, where a script takes the place of compute-sanitizer.
# usage: sanitize_gpu_test.sh SANITIZE_GPU
set -euo pipefail
script=$1 folder=$(mktemp -d) failed=0
trap 'rm -rf "$folder"' EXIT
# Prints the file $folder/TOOL for the primitives; all is well where there is none, and in the guide.
cat >"$folder/sanitizer" <<'FAKE'
#!/usr/bin/env bash
[[ $1 == --version ]] && { echo "Version 1"; exit; }
echo "========= COMPUTE-SANITIZER"
if [[ $3 == primitives_gpu && -f $HERE/$2.$5 ]]; then cat "$HERE/$2.$5"
else echo "PASS exp f32"; echo "========= ERROR SUMMARY: 0 errors"
fi
FAKE
chmod +x "$folder/sanitizer"

# expect STATUS LINE: the status of a run, and a line that is printed.
expect() {
  local status=0
  HERE=$folder OUT=$folder/logs SANITIZER=$folder/sanitizer "$script" >"$folder/printed" || status=$?
  if [[ $status != "$1" ]] || ! grep -qF -- "$2" "$folder/printed"; then
    echo "FAIL: status $status, expected $1, with the line: $2"
    cat "$folder/printed"
    failed=1
  fi
  rm -f "$folder"/*check.*
}

expect 0 'memcheck, primitives: 1 kernels run, 0 do not; 0 findings, and 0 known ones'

race='========= Warning: Race reported between Write access at k and Read access'
printf '%s\n' "$race" "$race" 'PASS bulk_send i32' "$race" 'PASS async_store f32 x 1' 'PASS exp f32' \
  '========= RACECHECK SUMMARY: 3 hazards' >"$folder/racecheck.0"
expect 0 'racecheck, primitives: 3 kernels run, 0 do not; 0 findings, and 3 known ones'

# The same words of another kernel, and other words of the same.
printf '%s\n' "$race" 'PASS syncthreads' '========= RACECHECK SUMMARY: 1 hazard' >"$folder/racecheck.0"
expect 1 '  syncthreads: Warning: Race reported'
printf '%s\n' '========= Invalid __global__ write of size 4' 'PASS bulk_send i32' '========= ERROR SUMMARY: 1 error' >"$folder/memcheck.0"
expect 1 '  bulk_send i32: Invalid __global__ write'
printf '%s\n' "$race" 'PASS bulk_send i32' '========= ERROR SUMMARY: 1 error' >"$folder/memcheck.0"
expect 1 'memcheck, primitives: 1 kernels run, 0 do not; 1 findings, and 0 known ones'

# A kernel that ends its process: the next one runs in another.
error='========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure"'
printf '%s\n' 'PASS exp f32' '========= Barrier error detected. Missing wait.' '=========     Barrier is located at shared address 0x600' "$error" 'FAIL mbarrier_arrive_copies one more: unspecified launch failure' "$error" \
  '========= ERROR SUMMARY: 2 errors' >"$folder/synccheck.0"
printf '%s\n' 'PASS shfl i32' '========= ERROR SUMMARY: 0 errors' >"$folder/synccheck.2"
expect 0 'synccheck, primitives: 2 kernels run, 1 do not; 0 findings, and 4 known ones'

printf '%s\n' 'PASS exp f32' 'DIFFER exp f64: element 3' '========= ERROR SUMMARY: 0 errors' >"$folder/initcheck.0"
expect 1 '  exp f64: DIFFER exp f64: element 3'
printf '%s\n' 'PASS exp f32' >"$folder/initcheck.0"
expect 1 '  it did not come to its end'
printf '%s\n' '========= Error: device not supported' >"$folder/initcheck.0"
expect 0 'SKIP initcheck, primitives: ========= Error: device not supported'
exit $failed
