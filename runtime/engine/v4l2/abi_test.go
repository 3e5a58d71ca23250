package v4l2

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// layout is one structure: its C name, its size here, and what to compare.
type layout struct {
	c      string
	size   uintptr
	fields []field
}

type field struct {
	c  string
	at uintptr
}

func layouts() []layout {
	var (
		capa capability
		desc fmtDesc
		f    format
		pix  pixFormat
		mp   pixFormatMPlane
		pp   planePixFormat
		rb   requestBuffers
		b    buffer
		p    plane
		e    exportBuffer
		sp   streamParm
		fs   frmSizeEnum
		es   eventSubscription
		ev   event
		dt   dvTimings
	)
	return []layout{
		{"struct v4l2_capability", unsafe.Sizeof(capa), []field{
			{"driver", unsafe.Offsetof(capa.driver)}, {"card", unsafe.Offsetof(capa.card)}, {"bus_info", unsafe.Offsetof(capa.busInfo)},
			{"version", unsafe.Offsetof(capa.version)}, {"capabilities", unsafe.Offsetof(capa.capabilities)}, {"device_caps", unsafe.Offsetof(capa.deviceCaps)},
		}},
		{"struct v4l2_fmtdesc", unsafe.Sizeof(desc), []field{
			{"index", unsafe.Offsetof(desc.index)}, {"type", unsafe.Offsetof(desc.typ)}, {"flags", unsafe.Offsetof(desc.flags)},
			{"description", unsafe.Offsetof(desc.description)}, {"pixelformat", unsafe.Offsetof(desc.pixelFormat)}, {"mbus_code", unsafe.Offsetof(desc.mbusCode)},
		}},
		{"struct v4l2_format", unsafe.Sizeof(f), []field{{"type", unsafe.Offsetof(f.typ)}, {"fmt", unsafe.Offsetof(f.fmt)}}},
		{"struct v4l2_pix_format", unsafe.Sizeof(pix), []field{
			{"width", unsafe.Offsetof(pix.width)}, {"height", unsafe.Offsetof(pix.height)}, {"pixelformat", unsafe.Offsetof(pix.pixelFormat)},
			{"field", unsafe.Offsetof(pix.field)}, {"bytesperline", unsafe.Offsetof(pix.bytesPerLine)}, {"sizeimage", unsafe.Offsetof(pix.sizeImage)},
			{"colorspace", unsafe.Offsetof(pix.colorSpace)}, {"priv", unsafe.Offsetof(pix.priv)}, {"flags", unsafe.Offsetof(pix.flags)},
			{"ycbcr_enc", unsafe.Offsetof(pix.ycbcrEnc)}, {"quantization", unsafe.Offsetof(pix.quantization)}, {"xfer_func", unsafe.Offsetof(pix.xferFunc)},
		}},
		{"struct v4l2_pix_format_mplane", unsafe.Sizeof(mp), []field{
			{"width", unsafe.Offsetof(mp.width)}, {"height", unsafe.Offsetof(mp.height)}, {"pixelformat", unsafe.Offsetof(mp.pixelFormat)},
			{"field", unsafe.Offsetof(mp.field)}, {"colorspace", unsafe.Offsetof(mp.colorSpace)}, {"plane_fmt", unsafe.Offsetof(mp.planeFmt)},
			{"num_planes", unsafe.Offsetof(mp.numPlanes)}, {"flags", unsafe.Offsetof(mp.flags)}, {"ycbcr_enc", unsafe.Offsetof(mp.ycbcrEnc)},
			{"quantization", unsafe.Offsetof(mp.quantization)}, {"xfer_func", unsafe.Offsetof(mp.xferFunc)},
		}},
		{"struct v4l2_plane_pix_format", unsafe.Sizeof(pp), []field{
			{"sizeimage", unsafe.Offsetof(pp.sizeImage)}, {"bytesperline", unsafe.Offsetof(pp.bytesPerLine)},
		}},
		{"struct v4l2_requestbuffers", unsafe.Sizeof(rb), []field{
			{"count", unsafe.Offsetof(rb.count)}, {"type", unsafe.Offsetof(rb.typ)}, {"memory", unsafe.Offsetof(rb.memory)}, {"capabilities", unsafe.Offsetof(rb.capabilities)},
		}},
		{"struct v4l2_buffer", unsafe.Sizeof(b), []field{
			{"index", unsafe.Offsetof(b.index)}, {"type", unsafe.Offsetof(b.typ)}, {"bytesused", unsafe.Offsetof(b.bytesUsed)}, {"flags", unsafe.Offsetof(b.flags)},
			{"field", unsafe.Offsetof(b.field)}, {"timestamp", unsafe.Offsetof(b.timestamp)}, {"timecode", unsafe.Offsetof(b.timecode)},
			{"sequence", unsafe.Offsetof(b.sequence)}, {"memory", unsafe.Offsetof(b.memory)}, {"m", unsafe.Offsetof(b.m)}, {"length", unsafe.Offsetof(b.length)},
			{"reserved2", unsafe.Offsetof(b.reserved2)}, {"request_fd", unsafe.Offsetof(b.requestFD)},
		}},
		{"struct v4l2_plane", unsafe.Sizeof(p), []field{
			{"bytesused", unsafe.Offsetof(p.bytesUsed)}, {"length", unsafe.Offsetof(p.length)}, {"m", unsafe.Offsetof(p.m)}, {"data_offset", unsafe.Offsetof(p.dataOffset)},
		}},
		{"struct v4l2_exportbuffer", unsafe.Sizeof(e), []field{
			{"type", unsafe.Offsetof(e.typ)}, {"index", unsafe.Offsetof(e.index)}, {"plane", unsafe.Offsetof(e.plane)}, {"flags", unsafe.Offsetof(e.flags)}, {"fd", unsafe.Offsetof(e.fd)},
		}},
		{"struct v4l2_streamparm", unsafe.Sizeof(sp), []field{
			{"type", unsafe.Offsetof(sp.typ)}, {"parm.capture.capability", unsafe.Offsetof(sp.capability)}, {"parm.capture.capturemode", unsafe.Offsetof(sp.captureMode)},
			{"parm.capture.timeperframe.numerator", unsafe.Offsetof(sp.timePerFrame)}, {"parm.capture.timeperframe.denominator", unsafe.Offsetof(sp.timePerFrame) + unsafe.Offsetof(sp.timePerFrame.denominator)},
		}},
		{"struct v4l2_frmsizeenum", unsafe.Sizeof(fs), []field{
			{"index", unsafe.Offsetof(fs.index)}, {"pixel_format", unsafe.Offsetof(fs.pixelFormat)}, {"type", unsafe.Offsetof(fs.typ)}, {"discrete.width", unsafe.Offsetof(fs.size)},
			{"stepwise.max_width", unsafe.Offsetof(fs.size) + 4}, {"stepwise.min_height", unsafe.Offsetof(fs.size) + 12}, {"stepwise.max_height", unsafe.Offsetof(fs.size) + 16},
		}},
		{"struct v4l2_event_subscription", unsafe.Sizeof(es), []field{{"type", unsafe.Offsetof(es.typ)}, {"id", unsafe.Offsetof(es.id)}, {"flags", unsafe.Offsetof(es.flags)}}},
		{"struct v4l2_event", unsafe.Sizeof(ev), []field{
			{"type", unsafe.Offsetof(ev.typ)}, {"u", unsafe.Offsetof(ev.u)}, {"pending", unsafe.Offsetof(ev.pending)}, {"sequence", unsafe.Offsetof(ev.sequence)},
			{"timestamp", unsafe.Offsetof(ev.timestamp)}, {"id", unsafe.Offsetof(ev.id)},
		}},
		{"struct v4l2_dv_timings", unsafe.Sizeof(dt), nil},
	}
}

