#!/usr/bin/env bash
# Builds the layer of a board of one's own and gives it to the real bitbake:
#
#   boards.sh CHECKOUTS RELEASE MACHINE KERNEL
#
# Then `yoctune check-layer` runs on the layer.
#
# CHECKOUTS/RELEASE has bitbake, openembedded-core and, for a machine of it, meta-yocto-bsp. No
# meta-tegra is in the build. bitbake parses all recipes, says which kernel it takes and with
# which fragment, and finds a provider of everything that the layer's packages need.
set -euo pipefail
cd "$(dirname "$0")/../.."

src=$(cd "$1/$2" && pwd) release=$2 machine=$3 version=$4
yoctune=${YOCTUNE:-build/bin/yoctune}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
as=()
[ "$(id -u)" != 0 ] || as=(runuser -u "${YOCTUNE_USER:-nobody}" --)

cp -r examples/own-board "$work/config"
sed -i -e "s/release: \"scarthgap\"/release: \"$release\"/" -e "s/version: \"6.6\"/version: \"$version\"/" \
	-e "s/scarthgap: \[\"qemuarm64\"\]/\"$release\": [\"$machine\"]/; /wrynose: \[/d" "$work/config/config.cue"
"$yoctune" build "$work/config" -o "$work/layer" --runtime "${YOCTUNE_RUNTIME:-build/lib/yoctune}" >"$work/built" 2>&1 || { cat "$work/built" >&2; exit 1; }

mkdir -p "$work/build/conf"
layers="$src/openembedded-core/meta" extra=()
[ ! -e "$src/meta-yocto-bsp/conf/machine/$machine.conf" ] || { layers+=" $src/meta-yocto-bsp" extra=(--extra-layer "$src/meta-yocto-bsp"); }
printf 'BBPATH = "%s"\nBBFILES ?= ""\nBBLAYERS = "%s %s"\n' "$work/build" "$layers" "$work/layer" >"$work/build/conf/bblayers.conf"
{
	printf 'MACHINE = "%s"\nDISTRO = "nodistro"\nBB_NO_NETWORK = "1"\nCONNECTIVITY_CHECK_URIS = ""\n' "$machine"
	echo "CONF_VERSION = \"$(sed -n 's/^LOCALCONF_VERSION *?*= *"\([0-9]*\)".*/\1/p' "$src/openembedded-core/meta/conf/sanity.conf")\""
	echo "require $work/layer/conf/yoctune/own-board.conf"
} >"$work/build/conf/local.conf"
[ ${#as[@]} = 0 ] || chown -R "${YOCTUNE_USER:-nobody}" "$work"
chmod 755 "$work"

in_build() {
	(cd "$work/build" && "${as[@]}" env -i PATH="$src/bitbake/bin:$src/openembedded-core/scripts:$PATH" HOME="$work" LANG=en_US.UTF-8 \
		BBPATH="$PWD" BUILDDIR="$PWD" PYTHONDONTWRITEBYTECODE=1 "$@")
}
# wants TEXT WHAT checks the last output.
wants() { grep -qE "$1" "$work/log" || { echo "$release $machine: $2 is not $1" >&2; tail -20 "$work/log" >&2; exit 1; }; }
refuse() { echo "$release $machine: $1 failed" >&2; tail -30 "$work/log" >&2; exit 1; }

in_build bitbake -p >"$work/log" 2>&1 || refuse "bitbake -p"
parsed=$(sed -n 's/^Parsing of //p' "$work/log")
! grep -E '^(WARNING|ERROR)' "$work/log" | grep -v -i 'host distribution\|user namespaces' || refuse "a silent parse"
in_build bitbake -e virtual/kernel >"$work/log" 2>&1 || refuse "bitbake -e virtual/kernel"
wants '^PN="linux-yocto"' "the kernel"
wants "^PV=\"${version//./\\.}\." "the kernel's version"
wants '^SRC_URI=.* file://yoctune-own-board\.cfg' "the kernel's SRC_URI"
wants '^FILESPATH=.*/yoctune-on-'"$machine"':' "the search path of the fragment"
in_build bitbake -e yoctune-own-board-config >"$work/log" 2>&1 || refuse "bitbake -e yoctune-own-board-config"
wants '^PACKAGE_ARCH="'"${machine//-/_}"'"' "PACKAGE_ARCH"
in_build bitbake -g packagegroup-yoctune-own-board yoctune-own-board-config yoctuned virtual/kernel >"$work/log" 2>&1 || refuse "bitbake -g"
tasks=$(grep -c -- '->' "$work/build/task-depends.dot")
! grep -rniE 'tegra|nvidia' "$work/layer/conf" "$work/layer/recipes-kernel" "$work/layer/recipes-yoctune/packagegroups" >&2 || refuse "a layer without meta-tegra"
echo "$release $machine: linux-yocto $version; parsed $parsed; $tasks dependencies of tasks resolved"
"$yoctune" check-layer "$work/layer" --release "$release" --machine "$machine" --bitbake "$src/bitbake" --oe-core "$src/openembedded-core" \
	"${extra[@]}" >"$work/checked" 2>"$work/log" || { cat "$work/checked" >&2; refuse "yoctune check-layer"; }
grep -E '^(skipped|fail)|passed,' "$work/checked" | sed "s/^/  check-layer: /"
