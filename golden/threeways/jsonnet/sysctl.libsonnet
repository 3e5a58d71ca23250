// Sets of kernel parameters that several profiles share.
{
  // A device that must not drop frames.
  calm: {
    'vm.swappiness': 10,
    'vm.dirty_background_ratio': 5,
    'vm.vfs_cache_pressure': 50,
    'vm.min_free_kbytes': 131072,
  },

  // Socket buffers of up to size bytes; TCP windows take half of it.
  buffers(size):: {
    'net.core.rmem_max': size,
    'net.core.wmem_max': size,
    'net.ipv4.tcp_rmem': '4096 87380 %d' % (size / 2),
    'net.ipv4.tcp_wmem': '4096 65536 %d' % (size / 2),
  },
}
