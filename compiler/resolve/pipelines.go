package resolve

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

func (r *resolver) pipelines() {
	for _, f := range sortedFields(r.n.Get("pipelines")) {
		if r.plan.Pipelines == nil {
			r.plan.Pipelines = map[string]plan.Pipeline{}
		}
		r.plan.Pipelines[f.Name] = r.pipeline(f)
		r.origins["pipelines."+f.Name] = f.Pos
		r.models(f)
	}
	slices.SortFunc(r.t.Models, func(a, b plan.ModelFile) int {
		return cmp.Or(strings.Compare(a.SHA256, b.SHA256), strings.Compare(a.Name, b.Name))
	})
}

// models collects the models and labels that the build fetches, each once. Where
// they come from is no business of the device.
func (r *resolver) models(pipeline load.Field) {
	for _, f := range sortedFields(pipeline.Value.Get("stages")) {
		id := "pipelines." + pipeline.Name + ".stages." + f.Name
		r.fetched(id, "", f.Value.Get("uri"), f.Value.Get("sha256"))
		r.fetched(id, path.Base(text(f.Value.Get("labels"))), f.Value.Get("labelsUri"), f.Value.Get("labelsSha256"))
		for _, e := range sortedFields(f.Value.At("ensemble", "models")) {
			r.fetched(id+".ensemble."+e.Name, "", e.Value.Get("uri"), e.Value.Get("sha256"))
		}
	}
	for n, step := range items(pipeline.Value.At("degrade", "ladder")) {
		for _, m := range sortedFields(step.Get("models")) {
			id := "pipelines." + pipeline.Name + ".degrade." + strconv.Itoa(n+1) + "." + m.Name
			r.fetched(id, "", m.Value.Get("uri"), m.Value.Get("sha256"))
		}
	}
}

// fetched notes a file that the build fetches, once for each content and name.
func (r *resolver) fetched(id, name string, uri, sum *load.Node) {
	if uri == nil {
		return
	}
	m := plan.ModelFile{ID: id, Name: name, URI: uri.Text, SHA256: text(sum)}
	r.origins[m.ID] = uri.Pos
	same := func(o plan.ModelFile) bool { return o.SHA256 == m.SHA256 && o.Name == m.Name }
	if m.SHA256 == "" || !slices.ContainsFunc(r.t.Models, same) {
		r.t.Models = append(r.t.Models, m)
	}
}

func (r *resolver) pipeline(f load.Field) plan.Pipeline {
	n, path := f.Value, load.PathOf("pipelines", f.Name)
	p := plan.Pipeline{
		Source: r.source(n.Get("source"), path+".source"),
		Stages: r.stages(n.Get("stages"), path+".stages"),
		Sink:   r.sink(n.Get("sink"), path+".sink"),
		CPUs:   cpulist.Format(Cores(n.Get("cpus"))),

		Scheduling: text(n.Get("scheduling")), Priority: int(integer(n.Get("priority"), 0)),
		Budget: r.budget(n.Get("budget"), path+".budget"),

		Isolation: unless("process", n.Get("isolation")),
	}
	if nice := n.Get("nice"); nice != nil {
		p.Nice = new(int(integer(nice, 0)))
	}
	policy, capacity := pipeline.Queue(p.Source.Live)
	p.Queue = plan.PipelineQueue{
		Capacity: int(integer(n.At("queue", "capacity"), int64(capacity))),
		Policy:   textOr(n.At("queue", "policy"), policy),
		MaxAge:   r.duration(path+".queue.maxAge", n.At("queue", "maxAge"), 0),
		InFlight: int(integer(n.At("queue", "inFlight"), 0)),
	}
	for _, k := range sortedFields(n.Get("kernels")) {
		p.Kernels = append(p.Kernels, plan.KernelLaunch{Kernel: k.Name, Block: int(integer(k.Value.Get("block"), 0))})
	}
	p.Degrade = r.degrade(n.Get("degrade"), path+".degrade")
	if m := n.Get("memory"); m != nil {
		p.Memory = &plan.PipelineMemory{Lock: boolean(m.Get("lock"), false), HugePages: boolean(m.Get("hugepages"), false)}
	}
	p.Utilisation = optionalDecimal(n.Get("utilisation"))
	p.Lease, p.Counters = boolean(n.Get("lease"), false), boolean(n.Get("counters"), false)
	for _, g := range items(n.Get("gpus")) {
		p.GPUs = append(p.GPUs, int(integer(g, 0)))
	}
	if slo := n.Get("slo"); slo != nil {
		p.SLO = &plan.PipelineSLO{
			LatencyP95: r.duration(path+".slo.latencyP95", slo.Get("latencyP95"), 0),
			MinFPS:     int(integer(slo.Get("minFps"), 0)),
		}
	}
	return p
}

