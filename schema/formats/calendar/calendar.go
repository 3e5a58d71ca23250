// Package calendar parses the times of the calendar at which timers of systemd start, such as
// "Mon..Fri 08:00" (systemd.time(7), "Calendar events").
package calendar

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yoctune/yoctune/internal/lazyregexp"
)

// ErrNever is returned for an event of which no day exists, such as one of 30 February.
var ErrNever = errors.New("no day of the calendar matches")

// Check returns nil for an event that systemd reads and that has a time.
func Check(text string) error {
	e, err := parse(text)
	if err != nil {
		return err
	}
	if !e.hasDay() {
		return ErrNever
	}
	return nil
}

// event is a set of times: every list of components matches any of its elements, and an empty list
// matches everything.
type event struct {
	weekdays         []int // 0 is Monday
	year, month, day []component
	fromEnd          bool // days are counted from the end of the month
}

// component is a value, a range, or a value that repeats.
type component struct{ first, last, step int } // step 0: first alone

const secondSteps = 1_000_000 // seconds are counted in microseconds, as they have decimals

// words of whole events, without regard to case.
var words = map[string]string{
	"minutely": "*-*-* *:*:00", "hourly": "*-*-* *:00:00", "daily": "*-*-* 00:00:00", "weekly": "Mon *-*-* 00:00:00", "monthly": "*-*-01 00:00:00",
	"yearly": "*-01-01 00:00:00", "annually": "*-01-01 00:00:00", "anually": "*-01-01 00:00:00",
	"quarterly":  "*-01,04,07,10-01 00:00:00",
	"biannually": "*-01,07-01 00:00:00", "bi-annually": "*-01,07-01 00:00:00", "semiannually": "*-01,07-01 00:00:00", "semi-annually": "*-01,07-01 00:00:00",
}

var (
	// Names of time zones: those of the database have a region, but for a few such as "Japan".
	zone     = lazyregexp.New(` ([A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*)$`)
	epoch    = lazyregexp.New(`^@[0-9]{1,17}$`)
	dayNames = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
)

func parse(text string) (event, error) {
	var e event
	rest := text
	if m := zone.FindStringSubmatch(rest); m != nil && !isDayList(m[1]) {
		rest = strings.TrimSuffix(rest, m[0])
	}
	if whole, ok := words[strings.ToLower(rest)]; ok {
		rest = whole
	}
	if epoch.MatchString(rest) {
		return e, nil
	}
	rest, err := e.parseDays(rest)
	if err != nil {
		return e, err
	}
	date, clock, both := strings.Cut(rest, " ")
	if !both {
		date, clock, both = strings.Cut(rest, "T")
	}
	clock = strings.TrimLeft(clock, " ")
	if !both && (strings.Contains(date, ":")) {
		date, clock = "", date
	}
	if date == "" && clock == "" && len(e.weekdays) == 0 {
		return e, errors.New("it is empty")
	}
	if err := e.parseDate(date); err != nil {
		return e, err
	}
	return e, parseClock(clock)
}

// isDayList reports whether a word lists days of the week.
func isDayList(word string) bool {
	return slices.ContainsFunc(dayNames, func(d string) bool { return strings.EqualFold(d, word) || strings.EqualFold(d[:3], word) })
}

// parseDays reads the days of the week that an event may begin with, and returns what follows.
func (e *event) parseDays(text string) (string, error) {
	if text == "" || !isLetter(text[0]) {
		return text, nil
	}
	list, rest, _ := strings.Cut(text, " ")
	for _, part := range strings.Split(list, ",") {
		if part == "" && len(e.weekdays) > 0 {
			continue
		}
		first, last, isRange := strings.Cut(part, "..")
		if !isRange {
			first, last, isRange = strings.Cut(part, "-")
		}
		from, to := dayNumber(first), dayNumber(last)
		if !isRange {
			to = from
		}
		if from < 0 || to < 0 {
			return "", fmt.Errorf("%q is not a day of the week", part)
		}
		if from > to {
			return "", fmt.Errorf("%s is a range that ends before it begins", part)
		}
		for d := from; d <= to; d++ {
			e.weekdays = append(e.weekdays, d)
		}
	}
	return strings.TrimLeft(rest, " "), nil
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func dayNumber(name string) int {
	return slices.IndexFunc(dayNames, func(d string) bool { return strings.EqualFold(d, name) || strings.EqualFold(d[:3], name) })
}

// parseDate reads YEAR-MONTH-DAY, MONTH-DAY, or with "~" before the day one counted from the end of
// the month. Every day if it is empty.
func (e *event) parseDate(text string) error {
	if text == "" {
		return nil
	}
	head, tail, fromEnd := strings.Cut(text, "~")
	parts := strings.Split(head, "-")
	if fromEnd {
		parts = append(parts, tail)
	}
	e.fromEnd = fromEnd
	if len(parts) < 2 || len(parts) > 3 {
		return fmt.Errorf("%q is not a date such as *-*-01", text)
	}
	if len(parts) == 2 {
		parts = append([]string{"*"}, parts...)
	}
	var err error
	if e.year, err = parseList(parts[0], "year", 1970, 2199, false); err == nil {
		if e.month, err = parseList(parts[1], "month", 1, 12, false); err == nil {
			e.day, err = parseList(parts[2], "day", 1, 31, fromEnd)
		}
	}
	for i := range e.year { // two digits are of this century, or of the last one
		for _, n := range []*int{&e.year[i].first, &e.year[i].last} {
			switch {
			case *n < 0: // no end
			case *n < 70:
				*n += 2000
			case *n < 100:
				*n += 1900
			}
		}
	}
	return err
}

// parseClock reads HOUR:MINUTE or HOUR:MINUTE:SECOND; midnight if it is empty.
func parseClock(text string) error {
	if text == "" {
		return nil
	}
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return fmt.Errorf("%q is not a time such as 08:00", text)
	}
	if _, err := parseList(parts[0], "hour", 0, 23, false); err != nil {
		return err
	}
	if _, err := parseList(parts[1], "minute", 0, 59, false); err != nil || len(parts) == 2 {
		return err
	}
	_, err := parseList(parts[2], "second", 0, 60*secondSteps-1, false)
	return err
}

