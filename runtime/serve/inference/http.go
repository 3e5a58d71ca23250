package inference

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// Limits of the HTTP transport.
const (
	maxHeader  = 16 << 10         // bytes of a request's header
	maxNesting = 16               // levels of JSON
	slowBody   = 10 * time.Second // for the body of a request
	slowAnswer = 30 * time.Second // for sending an answer
)

// jsonLength is the header that tells JSON from the binary data after it.
const jsonLength = "Inference-Header-Content-Length"

// HTTP is the transport of the protocol over HTTP/REST with the extension for binary tensors.
type HTTP struct {
	s   *Server
	mux *http.ServeMux
}

// NewHTTP returns the handler of a server.
func NewHTTP(s *Server) *HTTP {
	h := &HTTP{s: s, mux: http.NewServeMux()}
	s.o.Extensions = append(s.o.Extensions, "binary_tensor_data")
	h.get("/v2", func(*http.Request) (any, error) { return s.Metadata(), nil })
	h.get("/v2/health/live", func(*http.Request) (any, error) { return nil, nil })
	h.get("/v2/health/ready", func(*http.Request) (any, error) { return nil, s.Ready() })
	h.get("/v2/models/stats", func(*http.Request) (any, error) { return h.statistics("", "") })
	for _, prefix := range []string{"/v2/models/{model}", "/v2/models/{model}/versions/{version}"} {
		h.get(prefix, func(r *http.Request) (any, error) { return s.ModelMetadata(named(r)) })
		h.get(prefix+"/ready", func(r *http.Request) (any, error) { return nil, s.ModelReady(named(r)) })
		h.get(prefix+"/config", func(r *http.Request) (any, error) { return s.Config(named(r)) })
		h.get(prefix+"/stats", func(r *http.Request) (any, error) { return h.statistics(named(r)) })
		h.mux.HandleFunc("POST "+prefix+"/infer", h.infer)
	}
	h.post("/v2/repository/index", func(r *http.Request) (any, error) {
		var q struct {
			Ready bool `json:"ready"`
		}
		if err := readSmall(r, &q); err != nil {
			return nil, err
		}
		return s.Index(q.Ready), nil
	})
	h.post("/v2/repository/models/{model}/{action}", func(*http.Request) (any, error) {
		return nil, errRepository
	})
	h.sharedMemory()
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// The mux redirects paths that are not clean. A client of the protocol sends none.
		h.fail(w, Errorf(NotFound, "%s %.80q is not part of the protocol", r.Method, r.URL.Path))
	})
	return h
}

// sharedMemory adds the requests for shared memory.
func (h *HTTP) sharedMemory() {
	shared := h.s.o.Shared
	status := func(r *http.Request) (any, error) { return shared.Status(callerIn(r.Context()), r.PathValue("region")) }
	unregister := func(r *http.Request) (any, error) {
		return nil, shared.Unregister(callerIn(r.Context()), r.PathValue("region"))
	}
	const region = "/v2/systemsharedmemory/region/{region}"
	h.get("/v2/systemsharedmemory/status", status)
	h.get(region+"/status", status)
	h.post(region+"/register", func(r *http.Request) (any, error) {
		var want Region
		if err := readSmall(r, &want); err != nil {
			return nil, err
		}
		want.Name = r.PathValue("region")
		return nil, shared.Register(callerIn(r.Context()), want)
	})
	h.post(region+"/unregister", unregister)
	h.post("/v2/systemsharedmemory/unregister", unregister)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		h.handle(method, "/v2/cudasharedmemory/", func(*http.Request) (any, error) { return nil, errCUDA })
	}
}

// handle adds a part of the protocol. answer returns what is sent as
// JSON, nil for an empty answer.
func (h *HTTP) handle(method, path string, answer func(*http.Request) (any, error)) {
	h.mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, r *http.Request) {
		v, err := answer(r)
		if err != nil {
			h.fail(w, err)
			return
		}
		h.write(w, v)
	})
}

func (h *HTTP) get(path string, answer func(*http.Request) (any, error)) {
	h.handle(http.MethodGet, path, answer)
}

func (h *HTTP) post(path string, answer func(*http.Request) (any, error)) {
	h.handle(http.MethodPost, path, answer)
}

