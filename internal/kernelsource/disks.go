package kernelsource

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Disk is a kind of disks that a source of the tree names.
type Disk struct {
	Names string // pattern, as in [Thread]: nvme#n#
	// Depth is the largest number of requests that the driver's hardware queue takes; 0 where it
	// depends on the device. A disk without a queue of requests has none.
	Depth int
	// Param is the module parameter that sets Depth+Less; "" where none does.
	Param  string
	Less   int
	Queued bool // the driver is known to use a queue of requests
	Direct bool // the driver takes each I/O without one
	Source string
	Needs  []string
}

var (
	diskCall  = regexp.MustCompile(`\b(?:sprintf|snprintf|scnprintf|strcpy|strscpy|strlcpy|strncpy|\w+_format_disk_name|\w+_name_format)\s*\(`)
	diskText  = regexp.MustCompile(`\bstruct\s+mtd_blktrans_ops\s+\w+\s*=\s*\{\s*\.name\s*=\s*"(\w+)"`)
	namesDisk = regexp.MustCompile(`(?s)\b\w+_disk_name\([^;{}]*\)\s*\{.*?\n\}`)
	diskSet   = regexp.MustCompile(`\b(?:\w*tag_?sets?\w*|tags|set)(?:\[\w+\])?\s*(?:\.|->)queue_depth\s*=([^=;][^;]*);`)
	diskSQ    = regexp.MustCompile(`\bblk_mq_(?:init_sq_queue|alloc_sq_tag_set)\s*\(`)
	queued    = regexp.MustCompile(`\b(?:blk_mq_alloc_disk|blk_mq_init_queue|blk_mq_alloc_queue|blk_init_queue|blk_mq_init_sq_queue|blk_mq_alloc_sq_tag_set|blk_mq_init_allocated_queue|blk_mq_alloc_tag_set)\b`)
	direct    = regexp.MustCompile(`\.submit_bio\s*=|\bblk_queue_make_request\b|\bblk_alloc_queue\(\w+_make_request`)
	constant  = regexp.MustCompile(`(?m)^[ \t]*(?:#[ \t]*define[ \t]+)?(\w+)[ \t]*(?:=[ \t]*)?([(\w][^,\n"]*?),?[ \t]*$`)
	variable  = regexp.MustCompile(`(?m)^static\s+(?:unsigned\s+)?(?:int|u16|u32|uint)\s+(\w+)\s*=([^;]+);`)
	member    = regexp.MustCompile(`(?:\.|->)(\w+)\s*=([^=;][^;]*);`)
)

// Queue limits of the block layer.
type QueueLimits struct {
	Min       int // smaller numbers count as this one (BLKDEV_MIN_RQ)
	Scheduler int // longest queue with a scheduler; 0 where the kernel has none for blk-mq
}

// queueHeaders define the constants of request queues.
var queueHeaders = []string{"include/linux/blkdev.h", "include/linux/blk-mq.h", "block/blk-mq-sched.h"}

// QueueLimits reads the limits of nr_requests.
func (t *Tree) QueueLimits() QueueLimits {
	e := t.newEvaluator(t.roots[0], append(queueHeaders, "block/blk-mq-tag.c")...)
	limits := QueueLimits{Min: e.value("BLKDEV_MIN_RQ", 0).n, Scheduler: e.value("MAX_SCHED_RQ", 0).n}
	if m := regexp.MustCompile(`tdepth > (16 \* \w+)\)`).FindStringSubmatch(e.text["block/blk-mq-tag.c"]); limits.Scheduler == 0 && m != nil {
		limits.Scheduler = e.value(m[1], 0).n
	}
	return limits
}

// Disks lists the kinds of disks that the sources of an arm64 kernel name, sorted.
func (t *Tree) Disks(objects []Object) []Disk {
	x := &extractor{tree: t, clean: map[string]string{}}
	var found []Disk
	for _, o := range objects {
		if raw := string(t.files[o.Source]); !strings.Contains(raw, "disk_name") && !strings.Contains(raw, "DISK_NAME_LEN") && !strings.Contains(raw, "mtd_blktrans_ops") {
			continue
		}
		names := diskNames(x, o)
		if len(names) == 0 {
			continue
		}
		d := t.queueOf(o)
		d.Source, d.Needs = t.inner(o.Source), o.Needs
		for _, n := range names {
			d.Names = n
			found = append(found, d)
		}
	}
	key := func(d Disk) string { return d.Names + "\x00" + d.Source + "\x00" + strings.Join(d.Needs, ",") }
	slices.SortFunc(found, func(a, b Disk) int { return cmp.Compare(key(a), key(b)) })
	return slices.CompactFunc(found, func(a, b Disk) bool { return key(a) == key(b) })
}

