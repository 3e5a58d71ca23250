require ${@bb.utils.contains('DISTRO_FEATURES', 'yoctune-low-power-edge', bb.utils.contains_any('MACHINE', 'jetson-orin-nano-devkit-nvme', 'linux-yoctune-low-power-edge.inc', '', d), '', d)}
