// Package outcome classifies what happened to a setting on a node and explains
// failed reads and writes of kernel files. Nothing here touches a file.
package outcome

// Outcome is what became of one setting on one node.
type Outcome string

// Outcomes. Only OK means that the kernel holds the wanted value.
const (
	OK          Outcome = "ok"          // found is what was wanted
	Adjusted    Outcome = "adjusted"    // written, and the kernel made another value of it
	Partial     Outcome = "partial"     // written, and the kernel could give only a part
	Pending     Outcome = "pending"     // in force after a reboot, a reflash or the loading of a module
	Differs     Outcome = "differs"     // found is something else, and nothing was written
	Unsupported Outcome = "unsupported" // the node is not there, or cannot be compared
	Refused     Outcome = "refused"     // the kernel did not accept the value
	Forbidden   Outcome = "forbidden"   // this process, or any, may not write it
	Busy        Outcome = "busy"        // in use by something that did not let go
	Contested   Outcome = "contested"   // somebody else wants another value
	Capped      Outcome = "capped"      // the kernel holds it lower for now, e.g. for heat
	Stale       Outcome = "stale"       // the node did not answer in time
)

// Outcomes lists all, in the order in which a summary counts them.
func Outcomes() []Outcome {
	return []Outcome{OK, Adjusted, Partial, Pending, Differs, Unsupported, Refused, Forbidden, Busy, Contested, Capped, Stale}
}
