# Written by yoctune: read where a layer of the collection tegra-community is present.
RRECOMMENDS:${PN}:append:yoctune-on-jetson-orin-nano-devkit = " onnxruntime"
