# shellcheck shell=sh
# Checks of the unit of the cascade, after root.sh: it runs once after boot, with the sandbox of
# the layer, and its results are those of the clip.
unit=yoctuned-pipeline@belt.service
property() { systemctl show -P "$1" $unit; }
# systemctl takes seconds of an emulated processor, which the pipeline needs: look every half minute.
n=0
until state=$(property ActiveState) && { [ "$state" = inactive ] || [ "$state" = failed ] || [ $n -ge 80 ]; }; do
	usleep 30000000
	n=$((n + 1))
	read -r up _ </proc/uptime
	echo "$up s after boot: $(tail -n 1 /belt.log)"
done

echo
echo "KERNEL $(uname -r), $(systemctl --version | head -n 1)"
is pipeline-ends-with-success "$(property Result) $(property ExecMainStatus)" "success 0"
is pipeline-runs-unprivileged "$(property DynamicUser) $(property NoNewPrivileges) $(property CapabilityBoundingSet)" "yes yes "
is memory-limit-of-the-budget-is-set "$(property MemoryMax)" 1073741824
sed 's/^/LOG /' /belt.log
while read -r frame texts; do
	got=$(sed -n "s/^frame $frame  *[0-9.]* ms *//p" /belt.log | grep -o '"[^"]*"' | tr -d '"' | sort | tr '\n' ' ')
	is "labels-of-frame-$frame-are-read" "$got" "$(for text in $texts; do echo "$text"; done | sort | tr '\n' ' ')"
	frames=$((frame + 1))
done </labels
if grep -q "belt: $frames frames read: $frames done, 0 dropped, 0 failed" /belt.log; then ok every-frame-is-done; else fail every-frame-is-done "$(tail -n 3 /belt.log | tr '\n' ' ')"; fi
boxes=$(cut -d' ' -f2- /labels | wc -w)
if grep -q "crops: $boxes boxes, $boxes crops" /belt.log; then ok every-box-is-cropped; else fail every-box-is-cropped "$(grep crops /belt.log)"; fi
if grep -q 'preprocessing on cpu; ONNX Runtime .* on cpu' /belt.log; then ok runs-on-the-cpu; else fail runs-on-the-cpu "$(tail -n 2 /belt.log | tr '\n' ' ')"; fi
echo DONE
poweroff -f
