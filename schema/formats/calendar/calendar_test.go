package calendar_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/formats/calendar"
)

func TestEvents(t *testing.T) {
	for _, text := range []string{
		"daily", "Daily", "weekly UTC", "quarterly", "semi-annually",
		"Mon", "Mon,Wed 12:30", "Mon..Fri 08:00", "Sat,Sun *-*-* 08:00:00", "Monday 2027-01-04",
		"*-*-* 00:00:00", "*:0/15", "*-*-* *:*:00", "12-24", "2027-12-24T06:00", "27-12-24", "*-*-01..07 23:00", "*-02~01", "*-*~07/1", "Mon *-05~07/1",
		"08:05:40.23", "*:*:0/0.5", "2027-01-01 00:00:00 Europe/Berlin", "05:40 UTC", "@1395716396", "*-02-29",
	} {
		if err := calendar.Check(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{
		"", "dayly", "8", "Mon 8", "Mo 08:00", "25:00", "08:60", "*-13-01", "*-00-01", "*-*-32", "*:0/60", "*:0/0", "10..8:00", "Fri..Mon", "1-2-3-4", "*/2-*-*", "08:00:61", "*,1:00", "*-*~31", "08:00 Nowhere/",
	} {
		if err := calendar.Check(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	for _, text := range []string{"*-02-30", "*-04,06,09,11-31", "Mon 2027-01-01", "2027-02-29"} {
		if err := calendar.Check(text); !errors.Is(err, calendar.ErrNever) {
			t.Errorf("%q: %v, want %v", text, err, calendar.ErrNever)
		}
	}
}

// systemd-analyze reads the same events, and finds a time for the same ones.
func TestSystemdReadsTheSameEvents(t *testing.T) {
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	r := rand.New(rand.NewPCG(14, 14))
	seen := map[bool]int{}
	for range 300 {
		text := randomEvent(r)
		out, runErr := exec.Command(program, "calendar", text).CombinedOutput()
		isNever := strings.Contains(string(out), "Next elapse: never")
		got := calendar.Check(text)
		if isRead := got == nil || errors.Is(got, calendar.ErrNever); isRead != (runErr == nil) {
			t.Errorf("%q: %v; systemd: %v\n%s", text, got, runErr, out)
		}
		if runErr == nil && errors.Is(got, calendar.ErrNever) && !isNever {
			t.Errorf("%q: %v; systemd:\n%s", text, got, out)
		}
		seen[runErr == nil]++
	}
	if seen[true] < 50 || seen[false] < 50 {
		t.Errorf("%d events that systemd reads, and %d others: too few", seen[true], seen[false])
	}
}

// randomEvent composes an event of parts of which some are wrong.
func randomEvent(r *rand.Rand) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	number := func(low, high int) string { return fmt.Sprint(low + r.IntN(high-low+1)) }
	item := func(low, high int) string {
		one := number(low, high)
		switch r.IntN(8) {
		case 0:
			return "*"
		case 1:
			return one + ".." + number(low, high)
		case 2:
			return one + "/" + number(0, high/2+1)
		case 3:
			return one + ".." + number(low, high) + "/" + number(1, 3)
		case 4:
			return one + "," + number(low, high)
		case 5:
			return "0" + one
		}
		return one
	}
	days := pick("", "", "", "Mon ", "Tue,Thu ", "Mon..Fri ", "sunday ", "Fri-Sat ", "Sat..Tue ", "Mo ", "Wed, ", "Mon..Wed,Fri ")
	date := pick("", "", "*-*-* ", item(1, 12)+"-"+item(1, 31)+" ", item(2026, 2040)+"-"+item(1, 13)+"-"+item(1, 31)+" ", "*-"+item(1, 12)+"~"+item(1, 29)+" ", item(1, 12)+" ")
	clock := pick("", item(0, 23)+":"+item(0, 59), item(0, 24)+":"+item(0, 60)+":"+item(0, 59), "*:*:"+item(0, 59)+".5", item(0, 23))
	zone := pick("", "", "", "", " UTC", " Europe/Berlin")
	if r.IntN(8) == 0 {
		return pick("daily", "hourly", "Weekly", "dayly", "annually", "monthly UTC", "bi-annually")
	}
	return strings.TrimSpace(days+date+clock) + zone
}

func FuzzCheck(f *testing.F) {
	for _, text := range []string{"Mon..Fri 08:00", "*-*~07/1 0:0:0.5 UTC", "@1"} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) { _ = calendar.Check(text) })
}
