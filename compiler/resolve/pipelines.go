package resolve

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/schema/formats/cpulist"
	"github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

func (r *resolver) resolvePipelines() {
	for _, c := range r.c.Pipelines.Sorted() {
		if r.plan.Pipelines == nil {
			r.plan.Pipelines = map[string]plan.Pipeline{}
		}
		r.plan.Pipelines[c.Key()] = r.pipeline(c)
		r.origins[c.ID()] = c.KeyPos()
		r.collectModels(c)
	}
	slices.SortFunc(r.t.Models, func(a, b plan.ModelFile) int {
		return cmp.Or(strings.Compare(a.SHA256, b.SHA256), strings.Compare(a.Name, b.Name))
	})
}

// collectModels collects the models and labels that the build fetches, each once. Their
// origin does not concern the device.
func (r *resolver) collectModels(c *config.Pipeline) {
	for _, st := range c.Stages.Sorted() {
		r.addModel(st.URI, plan.ModelFile{ID: st.ID(), SHA256: st.SHA256.Text, Member: st.Member.Text, Archive: st.ArchiveSHA256.Text})
		r.addModel(st.GalleryURI, plan.ModelFile{ID: st.ID(), SHA256: st.GallerySHA256.Text, Name: path.Base(st.Gallery.Text)})
		r.addModel(st.LabelsURI, plan.ModelFile{ID: st.ID(), SHA256: st.LabelsSHA256.Text, Name: path.Base(st.Labels.Text)})
		for _, m := range st.Ensemble.Models.Sorted() {
			r.addModel(m.URI, plan.ModelFile{ID: st.ID() + ".ensemble." + m.Key(), SHA256: m.SHA256.Text, Member: m.Member.Text, Archive: m.ArchiveSHA256.Text})
		}
	}
	for i, step := range c.Degrade.Ladder.Items {
		for _, m := range step.Models.Sorted() {
			r.addModel(m.URI, plan.ModelFile{ID: c.ID() + ".degrade." + strconv.Itoa(i+1) + "." + m.Key(), SHA256: m.SHA256.Text, Member: m.Member.Text, Archive: m.ArchiveSHA256.Text})
		}
	}
}

// addModel adds a file that the build fetches, once for each content and name.
func (r *resolver) addModel(uri config.String, m plan.ModelFile) {
	if !uri.IsSet() {
		return
	}
	m.URI = uri.Text
	r.origins[m.ID] = uri.Pos()
	same := func(o plan.ModelFile) bool { return o.SHA256 == m.SHA256 && o.Name == m.Name }
	if m.SHA256 == "" || !slices.ContainsFunc(r.t.Models, same) {
		r.t.Models = append(r.t.Models, m)
	}
}

func (r *resolver) pipeline(c *config.Pipeline) plan.Pipeline {
	p := plan.Pipeline{
		Source: r.source(c.Key(), &c.Source), Stages: r.stages(&c.Stages), Sink: r.sink(c.Key(), &c.Sink),
		CPUs: cpulist.Format(config.Cores(c.CPUs)), Scheduling: c.Scheduling.Text, Priority: c.Priority.Value,
		Budget: r.budget(&c.Budget), Isolation: nonDefaultText("process", c.Isolation), Degrade: r.degrade(&c.Degrade),
		Utilisation: decimalText(c.Utilisation), Lease: c.Lease.On, Counters: c.Counters.On,
	}
	for _, v := range c.Environment.Sorted() {
		if p.Environment == nil {
			p.Environment = map[string]string{}
		}
		p.Environment[v.Key()] = v.Text
	}
	if c.Nice.IsSet() {
		p.Nice = new(c.Nice.Value)
	}
	p.Start = c.Start.Or(p.Source.Live || pipeline.IsServed(&p.Source))
	p.Sink.Kind = cmp.Or(p.Sink.Kind, pipeline.DefaultSink(&p.Source).Kind)
	takeSentTensors(&p)
	policy, capacity := pipeline.QueueOf(&p)
	p.Queue = plan.PipelineQueue{
		Capacity: c.Queue.Capacity.Or(capacity), Policy: c.Queue.Policy.Or(policy),
		MaxAge: r.nanoseconds(c.Queue.MaxAge, 0), InFlight: c.Queue.InFlight.Value,
	}
	for _, launch := range []config.KernelLaunch{c.Kernels.Preprocess, c.Kernels.ROI} {
		if launch.IsSet() {
			p.Kernels = append(p.Kernels, plan.KernelLaunch{Kernel: launch.Key(), Block: launch.Block.Value})
		}
	}
	if c.Memory.IsSet() {
		p.Memory = &plan.PipelineMemory{Lock: c.Memory.Lock.On, HugePages: c.Memory.Hugepages.On}
	}
	for _, gpu := range c.GPUs.Items {
		p.GPUs = append(p.GPUs, gpu.Value)
	}
	if c.SLO.IsSet() {
		p.SLO = &plan.PipelineSLO{
			LatencyP50: r.nanoseconds(c.SLO.LatencyP50, 0), LatencyP95: r.nanoseconds(c.SLO.LatencyP95, 0), LatencyP99: r.nanoseconds(c.SLO.LatencyP99, 0),
			MinFPS: c.SLO.MinFPS.Value, Memory: r.readBytes(c.SLO.Memory), Energy: int64(c.SLO.Energy.Value),
		}
	}
	return p
}

