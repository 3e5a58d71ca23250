//go:build !cgo

package c

import "unsafe"

// Without cgo there is no backend. The functions exist so that programs compile; only CPU
// and Load can be reached.

// Handles are empty without cgo.
type (
	API    struct{}
	Device struct{}
	Stream struct{}
	Module struct{}
)

func none() Failure {
	return Failure{Code: CodeNoBackend, Msg: "this program was built with CGO_ENABLED=0; build it with a C compiler"}
}

// CPU fails: the CPU backend needs cgo.
func CPU() (*API, Failure) { return nil, none() }

// Load fails: opening a library needs cgo.
func Load(string) (*API, Failure) { return nil, none() }

// Kernels returns nil without cgo.
func Kernels() []Limits { return nil }

// Nothing does nothing.
func Nothing() {}

// ChooseFor fails: the decision is implemented in C.
func ChooseFor(Attributes, uint32, uint32) (Choice, Failure) { return Choice{}, none() }

// Compile fails: opening a library needs cgo.
func Compile(string, string, map[string]string, []string, bool) ([]byte, string, Failure) {
	return nil, "", none()
}

// CheckFaults fails: the parser is implemented in C.
func CheckFaults(string) Failure { return none() }

// Name, BuildID, Caps and Ops describe the backend.
func (a *API) Name() string    { return "" }
func (a *API) BuildID() string { return "" }
func (a *API) Caps() uint32    { return 0 }
func (a *API) Ops() uint64     { return 0 }

// All other methods return the failure of none.
func (s Stream) Submit([]Cmd, uint64) int32                                { return CodeNoBackend }
func (s Stream) Poll(uint64) int32                                         { return CodeNoBackend }
func (s Stream) Why(int32) Failure                                         { return none() }
func (s Stream) Free()                                                     {}
func (a *API) DeviceCount() (int, Failure)                                 { return 0, none() }
func (a *API) DeviceOpen(uint32, uint32, string, uint32) (Device, Failure) { return Device{}, none() }
func (a *API) BufAddress(Device, uint64) (uint64, Failure)                 { return 0, none() }
func (a *API) DeviceInfo(Device) (Info, Failure)                           { return Info{}, none() }
func (a *API) DeviceHealth(Device) Failure                                 { return none() }
func (a *API) DeviceClose(Device) Failure                                  { return none() }
func (a *API) BufAlloc(Device, uint32, uint64, uint64) (Allocation, Failure) {
	return Allocation{}, none()
}
func (a *API) BufFree(Device, uint64) Failure { return none() }
func (a *API) BufRegister(Device, unsafe.Pointer, uint64) (Allocation, Failure) {
	return Allocation{}, none()
}
func (a *API) StreamOpen(Device, uint32, string) (Stream, Failure)   { return Stream{}, none() }
func (a *API) StreamClose(Stream, uint64) Failure                    { return none() }
func (a *API) EventCreate(Device) (uint64, Failure)                  { return 0, none() }
func (a *API) EventDestroy(Device, uint64) Failure                   { return none() }
func (a *API) EventElapsed(Device, uint64, uint64) (uint64, Failure) { return 0, none() }
func (a *API) MemChoose(Device, uint32, uint32) (Choice, Failure)    { return Choice{}, none() }
func (a *API) MemStats(Device) (MemStats, Failure)                   { return MemStats{}, none() }
func (a *API) ModuleLoad(Device, []byte) (Module, Failure)           { return Module{}, none() }
func (a *API) ModuleUnload(Module) Failure                           { return none() }
func (a *API) KernelGet(Module, string) (uint64, Failure)            { return 0, none() }
func (a *API) KernelConfig(Device, string, uint32, uint32) Failure   { return none() }
func (a *API) FaultInject(Device, string) Failure                    { return none() }