func diskNames(x *extractor, o Object) []string {
	f := &unit{x: x, source: o.Source, object: o, text: x.text(o.Source), macros: map[string]string{}}
	for _, m := range textDefine.FindAllStringSubmatch(f.text, -1) {
		f.macros[m[1]] = m[2]
	}
	var names []string
	add := func(format string) {
		if fixed := conversion.ReplaceAllString(format, ""); len(strings.Trim(fixed, "-_/:. ")) > 1 && !strings.ContainsAny(format, " #*?[]\\\t") {
			names = append(names, threadPattern(format))
		}
	}
	for _, at := range diskCall.FindAllStringIndex(f.text, -1) {
		args := arguments(f.text[at[1]:])
		if !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "disk_name") || strings.Contains(a, "DISK_NAME_LEN") }) {
			continue
		}
		for i, a := range args {
			if format, ok := f.literal(a); ok && i < 3 {
				if !strings.Contains(format, "%") { // letters follow, as in sd_format_disk_name("sd", …)
					format += "%s"
				}
				add(format)
				break
			}
		}
	}
	// nvdimm_namespace_disk_name
	for _, body := range namesDisk.FindAllString(f.text, -1) {
		for _, at := range diskCall.FindAllStringIndex(body, -1) {
			if args := arguments(body[at[1]:]); len(args) > 1 {
				if format, ok := f.literal(args[1]); ok {
					add(format)
				}
			}
		}
	}
	for _, m := range diskText.FindAllStringSubmatch(f.text, -1) {
		add(m[1] + "%d")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// shared are folders whose sources are drivers of their own.
var shared = []string{"drivers/block", "drivers/md", "drivers/mtd", "drivers/scsi", "drivers/cdrom"}

// overNetwork are transports of NVMe other than PCI Express: the depth is agreed upon when a
// connection is made, and the names of the disks are the same.
var overNetwork = []string{"drivers/nvme/host/rdma.c", "drivers/nvme/host/tcp.c", "drivers/nvme/host/fc.c", "drivers/nvme/host/fabrics.c", "drivers/nvme/host/apple.c"}

// queueOf reads how long the hardware queue of a driver is: from its source, else from its folder.
func (t *Tree) queueOf(o Object) Disk {
	root := t.rootOf(o.Source)
	rel := func(name string) string { return strings.TrimPrefix(strings.TrimPrefix(name, root), "/") }
	files := []string{rel(o.Source)}
	stem := strings.TrimSuffix(path.Base(o.Source), ".c")
	alone := slices.Contains(shared, path.Dir(rel(o.Source)))
	for _, name := range t.sorted() {
		base := path.Base(name)
		ours := !alone || strings.HasPrefix(base, stem+"-") || strings.HasPrefix(base, stem+"_")
		if ours && path.Dir(name) == path.Dir(o.Source) && !slices.Contains(overNetwork, rel(name)) {
			files = append(files, rel(name))
		}
	}
	// The core of NVMe makes the queues of connections over a network, and of PCI Express on newer kernels.
	if i := slices.IndexFunc(files, func(name string) bool { return path.Base(name) == "pci.c" }); i > 0 {
		files[0], files[i] = files[i], files[0]
	}
	e := t.newEvaluator(root, append(files, queueHeaders...)...)
	var d Disk
	for _, name := range files {
		text := e.text[name]
		d.Queued = d.Queued || queued.MatchString(text)
		d.Direct = d.Direct || direct.MatchString(text)
		var depths []string
		for _, m := range diskSet.FindAllStringSubmatch(text, -1) {
			depths = append(depths, m[1])
		}
		for _, at := range diskSQ.FindAllStringIndex(text, -1) {
			if args := arguments(text[at[1]:]); len(args) > 2 {
				depths = append(depths, args[2])
			}
		}
		if d.Depth > 0 {
			continue
		}
		for _, expr := range depths {
			if v := e.value(expr, 0); !strings.Contains(expr, "AQ_") && v.n > d.Depth {
				d.Depth, d.Param, d.Less = v.n, v.param, v.less
			}
		}
	}
	return d
}

// evaluator computes constant expressions of C from the definitions in some files.
type evaluator struct {
	text      map[string]string
	constants map[string]string
	params    map[string]bool
	members   map[string][]string
}

func (t *Tree) newEvaluator(root string, files ...string) *evaluator {
	e := &evaluator{map[string]string{}, map[string]string{}, map[string]bool{}, map[string][]string{}}
	for _, name := range files {
		raw := t.files[path.Join(root, name)]
		if raw == nil {
			raw = t.files[path.Join(t.roots[0], name)]
		}
		text := stripComments(string(raw))
		e.text[name] = text
		for _, m := range constant.FindAllStringSubmatch(text, -1) {
			if _, known := e.constants[m[1]]; !known {
				e.constants[m[1]] = m[2]
			}
		}
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			e.constants[m[1]] = m[2]
			e.params[m[1]] = regexp.MustCompile(`\b\w+_param\w*\(\s*` + m[1] + `\b`).MatchString(text)
		}
		for _, m := range member.FindAllStringSubmatch(text, -1) {
			e.members[m[1]] = append(e.members[m[1]], m[2])
		}
	}
	return e
}

