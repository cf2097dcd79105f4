package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tierscope/tierscope/run"
)

// hurryTime is how long what is under way may take to end after the second
// request to stop.
const hurryTime = 2 * time.Second

// signals turns Ctrl-C and its like into a context that ends at the first, and a
// channel that is closed at the second. The third, or a time after the second,
// ends the process. A hangup that the shell has switched off (nohup) stays so.
func signals() (ctx context.Context, hurry <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	second, over := make(chan struct{}), make(chan struct{})
	got := make(chan os.Signal, 3)
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	signal.Notify(got, list...)
	go func() {
		next := func(late <-chan time.Time) bool {
			select {
			case <-got:
			case <-late:
			case <-over:
				return false
			}
			return true
		}
		if !next(nil) {
			return
		}
		cancel()
		if !next(nil) {
			return
		}
		close(second)
		if next(time.After(hurryTime)) {
			os.Exit(int(run.Interrupted))
		}
	}()
	return ctx, second, func() {
		signal.Stop(got)
		close(over)
		cancel()
	}
}
