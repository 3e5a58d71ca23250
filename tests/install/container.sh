#!/usr/bin/env bash
# Builds the Containerfile of a release with buildah, on an image of an unpacked Debian, and
# runs yoctune in it. Needs root and no network.
# usage: tests/install/container.sh DIST ROOT
set -euo pipefail
dist=$1 debian=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '[storage]\ndriver="vfs"\nrunroot="%s/run"\ngraphroot="%s/images"\n' "$work" "$work" >"$work/storage.conf"
# chroot isolation needs neither cgroups nor namespaces.
export CONTAINERS_STORAGE_CONF=$work/storage.conf STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
base=$(buildah from scratch)
buildah add --quiet "$base" "$debian" / >/dev/null
buildah commit --quiet "$base" localhost/debian >/dev/null
buildah build --build-arg BASE=localhost/debian -t yoctune -f "$dist/Containerfile" "$dist" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
ci=$(buildah from localhost/yoctune)
buildah run "$ci" -- yoctune --version
buildah run "$ci" -- sh -ec 'yoctune init vision >/dev/null; yoctune vet vision; yoctune build vision -o vision/layer'
