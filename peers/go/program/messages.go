package program

import "errors"

const (
	// The number of the message that ends a block; others are numbered from 1.
	end = 0
	// Number of messages between two checks of the flag.
	round = 64
)

// Keeps what one goroutine writes off the cache lines of others.
type padding [128]byte

var errWrong = errors.New("a message was wrong, lost, repeated or out of order")
