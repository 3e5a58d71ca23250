package worker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/core/tune"
	"github.com/yoctune/yoctune/runtime/engine/ort"
	"github.com/yoctune/yoctune/schema/fuse"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Files that a worker inherits.
const (
	fdControl = 3 + iota
	fdMemory
	fdAlive // a pipe whose other end only the parent holds
)

// Exit codes of a worker.
const (
	exitParent   = 0  // the parent has exited
	exitStart    = 70 // the start failed; the report has the reason
	exitSticky   = 71 // sticky device error
	exitLost     = 72 // the device is lost
	exitProtocol = 73 // invalid message
)

// oomScore makes the OOM killer end the worker before the pipeline, because the worker can
// be restarted.
const oomScore = 800

// config is the configuration that the parent sends to a worker.
type config struct {
	Device  core.Options
	Bytes   int
	Lanes   int
	Library string
	Models  []Model
	Chains  [][]string
	Access  Access
	Tune    []core.Preprocess
	Cache   string
}

// startReport is the description of a worker, or the error of its start.
type startReport struct {
	Device core.Info
	Access Access
	Models []ModelState
	Memory core.Memory
	Error  string
}

// server is the state of a worker process.
type server struct {
	config  config
	control []byte
	memory  []byte
	dev     *core.Device
	shared  *core.Buffer // registered shared memory; nil with AccessCopied
	shadow  *core.Buffer // the device's copy of it; nil with AccessDirect
	access  Access
	base    uintptr          // of the device's memory, for models
	gpu     int              // of models on base: the CUDA device, or ort.HostMemory
	byCPU   [2]atomic.Uint64 // bytes that the CPU copied to the device's memory, and back
	rt      *ort.Runtime
	models  []*ort.Session
	chains  []*core.Fused
	exit    chan int
}

var errNoParent = errors.New("started without a parent; yoctuned starts workers itself")

// Serve runs the worker and returns its exit code. It runs until the parent exits or the
// device fails.
func Serve() int {
	// Ctrl-C and systemd signal both parent and worker. The parent decides when to stop.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	s := &server{exit: make(chan int, 1)}
	if err := s.mapMemory(); err != nil {
		fmt.Fprintf(os.Stderr, "worker: %v\n", err)
		return 1
	}
	go s.exitWithParent()
	h := headerAt(s.control)
	hi, err := s.start()
	if err != nil {
		s.writeReport(startReport{Error: err.Error()})
		ringBell(&h.state, stateFailed)
		// The parent kills the worker after reading the report. Exiting now could hide it.
		time.Sleep(5 * time.Second)
		return exitStart
	}
	for n := range s.config.Lanes {
		go s.serveLane(n)
	}
	s.writeReport(hi)
	ringBell(&h.state, stateReady)
	// The kernel cleans up. The device may not respond any more.
	return <-s.exit
}

// exitWithParent exits when the parent closes the pipe.
func (s *server) exitWithParent() {
	var b [1]byte
	for {
		n, err := unix.Read(fdAlive, b[:])
		if err == unix.EINTR || n > 0 {
			continue
		}
		os.Exit(exitParent)
	}
}

// mapMemory limits the process and maps the memory shared with the parent.
func (s *server) mapMemory() error {
	// Dumping the core of a process with mapped GPU memory delays its end by seconds.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(oomScore)), 0) // best effort: /proc may be missing
	for fd := fdControl; fd <= fdAlive; fd++ {
		unix.CloseOnExec(fd)
	}
	var pipe, st unix.Stat_t
	err := errors.Join(unix.Fstat(fdAlive, &pipe), unix.Fstat(fdControl, &st))
	if err != nil || pipe.Mode&unix.S_IFMT != unix.S_IFIFO || st.Size < int64(controlBytes(1)) || st.Size > int64(controlBytes(MaxLanes)) {
		return errNoParent
	}
	if s.control, err = mapShared(fdControl, int(st.Size), unix.MAP_POPULATE); err != nil {
		return fmt.Errorf("map control memory: %w", err)
	}
	h := headerAt(s.control)
	if h.magic != wireMagic || h.version != wireVersion || h.config > textBytes || controlBytes(int(h.lanes)) != len(s.control) {
		return errNoParent
	}
	if err := json.Unmarshal(configOf(s.control)[:h.config], &s.config); err != nil {
		return fmt.Errorf("parse configuration: %w", err)
	}
	if s.memory, err = mapShared(fdMemory, s.config.Bytes, unix.MAP_POPULATE); err != nil {
		return fmt.Errorf("map frame memory: %w", err)
	}
	return nil
}

