package api_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/api"
)

func TestDecodeRejectsPartialAndUnknownRequests(t *testing.T) {
	for line, ok := range map[string]bool{
		`{"type":"acquire","profile":"high-performance","ttl_ms":60000}`: true,
		`{"type":"renew"}`:                             true,
		`{"type":"revoke","lease":7}`:                  true,
		`{"type":"watch"}`:                             true,
		`{"type":"sample","max_age_ms":900}`:           true,
		`{"type":"sample","max_age_ms":-1}`:            false,
		`{"type":"reboot"}`:                            false,
		`{"type":"acquire","exec":"/bin/sh"}`:          false,
		`{"type":"acquire","ttl_ms":-1}`:               false,
		`{"type":"acquire","ttl_ms":9.3e18}`:           false,
		`{"type":"revoke","lease":-1}`:                 false,
		`{"type":"renew"}{"type":"renew"}`:             false,
		`{"type":"renew"} x`:                           false,
		`[]`:                                           false,
		`null`:                                         false,
		``:                                             false,
		`{"type":"` + strings.Repeat("x", 5000) + `"}`: false,
	} {
		if _, err := api.Decode([]byte(line)); (err == nil) != ok || err != nil && !errors.Is(err, api.ErrMalformed) {
			t.Errorf("%.60s: %v", line, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"acquire","profile":"high-performance","ttl_ms":60000}`))
	f.Add([]byte(`{"type":"revoke","lease":18446744073709551615}`))
	f.Add([]byte("{\"type\":\"\\u001b\"}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := api.Decode(line)
		if err != nil {
			if !errors.Is(err, api.ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if r.Type == "" || r.TTL < 0 || r.MaxAge < 0 {
			t.Fatalf("%+v", r)
		}
	})
}
