package device

// UnitOf is unitOf for tests.
var UnitOf = unitOf
