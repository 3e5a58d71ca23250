// Code generated from schema/*.cue by go test ./compiler/language/conform -update. DO NOT EDIT.

package config

// Config is a struct of the language.
type Config struct {
	Place
	Layer    Layer
	Targets  Map[Target]
	Profiles Map[Profile]
	Boards   Map[Board]
	Build    Build
	Suppress Map[Suppression]
}

func (c *Config) decode(p Place) {
	c.Place = p
	c.Layer.decode(c.field("layer"))
	c.Targets.decode(c.field("targets"))
	c.Profiles.decode(c.field("profiles"))
	c.Boards.decode(c.field("boards"))
	c.Build.decode(c.field("build"))
	c.Suppress.decode(c.field("suppress"))
}

// Layer is a struct of the language.
type Layer struct {
	Place
	Name        String
	Maintainer  String
	Description String
	Priority    Int
	Version     Int
	Depends     List[String]
	Serial      Int
}

func (c *Layer) decode(p Place) {
	c.Place = p
	c.Name.decode(c.field("name"))
	c.Maintainer.decode(c.field("maintainer"))
	c.Description.decode(c.field("description"))
	c.Priority.decode(c.field("priority"))
	c.Version.decode(c.field("version"))
	c.Depends.decode(c.field("depends"))
	c.Serial.decode(c.field("serial"))
}

// Target is a struct of the language.
type Target struct {
	Profile
	Board   String
	Machine String
	Release String
	Use     List[String]
}

func (c *Target) decode(p Place) {
	c.Profile.decode(p)
	c.Board.decode(c.field("board"))
	c.Machine.decode(c.field("machine"))
	c.Release.decode(c.field("release"))
	c.Use.decode(c.field("use"))
}

// Profile is a struct of the language.
type Profile struct {
	Place
	Power     Power
	CPU       CPU
	GPU       GPU
	Devfreq   Map[Devfreq]
	Fan       Fan
	Kernel    Kernel
	Sysctl    Map[Scalar]
	Memory    Memory
	Tmpfs     Map[Tmpfs]
	Storage   Map[Storage]
	IRQ       IRQ
	Threads   Map[Thread]
	Bus       Bus
	Network   Map[Network]
	Modules   Map[NamedString]
	Services  Map[Service]
	Packages  Map[NamedString]
	Tools     Tools
	Models    Map[Model]
	Pipelines Map[Pipeline]
	Cluster   Cluster
	Monitor   Monitor
	Runtime   Runtime
}

func (c *Profile) decode(p Place) {
	c.Place = p
	c.Power.decode(c.field("power"))
	c.CPU.decode(c.field("cpu"))
	c.GPU.decode(c.field("gpu"))
	c.Devfreq.decode(c.field("devfreq"))
	c.Fan.decode(c.field("fan"))
	c.Kernel.decode(c.field("kernel"))
	c.Sysctl.decode(c.field("sysctl"))
	c.Memory.decode(c.field("memory"))
	c.Tmpfs.decode(c.field("tmpfs"))
	c.Storage.decode(c.field("storage"))
	c.IRQ.decode(c.field("irq"))
	c.Threads.decode(c.field("threads"))
	c.Bus.decode(c.field("bus"))
	c.Network.decode(c.field("network"))
	c.Modules.decode(c.field("modules"))
	c.Services.decode(c.field("services"))
	c.Packages.decode(c.field("packages"))
	c.Tools.decode(c.field("tools"))
	c.Models.decode(c.field("models"))
	c.Pipelines.decode(c.field("pipelines"))
	c.Cluster.decode(c.field("cluster"))
	c.Monitor.decode(c.field("monitor"))
	c.Runtime.decode(c.field("runtime"))
}

// Board is a struct of the language.
type Board struct {
	Place
	Base        String
	Facts       String
	Description String
	Supply      Int
	Machines    Map[List[String]]
	Observed    Observed
}

func (c *Board) decode(p Place) {
	c.Place = p
	c.Base.decode(c.field("base"))
	c.Facts.decode(c.field("facts"))
	c.Description.decode(c.field("description"))
	c.Supply.decode(c.field("supply"))
	c.Machines.decode(c.field("machines"))
	c.Observed.decode(c.field("observed"))
}

// Build is a struct of the language.
type Build struct {
	Place
	SState          BuildSState
	Downloads       BuildDownloads
	Hashserve       BuildHashserve
	Parallel        BuildParallel
	Pressure        BuildPressure
	RmWork          Bool
	RmWorkExclude   List[String]
	Format          String
	DistroFeatures  WordChange
	MachineFeatures WordChange
	PackageConfig   Map[WordChange]
	DiskMonitor     Map[DiskMonitor]
	Image           BuildImage
	Optional        Map[List[String]]
	Kas             Kas
	BitbakeSetup    Bool
	Variables       Map[Either[String, Variable]]
}

func (c *Build) decode(p Place) {
	c.Place = p
	c.SState.decode(c.field("sstate"))
	c.Downloads.decode(c.field("downloads"))
	c.Hashserve.decode(c.field("hashserve"))
	c.Parallel.decode(c.field("parallel"))
	c.Pressure.decode(c.field("pressure"))
	c.RmWork.decode(c.field("rmWork"))
	c.RmWorkExclude.decode(c.field("rmWorkExclude"))
	c.Format.decode(c.field("format"))
	c.DistroFeatures.decode(c.field("distroFeatures"))
	c.MachineFeatures.decode(c.field("machineFeatures"))
	c.PackageConfig.decode(c.field("packageConfig"))
	c.DiskMonitor.decode(c.field("diskMonitor"))
	c.Image.decode(c.field("image"))
	c.Optional.decode(c.field("optional"))
	c.Kas.decode(c.field("kas"))
	c.BitbakeSetup.decode(c.field("bitbakeSetup"))
	c.Variables.decode(c.field("variables"))
}

// Suppression is a struct of the language.
type Suppression struct {
	Place
	Reason String
}

func (c *Suppression) decode(p Place) {
	c.Place = p
	c.Reason.decode(c.field("reason"))
}

// Power is a struct of the language.
type Power struct {
	Place
	Table    String
	Default  String
	Modes    Map[PowerMode]
	Adaptive Adaptive
}

func (c *Power) decode(p Place) {
	c.Place = p
	c.Table.decode(c.field("table"))
	c.Default.decode(c.field("default"))
	c.Modes.decode(c.field("modes"))
	c.Adaptive.decode(c.field("adaptive"))
}

// CPU is a struct of the language.
type CPU struct {
	Place
	Isolate        List[Int]
	Governor       String
	Min            Frequency
	Max            Frequency
	EPP            String
	Boost          Bool
	SMT            String
	MaxIdleLatency Duration
	IdleStates     Map[Bool]
}