// takeSentTensors gives a model that takes several inputs of requests, and names none of them, the
// ones with the names of its own inputs.
func takeSentTensors(p *plan.Pipeline) {
	if p.Source.Request == nil || len(p.Source.Request.Inputs) < 2 || len(p.Stages) == 0 {
		return
	}
	m := p.Stages[0].Model
	if m == nil || slices.ContainsFunc(m.Inputs, func(in plan.ModelInput) bool { return in.Tensor != "" }) {
		return
	}
	for _, in := range p.Source.Request.Inputs {
		named := func(i plan.ModelInput) bool { return i.Name == in.Name }
		if !slices.ContainsFunc(m.Inputs, named) {
			m.Inputs = append(m.Inputs, plan.ModelInput{Name: in.Name, From: pipeline.SourceID, Tensor: in.Name})
		}
	}
}

// budget reads the limits of a pipeline, nil when there are none.
func (r *resolver) budget(c *config.PipelineBudget) *plan.PipelineBudget {
	b := plan.PipelineBudget{
		Memory: r.readBytes(c.Memory), GPUMemory: r.readBytes(c.GPUMemory),
		DiskRead: r.rate(c.DiskRead), DiskWrite: r.rate(c.DiskWrite), NetIn: r.rate(c.NetIn), NetOut: r.rate(c.NetOut),
		FreeMemory: r.readBytes(c.KeepFree.Memory), FreeDisk: r.readBytes(c.KeepFree.Disk),
	}
	if b == (plan.PipelineBudget{}) {
		return nil
	}
	return &b
}

// degrade writes the ladder; models and sizes by the name of their stage.
func (r *resolver) degrade(c *config.Degrade) *plan.PipelineDegrade {
	if !c.IsSet() {
		return nil
	}
	d := &plan.PipelineDegrade{
		Ladder:  []plan.DegradeStep{},
		UpDwell: r.nanoseconds(c.UpDwell, 0), MaxDwell: r.nanoseconds(c.MaxDwell, 0),
		Headroom: 1000 * int64(c.Headroom.Value), Power: int64(c.Power.Value),
	}
	for _, s := range c.Ladder.Items {
		step := plan.DegradeStep{FPS: s.FPS.Value}
		for _, m := range s.Models.Sorted() {
			step.Models = append(step.Models, plan.StageModel{Stage: m.Key(), Path: m.Path.Text, SHA256: m.SHA256.Text})
		}
		for _, size := range s.Sizes.Sorted() {
			step.Sizes = append(step.Sizes, plan.StageSize{Stage: size.Key(), Width: size.Width.Value, Height: size.Height.Value})
		}
		d.Ladder = append(d.Ladder, step)
	}
	return d
}

