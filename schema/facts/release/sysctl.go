package release

// LaterSysctlFile is read after the layer's 95-yoctune.conf where the package
// procps-sysctl is in the image: openembedded-core links it to its sysctl.conf on
// every series (meta/recipes-extended/procps).
const LaterSysctlFile = "99-sysctl.conf"

// LaterSysctl is what [LaterSysctlFile] sets a parameter to.
func LaterSysctl(key string) (value string, ok bool) {
	switch key {
	case "net.ipv4.tcp_syncookies", "net.ipv4.conf.all.log_martians", "net.ipv4.icmp_echo_ignore_broadcasts":
		return "1", true
	case "net.ipv4.conf.all.accept_redirects", "net.ipv4.conf.all.accept_source_route":
		return "0", true
	}
	return "", false
}