// ServeHTTP answers a request.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.s.Ready() != nil {
		w.Header().Set("Connection", "close")
	}
	h.mux.ServeHTTP(w, r)
}

func (h *HTTP) statistics(name, ver string) (any, error) {
	all, err := h.s.Statistics(name, ver)
	return map[string]any{"model_stats": all}, err
}

// named returns the model and the version that a path names.
func named(r *http.Request) (model, ver string) { return r.PathValue("model"), r.PathValue("version") }

// statusOf are the statuses of kinds of errors.
var statusOf = map[Kind]int{
	Internal: http.StatusInternalServerError, Invalid: http.StatusBadRequest, NotFound: http.StatusNotFound,
	TooLarge: http.StatusRequestEntityTooLarge, Full: http.StatusTooManyRequests, Expired: http.StatusGatewayTimeout,
	Canceled: 499, Unavailable: http.StatusServiceUnavailable, Unimplemented: http.StatusNotImplemented, Denied: http.StatusUnauthorized,
}

// fail sends an error.
func (h *HTTP) fail(w http.ResponseWriter, err error) {
	kind := KindOf(err)
	if kind == Full || kind == Unavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(statusOf[kind])
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) // the client may have gone
}

// write sends a value as JSON.
func (h *HTTP) write(w http.ResponseWriter, v any) {
	if v == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}

// readSmall reads a body of JSON without tensors; an empty one is accepted.
func readSmall(r *http.Request, v any) error {
	b, err := io.ReadAll(io.LimitReader(r.Body, 64<<10+1))
	switch {
	case err != nil:
		return Errorf(Invalid, "read the body: %w", err)
	case len(b) > 64<<10:
		return Errorf(TooLarge, "the body has more than 64 KiB")
	case len(bytes.TrimSpace(b)) == 0:
		return nil
	}
	if err := checkNesting(b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return Errorf(Invalid, "the body is not the JSON of such a request: %w", err)
	}
	return nil
}

// maxBody is the most bytes of the body of a request to the model.
func (m *Model) maxBody() int64 { return registry.RequestBody(m.Port.Inputs(), m.Port.Rows()) }

// infer answers a request to a model.
func (h *HTTP) infer(w http.ResponseWriter, r *http.Request) {
	name, ver := named(r)
	m, err := h.s.Admit(name, ver)
	if err != nil {
		h.fail(w, err)
		return
	}
	body, release, err := h.read(w, r, m)
	defer release()
	if err != nil {
		h.fail(w, err)
		return
	}
	parse := parseRequest
	if r.Header.Get(jsonLength) == "0" {
		parse = m.parseRaw
	}
	req, binary, err := parse(body, r.Header.Get(jsonLength))
	if err != nil {
		h.fail(w, err)
		return
	}
	req.Model, req.Version = name, ver
	out, err := h.s.Infer(r.Context(), req)
	if err != nil {
		h.fail(w, err)
		return
	}
	head, parts, err := encodeResponse(out, binary)
	if err != nil {
		h.fail(w, err)
		return
	}
	h.send(w, r, head, parts)
}

// read reads the body of a request. release is called when the body is not used any more.
func (h *HTTP) read(w http.ResponseWriter, r *http.Request, m *Model) (body []byte, release func(), err error) {
	release = func() {}
	limit := m.maxBody()
	if r.ContentLength > limit {
		return nil, release, Errorf(TooLarge, "the body has %d bytes, and a request to model %s has at most %d", r.ContentLength, m.Name, limit)
	}
	coding := strings.ToLower(r.Header.Get("Content-Encoding"))
	size := r.ContentLength
	if size < 0 || coding != "" && coding != "identity" {
		size = limit
	}
	if !h.s.bodies.take(size) {
		m.stats.refuse()
		return nil, release, Errorf(Full, "the requests that are being received have %d MiB, and no more are taken at the moment", h.s.bodies.limit>>20)
	}
	release = func() { h.s.bodies.give(size) }
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(slowBody)) // a test's recorder has none
	from := io.Reader(r.Body)
	switch coding {
	case "", "identity":
	case "gzip", "deflate":
		if from, err = decompress(coding, from); err != nil {
			return nil, release, Errorf(Invalid, "the body is not %s: %w", coding, err)
		}
	default:
		return nil, release, Errorf(Invalid, "Content-Encoding %.40q is not known: use gzip or deflate", coding)
	}
	if r.ContentLength >= 0 && coding == "" {
		body = make([]byte, size)
		_, err = io.ReadFull(from, body)
	} else {
		body, err = io.ReadAll(io.LimitReader(from, limit+1))
	}
	switch {
	case err != nil:
		return nil, release, Errorf(Invalid, "read the body: %w", err)
	case int64(len(body)) > limit:
		return nil, release, Errorf(TooLarge, "the body has more than %d bytes, the most of a request to model %s", limit, m.Name)
	}
	// The connection is watched until the answer is sent, so that a caller who leaves is noticed.
	_ = control.SetReadDeadline(time.Time{})
	return body, release, nil
}

