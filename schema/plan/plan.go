// Package plan defines the contract between yoctune, which compiles a
// configuration, and yoctuned, which enforces it on the device.
//
// [Plan] is the device document, plan.json: only what the device needs, in base
// units. [Layer] is the input of the emitters: the layer's identity, its build-side
// settings, and one [Target] per machine with its Plan.
//
// Base units throughout: frequencies in Hz (CPU clocks of nvpmodel in kHz where
// stated at the field), sizes in bytes, durations in nanoseconds, temperatures in
// milli-degrees Celsius, power in milliwatts.
package plan

import (
	"maps"
	"slices"
	"strings"
)

// Schema identifies the format of plan.json. A reader refuses a newer major.
const Schema = "yoctune.plan/2"

// schema1 is the format that yoctuned 0.1 reads. It lacks the fields with the tag since:"2", and
// of those with the tag format1 all other values.
const schema1 = "yoctune.plan/1"

// Plan is the device document.
type Plan struct {
	Schema  string `json:"$schema"`
	Layer   string `json:"layer"`             // layer.name of the configuration
	Target  string `json:"target"`            // name under targets:
	Board   string `json:"board"`             // module SKU, an id of schema/facts/board
	Machine string `json:"machine,omitempty"` // bitbake MACHINE
	// Identities recognise a device of a board that the facts do not have: an entry of the device
	// tree's "compatible", or "dmi:VENDOR/PRODUCT", or "any" for a device that nothing identifies. A device that has one
	// of them is of that board.
	Identities []string            `json:"identities,omitempty" since:"2"`
	Release    string              `json:"release"`  // meta-tegra branch, or series of openembedded-core
	L4T        string              `json:"l4t"`      // e.g. "36.5.0"; "" on a board that is no Jetson
	Serial     int64               `json:"serial"`   // monotonic: an older plan is refused on the device
	Rollback   string              `json:"rollback"` // "keep" or "on-stop"
	Settings   []Setting           `json:"settings"`
	Power      *Power              `json:"power,omitempty"`
	Fan        *Fan                `json:"fan,omitempty"`
	Units      []Unit              `json:"units"`
	Pipelines  map[string]Pipeline `json:"pipelines"`
	Cluster    *Cluster            `json:"cluster,omitempty" since:"2"`
	Monitor    *Monitor            `json:"monitor,omitempty"`
	Digest     string              `json:"digest"` // "sha256:<hex>" over the canonical form without this field
}

// Domains of settings.
const (
	DomainSysctl  = "sysctl"
	DomainCPU     = "cpu"
	DomainGPU     = "gpu"
	DomainDevfreq = "devfreq"
	DomainMemory  = "memory"
	DomainStorage = "storage"
	DomainIRQ     = "irq"
	DomainNetwork = "network"
	DomainKernel  = "kernel" // kernel arguments and options, read back from /proc/cmdline and the kernel's configuration
	DomainModule  = "module"
	DomainPower   = "power"  // a line of a power mode; made on the device
	DomainKnob    = "knob"   // a bare path from `plan --knobs`
	DomainThread  = "thread" // scheduling of kernel threads
	DomainBus     = "bus"    // PCIe and USB
	DomainUnit    = "unit"   // of plan.Units, made by the runtime
)

// How found is compared with wanted.
const (
	Exact          = "exact"
	AtLeast        = "at_least"
	AtMost         = "at_most"
	FirstAvailable = "first_available" // Want holds alternatives separated by "|"
)

// What yoctuned does when a value differs.
const (
	Enforce = "enforce" // repair drift
	Report  = "report"  // report only; never written
	Once    = "once"    // written by apply, drift is only reported
)

// What a change of the setting needs before it is in force.
const (
	NeedsNothing = "nothing"
	NeedsReboot  = "reboot"
	NeedsReflash = "reflash"
)

// Value types: they decide how wanted and found are normalised before they are
// compared.
const (
	TypeInt     = "int"     // decimal, or 0x… as the kernel may print it
	TypeString  = "string"  // trimmed text
	TypeVector  = "vector"  // integers separated by blanks (tcp_rmem)
	TypeChoice  = "choice"  // kernel prints all choices, the chosen one in [brackets]
	TypeCPUList = "cpulist" // 0-3,5
	TypeCPUMask = "cpumask" // hexadecimal words, as in smp_affinity
	TypeBool    = "bool"    // 0/1, Y/N
	TypePresent = "present" // Want "1": the node or argument exists
)

