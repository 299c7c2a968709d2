// SPDX-License-Identifier: Apache-2.0
// Go's channels in the scenarios of the lab; worker.py says how it is called.
package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var input = bufio.NewReader(os.Stdin)
var began = time.Now()

func now() int64 { return int64(time.Since(began)) }

func meet(word string) {
	fmt.Println(word)
	input.ReadString('\n')
}

func report(metric string, size int, times []int64) {
	var line strings.Builder
	fmt.Fprintf(&line, "batch %s %d", metric, size)
	for _, took := range times {
		fmt.Fprintf(&line, " %d", took)
	}
	fmt.Println(line.String())
}

// A channel with room for one: a send that finds it full is a set on a set event.
type event chan struct{}

func (e event) set() {
	select {
	case e <- struct{}{}:
	default:
	}
}
func (e event) wait() { <-e }

func repeat(budget int64, metric string, size int, operation func()) int {
	var times []int64
	meet("ready")
	for end := now() + budget; len(times) == 0 || now() < end; {
		start := now()
		for i := 0; i < size; i++ {
			operation()
		}
		times = append(times, now()-start)
	}
	meet("done")
	report(metric, size, times)
	fmt.Println("operations", size*len(times))
	return size * len(times)
}

func pairs(budget int64) {
	e := make(event, 1)
	repeat(budget, "time", 1000, func() {
		e.set()
		e.wait()
	})
	if len(e) != 0 {
		fmt.Println("wrong as many waits as sets leave it unset")
	}
}

func pingPong(budget int64) {
	there, back := make(event, 1), make(event, 1)
	answers := 0
	go func() {
		for {
			there.wait()
			answers++
			back.set()
		}
	}()
	trips := repeat(budget, "trip", 8, func() {
		there.set()
		back.wait()
	})
	if answers != trips {
		fmt.Println("wrong each trip is answered once")
	}
}

func broadcast(budget int64, count int) {
	var held, last []int64
	meet("ready")
	for end := now() + budget; len(last) < 3 || now() < end; {
		var awake atomic.Int64
		var arrived, all sync.WaitGroup
		woke := make([]int64, count)
		gate := make(chan struct{})
		arrived.Add(count)
		all.Add(count)
		for i := 0; i < count; i++ {
			go func(i int) {
				arrived.Done()
				<-gate
				woke[i] = now()
				awake.Add(1)
				all.Done()
			}(i)
		}
		arrived.Wait()
		time.Sleep(10 * time.Millisecond)
		if awake.Load() != 0 {
			fmt.Println("wrong nobody wakes before the close")
		}
		start := now()
		close(gate)
		held = append(held, now()-start)
		all.Wait()
		latest := start
		for _, at := range woke {
			if at > latest {
				latest = at
			}
		}
		last = append(last, latest-start)
	}
	meet("done")
	report("held", 1, held)
	report("last", 1, last)
	fmt.Println("operations", count*len(last))
}

func channels(budget int64, capacity, senders, receivers int) {
	channel := make(chan uint64, capacity)
	var over atomic.Bool
	var sent, received, count atomic.Uint64
	var sending, receiving sync.WaitGroup
	meet("ready")
	start := now()
	for i := 0; i < receivers; i++ {
		receiving.Add(1)
		go func() {
			var sum uint64
			for item := range channel {
				sum += item
			}
			received.Add(sum)
			receiving.Done()
		}()
	}
	for i := 0; i < senders; i++ {
		sending.Add(1)
		go func() {
			var sum, own uint64
			for own == 0 || !over.Load() {
				own++
				channel <- own
				sum += own
			}
			sent.Add(sum)
			count.Add(own)
			sending.Done()
		}()
	}
	time.Sleep(time.Duration(budget))
	over.Store(true)
	sending.Wait()
	close(channel)
	receiving.Wait()
	took := now() - start
	meet("done")
	if sent.Load() != received.Load() {
		fmt.Println("wrong what is received is what was sent")
	}
	report("item", int(count.Load()), []int64{took})
	fmt.Println("operations", count.Load())
}

const channelsInGroup = 8

type group [channelsInGroup]chan uint64

func newGroup() *group {
	var made group
	for i := range made {
		made[i] = make(chan uint64, 128)
	}
	return &made
}

func (from *group) receiveAny() (item uint64) {
	select {
	case item = <-from[0]:
	case item = <-from[1]:
	case item = <-from[2]:
	case item = <-from[3]:
	case item = <-from[4]:
	case item = <-from[5]:
	case item = <-from[6]:
	case item = <-from[7]:
	}
	return item
}

// To which channel each item goes.
type order [1024]uint8

func newOrder(name string) *order {
	var made order
	for i := range made {
		made[i] = uint8(i % channelsInGroup)
		if name == "random" {
			made[i] = uint8(rand.Intn(channelsInGroup))
		}
	}
	return &made
}

func (where *order) of(item uint64) uint8 { return where[item%uint64(len(where))] }

func selectReady(budget int64, where *order) {
	channels := newGroup()
	var items, differing uint64
	repeat(budget, "time", 100, func() {
		channels[where.of(items)] <- items
		differing += channels.receiveAny() ^ items
		items++
	})
	if differing != 0 {
		fmt.Println("wrong what is received is what was sent")
	}
}

func selectComes(budget int64, where *order) {
	channels := newGroup()
	var received atomic.Uint64
	go func() {
		for {
			received.Store(channels.receiveAny())
		}
	}()
	var items uint64
	repeat(budget, "time", 1, func() {
		items++
		channels[where.of(items)] <- items
		for received.Load() != items {
		}
	})
}

func selectStreams(budget int64, where *order) {
	const end = uint64(1) << 63 // an item that says how many were sent before it
	channels := newGroup()
	var over atomic.Bool
	var items, sent, received uint64
	var both sync.WaitGroup
	both.Add(2)
	meet("ready")
	start := now()
	go func() {
		for items == 0 || !over.Load() {
			channels[where.of(items)] <- items
			sent += items
			items++
		}
		channels[where.of(items)] <- end + items
		both.Done()
	}()
	go func() {
		for count, all := uint64(0), end; count != all; {
			if item := channels.receiveAny(); item >= end {
				all = item - end
			} else {
				received += item
				count++
			}
		}
		both.Done()
	}()
	time.Sleep(time.Duration(budget))
	over.Store(true)
	both.Wait()
	took := now() - start
	meet("done")
	if sent != received {
		fmt.Println("wrong what is received is what was sent")
	}
	report("time", int(items), []int64{took})
	fmt.Println("operations", items)
}

func selects(budget int64, what string, where *order) {
	switch what {
	case "ready":
		selectReady(budget, where)
	case "comes":
		selectComes(budget, where)
	case "streams":
		selectStreams(budget, where)
	}
}

// The value of a parameter, NAME=VALUE.
func parameter(name string) string {
	for _, argument := range os.Args[3:] {
		if its, text, _ := strings.Cut(argument, "="); its == name {
			return text
		}
	}
	return ""
}

func number(name string) int {
	value, _ := strconv.Atoi(parameter(name))
	return value
}

func main() {
	milliseconds, _ := strconv.ParseFloat(os.Args[2], 64)
	budget := int64(milliseconds * 1e6)
	switch os.Args[1] {
	case "pairs":
		pairs(budget)
	case "ping_pong":
		pingPong(budget)
	case "broadcast":
		broadcast(budget, number("threads"))
	case "channels":
		channels(budget, number("capacity"), number("senders"), number("receivers"))
	case "select":
		selects(budget, parameter("what"), newOrder(parameter("order")))
	}
}
