package inference

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/yoctune/yoctune/runtime/serve/inference/protocol"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Limits of the gRPC transport.
const (
	maxMessageHead = 1 << 20 // bytes of a message besides the values of tensors
	typedElement   = 10      // most bytes of an element in a field of its type: a negative number
	maxAsking      = 64      // requests without tensors at once
	streamWindow   = 1 << 20 // bytes that a caller may send before they are read
	pingInterval   = 10 * time.Second
	deadPeer       = time.Minute // without an answer to a ping
)

// GRPC is the transport of the protocol over gRPC.
type GRPC struct {
	protocol.UnimplementedGRPCInferenceServiceServer
	s       *Server
	most    int64         // requests whose messages are in memory at once
	working atomic.Int64  // such requests
	asking  atomic.Int64  // requests without tensors
	message int           // bytes of a request
	ending  chan struct{} // closed when the server shuts down
	end     sync.Once
}

// NewGRPC returns the service of a server.
func NewGRPC(s *Server) *GRPC {
	g := &GRPC{s: s, ending: make(chan struct{})}
	for _, m := range s.Models() {
		// One that is refused by the pipeline still needs a place until it is read.
		g.most += int64(m.Port.Limit()) + 8
		g.message = max(g.message, int(m.maxMessage()))
	}
	return g
}

// maxMessage is the most bytes of a request to the model.
func (m *Model) maxMessage() int64 {
	rows, values := int64(m.Port.Rows()), int64(0)
	sent := false
	for _, in := range m.Port.Inputs() {
		if in.Format != registry.TensorFormat {
			sent = true
			continue
		}
		each := in.DType.Bytes()
		if in.DType != registry.F32 && in.DType != registry.F16 && in.DType != registry.BF16 && in.DType != registry.Bool {
			each = typedElement
		}
		values += in.Bytes() / in.DType.Bytes() * each
	}
	size := rows * values
	if sent {
		size += min(rows*registry.MaxSent, 2*registry.MaxSent)
	}
	return maxMessageHead + size
}

// serve answers requests of a listener until the server is shut down. tokens are those of its front.
func (g *GRPC) serve(l net.Listener, tokens *Tokens) (shutdown func(context.Context) error, failed <-chan error) {
	server := grpc.NewServer(
		grpc.Creds(callerCredentials{}),
		grpc.InTapHandle(func(ctx context.Context, info *tap.Info) (context.Context, error) { return g.admit(ctx, info, tokens) }),
		grpc.MaxRecvMsgSize(g.message),
		grpc.MaxHeaderListSize(maxHeader),
		// More streams than requests are taken, so that those beyond are refused and do not wait.
		grpc.MaxConcurrentStreams(uint32(max(4*g.most, 256))),
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(4*streamWindow),
		grpc.ConnectionTimeout(slowHeader),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleFor, Time: deadPeer, Timeout: deadPeer / 3}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingInterval, PermitWithoutStream: true}),
	)
	protocol.RegisterGRPCInferenceServiceServer(server, g)
	ended := make(chan error, 1)
	go func() {
		err := server.Serve(l)
		if errors.Is(err, grpc.ErrServerStopped) || errors.Is(err, net.ErrClosed) {
			err = nil
		}
		ended <- err
	}()
	return func(ctx context.Context) error {
		g.end.Do(func() { close(g.ending) })
		stopped := make(chan struct{})
		go func() { server.GracefulStop(); close(stopped) }()
		select {
		case <-stopped:
		case <-ctx.Done():
			server.Stop()
		}
		return nil
	}, ended
}

// admit decides about a request by its header, before its message is read.
func (g *GRPC) admit(ctx context.Context, info *tap.Info, tokens *Tokens) (context.Context, error) {
	if err := tokens.Check(strings.Join(info.Header["authorization"], " ")); err != nil {
		return nil, statusError(err)
	}
	switch info.FullMethodName {
	case protocol.GRPCInferenceService_ModelInfer_FullMethodName, protocol.GRPCInferenceService_ModelStreamInfer_FullMethodName:
	default:
		return takePlace(ctx, &g.asking, maxAsking)
	}
	if err := g.s.Ready(); err != nil {
		return nil, statusError(err)
	}
	taken, err := takePlace(ctx, &g.working, g.most)
	if err != nil && len(g.s.names) == 1 { // the header does not name the model
		g.s.models[g.s.names[0]].stats.refuse()
	}
	return taken, err
}

