// Package examples embeds the files of this folder that layers contain.
package examples

import "embed"

// Monitoring holds a dashboard for Grafana, and for Prometheus a configuration and
// alert rules.
//
//go:embed grafana/yoctuned.json prometheus/prometheus.yml prometheus/yoctuned.rules.yml
var Monitoring embed.FS