func decompress(coding string, from io.Reader) (io.Reader, error) {
	if coding == "gzip" {
		return gzip.NewReader(from)
	}
	return zlib.NewReader(from)
}

// smallAnswer is not worth compressing, in bytes.
const smallAnswer = 1 << 10

// send sends an answer: JSON, and the binary data of tensors after it.
func (h *HTTP) send(w http.ResponseWriter, r *http.Request, head []byte, parts [][]byte) {
	size := len(head)
	for _, p := range parts {
		size += len(p)
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	if len(parts) > 0 {
		header.Set("Content-Type", "application/octet-stream")
		header.Set(jsonLength, strconv.Itoa(len(head)))
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(slowAnswer))
	to, coding := io.Writer(w), acceptedCoding(r)
	if coding != "" && size > smallAnswer {
		header.Set("Content-Encoding", coding)
		var z io.WriteCloser
		if coding == "gzip" {
			z, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // a level that exists
		} else {
			z, _ = zlib.NewWriterLevel(w, zlib.BestSpeed)
		}
		defer z.Close()
		to = z
	} else {
		header.Set("Content-Length", strconv.Itoa(size))
	}
	for _, p := range append([][]byte{head}, parts...) {
		if _, err := to.Write(p); err != nil {
			return // the client has gone
		}
	}
}

// acceptedCoding is how the client accepts the answer compressed, "" for not.
func acceptedCoding(r *http.Request) string {
	for _, name := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(strings.ToLower(name)), ";")
		if (name == "gzip" || name == "deflate") && strings.ReplaceAll(quality, " ", "") != "q=0" {
			return name
		}
	}
	return ""
}

// splitBody separates JSON from the binary data after it.
func splitBody(body []byte, length string) (text, binary []byte, err error) {
	if length == "" {
		return body, nil, nil
	}
	n, err := strconv.ParseUint(length, 10, 63)
	switch {
	case err != nil:
		return nil, nil, Errorf(Invalid, "header %s is %.40q, and must be the number of bytes of JSON at the start of the body", jsonLength, length)
	case n > uint64(len(body)):
		return nil, nil, Errorf(Invalid, "header %s is %d, and the body has %d bytes", jsonLength, n, len(body))
	}
	return body[:n], body[n:], nil
}

// explainLength explains a body whose JSON and binary data are not where the header says.
func explainLength(text, binary []byte, length string, err error) error {
	if start := bytes.TrimLeft(text, " \t\r\n"); length == "" && len(start) > 0 && start[0] != '{' && start[0] != '[' {
		return Errorf(Invalid, "the body does not begin with the JSON of the protocol: set header %s to 0 if it is the data of the only input, such as a picture", jsonLength)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	var first json.RawMessage
	if dec.Decode(&first) != nil {
		return err
	}
	end := dec.InputOffset()
	if end == int64(len(text)) {
		return err
	}
	if length == "" {
		return Errorf(Invalid, "%d bytes follow the %d bytes of JSON: set header %s to the length of the JSON", int64(len(text))-end, end, jsonLength)
	}
	return Errorf(Invalid, "header %s is %s, the JSON has %d bytes, and the body has %d", jsonLength, length, end, len(text)+len(binary))
}

// checkNesting refuses JSON with too many levels before it is decoded.
func checkNesting(b []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > maxNesting {
				return Errorf(Invalid, "the JSON has more than %d levels", maxNesting)
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return nil
}

// errJSON describes an error of encoding/json.
func errJSON(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("at byte %d: %w", syntax.Offset, err)
	}
	return err
}