// numbers are the constants of the header that this package repeats.
func numbers() map[string]uint64 {
	return map[string]uint64{
		"VIDIOC_QUERYCAP": reqQueryCap, "VIDIOC_ENUM_FMT": reqEnumFmt, "VIDIOC_S_FMT": reqSetFmt, "VIDIOC_REQBUFS": reqReqBufs,
		"VIDIOC_QUERYBUF": reqQueryBuf, "VIDIOC_QBUF": reqQBuf, "VIDIOC_EXPBUF": reqExpBuf, "VIDIOC_DQBUF": reqDQBuf,
		"VIDIOC_STREAMON": reqStreamOn, "VIDIOC_STREAMOFF": reqStreamOff, "VIDIOC_G_PARM": reqGetParm, "VIDIOC_S_PARM": reqSetParm,
		"VIDIOC_ENUM_FRAMESIZES": reqEnumFrameSize,
		"VIDIOC_SUBSCRIBE_EVENT": reqSubscribe, "VIDIOC_DQEVENT": reqDQEvent, "V4L2_EVENT_SOURCE_CHANGE": eventSourceChange,
		"VIDIOC_QUERY_DV_TIMINGS": reqQueryTimings, "VIDIOC_S_DV_TIMINGS": reqSetTimings,
		"V4L2_BUF_TYPE_VIDEO_CAPTURE": bufCapture, "V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE": bufCaptureMPlane, "V4L2_MEMORY_MMAP": memoryMMAP, "V4L2_MEMORY_USERPTR": memoryUserPtr,
		"V4L2_FIELD_NONE": fieldNone, "V4L2_FIELD_ANY": fieldAny, "VIDEO_MAX_PLANES": maxPlanes, "VIDEO_MAX_FRAME": maxBuffers,
		"V4L2_CAP_TIMEPERFRAME": capPerFrame, "V4L2_CAP_VIDEO_CAPTURE": capVideoCapture, "V4L2_CAP_VIDEO_CAPTURE_MPLANE": capVideoCaptureMPlane,
		"V4L2_CAP_META_CAPTURE": capMeta, "V4L2_CAP_STREAMING": capStreaming, "V4L2_CAP_DEVICE_CAPS": capDeviceCaps,
		"V4L2_BUF_FLAG_ERROR": flagError, "V4L2_BUF_FLAG_TIMESTAMP_MASK": flagTimestampMask, "V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC": flagMonotonic,
		"V4L2_BUF_FLAG_TSTAMP_SRC_SOE": flagStampSourceSOE,
		"V4L2_COLORSPACE_REC709":       colorREC709, "V4L2_COLORSPACE_JPEG": colorJPEG, "V4L2_COLORSPACE_DCI_P3": colorDCIP3,
		"V4L2_YCBCR_ENC_709": encoding709, "V4L2_QUANTIZATION_FULL_RANGE": quantFull, "V4L2_QUANTIZATION_LIM_RANGE": quantLimited,
		"V4L2_FRMSIZE_TYPE_DISCRETE": 1, "O_RDONLY": expReadOnly, "O_CLOEXEC": expCloseOnRun,
		"V4L2_PIX_FMT_NV12": uint64(NV12), "V4L2_PIX_FMT_NV12M": uint64(NV12M), "V4L2_PIX_FMT_YUV420": uint64(I420), "V4L2_PIX_FMT_YUV420M": uint64(I420M),
		"V4L2_PIX_FMT_YUYV": uint64(YUYV), "V4L2_PIX_FMT_UYVY": uint64(UYVY), "V4L2_PIX_FMT_GREY": uint64(Grey), "V4L2_PIX_FMT_MJPEG": uint64(MJPEG), "V4L2_PIX_FMT_JPEG": uint64(JPEG),
	}
}