// parseList reads components separated by commas. "*" matches everything, and the list is empty.
func parseList(text, what string, low, high int, fromEnd bool) ([]component, error) {
	var all []component
	for _, part := range strings.Split(text, ",") {
		if part == "*" {
			if len(all) > 0 || text != "*" {
				return nil, fmt.Errorf("%q lists more than every %s", text, what)
			}
			return nil, nil
		}
		c, err := parseComponent(part, what == "second")
		if err != nil {
			return nil, fmt.Errorf("%q is not a %s: %w", part, what, err)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b component) int { return cmp.Compare(a.first, b.first) })
	for _, c := range all {
		if fromEnd {
			high -= 3 // each month has that day; systemd lowers the limit for each further one of the list
		}
		if err := c.check(what, low, high, fromEnd); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func parseComponent(text string, isSecond bool) (c component, err error) {
	span, step, repeats := strings.Cut(text, "/")
	first, last, isRange := strings.Cut(span, "..")
	if c.first, err = parseNumber(first, isSecond); err != nil {
		return c, err
	}
	c.last = -1
	if isRange {
		if c.last, err = parseNumber(last, isSecond); err != nil {
			return c, err
		}
		if c.step = 1; isSecond {
			c.step = secondSteps
		}
		if c.last < c.first {
			return c, errors.New("the range ends before it begins")
		}
	}
	if repeats {
		if c.step, err = parseNumber(step, isSecond); err == nil && c.step == 0 {
			err = errors.New("it repeats after 0")
		}
	}
	if isRange && !repeats && c.first < c.last && c.first+c.step > c.last {
		return c, errors.New("the range is shorter than its step")
	}
	if isRange && c.first+c.step > c.last {
		c.last, c.step = -1, 0 // the range has its first value only
	}
	if c.last >= 0 {
		c.last -= (c.last - c.first) % c.step // the last value that the step reaches
	}
	return c, err
}

var errNumber = errors.New("a whole number is missing")

// parseNumber reads a number; of seconds up to six decimals, in microseconds.
func parseNumber(text string, isSecond bool) (int, error) {
	whole, decimals, hasPoint := strings.Cut(text, ".")
	if hasPoint && (!isSecond || decimals == "" || len(decimals) > 6) || strings.Trim(whole+decimals, "0123456789") != "" || whole == "" {
		return 0, errNumber
	}
	n, err := strconv.Atoi(whole)
	if err != nil || n > 1_000_000 {
		return 0, errNumber
	}
	if !isSecond {
		return n, nil
	}
	part := 0
	if hasPoint {
		part, err = strconv.Atoi((decimals + "000000")[:6])
	}
	return n*secondSteps + part, err
}

// check applies the limits of a component. A repetition must occur once at least.
func (c component) check(what string, low, high int, fromEnd bool) error {
	wanted := fmt.Errorf("a %s is from %d to %d", what, low, high)
	if what == "second" {
		wanted = errors.New("a second is from 0 to 59")
	}
	if what == "year" && c.first < 100 {
		return nil
	}
	if c.first < low || c.first > high || c.last > high {
		return wanted
	}
	switch {
	case c.last < 0 && fromEnd && c.first-c.step < low,
		c.last < 0 && !fromEnd && c.first+c.step > high:
		return fmt.Errorf("the %s never repeats: its step is too long", what)
	}
	return nil
}

func (c component) matches(n int) bool {
	switch {
	case c.step == 0:
		return n == c.first
	case c.last >= 0 && n > c.last:
		return false
	}
	return n >= c.first && (n-c.first)%c.step == 0
}

func matchesAny(list []component, n int) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(c component) bool { return c.matches(n) })
}

// hasDay reports whether some day matches in the years that systemd reads.
func (e event) hasDay() bool {
	for year := 1970; year < 2200; year++ {
		if !matchesAny(e.year, year) {
			continue
		}
		for month := 1; month <= 12; month++ {
			if matchesAny(e.month, month) && e.hasDayIn(year, month) {
				return true
			}
		}
	}
	return false
}

func (e event) hasDayIn(year, month int) bool {
	length := daysIn(year, month)
	for day := 1; day <= length; day++ {
		if e.matchesDay(day, length) && (len(e.weekdays) == 0 || slices.Contains(e.weekdays, weekday(year, month, day))) {
			return true
		}
	}
	return false
}

// matchesDay reports whether the days match one of a month of some length. Days from the end
// are counted down, and so do their repetitions.
func (e event) matchesDay(day, length int) bool {
	if !e.fromEnd || len(e.day) == 0 {
		return matchesAny(e.day, day)
	}
	return slices.ContainsFunc(e.day, func(c component) bool {
		left := length - day + 1 // 1 on the last day
		switch {
		case c.step == 0:
			return left == c.first
		case c.last >= 0:
			return left >= c.first && left <= c.last && (left-c.first)%c.step == 0
		}
		return left <= c.first && (c.first-left)%c.step == 0
	})
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// weekday is 0 on Mondays.
func weekday(year, month, day int) int {
	return (int(time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Weekday()) + 6) % 7
}