func (s *server) writeReport(h startReport) {
	b, err := json.Marshal(h)
	if err != nil || len(b) > textBytes {
		b = []byte(`{"Error":"the start report cannot be encoded"}`)
	}
	copy(answerOf(s.control), b)
	atomic.StoreUint32(&headerAt(s.control).answer, uint32(len(b)))
}

// start opens the device and loads the models.
func (s *server) start() (hi startReport, err error) {
	// CUDA contexts are bound to threads.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if s.dev, err = core.Open(s.config.Device); err != nil {
		return hi, err
	}
	s.tuneKernels()
	if err := s.registerMemory(); err != nil {
		return hi, err
	}
	if hi.Models, err = s.loadModels(); err != nil {
		return hi, err
	}
	if err := s.compileChains(); err != nil {
		return hi, err
	}
	hi.Access = s.access
	if hi.Device, err = s.dev.Info(); err != nil {
		return hi, err
	}
	hi.Memory, err = s.dev.Memory()
	return hi, err
}

// loadModels opens a session for each model and returns their states.
func (s *server) loadModels() ([]ModelState, error) {
	if len(s.config.Models) == 0 {
		return nil, nil
	}
	path, err := ort.Find(s.config.Library)
	if err != nil {
		return nil, err
	}
	if s.rt, err = ort.Open(path); err != nil {
		return nil, err
	}
	var states []ModelState
	for _, m := range s.config.Models {
		o := ort.Options{
			GPU: s.config.Device.Index, Threads: m.Threads, Inputs: m.Inputs, Output: m.Output, More: m.More, Spinning: m.Spinning, NoArena: m.NoArena, GPUMemory: m.GPUMemory, Providers: m.Providers,
		}
		o.Check = func(b []byte) error {
			if sum := sha256.Sum256(b); m.SHA256 != "" && hex.EncodeToString(sum[:]) != m.SHA256 {
				return errors.New("the model file has changed")
			}
			return nil
		}
		o.Engine = func() (string, error) {
			if m.Engine == "" {
				return "", errors.New(m.NoEngine)
			}
			return m.Engine, nil
		}
		session, err := s.rt.NewSession(m.Path, o)
		if err != nil {
			return nil, err
		}
		s.models = append(s.models, session)
		states = append(states, ModelState{session.Provider(), session.Missing()})
	}
	return states, nil
}

// cacheDir is where compiled kernels and launch configurations are kept.
func (s *server) cacheDir() string { return cmp.Or(s.config.Cache, core.CacheDir) }

// compileChains compiles the chains of map stages.
func (s *server) compileChains() error {
	for _, expressions := range s.config.Chains {
		chain, err := fuse.Parse(fuse.F32, fuse.F32, expressions...)
		if err != nil {
			return err
		}
		f, err := s.dev.Fuse(chain, core.OpenCache(s.cacheDir()))
		if err != nil {
			return err
		}
		s.chains = append(s.chains, f)
	}
	return nil
}

// tuneKernels sets the fastest launch configurations. A failure affects only speed.
func (s *server) tuneKernels() {
	if len(s.config.Tune) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	t, err := tune.New(s.dev, core.OpenCache(s.cacheDir()))
	for i := 0; err == nil && i < len(s.config.Tune); i++ {
		_, err = t.Preprocess(ctx, s.config.Tune[i])
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "worker: using built-in launch configurations: %v\n", err)
	}
}

