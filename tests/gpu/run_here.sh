#!/usr/bin/env bash
# Makes the kernels and runs the GPU test with them: run_here.sh KERNEL_MAKER TEST_PROGRAM
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$folder"
"$2" "$folder"
