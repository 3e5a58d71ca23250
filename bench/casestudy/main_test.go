package main

import (
	"bytes"
	"testing"
)

func TestEnlargingRepeatsSamplesInBothDirections(t *testing.T) {
	got := enlarge(nil, []byte{1, 2, 3, 4, 5, 6, 7, 8}, 2, 2, 2)
	want := []byte{
		1, 2, 1, 2, 3, 4, 3, 4,
		1, 2, 1, 2, 3, 4, 3, 4,
		5, 6, 5, 6, 7, 8, 7, 8,
		5, 6, 5, 6, 7, 8, 7, 8,
	}
	if !bytes.Equal(got, want) {
		t.Errorf("a plane of two lines of two pairs becomes % x, wanted % x", got, want)
	}
}