func (c *CPU) decode(p Place) {
	c.Place = p
	c.Isolate.decode(c.field("isolate"))
	c.Governor.decode(c.field("governor"))
	c.Min.decode(c.field("min"))
	c.Max.decode(c.field("max"))
	c.EPP.decode(c.field("epp"))
	c.Boost.decode(c.field("boost"))
	c.SMT.decode(c.field("smt"))
	c.MaxIdleLatency.decode(c.field("maxIdleLatency"))
	c.IdleStates.decode(c.field("idleStates"))
}

// GPU is a struct of the language.
type GPU struct {
	Place
	Min      Frequency
	Max      Frequency
	Governor String
}

func (c *GPU) decode(p Place) {
	c.Place = p
	c.Min.decode(c.field("min"))
	c.Max.decode(c.field("max"))
	c.Governor.decode(c.field("governor"))
}

// Devfreq is a struct of the language.
type Devfreq struct {
	ClockLimits
	Governor String
}

func (c *Devfreq) decode(p Place) {
	c.ClockLimits.decode(p)
	c.Governor.decode(c.field("governor"))
}

// Fan is a struct of the language.
type Fan struct {
	Place
	Profile  String
	Curves   Map[Map[FanPoint]]
	Governor String
	Control  String
}

func (c *Fan) decode(p Place) {
	c.Place = p
	c.Profile.decode(c.field("profile"))
	c.Curves.decode(c.field("curves"))
	c.Governor.decode(c.field("governor"))
	c.Control.decode(c.field("control"))
}

// Kernel is a struct of the language.
type Kernel struct {
	Place
	Config  Map[Scalar]
	Args    Map[NamedScalar]
	Recipe  String
	Version String
	Preempt String
}

func (c *Kernel) decode(p Place) {
	c.Place = p
	c.Config.decode(c.field("config"))
	c.Args.decode(c.field("args"))
	c.Recipe.decode(c.field("recipe"))
	c.Version.decode(c.field("version"))
	c.Preempt.decode(c.field("preempt"))
}

// Memory is a struct of the language.
type Memory struct {
	Place
	THP         String
	THPDefrag   String
	KSM         Bool
	MGLRU       Bool
	MGLRUMinTTL Duration
	ZRAM        Either[Size, ZRAM]
	EMC         Frequency
	Hugepages   Map[Int]
}

func (c *Memory) decode(p Place) {
	c.Place = p
	c.THP.decode(c.field("thp"))
	c.THPDefrag.decode(c.field("thpDefrag"))
	c.KSM.decode(c.field("ksm"))
	c.MGLRU.decode(c.field("mglru"))
	c.MGLRUMinTTL.decode(c.field("mglruMinTTL"))
	c.ZRAM.decode(c.field("zram"))
	c.EMC.decode(c.field("emc"))
	c.Hugepages.decode(c.field("hugepages"))
}

// Tmpfs is a struct of the language.
type Tmpfs struct {
	Place
	Size   Size
	Mode   String
	Inodes Int
}

func (c *Tmpfs) decode(p Place) {
	c.Place = p
	c.Size.decode(c.field("size"))
	c.Mode.decode(c.field("mode"))
	c.Inodes.decode(c.field("inodes"))
}

// Storage is a struct of the language.
type Storage struct {
	Place
	Scheduler  String
	Readahead  Size
	Requests   Int
	RqAffinity Int
}

func (c *Storage) decode(p Place) {
	c.Place = p
	c.Scheduler.decode(c.field("scheduler"))
	c.Readahead.decode(c.field("readahead"))
	c.Requests.decode(c.field("requests"))
	c.RqAffinity.decode(c.field("rqAffinity"))
}

// IRQ is a struct of the language.
type IRQ struct {
	Place
	Affinity Map[List[Int]]
}

func (c *IRQ) decode(p Place) {
	c.Place = p
	c.Affinity.decode(c.field("affinity"))
}

// Thread is a struct of the language.
type Thread struct {
	Place
	Policy   String
	Priority Int
	Nice     Int
	Affinity List[Int]
	External Bool
}

func (c *Thread) decode(p Place) {
	c.Place = p
	c.Policy.decode(c.field("policy"))
	c.Priority.decode(c.field("priority"))
	c.Nice.decode(c.field("nice"))
	c.Affinity.decode(c.field("affinity"))
	c.External.decode(c.field("external"))
}

// Bus is a struct of the language.
type Bus struct {
	Place
	PCIe PCIe
	USB  USB
}

func (c *Bus) decode(p Place) {
	c.Place = p
	c.PCIe.decode(c.field("pcie"))
	c.USB.decode(c.field("usb"))
}

// Network is a struct of the language.
type Network struct {
	Place
	MTU               Int
	TxQueueLen        Int
	GroFlushTimeout   Duration
	NapiDeferHardIRQs Int
	RPS               List[Int]
	XPS               List[Int]
	Channels          Channels
	Ring              Ring
	Coalesce          Coalesce
	Offloads          Map[Bool]
}

func (c *Network) decode(p Place) {
	c.Place = p
	c.MTU.decode(c.field("mtu"))
	c.TxQueueLen.decode(c.field("txQueueLen"))
	c.GroFlushTimeout.decode(c.field("groFlushTimeout"))
	c.NapiDeferHardIRQs.decode(c.field("napiDeferHardIRQs"))
	c.RPS.decode(c.field("rps"))
	c.XPS.decode(c.field("xps"))
	c.Channels.decode(c.field("channels"))
	c.Ring.decode(c.field("ring"))
	c.Coalesce.decode(c.field("coalesce"))
	c.Offloads.decode(c.field("offloads"))
}

// Service is a struct of the language.
type Service struct {
	Place
	Description           String
	Exec                  List[String]
	Package               String
	External              Bool
	Type                  String
	User                  NamedScalar
	Group                 NamedScalar
	SupplementaryGroups   List[NamedScalar]
	WorkingDirectory      String
	Slice                 String
	After                 List[NamedString]
	Wants                 List[NamedString]
	Requires              List[NamedString]
	Environment           Map[String]
	EnvironmentFiles      List[String]
	ExecStartPre          List[List[String]]
	ExecStartPost         List[List[String]]
	ExecStop              List[List[String]]
	ExecStopPost          List[List[String]]
	CPUs                  List[Int]
	Nice                  Int
	Scheduling            String
	Priority              Int
	MemoryMax             Size
	MemoryHigh            Size
	CPUWeight             Int
	IOWeight              Int
	CPUPartition          String
	CPUQuota              Int
	MemoryLock            Bool
	OOMScoreAdjust        Int
	AmbientCapabilities   List[String]
	CapabilityBoundingSet List[String]
	Restart               String
	RestartSec            Duration
	StartLimitIntervalSec Duration
	StartLimitBurst       Int
	WatchdogSec           Duration
	TimeoutStartSec       Scalar
	TimeoutStopSec        Scalar
	Enable                Bool
	Timer                 Timer
	Hardening             Bool
	Unit                  Map[Map[NamedScalar]]
}

