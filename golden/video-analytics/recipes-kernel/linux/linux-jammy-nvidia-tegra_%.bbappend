require ${@bb.utils.contains('DISTRO_FEATURES', 'yoctune-vision-tuning', bb.utils.contains_any('MACHINE', 'jetson-orin-nano-devkit', 'linux-yoctune-vision-tuning.inc', '', d), '', d)}
