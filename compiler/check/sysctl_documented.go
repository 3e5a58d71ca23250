package check

import (
	"slices"
	"strings"
)

// isDocumented reports whether kernels document a parameter that has no facts. The
// names are those of Documentation/admin-guide/sysctl and
// Documentation/networking/ip-sysctl.rst, and those that the sources of Linux 4.9 to 6.18 register in the folders below.
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
		{"fs", `
			aio-max-nr aio-nr dentry-state dir-notify-enable file-max file-nr inode-nr inode-state lease-break-time
			leases-enable mount-max negative-dentry-limit nr_open overflowgid overflowuid pipe-max-size pipe-user-pages-hard
			pipe-user-pages-soft protected_fifos protected_hardlinks protected_regular protected_symlinks suid_dumpable
		`},
		{"fs.epoll", "max_user_watches"},
		{"fs.fanotify", "max_queued_events max_user_groups max_user_marks"},
		{"fs.inotify", "max_queued_events max_user_instances max_user_watches"},
		{"fs.mqueue", "msg_default msg_max msgsize_default msgsize_max queues_max"},
		{"fs.quota", "allocated_dquots cache_hits drops free_dquots lookups reads syncs warnings writes"},
		{"fs.verity", "require_signatures"},
		{"kernel.keys", "gc_delay maxbytes maxkeys persistent_keyring_expiry root_maxbytes root_maxkeys"},
		{"kernel.yama", "ptrace_scope"},
		{"net.bridge", `
			bridge-nf-call-arptables bridge-nf-call-ip6tables bridge-nf-call-iptables bridge-nf-filter-pppoe-tagged
			bridge-nf-filter-vlan-tagged bridge-nf-pass-vlan-input-dev
		`},
		{"net.ipv4.route", `
			error_burst error_cost flush gc_elasticity gc_interval gc_min_interval gc_min_interval_ms gc_thresh gc_timeout
			max_size min_adv_mss min_pmtu mtu_expires redirect_load redirect_number redirect_silence
		`},
		{"net.ipv6.route", `
			flush gc_elasticity gc_interval gc_min_interval gc_min_interval_ms gc_thresh gc_timeout max_size min_adv_mss
			mtu_expires skip_notify_on_dev_down
		`},
		{"user", `
			max_cgroup_namespaces max_fanotify_groups max_fanotify_marks max_inotify_instances max_inotify_watches
			max_ipc_namespaces max_mnt_namespaces max_net_namespaces max_pid_namespaces max_time_namespaces
			max_user_namespaces max_uts_namespaces
		`},
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

// interfaceKeys are the parameters that the kernel has for each interface, for "all" and for "default": those
// of net/ipv4/devinet.c, net/ipv6/addrconf.c and net/core/neighbour.c of Linux 4.9 to 6.18.
func interfaceKeys() [][2]string {
	const neighbours = `
		anycast_delay app_solicit base_reachable_time base_reachable_time_ms delay_first_probe_time gc_interval gc_stale_time
		gc_thresh1 gc_thresh2 gc_thresh3 interval_probe_time_ms locktime mcast_resolicit mcast_solicit proxy_delay
		proxy_qlen retrans_time retrans_time_ms ucast_solicit unres_qlen unres_qlen_bytes
	`
	return [][2]string{
		{"net.ipv4.conf.", `
			accept_local accept_redirects accept_source_route arp_accept arp_announce arp_evict_nocarrier arp_filter
			arp_ignore arp_notify bc_forwarding bootp_relay disable_policy disable_xfrm drop_gratuitous_arp
			drop_unicast_in_l2_multicast force_igmp_version forwarding igmpv2_unsolicited_report_interval
			igmpv3_unsolicited_report_interval ignore_routes_with_linkdown log_martians mc_forwarding medium_id
			promote_secondaries proxy_arp proxy_arp_pvlan route_localnet rp_filter secure_redirects send_redirects
			shared_media src_valid_mark tag
		`},
		{"net.ipv6.conf.", `
			accept_dad accept_ra accept_ra_defrtr accept_ra_from_local accept_ra_min_hop_limit accept_ra_min_lft accept_ra_mtu
			accept_ra_pinfo accept_ra_rt_info_max_plen accept_ra_rt_info_min_plen accept_ra_rt_table accept_ra_rtr_pref
			accept_redirects accept_source_route accept_untracked_na addr_gen_mode autoconf dad_transmits disable_ipv6
			disable_policy drop_unicast_in_l2_multicast drop_unsolicited_na enhanced_dad force_forwarding force_mld_version
			force_tllao forwarding hop_limit ignore_routes_with_linkdown ioam6_enabled ioam6_id ioam6_id_wide
			keep_addr_on_down max_addresses max_desync_factor mc_forwarding mldv1_unsolicited_report_interval
			mldv2_unsolicited_report_interval mtu ndisc_evict_nocarrier ndisc_notify ndisc_tclass optimistic_dad proxy_ndp
			ra_defrtr_metric ra_honor_pio_life ra_honor_pio_pflag regen_max_retry regen_min_advance router_probe_interval
			router_solicitation_delay router_solicitation_interval router_solicitation_max_interval router_solicitations
			rpl_seg_enabled seg6_enabled seg6_require_hmac stable_secret suppress_frag_ndisc temp_prefered_lft
			temp_valid_lft use_oif_addrs_only use_optimistic use_tempaddr
		`},
		{"net.ipv4.neigh.", neighbours},
		{"net.ipv6.neigh.", neighbours},
	}
}

// perInterface returns the parameters among which the last part of a name must be, and what stands before
// it; none where the name is not that of an interface's parameter.
func perInterface(name string) (prefix string, keys []string) {
	for _, group := range interfaceKeys() {
		if i := strings.LastIndexByte(name, '.'); strings.HasPrefix(name, group[0]) && i > len(group[0]) {
			return name[:i+1], strings.Fields(group[1])
		}
	}
	return "", nil
}
