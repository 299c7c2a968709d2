// Go's channels in the scenarios of the lab; worker.py says how it is called.
package main

import (
	"bufio"
	"fmt"
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

func main() {
	milliseconds, _ := strconv.ParseFloat(os.Args[2], 64)
	budget := int64(milliseconds * 1e6)
	switch os.Args[1] {
	case "pairs":
		pairs(budget)
	case "ping_pong":
		pingPong(budget)
	case "broadcast":
		_, text, _ := strings.Cut(os.Args[3], "=")
		count, _ := strconv.Atoi(text)
		broadcast(budget, count)
	}
}