// budget reads what a pipeline may take, nil when nothing is said.
func (r *resolver) budget(n *load.Node, path string) *plan.PipelineBudget {
	if n == nil {
		return nil
	}
	b := &plan.PipelineBudget{}
	for _, f := range []struct {
		to   *int64
		read func(string, *load.Node) (int64, bool)
		at   []string
	}{
		{&b.Memory, r.size, []string{"memory"}}, {&b.GPUMemory, r.size, []string{"gpuMemory"}},
		{&b.DiskRead, r.rate, []string{"diskRead"}}, {&b.DiskWrite, r.rate, []string{"diskWrite"}},
		{&b.NetIn, r.rate, []string{"netIn"}}, {&b.NetOut, r.rate, []string{"netOut"}},
		{&b.FreeMemory, r.size, []string{"keepFree", "memory"}}, {&b.FreeDisk, r.size, []string{"keepFree", "disk"}},
	} {
		if v := n.At(f.at...); v != nil {
			*f.to, _ = f.read(path+"."+strings.Join(f.at, "."), v)
		}
	}
	if *b == (plan.PipelineBudget{}) {
		return nil
	}
	return b
}

// degrade writes the ladder; models and sizes by the name of their stage.
func (r *resolver) degrade(n *load.Node, path string) *plan.PipelineDegrade {
	if n == nil {
		return nil
	}
	d := &plan.PipelineDegrade{
		Ladder:  []plan.DegradeStep{},
		UpDwell: r.duration(path+".upDwell", n.Get("upDwell"), 0), MaxDwell: r.duration(path+".maxDwell", n.Get("maxDwell"), 0),
		Headroom: 1000 * integer(n.Get("headroom"), 0), Power: integer(n.Get("power"), 0),
	}
	for _, it := range items(n.Get("ladder")) {
		step := plan.DegradeStep{FPS: int(integer(it.Get("fps"), 0))}
		for _, f := range sortedFields(it.Get("models")) {
			step.Models = append(step.Models, plan.StageModel{
				Stage: f.Name, Path: text(f.Value.Get("path")), SHA256: text(f.Value.Get("sha256")),
			})
		}
		for _, f := range sortedFields(it.Get("sizes")) {
			step.Sizes = append(step.Sizes, plan.StageSize{
				Stage: f.Name, Width: int(integer(f.Value.Get("width"), 0)), Height: int(integer(f.Value.Get("height"), 0)),
			})
		}
		d.Ladder = append(d.Ladder, step)
	}
	return d
}

func (r *resolver) sink(n *load.Node, path string) plan.PipelineSink {
	s := plan.PipelineSink{
		Kind: textOr(n.Get("kind"), pipeline.Sinks()[0].Kind), Path: text(n.Get("path")), URL: text(n.Get("url")), Exec: texts(n.Get("exec")),
		Timeout: r.duration(path+".timeout", n.Get("timeout"), 0), Slots: int(integer(n.Get("slots"), 0)),
		Capacity: int(integer(n.Get("capacity"), 0)), Policy: text(n.Get("policy")),
		Time: r.duration(path+".time", n.Get("time"), 0),
	}
	if size := n.Get("slotSize"); size != nil {
		bytes, _ := r.size(path+".slotSize", size)
		s.SlotSize = int(bytes)
	}
	if rotate := n.Get("rotate"); rotate != nil {
		bytes, _ := r.size(path+".rotate.size", rotate.Get("size"))
		s.Rotate = &plan.Rotate{Size: bytes, Keep: int(integer(rotate.Get("keep"), 1))}
	}
	return s
}

func (r *resolver) source(n *load.Node, path string) plan.PipelineSource {
	s := plan.PipelineSource{
		Kind: text(n.Get("kind")), Path: text(n.Get("path")), Format: text(n.Get("format")),
		Width: int(integer(n.Get("width"), 0)), Height: int(integer(n.Get("height"), 0)), Exec: texts(n.Get("exec")),
	}
	kind, _ := pipeline.SourceOf(s.Kind)
	s.Live = boolean(n.Get("live"), kind.Live)
	s.Timeout, s.Restart = r.duration(path+".timeout", n.Get("timeout"), 0), text(n.Get("restart"))
	s.Decoders, s.Time = int(integer(n.Get("decoders"), 0)), r.duration(path+".time", n.Get("time"), 0)
	if kind.Device != "" {
		// On the device it is the command that receives the stream.
		s.Kind = kind.Device
		s.Exec = receiver(n, s, r.duration(path+".latency", n.Get("latency"), rtspLatency))
	}
	if pipeline.Timed(&s) && n.Get("fps") == nil {
		return s // its header has the rate
	}
	s.FPSNum, s.FPSDen = pipeline.DefaultRate, 1
	if fps := n.Get("fps"); fps != nil {
		num, den, ok := strings.Cut(fps.Text, "/")
		s.FPSNum, _ = strconv.Atoi(num)
		if ok {
			s.FPSDen, _ = strconv.Atoi(den)
		}
	}
	return s
}

