# Video analytics on a Jetson Orin Nano: one camera, one model, 20 W.

layer {
  name        = "vision-tuning"
  maintainer  = "Platform Team <platform@example.com>"
  description = "Steady 30 frames a second of video analytics inside 20 W"
  serial      = 1
}

target "line-camera" {
  board   = "orin-nano-8gb"
  machine = "jetson-orin-nano-devkit"
  release = "scarthgap"
  use     = ["quiet-box", "network", "inference"]

  # This box writes little: a smaller cache of dirty pages keeps the
  # NVMe from stalling the capture thread.
  sysctl = { "vm.dirty_ratio" = 10 }
}

# For every device that must not drop frames.
profile "quiet-box" {
  cpu {
    governor = "schedutil"
  }
  memory {
    thp  = "madvise"
    ksm  = false
    zram = { size = "2GiB", algorithm = "lz4" }
  }
  sysctl = {
    "vm.swappiness"             = 10
    "vm.dirty_ratio"            = 15
    "vm.dirty_background_ratio" = 5
    "vm.vfs_cache_pressure"     = 50
    "vm.min_free_kbytes"        = 131072
  }
  storage "nvme*" {
    scheduler = "none"
    readahead = "512KiB"
  }
  storage "mmcblk*" {
    scheduler = "mq-deadline"
    readahead = "256KiB"
  }
  packages = { perf = "install" }
  monitor {
    interval = "1s"
    metrics  = true
  }
  runtime {
    cuda = true
  }
}

locals {
  largest_buffer = 128 * 1024 * 1024
  largest_window = local.largest_buffer / 2
}

# Results leave over a long, lossy link.
profile "network" {
  kernel {
    config {
      TCP_CONG_ADVANCED = "y" # without it kconfig drops BBR silently
      TCP_CONG_BBR      = "m"
      NET_SCH_FQ        = "m"
    }
  }
  sysctl = {
    "net.core.default_qdisc"          = "fq"
    "net.core.rmem_max"               = local.largest_buffer
    "net.core.wmem_max"               = local.largest_buffer
    "net.core.netdev_max_backlog"     = 5000
    "net.ipv4.tcp_rmem"               = "4096 87380 ${local.largest_window}"
    "net.ipv4.tcp_wmem"               = "4096 65536 ${local.largest_window}"
    "net.ipv4.tcp_congestion_control" = "bbr"
  }
  modules = { sch_fq = "load" }
}

profile "inference" {
  power {
    default = "INFER_20W"

    # The stock 25W mode with the memory clock kept and the CPU held
    # back: the GPU does the work.
    mode "INFER_20W" {
      from = "25W"
      cpu {
        max = "1.1904GHz"
      }
      gpu {
        min = "306MHz"
        max = "918MHz"
      }
    }
    adaptive {
      up     = { load = 80, for = "2s" }
      down   = { load = 40, for = "30s" }
      ladder = ["15W", "INFER_20W", "25W"]
    }
  }

  # Cores 4 and 5 share a cluster and a clock of their own.
  cpu {
    isolate = [4, 5]
  }
  kernel {
    config {
      IOSCHED_BFQ         = "y"
      MQ_IOSCHED_DEADLINE = "y"
    }
  }

  # Read the serial on each label that passes the line camera.
  pipeline "labels" {
    start = true
    source {
      kind   = "file"
      path   = "media/serials.nv12"
      format = "nv12"
      width  = 192
      height = 48
      fps    = 30
    }
    stage "frame" {
      kind   = "preprocess"
      input  = "source"
      width  = 320
      height = 48
      fit    = "letterbox"
      color  = "bgr"
      pad    = 128
      mean   = [0.5, 0.5, 0.5]
      std    = [0.5, 0.5, 0.5]
    }
    stage "read" {
      kind           = "model"
      input          = "frame"
      uri            = "https://files.pythonhosted.org/packages/ba/12/1e5497183bdbe782dbb91bad1d0d2297dba4d2831b2652657f7517bfc6df/rapidocr_onnxruntime-1.4.4-py3-none-any.whl"
      archive_sha256 = "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf"
      member         = "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"
      sha256         = "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"
    }
    stage "text" {
      kind      = "postprocess"
      input     = "read"
      decode    = "ctc"
      labels    = "ppocr_keys_v1.txt"
      threshold = 0.5
    }
    slo {
      min_fps = 30
    }
    cpus = [4, 5]
    nice = -5
    budget {
      memory = "1GiB"
    }
  }
}
