package occupancy

// Device describes one multiprocessor of a compute capability. Shared memory is in bytes.
type Device struct {
	Major, Minor int // compute capability

	Warp               int // threads
	ThreadsPerBlock    int
	ThreadsPerSM       int
	BlocksPerSM        int
	RegistersPerBlock  int
	RegistersPerSM     int
	RegistersPerThread int
	Parts              int // partitions of a multiprocessor, each with its own register file

	SharedPerSM         int
	SharedPerBlock      int   // default limit
	SharedPerBlockOptIn int   // limit with opt-in
	SharedReserved      int   // reserved by the driver in each block
	SharedUnit          int   // allocation unit
	Carveouts           []int // possible sizes in a unified cache, in KiB; nil: separate memory

	Source string
}

// SM returns the number of the architecture: 87 for 8.7, 110 for 11.0.
func (d Device) SM() int { return 10*d.Major + d.Minor }

// registerUnit is the allocation unit of registers, on all architectures.
const registerUnit = 256

const (
	guide  = "CUDA C++ Programming Guide 12.6, technical specifications per compute capability"
	traits = "libcu++ 3.2, cuda/__device/arch_traits.h"
	units  = "; units, parts and carve-outs: cuda_occupancy.h of CUDA 13.0"
)

// Devices returns the compute capabilities of all Jetson modules and of cards used for
// development.
func Devices() []Device {
	maxwell := Device{ // and Pascal
		Warp: 32, ThreadsPerBlock: 1024, ThreadsPerSM: 2048, BlocksPerSM: 32,
		RegistersPerBlock: 32 << 10, RegistersPerSM: 64 << 10, RegistersPerThread: 255, Parts: 4,
		SharedPerSM: 64 << 10, SharedPerBlock: 48 << 10, SharedPerBlockOptIn: 48 << 10, SharedUnit: 256,
	}
	volta := maxwell
	volta.RegistersPerBlock, volta.RegistersPerThread = 64<<10, 256
	volta.SharedPerSM, volta.SharedPerBlockOptIn, volta.Carveouts = 96<<10, 96<<10, []int{0, 8, 16, 32, 64, 96}
	turing := volta
	turing.ThreadsPerSM, turing.BlocksPerSM = 1024, 16
	turing.SharedPerSM, turing.SharedPerBlockOptIn, turing.Carveouts = 64<<10, 64<<10, []int{32, 64}
	ampere := volta
	ampere.SharedPerSM, ampere.SharedPerBlockOptIn, ampere.SharedReserved, ampere.SharedUnit = 164<<10, 163<<10, 1<<10, 128
	ampere.Carveouts = []int{0, 8, 16, 32, 64, 100, 132, 164}
	hopper := ampere
	hopper.SharedPerSM, hopper.SharedPerBlockOptIn = 228<<10, 227<<10
	hopper.Carveouts = []int{0, 8, 16, 32, 64, 100, 132, 164, 196, 228}
	ga10x := ampere
	ga10x.ThreadsPerSM, ga10x.BlocksPerSM = 1536, 16
	ga10x.SharedPerSM, ga10x.SharedPerBlockOptIn = 100<<10, 99<<10
	ga10x.Carveouts = []int{0, 8, 16, 32, 64, 100}
	orin := ampere
	orin.ThreadsPerSM, orin.BlocksPerSM = 1536, 16
	ada := ga10x
	ada.BlocksPerSM = 24
	thor := hopper
	thor.ThreadsPerSM, thor.BlocksPerSM = 1536, 24

	of := func(d Device, major, minor int, source string) Device {
		d.Major, d.Minor, d.Source = major, minor, source+units
		return d
	}
	return []Device{
		of(maxwell, 5, 3, guide),             // Nano, TX1
		of(maxwell, 6, 2, guide+"; "+traits), // TX2
		of(volta, 7, 2, guide),               // Xavier
		of(turing, 7, 5, guide+"; "+traits),
		of(ampere, 8, 0, guide+"; "+traits),
		of(ga10x, 8, 6, guide+"; "+traits),
		of(orin, 8, 7, guide+"; "+traits), // Orin
		of(ada, 8, 9, guide+"; "+traits),
		of(hopper, 9, 0, guide+"; "+traits),
		of(thor, 11, 0, traits), // Thor
	}
}
