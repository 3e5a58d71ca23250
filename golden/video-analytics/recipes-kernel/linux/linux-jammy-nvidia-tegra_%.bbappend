require ${@bb.utils.contains('DISTRO_FEATURES', 'yoctune-vision-tuning', 'linux-yoctune-vision-tuning.inc', '', d)}