// Setting is one wanted value of one kind of kernel knob.
type Setting struct {
	ID       string `json:"id"`     // stable, e.g. "sysctl.vm.swappiness"
	Domain   string `json:"domain"` // one of the Domain constants
	Select   Select `json:"select"`
	Type     string `json:"type"` // one of the Type constants
	Want     string `json:"want"` // as written to the kernel
	Compare  string `json:"compare"`
	Policy   string `json:"policy"`
	Needs    string `json:"needs"`
	Optional bool   `json:"optional,omitempty"` // absent node is not a failure
	Group    string `json:"group,omitempty"`    // settings that rewrite each other (dirty_ratio, dirty_bytes)
}

// Select chooses the kernel nodes of a setting. Either Path names one
// node, or Class, with the matchers below it, selects devices and Attr is the
// file below each of them. Matchers that are empty match everything; there is
// no selection by index.
type Select struct {
	Path   string `json:"path,omitempty"`    // absolute, below /proc/sys, /sys or /proc
	Class  string `json:"class,omitempty"`   // block, cpu, cpufreq, devfreq, thermal, net, irq, kthread, usb, mount, cmdline, config
	Name   string `json:"name,omitempty"`    // glob over the kernel's device name, or the IRQ's action name
	OFNode string `json:"of_node,omitempty"` // device tree node name (of_node/name)
	Driver string `json:"driver,omitempty"`  // bound driver
	Attr   string `json:"attr,omitempty"`    // relative path, e.g. "queue/scheduler"; globs are allowed. On net, "ethtool/..." is a setting of ethtool(8), not a file
}

// PowerHeld is the table of a board without nvpmodel: yoctuned itself holds the settings of
// the mode in force.
const PowerHeld = "held"

// Power is the power mode part of the plan.
type Power struct {
	Table    string      `json:"table"`             // "stock": the BSP's own modes only; "extend"; "complete"; "held"
	Default  string      `json:"default,omitempty"` // mode name
	Modes    []PowerMode `json:"modes"`             // authored by the configuration, in id order
	Adaptive *Adaptive   `json:"adaptive,omitempty"`
}

// PowerMode is one POWER_MODEL block of nvpmodel.conf.
type PowerMode struct {
	ID     int          `json:"id"`
	Name   string       `json:"name"`             // \w{1,32}
	From   string       `json:"from,omitempty"`   // stock mode it was derived from
	Params []PowerParam `json:"params"`           // in the order nvpmodel must write them
	Reboot []string     `json:"reboot,omitempty"` // modes between which and this one a reboot is needed
	// Settings are the mode, where the table is held; Params and From are empty then.
	Settings []Setting `json:"settings,omitempty" since:"2"`
}

// PowerParam is one "PARAM ARG value" line. CPU clocks are kHz, others Hz; -1 is
// nvpmodel's "no cap" on a CLOCK.
type PowerParam struct {
	Param string `json:"param"`
	Arg   string `json:"arg"`
	Value string `json:"value"`
}

// Adaptive moves along Ladder by load (percent), with hysteresis.
type Adaptive struct {
	UpLoad   int      `json:"up_load"`
	UpFor    int64    `json:"up_for"` // ns
	DownLoad int      `json:"down_load"`
	DownFor  int64    `json:"down_for"` // ns
	Ladder   []string `json:"ladder"`

	Dwell  int64 `json:"dwell,omitempty"`  // ns in a mode before load moves it, 0: 5 s
	Cool   int64 `json:"cool,omitempty"`   // ns without heat before it climbs again, 0: 30 s
	Budget int   `json:"budget,omitempty"` // switches by load within an hour, 0: 30
}

// Fan is the wanted state of nvfancontrol, set in the daemon's own file; nothing else
// writes the fan's speed.
type Fan struct {
	Profile  string     `json:"profile,omitempty"`  // FAN_DEFAULT_PROFILE; "" leaves the BSP's
	Governor string     `json:"governor,omitempty"` // cont, pid; "" leaves the BSP's
	Control  string     `json:"control,omitempty"`  // open_loop, close_loop; "" leaves the BSP's
	Curve    []FanPoint `json:"curve,omitempty"`    // of a profile of the configuration's own, rising temperature
}

// FanPoint is a point of a fan curve: from Temp upwards.
type FanPoint struct {
	Temp       int64 `json:"temp"`                 // milli-degrees Celsius of the chip, never a margin
	Hysteresis int64 `json:"hysteresis,omitempty"` // milli-degrees
	PWM        int   `json:"pwm"`                  // 0 to 255
	RPM        int   `json:"rpm,omitempty"`        // turns a minute, 0: in proportion to the BSP's full speed
}

