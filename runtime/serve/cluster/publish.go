package cluster

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// Headers of a batch.
const (
	headerFirst   = "Yoctune-First"   // number of the first result
	headerLast    = "Yoctune-Last"    // number of the last result
	headerEpoch   = "Yoctune-Epoch"   // of the numbers: they begin at 1 in a stream that holds none
	headerDevice  = "Yoctune-Device"  // identity of the device
	headerHost    = "Yoctune-Host"    // its name
	headerDropped = "Yoctune-Dropped" // results since the batch before that were dropped
	contentType   = "Content-Type"
	encoding      = "Content-Encoding"
)

// Errors of publishing.
var (
	errFull  = errors.New("the stream is full")
	errTaken = errors.New("another program publishes on the subject")
)

// batch is a message with results, or the place of one in a stream.
type batch struct {
	first, last uint64
	epoch       string
}

// batchOf reads the headers of a message.
func batchOf(h nats.Header) (b batch, err error) {
	b.epoch = h.Get(headerEpoch)
	if b.first, err = strconv.ParseUint(h.Get(headerFirst), 10, 64); err == nil {
		b.last, err = strconv.ParseUint(h.Get(headerLast), 10, 64)
	}
	if err != nil || b.epoch == "" || b.first == 0 || b.last < b.first {
		return batch{}, fmt.Errorf("%w: a message without numbers of results", errTaken)
	}
	return b, nil
}

// publisher is the only one that publishes on a subject.
type publisher struct {
	js      jetstream.JetStream
	stream  string
	subject string

	last batch  // newest on the subject; the zero value: none
	at   uint64 // its sequence in the stream, 0: none
}

// reload finds the newest batch on the subject.
func (p *publisher) reload(ctx context.Context) error {
	s, err := p.js.Stream(ctx, p.stream)
	if err != nil {
		return err
	}
	m, err := s.GetLastMsgForSubject(ctx, p.subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		p.last, p.at = batch{}, 0
		return nil
	} else if err != nil {
		return err
	}
	b, err := batchOf(m.Header)
	if err != nil {
		return err
	}
	p.last, p.at = b, m.Sequence
	return nil
}

// has reports whether the stream has a batch.
func (p *publisher) has(b batch) bool {
	return p.at > 0 && p.last.epoch == b.epoch && p.last.last >= b.last
}

// publish publishes a batch, and waits for the answer up to a timeout. It is nil when the stream has it, whether by this attempt or an earlier one.
func (p *publisher) publish(ctx context.Context, m *nats.Msg, timeout time.Duration) error {
	b, err := batchOf(m.Header)
	if err != nil {
		return err
	}
	if p.has(b) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ack, err := p.js.PublishMsg(ctx, m, jetstream.WithExpectStream(p.stream), jetstream.WithExpectLastSequencePerSubject(p.at), jetstream.WithRetryAttempts(0))
	var refused *jetstream.APIError
	switch {
	case err == nil:
		p.last, p.at = b, ack.Sequence
		return nil
	case errors.As(err, &refused) && (refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant):
		before := p.last
		if err := p.reload(ctx); err != nil {
			return err
		}
		switch {
		case p.has(b):
			return nil // an earlier attempt, whose answer was lost
		case p.at > 0 && p.last.epoch == before.epoch && p.last.last > before.last:
			return fmt.Errorf("%w %s", errTaken, p.subject)
		}
		return fmt.Errorf("the stream has lost results: %w", err) // they are older than its limits; the next attempt continues
	case errors.As(err, &refused) && strings.Contains(refused.Description, "maximum"):
		return fmt.Errorf("%w: %s", errFull, refused.Description)
	}
	return err
}

// messageID identifies a batch for servers that look for duplicates, and for readers.
func messageID(device, pipeline string, b batch) string {
	return device + "." + pipeline + "." + b.epoch + "." + strconv.FormatUint(b.first, 10)
}

// DeviceID is the identity of a device in subjects and headers: 16 hexadecimal digits, which are made of its machine
// id and do not reveal it.
func DeviceID(dev rootfs.FS) (string, error) {
	id := strings.TrimSpace(rootfs.ReadText(dev, "/etc/machine-id"))
	if len(id) != 32 {
		return "", errors.New("/etc/machine-id has no identity of this device, which its results need: systemd-machine-id-setup makes one")
	}
	mac := hmac.New(sha256.New, []byte(id))
	mac.Write([]byte("yoctune cluster"))
	return hex.EncodeToString(mac.Sum(nil))[:16], nil
}

// subjectOf is the subject of a device's results.
func subjectOf(subject, device string) string { return subject + "." + device }
