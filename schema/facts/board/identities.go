// Code generated from data/*.json by go run ./internal/cmd/facts update. DO NOT EDIT.

package board

// recognised are the boards that a device tree identifies, by module or by kit.
var recognised = []string{"agx-orin-32gb", "agx-orin-64gb", "agx-orin-industrial", "agx-xavier-industrial", "agx-xavier", "orin-nano-4gb", "orin-nano-8gb", "orin-nx-16gb", "orin-nx-8gb", "thor-t5000", "tx2-4gb-nx", "tx2", "xavier-nx"}

func modules(id string) []string {
	switch id {
	case "agx-orin-32gb":
		return []string{"p3701-0004"}
	case "agx-orin-64gb":
		return []string{"p3701-0000", "p3701-0005"}
	case "agx-orin-industrial":
		return []string{"p3701-0008"}
	case "orin-nano-4gb":
		return []string{"p3767-0004"}
	case "orin-nano-8gb":
		return []string{"p3767-0003", "p3767-0005"}
	case "orin-nx-16gb":
		return []string{"p3767-0000"}
	case "orin-nx-8gb":
		return []string{"p3767-0001"}
	case "thor-t5000":
		return []string{"p3834-0008"}
	case "xavier-nx":
		return []string{"p3668-0000", "p3668-0001", "p3668-0003"}
	}
	return nil
}

func kits(id string) []string {
	switch id {
	case "agx-xavier-industrial":
		return []string{"nvidia,galen-industrial", "nvidia,jetson-xavier-industrial"}
	case "agx-xavier":
		return []string{"nvidia,p2972-0000", "nvidia,jetson-xavier"}
	case "tx2-4gb-nx":
		return []string{"nvidia,p3509-0000+p3636-0001"}
	case "tx2":
		return []string{"nvidia,p2771-0000"}
	}
	return nil
}