func (r *resolver) sink(name string, c *config.Sink) plan.PipelineSink {
	s := plan.PipelineSink{
		Kind: c.Kind.Text, Path: c.Path.Text, URL: c.URL.Text, Exec: config.Texts(c.Exec),
		Timeout: r.nanoseconds(c.Timeout, 0), Slots: c.Slots.Value,
		SlotSize: int(r.readBytes(c.SlotSize)),
		Capacity: c.Capacity.Value, Policy: c.Policy.Text, Time: r.nanoseconds(c.Time, 0),
	}
	if c.Rotate.IsSet() {
		s.Rotate = &plan.Rotate{Size: r.readBytes(c.Rotate.Size), Keep: c.Rotate.Keep.Or(1)}
	}
	if c.TLS.IsSet() {
		s.TLS = clientTLS(&c.TLS)
	}
	if s.Kind == pipeline.NATSSink.Kind {
		s.NATS = &plan.Delivery{
			Stream: cmp.Or(c.Stream.Text, name), Subject: cmp.Or(c.Subject.Text, "results."+name),
			Records: c.Batch.Records.Value, Delay: r.nanoseconds(c.Batch.Delay, 0), Codec: c.Compression.Codec.Text, Level: c.Compression.Level.Value,
			Size: r.readBytes(c.Retain.Size), Age: r.nanoseconds(c.Retain.Age, 0),
			Outbox: r.readBytes(c.Outbox.Size), Rate: r.rate(c.Outbox.Rate), Full: nonDefaultText(pipeline.DropOldest, c.Full),
		}
	}
	return s
}

func clientTLS(c *config.ClientTLS) *plan.ClientTLS {
	return &plan.ClientTLS{CA: c.CA.Text, Certificate: c.Certificate.Text, Key: c.Key.Text}
}

// resolveCluster reads where results are delivered.
func (r *resolver) resolveCluster() {
	c := &r.c.Cluster
	if !c.IsSet() {
		return
	}
	k := &plan.Cluster{
		Name: c.Name.Text, Embedded: c.Embedded.IsSet(), Listen: c.Embedded.Listen.Text, Plain: c.Embedded.Plain.On, URL: c.URL.Text,
		Credentials: c.Credentials.Text, Domain: c.Domain.Text, Replicas: c.Replicas.Value,
		Store: plan.ClusterStore{Size: r.readBytes(c.Store.Size), Sync: r.nanoseconds(c.Store.Sync, 0)},
	}
	k.Store.Size = cmp.Or(k.Store.Size, pipeline.ClusterSize)
	if c.TLS.IsSet() {
		k.TLS = clientTLS(&c.TLS)
	}
	r.plan.Cluster = k
	r.origins["cluster"] = c.Pos()
}

func (r *resolver) source(name string, c *config.Source) plan.PipelineSource {
	kind, _ := pipeline.SourceOf(c.Kind.Text)
	s := plan.PipelineSource{
		Kind: c.Kind.Text, Path: c.Path.Text, Format: c.Format.Text, Width: c.Width.Value, Height: c.Height.Value,
		Exec: config.Texts(c.Exec), Live: c.Live.Or(kind.Live), Timeout: r.nanoseconds(c.Timeout, 0), Restart: c.Restart.Text,
		Decoders: c.Decoders.Value, Time: r.nanoseconds(c.Time, 0),
		DType: c.DType.Text, Shape: sizes(c.Shape),
	}
	if kind.Device != "" {
		// On the device a command receives the stream.
		s.Kind = kind.Device
		s.Exec = receiverCommand(c, r.nanoseconds(c.Latency, rtspLatency))
	}
	if kind.Serves {
		s.Request = r.request(name, c)
	}
	if !c.FPS.IsSet() && (pipeline.HasFrameRate(&s) || kind.Serves) {
		return s // its header, or its callers, set the rate
	}
	s.FPSNum, s.FPSDen = pipeline.DefaultRate, 1
	if c.FPS.IsSet() {
		num, den, ok := strings.Cut(c.FPS.Text, "/")
		s.FPSNum, _ = strconv.Atoi(num)
		if ok {
			s.FPSDen, _ = strconv.Atoi(den)
		}
	}
	return s
}

