//go:build !cgo

package c

// Without cgo there is no backend; the functions below exist so that programs
// compile, and cannot be reached.

// API, Device and Stream are empty without cgo.
type (
	API    struct{}
	Device struct{}
	Stream struct{}
)

func none() Failure {
	return Failure{Code: CodeNoBackend, Msg: "this program was built with CGO_ENABLED=0; build it with a C compiler"}
}

// CPU fails: the CPU backend is C.
func CPU() (*API, Failure) { return nil, none() }

// Load fails: opening a library needs C.
func Load(string) (*API, Failure) { return nil, none() }

// Name, BuildID and Caps describe the backend.
func (a *API) Name() string    { return "" }
func (a *API) BuildID() string { return "" }
func (a *API) Caps() uint32    { return 0 }

// The rest fails with what none says.
func (a *API) DeviceCount() (int, Failure)         { return 0, none() }
func (a *API) DeviceOpen(uint32) (Device, Failure) { return Device{}, none() }
func (a *API) DeviceInfo(Device) (Info, Failure)   { return Info{}, none() }
func (a *API) DeviceHealth(Device) Failure         { return none() }
func (a *API) DeviceClose(Device) Failure          { return none() }
func (a *API) BufAlloc(Device, uint32, uint64, uint64) (Allocation, Failure) {
	return Allocation{}, none()
}
func (a *API) BufFree(Device, uint64) Failure                        { return none() }
func (a *API) StreamCreate(Device, int32) (Stream, Failure)          { return Stream{}, none() }
func (a *API) StreamDestroy(Stream) Failure                          { return none() }
func (a *API) Submit(Stream, []Cmd) Failure                          { return none() }
func (a *API) StreamPoll(Stream, uint64) Failure                     { return none() }
func (a *API) EventCreate(Device) (uint64, Failure)                  { return 0, none() }
func (a *API) EventDestroy(Device, uint64) Failure                   { return none() }
func (a *API) EventElapsed(Device, uint64, uint64) (uint64, Failure) { return 0, none() }
