# shellcheck shell=sh
# Checks of the units of examples/serve, after root.sh: after boot each pipeline answers a request of
# curl, in the sandbox of the layer, to members of the group and to clients with a certificate.
property() { systemctl show -P "$1" "yoctuned-pipeline@$2.service"; }
ask() { curl -sS --max-time 60 "$@" 2>&1; }
sockets=/run/yoctune-pipeline
# await NAME ARGUMENTS... waits until a pipeline is ready, and shows what it logs meanwhile.
await() {
	name=$1 n=0
	shift
	until ask --fail "$@" >/tmp/out; do
		n=$((n + 1))
		[ $n -lt 150 ] || { echo "$name is not ready: $(cat /tmp/out)"; return; }
		[ $((n % 10)) != 0 ] || echo "$name, attempt $n: $(property ActiveState "$name"), $(tail -n 1 "/$name.log"); $(cat /tmp/out)"
		usleep 2000000
	done
}
await orientation --unix-socket $sockets/orientation/requests http://localhost/v2/health/ready
await sentences --cacert /ca.pem --cert /client.pem --key /client.key https://127.0.0.1:8443/v2/health/ready

# answers NAME TEXT OUTPUT checks that an output contains a text.
answers() { case $3 in *"$2"*) ok "$1" ;; *) fail "$1" "$3" ;; esac; }

echo
echo "KERNEL $(uname -r), $(systemctl --version | head -n 1)"
is pipeline-runs-unprivileged "$(property DynamicUser orientation) $(property NoNewPrivileges orientation) $(property CapabilityBoundingSet orientation)" "yes yes "
is memory-limit-of-the-budget-is-set "$(property MemoryMax orientation)" 536870912
is socket-is-of-the-group "$(stat -c '%a %G' $sockets/orientation/requests)" "660 yoctune"
said=$(ask --unix-socket $sockets/orientation/requests -H 'Inference-Header-Content-Length: 0' --data-binary @/page.jpg http://localhost/v2/models/orientation/infer)
echo "LOG $said"
answers bright-picture-is-answered-with-its-class '\"label\":\"180\"' "$said"
su yoctune -s /bin/sh -c "curl -sS --unix-socket $sockets/orientation/requests http://localhost/v2/models/orientation" >/tmp/out 2>&1
answers member-of-the-group-is-answered '"name":"orientation"' "$(cat /tmp/out)"
su nobody -s /bin/sh -c "curl -sS --unix-socket $sockets/orientation/requests http://localhost/v2/models/orientation" >/tmp/out 2>&1
answers another-user-is-refused 'curl: (7)' "$(cat /tmp/out)"
ask --cacert /ca.pem --cert /client.pem --key /client.key -H "Inference-Header-Content-Length: $(cat /sentence.length)" --data-binary @/sentence https://127.0.0.1:8443/v2/models/sentences/infer >/tmp/out
answers sentence-is-answered-over-tls '"shape":[1,64,384]' "$(head -c 300 /tmp/out)"
answers client-without-a-certificate-is-refused 'curl: (' "$(ask --cacert /ca.pem https://127.0.0.1:8443/v2/models/sentences)"
is key-is-roots-alone "$(stat -c %a /etc/station/server.key)" 600
systemctl stop yoctuned-pipeline@orientation.service
is stop-ends-with-success "$(property Result orientation)" success
sed 's/^/LOG /' /orientation.log
if grep -q '^slo latency p99: ' /orientation.log; then ok stop-writes-the-summary; else fail stop-writes-the-summary "$(tail -n 3 /orientation.log | tr '\n' ' ')"; fi
sed 's/^/LOG /' /sentences.log
echo DONE
poweroff -f