// The kernel's header, as its compilers read it, agrees with every size, offset and
// number here.
func TestLayoutIsTheKernels(t *testing.T) {
	var src strings.Builder
	src.WriteString("#define _GNU_SOURCE\n#include <stddef.h>\n#include <fcntl.h>\n#include <linux/videodev2.h>\n")
	checks := 0
	claim := func(c string, v uint64) {
		checks++
		fmt.Fprintf(&src, "_Static_assert((unsigned long long)(%s) == %dull, \"%s is not %d\");\n", c, v, c, v)
	}
	for _, l := range layouts() {
		claim("sizeof("+l.c+")", uint64(l.size))
		for _, f := range l.fields {
			claim("offsetof("+l.c+", "+f.c+")", uint64(f.at))
		}
	}
	for name, v := range numbers() {
		claim("(unsigned int)"+name, v)
	}
	path := filepath.Join(t.TempDir(), "layout.c")
	if err := os.WriteFile(path, []byte(src.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for arch, compiler := range map[string]string{"amd64": "gcc", "arm64": "aarch64-linux-gnu-gcc"} {
		t.Run(arch, func(t *testing.T) {
			if _, err := exec.LookPath(compiler); err != nil {
				if os.Getenv("YOCTUNE_REQUIRE_SOURCES") != "" {
					t.Fatal(err)
				}
				t.Skipf("%v: the layout on %s is not compared with the kernel's headers", err, arch)
			}
			if out, err := exec.Command(compiler, "-std=gnu11", "-fsyntax-only", path).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%d sizes, offsets and numbers", checks)
		})
	}
}