// registerMemory makes the shared memory accessible to the device, in the configured way or the
// best available one.
func (s *server) registerMemory() error {
	info, err := s.dev.Info()
	if err != nil {
		return err
	}
	s.access = s.config.Access
	if s.access != AccessCopied {
		s.shared, err = s.dev.Register(s.memory)
		if err != nil && !errors.Is(err, core.ErrNotSupported) {
			return err
		}
	}
	switch {
	case s.access != "" && s.access != AccessCopied && s.shared == nil:
		return fmt.Errorf("access %s: %w", s.access, err)
	case s.access == "":
		s.access = AccessFor(info.Backend, info.Integrated, s.shared != nil)
	}
	switch s.access {
	case AccessDirect:
	case AccessStaged:
		s.shadow, err = s.dev.Alloc(len(s.memory), core.MemDevice)
	case AccessCopied:
		s.shadow, err = s.dev.Alloc(len(s.memory), core.MemMapped)
	default:
		err = fmt.Errorf("access %q: %w", s.access, core.ErrInvalid)
	}
	if err != nil {
		return err
	}
	if s.gpu = ort.HostMemory; info.Backend == core.CUDA {
		s.gpu = s.config.Device.Index
	}
	s.base, err = s.device().Address()
	return err
}

// device returns the memory that kernels and models on the device use.
func (s *server) device() *core.Buffer {
	if s.access == AccessDirect {
		return s.shared
	}
	return s.shadow
}

// moved returns what was copied since the start.
func (s *server) moved() copied {
	c, err := s.dev.Copied()
	if err != nil { // closed: the process ends
		return copied{}
	}
	return copied{toDevice: c.ToDevice + s.byCPU[0].Load(), toHost: c.ToHost + s.byCPU[1].Load(), onDevice: c.OnDevice}
}

// graceTime is how long the worker waits for the device after the parent's limit.
const graceTime = time.Second

// laneServer is the state of one lane's thread.
type laneServer struct {
	s       *server
	lane    *lane
	stream  *core.Stream
	list    *core.List
	before  *core.List // copies in
	after   *core.List // copies out
	out     []core.Use // regions of the shared memory that the list writes
	tensors map[placedTensor]*ort.Tensor
	bound   map[inferMessage]*ort.Binding
	until   deadline
}

// serveLane answers the messages of lane n.
func (s *server) serveLane(n int) {
	runtime.LockOSThread()
	stream, err := s.dev.OpenStream(core.StreamOptions{Name: "lane" + strconv.Itoa(n)})
	v := &laneServer{s: s, lane: laneOf(s.control, n), tensors: map[placedTensor]*ort.Tensor{}, bound: map[inferMessage]*ort.Binding{}}
	if err == nil {
		v.stream, v.list, v.before, v.after = stream, stream.List(), stream.List(), stream.List()
	}
	last := uint32(0)
	for {
		bell := atomic.LoadUint32(&v.lane.req.bell)
		if bell == last {
			futexWait(&v.lane.req.bell, last, -1)
			continue
		}
		last = bell
		req := &v.lane.ownReq
		*req = *v.lane.req
		if req.bytes > uint32(len(v.lane.room)) || req.crc != req.sum(v.lane.room[:req.bytes]) || uint32(req.seq) != bell {
			s.exitWith(exitProtocol)
			return
		}
		var out []byte
		began := time.Now()
		if err == nil {
			out, err = v.executeMessage(req.op, v.lane.room[:req.bytes])
		}
		if sticky := v.writeAnswer(req, bell, out, err, time.Since(began)); sticky {
			code := exitSticky
			if core.Code(v.lane.ownAns.code) == codeLost {
				code = exitLost
			}
			// Leave the parent time to read the answer and kill the worker.
			time.Sleep(100 * time.Millisecond)
			s.exitWith(code)
			return
		}
		if v.stream != nil {
			err = nil
		}
	}
}

