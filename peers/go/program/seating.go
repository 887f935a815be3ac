package program

// Chooses one of the CPUs for each part of a scenario.
type seating func(cpus []int, parts int) []int

// The last part, a receiver, has the second CPU to itself; senders share the others.
func receiverAlone(cpus []int, parts int) []int {
	receiver, others := cpus[0], cpus
	if len(cpus) > 1 {
		receiver = cpus[1]
		others = append([]int{cpus[0]}, cpus[2:]...)
	}
	return append(inTurn(others, parts-1), receiver)
}

// The first part, a sender, has the first CPU to itself; receivers share the others.
func senderAlone(cpus []int, parts int) []int {
	others := cpus
	if len(cpus) > 1 {
		others = cpus[1:]
	}
	return append([]int{cpus[0]}, inTurn(others, parts-1)...)
}

// Parts that follow each other have different CPUs.
func inTurn(cpus []int, parts int) []int {
	places := make([]int, parts)
	for i := range places {
		places[i] = cpus[i%len(cpus)]
	}
	return places
}
