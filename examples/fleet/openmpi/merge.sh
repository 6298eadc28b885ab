#!/bin/sh
# Merges the data directories of ranks by many processes of Open MPI: merge.sh RANKS DATA MERGED
# Repeat it as you like: each process replaces its own share.
set -eu
ranks=$1 data=$2 merged=$3
shares=$merged.shares
# The shell in each rank expands the variables.
# shellcheck disable=SC2016
mpirun -n "$ranks" sh -c 'rocov merge -q "$0" --shard "$OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE" \
  --allow-empty --per-test --pooled "$1/$OMPI_COMM_WORLD_RANK"' "$data" "$shares"
rocov merge "$shares" --per-test --pooled "$merged"