// writeAnswer writes the answer to a message. It reports whether the device has failed.
func (v *laneServer) writeAnswer(req *request, bell uint32, out []byte, err error, took time.Duration) (sticky bool) {
	a := &v.lane.ownAns
	*a = answer{seq: req.seq, service: int64(took), copied: v.s.moved()}
	var ce *core.Error
	switch {
	case err == nil:
		a.bytes = uint32(copy(v.lane.room, out))
	case errors.As(err, &ce):
		a.code, a.native = int32(ce.Code), int32(ce.Native)
		sticky = ce.Sticky
		copy(a.msg[:len(a.msg)-1], ce.Msg)
	default:
		a.code = codeOf(err)
		copy(a.msg[:len(a.msg)-1], err.Error())
	}
	if health := v.s.dev.Health(); errors.As(health, &ce) && ce.Sticky {
		sticky = true
		if a.code == 0 {
			a.code, a.bytes = int32(ce.Code), 0
			copy(a.msg[:len(a.msg)-1], ce.Msg)
		}
	}
	if sticky {
		a.sticky = 1
	}
	a.crc = a.sum(v.lane.room[:a.bytes])
	to := v.lane.ans
	a.bell = atomic.LoadUint32(&to.bell)
	*to = *a
	ringBell(&to.bell, bell)
	return sticky
}

// codeLost is YT_E_DEVICE_LOST.
const codeLost = core.Code(5)

// codeOf returns the code of an error that is not a *core.Error.
func codeOf(err error) int32 {
	const invalid, oom, timeout, internal = 1, 2, 4, 13
	switch {
	case errors.Is(err, core.ErrInvalid), errors.Is(err, ort.ErrShape):
		return invalid
	case errors.Is(err, core.ErrOOM), ort.OutOfMemory(err):
		return oom
	case errors.Is(err, core.ErrTimeout):
		return timeout
	}
	return internal
}

func (v *laneServer) executeMessage(o op, room []byte) ([]byte, error) {
	switch o {
	case opRun:
		return nil, v.runList(room)
	case opInfer:
		return nil, v.runModel(room)
	case opInject:
		return nil, v.s.dev.InjectFaults(string(room))
	}
	return nil, fmt.Errorf("unknown message %d: %w", o, core.ErrInvalid)
}

// waitForDevice waits for the device. If the work does not end, the worker exits: unfinished work
// must not interfere with the next list.
func (v *laneServer) waitForDevice() error {
	v.until = deadline{context.Background(), time.Now().Add(time.Duration(v.lane.ownReq.limit) + graceTime)}
	err := v.stream.Wait(&v.until)
	if errors.Is(err, core.ErrTimeout) {
		v.s.exitWith(exitSticky)
	}
	return err
}

// deadline is a context with a deadline and without a timer.
type deadline struct {
	context.Context
	at time.Time
}

func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

func (d *deadline) Err() error {
	if time.Now().Before(d.at) {
		return nil
	}
	return context.DeadlineExceeded
}

// exitWith makes Serve return an exit code. Only the first call has an effect.
func (s *server) exitWith(code int) {
	select {
	case s.exit <- code:
	default:
	}
}

// runList runs a list of commands. If the device cannot access the shared memory in place, it
// copies the data before and after.
func (v *laneServer) runList(encoded []byte) error {
	v.before.Reset()
	v.after.Reset()
	v.out = v.out[:0]
	if err := v.list.Replay(encoded, v.resolveRegion, v.s.chains...); err != nil {
		return err
	}
	if err := v.runLists(v.before, v.list, v.after); err != nil {
		return err
	}
	for _, u := range v.out {
		if v.s.access == AccessCopied {
			v.move(nil, u.Off, u.Len, false)
		}
	}
	return nil
}

// runLists runs the lists that have commands, in order, and waits for the device.
func (v *laneServer) runLists(lists ...*core.List) error {
	ran := false
	for _, l := range lists {
		if l.Len() == 0 {
			continue
		}
		ran = true
		if err := l.Submit(); err != nil {
			return err
		}
	}
	if !ran {
		return nil
	}
	return v.waitForDevice()
}

