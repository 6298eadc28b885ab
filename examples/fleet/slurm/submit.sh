#!/bin/sh
# Submits the merge of DATA and its import: submit.sh DATA MERGED DATASET COMMIT
# The import does not wait for an array that failed: --kill-on-invalid-dep ends it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export DATA="$1" SHARES="$2.shares" MERGED="$2" DATASET="$3" COMMIT="$4"
array=$(sbatch --parsable "$here/shard.sbatch")
sbatch --parsable --dependency="afterok:$array" --kill-on-invalid-dep=yes "$here/export.sbatch"
