// Units and helpers for configurations in Jsonnet. Written by yoctune init, which
// renews it with --force: keep what is yours in another file.
//
//     local y = import 'yoctune.libsonnet';
//     … gpu: { max: y.MHz(918) }, memory: { zram: y.GiB(2) } …
//
// A quantity becomes a whole number of the unit that the language counts in, so
// that 1.1904 GHz is 1190400000 Hz and not what floating point makes of it.
local whole(unit, n, factor) =
  assert std.isNumber(n) && n >= 0 : 'a quantity in ' + unit + ' is a number from 0';
  local product = n * factor, nearest = std.floor(product + 0.5);
  assert std.abs(product - nearest) < 0.001 && nearest <= 9007199254740992 :
         '%g %s is not a whole number of the base unit' % [n, unit];
  nearest;

local unit(name, factor) = function(n) whole(name, n, factor);

{
  // Frequencies, in Hz.
  Hz:: unit('Hz', 1),
  kHz:: unit('kHz', 1000),
  MHz:: unit('MHz', 1000000),
  GHz:: unit('GHz', 1000000000),

  // Sizes, in bytes.
  B:: unit('B', 1),
  KiB:: unit('KiB', 1024),
  MiB:: unit('MiB', 1024 * 1024),
  GiB:: unit('GiB', 1024 * 1024 * 1024),
  TiB:: unit('TiB', 1024 * 1024 * 1024 * 1024),
  kB:: unit('kB', 1000),
  MB:: unit('MB', 1000000),
  GB:: unit('GB', 1000000000),

  // Durations, in nanoseconds.
  ns:: unit('ns', 1),
  us:: unit('us', 1000),
  ms:: unit('ms', 1000000),
  s:: unit('s', 1000000000),
  min:: unit('min', 60 * 1000000000),

  // Cores from first to last: y.cores(4, 5) is [4, 5].
  cores(first, last):: std.range(first, last),

  // The same target under several names, each with what is its own:
  //     targets: y.targets({ left: {}, right: { machine: 'box-right' } },
  //                        { board: 'orin-nano-8gb', release: 'scarthgap' })
  targets(each, common):: { [name]: common + each[name] for name in std.objectFields(each) },

  // A profile that gives cores to one service and keeps everything else off them:
  //     profiles: { capture: y.isolated('camera.service', y.cores(4, 5)) + { … } }
  isolated(service, cores):: {
    cpu+: { isolate: cores },
    services+: { [service]+: { cpus: cores } },
  },
}
