require ${@bb.utils.contains('DISTRO_FEATURES', 'yoctune-realtime-control', 'tegra-nvpmodel-base-yoctune-realtime-control.inc', '', d)}
