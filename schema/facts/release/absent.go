package release

// Absent is a variable that people set and nothing reads.
type Absent struct {
	Name    string
	Since   string // first series that reads it; "" for none
	Instead string // what does the job
	Source  string
}

// absent lists variables from guides that bitbake and openembedded-core never read, or
// read only in later releases than often assumed. bitbake silently ignores variables
// that nothing reads. Each name was searched for in every branch.
func absent() []Absent {
	const searched = "searched in lib/bb, meta/conf, meta/classes* and meta/lib of all branches"
	return []Absent{
		{"BB_DEFAULT_TASK_MAXMEM", "", "limit tasks and jobs to the memory there is (parallel.machine), and set pressure.memory", searched},
		{"BB_TASK_MAXMEM", "", "give recipes that need much memory fewer jobs (parallel.recipes)", searched},
		{"BB_NUMBER_DOWNLOAD_THREADS", "", "set parallel.downloads: it is the number_threads flag of do_fetch", searched},
		{"BB_FETCH_THREADS", "", "set parallel.downloads: it is the number_threads flag of do_fetch", searched},
		{"BB_MAX_PARALLEL", "", "set parallel.tasks (BB_NUMBER_THREADS)", searched},
		{"BB_HASHSERVE_PORT", "", "write the port into hashserve.address", searched},
		{"SSTATE_MAX_SIZE", "", "clean the cache with sstate-cache-management", searched},
		{"OWN_MIRRORS", "", "set downloads.own: the class own-mirrors reads SOURCE_MIRROR_URL", searched},
		{"BB_LOADFACTOR_MAX", "scarthgap", "set pressure.cpu", "bitbake 2.8 lib/bb/runqueue.py"},
		{"BB_HASHSERVE_DB_DIR", "wrynose", "the database of the local server is in PERSISTENT_DIR, or CACHE", "bitbake 2.18 lib/bb/cooker.py"},
		{"BB_USE_HOME_NPMRC", "walnascar", "put the registry's address into the recipe", "bitbake 2.12 lib/bb/fetch2/npm.py"},
		{"OE_FRAGMENTS", "walnascar", "require the settings file in local.conf", "oe-core meta/conf/bitbake.conf"},
		{"UNPACKDIR", "styhead", "the layer brings its own definition", "oe-core meta/conf/bitbake.conf"},
	}
}

// FindAbsent returns the entry of a variable that has no effect on the release.
func (r Release) FindAbsent(name string) (Absent, bool) {
	for _, a := range absent() {
		if a.Name == name && (a.Since == "" || !atLeast(r.Series, a.Since)) {
			return a, true
		}
	}
	return Absent{}, false
}

// LacksImageFeature reports whether name is an image feature of image.bbclass on
// another release and not on this one, where it would leave the image's recipe
// out of the build.
func (r Release) LacksImageFeature(name string) bool {
	if r.HasImageFeature(name) {
		return false
	}
	for _, other := range table() {
		if other.HasImageFeature(name) {
			return true
		}
	}
	return false
}
