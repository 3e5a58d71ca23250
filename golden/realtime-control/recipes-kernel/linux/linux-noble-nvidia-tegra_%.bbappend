require ${@bb.utils.contains('DISTRO_FEATURES', 'yoctune-realtime-control', bb.utils.contains_any('MACHINE', 'jetson-agx-orin-devkit', 'linux-yoctune-realtime-control.inc', '', d), '', d)}