func (c *Service) decode(p Place) {
	c.Place = p
	c.Description.decode(c.field("description"))
	c.Exec.decode(c.field("exec"))
	c.Package.decode(c.field("package"))
	c.External.decode(c.field("external"))
	c.Type.decode(c.field("type"))
	c.User.decode(c.field("user"))
	c.Group.decode(c.field("group"))
	c.SupplementaryGroups.decode(c.field("supplementaryGroups"))
	c.WorkingDirectory.decode(c.field("workingDirectory"))
	c.Slice.decode(c.field("slice"))
	c.After.decode(c.field("after"))
	c.Wants.decode(c.field("wants"))
	c.Requires.decode(c.field("requires"))
	c.Environment.decode(c.field("environment"))
	c.EnvironmentFiles.decode(c.field("environmentFiles"))
	c.ExecStartPre.decode(c.field("execStartPre"))
	c.ExecStartPost.decode(c.field("execStartPost"))
	c.ExecStop.decode(c.field("execStop"))
	c.ExecStopPost.decode(c.field("execStopPost"))
	c.CPUs.decode(c.field("cpus"))
	c.Nice.decode(c.field("nice"))
	c.Scheduling.decode(c.field("scheduling"))
	c.Priority.decode(c.field("priority"))
	c.MemoryMax.decode(c.field("memoryMax"))
	c.MemoryHigh.decode(c.field("memoryHigh"))
	c.CPUWeight.decode(c.field("cpuWeight"))
	c.IOWeight.decode(c.field("ioWeight"))
	c.CPUPartition.decode(c.field("cpuPartition"))
	c.CPUQuota.decode(c.field("cpuQuota"))
	c.MemoryLock.decode(c.field("memoryLock"))
	c.OOMScoreAdjust.decode(c.field("oomScoreAdjust"))
	c.AmbientCapabilities.decode(c.field("ambientCapabilities"))
	c.CapabilityBoundingSet.decode(c.field("capabilityBoundingSet"))
	c.Restart.decode(c.field("restart"))
	c.RestartSec.decode(c.field("restartSec"))
	c.StartLimitIntervalSec.decode(c.field("startLimitIntervalSec"))
	c.StartLimitBurst.decode(c.field("startLimitBurst"))
	c.WatchdogSec.decode(c.field("watchdogSec"))
	c.TimeoutStartSec.decode(c.field("timeoutStartSec"))
	c.TimeoutStopSec.decode(c.field("timeoutStopSec"))
	c.Enable.decode(c.field("enable"))
	c.Timer.decode(c.field("timer"))
	c.Hardening.decode(c.field("hardening"))
	c.Unit.decode(c.field("unit"))
}

// Tools is a struct of the language.
type Tools struct {
	Place
	Perf      Bool
	Memory    Bool
	Benchmark Bool
}

func (c *Tools) decode(p Place) {
	c.Place = p
	c.Perf.decode(c.field("perf"))
	c.Memory.decode(c.field("memory"))
	c.Benchmark.decode(c.field("benchmark"))
}

// Model is a struct of the language.
type Model struct {
	Place
	Source        String
	SHA256        String
	Member        String
	ArchiveSHA256 String
	External      Bool
	Labels        String
	LabelsURI     String
	LabelsSHA256  String
	Optimise      List[Optimisation]
	Accept        Accept
}

func (c *Model) decode(p Place) {
	c.Place = p
	c.Source.decode(c.field("source"))
	c.SHA256.decode(c.field("sha256"))
	c.Member.decode(c.field("member"))
	c.ArchiveSHA256.decode(c.field("archiveSha256"))
	c.External.decode(c.field("external"))
	c.Labels.decode(c.field("labels"))
	c.LabelsURI.decode(c.field("labelsUri"))
	c.LabelsSHA256.decode(c.field("labelsSha256"))
	c.Optimise.decode(c.field("optimise"))
	c.Accept.decode(c.field("accept"))
}

// Pipeline is a struct of the language.
type Pipeline struct {
	Place
	Source      Source
	Stages      Map[Stage]
	Sink        Sink
	Start       Bool
	Queue       Queue
	SLO         SLO
	CPUs        List[Int]
	Environment Map[String]
	Scheduling  String
	Priority    Int
	Nice        Int
	Budget      PipelineBudget
	Isolation   String
	Kernels     KernelLaunches
	Degrade     Degrade
	Memory      PipelineMemory
	Utilisation Decimal
	GPUs        List[Int]
	Counters    Bool
	Lease       Bool
}

func (c *Pipeline) decode(p Place) {
	c.Place = p
	c.Source.decode(c.field("source"))
	c.Stages.decode(c.field("stages"))
	c.Sink.decode(c.field("sink"))
	c.Start.decode(c.field("start"))
	c.Queue.decode(c.field("queue"))
	c.SLO.decode(c.field("slo"))
	c.CPUs.decode(c.field("cpus"))
	c.Environment.decode(c.field("environment"))
	c.Scheduling.decode(c.field("scheduling"))
	c.Priority.decode(c.field("priority"))
	c.Nice.decode(c.field("nice"))
	c.Budget.decode(c.field("budget"))
	c.Isolation.decode(c.field("isolation"))
	c.Kernels.decode(c.field("kernels"))
	c.Degrade.decode(c.field("degrade"))
	c.Memory.decode(c.field("memory"))
	c.Utilisation.decode(c.field("utilisation"))
	c.GPUs.decode(c.field("gpus"))
	c.Counters.decode(c.field("counters"))
	c.Lease.decode(c.field("lease"))
}

// Cluster is a struct of the language.
type Cluster struct {
	Place
	Name        String
	Embedded    EmbeddedServer
	URL         String
	TLS         ClientTLS
	Credentials String
	Domain      String
	Replicas    Int
	Store       ClusterStore
}

func (c *Cluster) decode(p Place) {
	c.Place = p
	c.Name.decode(c.field("name"))
	c.Embedded.decode(c.field("embedded"))
	c.URL.decode(c.field("url"))
	c.TLS.decode(c.field("tls"))
	c.Credentials.decode(c.field("credentials"))
	c.Domain.decode(c.field("domain"))
	c.Replicas.decode(c.field("replicas"))
	c.Store.decode(c.field("store"))
}

// Monitor is a struct of the language.
type Monitor struct {
	Place
	Interval Duration
	Metrics  Bool
}

func (c *Monitor) decode(p Place) {
	c.Place = p
	c.Interval.decode(c.field("interval"))
	c.Metrics.decode(c.field("metrics"))
}

// Runtime is a struct of the language.
type Runtime struct {
	Place
	Form     String
	Manifest String
	Keys     Map[String]
	CUDA     Bool
}

func (c *Runtime) decode(p Place) {
	c.Place = p
	c.Form.decode(c.field("form"))
	c.Manifest.decode(c.field("manifest"))
	c.Keys.decode(c.field("keys"))
	c.CUDA.decode(c.field("cuda"))
}