// move copies bytes of the shared memory to the device's memory, or back: the device by commands of
// the list, or the CPU at once.
func (v *laneServer) move(list *core.List, off, n int, toDevice bool) {
	s := v.s
	switch s.access {
	case AccessStaged:
		to, from := s.shadow.At(off, n), s.shared.At(off, n)
		if !toDevice {
			to, from = from, to
		}
		list.Copy(to, from)
	case AccessCopied:
		to, from, by := s.shadow.Bytes()[off:off+n], s.memory[off:off+n], 0
		if !toDevice {
			to, from, by = from, to, 1
		}
		s.byCPU[by].Add(uint64(copy(to, from)))
	}
}

// resolveRegion translates a region of a list to one of the device.
func (v *laneServer) resolveRegion(id uint64, u core.Use) (core.Region, error) {
	s := v.s
	if id != idShared && id != idResident {
		return core.Region{}, fmt.Errorf("unknown buffer %d: %w", id, core.ErrInvalid)
	}
	if id == idResident || s.access == AccessDirect {
		return s.device().At(u.Off, u.Len), nil
	}
	if u.Off > len(s.memory) || u.Len > len(s.memory)-u.Off {
		return core.Region{}, fmt.Errorf("bytes %d to %d are outside the shared memory of %d bytes: %w", u.Off, u.Off+u.Len, len(s.memory), core.ErrInvalid)
	}
	shadow := s.shadow.At(u.Off, u.Len)
	if s.access == AccessStaged {
		if u.Write {
			v.move(v.after, u.Off, u.Len, false)
		}
	}
	if u.Read && !v.wroteBefore(u) {
		v.move(v.before, u.Off, u.Len, true)
	}
	if u.Write {
		v.out = append(v.out, u)
	}
	return shadow, nil
}

// wroteBefore reports whether an earlier command of the list wrote the region, so that the
// shared memory has outdated content.
func (v *laneServer) wroteBefore(u core.Use) bool {
	for _, o := range v.out {
		if u.Off >= o.Off && u.Off+u.Len <= o.Off+o.Len {
			return true
		}
	}
	return false
}

// tensorKey identifies a tensor by its offset, type and shape.
type tensorKey struct {
	off      uint64
	dtype    uint64 // of package registry
	dims     uint64
	shape    [maxDims]int64
	resident uint64 // 1: in the device's memory, see Tensor
}

// placedTensor is a tensor in the memory that a model uses: the device's, or with host the shared
// memory.
type placedTensor struct {
	tensorKey
	host bool
}

// maxTensors limits the cached tensors and bindings of a lane. Most pools of frames need fewer; with
// more the lane begins again.
const maxTensors = 8192

// size returns the bytes of a tensor that lies in a memory of the given size.
func (k *tensorKey) size(memory int) (int, error) {
	if k.dims > maxDims || k.resident > 1 || k.dtype >= uint64(len(registry.DTypes())) {
		return 0, fmt.Errorf("tensor of %d dimensions and element type %d: %w", k.dims, k.dtype, core.ErrInvalid)
	}
	n := uint64(registry.DType(k.dtype).Bytes())
	for _, d := range k.shape[:k.dims] {
		if d < 1 || uint64(d) > uint64(memory) || n > uint64(memory) {
			return 0, fmt.Errorf("tensor of invalid shape %v: %w", k.shape[:k.dims], core.ErrInvalid)
		}
		n *= uint64(d)
	}
	if k.off > uint64(memory) || n > uint64(memory)-k.off {
		return 0, fmt.Errorf("tensor of %d bytes at offset %d is outside the shared memory of %d bytes: %w", n, k.off, memory, core.ErrInvalid)
	}
	return int(n), nil
}

