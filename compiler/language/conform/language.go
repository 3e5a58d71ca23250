// Code generated from schema/*.cue by go test ./compiler/language/conform -update. DO NOT EDIT.

package conform

import "github.com/yoctune/yoctune/compiler/language/load"

// language is data that the linker lays out: it costs a start nothing.
var language = Schema{defs: []*definition{
	{name: "#AbsPath", doc: "an absolute path, without \"..\" or blanks", value: &shape{op: matches, text: "^(/[A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*|/\\.[A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*)+$"}},
	{name: "#Accept", doc: "Conditions for a candidate.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "examples", required: true, doc: "Labelled set: a file beside the configuration.", value: &shape{op: named, def: "#Path"}},
			{name: "metric", required: false, doc: "Measure of accuracy: similarity of the outputs with the original's (cosine), best class (top-1), labels (f1), characters (cer) or boxes (map). cosine by default.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "cosine", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "top-1", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "f1", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "cer", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "map", True: false}},
			}}},
			{name: "head", required: false, doc: "Output of a detector, with metric map, as in a postprocess stage.", value: &shape{op: named, def: "#Text"}},
			{name: "maxLoss", required: false, doc: "Largest loss of the metric, 0 to 1; 0.01 by default.", value: &shape{op: named, def: "#Decimal"}},
			{name: "minSpeedup", required: false, doc: "Smallest speedup, such as 1.2; 1 by default.", value: &shape{op: named, def: "#Decimal"}},
			{name: "maxMemory", required: false, doc: "Largest growth of the process that runs the model.", value: &shape{op: named, def: "#Size"}},
		},
	}}},
	{name: "#Account", doc: "The name of a user or group, or its number.", value: &shape{op: either, parts: []*shape{
		&shape{op: named, def: "#User"},
		&shape{op: object, obj: &structure{
			fields: []*member{
				{name: "value", required: true, doc: "", value: &shape{op: named, def: "#User"}},
				{name: "external", required: false, doc: "A layer of yours creates the user or group: the release's recipes need not.", value: &shape{op: basic, kind: load.Bool}},
			},
		}},
	}}},
	{name: "#Adaptive", doc: "Load-driven mode switching with hysteresis.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "up", required: true, doc: "Load at which the next higher mode is selected.", value: &shape{op: named, def: "#LoadStep"}},
			{name: "down", required: true, doc: "Load at which the next lower mode is selected.", value: &shape{op: named, def: "#LoadStep"}},
			{name: "ladder", required: true, doc: "Modes from the lowest to the highest.", value: &shape{op: list, elem: &shape{op: named, def: "#ModeName"}}},
			{name: "dwell", required: false, doc: "Minimum time in a mode before the load can change it; 5 s by default.", value: &shape{op: named, def: "#Duration"}},
			{name: "cool", required: false, doc: "Time without throttling before a higher mode is selected again; 30 s by default.", value: &shape{op: named, def: "#Duration"}},
			{name: "budget", required: false, doc: "Maximum number of load-driven switches per hour; 30 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 3600},
			}}},
		},
	}}},
	{name: "#ArgName", doc: "a kernel argument's name, such as \"isolcpus\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 64},
		&shape{op: matches, text: "^[A-Za-z0-9][A-Za-z0-9_.-]*$"},
	}}},
	{name: "#ArgValue", doc: "The value of a kernel argument, or true for an argument without one.", value: &shape{op: either, parts: []*shape{
		&shape{op: exactly, literal: &load.Node{Kind: load.Bool, Text: "", True: true}},
		&shape{op: basic, kind: load.Int},
		&shape{op: named, def: "#Word"},
	}}},
	{name: "#Batch", doc: "Batching of frames, or of the crops of a frame.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "buckets", required: true, doc: "Allowed batch sizes, ascending from 1.", value: &shape{op: list, elem: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 256},
			}}}},
			{name: "pad", required: false, doc: "Crops: fill the last batch up to a bucket instead of running a smaller one. The buckets then may begin above 1, for a model with a fixed first axis.", value: &shape{op: basic, kind: load.Bool}},
			{name: "delay", required: false, doc: "Longest wait for a batch to fill. The latency objective can shorten it.", value: &shape{op: named, def: "#Duration"}},
		},
	}}},
	{name: "#Board", doc: "A board of your own: a carrier around a known module (base), any Linux device (facts), or a carrier whose module's unverified facts the board file replaces (both).", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "base", required: false, doc: "Module SKU whose cores, clocks and power modes apply.", value: &shape{op: named, def: "#Name"}},
			{name: "facts", required: false, doc: "Board file, relative to the configuration: what \"yoctuned probe --board-file\" wrote on a device. Without base, release names a series of openembedded-core, and kernel needs recipe and version.", value: &shape{op: named, def: "#Path"}},
			{name: "description", required: false, doc: "Description of the board.", value: &shape{op: named, def: "#Text"}},
			{name: "supply", required: false, doc: "Power that the supply can deliver to the module, in milliwatts. A default power mode above it is a warning.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1000},
				&shape{op: bound, rel: "<=", number: 1000000},
			}}},
			{name: "machines", required: true, doc: "MACHINEs of your BSP layer, by release.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ReleaseName"}, value: &shape{op: list, elem: &shape{op: named, def: "#MachineName"}}},
				},
			}}},
			{name: "observed", required: false, doc: "Readings of a device with this board, written by \"yoctune facts refresh\". They are compared with the facts but do not replace them.", value: &shape{op: named, def: "#Observed"}},
		},
	}}},
	{name: "#Build", doc: "Settings of the build, written to the layer's settings file.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "sstate", required: false, doc: "Shared state cache.", value: &shape{op: object, obj: &structure{
				fields: []*member{
					{name: "dir", required: false, doc: "SSTATE_DIR.", value: &shape{op: named, def: "#BuildPath"}},
					{name: "mirrors", required: false, doc: "Mirrors of the shared state, by name; lower order comes first.", value: &shape{op: object, obj: &structure{
						patterns: []pattern{
							{key: &shape{op: named, def: "#Name"}, value: &shape{op: named, def: "#Mirror"}},
						},
					}}},
				},
			}}},
			{name: "downloads", required: false, doc: "Downloads.", value: &shape{op: object, obj: &structure{
				fields: []*member{
					{name: "dir", required: false, doc: "DL_DIR.", value: &shape{op: named, def: "#BuildPath"}},
					{name: "mirrors", required: false, doc: "Mirrors tried before the upstream address, by name; lower order comes first.", value: &shape{op: object, obj: &structure{
						patterns: []pattern{
							{key: &shape{op: named, def: "#Name"}, value: &shape{op: named, def: "#Mirror"}},
						},
					}}},
					{name: "own", required: false, doc: "Your own mirror for every kind of source; it is tried first (own-mirrors).", value: &shape{op: named, def: "#URL"}},
					{name: "archive", required: false, doc: "Also archive sources fetched from version control, so that DL_DIR can serve as such a mirror (BB_GENERATE_MIRROR_TARBALLS); false keeps them out.", value: &shape{op: basic, kind: load.Bool}},
					{name: "network", required: false, doc: "Where sources may come from: \"any\" host, \"mirrors\" only (BB_FETCH_PREMIRRORONLY), or \"none\", that is, only DL_DIR (BB_NO_NETWORK).", value: &shape{op: either, parts: []*shape{
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "any", True: false}},
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "mirrors", True: false}},
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "none", True: false}},
					}}},
					{name: "hosts", required: false, doc: "Hosts that sources may come from (BB_ALLOWED_NETWORKS), such as \"git.example.com\" or \"*.example.com\".", value: &shape{op: list, elem: &shape{op: named, def: "#HostPattern"}}},
				},
			}}},
			{name: "hashserve", required: false, doc: "Hash equivalence.", value: &shape{op: object, obj: &structure{
				fields: []*member{
					{name: "address", required: false, doc: "BB_HASHSERVE.", value: &shape{op: named, def: "#HostPort"}},
					{name: "upstream", required: false, doc: "BB_HASHSERVE_UPSTREAM.", value: &shape{op: named, def: "#HostPort"}},
					{name: "off", required: false, doc: "Disable hash equivalence: a task is rebuilt whenever its inputs change, even if its output does not (OEBasicHash).", value: &shape{op: basic, kind: load.Bool}},
					{name: "database", required: false, doc: "Folder of the local server's database (BB_HASHSERVE_DB_DIR); never on NFS.", value: &shape{op: named, def: "#BuildPath"}},
					{name: "server", required: false, doc: "Units for a server that several builders share, below contrib/hashserv of the layer.", value: &shape{op: named, def: "#HashServer"}},
				},
			}}},
			{name: "parallel", required: false, doc: "Parallelism.", value: &shape{op: object, obj: &structure{
				fields: []*member{
					{name: "tasks", required: false, doc: "Parallel tasks (BB_NUMBER_THREADS).", value: &shape{op: all, parts: []*shape{
						&shape{op: basic, kind: load.Int},
						&shape{op: bound, rel: ">=", number: 1},
						&shape{op: bound, rel: "<=", number: 1024},
					}}},
					{name: "make", required: false, doc: "Parallel jobs of one make (PARALLEL_MAKE).", value: &shape{op: all, parts: []*shape{
						&shape{op: basic, kind: load.Int},
						&shape{op: bound, rel: ">=", number: 1},
						&shape{op: bound, rel: "<=", number: 1024},
					}}},
					{name: "downloads", required: false, doc: "Parallel downloads.", value: &shape{op: all, parts: []*shape{
						&shape{op: basic, kind: load.Int},
						&shape{op: bound, rel: ">=", number: 1},
						&shape{op: bound, rel: "<=", number: 256},
					}}},
					{name: "machine", required: false, doc: "The build machine. Unless tasks and make are set, they are derived from it.", value: &shape{op: named, def: "#BuildMachine"}},
					{name: "load", required: false, doc: "Load above which no task starts, as a multiple of the number of CPUs (BB_LOADFACTOR_MAX).", value: &shape{op: named, def: "#Decimal"}},
					{name: "recipes", required: false, doc: "Parallel make jobs by recipe, for recipes that need a lot of memory, such as {\"onnxruntime\": 4}.", value: &shape{op: object, obj: &structure{
						patterns: []pattern{
							{key: &shape{op: named, def: "#PackageName"}, value: &shape{op: all, parts: []*shape{
								&shape{op: basic, kind: load.Int},
								&shape{op: bound, rel: ">=", number: 1},
								&shape{op: bound, rel: "<=", number: 1024},
							}}},
						},
					}}},
				},
			}}},
			{name: "pressure", required: false, doc: "Pressure above which no task starts, as in /proc/pressure.", value: &shape{op: object, obj: &structure{
				fields: []*member{
					{name: "cpu", required: false, doc: "BB_PRESSURE_MAX_CPU.", value: &shape{op: all, parts: []*shape{
						&shape{op: basic, kind: load.Int},
						&shape{op: bound, rel: ">=", number: 1},
						&shape{op: bound, rel: "<=", number: 100000000},
					}}},
					{name: "io", required: false, doc: "BB_PRESSURE_MAX_IO.", value: &shape{op: all, parts: []*shape{
						&shape{op: basic, kind: load.Int},
						&shape{op: bound, rel: ">=", number: 1},
						&shape{op: bound, rel: "<=", number: 100000000},
					}}},
					{name: "memory", required: false, doc: "BB_PRESSURE_MAX_MEMORY.", value: &shape{op: all, parts: []*shape{
						&shape{op: basic, kind: load.Int},
						&shape{op: bound, rel: ">=", number: 1},
						&shape{op: bound, rel: "<=", number: 100000000},
					}}},
				},
			}}},
			{name: "rmWork", required: false, doc: "Remove work directories during the build; false keeps them, also where another file inherits rm_work.", value: &shape{op: basic, kind: load.Bool}},
			{name: "rmWorkExclude", required: false, doc: "Recipes whose work directories are kept (RM_WORK_EXCLUDE), such as an image that is included in another.", value: &shape{op: list, elem: &shape{op: named, def: "#PackageName"}}},
			{name: "format", required: false, doc: "Format of packages (PACKAGE_CLASSES).", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "ipk", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "rpm", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "deb", True: false}},
			}}},
			{name: "distroFeatures", required: false, doc: "Features of the distribution (DISTRO_FEATURES), such as \"bluetooth\".", value: &shape{op: named, def: "#WordChange"}},
			{name: "machineFeatures", required: false, doc: "Features of the machines (MACHINE_FEATURES), such as \"wifi\".", value: &shape{op: named, def: "#WordChange"}},
			{name: "packageConfig", required: false, doc: "Options of recipes (PACKAGECONFIG), by recipe.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#PackageName"}, value: &shape{op: named, def: "#WordChange"}},
				},
			}}},
			{name: "diskMonitor", required: false, doc: "Free space that a build must leave, by folder such as \"${TMPDIR}\" (BB_DISKMON_DIRS).", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#BuildPath"}, value: &shape{op: named, def: "#DiskMonitor"}},
				},
			}}},
			{name: "image", required: false, doc: "Settings of the images that are built with the layer enabled.", value: &shape{op: object, obj: &structure{
				fields: []*member{
					{name: "features", required: false, doc: "Added to IMAGE_FEATURES, such as \"ssh-server-openssh\".", value: &shape{op: list, elem: &shape{op: named, def: "#PackageName"}}},
					{name: "removeFeatures", required: false, doc: "Removed from IMAGE_FEATURES, such as \"splash\".", value: &shape{op: list, elem: &shape{op: named, def: "#PackageName"}}},
					{name: "badRecommendations", required: false, doc: "Packages that are not installed if they are only recommended (BAD_RECOMMENDATIONS). Needs format \"ipk\" or \"rpm\".", value: &shape{op: list, elem: &shape{op: named, def: "#PackageName"}}},
					{name: "readOnly", required: false, doc: "Mount the root file system read-only. /var/lib then lasts until the next boot: yoctuned's state is lost, and TensorRT engines are rebuilt.", value: &shape{op: basic, kind: load.Bool}},
				},
			}}},
			{name: "optional", required: false, doc: "Packages of optional layers, by the layer's collection: they are installed if the layer is present.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name"}, value: &shape{op: list, elem: &shape{op: named, def: "#PackageName"}}},
				},
			}}},
			{name: "kas", required: false, doc: "A configuration for kas, one file per target.", value: &shape{op: named, def: "#Kas"}},
			{name: "bitbakeSetup", required: false, doc: "A configuration for bitbake-setup, one file per target; for whinlatter and later.", value: &shape{op: basic, kind: load.Bool}},
			{name: "variables", required: false, doc: "Variables without a field here, by name. The text is the value; a list takes words to add or remove.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#VariableName"}, value: &shape{op: either, parts: []*shape{
						&shape{op: named, def: "#Word"},
						&shape{op: named, def: "#Variable"},
					}}},
				},
			}}},
		},
	}}},
	{name: "#BuildMachine", doc: "Resources of a build machine.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "cores", required: true, doc: "Processor cores.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1024},
			}}},
			{name: "memory", required: true, doc: "Memory for the build.", value: &shape{op: named, def: "#Size"}},
		},
	}}},
	{name: "#BuildPath", doc: "a path of the build machine: absolute, or below a variable of bitbake such as \"${TOPDIR}/sstate\"; without \"..\" or blanks", value: &shape{op: matches, text: "^(\\$\\{[A-Z][A-Z0-9_]*\\}|(\\$\\{[A-Z][A-Z0-9_]*\\})?(/[A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*|/\\.[A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*)+)$"}},
	{name: "#Bus", doc: "Power management of PCI Express and USB.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "pcie", required: false, doc: "PCI Express.", value: &shape{op: named, def: "#PCIe"}},
			{name: "usb", required: false, doc: "USB.", value: &shape{op: named, def: "#USB"}},
		},
	}}},
	{name: "#CPU", doc: "CPU scheduling and clocks while the device runs.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "isolate", required: false, doc: "Cores reserved for services and pipelines that name them. Kernel arguments, interrupt affinity, slices and the necessary kernel options follow from this field.", value: &shape{op: list, elem: &shape{op: named, def: "#Core"}}},
			{name: "governor", required: false, doc: "cpufreq governor of all cores.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "performance", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "powersave", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "ondemand", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "conservative", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "schedutil", True: false}},
			}}},
			{name: "min", required: false, doc: "Lowest clock (scaling_min_freq); a step of the module's table.", value: &shape{op: named, def: "#Frequency"}},
			{name: "max", required: false, doc: "Highest clock (scaling_max_freq); a step of the module's table.", value: &shape{op: named, def: "#Frequency"}},
			{name: "epp", required: false, doc: "Energy performance preference of all cores, where the cpufreq driver has one (CPPC).", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "default", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "performance", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "balance_performance", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "balance_power", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "power", True: false}},
			}}},
			{name: "boost", required: false, doc: "Allow clocks above the base clock, where the cpufreq driver supports it.", value: &shape{op: basic, kind: load.Bool}},
			{name: "smt", required: false, doc: "Hardware threads: \"off\" leaves one per core. Jetson modules have one.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "on", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "off", True: false}},
			}}},
			{name: "maxIdleLatency", required: false, doc: "Longest wake-up time of a core; deeper idle states are not used (pm_qos_resume_latency_us). Whole microseconds; 0 allows no idle state at all.", value: &shape{op: named, def: "#Duration"}},
			{name: "idleStates", required: false, doc: "Idle states by name, as /sys/devices/system/cpu/cpu0/cpuidle/state*/name has it, such as \"c7\": false keeps all cores out of the state.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#IdleStateName"}, value: &shape{op: basic, kind: load.Bool}},
				},
			}}},
		},
	}}},
	{name: "#CalendarEvent", doc: "times in the form of systemd.time(7), such as \"daily\", \"Mon..Fri 08:00\" or \"*:0/15\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 200},
		&shape{op: matches, text: "^[A-Za-z0-9*@][A-Za-z0-9*@~,./:+_ -]*$"},
	}}},
	{name: "#Capability", doc: "a capability, such as \"CAP_NET_ADMIN\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 40},
		&shape{op: matches, text: "^CAP_[A-Z0-9_]+$"},
	}}},
	{name: "#Celsius", doc: "a temperature in whole degrees Celsius, such as \"60C\"", value: &shape{op: matches, text: "^[0-9]{1,3}C$"}},
	{name: "#Channels", doc: "Hardware queues of a network interface; drivers offer combined queues, or rx and tx.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "combined", required: false, doc: "Queues that both receive and transmit.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1024},
			}}},
			{name: "rx", required: false, doc: "Receive queues.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 1024},
			}}},
			{name: "tx", required: false, doc: "Transmit queues.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 1024},
			}}},
		},
	}}},
	{name: "#ClientTLS", doc: "Certificates for TLS, as files of the device in PEM.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "ca", required: false, doc: "Certificates of the authorities that are trusted; by default those of the system. The server on the device admits only clients with a certificate of theirs.", value: &shape{op: named, def: "#AbsPath"}},
			{name: "certificate", required: false, doc: "Certificate of this side, and those between it and the authority.", value: &shape{op: named, def: "#AbsPath"}},
			{name: "key", required: false, doc: "Private key of the certificate.", value: &shape{op: named, def: "#AbsPath"}},
		},
	}}},
	{name: "#ClockLimits", doc: "Limits of a clock.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "min", required: false, doc: "Lowest clock; a step of the device's table.", value: &shape{op: named, def: "#Frequency"}},
			{name: "max", required: false, doc: "Highest clock; a step of the device's table.", value: &shape{op: named, def: "#Frequency"}},
		},
	}}},
	{name: "#Cluster", doc: "Where pipelines with a sink of kind nats deliver their results: NATS JetStream, with a server on the device or in a cluster that exists. Exactly one of embedded and url is set.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "name", required: true, doc: "Name of the cluster.", value: &shape{op: named, def: "#Name"}},
			{name: "embedded", required: false, doc: "Run a NATS server on the device, as yoctuned-cluster.service. Its streams hold the results.", value: &shape{op: named, def: "#EmbeddedServer"}},
			{name: "url", required: false, doc: "Address of an existing server, such as \"tls://nats.example.com:4222\". Results wait on the device until that server has stored them.", value: &shape{op: matches, text: "^(nats|tls)://[A-Za-z0-9.-]+(:[0-9]{1,5})?$"}},
			{name: "tls", required: false, doc: "Certificates, as files of the device in PEM: those of the client with url, those of the server with embedded.", value: &shape{op: named, def: "#ClientTLS"}},
			{name: "credentials", required: false, doc: "File of the device with the credentials of a user: a .creds file, or the seed of an nkey.", value: &shape{op: named, def: "#AbsPath"}},
			{name: "domain", required: false, doc: "JetStream domain: of the existing server, or the one that the server on the device has; by default none, and name.", value: &shape{op: named, def: "#Name"}},
			{name: "replicas", required: false, doc: "Copies of a stream in the cluster: 1, 3 or 5. 1 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 5},
			}}},
			{name: "store", required: false, doc: "What the device keeps.", value: &shape{op: named, def: "#ClusterStore"}},
		},
	}}},
	{name: "#ClusterStore", doc: "What the device keeps in /var/lib/yoctune-cluster.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "size", required: false, doc: "Most that all streams on the device may take; 1 GiB by default.", value: &shape{op: named, def: "#Size"}},
			{name: "sync", required: false, doc: "Time between writes to the disk, which is what a loss of power may cost. By default results are on the disk before they are acknowledged.", value: &shape{op: named, def: "#Duration"}},
		},
	}}},
	{name: "#Coalesce", doc: "Interrupt coalescing: an interrupt is raised after a delay or a number of packets.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "rxUsecs", required: false, doc: "Longest delay of a receive interrupt, in microseconds.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 1000000},
			}}},
			{name: "rxFrames", required: false, doc: "Packets received before an interrupt.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 1000000},
			}}},
			{name: "txUsecs", required: false, doc: "Longest delay of a transmit interrupt, in microseconds.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 1000000},
			}}},
			{name: "txFrames", required: false, doc: "Packets transmitted before an interrupt.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 1000000},
			}}},
			{name: "adaptiveRx", required: false, doc: "Let the driver adapt the receive delay to the traffic.", value: &shape{op: basic, kind: load.Bool}},
			{name: "adaptiveTx", required: false, doc: "Let the driver adapt the transmit delay to the traffic.", value: &shape{op: basic, kind: load.Bool}},
		},
	}}},
	{name: "#Compression", doc: "Compression of a nats sink.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "codec", required: true, doc: "Codec: s2 is faster, zstd smaller.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "s2", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "zstd", True: false}},
			}}},
			{name: "level", required: false, doc: "Level: 1 to 3 for s2, 1 to 4 for zstd; 1 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 4},
			}}},
		},
	}}},
	{name: "#Config", doc: "A whole configuration: one Yocto layer and the targets it serves.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "layer", required: true, doc: "Identity of the layer.", value: &shape{op: named, def: "#Layer"}},
			{name: "targets", required: true, doc: "Machines to build for, by a name of your choice.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name"}, value: &shape{op: named, def: "#Target"}},
				},
			}}},
			{name: "profiles", required: false, doc: "Reusable sets of settings that targets name under use.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name"}, value: &shape{op: named, def: "#Profile"}},
				},
			}}},
			{name: "boards", required: false, doc: "Your own boards: carriers around a known module, or devices that a board file describes.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name"}, value: &shape{op: named, def: "#Board"}},
				},
			}}},
			{name: "build", required: false, doc: "Settings of the build itself: caches, mirrors, parallelism.", value: &shape{op: named, def: "#Build"}},
			{name: "suppress", required: false, doc: "Suppressed rules, each with a reason.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#RuleID"}, value: &shape{op: named, def: "#Suppression"}},
				},
			}}},
		},
	}}},
	{name: "#ConfigSymbol", doc: "a kernel option without CONFIG_, in the kernel's own letters, such as \"TCP_CONG_BBR\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 100},
		&shape{op: matches, text: "^[A-Z0-9][A-Za-z0-9_]*$"},
	}}},
	{name: "#Core", doc: "a core number, counted from 0", value: &shape{op: all, parts: []*shape{
		&shape{op: basic, kind: load.Int},
		&shape{op: bound, rel: ">="},
		&shape{op: bound, rel: "<=", number: 255},
	}}},
	{name: "#Crop", doc: "A region of a frame, in pixels.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "x", required: true, doc: "Left edge.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 16384},
			}}},
			{name: "y", required: true, doc: "Upper edge.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 16384},
			}}},
			{name: "width", required: true, doc: "Width.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 16384},
			}}},
			{name: "height", required: true, doc: "Height.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 16384},
			}}},
		},
	}}},
	{name: "#CustomStage", doc: "A custom stage: a plug-in or a program. Its input is frames, or the previous stage's tensor or results.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "plugin", required: false, doc: "Shared library on the device, built against yoctune_stage.h.", value: &shape{op: named, def: "#AbsPath"}},
			{name: "exec", required: false, doc: "Program and arguments; the program implements the stage protocol.", value: &shape{op: list, elem: &shape{op: named, def: "#Word"}}},
			{name: "shape", required: false, doc: "Shape of the stage's output tensor; by default the stage outputs results.", value: &shape{op: list, elem: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1048576},
			}}}},
			{name: "dtype", required: false, doc: "Element type of that tensor; f32 by default. Stages that were built for float32 tensors are refused for others.", value: &shape{op: named, def: "#DType"}},
			{name: "options", required: false, doc: "Options, passed to the stage verbatim.", value: &shape{op: named, def: "#Text"}},
			{name: "inside", required: false, doc: "Run the plug-in in the pipeline's own process: faster, but a crash ends the pipeline.", value: &shape{op: basic, kind: load.Bool}},
		},
	}}},
	{name: "#DType", doc: "Element type of a tensor.", value: &shape{op: either, parts: []*shape{
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "f32", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "f16", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "bf16", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "i8", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "u8", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "i32", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "i64", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "bool", True: false}},
	}}},
	{name: "#Decimal", doc: "a decimal number, as a number or as text such as \"0.485\"", value: &shape{op: either, parts: []*shape{
		&shape{op: basic, kind: load.Number, any: true},
		&shape{op: matches, text: "^-?[0-9]+(\\.[0-9]+)?$"},
	}}},
	{name: "#Degrade", doc: "A ladder of reduced work.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "ladder", required: true, doc: "Levels; each keeps the changes of the previous ones.", value: &shape{op: list, elem: &shape{op: named, def: "#DegradeStep"}}},
			{name: "upDwell", required: false, doc: "Time without a slow window before a step up; 3 s by default.", value: &shape{op: named, def: "#Duration"}},
			{name: "maxDwell", required: false, doc: "Limit of upDwell, which doubles when a step up fails; 48 s by default.", value: &shape{op: named, def: "#Duration"}},
			{name: "headroom", required: false, doc: "Distance in degrees Celsius to the kernel's throttling point at which the device counts as too hot; 0 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 60},
			}}},
			{name: "power", required: false, doc: "Power of the whole module, in milliwatts, above which the pipeline steps down.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1000},
				&shape{op: bound, rel: "<=", number: 200000},
			}}},
		},
	}}},
	{name: "#DegradeModel", doc: "A replacement model.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "model", required: false, doc: "Name of a model under models, in place of path, uri and sha256.", value: &shape{op: named, def: "#Name"}},
			{name: "path", required: false, doc: "Model file: a relative path names a file beside the configuration, which the layer carries; an absolute one a file that the device has.", value: &shape{op: named, def: "#Path"}},
			{name: "sha256", required: false, doc: "Digest of the model.", value: &shape{op: named, def: "#SHA256"}},
			{name: "uri", required: false, doc: "Address from which the build fetches the model, with its sha256; the layer then installs it.", value: &shape{op: named, def: "#URL"}},
			{name: "member", required: false, doc: "File inside the archive at uri, such as a model in a Python wheel; the sha256 is that of this file.", value: &shape{op: named, def: "#Path"}},
			{name: "archiveSha256", required: false, doc: "Digest of the archive at uri.", value: &shape{op: named, def: "#SHA256"}},
		},
	}}},
	{name: "#DegradeSize", doc: "A replacement tensor size.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "width", required: true, doc: "Width in pixels.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 8192},
			}}},
			{name: "height", required: true, doc: "Height in pixels.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 8192},
			}}},
		},
	}}},
	{name: "#DegradeStep", doc: "A level of the ladder: at least one of the three.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "fps", required: false, doc: "Frames per second.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1000},
			}}},
			{name: "models", required: false, doc: "Replacement models, by model stage.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name"}, value: &shape{op: named, def: "#DegradeModel"}},
				},
			}}},
			{name: "sizes", required: false, doc: "Replacement tensor sizes, by preprocess stage; the model must accept them.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name"}, value: &shape{op: named, def: "#DegradeSize"}},
				},
			}}},
		},
	}}},
	{name: "#Deliveries", doc: "Batches of a nats sink.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "records", required: false, doc: "Results in a batch at most; 100 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 10000},
			}}},
			{name: "delay", required: false, doc: "Time after which a batch that is not full is sent; 10 ms by default.", value: &shape{op: named, def: "#Duration"}},
		},
	}}},
	{name: "#DetectorOutputs", doc: "Names of the outputs of a detector.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "boxes", required: false, doc: "Boxes, [1 boxes 4].", value: &shape{op: named, def: "#Text"}},
			{name: "scores", required: false, doc: "Scores, [1 boxes] or [1 boxes classes].", value: &shape{op: named, def: "#Text"}},
			{name: "classes", required: false, doc: "Numbers of the classes, [1 boxes].", value: &shape{op: named, def: "#Text"}},
			{name: "count", required: false, doc: "Number of boxes.", value: &shape{op: named, def: "#Text"}},
		},
	}}},
	{name: "#Devfreq", doc: "Clock limits of a devfreq device.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "governor", required: false, doc: "devfreq governor, as the device lists it in available_governors.", value: &shape{op: named, def: "#GovernorName"}},
		},
		embeds: []string{"#ClockLimits"},
	}}},
	{name: "#DeviceGlob", doc: "a glob over device names: letters, digits, \"*\", \"?\", \"_\", \".\" and \"-\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 40},
		&shape{op: matches, text: "^[A-Za-z0-9*?_.-]+$"},
	}}},
	{name: "#Directive", doc: "a directive of systemd, such as \"IOSchedulingClass\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 80},
		&shape{op: matches, text: "^[A-Z][A-Za-z0-9-]*$"},
	}}},
	{name: "#DirectiveValue", doc: "a value as systemd reads it, where % and $ keep their meaning; a list has a line for each element, and an empty text resets what was listed", value: &shape{op: either, parts: []*shape{
		&shape{op: basic, kind: load.Bool},
		&shape{op: basic, kind: load.Int},
		&shape{op: named, def: "#Word"},
		&shape{op: list, elem: &shape{op: named, def: "#Word"}},
	}}},
	{name: "#DiskLimit", doc: "Free space below which bitbake acts: at least one of the two.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "space", required: false, doc: "Free space; whole KiB.", value: &shape{op: named, def: "#Size"}},
			{name: "inodes", required: false, doc: "Free inodes.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 9007199254740991},
			}}},
		},
	}}},
	{name: "#DiskMonitor", doc: "What bitbake does when a folder's disk fills up.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "warn", required: false, doc: "Warn, and go on.", value: &shape{op: named, def: "#DiskLimit"}},
			{name: "stop", required: false, doc: "Start no further tasks.", value: &shape{op: named, def: "#DiskLimit"}},
			{name: "halt", required: false, doc: "End the build at once.", value: &shape{op: named, def: "#DiskLimit"}},
		},
	}}},
	{name: "#Duration", doc: "a duration with its unit, such as \"5ms\", or an integer in nanoseconds", value: &shape{op: either, parts: []*shape{
		&shape{op: all, parts: []*shape{
			&shape{op: basic, kind: load.Int},
			&shape{op: bound, rel: ">="},
		}},
		&shape{op: matches, text: "^[0-9]+(\\.[0-9]+)?(ns|us|ms|s|min|h)$"},
	}}},
	{name: "#EmbeddedServer", doc: "A NATS server on the device. Pipelines use it through a unix socket.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "listen", required: false, doc: "Address and port of TCP for other clients, such as \"192.0.2.7:4222\"; by default none. It needs tls with ca, certificate and key.", value: &shape{op: named, def: "#Word"}},
			{name: "plain", required: false, doc: "Listen on the loopback address without TLS: every user of the device may then read and write streams.", value: &shape{op: basic, kind: load.Bool}},
		},
	}}},
	{name: "#Ensemble", doc: "An ensemble of models.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "models", required: true, doc: "Further models, by name; their output has the shape of the first model's output.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name"}, value: &shape{op: named, def: "#EnsembleModel"}},
				},
			}}},
			{name: "vote", required: false, doc: "How to combine the outputs: mean, majority of the best class, or maximum. Mean by default.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "mean", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "majority", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "max", True: false}},
			}}},
		},
	}}},
	{name: "#EnsembleModel", doc: "A model of the ensemble.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "model", required: false, doc: "Name of a model under models, in place of path, uri and sha256.", value: &shape{op: named, def: "#Name"}},
			{name: "path", required: false, doc: "Model file: a relative path names a file beside the configuration, which the layer carries; an absolute one a file that the device has.", value: &shape{op: named, def: "#Path"}},
			{name: "sha256", required: false, doc: "Digest of the model, under which it is installed.", value: &shape{op: named, def: "#SHA256"}},
			{name: "uri", required: false, doc: "Address from which the build fetches the model, with its sha256.", value: &shape{op: named, def: "#URL"}},
			{name: "member", required: false, doc: "File inside the archive at uri, such as a model in a Python wheel; the sha256 is that of this file.", value: &shape{op: named, def: "#Path"}},
			{name: "archiveSha256", required: false, doc: "Digest of the archive at uri.", value: &shape{op: named, def: "#SHA256"}},
		},
	}}},
	{name: "#EnvironmentName", doc: "the name of an environment variable: letters, digits and \"_\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 100},
		&shape{op: matches, text: "^[A-Za-z_][A-Za-z0-9_]*$"},
	}}},
	{name: "#Fan", doc: "The module's fan, controlled by NVIDIA's nvfancontrol. The layer changes the file that the BSP installs; nothing else sets the fan's speed.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "profile", required: false, doc: "Profile in force from boot: one of curves, or one of the BSP's, \"quiet\" or \"cool\".", value: &shape{op: named, def: "#FanProfileName"}},
			{name: "curves", required: false, doc: "Profiles of your own, by name: the fan's speed by temperature, such as {\"35C\": pwm: 0, \"60C\": pwm: 120, \"95C\": pwm: 255}. Speeds between two points are interpolated. A curve with the name of a BSP profile replaces it. Temperatures are the chip's own; the build converts them when the BSP's file holds margins below the limit (TMARGIN).", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#FanProfileName"}, value: &shape{op: object, obj: &structure{
						patterns: []pattern{
							{key: &shape{op: named, def: "#Celsius"}, value: &shape{op: named, def: "#FanPoint"}},
						},
					}}},
				},
			}}},
			{name: "governor", required: false, doc: "How nvfancontrol moves between two points of the curve; by default the BSP's choice.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "cont", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "pid", True: false}},
			}}},
			{name: "control", required: false, doc: "Control the fan by its measured speed (\"close_loop\") or by pulse width alone (\"open_loop\"); by default the BSP's choice.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "open_loop", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "close_loop", True: false}},
			}}},
		},
	}}},
	{name: "#FanPoint", doc: "A point of a fan curve.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "pwm", required: true, doc: "Pulse width, 0 (off) to 255 (full speed).", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 255},
			}}},
			{name: "rpm", required: false, doc: "Speed in revolutions per minute, for control by measured speed; by default in proportion to the BSP's full speed.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 100000},
			}}},
			{name: "hysteresis", required: false, doc: "How far the temperature must fall before the fan slows down again; 0 by default.", value: &shape{op: named, def: "#Celsius"}},
		},
	}}},
	{name: "#FanProfileName", doc: "a fan profile name: letters, digits and \"_\", at most 32 characters", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 32},
		&shape{op: matches, text: "^[A-Za-z0-9_]+$"},
	}}},
	{name: "#FeatureName", doc: "a feature of network interfaces, as `ethtool -k` shows it, such as \"rx-gro\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 31},
		&shape{op: matches, text: "^[a-z0-9][a-z0-9_-]*$"},
	}}},
	{name: "#Frequency", doc: "a frequency with its unit, such as \"918MHz\", or an integer in Hz", value: &shape{op: either, parts: []*shape{
		&shape{op: all, parts: []*shape{
			&shape{op: basic, kind: load.Int},
			&shape{op: bound, rel: ">="},
		}},
		&shape{op: matches, text: "^[0-9]+(\\.[0-9]+)?(Hz|kHz|MHz|GHz)$"},
	}}},
	{name: "#FrequencyCap", doc: "a frequency with its unit, such as \"918MHz\", an integer in Hz, or \"unlimited\"", value: &shape{op: either, parts: []*shape{
		&shape{op: all, parts: []*shape{
			&shape{op: basic, kind: load.Int},
			&shape{op: bound, rel: ">="},
		}},
		&shape{op: matches, text: "^([0-9]+(\\.[0-9]+)?(Hz|kHz|MHz|GHz)|unlimited)$"},
	}}},
	{name: "#GPU", doc: "GPU clock limits while the device runs (devfreq). Prefer power modes: nvpmodel writes the same files.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "min", required: false, doc: "Lowest clock; a step of the module's table.", value: &shape{op: named, def: "#Frequency"}},
			{name: "max", required: false, doc: "Highest clock; a step of the module's table.", value: &shape{op: named, def: "#Frequency"}},
			{name: "governor", required: false, doc: "devfreq governor.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "nvhost_podgov", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "performance", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "powersave", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "simple_ondemand", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "userspace", True: false}},
			}}},
		},
	}}},
	{name: "#GateStage", doc: "Skip the stages after it while the picture does not change. A skipped frame is neither dropped nor failed: it is counted as skipped.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "threshold", required: false, doc: "Change of brightness, 0 to 1, above which a pixel counts as changed since the last frame that passed; 0.1 by default.", value: &shape{op: named, def: "#Decimal"}},
			{name: "area", required: false, doc: "Fraction of the pixels, 0 to 1, above which a frame passes if they changed; 0.01 by default.", value: &shape{op: named, def: "#Decimal"}},
			{name: "grid", required: false, doc: "Side of square blocks, in pixels. If set, a frame also passes if the mean change in any block is above threshold, which detects small objects.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 4},
				&shape{op: bound, rel: "<=", number: 256},
			}}},
			{name: "maxAge", required: false, doc: "Time since the last frame that passed after which a frame passes without a change; 1 s by default.", value: &shape{op: named, def: "#Duration"}},
			{name: "repeat", required: false, doc: "Give a skipped frame the results of the last frame that passed, with their age, instead of none.", value: &shape{op: basic, kind: load.Bool}},
		},
	}}},
	{name: "#GovernorName", doc: "the name of a devfreq governor: lower-case letters, digits and \"_\"", value: &shape{op: matches, text: "^[a-z][a-z0-9_]{0,30}$"}},
	{name: "#HashServer", doc: "A hash equivalence server of your own.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "bitbake", required: true, doc: "Checkout of bitbake on that machine.", value: &shape{op: named, def: "#AbsPath"}},
			{name: "listen", required: false, doc: "Address and port to listen on, such as \":8686\".", value: &shape{op: matches, text: "^(ws://)?[A-Za-z0-9.-]*:[0-9]{1,5}$"}},
			{name: "upstream", required: false, doc: "Upstream server, queried for hashes that this one lacks.", value: &shape{op: named, def: "#HostPort"}},
			{name: "readOnly", required: false, doc: "Builders may query hashes but not report new ones.", value: &shape{op: basic, kind: load.Bool}},
		},
	}}},
	{name: "#HostPattern", doc: "a host name, or \"*.\" and a domain", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 253},
		&shape{op: matches, text: "^([*][.])?[A-Za-z0-9][A-Za-z0-9.-]*$"},
	}}},
	{name: "#HostPort", doc: "a host and port, such as \"hashserv.example.com:8686\", an address of a web socket, such as \"wss://hashserv.example.com/ws\", or \"auto\"", value: &shape{op: matches, text: "^(auto|[A-Za-z0-9.-]+:[0-9]{1,5}|wss?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9./-]*)?)$"}},
	{name: "#IRQ", doc: "Interrupt affinity.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "affinity", required: false, doc: "Cores by interrupt action name, as in the last column of /proc/interrupts; globs are allowed, and an exact name takes precedence.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#IRQName"}, value: &shape{op: list, elem: &shape{op: named, def: "#Core"}}},
				},
			}}},
		},
	}}},
	{name: "#IRQName", doc: "the action name of an interrupt, as in the last column of /proc/interrupts; globs are allowed. The number in the first column is not a name: it differs from boot to boot.", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 64},
		&shape{op: matches, text: "^[A-Za-z0-9*?][A-Za-z0-9*?_.:@-]*$"},
		&shape{op: matches, text: "[^0-9]"},
	}}},
	{name: "#IdleStateName", doc: "the name of an idle state, such as \"WFI\" or \"c7\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 15},
		&shape{op: matches, text: "^[A-Za-z0-9][A-Za-z0-9_.-]*$"},
	}}},
	{name: "#InnerPath", doc: "a path inside a folder: relative, without \"..\" or blanks; \".\" is the folder itself", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 255},
		&shape{op: matches, text: "^(\\.|(\\./)?([A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*|\\.[A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*)(/([A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*|\\.[A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*))*)$"},
	}}},
	{name: "#Kas", doc: "A configuration for kas.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "image", required: false, doc: "Image to build.", value: &shape{op: named, def: "#PackageName"}},
			{name: "distro", required: false, doc: "DISTRO, by default \"nodistro\". A distro from meta-poky also checks out that layer; add other layers in a kas file of your own.", value: &shape{op: named, def: "#Name"}},
			{name: "folder", required: false, doc: "Folder of the layer inside its repository; by default its top.", value: &shape{op: named, def: "#InnerPath"}},
		},
	}}},
	{name: "#KeepFree", doc: "Resources to leave free. Below these limits the pipeline reduces its work, then pauses.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "memory", required: false, doc: "Memory available to other programs.", value: &shape{op: named, def: "#Size"}},
			{name: "disk", required: false, doc: "Free space on the sink's disk.", value: &shape{op: named, def: "#Size"}},
		},
	}}},
	{name: "#Kernel", doc: "The kernel's configuration, command line and preemption model.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "config", required: false, doc: "Options of the kernel configuration, without CONFIG_: \"y\", \"m\", \"n\", a number, or text.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ConfigSymbol"}, value: &shape{op: either, parts: []*shape{
						&shape{op: basic, kind: load.Int},
						&shape{op: named, def: "#Word"},
					}}},
				},
			}}},
			{name: "args", required: false, doc: "Kernel arguments: a value, true for an argument without one, or null to remove one that the BSP sets.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ArgName"}, value: &shape{op: either, parts: []*shape{
						&shape{op: exactly, literal: &load.Node{Kind: load.Null, Text: "", True: false}},
						&shape{op: named, def: "#ArgValue"},
						&shape{op: object, obj: &structure{
							fields: []*member{
								{name: "value", required: true, doc: "", value: &shape{op: named, def: "#ArgValue"}},
								{name: "external", required: false, doc: "A program or a driver of yours reads the argument: the kernel need not.", value: &shape{op: basic, kind: load.Bool}},
							},
						}},
					}}},
				},
			}}},
			{name: "recipe", required: false, doc: "Recipe of the kernel, such as \"linux-yocto\". A board of your own needs it; another board has the BSP's.", value: &shape{op: named, def: "#PackageName"}},
			{name: "version", required: false, doc: "Version line of that kernel, such as \"6.6\"; with recipe.", value: &shape{op: named, def: "#KernelVersion"}},
			{name: "preempt", required: false, doc: "Preemption model. \"rt\" uses the release's RT kernel recipe, or PREEMPT_RT by configuration.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "none", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "voluntary", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "full", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "rt", True: false}},
			}}},
		},
	}}},
	{name: "#KernelLaunch", doc: "Launch configuration of a kernel.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "block", required: true, doc: "Threads per block: a multiple of 32 that the kernel and the module's GPU support.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1024},
			}}},
		},
	}}},
	{name: "#KernelLaunches", doc: "Kernels with a configurable launch.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "preprocess", required: false, doc: "The preprocess kernel.", value: &shape{op: named, def: "#KernelLaunch"}},
			{name: "roi", required: false, doc: "The kernel of a roi stage.", value: &shape{op: named, def: "#KernelLaunch"}},
		},
	}}},
	{name: "#KernelVersion", doc: "a version line of Linux: two numbers, such as \"6.6\"", value: &shape{op: matches, text: "^[1-9][0-9]?\\.[0-9]{1,3}$"}},
	{name: "#Layer", doc: "The layer's identity.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "name", required: true, doc: "Collection and layer name. The distro feature yoctune-<name> switches the layer on.", value: &shape{op: named, def: "#LayerName"}},
			{name: "maintainer", required: true, doc: "Maintainer of the layer, as \"Name <mail>\".", value: &shape{op: named, def: "#Text"}},
			{name: "description", required: false, doc: "One sentence for the layer's README.", value: &shape{op: named, def: "#Text"}},
			{name: "priority", required: false, doc: "BBFILE_PRIORITY; a higher number takes precedence over other layers.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 99},
			}}},
			{name: "version", required: false, doc: "LAYERVERSION.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 65535},
			}}},
			{name: "depends", required: false, doc: "Collections of other layers that the layer needs (LAYERDEPENDS), besides those of openembedded-core and the BSP, such as \"acme\".", value: &shape{op: list, elem: &shape{op: named, def: "#Name"}}},
			{name: "serial", required: false, doc: "Serial of the plans: a device refuses a plan older than the one it runs.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 9007199254740991},
			}}},
		},
	}}},
	{name: "#LayerName", doc: "a layer name: lower-case letters, digits and \"-\", beginning with a letter, at most 40 characters", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 40},
		&shape{op: matches, text: "^[a-z][a-z0-9-]*$"},
	}}},
	{name: "#LoadStep", doc: "A load that persists for a time.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "load", required: true, doc: "Load in percent.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 100},
			}}},
			{name: "for", required: true, doc: "Duration of the load.", value: &shape{op: named, def: "#Duration"}},
		},
	}}},
	{name: "#MachineName", doc: "a bitbake machine name, which is also an override: lower-case letters, digits, \".\" and \"-\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 80},
		&shape{op: matches, text: "^[a-z0-9][a-z0-9.-]*$"},
	}}},
	{name: "#MapStage", doc: "Compute each element of a tensor anew. All expressions run as one kernel, which reads and writes memory once.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "expressions", required: true, doc: "Expressions of each element, such as \"(x - p) * q\". In the first, x is the element; in the others, the result of the one before. in is always the element. Functions: abs, sqrt, exp, log, sigmoid, tanh, relu, gelu, silu, round, min, max, clamp, leaky, f16, bf16, i8, u8.", value: &shape{op: list, elem: &shape{op: named, def: "#Text"}}},
			{name: "p", required: false, doc: "Values of p, one for each channel: the second axis of the tensor.", value: &shape{op: list, elem: &shape{op: named, def: "#Decimal"}}},
			{name: "q", required: false, doc: "Values of q, one for each channel.", value: &shape{op: list, elem: &shape{op: named, def: "#Decimal"}}},
		},
	}}},
	{name: "#MatchStage", doc: "Compare embeddings, the output of a model, with the entries of a gallery.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "gallery", required: true, doc: "File with the gallery, in the safetensors format: a tensor embeddings of float32, and the names and the model's SHA-256 in its metadata. A relative path names a file beside the configuration, which the layer carries.", value: &shape{op: named, def: "#Path"}},
			{name: "galleryUri", required: false, doc: "Address from which the build fetches that file, with its digest; the layer then installs it beside the models.", value: &shape{op: named, def: "#URL"}},
			{name: "gallerySha256", required: false, doc: "Digest of that file.", value: &shape{op: named, def: "#SHA256"}},
			{name: "threshold", required: false, doc: "Entries that are less similar, 0 to 1, are no match; 0.5 by default.", value: &shape{op: named, def: "#Decimal"}},
			{name: "top", required: false, doc: "Maximum number of entries for each embedding, the most similar first; 1 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 32},
			}}},
			{name: "metric", required: false, doc: "Measure of similarity: the cosine of the angle between two vectors.", value: &shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "cosine", True: false}}},
		},
	}}},
	{name: "#Memory", doc: "Memory management.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "thp", required: false, doc: "Transparent huge pages.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "always", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "madvise", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "never", True: false}},
			}}},
			{name: "thpDefrag", required: false, doc: "When the kernel compacts memory to make a transparent huge page.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "always", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "defer", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "defer+madvise", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "madvise", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "never", True: false}},
			}}},
			{name: "ksm", required: false, doc: "Merge identical pages (KSM).", value: &shape{op: basic, kind: load.Bool}},
			{name: "mglru", required: false, doc: "Multi-generational LRU, for cheaper page reclaim. Linux 6.1 and newer.", value: &shape{op: basic, kind: load.Bool}},
			{name: "mglruMinTTL", required: false, doc: "Pages used within this time are not reclaimed; when no other page is left, the OOM killer acts instead of thrashing (min_ttl_ms). Whole milliseconds.", value: &shape{op: named, def: "#Duration"}},
			{name: "zram", required: false, doc: "Compressed swap in memory: its size, or size and algorithm.", value: &shape{op: either, parts: []*shape{
				&shape{op: named, def: "#Size"},
				&shape{op: named, def: "#ZRAM"},
			}}},
			{name: "emc", required: false, doc: "Clock that the memory controller is locked to while yoctuned enforces the plan, as jetson_clocks does; below the cap of the power mode. Jetson modules from TX2 on, up to L4T R36.", value: &shape{op: named, def: "#Frequency"}},
			{name: "hugepages", required: false, doc: "Reserved huge pages: number by page size, such as {\"2MiB\": 64}.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: matches, text: "^(64KiB|2MiB|32MiB|1GiB)$"}, value: &shape{op: all, parts: []*shape{
						&shape{op: basic, kind: load.Int},
						&shape{op: bound, rel: ">="},
						&shape{op: bound, rel: "<=", number: 1048576},
					}}},
				},
			}}},
		},
	}}},
	{name: "#Mirror", doc: "A mirror of downloads or of the shared state.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "url", required: true, doc: "Address of the mirror, of any of bitbake's fetchers.", value: &shape{op: named, def: "#MirrorURL"}},
			{name: "pattern", required: false, doc: "Regular expression for the addresses it serves; by default all.", value: &shape{op: all, parts: []*shape{
				&shape{op: maxRunes, number: 200},
				&shape{op: matches, text: "^[A-Za-z0-9.*+:/_\\\\()|?^-]+$"},
			}}},
			{name: "order", required: false, doc: "Position among the mirrors; mirrors of equal order are sorted by name.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 999},
			}}},
		},
	}}},
	{name: "#MirrorURL", doc: "an address of one of bitbake's fetchers, with its parameters after \";\", without blanks, quotes or passwords", value: &shape{op: matches, text: "^((file|https?|ftps?|s3|gs|az)://|(git|gitsm|gitannex|ssh|sftp|svn|hg|cvs|npm)://([A-Za-z0-9._-]+@)?)[A-Za-z0-9._~:/+;=-]*$"}},
	{name: "#ModeName", doc: "a power mode name: letters, digits and \"_\", at most 32 characters", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 32},
		&shape{op: matches, text: "^[A-Za-z0-9_]+$"},
	}}},
	{name: "#Model", doc: "A model. A stage, a member of an ensemble or a step of a ladder with model: NAME runs it, as if the file were written there.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "source", required: false, doc: "Model file: a relative path names a file beside the configuration, which the layer carries; an absolute one a file that the device has; a URL a file that the build fetches, with its sha256.", value: &shape{op: named, def: "#ModelSource"}},
			{name: "sha256", required: false, doc: "Digest of the model, under which it is installed.", value: &shape{op: named, def: "#SHA256"}},
			{name: "member", required: false, doc: "File inside the archive at source, such as a model in a Python wheel; the sha256 is that of this file.", value: &shape{op: named, def: "#Path"}},
			{name: "archiveSha256", required: false, doc: "Digest of the archive at source.", value: &shape{op: named, def: "#SHA256"}},
			{name: "external", required: false, doc: "A layer of yours installs the model under its sha256, in /usr/share/yoctune/models: it needs no source.", value: &shape{op: basic, kind: load.Bool}},
			{name: "labels", required: false, doc: "File with one label per line, for the postprocess stages that read this model and name no labels; a relative path names a file beside the configuration, which the layer carries.", value: &shape{op: named, def: "#Path"}},
			{name: "labelsUri", required: false, doc: "Address from which the build fetches that file, with its digest; the layer then installs it beside the models.", value: &shape{op: named, def: "#URL"}},
			{name: "labelsSha256", required: false, doc: "Digest of that file.", value: &shape{op: named, def: "#SHA256"}},
			{name: "optimise", required: false, doc: "Candidates that \"yoctune model optimise\" makes and measures. The image gets the fastest that is accepted, otherwise the original; \"vet\" refuses a model whose evidence is missing, or is of another device, runtime or model.", value: &shape{op: list, elem: &shape{op: named, def: "#Optimisation"}}},
			{name: "accept", required: false, doc: "Conditions under which a candidate is accepted, with 95 percent confidence, at every batch size of the stages that run the model.", value: &shape{op: named, def: "#Accept"}},
		},
	}}},
	{name: "#ModelInput", doc: "An input of a model: a tensor of the frame, or fixed values.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "from", required: false, doc: "\"source\" or an earlier stage that gives a tensor; by default the stage's input.", value: &shape{op: named, def: "#Name"}},
			{name: "tensor", required: false, doc: "Name of an input of the source, where requests have several. By default the one with the name of the model's input.", value: &shape{op: named, def: "#Text"}},
			{name: "part", required: false, doc: "Index in the first axis of that tensor: one tensor can hold several inputs.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 1048575},
			}}},
			{name: "previous", required: false, doc: "Take the tensor of the frame before, as this stage saw it; for the first frame, that of the frame itself.", value: &shape{op: basic, kind: load.Bool}},
			{name: "values", required: false, doc: "Values that are the same for every frame.", value: &shape{op: list, elem: &shape{op: named, def: "#Decimal"}}},
			{name: "dtype", required: false, doc: "Element type of the values; f32 by default.", value: &shape{op: named, def: "#DType"}},
			{name: "shape", required: false, doc: "Shape of the values; by default one axis.", value: &shape{op: list, elem: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1048576},
			}}}},
		},
	}}},
	{name: "#ModelSource", doc: "a path, absolute or relative, or a URL: file, http, https, ftp or s3, without blanks, quotes, \";\" or credentials", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 1000},
		&shape{op: matches, text: "^((file|https?|ftp|s3)://[A-Za-z0-9._~:/?#\\[\\]!&'()*+,=%-]*|/?([A-Za-z0-9._+,@:=-]+/)*[A-Za-z0-9._+,@:=-]+)$"},
	}}},
	{name: "#ModelStage", doc: "Run an ONNX model.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "model", required: false, doc: "Name of a model under models, in place of path, uri and sha256.", value: &shape{op: named, def: "#Name"}},
			{name: "path", required: false, doc: "Model file: a relative path names a file beside the configuration, which the layer carries; an absolute one a file that the device has.", value: &shape{op: named, def: "#Path"}},
			{name: "sha256", required: false, doc: "Digest of the model, under which it is installed.", value: &shape{op: named, def: "#SHA256"}},
			{name: "uri", required: false, doc: "Address from which the build fetches the model, with its sha256; the layer then installs it.", value: &shape{op: named, def: "#URL"}},
			{name: "member", required: false, doc: "File inside the archive at uri, such as a model in a Python wheel; the sha256 is that of this file.", value: &shape{op: named, def: "#Path"}},
			{name: "archiveSha256", required: false, doc: "Digest of the archive at uri.", value: &shape{op: named, def: "#SHA256"}},
			{name: "inputTensor", required: false, doc: "Name of the input tensor; by default the model's first.", value: &shape{op: named, def: "#Text"}},
			{name: "outputTensor", required: false, doc: "Name of the output tensor; by default the model's first.", value: &shape{op: named, def: "#Text"}},
			{name: "inputs", required: false, doc: "Inputs of a model that has several, by name. An input that is not listed takes the tensor of the stage's input.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Text"}, value: &shape{op: named, def: "#ModelInput"}},
				},
			}}},
			{name: "outputTensors", required: false, doc: "Names of several output tensors, for decode \"raw\". Detectors with several outputs name them in the postprocess stage.", value: &shape{op: list, elem: &shape{op: named, def: "#Text"}}},
			{name: "threads", required: false, doc: "Threads inside an operator; by default one per core of the pipeline.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 256},
			}}},
			{name: "batch", required: false, doc: "Process several frames in one run, or after a roi stage several crops of a frame; the first axis of the model must be dynamic.", value: &shape{op: named, def: "#Batch"}},
			{name: "providers", required: false, doc: "Execution providers, best first. Unavailable providers are skipped, with the reason in the summary; if none is available, the pipeline fails. By default \"cpu\"; with device \"gpu\", all three. TensorRT needs an engine that has already been built.", value: &shape{op: list, elem: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "tensorrt", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "cuda", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "cpu", True: false}},
			}}}},
			{name: "precision", required: false, doc: "Precision of a TensorRT engine; fp32 by default.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "fp32", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "fp16", True: false}},
			}}},
			{name: "workspace", required: false, doc: "Memory that TensorRT may use to build an engine.", value: &shape{op: named, def: "#Size"}},
			{name: "spinning", required: false, doc: "Let idle threads of the model spin. Latency is slightly lower, but each thread occupies a core. Off by default.", value: &shape{op: basic, kind: load.Bool}},
			{name: "arena", required: false, doc: "Keep memory in an arena. On by default; if off, memory is released after each run.", value: &shape{op: basic, kind: load.Bool}},
			{name: "ensemble", required: false, doc: "Further models that run on the same tensor and contribute to the result.", value: &shape{op: named, def: "#Ensemble"}},
		},
	}}},
	{name: "#ModuleName", doc: "a kernel module name: letters, digits, \"_\" and \"-\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 56},
		&shape{op: matches, text: "^[A-Za-z0-9_-]+$"},
	}}},
	{name: "#ModuleUse", doc: "What happens to a kernel module.", value: &shape{op: either, parts: []*shape{
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "load", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "blacklist", True: false}},
	}}},
	{name: "#Monitor", doc: "Sampling on the device.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "interval", required: false, doc: "Time between samples.", value: &shape{op: named, def: "#Duration"}},
			{name: "metrics", required: false, doc: "Serve the samples: metrics for Prometheus, health, a page with live charts and a history. Installs yoctuned-serve.", value: &shape{op: basic, kind: load.Bool}},
		},
	}}},
	{name: "#MountPath", doc: "an absolute path for a mount: letters, digits, \"_\", \".\" and \"-\" between slashes", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 120},
		&shape{op: matches, text: "^(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$"},
	}}},
	{name: "#Name", doc: "a name: letters, digits, \"-\" and \"_\", beginning with a letter or digit, at most 64 characters", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 64},
		&shape{op: matches, text: "^[A-Za-z0-9][A-Za-z0-9_-]*$"},
	}}},
	{name: "#Network", doc: "Settings of network interfaces.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "mtu", required: false, doc: "Largest packet, in bytes.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 68},
				&shape{op: bound, rel: "<=", number: 65535},
			}}},
			{name: "txQueueLen", required: false, doc: "Length of the transmit queue, in packets.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 1000000},
			}}},
			{name: "groFlushTimeout", required: false, doc: "How long received packets may wait for others (gro_flush_timeout).", value: &shape{op: named, def: "#Duration"}},
			{name: "napiDeferHardIRQs", required: false, doc: "Polls without packets before interrupts are enabled again (napi_defer_hard_irqs).", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 1000000},
			}}},
			{name: "rps", required: false, doc: "Cores that process packets of the receive queues (rps_cpus).", value: &shape{op: list, elem: &shape{op: named, def: "#Core"}}},
			{name: "xps", required: false, doc: "Cores that may use the transmit queues (xps_cpus).", value: &shape{op: list, elem: &shape{op: named, def: "#Core"}}},
			{name: "channels", required: false, doc: "Number of hardware queues (ethtool -L).", value: &shape{op: named, def: "#Channels"}},
			{name: "ring", required: false, doc: "Length of the hardware queues, in packets (ethtool -G).", value: &shape{op: named, def: "#Ring"}},
			{name: "coalesce", required: false, doc: "Interrupt coalescing of the hardware (ethtool -C).", value: &shape{op: named, def: "#Coalesce"}},
			{name: "offloads", required: false, doc: "Features of the interface, by the kernel's names (ethtool -K).", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#FeatureName"}, value: &shape{op: basic, kind: load.Bool}},
				},
			}}},
		},
	}}},
	{name: "#Observed", doc: "Readings of one device: observed, not verified.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "l4t", required: false, doc: "L4T version.", value: &shape{op: named, def: "#Text"}},
			{name: "kernel", required: false, doc: "Kernel release.", value: &shape{op: named, def: "#Text"}},
			{name: "compatible", required: false, doc: "Entries of the device tree's \"compatible\".", value: &shape{op: list, elem: &shape{op: named, def: "#Text"}}},
			{name: "cores", required: false, doc: "Present cores, online or not.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 256},
			}}},
			{name: "policies", required: false, doc: "Cores that share a clock, one list per policy, such as \"0-3\".", value: &shape{op: list, elem: &shape{op: named, def: "#Text"}}},
			{name: "cpu", required: false, doc: "Steps of the CPU clock, ascending.", value: &shape{op: list, elem: &shape{op: named, def: "#Frequency"}}},
			{name: "gpu", required: false, doc: "Steps of the GPU clock, ascending.", value: &shape{op: list, elem: &shape{op: named, def: "#Frequency"}}},
			{name: "gpuDevfreq", required: false, doc: "Name of the GPU's devfreq device.", value: &shape{op: named, def: "#Text"}},
			{name: "memory", required: false, doc: "Memory available to the kernel: less than the module's.", value: &shape{op: named, def: "#Size"}},
			{name: "thermalZones", required: false, doc: "Types of the thermal zones.", value: &shape{op: list, elem: &shape{op: named, def: "#Text"}}},
			{name: "modes", required: false, doc: "Names of the power modes, in the order of their ids.", value: &shape{op: list, elem: &shape{op: named, def: "#Text"}}},
		},
	}}},
	{name: "#Optimisation", doc: "A candidate to make of a model.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "kind", required: true, doc: "Kind of candidate: a graph optimised by ONNX Runtime or by onnxslim, half precision (fp16, bf16), calibrated 8-bit integers (int8), 8-bit weights of matrix products (int8-dynamic), or weights set to 0 or removed (prune).", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "graph", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "slim", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "fp16", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "bf16", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "int8", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "int8-dynamic", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "prune", True: false}},
			}}},
		},
		branches: []branch{
			{field: "kind", value: "graph", then: &structure{
				fields: []*member{
					{name: "level", required: false, doc: "Level of ONNX Runtime's optimisations; \"basic\" by default. The others fit the provider that they were made with.", value: &shape{op: either, parts: []*shape{
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "basic", True: false}},
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "extended", True: false}},
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "all", True: false}},
					}}},
				},
			}},
			{field: "kind", value: "fp16", then: &structure{
				fields: []*member{
					{name: "keep", required: false, doc: "Names of nodes that stay in float32.", value: &shape{op: list, elem: &shape{op: named, def: "#Text"}}},
				},
			}},
			{field: "kind", value: "bf16", then: &structure{
				fields: []*member{
					{name: "keep", required: false, doc: "Names of nodes that stay in float32.", value: &shape{op: list, elem: &shape{op: named, def: "#Text"}}},
				},
			}},
			{field: "kind", value: "int8", then: &structure{
				fields: []*member{
					{name: "calibration", required: true, doc: "Calibration set, in the format of labelled sets: a file beside the configuration.", value: &shape{op: named, def: "#Path"}},
					{name: "method", required: false, doc: "How to choose the range of each tensor; \"minmax\" by default.", value: &shape{op: either, parts: []*shape{
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "minmax", True: false}},
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "entropy", True: false}},
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "percentile", True: false}},
					}}},
					{name: "perChannel", required: false, doc: "A scale for each channel of the weights.", value: &shape{op: basic, kind: load.Bool}},
					{name: "exclude", required: false, doc: "Names of nodes that stay in float, besides those that are found to need it.", value: &shape{op: list, elem: &shape{op: named, def: "#Text"}}},
				},
			}},
			{field: "kind", value: "int8-dynamic", then: &structure{
				fields: []*member{
					{name: "perChannel", required: false, doc: "A scale for each channel of the weights.", value: &shape{op: basic, kind: load.Bool}},
					{name: "exclude", required: false, doc: "Names of nodes that stay in float.", value: &shape{op: list, elem: &shape{op: named, def: "#Text"}}},
				},
			}},
			{field: "kind", value: "prune", then: &structure{
				fields: []*member{
					{name: "pattern", required: true, doc: "Weights to remove: the smallest anywhere, whole channels of convolutions, or two of four.", value: &shape{op: either, parts: []*shape{
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "unstructured", True: false}},
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "channel", True: false}},
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "2:4", True: false}},
					}}},
					{name: "amount", required: false, doc: "Fraction of weights or channels, 0 to 1; 0.1 by default. 2:4 is one half.", value: &shape{op: named, def: "#Decimal"}},
				},
			}},
		},
	}}},
	{name: "#OptionName", doc: "a feature, or an option of a recipe: letters, digits, \"_\", \".\", \"+\" and \"-\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 64},
		&shape{op: matches, text: "^[A-Za-z0-9][A-Za-z0-9_.+-]*$"},
	}}},
	{name: "#OptionalPath", doc: "an absolute path, with \"-\" before it if the file may be absent", value: &shape{op: matches, text: "^-?(/[A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*|/\\.[A-Za-z0-9_+,@:=-][A-Za-z0-9._+,@:=-]*)+$"}},
	{name: "#Outbox", doc: "Results that wait on the device for the cluster.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "size", required: false, doc: "Most that may wait; 64 MiB by default.", value: &shape{op: named, def: "#Size"}},
			{name: "rate", required: false, doc: "Rate at which waiting results are sent; by default as fast as the link allows.", value: &shape{op: named, def: "#Rate"}},
		},
	}}},
	{name: "#PCIe", doc: "Power management of PCI Express.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "aspm", required: false, doc: "Policy of Active State Power Management: \"performance\" keeps links awake, \"powersave\" and \"powersupersave\" let them sleep, \"default\" is what the firmware has set.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "default", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "performance", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "powersave", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "powersupersave", True: false}},
			}}},
		},
	}}},
	{name: "#PackageName", doc: "a package name: lower-case letters, digits, \".\", \"+\" and \"-\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 80},
		&shape{op: matches, text: "^[a-z0-9][a-z0-9.+-]*$"},
	}}},
	{name: "#PackageUse", doc: "What happens to a package.", value: &shape{op: either, parts: []*shape{
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "install", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "exclude", True: false}},
	}}},
	{name: "#Path", doc: "a path, absolute or relative: letters, digits and . _ + , @ : = - between single slashes, without a slash at the end", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 255},
		&shape{op: matches, text: "^/?([A-Za-z0-9._+,@:=-]+/)*[A-Za-z0-9._+,@:=-]+$"},
	}}},
	{name: "#Pipeline", doc: "An inference pipeline: frames from a source, through stages, to a sink.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "source", required: true, doc: "Source of the frames.", value: &shape{op: named, def: "#Source"}},
			{name: "stages", required: true, doc: "Stages by name; each names its input.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name"}, value: &shape{op: named, def: "#Stage"}},
				},
			}}},
			{name: "sink", required: false, doc: "Destination of the results; by default NDJSON on standard output.", value: &shape{op: named, def: "#Sink"}},
			{name: "start", required: false, doc: "Start the pipeline at boot. By default true for a live source, such as a camera or a stream, otherwise false.", value: &shape{op: basic, kind: load.Bool}},
			{name: "queue", required: false, doc: "Limits of the queues between stages.", value: &shape{op: named, def: "#Queue"}},
			{name: "slo", required: false, doc: "Objectives of the pipeline.", value: &shape{op: named, def: "#SLO"}},
			{name: "cpus", required: false, doc: "Cores of the pipeline.", value: &shape{op: list, elem: &shape{op: named, def: "#Core"}}},
			{name: "environment", required: false, doc: "Environment variables of its processes, such as OMP_NUM_THREADS or MALLOC_ARENA_MAX.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#EnvironmentName"}, value: &shape{op: named, def: "#Word"}},
				},
			}}},
			{name: "scheduling", required: false, doc: "CPU scheduling policy of its threads.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "other", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "batch", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "idle", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "fifo", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "rr", True: false}},
			}}},
			{name: "priority", required: false, doc: "Real-time priority, with scheduling \"fifo\" or \"rr\".", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 99},
			}}},
			{name: "nice", required: false, doc: "Nice level, -20 the most favourable.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: -20},
				&shape{op: bound, rel: "<=", number: 19},
			}}},
			{name: "budget", required: false, doc: "Resource limits of the pipeline, and the resources that it must leave free.", value: &shape{op: named, def: "#PipelineBudget"}},
			{name: "isolation", required: false, doc: "\"process\" (default) uses the GPU in a separate process that can be restarted; \"none\" uses it in the pipeline's own process.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "process", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "none", True: false}},
			}}},
			{name: "kernels", required: false, doc: "Launch configuration of GPU kernels. For kernels that are absent the device finds the fastest configuration by measurement.", value: &shape{op: named, def: "#KernelLaunches"}},
			{name: "degrade", required: false, doc: "How a live pipeline reduces its work when it is too slow or the device too hot.", value: &shape{op: named, def: "#Degrade"}},
			{name: "memory", required: false, doc: "Locking and huge pages for the pipeline's memory.", value: &shape{op: named, def: "#PipelineMemory"}},
			{name: "utilisation", required: false, doc: "Target load, 0 to 1, of the busiest stage: batch sizes adapt to it, and a live source skips frames for it, except while the pipeline is degraded. By default a batch consists of the frames that are waiting.", value: &shape{op: named, def: "#Decimal"}},
			{name: "gpus", required: false, doc: "Numbers of the GPUs that stages with device \"gpu\" use; by default the first. Frames are shared by measured speed. Each GPU has its own process, and each such stage has one instance per GPU.", value: &shape{op: list, elem: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 15},
			}}}},
			{name: "counters", required: false, doc: "Count cycles, instructions and cache misses; the pipeline's unit may then call perf_event_open. Needs hardware counters and the sysctl kernel.perf_event_paranoid at 2 or less, or 1 or less to count migrations.", value: &shape{op: basic, kind: load.Bool}},
			{name: "lease", required: false, doc: "Hold a lease while the pipeline runs: highest CPU clocks, and the top step of an adaptive power mode.", value: &shape{op: basic, kind: load.Bool}},
		},
	}}},
	{name: "#PipelineBudget", doc: "Resource limits of a pipeline. yoctune vet checks the sums that it can compute; the device checks every limit at start and while the pipeline runs.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "memory", required: false, doc: "Memory of the pipeline and of programs that it starts.", value: &shape{op: named, def: "#Size"}},
			{name: "gpuMemory", required: false, doc: "GPU memory, of the GPU process.", value: &shape{op: named, def: "#Size"}},
			{name: "diskRead", required: false, doc: "Rate of reading from disks.", value: &shape{op: named, def: "#Rate"}},
			{name: "diskWrite", required: false, doc: "Rate of writing to disks.", value: &shape{op: named, def: "#Rate"}},
			{name: "netIn", required: false, doc: "Rate of receiving from the network. It is only compared with the link's capacity, because the sender sets the rate.", value: &shape{op: named, def: "#Rate"}},
			{name: "netOut", required: false, doc: "Rate of sending to the network.", value: &shape{op: named, def: "#Rate"}},
			{name: "keepFree", required: false, doc: "Resources to leave free for others.", value: &shape{op: named, def: "#KeepFree"}},
		},
	}}},
	{name: "#PipelineMemory", doc: "Memory of the pipeline: models, frames and tensors.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "lock", required: false, doc: "Lock the memory, so that it is never swapped or read from disk again.", value: &shape{op: basic, kind: load.Bool}},
			{name: "hugepages", required: false, doc: "Use huge pages, if the kernel has any free.", value: &shape{op: basic, kind: load.Bool}},
		},
	}}},
	{name: "#PostprocessStage", doc: "Turn an output tensor into results.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "decode", required: true, doc: "Meaning of the tensor: text (ctc), classes (argmax), boxes of a YOLO detector (detect), boxes with masks (segment) or points (keypoints), regions of text (regions), or plain values (raw).", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "ctc", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "argmax", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "detect", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "segment", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "keypoints", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "regions", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "raw", True: false}},
			}}},
			{name: "labels", required: false, doc: "File with one label per line; a relative path names a file beside the configuration, which the layer carries.", value: &shape{op: named, def: "#Path"}},
			{name: "labelsUri", required: false, doc: "Address from which the build fetches that file, with its digest; the layer then installs it beside the models.", value: &shape{op: named, def: "#URL"}},
			{name: "labelsSha256", required: false, doc: "Digest of that file.", value: &shape{op: named, def: "#SHA256"}},
			{name: "threshold", required: false, doc: "Results below this confidence, 0 to 1, are dropped.", value: &shape{op: named, def: "#Decimal"}},
			{name: "top", required: false, doc: "Maximum number of results per frame; by default 1 class (at most 32), 100 boxes or 300 regions.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1000},
			}}},
			{name: "head", required: false, doc: "Output format of the detector: v5 to v11 after the first YOLO version that uses it, or several outputs: \"efficient-nms\" with boxes that the model has selected, \"ssd\" with normalised corners and probabilities after that of no object, \"detr\" with centres and logits before that of no object, \"rt-detr\" with independent logits. v8 by default.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "v5", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "v8", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "v10", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "v11", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "efficient-nms", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "ssd", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "detr", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "rt-detr", True: false}},
			}}},
			{name: "outputs", required: false, doc: "Names of the model's outputs, for a head that reads several; by default their usual names.", value: &shape{op: named, def: "#DetectorOutputs"}},
			{name: "iou", required: false, doc: "Boxes that overlap a better one by more than this, 0 to 1, are dropped; 0.45 by default. A v10 model produces no such boxes.", value: &shape{op: named, def: "#Decimal"}},
			{name: "agnostic", required: false, doc: "Also drop boxes that overlap a better box of another class.", value: &shape{op: basic, kind: load.Bool}},
			{name: "classes", required: false, doc: "Number of classes of a detector with keypoints; 1 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1000},
			}}},
			{name: "prototypes", required: false, doc: "Name of the model output with the mask prototypes; by default the second output.", value: &shape{op: named, def: "#Text"}},
			{name: "scale", required: false, doc: "Value of one step of an integer output; 1 by default. Outputs of every type are converted to float32 first.", value: &shape{op: named, def: "#Decimal"}},
			{name: "zero", required: false, doc: "Element of the value 0 of an integer output, with scale; 0 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: -128},
				&shape{op: bound, rel: "<=", number: 255},
			}}},
		},
	}}},
	{name: "#Power", doc: "Power modes: of the module (nvpmodel), or of a board of your own, whose modes are limits that yoctuned holds.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "table", required: false, doc: "\"extend\" adds the modes below to the file the BSP installs; \"complete\" replaces that file, if a verified one is known.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "extend", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "complete", True: false}},
			}}},
			{name: "default", required: false, doc: "Mode after the first boot: one of modes, or a stock mode by name.", value: &shape{op: named, def: "#ModeName"}},
			{name: "modes", required: false, doc: "Your own modes, appended after the stock ones.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ModeName"}, value: &shape{op: named, def: "#PowerMode"}},
				},
			}}},
			{name: "adaptive", required: false, doc: "Switch modes by load while the device runs.", value: &shape{op: named, def: "#Adaptive"}},
		},
	}}},
	{name: "#PowerMode", doc: "A power mode: a stock mode with some limits replaced. A board of your own has no stock modes: a limit that its mode leaves out is the hardware's.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "from", required: false, doc: "Stock mode to start from; a module's mode needs it.", value: &shape{op: named, def: "#ModeName"}},
			{name: "cpu", required: false, doc: "CPU cores and clocks of the mode.", value: &shape{op: object, obj: &structure{
				fields: []*member{
					{name: "online", required: false, doc: "Online cores; by default the stock mode's. Core 0 is always online.", value: &shape{op: list, elem: &shape{op: named, def: "#Core"}}},
					{name: "min", required: false, doc: "Lowest clock; a step of the module's table.", value: &shape{op: named, def: "#Frequency"}},
					{name: "max", required: false, doc: "Highest clock; a step of the module's table, or \"unlimited\".", value: &shape{op: named, def: "#FrequencyCap"}},
				},
			}}},
			{name: "gpu", required: false, doc: "GPU clocks of the mode.", value: &shape{op: object, obj: &structure{
				fields: []*member{
					{name: "min", required: false, doc: "Lowest clock; a step of the module's table.", value: &shape{op: named, def: "#Frequency"}},
					{name: "max", required: false, doc: "Highest clock; a step of the module's table, or \"unlimited\".", value: &shape{op: named, def: "#FrequencyCap"}},
					{name: "mask", required: false, doc: "TPC_PG_MASK, one of the stock modes' values. A change of the mask needs a reboot.", value: &shape{op: all, parts: []*shape{
						&shape{op: basic, kind: load.Int},
						&shape{op: bound, rel: ">="},
						&shape{op: bound, rel: "<=", number: 65535},
					}}},
				},
			}}},
			{name: "devfreq", required: false, doc: "Clocks of devfreq devices of a board of your own, by a glob over the device's name.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#DeviceGlob"}, value: &shape{op: named, def: "#ClockLimits"}},
				},
			}}},
			{name: "thermal", required: false, doc: "Trip points of thermal zones of a board of your own, by the zone's type.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ZoneType"}, value: &shape{op: named, def: "#TripLimits"}},
				},
			}}},
			{name: "emc", required: false, doc: "Memory controller clock of the mode.", value: &shape{op: object, obj: &structure{
				fields: []*member{
					{name: "max", required: false, doc: "Highest clock; a step of the module's table, or \"unlimited\".", value: &shape{op: named, def: "#FrequencyCap"}},
				},
			}}},
		},
	}}},
	{name: "#PreprocessStage", doc: "Convert a frame to a tensor in one pass.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "width", required: true, doc: "Width of the tensor in pixels.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 8192},
			}}},
			{name: "height", required: true, doc: "Height of the tensor in pixels.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 8192},
			}}},
			{name: "fit", required: false, doc: "How to fit a frame of another shape.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "stretch", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "letterbox", True: false}},
			}}},
			{name: "layout", required: false, doc: "Order of the tensor's dimensions: frame, channel, row and column, or the channel last. nchw by default.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "nchw", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "nhwc", True: false}},
			}}},
			{name: "color", required: false, doc: "Order of the colour channels.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "rgb", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "bgr", True: false}},
			}}},
			{name: "dtype", required: false, doc: "Element type of the tensor; f32 by default. Without scale, u8 elements are the pixels themselves, 0 to 255.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "f32", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "f16", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "i8", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "u8", True: false}},
			}}},
			{name: "scale", required: false, doc: "Value of one step of i8 and u8 elements, as in the model's QuantizeLinear: an element is the normalised value divided by this, rounded to nearest even, plus zero, and saturates.", value: &shape{op: named, def: "#Decimal"}},
			{name: "zero", required: false, doc: "Element of the value 0, with scale; 0 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: -128},
				&shape{op: bound, rel: "<=", number: 255},
			}}},
			{name: "pad", required: false, doc: "Border of a letterbox, 0 to 255.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 255},
			}}},
			{name: "mean", required: false, doc: "Subtracted from each channel, in units of 0 to 1.", value: &shape{op: list, elem: &shape{op: named, def: "#Decimal"}}},
			{name: "std", required: false, doc: "Each channel is divided by this, in units of 0 to 1.", value: &shape{op: list, elem: &shape{op: named, def: "#Decimal"}}},
			{name: "crop", required: false, doc: "Region of the frame to use.", value: &shape{op: named, def: "#Crop"}},
		},
	}}},
	{name: "#Profile", doc: "Settings that belong together, usable by several targets.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "power", required: false, doc: "Power modes and the default mode.", value: &shape{op: named, def: "#Power"}},
			{name: "cpu", required: false, doc: "CPU clocks, governor and isolation.", value: &shape{op: named, def: "#CPU"}},
			{name: "gpu", required: false, doc: "GPU clock limits.", value: &shape{op: named, def: "#GPU"}},
			{name: "devfreq", required: false, doc: "Clock limits of devfreq devices of a board of your own, by a glob over the device's name such as \"*.gpu\".", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#DeviceGlob"}, value: &shape{op: named, def: "#Devfreq"}},
				},
			}}},
			{name: "fan", required: false, doc: "The fan's profile and curves.", value: &shape{op: named, def: "#Fan"}},
			{name: "kernel", required: false, doc: "Kernel configuration, arguments and preemption model.", value: &shape{op: named, def: "#Kernel"}},
			{name: "sysctl", required: false, doc: "Kernel parameters below /proc/sys, by their sysctl name.", value: &shape{op: named, def: "#Sysctl"}},
			{name: "memory", required: false, doc: "Huge pages, page merging and compressed swap.", value: &shape{op: named, def: "#Memory"}},
			{name: "tmpfs", required: false, doc: "File systems in memory for transient data, by the folder where they are mounted.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#MountPath"}, value: &shape{op: named, def: "#Tmpfs"}},
				},
			}}},
			{name: "storage", required: false, doc: "Block devices, by a glob over the kernel's device name such as \"nvme*\". An exact name takes precedence, field by field.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#DeviceGlob"}, value: &shape{op: named, def: "#Storage"}},
				},
			}}},
			{name: "irq", required: false, doc: "Interrupt affinity.", value: &shape{op: named, def: "#IRQ"}},
			{name: "threads", required: false, doc: "Scheduling of kernel threads, by name such as \"ksoftirqd/*\". An exact name takes precedence.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ThreadName"}, value: &shape{op: named, def: "#Thread"}},
				},
			}}},
			{name: "bus", required: false, doc: "Power management of PCI Express and USB.", value: &shape{op: named, def: "#Bus"}},
			{name: "network", required: false, doc: "Network interfaces, by a glob over the interface name such as \"eth*\". An exact name takes precedence, field by field.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#DeviceGlob"}, value: &shape{op: named, def: "#Network"}},
				},
			}}},
			{name: "modules", required: false, doc: "Kernel modules to load at boot or to keep from loading.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ModuleName"}, value: &shape{op: either, parts: []*shape{
						&shape{op: named, def: "#ModuleUse"},
						&shape{op: object, obj: &structure{
							fields: []*member{
								{name: "value", required: true, doc: "", value: &shape{op: named, def: "#ModuleUse"}},
								{name: "external", required: false, doc: "A recipe of yours builds the module: the kernel need not have it.", value: &shape{op: basic, kind: load.Bool}},
							},
						}},
					}}},
				},
			}}},
			{name: "services", required: false, doc: "systemd services, by unit name such as \"vision.service\".", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#ServiceName"}, value: &shape{op: named, def: "#Service"}},
				},
			}}},
			{name: "packages", required: false, doc: "Packages to add to images or to keep out of them.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#PackageName"}, value: &shape{op: either, parts: []*shape{
						&shape{op: named, def: "#PackageUse"},
						&shape{op: object, obj: &structure{
							fields: []*member{
								{name: "value", required: true, doc: "", value: &shape{op: named, def: "#PackageUse"}},
								{name: "external", required: false, doc: "A layer of yours has the package: the release need not have it.", value: &shape{op: basic, kind: load.Bool}},
							},
						}},
					}}},
				},
			}}},
			{name: "tools", required: false, doc: "Profiling and measurement tools. Tools excluded under packages are not installed.", value: &shape{op: named, def: "#Tools"}},
			{name: "models", required: false, doc: "Models of the pipelines, by name.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name"}, value: &shape{op: named, def: "#Model"}},
				},
			}}},
			{name: "pipelines", required: false, doc: "Inference pipelines, by name.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name"}, value: &shape{op: named, def: "#Pipeline"}},
				},
			}}},
			{name: "cluster", required: false, doc: "Delivery of results to other machines.", value: &shape{op: named, def: "#Cluster"}},
			{name: "monitor", required: false, doc: "Measurements on the running device.", value: &shape{op: named, def: "#Monitor"}},
			{name: "runtime", required: false, doc: "Source of the yoctuned program.", value: &shape{op: named, def: "#Runtime"}},
		},
	}}},
	{name: "#PublicKey", doc: "A minisign public key.", value: &shape{op: matches, text: "^RW[Q-T][A-Za-z0-9+/]{53}$"}},
	{name: "#Queue", doc: "Limits of the queues between stages.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "capacity", required: false, doc: "Frames per queue.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1024},
			}}},
			{name: "policy", required: false, doc: "What happens when a queue is full.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "block", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "drop-oldest", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "drop-newest", True: false}},
			}}},
			{name: "maxAge", required: false, doc: "Maximum age since capture; older frames are dropped.", value: &shape{op: named, def: "#Duration"}},
			{name: "inFlight", required: false, doc: "Maximum number of frames in processing. Further frames wait or are dropped before the first stage.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1024},
			}}},
		},
	}}},
	{name: "#ROIStage", doc: "Cut the best boxes out of the frame and make a tensor of each, for a model that runs on all crops of a frame. The results of the postprocess stage after it belong to the boxes.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "width", required: true, doc: "Width of each tensor in pixels.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 8192},
			}}},
			{name: "height", required: true, doc: "Height of each tensor in pixels.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 8192},
			}}},
			{name: "fit", required: false, doc: "How to fit a box of another shape.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "stretch", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "letterbox", True: false}},
			}}},
			{name: "color", required: false, doc: "Order of the colour channels.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "rgb", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "bgr", True: false}},
			}}},
			{name: "pad", required: false, doc: "Border of a letterbox, 0 to 255.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 255},
			}}},
			{name: "mean", required: false, doc: "Subtracted from each channel, in units of 0 to 1.", value: &shape{op: list, elem: &shape{op: named, def: "#Decimal"}}},
			{name: "std", required: false, doc: "Each channel is divided by this, in units of 0 to 1.", value: &shape{op: list, elem: &shape{op: named, def: "#Decimal"}}},
			{name: "count", required: false, doc: "Maximum number of crops of a frame, those of the best scores; 8 by default. The summary counts the others.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 256},
			}}},
			{name: "margin", required: false, doc: "Added on each side of a box, as a fraction of its width or height, 0 to 1.", value: &shape{op: named, def: "#Decimal"}},
			{name: "only", required: false, doc: "Numbers of the classes to crop; all by default.", value: &shape{op: list, elem: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 65535},
			}}}},
		},
	}}},
	{name: "#Rate", doc: "a rate with its unit, such as \"20MB/s\" or \"100Mbit/s\", or an integer in bytes per second", value: &shape{op: either, parts: []*shape{
		&shape{op: all, parts: []*shape{
			&shape{op: basic, kind: load.Int},
			&shape{op: bound, rel: ">=", number: 1},
		}},
		&shape{op: matches, text: "^[0-9]+(\\.[0-9]+)?(B|KiB|MiB|GiB|kB|MB|GB|kbit|Mbit|Gbit)/s$"},
	}}},
	{name: "#ReleaseName", doc: "a meta-tegra branch, such as \"scarthgap\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 40},
		&shape{op: matches, text: "^[a-z][a-z0-9.-]*$"},
	}}},
	{name: "#RequestInput", doc: "An input of a request.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "dtype", required: false, doc: "Element type; f32 by default.", value: &shape{op: named, def: "#DType"}},
			{name: "shape", required: true, doc: "Shape of one row, with the axis of the batch: [1, 128].", value: &shape{op: list, elem: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1048576},
			}}}},
		},
	}}},
	{name: "#Retention", doc: "Limits of a stream in the cluster.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "size", required: false, doc: "Size of the stream; 1 GiB by default, and 256 MiB on the device.", value: &shape{op: named, def: "#Size"}},
			{name: "age", required: false, doc: "Age after which results are removed; by default they stay until size is reached.", value: &shape{op: named, def: "#Duration"}},
		},
	}}},
	{name: "#Ring", doc: "Length of the hardware queues.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "rx", required: false, doc: "Packets per receive queue.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 65536},
			}}},
			{name: "tx", required: false, doc: "Packets per transmit queue.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 65536},
			}}},
		},
	}}},
	{name: "#Rotate", doc: "Rotation of a sink's file.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "size", required: true, doc: "Size at which a new file is started.", value: &shape{op: named, def: "#Size"}},
			{name: "keep", required: true, doc: "Files to keep besides the current one.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1000},
			}}},
		},
	}}},
	{name: "#RuleID", doc: "a rule id such as \"tcp-cc-bbr\", or a diagnostic code such as \"YT0103\"", value: &shape{op: matches, text: "^([a-z][a-z0-9-]*|YT[0-9]{4})$"}},
	{name: "#Runtime", doc: "The yoctuned program: where it comes from, and what it trusts.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "form", required: false, doc: "\"bundled\" puts the program into the layer; \"prebuilt\" fetches it; \"source\" builds it with the release's own Go, if that is new enough; \"none\" installs no program, and a setting that no file of the layer holds is then an error. Default: \"bundled\"; with manifest \"source\" where the release can, \"prebuilt\" elsewhere.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "bundled", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "source", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "prebuilt", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "none", True: false}},
			}}},
			{name: "manifest", required: false, doc: "File with the addresses and digests of the artefacts, relative to the configuration.", value: &shape{op: named, def: "#Path"}},
			{name: "keys", required: false, doc: "Public keys, by name: the device then accepts only plans signed with one of them (`yoctune sign`). The text is the second line of a .pub file.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#Name"}, value: &shape{op: named, def: "#PublicKey"}},
				},
			}}},
			{name: "cuda", required: false, doc: "Add the CUDA library; without it pipelines run on the CPU.", value: &shape{op: basic, kind: load.Bool}},
		},
	}}},
	{name: "#SHA256", doc: "a SHA-256 in lower-case hexadecimal", value: &shape{op: matches, text: "^[0-9a-f]{64}$"}},
	{name: "#SLO", doc: "Objectives, checked while the pipeline runs.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "latencyP50", required: false, doc: "Median of the time from capture to sink.", value: &shape{op: named, def: "#Duration"}},
			{name: "latencyP95", required: false, doc: "95th percentile of the time from capture to sink.", value: &shape{op: named, def: "#Duration"}},
			{name: "latencyP99", required: false, doc: "99th percentile of the time from capture to sink.", value: &shape{op: named, def: "#Duration"}},
			{name: "minFps", required: false, doc: "Lowest rate, in frames per second.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1000},
			}}},
			{name: "memory", required: false, doc: "Most memory of the pipeline's process, as resident in RAM.", value: &shape{op: named, def: "#Size"}},
			{name: "energy", required: false, doc: "Most energy of the whole module for one frame, in microjoules. Unknown where the module has no power sensor.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
			}}},
		},
	}}},
	{name: "#ServerTLS", doc: "Certificates of a server, as files of the device in PEM.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "certificate", required: true, doc: "Certificate of the server, and those between it and the authority.", value: &shape{op: named, def: "#AbsPath"}},
			{name: "key", required: true, doc: "Private key of the certificate.", value: &shape{op: named, def: "#AbsPath"}},
			{name: "clientCA", required: false, doc: "Certificates of the authorities whose clients may connect. By default clients show no certificate.", value: &shape{op: named, def: "#AbsPath"}},
		},
	}}},
	{name: "#Service", doc: "A systemd service. Without exec or unit.Service.ExecStart it is a drop-in for a unit that something else installs.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "description", required: false, doc: "Description of the service.", value: &shape{op: named, def: "#Text"}},
			{name: "exec", required: false, doc: "Program and arguments; the program is an absolute path.", value: &shape{op: list, elem: &shape{op: named, def: "#Word"}}},
			{name: "package", required: false, doc: "Package that has the program; the layer installs it.", value: &shape{op: named, def: "#PackageName"}},
			{name: "external", required: false, doc: "The image gets the program by other means than a package of this configuration.", value: &shape{op: basic, kind: load.Bool}},
			{name: "type", required: false, doc: "How systemd detects that the service has started.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "simple", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "exec", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "notify", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "oneshot", True: false}},
			}}},
			{name: "user", required: false, doc: "User that runs the service, by name or number; root by default.", value: &shape{op: named, def: "#Account"}},
			{name: "group", required: false, doc: "Group of the service's processes; by default that of its user.", value: &shape{op: named, def: "#Account"}},
			{name: "supplementaryGroups", required: false, doc: "Further groups of the service's processes.", value: &shape{op: list, elem: &shape{op: named, def: "#Account"}}},
			{name: "workingDirectory", required: false, doc: "Folder in which the service's programs start.", value: &shape{op: named, def: "#AbsPath"}},
			{name: "slice", required: false, doc: "Slice of the service, without \".slice\". With cpu.isolate the slice gets the isolated cores.", value: &shape{op: named, def: "#SliceName"}},
			{name: "after", required: false, doc: "Units to start after.", value: &shape{op: list, elem: &shape{op: named, def: "#UnitReference"}}},
			{name: "wants", required: false, doc: "Units to start together with it.", value: &shape{op: list, elem: &shape{op: named, def: "#UnitReference"}}},
			{name: "requires", required: false, doc: "Units that this service requires.", value: &shape{op: list, elem: &shape{op: named, def: "#UnitReference"}}},
			{name: "environment", required: false, doc: "Environment variables.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#EnvironmentName"}, value: &shape{op: named, def: "#Word"}},
				},
			}}},
			{name: "environmentFiles", required: false, doc: "Files with environment variables, read in this order; one with \"-\" before it may be absent.", value: &shape{op: list, elem: &shape{op: named, def: "#OptionalPath"}}},
			{name: "execStartPre", required: false, doc: "Commands to run before exec, one after the other. A failure prevents the start, unless \"-\" stands before the program; \"+\" runs it as root.", value: &shape{op: list, elem: &shape{op: list, elem: &shape{op: named, def: "#Word"}}}},
			{name: "execStartPost", required: false, doc: "Commands to run after the service has started.", value: &shape{op: list, elem: &shape{op: list, elem: &shape{op: named, def: "#Word"}}}},
			{name: "execStop", required: false, doc: "Commands that stop the service; by default its processes get SIGTERM.", value: &shape{op: list, elem: &shape{op: list, elem: &shape{op: named, def: "#Word"}}}},
			{name: "execStopPost", required: false, doc: "Commands to run after the service has stopped or failed.", value: &shape{op: list, elem: &shape{op: list, elem: &shape{op: named, def: "#Word"}}}},
			{name: "cpus", required: false, doc: "Cores of the service.", value: &shape{op: list, elem: &shape{op: named, def: "#Core"}}},
			{name: "nice", required: false, doc: "Nice level, -20 the most favourable.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: -20},
				&shape{op: bound, rel: "<=", number: 19},
			}}},
			{name: "scheduling", required: false, doc: "CPU scheduling policy.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "other", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "batch", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "idle", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "fifo", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "rr", True: false}},
			}}},
			{name: "priority", required: false, doc: "Real-time priority, with scheduling \"fifo\" or \"rr\".", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 99},
			}}},
			{name: "memoryMax", required: false, doc: "Memory limit.", value: &shape{op: named, def: "#Size"}},
			{name: "memoryHigh", required: false, doc: "Memory above which the service is throttled and its pages are reclaimed first.", value: &shape{op: named, def: "#Size"}},
			{name: "cpuWeight", required: false, doc: "Relative share of CPU time under contention; 100 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 10000},
			}}},
			{name: "ioWeight", required: false, doc: "Relative share of disk I/O under contention; 100 by default. Only the bfq scheduler applies it.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 10000},
			}}},
			{name: "cpuPartition", required: false, doc: "cpuset partition of the slice: \"root\" reserves its cores, \"isolated\" also disables load balancing between them (Linux 6.1). Needs slice, and cpu.isolate for its cores.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "member", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "root", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "isolated", True: false}},
			}}},
			{name: "cpuQuota", required: false, doc: "Limit of CPU time, in percent of one core: 150 means one and a half cores.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 25600},
			}}},
			{name: "memoryLock", required: false, doc: "Allow the service to lock memory.", value: &shape{op: basic, kind: load.Bool}},
			{name: "oomScoreAdjust", required: false, doc: "Preference of the kernel for ending the service when memory is short: 1000 first, -1000 never.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: -1000},
				&shape{op: bound, rel: "<=", number: 1000},
			}}},
			{name: "ambientCapabilities", required: false, doc: "Capabilities that the service's programs have although its user is not root.", value: &shape{op: list, elem: &shape{op: named, def: "#Capability"}}},
			{name: "capabilityBoundingSet", required: false, doc: "Capabilities that the service can have at all; none for an empty list.", value: &shape{op: list, elem: &shape{op: named, def: "#Capability"}}},
			{name: "restart", required: false, doc: "When systemd restarts the service.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "no", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "always", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "on-success", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "on-failure", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "on-abnormal", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "on-abort", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "on-watchdog", True: false}},
			}}},
			{name: "restartSec", required: false, doc: "Wait before a restart. A service with exec that restarts waits 3 s by default.", value: &shape{op: named, def: "#Duration"}},
			{name: "startLimitIntervalSec", required: false, doc: "Period in which starts are counted; 10 s by default, 0 for no limit.", value: &shape{op: named, def: "#Duration"}},
			{name: "startLimitBurst", required: false, doc: "Starts in that period after which systemd gives up; 5 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 100000},
			}}},
			{name: "watchdogSec", required: false, doc: "Longest time between two signs of life of the service; 0 switches the watchdog off.", value: &shape{op: named, def: "#Duration"}},
			{name: "timeoutStartSec", required: false, doc: "Longest time that starting may take; 90 s by default, unlimited for a oneshot.", value: &shape{op: either, parts: []*shape{
				&shape{op: named, def: "#Duration"},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "infinity", True: false}},
			}}},
			{name: "timeoutStopSec", required: false, doc: "Longest time that stopping may take before the processes are killed; 90 s by default.", value: &shape{op: either, parts: []*shape{
				&shape{op: named, def: "#Duration"},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "infinity", True: false}},
			}}},
			{name: "enable", required: false, doc: "Start at boot; true by default. Without exec the package of the unit decides. With a timer it is the timer that starts at boot.", value: &shape{op: basic, kind: load.Bool}},
			{name: "timer", required: false, doc: "Start the service at times, by a timer unit of the same name. The service then does not start at boot, unless unit.Install has a WantedBy.", value: &shape{op: named, def: "#Timer"}},
			{name: "hardening", required: false, doc: "Run in systemd's sandbox; true by default if the layer writes the whole unit. A directive of the sandbox that unit also has is as unit has it.", value: &shape{op: basic, kind: load.Bool}},
			{name: "unit", required: false, doc: "Directives without a field here, by section: \"Unit\", \"Service\" or \"Install\". With ExecStart the layer writes the whole unit, as with exec, unless ExecStart begins with an empty text. Install replaces WantedBy=multi-user.target.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#UnitSection"}, value: &shape{op: object, obj: &structure{
						patterns: []pattern{
							{key: &shape{op: named, def: "#Directive"}, value: &shape{op: either, parts: []*shape{
								&shape{op: named, def: "#DirectiveValue"},
								&shape{op: object, obj: &structure{
									fields: []*member{
										{name: "value", required: true, doc: "", value: &shape{op: named, def: "#DirectiveValue"}},
										{name: "external", required: false, doc: "A patched systemd of yours reads the directive: that of the release need not.", value: &shape{op: basic, kind: load.Bool}},
									},
								}},
							}}},
						},
					}}},
				},
			}}},
		},
	}}},
	{name: "#ServiceName", doc: "a service name ending in \".service\", such as \"vision.service\"; of a template \"getty@.service\" for all its instances, or \"getty@tty1.service\" for one", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 99},
		&shape{op: matches, text: "^[A-Za-z0-9][A-Za-z0-9_.-]*(@[A-Za-z0-9_.-]*)?\\.service$"},
	}}},
	{name: "#Sink", doc: "A sink of results.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "kind", required: true, doc: "Kind of sink: JSON lines, HTTP requests, a program's standard input, a ring in shared memory, a stream of the cluster, or the reply to a request, which is the default for a source of requests.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "ndjson", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "http", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "command", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "shm", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "nats", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "reply", True: false}},
			}}},
			{name: "capacity", required: false, doc: "Number of frames that can wait for the sink; by default as for the other queues.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1024},
			}}},
			{name: "policy", required: false, doc: "Policy when the sink is slow; by default as for the other queues.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "block", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "drop-oldest", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "drop-newest", True: false}},
			}}},
			{name: "time", required: false, doc: "Longest time for one result, as measured. Used for worst-case latency.", value: &shape{op: named, def: "#Duration"}},
		},
		branches: []branch{
			{field: "kind", value: "ndjson", then: &structure{
				fields: []*member{
					{name: "path", required: false, doc: "File to write; standard output by default.", value: &shape{op: named, def: "#AbsPath"}},
					{name: "rotate", required: false, doc: "Rotation of the file.", value: &shape{op: named, def: "#Rotate"}},
				},
			}},
			{field: "kind", value: "http", then: &structure{
				fields: []*member{
					{name: "url", required: true, doc: "Address to post each result to. https needs yoctuned-serve, which the layer then brings.", value: &shape{op: matches, text: "^https?://[A-Za-z0-9._~:/?#@\\[\\]!&'()*+,=%-]+$"}},
					{name: "tls", required: false, doc: "Certificates of the client with https, as files of the device in PEM.", value: &shape{op: named, def: "#ClientTLS"}},
					{name: "timeout", required: false, doc: "Time limit for one result; 2 s by default.", value: &shape{op: named, def: "#Duration"}},
				},
			}},
			{field: "kind", value: "command", then: &structure{
				fields: []*member{
					{name: "exec", required: true, doc: "Program and arguments; each result is a line on its standard input.", value: &shape{op: list, elem: &shape{op: named, def: "#Word"}}},
					{name: "timeout", required: false, doc: "Time limit for one result; 2 s by default.", value: &shape{op: named, def: "#Duration"}},
				},
			}},
			{field: "kind", value: "shm", then: &structure{
				fields: []*member{
					{name: "path", required: true, doc: "File of the ring, such as /dev/shm/door.", value: &shape{op: named, def: "#AbsPath"}},
					{name: "slots", required: false, doc: "Records in the ring; 64 by default.", value: &shape{op: all, parts: []*shape{
						&shape{op: basic, kind: load.Int},
						&shape{op: bound, rel: ">=", number: 1},
						&shape{op: bound, rel: "<=", number: 65536},
					}}},
					{name: "slotSize", required: false, doc: "Size of a record; 4 KiB by default.", value: &shape{op: named, def: "#Size"}},
				},
			}},
			{field: "kind", value: "nats", then: &structure{
				fields: []*member{
					{name: "stream", required: false, doc: "Name of the stream; by default that of the pipeline.", value: &shape{op: named, def: "#Name"}},
					{name: "subject", required: false, doc: "Subject of the results; by default \"results.\" and the name of the pipeline. The identity of the device follows it.", value: &shape{op: matches, text: "^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$"}},
					{name: "batch", required: false, doc: "Results that are sent together.", value: &shape{op: named, def: "#Deliveries"}},
					{name: "compression", required: false, doc: "Compression of batches. It stays off while it gains less than 15 %.", value: &shape{op: named, def: "#Compression"}},
					{name: "retain", required: false, doc: "Limits of the stream, used when it is made.", value: &shape{op: named, def: "#Retention"}},
					{name: "outbox", required: false, doc: "Results that wait on the device, with url of the cluster.", value: &shape{op: named, def: "#Outbox"}},
					{name: "full", required: false, doc: "Policy when outbox, or with an embedded server the stream, is full: drop-oldest by default.", value: &shape{op: either, parts: []*shape{
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "drop-oldest", True: false}},
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "drop-newest", True: false}},
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "block", True: false}},
					}}},
				},
			}},
		},
	}}},
	{name: "#Size", doc: "a size with its unit, such as \"2GiB\", or an integer in bytes", value: &shape{op: either, parts: []*shape{
		&shape{op: all, parts: []*shape{
			&shape{op: basic, kind: load.Int},
			&shape{op: bound, rel: ">="},
		}},
		&shape{op: matches, text: "^[0-9]+(\\.[0-9]+)?(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)$"},
	}}},
	{name: "#SliceName", doc: "a slice name without \".slice\": lower-case letters and digits", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 40},
		&shape{op: matches, text: "^[a-z][a-z0-9]*$"},
	}}},
	{name: "#Source", doc: "A source of frames.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "kind", required: true, doc: "Kind of source: a file, a test picture, a camera (V4L2), a command that writes frames, a network stream, a ring in shared memory, or requests of callers, which the pipeline answers.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "file", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "synthetic", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "v4l2", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "command", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "rtsp", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "shm", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "request", True: false}},
			}}},
			{name: "format", required: true, doc: "Pixel format, or \"tensor\" for records of numbers from a file, a command, a ring or a request. y4m and mjpeg streams contain their size. Requests may carry an \"image\", a JPEG or PNG file that becomes an rgb frame of width and height, or a \"text\" in UTF-8 that becomes a tensor of bytes.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "nv12", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "i420", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "yuyv", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "uyvy", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "grey", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "rgb", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "bgr", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "mjpeg", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "y4m", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "tensor", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "image", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "text", True: false}},
			}}},
			{name: "dtype", required: false, doc: "Element type of tensors; f32 by default. Numbers are in the byte order of the machine.", value: &shape{op: named, def: "#DType"}},
			{name: "shape", required: false, doc: "Shape of the tensor of one record, with the axis of the batch: [1, 128].", value: &shape{op: list, elem: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1048576},
			}}}},
			{name: "width", required: false, doc: "Width in pixels.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 2},
				&shape{op: bound, rel: "<=", number: 16384},
			}}},
			{name: "height", required: false, doc: "Height in pixels.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 2},
				&shape{op: bound, rel: "<=", number: 16384},
			}}},
			{name: "fps", required: false, doc: "Frames per second, such as 30 or \"30000/1001\".", value: &shape{op: either, parts: []*shape{
				&shape{op: all, parts: []*shape{
					&shape{op: basic, kind: load.Int},
					&shape{op: bound, rel: ">=", number: 1},
					&shape{op: bound, rel: "<=", number: 1000},
				}},
				&shape{op: matches, text: "^[0-9]{1,6}(/[0-9]{1,6})?$"},
			}}},
			{name: "live", required: false, doc: "Drop late frames; otherwise the source waits. By default true for cameras, network streams and rings.", value: &shape{op: basic, kind: load.Bool}},
			{name: "timeout", required: false, doc: "Time without a frame after which a live source counts as stopped, 2 s by default; for requests, the time after which one without a timeout of its own is given up, 10 s by default.", value: &shape{op: named, def: "#Duration"}},
			{name: "restart", required: false, doc: "When a stopped source is reopened: always, after a failure, or never. By default always for live sources, otherwise never.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "always", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "on-failure", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "never", True: false}},
			}}},
			{name: "decoders", required: false, doc: "Number of MJPEG frames decoded in parallel; 1 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 16},
			}}},
			{name: "time", required: false, doc: "Longest time from capture until the first stage receives the frame, as measured on the module. Used for worst-case latency.", value: &shape{op: named, def: "#Duration"}},
		},
		branches: []branch{
			{field: "kind", value: "file", then: &structure{
				fields: []*member{
					{name: "path", required: true, doc: "File with the frames; a relative path names a file beside the configuration, which the layer carries.", value: &shape{op: named, def: "#Path"}},
				},
			}},
			{field: "kind", value: "v4l2", then: &structure{
				fields: []*member{
					{name: "path", required: true, doc: "Device, named by its port: a path below /dev/v4l/by-path.", value: &shape{op: named, def: "#AbsPath"}},
				},
			}},
			{field: "kind", value: "rtsp", then: &structure{
				fields: []*member{
					{name: "url", required: true, doc: "Address of the stream. A password in it is visible to users who can list the device's processes.", value: &shape{op: matches, text: "^rtsps?://[A-Za-z0-9._~:/?&=%@+-]+$"}},
					{name: "via", required: false, doc: "Program that receives and decodes the stream; by default GStreamer with the module's decoder.", value: &shape{op: either, parts: []*shape{
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "gstreamer", True: false}},
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "ffmpeg", True: false}},
					}}},
					{name: "latency", required: false, doc: "Time that GStreamer waits for late packets; 100 ms by default.", value: &shape{op: named, def: "#Duration"}},
				},
			}},
			{field: "kind", value: "shm", then: &structure{
				fields: []*member{
					{name: "path", required: true, doc: "File of the ring, such as /dev/shm/frames.", value: &shape{op: named, def: "#AbsPath"}},
				},
			}},
			{field: "kind", value: "command", then: &structure{
				fields: []*member{
					{name: "exec", required: true, doc: "Program and arguments; the program writes frames to standard output.", value: &shape{op: list, elem: &shape{op: named, def: "#Word"}}},
				},
			}},
			{field: "kind", value: "request", then: &structure{
				fields: []*member{
					{name: "model", required: false, doc: "Name of the model in the protocol; by default that of the pipeline.", value: &shape{op: named, def: "#Name"}},
					{name: "inputs", required: false, doc: "Inputs of a request by name, for a model with several; each has a type and a shape of its own.", value: &shape{op: object, obj: &structure{
						patterns: []pattern{
							{key: &shape{op: named, def: "#Text"}, value: &shape{op: named, def: "#RequestInput"}},
						},
					}}},
					{name: "socket", required: false, doc: "File of the unix socket; by default /run/yoctune-pipeline/NAME/requests.", value: &shape{op: named, def: "#AbsPath"}},
					{name: "everyone", required: false, doc: "Let every user of the device connect to the unix socket. By default only root and the group yoctune may.", value: &shape{op: basic, kind: load.Bool}},
					{name: "address", required: false, doc: "Address and port of TCP, such as \"192.0.2.7:8000\"; by default the pipeline is reached through its unix socket only. It needs tls, and tokens or tls.clientCA.", value: &shape{op: named, def: "#Word"}},
					{name: "plain", required: false, doc: "Use TCP on the loopback address without TLS and tokens: every user of the device may then send requests.", value: &shape{op: basic, kind: load.Bool}},
					{name: "tls", required: false, doc: "Certificates of TCP.", value: &shape{op: named, def: "#ServerTLS"}},
					{name: "tokens", required: false, doc: "File of the device with the tokens of callers, one a line. A caller sends one as \"Authorization: Bearer TOKEN\".", value: &shape{op: named, def: "#AbsPath"}},
					{name: "sharedMemory", required: false, doc: "Let callers on the address, which is then the loopback address, use shared memory for tensors. Callers on the unix socket always may, with memory of their own.", value: &shape{op: basic, kind: load.Bool}},
					{name: "maxRequests", required: false, doc: "Requests that wait or are in work at once; others are refused. 64 by default.", value: &shape{op: all, parts: []*shape{
						&shape{op: basic, kind: load.Int},
						&shape{op: bound, rel: ">=", number: 1},
						&shape{op: bound, rel: "<=", number: 4096},
					}}},
					{name: "maxRows", required: false, doc: "Rows of a request: its size along the first axis. 16 by default, or the largest batch of a model if that is more.", value: &shape{op: all, parts: []*shape{
						&shape{op: basic, kind: load.Int},
						&shape{op: bound, rel: ">=", number: 1},
						&shape{op: bound, rel: "<=", number: 4096},
					}}},
				},
			}},
		},
	}}},
	{name: "#Stage", doc: "A stage of a pipeline.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "kind", required: true, doc: "Kind of stage.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "gate", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "stats", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "preprocess", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "model", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "map", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "postprocess", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "match", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "track", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "roi", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "custom", True: false}},
			}}},
			{name: "input", required: true, doc: "\"source\", or the name of another stage.", value: &shape{op: named, def: "#Name"}},
			{name: "instances", required: false, doc: "Parallel instances; the order of frames is kept.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 64},
			}}},
			{name: "deadline", required: false, doc: "Time limit of one run. After it the run is stopped, and its frames are dropped or, with a fallback, processed by the CPU.", value: &shape{op: named, def: "#Duration"}},
			{name: "time", required: false, doc: "Longest time of one run with the largest batch, as measured on the module; after a roi stage, of all crops of a frame. Used for worst-case latency.", value: &shape{op: named, def: "#Duration"}},
			{name: "device", required: false, doc: "Device of gate, stats, preprocess, roi, model, map and match stages, and of postprocess stages that the core decodes; the CPU by default. Tensors between stages on the GPU stay in its memory. \"auto\" measures both when the pipeline first starts on a device, keeps the faster one, and remembers it.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "cpu", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "gpu", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "auto", True: false}},
			}}},
			{name: "fallback", required: false, doc: "\"cpu\" (default) lets the CPU process the frames that the GPU cannot process in time; \"drop\" drops them.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "cpu", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "drop", True: false}},
			}}},
		},
		branches: []branch{
			{field: "kind", value: "gate", then: &structure{
				embeds: []string{"#GateStage"},
			}},
			{field: "kind", value: "stats", then: &structure{
				embeds: []string{"#StatsStage"},
			}},
			{field: "kind", value: "preprocess", then: &structure{
				embeds: []string{"#PreprocessStage"},
			}},
			{field: "kind", value: "model", then: &structure{
				embeds: []string{"#ModelStage"},
			}},
			{field: "kind", value: "map", then: &structure{
				embeds: []string{"#MapStage"},
			}},
			{field: "kind", value: "postprocess", then: &structure{
				embeds: []string{"#PostprocessStage"},
			}},
			{field: "kind", value: "match", then: &structure{
				embeds: []string{"#MatchStage"},
			}},
			{field: "kind", value: "track", then: &structure{
				embeds: []string{"#TrackStage"},
			}},
			{field: "kind", value: "roi", then: &structure{
				embeds: []string{"#ROIStage"},
			}},
			{field: "kind", value: "custom", then: &structure{
				embeds: []string{"#CustomStage"},
			}},
		},
	}}},
	{name: "#StatsStage", doc: "Measure the picture, and pass it on: mean brightness, the fractions of dark and of bright pixels, and the sharpness. They are in the frame's results.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "low", required: false, doc: "Brightness, 0 (black) to 1 (white), up to which a pixel counts as dark; 0.02 by default.", value: &shape{op: named, def: "#Decimal"}},
			{name: "high", required: false, doc: "Brightness, 0 to 1, from which a pixel counts as bright; 0.98 by default.", value: &shape{op: named, def: "#Decimal"}},
		},
	}}},
	{name: "#Storage", doc: "Queue settings of block devices.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "scheduler", required: false, doc: "I/O scheduler.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "none", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "mq-deadline", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "kyber", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "bfq", True: false}},
			}}},
			{name: "readahead", required: false, doc: "Read-ahead, a multiple of 1 KiB.", value: &shape{op: named, def: "#Size"}},
			{name: "requests", required: false, doc: "Length of the request queue (nr_requests).", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 4},
				&shape{op: bound, rel: "<=", number: 65536},
			}}},
			{name: "rqAffinity", required: false, doc: "Core that completes requests (rq_affinity): 0 any, 1 in the submitter's group, 2 the submitter's.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.Int, Text: "0", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.Int, Text: "1", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.Int, Text: "2", True: false}},
			}}},
		},
	}}},
	{name: "#Suppression", doc: "A suppressed rule.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "reason", required: true, doc: "Why the rule does not apply here; the layer's README shows it.", value: &shape{op: named, def: "#Text"}},
		},
	}}},
	{name: "#Sysctl", doc: "Kernel parameters below /proc/sys. Components are separated by \".\"; a dot inside a component, as in an interface name, is written \"/\".", value: &shape{op: object, obj: &structure{
		patterns: []pattern{
			{key: &shape{op: named, def: "#SysctlName"}, value: &shape{op: either, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: basic, kind: load.Bool},
				&shape{op: named, def: "#Word"},
			}}},
		},
	}}},
	{name: "#SysctlName", doc: "a sysctl name with dots between its parts, such as \"vm.swappiness\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 200},
		&shape{op: matches, text: "^[a-z][a-z0-9_-]*([.][A-Za-z0-9_/@:-]+)+$"},
	}}},
	{name: "#Target", doc: "One machine to build for.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "board", required: true, doc: "Module SKU, such as \"orin-nano-8gb\", or a name under boards.", value: &shape{op: named, def: "#Name"}},
			{name: "machine", required: false, doc: "bitbake MACHINE; by default the board's usual machine on the release.", value: &shape{op: named, def: "#MachineName"}},
			{name: "release", required: true, doc: "meta-tegra branch, such as \"scarthgap\". It determines the versions of bitbake, L4T, kernel and CUDA. For a board of your own without base: the series of openembedded-core.", value: &shape{op: named, def: "#ReleaseName"}},
			{name: "use", required: false, doc: "Profiles, unified in order. Conflicting values are an error; the target's own fields override profiles.", value: &shape{op: list, elem: &shape{op: named, def: "#Name"}}},
		},
		embeds: []string{"#Profile"},
	}}},
	{name: "#Text", doc: "one line of text, at most 200 characters, without control characters", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 200},
		&shape{op: matches, text: "^[^\\x00-\\x1f\\x7f]*$"},
	}}},
	{name: "#Thread", doc: "The scheduling of kernel threads of one name.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "policy", required: false, doc: "Scheduling policy.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "other", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "fifo", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "rr", True: false}},
			}}},
			{name: "priority", required: false, doc: "Real-time priority, with policy \"fifo\" or \"rr\".", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 99},
			}}},
			{name: "nice", required: false, doc: "Nice level, of threads without a real-time policy.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: -20},
				&shape{op: bound, rel: "<=", number: 19},
			}}},
			{name: "affinity", required: false, doc: "Cores that the threads may run on.", value: &shape{op: list, elem: &shape{op: named, def: "#Core"}}},
			{name: "external", required: false, doc: "A module of yours starts the threads: the kernel need not.", value: &shape{op: basic, kind: load.Bool}},
		},
	}}},
	{name: "#ThreadName", doc: "the name of kernel threads, such as \"ksoftirqd/0\"; globs are allowed", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 64},
		&shape{op: matches, text: "^[A-Za-z0-9*?_][A-Za-z0-9*?_./:@+-]*$"},
	}}},
	{name: "#Timer", doc: "A timer of systemd. One that a recipe of the release brings gets a drop-in, in which the times replace those of the timer.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "onActive", required: false, doc: "Start the service this long after the timer's own start.", value: &shape{op: named, def: "#Duration"}},
			{name: "onBoot", required: false, doc: "Start the service this long after the start of the kernel; at once if that is over.", value: &shape{op: named, def: "#Duration"}},
			{name: "onStartup", required: false, doc: "Start the service this long after the start of systemd; at once if that is over.", value: &shape{op: named, def: "#Duration"}},
			{name: "onUnitActive", required: false, doc: "Start the service again this long after its last start.", value: &shape{op: named, def: "#Duration"}},
			{name: "onUnitInactive", required: false, doc: "Start the service again this long after it last ended.", value: &shape{op: named, def: "#Duration"}},
			{name: "onCalendar", required: false, doc: "Start the service at times of the calendar.", value: &shape{op: list, elem: &shape{op: named, def: "#CalendarEvent"}}},
			{name: "onClockChange", required: false, doc: "Start the service when the system's clock is set.", value: &shape{op: basic, kind: load.Bool}},
			{name: "onTimezoneChange", required: false, doc: "Start the service when the local time zone changes.", value: &shape{op: basic, kind: load.Bool}},
			{name: "accuracy", required: false, doc: "How late the service may start, so that wake-ups of several timers coincide; 1 min by default.", value: &shape{op: named, def: "#Duration"}},
			{name: "randomizedDelay", required: false, doc: "Start the service later by a random time up to this one.", value: &shape{op: named, def: "#Duration"}},
			{name: "fixedRandomDelay", required: false, doc: "Keep the random delay the same for each start on a device.", value: &shape{op: basic, kind: load.Bool}},
			{name: "persistent", required: false, doc: "Start the service at boot if a time of onCalendar passed while the device was off.", value: &shape{op: basic, kind: load.Bool}},
			{name: "wakeSystem", required: false, doc: "Wake the device from suspend for it.", value: &shape{op: basic, kind: load.Bool}},
			{name: "remainAfterElapse", required: false, doc: "Keep a timer loaded that has no further time; true by default.", value: &shape{op: basic, kind: load.Bool}},
			{name: "external", required: false, doc: "Another layer brings the timer, and the release's recipes need not: this is a drop-in for it.", value: &shape{op: basic, kind: load.Bool}},
			{name: "unit", required: false, doc: "Directives without a field here, by section: \"Unit\", \"Timer\" or \"Install\". Install replaces WantedBy=timers.target.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#TimerSection"}, value: &shape{op: object, obj: &structure{
						patterns: []pattern{
							{key: &shape{op: named, def: "#Directive"}, value: &shape{op: either, parts: []*shape{
								&shape{op: named, def: "#DirectiveValue"},
								&shape{op: object, obj: &structure{
									fields: []*member{
										{name: "value", required: true, doc: "", value: &shape{op: named, def: "#DirectiveValue"}},
										{name: "external", required: false, doc: "A patched systemd of yours reads the directive: that of the release need not.", value: &shape{op: basic, kind: load.Bool}},
									},
								}},
							}}},
						},
					}}},
				},
			}}},
		},
	}}},
	{name: "#TimerSection", doc: "a section of a timer's unit: \"Unit\", \"Timer\" or \"Install\"", value: &shape{op: either, parts: []*shape{
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "Unit", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "Timer", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "Install", True: false}},
	}}},
	{name: "#Tmpfs", doc: "A file system in memory for data that need not survive a restart.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "size", required: true, doc: "Largest size of all files together. It counts as memory.", value: &shape{op: named, def: "#Size"}},
			{name: "mode", required: false, doc: "Permissions of the folder in octal, such as \"0755\"; by default \"1777\", as of /tmp.", value: &shape{op: matches, text: "^[0-7]{3,4}$"}},
			{name: "inodes", required: false, doc: "Largest number of files and folders.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 16},
				&shape{op: bound, rel: "<=", number: 100000000},
			}}},
		},
	}}},
	{name: "#Tools", doc: "Profiling and measurement tools.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "perf", required: false, doc: "CPU profiling: perf.", value: &shape{op: basic, kind: load.Bool}},
			{name: "memory", required: false, doc: "Memory use and leaks: valgrind with massif; heaptrack where meta-oe is present.", value: &shape{op: basic, kind: load.Bool}},
			{name: "benchmark", required: false, doc: "Latency and load: rt-tests (cyclictest, hackbench) and stress-ng; the compute core: yoctuned-bench, if the layer installs yoctuned.", value: &shape{op: basic, kind: load.Bool}},
		},
	}}},
	{name: "#TrackStage", doc: "Track boxes from frame to frame: each tracked object gets a number and keeps it.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "iou", required: false, doc: "Minimum overlap, 0 to 1, of a box with the expected position of its track; 0.3 by default.", value: &shape{op: named, def: "#Decimal"}},
			{name: "hits", required: false, doc: "Number of boxes that a track needs before it gets a number; 2 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 100},
			}}},
			{name: "maxLost", required: false, doc: "Time without a box after which a track ends; 1 s by default.", value: &shape{op: named, def: "#Duration"}},
			{name: "max", required: false, doc: "Maximum number of tracks; 256 by default.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">=", number: 1},
				&shape{op: bound, rel: "<=", number: 1024},
			}}},
		},
	}}},
	{name: "#TripLimits", doc: "Temperatures at which a thermal zone begins to cool.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "passive", required: true, doc: "The first passive trip point, in degrees Celsius.", value: &shape{op: all, parts: []*shape{
				&shape{op: basic, kind: load.Int},
				&shape{op: bound, rel: ">="},
				&shape{op: bound, rel: "<=", number: 150},
			}}},
		},
	}}},
	{name: "#URL", doc: "a URL: file, http, https, ftp or s3, without blanks, quotes, \";\" or credentials", value: &shape{op: matches, text: "^(file|https?|ftp|s3)://[A-Za-z0-9._~:/?#\\[\\]!&'()*+,=%-]*$"}},
	{name: "#USB", doc: "Power management and memory of USB.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "autosuspend", required: false, doc: "Idle time after which devices that appear from now on may sleep, in whole seconds, or \"never\".", value: &shape{op: either, parts: []*shape{
				&shape{op: named, def: "#Duration"},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "never", True: false}},
			}}},
			{name: "devices", required: false, doc: "Devices by VENDOR:PRODUCT, as lsusb shows them: \"on\" keeps a device awake, \"auto\" lets it sleep.", value: &shape{op: object, obj: &structure{
				patterns: []pattern{
					{key: &shape{op: named, def: "#USBDevice"}, value: &shape{op: either, parts: []*shape{
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "on", True: false}},
						&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "auto", True: false}},
					}}},
				},
			}}},
			{name: "memory", required: false, doc: "Memory for transfers of programs, such as drivers of cameras (usbfs_memory_mb).", value: &shape{op: named, def: "#Size"}},
		},
	}}},
	{name: "#USBDevice", doc: "a USB device as lsusb shows it, such as \"046d:0825\"", value: &shape{op: matches, text: "^[0-9a-f]{4}:[0-9a-f]{4}$"}},
	{name: "#UnitName", doc: "a systemd unit name, such as \"network-online.target\"; systemd-escape writes other characters, such as \"dev-my\\\\x2ddisk.device\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 119},
		&shape{op: matches, text: "^[A-Za-z0-9]+([A-Za-z0-9_.@:-]|\\\\x[0-9a-f]{2})*\\.(service|target|socket|device|mount|path|timer|slice)$"},
	}}},
	{name: "#UnitReference", doc: "a systemd unit name with its type at the end (.service, .target, .socket, .device, .mount, .path, .timer, .slice), such as \"docker.service\"", value: &shape{op: either, parts: []*shape{
		&shape{op: named, def: "#UnitName"},
		&shape{op: object, obj: &structure{
			fields: []*member{
				{name: "value", required: true, doc: "", value: &shape{op: named, def: "#UnitName"}},
				{name: "external", required: false, doc: "A layer of yours brings the unit: the release's recipes need not.", value: &shape{op: basic, kind: load.Bool}},
			},
		}},
	}}},
	{name: "#UnitSection", doc: "a section of a service's unit: \"Unit\", \"Service\" or \"Install\"", value: &shape{op: either, parts: []*shape{
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "Unit", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "Service", True: false}},
		&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "Install", True: false}},
	}}},
	{name: "#User", doc: "a name of a user or group: lower-case letters, digits, \"_\" and \"-\"; or its number", value: &shape{op: either, parts: []*shape{
		&shape{op: all, parts: []*shape{
			&shape{op: basic, kind: load.Int},
			&shape{op: bound, rel: ">="},
			&shape{op: bound, rel: "<=", number: 4294967294},
		}},
		&shape{op: matches, text: "^([a-z_][a-z0-9_-]{0,30}|[0-9]{1,10})$"},
	}}},
	{name: "#Variable", doc: "A setting of a bitbake variable.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "value", required: false, doc: "The whole value; it replaces what the variable has.", value: &shape{op: named, def: "#Word"}},
			{name: "append", required: false, doc: "Words to add to a list.", value: &shape{op: list, elem: &shape{op: named, def: "#Word"}}},
			{name: "remove", required: false, doc: "Words to remove from a list.", value: &shape{op: list, elem: &shape{op: named, def: "#Word"}}},
			{name: "external", required: false, doc: "A layer of yours defines the variable: the release need not have it.", value: &shape{op: basic, kind: load.Bool}},
		},
	}}},
	{name: "#VariableName", doc: "the name of a bitbake variable: capitals, digits and \"_\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 80},
		&shape{op: matches, text: "^[A-Z][A-Z0-9_]*$"},
	}}},
	{name: "#Word", doc: "one argument or value on a single line, at most 4096 characters, without control characters", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 4096},
		&shape{op: matches, text: "^[^\\x00-\\x1f\\x7f]*$"},
	}}},
	{name: "#WordChange", doc: "Words that a list gains and loses.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "append", required: false, doc: "Words to add.", value: &shape{op: list, elem: &shape{op: named, def: "#OptionName"}}},
			{name: "remove", required: false, doc: "Words to remove.", value: &shape{op: list, elem: &shape{op: named, def: "#OptionName"}}},
		},
	}}},
	{name: "#ZRAM", doc: "Compressed swap in memory.", value: &shape{op: object, obj: &structure{
		fields: []*member{
			{name: "size", required: true, doc: "Uncompressed size of the device.", value: &shape{op: named, def: "#Size"}},
			{name: "algorithm", required: false, doc: "Compression algorithm; by default the kernel's.", value: &shape{op: either, parts: []*shape{
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "lzo", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "lzo-rle", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "lz4", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "lz4hc", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "zstd", True: false}},
				&shape{op: exactly, literal: &load.Node{Kind: load.String, Text: "842", True: false}},
			}}},
		},
	}}},
	{name: "#ZoneType", doc: "the type of a thermal zone, such as \"cpu-thermal\"", value: &shape{op: all, parts: []*shape{
		&shape{op: maxRunes, number: 40},
		&shape{op: matches, text: "^[A-Za-z0-9._+-]+$"},
	}}},
}}
