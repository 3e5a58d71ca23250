// Code generated from schema/*.cue by go test ./compiler/language/conform -update. DO NOT EDIT.

package conform

import "github.com/yoctune/yoctune/compiler/language/load"

// language is data that the linker lays out: it costs a start nothing.
var language = Schema{defs: []*definition{
	{name: "#AbsPath", doc: "an absolute path, without \"..\" or blanks", see: "schema/types.cue:63", value: &shape{op: matches, text: "^(/[A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*|/\\.[A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*)+$", see: "schema/types.cue:63"}},
	{name: "#Adaptive", doc: "Load-driven mode switching with hysteresis.", see: "schema/power.cue:60", value: &shape{op: object, see: "schema/power.cue:60", obj: &structure{
		fields: []*member{
			{name: "up", required: true, doc: "Load at which the mode goes up.", see: "schema/power.cue:62", value: &shape{op: named, def: "#LoadStep", see: "schema/power.cue:62"}},
			{name: "down", required: true, doc: "Load at which the mode goes down.", see: "schema/power.cue:65", value: &shape{op: named, def: "#LoadStep", see: "schema/power.cue:65"}},
			{name: "ladder", required: true, doc: "Modes from the lowest to the highest.", see: "schema/power.cue:68", value: &shape{op: list, see: "schema/power.cue:68", elem: &shape{op: named, def: "#ModeName", see: "schema/power.cue:68"}}},
			{name: "dwell", required: false, doc: "Shortest time in a mode before the load changes it; 5 s by default.", see: "schema/power.cue:71", value: &shape{op: named, def: "#Duration", see: "schema/power.cue:71"}},
			{name: "cool", required: false, doc: "Time without throttling before the mode goes up again; 30 s by default.", see: "schema/power.cue:74", value: &shape{op: named, def: "#Duration", see: "schema/power.cue:74"}},
			{name: "budget", required: false, doc: "Highest number of load-driven switches per hour; 30 by default.", see: "schema/power.cue:77", value: &shape{op: all, see: "schema/power.cue:77", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/power.cue:77"},
				&shape{op: bound, rel: ">=", see: "schema/power.cue:77", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/power.cue:77", number: 3600},
			}}},
		},
	}}},
	{name: "#ArgName", doc: "a kernel argument's name, such as \"isolcpus\"", see: "schema/types.cue:42", value: &shape{op: all, see: "schema/types.cue:42", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:42", number: 64},
		&shape{op: matches, text: "^[A-Za-z0-9][A-Za-z0-9_.-]*$", see: "schema/types.cue:42"},
	}}},
	{name: "#Batch", doc: "Batching of frames.", see: "schema/pipelines.cue:367", value: &shape{op: object, see: "schema/pipelines.cue:367", obj: &structure{
		fields: []*member{
			{name: "buckets", required: true, doc: "Batch sizes, ascending from 1; no other size is run.", see: "schema/pipelines.cue:369", value: &shape{op: list, see: "schema/pipelines.cue:369", elem: &shape{op: all, see: "schema/pipelines.cue:369", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:369"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:369", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:369", number: 256},
			}}}},
			{name: "delay", required: false, doc: "Longest wait for a fuller batch, as far as the latency objective allows.", see: "schema/pipelines.cue:372", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:372"}},
		},
	}}},
	{name: "#Board", doc: "A carrier board of your own around a known module.", see: "schema/config.cue:134", value: &shape{op: object, see: "schema/config.cue:134", obj: &structure{
		fields: []*member{
			{name: "base", required: true, doc: "Module SKU whose cores, clocks and power modes apply.", see: "schema/config.cue:136", value: &shape{op: named, def: "#Name", see: "schema/config.cue:136"}},
			{name: "description", required: false, doc: "Description of the board.", see: "schema/config.cue:139", value: &shape{op: named, def: "#Text", see: "schema/config.cue:139"}},
			{name: "supply", required: false, doc: "Power that the supply can deliver to the module, in milliwatts. A default power mode above it is a warning.", see: "schema/config.cue:142", value: &shape{op: all, see: "schema/config.cue:142", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/config.cue:142"},
				&shape{op: bound, rel: ">=", see: "schema/config.cue:142", number: 1000},
				&shape{op: bound, rel: "<=", see: "schema/config.cue:142", number: 1000000},
			}}},
			{name: "machines", required: true, doc: "MACHINEs of your BSP layer, by release.", see: "schema/config.cue:145", value: &shape{op: object, see: "schema/config.cue:145", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ReleaseName", see: "schema/config.cue:145"}, value: &shape{op: list, see: "schema/config.cue:145", elem: &shape{op: named, def: "#MachineName", see: "schema/config.cue:145"}}},
				},
			}}},
			{name: "observed", required: false, doc: "Readings of a device of this board, written by \"yoctune facts refresh\". They are compared with the facts and replace none.", see: "schema/config.cue:148", value: &shape{op: named, def: "#Observed", see: "schema/config.cue:148"}},
		},
	}}},
	{name: "#Build", doc: "Settings of the build, written to the layer's settings file.", see: "schema/build.cue:6", value: &shape{op: object, see: "schema/build.cue:6", obj: &structure{
		fields: []*member{
			{name: "sstate", required: false, doc: "Shared state cache.", see: "schema/build.cue:8", value: &shape{op: object, see: "schema/build.cue:8", obj: &structure{
				fields: []*member{
					{name: "dir", required: false, doc: "SSTATE_DIR.", see: "schema/build.cue:10", value: &shape{op: named, def: "#AbsPath", see: "schema/build.cue:10"}},
					{name: "mirrors", required: false, doc: "Mirrors of the shared state, by name; lower order comes first.", see: "schema/build.cue:13", value: &shape{op: object, see: "schema/build.cue:13", obj: &structure{
						patterns: []pattern{
							{key: &shape{op: named, def: "#Name", see: "schema/build.cue:13"}, value: &shape{op: named, def: "#Mirror", see: "schema/build.cue:13"}},
						},
					}}},
				},
			}}},
			{name: "downloads", required: false, doc: "Downloads.", see: "schema/build.cue:17", value: &shape{op: object, see: "schema/build.cue:17", obj: &structure{
				fields: []*member{
					{name: "dir", required: false, doc: "DL_DIR.", see: "schema/build.cue:19", value: &shape{op: named, def: "#AbsPath", see: "schema/build.cue:19"}},
					{name: "mirrors", required: false, doc: "Mirrors tried before the upstream address, by name; lower order comes first.", see: "schema/build.cue:22", value: &shape{op: object, see: "schema/build.cue:22", obj: &structure{
						patterns: []pattern{
							{key: &shape{op: named, def: "#Name", see: "schema/build.cue:22"}, value: &shape{op: named, def: "#Mirror", see: "schema/build.cue:22"}},
						},
					}}},
					{name: "own", required: false, doc: "Your own mirror for every kind of source; it is tried first (own-mirrors).", see: "schema/build.cue:25", value: &shape{op: named, def: "#URL", see: "schema/build.cue:25"}},
					{name: "archive", required: false, doc: "Also archive sources from version control systems, so that DL_DIR can serve as such a mirror (BB_GENERATE_MIRROR_TARBALLS).", see: "schema/build.cue:28", value: &shape{op: basic, kind: load.Bool, see: "schema/build.cue:28"}},
					{name: "network", required: false, doc: "Allowed origin of sources: \"any\", only the \"mirrors\" (BB_FETCH_PREMIRRORONLY), or \"none\" but DL_DIR (BB_NO_NETWORK).", see: "schema/build.cue:31", value: &shape{op: either, see: "schema/build.cue:31", parts: []*shape{
						&shape{op: exactly, see: "schema/build.cue:31", literal: &load.Node{Kind: load.String, Text: "any", True: false}},
						&shape{op: exactly, see: "schema/build.cue:31", literal: &load.Node{Kind: load.String, Text: "mirrors", True: false}},
						&shape{op: exactly, see: "schema/build.cue:31", literal: &load.Node{Kind: load.String, Text: "none", True: false}},
					}}},
					{name: "hosts", required: false, doc: "Hosts that sources may come from (BB_ALLOWED_NETWORKS), such as \"git.example.com\" or \"*.example.com\".", see: "schema/build.cue:34", value: &shape{op: list, see: "schema/build.cue:34", elem: &shape{op: named, def: "#HostPattern", see: "schema/build.cue:34"}}},
				},
			}}},
			{name: "hashserve", required: false, doc: "Hash equivalence.", see: "schema/build.cue:38", value: &shape{op: object, see: "schema/build.cue:38", obj: &structure{
				fields: []*member{
					{name: "address", required: false, doc: "BB_HASHSERVE.", see: "schema/build.cue:40", value: &shape{op: named, def: "#HostPort", see: "schema/build.cue:40"}},
					{name: "upstream", required: false, doc: "BB_HASHSERVE_UPSTREAM.", see: "schema/build.cue:43", value: &shape{op: named, def: "#HostPort", see: "schema/build.cue:43"}},
					{name: "off", required: false, doc: "Disable hash equivalence: a task is rebuilt whenever its inputs change, even if its output does not (OEBasicHash).", see: "schema/build.cue:46", value: &shape{op: basic, kind: load.Bool, see: "schema/build.cue:46"}},
					{name: "database", required: false, doc: "Folder of the local server's database (BB_HASHSERVE_DB_DIR); never on NFS.", see: "schema/build.cue:49", value: &shape{op: named, def: "#AbsPath", see: "schema/build.cue:49"}},
					{name: "server", required: false, doc: "Units for a server that several builders share, below contrib/hashserv of the layer.", see: "schema/build.cue:52", value: &shape{op: named, def: "#HashServer", see: "schema/build.cue:52"}},
				},
			}}},
			{name: "parallel", required: false, doc: "Parallelism.", see: "schema/build.cue:56", value: &shape{op: object, see: "schema/build.cue:56", obj: &structure{
				fields: []*member{
					{name: "tasks", required: false, doc: "Parallel tasks (BB_NUMBER_THREADS).", see: "schema/build.cue:58", value: &shape{op: all, see: "schema/build.cue:58", parts: []*shape{
						&shape{op: basic, kind: load.Int, see: "schema/build.cue:58"},
						&shape{op: bound, rel: ">=", see: "schema/build.cue:58", number: 1},
						&shape{op: bound, rel: "<=", see: "schema/build.cue:58", number: 1024},
					}}},
					{name: "make", required: false, doc: "Parallel jobs of one make (PARALLEL_MAKE).", see: "schema/build.cue:61", value: &shape{op: all, see: "schema/build.cue:61", parts: []*shape{
						&shape{op: basic, kind: load.Int, see: "schema/build.cue:61"},
						&shape{op: bound, rel: ">=", see: "schema/build.cue:61", number: 1},
						&shape{op: bound, rel: "<=", see: "schema/build.cue:61", number: 1024},
					}}},
					{name: "downloads", required: false, doc: "Parallel downloads.", see: "schema/build.cue:64", value: &shape{op: all, see: "schema/build.cue:64", parts: []*shape{
						&shape{op: basic, kind: load.Int, see: "schema/build.cue:64"},
						&shape{op: bound, rel: ">=", see: "schema/build.cue:64", number: 1},
						&shape{op: bound, rel: "<=", see: "schema/build.cue:64", number: 256},
					}}},
					{name: "machine", required: false, doc: "The build machine, from which tasks and make are derived when absent.", see: "schema/build.cue:67", value: &shape{op: named, def: "#BuildMachine", see: "schema/build.cue:67"}},
					{name: "load", required: false, doc: "Load above which no task starts, as a multiple of the number of CPUs (BB_LOADFACTOR_MAX).", see: "schema/build.cue:70", value: &shape{op: named, def: "#Decimal", see: "schema/build.cue:70"}},
					{name: "recipes", required: false, doc: "Parallel jobs of make by recipe, for recipes that need much memory, such as {\"onnxruntime\": 4}.", see: "schema/build.cue:73", value: &shape{op: object, see: "schema/build.cue:73", obj: &structure{
						patterns: []pattern{
							{key: &shape{op: named, def: "#PackageName", see: "schema/build.cue:73"}, value: &shape{op: all, see: "schema/build.cue:73", parts: []*shape{
								&shape{op: basic, kind: load.Int, see: "schema/build.cue:73"},
								&shape{op: bound, rel: ">=", see: "schema/build.cue:73", number: 1},
								&shape{op: bound, rel: "<=", see: "schema/build.cue:73", number: 1024},
							}}},
						},
					}}},
				},
			}}},
			{name: "pressure", required: false, doc: "Pressure above which no task starts, as in /proc/pressure.", see: "schema/build.cue:77", value: &shape{op: object, see: "schema/build.cue:77", obj: &structure{
				fields: []*member{
					{name: "cpu", required: false, doc: "BB_PRESSURE_MAX_CPU.", see: "schema/build.cue:79", value: &shape{op: all, see: "schema/build.cue:79", parts: []*shape{
						&shape{op: basic, kind: load.Int, see: "schema/build.cue:79"},
						&shape{op: bound, rel: ">=", see: "schema/build.cue:79", number: 1},
						&shape{op: bound, rel: "<=", see: "schema/build.cue:79", number: 100000000},
					}}},
					{name: "io", required: false, doc: "BB_PRESSURE_MAX_IO.", see: "schema/build.cue:82", value: &shape{op: all, see: "schema/build.cue:82", parts: []*shape{
						&shape{op: basic, kind: load.Int, see: "schema/build.cue:82"},
						&shape{op: bound, rel: ">=", see: "schema/build.cue:82", number: 1},
						&shape{op: bound, rel: "<=", see: "schema/build.cue:82", number: 100000000},
					}}},
					{name: "memory", required: false, doc: "BB_PRESSURE_MAX_MEMORY.", see: "schema/build.cue:85", value: &shape{op: all, see: "schema/build.cue:85", parts: []*shape{
						&shape{op: basic, kind: load.Int, see: "schema/build.cue:85"},
						&shape{op: bound, rel: ">=", see: "schema/build.cue:85", number: 1},
						&shape{op: bound, rel: "<=", see: "schema/build.cue:85", number: 100000000},
					}}},
				},
			}}},
			{name: "rmWork", required: false, doc: "Remove work directories during the build.", see: "schema/build.cue:89", value: &shape{op: basic, kind: load.Bool, see: "schema/build.cue:89"}},
			{name: "rmWorkExclude", required: false, doc: "Recipes whose work directories are kept (RM_WORK_EXCLUDE), such as an image that goes into another.", see: "schema/build.cue:92", value: &shape{op: list, see: "schema/build.cue:92", elem: &shape{op: named, def: "#PackageName", see: "schema/build.cue:92"}}},
			{name: "format", required: false, doc: "Format of packages (PACKAGE_CLASSES).", see: "schema/build.cue:95", value: &shape{op: either, see: "schema/build.cue:95", parts: []*shape{
				&shape{op: exactly, see: "schema/build.cue:95", literal: &load.Node{Kind: load.String, Text: "ipk", True: false}},
				&shape{op: exactly, see: "schema/build.cue:95", literal: &load.Node{Kind: load.String, Text: "rpm", True: false}},
				&shape{op: exactly, see: "schema/build.cue:95", literal: &load.Node{Kind: load.String, Text: "deb", True: false}},
			}}},
			{name: "image", required: false, doc: "Images that are built with the layer switched on.", see: "schema/build.cue:98", value: &shape{op: object, see: "schema/build.cue:98", obj: &structure{
				fields: []*member{
					{name: "features", required: false, doc: "Added to IMAGE_FEATURES, such as \"ssh-server-openssh\".", see: "schema/build.cue:100", value: &shape{op: list, see: "schema/build.cue:100", elem: &shape{op: named, def: "#PackageName", see: "schema/build.cue:100"}}},
					{name: "badRecommendations", required: false, doc: "Packages that are not installed when others only recommend them (BAD_RECOMMENDATIONS), with format \"ipk\" or \"rpm\".", see: "schema/build.cue:103", value: &shape{op: list, see: "schema/build.cue:103", elem: &shape{op: named, def: "#PackageName", see: "schema/build.cue:103"}}},
					{name: "readOnly", required: false, doc: "Mount the root file system read-only. /var/lib then lasts until the next boot: yoctuned's state is lost, and TensorRT engines are rebuilt.", see: "schema/build.cue:106", value: &shape{op: basic, kind: load.Bool, see: "schema/build.cue:106"}},
				},
			}}},
			{name: "optional", required: false, doc: "Packages of optional layers, by the layer's collection: they are installed if the layer is present.", see: "schema/build.cue:110", value: &shape{op: object, see: "schema/build.cue:110", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name", see: "schema/build.cue:110"}, value: &shape{op: list, see: "schema/build.cue:110", elem: &shape{op: named, def: "#PackageName", see: "schema/build.cue:110"}}},
				},
			}}},
			{name: "kas", required: false, doc: "A configuration for kas, one file per target.", see: "schema/build.cue:113", value: &shape{op: named, def: "#Kas", see: "schema/build.cue:113"}},
			{name: "bitbakeSetup", required: false, doc: "A configuration for bitbake-setup, one file per target; for whinlatter and later.", see: "schema/build.cue:116", value: &shape{op: basic, kind: load.Bool, see: "schema/build.cue:116"}},
			{name: "variables", required: false, doc: "Variables without a field here, by name. A variable that the release renamed or removed is refused.", see: "schema/build.cue:119", value: &shape{op: object, see: "schema/build.cue:119", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#VariableName", see: "schema/build.cue:119"}, value: &shape{op: named, def: "#Word", see: "schema/build.cue:119"}},
				},
			}}},
		},
	}}},
	{name: "#BuildMachine", doc: "Resources of a build machine.", see: "schema/build.cue:138", value: &shape{op: object, see: "schema/build.cue:138", obj: &structure{
		fields: []*member{
			{name: "cores", required: true, doc: "Processor cores.", see: "schema/build.cue:140", value: &shape{op: all, see: "schema/build.cue:140", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/build.cue:140"},
				&shape{op: bound, rel: ">=", see: "schema/build.cue:140", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/build.cue:140", number: 1024},
			}}},
			{name: "memory", required: true, doc: "Memory for the build.", see: "schema/build.cue:143", value: &shape{op: named, def: "#Size", see: "schema/build.cue:143"}},
		},
	}}},
	{name: "#CPU", doc: "CPU scheduling and clocks while the device runs.", see: "schema/cpu.cue:4", value: &shape{op: object, see: "schema/cpu.cue:4", obj: &structure{
		fields: []*member{
			{name: "isolate", required: false, doc: "Cores reserved for services and pipelines that name them. Kernel arguments, interrupt affinity, slices and the necessary kernel options follow from this field.", see: "schema/cpu.cue:7", value: &shape{op: list, see: "schema/cpu.cue:7", elem: &shape{op: named, def: "#Core", see: "schema/cpu.cue:7"}}},
			{name: "governor", required: false, doc: "cpufreq governor of all cores.", see: "schema/cpu.cue:10", value: &shape{op: either, see: "schema/cpu.cue:10", parts: []*shape{
				&shape{op: exactly, see: "schema/cpu.cue:10", literal: &load.Node{Kind: load.String, Text: "performance", True: false}},
				&shape{op: exactly, see: "schema/cpu.cue:10", literal: &load.Node{Kind: load.String, Text: "powersave", True: false}},
				&shape{op: exactly, see: "schema/cpu.cue:10", literal: &load.Node{Kind: load.String, Text: "ondemand", True: false}},
				&shape{op: exactly, see: "schema/cpu.cue:10", literal: &load.Node{Kind: load.String, Text: "conservative", True: false}},
				&shape{op: exactly, see: "schema/cpu.cue:10", literal: &load.Node{Kind: load.String, Text: "schedutil", True: false}},
			}}},
			{name: "min", required: false, doc: "Lowest clock (scaling_min_freq); a step of the module's table.", see: "schema/cpu.cue:13", value: &shape{op: named, def: "#Frequency", see: "schema/cpu.cue:13"}},
			{name: "max", required: false, doc: "Highest clock (scaling_max_freq); a step of the module's table.", see: "schema/cpu.cue:16", value: &shape{op: named, def: "#Frequency", see: "schema/cpu.cue:16"}},
			{name: "epp", required: false, doc: "Energy performance preference of all cores, where the cpufreq driver has one (CPPC).", see: "schema/cpu.cue:19", value: &shape{op: either, see: "schema/cpu.cue:19", parts: []*shape{
				&shape{op: exactly, see: "schema/cpu.cue:19", literal: &load.Node{Kind: load.String, Text: "default", True: false}},
				&shape{op: exactly, see: "schema/cpu.cue:19", literal: &load.Node{Kind: load.String, Text: "performance", True: false}},
				&shape{op: exactly, see: "schema/cpu.cue:19", literal: &load.Node{Kind: load.String, Text: "balance_performance", True: false}},
				&shape{op: exactly, see: "schema/cpu.cue:19", literal: &load.Node{Kind: load.String, Text: "balance_power", True: false}},
				&shape{op: exactly, see: "schema/cpu.cue:19", literal: &load.Node{Kind: load.String, Text: "power", True: false}},
			}}},
			{name: "boost", required: false, doc: "Allow clocks above the base clock, where the cpufreq driver supports it.", see: "schema/cpu.cue:22", value: &shape{op: basic, kind: load.Bool, see: "schema/cpu.cue:22"}},
			{name: "smt", required: false, doc: "Hardware threads: \"off\" leaves one per core. Jetson modules have one.", see: "schema/cpu.cue:25", value: &shape{op: either, see: "schema/cpu.cue:25", parts: []*shape{
				&shape{op: exactly, see: "schema/cpu.cue:25", literal: &load.Node{Kind: load.String, Text: "on", True: false}},
				&shape{op: exactly, see: "schema/cpu.cue:25", literal: &load.Node{Kind: load.String, Text: "off", True: false}},
			}}},
			{name: "maxIdleLatency", required: false, doc: "Longest wake-up time of a core; deeper idle states are not used (pm_qos_resume_latency_us). Whole microseconds; 0 allows no idle state at all.", see: "schema/cpu.cue:29", value: &shape{op: named, def: "#Duration", see: "schema/cpu.cue:29"}},
		},
	}}},
	{name: "#Celsius", doc: "a temperature in whole degrees Celsius, such as \"60C\"", see: "schema/fan.cue:40", value: &shape{op: matches, text: "^[0-9]{1,3}C$", see: "schema/fan.cue:40"}},
	{name: "#Channels", doc: "Hardware queues of a network interface; drivers offer combined queues, or rx and tx.", see: "schema/network.cue:34", value: &shape{op: object, see: "schema/network.cue:34", obj: &structure{
		fields: []*member{
			{name: "combined", required: false, doc: "Queues that both receive and transmit.", see: "schema/network.cue:36", value: &shape{op: all, see: "schema/network.cue:36", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/network.cue:36"},
				&shape{op: bound, rel: ">=", see: "schema/network.cue:36", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/network.cue:36", number: 1024},
			}}},
			{name: "rx", required: false, doc: "Receive queues.", see: "schema/network.cue:39", value: &shape{op: all, see: "schema/network.cue:39", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/network.cue:39"},
				&shape{op: bound, rel: ">=", see: "schema/network.cue:39"},
				&shape{op: bound, rel: "<=", see: "schema/network.cue:39", number: 1024},
			}}},
			{name: "tx", required: false, doc: "Transmit queues.", see: "schema/network.cue:42", value: &shape{op: all, see: "schema/network.cue:42", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/network.cue:42"},
				&shape{op: bound, rel: ">=", see: "schema/network.cue:42"},
				&shape{op: bound, rel: "<=", see: "schema/network.cue:42", number: 1024},
			}}},
		},
	}}},
	{name: "#Coalesce", doc: "Interrupt coalescing: an interrupt is raised after a delay or a number of packets.", see: "schema/network.cue:55", value: &shape{op: object, see: "schema/network.cue:55", obj: &structure{
		fields: []*member{
			{name: "rxUsecs", required: false, doc: "Longest delay of a receive interrupt, in microseconds.", see: "schema/network.cue:57", value: &shape{op: all, see: "schema/network.cue:57", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/network.cue:57"},
				&shape{op: bound, rel: ">=", see: "schema/network.cue:57"},
				&shape{op: bound, rel: "<=", see: "schema/network.cue:57", number: 1000000},
			}}},
			{name: "rxFrames", required: false, doc: "Packets received before an interrupt.", see: "schema/network.cue:60", value: &shape{op: all, see: "schema/network.cue:60", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/network.cue:60"},
				&shape{op: bound, rel: ">=", see: "schema/network.cue:60"},
				&shape{op: bound, rel: "<=", see: "schema/network.cue:60", number: 1000000},
			}}},
			{name: "txUsecs", required: false, doc: "Longest delay of a transmit interrupt, in microseconds.", see: "schema/network.cue:63", value: &shape{op: all, see: "schema/network.cue:63", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/network.cue:63"},
				&shape{op: bound, rel: ">=", see: "schema/network.cue:63"},
				&shape{op: bound, rel: "<=", see: "schema/network.cue:63", number: 1000000},
			}}},
			{name: "txFrames", required: false, doc: "Packets transmitted before an interrupt.", see: "schema/network.cue:66", value: &shape{op: all, see: "schema/network.cue:66", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/network.cue:66"},
				&shape{op: bound, rel: ">=", see: "schema/network.cue:66"},
				&shape{op: bound, rel: "<=", see: "schema/network.cue:66", number: 1000000},
			}}},
			{name: "adaptiveRx", required: false, doc: "Let the driver adapt the receive delay to the traffic.", see: "schema/network.cue:69", value: &shape{op: basic, kind: load.Bool, see: "schema/network.cue:69"}},
			{name: "adaptiveTx", required: false, doc: "Let the driver adapt the transmit delay to the traffic.", see: "schema/network.cue:72", value: &shape{op: basic, kind: load.Bool, see: "schema/network.cue:72"}},
		},
	}}},
	{name: "#Config", doc: "A whole configuration: one Yocto layer and the targets it serves.", see: "schema/config.cue:9", value: &shape{op: object, see: "schema/config.cue:9", obj: &structure{
		fields: []*member{
			{name: "layer", required: true, doc: "Identity of the layer.", see: "schema/config.cue:11", value: &shape{op: named, def: "#Layer", see: "schema/config.cue:11"}},
			{name: "targets", required: true, doc: "Machines to build for, by a name of your choice.", see: "schema/config.cue:14", value: &shape{op: object, see: "schema/config.cue:14", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name", see: "schema/config.cue:14"}, value: &shape{op: named, def: "#Target", see: "schema/config.cue:14"}},
				},
			}}},
			{name: "profiles", required: false, doc: "Reusable sets of settings that targets name under use.", see: "schema/config.cue:17", value: &shape{op: object, see: "schema/config.cue:17", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name", see: "schema/config.cue:17"}, value: &shape{op: named, def: "#Profile", see: "schema/config.cue:17"}},
				},
			}}},
			{name: "boards", required: false, doc: "Your own carrier boards around a known module.", see: "schema/config.cue:20", value: &shape{op: object, see: "schema/config.cue:20", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name", see: "schema/config.cue:20"}, value: &shape{op: named, def: "#Board", see: "schema/config.cue:20"}},
				},
			}}},
			{name: "build", required: false, doc: "Settings of the build itself: caches, mirrors, parallelism.", see: "schema/config.cue:23", value: &shape{op: named, def: "#Build", see: "schema/config.cue:23"}},
			{name: "suppress", required: false, doc: "Rules switched off, each with the reason why.", see: "schema/config.cue:26", value: &shape{op: object, see: "schema/config.cue:26", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#RuleID", see: "schema/config.cue:26"}, value: &shape{op: named, def: "#Suppression", see: "schema/config.cue:26"}},
				},
			}}},
		},
	}}},
	{name: "#ConfigSymbol", doc: "a kernel option without CONFIG_, in the kernel's own letters, such as \"TCP_CONG_BBR\"", see: "schema/types.cue:39", value: &shape{op: all, see: "schema/types.cue:39", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:39", number: 100},
		&shape{op: matches, text: "^[A-Z0-9][A-Za-z0-9_]*$", see: "schema/types.cue:39"},
	}}},
	{name: "#Core", doc: "a core number, counted from 0", see: "schema/types.cue:69", value: &shape{op: all, see: "schema/types.cue:69", parts: []*shape{
		&shape{op: basic, kind: load.Int, see: "schema/types.cue:69"},
		&shape{op: bound, rel: ">=", see: "schema/types.cue:69"},
		&shape{op: bound, rel: "<=", see: "schema/types.cue:69", number: 255},
	}}},
	{name: "#Crop", doc: "A region of a frame, in pixels.", see: "schema/pipelines.cue:289", value: &shape{op: object, see: "schema/pipelines.cue:289", obj: &structure{
		fields: []*member{
			{name: "x", required: true, doc: "Left edge.", see: "schema/pipelines.cue:291", value: &shape{op: all, see: "schema/pipelines.cue:291", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:291"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:291"},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:291", number: 16384},
			}}},
			{name: "y", required: true, doc: "Upper edge.", see: "schema/pipelines.cue:294", value: &shape{op: all, see: "schema/pipelines.cue:294", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:294"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:294"},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:294", number: 16384},
			}}},
			{name: "width", required: true, doc: "Width.", see: "schema/pipelines.cue:297", value: &shape{op: all, see: "schema/pipelines.cue:297", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:297"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:297", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:297", number: 16384},
			}}},
			{name: "height", required: true, doc: "Height.", see: "schema/pipelines.cue:300", value: &shape{op: all, see: "schema/pipelines.cue:300", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:300"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:300", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:300", number: 16384},
			}}},
		},
	}}},
	{name: "#CustomStage", doc: "A custom stage, a plug-in or a program; it takes frames, or the previous stage's tensor or results.", see: "schema/pipelines.cue:427", value: &shape{op: object, see: "schema/pipelines.cue:427", obj: &structure{
		fields: []*member{
			{name: "plugin", required: false, doc: "Shared library on the device, built against yoctune_stage.h.", see: "schema/pipelines.cue:429", value: &shape{op: named, def: "#AbsPath", see: "schema/pipelines.cue:429"}},
			{name: "exec", required: false, doc: "Program and arguments; the program implements the stage protocol.", see: "schema/pipelines.cue:432", value: &shape{op: list, see: "schema/pipelines.cue:432", elem: &shape{op: named, def: "#Word", see: "schema/pipelines.cue:432"}}},
			{name: "shape", required: false, doc: "Shape of its output tensor; by default it gives results.", see: "schema/pipelines.cue:435", value: &shape{op: list, see: "schema/pipelines.cue:435", elem: &shape{op: all, see: "schema/pipelines.cue:435", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:435"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:435", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:435", number: 1048576},
			}}}},
			{name: "options", required: false, doc: "Options passed to it verbatim.", see: "schema/pipelines.cue:438", value: &shape{op: named, def: "#Text", see: "schema/pipelines.cue:438"}},
			{name: "inside", required: false, doc: "Run the plug-in in the pipeline's own process: faster, but a crash ends the pipeline.", see: "schema/pipelines.cue:441", value: &shape{op: basic, kind: load.Bool, see: "schema/pipelines.cue:441"}},
		},
	}}},
	{name: "#Decimal", doc: "a decimal number, as a number or as text such as \"0.485\"", see: "schema/types.cue:87", value: &shape{op: either, see: "schema/types.cue:87", parts: []*shape{
		&shape{op: basic, kind: load.Number, any: true, see: "schema/types.cue:87"},
		&shape{op: matches, text: "^-?[0-9]+(\\.[0-9]+)?$", see: "schema/types.cue:87"},
	}}},
	{name: "#Degrade", doc: "A ladder of reduced work.", see: "schema/pipelines.cue:115", value: &shape{op: object, see: "schema/pipelines.cue:115", obj: &structure{
		fields: []*member{
			{name: "ladder", required: true, doc: "Levels; each keeps the changes of the previous ones.", see: "schema/pipelines.cue:117", value: &shape{op: list, see: "schema/pipelines.cue:117", elem: &shape{op: named, def: "#DegradeStep", see: "schema/pipelines.cue:117"}}},
			{name: "upDwell", required: false, doc: "Time without a slow window before a step up; 3 s by default.", see: "schema/pipelines.cue:120", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:120"}},
			{name: "maxDwell", required: false, doc: "Limit of upDwell, which doubles when a step up fails; 48 s by default.", see: "schema/pipelines.cue:123", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:123"}},
			{name: "headroom", required: false, doc: "Distance in degrees Celsius to the kernel's throttling point at which the device counts as too hot; 0 by default.", see: "schema/pipelines.cue:126", value: &shape{op: all, see: "schema/pipelines.cue:126", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:126"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:126"},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:126", number: 60},
			}}},
			{name: "power", required: false, doc: "Power of the whole module, in milliwatts, above which the pipeline steps down.", see: "schema/pipelines.cue:129", value: &shape{op: all, see: "schema/pipelines.cue:129", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:129"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:129", number: 1000},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:129", number: 200000},
			}}},
		},
	}}},
	{name: "#DegradeModel", doc: "A replacement model.", see: "schema/pipelines.cue:145", value: &shape{op: object, see: "schema/pipelines.cue:145", obj: &structure{
		fields: []*member{
			{name: "path", required: false, doc: "Model file on the device, or relative to the plan.", see: "schema/pipelines.cue:147", value: &shape{op: named, def: "#Path", see: "schema/pipelines.cue:147"}},
			{name: "sha256", required: false, doc: "Digest of the model.", see: "schema/pipelines.cue:150", value: &shape{op: named, def: "#SHA256", see: "schema/pipelines.cue:150"}},
			{name: "uri", required: false, doc: "Address from which the build fetches the model, with its sha256; the layer then installs it.", see: "schema/pipelines.cue:153", value: &shape{op: named, def: "#URL", see: "schema/pipelines.cue:153"}},
		},
	}}},
	{name: "#DegradeSize", doc: "A replacement tensor size.", see: "schema/pipelines.cue:157", value: &shape{op: object, see: "schema/pipelines.cue:157", obj: &structure{
		fields: []*member{
			{name: "width", required: true, doc: "Width in pixels.", see: "schema/pipelines.cue:159", value: &shape{op: all, see: "schema/pipelines.cue:159", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:159"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:159", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:159", number: 8192},
			}}},
			{name: "height", required: true, doc: "Height in pixels.", see: "schema/pipelines.cue:162", value: &shape{op: all, see: "schema/pipelines.cue:162", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:162"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:162", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:162", number: 8192},
			}}},
		},
	}}},
	{name: "#DegradeStep", doc: "A level of the ladder: at least one of the three.", see: "schema/pipelines.cue:133", value: &shape{op: object, see: "schema/pipelines.cue:133", obj: &structure{
		fields: []*member{
			{name: "fps", required: false, doc: "Frames per second.", see: "schema/pipelines.cue:135", value: &shape{op: all, see: "schema/pipelines.cue:135", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:135"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:135", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:135", number: 1000},
			}}},
			{name: "models", required: false, doc: "Replacement models, by model stage.", see: "schema/pipelines.cue:138", value: &shape{op: object, see: "schema/pipelines.cue:138", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name", see: "schema/pipelines.cue:138"}, value: &shape{op: named, def: "#DegradeModel", see: "schema/pipelines.cue:138"}},
				},
			}}},
			{name: "sizes", required: false, doc: "Replacement tensor sizes, by preprocess stage; the model must accept them.", see: "schema/pipelines.cue:141", value: &shape{op: object, see: "schema/pipelines.cue:141", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name", see: "schema/pipelines.cue:141"}, value: &shape{op: named, def: "#DegradeSize", see: "schema/pipelines.cue:141"}},
				},
			}}},
		},
	}}},
	{name: "#DeviceGlob", doc: "a glob over device names: letters, digits, \"*\", \"?\", \"_\", \".\" and \"-\"", see: "schema/types.cue:30", value: &shape{op: all, see: "schema/types.cue:30", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:30", number: 40},
		&shape{op: matches, text: "^[A-Za-z0-9*?_.-]+$", see: "schema/types.cue:30"},
	}}},
	{name: "#Duration", doc: "a duration with its unit, such as \"5ms\", or an integer in nanoseconds", see: "schema/types.cue:84", value: &shape{op: either, see: "schema/types.cue:84", parts: []*shape{
		&shape{op: all, see: "schema/types.cue:84", parts: []*shape{
			&shape{op: basic, kind: load.Int, see: "schema/types.cue:84"},
			&shape{op: bound, rel: ">=", see: "schema/types.cue:84"},
		}},
		&shape{op: matches, text: "^[0-9]+(\\.[0-9]+)?(ns|us|ms|s|min|h)$", see: "schema/types.cue:84"},
	}}},
	{name: "#Ensemble", doc: "An ensemble of models.", see: "schema/pipelines.cue:346", value: &shape{op: object, see: "schema/pipelines.cue:346", obj: &structure{
		fields: []*member{
			{name: "models", required: true, doc: "Further models, by name; their output has the shape of the first model's output.", see: "schema/pipelines.cue:348", value: &shape{op: object, see: "schema/pipelines.cue:348", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name", see: "schema/pipelines.cue:348"}, value: &shape{op: named, def: "#EnsembleModel", see: "schema/pipelines.cue:348"}},
				},
			}}},
			{name: "vote", required: false, doc: "How to combine the outputs: mean, majority of the best class, or maximum. Mean by default.", see: "schema/pipelines.cue:351", value: &shape{op: either, see: "schema/pipelines.cue:351", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:351", literal: &load.Node{Kind: load.String, Text: "mean", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:351", literal: &load.Node{Kind: load.String, Text: "majority", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:351", literal: &load.Node{Kind: load.String, Text: "max", True: false}},
			}}},
		},
	}}},
	{name: "#EnsembleModel", doc: "A model of the ensemble.", see: "schema/pipelines.cue:355", value: &shape{op: object, see: "schema/pipelines.cue:355", obj: &structure{
		fields: []*member{
			{name: "path", required: false, doc: "Model file on the device, or relative to the plan.", see: "schema/pipelines.cue:357", value: &shape{op: named, def: "#Path", see: "schema/pipelines.cue:357"}},
			{name: "sha256", required: false, doc: "Digest of the model, under which it is installed.", see: "schema/pipelines.cue:360", value: &shape{op: named, def: "#SHA256", see: "schema/pipelines.cue:360"}},
			{name: "uri", required: false, doc: "Where the build fetches the model from, with its sha256.", see: "schema/pipelines.cue:363", value: &shape{op: named, def: "#URL", see: "schema/pipelines.cue:363"}},
		},
	}}},
	{name: "#EnvironmentName", doc: "the name of an environment variable: letters, digits and \"_\"", see: "schema/types.cue:54", value: &shape{op: all, see: "schema/types.cue:54", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:54", number: 100},
		&shape{op: matches, text: "^[A-Za-z_][A-Za-z0-9_]*$", see: "schema/types.cue:54"},
	}}},
	{name: "#Fan", doc: "The module's fan, controlled by NVIDIA's nvfancontrol. The layer changes the file that the BSP installs; nothing else sets the fan's speed.", see: "schema/fan.cue:7", value: &shape{op: object, see: "schema/fan.cue:7", obj: &structure{
		fields: []*member{
			{name: "profile", required: false, doc: "Profile in force from boot: one of curves, or one of the BSP's, \"quiet\" or \"cool\".", see: "schema/fan.cue:9", value: &shape{op: named, def: "#FanProfileName", see: "schema/fan.cue:9"}},
			{name: "curves", required: false, doc: "Profiles of your own, by name: the fan's speed by temperature, such as {\"35C\": pwm: 0, \"60C\": pwm: 120, \"95C\": pwm: 255}. Speeds between two points are interpolated. A curve with the name of a BSP profile replaces it. Temperatures are the chip's own; the build converts them when the BSP's file holds margins below the limit (TMARGIN).", see: "schema/fan.cue:15", value: &shape{op: object, see: "schema/fan.cue:15", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#FanProfileName", see: "schema/fan.cue:15"}, value: &shape{op: object, see: "schema/fan.cue:15", obj: &structure{
						patterns: []pattern{
							{key: &shape{op: named, def: "#Celsius", see: "schema/fan.cue:15"}, value: &shape{op: named, def: "#FanPoint", see: "schema/fan.cue:15"}},
						},
					}}},
				},
			}}},
			{name: "governor", required: false, doc: "How nvfancontrol moves between two points of the curve; by default the BSP's choice.", see: "schema/fan.cue:18", value: &shape{op: either, see: "schema/fan.cue:18", parts: []*shape{
				&shape{op: exactly, see: "schema/fan.cue:18", literal: &load.Node{Kind: load.String, Text: "cont", True: false}},
				&shape{op: exactly, see: "schema/fan.cue:18", literal: &load.Node{Kind: load.String, Text: "pid", True: false}},
			}}},
			{name: "control", required: false, doc: "Control the fan by its measured speed (\"close_loop\") or by pulse width alone (\"open_loop\"); by default the BSP's choice.", see: "schema/fan.cue:21", value: &shape{op: either, see: "schema/fan.cue:21", parts: []*shape{
				&shape{op: exactly, see: "schema/fan.cue:21", literal: &load.Node{Kind: load.String, Text: "open_loop", True: false}},
				&shape{op: exactly, see: "schema/fan.cue:21", literal: &load.Node{Kind: load.String, Text: "close_loop", True: false}},
			}}},
		},
	}}},
	{name: "#FanPoint", doc: "A point of a fan curve.", see: "schema/fan.cue:28", value: &shape{op: object, see: "schema/fan.cue:28", obj: &structure{
		fields: []*member{
			{name: "pwm", required: true, doc: "Pulse width, 0 (off) to 255 (full speed).", see: "schema/fan.cue:30", value: &shape{op: all, see: "schema/fan.cue:30", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/fan.cue:30"},
				&shape{op: bound, rel: ">=", see: "schema/fan.cue:30"},
				&shape{op: bound, rel: "<=", see: "schema/fan.cue:30", number: 255},
			}}},
			{name: "rpm", required: false, doc: "Speed in revolutions per minute, for control by measured speed; by default in proportion to the BSP's full speed.", see: "schema/fan.cue:33", value: &shape{op: all, see: "schema/fan.cue:33", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/fan.cue:33"},
				&shape{op: bound, rel: ">=", see: "schema/fan.cue:33"},
				&shape{op: bound, rel: "<=", see: "schema/fan.cue:33", number: 100000},
			}}},
			{name: "hysteresis", required: false, doc: "How far the temperature must fall before the fan slows down again; 0 by default.", see: "schema/fan.cue:36", value: &shape{op: named, def: "#Celsius", see: "schema/fan.cue:36"}},
		},
	}}},
	{name: "#FanProfileName", doc: "a fan profile name: letters, digits and \"_\", at most 32 characters", see: "schema/fan.cue:25", value: &shape{op: all, see: "schema/fan.cue:25", parts: []*shape{
		&shape{op: maxRunes, see: "schema/fan.cue:25", number: 32},
		&shape{op: matches, text: "^[A-Za-z0-9_]+$", see: "schema/fan.cue:25"},
	}}},
	{name: "#Frequency", doc: "a frequency with its unit, such as \"918MHz\", or an integer in Hz", see: "schema/types.cue:72", value: &shape{op: either, see: "schema/types.cue:72", parts: []*shape{
		&shape{op: all, see: "schema/types.cue:72", parts: []*shape{
			&shape{op: basic, kind: load.Int, see: "schema/types.cue:72"},
			&shape{op: bound, rel: ">=", see: "schema/types.cue:72"},
		}},
		&shape{op: matches, text: "^[0-9]+(\\.[0-9]+)?(Hz|kHz|MHz|GHz)$", see: "schema/types.cue:72"},
	}}},
	{name: "#FrequencyCap", doc: "a frequency with its unit, such as \"918MHz\", an integer in Hz, or \"unlimited\"", see: "schema/types.cue:75", value: &shape{op: either, see: "schema/types.cue:75", parts: []*shape{
		&shape{op: all, see: "schema/types.cue:75", parts: []*shape{
			&shape{op: basic, kind: load.Int, see: "schema/types.cue:75"},
			&shape{op: bound, rel: ">=", see: "schema/types.cue:75"},
		}},
		&shape{op: matches, text: "^([0-9]+(\\.[0-9]+)?(Hz|kHz|MHz|GHz)|unlimited)$", see: "schema/types.cue:75"},
	}}},
	{name: "#GPU", doc: "GPU clock limits while the device runs (devfreq). Prefer power modes: nvpmodel writes the same files.", see: "schema/gpu.cue:4", value: &shape{op: object, see: "schema/gpu.cue:4", obj: &structure{
		fields: []*member{
			{name: "min", required: false, doc: "Lowest clock; a step of the module's table.", see: "schema/gpu.cue:6", value: &shape{op: named, def: "#Frequency", see: "schema/gpu.cue:6"}},
			{name: "max", required: false, doc: "Highest clock; a step of the module's table.", see: "schema/gpu.cue:9", value: &shape{op: named, def: "#Frequency", see: "schema/gpu.cue:9"}},
			{name: "governor", required: false, doc: "devfreq governor.", see: "schema/gpu.cue:12", value: &shape{op: either, see: "schema/gpu.cue:12", parts: []*shape{
				&shape{op: exactly, see: "schema/gpu.cue:12", literal: &load.Node{Kind: load.String, Text: "nvhost_podgov", True: false}},
				&shape{op: exactly, see: "schema/gpu.cue:12", literal: &load.Node{Kind: load.String, Text: "performance", True: false}},
				&shape{op: exactly, see: "schema/gpu.cue:12", literal: &load.Node{Kind: load.String, Text: "powersave", True: false}},
				&shape{op: exactly, see: "schema/gpu.cue:12", literal: &load.Node{Kind: load.String, Text: "simple_ondemand", True: false}},
				&shape{op: exactly, see: "schema/gpu.cue:12", literal: &load.Node{Kind: load.String, Text: "userspace", True: false}},
			}}},
		},
	}}},
	{name: "#HashServer", doc: "A hash equivalence server of your own.", see: "schema/build.cue:123", value: &shape{op: object, see: "schema/build.cue:123", obj: &structure{
		fields: []*member{
			{name: "bitbake", required: true, doc: "Checkout of bitbake on that machine.", see: "schema/build.cue:125", value: &shape{op: named, def: "#AbsPath", see: "schema/build.cue:125"}},
			{name: "listen", required: false, doc: "Address and port to listen on, such as \":8686\".", see: "schema/build.cue:128", value: &shape{op: matches, text: "^(ws://)?[A-Za-z0-9.-]*:[0-9]{1,5}$", see: "schema/build.cue:128"}},
			{name: "upstream", required: false, doc: "Server for hashes that this one lacks.", see: "schema/build.cue:131", value: &shape{op: named, def: "#HostPort", see: "schema/build.cue:131"}},
			{name: "readOnly", required: false, doc: "Builders may query but not report.", see: "schema/build.cue:134", value: &shape{op: basic, kind: load.Bool, see: "schema/build.cue:134"}},
		},
	}}},
	{name: "#HostPattern", doc: "a host name, or \"*.\" and a domain", see: "schema/types.cue:99", value: &shape{op: all, see: "schema/types.cue:99", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:99", number: 253},
		&shape{op: matches, text: "^([*][.])?[A-Za-z0-9][A-Za-z0-9.-]*$", see: "schema/types.cue:99"},
	}}},
	{name: "#HostPort", doc: "a host and port, such as \"hashserv.example.com:8686\", or \"auto\"", see: "schema/types.cue:93", value: &shape{op: matches, text: "^(auto|(wss?://)?[A-Za-z0-9.-]+:[0-9]{1,5}(/[A-Za-z0-9./-]*)?)$", see: "schema/types.cue:93"}},
	{name: "#IRQ", doc: "Interrupt affinity.", see: "schema/irq.cue:4", value: &shape{op: object, see: "schema/irq.cue:4", obj: &structure{
		fields: []*member{
			{name: "affinity", required: false, doc: "Cores by interrupt action name, as in the last column of /proc/interrupts; globs are allowed.", see: "schema/irq.cue:6", value: &shape{op: object, see: "schema/irq.cue:6", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#IRQName", see: "schema/irq.cue:6"}, value: &shape{op: list, see: "schema/irq.cue:6", elem: &shape{op: named, def: "#Core", see: "schema/irq.cue:6"}}},
				},
			}}},
		},
	}}},
	{name: "#IRQName", doc: "the action name of an interrupt, as in the last column of /proc/interrupts; globs are allowed", see: "schema/types.cue:36", value: &shape{op: all, see: "schema/types.cue:36", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:36", number: 64},
		&shape{op: matches, text: "^[A-Za-z0-9*?][A-Za-z0-9*?_.:@-]*$", see: "schema/types.cue:36"},
	}}},
	{name: "#Kas", doc: "A configuration for kas.", see: "schema/build.cue:147", value: &shape{op: object, see: "schema/build.cue:147", obj: &structure{
		fields: []*member{
			{name: "image", required: false, doc: "Image to build.", see: "schema/build.cue:149", value: &shape{op: named, def: "#PackageName", see: "schema/build.cue:149"}},
			{name: "distro", required: false, doc: "DISTRO, by default \"nodistro\". For a distro of meta-poky, that layer is checked out; add other layers in a kas file of your own.", see: "schema/build.cue:152", value: &shape{op: named, def: "#Name", see: "schema/build.cue:152"}},
			{name: "folder", required: false, doc: "Folder of the layer inside its repository; by default its top.", see: "schema/build.cue:155", value: &shape{op: named, def: "#Path", see: "schema/build.cue:155"}},
		},
	}}},
	{name: "#KeepFree", doc: "Resources to leave free. Below these limits the pipeline reduces its work, then pauses.", see: "schema/pipelines.cue:106", value: &shape{op: object, see: "schema/pipelines.cue:106", obj: &structure{
		fields: []*member{
			{name: "memory", required: false, doc: "Memory available to other programs.", see: "schema/pipelines.cue:108", value: &shape{op: named, def: "#Size", see: "schema/pipelines.cue:108"}},
			{name: "disk", required: false, doc: "Free space on the sink's disk.", see: "schema/pipelines.cue:111", value: &shape{op: named, def: "#Size", see: "schema/pipelines.cue:111"}},
		},
	}}},
	{name: "#Kernel", doc: "The kernel's configuration, command line and preemption model.", see: "schema/kernel.cue:4", value: &shape{op: object, see: "schema/kernel.cue:4", obj: &structure{
		fields: []*member{
			{name: "config", required: false, doc: "Options of the kernel configuration, without CONFIG_: \"y\", \"m\", \"n\", a number, or text.", see: "schema/kernel.cue:6", value: &shape{op: object, see: "schema/kernel.cue:6", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ConfigSymbol", see: "schema/kernel.cue:6"}, value: &shape{op: either, see: "schema/kernel.cue:6", parts: []*shape{
						&shape{op: basic, kind: load.Int, see: "schema/kernel.cue:6"},
						&shape{op: named, def: "#Word", see: "schema/kernel.cue:6"},
					}}},
				},
			}}},
			{name: "args", required: false, doc: "Kernel arguments: a value, or true for an argument without one.", see: "schema/kernel.cue:9", value: &shape{op: object, see: "schema/kernel.cue:9", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ArgName", see: "schema/kernel.cue:9"}, value: &shape{op: either, see: "schema/kernel.cue:9", parts: []*shape{
						&shape{op: exactly, see: "schema/kernel.cue:9", literal: &load.Node{Kind: load.Bool, Text: "", True: true}},
						&shape{op: basic, kind: load.Int, see: "schema/kernel.cue:9"},
						&shape{op: named, def: "#Word", see: "schema/kernel.cue:9"},
					}}},
				},
			}}},
			{name: "preempt", required: false, doc: "Preemption model. \"rt\" uses the release's RT kernel recipe, or PREEMPT_RT by configuration.", see: "schema/kernel.cue:12", value: &shape{op: either, see: "schema/kernel.cue:12", parts: []*shape{
				&shape{op: exactly, see: "schema/kernel.cue:12", literal: &load.Node{Kind: load.String, Text: "none", True: false}},
				&shape{op: exactly, see: "schema/kernel.cue:12", literal: &load.Node{Kind: load.String, Text: "voluntary", True: false}},
				&shape{op: exactly, see: "schema/kernel.cue:12", literal: &load.Node{Kind: load.String, Text: "full", True: false}},
				&shape{op: exactly, see: "schema/kernel.cue:12", literal: &load.Node{Kind: load.String, Text: "rt", True: false}},
			}}},
		},
	}}},
	{name: "#KernelLaunch", doc: "Launch configuration of a kernel.", see: "schema/pipelines.cue:67", value: &shape{op: object, see: "schema/pipelines.cue:67", obj: &structure{
		fields: []*member{
			{name: "block", required: true, doc: "Threads per block: a multiple of 32 that the kernel and the module's GPU support.", see: "schema/pipelines.cue:69", value: &shape{op: all, see: "schema/pipelines.cue:69", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:69"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:69", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:69", number: 1024},
			}}},
		},
	}}},
	{name: "#KernelLaunches", doc: "Kernels with a configurable launch.", see: "schema/pipelines.cue:61", value: &shape{op: object, see: "schema/pipelines.cue:61", obj: &structure{
		fields: []*member{
			{name: "preprocess", required: false, doc: "The preprocess kernel.", see: "schema/pipelines.cue:63", value: &shape{op: named, def: "#KernelLaunch", see: "schema/pipelines.cue:63"}},
		},
	}}},
	{name: "#Layer", doc: "The layer's identity.", see: "schema/config.cue:30", value: &shape{op: object, see: "schema/config.cue:30", obj: &structure{
		fields: []*member{
			{name: "name", required: true, doc: "Collection and layer name. The distro feature yoctune-<name> switches the layer on.", see: "schema/config.cue:32", value: &shape{op: named, def: "#LayerName", see: "schema/config.cue:32"}},
			{name: "maintainer", required: true, doc: "Maintainer of the layer, as \"Name <mail>\".", see: "schema/config.cue:35", value: &shape{op: named, def: "#Text", see: "schema/config.cue:35"}},
			{name: "description", required: false, doc: "One sentence for the layer's README.", see: "schema/config.cue:38", value: &shape{op: named, def: "#Text", see: "schema/config.cue:38"}},
			{name: "priority", required: false, doc: "BBFILE_PRIORITY; a higher number takes precedence over other layers.", see: "schema/config.cue:41", value: &shape{op: all, see: "schema/config.cue:41", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/config.cue:41"},
				&shape{op: bound, rel: ">=", see: "schema/config.cue:41"},
				&shape{op: bound, rel: "<=", see: "schema/config.cue:41", number: 99},
			}}},
			{name: "version", required: false, doc: "LAYERVERSION.", see: "schema/config.cue:44", value: &shape{op: all, see: "schema/config.cue:44", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/config.cue:44"},
				&shape{op: bound, rel: ">=", see: "schema/config.cue:44", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/config.cue:44", number: 65535},
			}}},
			{name: "serial", required: false, doc: "Serial of the plans: a device refuses a plan older than the one it runs.", see: "schema/config.cue:47", value: &shape{op: all, see: "schema/config.cue:47", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/config.cue:47"},
				&shape{op: bound, rel: ">=", see: "schema/config.cue:47", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/config.cue:47", number: 9007199254740991},
			}}},
		},
	}}},
	{name: "#LayerName", doc: "a layer name: lower-case letters, digits and \"-\", beginning with a letter, at most 40 characters", see: "schema/types.cue:9", value: &shape{op: all, see: "schema/types.cue:9", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:9", number: 40},
		&shape{op: matches, text: "^[a-z][a-z0-9-]*$", see: "schema/types.cue:9"},
	}}},
	{name: "#LoadStep", doc: "A load that persists for a time.", see: "schema/power.cue:81", value: &shape{op: object, see: "schema/power.cue:81", obj: &structure{
		fields: []*member{
			{name: "load", required: true, doc: "Load in percent.", see: "schema/power.cue:83", value: &shape{op: all, see: "schema/power.cue:83", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/power.cue:83"},
				&shape{op: bound, rel: ">=", see: "schema/power.cue:83"},
				&shape{op: bound, rel: "<=", see: "schema/power.cue:83", number: 100},
			}}},
			{name: "for", required: true, doc: "Duration of the load.", see: "schema/power.cue:86", value: &shape{op: named, def: "#Duration", see: "schema/power.cue:86"}},
		},
	}}},
	{name: "#MachineName", doc: "a bitbake machine name: letters, digits, \".\", \"_\", \"+\" and \"-\"", see: "schema/types.cue:12", value: &shape{op: all, see: "schema/types.cue:12", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:12", number: 80},
		&shape{op: matches, text: "^[A-Za-z0-9][A-Za-z0-9._+-]*$", see: "schema/types.cue:12"},
	}}},
	{name: "#Memory", doc: "Memory management.", see: "schema/memory.cue:4", value: &shape{op: object, see: "schema/memory.cue:4", obj: &structure{
		fields: []*member{
			{name: "thp", required: false, doc: "Transparent huge pages.", see: "schema/memory.cue:6", value: &shape{op: either, see: "schema/memory.cue:6", parts: []*shape{
				&shape{op: exactly, see: "schema/memory.cue:6", literal: &load.Node{Kind: load.String, Text: "always", True: false}},
				&shape{op: exactly, see: "schema/memory.cue:6", literal: &load.Node{Kind: load.String, Text: "madvise", True: false}},
				&shape{op: exactly, see: "schema/memory.cue:6", literal: &load.Node{Kind: load.String, Text: "never", True: false}},
			}}},
			{name: "thpDefrag", required: false, doc: "When the kernel compacts memory to make a transparent huge page.", see: "schema/memory.cue:9", value: &shape{op: either, see: "schema/memory.cue:9", parts: []*shape{
				&shape{op: exactly, see: "schema/memory.cue:9", literal: &load.Node{Kind: load.String, Text: "always", True: false}},
				&shape{op: exactly, see: "schema/memory.cue:9", literal: &load.Node{Kind: load.String, Text: "defer", True: false}},
				&shape{op: exactly, see: "schema/memory.cue:9", literal: &load.Node{Kind: load.String, Text: "defer+madvise", True: false}},
				&shape{op: exactly, see: "schema/memory.cue:9", literal: &load.Node{Kind: load.String, Text: "madvise", True: false}},
				&shape{op: exactly, see: "schema/memory.cue:9", literal: &load.Node{Kind: load.String, Text: "never", True: false}},
			}}},
			{name: "ksm", required: false, doc: "Merge equal pages (KSM).", see: "schema/memory.cue:12", value: &shape{op: basic, kind: load.Bool, see: "schema/memory.cue:12"}},
			{name: "mglru", required: false, doc: "Multi-generational LRU, for cheaper page reclaim. Linux 6.1 and newer.", see: "schema/memory.cue:15", value: &shape{op: basic, kind: load.Bool, see: "schema/memory.cue:15"}},
			{name: "mglruMinTTL", required: false, doc: "Pages used within this time are not reclaimed; when no other page is left, the OOM killer acts instead of thrashing (min_ttl_ms). Whole milliseconds.", see: "schema/memory.cue:19", value: &shape{op: named, def: "#Duration", see: "schema/memory.cue:19"}},
			{name: "zram", required: false, doc: "Compressed swap in memory: its size, or size and algorithm.", see: "schema/memory.cue:22", value: &shape{op: either, see: "schema/memory.cue:22", parts: []*shape{
				&shape{op: named, def: "#Size", see: "schema/memory.cue:22"},
				&shape{op: named, def: "#ZRAM", see: "schema/memory.cue:22"},
			}}},
			{name: "hugepages", required: false, doc: "Reserved huge pages: number by page size, such as {\"2MiB\": 64}.", see: "schema/memory.cue:25", value: &shape{op: object, see: "schema/memory.cue:25", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: matches, text: "^(64KiB|2MiB|32MiB|1GiB)$", see: "schema/memory.cue:25"}, value: &shape{op: all, see: "schema/memory.cue:25", parts: []*shape{
						&shape{op: basic, kind: load.Int, see: "schema/memory.cue:25"},
						&shape{op: bound, rel: ">=", see: "schema/memory.cue:25"},
						&shape{op: bound, rel: "<=", see: "schema/memory.cue:25", number: 1048576},
					}}},
				},
			}}},
		},
	}}},
	{name: "#Mirror", doc: "A mirror of downloads or of the shared state.", see: "schema/build.cue:159", value: &shape{op: object, see: "schema/build.cue:159", obj: &structure{
		fields: []*member{
			{name: "url", required: true, doc: "Address of the mirror.", see: "schema/build.cue:161", value: &shape{op: named, def: "#URL", see: "schema/build.cue:161"}},
			{name: "pattern", required: false, doc: "Regular expression for the addresses it serves; by default all.", see: "schema/build.cue:164", value: &shape{op: all, see: "schema/build.cue:164", parts: []*shape{
				&shape{op: maxRunes, see: "schema/build.cue:164", number: 200},
				&shape{op: matches, text: "^[A-Za-z0-9.*+:/_\\\\()|?^-]+$", see: "schema/build.cue:164"},
			}}},
			{name: "order", required: false, doc: "Position among the mirrors; mirrors of equal order are sorted by name.", see: "schema/build.cue:167", value: &shape{op: all, see: "schema/build.cue:167", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/build.cue:167"},
				&shape{op: bound, rel: ">=", see: "schema/build.cue:167"},
				&shape{op: bound, rel: "<=", see: "schema/build.cue:167", number: 999},
			}}},
		},
	}}},
	{name: "#ModeName", doc: "a power mode name: letters, digits and \"_\", at most 32 characters", see: "schema/power.cue:21", value: &shape{op: all, see: "schema/power.cue:21", parts: []*shape{
		&shape{op: maxRunes, see: "schema/power.cue:21", number: 32},
		&shape{op: matches, text: "^[A-Za-z0-9_]+$", see: "schema/power.cue:21"},
	}}},
	{name: "#ModelStage", doc: "Run an ONNX model.", see: "schema/pipelines.cue:304", value: &shape{op: object, see: "schema/pipelines.cue:304", obj: &structure{
		fields: []*member{
			{name: "path", required: false, doc: "Model file on the device, or relative to the plan.", see: "schema/pipelines.cue:306", value: &shape{op: named, def: "#Path", see: "schema/pipelines.cue:306"}},
			{name: "sha256", required: false, doc: "Digest of the model, under which it is installed.", see: "schema/pipelines.cue:309", value: &shape{op: named, def: "#SHA256", see: "schema/pipelines.cue:309"}},
			{name: "uri", required: false, doc: "Address from which the build fetches the model, with its sha256; the layer then installs it.", see: "schema/pipelines.cue:312", value: &shape{op: named, def: "#URL", see: "schema/pipelines.cue:312"}},
			{name: "inputTensor", required: false, doc: "Name of the input tensor; by default the model's first.", see: "schema/pipelines.cue:315", value: &shape{op: named, def: "#Text", see: "schema/pipelines.cue:315"}},
			{name: "outputTensor", required: false, doc: "Name of the output tensor; by default the model's first.", see: "schema/pipelines.cue:318", value: &shape{op: named, def: "#Text", see: "schema/pipelines.cue:318"}},
			{name: "threads", required: false, doc: "Threads inside an operator; by default one per core of the pipeline.", see: "schema/pipelines.cue:321", value: &shape{op: all, see: "schema/pipelines.cue:321", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:321"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:321"},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:321", number: 256},
			}}},
			{name: "batch", required: false, doc: "Several frames in one run; the first axis of the model must be free.", see: "schema/pipelines.cue:324", value: &shape{op: named, def: "#Batch", see: "schema/pipelines.cue:324"}},
			{name: "providers", required: false, doc: "Execution providers, best first. Unavailable providers are skipped, with the reason in the summary; if none is available, the pipeline fails. By default \"cpu\", with device \"gpu\" all three. TensorRT needs an engine that was built before.", see: "schema/pipelines.cue:327", value: &shape{op: list, see: "schema/pipelines.cue:327", elem: &shape{op: either, see: "schema/pipelines.cue:327", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:327", literal: &load.Node{Kind: load.String, Text: "tensorrt", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:327", literal: &load.Node{Kind: load.String, Text: "cuda", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:327", literal: &load.Node{Kind: load.String, Text: "cpu", True: false}},
			}}}},
			{name: "precision", required: false, doc: "Precision of a TensorRT engine; fp32 by default.", see: "schema/pipelines.cue:330", value: &shape{op: either, see: "schema/pipelines.cue:330", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:330", literal: &load.Node{Kind: load.String, Text: "fp32", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:330", literal: &load.Node{Kind: load.String, Text: "fp16", True: false}},
			}}},
			{name: "workspace", required: false, doc: "Memory that TensorRT may use to build an engine.", see: "schema/pipelines.cue:333", value: &shape{op: named, def: "#Size", see: "schema/pipelines.cue:333"}},
			{name: "spinning", required: false, doc: "Let idle threads of the model spin: slightly lower latency for one core each. Off by default.", see: "schema/pipelines.cue:336", value: &shape{op: basic, kind: load.Bool, see: "schema/pipelines.cue:336"}},
			{name: "arena", required: false, doc: "Keep memory in an arena. On by default; off returns memory after each run.", see: "schema/pipelines.cue:339", value: &shape{op: basic, kind: load.Bool, see: "schema/pipelines.cue:339"}},
			{name: "ensemble", required: false, doc: "Further models on the same tensor that contribute to the result.", see: "schema/pipelines.cue:342", value: &shape{op: named, def: "#Ensemble", see: "schema/pipelines.cue:342"}},
		},
	}}},
	{name: "#ModuleName", doc: "a kernel module name: letters, digits, \"_\" and \"-\"", see: "schema/types.cue:21", value: &shape{op: all, see: "schema/types.cue:21", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:21", number: 56},
		&shape{op: matches, text: "^[A-Za-z0-9_-]+$", see: "schema/types.cue:21"},
	}}},
	{name: "#Monitor", doc: "Sampling on the device.", see: "schema/monitor.cue:4", value: &shape{op: object, see: "schema/monitor.cue:4", obj: &structure{
		fields: []*member{
			{name: "interval", required: false, doc: "Time between samples.", see: "schema/monitor.cue:6", value: &shape{op: named, def: "#Duration", see: "schema/monitor.cue:6"}},
			{name: "metrics", required: false, doc: "Serve the samples: metrics for Prometheus, health, a page with live charts and a history. Installs yoctuned-serve.", see: "schema/monitor.cue:10", value: &shape{op: basic, kind: load.Bool, see: "schema/monitor.cue:10"}},
		},
	}}},
	{name: "#Name", doc: "a name: letters, digits, \"-\" and \"_\", beginning with a letter or digit, at most 64 characters", see: "schema/types.cue:6", value: &shape{op: all, see: "schema/types.cue:6", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:6", number: 64},
		&shape{op: matches, text: "^[A-Za-z0-9][A-Za-z0-9_-]*$", see: "schema/types.cue:6"},
	}}},
	{name: "#Network", doc: "Settings of network interfaces.", see: "schema/network.cue:4", value: &shape{op: object, see: "schema/network.cue:4", obj: &structure{
		fields: []*member{
			{name: "mtu", required: false, doc: "Largest packet, in bytes.", see: "schema/network.cue:6", value: &shape{op: all, see: "schema/network.cue:6", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/network.cue:6"},
				&shape{op: bound, rel: ">=", see: "schema/network.cue:6", number: 68},
				&shape{op: bound, rel: "<=", see: "schema/network.cue:6", number: 65535},
			}}},
			{name: "txQueueLen", required: false, doc: "Length of the transmit queue, in packets.", see: "schema/network.cue:9", value: &shape{op: all, see: "schema/network.cue:9", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/network.cue:9"},
				&shape{op: bound, rel: ">=", see: "schema/network.cue:9"},
				&shape{op: bound, rel: "<=", see: "schema/network.cue:9", number: 1000000},
			}}},
			{name: "groFlushTimeout", required: false, doc: "How long received packets may wait for others (gro_flush_timeout).", see: "schema/network.cue:12", value: &shape{op: named, def: "#Duration", see: "schema/network.cue:12"}},
			{name: "napiDeferHardIRQs", required: false, doc: "Polls without packets before interrupts are enabled again (napi_defer_hard_irqs).", see: "schema/network.cue:15", value: &shape{op: all, see: "schema/network.cue:15", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/network.cue:15"},
				&shape{op: bound, rel: ">=", see: "schema/network.cue:15"},
				&shape{op: bound, rel: "<=", see: "schema/network.cue:15", number: 1000000},
			}}},
			{name: "rps", required: false, doc: "Cores that process packets of the receive queues (rps_cpus).", see: "schema/network.cue:18", value: &shape{op: list, see: "schema/network.cue:18", elem: &shape{op: named, def: "#Core", see: "schema/network.cue:18"}}},
			{name: "xps", required: false, doc: "Cores that may use the transmit queues (xps_cpus).", see: "schema/network.cue:21", value: &shape{op: list, see: "schema/network.cue:21", elem: &shape{op: named, def: "#Core", see: "schema/network.cue:21"}}},
			{name: "channels", required: false, doc: "Number of hardware queues (ethtool -L).", see: "schema/network.cue:24", value: &shape{op: named, def: "#Channels", see: "schema/network.cue:24"}},
			{name: "ring", required: false, doc: "Length of the hardware queues, in packets (ethtool -G).", see: "schema/network.cue:27", value: &shape{op: named, def: "#Ring", see: "schema/network.cue:27"}},
			{name: "coalesce", required: false, doc: "Interrupt coalescing of the hardware (ethtool -C).", see: "schema/network.cue:30", value: &shape{op: named, def: "#Coalesce", see: "schema/network.cue:30"}},
		},
	}}},
	{name: "#Observed", doc: "Readings of one device: observed, not verified.", see: "schema/config.cue:152", value: &shape{op: object, see: "schema/config.cue:152", obj: &structure{
		fields: []*member{
			{name: "l4t", required: false, doc: "L4T version.", see: "schema/config.cue:154", value: &shape{op: named, def: "#Text", see: "schema/config.cue:154"}},
			{name: "kernel", required: false, doc: "Kernel release.", see: "schema/config.cue:157", value: &shape{op: named, def: "#Text", see: "schema/config.cue:157"}},
			{name: "compatible", required: false, doc: "Entries of the device tree's \"compatible\".", see: "schema/config.cue:160", value: &shape{op: list, see: "schema/config.cue:160", elem: &shape{op: named, def: "#Text", see: "schema/config.cue:160"}}},
			{name: "cores", required: false, doc: "Present cores, online or not.", see: "schema/config.cue:163", value: &shape{op: all, see: "schema/config.cue:163", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/config.cue:163"},
				&shape{op: bound, rel: ">=", see: "schema/config.cue:163", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/config.cue:163", number: 256},
			}}},
			{name: "policies", required: false, doc: "Cores that share a clock, one list per policy, such as \"0-3\".", see: "schema/config.cue:166", value: &shape{op: list, see: "schema/config.cue:166", elem: &shape{op: named, def: "#Text", see: "schema/config.cue:166"}}},
			{name: "cpu", required: false, doc: "Steps of the CPU clock, ascending.", see: "schema/config.cue:169", value: &shape{op: list, see: "schema/config.cue:169", elem: &shape{op: named, def: "#Frequency", see: "schema/config.cue:169"}}},
			{name: "gpu", required: false, doc: "Steps of the GPU clock, ascending.", see: "schema/config.cue:172", value: &shape{op: list, see: "schema/config.cue:172", elem: &shape{op: named, def: "#Frequency", see: "schema/config.cue:172"}}},
			{name: "gpuDevfreq", required: false, doc: "Name of the GPU's devfreq device.", see: "schema/config.cue:175", value: &shape{op: named, def: "#Text", see: "schema/config.cue:175"}},
			{name: "memory", required: false, doc: "Memory available to the kernel: less than the module's.", see: "schema/config.cue:178", value: &shape{op: named, def: "#Size", see: "schema/config.cue:178"}},
			{name: "thermalZones", required: false, doc: "Types of the thermal zones.", see: "schema/config.cue:181", value: &shape{op: list, see: "schema/config.cue:181", elem: &shape{op: named, def: "#Text", see: "schema/config.cue:181"}}},
			{name: "modes", required: false, doc: "Names of the power modes, in the order of their ids.", see: "schema/config.cue:184", value: &shape{op: list, see: "schema/config.cue:184", elem: &shape{op: named, def: "#Text", see: "schema/config.cue:184"}}},
		},
	}}},
	{name: "#PackageName", doc: "a package name: lower-case letters, digits, \".\", \"+\" and \"-\"", see: "schema/types.cue:18", value: &shape{op: all, see: "schema/types.cue:18", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:18", number: 80},
		&shape{op: matches, text: "^[a-z0-9][a-z0-9.+-]*$", see: "schema/types.cue:18"},
	}}},
	{name: "#Path", doc: "a path, absolute or relative, without blanks", see: "schema/types.cue:66", value: &shape{op: all, see: "schema/types.cue:66", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:66", number: 255},
		&shape{op: matches, text: "^[A-Za-z0-9._+,@:=/-]+$", see: "schema/types.cue:66"},
	}}},
	{name: "#Pipeline", doc: "An inference pipeline: frames from a source, through stages, to a sink.", see: "schema/pipelines.cue:4", value: &shape{op: object, see: "schema/pipelines.cue:4", obj: &structure{
		fields: []*member{
			{name: "source", required: true, doc: "Source of the frames.", see: "schema/pipelines.cue:6", value: &shape{op: named, def: "#Source", see: "schema/pipelines.cue:6"}},
			{name: "stages", required: true, doc: "Stages by name; each names its input.", see: "schema/pipelines.cue:9", value: &shape{op: object, see: "schema/pipelines.cue:9", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name", see: "schema/pipelines.cue:9"}, value: &shape{op: named, def: "#Stage", see: "schema/pipelines.cue:9"}},
				},
			}}},
			{name: "sink", required: false, doc: "Destination of the results; by default NDJSON on standard output.", see: "schema/pipelines.cue:12", value: &shape{op: named, def: "#Sink", see: "schema/pipelines.cue:12"}},
			{name: "queue", required: false, doc: "Limits of the queues between stages.", see: "schema/pipelines.cue:15", value: &shape{op: named, def: "#Queue", see: "schema/pipelines.cue:15"}},
			{name: "slo", required: false, doc: "Objectives of the pipeline.", see: "schema/pipelines.cue:18", value: &shape{op: named, def: "#SLO", see: "schema/pipelines.cue:18"}},
			{name: "cpus", required: false, doc: "Cores of the pipeline.", see: "schema/pipelines.cue:21", value: &shape{op: list, see: "schema/pipelines.cue:21", elem: &shape{op: named, def: "#Core", see: "schema/pipelines.cue:21"}}},
			{name: "scheduling", required: false, doc: "CPU scheduling policy of its threads.", see: "schema/pipelines.cue:24", value: &shape{op: either, see: "schema/pipelines.cue:24", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:24", literal: &load.Node{Kind: load.String, Text: "other", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:24", literal: &load.Node{Kind: load.String, Text: "batch", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:24", literal: &load.Node{Kind: load.String, Text: "idle", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:24", literal: &load.Node{Kind: load.String, Text: "fifo", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:24", literal: &load.Node{Kind: load.String, Text: "rr", True: false}},
			}}},
			{name: "priority", required: false, doc: "Real-time priority, with scheduling \"fifo\" or \"rr\".", see: "schema/pipelines.cue:27", value: &shape{op: all, see: "schema/pipelines.cue:27", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:27"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:27", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:27", number: 99},
			}}},
			{name: "nice", required: false, doc: "Nice level, -20 the most favourable.", see: "schema/pipelines.cue:30", value: &shape{op: all, see: "schema/pipelines.cue:30", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:30"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:30", number: -20},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:30", number: 19},
			}}},
			{name: "budget", required: false, doc: "Resource limits of the pipeline, and what it leaves free.", see: "schema/pipelines.cue:33", value: &shape{op: named, def: "#PipelineBudget", see: "schema/pipelines.cue:33"}},
			{name: "isolation", required: false, doc: "Whether a separate process uses the GPU and can be restarted; by default it does.", see: "schema/pipelines.cue:36", value: &shape{op: either, see: "schema/pipelines.cue:36", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:36", literal: &load.Node{Kind: load.String, Text: "process", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:36", literal: &load.Node{Kind: load.String, Text: "none", True: false}},
			}}},
			{name: "kernels", required: false, doc: "Launch configuration of GPU kernels. The device measures the fastest one for kernels that are absent.", see: "schema/pipelines.cue:39", value: &shape{op: named, def: "#KernelLaunches", see: "schema/pipelines.cue:39"}},
			{name: "degrade", required: false, doc: "How a live pipeline reduces its work when it is too slow or the device too hot.", see: "schema/pipelines.cue:42", value: &shape{op: named, def: "#Degrade", see: "schema/pipelines.cue:42"}},
			{name: "memory", required: false, doc: "Locking and huge pages for the pipeline's memory.", see: "schema/pipelines.cue:45", value: &shape{op: named, def: "#PipelineMemory", see: "schema/pipelines.cue:45"}},
			{name: "utilisation", required: false, doc: "Target load, 0 to 1, of the busiest stage: batch sizes adapt to it, except while the pipeline is degraded. By default batches take the frames that are waiting.", see: "schema/pipelines.cue:48", value: &shape{op: named, def: "#Decimal", see: "schema/pipelines.cue:48"}},
			{name: "gpus", required: false, doc: "Numbers of the GPUs that stages with device \"gpu\" share by measured speed; by default the first. Each GPU has its own process, and such a stage one instance per GPU.", see: "schema/pipelines.cue:51", value: &shape{op: list, see: "schema/pipelines.cue:51", elem: &shape{op: all, see: "schema/pipelines.cue:51", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:51"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:51"},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:51", number: 15},
			}}}},
			{name: "counters", required: false, doc: "Count cycles, instructions and misses: the pipeline's unit may call perf_event_open. Needs processor counters and sysctl kernel.perf_event_paranoid of 2 or less, for migrations 1.", see: "schema/pipelines.cue:54", value: &shape{op: basic, kind: load.Bool, see: "schema/pipelines.cue:54"}},
			{name: "lease", required: false, doc: "Hold a lease while the pipeline runs: highest CPU clocks, and the top step of an adaptive power mode.", see: "schema/pipelines.cue:57", value: &shape{op: basic, kind: load.Bool, see: "schema/pipelines.cue:57"}},
		},
	}}},
	{name: "#PipelineBudget", doc: "Resource limits of a pipeline. yoctune vet checks what it can add up; the device checks everything at start and while the pipeline runs.", see: "schema/pipelines.cue:82", value: &shape{op: object, see: "schema/pipelines.cue:82", obj: &structure{
		fields: []*member{
			{name: "memory", required: false, doc: "Memory of the pipeline and of programs that it starts.", see: "schema/pipelines.cue:84", value: &shape{op: named, def: "#Size", see: "schema/pipelines.cue:84"}},
			{name: "gpuMemory", required: false, doc: "GPU memory, of the GPU process.", see: "schema/pipelines.cue:87", value: &shape{op: named, def: "#Size", see: "schema/pipelines.cue:87"}},
			{name: "diskRead", required: false, doc: "Rate of reading from disks.", see: "schema/pipelines.cue:90", value: &shape{op: named, def: "#Rate", see: "schema/pipelines.cue:90"}},
			{name: "diskWrite", required: false, doc: "Rate of writing to disks.", see: "schema/pipelines.cue:93", value: &shape{op: named, def: "#Rate", see: "schema/pipelines.cue:93"}},
			{name: "netIn", required: false, doc: "Rate of receiving from the network. The sender decides; it is only compared with the link.", see: "schema/pipelines.cue:96", value: &shape{op: named, def: "#Rate", see: "schema/pipelines.cue:96"}},
			{name: "netOut", required: false, doc: "Rate of sending to the network.", see: "schema/pipelines.cue:99", value: &shape{op: named, def: "#Rate", see: "schema/pipelines.cue:99"}},
			{name: "keepFree", required: false, doc: "Resources to leave free for others.", see: "schema/pipelines.cue:102", value: &shape{op: named, def: "#KeepFree", see: "schema/pipelines.cue:102"}},
		},
	}}},
	{name: "#PipelineMemory", doc: "Memory of the pipeline: models, frames and tensors.", see: "schema/pipelines.cue:73", value: &shape{op: object, see: "schema/pipelines.cue:73", obj: &structure{
		fields: []*member{
			{name: "lock", required: false, doc: "Lock the memory, so that it is never swapped or read from disk again.", see: "schema/pipelines.cue:75", value: &shape{op: basic, kind: load.Bool, see: "schema/pipelines.cue:75"}},
			{name: "hugepages", required: false, doc: "Use huge pages, if the kernel has some.", see: "schema/pipelines.cue:78", value: &shape{op: basic, kind: load.Bool, see: "schema/pipelines.cue:78"}},
		},
	}}},
	{name: "#PostprocessStage", doc: "Turn an output tensor into results.", see: "schema/pipelines.cue:376", value: &shape{op: object, see: "schema/pipelines.cue:376", obj: &structure{
		fields: []*member{
			{name: "decode", required: true, doc: "Meaning of the tensor: text (ctc), classes (argmax), boxes of a YOLO detector (detect), boxes with masks (segment) or points (keypoints), regions of text (regions), or plain values (raw).", see: "schema/pipelines.cue:378", value: &shape{op: either, see: "schema/pipelines.cue:378", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:378", literal: &load.Node{Kind: load.String, Text: "ctc", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:378", literal: &load.Node{Kind: load.String, Text: "argmax", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:378", literal: &load.Node{Kind: load.String, Text: "detect", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:378", literal: &load.Node{Kind: load.String, Text: "segment", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:378", literal: &load.Node{Kind: load.String, Text: "keypoints", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:378", literal: &load.Node{Kind: load.String, Text: "regions", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:378", literal: &load.Node{Kind: load.String, Text: "raw", True: false}},
			}}},
			{name: "labels", required: false, doc: "File with one label per line.", see: "schema/pipelines.cue:381", value: &shape{op: named, def: "#Path", see: "schema/pipelines.cue:381"}},
			{name: "labelsUri", required: false, doc: "Address from which the build fetches that file, with its digest; the layer then installs it beside the models.", see: "schema/pipelines.cue:384", value: &shape{op: named, def: "#URL", see: "schema/pipelines.cue:384"}},
			{name: "labelsSha256", required: false, doc: "Digest of that file.", see: "schema/pipelines.cue:387", value: &shape{op: named, def: "#SHA256", see: "schema/pipelines.cue:387"}},
			{name: "threshold", required: false, doc: "Results below this confidence, 0 to 1, are dropped.", see: "schema/pipelines.cue:390", value: &shape{op: named, def: "#Decimal", see: "schema/pipelines.cue:390"}},
			{name: "top", required: false, doc: "Highest number of results per frame; by default 1 class, 100 boxes or 300 regions.", see: "schema/pipelines.cue:393", value: &shape{op: all, see: "schema/pipelines.cue:393", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:393"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:393", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:393", number: 1000},
			}}},
			{name: "head", required: false, doc: "Output format of the detector, named after the first YOLO with it; v8 by default.", see: "schema/pipelines.cue:396", value: &shape{op: either, see: "schema/pipelines.cue:396", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:396", literal: &load.Node{Kind: load.String, Text: "v5", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:396", literal: &load.Node{Kind: load.String, Text: "v8", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:396", literal: &load.Node{Kind: load.String, Text: "v10", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:396", literal: &load.Node{Kind: load.String, Text: "v11", True: false}},
			}}},
			{name: "iou", required: false, doc: "Boxes that overlap a better one by more than this, 0 to 1, are dropped; 0.45 by default. A v10 head has no such boxes.", see: "schema/pipelines.cue:399", value: &shape{op: named, def: "#Decimal", see: "schema/pipelines.cue:399"}},
			{name: "agnostic", required: false, doc: "Compare boxes of different classes too.", see: "schema/pipelines.cue:402", value: &shape{op: basic, kind: load.Bool, see: "schema/pipelines.cue:402"}},
			{name: "classes", required: false, doc: "Classes of a detector with points; 1 by default.", see: "schema/pipelines.cue:405", value: &shape{op: all, see: "schema/pipelines.cue:405", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:405"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:405", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:405", number: 1000},
			}}},
			{name: "prototypes", required: false, doc: "The model's output with the mask prototypes; by default its second.", see: "schema/pipelines.cue:408", value: &shape{op: named, def: "#Text", see: "schema/pipelines.cue:408"}},
		},
	}}},
	{name: "#Power", doc: "Power modes of the module (nvpmodel).", see: "schema/power.cue:6", value: &shape{op: object, see: "schema/power.cue:6", obj: &structure{
		fields: []*member{
			{name: "table", required: false, doc: "\"extend\" adds the modes below to the file the BSP installs; \"complete\" replaces that file, if a verified one is known.", see: "schema/power.cue:8", value: &shape{op: either, see: "schema/power.cue:8", parts: []*shape{
				&shape{op: exactly, see: "schema/power.cue:8", literal: &load.Node{Kind: load.String, Text: "extend", True: false}},
				&shape{op: exactly, see: "schema/power.cue:8", literal: &load.Node{Kind: load.String, Text: "complete", True: false}},
			}}},
			{name: "default", required: false, doc: "Mode after the first boot: one of modes, or a stock mode by name.", see: "schema/power.cue:11", value: &shape{op: named, def: "#ModeName", see: "schema/power.cue:11"}},
			{name: "modes", required: false, doc: "Your own modes, appended after the stock ones.", see: "schema/power.cue:14", value: &shape{op: object, see: "schema/power.cue:14", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ModeName", see: "schema/power.cue:14"}, value: &shape{op: named, def: "#PowerMode", see: "schema/power.cue:14"}},
				},
			}}},
			{name: "adaptive", required: false, doc: "Switch modes by load while the device runs.", see: "schema/power.cue:17", value: &shape{op: named, def: "#Adaptive", see: "schema/power.cue:17"}},
		},
	}}},
	{name: "#PowerMode", doc: "A power mode: a stock mode with some limits replaced.", see: "schema/power.cue:24", value: &shape{op: object, see: "schema/power.cue:24", obj: &structure{
		fields: []*member{
			{name: "from", required: true, doc: "Stock mode to start from.", see: "schema/power.cue:26", value: &shape{op: named, def: "#ModeName", see: "schema/power.cue:26"}},
			{name: "cpu", required: false, doc: "CPU cores and clocks of the mode.", see: "schema/power.cue:29", value: &shape{op: object, see: "schema/power.cue:29", obj: &structure{
				fields: []*member{
					{name: "online", required: false, doc: "Online cores; by default the stock mode's. Core 0 is always online.", see: "schema/power.cue:31", value: &shape{op: list, see: "schema/power.cue:31", elem: &shape{op: named, def: "#Core", see: "schema/power.cue:31"}}},
					{name: "min", required: false, doc: "Lowest clock; a step of the module's table.", see: "schema/power.cue:34", value: &shape{op: named, def: "#Frequency", see: "schema/power.cue:34"}},
					{name: "max", required: false, doc: "Highest clock; a step of the module's table, or \"unlimited\".", see: "schema/power.cue:37", value: &shape{op: named, def: "#FrequencyCap", see: "schema/power.cue:37"}},
				},
			}}},
			{name: "gpu", required: false, doc: "GPU clocks of the mode.", see: "schema/power.cue:41", value: &shape{op: object, see: "schema/power.cue:41", obj: &structure{
				fields: []*member{
					{name: "min", required: false, doc: "Lowest clock; a step of the module's table.", see: "schema/power.cue:43", value: &shape{op: named, def: "#Frequency", see: "schema/power.cue:43"}},
					{name: "max", required: false, doc: "Highest clock; a step of the module's table, or \"unlimited\".", see: "schema/power.cue:46", value: &shape{op: named, def: "#FrequencyCap", see: "schema/power.cue:46"}},
					{name: "mask", required: false, doc: "TPC_PG_MASK, one of the stock modes' values. A change of the mask needs a reboot.", see: "schema/power.cue:49", value: &shape{op: all, see: "schema/power.cue:49", parts: []*shape{
						&shape{op: basic, kind: load.Int, see: "schema/power.cue:49"},
						&shape{op: bound, rel: ">=", see: "schema/power.cue:49"},
						&shape{op: bound, rel: "<=", see: "schema/power.cue:49", number: 65535},
					}}},
				},
			}}},
			{name: "emc", required: false, doc: "Memory controller clock of the mode.", see: "schema/power.cue:53", value: &shape{op: object, see: "schema/power.cue:53", obj: &structure{
				fields: []*member{
					{name: "max", required: false, doc: "Highest clock; a step of the module's table, or \"unlimited\".", see: "schema/power.cue:55", value: &shape{op: named, def: "#FrequencyCap", see: "schema/power.cue:55"}},
				},
			}}},
		},
	}}},
	{name: "#PreprocessStage", doc: "Convert a frame to a tensor in one pass.", see: "schema/pipelines.cue:256", value: &shape{op: object, see: "schema/pipelines.cue:256", obj: &structure{
		fields: []*member{
			{name: "width", required: true, doc: "Width of the tensor in pixels.", see: "schema/pipelines.cue:258", value: &shape{op: all, see: "schema/pipelines.cue:258", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:258"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:258", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:258", number: 8192},
			}}},
			{name: "height", required: true, doc: "Height of the tensor in pixels.", see: "schema/pipelines.cue:261", value: &shape{op: all, see: "schema/pipelines.cue:261", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:261"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:261", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:261", number: 8192},
			}}},
			{name: "fit", required: false, doc: "How to fit a frame of another shape.", see: "schema/pipelines.cue:264", value: &shape{op: either, see: "schema/pipelines.cue:264", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:264", literal: &load.Node{Kind: load.String, Text: "stretch", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:264", literal: &load.Node{Kind: load.String, Text: "letterbox", True: false}},
			}}},
			{name: "layout", required: false, doc: "Order of the tensor's dimensions.", see: "schema/pipelines.cue:267", value: &shape{op: exactly, see: "schema/pipelines.cue:267", literal: &load.Node{Kind: load.String, Text: "nchw", True: false}}},
			{name: "color", required: false, doc: "Order of the colour channels.", see: "schema/pipelines.cue:270", value: &shape{op: either, see: "schema/pipelines.cue:270", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:270", literal: &load.Node{Kind: load.String, Text: "rgb", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:270", literal: &load.Node{Kind: load.String, Text: "bgr", True: false}},
			}}},
			{name: "dtype", required: false, doc: "Element type of the tensor.", see: "schema/pipelines.cue:273", value: &shape{op: exactly, see: "schema/pipelines.cue:273", literal: &load.Node{Kind: load.String, Text: "f32", True: false}}},
			{name: "pad", required: false, doc: "Border of a letterbox, 0 to 255.", see: "schema/pipelines.cue:276", value: &shape{op: all, see: "schema/pipelines.cue:276", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:276"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:276"},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:276", number: 255},
			}}},
			{name: "mean", required: false, doc: "Subtracted from each channel, in units of 0 to 1.", see: "schema/pipelines.cue:279", value: &shape{op: list, see: "schema/pipelines.cue:279", elem: &shape{op: named, def: "#Decimal", see: "schema/pipelines.cue:279"}}},
			{name: "std", required: false, doc: "Each channel is divided by this, in units of 0 to 1.", see: "schema/pipelines.cue:282", value: &shape{op: list, see: "schema/pipelines.cue:282", elem: &shape{op: named, def: "#Decimal", see: "schema/pipelines.cue:282"}}},
			{name: "crop", required: false, doc: "Region of the frame to use.", see: "schema/pipelines.cue:285", value: &shape{op: named, def: "#Crop", see: "schema/pipelines.cue:285"}},
		},
	}}},
	{name: "#Profile", doc: "Settings that belong together, usable by several targets.", see: "schema/config.cue:51", value: &shape{op: object, see: "schema/config.cue:51", obj: &structure{
		fields: []*member{
			{name: "power", required: false, doc: "Power modes and the default mode.", see: "schema/config.cue:53", value: &shape{op: named, def: "#Power", see: "schema/config.cue:53"}},
			{name: "cpu", required: false, doc: "CPU clocks, governor and isolation.", see: "schema/config.cue:56", value: &shape{op: named, def: "#CPU", see: "schema/config.cue:56"}},
			{name: "gpu", required: false, doc: "GPU clock limits.", see: "schema/config.cue:59", value: &shape{op: named, def: "#GPU", see: "schema/config.cue:59"}},
			{name: "fan", required: false, doc: "The fan's profile and curves.", see: "schema/config.cue:62", value: &shape{op: named, def: "#Fan", see: "schema/config.cue:62"}},
			{name: "kernel", required: false, doc: "Kernel configuration, arguments and preemption model.", see: "schema/config.cue:65", value: &shape{op: named, def: "#Kernel", see: "schema/config.cue:65"}},
			{name: "sysctl", required: false, doc: "Kernel parameters below /proc/sys, by their sysctl name.", see: "schema/config.cue:68", value: &shape{op: named, def: "#Sysctl", see: "schema/config.cue:68"}},
			{name: "memory", required: false, doc: "Huge pages, page merging and compressed swap.", see: "schema/config.cue:71", value: &shape{op: named, def: "#Memory", see: "schema/config.cue:71"}},
			{name: "storage", required: false, doc: "Block devices, by a glob over the kernel's device name such as \"nvme*\".", see: "schema/config.cue:74", value: &shape{op: object, see: "schema/config.cue:74", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#DeviceGlob", see: "schema/config.cue:74"}, value: &shape{op: named, def: "#Storage", see: "schema/config.cue:74"}},
				},
			}}},
			{name: "irq", required: false, doc: "Interrupt affinity.", see: "schema/config.cue:77", value: &shape{op: named, def: "#IRQ", see: "schema/config.cue:77"}},
			{name: "network", required: false, doc: "Network interfaces, by a glob over the interface name such as \"eth*\".", see: "schema/config.cue:80", value: &shape{op: object, see: "schema/config.cue:80", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#DeviceGlob", see: "schema/config.cue:80"}, value: &shape{op: named, def: "#Network", see: "schema/config.cue:80"}},
				},
			}}},
			{name: "modules", required: false, doc: "Kernel modules to load at boot or to keep from loading.", see: "schema/config.cue:83", value: &shape{op: object, see: "schema/config.cue:83", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ModuleName", see: "schema/config.cue:83"}, value: &shape{op: either, see: "schema/config.cue:83", parts: []*shape{
						&shape{op: exactly, see: "schema/config.cue:83", literal: &load.Node{Kind: load.String, Text: "load", True: false}},
						&shape{op: exactly, see: "schema/config.cue:83", literal: &load.Node{Kind: load.String, Text: "blacklist", True: false}},
					}}},
				},
			}}},
			{name: "services", required: false, doc: "systemd services, by unit name such as \"vision.service\".", see: "schema/config.cue:86", value: &shape{op: object, see: "schema/config.cue:86", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ServiceName", see: "schema/config.cue:86"}, value: &shape{op: named, def: "#Service", see: "schema/config.cue:86"}},
				},
			}}},
			{name: "packages", required: false, doc: "Packages to add to images or to keep out of them.", see: "schema/config.cue:89", value: &shape{op: object, see: "schema/config.cue:89", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#PackageName", see: "schema/config.cue:89"}, value: &shape{op: either, see: "schema/config.cue:89", parts: []*shape{
						&shape{op: exactly, see: "schema/config.cue:89", literal: &load.Node{Kind: load.String, Text: "install", True: false}},
						&shape{op: exactly, see: "schema/config.cue:89", literal: &load.Node{Kind: load.String, Text: "exclude", True: false}},
					}}},
				},
			}}},
			{name: "tools", required: false, doc: "Measuring programs. Those that packages excludes are not installed.", see: "schema/config.cue:92", value: &shape{op: named, def: "#Tools", see: "schema/config.cue:92"}},
			{name: "pipelines", required: false, doc: "Inference pipelines, by name.", see: "schema/config.cue:95", value: &shape{op: object, see: "schema/config.cue:95", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name", see: "schema/config.cue:95"}, value: &shape{op: named, def: "#Pipeline", see: "schema/config.cue:95"}},
				},
			}}},
			{name: "monitor", required: false, doc: "Measurements on the running device.", see: "schema/config.cue:98", value: &shape{op: named, def: "#Monitor", see: "schema/config.cue:98"}},
			{name: "runtime", required: false, doc: "Source of the yoctuned program.", see: "schema/config.cue:101", value: &shape{op: named, def: "#Runtime", see: "schema/config.cue:101"}},
		},
	}}},
	{name: "#PublicKey", doc: "A minisign public key.", see: "schema/runtime.cue:19", value: &shape{op: matches, text: "^RW[Q-T][A-Za-z0-9+/]{53}$", see: "schema/runtime.cue:19"}},
	{name: "#Queue", doc: "Limits of the queues between stages.", see: "schema/pipelines.cue:501", value: &shape{op: object, see: "schema/pipelines.cue:501", obj: &structure{
		fields: []*member{
			{name: "capacity", required: false, doc: "Frames per queue.", see: "schema/pipelines.cue:503", value: &shape{op: all, see: "schema/pipelines.cue:503", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:503"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:503", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:503", number: 1024},
			}}},
			{name: "policy", required: false, doc: "Policy of a full queue.", see: "schema/pipelines.cue:506", value: &shape{op: either, see: "schema/pipelines.cue:506", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:506", literal: &load.Node{Kind: load.String, Text: "block", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:506", literal: &load.Node{Kind: load.String, Text: "drop-oldest", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:506", literal: &load.Node{Kind: load.String, Text: "drop-newest", True: false}},
			}}},
			{name: "maxAge", required: false, doc: "Drop frames that are older, since their capture.", see: "schema/pipelines.cue:509", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:509"}},
			{name: "inFlight", required: false, doc: "Frames being processed; others wait, or are dropped, before any work.", see: "schema/pipelines.cue:512", value: &shape{op: all, see: "schema/pipelines.cue:512", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:512"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:512", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:512", number: 1024},
			}}},
		},
	}}},
	{name: "#Rate", doc: "a rate with its unit, such as \"20MB/s\" or \"100Mbit/s\", or an integer in bytes per second", see: "schema/types.cue:81", value: &shape{op: either, see: "schema/types.cue:81", parts: []*shape{
		&shape{op: all, see: "schema/types.cue:81", parts: []*shape{
			&shape{op: basic, kind: load.Int, see: "schema/types.cue:81"},
			&shape{op: bound, rel: ">=", see: "schema/types.cue:81", number: 1},
		}},
		&shape{op: matches, text: "^[0-9]+(\\.[0-9]+)?(B|KiB|MiB|GiB|kB|MB|GB|kbit|Mbit|Gbit)/s$", see: "schema/types.cue:81"},
	}}},
	{name: "#ReleaseName", doc: "a meta-tegra branch, such as \"scarthgap\"", see: "schema/types.cue:15", value: &shape{op: all, see: "schema/types.cue:15", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:15", number: 40},
		&shape{op: matches, text: "^[a-z][a-z0-9.-]*$", see: "schema/types.cue:15"},
	}}},
	{name: "#Ring", doc: "Length of the hardware queues.", see: "schema/network.cue:46", value: &shape{op: object, see: "schema/network.cue:46", obj: &structure{
		fields: []*member{
			{name: "rx", required: false, doc: "Packets per receive queue.", see: "schema/network.cue:48", value: &shape{op: all, see: "schema/network.cue:48", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/network.cue:48"},
				&shape{op: bound, rel: ">=", see: "schema/network.cue:48", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/network.cue:48", number: 65536},
			}}},
			{name: "tx", required: false, doc: "Packets per transmit queue.", see: "schema/network.cue:51", value: &shape{op: all, see: "schema/network.cue:51", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/network.cue:51"},
				&shape{op: bound, rel: ">=", see: "schema/network.cue:51", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/network.cue:51", number: 65536},
			}}},
		},
	}}},
	{name: "#Rotate", doc: "Rotation of a sink's file.", see: "schema/pipelines.cue:492", value: &shape{op: object, see: "schema/pipelines.cue:492", obj: &structure{
		fields: []*member{
			{name: "size", required: true, doc: "Size at which a new file is begun.", see: "schema/pipelines.cue:494", value: &shape{op: named, def: "#Size", see: "schema/pipelines.cue:494"}},
			{name: "keep", required: true, doc: "Files to keep besides the current one.", see: "schema/pipelines.cue:497", value: &shape{op: all, see: "schema/pipelines.cue:497", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:497"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:497", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:497", number: 1000},
			}}},
		},
	}}},
	{name: "#RuleID", doc: "a rule id such as \"tcp-cc-bbr\", or a diagnostic code such as \"YT0103\"", see: "schema/types.cue:33", value: &shape{op: matches, text: "^([a-z][a-z0-9-]*|YT[0-9]{4})$", see: "schema/types.cue:33"}},
	{name: "#Runtime", doc: "Source of the yoctuned program.", see: "schema/runtime.cue:4", value: &shape{op: object, see: "schema/runtime.cue:4", obj: &structure{
		fields: []*member{
			{name: "form", required: false, doc: "\"source\" builds it with the release's own Go, if that is new enough; \"prebuilt\" installs a binary.", see: "schema/runtime.cue:6", value: &shape{op: either, see: "schema/runtime.cue:6", parts: []*shape{
				&shape{op: exactly, see: "schema/runtime.cue:6", literal: &load.Node{Kind: load.String, Text: "source", True: false}},
				&shape{op: exactly, see: "schema/runtime.cue:6", literal: &load.Node{Kind: load.String, Text: "prebuilt", True: false}},
			}}},
			{name: "manifest", required: false, doc: "File with the addresses and digests of the artefacts, relative to the configuration.", see: "schema/runtime.cue:9", value: &shape{op: named, def: "#Path", see: "schema/runtime.cue:9"}},
			{name: "keys", required: false, doc: "Public keys, by name: the device then accepts only plans signed with one of them (`yoctune sign`). The text is the second line of a .pub file.", see: "schema/runtime.cue:12", value: &shape{op: object, see: "schema/runtime.cue:12", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name", see: "schema/runtime.cue:12"}, value: &shape{op: named, def: "#PublicKey", see: "schema/runtime.cue:12"}},
				},
			}}},
			{name: "cuda", required: false, doc: "Add the CUDA library; without it pipelines run on the CPU.", see: "schema/runtime.cue:15", value: &shape{op: basic, kind: load.Bool, see: "schema/runtime.cue:15"}},
		},
	}}},
	{name: "#SHA256", doc: "a SHA-256 in lower-case hexadecimal", see: "schema/types.cue:96", value: &shape{op: matches, text: "^[0-9a-f]{64}$", see: "schema/types.cue:96"}},
	{name: "#SLO", doc: "Objectives that the runtime checks.", see: "schema/pipelines.cue:516", value: &shape{op: object, see: "schema/pipelines.cue:516", obj: &structure{
		fields: []*member{
			{name: "latencyP95", required: false, doc: "95th percentile of the time from capture to sink.", see: "schema/pipelines.cue:518", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:518"}},
			{name: "minFps", required: false, doc: "Lowest rate, in frames per second.", see: "schema/pipelines.cue:521", value: &shape{op: all, see: "schema/pipelines.cue:521", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:521"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:521", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:521", number: 1000},
			}}},
		},
	}}},
	{name: "#Service", doc: "A systemd service. Without exec it is a drop-in for a unit that something else installs.", see: "schema/services.cue:4", value: &shape{op: object, see: "schema/services.cue:4", obj: &structure{
		fields: []*member{
			{name: "description", required: false, doc: "Description of the service.", see: "schema/services.cue:6", value: &shape{op: named, def: "#Text", see: "schema/services.cue:6"}},
			{name: "exec", required: false, doc: "Program and arguments; the program is an absolute path.", see: "schema/services.cue:9", value: &shape{op: list, see: "schema/services.cue:9", elem: &shape{op: named, def: "#Word", see: "schema/services.cue:9"}}},
			{name: "type", required: false, doc: "How systemd knows that the service has started.", see: "schema/services.cue:12", value: &shape{op: either, see: "schema/services.cue:12", parts: []*shape{
				&shape{op: exactly, see: "schema/services.cue:12", literal: &load.Node{Kind: load.String, Text: "simple", True: false}},
				&shape{op: exactly, see: "schema/services.cue:12", literal: &load.Node{Kind: load.String, Text: "exec", True: false}},
				&shape{op: exactly, see: "schema/services.cue:12", literal: &load.Node{Kind: load.String, Text: "notify", True: false}},
				&shape{op: exactly, see: "schema/services.cue:12", literal: &load.Node{Kind: load.String, Text: "oneshot", True: false}},
			}}},
			{name: "user", required: false, doc: "User that runs the service; root by default.", see: "schema/services.cue:15", value: &shape{op: named, def: "#UserName", see: "schema/services.cue:15"}},
			{name: "slice", required: false, doc: "Slice of the service, without \".slice\". With cpu.isolate the slice gets the isolated cores.", see: "schema/services.cue:18", value: &shape{op: named, def: "#SliceName", see: "schema/services.cue:18"}},
			{name: "after", required: false, doc: "Units to start after.", see: "schema/services.cue:21", value: &shape{op: list, see: "schema/services.cue:21", elem: &shape{op: named, def: "#UnitName", see: "schema/services.cue:21"}}},
			{name: "wants", required: false, doc: "Units to start together with it.", see: "schema/services.cue:24", value: &shape{op: list, see: "schema/services.cue:24", elem: &shape{op: named, def: "#UnitName", see: "schema/services.cue:24"}}},
			{name: "requires", required: false, doc: "Units that it requires.", see: "schema/services.cue:27", value: &shape{op: list, see: "schema/services.cue:27", elem: &shape{op: named, def: "#UnitName", see: "schema/services.cue:27"}}},
			{name: "environment", required: false, doc: "Environment variables.", see: "schema/services.cue:30", value: &shape{op: object, see: "schema/services.cue:30", obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#EnvironmentName", see: "schema/services.cue:30"}, value: &shape{op: named, def: "#Word", see: "schema/services.cue:30"}},
				},
			}}},
			{name: "cpus", required: false, doc: "Cores of the service.", see: "schema/services.cue:33", value: &shape{op: list, see: "schema/services.cue:33", elem: &shape{op: named, def: "#Core", see: "schema/services.cue:33"}}},
			{name: "nice", required: false, doc: "Nice level, -20 the most favourable.", see: "schema/services.cue:36", value: &shape{op: all, see: "schema/services.cue:36", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/services.cue:36"},
				&shape{op: bound, rel: ">=", see: "schema/services.cue:36", number: -20},
				&shape{op: bound, rel: "<=", see: "schema/services.cue:36", number: 19},
			}}},
			{name: "scheduling", required: false, doc: "CPU scheduling policy.", see: "schema/services.cue:39", value: &shape{op: either, see: "schema/services.cue:39", parts: []*shape{
				&shape{op: exactly, see: "schema/services.cue:39", literal: &load.Node{Kind: load.String, Text: "other", True: false}},
				&shape{op: exactly, see: "schema/services.cue:39", literal: &load.Node{Kind: load.String, Text: "batch", True: false}},
				&shape{op: exactly, see: "schema/services.cue:39", literal: &load.Node{Kind: load.String, Text: "idle", True: false}},
				&shape{op: exactly, see: "schema/services.cue:39", literal: &load.Node{Kind: load.String, Text: "fifo", True: false}},
				&shape{op: exactly, see: "schema/services.cue:39", literal: &load.Node{Kind: load.String, Text: "rr", True: false}},
			}}},
			{name: "priority", required: false, doc: "Real-time priority, with scheduling \"fifo\" or \"rr\".", see: "schema/services.cue:42", value: &shape{op: all, see: "schema/services.cue:42", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/services.cue:42"},
				&shape{op: bound, rel: ">=", see: "schema/services.cue:42", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/services.cue:42", number: 99},
			}}},
			{name: "memoryMax", required: false, doc: "Memory limit.", see: "schema/services.cue:45", value: &shape{op: named, def: "#Size", see: "schema/services.cue:45"}},
			{name: "memoryHigh", required: false, doc: "Memory above which the service is throttled and its pages are reclaimed first.", see: "schema/services.cue:48", value: &shape{op: named, def: "#Size", see: "schema/services.cue:48"}},
			{name: "cpuWeight", required: false, doc: "Weight of the service when processors are busy; units have 100 by default.", see: "schema/services.cue:51", value: &shape{op: all, see: "schema/services.cue:51", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/services.cue:51"},
				&shape{op: bound, rel: ">=", see: "schema/services.cue:51", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/services.cue:51", number: 10000},
			}}},
			{name: "ioWeight", required: false, doc: "Weight of the service when disks are busy; units have 100 by default. Only the bfq scheduler applies it.", see: "schema/services.cue:54", value: &shape{op: all, see: "schema/services.cue:54", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/services.cue:54"},
				&shape{op: bound, rel: ">=", see: "schema/services.cue:54", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/services.cue:54", number: 10000},
			}}},
			{name: "cpuPartition", required: false, doc: "cpuset partition of the slice: \"root\" reserves its cores, \"isolated\" also disables load balancing between them (Linux 6.1). Needs slice, and cpu.isolate for its cores.", see: "schema/services.cue:58", value: &shape{op: either, see: "schema/services.cue:58", parts: []*shape{
				&shape{op: exactly, see: "schema/services.cue:58", literal: &load.Node{Kind: load.String, Text: "member", True: false}},
				&shape{op: exactly, see: "schema/services.cue:58", literal: &load.Node{Kind: load.String, Text: "root", True: false}},
				&shape{op: exactly, see: "schema/services.cue:58", literal: &load.Node{Kind: load.String, Text: "isolated", True: false}},
			}}},
			{name: "cpuQuota", required: false, doc: "Limit of processor time, in percent of one core: 150 is one and a half.", see: "schema/services.cue:61", value: &shape{op: all, see: "schema/services.cue:61", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/services.cue:61"},
				&shape{op: bound, rel: ">=", see: "schema/services.cue:61", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/services.cue:61", number: 25600},
			}}},
			{name: "memoryLock", required: false, doc: "Allow the service to lock memory.", see: "schema/services.cue:64", value: &shape{op: basic, kind: load.Bool, see: "schema/services.cue:64"}},
			{name: "restart", required: false, doc: "When systemd restarts it.", see: "schema/services.cue:67", value: &shape{op: either, see: "schema/services.cue:67", parts: []*shape{
				&shape{op: exactly, see: "schema/services.cue:67", literal: &load.Node{Kind: load.String, Text: "no", True: false}},
				&shape{op: exactly, see: "schema/services.cue:67", literal: &load.Node{Kind: load.String, Text: "on-failure", True: false}},
				&shape{op: exactly, see: "schema/services.cue:67", literal: &load.Node{Kind: load.String, Text: "always", True: false}},
			}}},
			{name: "enable", required: false, doc: "Start at boot; true by default.", see: "schema/services.cue:70", value: &shape{op: basic, kind: load.Bool, see: "schema/services.cue:70"}},
			{name: "hardening", required: false, doc: "Run in systemd's sandbox; true by default if exec is given.", see: "schema/services.cue:73", value: &shape{op: basic, kind: load.Bool, see: "schema/services.cue:73"}},
		},
	}}},
	{name: "#ServiceName", doc: "a service name ending in \".service\", such as \"vision.service\"", see: "schema/types.cue:24", value: &shape{op: all, see: "schema/types.cue:24", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:24", number: 99},
		&shape{op: matches, text: "^[A-Za-z0-9][A-Za-z0-9_.-]*\\.service$", see: "schema/types.cue:24"},
	}}},
	{name: "#Sink", doc: "A sink of results.", see: "schema/pipelines.cue:445", value: &shape{op: object, see: "schema/pipelines.cue:445", obj: &structure{
		fields: []*member{
			{name: "kind", required: true, doc: "Kind of sink: JSON lines, HTTP requests, a program's standard input, or a ring in shared memory.", see: "schema/pipelines.cue:447", value: &shape{op: either, see: "schema/pipelines.cue:447", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:447", literal: &load.Node{Kind: load.String, Text: "ndjson", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:447", literal: &load.Node{Kind: load.String, Text: "http", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:447", literal: &load.Node{Kind: load.String, Text: "command", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:447", literal: &load.Node{Kind: load.String, Text: "shm", True: false}},
			}}},
			{name: "capacity", required: false, doc: "Frames that can wait for the sink; by default as the other queues.", see: "schema/pipelines.cue:450", value: &shape{op: all, see: "schema/pipelines.cue:450", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:450"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:450", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:450", number: 1024},
			}}},
			{name: "policy", required: false, doc: "Policy when the sink is slow; by default as the other queues.", see: "schema/pipelines.cue:453", value: &shape{op: either, see: "schema/pipelines.cue:453", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:453", literal: &load.Node{Kind: load.String, Text: "block", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:453", literal: &load.Node{Kind: load.String, Text: "drop-oldest", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:453", literal: &load.Node{Kind: load.String, Text: "drop-newest", True: false}},
			}}},
			{name: "time", required: false, doc: "Longest time for one result, as measured. Used for worst-case latency.", see: "schema/pipelines.cue:456", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:456"}},
		},
		branches: []branch{
			{field: "kind", value: "ndjson", then: &structure{
				fields: []*member{
					{name: "path", required: false, doc: "File to write; standard output by default.", see: "schema/pipelines.cue:460", value: &shape{op: named, def: "#AbsPath", see: "schema/pipelines.cue:460"}},
					{name: "rotate", required: false, doc: "Rotation of the file.", see: "schema/pipelines.cue:463", value: &shape{op: named, def: "#Rotate", see: "schema/pipelines.cue:463"}},
				},
			}},
			{field: "kind", value: "http", then: &structure{
				fields: []*member{
					{name: "url", required: true, doc: "Address to post each result to, http only; for https use a command such as curl.", see: "schema/pipelines.cue:467", value: &shape{op: matches, text: "^http://[A-Za-z0-9._~:/?#@\\[\\]!&'()*+,=%-]+$", see: "schema/pipelines.cue:467"}},
					{name: "timeout", required: false, doc: "Time limit for one result; 2 s by default.", see: "schema/pipelines.cue:470", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:470"}},
				},
			}},
			{field: "kind", value: "command", then: &structure{
				fields: []*member{
					{name: "exec", required: true, doc: "Program and arguments; each result is a line on its standard input.", see: "schema/pipelines.cue:474", value: &shape{op: list, see: "schema/pipelines.cue:474", elem: &shape{op: named, def: "#Word", see: "schema/pipelines.cue:474"}}},
					{name: "timeout", required: false, doc: "Time limit for one result; 2 s by default.", see: "schema/pipelines.cue:477", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:477"}},
				},
			}},
			{field: "kind", value: "shm", then: &structure{
				fields: []*member{
					{name: "path", required: true, doc: "File of the ring, such as /dev/shm/door.", see: "schema/pipelines.cue:481", value: &shape{op: named, def: "#AbsPath", see: "schema/pipelines.cue:481"}},
					{name: "slots", required: false, doc: "Records in the ring; 64 by default.", see: "schema/pipelines.cue:484", value: &shape{op: all, see: "schema/pipelines.cue:484", parts: []*shape{
						&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:484"},
						&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:484", number: 1},
						&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:484", number: 65536},
					}}},
					{name: "slotSize", required: false, doc: "Size of a record; 4 KiB by default.", see: "schema/pipelines.cue:487", value: &shape{op: named, def: "#Size", see: "schema/pipelines.cue:487"}},
				},
			}},
		},
	}}},
	{name: "#Size", doc: "a size with its unit, such as \"2GiB\", or an integer in bytes", see: "schema/types.cue:78", value: &shape{op: either, see: "schema/types.cue:78", parts: []*shape{
		&shape{op: all, see: "schema/types.cue:78", parts: []*shape{
			&shape{op: basic, kind: load.Int, see: "schema/types.cue:78"},
			&shape{op: bound, rel: ">=", see: "schema/types.cue:78"},
		}},
		&shape{op: matches, text: "^[0-9]+(\\.[0-9]+)?(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)$", see: "schema/types.cue:78"},
	}}},
	{name: "#SliceName", doc: "a slice name without \".slice\": lower-case letters and digits", see: "schema/types.cue:51", value: &shape{op: all, see: "schema/types.cue:51", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:51", number: 40},
		&shape{op: matches, text: "^[a-z][a-z0-9]*$", see: "schema/types.cue:51"},
	}}},
	{name: "#Source", doc: "A source of frames.", see: "schema/pipelines.cue:166", value: &shape{op: object, see: "schema/pipelines.cue:166", obj: &structure{
		fields: []*member{
			{name: "kind", required: true, doc: "Kind of source: a file, a synthetic picture, a camera (V4L2), a command that writes frames, a network stream, or a ring in shared memory.", see: "schema/pipelines.cue:168", value: &shape{op: either, see: "schema/pipelines.cue:168", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:168", literal: &load.Node{Kind: load.String, Text: "file", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:168", literal: &load.Node{Kind: load.String, Text: "synthetic", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:168", literal: &load.Node{Kind: load.String, Text: "v4l2", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:168", literal: &load.Node{Kind: load.String, Text: "command", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:168", literal: &load.Node{Kind: load.String, Text: "rtsp", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:168", literal: &load.Node{Kind: load.String, Text: "shm", True: false}},
			}}},
			{name: "format", required: true, doc: "Pixel format. y4m and mjpeg streams contain their size.", see: "schema/pipelines.cue:171", value: &shape{op: either, see: "schema/pipelines.cue:171", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:171", literal: &load.Node{Kind: load.String, Text: "nv12", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:171", literal: &load.Node{Kind: load.String, Text: "i420", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:171", literal: &load.Node{Kind: load.String, Text: "yuyv", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:171", literal: &load.Node{Kind: load.String, Text: "uyvy", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:171", literal: &load.Node{Kind: load.String, Text: "grey", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:171", literal: &load.Node{Kind: load.String, Text: "rgb", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:171", literal: &load.Node{Kind: load.String, Text: "bgr", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:171", literal: &load.Node{Kind: load.String, Text: "mjpeg", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:171", literal: &load.Node{Kind: load.String, Text: "y4m", True: false}},
			}}},
			{name: "width", required: false, doc: "Width in pixels.", see: "schema/pipelines.cue:174", value: &shape{op: all, see: "schema/pipelines.cue:174", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:174"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:174", number: 2},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:174", number: 16384},
			}}},
			{name: "height", required: false, doc: "Height in pixels.", see: "schema/pipelines.cue:177", value: &shape{op: all, see: "schema/pipelines.cue:177", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:177"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:177", number: 2},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:177", number: 16384},
			}}},
			{name: "fps", required: false, doc: "Frames per second, such as 30 or \"30000/1001\".", see: "schema/pipelines.cue:180", value: &shape{op: either, see: "schema/pipelines.cue:180", parts: []*shape{
				&shape{op: all, see: "schema/pipelines.cue:180", parts: []*shape{
					&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:180"},
					&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:180", number: 1},
					&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:180", number: 1000},
				}},
				&shape{op: matches, text: "^[0-9]{1,6}(/[0-9]{1,6})?$", see: "schema/pipelines.cue:180"},
			}}},
			{name: "live", required: false, doc: "Drop late frames; otherwise the source waits. By default true for cameras, network streams and rings.", see: "schema/pipelines.cue:183", value: &shape{op: basic, kind: load.Bool, see: "schema/pipelines.cue:183"}},
			{name: "timeout", required: false, doc: "Time without a frame after which a live source counts as stopped; 2 s by default.", see: "schema/pipelines.cue:186", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:186"}},
			{name: "restart", required: false, doc: "Whether a stopped source is opened again: always, after a failure, or never. By default always for live sources, otherwise never.", see: "schema/pipelines.cue:189", value: &shape{op: either, see: "schema/pipelines.cue:189", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:189", literal: &load.Node{Kind: load.String, Text: "always", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:189", literal: &load.Node{Kind: load.String, Text: "on-failure", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:189", literal: &load.Node{Kind: load.String, Text: "never", True: false}},
			}}},
			{name: "decoders", required: false, doc: "mjpeg frames decoded in parallel; 1 by default.", see: "schema/pipelines.cue:192", value: &shape{op: all, see: "schema/pipelines.cue:192", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:192"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:192", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:192", number: 16},
			}}},
			{name: "time", required: false, doc: "Longest time from capture until the stages have the frame, as measured on the module. Used for worst-case latency.", see: "schema/pipelines.cue:195", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:195"}},
		},
		branches: []branch{
			{field: "kind", value: "file", then: &structure{
				fields: []*member{
					{name: "path", required: true, doc: "File with the frames.", see: "schema/pipelines.cue:199", value: &shape{op: named, def: "#Path", see: "schema/pipelines.cue:199"}},
				},
			}},
			{field: "kind", value: "v4l2", then: &structure{
				fields: []*member{
					{name: "path", required: true, doc: "Device, by its port: a name below /dev/v4l/by-path.", see: "schema/pipelines.cue:203", value: &shape{op: named, def: "#AbsPath", see: "schema/pipelines.cue:203"}},
				},
			}},
			{field: "kind", value: "rtsp", then: &structure{
				fields: []*member{
					{name: "url", required: true, doc: "Address of the stream. A password in it is visible to users who can list the device's processes.", see: "schema/pipelines.cue:207", value: &shape{op: matches, text: "^rtsps?://[A-Za-z0-9._~:/?&=%@+-]+$", see: "schema/pipelines.cue:207"}},
					{name: "via", required: false, doc: "Program that receives and decodes the stream; by default GStreamer with the module's decoder.", see: "schema/pipelines.cue:210", value: &shape{op: either, see: "schema/pipelines.cue:210", parts: []*shape{
						&shape{op: exactly, see: "schema/pipelines.cue:210", literal: &load.Node{Kind: load.String, Text: "gstreamer", True: false}},
						&shape{op: exactly, see: "schema/pipelines.cue:210", literal: &load.Node{Kind: load.String, Text: "ffmpeg", True: false}},
					}}},
					{name: "latency", required: false, doc: "Time that GStreamer waits for late packets; 100 ms by default.", see: "schema/pipelines.cue:213", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:213"}},
				},
			}},
			{field: "kind", value: "shm", then: &structure{
				fields: []*member{
					{name: "path", required: true, doc: "File of the ring, such as /dev/shm/frames.", see: "schema/pipelines.cue:217", value: &shape{op: named, def: "#AbsPath", see: "schema/pipelines.cue:217"}},
				},
			}},
			{field: "kind", value: "command", then: &structure{
				fields: []*member{
					{name: "exec", required: true, doc: "Program and arguments; the program writes frames to standard output.", see: "schema/pipelines.cue:221", value: &shape{op: list, see: "schema/pipelines.cue:221", elem: &shape{op: named, def: "#Word", see: "schema/pipelines.cue:221"}}},
				},
			}},
		},
	}}},
	{name: "#Stage", doc: "A stage of a pipeline.", see: "schema/pipelines.cue:226", value: &shape{op: object, see: "schema/pipelines.cue:226", obj: &structure{
		fields: []*member{
			{name: "kind", required: true, doc: "Kind of stage.", see: "schema/pipelines.cue:228", value: &shape{op: either, see: "schema/pipelines.cue:228", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:228", literal: &load.Node{Kind: load.String, Text: "preprocess", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:228", literal: &load.Node{Kind: load.String, Text: "model", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:228", literal: &load.Node{Kind: load.String, Text: "postprocess", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:228", literal: &load.Node{Kind: load.String, Text: "track", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:228", literal: &load.Node{Kind: load.String, Text: "custom", True: false}},
			}}},
			{name: "input", required: true, doc: "\"source\", or the name of another stage.", see: "schema/pipelines.cue:231", value: &shape{op: named, def: "#Name", see: "schema/pipelines.cue:231"}},
			{name: "instances", required: false, doc: "Parallel instances; the order of frames is kept.", see: "schema/pipelines.cue:234", value: &shape{op: all, see: "schema/pipelines.cue:234", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:234"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:234", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:234", number: 64},
			}}},
			{name: "deadline", required: false, doc: "Time limit of one run. After it the run is stopped, and its frames are dropped or, with a fallback, processed by the CPU.", see: "schema/pipelines.cue:237", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:237"}},
			{name: "time", required: false, doc: "Longest time of one run with the largest batch, as measured on the module. Used for worst-case latency.", see: "schema/pipelines.cue:240", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:240"}},
			{name: "device", required: false, doc: "Device of preprocess and model stages; the CPU by default.", see: "schema/pipelines.cue:243", value: &shape{op: either, see: "schema/pipelines.cue:243", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:243", literal: &load.Node{Kind: load.String, Text: "cpu", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:243", literal: &load.Node{Kind: load.String, Text: "gpu", True: false}},
			}}},
			{name: "fallback", required: false, doc: "Frames that the GPU cannot process in time go to the CPU or are dropped; to the CPU by default.", see: "schema/pipelines.cue:246", value: &shape{op: either, see: "schema/pipelines.cue:246", parts: []*shape{
				&shape{op: exactly, see: "schema/pipelines.cue:246", literal: &load.Node{Kind: load.String, Text: "cpu", True: false}},
				&shape{op: exactly, see: "schema/pipelines.cue:246", literal: &load.Node{Kind: load.String, Text: "drop", True: false}},
			}}},
		},
		branches: []branch{
			{field: "kind", value: "preprocess", then: &structure{
				embeds: []string{"#PreprocessStage"},
			}},
			{field: "kind", value: "model", then: &structure{
				embeds: []string{"#ModelStage"},
			}},
			{field: "kind", value: "postprocess", then: &structure{
				embeds: []string{"#PostprocessStage"},
			}},
			{field: "kind", value: "track", then: &structure{
				embeds: []string{"#TrackStage"},
			}},
			{field: "kind", value: "custom", then: &structure{
				embeds: []string{"#CustomStage"},
			}},
		},
	}}},
	{name: "#Storage", doc: "Queue settings of block devices.", see: "schema/storage.cue:4", value: &shape{op: object, see: "schema/storage.cue:4", obj: &structure{
		fields: []*member{
			{name: "scheduler", required: false, doc: "I/O scheduler.", see: "schema/storage.cue:6", value: &shape{op: either, see: "schema/storage.cue:6", parts: []*shape{
				&shape{op: exactly, see: "schema/storage.cue:6", literal: &load.Node{Kind: load.String, Text: "none", True: false}},
				&shape{op: exactly, see: "schema/storage.cue:6", literal: &load.Node{Kind: load.String, Text: "mq-deadline", True: false}},
				&shape{op: exactly, see: "schema/storage.cue:6", literal: &load.Node{Kind: load.String, Text: "kyber", True: false}},
				&shape{op: exactly, see: "schema/storage.cue:6", literal: &load.Node{Kind: load.String, Text: "bfq", True: false}},
			}}},
			{name: "readahead", required: false, doc: "Read-ahead, a multiple of 1 KiB.", see: "schema/storage.cue:9", value: &shape{op: named, def: "#Size", see: "schema/storage.cue:9"}},
			{name: "requests", required: false, doc: "Length of the request queue (nr_requests).", see: "schema/storage.cue:12", value: &shape{op: all, see: "schema/storage.cue:12", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/storage.cue:12"},
				&shape{op: bound, rel: ">=", see: "schema/storage.cue:12", number: 4},
				&shape{op: bound, rel: "<=", see: "schema/storage.cue:12", number: 65536},
			}}},
			{name: "rqAffinity", required: false, doc: "Core that completes requests (rq_affinity): 0 any, 1 in the submitter's group, 2 the submitter's.", see: "schema/storage.cue:15", value: &shape{op: either, see: "schema/storage.cue:15", parts: []*shape{
				&shape{op: exactly, see: "schema/storage.cue:15", literal: &load.Node{Kind: load.Int, Text: "0", True: false}},
				&shape{op: exactly, see: "schema/storage.cue:15", literal: &load.Node{Kind: load.Int, Text: "1", True: false}},
				&shape{op: exactly, see: "schema/storage.cue:15", literal: &load.Node{Kind: load.Int, Text: "2", True: false}},
			}}},
		},
	}}},
	{name: "#Suppression", doc: "A rule switched off.", see: "schema/config.cue:188", value: &shape{op: object, see: "schema/config.cue:188", obj: &structure{
		fields: []*member{
			{name: "reason", required: true, doc: "Why the rule does not apply here; it is printed in the layer's README.", see: "schema/config.cue:190", value: &shape{op: named, def: "#Text", see: "schema/config.cue:190"}},
		},
	}}},
	{name: "#Sysctl", doc: "Kernel parameters below /proc/sys. Components are separated by \".\"; a dot inside a component, as in an interface name, is written \"/\".", see: "schema/sysctl.cue:5", value: &shape{op: object, see: "schema/sysctl.cue:5", obj: &structure{
		patterns: []pattern{
			{key: &shape{op: named, def: "#SysctlName", see: "schema/sysctl.cue:5"}, value: &shape{op: either, see: "schema/sysctl.cue:5", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/sysctl.cue:5"},
				&shape{op: basic, kind: load.Bool, see: "schema/sysctl.cue:5"},
				&shape{op: named, def: "#Word", see: "schema/sysctl.cue:5"},
			}}},
		},
	}}},
	{name: "#SysctlName", doc: "a sysctl name with dots between its parts, such as \"vm.swappiness\"", see: "schema/types.cue:45", value: &shape{op: all, see: "schema/types.cue:45", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:45", number: 200},
		&shape{op: matches, text: "^[a-z][a-z0-9_-]*([.][A-Za-z0-9_/@:-]+)+$", see: "schema/types.cue:45"},
	}}},
	{name: "#Target", doc: "One machine to build for.", see: "schema/config.cue:117", value: &shape{op: object, see: "schema/config.cue:117", obj: &structure{
		fields: []*member{
			{name: "board", required: true, doc: "Module SKU, such as \"orin-nano-8gb\", or a name under boards.", see: "schema/config.cue:121", value: &shape{op: named, def: "#Name", see: "schema/config.cue:121"}},
			{name: "machine", required: false, doc: "bitbake MACHINE; by default the board's usual machine on the release.", see: "schema/config.cue:124", value: &shape{op: named, def: "#MachineName", see: "schema/config.cue:124"}},
			{name: "release", required: true, doc: "meta-tegra branch, such as \"scarthgap\". It decides bitbake, L4T, kernel and CUDA.", see: "schema/config.cue:127", value: &shape{op: named, def: "#ReleaseName", see: "schema/config.cue:127"}},
			{name: "use", required: false, doc: "Profiles, unified in order. Two that disagree are an error; the target's own fields override them.", see: "schema/config.cue:130", value: &shape{op: list, see: "schema/config.cue:130", elem: &shape{op: named, def: "#Name", see: "schema/config.cue:130"}}},
		},
		embeds: []string{"#Profile"},
	}}},
	{name: "#Text", doc: "one line of text, at most 200 characters, without control characters", see: "schema/types.cue:57", value: &shape{op: all, see: "schema/types.cue:57", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:57", number: 200},
		&shape{op: matches, text: "^[^\\x00-\\x1f\\x7f]*$", see: "schema/types.cue:57"},
	}}},
	{name: "#Tools", doc: "Measuring programs.", see: "schema/config.cue:105", value: &shape{op: object, see: "schema/config.cue:105", obj: &structure{
		fields: []*member{
			{name: "perf", required: false, doc: "CPU profiling: perf.", see: "schema/config.cue:107", value: &shape{op: basic, kind: load.Bool, see: "schema/config.cue:107"}},
			{name: "memory", required: false, doc: "Use and leaks of memory: valgrind with massif; heaptrack where meta-oe is present.", see: "schema/config.cue:110", value: &shape{op: basic, kind: load.Bool, see: "schema/config.cue:110"}},
			{name: "benchmark", required: false, doc: "Latency and load: rt-tests (cyclictest, hackbench) and stress-ng; the compute core: yoctuned-bench, if the layer installs yoctuned.", see: "schema/config.cue:113", value: &shape{op: basic, kind: load.Bool, see: "schema/config.cue:113"}},
		},
	}}},
	{name: "#TrackStage", doc: "Track boxes from frame to frame: each gets a number that it keeps.", see: "schema/pipelines.cue:412", value: &shape{op: object, see: "schema/pipelines.cue:412", obj: &structure{
		fields: []*member{
			{name: "iou", required: false, doc: "Least overlap, 0 to 1, of a box with the expected position of its track; 0.3 by default.", see: "schema/pipelines.cue:414", value: &shape{op: named, def: "#Decimal", see: "schema/pipelines.cue:414"}},
			{name: "hits", required: false, doc: "Boxes that a track needs before it gets a number; 2 by default.", see: "schema/pipelines.cue:417", value: &shape{op: all, see: "schema/pipelines.cue:417", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:417"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:417", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:417", number: 100},
			}}},
			{name: "maxLost", required: false, doc: "Time without a box after which a track ends; 1 s by default.", see: "schema/pipelines.cue:420", value: &shape{op: named, def: "#Duration", see: "schema/pipelines.cue:420"}},
			{name: "max", required: false, doc: "Highest number of tracks; 256 by default.", see: "schema/pipelines.cue:423", value: &shape{op: all, see: "schema/pipelines.cue:423", parts: []*shape{
				&shape{op: basic, kind: load.Int, see: "schema/pipelines.cue:423"},
				&shape{op: bound, rel: ">=", see: "schema/pipelines.cue:423", number: 1},
				&shape{op: bound, rel: "<=", see: "schema/pipelines.cue:423", number: 1024},
			}}},
		},
	}}},
	{name: "#URL", doc: "a URL: file, http, https, ftp or s3, without blanks, quotes, \";\" or credentials", see: "schema/types.cue:90", value: &shape{op: matches, text: "^(file|https?|ftp|s3)://[A-Za-z0-9._~:/?#\\[\\]!&'()*+,=%-]*$", see: "schema/types.cue:90"}},
	{name: "#UnitName", doc: "a systemd unit name, such as \"network-online.target\"", see: "schema/types.cue:27", value: &shape{op: all, see: "schema/types.cue:27", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:27", number: 119},
		&shape{op: matches, text: "^[A-Za-z0-9][A-Za-z0-9_.@-]*\\.(service|target|socket|device|mount|path|timer|slice)$", see: "schema/types.cue:27"},
	}}},
	{name: "#UserName", doc: "a user name: lower-case letters, digits, \"_\" and \"-\"", see: "schema/types.cue:48", value: &shape{op: all, see: "schema/types.cue:48", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:48", number: 31},
		&shape{op: matches, text: "^[a-z_][a-z0-9_-]*$", see: "schema/types.cue:48"},
	}}},
	{name: "#VariableName", doc: "the name of a bitbake variable: capitals, digits and \"_\"", see: "schema/types.cue:102", value: &shape{op: all, see: "schema/types.cue:102", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:102", number: 80},
		&shape{op: matches, text: "^[A-Z][A-Z0-9_]*$", see: "schema/types.cue:102"},
	}}},
	{name: "#Word", doc: "one argument or value on a single line, at most 4096 characters, without control characters", see: "schema/types.cue:60", value: &shape{op: all, see: "schema/types.cue:60", parts: []*shape{
		&shape{op: maxRunes, see: "schema/types.cue:60", number: 4096},
		&shape{op: matches, text: "^[^\\x00-\\x1f\\x7f]*$", see: "schema/types.cue:60"},
	}}},
	{name: "#ZRAM", doc: "Compressed swap in memory.", see: "schema/memory.cue:29", value: &shape{op: object, see: "schema/memory.cue:29", obj: &structure{
		fields: []*member{
			{name: "size", required: true, doc: "Uncompressed size of the device.", see: "schema/memory.cue:31", value: &shape{op: named, def: "#Size", see: "schema/memory.cue:31"}},
			{name: "algorithm", required: false, doc: "Compression algorithm; by default the kernel's.", see: "schema/memory.cue:34", value: &shape{op: either, see: "schema/memory.cue:34", parts: []*shape{
				&shape{op: exactly, see: "schema/memory.cue:34", literal: &load.Node{Kind: load.String, Text: "lzo", True: false}},
				&shape{op: exactly, see: "schema/memory.cue:34", literal: &load.Node{Kind: load.String, Text: "lzo-rle", True: false}},
				&shape{op: exactly, see: "schema/memory.cue:34", literal: &load.Node{Kind: load.String, Text: "lz4", True: false}},
				&shape{op: exactly, see: "schema/memory.cue:34", literal: &load.Node{Kind: load.String, Text: "lz4hc", True: false}},
				&shape{op: exactly, see: "schema/memory.cue:34", literal: &load.Node{Kind: load.String, Text: "zstd", True: false}},
				&shape{op: exactly, see: "schema/memory.cue:34", literal: &load.Node{Kind: load.String, Text: "842", True: false}},
			}}},
		},
	}}},
}}
