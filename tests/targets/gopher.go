// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
// A Go program: main.hot < main.mid < main.main, and main.hot < main.worker.func1 on a goroutine.
// usage: gopher SECONDS
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

//go:noinline
func hot(end time.Time, x uint64) uint64 {
	for time.Now().Before(end) {
		for i := uint64(0); i < 400000; i++ {
			x = x*6364136223846793005 + i
		}
	}
	return x
}

//go:noinline
func mid(end time.Time) uint64 { return hot(end, 1) + 1 }

func worker(end time.Time, done chan uint64) {
	go func() { done <- hot(end, 2) + 3 }()
}

func main() {
	seconds := 2.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	end := time.Now().Add(time.Duration(seconds * 1e9))
	done := make(chan uint64)
	worker(end, done)
	fmt.Println(mid(end) ^ <-done)
}