// request reads how callers reach the pipeline of a name.
func (r *resolver) request(name string, c *config.Source) *plan.Request {
	q := &plan.Request{
		Model: cmp.Or(c.Model.Text, name), Socket: c.Socket.Text, Everyone: c.Everyone.On, Address: c.Address.Text,
		Plain: c.Plain.On, SharedMemory: c.SharedMemory.On, Tokens: c.Tokens.Text, Limit: c.MaxRequests.Value, Rows: c.MaxRows.Value,
	}
	if c.TLS.IsSet() {
		q.TLS = &plan.TLS{Certificate: c.TLS.Certificate.Text, Key: c.TLS.Key.Text, ClientCA: c.TLS.ClientCA.Text}
	}
	for _, in := range c.Inputs.Sorted() {
		q.Inputs = append(q.Inputs, plan.RequestInput{Name: in.Key(), DType: in.DType.Text, Shape: sizes(in.Shape)})
	}
	return q
}

// rtspLatency is how long GStreamer waits for late packets, in ns. Its own default of
// two seconds suits players.
const rtspLatency = 100_000_000

// receiverCommand is the program that writes the frames of an RTSP stream to its
// standard output. It runs without a shell. The latency is in ns.
func receiverCommand(c *config.Source, latency int64) []string {
	format, _ := pipeline.FormatOf(c.Format.Text)
	formatSize := func(f string) string { return fmt.Sprintf(f, c.Width.Value, c.Height.Value) }
	if c.Via.Text == "ffmpeg" {
		return []string{
			"ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp", "-i", c.URL.Text, "-an",
			"-vf", formatSize("scale=%d:%d"), "-pix_fmt", format.FFmpeg, "-f", "rawvideo", "pipe:1",
		}
	}
	// nvvidconv reads the memory of the module's decoder, and scales.
	return []string{
		"gst-launch-1.0", "-q", "rtspsrc", "location=" + c.URL.Text, "protocols=tcp", "latency=" + strconv.FormatInt(latency/1_000_000, 10), "drop-on-latency=true",
		"!", "decodebin", "!", "nvvidconv", "!", "video/x-raw,format=" + format.GStreamer + formatSize(",width=%d,height=%d"), "!", "fdsink", "sync=false",
	}
}

// stages orders the stages so that each comes after its input; those that could
// come in any order are ordered by name.
func (r *resolver) stages(c *config.Map[config.Stage]) []plan.PipelineStage {
	left := c.Sorted()
	done := map[string]bool{pipeline.SourceID: true}
	var out []plan.PipelineStage
	for len(left) > 0 {
		var rest []*config.Stage
		for _, st := range left {
			if done[st.Input.Text] {
				out = append(out, r.stage(st))
			} else {
				rest = append(rest, st)
			}
		}
		if len(rest) == len(left) {
			r.reportUnordered(rest, append(c.Keys(), pipeline.SourceID))
			return out
		}
		for _, s := range out {
			done[s.ID] = true
		}
		left = rest
	}
	return out
}

// reportUnordered reports what keeps stages from having an order, each once: an input
// that does not exist, or a cycle. Stages that only follow those are correct.
func (r *resolver) reportUnordered(stages []*config.Stage, names []string) {
	report := func(st *config.Stage, message, help string) {
		r.report.Add(diag.Diagnostic{ID: "YT0205", Severity: diag.Error, Pos: st.Input.Pos(), Path: st.Input.FullPath(), Message: message, Help: help})
	}
	inputs := map[string]string{}
	for _, st := range stages {
		if input := st.Input.Text; slices.Contains(names, input) {
			inputs[st.Key()] = input
		} else {
			report(st, "stage "+st.Key()+" takes its input from "+strconv.Quote(input)+", which does not exist", diag.DidYouMean(input, names))
		}
	}
	reported := map[string]bool{}
	for _, st := range stages {
		cycle := findCycle(inputs, st.Key())
		if cycle == nil || reported[st.Key()] {
			continue
		}
		for _, name := range cycle {
			reported[name] = true
		}
		report(st, "stages form a cycle: "+strings.Join(cycle, " takes from "), `let one of them take its input from "source"`)
	}
}