// Observed is a struct of the language.
type Observed struct {
	Place
	L4T          String
	Kernel       String
	Compatible   List[String]
	Cores        Int
	Policies     List[String]
	CPU          List[Frequency]
	GPU          List[Frequency]
	GPUDevfreq   String
	Memory       Size
	ThermalZones List[String]
	Modes        List[String]
}

func (c *Observed) decode(p Place) {
	c.Place = p
	c.L4T.decode(c.field("l4t"))
	c.Kernel.decode(c.field("kernel"))
	c.Compatible.decode(c.field("compatible"))
	c.Cores.decode(c.field("cores"))
	c.Policies.decode(c.field("policies"))
	c.CPU.decode(c.field("cpu"))
	c.GPU.decode(c.field("gpu"))
	c.GPUDevfreq.decode(c.field("gpuDevfreq"))
	c.Memory.decode(c.field("memory"))
	c.ThermalZones.decode(c.field("thermalZones"))
	c.Modes.decode(c.field("modes"))
}

// BuildSState is a struct of the language.
type BuildSState struct {
	Place
	Dir     String
	Mirrors Map[Mirror]
}

func (c *BuildSState) decode(p Place) {
	c.Place = p
	c.Dir.decode(c.field("dir"))
	c.Mirrors.decode(c.field("mirrors"))
}

// BuildDownloads is a struct of the language.
type BuildDownloads struct {
	Place
	Dir     String
	Mirrors Map[Mirror]
	Own     String
	Archive Bool
	Network String
	Hosts   List[String]
}

func (c *BuildDownloads) decode(p Place) {
	c.Place = p
	c.Dir.decode(c.field("dir"))
	c.Mirrors.decode(c.field("mirrors"))
	c.Own.decode(c.field("own"))
	c.Archive.decode(c.field("archive"))
	c.Network.decode(c.field("network"))
	c.Hosts.decode(c.field("hosts"))
}

// BuildHashserve is a struct of the language.
type BuildHashserve struct {
	Place
	Address  String
	Upstream String
	Off      Bool
	Database String
	Server   HashServer
}

func (c *BuildHashserve) decode(p Place) {
	c.Place = p
	c.Address.decode(c.field("address"))
	c.Upstream.decode(c.field("upstream"))
	c.Off.decode(c.field("off"))
	c.Database.decode(c.field("database"))
	c.Server.decode(c.field("server"))
}

// BuildParallel is a struct of the language.
type BuildParallel struct {
	Place
	Tasks     Int
	Make      Int
	Downloads Int
	Machine   BuildMachine
	Load      Decimal
	Recipes   Map[Int]
}

func (c *BuildParallel) decode(p Place) {
	c.Place = p
	c.Tasks.decode(c.field("tasks"))
	c.Make.decode(c.field("make"))
	c.Downloads.decode(c.field("downloads"))
	c.Machine.decode(c.field("machine"))
	c.Load.decode(c.field("load"))
	c.Recipes.decode(c.field("recipes"))
}

// BuildPressure is a struct of the language.
type BuildPressure struct {
	Place
	CPU    Int
	IO     Int
	Memory Int
}

func (c *BuildPressure) decode(p Place) {
	c.Place = p
	c.CPU.decode(c.field("cpu"))
	c.IO.decode(c.field("io"))
	c.Memory.decode(c.field("memory"))
}

// WordChange is a struct of the language.
type WordChange struct {
	Place
	Append List[String]
	Remove List[String]
}

func (c *WordChange) decode(p Place) {
	c.Place = p
	c.Append.decode(c.field("append"))
	c.Remove.decode(c.field("remove"))
}

// DiskMonitor is a struct of the language.
type DiskMonitor struct {
	Place
	Warn DiskLimit
	Stop DiskLimit
	Halt DiskLimit
}

func (c *DiskMonitor) decode(p Place) {
	c.Place = p
	c.Warn.decode(c.field("warn"))
	c.Stop.decode(c.field("stop"))
	c.Halt.decode(c.field("halt"))
}

// BuildImage is a struct of the language.
type BuildImage struct {
	Place
	Features           List[String]
	RemoveFeatures     List[String]
	BadRecommendations List[String]
	ReadOnly           Bool
}

func (c *BuildImage) decode(p Place) {
	c.Place = p
	c.Features.decode(c.field("features"))
	c.RemoveFeatures.decode(c.field("removeFeatures"))
	c.BadRecommendations.decode(c.field("badRecommendations"))
	c.ReadOnly.decode(c.field("readOnly"))
}

// Kas is a struct of the language.
type Kas struct {
	Place
	Image  String
	Distro String
	Folder String
}

func (c *Kas) decode(p Place) {
	c.Place = p
	c.Image.decode(c.field("image"))
	c.Distro.decode(c.field("distro"))
	c.Folder.decode(c.field("folder"))
}

// Variable is a struct of the language.
type Variable struct {
	Place
	Value    String
	Append   List[String]
	Remove   List[String]
	External Bool
}

func (c *Variable) decode(p Place) {
	c.Place = p
	c.Value.decode(c.field("value"))
	c.Append.decode(c.field("append"))
	c.Remove.decode(c.field("remove"))
	c.External.decode(c.field("external"))
}

// PowerMode is a struct of the language.
type PowerMode struct {
	Place
	From    String
	CPU     PowerModeCPU
	GPU     PowerModeGPU
	Devfreq Map[ClockLimits]
	Thermal Map[TripLimits]
	EMC     PowerModeEMC
}

func (c *PowerMode) decode(p Place) {
	c.Place = p
	c.From.decode(c.field("from"))
	c.CPU.decode(c.field("cpu"))
	c.GPU.decode(c.field("gpu"))
	c.Devfreq.decode(c.field("devfreq"))
	c.Thermal.decode(c.field("thermal"))
	c.EMC.decode(c.field("emc"))
}

// Adaptive is a struct of the language.
type Adaptive struct {
	Place
	Up     LoadStep
	Down   LoadStep
	Ladder List[String]
	Dwell  Duration
	Cool   Duration
	Budget Int
}

func (c *Adaptive) decode(p Place) {
	c.Place = p
	c.Up.decode(c.field("up"))
	c.Down.decode(c.field("down"))
	c.Ladder.decode(c.field("ladder"))
	c.Dwell.decode(c.field("dwell"))
	c.Cool.decode(c.field("cool"))
	c.Budget.decode(c.field("budget"))
}

// ClockLimits is a struct of the language.
type ClockLimits struct {
	Place
	Min Frequency
	Max Frequency
}

func (c *ClockLimits) decode(p Place) {
	c.Place = p
	c.Min.decode(c.field("min"))
	c.Max.decode(c.field("max"))
}