// Unit describes a systemd unit of the layer for the device.
type Unit struct {
	Name         string `json:"name"`           // vision.service, inference.slice
	CPUs         string `json:"cpus,omitempty"` // cpu list
	Slice        string `json:"slice,omitempty"`
	IOWeight     int    `json:"io_weight,omitempty"`     // 1 to 10000, 0: unset
	CPUWeight    int    `json:"cpu_weight,omitempty"`    // 1 to 10000, 0: unset
	CPUQuota     int    `json:"cpu_quota,omitempty"`     // percent of one core, 0: none
	MemoryMax    int64  `json:"memory_max,omitempty"`    // bytes, 0: none
	MemoryHigh   int64  `json:"memory_high,omitempty"`   // bytes, 0: none
	CPUPartition string `json:"cpu_partition,omitempty"` // of a slice: member, root, isolated (cpuset.cpus.partition); systemd has no word for it
	Scheduling   string `json:"scheduling,omitempty"`    // other, batch, idle, fifo, rr
	Priority     int    `json:"priority,omitempty"`      // 1 to 99 with fifo and rr
	Nice         *int   `json:"nice,omitempty"`

	Properties map[string]string `json:"properties,omitempty" since:"2"` // that systemd shows of the unit; verify alone reads them
}

// Pipeline is one declared inference pipeline.
type Pipeline struct {
	Source PipelineSource  `json:"source"`
	Stages []PipelineStage `json:"stages"` // in topological order
	Sink   PipelineSink    `json:"sink"`
	Queue  PipelineQueue   `json:"queue"`
	SLO    *PipelineSLO    `json:"slo,omitempty"`
	CPUs   string          `json:"cpus,omitempty"`            // cpu list the pipeline may use
	Start  bool            `json:"start,omitempty" since:"2"` // the layer enables its unit

	Scheduling string          `json:"scheduling,omitempty"` // of all threads: other, batch, idle, fifo, rr; "": the system's
	Priority   int             `json:"priority,omitempty"`   // 1 to 99 with fifo and rr
	Nice       *int            `json:"nice,omitempty"`
	Budget     *PipelineBudget `json:"budget,omitempty"` // what it may take, and leaves free

	Isolation string `json:"isolation,omitempty"` // of work on the GPU: "": a process of its own, none

	Kernels []KernelLaunch `json:"kernels,omitempty"` // of the core, on the GPU; others as the tuner finds

	Degrade *PipelineDegrade `json:"degrade,omitempty"` // of a live source: what to do without under load
	Memory  *PipelineMemory  `json:"memory,omitempty"`

	Utilisation string `json:"utilisation,omitempty"` // decimal text, 0–1: how busy the slowest stage is to be; "": no matter
	Lease       bool   `json:"lease,omitempty"`       // hold a lease while running
	GPUs        []int  `json:"gpus,omitempty"`        // that stages with device gpu share, by their numbers; nil: the first one
	Counters    bool   `json:"counters,omitempty"`    // the unit may ask the kernel for the processor's counters

	Environment map[string]string `json:"environment,omitempty" since:"2"` // of all its processes
}

// KernelLaunch is the launch configuration of a GPU kernel.
type KernelLaunch struct {
	Kernel string `json:"kernel"` // preprocess
	Block  int    `json:"block"`  // threads
}

// PipelineMemory holds the kernel settings of a pipeline's memory.
type PipelineMemory struct {
	Lock      bool `json:"lock,omitempty"`
	HugePages bool `json:"hugepages,omitempty"`
}

// PipelineBudget is what a pipeline may take, and what it leaves free; 0: no bound.
type PipelineBudget struct {
	Memory    int64 `json:"memory,omitempty"`     // bytes of the pipeline and of the programs it starts
	GPUMemory int64 `json:"gpu_memory,omitempty"` // bytes of the process of the GPU
	DiskRead  int64 `json:"disk_read,omitempty"`  // bytes a second
	DiskWrite int64 `json:"disk_write,omitempty"` // bytes a second
	NetIn     int64 `json:"net_in,omitempty"`     // bytes a second
	NetOut    int64 `json:"net_out,omitempty"`    // bytes a second

	FreeMemory int64 `json:"free_memory,omitempty"` // bytes that stay available to others
	FreeDisk   int64 `json:"free_disk,omitempty"`   // bytes that stay free where the sink writes
}

