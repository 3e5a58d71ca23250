require ${@bb.utils.contains('DISTRO_FEATURES', 'yoctune-realtime-control', 'linux-yoctune-realtime-control.inc', '', d)}