// takePlace counts a request until it has ended, unless there are too many.
func takePlace(ctx context.Context, count *atomic.Int64, limit int64) (context.Context, error) {
	if count.Add(1) > limit {
		count.Add(-1)
		return nil, statusError(Errorf(Full, "the server works on %d requests, and takes no more at the moment", limit))
	}
	context.AfterFunc(ctx, func() { count.Add(-1) })
	return ctx, nil
}

// codeOf are the codes of kinds of errors.
var codeOf = map[Kind]codes.Code{
	Internal: codes.Internal, Invalid: codes.InvalidArgument, NotFound: codes.NotFound, TooLarge: codes.InvalidArgument,
	Full: codes.ResourceExhausted, Expired: codes.DeadlineExceeded, Canceled: codes.Canceled, Unavailable: codes.Unavailable,
	Unimplemented: codes.Unimplemented, Denied: codes.Unauthenticated,
}

func statusError(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codeOf[KindOf(err)], err.Error())
}

// ServerLive reports that the server runs.
func (g *GRPC) ServerLive(context.Context, *protocol.ServerLiveRequest) (*protocol.ServerLiveResponse, error) {
	return &protocol.ServerLiveResponse{Live: true}, nil
}

// ServerReady reports whether the server takes requests.
func (g *GRPC) ServerReady(context.Context, *protocol.ServerReadyRequest) (*protocol.ServerReadyResponse, error) {
	return &protocol.ServerReadyResponse{Ready: g.s.Ready() == nil}, nil
}

// ModelReady reports whether a model takes requests.
func (g *GRPC) ModelReady(_ context.Context, r *protocol.ModelReadyRequest) (*protocol.ModelReadyResponse, error) {
	err := g.s.ModelReady(r.Name, r.Version)
	if err != nil && KindOf(err) != Unavailable {
		return nil, statusError(err)
	}
	return &protocol.ModelReadyResponse{Ready: err == nil}, nil
}

// ServerMetadata describes the server.
func (g *GRPC) ServerMetadata(context.Context, *protocol.ServerMetadataRequest) (*protocol.ServerMetadataResponse, error) {
	m := g.s.Metadata()
	return &protocol.ServerMetadataResponse{Name: m.Name, Version: m.Version, Extensions: m.Extensions}, nil
}

// ModelMetadata describes a model.
func (g *GRPC) ModelMetadata(_ context.Context, r *protocol.ModelMetadataRequest) (*protocol.ModelMetadataResponse, error) {
	m, err := g.s.ModelMetadata(r.Name, r.Version)
	if err != nil {
		return nil, statusError(err)
	}
	convert := func(list []TensorMetadata) (out []*protocol.ModelMetadataResponse_TensorMetadata) {
		for _, t := range list {
			out = append(out, &protocol.ModelMetadataResponse_TensorMetadata{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape})
		}
		return out
	}
	return &protocol.ModelMetadataResponse{Name: m.Name, Versions: m.Versions, Platform: m.Platform, Inputs: convert(m.Inputs), Outputs: convert(m.Outputs)}, nil
}

// ModelConfig describes a model as Triton's configuration does.
func (g *GRPC) ModelConfig(_ context.Context, r *protocol.ModelConfigRequest) (*protocol.ModelConfigResponse, error) {
	c, err := g.s.Config(r.Name, r.Version)
	if err != nil {
		return nil, statusError(err)
	}
	out := &protocol.ModelConfig{Name: c.Name, Platform: c.Platform, Backend: c.Backend, MaxBatchSize: int32(c.MaxBatchSize)}
	for _, t := range c.Input {
		out.Input = append(out.Input, &protocol.ModelInput{Name: t.Name, DataType: protocol.DataType(protocol.DataType_value[t.DataType]), Dims: t.Dims})
	}
	for _, t := range c.Output {
		out.Output = append(out.Output, &protocol.ModelOutput{Name: t.Name, DataType: protocol.DataType(protocol.DataType_value[t.DataType]), Dims: t.Dims})
	}
	if b := c.DynamicBatching; b != nil {
		d := &protocol.ModelDynamicBatching{PriorityLevels: uint64(b.PriorityLevels), DefaultPriorityLevel: uint64(b.DefaultPriority)}
		for _, n := range b.Preferred {
			d.PreferredBatchSize = append(d.PreferredBatchSize, int32(n))
		}
		out.SchedulingChoice = &protocol.ModelConfig_DynamicBatching{DynamicBatching: d}
	}
	return &protocol.ModelConfigResponse{Config: out}, nil
}