// PipelineDegrade is a ladder: level n applies the first n steps.
type PipelineDegrade struct {
	Ladder   []DegradeStep `json:"ladder"`
	UpDwell  int64         `json:"up_dwell,omitempty"`  // ns of calm before a step up, 0: 3 s
	MaxDwell int64         `json:"max_dwell,omitempty"` // ns that failed steps up may raise it to, 0: 48 s
	Headroom int64         `json:"headroom,omitempty"`  // milli-degrees below the kernel's own limit that count as hot
	Power    int64         `json:"power,omitempty"`     // mW of the module that are too much, 0: no limit
}

// DegradeStep is what one level does with less.
type DegradeStep struct {
	FPS    int          `json:"fps,omitempty"`    // frames per second, 0: as before
	Models []StageModel `json:"models,omitempty"` // by stage name
	Sizes  []StageSize  `json:"sizes,omitempty"`  // by stage name
}

// StageModel is another model for a model stage.
type StageModel struct {
	Stage  string `json:"stage"`
	Path   string `json:"path,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// StageSize is another tensor for a preprocess stage, in pixels.
type StageSize struct {
	Stage  string `json:"stage"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

// PipelineSource produces frames.
type PipelineSource struct {
	Kind   string   `json:"kind" format1:"file,synthetic,v4l2,command,shm"`              // file, synthetic, v4l2, command, shm, request
	Path   string   `json:"path,omitempty"`                                              // file or device
	Format string   `json:"format" format1:"nv12,i420,yuyv,uyvy,grey,rgb,bgr,mjpeg,y4m"` // nv12, i420, yuyv, uyvy, grey, rgb, bgr, mjpeg, y4m, tensor, image, text
	Width  int      `json:"width,omitempty"`                                             // pixels; 0 for y4m, whose header has it
	Height int      `json:"height,omitempty"`                                            // pixels
	FPSNum int      `json:"fps_num,omitempty"`
	FPSDen int      `json:"fps_den,omitempty"`
	Live   bool     `json:"live,omitempty"` // live: frames are dropped when late; otherwise the source blocks
	Exec   []string `json:"exec,omitempty"` // command: argv

	Decoders int `json:"decoders,omitempty"` // mjpeg: frames decoded at once, 0: 1

	Timeout int64  `json:"timeout,omitempty"` // v4l2 and live commands: ns without a frame after which it has stopped, 0: 2 s; request: ns for an answer, 0: 10 s
	Restart string `json:"restart,omitempty"` // what then: always, on-failure, never; "": always where live, otherwise never

	Time int64 `json:"time,omitempty"` // longest from capture until the stages have the frame, ns; as declared, 0: not known

	DType string  `json:"dtype,omitempty" since:"2"` // of tensors: f32, f16, bf16, i8, u8, i32, i64, bool; "": f32
	Shape []int64 `json:"shape,omitempty" since:"2"` // of tensors

	Request *Request `json:"request,omitempty" since:"2"` // of kind request
}

// Request is how callers reach a pipeline that answers requests.
type Request struct {
	Model  string         `json:"model"`            // name in the protocol
	Inputs []RequestInput `json:"inputs,omitempty"` // tensors of a row, by name; nil: the one that the source describes

	Socket   string `json:"socket,omitempty"`   // file of the unix socket; "": the one in the pipeline's own folder
	Everyone bool   `json:"everyone,omitempty"` // every user may connect; otherwise root and the group yoctune
	Address  string `json:"address,omitempty"`  // host:port of TCP; "": none
	Plain    bool   `json:"plain,omitempty"`    // TCP on the loopback address without TLS
	TLS      *TLS   `json:"tls,omitempty"`
	Tokens   string `json:"tokens,omitempty"` // file with one token a line; "": none is asked for

	SharedMemory bool `json:"shared_memory,omitempty"` // callers on Address may use it; those on the socket always may

	Limit int `json:"limit,omitempty"` // requests at once, waiting or in work; 0: 64
	Rows  int `json:"rows,omitempty"`  // of a request, 0: see schema/pipeline
}

// RequestInput is an input of a request.
type RequestInput struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype,omitempty"` // "": f32
	Shape []int64 `json:"shape"`           // of a row, with the axis of the batch
}

// TLS names the files of a server's identity, and of whom it trusts.
type TLS struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	ClientCA    string `json:"client_ca,omitempty"` // "": clients show no certificate
}

