// Package store keeps things.
package store

import (
	"fmt"
	str "strings"
)

const Limit = 10

const (
	First = iota
	Second
)

var cache, other = map[string]int{}, 1

// Store keeps items by key.
type Store struct {
	sync.Mutex
	items map[string]int
	Name, Label string
}

type Reader interface {
	io.Closer
	Read(key string) (int, error)
}

type Key = string
type Handler func(key Key) error

// New makes a Store.
func New(name string) *Store {
	local := &Store{Name: name}
	return local
}

func (s *Store) Read(key string) (int, error) {
	return s.items[key], fmt.Errorf("no %s", str.ToUpper(key))
}

func (l List[T]) Len() int { return len(l) }

func Map[T any](xs []T, f func(T) T) []T { return apply[T](xs, f) }