// findCycle follows the inputs from a stage back to it; nil when they do not lead there.
func findCycle(inputs map[string]string, from string) []string {
	cycle := []string{from}
	for name := inputs[from]; name != ""; name = inputs[name] {
		if name == from {
			return append(cycle, from)
		}
		if slices.Contains(cycle, name) {
			return nil
		}
		cycle = append(cycle, name)
	}
	return nil
}

func (r *resolver) stage(c *config.Stage) plan.PipelineStage {
	s := plan.PipelineStage{
		ID: c.Key(), Kind: c.Kind.Text, Input: c.Input.Text, Instances: c.Instances.Value,
		Deadline: r.nanoseconds(c.Deadline, 0), Time: r.nanoseconds(c.Time, 0),
		Device: nonDefaultText("cpu", c.Device), Fallback: nonDefaultText("cpu", c.Fallback),
	}
	switch s.Kind {
	case pipeline.Gate.Kind:
		s.Gate = &plan.Gate{
			Threshold: decimalText(c.Threshold), Area: decimalText(c.Area), Grid: c.Grid.Value,
			MaxAge: r.nanoseconds(c.MaxAge, 0), Repeat: c.Repeat.On,
		}
	case pipeline.Stats.Kind:
		s.Stats = &plan.Stats{Low: decimalText(c.Low), High: decimalText(c.High)}
	case pipeline.Preprocess.Kind:
		s.Preprocess = preprocess(c)
	case pipeline.Model.Kind:
		s.Model = r.model(c)
	case pipeline.Postprocess.Kind:
		s.Post = &plan.Post{
			Kind: c.Decode.Text, Labels: c.Labels.Text, Top: c.Top.Value, Threshold: decimalText(c.Threshold), Head: c.Head.Text,
			IoU: decimalText(c.IoU), Agnostic: c.Agnostic.On, Classes: c.Classes.Value, Prototypes: c.Prototypes.Text,
			Scale: decimalText(c.Scale), Zero: c.Zero.Value,
		}
		if o := c.Outputs; o.IsSet() {
			s.Post.Outputs = &plan.DetectorOutputs{Boxes: o.Boxes.Text, Scores: o.Scores.Text, Classes: o.Classes.Text, Count: o.Count.Text}
		}
	case pipeline.Map.Kind:
		s.Map = &plan.Map{Expressions: config.Texts(c.Expressions), P: decimalTexts(c.P), Q: decimalTexts(c.Q)}
	case pipeline.Match.Kind:
		s.Match = &plan.Match{
			Gallery: c.Gallery.Text, SHA256: c.GallerySHA256.Text, Threshold: decimalText(c.Threshold), Top: c.Top.Value,
			Metric: nonDefaultText(pipeline.Cosine, c.Metric),
		}
	case pipeline.Track.Kind:
		s.Track = &plan.Track{IoU: decimalText(c.IoU), Hits: c.Hits.Value, MaxLost: r.nanoseconds(c.MaxLost, 0), Max: c.Max.Value}
	case pipeline.ROI.Kind:
		s.ROI = roi(c)
	case pipeline.Custom.Kind:
		s.Custom = &plan.Custom{Plugin: c.Plugin.Text, Exec: config.Texts(c.Exec), Options: c.Options.Text, Inside: c.Inside.On, Shape: sizes(c.Shape), DType: c.DType.Text}
	}
	return s
}

func preprocess(c *config.Stage) *plan.Preprocess {
	p := &plan.Preprocess{
		Width: c.Width.Value, Height: c.Height.Value, Pad: c.Pad.Value,
		Fit: c.Fit.Or("stretch"), Layout: c.Layout.Or("nchw"), Color: c.Color.Or("rgb"), DType: c.DType.Or("f32"),
		Mean: channels(c.Mean, "0"), Std: channels(c.Std, "1"), Scale: decimalText(c.Scale), Zero: c.Zero.Value,
	}
	if c.Crop.IsSet() {
		p.Crop = &plan.Crop{X: c.Crop.X.Value, Y: c.Crop.Y.Value, Width: c.Crop.Width.Value, Height: c.Crop.Height.Value}
	}
	return p
}

