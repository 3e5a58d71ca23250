package check

import (
	"slices"
	"strings"
)

// isDocumented reports whether kernels document a parameter that has no facts. The
// names are those of Documentation/admin-guide/sysctl and
// Documentation/networking/ip-sysctl.rst.
func isDocumented(name string) bool {
	i := strings.LastIndexByte(name, '.')
	for _, group := range documented() {
		if i >= 0 && group[0] == name[:i] && slices.Contains(strings.Fields(group[1]), name[i+1:]) {
			return true
		}
	}
	return false
}

// documented lists the names by what precedes their last part.
func documented() [][2]string {
	return [][2]string{
		{"kernel", `
			acct auto_msgmni bootloader_type cap_last_cap core_sort_vma ctrl-alt-del hardlockup_all_cpu_backtrace
			hardlockup_panic hung_task_all_cpu_backtrace hung_task_check_count
			hung_task_check_interval_secs hung_task_detect_count io_uring_group ignore-unaligned-usertrap kexec_load_limit_panic
			kexec_load_limit_reboot max_lock_depth max_rcu_stall_to_panic msg_next_id msgmni ns_last_pid
			numa_balancing_scan_delay_ms numa_balancing_scan_period_max_ms
			numa_balancing_scan_period_min_ms numa_balancing_scan_size_mb
			oops_all_cpu_backtrace ostype overflowgid overflowuid panic_on_io_nmi panic_on_taint
			panic_on_unrecovered_nmi panic_sys_info perf_user_access perf_event_max_contexts_per_stack perf_event_max_stack printk_devkmsg
			printk_ratelimit_burst sched_deadline_period_max_us sem_next_id shm_next_id shm_rmid_forced
			softlockup_all_cpu_backtrace stack_erasing sysctl_writes_strict tainted traceoff_on_warning unknown_nmi_panic
			unprivileged_userns_clone user_events_max version
		`},
		{"kernel.pty", "max reserve"},
		{"kernel.random", "boot_id poolsize urandom_min_reseed_secs uuid"},
		{"kernel.seccomp", "actions_logged"},
		{"net.core", `
			bpf_jit_kallsyms bpf_jit_limit dev_weight_rx_bias dev_weight_tx_bias
			devconf_inherit_init_net fb_tunnels_only_for_init_net flow_limit_table_len
			gro_normal_batch max_skb_frags mem_pcpu_rsv message_burst netdev_rss_key netdev_tstamp_prequeue
			skb_defer_max txrehash xfrm_aevent_etime xfrm_aevent_rseqth xfrm_larval_drop
		`},
		{"net.ipv4", `
			fib_multipath_use_neigh fib_sync_mem fwmark_reflect icmp_echo_ignore_all
			icmp_errors_use_inbound_ifaddr icmp_ignore_bogus_error_responses icmp_msgs_burst
			icmp_msgs_per_sec icmp_ratemask igmp_link_local_mcast_reports igmp_max_msf igmp_qrv
			inet_peer_maxttl inet_peer_minttl inet_peer_threshold ip_autobind_reuse ip_default_ttl
			ip_dynaddr ip_early_demux ip_forward_update_priority ip_forward_use_pmtu ip_no_pmtu_disc
			ipfrag_low_thresh ipfrag_max_dist ipfrag_secret_interval ipfrag_time nexthop_compat_mode
			raw_l3mdev_accept tcp_abort_on_overflow tcp_adv_win_scale tcp_app_win tcp_base_mss
			tcp_challenge_ack_limit tcp_comp_sack_delay_ns tcp_comp_sack_nr tcp_dsack tcp_early_demux
			tcp_early_retrans tcp_fack tcp_fastopen_blackhole_timeout_sec tcp_fastopen_key tcp_frto
			tcp_fwmark_accept tcp_invalid_ratelimit tcp_l3mdev_accept tcp_max_orphans tcp_max_reordering
			tcp_migrate_req tcp_min_snd_mss tcp_mtu_probe_floor tcp_orphan_retries tcp_pacing_ca_ratio
			tcp_probe_interval tcp_probe_threshold tcp_recovery tcp_reflect_tos tcp_reordering tcp_retries1
			tcp_rfc1337 tcp_stdurg tcp_syn_retries tcp_thin_linear_timeouts tcp_tso_win_divisor
			tcp_workaround_signed_windows udp_early_demux udp_l3mdev_accept udp_wmem_min xfrm4_gc_thresh
		`},
		{"net.ipv6", `
			anycast_src_echo_reply auto_flowlabels bindv6only flowlabel_consistency flowlabel_reflect
			flowlabel_state_ranges fwmark_reflect idgen_delay idgen_retries ip6frag_high_thresh
			ip6frag_low_thresh ip6frag_time ip_nonlocal_bind max_dst_opts_length max_dst_opts_number
			max_hbh_length max_hbh_opts_number mld_max_msf mld_qrv xfrm6_gc_thresh
		`},
		{"net.ipv6.icmp", "echo_ignore_all ratelimit"},
		{"net.netfilter", "nf_conntrack_generic_timeout nf_conntrack_udp_timeout nf_log_all_netns"},
		{"vm", `
			memfd_noexec min_slab_ratio min_unmapped_ratio mmap_rnd_compat_bits movable_gigantic_pages
			nr_trim_pages numa_zonelist_order page_lock_unfairness
		`},
	}
}
