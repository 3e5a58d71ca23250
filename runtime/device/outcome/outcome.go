// Package outcome classifies what happened to a setting on a node and explains
// failed reads and writes of kernel files. It accesses no files.
package outcome

// Outcome is the result of one setting on one node.
type Outcome string

// Outcomes. Only OK means that the kernel holds the wanted value.
const (
	OK          Outcome = "ok"          // the node has the wanted value
	Adjusted    Outcome = "adjusted"    // written, and changed by the kernel
	Partial     Outcome = "partial"     // written, with only a part allocated
	Pending     Outcome = "pending"     // in force after a reboot, a reflash or the loading of a module
	Differs     Outcome = "differs"     // the node has another value, and was not written
	Unsupported Outcome = "unsupported" // the node does not exist or cannot be compared
	Refused     Outcome = "refused"     // the kernel did not accept the value
	Forbidden   Outcome = "forbidden"   // the write is not permitted
	Busy        Outcome = "busy"        // the node stayed in use
	Contested   Outcome = "contested"   // another program or setting sets another value
	Capped      Outcome = "capped"      // a thermal limit holds it below the wanted value
	Stale       Outcome = "stale"       // the node did not answer in time
)

// Outcomes returns all outcomes in the order of a summary.
func Outcomes() []Outcome {
	return []Outcome{OK, Adjusted, Partial, Pending, Differs, Unsupported, Refused, Forbidden, Busy, Contested, Capped, Stale}
}