func roi(c *config.Stage) *plan.ROI {
	p := preprocess(c)
	out := &plan.ROI{
		Width: p.Width, Height: p.Height, Fit: p.Fit, Color: p.Color, Pad: p.Pad, Mean: p.Mean, Std: p.Std,
		Count: c.Count.Or(pipeline.DefaultCrops), Margin: decimalText(c.Margin),
	}
	for _, class := range c.Only.Items {
		out.Only = append(out.Only, class.Value)
	}
	return out
}

func (r *resolver) model(c *config.Stage) *plan.Model {
	m := &plan.Model{
		Path: c.Path.Text, SHA256: c.SHA256.Text, Input: c.InputTensor.Text, Output: c.OutputTensor.Text,
		Threads: c.Threads.Value, Providers: config.Texts(c.Providers), Precision: c.Precision.Text,
		Spinning: c.Spinning.On, NoArena: !c.Arena.Or(true), Workspace: r.readBytes(c.Workspace),
	}
	if e := r.t.Evidence[c.Model.Text]; c.Model.IsSet() && e.Evidence != nil {
		m.Evidence = e.Digest
	}
	if names := config.Texts(c.OutputTensors); len(names) > 0 {
		m.Output, m.Outputs = names[0], names[1:]
	}
	for _, in := range c.Inputs.Sorted() {
		i := plan.ModelInput{Name: in.Key(), From: in.From.Text, Tensor: in.Tensor.Text, Previous: in.Previous.On, DType: in.DType.Text, Shape: sizes(in.Shape)}
		if in.Part.IsSet() {
			i.Part = new(in.Part.Value)
		}
		for _, v := range in.Values.Items {
			i.Values = append(i.Values, decimalText(v))
		}
		m.Inputs = append(m.Inputs, i)
	}
	if c.Ensemble.IsSet() {
		m.Ensemble = &plan.Ensemble{Models: []plan.StageModel{}, Vote: c.Ensemble.Vote.Or("mean")}
		for _, e := range c.Ensemble.Models.Sorted() {
			m.Ensemble.Models = append(m.Ensemble.Models, plan.StageModel{Stage: e.Key(), Path: e.Path.Text, SHA256: e.SHA256.Text})
		}
	}
	if c.Batch.IsSet() {
		m.Batch = &plan.ModelBatch{Buckets: []int{}, Pad: c.Batch.Pad.On, Delay: r.nanoseconds(c.Batch.Delay, 0)}
		for _, size := range c.Batch.Buckets.Items {
			m.Batch.Buckets = append(m.Batch.Buckets, size.Value)
		}
	}
	return m
}

// sizes reads a shape; nil when it is absent.
func sizes(list config.List[config.Int]) []int64 {
	var out []int64
	for _, d := range list.Items {
		out = append(out, int64(d.Value))
	}
	return out
}

// decimalText is a number in plain decimal text, "" when it is absent.
func decimalText(d config.Decimal) string {
	if !d.IsSet() {
		return ""
	}
	return decimal(d.Node())
}

// nonDefaultText returns the text of a field, or "" if it equals the default.
func nonDefaultText(otherwise string, field config.String) string {
	if field.Text == otherwise {
		return ""
	}
	return field.Text
}

// channels reads one value a channel; the default for all three when the list is absent.
func channels(list config.List[config.Decimal], otherwise string) []string {
	if !list.IsSet() {
		return []string{otherwise, otherwise, otherwise}
	}
	return decimalTexts(list)
}

// decimalTexts returns the numbers of a list in plain decimal text, nil when there are none.
func decimalTexts(list config.List[config.Decimal]) []string {
	var out []string
	for _, v := range list.Items {
		out = append(out, decimalText(v))
	}
	return out
}