// rtspLatency is how long packets that are late are waited for, in ns. GStreamer's
// own two seconds are for players.
const rtspLatency = 100_000_000

// receiver is the program that writes the frames of an RTSP stream to its standard
// output. Nothing of it goes through a shell.
func receiver(n *load.Node, s plan.PipelineSource, latency int64) []string {
	format, _ := pipeline.FormatOf(s.Format)
	url, size := text(n.Get("url")), func(f string) string { return fmt.Sprintf(f, s.Width, s.Height) }
	if text(n.Get("via")) == "ffmpeg" {
		return []string{
			"ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp", "-i", url, "-an",
			"-vf", size("scale=%d:%d"), "-pix_fmt", format.FFmpeg, "-f", "rawvideo", "pipe:1",
		}
	}
	// nvvidconv takes what the module's decoder leaves in its own memory, and scales.
	return []string{
		"gst-launch-1.0", "-q", "rtspsrc", "location=" + url, "protocols=tcp", "latency=" + strconv.FormatInt(latency/1_000_000, 10), "drop-on-latency=true",
		"!", "decodebin", "!", "nvvidconv", "!", "video/x-raw,format=" + format.GStreamer + size(",width=%d,height=%d"), "!", "fdsink", "sync=false",
	}
}

// stages orders the stages so that each comes after its input; those that could
// come in any order are ordered by name.
func (r *resolver) stages(n *load.Node, path string) []plan.PipelineStage {
	left := sortedFields(n)
	names := make([]string, 0, len(left)+1)
	for _, f := range left {
		names = append(names, f.Name)
	}
	names = append(names, pipeline.SourceID)
	done := map[string]bool{pipeline.SourceID: true}
	var out []plan.PipelineStage
	for len(left) > 0 {
		rest := left[:0:0]
		for _, f := range left {
			if input := text(f.Value.Get("input")); done[input] {
				out = append(out, r.stage(f, load.PathOf(path, f.Name)))
				continue
			}
			rest = append(rest, f)
		}
		if len(rest) == len(left) {
			r.misplaced(rest, names, path)
			return out
		}
		for _, s := range out {
			done[s.ID] = true
		}
		left = rest
	}
	return out
}

// misplaced says once what keeps the stages from having an order: an input that is no
// stage, or a circle. Those that only come after have nothing wrong with them.
func (r *resolver) misplaced(stages []load.Field, names []string, path string) {
	report := func(f load.Field, message, help string) {
		r.report.Add(diag.Diagnostic{
			ID: "YT0205", Severity: diag.Error, Pos: f.Value.Get("input").Pos, Path: r.path + "." + load.PathOf(path, f.Name) + ".input",
			Message: message, Help: help,
		})
	}
	inputs := map[string]string{}
	for _, f := range stages {
		if input := text(f.Value.Get("input")); slices.Contains(names, input) {
			inputs[f.Name] = input
		} else {
			report(f, "stage "+f.Name+" takes its input from "+strconv.Quote(input)+", which is no stage", diag.DidYouMean(input, names))
		}
	}
	told := map[string]bool{}
	for _, f := range stages {
		circle := []string{f.Name}
		at := inputs[f.Name]
		for ; at != "" && at != f.Name && !slices.Contains(circle, at); at = inputs[at] {
			circle = append(circle, at)
		}
		if at != f.Name || told[f.Name] {
			continue
		}
		for _, name := range circle {
			told[name] = true
		}
		report(f, "stages go in a circle: "+strings.Join(append(circle, f.Name), " takes from "), `let one of them take its input from "source"`)
	}
}

func (r *resolver) stage(f load.Field, path string) plan.PipelineStage {
	n := f.Value
	s := plan.PipelineStage{ID: f.Name, Kind: text(n.Get("kind")), Input: text(n.Get("input"))}
	s.Instances, s.Deadline = int(integer(n.Get("instances"), 0)), r.duration(path+".deadline", n.Get("deadline"), 0)
	s.Time = r.duration(path+".time", n.Get("time"), 0)
	s.Device, s.Fallback = unless("cpu", n.Get("device")), unless("cpu", n.Get("fallback"))
	if resolve := stageSettings[s.Kind]; resolve != nil {
		resolve(r, n, path, &s)
	}
	return s
}

// stageSettings resolves the settings of each kind of stage.
var stageSettings = map[string]func(r *resolver, n *load.Node, path string, s *plan.PipelineStage){
	pipeline.Preprocess.Kind:  resolvePreprocess,
	pipeline.Model.Kind:       resolveModel,
	pipeline.Postprocess.Kind: resolvePostprocess,
	pipeline.Track.Kind:       resolveTrack,
	pipeline.Custom.Kind:      resolveCustom,
}

