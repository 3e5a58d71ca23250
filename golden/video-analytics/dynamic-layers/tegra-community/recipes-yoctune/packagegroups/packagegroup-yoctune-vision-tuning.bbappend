# Written by yoctune: read where a layer of the collection tegra-community is present.
RRECOMMENDS:${PN}:append:jetson-orin-nano-devkit = " onnxruntime"