// PipelineStage is one step.
type PipelineStage struct {
	ID         string      `json:"id"`
	Kind       string      `json:"kind"`  // see schema/pipeline
	Input      string      `json:"input"` // "source" or a stage id
	Preprocess *Preprocess `json:"preprocess,omitempty"`
	Model      *Model      `json:"model,omitempty"`
	Post       *Post       `json:"post,omitempty"`
	Track      *Track      `json:"track,omitempty"`
	ROI        *ROI        `json:"roi,omitempty" since:"2"`
	Custom     *Custom     `json:"custom,omitempty"`
	Gate       *Gate       `json:"gate,omitempty" since:"2"`
	Stats      *Stats      `json:"stats,omitempty" since:"2"`
	Map        *Map        `json:"map,omitempty" since:"2"`
	Match      *Match      `json:"match,omitempty" since:"2"`

	Instances int   `json:"instances,omitempty"` // that work side by side, 0: 1; the order of frames is kept
	Deadline  int64 `json:"deadline,omitempty"`  // ns of one run, 0: none
	Time      int64 `json:"time,omitempty"`      // longest of one run, ns; as declared, 0: not known

	Device   string `json:"device,omitempty" format1:"cpu,gpu"` // gpu; "": cpu
	Fallback string `json:"fallback,omitempty"`                 // of gpu: drop; "": cpu
}

// Custom is a stage that the user wrote: a plug-in or a program, one of the two. It
// takes frames, or the tensor of the stage before.
type Custom struct {
	Plugin  string   `json:"plugin,omitempty"`  // shared library
	Exec    []string `json:"exec,omitempty"`    // argv
	Shape   []int64  `json:"shape,omitempty"`   // of the tensor it gives; nil: it gives results
	Options string   `json:"options,omitempty"` // passed to it
	Inside  bool     `json:"inside,omitempty"`  // the plug-in runs in the pipeline's own process

	DType string `json:"dtype,omitempty" since:"2"` // of the tensor it gives; "": f32
}

// ModelProviders is what may run a model stage, best first: tensorrt, cuda, cpu.
func (s *PipelineStage) ModelProviders() []string {
	switch {
	case s.Model == nil:
		return nil
	case len(s.Model.Providers) > 0:
		return s.Model.Providers
	case s.Device != "gpu" && s.Device != "auto":
		return []string{"cpu"}
	case s.Fallback == "drop":
		return []string{"tensorrt", "cuda"}
	}
	return []string{"tensorrt", "cuda", "cpu"}
}

// WantsTensorRT reports whether a model of the pipeline may run on TensorRT, for which
// an engine is built first.
func (p *Pipeline) WantsTensorRT() bool {
	return slices.ContainsFunc(p.Stages, func(s PipelineStage) bool { return slices.Contains(s.ModelProviders(), "tensorrt") })
}

// RunsModel reports whether a stage of the pipeline runs a model.
func (p *Pipeline) RunsModel() bool {
	return slices.ContainsFunc(p.Stages, func(s PipelineStage) bool { return s.Model != nil })
}

// Serves reports whether only yoctuned-serve can run the pipeline.
func (p *Pipeline) Serves() bool { return p.Source.Request != nil || p.Sink.NeedsServer() }

// NeedsServer reports whether only yoctuned-serve has the sink: it links NATS and TLS.
func (s *PipelineSink) NeedsServer() bool {
	return s.NATS != nil || strings.HasPrefix(s.URL, "https://")
}

// FirstModel returns the name of the first pipeline that runs a model, "" for none.
func (p *Plan) FirstModel() string {
	for _, name := range slices.Sorted(maps.Keys(p.Pipelines)) {
		if pipeline := p.Pipelines[name]; pipeline.RunsModel() {
			return name
		}
	}
	return ""
}

// Preprocess makes a tensor of a frame in one pass.
type Preprocess struct {
	Width  int      `json:"width"`
	Height int      `json:"height"`
	Fit    string   `json:"fit"`                   // stretch, letterbox
	Layout string   `json:"layout" format1:"nchw"` // nchw, nhwc
	Color  string   `json:"color"`                 // rgb, bgr
	DType  string   `json:"dtype" format1:"f32"`   // f32, f16, i8, u8
	Pad    int      `json:"pad"`                   // 0–255, letterbox border
	Mean   []string `json:"mean"`                  // per channel, in 0–1 units, decimal text (no floats in a plan)
	Std    []string `json:"std"`
	Crop   *Crop    `json:"crop,omitempty"` // region of the source frame, pixels

	Scale string `json:"scale,omitempty" since:"2"` // of i8 and u8: value of one step, decimal text; "": pixels as they are
	Zero  int    `json:"zero,omitempty" since:"2"`  // of i8 and u8: element of the value 0
}

