// SPDX-License-Identifier: Apache-2.0
// Goroutines that wait for an event or a semaphore. A goroutine that waits in tocsin keeps its thread, as in every call
// of C; the others run on.
package main

/*
#cgo LDFLAGS: -ltocsin-c
#include <stdlib.h>
#include <tocsin.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unsafe"
)

// The objects that tocsin uses are in memory of C, because a source points to an object, and a Go program may not give
// C memory of Go that has pointers.
type objects struct {
	job       *C.tocsin_auto_event
	done      *C.tocsin_auto_event
	semaphore *C.tocsin_semaphore
	sources   *[2]C.tocsin_source
}

func newObjects() objects {
	all := objects{
		(*C.tocsin_auto_event)(C.calloc(1, C.sizeof_tocsin_auto_event)),
		(*C.tocsin_auto_event)(C.calloc(1, C.sizeof_tocsin_auto_event)),
		(*C.tocsin_semaphore)(C.calloc(1, C.sizeof_tocsin_semaphore)),
		(*[2]C.tocsin_source)(C.calloc(2, C.sizeof_tocsin_source)),
	}
	all.sources[0].kind = C.TOCSIN_SOURCE_AUTO_EVENT
	all.sources[1].kind = C.TOCSIN_SOURCE_SEMAPHORE
	*(*unsafe.Pointer)(unsafe.Pointer(&all.sources[0].of)) = unsafe.Pointer(all.job)
	*(*unsafe.Pointer)(unsafe.Pointer(&all.sources[1].of)) = unsafe.Pointer(all.semaphore)
	return all
}

func within(longest time.Duration) *C.tocsin_limits {
	var how C.tocsin_limits
	how.until.clock = C.TOCSIN_CLOCK_FROM_NOW
	how.until.nanoseconds = C.int64_t(longest.Nanoseconds())
	return &how
}

// Each thread has its own error text, so the goroutine must stay on its thread until it has read the text.
func checked(call func() C.tocsin_status) (C.tocsin_status, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status := call()
	if status < 0 {
		return status, errors.New(C.GoString(C.tocsin_last_error()))
	}
	return status, nil
}

func require(holds bool, what string) {
	if !holds {
		panic(what)
	}
}

func main() {
	require(C.tocsin_api_version() == C.TOCSIN_API_VERSION, "another version of the interface")
	all := newObjects()
	taken := make(chan int, 2)
	go func() {
		for i := 0; i != 2; i++ {
			var result C.tocsin_any_result
			_, err := checked(func() C.tocsin_status {
				return C.tocsin_wait_any(&all.sources[0], 2, nil, &result)
			})
			require(err == nil, "a wait was refused")
			taken <- int(result.index)
			C.tocsin_auto_event_set(all.done)
		}
	}()
	C.tocsin_semaphore_release(all.semaphore, 1)
	C.tocsin_auto_event_wait(all.done, nil)
	C.tocsin_auto_event_set(all.job)
	C.tocsin_auto_event_wait(all.done, nil)
	require(<-taken == 1 && <-taken == 0, "another source was taken")

	began := time.Now()
	require(C.tocsin_auto_event_wait(all.job, within(5*time.Millisecond)) == C.TOCSIN_TIMED_OUT, "no timeout")
	require(time.Since(began) >= 5*time.Millisecond, "the wait ended too early")
	_, err := checked(func() C.tocsin_status { return C.tocsin_semaphore_release(all.semaphore, 1<<30) })
	require(err != nil && strings.Contains(err.Error(), "tocsin_semaphore_release"), "nobody refused it")
	fmt.Println("all well")
}