// FanPoint is a struct of the language.
type FanPoint struct {
	Place
	PWM        Int
	RPM        Int
	Hysteresis String
}

func (c *FanPoint) decode(p Place) {
	c.Place = p
	c.PWM.decode(c.field("pwm"))
	c.RPM.decode(c.field("rpm"))
	c.Hysteresis.decode(c.field("hysteresis"))
}

// ZRAM is a struct of the language.
type ZRAM struct {
	Place
	Size      Size
	Algorithm String
}

func (c *ZRAM) decode(p Place) {
	c.Place = p
	c.Size.decode(c.field("size"))
	c.Algorithm.decode(c.field("algorithm"))
}

// PCIe is a struct of the language.
type PCIe struct {
	Place
	ASPM String
}

func (c *PCIe) decode(p Place) {
	c.Place = p
	c.ASPM.decode(c.field("aspm"))
}

// USB is a struct of the language.
type USB struct {
	Place
	Autosuspend Scalar
	Devices     Map[String]
	Memory      Size
}

func (c *USB) decode(p Place) {
	c.Place = p
	c.Autosuspend.decode(c.field("autosuspend"))
	c.Devices.decode(c.field("devices"))
	c.Memory.decode(c.field("memory"))
}

// Channels is a struct of the language.
type Channels struct {
	Place
	Combined Int
	Rx       Int
	Tx       Int
}

func (c *Channels) decode(p Place) {
	c.Place = p
	c.Combined.decode(c.field("combined"))
	c.Rx.decode(c.field("rx"))
	c.Tx.decode(c.field("tx"))
}

// Ring is a struct of the language.
type Ring struct {
	Place
	Rx Int
	Tx Int
}

func (c *Ring) decode(p Place) {
	c.Place = p
	c.Rx.decode(c.field("rx"))
	c.Tx.decode(c.field("tx"))
}

// Coalesce is a struct of the language.
type Coalesce struct {
	Place
	RxUsecs    Int
	RxFrames   Int
	TxUsecs    Int
	TxFrames   Int
	AdaptiveRx Bool
	AdaptiveTx Bool
}

func (c *Coalesce) decode(p Place) {
	c.Place = p
	c.RxUsecs.decode(c.field("rxUsecs"))
	c.RxFrames.decode(c.field("rxFrames"))
	c.TxUsecs.decode(c.field("txUsecs"))
	c.TxFrames.decode(c.field("txFrames"))
	c.AdaptiveRx.decode(c.field("adaptiveRx"))
	c.AdaptiveTx.decode(c.field("adaptiveTx"))
}

// Timer is a struct of the language.
type Timer struct {
	Place
	OnActive          Duration
	OnBoot            Duration
	OnStartup         Duration
	OnUnitActive      Duration
	OnUnitInactive    Duration
	OnCalendar        List[String]
	OnClockChange     Bool
	OnTimezoneChange  Bool
	Accuracy          Duration
	RandomizedDelay   Duration
	FixedRandomDelay  Bool
	Persistent        Bool
	WakeSystem        Bool
	RemainAfterElapse Bool
	External          Bool
	Unit              Map[Map[NamedScalar]]
}

func (c *Timer) decode(p Place) {
	c.Place = p
	c.OnActive.decode(c.field("onActive"))
	c.OnBoot.decode(c.field("onBoot"))
	c.OnStartup.decode(c.field("onStartup"))
	c.OnUnitActive.decode(c.field("onUnitActive"))
	c.OnUnitInactive.decode(c.field("onUnitInactive"))
	c.OnCalendar.decode(c.field("onCalendar"))
	c.OnClockChange.decode(c.field("onClockChange"))
	c.OnTimezoneChange.decode(c.field("onTimezoneChange"))
	c.Accuracy.decode(c.field("accuracy"))
	c.RandomizedDelay.decode(c.field("randomizedDelay"))
	c.FixedRandomDelay.decode(c.field("fixedRandomDelay"))
	c.Persistent.decode(c.field("persistent"))
	c.WakeSystem.decode(c.field("wakeSystem"))
	c.RemainAfterElapse.decode(c.field("remainAfterElapse"))
	c.External.decode(c.field("external"))
	c.Unit.decode(c.field("unit"))
}

// Optimisation is a struct of the language.
type Optimisation struct {
	Place
	Kind        String
	Level       String
	Keep        List[String]
	Calibration String
	Method      String
	PerChannel  Bool
	Exclude     List[String]
	Pattern     String
	Amount      Decimal
}

func (c *Optimisation) decode(p Place) {
	c.Place = p
	c.Kind.decode(c.field("kind"))
	c.Level.decode(c.field("level"))
	c.Keep.decode(c.field("keep"))
	c.Calibration.decode(c.field("calibration"))
	c.Method.decode(c.field("method"))
	c.PerChannel.decode(c.field("perChannel"))
	c.Exclude.decode(c.field("exclude"))
	c.Pattern.decode(c.field("pattern"))
	c.Amount.decode(c.field("amount"))
}

// Accept is a struct of the language.
type Accept struct {
	Place
	Examples   String
	Metric     String
	Head       String
	MaxLoss    Decimal
	MinSpeedup Decimal
	MaxMemory  Size
}

func (c *Accept) decode(p Place) {
	c.Place = p
	c.Examples.decode(c.field("examples"))
	c.Metric.decode(c.field("metric"))
	c.Head.decode(c.field("head"))
	c.MaxLoss.decode(c.field("maxLoss"))
	c.MinSpeedup.decode(c.field("minSpeedup"))
	c.MaxMemory.decode(c.field("maxMemory"))
}

// Source is a struct of the language.
type Source struct {
	Place
	Kind         String
	Format       String
	DType        String
	Shape        List[Int]
	Width        Int
	Height       Int
	FPS          Scalar
	Live         Bool
	Timeout      Duration
	Restart      String
	Decoders     Int
	Time         Duration
	Path         String
	URL          String
	Via          String
	Latency      Duration
	Exec         List[String]
	Model        String
	Inputs       Map[RequestInput]
	Socket       String
	Everyone     Bool
	Address      String
	Plain        Bool
	TLS          ServerTLS
	Tokens       String
	SharedMemory Bool
	MaxRequests  Int
	MaxRows      Int
}