// Crop is a region of a frame in pixels.
type Crop struct {
	X      int `json:"x"`
	Y      int `json:"y"`
	Width  int `json:"width"`
	Height int `json:"height"`
}

// Model is an ONNX model run by ONNX Runtime.
type Model struct {
	Path    string `json:"path,omitempty"`   // on the device, or relative to the plan
	SHA256  string `json:"sha256,omitempty"` // hex; installed as models/<sha256>
	Input   string `json:"input,omitempty"`  // tensor name; the model's first when empty
	Output  string `json:"output,omitempty"`
	Threads int    `json:"threads,omitempty"` // intra-op, 0: one per core of the pipeline

	Batch *ModelBatch `json:"batch,omitempty"` // nil: one frame at a time

	Providers []string  `json:"providers,omitempty"` // tensorrt, cuda, cpu; best first, nil: all three
	Precision string    `json:"precision,omitempty"` // of a TensorRT engine: fp32, fp16; "": fp32
	Workspace int64     `json:"workspace,omitempty"` // bytes that TensorRT may use to build one, 0: its own choice
	Spinning  bool      `json:"spinning,omitempty"`  // idle threads spin
	NoArena   bool      `json:"no_arena,omitempty"`  // memory is given back after each run
	Ensemble  *Ensemble `json:"ensemble,omitempty"`  // models that vote with this one

	Inputs  []ModelInput `json:"inputs,omitempty" since:"2"`  // by name; an input that is not listed takes the stage's tensor
	Outputs []string     `json:"outputs,omitempty" since:"2"` // further outputs to read, by name

	Evidence string `json:"evidence,omitempty" since:"2"` // SHA-256 of the judgement that chose this model
}

// ModelInput is where an input of a model comes from: a tensor of this frame, that of the frame
// before, or values.
type ModelInput struct {
	Name     string   `json:"name"`               // of the model's input
	From     string   `json:"from,omitempty"`     // id of an earlier stage, or "source"; "": the stage's own input, or values
	Tensor   string   `json:"tensor,omitempty"`   // of "source": the name of one of its inputs; "": the first
	Part     *int     `json:"part,omitempty"`     // index in the first axis of that tensor; nil: all of it
	Previous bool     `json:"previous,omitempty"` // as it was when the stage last ran
	Values   []string `json:"values,omitempty"`   // decimal text
	DType    string   `json:"dtype,omitempty"`    // of values, "": f32
	Shape    []int64  `json:"shape,omitempty"`    // of values
}

// Ensemble is models that run on the same tensor, and how their outputs become one.
type Ensemble struct {
	Models []StageModel `json:"models"` // by name
	Vote   string       `json:"vote"`   // mean, majority, max
}

// ModelBatch lets a model whose first axis is free take several frames at once, or after a roi
// stage several crops of a frame.
type ModelBatch struct {
	Buckets []int `json:"buckets"`                 // sizes, ascending from 1; no other is ever run
	Pad     bool  `json:"pad,omitempty" since:"2"` // crops: the last run is the smallest bucket that holds the rest; sizes need not begin at 1
	Delay   int64 `json:"delay,omitempty"`         // ns to wait for a fuller batch, as far as the latency objective allows
}

// Post turns an output tensor into results.
type Post struct {
	Kind      string `json:"kind"`                // ctc (text), argmax (classification), detect, segment, keypoints, regions, raw
	Labels    string `json:"labels,omitempty"`    // file, one label per line
	Threshold string `json:"threshold,omitempty"` // decimal text, 0–1
	Top       int    `json:"top,omitempty"`

	Head       string `json:"head,omitempty" format1:"v5,v8,v10,v11"` // of a detector: v5, v8, v10, v11, efficient-nms, ssd, detr, rt-detr
	IoU        string `json:"iou,omitempty"`                          // decimal text, 0–1; "": 0.45
	Agnostic   bool   `json:"agnostic,omitempty"`                     // classes suppress each other
	Classes    int    `json:"classes,omitempty"`                      // of keypoints, 0: 1
	Prototypes string `json:"prototypes,omitempty"`                   // of segment: name of the model's output, "": its second

	Outputs *DetectorOutputs `json:"outputs,omitempty" since:"2"` // of a head that reads several; nil: by their usual names
	Scale   string           `json:"scale,omitempty" since:"2"`   // of integer tensors: value of one step, decimal text; "": 1
	Zero    int              `json:"zero,omitempty" since:"2"`    // of integer tensors: element of the value 0
}

