package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of perfetto/trace/trace.proto and of the messages that it includes.
const (
	fieldPacket = 1 // Trace

	packetTimestamp  = 8 // TracePacket
	packetSequence   = 10
	packetTrackEvent = 11
	packetDescriptor = 60

	trackUUID     = 1 // TrackDescriptor
	trackName     = 2
	trackProcess  = 3
	trackParent   = 5
	trackCounter  = 8
	processPID    = 1 // ProcessDescriptor
	processName   = 6
	processLabels = 8

	eventType       = 9 // TrackEvent
	eventTrack      = 11
	eventCategory   = 22
	eventName       = 23
	eventAnnotation = 4
	eventDouble     = 44
	eventFlow       = 47
	annotationName  = 10 // DebugAnnotation
	annotationUint  = 3
	annotationText  = 6
)

// Types of TrackEvent.
const (
	sliceBegin   = 1
	sliceEnd     = 2
	eventInstant = 3
	eventCounter = 4
)

const processUUID = 1

// sequence is the trusted_packet_sequence_id of all packets.
const sequence = 1

// perfettoWriter writes packets.
type perfettoWriter struct {
	w    *bufio.Writer
	zero int64
	uuid uint64 // of the last track
	err  error
}

// message is a protocol buffer.
type message []byte

func (m message) uint(field protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), v)
}

func (m message) fixed(field protowire.Number, v uint64) message {
	return protowire.AppendFixed64(protowire.AppendTag(m, field, protowire.Fixed64Type), v)
}

func (m message) bytes(field protowire.Number, b []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), b)
}

func (m message) text(field protowire.Number, s string) message {
	return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), s)
}

func (p *perfettoWriter) packet(m message) {
	if p.err == nil {
		_, p.err = p.w.Write(message{}.bytes(fieldPacket, m.uint(packetSequence, sequence)))
	}
}

// track describes a track below the process and returns its id.
func (p *perfettoWriter) track(name string, counter bool) uint64 {
	p.uuid++
	d := message{}.uint(trackUUID, p.uuid).text(trackName, name).uint(trackParent, processUUID)
	if counter {
		d = d.bytes(trackCounter, nil)
	}
	p.packet(message{}.bytes(packetDescriptor, d))
	return p.uuid
}

func (p *perfettoWriter) event(at int64, e message) {
	p.packet(message{}.uint(packetTimestamp, uint64(at-p.zero)).bytes(packetTrackEvent, e))
}

func trackEvent(kind, track uint64) message {
	return message{}.uint(eventType, kind).uint(eventTrack, track)
}

func (m message) named(name, category string) message {
	return m.text(eventName, name).text(eventCategory, category)
}

func (m message) noteUint(name string, v uint64) message {
	return m.bytes(eventAnnotation, message{}.text(annotationName, name).uint(annotationUint, v))
}

func (m message) noteText(name, v string) message {
	return m.bytes(eventAnnotation, message{}.text(annotationName, name).text(annotationText, v))
}

// perfettoLabel marks the process of every file.
const perfettoLabel = "yoctuned"

// isPerfetto reports whether a file that begins with these bytes has the label in its first packet.
func isPerfetto(head []byte) bool {
	field, kind, n := protowire.ConsumeTag(head)
	if n < 0 || field != fieldPacket || kind != protowire.BytesType {
		return false
	}
	size, m := protowire.ConsumeVarint(head[n:])
	if m < 0 {
		return false
	}
	head = head[n+m:]
	return bytes.Contains(head[:min(size, uint64(len(head)))], message{}.text(processLabels, perfettoLabel))
}

