package main

import (
	"os"
	"testing"

	"github.com/tierscope/tierscope/report/reporttest"
)

func TestZZShot(t *testing.T) {
	f := os.Getenv("SHOT_PAGE")
	if f == "" {
		t.Skip()
	}
	b := reporttest.Start(t)
	b.Open(f, 1200, 900)
	b.Shot("real-light")
	b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
	b.Settle()
	b.Shot("real-dark")
	b.Size(390, 800)
	b.Settle()
	b.Shot("real-narrow")
	b.Quiet()
}