// DetectorOutputs names the outputs of a detector; "": by their usual names.
type DetectorOutputs struct {
	Boxes   string `json:"boxes,omitempty"`
	Scores  string `json:"scores,omitempty"`
	Classes string `json:"classes,omitempty"`
	Count   string `json:"count,omitempty"`
}

// Track follows boxes from frame to frame.
type Track struct {
	IoU     string `json:"iou,omitempty"`      // decimal text, 0–1; "": 0.3
	Hits    int    `json:"hits,omitempty"`     // frames before a track has a number, 0: 2
	MaxLost int64  `json:"max_lost,omitempty"` // ns a track waits for its box, 0: 1 s
	Max     int    `json:"max,omitempty"`      // tracks at once, 0: 256
}

// ROI makes a tensor of each of the best boxes of a frame, from the frame's pixels.
type ROI struct {
	Width  int      `json:"width"` // of each tensor, pixels
	Height int      `json:"height"`
	Fit    string   `json:"fit"`   // stretch, letterbox
	Color  string   `json:"color"` // rgb, bgr
	Pad    int      `json:"pad"`   // 0–255, letterbox border
	Mean   []string `json:"mean"`  // per channel, in 0–1 units, decimal text
	Std    []string `json:"std"`
	Count  int      `json:"count"`            // crops of a frame at most
	Margin string   `json:"margin,omitempty"` // added on each side, as a fraction of the box; decimal text, "": 0
	Only   []int    `json:"only,omitempty"`   // classes of the boxes; nil: all
}

// Preprocess is what is done to each crop.
func (r *ROI) Preprocess() *Preprocess {
	return &Preprocess{Width: r.Width, Height: r.Height, Fit: r.Fit, Layout: "nchw", Color: r.Color, DType: "f32", Pad: r.Pad, Mean: r.Mean, Std: r.Std}
}

// Gate lets frames pass while the picture changes.
type Gate struct {
	Threshold string `json:"threshold,omitempty"` // decimal text, 0–1; "": 0.1
	Area      string `json:"area,omitempty"`      // decimal text, 0–1; "": 0.01
	Grid      int    `json:"grid,omitempty"`      // side of a block in samples, 0: none
	MaxAge    int64  `json:"max_age,omitempty"`   // ns, 0: 1 s
	Repeat    bool   `json:"repeat,omitempty"`    // skipped frames give the last results
}

// Stats measures brightness, clipping and focus of a frame.
type Stats struct {
	Low  string `json:"low,omitempty"`  // brightness up to which a pixel counts, decimal text, 0–1; "": 0.02
	High string `json:"high,omitempty"` // from which it counts; "": 0.98
}

// Map computes each element of a tensor anew.
type Map struct {
	Expressions []string `json:"expressions"` // each of the result of the one before, see schema/fuse
	P           []string `json:"p,omitempty"` // by channel, decimal text
	Q           []string `json:"q,omitempty"`
}

// Match finds the entries of a gallery that are most similar to an embedding.
type Match struct {
	Gallery   string `json:"gallery"`             // file, see schema/formats/gallery
	SHA256    string `json:"sha256,omitempty"`    // of the file
	Threshold string `json:"threshold,omitempty"` // decimal text, 0–1; "": 0.5
	Top       int    `json:"top,omitempty"`       // 0: 1
	Metric    string `json:"metric,omitempty"`    // "": cosine
}

// PipelineSink takes results.
type PipelineSink struct {
	Kind string `json:"kind" format1:"ndjson,http,command,shm"` // ndjson, http, command, shm, nats, reply
	Path string `json:"path,omitempty"`                         // ndjson: stdout when empty; shm: the ring's file

	Rotate   *Rotate  `json:"rotate,omitempty"`    // ndjson
	URL      string   `json:"url,omitempty"`       // http
	Exec     []string `json:"exec,omitempty"`      // command: argv, results on its standard input
	Timeout  int64    `json:"timeout,omitempty"`   // http, command: ns for one record, 0: 2 s
	Slots    int      `json:"slots,omitempty"`     // shm: records the ring holds, 0: 64
	SlotSize int      `json:"slot_size,omitempty"` // shm: bytes of a record, 0: 4096
	Capacity int      `json:"capacity,omitempty"`  // of its queue, 0: as the others
	Policy   string   `json:"policy,omitempty"`    // of its queue, "": as the others
	Time     int64    `json:"time,omitempty"`      // longest of one result, ns; as declared, 0: not known

	NATS *Delivery  `json:"nats,omitempty" since:"2"` // nats
	TLS  *ClientTLS `json:"tls,omitempty" since:"2"`  // http with https; nil: no certificate, and the authorities of the system
}