// writePerfetto writes the protocol buffers of Perfetto's TrackEvent, with the same tracks as
// Chrome trace JSON. Lifetimes of frames and waits overlap, and take as many tracks of one name as
// they need.
func (c *content) writePerfetto(w io.Writer, process string) error {
	p := &perfettoWriter{w: bufio.NewWriterSize(w, 64<<10), zero: c.zero, uuid: processUUID}
	p.packet(message{}.bytes(packetDescriptor, message{}.uint(trackUUID, processUUID).bytes(trackProcess,
		message{}.text(processLabels, perfettoLabel).uint(processPID, 1).text(processName, process))))
	for n := range c.tracks {
		p.writeTrack(&c.tracks[n])
	}
	frames := make([]slice, len(c.frames))
	for n, f := range c.frames {
		e := message{}.named("frame "+strconv.FormatUint(f.frame, 10), catFrame).noteUint("frame", f.frame).noteText("fate", f.fate.String())
		if reason := c.reason(f); reason != "" {
			e = e.noteText("reason", reason)
		}
		frames[n] = slice{f.start, f.end, e}
	}
	p.writeApart("frames", frames)
	for _, k := range c.counters {
		if len(k.samples) == 0 {
			continue
		}
		t := p.track(k.title(), true)
		for _, s := range k.samples {
			p.event(s.at, trackEvent(eventCounter, t).fixed(eventDouble, math.Float64bits(s.value)))
		}
	}
	if len(c.instants) > 0 {
		t := p.track("events", false)
		for _, i := range c.instants {
			p.event(i.at, append(trackEvent(eventInstant, t), message{}.named(i.name, catEvent).noteText("why", i.args)...))
		}
	}
	if p.err != nil {
		return p.err
	}
	return p.w.Flush()
}

// slice is a span of a track; event has the fields of its begin.
type slice struct {
	start, end int64
	event      message
}

// writeTrack writes the runs and scopes of a track, and the waits before the runs.
func (p *perfettoWriter) writeTrack(t *trackContent) {
	runs := t.runs()
	lanes := [][]slice{{}}
	var waits []slice
	for _, r := range runs {
		e := message{}.named(t.name, catStage).noteUint("frame", r.frame)
		if len(r.frames) > 1 {
			e = e.noteUint("batch", uint64(len(r.frames)))
		}
		if t.backend != "" {
			e = e.noteText("backend", t.backend)
		}
		for _, f := range r.frames {
			e = e.fixed(eventFlow, f.frame+1)
			if f.wait > 0 {
				waits = append(waits, slice{f.start - f.wait, f.start, message{}.named("wait for "+t.name, catQueue).noteUint("frame", f.frame)})
			}
		}
		lanes[0] = append(lanes[0], slice{r.start, r.end, e})
	}
	for i, lane := range t.lanes(runs) {
		s := t.scopes[i]
		for len(lanes) <= lane {
			lanes = append(lanes, nil)
		}
		lanes[lane] = append(lanes[lane], slice{s.start, s.end, message{}.named(s.name, catScope).noteUint("frame", s.frame)})
	}
	for lane, list := range lanes {
		name := t.title()
		if lane > 0 {
			name += " (overlapping)"
		}
		p.writeNested(p.track(name, false), list)
	}
	p.writeApart("wait for "+t.title(), waits)
}

// writeNested writes slices that are nested or apart.
func (p *perfettoWriter) writeNested(track uint64, list []slice) {
	slices.SortStableFunc(list, func(a, b slice) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	var open []int64 // ends
	end := func(until int64) {
		for len(open) > 0 && open[len(open)-1] <= until {
			p.event(open[len(open)-1], trackEvent(sliceEnd, track))
			open = open[:len(open)-1]
		}
	}
	for _, s := range list {
		end(s.start)
		p.event(s.start, append(trackEvent(sliceBegin, track), s.event...))
		open = append(open, s.end)
	}
	end(math.MaxInt64)
}

// writeApart writes slices that may overlap to as many tracks of one name as they need.
func (p *perfettoWriter) writeApart(name string, list []slice) {
	slices.SortStableFunc(list, func(a, b slice) int { return cmp.Compare(a.start, b.start) })
	type lane struct {
		track uint64
		end   int64
	}
	var lanes []lane
	for _, s := range list {
		n := slices.IndexFunc(lanes, func(l lane) bool { return l.end <= s.start })
		if n < 0 {
			n = len(lanes)
			lanes = append(lanes, lane{track: p.track(name, false)})
		}
		lanes[n].end = s.end
		p.event(s.start, append(trackEvent(sliceBegin, lanes[n].track), s.event...))
		p.event(s.end, trackEvent(sliceEnd, lanes[n].track))
	}
}