func resolvePreprocess(_ *resolver, n *load.Node, _ string, s *plan.PipelineStage) {
	s.Preprocess = &plan.Preprocess{
		Width: int(integer(n.Get("width"), 0)), Height: int(integer(n.Get("height"), 0)),
		Fit: textOr(n.Get("fit"), "stretch"), Layout: textOr(n.Get("layout"), "nchw"), Color: textOr(n.Get("color"), "rgb"),
		DType: textOr(n.Get("dtype"), "f32"), Pad: int(integer(n.Get("pad"), 0)),
		Mean: decimals(n.Get("mean"), "0"), Std: decimals(n.Get("std"), "1"),
	}
	if c := n.Get("crop"); c != nil {
		s.Preprocess.Crop = &plan.Crop{
			X: int(integer(c.Get("x"), 0)), Y: int(integer(c.Get("y"), 0)),
			Width: int(integer(c.Get("width"), 0)), Height: int(integer(c.Get("height"), 0)),
		}
	}
}

func resolveModel(r *resolver, n *load.Node, path string, s *plan.PipelineStage) {
	m := &plan.Model{
		Path: text(n.Get("path")), SHA256: text(n.Get("sha256")), Input: text(n.Get("inputTensor")),
		Output: text(n.Get("outputTensor")), Threads: int(integer(n.Get("threads"), 0)),
		Providers: texts(n.Get("providers")), Precision: text(n.Get("precision")),
		Spinning: boolean(n.Get("spinning"), false), NoArena: !boolean(n.Get("arena"), true),
	}
	if w := n.Get("workspace"); w != nil {
		m.Workspace, _ = r.size(path+".workspace", w)
	}
	if e := n.Get("ensemble"); e != nil {
		m.Ensemble = &plan.Ensemble{Models: []plan.StageModel{}, Vote: textOr(e.Get("vote"), "mean")}
		for _, f := range sortedFields(e.Get("models")) {
			m.Ensemble.Models = append(m.Ensemble.Models, plan.StageModel{
				Stage: f.Name, Path: text(f.Value.Get("path")), SHA256: text(f.Value.Get("sha256")),
			})
		}
	}
	if b := n.Get("batch"); b != nil {
		m.Batch = &plan.ModelBatch{Buckets: []int{}, Delay: r.duration(path+".batch.delay", b.Get("delay"), 0)}
		for _, size := range items(b.Get("buckets")) {
			m.Batch.Buckets = append(m.Batch.Buckets, int(integer(size, 0)))
		}
	}
	s.Model = m
}

func resolvePostprocess(_ *resolver, n *load.Node, _ string, s *plan.PipelineStage) {
	s.Post = &plan.Post{
		Kind: text(n.Get("decode")), Labels: text(n.Get("labels")), Top: int(integer(n.Get("top"), 0)),
		Threshold: optionalDecimal(n.Get("threshold")), Head: text(n.Get("head")), IoU: optionalDecimal(n.Get("iou")),
		Agnostic: boolean(n.Get("agnostic"), false), Classes: int(integer(n.Get("classes"), 0)), Prototypes: text(n.Get("prototypes")),
	}
}

func resolveCustom(_ *resolver, n *load.Node, _ string, s *plan.PipelineStage) {
	s.Custom = &plan.Custom{
		Plugin: text(n.Get("plugin")), Exec: texts(n.Get("exec")), Options: text(n.Get("options")), Inside: boolean(n.Get("inside"), false),
	}
	for _, d := range items(n.Get("shape")) {
		s.Custom.Shape = append(s.Custom.Shape, integer(d, 0))
	}
}

func resolveTrack(r *resolver, n *load.Node, path string, s *plan.PipelineStage) {
	s.Track = &plan.Track{
		IoU: optionalDecimal(n.Get("iou")), Hits: int(integer(n.Get("hits"), 0)),
		MaxLost: r.duration(path+".maxLost", n.Get("maxLost"), 0), Max: int(integer(n.Get("max"), 0)),
	}
}

// optionalDecimal is "" for what is absent.
func optionalDecimal(n *load.Node) string {
	if n == nil {
		return ""
	}
	return decimal(n)
}

// unless is the text of n where it is not what is meant without it.
func unless(otherwise string, n *load.Node) string {
	if t := text(n); t != otherwise {
		return t
	}
	return ""
}

// decimals reads one value a channel; the same for all three when absent.
func decimals(n *load.Node, otherwise string) []string {
	if n == nil {
		return []string{otherwise, otherwise, otherwise}
	}
	out := make([]string, 0, len(n.Items))
	for _, it := range n.Items {
		out = append(out, decimal(it))
	}
	return out
}

// items are the elements of a list that may be absent.
func items(n *load.Node) []*load.Node {
	if n == nil {
		return nil
	}
	return n.Items
}