// Delivery is how a sink puts results into a stream of the cluster.
type Delivery struct {
	Stream  string `json:"stream"`
	Subject string `json:"subject"`           // the identity of the device follows it
	Records int    `json:"records,omitempty"` // of a batch, 0: see schema/pipeline
	Delay   int64  `json:"delay,omitempty"`   // ns until a batch that is not full is sent, 0: see schema/pipeline
	Codec   string `json:"codec,omitempty"`   // s2, zstd; "": none
	Level   int    `json:"level,omitempty"`   // of the codec, 0: 1
	Size    int64  `json:"size,omitempty"`    // bytes of the stream in the cluster, 0: see schema/pipeline
	Age     int64  `json:"age,omitempty"`     // ns after which results are removed there, 0: never
	Outbox  int64  `json:"outbox,omitempty"`  // bytes that wait on the device for a cluster elsewhere, 0: see schema/pipeline
	Rate    int64  `json:"rate,omitempty"`    // bytes a second sent from there, 0: not limited
	Full    string `json:"full,omitempty"`    // drop-oldest, drop-newest, block; "": drop-oldest
}

// Rotate bounds the files of a sink.
type Rotate struct {
	Size int64 `json:"size"` // bytes after which a new file is begun
	Keep int   `json:"keep"` // files kept besides the current one
}

// PipelineQueue bounds the queues between stages.
type PipelineQueue struct {
	Capacity int    `json:"capacity"`
	Policy   string `json:"policy"` // block, drop-oldest, drop-newest

	MaxAge   int64 `json:"max_age,omitempty"`   // ns since capture after which a frame is dropped, 0: never
	InFlight int   `json:"in_flight,omitempty"` // frames in work at once, 0: as many as there is room for
}

// PipelineSLO is judged by the runtime.
type PipelineSLO struct {
	LatencyP95 int64 `json:"latency_p95,omitempty"` // ns, capture to sink
	MinFPS     int   `json:"min_fps,omitempty"`

	LatencyP50 int64 `json:"latency_p50,omitempty" since:"2"` // ns, capture to sink
	LatencyP99 int64 `json:"latency_p99,omitempty" since:"2"` // ns, capture to sink
	Memory     int64 `json:"memory,omitempty" since:"2"`      // bytes resident of the pipeline's process
	Energy     int64 `json:"energy,omitempty" since:"2"`      // microjoules of the module for a frame
}

// Cluster is the NATS server on the device, and the one elsewhere that results go to.
type Cluster struct {
	Name        string       `json:"name"`
	Embedded    bool         `json:"embedded,omitempty"`    // the streams are on the device; otherwise results wait there for URL
	Listen      string       `json:"listen,omitempty"`      // host:port of TCP on the device; "": a unix socket only
	Plain       bool         `json:"plain,omitempty"`       // TCP on the loopback address without TLS
	URL         string       `json:"url,omitempty"`         // of an existing server
	TLS         *ClientTLS   `json:"tls,omitempty"`         // of the client with URL, of the server with Listen
	Credentials string       `json:"credentials,omitempty"` // file with the credentials or the nkey of a user
	Domain      string       `json:"domain,omitempty"`      // of JetStream: of URL, or of the server on the device
	Replicas    int          `json:"replicas,omitempty"`    // of a stream, 0: 1
	Store       ClusterStore `json:"store"`
}

// ClusterStore is what the device keeps.
type ClusterStore struct {
	Size int64 `json:"size"`           // bytes of all streams
	Sync int64 `json:"sync,omitempty"` // ns between writes to the disk, 0: before each acknowledgement
}

// ClientTLS names the files of a client's identity, and of whom it trusts.
type ClientTLS struct {
	CA          string `json:"ca,omitempty"` // "": the authorities of the system
	Certificate string `json:"certificate,omitempty"`
	Key         string `json:"key,omitempty"`
}

// Monitor configures sampling on the device.
type Monitor struct {
	Interval int64 `json:"interval"` // ns
	Metrics  bool  `json:"metrics,omitempty"`
}

// Position is a place in a source file. Line and Column count from 1.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// Origins maps the id of a setting (or of any other part of a [Target]) to the
// position in the configuration that caused it. It is stored next to the plan, in
// plan.origins.json, and is not covered by digest and signature.
type Origins map[string]Position

// IsRemoval reports whether the setting removes a kernel argument.
func (s Setting) IsRemoval() bool { return s.Type == TypePresent && s.Want == "0" }
