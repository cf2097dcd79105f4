// Package reporttest opens report pages in Debian's Chromium and reads back what
// they show, for tests. It knows the marks that package report documents
// (data-table, data-value, data-figure ...) and nothing else of it.
package reporttest

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Browser is a headless Chromium, driven over the pipes of its DevTools
// protocol: JSON messages that end in a zero byte.
type Browser struct {
	t       testing.TB
	out     *os.File
	session string

	mu      sync.Mutex
	next    int
	waiting map[int]chan message
	loaded  chan struct{}
	console []string // errors and warnings
	fetched []string // every request but the page itself
}

type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
}

// Start starts a browser that ends with the test. Without Chromium the test is
// skipped, and says how to get it.
func Start(t testing.TB) *Browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium: apt-get install -y chromium")
	}
	profile, err := os.MkdirTemp("", "tierscope-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(profile) })
	toRead, toWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromRead, fromWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{toRead, fromWrite}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	toRead.Close()
	fromWrite.Close()
	b := &Browser{t: t, out: toWrite, waiting: map[int]chan message{}, loaded: make(chan struct{}, 1)}
	go b.read(fromRead)
	t.Cleanup(func() {
		toWrite.Close() // the browser ends with its pipe
		done := make(chan struct{})
		go func() {
			_ = cmd.Wait() // how it ends says nothing
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
		}
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Logf("chromium: its processes: %v", err)
		}
		fromRead.Close()
		if t.Failed() {
			for line := range strings.Lines(stderr.String()) {
				if !strings.Contains(line, "dbus") { // there is none in a container
					t.Logf("chromium says: %s", line)
				}
			}
		}
	})
	var target struct{ TargetID, SessionID string }
	b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, m := range []string{"Page.enable", "Runtime.enable", "Log.enable", "Network.enable"} {
		b.Call(m, nil, nil)
	}
	return b
}

func (b *Browser) read(f *os.File) {
	r := bufio.NewReader(f)
	for {
		raw, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(raw[:len(raw)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.waiting[m.ID]; m.ID != 0 && c != nil {
			delete(b.waiting, m.ID)
			c <- m
		}
		b.event(m)
		b.mu.Unlock()
	}
}

func (b *Browser) event(m message) {
	switch m.Method {
	case "Runtime.exceptionThrown":
		b.console = append(b.console, string(m.Params))
	case "Runtime.consoleAPICalled", "Log.entryAdded":
		b.console = append(b.console, string(m.Params))
	case "Network.requestWillBeSent":
		var p struct {
			Request     struct{ URL string }
			Type        string
			DocumentURL string
		}
		if json.Unmarshal(m.Params, &p) != nil || p.Type != "Document" || p.Request.URL != p.DocumentURL {
			b.fetched = append(b.fetched, string(m.Params))
		}
	case "Page.loadEventFired":
		select {
		case b.loaded <- struct{}{}:
		default:
		}
	}
}

// Call sends a command and decodes its result into out, which may be nil.
func (b *Browser) Call(method string, params map[string]any, out any) {
	b.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	raw, err := json.Marshal(params)
	if err != nil {
		b.t.Fatal(err)
	}
	c := make(chan message, 1)
	b.mu.Lock()
	b.next++
	m := message{ID: b.next, Method: method, Params: raw, SessionID: b.session}
	b.waiting[m.ID] = c
	b.mu.Unlock()
	line, _ := json.Marshal(m)
	if _, err := b.out.Write(append(line, 0)); err != nil {
		b.t.Fatalf("chromium: %s: %v", method, err)
	}
	select {
	case r := <-c:
		if r.Error != nil {
			b.t.Fatalf("chromium: %s: %s", method, r.Error)
		}
		if out != nil {
			if err := json.Unmarshal(r.Result, out); err != nil {
				b.t.Fatalf("chromium: %s: %v", method, err)
			}
		}
	case <-time.After(60 * time.Second):
		b.t.Fatalf("chromium: no answer to %s", method)
	}
}

// Open opens the page of a file in a window of the given size.
func (b *Browser) Open(file string, width, height int) {
	b.t.Helper()
	b.Size(width, height)
	b.Call("Page.navigate", map[string]any{"url": "file://" + file}, nil)
	select {
	case <-b.loaded:
	case <-time.After(60 * time.Second):
		b.t.Fatal("chromium: the page did not load")
	}
	b.Settle()
}

// Size sets the size of the window.
func (b *Browser) Size(width, height int) {
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
}

// Settle waits until what was changed is painted.
func (b *Browser) Settle() {
	b.Eval(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, nil)
}

// Eval runs an expression in the page and decodes its value.
func (b *Browser) Eval(expression string, out any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.Call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("chromium: %s: %s", expression, r.ExceptionDetails)
	}
	if out != nil {
		if err := json.Unmarshal(r.Result.Value, out); err != nil {
			b.t.Fatalf("chromium: %s: %v in %s", expression, err, r.Result.Value)
		}
	}
}

// Key presses a key on what has the focus.
func (b *Browser) Key(key string, code int) {
	text := map[string]any{}
	if key == "Enter" {
		text["text"] = "\r"
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		p := map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
		if kind == "keyDown" {
			for k, v := range text {
				p[k] = v
			}
		}
		b.Call("Input.dispatchKeyEvent", p, nil)
	}
	b.Settle()
}

// Shot takes a picture of the whole page, for people to look at; see File.
func (b *Browser) Shot(name string) {
	b.t.Helper()
	if os.Getenv("TIERSCOPE_SHOTS") == "" {
		return
	}
	var r struct{ Data string }
	b.Call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true, "format": "png"}, &r)
	png, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	b.File(name+".png", png)
}

// File writes into the folder that TIERSCOPE_SHOTS names; without it, nothing.
func (b *Browser) File(name string, data []byte) {
	b.t.Helper()
	dir := os.Getenv("TIERSCOPE_SHOTS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// Quiet fails if the page complained or asked for anything.
func (b *Browser) Quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.console {
		b.t.Errorf("console: %.600s", c)
	}
	for _, r := range b.fetched {
		b.t.Errorf("the page asked for something: %.600s", r)
	}
}