// cachedTensor returns the cached tensor of a key, or creates it.
func (v *laneServer) cachedTensor(k tensorKey, host bool) (*ort.Tensor, error) {
	k.resident = 0 // the same memory
	if t := v.tensors[placedTensor{k, host}]; t != nil {
		return t, nil
	}
	n, err := k.size(len(v.s.memory))
	switch {
	case err != nil:
		return nil, err
	case len(v.tensors) >= maxTensors:
		return nil, fmt.Errorf("%d tensors are in use: %w", len(v.tensors), core.ErrInvalid)
	}
	var t *ort.Tensor
	if dtype, shape := ort.DType(registry.DType(k.dtype).ONNX()), k.shape[:k.dims]; host {
		t, err = v.s.rt.NewTensorOver(dtype, shape, v.s.memory[k.off:][:n:n])
	} else {
		t, err = v.s.rt.NewTensorAt(dtype, shape, v.s.base+uintptr(k.off), v.s.gpu)
	}
	if err == nil {
		v.tensors[placedTensor{k, host}] = t
	}
	return t, err
}

// runsOnHost reports whether a model runs on the CPU although the device is a GPU.
func (s *server) runsOnHost(model uint32) bool {
	return s.gpu != ort.HostMemory && s.models[model].Provider() == ort.CPU
}

// runModel runs a model on tensors in the memory that it uses. Tensors of the other memory are
// copied before and after.
func (v *laneServer) runModel(room []byte) error {
	var m inferMessage
	if len(room) != len(bytesOf(&m)) {
		return fmt.Errorf("infer message of %d bytes: %w", len(room), core.ErrInvalid)
	}
	copy(bytesOf(&m), room)
	b := v.bound[m]
	if b == nil {
		if len(v.bound) >= maxTensors || len(v.tensors) > maxTensors-16 { // a run has fewer tensors
			v.forgetBindings()
		}
		var err error
		if b, err = v.bindModel(m); err != nil {
			return err
		}
		v.bound[m] = b
	}
	host := v.s.runsOnHost(m.model)
	v.before.Reset()
	v.after.Reset()
	for i := range m.ins[:m.inputs] {
		if err := v.moveTensor(v.before, &m.ins[i], host, !host); err != nil {
			return err
		}
	}
	if err := v.runLists(v.before); err != nil {
		return err
	}
	if err := b.Run(); err != nil {
		return err
	}
	for i := range m.outs[:m.outputs] {
		if err := v.moveTensor(v.after, &m.outs[i], host, host); err != nil {
			return err
		}
	}
	return v.runLists(v.after)
}

// forgetBindings closes the lane's bindings and tensors.
func (v *laneServer) forgetBindings() {
	for _, b := range v.bound {
		b.Close()
	}
	for _, t := range v.tensors {
		t.Close()
	}
	clear(v.bound)
	clear(v.tensors)
}

// moveTensor copies a tensor that is not where a model reads or writes it. host is where the model
// runs.
func (v *laneServer) moveTensor(list *core.List, k *tensorKey, host, toDevice bool) error {
	if (k.resident == 0) == host {
		return nil
	}
	n, err := k.size(len(v.s.memory))
	if err == nil {
		v.move(list, int(k.off), n, toDevice)
	}
	return err
}

// bindModel binds a model to the tensors of a message.
func (v *laneServer) bindModel(m inferMessage) (*ort.Binding, error) {
	if int64(m.model) >= int64(len(v.s.models)) || m.inputs < 1 || m.inputs > MaxTensors || m.outputs < 1 || m.outputs > MaxTensors || len(v.bound) >= maxTensors {
		return nil, fmt.Errorf("invalid run of model %d of %d with %d inputs and %d outputs: %w", m.model, len(v.s.models), m.inputs, m.outputs, core.ErrInvalid)
	}
	host := v.s.runsOnHost(m.model)
	var all []*ort.Tensor
	for _, k := range append(m.ins[:m.inputs:m.inputs], m.outs[:m.outputs]...) {
		t, err := v.cachedTensor(k, host)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return v.s.models[m.model].Bind(all[:m.inputs], all[m.inputs:]...)
}
