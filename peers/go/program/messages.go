package program

import (
	"errors"
	"fmt"
	"math"
)

const (
	// The number of the message that ends a block; others are numbered from 1.
	end = 0
	// The sender's number is above these bits.
	numberBits = 56
	// Messages between two looks at a flag or the clock.
	round = 64
)

// Keeps what one goroutine writes off the cache lines of others.
type padding [128]byte

func firstOf(sender int) uint64 { return uint64(sender)<<numberBits + 1 }

func endOf(sender int) uint64 { return uint64(sender)<<numberBits + end }

func isEnd(message uint64) bool { return message<<(64-numberBits) == end }

// The last message of each sender.
type lasts []uint64

func newLasts(senders int) lasts {
	l := make(lasts, senders)
	for sender := range l {
		l[sender] = endOf(sender)
	}
	return l
}

// Returns the bits in which a message is not its sender's next one.
func (l lasts) verify(message uint64) uint64 {
	sender := message >> numberBits
	if sender >= uint64(len(l)) {
		return math.MaxUint64
	}
	l[sender]++
	return message ^ l[sender]
}

var errWrong = errors.New("a message was wrong, lost, repeated or out of order")

// The error of messages that are wrong in some bits, or not as many as were sent.
func verdict(wrong, sent, received uint64) error {
	if wrong != 0 {
		return errWrong
	}
	if sent != received {
		return fmt.Errorf("%d of %d messages arrived", received, sent)
	}
	return nil
}