// ModelStatistics returns the statistics of a model, or of all.
func (g *GRPC) ModelStatistics(_ context.Context, r *protocol.ModelStatisticsRequest) (*protocol.ModelStatisticsResponse, error) {
	all, err := g.s.Statistics(r.Name, r.Version)
	if err != nil {
		return nil, statusError(err)
	}
	convert := func(d Duration) *protocol.StatisticDuration {
		return &protocol.StatisticDuration{Count: d.Count, Ns: d.NS}
	}
	out := &protocol.ModelStatisticsResponse{}
	for _, m := range all {
		i := m.Infer
		s := &protocol.ModelStatistics{
			Name: m.Name, Version: m.Version, LastInference: m.Last, InferenceCount: m.Inferences, ExecutionCount: m.Executions,
			InferenceStats: &protocol.InferStatistics{
				Success: convert(i.Success), Fail: convert(i.Fail), Queue: convert(i.Queue), ComputeInput: convert(i.ComputeInput),
				ComputeInfer: convert(i.ComputeInfer), ComputeOutput: convert(i.ComputeOut), CacheHit: convert(i.CacheHit), CacheMiss: convert(i.CacheMiss),
			},
		}
		for _, b := range m.Batches {
			s.BatchStats = append(s.BatchStats, &protocol.InferBatchStatistics{
				BatchSize: b.Size, ComputeInput: convert(b.ComputeInput), ComputeInfer: convert(b.ComputeInfer), ComputeOutput: convert(b.ComputeOut),
			})
		}
		out.ModelStats = append(out.ModelStats, s)
	}
	return out, nil
}

// RepositoryIndex lists the models.
func (g *GRPC) RepositoryIndex(_ context.Context, r *protocol.RepositoryIndexRequest) (*protocol.RepositoryIndexResponse, error) {
	out := &protocol.RepositoryIndexResponse{}
	for _, m := range g.s.Index(r.Ready) {
		out.Models = append(out.Models, &protocol.RepositoryIndexResponse_ModelIndex{Name: m.Name, Version: m.Version, State: m.State, Reason: m.Reason})
	}
	return out, nil
}

// RepositoryModelLoad is refused.
func (g *GRPC) RepositoryModelLoad(context.Context, *protocol.RepositoryModelRequest) (*protocol.Empty, error) {
	return nil, statusError(errRepository)
}

// RepositoryModelUnload is refused.
func (g *GRPC) RepositoryModelUnload(context.Context, *protocol.RepositoryModelRequest) (*protocol.Empty, error) {
	return nil, statusError(errRepository)
}

// SystemSharedMemoryStatus lists the caller's regions.
func (g *GRPC) SystemSharedMemoryStatus(ctx context.Context, r *protocol.SharedMemoryName) (*protocol.SystemSharedMemoryStatusResponse, error) {
	all, err := g.s.o.Shared.Status(callerOf(ctx), r.Name)
	if err != nil {
		return nil, statusError(err)
	}
	out := &protocol.SystemSharedMemoryStatusResponse{Regions: map[string]*protocol.SystemSharedMemoryStatusResponse_RegionStatus{}}
	for _, m := range all {
		out.Regions[m.Name] = &protocol.SystemSharedMemoryStatusResponse_RegionStatus{Name: m.Name, Key: m.Key, Offset: m.Offset, ByteSize: m.Size}
	}
	return out, nil
}

// SystemSharedMemoryRegister registers a region of the caller.
func (g *GRPC) SystemSharedMemoryRegister(ctx context.Context, r *protocol.SystemSharedMemoryRegisterRequest) (*protocol.Empty, error) {
	err := g.s.o.Shared.Register(callerOf(ctx), Region{Name: r.Name, Key: r.Key, Offset: r.Offset, Size: r.ByteSize})
	return &protocol.Empty{}, statusError(err)
}

// SystemSharedMemoryUnregister forgets a region of the caller, or all.
func (g *GRPC) SystemSharedMemoryUnregister(ctx context.Context, r *protocol.SharedMemoryName) (*protocol.Empty, error) {
	return &protocol.Empty{}, statusError(g.s.o.Shared.Unregister(callerOf(ctx), r.Name))
}

// CudaSharedMemoryStatus is refused.
func (g *GRPC) CudaSharedMemoryStatus(context.Context, *protocol.SharedMemoryName) (*protocol.Empty, error) {
	return nil, statusError(errCUDA)
}