func (c *Source) decode(p Place) {
	c.Place = p
	c.Kind.decode(c.field("kind"))
	c.Format.decode(c.field("format"))
	c.DType.decode(c.field("dtype"))
	c.Shape.decode(c.field("shape"))
	c.Width.decode(c.field("width"))
	c.Height.decode(c.field("height"))
	c.FPS.decode(c.field("fps"))
	c.Live.decode(c.field("live"))
	c.Timeout.decode(c.field("timeout"))
	c.Restart.decode(c.field("restart"))
	c.Decoders.decode(c.field("decoders"))
	c.Time.decode(c.field("time"))
	c.Path.decode(c.field("path"))
	c.URL.decode(c.field("url"))
	c.Via.decode(c.field("via"))
	c.Latency.decode(c.field("latency"))
	c.Exec.decode(c.field("exec"))
	c.Model.decode(c.field("model"))
	c.Inputs.decode(c.field("inputs"))
	c.Socket.decode(c.field("socket"))
	c.Everyone.decode(c.field("everyone"))
	c.Address.decode(c.field("address"))
	c.Plain.decode(c.field("plain"))
	c.TLS.decode(c.field("tls"))
	c.Tokens.decode(c.field("tokens"))
	c.SharedMemory.decode(c.field("sharedMemory"))
	c.MaxRequests.decode(c.field("maxRequests"))
	c.MaxRows.decode(c.field("maxRows"))
}

// Stage is a struct of the language.
type Stage struct {
	Place
	Kind          String
	Input         String
	Instances     Int
	Deadline      Duration
	Time          Duration
	Device        String
	Fallback      String
	Threshold     Decimal
	Area          Decimal
	Grid          Int
	MaxAge        Duration
	Repeat        Bool
	Low           Decimal
	High          Decimal
	Width         Int
	Height        Int
	Fit           String
	Layout        String
	Color         String
	DType         String
	Scale         Decimal
	Zero          Int
	Pad           Int
	Mean          List[Decimal]
	Std           List[Decimal]
	Crop          Crop
	Model         String
	Path          String
	SHA256        String
	URI           String
	Member        String
	ArchiveSHA256 String
	InputTensor   String
	OutputTensor  String
	Inputs        Map[ModelInput]
	OutputTensors List[String]
	Threads       Int
	Batch         Batch
	Providers     List[String]
	Precision     String
	Workspace     Size
	Spinning      Bool
	Arena         Bool
	Ensemble      Ensemble
	Expressions   List[String]
	P             List[Decimal]
	Q             List[Decimal]
	Decode        String
	Labels        String
	LabelsURI     String
	LabelsSHA256  String
	Top           Int
	Head          String
	Outputs       DetectorOutputs
	IoU           Decimal
	Agnostic      Bool
	Classes       Int
	Prototypes    String
	Gallery       String
	GalleryURI    String
	GallerySHA256 String
	Metric        String
	Hits          Int
	MaxLost       Duration
	Max           Int
	Count         Int
	Margin        Decimal
	Only          List[Int]
	Plugin        String
	Exec          List[String]
	Shape         List[Int]
	Options       String
	Inside        Bool
}

func (c *Stage) decode(p Place) {
	c.Place = p
	c.Kind.decode(c.field("kind"))
	c.Input.decode(c.field("input"))
	c.Instances.decode(c.field("instances"))
	c.Deadline.decode(c.field("deadline"))
	c.Time.decode(c.field("time"))
	c.Device.decode(c.field("device"))
	c.Fallback.decode(c.field("fallback"))
	c.Threshold.decode(c.field("threshold"))
	c.Area.decode(c.field("area"))
	c.Grid.decode(c.field("grid"))
	c.MaxAge.decode(c.field("maxAge"))
	c.Repeat.decode(c.field("repeat"))
	c.Low.decode(c.field("low"))
	c.High.decode(c.field("high"))
	c.Width.decode(c.field("width"))
	c.Height.decode(c.field("height"))
	c.Fit.decode(c.field("fit"))
	c.Layout.decode(c.field("layout"))
	c.Color.decode(c.field("color"))
	c.DType.decode(c.field("dtype"))
	c.Scale.decode(c.field("scale"))
	c.Zero.decode(c.field("zero"))
	c.Pad.decode(c.field("pad"))
	c.Mean.decode(c.field("mean"))
	c.Std.decode(c.field("std"))
	c.Crop.decode(c.field("crop"))
	c.Model.decode(c.field("model"))
	c.Path.decode(c.field("path"))
	c.SHA256.decode(c.field("sha256"))
	c.URI.decode(c.field("uri"))
	c.Member.decode(c.field("member"))
	c.ArchiveSHA256.decode(c.field("archiveSha256"))
	c.InputTensor.decode(c.field("inputTensor"))
	c.OutputTensor.decode(c.field("outputTensor"))
	c.Inputs.decode(c.field("inputs"))
	c.OutputTensors.decode(c.field("outputTensors"))
	c.Threads.decode(c.field("threads"))
	c.Batch.decode(c.field("batch"))
	c.Providers.decode(c.field("providers"))
	c.Precision.decode(c.field("precision"))
	c.Workspace.decode(c.field("workspace"))
	c.Spinning.decode(c.field("spinning"))
	c.Arena.decode(c.field("arena"))
	c.Ensemble.decode(c.field("ensemble"))
	c.Expressions.decode(c.field("expressions"))
	c.P.decode(c.field("p"))
	c.Q.decode(c.field("q"))
	c.Decode.decode(c.field("decode"))
	c.Labels.decode(c.field("labels"))
	c.LabelsURI.decode(c.field("labelsUri"))
	c.LabelsSHA256.decode(c.field("labelsSha256"))
	c.Top.decode(c.field("top"))
	c.Head.decode(c.field("head"))
	c.Outputs.decode(c.field("outputs"))
	c.IoU.decode(c.field("iou"))
	c.Agnostic.decode(c.field("agnostic"))
	c.Classes.decode(c.field("classes"))
	c.Prototypes.decode(c.field("prototypes"))
	c.Gallery.decode(c.field("gallery"))
	c.GalleryURI.decode(c.field("galleryUri"))
	c.GallerySHA256.decode(c.field("gallerySha256"))
	c.Metric.decode(c.field("metric"))
	c.Hits.decode(c.field("hits"))
	c.MaxLost.decode(c.field("maxLost"))
	c.Max.decode(c.field("max"))
	c.Count.decode(c.field("count"))
	c.Margin.decode(c.field("margin"))
	c.Only.decode(c.field("only"))
	c.Plugin.decode(c.field("plugin"))
	c.Exec.decode(c.field("exec"))
	c.Shape.decode(c.field("shape"))
	c.Options.decode(c.field("options"))
	c.Inside.decode(c.field("inside"))
}

// Sink is a struct of the language.
type Sink struct {
	Place
	Kind        String
	Capacity    Int
	Policy      String
	Time        Duration
	Path        String
	Rotate      Rotate
	URL         String
	TLS         ClientTLS
	Timeout     Duration
	Exec        List[String]
	Slots       Int
	SlotSize    Size
	Stream      String
	Subject     String
	Batch       Deliveries
	Compression Compression
	Retain      Retention
	Outbox      Outbox
	Full        String
}

