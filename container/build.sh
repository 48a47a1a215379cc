#!/bin/sh
# Build the image with the first builder that works here, and print its size. Exit code 4: there is none.
# Arguments: the name of the image, then options of the builder, such as --build-arg PYTHON=3.13-slim.
set -eu
cd "$(dirname "$0")/.."
image=${1:-mqproof:local}
[ $# -eq 0 ] || shift
for builder in docker podman buildah; do
  command -v "$builder" > /dev/null 2>&1 || continue
  "$builder" info > /dev/null 2>&1 || { echo "build.sh: $builder does not work here: $("$builder" info 2>&1 | tail -n 1)" >&2; continue; }
  # Docker's own format: the other builders' default has no health check.
  [ "$builder" = docker ] || set -- --format docker "$@"
  "$builder" build --tag "$image" --file container/Containerfile "$@" .
  "$builder" images "$image"
  exit 0
done
echo "build.sh: no builder works here: start docker, or install podman or buildah" >&2
exit 4