// CudaSharedMemoryRegister is refused.
func (g *GRPC) CudaSharedMemoryRegister(context.Context, *protocol.SharedMemoryName) (*protocol.Empty, error) {
	return nil, statusError(errCUDA)
}

// CudaSharedMemoryUnregister is refused.
func (g *GRPC) CudaSharedMemoryUnregister(context.Context, *protocol.SharedMemoryName) (*protocol.Empty, error) {
	return nil, statusError(errCUDA)
}

// ModelInfer answers a request.
func (g *GRPC) ModelInfer(ctx context.Context, r *protocol.ModelInferRequest) (*protocol.ModelInferResponse, error) {
	out, err := g.infer(ctx, r)
	return out, statusError(err)
}

func (g *GRPC) infer(ctx context.Context, r *protocol.ModelInferRequest) (*protocol.ModelInferResponse, error) {
	// The message is in memory until its answer is sent.
	size := int64(0)
	for _, raw := range r.RawInputContents {
		size += int64(len(raw))
	}
	if !g.s.bodies.take(size) {
		if m, err := g.s.Find(r.ModelName, r.ModelVersion); err == nil {
			m.stats.refuse()
		}
		return nil, Errorf(Full, "the requests in memory have %d MiB, and no more are taken at the moment", g.s.bodies.limit>>20)
	}
	defer g.s.bodies.give(size)
	req, err := readMessage(r)
	if err != nil {
		return nil, err
	}
	out, err := g.s.Infer(withCaller(ctx, callerOf(ctx)), req)
	if err != nil {
		return nil, err
	}
	return writeMessage(out)
}

// ModelStreamInfer answers the requests of a stream in their order.
func (g *GRPC) ModelStreamInfer(stream protocol.GRPCInferenceService_ModelStreamInferServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	requests := make(chan *protocol.ModelInferRequest)
	var ended error
	go func() {
		defer close(requests)
		for {
			r, err := stream.Recv()
			if err != nil {
				ended = err
				return
			}
			select {
			case requests <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	answers := make(chan chan *protocol.ModelStreamInferResponse, g.most)
	sent := make(chan error, 1)
	go func() {
		var err error
		for a := range answers {
			if m := <-a; err == nil {
				if err = stream.Send(m); err != nil {
					cancel()
				}
			}
		}
		sent <- err
	}()
	var stop error
	for running := true; running; {
		select {
		case r, ok := <-requests:
			if !ok {
				if !errors.Is(ended, io.EOF) {
					stop = ended
				}
				running = false
				continue
			}
			a := make(chan *protocol.ModelStreamInferResponse, 1)
			answers <- a // waits while too many are in work: the stream is not read further
			go func() {
				out, err := g.infer(ctx, r)
				if err != nil {
					// The id belongs to the request that failed.
					a <- &protocol.ModelStreamInferResponse{ErrorMessage: err.Error(), InferResponse: &protocol.ModelInferResponse{ModelName: r.ModelName, Id: r.Id}}
					return
				}
				a <- &protocol.ModelStreamInferResponse{InferResponse: out}
			}()
		case <-g.ending:
			stop, running = statusError(errStops), false
		case <-ctx.Done():
			stop, running = status.FromContextError(ctx.Err()).Err(), false
		}
	}
	close(answers)
	return errors.Join(stop, <-sent)
}

// callerCredentials accept connections whose caller [Front.Split] has found.
type callerCredentials struct{}

// callerInfo is who sent a request.
type callerInfo struct{ Caller }

// AuthType is part of an interface.
func (callerInfo) AuthType() string { return "yoctune" }

// ServerHandshake returns the connection as it is.
func (callerCredentials) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	own, ok := c.(*callerConn)
	if !ok {
		return nil, nil, fmt.Errorf("a connection of type %T", c)
	}
	return c, callerInfo{own.caller}, nil
}

// ClientHandshake is part of an interface, and never called.
func (callerCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("not a client")
}

// Info is part of an interface.
func (callerCredentials) Info() credentials.ProtocolInfo { return credentials.ProtocolInfo{} }

// Clone is part of an interface.
func (callerCredentials) Clone() credentials.TransportCredentials { return callerCredentials{} }

// OverrideServerName is part of an interface.
func (callerCredentials) OverrideServerName(string) error { return nil }

// callerOf returns who sent a request by gRPC.
func callerOf(ctx context.Context) Caller {
	if p, ok := peer.FromContext(ctx); ok {
		if c, ok := p.AuthInfo.(callerInfo); ok {
			return c.Caller
		}
	}
	return Caller{}
}
