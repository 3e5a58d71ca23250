require ${@bb.utils.contains('DISTRO_FEATURES', 'yoctune-vision-tuning', 'tegra-nvpmodel-base-yoctune-vision-tuning.inc', '', d)}