// number is the value of an expression: 0 where it is not known. A value that follows from a
// module parameter is less smaller than the parameter.
type number struct {
	n     int
	param string
	less  int
}

var (
	minimum   = regexp.MustCompile(`^min(?:_t)?\s*\(`)
	operation = regexp.MustCompile(`^(.+?)\s*([-*+])\s*(\w+)$`)
	field     = regexp.MustCompile(`^[\w.\[\]>-]+(?:->|\.)(\w+)$`)
	word1     = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

func (e *evaluator) value(expr string, depth int) number {
	expr = strings.Join(strings.Fields(expr), " ")
	for strings.HasPrefix(expr, "(") && strings.HasSuffix(expr, ")") && balanced(expr[1:len(expr)-1]) {
		expr = strings.TrimSpace(expr[1 : len(expr)-1])
	}
	if n, err := strconv.ParseInt(strings.TrimRight(expr, "uUlL"), 0, 32); err == nil {
		return number{n: int(n)}
	}
	if depth > 8 {
		return number{}
	}
	switch {
	case minimum.MatchString(expr) && balanced(expr) && strings.HasSuffix(expr, ")"):
		return e.least(expr, depth)
	case operation.MatchString(expr):
		m := operation.FindStringSubmatch(expr)
		a, b := e.value(m[1], depth+1), e.value(m[3], depth+1)
		switch {
		case a.n == 0 || b.n == 0 || !balanced(m[1]):
			return number{}
		case m[2] == "-":
			return number{a.n - b.n, a.param, a.less + b.n}
		case m[2] == "+":
			return number{a.n + b.n, a.param, a.less - b.n}
		}
		return number{n: a.n * b.n}
	case word1.MatchString(expr):
		v := number{}
		if text, ok := e.constants[expr]; ok {
			v = e.value(text, depth+1)
		}
		if e.params[expr] {
			v.param, v.less = expr, 0
		}
		return v
	case field.MatchString(expr):
		var most number
		for _, text := range e.members[field.FindStringSubmatch(expr)[1]] {
			if v := e.value(text, depth+1); v.n > most.n {
				most = v
			}
		}
		return most
	}
	return number{}
}

// least returns the smallest of the arguments of min that are known.
func (e *evaluator) least(expr string, depth int) number {
	args := arguments(expr[strings.IndexByte(expr, '(')+1:])
	if strings.HasPrefix(expr, "min_t") && len(args) > 0 {
		args = args[1:]
	}
	var least number
	for _, a := range args {
		if v := e.value(a, depth+1); v.n > 0 && (least.n == 0 || v.n < least.n) {
			least = v
		}
	}
	return least
}

func balanced(s string) bool {
	depth := 0
	for _, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth < 0 {
			return false
		}
	}
	return depth == 0
}
