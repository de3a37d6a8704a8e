// Package limit slows callers down to a rate they share.
package limit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrTooMany is returned when more is asked for than a bucket can ever hold.
var ErrTooMany = errors.New("limit: more than the bucket holds")

const defaultBurst = 10

// Bucket gives out tokens at a steady rate, and some at once after a pause.
type Bucket struct {
	mu     sync.Mutex
	rate   float64
	burst  int
	tokens float64
	last   time.Time
	now    func() time.Time
}

// Option changes a new bucket.
type Option func(*Bucket)

// WithBurst sets how many tokens a bucket holds.
func WithBurst(burst int) Option {
	return func(b *Bucket) { b.burst = burst }
}

// WithClock replaces the clock.
func WithClock(now func() time.Time) Option {
	return func(b *Bucket) { b.now = now }
}

// New makes a full bucket that gains rate tokens a second.
func New(rate float64, options ...Option) *Bucket {
	b := &Bucket{rate: rate, burst: defaultBurst, now: time.Now}
	for _, option := range options {
		option(b)
	}
	b.tokens = float64(b.burst)
	b.last = b.now()
	return b
}

// Allow takes n tokens if they are there.
func (b *Bucket) Allow(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill()
	if b.tokens < float64(n) {
		return false
	}
	b.tokens -= float64(n)
	return true
}

// Wait blocks until n tokens are there, or the context ends.
func (b *Bucket) Wait(ctx context.Context, n int) error {
	if n > b.burst {
		return ErrTooMany
	}
	for !b.Allow(n) {
		b.mu.Lock()
		missing := float64(n) - b.tokens
		pause := time.Duration(missing / b.rate * float64(time.Second))
		b.mu.Unlock()
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
	return nil
}

func (b *Bucket) refill() {
	now := b.now()
	b.tokens += now.Sub(b.last).Seconds() * b.rate
	b.tokens = min(b.tokens, float64(b.burst))
	b.last = now
}