func (c *Sink) decode(p Place) {
	c.Place = p
	c.Kind.decode(c.field("kind"))
	c.Capacity.decode(c.field("capacity"))
	c.Policy.decode(c.field("policy"))
	c.Time.decode(c.field("time"))
	c.Path.decode(c.field("path"))
	c.Rotate.decode(c.field("rotate"))
	c.URL.decode(c.field("url"))
	c.TLS.decode(c.field("tls"))
	c.Timeout.decode(c.field("timeout"))
	c.Exec.decode(c.field("exec"))
	c.Slots.decode(c.field("slots"))
	c.SlotSize.decode(c.field("slotSize"))
	c.Stream.decode(c.field("stream"))
	c.Subject.decode(c.field("subject"))
	c.Batch.decode(c.field("batch"))
	c.Compression.decode(c.field("compression"))
	c.Retain.decode(c.field("retain"))
	c.Outbox.decode(c.field("outbox"))
	c.Full.decode(c.field("full"))
}

// Queue is a struct of the language.
type Queue struct {
	Place
	Capacity Int
	Policy   String
	MaxAge   Duration
	InFlight Int
}

func (c *Queue) decode(p Place) {
	c.Place = p
	c.Capacity.decode(c.field("capacity"))
	c.Policy.decode(c.field("policy"))
	c.MaxAge.decode(c.field("maxAge"))
	c.InFlight.decode(c.field("inFlight"))
}

// SLO is a struct of the language.
type SLO struct {
	Place
	LatencyP50 Duration
	LatencyP95 Duration
	LatencyP99 Duration
	MinFPS     Int
	Memory     Size
	Energy     Int
}

func (c *SLO) decode(p Place) {
	c.Place = p
	c.LatencyP50.decode(c.field("latencyP50"))
	c.LatencyP95.decode(c.field("latencyP95"))
	c.LatencyP99.decode(c.field("latencyP99"))
	c.MinFPS.decode(c.field("minFps"))
	c.Memory.decode(c.field("memory"))
	c.Energy.decode(c.field("energy"))
}

// PipelineBudget is a struct of the language.
type PipelineBudget struct {
	Place
	Memory    Size
	GPUMemory Size
	DiskRead  Rate
	DiskWrite Rate
	NetIn     Rate
	NetOut    Rate
	KeepFree  KeepFree
}

func (c *PipelineBudget) decode(p Place) {
	c.Place = p
	c.Memory.decode(c.field("memory"))
	c.GPUMemory.decode(c.field("gpuMemory"))
	c.DiskRead.decode(c.field("diskRead"))
	c.DiskWrite.decode(c.field("diskWrite"))
	c.NetIn.decode(c.field("netIn"))
	c.NetOut.decode(c.field("netOut"))
	c.KeepFree.decode(c.field("keepFree"))
}

// KernelLaunches is a struct of the language.
type KernelLaunches struct {
	Place
	Preprocess KernelLaunch
	ROI        KernelLaunch
}

func (c *KernelLaunches) decode(p Place) {
	c.Place = p
	c.Preprocess.decode(c.field("preprocess"))
	c.ROI.decode(c.field("roi"))
}

// Degrade is a struct of the language.
type Degrade struct {
	Place
	Ladder   List[DegradeStep]
	UpDwell  Duration
	MaxDwell Duration
	Headroom Int
	Power    Int
}

func (c *Degrade) decode(p Place) {
	c.Place = p
	c.Ladder.decode(c.field("ladder"))
	c.UpDwell.decode(c.field("upDwell"))
	c.MaxDwell.decode(c.field("maxDwell"))
	c.Headroom.decode(c.field("headroom"))
	c.Power.decode(c.field("power"))
}

// PipelineMemory is a struct of the language.
type PipelineMemory struct {
	Place
	Lock      Bool
	Hugepages Bool
}

func (c *PipelineMemory) decode(p Place) {
	c.Place = p
	c.Lock.decode(c.field("lock"))
	c.Hugepages.decode(c.field("hugepages"))
}

// EmbeddedServer is a struct of the language.
type EmbeddedServer struct {
	Place
	Listen String
	Plain  Bool
}

func (c *EmbeddedServer) decode(p Place) {
	c.Place = p
	c.Listen.decode(c.field("listen"))
	c.Plain.decode(c.field("plain"))
}

// ClientTLS is a struct of the language.
type ClientTLS struct {
	Place
	CA          String
	Certificate String
	Key         String
}

func (c *ClientTLS) decode(p Place) {
	c.Place = p
	c.CA.decode(c.field("ca"))
	c.Certificate.decode(c.field("certificate"))
	c.Key.decode(c.field("key"))
}

// ClusterStore is a struct of the language.
type ClusterStore struct {
	Place
	Size Size
	Sync Duration
}

func (c *ClusterStore) decode(p Place) {
	c.Place = p
	c.Size.decode(c.field("size"))
	c.Sync.decode(c.field("sync"))
}

// Mirror is a struct of the language.
type Mirror struct {
	Place
	URL     String
	Pattern String
	Order   Int
}

func (c *Mirror) decode(p Place) {
	c.Place = p
	c.URL.decode(c.field("url"))
	c.Pattern.decode(c.field("pattern"))
	c.Order.decode(c.field("order"))
}

// HashServer is a struct of the language.
type HashServer struct {
	Place
	Bitbake  String
	Listen   String
	Upstream String
	ReadOnly Bool
}

func (c *HashServer) decode(p Place) {
	c.Place = p
	c.Bitbake.decode(c.field("bitbake"))
	c.Listen.decode(c.field("listen"))
	c.Upstream.decode(c.field("upstream"))
	c.ReadOnly.decode(c.field("readOnly"))
}

// BuildMachine is a struct of the language.
type BuildMachine struct {
	Place
	Cores  Int
	Memory Size
}

func (c *BuildMachine) decode(p Place) {
	c.Place = p
	c.Cores.decode(c.field("cores"))
	c.Memory.decode(c.field("memory"))
}

// DiskLimit is a struct of the language.
type DiskLimit struct {
	Place
	Space  Size
	Inodes Int
}

func (c *DiskLimit) decode(p Place) {
	c.Place = p
	c.Space.decode(c.field("space"))
	c.Inodes.decode(c.field("inodes"))
}

// PowerModeCPU is a struct of the language.
type PowerModeCPU struct {
	Place
	Online List[Int]
	Min    Frequency
	Max    Frequency
}

func (c *PowerModeCPU) decode(p Place) {
	c.Place = p
	c.Online.decode(c.field("online"))
	c.Min.decode(c.field("min"))
	c.Max.decode(c.field("max"))
}

// PowerModeGPU is a struct of the language.
type PowerModeGPU struct {
	Place
	Min  Frequency
	Max  Frequency
	Mask Int
}

func (c *PowerModeGPU) decode(p Place) {
	c.Place = p
	c.Min.decode(c.field("min"))
	c.Max.decode(c.field("max"))
	c.Mask.decode(c.field("mask"))
}

// TripLimits is a struct of the language.
type TripLimits struct {
	Place
	Passive Int
}

func (c *TripLimits) decode(p Place) {
	c.Place = p
	c.Passive.decode(c.field("passive"))
}

