require ${@bb.utils.contains('DISTRO_FEATURES', 'yoctune-own-board', bb.utils.contains_any('MACHINE', 'qemuarm64', 'linux-yoctune-own-board.inc', '', d), '', d)}
