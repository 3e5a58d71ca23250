package v4l2

// What follows mirrors <linux/videodev2.h> on 64-bit machines: same names without
// the prefix, same order, same padding. A test compiles a C program against the
// kernel's header, for amd64 and arm64, and compares every size, offset and number.

// Kinds of buffers: enum v4l2_buf_type.
const (
	bufCapture       = 1
	bufCaptureMPlane = 9
)

const (
	memoryMMAP    = 1 // enum v4l2_memory
	memoryUserPtr = 2
	fieldNone     = 1 // enum v4l2_field: progressive
	fieldAny      = 0
	maxPlanes     = 8  // VIDEO_MAX_PLANES
	maxBuffers    = 32 // VIDEO_MAX_FRAME
	capPerFrame   = 0x1000
	expReadOnly   = 0 // O_RDONLY
	expCloseOnRun = 0o2000000
)

// Capabilities: V4L2_CAP_*.
const (
	capVideoCapture       = 0x00000001
	capVideoCaptureMPlane = 0x00001000
	capMeta               = 0x00800000 // META_CAPTURE: the second node of a UVC camera
	capStreaming          = 0x04000000
	capDeviceCaps         = 0x80000000
)

// Flags of a buffer: V4L2_BUF_FLAG_*.
const (
	flagError          = 0x00000040
	flagTimestampMask  = 0x0000e000
	flagMonotonic      = 0x00002000
	flagStampSourceSOE = 0x00010000 // stamped at the start of exposure, not at the end of the frame
)

// Colour: enum v4l2_colorspace, v4l2_ycbcr_encoding, v4l2_quantization.
const (
	colorREC709  = 3
	colorJPEG    = 7
	colorDCIP3   = 12
	encoding709  = 2
	quantFull    = 1
	quantLimited = 2
)

type capability struct {
	driver       [16]byte
	card         [32]byte
	busInfo      [32]byte
	version      uint32
	capabilities uint32
	deviceCaps   uint32
	reserved     [3]uint32
}

type fmtDesc struct {
	index       uint32
	typ         uint32
	flags       uint32
	description [32]byte
	pixelFormat uint32
	mbusCode    uint32
	reserved    [3]uint32
}

// pixFormat is the single-planar arm of format.
type pixFormat struct {
	width        uint32
	height       uint32
	pixelFormat  uint32
	field        uint32
	bytesPerLine uint32
	sizeImage    uint32
	colorSpace   uint32
	priv         uint32
	flags        uint32
	ycbcrEnc     uint32
	quantization uint32
	xferFunc     uint32
}

type planePixFormat struct {
	sizeImage    uint32
	bytesPerLine uint32
	reserved     [6]uint16
}

// pixFormatMPlane is the multi-planar arm of format.
type pixFormatMPlane struct {
	width        uint32
	height       uint32
	pixelFormat  uint32
	field        uint32
	colorSpace   uint32
	planeFmt     [maxPlanes]planePixFormat
	numPlanes    uint8
	flags        uint8
	ycbcrEnc     uint8
	quantization uint8
	xferFunc     uint8
	reserved     [7]uint8
}

// format holds the union as words that are aligned like its widest arm.
type format struct {
	typ uint32
	_   uint32
	fmt [25]uint64
}

type requestBuffers struct {
	count        uint32
	typ          uint32
	memory       uint32
	capabilities uint32
	flags        uint8
	reserved     [3]uint8
}

type timeval struct{ sec, usec int64 }

type timecode struct {
	typ      uint32
	flags    uint32
	frames   uint8
	seconds  uint8
	minutes  uint8
	hours    uint8
	userbits [4]uint8
}

type buffer struct {
	index     uint32
	typ       uint32
	bytesUsed uint32
	flags     uint32
	field     uint32
	_         uint32
	timestamp timeval
	timecode  timecode
	sequence  uint32
	memory    uint32
	m         uint64 // offset to map, or address of the planes
	length    uint32
	reserved2 uint32
	requestFD int32
	_         uint32
}

type plane struct {
	bytesUsed  uint32
	length     uint32
	m          uint64 // offset to map
	dataOffset uint32
	reserved   [11]uint32
}

type exportBuffer struct {
	typ      uint32
	index    uint32
	plane    uint32
	flags    uint32
	fd       int32
	reserved [11]uint32
}

type fract struct{ numerator, denominator uint32 }

// streamParm is v4l2_streamparm with its capture arm.
type streamParm struct {
	typ          uint32
	capability   uint32
	captureMode  uint32
	timePerFrame fract
	extendedMode uint32
	readBuffers  uint32
	_            [44]uint32
}

type frmSizeEnum struct {
	index       uint32
	pixelFormat uint32
	typ         uint32
	size        [6]uint32 // discrete: width, height; stepwise: min, max, step of each
	reserved    [2]uint32
}

// Events: V4L2_EVENT_*.
const eventSourceChange = 5

type eventSubscription struct {
	typ      uint32
	id       uint32
	flags    uint32
	reserved [5]uint32
}

type event struct {
	typ       uint32
	_         uint32
	u         [8]uint64
	pending   uint32
	sequence  uint32
	timestamp struct{ sec, nsec int64 }
	id        uint32
	reserved  [8]uint32
	_         uint32
}

// dvTimings is v4l2_dv_timings, which is only handed back.
type dvTimings [33]uint32

// Request numbers: VIDIOC_*.
const (
	reqQueryCap      = 0x80685600
	reqEnumFmt       = 0xc0405602
	reqSetFmt        = 0xc0d05605
	reqReqBufs       = 0xc0145608
	reqQueryBuf      = 0xc0585609
	reqQBuf          = 0xc058560f
	reqExpBuf        = 0xc0405610
	reqDQBuf         = 0xc0585611
	reqStreamOn      = 0x40045612
	reqStreamOff     = 0x40045613
	reqGetParm       = 0xc0cc5615
	reqSetParm       = 0xc0cc5616
	reqEnumFrameSize = 0xc02c564a
	reqSetTimings    = 0xc0845657
	reqDQEvent       = 0x80885659
	reqSubscribe     = 0x4020565a
	reqQueryTimings  = 0x80845663
)

// FourCC is a pixel format of the kernel.
type FourCC uint32

// Supported pixel formats. Those that end in M have each plane in a separate memory.
const (
	NV12  FourCC = 'N' | 'V'<<8 | '1'<<16 | '2'<<24
	NV12M FourCC = 'N' | 'M'<<8 | '1'<<16 | '2'<<24
	I420  FourCC = 'Y' | 'U'<<8 | '1'<<16 | '2'<<24
	I420M FourCC = 'Y' | 'M'<<8 | '1'<<16 | '2'<<24
	YUYV  FourCC = 'Y' | 'U'<<8 | 'Y'<<16 | 'V'<<24
	UYVY  FourCC = 'U' | 'Y'<<8 | 'V'<<16 | 'Y'<<24
	Grey  FourCC = 'G' | 'R'<<8 | 'E'<<16 | 'Y'<<24
	MJPEG FourCC = 'M' | 'J'<<8 | 'P'<<16 | 'G'<<24
	JPEG  FourCC = 'J' | 'P'<<8 | 'E'<<16 | 'G'<<24
)

func (f FourCC) String() string {
	b := []byte{byte(f), byte(f >> 8), byte(f >> 16), byte(f >> 24)}
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '.'
		}
	}
	return string(b)
}

// compressed reports whether the format is compressed.
func (f FourCC) compressed() bool { return f == MJPEG || f == JPEG }
