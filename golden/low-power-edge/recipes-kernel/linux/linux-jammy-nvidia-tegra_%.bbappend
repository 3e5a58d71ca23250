require ${@bb.utils.contains('DISTRO_FEATURES', 'yoctune-low-power-edge', 'linux-yoctune-low-power-edge.inc', '', d)}