// PowerModeEMC is a struct of the language.
type PowerModeEMC struct {
	Place
	Max Frequency
}

func (c *PowerModeEMC) decode(p Place) {
	c.Place = p
	c.Max.decode(c.field("max"))
}

// LoadStep is a struct of the language.
type LoadStep struct {
	Place
	Load Int
	For  Duration
}

func (c *LoadStep) decode(p Place) {
	c.Place = p
	c.Load.decode(c.field("load"))
	c.For.decode(c.field("for"))
}

// RequestInput is a struct of the language.
type RequestInput struct {
	Place
	DType String
	Shape List[Int]
}

func (c *RequestInput) decode(p Place) {
	c.Place = p
	c.DType.decode(c.field("dtype"))
	c.Shape.decode(c.field("shape"))
}

// ServerTLS is a struct of the language.
type ServerTLS struct {
	Place
	Certificate String
	Key         String
	ClientCA    String
}

func (c *ServerTLS) decode(p Place) {
	c.Place = p
	c.Certificate.decode(c.field("certificate"))
	c.Key.decode(c.field("key"))
	c.ClientCA.decode(c.field("clientCA"))
}

// Crop is a struct of the language.
type Crop struct {
	Place
	X      Int
	Y      Int
	Width  Int
	Height Int
}

func (c *Crop) decode(p Place) {
	c.Place = p
	c.X.decode(c.field("x"))
	c.Y.decode(c.field("y"))
	c.Width.decode(c.field("width"))
	c.Height.decode(c.field("height"))
}

// ModelInput is a struct of the language.
type ModelInput struct {
	Place
	From     String
	Tensor   String
	Part     Int
	Previous Bool
	Values   List[Decimal]
	DType    String
	Shape    List[Int]
}

func (c *ModelInput) decode(p Place) {
	c.Place = p
	c.From.decode(c.field("from"))
	c.Tensor.decode(c.field("tensor"))
	c.Part.decode(c.field("part"))
	c.Previous.decode(c.field("previous"))
	c.Values.decode(c.field("values"))
	c.DType.decode(c.field("dtype"))
	c.Shape.decode(c.field("shape"))
}

// Batch is a struct of the language.
type Batch struct {
	Place
	Buckets List[Int]
	Pad     Bool
	Delay   Duration
}

func (c *Batch) decode(p Place) {
	c.Place = p
	c.Buckets.decode(c.field("buckets"))
	c.Pad.decode(c.field("pad"))
	c.Delay.decode(c.field("delay"))
}

// Ensemble is a struct of the language.
type Ensemble struct {
	Place
	Models Map[EnsembleModel]
	Vote   String
}

func (c *Ensemble) decode(p Place) {
	c.Place = p
	c.Models.decode(c.field("models"))
	c.Vote.decode(c.field("vote"))
}

// DetectorOutputs is a struct of the language.
type DetectorOutputs struct {
	Place
	Boxes   String
	Scores  String
	Classes String
	Count   String
}

func (c *DetectorOutputs) decode(p Place) {
	c.Place = p
	c.Boxes.decode(c.field("boxes"))
	c.Scores.decode(c.field("scores"))
	c.Classes.decode(c.field("classes"))
	c.Count.decode(c.field("count"))
}

// Rotate is a struct of the language.
type Rotate struct {
	Place
	Size Size
	Keep Int
}

func (c *Rotate) decode(p Place) {
	c.Place = p
	c.Size.decode(c.field("size"))
	c.Keep.decode(c.field("keep"))
}

// Deliveries is a struct of the language.
type Deliveries struct {
	Place
	Records Int
	Delay   Duration
}

func (c *Deliveries) decode(p Place) {
	c.Place = p
	c.Records.decode(c.field("records"))
	c.Delay.decode(c.field("delay"))
}

// Compression is a struct of the language.
type Compression struct {
	Place
	Codec String
	Level Int
}

func (c *Compression) decode(p Place) {
	c.Place = p
	c.Codec.decode(c.field("codec"))
	c.Level.decode(c.field("level"))
}

// Retention is a struct of the language.
type Retention struct {
	Place
	Size Size
	Age  Duration
}

func (c *Retention) decode(p Place) {
	c.Place = p
	c.Size.decode(c.field("size"))
	c.Age.decode(c.field("age"))
}

// Outbox is a struct of the language.
type Outbox struct {
	Place
	Size Size
	Rate Rate
}

func (c *Outbox) decode(p Place) {
	c.Place = p
	c.Size.decode(c.field("size"))
	c.Rate.decode(c.field("rate"))
}

// KeepFree is a struct of the language.
type KeepFree struct {
	Place
	Memory Size
	Disk   Size
}

func (c *KeepFree) decode(p Place) {
	c.Place = p
	c.Memory.decode(c.field("memory"))
	c.Disk.decode(c.field("disk"))
}

// KernelLaunch is a struct of the language.
type KernelLaunch struct {
	Place
	Block Int
}

func (c *KernelLaunch) decode(p Place) {
	c.Place = p
	c.Block.decode(c.field("block"))
}

// DegradeStep is a struct of the language.
type DegradeStep struct {
	Place
	FPS    Int
	Models Map[DegradeModel]
	Sizes  Map[DegradeSize]
}

func (c *DegradeStep) decode(p Place) {
	c.Place = p
	c.FPS.decode(c.field("fps"))
	c.Models.decode(c.field("models"))
	c.Sizes.decode(c.field("sizes"))
}

// EnsembleModel is a struct of the language.
type EnsembleModel struct {
	Place
	Model         String
	Path          String
	SHA256        String
	URI           String
	Member        String
	ArchiveSHA256 String
}

func (c *EnsembleModel) decode(p Place) {
	c.Place = p
	c.Model.decode(c.field("model"))
	c.Path.decode(c.field("path"))
	c.SHA256.decode(c.field("sha256"))
	c.URI.decode(c.field("uri"))
	c.Member.decode(c.field("member"))
	c.ArchiveSHA256.decode(c.field("archiveSha256"))
}

// DegradeModel is a struct of the language.
type DegradeModel struct {
	Place
	Model         String
	Path          String
	SHA256        String
	URI           String
	Member        String
	ArchiveSHA256 String
}

func (c *DegradeModel) decode(p Place) {
	c.Place = p
	c.Model.decode(c.field("model"))
	c.Path.decode(c.field("path"))
	c.SHA256.decode(c.field("sha256"))
	c.URI.decode(c.field("uri"))
	c.Member.decode(c.field("member"))
	c.ArchiveSHA256.decode(c.field("archiveSha256"))
}

// DegradeSize is a struct of the language.
type DegradeSize struct {
	Place
	Width  Int
	Height Int
}

func (c *DegradeSize) decode(p Place) {
	c.Place = p
	c.Width.decode(c.field("width"))
	c.Height.decode(c.field("height"))
}
