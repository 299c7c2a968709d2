#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A permit is free, and the caller's context was cancelled before the call. In three Go modules chance decides whether
# the caller gets the permit, one time in two:
#   1. failsafe-go 0.9.8, bulkhead and rate limiters, which are documented to return an error if the context is
#      cancelled. If a rate limiter refuses, the permit is gone nevertheless.
#   2. sizedwaitgroup 1.0.0, AddWithContext().
#   3. go-lock 1.1.2, ChanMutex, with a context and also with a time-out of 0.
# Why: one `select` waits for the permit and for the context. If both are ready, Go takes one of them by chance.
# Guessed before: that the answer is the same each time: a cancelled context is refused and leaves the permit, as with
# marusama/semaphore 2.5.0 and puddle 2.2.3; a time-out of 0 tries, and gets what is free.
# Seen with Go 1.26.8. Of 1000 trials each, 478 to 525 got the permit. Needs go and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'TEXT'
module seen
go 1.23
require (
	github.com/failsafe-go/failsafe-go v0.9.8
	github.com/marusama/semaphore/v2 v2.5.0
	github.com/remeh/sizedwaitgroup v1.0.0
	github.com/viney-shih/go-lock v1.1.2
)
TEXT
cat > main.go <<'CODE'
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/marusama/semaphore/v2"
	"github.com/remeh/sizedwaitgroup"
	"github.com/viney-shih/go-lock"
)

func main() {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	trial := func(name string, once func() bool) {
		count := 0
		for i := 0; i < 1000; i++ {
			if once() {
				count++
			}
		}
		how := "by chance"
		switch {
		case count == 0:
			how = "never"
		case count == 1000:
			how = "always"
		case count < 300 || count > 700:
			how = fmt.Sprint(count)
		}
		fmt.Println(name+":", how)
	}
	trial("bulkhead", func() bool { return bulkhead.New[any](1).AcquirePermit(cancelled) == nil })
	kept := 0
	trial("rate limiter", func() bool {
		limiter := ratelimiter.NewBursty[any](1, time.Hour)
		given := limiter.AcquirePermit(cancelled) == nil
		if limiter.TryAcquirePermit() {
			kept++
		}
		return given
	})
	fmt.Println("rate limiter: permits that were left:", kept)
	trial("sizedwaitgroup", func() bool {
		group := sizedwaitgroup.New(1)
		return group.AddWithContext(cancelled) == nil
	})
	trial("ChanMutex", func() bool { return lock.NewChanMutex().TryLockWithContext(cancelled) })
	trial("ChanMutex, time-out 0", func() bool { return lock.NewChanMutex().TryLockWithTimeout(0) })
	trial("marusama/semaphore", func() bool { return semaphore.New(1).Acquire(cancelled, 1) == nil })
}
CODE
go mod tidy 2> go.log
go run . | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
bulkhead: by chance
rate limiter: by chance
rate limiter: permits that were left: 0
sizedwaitgroup: by chance
ChanMutex: by chance
ChanMutex, time-out 0: by chance
marusama/semaphore: never
TEXT
